//! Libraries name the fact; here it meets the flag that a user can change.

use outcome::Setting;

/// What to try, where a flag could help.
pub fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|e| e.downcast_ref::<outcome::Error>()?.setting().and_then(of_outcome))
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
