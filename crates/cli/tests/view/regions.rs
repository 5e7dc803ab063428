//! Regions as people draw them: every format, and from the viewer to the report.

use super::made::serve;
use super::page::in_a_browser;
use crate::common;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn mithras(args: &[&str]) -> Output {
    Command::new(crate::program()).args(args).output().unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Searches a slide with seeded weights of no meaning, and gives what was counted, or why not.
pub fn detect(slide: &Path, out: &Path, more: &[&str]) -> Result<Value, String> {
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let base = ["detect", text(slide), "--out", text(out), "--model", text(&model)];
    // A point at which such weights accept something.
    let point: &[&str] = match more.contains(&"--operating-point") {
        true => &[],
        false => &["--operating-point", "0.3,0.1"],
    };
    let engine = ["--engine", "rten", "--threads", "1", "--quiet"];
    let run = mithras(&[&base[..], &engine, point, more].concat());
    match run.status.success() {
        true => {
            let folder = out.join(slide.file_stem().unwrap());
            Ok(serde_json::from_slice(&std::fs::read(folder.join("counts.json")).unwrap()).unwrap())
        }
        false => Err(String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned()),
    }
}

/// The upper left 800 x 720 px in every format that is read, a mask in units of 8 px.
fn rectangle(folder: &Path) -> Vec<(PathBuf, Vec<&'static str>)> {
    let [w, h] = [800, 720];
    let file = |name: &str, content: String| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let geojson = format!(
        r#"{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[[[0,0],[{w},0],[{w},{h}],[0,{h}],[0,0]]]}},"properties":{{"objectType":"annotation"}}}}"#
    );
    let corners = [(0, 0), (w, 0), (w, h), (0, h)];
    let asap: String = (0..)
        .zip(corners)
        .map(|(k, (x, y))| format!(r#"<Coordinate Order="{k}" X="{x}" Y="{y}"/>"#))
        .collect();
    let aperio: String =
        corners.iter().map(|(x, y)| format!(r#"<Vertex X="{x}" Y="{y}" Z="0"/>"#)).collect();
    let mask = folder.join("mask.png");
    let image =
        image::GrayImage::from_fn(188, 138, |x, y| image::Luma([u8::from(x < 100 && y < 90)]));
    image.save(&mask).unwrap();
    let tiff = folder.join("mask.tiff");
    image.save(&tiff).unwrap();
    vec![
        (file("q.geojson", geojson), vec![]),
        (
            file(
                "asap.xml",
                format!(
                    r#"<ASAP_Annotations><Annotations><Annotation Name="a" Type="Rectangle" PartOfGroup="None"><Coordinates>{asap}</Coordinates></Annotation></Annotations></ASAP_Annotations>"#
                ),
            ),
            vec![],
        ),
        (
            file(
                "aperio.xml",
                format!(
                    r#"<Annotations MicronsPerPixel="0.25"><Annotation Id="1" Name=""><Regions><Region Type="1" NegativeROA="0" Text="r"><Vertices>{aperio}</Vertices></Region></Regions></Annotation></Annotations>"#
                ),
            ),
            vec![],
        ),
        (mask, vec!["--regions-mpp", "2"]),
        (tiff, vec!["--regions-mpp", "2"]),
    ]
}

#[test]
fn one_region_in_every_format_gives_one_count() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let slide = at("s.tiff");
    common::draw(&slide, 1500, 1100, 4, 5);
    let facts = |c: &Value| {
        let regions = &c["regions"];
        json!([
            c["figures"],
            c["hotspot_count"],
            c["analysed_mm2"],
            c["windows"],
            regions["area_mm2"],
            regions["list"][0]["figures"]
        ])
    };
    let mut all = Vec::new();
    for (k, (file, more)) in rectangle(dir.path()).into_iter().enumerate() {
        let out = at(&format!("out-{k}"));
        let counts = detect(&slide, &out, &[&["--regions", text(&file)], &more[..]].concat());
        let counts = counts.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(
            counts["regions"]["source"]["file"],
            file.file_name().unwrap().to_str().unwrap()
        );
        all.push(facts(&counts));
    }
    // 800 x 720 px of 0.25 um.
    assert_eq!(all[0][4], 0.036);
    assert!(all[0][0].as_u64().unwrap() > 0, "there are figures to compare: {}", all[0]);
    for other in &all[1..] {
        assert_eq!(other, &all[0]);
    }
    // A mask states no um/px by itself; a class that no file has is a mistake; both name their remedy.
    let refused = |more: &[&str]| detect(&slide, &at("none"), more).unwrap_err();
    let mask = at("mask.png");
    let asked = refused(&["--regions", text(&mask)]);
    assert!(asked.contains("mask.png") && asked.contains("--regions-mpp"), "{asked}");
    let asked =
        refused(&["--regions", text(&mask), "--regions-mpp", "2", "--region-class", "Tumour"]);
    assert!(asked.contains("Tumour") && asked.contains("the classes are"), "{asked}");
    assert!(!at("none/s").exists(), "nothing was begun");
}

/// A hotspot that was drawn in a region of the tumour is part of it: the page and the run name both, and count once.
#[test]
fn a_region_in_another_is_named_where_it_is_drawn_and_searched() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, whole, part) = (at("s.tiff"), at("whole"), at("part"));
    common::draw(&slide, 1500, 1100, 4, 5);
    detect(&slide, &whole, &[]).unwrap();
    let server = serve(&[&whole]);
    let regions = json!({"reviewer": "anna", "slide": 0, "regions": [
        {"name": "front", "class": "Tumour", "exclude": false, "ring": [[0, 0], [800, 0], [800, 720], [0, 720]]},
        {"name": "", "class": "", "exclude": false, "ring": [[0, 0], [400, 0], [400, 800], [0, 800]]},
        {"name": "", "class": "", "exclude": true, "ring": [[0, 600], [800, 600], [800, 800], [0, 800]]},
    ]});
    let desk = server.post("api/regions", &regions.to_string()).json();
    // 400 x 600 px of 0.25 um are in both; the rest is left out.
    let note =
        "region `region 2` is inside `front` (Tumour) (0.0150 mm2): figures there count in both";
    let shown = desk["overlaps"][0].as_str().unwrap();
    assert!(shown.starts_with(note) && desk["overlaps"][1].is_null(), "{desk}");
    assert_eq!(desk["all_mm2"], 0.03);
    drop(server);
    let drawn = whole.join("reviews/regions/s.geojson");
    let counts = detect(&slide, &part, &["--regions", text(&drawn)]).unwrap();
    let searched = &counts["regions"];
    assert_eq!(searched["area_mm2"], 0.03, "{searched}");
    let note = note.replace("region 2", "region");
    assert!(searched["notes"][0].as_str().unwrap().starts_with(&note), "{searched}");
    let figures = |k: usize| searched["list"][k]["figures"].as_u64().unwrap();
    assert_eq!(counts["figures"].as_u64().unwrap(), figures(0), "{counts}");
    assert!(figures(0) >= figures(1), "{counts}");
}

/// Regions that were drawn in the viewer, the run that they limit, the reviewer's verdicts in it, and its report.
#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn from_a_drawn_region_to_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, whole, part) = (at("s.tiff"), at("whole"), at("part"));
    common::draw(&slide, 1500, 1100, 4, 5);
    let all = detect(&slide, &whole, &[]).unwrap();
    let server = serve(&[&whole]);
    let regions = json!({"reviewer": "anna", "slide": 0, "regions": [
        {"name": "front", "class": "", "exclude": false, "ring": [[0, 0], [800, 0], [800, 720], [0, 720]]},
        {"name": "", "class": "", "exclude": true, "ring": [[0, 0], [16, 0], [16, 16], [0, 16]]},
    ]});
    assert_eq!(server.post("api/regions", &regions.to_string()).status, 200);
    drop(server);
    let drawn = whole.join("reviews/regions/s.geojson");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&drawn).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    let some = detect(&slide, &part, &["--regions", text(&drawn)]).unwrap();
    let n = |c: &Value, key: &str| c[key].as_u64().unwrap();
    assert!(n(&some, "figures") > 0 && n(&some, "figures") < n(&all, "figures"), "{some}");
    assert!(n(&some, "windows") < n(&all, "windows"));
    assert_eq!(some["regions"]["area_mm2"], 0.035984);
    assert_eq!(some["regions"]["list"][0]["name"], "front");

    // They go wherever the counts go.
    let read = |file: &str| std::fs::read_to_string(part.join(file)).unwrap();
    let mut table = csv::Reader::from_path(part.join("counts.csv")).unwrap();
    let head = table.headers().unwrap().clone();
    let row = table.records().next().unwrap().unwrap();
    let cell = |name: &str| row[head.iter().position(|h| h == name).unwrap()].to_owned();
    assert_eq!(
        (cell("regions"), cell("regions_mm2"), cell("excluded_mm2")),
        ("front".into(), "0.035984".into(), "0.000016".into())
    );
    assert!(read("regions.csv").contains("s,front,"));
    let qupath: Value = serde_json::from_str(&read("s/qupath.geojson")).unwrap();
    let outline = qupath["features"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["properties"]["classification"]["name"] == "Region");
    let outline = &outline.unwrap()["properties"];
    assert_eq!(outline["name"], "front", "{qupath}");
    let measured = &outline["measurements"];
    assert_eq!(measured["Mitotic figures"].as_f64(), some["figures"].as_f64(), "{measured}");
    assert_eq!(measured["Analysed mm²"], some["analysed_mm2"], "{measured}");
    assert_eq!(measured["Per 20 mm²"], some["density_per_20_mm2"], "{measured}");
    assert!(read("summary.html").contains("front"));

    // A figure that a reviewer adds outside is not part of what was searched: refused, and never counted.
    let server = serve(&[&part]);
    assert_eq!(server.review("anna", 0, [100.0, 100.0], "\"figure\"", true).status, 200);
    let outside = server.review("anna", 0, [1000.0, 600.0], "\"figure\"", true);
    assert!(
        outside.status == 400
            && String::from_utf8_lossy(&outside.body).contains("outside the regions")
    );
    assert_eq!(server.verdicts("anna", 0).len(), 1);
    drop(server);
    let log = part.join("reviews/anna.jsonl");
    let line = std::fs::read_to_string(&log).unwrap();
    let without = line.split(",\"previous\"").next().unwrap().to_owned() + "}\n";
    let moved = without
        .replace("+100.00,100.00", "+1000.00,600.00")
        .replace("\"x\":100.0,\"y\":100.0", "\"x\":1000.0,\"y\":600.0");
    assert_ne!(moved, without);
    std::fs::write(&log, without + &moved).unwrap();
    let recount = mithras(&["recount", text(&part), "--reviews", "anna", "--json"]);
    let recount: Value = serde_json::from_slice(&recount.stdout).unwrap();
    let counted = &recount["slides"][0];
    assert_eq!(counted["reviewed"]["figures"], n(&some, "figures") + 1);
    assert!(
        counted["notes"].to_string().contains("1 added figure outside the regions"),
        "{counted}"
    );
    let pages = mithras(&["report", text(&part), "--out", text(&at("pages"))]);
    assert!(pages.status.success(), "{}", String::from_utf8_lossy(&pages.stderr));
    let page = std::fs::read_to_string(at("pages/s.html")).unwrap();
    let row = page.split("<tr>").find(|r| r.contains("front")).unwrap_or_else(|| panic!("{page}"));
    let cells: Vec<&str> =
        row.split("<td>").skip(1).map(|c| c.split('<').next().unwrap()).collect();
    assert_eq!(
        (cells[0], cells[4], cells[7]),
        (
            "front",
            n(&some, "figures").to_string().as_str(),
            (n(&some, "figures") + 1).to_string().as_str()
        ),
        "{row}"
    );

    // Other thresholds of a run in regions give the files of another search.
    let (moved, direct) = (at("moved"), at("direct"));
    let kept =
        mithras(&["recount", text(&part), "--operating-point", "0.3,0.35", "--into", text(&moved)]);
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let again =
        detect(&slide, &direct, &["--regions", text(&drawn), "--operating-point", "0.3,0.35"])
            .unwrap();
    assert_ne!(again["figures"], some["figures"], "the points differ in something");
    for file in [
        "counts.csv",
        "regions.csv",
        "s/counts.json",
        "s/detections.csv",
        "s/qupath.geojson",
        "s/regions.geojson",
    ] {
        let [a, b] = [&moved, &direct].map(|run| std::fs::read(run.join(file)).unwrap());
        assert!(a == b, "{file}: {}\n{}", String::from_utf8_lossy(&a), String::from_utf8_lossy(&b));
    }

    // Regions of another slide are refused before any work.
    let other = at("other.tiff");
    common::draw(&other, 600, 520, 5, 2);
    let refused = detect(&other, &at("none"), &["--regions", text(&drawn)]).unwrap_err();
    assert!(
        refused.contains("drawn on the file") && !at("none/other/detections.csv").exists(),
        "{refused}"
    );
}

