//! What a user can change about an error of a training.

use net::NetError;
use std::error::Error;
use train::TrainError;
use training::TrainingError;

/// The flag that helps, if one does.
pub fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    match error.downcast_ref() {
        Some(TrainingError::Train(e)) => return of_train(e),
        Some(TrainingError::ScoredBefore { .. }) => return Some("--again, which scores it anyway"),
        Some(TrainingError::Seen { .. } | TrainingError::Unlisted { .. }) => {
            return Some("--allow-seen, which calibrates anyway and records it in the report");
        }
        _ => {}
    }
    of_train(error.downcast_ref()?)
}

fn of_train(error: &TrainError) -> Option<&'static str> {
    match error {
        TrainError::Net(NetError::Weights { fits_in_part: true, .. }) => Some(
            "--allow-partial, which loads what matches and records what is initialised at random",
        ),
        TrainError::Preset { path, .. } if path.as_os_str() == "init" => Some("--init FILE"),
        TrainError::Preset { path, .. } if path.as_os_str() == "positive" => {
            Some("--set positive=CLASS, or `positive` in the preset")
        }
        TrainError::There { .. } => Some("--resume to continue, or another --out"),
        _ => None,
    }
}
