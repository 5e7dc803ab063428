//! Long work, during which Python's other threads run and Ctrl-C is heard.

use detect::CancelToken;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How soon Ctrl-C is noticed.
const EVERY: Duration = Duration::from_millis(100);

/// Does `work` on a thread of its own. Ctrl-C sets `cancel`, waits for the work to end, and raises
/// `KeyboardInterrupt`.
///
/// # Panics
/// When `work` does.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &CancelToken,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    std::thread::scope(|scope| {
        // Sends nothing; it is dropped when the work ends, in whatever way.
        let (alive, ended) = channel::<()>();
        let ended = Mutex::new(ended);
        let worker = scope.spawn(move || {
            let _alive = alive;
            work()
        });
        let works = || {
            let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout)
        };
        let mut heard = Ok(());
        while heard.is_ok() && py.detach(works) {
            heard = py.check_signals();
        }
        if heard.is_err() {
            cancel.cancel();
        }
        let result = py.detach(|| worker.join());
        heard?;
        Ok(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
