//! Names of slides are data: they lead nowhere, command nothing and compute nothing.

use std::path::Path;
use std::process::Command;

fn tiny() -> std::path::PathBuf {
    testkit::workspace().join("crates/infer/tests/golden/tiny")
}

/// Every file below a folder, with its content.
fn tree(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(tree(&path));
        } else {
            all.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn results_stay_below_the_folder_and_nothing_is_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let slides = dir.path().join("slides");
    std::fs::create_dir(&slides).unwrap();
    let names = [
        "...svs",
        "..svs",
        "a..svs",
        "one\ntwo.svs",
        "\u{1b}[2Jred.svs",
        "=HYPERLINK(\"x\",\"y\").svs",
        "<img src=x onerror=alert(1)>.svs",
    ];
    let blank = slides.join("blank.png");
    image::RgbImage::from_pixel(300, 200, image::Rgb([244, 243, 244])).save(&blank).unwrap();
    for name in names {
        std::fs::copy(&blank, slides.join(name)).unwrap();
    }
    // What would be overwritten by a name that leads out of the folder.
    let results = dir.path().join("results");
    std::fs::create_dir(&results).unwrap();
    for file in ["counts.json", "state.json", "counts.csv"] {
        std::fs::write(dir.path().join(file), "mine").unwrap();
        std::fs::write(results.join(file), "mine").unwrap();
    }
    let out = results.join("out");
    let run = |more: &[&str]| {
        Command::new(crate::program())
            .args([
                "detect",
                "--engine",
                "rten",
                "--mpp",
                "0.25",
                "--stages",
                "1",
                "--operating-point",
                "0.3,0",
            ])
            .args(names.map(|n| slides.join(n)))
            .arg(&blank)
            .arg("--out")
            .arg(&out)
            .arg("--model")
            .arg(tiny())
            .args(more)
            .output()
            .unwrap()
    };
    for more in [&[][..], &["--overwrite"]] {
        let output = run(more);
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
        assert!(!printed.contains(&0x1b), "an escape reaches the terminal");
        for folder in [dir.path(), &results] {
            for file in ["counts.json", "state.json", "counts.csv"] {
                assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), "mine");
            }
        }
        let outside = tree(dir.path()).into_iter().filter(|(p, _)| !p.starts_with(&out));
        assert_eq!(outside.count(), 6 + 1 + names.len(), "a file outside of the results");
        // One folder below the results for each slide; the run's own folder has no slide's files.
        let folders = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path());
        assert_eq!(folders.filter(|p| p.join("counts.json").is_file()).count(), 1 + names.len());
        assert!(!out.join("counts.json").exists());
    }
    let mut table = csv::Reader::from_path(out.join("counts.csv")).unwrap();
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 1 + names.len());
    for cell in rows.iter().flatten() {
        assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
        assert!(!cell.contains(char::is_control), "{cell:?}");
    }
    assert!(rows.iter().any(|r| r[0].starts_with("'=HYPERLINK")));
    let html = std::fs::read_to_string(out.join("summary.html")).unwrap();
    assert!(!html.contains("<img src=x"), "a name is markup");
}
