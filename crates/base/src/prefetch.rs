//! A loop whose next steps are drawn while this one works.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Calls `work(step, drawn, waited)` for each step in order. What a step needs is drawn on another
/// thread, at most two steps ahead; `waited` is how long the loop waited for it. Ends with the
/// first [`ControlFlow::Break`].
///
/// # Errors
/// The first error of `work`.
pub fn each_step<T: Send, E>(
    steps: Range<usize>,
    draw: impl Fn(usize) -> T + Sync,
    mut work: impl FnMut(usize, T, Duration) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(2);
        let (wanted, draw) = (steps.clone(), &draw);
        scope.spawn(move || {
            for step in wanted {
                if send.send(draw(step)).is_err() {
                    return;
                }
            }
        });
        for step in steps {
            let since = Instant::now();
            // The other side ends early only by a panic, which the scope hands on.
            let Ok(drawn) = receive.recv() else { break };
            if work(step, drawn, since.elapsed())?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}