/// Two outlines of one name are two objects of QuPath, each with its own figures.
#[test]
fn regions_of_one_name_stay_two_in_qupath() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    common::draw(&at("s.tiff"), 1500, 1100, 4, 5);
    let feature = |[x0, y0, x1, y1]: [u32; 4]| {
        let ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]];
        json!({
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": {"objectType": "annotation", "name": "front"},
        })
    };
    let drawn = [feature([0, 0, 700, 1100]), feature([720, 0, 1500, 1100])];
    let drawn = json!({"type": "FeatureCollection", "features": drawn});
    std::fs::write(at("r.geojson"), drawn.to_string()).unwrap();
    let file = at("r.geojson");
    let counts = detect(&at("s.tiff"), &at("out"), &["--regions", text(&file)]).unwrap();
    let file = std::fs::read(at("out/s/qupath.geojson")).unwrap();
    let qupath: Value = serde_json::from_slice(&file).unwrap();
    let all = qupath["features"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> =
        all.iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), all.len(), "{qupath}");
    let measured = |name: &str| -> Vec<Value> {
        let regions = all.iter().filter(|f| f["properties"]["classification"]["name"] == "Region");
        regions.map(|f| f["properties"]["measurements"][name].clone()).collect()
    };
    let list = counts["regions"]["list"].as_array().unwrap();
    let areas: Vec<Value> = list.iter().map(|r| r["analysed_mm2"].clone()).collect();
    assert_eq!(measured("Analysed mm²"), areas);
    assert_ne!(areas[0], areas[1], "two numbers");
}

