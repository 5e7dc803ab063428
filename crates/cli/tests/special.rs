//! Pipes in place of files, an output that is full, and names that are not UTF-8: an error or the result, never a
//! wait without end and never a panic.

#![cfg(target_os = "linux")]

use crate::upgrading::{former, output_text, review_of, tiny};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any verb takes here on a machine at work.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs a verb; one that does not end is a failure of the test.
fn ended(dir: &Path, words: &[OsString], stdout: Option<fs::File>) -> Output {
    let mut verb = Command::new(crate::program());
    verb.current_dir(dir).args(words).stderr(Stdio::piped()).stdin(Stdio::null());
    verb.stdout(stdout.map_or_else(Stdio::piped, Stdio::from));
    let (mut child, start) = (verb.spawn().unwrap(), Instant::now());
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{words:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

/// The former run with what its verbs read, by the names that the lines below use.
fn place() -> tempfile::TempDir {
    let dir = former();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    for name in ["m", "enc"] {
        fs::create_dir(at.join(name)).unwrap();
        for file in fs::read_dir(tiny()).unwrap().map(|f| f.unwrap().path()) {
            fs::copy(&file, at.join(name).join(file.file_name().unwrap())).unwrap();
        }
    }
    fs::create_dir(at.join("run/reviews")).unwrap();
    write("run/reviews/anna.jsonl", &review_of(at));
    write("t.csv", "time,event,group\n1,1,a\n2,0,b\n3,1,a\n4,1,b\n");
    write("l.csv", "slide,note\none.tiff,x\n");
    write("mpp.csv", "slide,mpp\none,0.25\n");
    write("c.csv", "file,truth,class\n1,a,a\n2,b,a\n3,b,b\n");
    write("truth.csv", "slide,x,y\none,375,335\n");
    write("a.csv", "image,xmin,ymin,xmax,ymax,label\none.tiff,1,1,51,51,mf\n");
    write("a.json", "{}");
    write("a.sqlite", "x");
    write("r.geojson", "{}");
    write("p.toml", "x");
    write("x.onnx", "x");
    write("f.json", "{}");
    dir
}

/// A result that is a folder, or that has gone, is one that cannot be read: its slide is named, and not left out as
/// one that was never detected.
#[test]
fn results_that_are_no_files_are_named() {
    let dir = place();
    let counts = dir.path().join("run/one/counts.json");
    let whole = fs::read(&counts).unwrap();
    fs::remove_file(&counts).unwrap();
    for folder in [false, true] {
        if folder {
            fs::create_dir(&counts).unwrap();
        }
        for line in [
            "recount run --reviews anna --json",
            "export qupath run --out q",
            "export dicom run --out d",
            "gather run",
            "evaluate detections --predictions run --truth truth.csv",
        ] {
            let out = ended(dir.path(), &words(line), None);
            let printed = output_text(&out);
            // A slide of the truth without a result is one without predictions.
            let gone = !folder && line.starts_with("evaluate");
            let named = printed.contains("one") && (gone || printed.contains("counts.json"));
            assert!(matches!(out.status.code(), Some(1..=3)) && named, "{line}: {printed}");
        }
    }
    fs::remove_dir(&counts).unwrap();
    fs::write(&counts, whole).unwrap();
}

const QUICK: &str = "--engine rten --threads 1 -q";

#[test]
fn pipes_and_devices_in_place_of_files_are_refused() {
    let dir = place();
    let at = dir.path();
    let detect = format!("detect one.tiff --out new {QUICK} --model");
    let lines = [
        ("m/card.toml", format!("{detect} m")),
        ("m/segmenter.onnx", format!("{detect} m")),
        ("one.tiff", format!("{detect} m")),
        ("l.csv", format!("detect --list l.csv --out new --model m {QUICK}")),
        ("mpp.csv", format!("{detect} m --mpp-table mpp.csv")),
        ("r.geojson", format!("{detect} m --regions r.geojson")),
        ("one.tiff", "slide info one.tiff".into()),
        ("one.tiff", "slide tissue one.tiff --out new".into()),
        ("one.tiff", "slide thumbnail one.tiff --out new.png".into()),
        ("one.tiff", "slide deidentify one.tiff new.tiff".into()),
        ("one.tiff", "quality one.tiff --out new".into()),
        ("run/one/state.json", "gather run".into()),
        ("run/one/counts.json", "gather run".into()),
        ("run/one/detections.csv", "gather run".into()),
        ("run/one/detections.csv", "export qupath run --out new".into()),
        ("run/reviews/anna.jsonl", "recount run --reviews anna".into()),
        (
            "run/one/detections.csv",
            "evaluate detections --predictions run --truth truth.csv".into(),
        ),
        ("truth.csv", "evaluate detections --predictions run --truth truth.csv".into()),
        ("c.csv", "evaluate classification --predictions c.csv".into()),
        ("t.csv", "survival km --table t.csv --time time --event event".into()),
        ("a.csv", "corpus import --format csv a.csv".into()),
        ("a.json", "corpus import --format coco a.json".into()),
        ("a.json", "corpus import --format midog-json a.json".into()),
        ("a.sqlite", "corpus import --format sliderunner a.sqlite".into()),
        (
            "p.toml",
            format!("corpus build one.tiff --preset p.toml --cohort X --out new --model m {QUICK}"),
        ),
        (
            "x.onnx",
            "detectors import --onnx x.onnx --mpp 0.25 --name x --license MIT --out new".into(),
        ),
        ("enc/card.toml", format!("embed one.tiff --encoder enc --out new {QUICK}")),
    ];
    for (file, line) in lines {
        let whole = fs::read(at.join(file)).unwrap();
        fs::remove_file(at.join(file)).unwrap();
        assert!(Command::new("mkfifo").arg(at.join(file)).status().unwrap().success());
        let out = ended(at, &words(&line), None);
        let printed = output_text(&out);
        assert!(
            matches!(out.status.code(), Some(1..=3)) && !printed.contains("panicked"),
            "{file}, {line}: {:?} {printed}",
            out.status
        );
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        assert!(printed.contains(name), "{file}, {line}: not named: {printed}");
        fs::remove_file(at.join(file)).unwrap();
        fs::write(at.join(file), whole).unwrap();
    }
}

/// Verbs that print; a full output is their error.
const PRINTING: &[&str] = &[
    "gather run --json",
    "slide info one.tiff",
    "slide info one.tiff --json",
    "slide info one.tiff --deidentified-check",
    "recount run --reviews anna --json",
    "survival km --table t.csv --time time --event event",
    "survival logrank --table t.csv --time time --event event --covariates group",
    "evaluate classification --predictions c.csv",
    "evaluate detections --predictions run --truth truth.csv",
    "corpus import --format csv a.csv",
    "data list",
    "data show MIDOG22",
    "experiment list",
    "experiment show subtypes",
    "encoders list",
    "export qupath run --out q",
    "doctor --runs 0",
];

#[test]
fn a_full_standard_output_is_an_error_in_every_verb() {
    let dir = place();
    for line in PRINTING {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let out = ended(dir.path(), &words(line), Some(full));
        let printed = output_text(&out);
        assert_eq!(out.status.code(), Some(1), "{line}: {printed}");
        assert!(printed.contains("standard output cannot be written"), "{line}: {printed}");
        // A closed one is how other tools end a pipe.
        let shell = format!("\"$0\" {line} | true; exit ${{PIPESTATUS[0]}}");
        let words = ["-c", &shell, crate::program()].map(OsString::from);
        let out = Command::new("bash").current_dir(dir.path()).args(words).output().unwrap();
        assert!(matches!(out.status.code(), Some(0 | 141)), "{line}: {out:?}");
    }
}

/// Names as old archives have them, in Latin-1, wherever a verb takes a path.
#[test]
fn names_that_are_not_utf8_are_read_or_refused() {
    let dir = place();
    let at = dir.path();
    let odd = OsString::from_vec(b"caf\xe9".to_vec());
    let with = |end: &str| [odd.as_bytes(), end.as_bytes()].concat();
    let named = |end: &str| at.join(OsStr::from_bytes(&with(end)));
    for (from, end) in [("one.tiff", ".tiff"), ("t.csv", ".csv"), ("a.json", ".json")] {
        fs::copy(at.join(from), named(end)).unwrap();
    }
    fs::rename(at.join("run"), named("run")).unwrap();
    let lines = [
        ("slide info @.tiff", true),
        ("slide info @.tiff --json", true),
        ("slide info @.tiff --deidentified-check --json", false),
        ("slide tissue @.tiff --out @tissue2 --json", true),
        ("quality @.tiff --out @quality2 --json", true),
        ("recount @run --reviews anna --json", true),
        ("export qupath @run --out @q2 --json", true),
        ("slide tissue @.tiff --out @tissue", true),
        ("slide thumbnail @.tiff --out @.png", true),
        ("slide deidentify @.tiff @copy.tiff", false),
        ("quality @.tiff --out @quality", true),
        ("gather @run", true),
        ("recount @run --reviews anna", true),
        ("export qupath @run --out @q", true),
        ("evaluate detections --predictions @run --truth truth.csv", true),
        ("survival km --table @.csv --time time --event event", true),
        ("corpus import --format coco @.json", false),
        ("corpus build @.tiff --preset @.toml --cohort X --out @corpus", false),
        ("detect one.tiff --model m --out @run --engine rten --threads 1 -q", false),
        ("detect one.tiff --model @model --out new --engine rten --threads 1 -q", false),
        (
            "detect one.tiff --model m --out new --engine rten --threads 1 -q --limit pixels=1@",
            false,
        ),
        ("audit sample @run --out @audit --allow-short", false),
        ("classify @.png --model atypical --out new.csv", false),
        ("challenge --help@", false),
        ("@", false),
    ];
    for (line, done) in lines {
        let word = |w: &str| {
            let parts: Vec<&[u8]> = w.split('@').map(str::as_bytes).collect();
            OsString::from_vec(parts.join(odd.as_bytes()))
        };
        let words: Vec<OsString> = line.split(' ').map(word).collect();
        let out = ended(at, &words, None);
        let printed = output_text(&out);
        let ends = matches!(out.status.code(), Some(0..=3)) && !printed.contains("panicked");
        assert!(ends && (!done || out.status.success()), "{line}: {:?} {printed}", out.status);
        if done && line.ends_with("--json") {
            let text = String::from_utf8_lossy(&out.stdout);
            let _: serde_json::Value = serde_json::from_str(&text).expect(line);
            assert!(text.contains("caf\u{fffd}"), "{line}: {text}");
        }
    }
}
