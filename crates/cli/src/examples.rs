//! An example for every verb, shown at the end of its `--help`. A test parses each.

use clap::Command;

/// Verb and what is typed, one command a line.
const EXAMPLES: &[(&str, &str)] = &[
    ("audit sample", "mithras audit sample corpus/ --out audit/ --per mitotic_figure=30 --per mimicker=20"),
    ("audit serve", "mithras audit serve audit/package"),
    ("audit score", "mithras audit score audit/ --json"),
    ("bench encoders", "mithras bench encoders vit_base_patch16_224 efficientnet_b0 --runs 20"),
    ("corpus build", "mithras corpus build slides/ --preset tcga-mf-pseudo --table cohorts.csv --tumour-filter filter/ --out corpus/"),
    ("corpus inspect", "mithras corpus inspect corpus/"),
    ("corpus labelled", "mithras corpus labelled --data data/ --out labelled/"),
    ("corpus verify", "mithras corpus verify corpus/"),
    ("corpus split", "mithras corpus split regions/ --folds 3 --out folds.json"),
    ("corpus overlap", "mithras corpus overlap corpus/ evaluation/"),
    ("corpus merge", "mithras corpus merge first/ second/ --out both/"),
    ("corpus interchange", "mithras corpus interchange corpus/ --above 0.5 --up-to 0.6 --out noisy/"),
    ("evaluate classification", "mithras evaluate classification --predictions classified.csv --labels labels.csv --truth majority"),
    ("doctor", "mithras doctor"),
    ("slide info", "mithras slide info slide.svs --json"),
    ("slide thumbnail", "mithras slide thumbnail slide.svs --out slide.png --size 2048"),
    ("slide tissue", "mithras slide tissue slide.svs --out tissue/"),
    ("survival cox", "mithras survival cox --table cohort.csv --time months --event dead --covariates age,sex,hotspot"),
    ("survival km", "mithras survival km --table cohort.csv --time months --event dead --covariates grade --at 12,60"),
    ("survival logrank", "mithras survival logrank --table cohort.csv --time months --event dead --covariates grade"),
    ("survival cindex", "mithras survival cindex --table cohort.csv --time months --event dead --covariates hotspot --bootstrap 1000"),
    ("survival lrt", "mithras survival lrt --table cohort.csv --time months --event dead --covariates age,sex --add hotspot"),
    ("survival study", "mithras survival study --counts run/counts.csv --clinical clinical.csv --join slide=slide --patient patient --time months --event dead --covariates age,sex --boxes grade --out study/"),
    ("survival grade", "mithras survival grade --counts run/counts.csv --scheme nottingham --field-diameter 0.55"),
];

/// The commands with their examples.
pub fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (verb, typed)| {
        let words: Vec<&str> = verb.split(' ').collect();
        add(command, &words, typed)
    })
}

fn add(command: Command, verb: &[&str], typed: &'static str) -> Command {
    match verb {
        [] => command.after_long_help(format!("Example:\n  {typed}")),
        [first, rest @ ..] => {
            if command.find_subcommand(first).is_none() {
                return command;
            }
            command.mut_subcommand(first, |c| add(c, rest, typed))
        }
    }
}
