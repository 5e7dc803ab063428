//! What a signature covers, and a run that the viewer keeps at other thresholds.

use super::made::serve;
use super::page::in_a_browser;
use super::regions::{detect, mithras, text};
use crate::common;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The page of the only case, after a recount with anna's verdicts.
fn page(run: &Path, pages: &Path) -> String {
    let made = mithras(&["report", text(run), "--out", text(pages)]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::read_to_string(pages.join("s.html")).unwrap()
}

fn recounted(run: &Path) -> String {
    let made = mithras(&["recount", text(run), "--reviews", "anna", "--json"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let answer: Value = serde_json::from_slice(&made.stdout).unwrap();
    answer["slides"][0]["notes"].to_string()
}

#[test]
fn what_changed_after_the_signature_is_not_signed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, run, pages) = (at("s.tiff"), at("run"), at("pages"));
    common::draw(&slide, 900, 700, 4, 3);
    detect(&slide, &run, &[]).unwrap();
    let server = serve(&[&run]);
    assert_eq!(server.review("anna", 0, [100.0, 100.0], "\"figure\"", true).status, 200);
    let regions = json!({"reviewer": "anna", "slide": 0, "regions": [
        {"name": "front", "class": "", "exclude": false, "ring": [[0, 0], [800, 0], [800, 600], [0, 600]]},
    ]});
    assert_eq!(server.post("api/regions", &regions.to_string()).status, 200);
    assert_eq!(server.post("api/sign", r#"{"reviewer":"anna","slide":0}"#).status, 200);
    let signed = "<dt>Signed</dt><dd>anna, ";
    let changed = "<dt>Signed</dt><dd>no: changed since anna signed version 1";
    assert!(!recounted(&run).contains("changed since"));
    assert!(page(&run, &pages).contains(signed));

    // Regions that were edited in the file.
    let file = run.join("reviews/regions/s.geojson");
    let drawn = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, drawn.replace("800", "700")).unwrap();
    let notes = recounted(&run);
    assert!(
        notes.contains("changed since anna signed it (version 1): regions/s.geojson"),
        "{notes}"
    );
    let now = page(&run, &pages);
    assert!(now.contains(changed) && !now.contains(signed), "{now}");
    let desk = server.get("api/desk/0").json();
    assert_eq!((&desk["frozen"], &desk["changed"]), (&json!(true), &json!(["regions/s.geojson"])));
    std::fs::write(&file, &drawn).unwrap();
    assert!(page(&run, &pages).contains(signed));
    drop(server);

    // The same again leaves what was signed; another operating point does not.
    detect(&slide, &run, &["--overwrite"]).unwrap();
    assert!(!recounted(&run).contains("changed since"));
    assert!(page(&run, &pages).contains(signed));
    detect(&slide, &run, &["--overwrite", "--operating-point", "0.3,0.35"]).unwrap();
    let notes = recounted(&run);
    assert!(notes.contains("(version 1): counts.json, detections.csv"), "{notes}");
    let now = page(&run, &pages);
    assert!(now.contains(changed) && !now.contains(signed), "{now}");
    assert!(now.contains("s: changed since anna signed it: counts.json"), "{now}");
}

#[test]
fn the_viewer_keeps_other_thresholds_as_the_command_does() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, run, by_command) = (at("s.tiff"), at("a run"), at("by command"));
    common::draw(&slide, 900, 700, 4, 3);
    let before = detect(&slide, &run, &[]).unwrap();
    let server = serve(&[&run]);
    let keep = |body: Value| server.post("api/keep", &body.to_string());
    // By the button where there is a browser, else by its request.
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let folder = at("a run at 0.3,0.35");
    let given = ["0.3".to_owned(), "0.35".to_owned(), text(&folder).to_owned()];
    if !in_a_browser("keep.mjs", &server.url, &given, shot.as_deref()) {
        let kept = keep(json!({"slide": 0, "point": "0.3,0.35"})).json();
        assert_eq!(kept["folder"].as_str().unwrap(), text(&folder));
    }
    let made = mithras(&[
        "recount",
        text(&run),
        "--operating-point",
        "0.3,0.35",
        "--into",
        text(&by_command),
    ]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // `summary.html`, `run.json` and `.runs` hold the command; every other file has the same bytes.
    let files = files_below(&by_command);
    assert!(files.len() >= 11, "{files:?}");
    assert_eq!(files_below(&folder), files);
    let is_same =
        |f: &&PathBuf| !["run.json", "summary.html"].map(Path::new).contains(&f.as_path());
    for file in files.iter().filter(is_same) {
        let [a, b] = [&folder, &by_command].map(|run| std::fs::read(run.join(file)).unwrap());
        assert!(a == b, "{} differs", file.display());
    }
    let after: Value =
        serde_json::from_slice(&std::fs::read(folder.join("s/counts.json")).unwrap()).unwrap();
    assert_ne!(after["figures"], before["figures"], "the points differ in something");
    // Another time another folder; what is not a point leaves none.
    let again = keep(json!({"slide": 0, "point": "0.3,0.35"})).json();
    assert_eq!(again["folder"].as_str().unwrap(), text(&at("a run at 0.3,0.35 2")));
    for point in ["0.3,nonsense", "no-such-point", "../x"] {
        assert_eq!(keep(json!({"slide": 0, "point": point})).status, 400, "{point}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5);
}

/// Every file below a folder, by its path in it, but for the records of commands.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path.strip_prefix(folder).unwrap().to_owned()),
            }
        }
    }
    files.retain(|f| !f.starts_with(".runs"));
    files.sort();
    files
}

