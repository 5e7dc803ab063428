//! What comes back of a review: through QuPath, and as a dataset.

use super::made::{DOTS, Made, made, serve};
use super::{DOTTED, DRAWN, recount};
use mithras::batch::DetectionState;
use mithras::batch::state::Status;
use mithras::export::read_detections;
use regions::Dataset;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn mithras(args: &[&str]) -> Result<String, String> {
    let program = if args[0] == "train" { crate::training_program() } else { crate::program() };
    let out = Command::new(program).args(args).output().unwrap();
    match out.status.success() {
        true => Ok(String::from_utf8(out.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    let fits = |(i, c): (usize, char)| match dashes.contains(&i) {
        true => c == '-',
        false => c.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.chars().enumerate().all(fits)
}

/// What QuPath's reader of objects asks for (`PathObjectTypeAdapter`): a UUID, a closed ring, an object
/// type that it knows, a class by name with three bytes of colour, measurements by name.
fn as_qupath_reads(bytes: &[u8]) {
    assert!(bytes.is_ascii(), "QuPath reads with the encoding of its machine");
    let all: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(all["type"], "FeatureCollection");
    let mut ids = std::collections::BTreeSet::new();
    for f in all["features"].as_array().unwrap() {
        assert_eq!(f["type"], "Feature");
        let id = f["id"].as_str().unwrap();
        assert!(is_uuid(id) && ids.insert(id), "{f}");
        assert_eq!(f["geometry"]["type"], "Polygon");
        for ring in f["geometry"]["coordinates"].as_array().unwrap() {
            let ring = ring.as_array().unwrap();
            assert!(ring.len() >= 4 && ring.first() == ring.last(), "{f}");
            assert!(ring.iter().all(|p| p[0].is_f64() && p[1].is_f64()), "{f}");
        }
        let p = &f["properties"];
        assert!(["detection", "annotation"].contains(&p["objectType"].as_str().unwrap()));
        let class = &p["classification"];
        assert!(!class["name"].as_str().unwrap().contains(':'), "a derived class");
        let colour: Vec<u64> =
            class["color"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        assert!(colour.len() == 3 && colour.iter().all(|c| *c < 256));
        assert!(p["measurements"].as_object().unwrap().values().all(Value::is_number));
        assert!(p.get("name").is_none_or(Value::is_string));
        assert!(p.get("isLocked").is_none_or(Value::is_boolean));
    }
}

fn exported(made: &Made) -> PathBuf {
    let out = made.folder.path().join("it's for qupath");
    let run = made.run.to_str().unwrap();
    let answer = mithras(&["export", "qupath", run, "--out", out.to_str().unwrap()]).unwrap();
    assert!(answer.starts_with("2 slides, 34 candidates"), "{answer}");
    out
}

#[test]
fn a_run_goes_to_qupath_and_comes_back_unchanged() {
    let made = made();
    let out = exported(&made);
    for name in ["drawn", "dots"] {
        let bytes = std::fs::read(out.join(format!("{name}.geojson"))).unwrap();
        as_qupath_reads(&bytes);
        assert_eq!(bytes, std::fs::read(made.run.join(name).join("qupath.geojson")).unwrap());
    }
    for (script, at) in [("import.groovy", ""), ("export.groovy", "/corrected")] {
        let text = std::fs::read_to_string(out.join(script)).unwrap();
        let quoted = out.canonicalize().unwrap().to_str().unwrap().replace('\'', "\\'");
        assert!(text.contains(&format!("new File('{quoted}{at}')")), "{text}");
        assert!(!text.contains('@'), "{text}");
        // As the run names a slide's folder: `x` of `x.ome.tiff`.
        assert!(text.contains(r"/(?i)(?<=.)\.ome$/"), "{text}");
    }
    let answer = recount(&made, out.to_str().unwrap()).unwrap();
    for slide in [DRAWN, DOTTED] {
        let s = &answer["slides"][slide];
        assert_eq!((&s["said"], &s["model"]), (&0.into(), &s["reviewed"]), "{s}");
        // The dirt in the corner is before the slide's bounds, where no reader has a place for it.
        let notes = s["notes"].to_string();
        assert_eq!(notes.contains("1 objects cannot be placed"), slide == DRAWN, "{notes}");
    }
    let nothing = made.folder.path().join("slides");
    let e = mithras(&["export", "qupath", nothing.to_str().unwrap(), "--out", "x"]).unwrap_err();
    assert!(e.contains("no slide's results"), "{e}");
}

#[test]
fn what_was_corrected_in_qupath_counts() {
    let made = made();
    let out = exported(&made);
    let file = out.join("drawn.geojson");
    let mut all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let features = all["features"].as_array_mut().unwrap();
    let class = |f: &Value| f["properties"]["classification"]["name"].as_str().unwrap().to_owned();
    let of = |features: &[Value], name: &str, k: usize| {
        let mut all = features.iter().enumerate().filter(|(_, f)| class(f) == name);
        all.nth(k).unwrap().0
    };
    // Of 12 figures one is called none, one is atypical, one is gone; of the others one is a figure.
    let [a, b, c] = [0, 1, 2].map(|k| of(features, "Mitotic figure", k));
    let d = of(features, "Non-mitotic figure", 0);
    features[a]["properties"]["classification"]["name"] = "Non-mitotic figure".into();
    features[b]["properties"]["classification"]["name"] = "Mitotic figure: Atypical".into();
    features[d]["properties"]["classification"]["name"] = "Mitotic figure".into();
    // An older QuPath knows no identifiers.
    features[a].as_object_mut().unwrap().remove("id");
    features.remove(c);
    // One that was missed, drawn by hand, counted from the slide's bounds; and the tumour's outline.
    let drawn = |name: &str, at: [f64; 2], side: f64| -> Value {
        let [x, y] = at;
        serde_json::from_str(&format!(
            r#"{{"type":"Feature","id":"7d0b{0:028}","geometry":{{"type":"Polygon","coordinates":
            [[[{x},{y}],[{1},{y}],[{1},{2}],[{x},{2}],[{x},{y}]]]}},
            "properties":{{"objectType":"annotation","classification":{{"name":"{name}"}}}}}}"#,
            side as u64,
            x + side,
            y + side
        ))
        .unwrap()
    };
    features.push(drawn("Mitotic figure", [2900.0, 2100.0], 40.0));
    features.push(drawn("Tumor", [100.0, 100.0], 2000.0));
    let corrected = made.folder.path().join("corrected");
    std::fs::create_dir(&corrected).unwrap();
    // QuPath writes a list when it is not asked for a collection.
    let list = serde_json::to_vec(&all["features"]).unwrap();
    std::fs::write(corrected.join("drawn.geojson"), list).unwrap();
    let answer = recount(&made, corrected.to_str().unwrap()).unwrap();
    let s = &answer["slides"][DRAWN];
    for (field, n) in [("said", 5), ("taken_out", 2), ("taken_in", 1), ("added", 1)] {
        assert_eq!(s[field], n, "{field}: {s}");
    }
    assert_eq!((&s["model"]["figures"], &s["reviewed"]["figures"]), (&12.into(), &12.into()));
    let nowhere = recount(&made, "no/such/folder").unwrap_err();
    assert!(nowhere.contains("no/such/folder: no such file"), "{nowhere}");
    // The other slide has no file, so it has no verdicts.
    assert_eq!(answer["slides"][DOTTED]["model"], answer["slides"][DOTTED]["reviewed"]);
    // The objects of another slide under this one's name are not believed in silence.
    let dots = std::fs::read(out.join("dots.geojson")).unwrap();
    let other = made.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("drawn.geojson"), dots).unwrap();
    let answer = recount(&made, other.to_str().unwrap()).unwrap();
    let notes = answer["slides"][DRAWN]["notes"].to_string();
    assert!(notes.contains("no object is at a candidate"), "{notes}");
}

