//! The start page: what its server answers, a run to its end, a cancelled one, slides that cannot be read, and the
//! page in Chromium.

use super::made::{Server, start};
use super::page::in_a_browser;
use super::regions::{scanned, trained_on};
use crate::common;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server with seeded weights of no meaning.
fn page(out: &Path) -> Server {
    page_with(&testkit::workspace().join("crates/infer/tests/golden/tiny"), out)
}

fn page_with(model: &Path, out: &Path) -> Server {
    let mut command = Command::new(crate::program());
    command.args(["start", "--no-browser", "--engine", "rten", "--threads", "1"]);
    command.arg("--model").arg(model).arg("--out").arg(out);
    start(&mut command).expect("an address")
}

fn ask(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let answer = server.post(path, &body.to_string());
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn refused(server: &Server, path: &str, body: &Value) -> String {
    let (status, answer) = ask(server, path, body);
    assert_eq!(status, 400, "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

fn given(server: &Server, path: &str, body: &Value) -> Value {
    let (status, answer) = ask(server, path, body);
    assert_eq!(status, 200, "{answer}");
    answer
}

/// Follows the run until `wanted` holds.
fn until(server: &Server, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        let now = server.get("api/run").json();
        if wanted(&now) {
            return now;
        }
        assert!(Instant::now() < end, "it never happened: {now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_busy(now: &Value) -> bool {
    matches!(now["phase"].as_str().unwrap(), "opening" | "running" | "cancelling")
}

/// A folder with a drawn slide, one that cannot be read, regions and a text.
fn slides(size: (u32, u32)) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let slides = dir.path().join("F\u{e4}lle");
    std::fs::create_dir(&slides).unwrap();
    common::draw(&slides.join("good.tiff"), size.0, size.1, 3, 2);
    std::fs::write(slides.join("broken.svs"), b"no slide at all").unwrap();
    std::fs::write(slides.join("note.txt"), b"text").unwrap();
    let cases = "slide,case,age\ngood.tiff,Case 7,61\nbroken.svs,Case 8,\nthird.svs,Case 9,50\n";
    std::fs::write(slides.join("cases.csv"), cases).unwrap();
    (dir, slides)
}

/// What the page sends to start a run of all slides of a folder.
fn plan(server: &Server, slides: &Path, out: &Path, existing: &str) -> Value {
    let chosen = given(server, "api/choose", &json!({"paths": [slides]}));
    let ids: Vec<_> = chosen["slides"].as_array().unwrap().iter().map(|s| &s["id"]).collect();
    let model = server.get("api/begin").json()["models"][0]["name"].clone();
    json!({"slides": ids, "regions": null, "model": model, "point": null, "mpp": null, "out": out, "existing": existing})
}

#[test]
fn without_the_token_nothing_of_the_disc_is_listed() {
    let (dir, slides) = slides((600, 520));
    let server = page(dir.path());
    let body = json!({"path": slides}).to_string();
    let post = |path: &str, more: &str| {
        let length = body.len();
        server
            .raw(&format!(
                "POST {path} HTTP/1.1\r\nHost: HOST\r\nContent-Length: {length}\r\n{more}\r\n{body}"
            ))
            .status
    };
    let json = "Content-Type: application/json\r\n";
    let token = server.token().to_owned();
    assert_eq!(post(&format!("/{token}/api/list"), json), 200);
    let other = "0".repeat(token.len());
    for path in
        ["/api/list", "//api/list", &format!("/{other}/api/list"), &format!("/{token}0/api/list")]
    {
        assert_eq!(post(path, json), 403, "{path}");
    }
    assert_eq!(post(&format!("/{token}/api/list"), ""), 415, "a form of a foreign page");
    let foreign = format!("{json}Origin: http://evil.example\r\n");
    assert_eq!(post(&format!("/{token}/api/list"), &foreign), 403);
    for path in ["api/list", "picture/0.jpg", "report/0/report.pdf", "../Cargo.toml"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let listed = given(&server, "api/list", &json!({"path": slides}));
    let kinds: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|e| (&e["name"], &e["kind"])).collect();
    let expected = [
        ("broken.svs", "slide"),
        ("cases.csv", "table"),
        ("good.tiff", "slide"),
        ("note.txt", "other"),
    ];
    assert_eq!(kinds.len(), expected.len());
    assert!(
        kinds.iter().zip(expected).all(|(k, e)| (k.0, k.1) == (&json!(e.0), &json!(e.1))),
        "{kinds:?}"
    );
    assert!(
        refused(&server, "api/list", &json!({"path": dir.path().join("none")}))
            .contains("no such folder")
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_drawn_slide_to_the_end_and_a_broken_one_with_its_reason() {
    let (dir, slides) = slides((900, 700));
    let server = page(dir.path());
    let link = slides.join("z.tiff");
    #[cfg(unix)]
    std::os::unix::fs::symlink(slides.join("good.tiff"), &link).unwrap();
    let chosen = given(&server, "api/choose", &json!({"paths": [slides]}));
    assert_eq!(chosen["slides"].as_array().unwrap().len(), 2);
    let notes = chosen["notes"].to_string();
    assert!(notes.contains("not slides and skipped: 2 files"), "{notes}");
    assert_eq!(notes.contains("the same file as"), cfg!(unix), "{notes}");
    assert_eq!(
        chosen["out"],
        json!(dir.path().join("F\u{e4}lle-2")),
        "a folder that is not there yet"
    );
    let model = server.get("api/begin").json()["models"][0]["name"].clone();
    let look = |k: usize| {
        let id = &chosen["slides"][k]["id"];
        given(&server, "api/look", &json!({"id": id, "model": model, "mpp": null}))
    };
    let (broken, good) = (look(0), look(1));
    assert_eq!(broken["usable"], false);
    assert!(broken["error"].as_str().unwrap().contains("broken.svs"), "{broken}");
    assert_eq!(
        (&good["usable"], &good["width"], &good["mpp"]),
        (&json!(true), &json!(900), &json!([0.25, 0.25]))
    );
    assert_eq!(good["scanner"], Value::Null, "a drawn slide is of no scanner");
    let picture = server.get("picture/1.jpg");
    let picture = image::load_from_memory(&picture.body).unwrap();
    assert_eq!((picture.width(), picture.height()), (320, 249));

    let out = dir.path().join("out");
    let mut go = plan(&server, &slides, &out, "refuse");
    let wrong = |key: &str, value: Value| {
        let mut go = go.clone();
        go[key] = value;
        refused(&server, "api/start", &go)
    };
    assert!(wrong("out", json!("relative")).contains("whole path"));
    assert!(wrong("slides", json!([])).contains("no slide"));
    assert!(wrong("regions", json!(slides.join("none.geojson"))).contains("none.geojson"));
    assert!(wrong("table", json!(slides.join("none.csv"))).contains("none.csv"));
    let other = dir.path().join("other.csv");
    std::fs::write(&other, "slide,case\nGOOD,1\n").unwrap();
    let words = wrong("table", json!(other));
    assert!(words.contains("other.csv") && words.contains("'good'"), "{words}");
    go["table"] = json!(slides.join("cases.csv"));
    assert_eq!(server.get("api/run").json()["phase"], "idle", "nothing was started");
    assert!(!out.exists());
    if cfg!(unix) {
        // Ticked by itself it is a slide of the list, and skipped with a remark when both are to run.
        let alone = given(&server, "api/choose", &json!({"paths": [link]}));
        go["slides"].as_array_mut().unwrap().push(alone["slides"][0]["id"].clone());
    }
    let begun = given(&server, "api/start", &go);
    assert_eq!((&begun["phase"], &begun["number"]), (&json!("opening"), &json!(1)));
    let remarks = begun["remarks"].to_string();
    assert_eq!(remarks.contains("the same file as"), cfg!(unix), "{begun}");
    assert!(remarks.contains("'third'"), "{begun}");
    let ended = until(&server, |now| !is_busy(now));
    assert_eq!((&ended["phase"], &ended["done"]), (&json!("done"), &json!(2)), "{ended}");
    let slide = |k: usize| &ended["slides"][k];
    assert_eq!((&slide(0)["status"], &slide(1)["status"]), (&json!("failed"), &json!("finished")));
    assert!(slide(0)["reason"].as_str().unwrap().contains("broken.svs"));
    assert!(slide(1)["total"].as_u64().unwrap() > 0 && slide(1)["done"] == slide(1)["total"]);

    let results = given(&server, "api/results", &json!({"path": out}));
    let good = results["slides"].as_array().unwrap().iter().find(|s| s["name"] == "good").unwrap();
    let counts: Value =
        serde_json::from_slice(&std::fs::read(out.join("good/counts.json")).unwrap()).unwrap();
    assert_eq!(
        (&good["figures"], &good["hotspot_count"]),
        (&counts["figures"], &counts["hotspot_count"])
    );
    // The exact interval holds its count.
    for (count, interval) in [("figures", "figures_95"), ("hotspot_count", "hotspot_95")] {
        let (n, i) = (good[count].as_f64().unwrap(), &good[interval]);
        assert!(i[0].as_f64().unwrap() <= n && n < i[1].as_f64().unwrap(), "{good}");
    }

    // The viewer of the run answers below a path of its own.
    let url = given(&server, "api/view", &json!({"path": out}))["url"].as_str().unwrap().to_owned();
    let index = server.get(&format!("{url}api/index"));
    assert!(index.json()["slides"].as_array().unwrap().iter().any(|s| s["name"] == "good"));
    // Reviewed there, the run is counted again with the review.
    assert_eq!((&results["reviewers"], &good["reviewed"]), (&json!([]), &Value::Null));
    let slide = index.json()["slides"]
        .as_array()
        .unwrap()
        .iter()
        .position(|s| s["name"] == "good")
        .unwrap();
    let added = json!({"reviewer": "anna", "slide": slide, "key": "+100.00,100.00", "x": 100, "y": 100, "verdict": "figure", "added": true});
    given(&server, &format!("{url}api/review"), &added);
    let results = given(&server, "api/results", &json!({"path": out}));
    assert_eq!(results["reviewers"], json!(["anna"]));
    let recounted = given(&server, "api/recount", &json!({"path": out, "reviewer": "anna"}));
    let line =
        recounted["slides"].as_array().unwrap().iter().find(|s| s["name"] == "good").unwrap();
    assert_eq!(line["reviewed"]["figures"].as_u64(), good["figures"].as_u64().map(|n| n + 1));
    assert!(
        refused(&server, "api/recount", &json!({"path": out, "reviewer": "bert"}))
            .contains("bert.jsonl")
    );
    let report =
        given(&server, "api/report", &json!({"path": out, "scheme": null, "field_diameter": null}));
    let pdf = server.get(
        report["pages"].as_array().unwrap().iter().find(|p| p["name"] == "Case 7").unwrap()["url"]
            .as_str()
            .unwrap(),
    );
    assert!(pdf.status == 200 && pdf.body.starts_with(b"%PDF"));
    // The table's case is that of the report and of the tables.
    assert!(out.join("reports/Case 7.pdf").is_file());
    let cases = std::fs::read_to_string(out.join("cases.csv")).unwrap();
    assert!(cases.contains("\nCase 7,1,"), "{cases}");

    // Results that are there are kept until it was decided what to do with them.
    go["existing"] = json!("refuse");
    given(&server, "api/start", &go);
    let again = until(&server, |now| !is_busy(now));
    assert_eq!((&again["phase"], &again["exists"]), (&json!("failed"), &json!(true)), "{again}");
    go["existing"] = json!("resume");
    given(&server, "api/start", &go);
    let kept = until(&server, |now| !is_busy(now));
    assert_eq!(kept["slides"][1]["status"], "kept", "{kept}");
}

/// A chosen slide of a scanner that the model saw no slide of is marked before anything runs.
#[test]
fn a_slide_of_another_scanner_is_marked_in_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let (model, slides) = (dir.path().join("model"), dir.path().join("slides"));
    std::fs::create_dir(&slides).unwrap();
    trained_on(&model, "Aperio");
    scanned(&slides.join("other.tif"), "Hamamatsu", false);
    scanned(&slides.join("same.tif"), "Aperio", false);
    let server = page_with(&model, dir.path());
    let chosen = given(&server, "api/choose", &json!({"paths": [slides]}));
    let model = server.get("api/begin").json()["models"][0]["name"].clone();
    let warnings = |k: usize| {
        let id = &chosen["slides"][k]["id"];
        let look = given(&server, "api/look", &json!({"id": id, "model": model, "mpp": 0.25}));
        assert_eq!(look["usable"], true, "{look}");
        look["warnings"].to_string()
    };
    assert!(
        warnings(0).contains("a scanner of Hamamatsu, of which the model saw no slide"),
        "{}",
        warnings(0)
    );
    assert!(!warnings(1).contains("a scanner of"), "{}", warnings(1));
}

#[test]
fn a_package_without_a_segmenter_is_refused_with_the_flag_that_gives_another() {
    let dir = tempfile::tempdir().unwrap();
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let card = std::fs::read_to_string(tiny.join("card.toml")).unwrap();
    let (head, rest) = card.split_once("[segmenter]").unwrap();
    let (_, classifier) = rest.split_once("[classifier]").unwrap();
    let card = format!("{head}[classifier]{classifier}").replace("seg = 0.3", "seg = 0.0");
    std::fs::write(dir.path().join("card.toml"), card).unwrap();
    std::fs::copy(tiny.join("classifier.onnx"), dir.path().join("classifier.onnx")).unwrap();
    let mut command = Command::new(crate::program());
    command.args(["start", "--no-browser", "--model"]).arg(dir.path());
    let ran = command.output().unwrap();
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && words.contains("no package for detection"), "{words}");
    assert!(words.contains("--model"), "{words}");
    let server = page_with(&tiny, &dir.path().join("out"));
    assert_eq!(server.get("api/begin").status, 200);
}

/// Files that a writer did not finish.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let half = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with(".writing-");
    let mut found = Vec::new();
    for path in base::walk::entries(folder).unwrap() {
        found.extend(path.is_dir().then(|| left_over(&path)).into_iter().flatten());
        found.extend(Some(path).filter(half));
    }
    found
}

#[test]
fn a_cancelled_run_leaves_nothing_half_written_and_is_resumed() {
    let (dir, slides) = slides((4000, 3600));
    std::fs::remove_file(slides.join("broken.svs")).unwrap();
    common::draw(&slides.join("later.tiff"), 600, 520, 4, 2);
    let server = page(dir.path());
    let out = dir.path().join("out");
    let mut go = plan(&server, &slides, &out, "refuse");
    given(&server, "api/start", &go);
    until(&server, |now| now["slides"][0]["done"].as_u64().unwrap() > 0 || !is_busy(now));
    let (status, busy) = ask(&server, "api/start", &go);
    assert!(status == 400 && busy["error"].as_str().unwrap().contains("cancel it first"), "{busy}");
    assert_eq!(given(&server, "api/cancel", &json!({}))["phase"], "cancelling");
    let ended = until(&server, |now| !is_busy(now));
    assert_eq!(ended["phase"], "cancelled", "{ended}");
    assert_eq!(ended["slides"][0]["status"], "interrupted", "{ended}");
    assert!(!out.join("good/counts.json").exists() && !out.join("good/detections.csv").exists());
    assert_eq!(left_over(&out), Vec::<PathBuf>::new());
    let run: Value = serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["done"], 0);
    go["existing"] = json!("resume");
    given(&server, "api/start", &go);
    let ended = until(&server, |now| !is_busy(now));
    assert_eq!((&ended["phase"], &ended["done"]), (&json!("done"), &json!(2)), "{ended}");
    assert!(out.join("good/counts.json").exists());
}

#[test]
fn a_pathologist_in_a_real_browser() {
    let (dir, slides) = slides((900, 700));
    let server = page(dir.path());
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let folder = [slides.display().to_string()];
    if in_a_browser("start.mjs", &server.url, &folder, shot.as_deref()) {
        let run: Value = serde_json::from_slice(
            &std::fs::read(dir.path().join("F\u{e4}lle-2/run.json")).unwrap(),
        )
        .unwrap();
        assert_eq!((&run["done"], &run["failed"]), (&json!(1), &json!(1)));
        let good = run["slides"].as_array().unwrap().iter().find(|s| s["name"] == "good").unwrap();
        assert_eq!(good["columns"], json!([["case", "Case 7"], ["age", "61"]]), "{good}");
    }
}

#[test]
fn a_run_is_cancelled_and_continued_by_mouse() {
    let (dir, slides) = slides((4000, 3600));
    let server = page(dir.path());
    let folder = [slides.display().to_string()];
    if in_a_browser("start_mouse.mjs", &server.url, &folder, None) {
        let now = server.get("api/run").json();
        let out = Path::new(now["out"].as_str().unwrap());
        assert!(out.starts_with(dir.path()), "{now}");
        let run: Value =
            serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
        assert_eq!((&run["done"], &run["failed"]), (&json!(1), &json!(0)));
    }
}