/// Searches a slide with the bundled weights, whose card names operating points.
fn bundled(slide: &Path, out: &Path, more: &[&str]) {
    let base = ["detect", text(slide), "--out", text(out), "--engine", "native", "--quiet"];
    let made = mithras(&[&base[..], more].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn a_named_operating_point_gives_the_files_of_another_detection() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, first, moved, direct) = (at("s.tiff"), at("first"), at("moved"), at("direct"));
    common::draw(&slide, 900, 800, 3, 4);
    bundled(&slide, &first, &[]);
    let point = ["--operating-point", "sensitive"];
    let into = ["--into", text(&moved)];
    let made = mithras(&[&["recount", text(&first)][..], &point, &into].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    bundled(&slide, &direct, &point);
    let files = |run: &Path| {
        let all = std::fs::read_dir(run.join("s")).unwrap().map(|e| e.unwrap().path());
        let all = all.filter(|p| p.is_file());
        let mut names: Vec<_> = all.map(|p| Path::new("s").join(p.file_name().unwrap())).collect();
        names.retain(|n| !n.ends_with("state.json") && !n.ends_with(".lock"));
        names.push("counts.csv".into());
        names.sort();
        names
    };
    assert_eq!(files(&moved), files(&direct));
    for file in files(&direct) {
        let [a, b] = [&moved, &direct].map(|run| std::fs::read(run.join(&file)).unwrap());
        assert!(a == b, "{} differs", file.display());
    }
    let counts = |run: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(run.join("s/counts.json")).unwrap()).unwrap()
    };
    assert_eq!(counts(&moved)["operating_point"], "sensitive");
    assert_ne!(counts(&first)["thresholds"], counts(&moved)["thresholds"]);
}

/// Subtypes are of figures alone: where others would become figures, the run is refused, and nothing is written of it.
#[test]
fn other_thresholds_of_a_run_with_subtypes_are_refused_where_figures_are_added() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, run) = (at("s.tiff"), at("run"));
    common::draw(&slide, 900, 800, 3, 4);
    bundled(&slide, &run, &["--subtypes"]);
    let recount = |point: &str, into: &str| {
        mithras(&["recount", text(&run), "--operating-point", point, "--into", text(&at(into))])
    };
    let refused = recount("0.01,0", "more");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && words.contains("figures whose subtypes are not known"),
        "{words}"
    );
    assert!(words.contains("slide `s`") && words.contains("detect again"), "{words}");
    assert!(!at("more/s/counts.json").exists());
    let server = serve(&[&run]);
    let kept = server.post("api/keep", r#"{"slide":0,"point":"0.01,0"}"#);
    assert!(
        kept.status == 400 && String::from_utf8_lossy(&kept.body).contains("subtypes"),
        "{}",
        String::from_utf8_lossy(&kept.body)
    );
    assert!(!at("run at 0.01,0").exists(), "half a run was left");
    // Fewer figures have known subtypes.
    let fewer = recount("0.9,0.9", "fewer");
    assert!(fewer.status.success(), "{}", String::from_utf8_lossy(&fewer.stderr));
}
