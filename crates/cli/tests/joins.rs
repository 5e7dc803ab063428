//! Lists that meet a run in part: the first keys of both sides are printed, and the rule by which they would meet.

use crate::upgrading::{detect, former, output_text, tiny};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn mithras(dir: &Path, line: &str) -> Output {
    Command::new(crate::program()).current_dir(dir).args(line.split(' ')).output().unwrap()
}

/// A run of the slide `0007`.
fn place() -> tempfile::TempDir {
    let dir = former();
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    fs::rename(at.join("one.tiff"), at.join("0007.tiff")).unwrap();
    let model = tiny();
    let words = detect(&model, &["0007.tiff"], &["-q"]).join(" ");
    let out = mithras(at, &words);
    assert!(out.status.success(), "{}", output_text(&out));
    dir
}

/// A table that meets in part gives its columns, and names the rest.
#[test]
fn a_list_that_meets_in_part_names_both_sides() {
    let dir = place();
    let (at, model) = (dir.path(), tiny());
    fs::copy(at.join("0007.tiff"), at.join("0008.tiff")).unwrap();
    let words = detect(&model, &["0007.tiff", "0008.tiff"], &["-q", "--resume"]).join(" ");
    assert!(mithras(at, &words).status.success());
    fs::write(at.join("part.csv"), "slide,case\n0007.tiff,K1\n8.tiff,K2\n").unwrap();
    let out = mithras(at, "gather run --list part.csv");
    let printed = output_text(&out);
    assert!(out.status.success(), "{printed}");
    for words in
        ["1 slide of the run", "1 slide of the table", "'0008'", "'8'", "without leading zeros"]
    {
        assert!(printed.contains(words), "`{words}` is not in: {printed}");
    }
}
