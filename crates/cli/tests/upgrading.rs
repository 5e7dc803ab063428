//! Runs outlive releases, and results are bound to their slide, their state and each other.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, UNIX_EPOCH};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The runs that versions left of a drawn slide, by their folder in `golden`, and how each was made. Each stays;
/// `scripts/seal_run.sh` adds another.
const SEALED: &[(&str, &[&str])] = &[
    ("release-0.1.0", &[]),
    ("results-2", &["--operating-point", "0.3,0"]),
    ("results-3", &["--operating-point", "0.3,0"]),
];

/// The run that release 0.1.0 left, and the slide (`golden/release-0.1.0/README.md`).
pub(crate) fn former() -> tempfile::TempDir {
    sealed(SEALED[0].0)
}

fn sealed(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let golden = testkit::workspace().join("crates/cli/tests/golden");
    copy(&golden.join(name), dir.path());
    fs::copy(golden.join(SEALED[0].0).join("one.tiff"), dir.path().join("one.tiff")).unwrap();
    let state = json(&dir.path().join("run/one/state.json"));
    let seen = UNIX_EPOCH + Duration::from_secs(state["input"]["modified"].as_u64().unwrap());
    let slide = fs::File::options().write(true).open(dir.path().join("one.tiff")).unwrap();
    slide.set_modified(seen).unwrap();
    dir
}

fn mithras(dir: &Path, words: &[&str]) -> Output {
    Command::new(crate::program()).current_dir(dir).args(words).output().unwrap()
}

pub(crate) fn output_text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// Runs a verb and returns its output; it must end with this code.
fn ends(dir: &Path, code: i32, words: &[&str]) -> String {
    let out = mithras(dir, words);
    assert_eq!(out.status.code(), Some(code), "{words:?}: {}", output_text(&out));
    output_text(&out)
}

pub(crate) fn detect<'a>(
    model: &'a str,
    slides: &'a [&'a str],
    more: &'a [&'a str],
) -> Vec<&'a str> {
    let mut words = vec!["detect", "--model", model, "--engine", "rten", "--threads", "1", "--out"];
    words.push("run");
    words.extend(more);
    words.extend(slides);
    words
}

pub(crate) fn tiny() -> String {
    let at: PathBuf = testkit::workspace().join("crates/infer/tests/golden/tiny");
    at.to_str().unwrap().to_owned()
}

/// A reviewer's word on a figure of the former run.
pub(crate) fn review_of(at: &Path) -> String {
    let counts = json(&at.join("run/one/counts.json"));
    let word = serde_json::json!({
        "schema": "mithras.review/1", "time": 1.0, "slide": "one",
        "slide_digest": counts["slide"]["digest"],
        "model_digest": counts["model"]["segmenter_sha256"],
        "key": "375.05,335.57", "x": 375.05, "y": 335.57, "verdict": "figure", "added": false,
    });
    format!("{word}\n")
}

#[test]
fn runs_of_former_versions_go_through_every_verb() {
    let mut versions = Vec::new();
    for (name, more) in SEALED {
        let (dir, model) = (sealed(name), tiny());
        let at = dir.path();
        let files = ["counts.json", "detections.csv"].map(|f| at.join("run/one").join(f));
        let before = files.clone().map(|f| fs::read(f).unwrap());
        let state = json(&at.join("run/one/state.json"));
        versions.push(state["settings"]["results_version"].as_str().unwrap_or("1").to_owned());
        ends(at, 0, &detect(&model, &["one.tiff"], &[&["--resume"], *more].concat()));
        let line = json(&at.join("run/run.json"))["slides"][0].clone();
        assert_eq!((&line["status"], &line["kept"]), (&"finished".into(), &true.into()), "{line}");
        ends(at, 0, &["gather", "run"]);
        fs::create_dir(at.join("run/reviews")).unwrap();
        fs::write(at.join("run/reviews/anna.jsonl"), review_of(at)).unwrap();
        let recount = ends(at, 0, &["recount", "run", "--reviews", "anna", "--json"]);
        let recount: Value = serde_json::from_str(&recount).unwrap();
        assert_eq!(recount["slides"][0]["said"], 1, "{name}: {recount}");
        ends(at, 0, &["export", "qupath", "run", "--out", "q"]);
        assert!(at.join("q/one.geojson").is_file());
        let mut view = Command::new(crate::program());
        view.current_dir(at).args(["view", "run", "--port", "0", "--no-browser"]);
        let server = crate::view::made::start(&mut view).expect("an address");
        assert_eq!(server.get("api/slide/0").json()["searched"], true, "{name}");
        truths(at);
        assert_eq!(files.map(|f| fs::read(f).unwrap()), before, "{name}: results are kept");
    }
    let now = mithras::record::RESULTS_VERSION.to_string();
    assert!(versions.contains(&now), "no run of results_version {now} is sealed: {versions:?}");
}