/// Outside the model's range nothing is a number: no score, and every place that shows a count marks it.
#[test]
fn what_means_nothing_has_no_score_and_is_marked_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, out) = (at("s.tiff"), at("out"));
    common::draw(&slide, 600, 520, 3, 2);
    // The same weights with a range that 0.25 um/px is outside of.
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    std::fs::create_dir(at("model")).unwrap();
    for file in std::fs::read_dir(tiny).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            std::fs::copy(&file, at("model").join(file.file_name().unwrap())).unwrap();
        }
    }
    let card = std::fs::read_to_string(at("model/card.toml")).unwrap();
    std::fs::write(at("model/card.toml"), card + "\n[resolution]\nmin = 0.4\nmax = 0.6\n").unwrap();
    let base = ["detect", text(&slide), "--engine", "rten", "--threads", "1"];
    let (model, other) = (at("model"), at("refused"));
    let run = |more: &[&str]| mithras(&[&base[..], &["--model", text(&model)], more].concat());
    let refused = run(&["--out", text(&other)]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("--any-mpp"), "{words}");
    let done = run(&["--any-mpp", "--out", text(&out)]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // The table on the terminal, counts.csv and the summary.
    let label = "outside the model's range";
    assert!(
        String::from_utf8_lossy(&done.stdout).contains(label),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
    assert!(std::fs::read_to_string(out.join("counts.csv")).unwrap().contains(label));
    assert!(
        std::fs::read_to_string(out.join("summary.html")).unwrap().contains("outside the model")
    );
    // The viewer's list and its banner are made of these.
    let server = serve(&[&out]);
    let caveats = server.get("api/index").json()["slides"][0]["caveats"].clone();
    assert_eq!(
        (&caveats[0]["kind"], &caveats[0]["label"]),
        (&"outside-range".into(), &label.into())
    );
    assert_eq!(server.review("anna", 0, [100.0, 100.0], "\"figure\"", true).status, 200);
    drop(server);
    let recount =
        mithras(&["recount", text(&out), "--reviews", "anna", "--grade", "gist", "--json"]);
    let answer: Value = serde_json::from_slice(&recount.stdout).unwrap();
    let counted = &answer["slides"][0];
    assert!(
        counted["model"]["mitotic_score"].is_null()
            && counted["reviewed"]["mitotic_score"].is_null(),
        "{counted}"
    );
    assert!(counted["notes"].to_string().contains("no mitotic rate: see the notes"), "{counted}");
    // The table that it is graded from.
    let table = out.join("counts.csv");
    let graded =
        mithras(&["survival", "grade", "--counts", text(&table), "--scheme", "gist", "--json"]);
    let graded: Value = serde_json::from_slice(&graded.stdout).unwrap();
    assert_eq!(graded["slides"], json!([]), "{graded}");
    assert!(graded["notes"].to_string().contains("the counts mean nothing"), "{graded}");
    let made =
        mithras(&["report", text(&out), "--out", text(&at("pages")), "--mitotic-score", "gist"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = std::fs::read_to_string(at("pages/s.html")).unwrap();
    assert!(page.contains("<b>not valid</b>") && page.contains("outside the model"), "{page}");
    assert!(
        page.contains("<dt>Mitotic rate</dt><dd>not given: a slide"),
        "no score of what means nothing: {page}"
    );
}

/// Regions chosen and left out by class, in mm2 by hand.
#[test]
fn classes_choose_what_is_searched() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let slide = at("s.tiff");
    common::draw(&slide, 1500, 1100, 4, 5);
    let feature = |name: &str, class: &str, [x0, y0, x1, y1]: [i32; 4]| {
        json!({
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]},
            "properties": {"objectType": "annotation", "name": name, "classification": {"name": class}},
        })
    };
    let drawn = json!({"type": "FeatureCollection", "features": [
        feature("front", "Tumour", [0, 0, 800, 700]),
        feature("rim", "Stroma", [900, 0, 1300, 500]),
        feature("gap", "Necrosis", [100, 100, 300, 400]),
    ]});
    std::fs::write(at("r.geojson"), drawn.to_string()).unwrap();
    let file = at("r.geojson");
    let search = |out: &str, more: &[&str]| {
        let counts = detect(&slide, &at(out), &[&["--regions", text(&file)], more].concat());
        let regions = counts.unwrap()["regions"].clone();
        let names: Vec<String> = regions["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["name"].as_str().unwrap().to_owned())
            .collect();
        (names.join(" "), regions["area_mm2"].as_f64().unwrap(), regions["excluded_mm2"].clone())
    };
    // 0.25 um/px: 16 million px are 1 mm2. The gap is inside the front.
    let mm2 = |px: i32| f64::from(px) * 0.0625e-6;
    let [front, rim, gap] = [800 * 700, 400 * 500, 200 * 300];
    let all = [
        ("all", vec![], "front rim gap", front + rim, 0),
        ("tumour", vec!["--region-class", "Tumour"], "front", front, 0),
        (
            "both",
            vec!["--region-class", "Tumour", "--region-class", "stroma"],
            "front rim",
            front + rim,
            0,
        ),
        ("without", vec!["--exclude-class", "Necrosis"], "front rim", front + rim - gap, gap),
        (
            "tumour-without",
            vec!["--region-class", "tumour", "--exclude-class", "Necrosis"],
            "front",
            front - gap,
            gap,
        ),
    ];
    for (out, more, names, px, left_out) in all {
        let (found, area, excluded) = search(out, &more);
        assert_eq!(found, names, "{out}");
        assert!((area - mm2(px)).abs() < 1e-9, "{out}: {area} is not {}", mm2(px));
        assert!((excluded.as_f64().unwrap() - mm2(left_out)).abs() < 1e-9, "{out}: {excluded}");
    }
}

/// A slide out of focus, with little tissue, outside the model's range and of another scanner than those of the
/// training data is marked in the viewer, the summary and the report; a browser shows it.
#[test]
fn out_of_focus_and_another_scanner_are_marked() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (slide, model, out) = (at("s.tif"), at("model"), at("out"));
    scanned(&slide, "Hamamatsu", true);
    trained_on(&model, "Aperio");
    let card = std::fs::read_to_string(model.join("card.toml")).unwrap();
    let range = "\n[resolution]\nmin = 0.4\nmax = 0.6\n";
    std::fs::write(model.join("card.toml"), card + range).unwrap();
    let made = mithras(&[
        "detect",
        text(&slide),
        "--out",
        text(&out),
        "--model",
        text(&model),
        "--mpp",
        "0.25",
        "--any-mpp",
        "--engine",
        "rten",
        "--threads",
        "1",
        "--quiet",
    ]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = serve(&[&out]);
    let caveats = server.get("api/index").json()["slides"][0]["caveats"].clone();
    let kinds: Vec<&str> =
        caveats.as_array().unwrap().iter().map(|c| c["kind"].as_str().unwrap()).collect();
    for kind in ["outside-range", "other-scanner", "little-tissue", "out-of-focus"] {
        assert!(kinds.contains(&kind), "{kind}: {caveats}");
    }
    drop(server);
    // Blinded, they are seen, too: they are about the slide, not about what was found.
    let server = serve(&[&out, "--blinded".as_ref()]);
    let blinded = server.get("api/index").json()["slides"][0]["caveats"].to_string();
    assert!(blinded.contains("out-of-focus") && blinded.contains("other-scanner"), "{blinded}");
    drop(server);
    let pages = mithras(&["report", text(&out), "--out", text(&at("pages"))]);
    assert!(pages.status.success(), "{}", String::from_utf8_lossy(&pages.stderr));
    let page = std::fs::read_to_string(at("pages/s.html")).unwrap();
    let notes: Vec<&str> = page.split("<p class=\"note\">").skip(1).collect();
    for words in ["out of focus", "a scanner of Hamamatsu, of which the model saw no slide"] {
        assert!(notes.iter().any(|n| n.contains(words)), "{words}: {notes:?}");
    }
    assert!(page.contains("<td>Hamamatsu</td>"), "the scanner in the table of slides");
    let expected = [
        ["outside the model's range", "um/px"],
        ["other scanner", "a scanner of Hamamatsu"],
        ["little tissue", "less than the 2 mm2 of a hotspot"],
        ["out of focus", "are out of focus, where figures are missed"],
    ];
    let server = serve(&[&out]);
    let pages = [out.join("summary.html"), at("pages/s.html")].map(|p| text(&p).to_owned());
    let expected = serde_json::to_string(&expected).unwrap();
    let [summary, report] = pages;
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    in_a_browser("caveats.mjs", &server.url, &[expected, summary, report], shot.as_deref());
}

/// A drawn slide as the file of a scanner of this maker; blurred where it is to be out of focus.
pub fn scanned(path: &Path, maker: &str, blurred: bool) {
    let drawn = path.with_extension("drawn.tiff");
    common::draw(&drawn, 1400, 1200, 5, 4);
    let slide = slide::Slide::open(&drawn).unwrap();
    let tile = slide.read_region(0, mithras::demo::Rect::new(0, 0, 1400, 1200)).unwrap();
    std::fs::remove_file(&drawn).unwrap();
    let image = image::RgbImage::from_raw(1400, 1200, tile.data).unwrap();
    let image = if blurred { image::imageops::blur(&image, 8.0) } else { image };
    let mut file = tiff::encoder::TiffEncoder::new(std::fs::File::create(path).unwrap()).unwrap();
    let mut page = file.new_image::<tiff::encoder::colortype::RGB8>(1400, 1200).unwrap();
    page.encoder().write_tag(tiff::tags::Tag::Unknown(271), maker).unwrap();
    page.write_data(&image).unwrap();
}

/// Seeded weights whose card names the makers of the scanners of their training data.
pub fn trained_on(folder: &Path, maker: &str) {
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    std::fs::create_dir(folder).unwrap();
    for file in ["segmenter.onnx", "classifier.onnx"] {
        std::fs::copy(tiny.join(file), folder.join(file)).unwrap();
    }
    let card = std::fs::read_to_string(tiny.join("card.toml")).unwrap();
    let training = format!("\n[training]\nscanners = [\"{maker}\"]\n");
    std::fs::write(folder.join("card.toml"), card + &training).unwrap();
}
