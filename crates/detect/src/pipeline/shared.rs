//! Stopping, failing and timing of stages.

use crate::error::DetectError;
use crate::result::StageReport;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Shared by all stages of a run.
#[derive(Default)]
pub(super) struct Shared {
    stop: AtomicBool,
    failure: Mutex<Option<DetectError>>,
}

impl Shared {
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the run; the first error is the one reported.
    pub(super) fn fail(&self, error: DetectError) {
        let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
        failure.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn failure(&self) -> Option<DetectError> {
        self.failure.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    /// Starts a stage; its error or panic ends the run. Channels it owns close when it ends.
    pub(super) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stage: &'static str,
        body: impl FnOnce() -> Result<(), DetectError> + Send + 'scope,
    ) {
        scope.spawn(move || match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(error),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let message = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
                self.fail(DetectError::Panicked { stage, message: message.to_owned() });
            }
        });
    }
}

/// Lets the stages end when the caller's thread unwinds.
pub(super) struct StopOnDrop<'a>(pub(super) &'a Shared);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Time at work and things done of one stage.
pub(super) struct Meter {
    stage: &'static str,
    threads: usize,
    nanos: AtomicU64,
    items: AtomicU64,
}

impl Meter {
    pub(super) fn new(stage: &'static str, threads: usize) -> Self {
        Self { stage, threads, nanos: AtomicU64::new(0), items: AtomicU64::new(0) }
    }

    /// Counts the time of `work` and `items` done by it.
    pub(super) fn time<T>(&self, items: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = work();
        self.nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.items.fetch_add(items as u64, Ordering::Relaxed);
        out
    }

    pub(super) fn report(&self) -> StageReport {
        StageReport {
            stage: self.stage,
            items: self.items.load(Ordering::Relaxed),
            threads: self.threads,
            busy: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }
}