/// A truth is compared with the run, and refused where it would be a missed figure, or count twice, without a word.
fn truths(at: &Path) {
    fs::write(at.join("truth.csv"), "slide,x,y\none,375,335\n").unwrap();
    ends(at, 0, &["evaluate", "detections", "--predictions", "run", "--truth", "truth.csv"]);
    for (rows, words) in [
        ("one,375,335\none,90000,335\n", "90000.0, 335.0 px, outside the slide of"),
        (
            "one,375,335\none,10,10\none,375,335\n",
            "row 3 (line 4): the slide has this place already",
        ),
    ] {
        fs::write(at.join("bad.csv"), format!("slide,x,y\n{rows}")).unwrap();
        let bad = ["evaluate", "detections", "--predictions", "run", "--truth", "bad.csv"];
        let refused = ends(at, 1, &bad);
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

/// A column whose name is nearly one that would be read is named, and what is read stays the same.
#[test]
fn columns_that_are_not_read_are_named() {
    let dir = former();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    write("truth.csv", "slide,x,y,tumor_typ\none,375,335,x\n");
    let verb = ["evaluate", "detections", "--predictions", "run", "--truth", "truth.csv"];
    let words = "truth.csv: 1 column is not read: `tumor_typ` (is `tumor_type` meant?)";
    let printed = ends(at, 0, &verb);
    assert!(printed.contains(&format!("note: {words}")), "{printed}");
    let printed = ends(at, 0, &[&verb[..], &["--json"]].concat());
    assert!(printed.contains(words), "{printed}");
    write("labels.csv", "image,x,y,label,patient_nr\na,1,2,mf,7\n");
    let printed = ends(at, 0, &["corpus", "import", "--format", "csv", "labels.csv"]);
    assert!(printed.contains("`patient_nr` (is `patient` meant?)"), "{printed}");
    write("list.csv", "slide,mpp_um\none.tiff,0.5\n");
    let printed = ends(at, 1, &["detect", "--list", "list.csv", "--model", "none", "--out", "out"]);
    assert!(printed.contains("note: list.csv: 1 column is not read: `mpp_um` (is `mpp` meant?)"));
    // The table of a run has all that is looked for.
    let counts = ["survival", "grade", "--counts", "run/counts.csv", "--scheme", "nottingham"];
    let printed = ends(at, 0, &counts);
    assert!(!printed.contains("not read"), "{printed}");
}

/// A table with places in px and in um is compared with itself: which of the two is right is not for the program to
/// choose.
#[test]
fn a_table_whose_px_and_um_are_two_places_is_refused() {
    let dir = former();
    let at = dir.path();
    let verb = ["evaluate", "detections", "--predictions", "run", "--truth", "both.csv"];
    fs::write(at.join("both.csv"), "slide,x,y,x_um,y_um\none,375,335,93.75,83.75\n").unwrap();
    ends(at, 0, &verb);
    fs::write(at.join("both.csv"), "slide,x,y,x_um,y_um\none,375,335,187.5,167.5\n").unwrap();
    let truth = ends(at, 1, &verb);
    let remedy = "one pair of columns is of another file, level or um/px: correct it or remove it";
    assert!(truth.contains(remedy), "{truth}");
    for corrected in
        ["slide,x,y,x_um,y_um\none,375,335,93.75,83.75\n", "slide,x_um,y_um\none,93.75,83.75\n"]
    {
        fs::write(at.join("both.csv"), corrected).unwrap();
        ends(at, 0, &verb);
    }
    // A run without a state, as others may hand it on: nothing but its own numbers binds the table to the slide.
    fs::write(at.join("both.csv"), "slide,x,y\none,375,335\n").unwrap();
    fs::remove_file(at.join("run/one/state.json")).unwrap();
    ends(at, 0, &verb);
    let table = at.join("run/one/detections.csv");
    let moved = fs::read_to_string(&table).unwrap().replace("93.763", "187.525");
    fs::write(&table, moved).unwrap();
    let run = ends(at, 1, &verb);
    for (printed, words) in [
        (
            truth,
            ["both.csv", "row 1 (line 2)", "375, 335 px is 93.75, 83.75 um", "187.5, 167.5 um"],
        ),
        (
            run,
            [
                "detections.csv",
                "row 1 (line 2)",
                "375.05, 335.57 px is 93.763, 83.892 um",
                "187.525, 83.894 um",
            ],
        ),
    ] {
        for words in words {
            assert!(printed.contains(words), "`{words}` is not in: {printed}");
        }
    }
}

/// One file under two names counts twice, and tables of an earlier run would be taken for this one's.
#[test]
fn a_file_under_two_names_is_named_and_old_tables_go() {
    let (dir, model) = two();
    let at = dir.path();
    let note = "one, two: the same file under several names; each counts";
    fs::write(at.join("list.csv"), "slide,case\none.tiff,K\ntwo.tiff,K\n").unwrap();
    let printed = ends(at, 0, &["gather", "run", "--list", "list.csv"]);
    assert!(printed.contains(note), "{printed}");
    assert_eq!(json(&at.join("run/run.json"))["same_files"], serde_json::json!([["one", "two"]]));
    let cases = fs::read_to_string(at.join("run/cases.csv")).unwrap();
    assert!(cases.contains(note), "{cases}");
    // Searched again without the list, and without regions: neither table is of this run.
    let head = "slide,region,class,area_mm2,tissue_mm2,analysed_mm2\n";
    fs::write(at.join("run/regions.csv"), format!("{head}one,r,,1,1,1\n")).unwrap();
    ends(at, 0, &detect(&model, &["one.tiff"], &["-q", "--overwrite"]));
    fs::remove_dir_all(at.join("run/two")).unwrap();
    let printed = ends(at, 0, &["gather", "run"]);
    assert!(!printed.contains("same file"), "{printed}");
    for gone in ["cases.csv", "regions.csv"] {
        assert!(!at.join("run").join(gone).exists(), "{gone} is of an earlier run");
    }
    // What somebody else put there under such a name stays.
    fs::write(at.join("run/cases.csv"), "case,age\nK,61\n").unwrap();
    ends(at, 0, &["gather", "run"]);
    assert!(at.join("run/cases.csv").exists());
}

/// Words about a slide that was renamed since are not dropped in silence.
#[test]
fn words_about_a_slide_under_a_former_name_are_named() {
    let (dir, _) = two();
    let at = dir.path();
    fs::create_dir(at.join("run/reviews")).unwrap();
    let words = review_of(at);
    // Of a run of three slides, of which `two` was called `old`; both files are the same here, so `one` has it, too.
    let log = words.clone() + &words.replace("\"slide\":\"one\"", "\"slide\":\"old\"");
    assert_ne!(log, words.repeat(2));
    fs::write(at.join("run/reviews/anna.jsonl"), log).unwrap();
    let printed = ends(at, 0, &["recount", "run", "--reviews", "anna"]);
    let note = "note: 1 verdict about this file under its former name `old`, left out";
    assert!(printed.contains(note), "{printed}");
    assert!(fs::read_to_string(at.join("run/recount.csv")).unwrap().contains("former name `old`"));
}

/// What was not searched is not missed: figures of the truth outside the regions are left out, and named.
#[test]
fn a_truth_beyond_the_searched_regions_is_left_out_with_a_note() {
    let dir = former();
    let (at, model) = (dir.path(), tiny());
    fs::remove_dir_all(at.join("run")).unwrap();
    let square = "[[300, 250], [450, 250], [450, 400], [300, 400], [300, 250]]";
    let geometry = format!(r#"{{"type": "Polygon", "coordinates": [{square}]}}"#);
    let feature = format!(r#"{{"type": "Feature", "properties": {{}}, "geometry": {geometry}}}"#);
    fs::write(at.join("r.geojson"), feature).unwrap();
    let more = ["-q", "--regions", "r.geojson", "--operating-point", "0.3,0.1"];
    ends(at, 0, &detect(&model, &["one.tiff"], &more));
    fs::write(at.join("truth.csv"), "slide,x,y\none,375,335\none,700,600\none,100,100\n").unwrap();
    let verb = ["evaluate", "detections", "--predictions", "run", "--truth", "truth.csv"];
    let printed = ends(at, 0, &verb);
    let note = "note: one: 2 figures of the truth outside the regions that were searched, left out";
    assert!(printed.contains(note) && printed.contains("1 figure on 1 slide"), "{printed}");
    let answer = ends(at, 0, &[&verb[..], &["--json"]].concat());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["truth"], &answer["rules"][0]["pooled"]["fn"]), (&1.into(), &0.into()));
    assert!(note.ends_with(answer["notes"][0].as_str().unwrap()), "{answer}");
    // Pooled with a slide that was made otherwise.
    let other = detect(&model, &["one.tiff"], &["-q", "--operating-point", "0.3,0.2"]);
    let other: Vec<&str> = other.iter().map(|w| if *w == "run" { "other" } else { *w }).collect();
    ends(at, 0, &other);
    let two = at.join("run/two");
    copy(&at.join("other/one"), &two);
    fs::remove_file(two.join("state.json")).unwrap();
    fs::write(at.join("truth.csv"), "slide,x,y\none,375,335\ntwo,375,335\n").unwrap();
    let printed = ends(at, 0, &verb);
    for words in ["not all made alike", "s_cls 0.1", "s_cls 0.2"] {
        assert!(printed.contains(words), "`{words}` is not in: {printed}");
    }
}

/// The commands of `docs/upgrading.md`, in the order of the page, on the run of the former release.
#[test]
fn the_page_on_upgrading_works_as_written() {
    let dir = former();
    let at = dir.path();
    fs::create_dir(at.join("slides")).unwrap();
    fs::rename(at.join("one.tiff"), at.join("slides/one.tiff")).unwrap();
    let page = fs::read_to_string(testkit::workspace().join("docs/upgrading.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|b| b.split("```").next().unwrap());
    let commands: Vec<&str> =
        blocks.flat_map(str::lines).filter_map(|l| l.strip_prefix("mithras ")).collect();
    let verbs: Vec<&str> = commands.iter().map(|c| c.split(' ').next().unwrap()).collect();
    assert_eq!(verbs, ["detect", "gather", "recount", "export", "view"]);
    let model = tiny();
    for command in commands {
        let mut words: Vec<&str> =
            command.split(' ').map(|w| if w == "MODEL" { &*model } else { w }).collect();
        match words[0] {
            "detect" => {
                words.extend(["--engine", "rten", "--threads", "1", "-q"]);
                ends(at, 0, &words);
                let line = json(&at.join("run/run.json"))["slides"][0].clone();
                assert_eq!((&line["status"], &line["kept"]), (&"finished".into(), &true.into()));
            }
            "view" => {
                let mut view = Command::new(crate::program());
                view.current_dir(at).args(&words).args(["--port", "0", "--no-browser"]);
                let server = crate::view::made::start(&mut view).expect("an address");
                let page = server.get("");
                assert_eq!(page.status, 200);
                assert_eq!(server.get("api/index").status, 200);
            }
            _ => drop(ends(at, 0, &words)),
        }
    }
    assert!(at.join("geojson/one.geojson").is_file());
}

/// A run of two slides of this release.
fn two() -> (tempfile::TempDir, String) {
    let (dir, model) = (former(), tiny());
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    fs::copy(dir.path().join("one.tiff"), dir.path().join("two.tiff")).unwrap();
    ends(dir.path(), 0, &detect(&model, &["one.tiff", "two.tiff"], &["-q"]));
    (dir, model)
}

#[test]
fn a_damaged_or_foreign_result_is_named_done_again_and_stops_no_other() {
    let (dir, model) = two();
    let at = dir.path();
    let one = at.join("run/one");
    let whole: Vec<_> = ["counts.json", "detections.csv", "state.json"]
        .map(|f| (f, fs::read(one.join(f)).unwrap()))
        .into();
    let state = String::from_utf8(whole[2].1.clone()).unwrap();
    let cut = |i: usize| whole[i].1[..whole[i].1.len() / 2].to_vec();
    let other = |i: usize| {
        String::from_utf8(whole[i].1.clone()).unwrap().replace("375.05", "370.05").into_bytes()
    };
    for (i, bytes, words) in [
        (0, cut(0), "counts.json is not the file"),
        (1, cut(1), "detections.csv is not the file"),
        (1, other(1), "detections.csv is not the file"),
        (2, cut(2), "state.json is damaged"),
        (2, state.replace("\"slide\": \"one\"", "\"slide\": \"two\"").into_bytes(), "slide `two`"),
    ] {
        fs::write(one.join(whole[i].0), bytes).unwrap();
        // No page counts it, and no sample is drawn without it.
        let _ = fs::remove_dir_all(at.join("pages"));
        let pages = ends(at, 3, &["report", "run", "--out", "pages", "--json"]);
        assert!(pages.contains(words), "report, {words}: {pages}");
        let page = fs::read_to_string(at.join("pages/one.html")).unwrap();
        assert!(page.contains("one is not counted: "), "report, {words}");
        let sample = ends(at, 1, &["audit", "sample", "run", "--out", "sample", "--allow-short"]);
        assert!(sample.contains(words) && !at.join("sample").exists(), "audit, {words}: {sample}");

        let gathered = ends(at, 3, &["gather", "run", "--json"]);
        assert!(gathered.contains(words), "{words}: {gathered}");
        let run = json(&at.join("run/run.json"));
        assert_eq!((&run["done"], &run["failed"]), (&1.into(), &1.into()), "{words}");
        let exported = ends(at, 3, &["export", "qupath", "run", "--out", "q"]);
        assert!(exported.contains(words), "{words}: {exported}");
        assert_eq!(exported.matches("does it again").count(), 1, "{exported}");
        ends(at, 0, &detect(&model, &["one.tiff", "two.tiff"], &["--resume", "-q"]));
        for (file, bytes) in &whole[..2] {
            assert_eq!(&fs::read(one.join(file)).unwrap(), bytes, "{words}: {file}");
        }
        ends(at, 0, &["gather", "run"]);
    }
    fs::write(one.join("state.json"), state.replace("mithras.state/1", "mithras.state/9")).unwrap();
    assert!(ends(at, 3, &["gather", "run", "--json"]).contains("mithras.state/9"));
    // Resuming refuses what a later version wrote: no sentence promises otherwise.
    let exported = ends(at, 3, &["export", "qupath", "run", "--out", "q"]);
    assert!(exported.contains("use the version that wrote it"), "{exported}");
    assert!(!exported.contains("does it again"), "{exported}");
    let refused = ends(at, 1, &detect(&model, &["one.tiff", "two.tiff"], &["--resume", "-q"]));
    assert!(refused.contains("use the version that wrote it"), "{refused}");
}

/// A run of two different slides with a reviewer's verdicts on both, and a truth of each slide.
/// A slide that the run was to search and nobody has begun is missing from what is made of the run, and not in silence.
#[test]
fn a_slide_that_was_not_begun_is_named_by_every_verb() {
    let dir = two_different();
    let at = dir.path();
    let slides = ["one", "three"].map(|name| serde_json::json!({"name": name, "columns": []}));
    let list = serde_json::json!({"schema": "mithras.list/1", "slides": slides});
    fs::write(at.join("run/.runs/list-0123456789abcdef.json"), list.to_string()).unwrap();
    for verb in
        [&["recount", "run", "--reviews", "anna"][..], &["export", "qupath", "run", "--out", "q"]]
    {
        let printed = ends(at, 3, verb);
        assert!(printed.contains("three: detection has not begun"), "{verb:?}: {printed}");
    }
    ends(at, 3, &["gather", "run"]);
    assert_eq!(json(&at.join("run/run.json"))["without_result"][0]["name"], "three");
    fs::create_dir(at.join("images")).unwrap();
    let dicom = ends(at, 1, &["export", "dicom", "run", "--out", "d", "--slides", "images"]);
    assert!(dicom.contains("detection has not begun"), "{dicom}");
}

fn two_different() -> tempfile::TempDir {
    let (dir, model) = (former(), tiny());
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    let words = "demo --draw-only --out d --size 800,700 --figures 3 --seed 9";
    ends(at, 0, &words.split(' ').collect::<Vec<_>>());
    fs::rename(at.join("d/drawn.tiff"), at.join("two.tiff")).unwrap();
    let point = ["-q", "--operating-point", "0.3,0"];
    ends(at, 0, &detect(&model, &["one.tiff", "two.tiff"], &point));
    fs::create_dir(at.join("run/reviews")).unwrap();
    let mut log = String::new();
    for slide in ["one", "two"] {
        let counts = json(&at.join(format!("run/{slide}/counts.json")));
        let word = serde_json::json!({
            "schema": "mithras.review/1", "time": 1.0, "slide": slide,
            "slide_digest": counts["slide"]["digest"], "model_digest": counts["model"]["segmenter_sha256"],
            "key": "+5.00,5.00", "x": 5.0, "y": 5.0, "verdict": "figure", "added": true,
        });
        log += &format!("{word}\n");
        fs::write(at.join(format!("{slide}.csv")), format!("slide,x,y\n{slide},375,335\n"))
            .unwrap();
    }
    fs::write(at.join("run/reviews/anna.jsonl"), log).unwrap();
    dir
}

/// What each verb that reads a run prints about the slide `one`, and that it takes `two` all the same.
fn readers(at: &Path, words: &str) {
    let _ = fs::remove_dir_all(at.join("pages"));
    let reported = ends(at, 3, &["report", "run", "--out", "pages"]);
    assert!(reported.contains(words), "report, {words}: {reported}");
    assert!(reported.contains("two: two.pdf") && !reported.contains("two is not"), "{reported}");

    let gathered = ends(at, 3, &["gather", "run", "--json"]);
    assert!(gathered.contains(words), "gather, {words}: {gathered}");
    let run = json(&at.join("run/run.json"));
    assert_eq!((&run["done"], &run["failed"]), (&1.into(), &1.into()), "{words}: {run}");

    let out = mithras(at, &["recount", "run", "--reviews", "anna", "--json"]);
    let recount = output_text(&out);
    assert!(matches!(out.status.code(), Some(1 | 3)), "recount, {words}: {recount}");
    assert!(recount.contains(words) && recount.contains("one"), "recount, {words}: {recount}");
    let read: Value = serde_json::from_slice(&out.stdout).expect(&recount);
    let slides: Vec<&Value> =
        read["slides"].as_array().unwrap().iter().map(|s| &s["slide"]).collect();
    assert_eq!(slides, ["two"], "recount, {words}");

    let point = ["-q", "--resume", "--operating-point", "0.3,0"];
    ends(at, 0, &detect(&tiny(), &["two.tiff"], &point));
    let run = json(&at.join("run/run.json"));
    assert_eq!((&run["done"], &run["failed"]), (&1.into(), &1.into()), "resume, {words}: {run}");

    let _ = fs::remove_dir_all(at.join("q"));
    let exported = ends(at, 3, &["export", "qupath", "run", "--out", "q"]);
    assert!(exported.contains(words), "export, {words}: {exported}");
    assert!(at.join("q/two.geojson").is_file() && !at.join("q/one.geojson").exists(), "{words}");

    let truth = |t: &'static str| ["evaluate", "detections", "--predictions", "run", "--truth", t];
    let refused = ends(at, 1, &truth("one.csv"));
    assert!(refused.contains(words), "evaluate, {words}: {refused}");
    ends(at, 0, &truth("two.csv"));

    let mut view = Command::new(crate::program());
    view.current_dir(at).args(["view", "run", "--port", "0", "--no-browser"]);
    let server = crate::view::made::start(&mut view).expect("an address");
    let index = server.get("api/index").json();
    assert_eq!(index["slides"][0]["name"], "one", "{index}");
    let note = index["slides"][0]["note"].as_str().unwrap();
    assert!(note.contains(words), "view, {words}: {note}");
    let detail = server.get("api/slide/0");
    let text = String::from_utf8_lossy(&detail.body).into_owned();
    assert!(
        detail.status >= 400 && text.contains(words),
        "view, {words}: {} {text}",
        detail.status
    );
    assert_eq!(server.get("api/slide/1").json()["searched"], true, "view, {words}");
}

/// What becomes of a file of a slide's results.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Foreign,
    Cut,
    Gone,
    Folder,
    #[cfg(unix)]
    Pipe,
}

impl Damage {
    fn strike(self, file: &Path, other: &Path) {
        let whole = fs::read(file).unwrap();
        let bytes = match self {
            Self::Foreign => fs::read(other).unwrap(),
            Self::Cut => whole[..whole.len() / 2].to_vec(),
            _ => Vec::new(),
        };
        assert_ne!(bytes, whole, "{}: the slides do not differ", file.display());
        fs::remove_file(file).unwrap();
        match self {
            Self::Foreign | Self::Cut => fs::write(file, bytes).unwrap(),
            Self::Gone => {}
            Self::Folder => fs::create_dir(file).unwrap(),
            #[cfg(unix)]
            Self::Pipe => assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
        }
    }
}

#[test]
fn every_reader_of_a_run_names_a_cut_or_foreign_result_and_takes_the_others() {
    let dir = two_different();
    let at = dir.path();
    let (one, two) = (at.join("run/one"), at.join("run/two"));
    for (file, damage, words) in [
        ("counts.json", Damage::Foreign, "counts.json is not the file"),
        ("counts.json", Damage::Cut, "counts.json is not the file"),
        ("detections.csv", Damage::Foreign, "detections.csv is not the file"),
        ("detections.csv", Damage::Cut, "detections.csv is not the file"),
        ("state.json", Damage::Foreign, "results of the slide `two`"),
        ("state.json", Damage::Cut, "state.json is damaged"),
        ("tissue.geojson", Damage::Foreign, "tissue.geojson is not the file"),
        ("tissue.geojson", Damage::Cut, "tissue.geojson is not the file"),
        ("flaws.geojson", Damage::Cut, "flaws.geojson is not the file"),
        ("thumbnail.jpg", Damage::Foreign, "thumbnail.jpg is not the file"),
    ] {
        let whole = fs::read(one.join(file)).unwrap();
        ends(at, 0, &["gather", "run"]);
        damage.strike(&one.join(file), &two.join(file));
        readers(at, words);
        fs::write(one.join(file), whole).unwrap();
    }
    ends(at, 0, &["gather", "run"]);
    let state = one.join("state.json");
    let whole = fs::read_to_string(&state).unwrap();
    // Results are not those of another program for want of a state of their own.
    for other in ["null", "{}", "[1]"] {
        fs::write(&state, other).unwrap();
        readers(at, "state.json is damaged (it is not a slide's)");
    }
    fs::remove_file(&state).unwrap();
    let gathered = ends(at, 3, &["gather", "run", "--json"]);
    assert!(gathered.contains("state.json is damaged (it is missing)"), "{gathered}");
    let again = ends(at, 1, &detect(&tiny(), &["one.tiff"], &["-q"]));
    assert!(again.contains("already holds results"), "{again}");
    fs::write(&state, &whole).unwrap();
    // A slide that failed after its results were written has none.
    let mut failed: Value = serde_json::from_str(&whole).unwrap();
    failed["status"] = "failed".into();
    failed["reason"] = "read error at byte 17".into();
    failed["results"] = Value::Null;
    ends(at, 0, &["gather", "run"]);
    fs::write(&state, failed.to_string()).unwrap();
    readers(at, "read error at byte 17");
    fs::write(&state, whole).unwrap();
    ends(at, 0, &["gather", "run"]);
}

/// Folders of two slides that were exchanged are those of other slides: resuming does both again, as is promised.
#[test]
fn results_of_another_slide_are_done_again() {
    let dir = two_different();
    let at = dir.path();
    let whole = ["one", "two"].map(|s| fs::read(at.join(format!("run/{s}/counts.json"))).unwrap());
    for file in ["", "/state.json"] {
        let path = |name: &str| at.join(format!("run/{name}{file}"));
        fs::rename(path("one"), at.join("kept")).unwrap();
        fs::rename(path("two"), path("one")).unwrap();
        fs::rename(at.join("kept"), path("two")).unwrap();
        let gathered = ends(at, 1, &["gather", "run"]);
        for words in ["holds results of the slide `two`", "resuming, does it again"] {
            assert!(gathered.contains(words), "{file}: {gathered}");
        }
        let resume = ["-q", "--resume", "--operating-point", "0.3,0"];
        ends(at, 0, &detect(&tiny(), &["one.tiff", "two.tiff"], &resume));
        for (name, whole) in ["one", "two"].into_iter().zip(&whole) {
            let counts = fs::read(at.join(format!("run/{name}/counts.json"))).unwrap();
            assert_eq!(&counts, whole, "{name}{file}");
        }
        ends(at, 0, &["gather", "run"]);
    }
}

/// What the seal of a slide lists and is not there as a file is that slide's failure, and resuming does it again.
#[test]
fn every_reader_of_a_run_names_a_result_that_is_gone_a_folder_or_a_pipe() {
    let dir = two_different();
    let at = dir.path();
    let (one, two) = (at.join("run/one"), at.join("run/two"));
    let resume = ["-q", "--resume", "--operating-point", "0.3,0"];
    for (damage, words) in [
        (Damage::Gone, "is missing"),
        (Damage::Folder, "is a folder, not a file"),
        #[cfg(unix)]
        (Damage::Pipe, "not a regular file"),
    ] {
        for file in ["thumbnail.jpg", "tissue.geojson", "flaws.geojson", "detections.csv"] {
            let whole = fs::read(one.join(file)).unwrap();
            damage.strike(&one.join(file), &two.join(file));
            let named = at.join("run/one").join(file);
            let named = named.strip_prefix(at).unwrap().display().to_string();
            readers(at, words);
            let gathered = ends(at, 3, &["gather", "run"]);
            assert!(gathered.contains(&named), "{damage:?}: {gathered}");
            assert!(gathered.contains("does it again"), "{damage:?}: {gathered}");
            ends(at, 0, &detect(&tiny(), &["one.tiff"], &resume));
            assert_eq!(fs::read(one.join(file)).unwrap(), whole, "{damage:?}: {file}");
            ends(at, 0, &["gather", "run"]);
        }
    }
    // Of an early version, whose state lists no files, the page is made of what is there.
    let state = one.join("state.json");
    let mut early = json(&state);
    early["results"] = Value::Null;
    fs::write(&state, early.to_string()).unwrap();
    for file in ["thumbnail.jpg", "tissue.geojson"] {
        fs::remove_file(one.join(file)).unwrap();
        let gathered = ends(at, 3, &["gather", "run"]);
        assert!(gathered.contains(file) && gathered.contains("does it again"), "{gathered}");
        assert!(fs::read_to_string(at.join("run/counts.csv")).unwrap().contains("two,finished"));
        ends(at, 0, &detect(&tiny(), &["one.tiff"], &resume));
        ends(at, 0, &["gather", "run"]);
        fs::write(&state, early.to_string()).unwrap();
    }
}

/// A slide's folder that `run.json` does not list has no page, and a report would be complete without it.
#[test]
fn a_slide_that_the_run_does_not_list_is_refused_by_the_report() {
    let dir = two_different();
    let at = dir.path();
    fs::rename(at.join("run/two"), at.join("two")).unwrap();
    ends(at, 0, &["gather", "run"]);
    ends(at, 0, &["report", "run", "--out", "pages"]);
    fs::rename(at.join("two"), at.join("run/two")).unwrap();
    let refused = ends(at, 1, &["report", "run", "--out", "more"]);
    assert!(refused.contains("run/two: this slide is not in run.json"), "{refused}");
    assert!(refused.contains("gather the run again") && !at.join("more").exists(), "{refused}");
    // A slide that has only been begun is missing as well.
    let mut begun = json(&at.join("run/two/state.json"));
    begun["status"] = "running".into();
    fs::write(at.join("run/two/state.json"), begun.to_string()).unwrap();
    ends(at, 1, &["report", "run", "--out", "more"]);
    ends(at, 3, &["gather", "run"]);
    let reported = ends(at, 3, &["report", "run", "--out", "more"]);
    assert!(reported.contains("two is not counted: detection has not ended"), "{reported}");
    // Tables over several runs list their slides wherever these are.
    begun["status"] = "finished".into();
    fs::write(at.join("run/two/state.json"), begun.to_string()).unwrap();
    ends(at, 0, &["gather", "run", "--into", "all"]);
    ends(at, 0, &["report", "all", "--out", "of-all"]);
    assert!(at.join("of-all/two.html").is_file());
}

/// That a slide has no colour is a field of its own in its results, which every file made of them takes over.
#[test]
fn a_slide_without_colour_is_named_in_every_file_of_a_run() {
    let (dir, model) = (former(), tiny());
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    let grey = testkit::workspace().join("crates/slide/tests/golden/slides/grey.tif");
    fs::copy(grey, at.join("grey.tif")).unwrap();
    let words = ["-q", "--mpp", "0.25", "--force-mpp"];
    ends(at, 0, &detect(&model, &["one.tiff", "grey.tif"], &words));
    ends(at, 0, &["gather", "run"]);
    ends(at, 0, &["recount", "run", "--operating-point", "0.1,0.1", "--into", "moved"]);
    for run in ["run", "moved"] {
        let note = |slide: &str| {
            json(&at.join(run).join(slide).join("counts.json"))["colour_note"].clone()
        };
        assert!(note("grey").as_str().unwrap().starts_with("no colour: "), "{run}");
        assert_eq!(note("one"), Value::Null, "{run}");
        let table = fs::read_to_string(at.join(run).join("counts.csv")).unwrap();
        let named: Vec<&str> = table.lines().filter(|l| l.contains("no colour: ")).collect();
        assert!(named.len() == 1 && named[0].starts_with("grey,"), "{run}: {table}");
        let page = fs::read_to_string(at.join(run).join("summary.html")).unwrap();
        assert!(page.contains("no colour"), "{run}");
    }
}

/// The density of a slide is the same number in every file of a run, to the last digit.
#[test]
fn the_density_is_one_number_in_every_file_of_a_run() {
    let (dir, model) = (former(), tiny());
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    // At this point the weights, which mean nothing, accept a figure.
    ends(at, 0, &detect(&model, &["one.tiff"], &["-q", "--operating-point", "0.3,0"]));
    fs::write(at.join("list.csv"), "slide,case\none.tiff,K1\n").unwrap();
    ends(at, 0, &["gather", "run", "--list", "list.csv"]);
    fs::create_dir(at.join("run/reviews")).unwrap();
    fs::write(at.join("run/reviews/anna.jsonl"), review_of(at)).unwrap();
    let recount = ends(at, 0, &["recount", "run", "--reviews", "anna", "--json"]);
    let recount: Value = serde_json::from_str(&recount).unwrap();
    let csv = |file: &str, column: &str| {
        let mut table = csv::Reader::from_path(at.join("run").join(file)).unwrap();
        let k = table.headers().unwrap().iter().position(|h| h == column).unwrap();
        table.records().next().unwrap().unwrap()[k].parse::<f64>().unwrap()
    };
    let (name, counts, run) = (
        "density_per_20_mm2",
        json(&at.join("run/one/counts.json")),
        json(&at.join("run/run.json")),
    );
    let [figures, area] = ["figures", "analysed_mm2"].map(|k| counts[k].as_f64().unwrap());
    assert!(figures > 0.0 && area > 0.0, "{counts}");
    let density = counts[name].as_f64().unwrap();
    assert!((density - figures / area * 20.0).abs() <= 5e-7, "{density} of {figures} in {area}");
    let all = [
        ("counts.csv", csv("counts.csv", name)),
        ("cases.csv", csv("cases.csv", name)),
        ("run.json", run["slides"][0]["counts"][name].as_f64().unwrap()),
        ("run.json, case", run["cases"][0]["model"][name].as_f64().unwrap()),
        ("recount", recount["slides"][0]["model"][name].as_f64().unwrap()),
        ("recount.csv", csv("recount.csv", name)),
    ];
    for (file, other) in all {
        assert!(other.to_bits() == density.to_bits(), "{file}: {other} is not {density}");
    }
    for file in ["counts.csv", "cases.csv", "recount.csv"] {
        assert_eq!(csv(file, "analysed_mm2").to_bits(), area.to_bits(), "{file}");
    }
}

#[test]
fn another_configuration_does_not_come_into_a_used_folder() {
    let (dir, model) = two();
    fs::copy(dir.path().join("one.tiff"), dir.path().join("three.tiff")).unwrap();
    let refused = ends(
        dir.path(),
        1,
        &detect(&model, &["three.tiff"], &["--stages", "1", "--operating-point", "0.3,0"]),
    );
    assert!(refused.contains("run holds slide") && refused.contains("--out"), "{refused}");
    assert!(!dir.path().join("run/three").exists());
    // Of another model, whose settings all differ, the name is printed, and not every number.
    let refused = ends(dir.path(), 1, &detect("fast", &["three.tiff"], &[]));
    assert!(refused.contains("configuration: model.name was `tiny`"), "{refused}");
    assert!(refused.contains(" settings more; ") && refused.len() < 700, "{refused}");
}

#[test]
fn whatever_is_made_of_a_whole_run_refuses_slides_of_two_configurations() {
    let dir = two_different();
    let at = dir.path();
    fs::rename(at.join("run"), at.join("first")).unwrap();
    let other = ["-q", "--operating-point", "0.35,0", "--stages", "1"];
    ends(at, 0, &detect(&tiny(), &["two.tiff"], &other));
    fs::remove_dir_all(at.join("first/two")).unwrap();
    fs::rename(at.join("run/two"), at.join("first/two")).unwrap();
    fs::remove_dir_all(at.join("run")).unwrap();
    for line in [
        "gather first",
        "recount first --reviews anna",
        "recount first --operating-point 0.4,0 --into point",
        "export qupath first --out q",
        "export dicom first --out dcm",
        "audit sample first --out a --per accepted=1 --allow-short",
        "report first --out pages",
        // An address of another machine: a viewer that opened the run would end there.
        "view first --port 0 --host 192.0.2.1 --no-browser",
        "corpus import first --format reviews --kind regions --out regions",
    ] {
        let printed = ends(at, 1, &line.split(' ').collect::<Vec<_>>());
        let words =
            ["first/one and first/two were made with different configurations", "run one again"];
        for word in words {
            assert!(printed.contains(word), "{line}: {printed}");
        }
    }
    for made in ["q", "dcm", "a", "regions", "point", "pages"] {
        assert!(!at.join(made).exists(), "{made}");
    }
}

/// At another operating point, too, a state that is damaged does not take its slide away in silence.
#[test]
fn a_damaged_state_is_named_at_another_operating_point() {
    let dir = two_different();
    let at = dir.path();
    fs::write(at.join("run/one/state.json"), "{").unwrap();
    let line = "recount run --operating-point 0.4,0 --into point";
    let printed = ends(at, 1, &line.split(' ').collect::<Vec<_>>());
    assert!(printed.contains("run/one: its state.json is damaged"), "{printed}");
}

/// What the system does not let be read is not damaged: its reason is named, nothing is done again or left out in
/// silence, and the remedy of the message helps.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_read_is_not_called_damaged() {
    let dir = two_different();
    let at = dir.path();
    let resume = ["-q", "--resume", "--operating-point", "0.3,0"];
    for file in ["state.json", "counts.json", "detections.csv", "thumbnail.jpg", "recount.json"] {
        ends(at, 0, &["recount", "run", "--reviews", "anna"]);
        let path = at.join("run/one").join(file);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        // Reading it is an error of the device: "Input/output error".
        std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
        let gathered = mithras(at, &["gather", "run"]);
        assert!(matches!(gathered.status.code(), Some(1 | 3)), "{file}: {gathered:?}");
        let printed = output_text(&gathered);
        for words in [file, "Input/output error", "check the disk or network drive"] {
            assert!(printed.contains(words), "{file}, {words}: {printed}");
        }
        for words in ["damaged", "does it again"] {
            assert!(!printed.contains(words), "{file}, {words}: {printed}");
        }
        if file == "state.json" {
            let refused = ends(at, 1, &detect(&tiny(), &["one.tiff"], &resume));
            assert!(refused.contains("state.json cannot be read (Input/output"), "{refused}");
            assert!(path.is_symlink() && at.join("run/one/counts.json").is_file());
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, whole).unwrap();
        ends(at, 0, &["gather", "run"]);
    }
}

/// The same of a file that another account may read.
#[test]
#[cfg(target_os = "linux")]
fn a_file_without_permission_is_named_as_such_and_read_with_it() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let dir = two_different();
    let at = dir.path();
    let give = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let is_root = fs::metadata(at).unwrap().uid() == 0;
    // Root may read everything, unless it gives that right away.
    let gather = || {
        let mut command = if is_root {
            let mut command = Command::new("setpriv");
            command.arg("--bounding-set=-dac_override,-dac_read_search").arg(crate::program());
            command
        } else {
            Command::new(crate::program())
        };
        let out = command.current_dir(at).args(["gather", "run"]).output().unwrap();
        (out.status.code(), output_text(&out))
    };
    for (file, code) in [("one/state.json", 3), ("one/counts.json", 3), (".runs", 1)] {
        let path = at.join("run").join(file);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        give(&path, 0);
        let (ended, printed) = gather();
        assert_eq!(ended, Some(code), "{file}: {printed}");
        for words in ["Permission denied", "give this account the right to read it"] {
            assert!(printed.contains(words), "{file}, {words}: {printed}");
        }
        for words in ["damaged", "does it again", "writes the record"] {
            assert!(!printed.contains(words), "{file}, {words}: {printed}");
        }
        give(&path, mode);
        let (ended, printed) = gather();
        assert_eq!(ended, Some(0), "{file}: {printed}");
    }
}

/// A folder in the place of a state is not a damaged state, and resuming does its slide again, as is promised.
#[test]
fn a_folder_in_the_place_of_a_state_is_named_as_one() {
    let dir = two_different();
    let at = dir.path();
    let state = at.join("run/one/state.json");
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    readers(at, "state.json cannot be read (is a folder, not a file)");
    let gathered = ends(at, 3, &["gather", "run"]);
    assert!(gathered.contains("does it again") && !gathered.contains("damaged"), "{gathered}");
    let resume = ["--resume", "--operating-point", "0.3,0"];
    let printed = ends(at, 0, &detect(&tiny(), &["one.tiff"], &resume));
    assert!(printed.contains("is a folder, not a file); it is done again"), "{printed}");
    ends(at, 0, &["gather", "run"]);
}

#[test]
#[cfg(unix)]
fn a_run_whose_reviews_are_a_link_is_not_written_through() {
    let dir = two_different();
    let at = dir.path();
    let missing = ends(at, 1, &["recount", "run", "--reviews", "bert"]);
    assert!(missing.contains("bert.jsonl: is not there; this folder has the logs of anna"));
    fs::rename(at.join("run/reviews"), at.join("elsewhere")).unwrap();
    let missing = ends(at, 1, &["recount", "run", "--reviews", "bert"]);
    assert!(missing.contains("no reviewer has a log"), "{missing}");
    std::os::unix::fs::symlink(at.join("elsewhere"), at.join("run/reviews")).unwrap();
    let mut view = Command::new(crate::program());
    view.current_dir(at).args(["view", "run", "--port", "0", "--no-browser"]);
    let server = crate::view::made::start(&mut view).expect("an address");
    let body = r#"{"reviewer":"bert","slide":0,"key":"+5.00,5.00","x":5,"y":5,"verdict":"figure","added":true}"#;
    let reply = server.post("api/review", body);
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    assert!(reply.status == 400 && text.contains("is a link"), "{} {text}", reply.status);
    assert!(!at.join("elsewhere/bert.jsonl").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_an_error() {
    let (dir, _) = two();
    for words in [&["gather", "run", "--json"][..], &["slide", "info", "one.tiff"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut verb = Command::new(crate::program());
        let out = verb.current_dir(dir.path()).args(words).stdout(full).output().unwrap();
        let printed = output_text(&out);
        assert_eq!(out.status.code(), Some(1), "{words:?}: {printed}");
        assert!(printed.contains("standard output cannot be written"), "{words:?}: {printed}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_that_is_not_utf8_and_one_of_a_table_are_slides_as_others() {
    use std::os::unix::ffi::OsStringExt;
    let dir = former();
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    let odd = std::ffi::OsString::from_vec(b"caf\xe9.tiff".to_vec());
    fs::copy(dir.path().join("one.tiff"), dir.path().join(&odd)).unwrap();
    fs::copy(dir.path().join("one.tiff"), dir.path().join("counts.csv.tiff")).unwrap();
    let (model, slides) = (tiny(), ["counts.csv.tiff"]);
    let words = detect(&model, &slides, &["-q"]);
    let mut verb = Command::new(crate::program());
    let out = verb.current_dir(dir.path()).args(words).arg(&odd).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", output_text(&out));
    assert!(dir.path().join("run/counts.csv").is_file());
    assert_eq!(json(&dir.path().join("run/run.json"))["done"], 2);
}

#[test]
#[cfg(unix)]
fn results_keep_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, model) = (former(), tiny());
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    let words = detect(&model, &["one.tiff"], &["-q"]).join(" ");
    let line = format!("umask 077; exec {} {words}", crate::program());
    let out = Command::new("sh").current_dir(dir.path()).args(["-c", &line]).output().unwrap();
    assert!(out.status.success(), "{}", output_text(&out));
    let all = ["counts.csv", "summary.html", "one/counts.json", "one/thumbnail.jpg"];
    let private = |files: &[&str]| {
        for file in files {
            let path = dir.path().join("run").join(file);
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{file}: {mode:o}");
        }
    };
    private(&all);
    // Results of a review are for their owner, whatever the umask.
    let reviews = dir.path().join("run/reviews");
    fs::create_dir(&reviews).unwrap();
    fs::write(reviews.join("anna.jsonl"), review_of(dir.path())).unwrap();
    for umask in ["077", "022"] {
        for file in ["recount.csv", "one/recount.json"] {
            let _ = fs::remove_file(dir.path().join("run").join(file));
        }
        let words = "recount run --reviews anna";
        let line = format!("umask {umask}; exec {} {words}", crate::program());
        let out = Command::new("sh").current_dir(dir.path()).args(["-c", &line]).output().unwrap();
        assert!(out.status.success(), "{}", output_text(&out));
        private(&["recount.csv", "one/recount.json"]);
        if umask == "077" {
            private(&all);
        }
    }
}

/// The counts of a reviewer, and the name, are for the owner alone wherever they are written.
#[test]
#[cfg(unix)]
fn whatever_holds_a_review_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, model) = (former(), tiny());
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    fs::write(at.join("list.csv"), "slide,case\none.tiff,K1\n").unwrap();
    let here = |words: &str| {
        let line = format!("umask 022; exec {} {words}", crate::program());
        let out = Command::new("sh").current_dir(at).args(["-c", &line]).output().unwrap();
        assert!(out.status.success(), "{}", output_text(&out));
    };
    let modes = |files: &[&str], wanted: u32| {
        for file in files {
            let mode = fs::metadata(at.join(file)).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, wanted, "{file}: {mode:o}");
        }
    };
    let tables = ["run/counts.csv", "run/cases.csv", "run/run.json", "run/summary.html"];
    let pages = ["pages/K1.html", "pages/K1.pdf"];
    here(&format!("detect --list list.csv --model {model} --engine rten --threads 1 --out run -q"));
    here("report run --out pages");
    modes(&[&tables[..], &pages].concat(), 0o644);
    fs::create_dir(at.join("run/reviews")).unwrap();
    fs::write(at.join("run/reviews/anna.jsonl"), review_of(at)).unwrap();
    here("recount run --reviews anna");
    here("report run --out pages");
    let all = [&tables[..], &pages, &["run/recount.csv", "run/one/recount.json"]].concat();
    modes(&all, 0o600);
    for file in tables.iter().chain(&pages[..1]) {
        assert!(fs::read_to_string(at.join(file)).unwrap().contains("anna"), "{file}");
    }
    // Made again, and elsewhere.
    fs::remove_file(at.join("run/counts.csv")).unwrap();
    here("gather run");
    here("gather run --into all");
    modes(&["run/counts.csv", "all/counts.csv", "all/summary.html", "all/run.json"], 0o600);
    modes(&["run/one/counts.json", "run/one/thumbnail.jpg"], 0o644);
}

/// What failed comes first, then the table, then the slides by name, each with the number that counts first.
#[test]
fn the_summary_has_failures_first_and_the_slides_by_name() {
    let dir = two_different();
    let at = dir.path();
    let order = |texts: &[&str]| {
        let page = fs::read_to_string(at.join("run/summary.html")).unwrap();
        let body = page.split_once("<main").unwrap().1;
        let mut from = 0;
        for text in texts {
            let next = body[from..].find(text);
            from += next.unwrap_or_else(|| panic!("`{text}` is not behind the ones before it"));
        }
    };
    let card = ["figures in the hotspot", "per 20 mm", "candidates<", "of tissue analysed"];
    let card = [&card[..], &["What was measured", "Hotspot", "Highest scores"]].concat();
    let table = ["id=\"slides\"", ">one<", ">two<"];
    let slides =
        [&["id=\"slide-1\"", "<h2>one<"][..], &card, &["id=\"slide-2\"", "<h2>two<"], &card];
    let [first, end] = [["2 done"], ["How it was made"]];
    order(&[&first[..], &table, &slides.concat(), &end].concat());
    fs::write(at.join("run/one/counts.json"), "{").unwrap();
    ends(at, 3, &["gather", "run"]);
    order(&["1 done, 1 failed", "1 of 2 slides failed", "<b>one</b>", "<h2>two<", end[0]]);
}
