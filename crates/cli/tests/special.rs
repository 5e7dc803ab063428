//! Pipes in place of files, an output that is full, and names that are not UTF-8: an error or the result, never a
//! wait without end and never a panic.

#![cfg(target_os = "linux")]

use crate::upgrading::{former, json, output_text, review_of, tiny};
use mithras::demo::{Layout, Rect, Spec};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any verb takes here on a machine at work.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs a verb; one that does not end is a failure of the test.
fn ended(dir: &Path, words: &[OsString], stdout: Option<fs::File>) -> Output {
    ended_in(crate::program(), dir, words, stdout)
}

/// The same in one of the builds.
fn ended_in(program: &str, dir: &Path, words: &[OsString], stdout: Option<fs::File>) -> Output {
    let mut verb = Command::new(program);
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
fn results_that_are_not_files_are_named() {
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

/// Whether a verb of a line prints JSON if asked to, and was not asked.
fn has_json(dir: &Path, line: &str) -> bool {
    let verb: Vec<&str> =
        line.split(' ').take_while(|w| w.chars().all(char::is_alphabetic)).collect();
    // `slide info x` and `detect x`: what follows the verb is asked for help as well.
    let asked = |n: usize| ended(dir, &words(&format!("{} --help", verb[..n].join(" "))), None);
    let help = (1..=verb.len().min(2)).map(asked).rfind(|h| h.status.success());
    let help = String::from_utf8(help.expect(line).stdout).unwrap();
    !line.contains("--json") && help.lines().any(|l| l.trim_start().starts_with("--json"))
}

/// What is wrong with the way in which a line ends whose output is full.
fn full(dir: &Path, line: &str) -> Option<String> {
    full_in(crate::program(), dir, &words(line))
}

/// The same in one of the builds.
pub(crate) fn full_in(program: &str, dir: &Path, words: &[OsString]) -> Option<String> {
    let device = fs::File::options().write(true).open("/dev/full").unwrap();
    let out = ended_in(program, dir, words, Some(device));
    let printed = output_text(&out);
    let named = printed.contains("standard output cannot be written");
    (out.status.code() != Some(1) || !named)
        .then(|| format!("{words:?}: {}: {printed}", out.status))
}

/// Runs a line whose notes and progress find a full disk.
fn without_log(dir: &Path, line: &str) -> Output {
    let shell = format!("\"$0\" {line} 2>/dev/full");
    let words = ["-c", &shell, crate::program()].map(OsString::from);
    Command::new("bash").current_dir(dir).args(words).output().unwrap()
}

/// The same of one whose output is closed, which is how other tools end a pipe. A verb that has written everything
/// before that ends as ever: with 0, or with the code of what it found, as `slide info --deidentified-check` does.
fn closed(dir: &Path, line: &str) -> Option<String> {
    let shell = format!("\"$0\" {line} | true; exit ${{PIPESTATUS[0]}}");
    let words = ["-c", &shell, crate::program()].map(OsString::from);
    let out = Command::new("bash").current_dir(dir).args(words).output().unwrap();
    let found = line.ends_with("--deidentified-check") && out.status.code() == Some(1);
    let ends = found || matches!(out.status.code(), Some(0 | 141));
    let loud = output_text(&out).contains("panicked");
    (loud || !ends).then(|| format!("{line}: {out:?}"))
}

#[test]
fn a_full_standard_output_is_an_error_of_help_and_version() {
    let dir = tempfile::tempdir().unwrap();
    let lines = ["--help", "-h", "--version", "help", "help detect", "detect --help", "view -h"];
    for line in lines.iter().chain(&["detect --version", "slide info --help"]) {
        assert_eq!(full(dir.path(), line), None);
        assert_eq!(closed(dir.path(), line), None);
    }
}

#[test]
fn a_full_standard_output_is_an_error_in_every_verb() {
    let dir = place();
    let at = dir.path();
    let mut wrong = Vec::new();
    for line in PRINTING {
        wrong.extend(full(at, line));
        wrong.extend(closed(at, line));
        let out = without_log(at, line);
        let ends = line.ends_with("--deidentified-check") || out.status.success();
        wrong.extend((!ends).then(|| format!("{line}, with its log on a full disk: {out:?}")));
        if has_json(at, line) {
            wrong.extend(full(at, &format!("{line} --json")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Other verbs that end by themselves: in one place with their output read, in another with a full one.
const WRITING: &[&str] = &[
    "demo --draw-only --out d --size 600,600 --figures 2",
    "slide tissue one.tiff --out tissue --json",
    "slide thumbnail one.tiff --out t.png",
    "slide deidentify one.tiff copy.tiff",
    "quality one.tiff --out quality --json",
    "detect one.tiff --model m --out new --engine rten --threads 1 --json",
    "report run --out pages",
    "slurm --list l.csv --out jobs --dry-run",
    "survival cox --table s.csv --time t --event e --covariates x",
    "survival cindex --table s.csv --time t --event e --covariates x",
    "survival lrt --table s.csv --time t --event e --covariates x --add z",
    "survival grade --counts n.csv --scheme nottingham",
    "survival study --counts n.csv --clinical s.csv --join slide=id --time t --event e \
     --density-column density_per_20_mm2 --replicates 20 --out study",
    "corpus import --kind regions --format csv boxes.csv --images pics --mpp 0.25 --exhaustive all --out sets",
    "corpus import --format csv boxes.csv --images pics --mpp 0.25 --crop 96 --out crops",
    "corpus import --format csv others.csv --images others --mpp 0.25 --crop 96 --out crops2",
    "corpus inspect crops",
    "corpus verify crops",
    "corpus overlap crops crops2",
    "corpus merge crops crops2 --out both",
    "corpus shortcuts both",
    "corpus split sets --folds 2 --out folds.json",
    "corpus export sets --format yolo --out yolo",
    "corpus build pics/a.png --preset tcga-mf-pseudo --no-tumour-filter --mpp 0.25 --threads 1 --any-cohort \
     --cohort DRAWN --model m --engine rten --out built",
    "audit sample crops --allow-short --out sample",
    "encoders convert --onnx e.onnx --image 32 --mean 0.5,0.5,0.5 --std 0.5,0.5,0.5 --pooling x --license MIT \
     --name e --out coder",
    "encoders show coder",
    "embed one.tiff --encoder coder --engine rten --threads 1 --tile-mpp 0.5 --out features",
    "detectors import --onnx boxes.onnx --mpp 0.25 --name cells --license none --out package",
    "evaluate robustness --images pics --no-figures --mpp 0.25 --model m --changes clean --out robust",
    "data check .",
    "data part MIDOG22 --labels midog.json --out part.json",
    "audit score --counts verdicts.csv",
    "bench detect --model m --engine rten --runs 1",
    "challenge midog25-t1 --input challenge --output answer --model m --engine rten --threads 1",
    "classify pics --model m --engine rten --threads 1 --out classes.csv",
    "corpus interchange scored --up-to 0.8 --out interchanged",
    "corpus labelled sets --folds folds.json --crop 96 --box-side 50 --out labelled",
    "detectors combine --first m --second m --name two --out combined",
    "evaluate robustness --images cells --truth cells.csv --mpp 0.25 --model package --changes clean --out cells-1",
    "evaluate operating-point --fold 0=cells-1 --fold 1=cells-1 --out points.json",
    "experiment run tumour-review --out reviewed --threads 1 --json",
    "experiment report reviewed",
    "experiment export --snakemake tumour-review --out reviewed --to work.smk",
    "export dicom converted --slides dicom --out sr",
];

/// Verbs of which no line is here, and why, or which test has it.
const UNTRIED: &[(&str, &str)] = &[
    ("audit serve", "does not end by itself: see the test of servers"),
    ("start", "does not end by itself: see the test of servers"),
    ("view", "does not end by itself: see the test of servers"),
    ("calibrate", "view::calibrate::judged_candidates_set_the_scale_and_the_points_of_a_package"),
    ("bench encoders", "special::a_full_standard_output_is_an_error_where_encoders_are_timed"),
    ("train detector", "view::back::trained_on"),
    ("train export", "prints one line at its end, as `train package` does"),
    ("train finetune", "train_protocol::folders_to_folds_to_test_to_package"),
    ("train package", "train_protocol::folders_to_folds_to_test_to_package"),
    ("train test", "train_protocol::folders_to_folds_to_test_to_package"),
    ("train probe", "prints as `train finetune` does, after minutes of an encoder"),
    (
        "train calibrate",
        "prints one text at its end, after minutes of two networks on left-out slides",
    ),
    ("train mine", "prints one line at its end, after minutes of a network on left-out slides"),
    ("train pseudo-label", "prints one line at its end, after minutes of a detector on slides"),
    ("train pretrain", "prints nothing on standard output"),
    ("train segment", "prints nothing on standard output"),
];

/// The verbs without verbs below them, as `--help` of this build lists them.
fn leaves(dir: &Path, above: &str) -> Vec<String> {
    let line = format!("{above} --help");
    // The training build takes ten times as long to start.
    let program = match above.trim_start().split(' ').next() {
        Some("train") => crate::training_program(),
        _ => crate::program(),
    };
    let out = ended_in(program, dir, &words(line.trim_start()), None);
    let help = String::from_utf8(out.stdout).unwrap();
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return vec![above.trim_start().to_owned()];
    };
    let verbs = list.lines().take_while(|l| !l.is_empty());
    let verbs = verbs.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let verbs = verbs.filter_map(|l| l.split_whitespace().next()).filter(|v| *v != "help");
    verbs.flat_map(|v| leaves(dir, &format!("{above} {v}"))).collect()
}

#[test]
fn every_verb_has_a_line_with_a_full_output_or_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let tried = |verb: &str| {
        let own = |line: &&&str| **line == verb || line.starts_with(&format!("{verb} "));
        PRINTING.iter().chain(WRITING).find(own).is_some()
    };
    // A build without training has `train` alone.
    let same = |of: &str, verb: &str| of == verb || of.starts_with(&format!("{verb} "));
    let untried = |verb: &str| UNTRIED.iter().any(|(v, _)| same(v, verb));
    let all = leaves(dir.path(), "");
    assert!(all.len() > 40, "{all:?}");
    let lacking: Vec<&String> = all.iter().filter(|v| !tried(v) && !untried(v)).collect();
    assert!(lacking.is_empty(), "neither a line nor a reason: {lacking:?}");
    let both: Vec<&String> = all.iter().filter(|v| tried(v) && untried(v)).collect();
    assert!(both.is_empty(), "a line and a reason: {both:?}");
    for (verb, reason) in UNTRIED {
        assert!(all.iter().any(|v| same(verb, v)), "no such verb: {verb}");
        if let Some((file, test)) = reason.rsplit_once("::") {
            let file = format!("crates/cli/tests/{}.rs", file.replace("::", "/"));
            let text = fs::read_to_string(testkit::workspace().join(&file)).unwrap();
            assert!(text.contains(&format!("fn {test}(")), "{file} has no {test}");
        }
    }
}

#[cfg(feature = "train")]
#[test]
fn a_full_standard_output_is_an_error_where_encoders_are_timed() {
    let dir = tempfile::tempdir().unwrap();
    let line = "bench encoders vit_tiny_patch16_224 --image 32 --batch 1 --runs 1 --threads 1 --device cpu -q";
    for line in [line.to_owned(), format!("{line} --json")] {
        assert_eq!(full_in(crate::training_program(), dir.path(), &words(&line)), None);
    }
}

/// A server keeps answering without the line with its address: a review must not end because of a full disk.
#[test]
fn servers_answer_though_their_output_is_full() {
    let dir = writing_place();
    let sample = ended(dir.path(), &words("audit sample scored --allow-short --out sample"), None);
    assert!(sample.status.success(), "{}", output_text(&sample));
    for line in ["view run --no-browser", "start --no-browser", "audit serve sample/package"] {
        // A port that was free a moment ago; the address is not read, as it cannot be printed.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let device = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut server = Command::new(crate::program())
            .current_dir(dir.path())
            .args(words(line))
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(device)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let answer = loop {
            if let Some(code) = server.try_wait().unwrap() {
                panic!("{line} ends: {code}: {}", output_text(&server.wait_with_output().unwrap()));
            }
            if let Some(answer) = answer_at(port) {
                break answer;
            }
            assert!(begun.elapsed() < LONGEST, "{line} does not answer");
            std::thread::sleep(Duration::from_millis(10));
        };
        // Without the secret of its address it answers that there is nothing.
        assert!(answer.starts_with("HTTP/1.1 4"), "{line}: {answer}");
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

/// What a server on this port answers, if one is there.
fn answer_at(port: u16) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(LONGEST)).ok()?;
    let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok().filter(|n| *n > 0)?;
    Some(answer)
}

/// The former run as that of a slide whose conversion to DICOM is there.
fn converted_run(at: &Path) {
    let (from, to) = (at.join("run/one"), at.join("converted/case"));
    fs::create_dir_all(&to).unwrap();
    let mut counts = json(&from.join("counts.json"));
    (counts["slide"]["width"], counts["slide"]["height"]) = (20_000.into(), 10_000.into());
    counts["slide"]["name"] = "case".into();
    fs::write(to.join("counts.json"), counts.to_string()).unwrap();
    fs::copy(from.join("detections.csv"), to.join("detections.csv")).unwrap();
    let golden = testkit::workspace().join("crates/dicom/tests/golden/case");
    fs::create_dir_all(at.join("dicom/case")).unwrap();
    for file in fs::read_dir(golden).unwrap().map(|f| f.unwrap().path()) {
        fs::copy(&file, at.join("dicom/case").join(file.file_name().unwrap())).unwrap();
    }
}

/// What the lines of [`WRITING`] read.
fn writing_place() -> tempfile::TempDir {
    let dir = place();
    let at = dir.path();
    let root = testkit::workspace();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    for (folder, name, shade) in
        [("pics", "a.png", 244), ("pics", "b.png", 240), ("others", "c.png", 236)]
    {
        fs::create_dir_all(at.join(folder)).unwrap();
        let flat = image::RgbImage::from_pixel(400, 300, image::Rgb([shade; 3]));
        flat.save(at.join(folder).join(name)).unwrap();
    }
    write("boxes.csv", "image,x,y,label\na.png,90,90,mf\na.png,190,90,imposter\nb.png,120,90,mf\n");
    write("others.csv", "image,x,y,label\nc.png,90,90,mf\nc.png,190,90,imposter\n");
    let mut table = "id,t,e,x,z\n".to_owned();
    let mut counts = "slide,hotspot_count,density_per_20_mm2\n".to_owned();
    for i in 0..12 {
        table += &format!("S{i},{},{},{},{}\n", i + 1, u8::from(i % 3 != 0), i * 5 % 7, i * 7 % 5);
        counts += &format!("S{i},{},{}\n", i * 3 % 7, i * 5 % 11);
    }
    write("s.csv", &table);
    write("n.csv", &counts);
    let onnx = |from: &str, to: &str| fs::copy(root.join(from), at.join(to)).unwrap();
    onnx("crates/features/tests/golden/tiny.onnx", "e.onnx");
    onnx("crates/infer/tests/golden/boxes.onnx", "boxes.onnx");
    onnx("crates/cli/tests/golden/audit_paper.csv", "verdicts.csv");
    let images = r#"[{"id": 1, "file_name": "1.tiff", "tumor_type": "human breast cancer"}]"#;
    let annotations = r#"[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 50, 50]}]"#;
    write("midog.json", &format!(r#"{{"images": {images}, "annotations": {annotations}}}"#));
    let platform = at.join("challenge/images/histopathology-roi-cropout");
    fs::create_dir_all(&platform).unwrap();
    fs::copy(at.join("one.tiff"), platform.join("007.tiff")).unwrap();
    crate::audit::corpus(&at.join("scored"));
    converted_run(at);
    let layout = Layout::new(Spec::new(600, 520, 5, 2).unwrap()).unwrap();
    let tile = mithras::demo::draw(&layout, Rect::new(0, 0, 600, 520));
    fs::create_dir(at.join("cells")).unwrap();
    let drawn = image::RgbImage::from_raw(600, 520, tile.data).unwrap();
    drawn.save(at.join("cells/drawn.png")).unwrap();
    mithras::demo::write_truth(&layout, "drawn", &at.join("cells.csv")).unwrap();
    dir
}

/// In three places, since a result that is there is another case: with the output read; full; and full with JSON, or
/// closed for a verb without.
#[test]
fn a_full_standard_output_is_an_error_of_verbs_that_write() {
    let lines = || WRITING.iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
    let place = writing_place();
    // A full log costs no result, so the first of them has one.
    let one = |line: String| {
        let out = without_log(place.path(), &line);
        let code = out.status.code();
        assert_eq!(code, Some(0), "{line}, with its log on a full disk: {}", output_text(&out));
        (!out.stdout.is_empty(), has_json(place.path(), &line))
    };
    let kinds: Vec<(bool, bool)> = lines().map(one).collect();
    let silent = kinds.iter().filter(|k| !k.0).count();
    assert!(silent * 3 < WRITING.len(), "most verbs print: {kinds:?}");
    let plain = |at: &Path, line: &str, (prints, _): (bool, bool)| match prints {
        true => full(at, line),
        false => closed(at, line),
    };
    let json = |at: &Path, line: &str, (_, has_json): (bool, bool)| match has_json {
        true => full(at, &format!("{line} --json")),
        false => closed(at, line),
    };
    type Ends<'a> = &'a (dyn Fn(&Path, &str, (bool, bool)) -> Option<String> + Sync);
    let (kinds, both): (_, [Ends<'_>; 2]) = (&kinds, [&plain, &json]);
    let all: Vec<String> = std::thread::scope(|s| {
        let wrong = |ends: Ends<'_>| {
            let place = writing_place();
            let all = lines().zip(kinds);
            all.filter_map(|(line, kind)| ends(place.path(), &line, *kind)).collect::<Vec<_>>()
        };
        let all = both.map(|ends| s.spawn(move || wrong(ends)));
        all.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert!(all.is_empty(), "{all:#?}");
}

/// Names as old archives have them, in Latin-1, wherever a verb takes a path.
/// `ulimit -f`: the write fails and names the file, the process is not killed, and nothing half-written stays.
#[test]
fn a_file_above_the_limit_of_the_system_is_an_error_that_names_it() {
    let dir = place();
    let line = "detect one.tiff --model m --engine rten --threads 1 -q --out limited";
    let shell = format!("ulimit -f 4; exec \"$0\" {line}");
    let limited = Command::new("sh");
    let run = |mut shell: Command, text: &str| {
        let ended = shell.current_dir(dir.path()).args(["-c", text, crate::program()]).output();
        ended.unwrap()
    };
    let out = run(limited, &shell);
    let printed = output_text(&out);
    assert!(out.status.code().is_some_and(|c| c > 0), "{:?} {printed}", out.status);
    assert!(printed.contains("File too large") && printed.contains("limited"), "{printed}");
    let again = run(Command::new("sh"), &format!("exec \"$0\" {line} --resume"));
    assert_eq!(again.status.code(), Some(0), "{}", output_text(&again));
    let line = &json(&dir.path().join("limited/run.json"))["slides"][0];
    assert_eq!(line["status"], "finished");
}

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
