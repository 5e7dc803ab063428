//! The rules of `deploy/snakemake`: their shell lines, filled in as Snakemake does, make what each declares.
//! Snakemake itself runs them in `deploy/snakemake/try.sh`.

#![cfg(unix)]

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::server::Server;

/// A rule: what it declares as its files, and its shell line.
struct Rule {
    output: Vec<String>,
    shell: String,
}

/// The text between quotation marks of every line, joined, as Python joins strings.
fn strings(lines: &[&str]) -> String {
    let own = |l: &&str| {
        l.trim().split_once('"').and_then(|(_, r)| r.rsplit_once('"')).map(|r| r.0.to_owned())
    };
    lines.iter().filter_map(own).collect()
}

/// The rules with a shell line, by name.
fn rules(text: &str) -> BTreeMap<String, Rule> {
    let mut all = BTreeMap::new();
    for part in text.split("\nrule ").skip(1) {
        let (name, body) = part.split_once(":\n").unwrap();
        let end = body.find("\n\n").map_or(body.len(), |e| e);
        let lines: Vec<&str> = body[..end].lines().collect();
        let block = |key: &str| -> Vec<&str> {
            let from = lines.iter().position(|l| *l == format!("    {key}:"));
            let rest = from.map_or(&[][..], |f| &lines[f + 1..]);
            rest.iter().take_while(|l| l.starts_with("        ")).copied().collect()
        };
        let output = block("output").into_iter().map(|l| l.trim().trim_end_matches(',').to_owned());
        let rule = Rule { output: output.collect(), shell: strings(&block("shell")) };
        if !rule.shell.is_empty() {
            all.insert(name.to_owned(), rule);
        }
    }
    all
}

/// A line with every `{name}` and `{name:q}` filled in.
fn filled(shell: &str, values: &[(&str, String)]) -> String {
    let mut text = shell.to_owned();
    for (name, value) in values {
        let quoted = format!("'{}'", value.replace('\'', "'\\''"));
        text =
            text.replace(&format!("{{{name}:q}}"), &quoted).replace(&format!("{{{name}}}"), value);
    }
    assert!(!text.contains('{'), "what is this: {text}");
    text
}

/// Runs a rule's line in a folder and returns it.
fn ran(dir: &Path, rule: &Rule, values: &[(&str, String)]) {
    let line = filled(&rule.shell, values);
    let out = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &line])
        .current_dir(dir)
        .envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")])
        .output()
        .unwrap();
    let log = values.iter().find(|v| v.0 == "log").map(|v| fs::read_to_string(dir.join(&v.1)));
    assert!(out.status.success(), "{line}: {out:?} {log:?}");
}

#[test]
fn the_lines_of_the_rules_make_what_they_declare() {
    let file = testkit::workspace().join("deploy/snakemake/Snakefile");
    let rules = rules(&fs::read_to_string(file).unwrap());
    let names: Vec<&str> = rules.keys().map(String::as_str).collect();
    assert_eq!(names, ["corpus_build", "detect", "embed_slides", "gather"]);
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    // Names with blanks: the lines quote what they fill in.
    fs::create_dir_all(at.join("my slides")).unwrap();
    fs::create_dir_all(at.join("the results/.snakemake")).unwrap();
    common::draw(&at.join("my slides/one.tiff"), 700, 600, 1, 2);
    common::draw(&at.join("my slides/two.tiff"), 700, 600, 2, 2);
    let two = at.join("my slides/two.tiff");
    // The list alone is a rule's input: a slide may be on a server.
    let server = Server::start();
    let second = match cfg!(feature = "remote") {
        true => server.put("/far/two.tiff", fs::read(&two).unwrap()),
        false => "my slides/two.tiff".to_owned(),
    };
    if second.contains("://") {
        fs::remove_file(&two).unwrap();
    }
    fs::write(at.join("the list.csv"), format!("slide\nmy slides/one.tiff\n{second}\n")).unwrap();
    let root = testkit::workspace();
    let model = root.join("crates/infer/tests/golden/tiny").display().to_string();
    let encoder = at.join("coder").display().to_string();
    let onnx = root.join("crates/features/tests/golden/tiny.onnx").display().to_string();
    let convert = "encoders convert --name tiny --image 32 --mean 0.7,0.5,0.7 --std 0.2,0.2,0.2 --mpp 0.5 \
                   --pooling mean --license none";
    let mut made = Command::new(crate::program());
    made.args(convert.split_whitespace()).args(["--onnx", &onnx, "--out", &encoder]);
    assert!(made.output().unwrap().status.success());
    let detect_flags = format!("--model {model} --engine rten");
    let corpus_flags = format!(
        "--preset tcga-mf-pseudo --no-tumour-filter --any-cohort --cohort DRAWN {detect_flags}"
    );
    let common: Vec<(&str, String)> = [
        ("mithras", crate::program()),
        ("input", "the list.csv"),
        ("out", "the results"),
        ("threads", "1"),
        ("shards", "2"),
        ("worst", "0"),
        ("params.encoder", &encoder),
        ("log", "the results/.snakemake/log"),
    ]
    .map(|(k, v)| (k, v.to_owned()))
    .into();
    let with = |more: &[(&'static str, &str)]| -> Vec<(&str, String)> {
        common.iter().cloned().chain(more.iter().map(|(k, v)| (*k, (*v).to_owned()))).collect()
    };
    for shard in ["1", "2"] {
        ran(
            at,
            &rules["detect"],
            &with(&[("wildcards.k", shard), ("params.flags", &detect_flags)]),
        );
    }
    ran(at, &rules["gather"], &with(&[]));
    ran(at, &rules["corpus_build"], &with(&[("params.flags", &corpus_flags)]));
    ran(at, &rules["embed_slides"], &with(&[("params.flags", "--engine rten")]));
    // What is declared as a path is there; marks are Snakemake's own.
    for (name, rule) in &rules {
        for output in rule.output.iter().filter(|o| !o.starts_with("touch(")) {
            let parts = output.split('/').map(|p| p.trim().trim_matches('"'));
            let path = parts.fold(at.to_owned(), |path, part| {
                path.join(if part == "out" { "the results" } else { part })
            });
            assert!(path.is_file(), "{name}: {output}: {}", path.display());
        }
    }
    let table = fs::read_to_string(at.join("the results/counts.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    let features = at.join("the results/features");
    let h5 = fs::read_dir(features)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "h5"));
    assert_eq!(h5.count(), 2);
}
