//! An example for every verb, shown at the end of its `--help`. A test parses each.

use clap::Command;

/// Verb and what is typed, one command a line.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "audit sample",
        "mithras audit sample corpus/ --out audit/ --per mitotic_figure=30 --per mimicker=20",
    ),
    ("audit serve", "mithras audit serve audit/package"),
    ("audit score", "mithras audit score audit/ --json"),
    ("bench encoders", "mithras bench encoders vit_base_patch16_224 efficientnet_b0 --runs 20"),
    (
        "corpus build",
        "mithras corpus build slides/ --preset tcga-mf-pseudo --table cohorts.csv --tumour-filter filter/ --out corpus/",
    ),
    ("corpus inspect", "mithras corpus inspect corpus/"),
    ("corpus labelled", "mithras corpus labelled --data data/ --out labelled/"),
    ("corpus verify", "mithras corpus verify corpus/"),
    ("corpus split", "mithras corpus split regions/ --folds 3 --out folds.json"),
    ("corpus overlap", "mithras corpus overlap corpus/ evaluation/"),
    ("corpus merge", "mithras corpus merge first/ second/ --out both/"),
    (
        "corpus interchange",
        "mithras corpus interchange corpus/ --above 0.5 --up-to 0.6 --out noisy/",
    ),
    (
        "evaluate classification",
        "mithras evaluate classification --predictions classified.csv --labels labels.csv --truth majority",
    ),
    ("doctor", "mithras doctor"),
    (
        "embed",
        "mithras embed slides/ --encoder encoders/uni --out features/ --tile-mpp 0.5\n  \
         mithras embed --crops corpus/ --encoder encoders/uni --out features.parquet",
    ),
    ("encoders list", "mithras encoders list --in encoders/ --json"),
    ("encoders show", "mithras encoders show encoders/uni"),
    (
        "encoders convert",
        "mithras encoders convert --onnx uni.onnx --out encoders/uni --name uni --image 224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --mpp 0.5 --pooling class-token --license CC-BY-NC-ND-4.0 --precision f16",
    ),
    ("slide info", "mithras slide info slide.svs --json"),
    ("slide thumbnail", "mithras slide thumbnail slide.svs --out slide.png --size 2048"),
    ("slide tissue", "mithras slide tissue slide.svs --out tissue/"),
    (
        "survival cox",
        "mithras survival cox --table cohort.csv --time months --event dead --covariates age,sex,hotspot",
    ),
    (
        "survival km",
        "mithras survival km --table cohort.csv --time months --event dead --covariates grade --at 12,60",
    ),
    (
        "survival logrank",
        "mithras survival logrank --table cohort.csv --time months --event dead --covariates grade",
    ),
    (
        "survival cindex",
        "mithras survival cindex --table cohort.csv --time months --event dead --covariates hotspot --bootstrap 1000",
    ),
    (
        "survival lrt",
        "mithras survival lrt --table cohort.csv --time months --event dead --covariates age,sex --add hotspot",
    ),
    (
        "survival study",
        "mithras survival study --counts run/counts.csv --clinical clinical.csv --join slide=slide --patient patient --time months --event dead --covariates age,sex --boxes grade --out study/",
    ),
    (
        "survival grade",
        "mithras survival grade --counts run/counts.csv --scheme nottingham --field-diameter 0.55",
    ),
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

#[cfg(test)]
mod tests {
    use super::with_examples;
    use crate::Cli;
    use clap::{Command, CommandFactory};

    fn leaves<'a>(command: &'a Command, path: &str, out: &mut Vec<(String, &'a Command)>) {
        for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
            let path = format!("{path} {}", sub.get_name());
            if sub.has_subcommands() {
                leaves(sub, &path, out);
            } else {
                out.push((path, sub));
            }
        }
    }

    /// Without the training verbs, whose presets begin with their command.
    #[test]
    fn every_verb_has_examples_and_each_parses() {
        let command = with_examples(Cli::command());
        let mut verbs = vec![];
        leaves(&command, "mithras", &mut verbs);
        for (verb, c) in verbs.iter().filter(|(v, _)| !v.starts_with("mithras train")) {
            let help = c.get_after_long_help().or(c.get_after_help());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let typed = help.replace(" \\\n", " ");
            let lines: Vec<&str> =
                typed.lines().map(str::trim).filter(|l| l.starts_with("mithras ")).collect();
            assert!(!lines.is_empty(), "{verb}: no example");
            for line in lines {
                let words = line.split('#').next().unwrap().split_whitespace();
                if let Err(e) = Cli::command().try_get_matches_from(words) {
                    panic!("{verb}: {line}: {e}");
                }
            }
        }
    }
}
