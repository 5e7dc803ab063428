//! Libraries name the fact; here it meets the flag that a user can change.

use mithras::evaluate::EvaluateError;
use mithras::evaluate::classification::{ClassificationError, Setting as Classes};
use outcome::Setting;

/// What to try, where a flag could help.
pub fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|e| {
        #[cfg(feature = "train")]
        if let Some(hint) = crate::command::train::hint(e) {
            return Some(hint);
        }
        if let Some(e) = e.downcast_ref::<outcome::Error>() {
            return of_outcome(e.setting()?);
        }
        if let Some(EvaluateError::Word { .. }) = e.downcast_ref() {
            return Some(
                "--figures for the words that mean a figure, --label-column for another column",
            );
        }
        e.downcast_ref::<ClassificationError>().and_then(of_classes)
    })
}

fn of_classes(error: &ClassificationError) -> Option<&'static str> {
    let setting = match error {
        ClassificationError::Content { setting, .. } => (*setting)?,
        ClassificationError::Plan { setting, .. } => *setting,
        ClassificationError::Table(e) => return of_outcome(e.setting()?),
        _ => return None,
    };
    Some(match setting {
        Classes::Truth => "--truth for the column of true classes, --labels for another table",
        Classes::Predicted => "--predicted",
        Classes::Positive => "--positive",
        Classes::Threshold => "--threshold",
        Classes::Key => "--key",
        _ => return None,
    })
}

fn of_outcome(setting: Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::Level => "--level",
        Setting::Times => "--at",
        Setting::EventValue => "--event-value",
        Setting::Coding => "--missing for codes that mean missing, --categorical for categories",
        Setting::Categorical => "--categorical",
        Setting::Covariates => "--covariates, and --base or --add for nested models",
        Setting::Weights => "--weights",
        Setting::Cluster => "--cluster",
        Setting::Rho => "--rho",
        Setting::Cut => "--cut",
        Setting::Protective => "--protective",
        Setting::Fit => "--fit",
        Setting::TimeScale => "--time-scale",
        Setting::Replicates => "--replicates",
        Setting::Methods => "--name for the main method, --method for the others",
        Setting::Training => "--train",
        Setting::Scheme => "--scheme",
        Setting::FieldDiameter => "--field-diameter",
        Setting::Area => "--area",
        _ => return None,
    })
}
