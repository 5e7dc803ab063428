//! Files of this repository that the program contains.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The text of an experiment's file, by its name below `experiments/`.
pub(crate) fn experiment_file(name: &str) -> Option<&'static str> {
    find(EXPERIMENTS, name)
}

/// The text of a preset, by its name below `presets/`.
pub(crate) fn preset(name: &str) -> Option<&'static str> {
    find(PRESETS, name)
}

fn find(files: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    files.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}
