//! An example for every verb, shown at the end of its `--help`. A test parses each.

use clap::Command;

/// One command a line; what follows it until the next is a note on the same verb.
const EXAMPLES: &str = include_str!("examples.txt");

/// The commands with their examples and notes.
pub fn with_examples(command: Command) -> Command {
    let mut verb: Vec<&str> = vec![];
    EXAMPLES.lines().fold(command, |command, line| {
        if line.starts_with("mithras ") {
            verb = line.split(' ').skip(1).collect();
            add(command, &verb, &format!("  {line}"))
        } else {
            add(command, &verb, line)
        }
    })
}

/// Follows the words that are verbs.
fn add(command: Command, words: &[&str], line: &str) -> Command {
    match words {
        [verb, rest @ ..] if command.find_subcommand(verb).is_some() => {
            command.mut_subcommand(verb, |c| add(c, rest, line))
        }
        _ => {
            let before =
                command.get_after_long_help().map_or("Examples:".into(), ToString::to_string);
            command.after_long_help(format!("{before}\n{line}"))
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

    #[test]
    #[cfg(feature = "train")]
    fn so_many_verbs() {
        let (command, mut verbs) = (Cli::command(), vec![]);
        leaves(&command, "mithras", &mut verbs);
        verbs.retain(|(_, c)| !c.is_hide_set());
        assert_eq!(verbs.len(), 72, "mithras/tests/architecture.rs allows so many lines a verb");
    }

    /// `corpus inspect D` and `corpus export --data D` make a user look up which of them wants what.
    #[test]
    fn verbs_of_a_dataset_take_it_alike() {
        let (command, mut verbs) = (Cli::command(), vec![]);
        leaves(&command, "mithras", &mut verbs);
        for (verb, c) in verbs.iter().filter(|(v, _)| v.starts_with("mithras corpus ")) {
            let data = c.get_arguments().find(|a| a.get_long() == Some("data"));
            assert!(data.is_none(), "{verb} takes its dataset as --data");
        }
    }

    /// What a verb writes is compared between two builds before and after a change.
    #[test]
    fn every_verb_has_a_job_that_compares_its_output() {
        let jobs = include_str!("../../../scripts/compare_outputs.sh");
        let typed = |line: &'static str| match line.trim_start().split_once(' ')? {
            ("job", rest) => Some(rest.split_once(' ')?.1),
            ("served", rest) => Some(rest.split_once(" -- ")?.1),
            _ => None,
        };
        let jobs: Vec<&str> = jobs.lines().filter_map(typed).collect();
        let (command, mut verbs) = (Cli::command(), vec![]);
        leaves(&command, "", &mut verbs);
        let compared =
            |verb: &str| jobs.iter().any(|j| format!(" {j} ").starts_with(&format!("{verb} ")));
        let missing: Vec<&String> = verbs.iter().map(|v| &v.0).filter(|v| !compared(v)).collect();
        assert!(jobs.len() > verbs.len() && missing.is_empty(), "no job for {missing:?}");
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

    /// What an experiment asks for, the command line knows.
    #[test]
    #[cfg(feature = "train")]
    fn every_step_of_an_experiment_parses() {
        for shrink in [false, true] {
            let all = experiments::spec::all().unwrap();
            for step in experiments::graph::Graph::build(&all, shrink).unwrap().steps() {
                let fill = |w: &String| w.replace("{threads}", "1").replace("{device}", "cpu");
                let words = ["mithras".to_owned()].into_iter().chain(step.words.iter().map(fill));
                if let (true, Err(e)) =
                    (!step.words.is_empty(), Cli::command().try_get_matches_from(words))
                {
                    panic!("{}: {e}", step.name);
                }
            }
        }
    }
}