#[test]
fn reviewers_of_a_run_agree_so_far() {
    let made = made();
    let rows = read_detections(&made.run.join("drawn/detections.csv")).unwrap();
    let server = serve(&[&made.run]);
    // Nine places that both judged: yes yes 4, no no 2, yes no 1, no yes 1, unsure yes 1.
    let anna = [
        "figure", "figure", "atypical", "figure", "mimicker", "removed", "figure", "mimicker",
        "unsure",
    ];
    let bert = [
        "figure", "atypical", "figure", "figure", "mimicker", "mimicker", "mimicker", "figure",
        "figure",
    ];
    for (k, (a, b)) in anna.iter().zip(&bert).enumerate() {
        let at = [rows[k].x_px, rows[k].y_px];
        for (who, word) in [("anna", a), ("bert", b)] {
            assert_eq!(server.review(who, DRAWN, at, &format!("\"{word}\""), false).status, 200);
        }
    }
    let answer = recount(&made, "anna").unwrap();
    // p_o = 6/9; p_e = (5/9)(6/9) + (3/9)(3/9) + 0 = 39/81.
    let kappa = (6.0 / 9.0 - 39.0 / 81.0) / (1.0 - 39.0 / 81.0);
    let voices = server.get(&format!("api/voices/{DRAWN}")).json();
    for a in [&answer["agreement"][0], &voices["agreement"][0]] {
        assert_eq!((&a["reviewers"][0], &a["reviewers"][1]), (&"anna".into(), &"bert".into()));
        assert_eq!((&a["both"], &a["agree"]), (&9.into(), &6.into()));
        assert!((a["kappa"].as_f64().unwrap() - kappa).abs() < 1e-9, "{a}");
    }
    let key = format!("{:.2},{:.2}", rows[5].x_px, rows[5].y_px);
    assert_eq!(
        (&voices["voices"]["anna"][&key], &voices["voices"]["bert"][&key]),
        (&"removed".into(), &"mimicker".into())
    );
    assert_eq!(
        server.get(&format!("api/voices/{DOTTED}")).json()["agreement"],
        Value::Array(vec![])
    );

    // A morphology is kept, taken back with its word, and refused where it is unknown.
    let [x, y] = DOTS[0];
    let review = |verdict: &str, morphology: &str| {
        let body = format!(
            r#"{{"reviewer":"cleo","slide":{DOTTED},"key":"{x:.2},{y:.2}","x":{x},"y":{y},"verdict":"{verdict}","added":false,"morphology":"{morphology}"}}"#
        );
        server.post("api/review", &body).status
    };
    let entry =
        || server.get(&format!("api/reviews/{DOTTED}?reviewer=cleo")).json()["entries"][0].clone();
    assert_eq!(review("figure", "metaphase"), 200);
    assert_eq!(review("atypical", "multipolar"), 200);
    assert_eq!(entry()["morphology"], "multipolar");
    assert_eq!((review("figure", "atypical"), review("mimicker", "metaphase")), (400, 400));
    let undo = format!(r#"{{"reviewer":"cleo","slide":{DOTTED}}}"#);
    assert_eq!(server.post("api/undo", &undo).json()["entry"]["morphology"], "metaphase");
    assert_eq!(
        (&entry()["verdict"], &entry()["morphology"]),
        (&"figure".into(), &"metaphase".into())
    );
}

/// Whether a frame is dark at a place and light next to it.
fn is_dot(file: &Path, x: f64, y: f64) -> bool {
    let image = image::open(file).unwrap().into_rgb8();
    let at = |x: f64, y: f64| image.get_pixel(x as u32, y as u32).0[0];
    at(x, y) < 30 && at(x - 8.0, y) > 200 && at(x, y + 8.0) > 200
}

#[test]
fn reviews_become_a_dataset() {
    let made = made();
    let out = made.folder.path().join("set");
    let (run, to) = (made.run.to_str().unwrap(), out.to_str().unwrap());
    let import_into = |to: &str, more: &[&str]| {
        let fixed = ["corpus", "import", "--format", "reviews", run, "--out", to, "--json"];
        mithras(&[&fixed[..], more].concat())
    };
    let import = |more: &[&str]| import_into(to, more);
    assert!(import(&[]).unwrap_err().contains("no review log"));
    let server = serve(&[&made.run]);
    let review = |who: &str, slide, at, word: &str, added| {
        assert_eq!(server.review(who, slide, at, &format!("\"{word}\""), added).status, 200);
    };
    // The first dot is a figure to both, the second a mimicker, on the third they differ.
    for who in ["anna", "bert"] {
        review(who, DOTTED, DOTS[0], "atypical", false);
        review(who, DOTTED, DOTS[1], "mimicker", false);
    }
    review("anna", DOTTED, DOTS[2], "figure", false);
    review("bert", DOTTED, DOTS[2], "mimicker", false);
    review("anna", DOTTED, [820.5, 700.5], "figure", true);
    review("anna", DOTTED, [900.0, 800.0], "figure", true);
    review("anna", DOTTED, [900.0, 800.0], "removed", true);
    // A slide without a result is left out and named.
    let mut state = DetectionState::load(&made.run.join("dots")).unwrap();
    (state.status, state.reason) = (Status::Failed, Some("cannot be read".into()));
    std::fs::create_dir(made.run.join("z")).unwrap();
    state.save(&made.run.join("z")).unwrap();
    let answer: Value = serde_json::from_str(&import(&[]).unwrap()).unwrap();
    assert_eq!((&answer["open"], &answer["images"]), (&1.into(), &2.into()), "{answer}");
    let left_out = answer["left_out"].to_string();
    assert!(left_out.contains("z: no result: cannot be read"), "{answer}");
    assert_eq!(answer["classes"]["mitotic_figure"], 2);
    assert_eq!(answer["classes"]["mimicker"], 1);
    let set = Dataset::open(&out).unwrap();
    let training = set.training();
    let images = training.images();
    let mut dots = vec![];
    for image in images {
        assert_eq!((image.slide.as_str(), image.exhaustive), ("dots", true));
        assert!(image.width >= 512 && image.height >= 512);
        // Labels and pixels agree in place.
        let file = out.join(&image.file);
        for l in &image.labels {
            let added = (l.x, l.y) == (820.5 - 512.0, 700.5 - 512.0);
            assert!(added || is_dot(&file, l.x, l.y), "{l:?}");
            dots.push((l.class.clone(), l.subtype.clone(), added));
        }
    }
    dots.sort();
    let figure =
        |subtype: Option<&str>, added| ("mitotic_figure".into(), subtype.map(str::to_owned), added);
    assert_eq!(
        dots,
        [("mimicker".to_owned(), None, false), figure(None, true), figure(Some("atypical"), false)]
    );
    assert!(mithras(&["corpus", "verify", to]).is_ok());

    // One reviewer alone: the third dot is a figure, and nothing is left to others' words.
    assert!(import(&["--annotator", "anna"]).unwrap_err().contains("holds a dataset"));
    let another = format!("{to}-of-anna");
    let alone = import_into(&another, &["--annotator", "anna", "--exhaustive", "none"]).unwrap();
    let answer: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!(
        (&answer["open"], &answer["images"], &answer["exhaustive"]),
        (&0.into(), &3.into(), &0.into())
    );
    assert_eq!(answer["reviewers"], serde_json::from_str::<Value>(r#"["anna"]"#).unwrap());

    // On the drawn slide nobody judged most candidates: they are ignored, not taken for tissue.
    let rows = read_detections(&made.run.join("drawn/detections.csv")).unwrap();
    let at = [rows[10].x_px, rows[10].y_px];
    review("dora", DRAWN, at, "figure", false);
    std::fs::remove_dir_all(&out).unwrap();
    import(&["--annotator", "dora"]).unwrap();
    let set = Dataset::open(&out).unwrap();
    let training = set.training();
    let image = &training.images()[0];
    let corner: Vec<f64> = image.name.rsplit('_').take(2).map(|n| n.parse().unwrap()).collect();
    let near = rows.iter().filter(|r| {
        let (x, y) = (r.x_px - corner[1], r.y_px - corner[0]);
        x > -25.0
            && y > -25.0
            && x < f64::from(image.width) + 25.0
            && y < f64::from(image.height) + 25.0
    });
    assert_eq!((image.labels.len(), image.ignore.len()), (1, near.count() - 1));
}

#[test]
fn what_was_settled_and_each_missed_figure_once_are_in_the_dataset() {
    let made = made();
    let out = made.folder.path().join("set");
    let server = serve(&[&made.run]);
    let review = |who: &str, at, word: &str, added| {
        assert_eq!(server.review(who, DOTTED, at, &format!("\"{word}\""), added).status, 200);
    };
    review("anna", DOTS[0], "figure", false);
    review("bert", DOTS[0], "mimicker", false);
    // 0.8 um apart, and one on a candidate that anna did not judge.
    review("anna", [820.5, 700.5], "figure", true);
    review("bert", [823.7, 700.5], "figure", true);
    review("anna", [DOTS[1][0] + 1.0, DOTS[1][1]], "figure", true);
    let import = || -> Value {
        let (run, to) = (made.run.to_str().unwrap(), out.to_str().unwrap());
        let _ = std::fs::remove_dir_all(&out);
        let words = ["corpus", "import", "--format", "reviews", run, "--out", to, "--json"];
        serde_json::from_str(&mithras(&words).unwrap()).unwrap()
    };
    let answer = import();
    assert_eq!((&answer["open"], &answer["joined"]), (&1.into(), &2.into()), "{answer}");
    assert_eq!(answer["classes"]["mitotic_figure"], 2, "{answer}");
    let key = format!("{:.2},{:.2}", DOTS[0][0], DOTS[0][1]);
    let body =
        format!(r#"{{"reviewer":"chief","slide":{DOTTED},"key":"{key}","verdict":"mimicker"}}"#);
    assert_eq!(server.post("api/settle", &body).status, 200);
    let answer = import();
    assert_eq!((&answer["open"], &answer["classes"]["mimicker"]), (&0.into(), &1.into()));
    // One reviewer alone is not overruled.
    let (run, to) = (made.run.to_str().unwrap(), made.folder.path().join("alone"));
    let words = ["corpus", "import", "--format", "reviews", run, "--out", to.to_str().unwrap()];
    let answer = mithras(&[&words[..], &["--annotator", "anna", "--json"]].concat()).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["classes"]["mitotic_figure"], 3, "{answer}");
}

/// Figures that a list of places finds and misses, and false ones, within 7.5 um at 0.25 um/px.
fn scored(truth: &[[f64; 2]], found: &[[f64; 2]]) -> (usize, usize, usize) {
    let near = |a: &[f64; 2], b: &[f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]) <= 30.0;
    let hit = truth.iter().filter(|t| found.iter().any(|f| near(t, f))).count();
    let wrong = found.iter().filter(|f| !truth.iter().any(|t| near(t, f))).count();
    (hit, truth.len() - hit, wrong)
}

/// Draws a slide and runs the bundled weights on it; gives its figures.
fn demo(run: &Path, seed: &str) -> Vec<[f64; 2]> {
    let size = ["--size", "1400,1200", "--figures", "8", "--seed", seed, "--engine", "native"];
    mithras(&[&["demo", "--out", run.to_str().unwrap()][..], &size[..]].concat()).unwrap();
    let mut table = csv::Reader::from_path(run.join("truth.csv")).unwrap();
    let rows = table.records().map(Result::unwrap).filter(|r| &r[3] == "mitotic");
    rows.map(|r| [r[1].parse().unwrap(), r[2].parse().unwrap()]).collect()
}

/// The cells of the one line of a run's `counts.csv`, by name.
fn counts_cell(run: &Path) -> impl Fn(&str) -> String {
    let mut table = csv::Reader::from_path(run.join("counts.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let row = table.records().next().unwrap().unwrap();
    move |name| row[header.iter().position(|h| h == name).unwrap()].to_owned()
}

fn accepted(run: &Path) -> Vec<[f64; 2]> {
    let rows = read_detections(&run.join("drawn/detections.csv")).unwrap();
    rows.iter().filter(|r| r.accepted).map(|r| [r.x_px, r.y_px]).collect()
}

#[test]
fn from_a_detection_through_corrections_to_a_better_one() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let text = |p: &Path| p.to_str().unwrap().to_owned();
    let truth = demo(&run, "3");
    let rows = read_detections(&run.join("drawn/detections.csv")).unwrap();
    let before = scored(&truth, &accepted(&run));
    // Somebody who knows the truth judges every candidate and adds what was missed.
    let server = serve(&[&run]);
    let all: Vec<[f64; 2]> = rows.iter().map(|r| [r.x_px, r.y_px]).collect();
    for at in &all {
        let word = if scored(&truth, &[*at]).2 == 0 { "\"figure\"" } else { "\"mimicker\"" };
        assert_eq!(server.review("anna", 0, *at, word, false).status, 200);
    }
    for t in truth.iter().filter(|t| scored(&[**t], &all).0 == 0) {
        assert_eq!(server.review("anna", 0, *t, "\"figure\"", true).status, 200);
    }
    let answer =
        mithras(&["recount", &text(&run), "--reviews", "anna", "--grade", "gist"]).unwrap();
    assert!(answer.contains("recount.csv"), "{answer}");
    let (cell, page) =
        (counts_cell(&run), std::fs::read_to_string(run.join("summary.html")).unwrap());
    let n = truth.len().to_string();
    assert_eq!((cell("reviewed_by"), cell("reviewed_figures")), ("anna".into(), n.clone()));
    assert_eq!(cell("figures"), accepted(&run).len().to_string());
    assert!(
        !cell("reviewed_mitotic_score").is_empty() && page.contains("Reviewed by anna:"),
        "{page}"
    );
    // A reviewer without verdicts takes nothing in; a count of its own is another count.
    let counts = run.join("drawn/counts.json");
    let same = std::fs::read(&counts).unwrap();
    std::fs::write(&counts, [&same[..], b"\n"].concat()).unwrap();
    assert!(mithras(&["gather", &text(&run)]).is_err(), "a changed result is named");
    assert!(!std::fs::read_to_string(run.join("counts.csv")).unwrap().contains("reviewed_by"));
    std::fs::write(&counts, same).unwrap();

    let set = dir.path().join("set");
    let import = ["corpus", "import", "--format", "reviews", &text(&run), "--out", &text(&set)];
    mithras(&import).unwrap();
    let read = Dataset::open(&set).unwrap();
    let (mut figures, mut mimickers) = (vec![], 0);
    for image in read.training().images() {
        let corner: Vec<f64> = image.name.rsplit('_').take(2).map(|n| n.parse().unwrap()).collect();
        figures.extend(image.figures().map(|l| [l.x + corner[1], l.y + corner[0]]));
        mimickers += image.labels.len() - image.figures().count();
    }
    assert_eq!(scored(&truth, &figures), (truth.len(), 0, 0), "the network alone: {before:?}");
    assert_eq!(mimickers, all.iter().filter(|a| scored(&truth, &[**a]).2 == 1).count());
    #[cfg(feature = "train")]
    trained_on(dir.path(), &set);
}

/// A few steps from the bundled weights on, and both on a slide that nobody corrected.
#[cfg(feature = "train")]
fn trained_on(dir: &Path, set: &Path) {
    let text = |p: &Path| p.to_str().unwrap().to_owned();
    let (run, trained) = (dir.join("other"), dir.join("trained"));
    let truth = demo(&run, "6");
    let preset = testkit::workspace().join("presets/detector-continue.toml");
    let short = [
        "segment.train.steps=8",
        "segment.train.warmup=1",
        "segment.train.batch=2",
        "segment.data.patch=192",
        "finetune.train.steps=32",
        "finetune.train.warmup=2",
        "finetune.train.batch=8",
        "finetune.mining.every=32",
        "finetune.mining.scored=40",
    ];
    let (set, preset, out) = (text(set), text(&preset), text(&trained));
    let mut train = vec!["train", "detector", "--data", &set, "--preset", &preset, "--out", &out];
    // Tests share the cores; libtorch's threads would wait for each other.
    train.extend(["--init", "mithras-standard", "--threads", "1"]);
    train.extend(short.iter().flat_map(|s| ["--set", *s]));
    let answer = mithras(&train).unwrap();
    let package = trained.join("package");
    assert_eq!(answer.trim(), text(&package));
    // A full output is an error: of a run that is done, of its plan, and of a package of its networks.
    #[cfg(target_os = "linux")]
    {
        let full = |words: &[&str]| {
            let words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
            let program = crate::training_program();
            assert_eq!(crate::special::full_in(program, dir, &words), None);
        };
        full(&train);
        full(&[&train[..], &["--dry-run"]].concat());
    }
    let card = infer::ModelPackage::open(&package).unwrap().card;
    let (bundled, point) =
        (infer::ModelPackage::bundled().unwrap().card, card.operating_point.unwrap());
    let old = bundled.operating_point.unwrap();
    assert_eq!((point.seg, point.cls), (old.seg, old.cls));
    assert!(point.provenance.contains("not chosen again"), "{}", point.provenance);
    assert_eq!(card.training.unwrap()["went_on_from"].as_str(), Some("mithras-standard"));
    assert!(card.license.contains(&bundled.license), "{}", card.license);

    let again = dir.join("again");
    let slide = text(&run.join("drawn.tiff"));
    let detect = ["detect", &slide, "--model", &text(&package), "--out", &text(&again)];
    mithras(&[&detect[..], &["--engine", "native"]].concat()).unwrap();
    let f1 = |run: &Path| {
        let (hit, missed, wrong) = scored(&truth, &accepted(run));
        2.0 * hit as f64 / (2 * hit + missed + wrong) as f64
    };
    let (before, after) = (f1(&run), f1(&again));
    assert!(after > before, "F1 {before} before the corrections, {after} after");
}
