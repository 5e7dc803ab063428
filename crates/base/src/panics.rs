//! A wall around other people's code: what panics there is an error here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A panic inside other people's code, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reader stopped: {0}")]
pub struct Stopped(String);

impl From<Stopped> for String {
    fn from(stopped: Stopped) -> Self {
        stopped.to_string()
    }
}

/// Runs code that reads a file with possibly false contents. A panic of it becomes an error with its message, and
/// is not printed.
///
/// # Errors
/// What `work` returns, or [`Stopped`].
pub fn catch_panic<T, E: From<Stopped>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                usual(panic);
            }
        }));
    });
    let before = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(before);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Stopped(text.to_owned()).into())
    })
}

#[cfg(test)]
mod tests {
    use super::catch_panic;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(catch_panic(|| Ok::<_, String>(1)), Ok(1));
        assert_eq!(catch_panic(|| Err::<(), String>("no".into())), Err("no".into()));
        let e = catch_panic(|| -> Result<(), String> { panic!("shape {}", 7) }).unwrap_err();
        assert!(e.contains("shape 7"), "{e}");
    }
}
