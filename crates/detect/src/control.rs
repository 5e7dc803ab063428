//! Who hears of a run, where its state is kept, and what ends it early.

use crate::checkpoint::Checkpoint;
use crate::error::{DetectError, StoreError};
use crate::kept::KeptCandidates;
use base::progress::Listener;
use base::text::plain_lines;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who hears of a run, where its state is kept, and what ends it early. Nothing here changes a
/// result.
///
/// `Control::default()` reports nothing, stores nothing and runs to the end.
#[derive(Default)]
pub struct Control<'a> {
    /// Gets the windows that are segmented and stitched, or found unreadable, of those planned, and a
    /// note where a stored state cannot be used. Called on the thread that called
    /// [`Detector::run`](crate::Detector::run), which neither begins nor ends a piece of work.
    pub listener: Option<&'a mut dyn Listener>,
    /// Where the state between two units is kept, so that a killed run continues from there.
    pub store: Option<&'a mut dyn Store>,
    /// Where the candidates of the first stage are kept; a slide that is there begins with its second stage.
    pub kept: Option<KeptCandidates>,
    /// Ends the run from elsewhere.
    pub cancel: CancelToken,
}

impl<'a> Control<'a> {
    /// Reports to `listener`.
    pub fn reporting(listener: &'a mut dyn Listener) -> Self {
        Self { listener: Some(listener), ..Self::default() }
    }

    /// Keeps its state in `store`.
    #[must_use]
    pub fn stored(mut self, store: &'a mut dyn Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Keeps the candidates of the first stage.
    #[must_use]
    pub fn keeping(mut self, kept: Option<KeptCandidates>) -> Self {
        self.kept = kept;
        self
    }

    /// Ends when `token` is set.
    #[must_use]
    pub fn until(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    pub(crate) fn update(&mut self, done: u64, total: u64) {
        if let Some(listener) = &mut self.listener {
            listener.update(done, total);
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        if let Some(listener) = &mut self.listener {
            listener.note(&plain_lines(text));
        }
    }

    /// A stored state cannot be used, for this reason, and the slide starts again.
    pub(crate) fn restart(&mut self, reason: &str) {
        self.note(&format!("{reason}; this slide is started again"));
        if let Some(store) = &mut self.store {
            store.discard();
        }
    }
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
