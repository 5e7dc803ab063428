//! `docs/paper-map.md` names code and tests: every name must exist, and what is named as the home of
//! an equation or a rule must be used by the program, not by tests and examples alone. No lint reads pages, and
//! `dead_code` counts a public item as used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The words between backticks in one line.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// All sources of the program, without comments and without test modules, by path.
fn sources(folder: &Path, out: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() {
            sources(&entry, out);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&entry).expect("text");
            // Test modules end a file here.
            let program = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let lines = program.lines().filter(|l| !l.trim_start().starts_with("//"));
            out.insert(entry, lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

fn all_sources() -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    let crates = testkit::workspace().join("crates");
    for entry in std::fs::read_dir(crates).expect("crates").map(|e| e.expect("an entry").path()) {
        // What tests share is not part of the program.
        if entry.join("src").is_dir() && !entry.ends_with("testkit") {
            sources(&entry.join("src"), &mut out);
        }
    }
    out
}

const DEFINED_BY: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "const", "static", "type"];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `name` occurs as a word in `text`, and the word before it.
fn places<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.match_indices(name).filter_map(move |(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        let previous = before.trim_end().rsplit(|c| !is_word(c)).next().unwrap_or_default();
        whole.then_some((at, previous))
    })
}

/// The file that defines `name` in a crate: one whose path follows the segments, else any.
fn definition(all: &BTreeMap<PathBuf, String>, path: &str) -> Option<(PathBuf, &'static str)> {
    let segments: Vec<&str> = path.split("::").collect();
    let (name, folder) = (*segments.last()?, format!("crates/{}/src", segments[0]));
    let mut found: Vec<(PathBuf, &'static str)> = vec![];
    for (file, text) in all.iter().filter(|(f, _)| f.to_string_lossy().contains(&folder)) {
        let how = places(text, name).find_map(|(_, b)| DEFINED_BY.iter().find(|d| **d == b));
        found.extend(how.map(|h| (file.clone(), *h)));
    }
    let fits = |f: &Path| {
        let inner = &segments[1..segments.len() - 1];
        inner
            .iter()
            .filter(|s| {
                f.components()
                    .any(|c| c.as_os_str().to_string_lossy().trim_end_matches(".rs") == **s)
            })
            .count()
    };
    found.into_iter().max_by_key(|(f, _)| fits(f))
}

/// Whether the program uses `name` beyond its definition and re-exports of it.
fn used(all: &BTreeMap<PathBuf, String>, name: &str, how: &str) -> bool {
    all.values().any(|text| {
        // Statements of `use` may run over lines; a module is used by being imported from.
        let bare: String = match how {
            "mod" => text.clone(),
            _ => text.split(';').filter(|s| !is_import(s)).collect::<Vec<_>>().join(";"),
        };
        places(&bare, name).any(|(at, before)| {
            let call = how != "fn" || {
                let after = bare[at + name.len()..].trim_start();
                // Called, or handed on as a value.
                after.starts_with(['(', ',', ')', ';']) || after.starts_with("::<")
            };
            call && !DEFINED_BY.contains(&before)
        })
    })
}

fn is_import(statement: &str) -> bool {
    let last = statement.trim_start();
    let last = last.rsplit("}\n").next().unwrap_or(last).trim_start();
    last.starts_with("use ") || last.starts_with("pub use ") || last.starts_with("pub(crate) use ")
}

#[test]
fn every_name_exists_and_is_used_by_the_program() {
    let root = testkit::workspace();
    let all = all_sources();
    let page = std::fs::read_to_string(root.join("docs/paper-map.md")).expect("docs/paper-map.md");
    let (mut checked, mut missing, mut unused) = (0, Vec::new(), Vec::new());
    for (number, line) in page.lines().enumerate().filter(|(_, l)| l.starts_with("| ")) {
        for word in code_words(line) {
            let line = number + 1;
            if word.contains('/') {
                if !root.join(word).exists() {
                    missing.push(format!("line {line}: {word}"));
                }
            } else if let Some((_, name)) = word.rsplit_once("::") {
                match definition(&all, word) {
                    None => missing.push(format!("line {line}: {word}")),
                    Some((_, how)) if !used(&all, name, how) => {
                        unused.push(format!("line {line}: {word}"));
                    }
                    Some(_) => {}
                }
            } else {
                continue;
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} names found; has the table's form changed?");
    assert!(missing.is_empty(), "the paper map names what does not exist:\n{}", missing.join("\n"));
    assert!(
        unused.is_empty(),
        "the paper map names what only tests, examples or nothing calls:\n{}",
        unused.join("\n")
    );
}

#[test]
fn a_name_that_only_tests_call_is_found() {
    let program = |text: &str| BTreeMap::from([(PathBuf::from("crates/x/src/a.rs"), text.into())]);
    let defined = "pub fn total(x: f64) -> f64 {\n    x\n}\n";
    for (rest, is_used) in [
        ("", false),
        ("pub use a::{other, total};\n", false),
        ("fn f() {\n    let y = total(1.0);\n}\n", true),
        ("fn f() {\n    let y = subtotal(1.0);\n}\n", false),
        ("fn f() {\n    list.iter().map(total).sum();\n}\n", true),
    ] {
        let all = program(&format!("{rest}{defined}"));
        assert_eq!(definition(&all, "x::a::total").map(|d| d.1), Some("fn"));
        assert_eq!(used(&all, "total", "fn"), is_used, "{rest}");
    }
}
