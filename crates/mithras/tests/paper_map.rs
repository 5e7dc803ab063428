//! `docs/paper-map.md` names code and tests; every name must exist.

use std::path::Path;
use std::process::Command;

/// The words between backticks in one line.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether `name` is defined somewhere in the sources below `folder`.
fn defined(folder: &Path, name: &str) -> bool {
    let pattern = format!(
        r"(fn|struct|enum|trait|mod|const|static|type|union) {name}\b|^ *(pub )?mod {name};"
    );
    Command::new("grep")
        .args(["-rqE", "--include=*.rs", &pattern])
        .arg(folder)
        .status()
        .expect("grep runs")
        .success()
}

#[test]
fn every_name_exists() {
    let root = testkit::workspace();
    let page = std::fs::read_to_string(root.join("docs/paper-map.md")).expect("docs/paper-map.md");
    let mut checked = 0;
    let mut missing = Vec::new();
    for (number, line) in page.lines().enumerate().filter(|(_, l)| l.starts_with("| ")) {
        for word in code_words(line) {
            let found = if word.contains('/') {
                root.join(word).exists()
            } else if let Some((head, _)) = word.split_once("::") {
                let name = word.rsplit("::").next().expect("a last segment");
                defined(&root.join("crates").join(head).join("src"), name)
            } else {
                continue;
            };
            checked += 1;
            if !found {
                missing.push(format!("line {}: {word}", number + 1));
            }
        }
    }
    assert!(checked > 40, "only {checked} names found; has the table's form changed?");
    assert!(
        missing.is_empty(),
        "docs/paper-map.md names what does not exist:\n{}",
        missing.join("\n")
    );
}
