//! Unsafe code is only where `docs/reliability.md` lists it, with a reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// Whether a line of code, comments aside, holds the word.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .any(|word| word == "unsafe")
}

#[test]
fn every_unsafe_is_listed_with_its_reason_and_other_crates_forbid_it() {
    let root = testkit::workspace();
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let listed: BTreeSet<String> = page
        .lines()
        .filter_map(|l| l.strip_prefix("| `crates/"))
        .map(|l| {
            let (file, reason) = l.split_once("` |").expect("a file and its reason");
            assert!(reason.trim().len() > 20, "{file} has no reason");
            format!("crates/{file}")
        })
        .collect();
    let mut found = BTreeSet::new();
    for krate in std::fs::read_dir(root.join("crates")).unwrap() {
        let krate = krate.unwrap().path();
        let mut files = Vec::new();
        sources(&krate.join("src"), &mut files);
        let mut any = false;
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            if text.lines().any(is_unsafe) {
                any = true;
                found.insert(file.strip_prefix(&root).unwrap().to_string_lossy().into_owned());
            }
        }
        if !any {
            let main = ["lib.rs", "main.rs"].map(|f| krate.join("src").join(f));
            let forbids = main
                .iter()
                .filter(|f| f.is_file())
                .all(|f| std::fs::read_to_string(f).unwrap().contains("#![forbid(unsafe_code)]"));
            assert!(forbids, "{} has no unsafe code and does not forbid it", krate.display());
        }
    }
    assert_eq!(found, listed, "left: in the sources; right: in docs/reliability.md");
}
