//! Why the viewer refuses what it is asked for, where a page may have shown something else.

use base::text::Shown;
use pages::server::Answer;
use std::path::PathBuf;

/// A request that does not fit what is on disk.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The results of a slide are not those that were read when the viewer was started.
    #[error("{}: the run has changed since it was opened: start the viewer again", Shown(folder))]
    Changed {
        /// Folder of the slide in its run.
        folder: PathBuf,
    },
    /// A signature for a slide that the viewer cannot show.
    #[error(
        "not signed: the slide `{slide}` of this case cannot be opened ({reason}); put its file back and start the \
         viewer again"
    )]
    Unseen {
        slide: String,
        /// Why it cannot be opened.
        reason: String,
    },
    /// Regions in place of others than those that were shown.
    #[error(
        "not saved: {reviewer} changed the regions of this slide since they were shown here; they are now shown as \
         they are, draw yours again"
    )]
    Redrawn { reviewer: String },
    /// Regions in place of those of another reviewer, which are not shown.
    #[error(
        "not saved: another reviewer drew regions on this slide, which a blinded viewer does not show; start it with a \
         folder of reviews of your own"
    )]
    Hidden,
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Unseen { .. } => 422,
            _ => 409,
        };
        Self::refusal(status, &refusal.to_string())
    }
}
