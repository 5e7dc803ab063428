//! Who watches a run, where its state is kept, and what ends it early.

use crate::checkpoint::Checkpoint;
use crate::error::{DetectError, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who watches a run, where its state is kept, and what ends it early. Nothing here changes a
/// result.
///
/// `Control::default()` watches nothing, stores nothing and runs to the end.
#[derive(Default)]
pub struct Control<'a> {
    /// Who learns how far it is.
    pub observer: Option<&'a mut dyn Observer>,
    /// Where the state between two units is kept, so that a killed run continues from there.
    pub store: Option<&'a mut dyn Store>,
    /// Ends the run from elsewhere.
    pub cancel: CancelToken,
}

impl<'a> Control<'a> {
    /// Watched by `observer`.
    pub fn watched(observer: &'a mut dyn Observer) -> Self {
        Self { observer: Some(observer), ..Self::default() }
    }

    /// Keeps its state in `store`.
    #[must_use]
    pub fn stored(mut self, store: &'a mut dyn Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Ends when `token` is set.
    #[must_use]
    pub fn until(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    pub(crate) fn progress(&mut self, progress: Progress) {
        if let Some(observer) = &mut self.observer {
            observer.progress(progress);
        }
    }
}

/// How far a slide has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Windows segmented and stitched, or found unreadable.
    pub windows_done: usize,
    /// Windows of the plan.
    pub windows_total: usize,
    /// Candidates with all their scores.
    pub candidates: usize,
}

/// Watches a run; called on the thread that called [`Detector::run`](crate::Detector::run).
pub trait Observer {
    /// Something was finished.
    fn progress(&mut self, progress: Progress);

    /// A stored state cannot be used, for this reason, and the slide starts again.
    fn restarts(&mut self, reason: &str) {
        let _ = reason;
    }
}

/// Watches nothing.
impl Observer for () {
    fn progress(&mut self, _: Progress) {}
}

/// Keeps the state of one slide's run between two units.
pub trait Store {
    /// The state of an interrupted run; `None` without one.
    ///
    /// # Errors
    /// [`DetectError::Checkpoint`] when there is one that cannot be read.
    fn load(&mut self) -> Result<Option<Checkpoint>, DetectError>;

    /// A unit was finished: the run can continue from here after a kill.
    ///
    /// # Errors
    /// [`StoreError`], which ends the run as [`DetectError::Store`].
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Forgets the state.
    fn discard(&mut self);
}

/// A state in a file.
#[derive(Clone, Debug)]
pub struct StateFile(pub PathBuf);

impl Store for StateFile {
    fn load(&mut self) -> Result<Option<Checkpoint>, DetectError> {
        Checkpoint::load(&self.0)
    }

    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        checkpoint.save(&self.0)
    }

    fn discard(&mut self) {
        // A leftover state does no harm: it is checked before it is used.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Ends a run from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The flag behind it, for a signal handler, which may do no more than set it.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Asks every run with this token to end with [`DetectError::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
