//! The module of `deploy/nextflow`: its commands, filled in as Nextflow does, do what it declares.
//! Nextflow itself runs it in `deploy/nextflow/try.sh`.

#![cfg(unix)]

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn module() -> PathBuf {
    testkit::workspace().join("deploy/nextflow/mithras/detect")
}

/// The text of a block of the process, up to the next one.
fn block<'a>(text: &'a str, name: &str, next: &str) -> &'a str {
    let from = text.find(&format!("\n    {name}:\n")).unwrap_or_else(|| panic!("no {name}"));
    let rest = &text[from..];
    let to =
        if next.is_empty() { rest.rfind("\n}") } else { rest.find(&format!("\n    {next}:\n")) };
    &rest[..to.unwrap_or_else(|| panic!("no end of {name}"))]
}

/// The string between triple quotation marks, without its indentation, with Groovy's escapes taken and
/// every `${name}` filled in.
fn filled(block: &str, values: &[(&str, &str)]) -> String {
    let text = block.split("\"\"\"").nth(1).expect("a string");
    let lines: Vec<&str> = text.lines().collect();
    let indent = |l: &&&str| l.len() - l.trim_start().len();
    let least = lines.iter().filter(|l| !l.trim().is_empty()).map(|l| indent(&l)).min().unwrap();
    let lines = lines.iter().map(|l| l.get(least..).unwrap_or(""));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    assert!(!text.contains("${"), "what is this: {text}");
    text.replace("\\$", "$").replace("\\\\", "\\")
}

/// Of every declared output its name, and its pattern below the task's folder.
fn outputs(text: &str, prefix: &str) -> Vec<(String, String)> {
    let lines = block(text, "output", "when").lines().filter(|l| l.contains("emit:"));
    let of = |line: &str| {
        let name = line.rsplit("emit:").next().unwrap().trim().to_owned();
        let path = &line[line.find("path").unwrap()..];
        let pattern = path.split('"').nth(1).unwrap().replace("${prefix}", prefix);
        (name, pattern)
    };
    lines.map(of).collect()
}

/// Files that a pattern with `*` as a whole part names.
fn found(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for part in pattern.split('/') {
        let next = all.iter().flat_map(|at| match part {
            "*" => {
                fs::read_dir(at).map(|d| d.map(|e| e.unwrap().path()).collect()).unwrap_or_default()
            }
            name => vec![at.join(name)],
        });
        all = next.filter(|p| p.exists()).collect();
    }
    all
}

/// Runs a block in a folder of its own, as a task is run.
fn task(dir: &Path, name: &str, text: &str) -> PathBuf {
    let folder = dir.join(name);
    fs::create_dir(&folder).unwrap();
    common::draw(&folder.join("case.tiff"), 700, 600, 1, 2);
    fs::write(folder.join(".command.sh"), text).unwrap();
    let bin = Path::new(crate::program()).parent().unwrap();
    let ran = Command::new("bash")
        .args(["-ue", ".command.sh"])
        .current_dir(&folder)
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{text}\n{}", String::from_utf8_lossy(&ran.stderr));
    folder
}

#[test]
fn script_and_stub_of_the_module_leave_the_outputs_it_declares() {
    let text = fs::read_to_string(module().join("main.nf")).unwrap();
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let package = format!("--model {}", model.display());
    let values = [
        ("slide", "case.tiff"),
        ("slide.baseName", "case"),
        ("prefix", "test"),
        ("task.cpus", "1"),
        ("task.process", "MITHRAS_DETECT"),
        ("package_arg", &*package),
        ("mpp_arg", ""),
        ("args", "--engine rten"),
    ];
    let declared = outputs(&text, "test");
    assert_eq!(declared.len(), 6, "{declared:?}");
    let dir = tempfile::tempdir().unwrap();
    for (name, next) in [("script", "stub"), ("stub", "")] {
        let folder = task(dir.path(), name, &filled(block(&text, name, next), &values));
        for (output, pattern) in &declared {
            assert_eq!(found(&folder, pattern).len(), 1, "{name}: {output}, {pattern}");
        }
        let versions = fs::read_to_string(folder.join("versions.yml")).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(versions, format!("\"MITHRAS_DETECT\":\n    mithras: {version}\n"), "{name}");
    }
    let table = fs::read_to_string(dir.path().join("script/test/counts.csv")).unwrap();
    assert!(table.lines().count() == 2 && table.contains("\ncase,finished,"), "{table}");
}

#[test]
fn its_description_names_its_inputs_and_outputs() {
    let text = fs::read_to_string(module().join("main.nf")).unwrap();
    let about = fs::read_to_string(module().join("meta.yml")).unwrap();
    let listed = about.split("\noutput:\n").nth(1).unwrap();
    let listed: Vec<&str> =
        listed.lines().filter_map(|l| l.strip_prefix("  - ")?.strip_suffix(':')).collect();
    let declared: Vec<String> = outputs(&text, "test").into_iter().map(|o| o.0).collect();
    assert_eq!(listed, declared);
    for (_, pattern) in outputs(&text, "${prefix}") {
        assert!(about.contains(&format!("\"{pattern}\":")), "{pattern}");
    }
    for input in ["- meta:", "- slide:", "- model:"] {
        assert!(about.split("\noutput:\n").next().unwrap().contains(input), "{input}");
    }
    let tests = fs::read_to_string(module().join("tests/main.nf.test")).unwrap();
    assert!(!tests.contains("snapshot("), "the repository has no snapshots for these tests");
    assert!(text.contains("environment.yml") && module().join("environment.yml").is_file());
}
