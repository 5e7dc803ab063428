//! The page: its model in Node, all of it in Chromium.

use super::made::{DOTS, found, huge, made, serve};
use super::recount;
use mitosis::count::hotspot;
use mitosis::hotspots::{HotspotRule, Shape};
use mitosis::{Level0, Mpp, Point, Resolution, ResolutionSource};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Serialize)]
struct Case {
    mpp: [f64; 2],
    points: Vec<[f64; 2]>,
}

fn page_file(name: &str) -> PathBuf {
    testkit::workspace().join("crates/review/src/view/page").join(name)
}

fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Spread and crowded points, ties in count and row, borders met exactly, none, one.
fn cases() -> Vec<Case> {
    let mut seed = 7;
    let mut all = vec![
        Case { mpp: [0.25, 0.25], points: vec![] },
        Case { mpp: [0.25, 0.5], points: vec![[10.0, 20.0]] },
        Case { mpp: [0.25, 0.25], points: vec![[9.0, 5.0], [3.0, 5.0], [9.0, 5.0], [4.0, 4.0]] },
    ];
    for k in 0..60_u32 {
        let n = [5, 40, 300, 2000][k as usize % 4];
        let side = [800.0, 6000.0, 40_000.0][k as usize % 3];
        let mut place = || (random(&mut seed) * side * 100.0).round() / 100.0;
        let mut points: Vec<[f64; 2]> = (0..n).map(|_| [place(), place()]).collect();
        if k % 5 == 0 {
            // On a grid whose pitch divides the square's side: many are on borders.
            let pitch = mitosis::count::HALF_SIDE_UM / 0.25 / 4.0;
            points.iter_mut().flatten().for_each(|v| *v = (*v / pitch).round() * pitch);
        }
        all.push(Case { mpp: [[0.25, 0.25], [0.23, 0.46]][k as usize % 2], points });
    }
    all
}

#[test]
fn the_page_finds_the_programs_hotspot() {
    let Some(node) = found(&["node"]) else {
        return eprintln!("SKIPPED: the page's own counting was not tested; it needs Node");
    };
    let cases = cases();
    let script = format!(
        "import {{ hotspot }} from {:?}; let text = ''; \
         for await (const part of process.stdin) text += part; \
         console.log(JSON.stringify(JSON.parse(text).map((c) => hotspot(c.points, c.mpp))));",
        format!("file://{}", page_file("model.js").display())
    );
    let mut child = Command::new(node)
        .args(["--input-type=module", "-e", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&cases).unwrap()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let answer: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer.len(), cases.len());
    for (case, answer) in cases.iter().zip(answer) {
        let points: Vec<Point<Level0>> =
            case.points.iter().map(|p| Point::new(p[0], p[1])).collect();
        let [x, y] = case.mpp.map(|v| Mpp::new(v).unwrap());
        let resolution = Resolution { x, y, source: ResolutionSource::User };
        let Some(spot) = hotspot(&points, &resolution).unwrap() else {
            assert_eq!(answer, Value::Null);
            continue;
        };
        assert_eq!(answer["count"], spot.count, "{} points", points.len());
        let number = |v: &Value| v.as_f64().unwrap();
        let near = |v: &Value, x: f64| assert!((number(v) - x).abs() < 1e-6, "{v} is not {x}");
        near(&answer["x"], spot.centre.x);
        near(&answer["y"], spot.centre.y);
        for (corner, at) in [("min", spot.min), ("max", spot.max)] {
            near(&answer[corner][0], at.x);
            near(&answer[corner][1], at.y);
        }
    }
}

#[test]
fn the_page_knows_who_differs_and_what_it_counts() {
    let Some(node) = found(&["node"]) else {
        return eprintln!("SKIPPED: the page's own counting was not tested; it needs Node");
    };
    let folder = tempfile::tempdir().unwrap();
    // By this name every Node takes it for a module.
    let model = folder.path().join("model.mjs");
    std::fs::copy(page_file("model.js"), &model).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/model.mjs");
    let run = Command::new(node).arg(script).arg(model).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// The keys that a page's script answers: `a: () => ...` and `'?': () => ...` in its table of keys.
fn answered(script: &str) -> Vec<String> {
    let table = script.split_once("const KEYS = {\n").unwrap().1.split_once("\n};").unwrap().0;
    let words: Vec<&str> = table.split_whitespace().collect();
    let keys = words.windows(2).filter_map(|pair| {
        let key = pair[0].strip_suffix(':')?.trim_matches('\'');
        let acts = pair[1] == "()" || pair[1] == "name,";
        (key.chars().count() == 1 && acts).then(|| key.to_owned())
    });
    keys.collect()
}

#[test]
fn every_key_of_the_viewer_is_in_its_help_and_in_the_guide() {
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (script, html) = (text(&page_file("view.js")), text(&page_file("index.html")));
    let guide = text(&testkit::workspace().join("docs/view.md"));
    let guide = guide.split_once("\n## Keys\n").unwrap().1.split_once("\n## ").unwrap().0;
    let keys = answered(&script);
    assert!(keys.len() >= 20 && keys.contains(&"?".into()), "{keys:?}");
    let is_named = |cells: &str, key: &String| {
        cells.split([',', ' ', '|']).map(str::trim).any(|word| word == key)
    };
    let help: Vec<&str> = html
        .split("<dt>")
        .skip(1)
        .map(|part| part.split_once("</dt>").unwrap().0)
        .chain(html.split_once("Keys (").unwrap().1.split(')').take(1))
        .collect();
    let rows: Vec<&str> = guide
        .lines()
        .filter_map(|l| l.strip_prefix("| ")?.split_once(" | "))
        .map(|r| r.0)
        .collect();
    for key in &keys {
        assert!(help.iter().any(|h| is_named(h, key)), "`{key}` is not in the viewer's help");
        assert!(rows.iter().any(|r| is_named(r, key)), "`{key}` is not in docs/view.md");
    }
}

/// The rules of hotspots that the page offers are those of the guide's table.
#[test]
fn the_presets_of_the_viewer_are_those_of_the_guide() {
    let script = std::fs::read_to_string(page_file("view.js")).unwrap();
    let table = script.split_once("const PRESETS = {\n").unwrap().1.split_once("\n};").unwrap().0;
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}: ")).unwrap().1;
        rest.split([',', ' ', '}']).next().unwrap().trim_matches('\'').to_owned()
    };
    let offered: std::collections::BTreeMap<String, (String, f64, f64)> = table
        .lines()
        .filter(|l| l.contains("shape: "))
        .map(|l| {
            let name = l.trim().split_once(':').unwrap().0.trim_matches('\'').replace('-', " ");
            let number = |what| field(l, what).parse::<f64>().unwrap();
            // The words of the page name the same numbers.
            let is_words = |w: &&str| w.contains(": ") && w.contains("mm²");
            let words = l.split('\'').find(is_words).unwrap();
            assert!(words.contains(&format!("{} mm²", field(l, "field_mm2"))), "{l}");
            let fields = number("fields");
            assert_eq!(words.contains(&format!("{fields} fields of")), fields > 1.0, "{l}");
            (name, (field(l, "shape"), fields, number("field_mm2")))
        })
        .collect();
    let guide = std::fs::read_to_string(testkit::workspace().join("docs/view.md")).unwrap();
    let guide = guide.split_once("\n## Hotspot\n").unwrap().1.split_once("\n## ").unwrap().0;
    let mut listed = std::collections::BTreeMap::new();
    for line in guide.lines().filter(|l| l.starts_with("| ") && l.contains(" mm2 |")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [names, shape, area] = cells[..] else { panic!("{line}") };
        let (fields, mm2) = match area.split_once(" fields of ") {
            Some((fields, mm2)) => (fields, mm2),
            None => ("1", area),
        };
        let mm2 = mm2.trim_end_matches(" mm2").parse::<f64>();
        let (Ok(fields), Ok(mm2)) = (fields.parse::<f64>(), mm2) else { continue };
        for name in names.split(", ") {
            let name = name.split(" (").next().unwrap().to_lowercase();
            let name = if name == "neuroendocrine" { "net".to_owned() } else { name };
            listed.insert(name, (shape.split(' ').next().unwrap().to_owned(), fields, mm2));
        }
    }
    assert_eq!(offered.len(), 7, "{offered:?}");
    assert_eq!(offered, listed);
    assert!(script.contains("densest 2 mm² square (Chebyshev distance)"));
    assert!(guide.contains("Chebyshev"), "{guide}");
    let files = std::fs::read_to_string(testkit::workspace().join("docs/artifacts.md")).unwrap();
    let rows = ["| `hotspot_count`, `hotspot` |", "- The hotspot ("];
    for row in rows.map(|start| files.split_once(start).unwrap().1.lines().next().unwrap()) {
        assert!(row.contains("Chebyshev") && row.contains("2 mm²"), "{row}");
    }
}

/// What is drawn in a colour of its own has a line in the legend, in that colour.
#[test]
fn every_mark_of_the_viewer_is_in_its_legend() {
    let text = |name: &str| std::fs::read_to_string(page_file(name)).unwrap();
    let (marks, html, css) = (text("marks.js"), text("index.html"), text("view.css"));
    let legend = html.split_once("class=\"legend\"").unwrap().1.split_once("</ul>").unwrap().0;
    let list = marks.split_once("Object.fromEntries([").unwrap().1.split_once(']').unwrap().0;
    let drawn: Vec<&str> = list.split(", ").map(|w| w.trim_matches('\'')).collect();
    assert!(drawn.len() >= 8, "{drawn:?}");
    for name in drawn.into_iter().chain(["region", "heat", "unread"]) {
        assert!(
            legend.contains(&format!("class=\"mark {name}"))
                || legend.contains(&format!("class=\"mark area {name}")),
            "{name}: {legend}"
        );
    }
    // The colours of areas come with the run.
    let flaws = testkit::workspace().join("crates/mithras/src/export/pictures.rs");
    let flaws = std::fs::read_to_string(flaws).unwrap();
    for (flaw, name) in [("OutOfFocus", "focus"), ("Pen", "pen"), ("Dirt", "dirt")] {
        let colour = flaws.split_once(&format!("Flaw::{flaw}, [")).unwrap().1;
        let colour = colour.split_once(']').unwrap().0;
        assert!(legend.contains(&format!("class=\"mark area {name}")), "{name}: {legend}");
        let rule = format!(".mark.{name} {{ background: rgba({colour}, .35); }}");
        assert!(css.contains(&rule), "{rule}");
    }
}

/// axe-core in the active Python environment, where `scripts/setup.sh` puts it.
fn axe() -> Option<PathBuf> {
    let lib = PathBuf::from(std::env::var_os("VIRTUAL_ENV")?).join("lib");
    let file = |python: std::fs::DirEntry| {
        python.path().join("site-packages/axe_playwright_python/axe.min.js")
    };
    std::fs::read_dir(lib).ok()?.flatten().map(file).find(|f| f.is_file())
}

/// Runs a script of `tests/browser` with its arguments and a folder or file for screenshots; nothing
/// where Chromium or a Node with WebSockets is missing.
pub fn in_a_browser(script: &str, url: &str, answer: &[String], shot: Option<&OsStr>) -> bool {
    let chromium = found(&["chromium", "chromium-browser", "google-chrome"]);
    let speaks = "typeof WebSocket === 'function' || process.exit(1)";
    let node = found(&["node"]).filter(|node| {
        let probe = Command::new(node).args(["--experimental-websocket", "-e", speaks]).output();
        probe.is_ok_and(|p| p.status.success())
    });
    let (Some(chromium), Some(node)) = (chromium, node) else {
        eprintln!(
            "SKIPPED: {script} was not run; it needs chromium and Node 20.10 or later \
             (scripts/setup.sh installs both)"
        );
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script);
    let run = Command::new(node)
        .envs(axe().map(|file| ("AXE", file)))
        .arg("--experimental-websocket")
        .arg(script)
        .arg(url)
        .arg(chromium)
        .args(answer)
        .args(shot)
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{}{answer}", String::from_utf8_lossy(&run.stdout));
    eprint!("{answer}");
    true
}

#[test]
fn a_reviewer_in_a_real_browser() {
    let made = made();
    let server = serve(&[&made.run]);
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let dots = [serde_json::to_string(&DOTS).unwrap()];
    if !in_a_browser("view.mjs", &server.url, &dots, shot.as_deref()) {
        return;
    }
    // What the page showed as saved is on disk: one figure taken out, one added.
    let out = Command::new(crate::program())
        .arg("recount")
        .arg(&made.run)
        .args(["--reviews", "anna", "--json"])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let dots = &answer["slides"][0];
    assert_eq!((&dots["taken_out"], &dots["added"]), (&1.into(), &1.into()), "{answer}");
    // With both reviewers the decision counts where they differ: that dot is a figure again.
    let both = recount(&made, "anna+bert").unwrap();
    let dots = &both["slides"][0];
    assert_eq!((&dots["taken_out"], &dots["added"]), (&0.into(), &1.into()), "{both}");
    assert_eq!(both["reviewer"], "anna+bert");
    assert!(dots["notes"].to_string().contains("1 place on which they differ settled"), "{dots}");
    assert!(recount(&made, "anna+nobody").unwrap_err().contains("anna+nobody"));
}

#[test]
fn hotspot_regions_comments_and_signature_in_a_real_browser() {
    let made = made();
    let server = serve(&[&made.run]);
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let dots = [serde_json::to_string(&DOTS).unwrap()];
    if !in_a_browser("desk.mjs", &server.url, &dots, shot.as_deref()) {
        return;
    }
    // What the page showed as kept is on disk, where detection and QuPath find it.
    let reviews = made.run.join("reviews");
    let drawn: Value =
        serde_json::from_slice(&std::fs::read(reviews.join("regions/dots.geojson")).unwrap())
            .unwrap();
    assert_eq!(drawn["mithras"]["reviewer"], "anna");
    assert_eq!(drawn["features"][0]["properties"]["name"], "front");
    assert_eq!(drawn["features"][1]["properties"]["classification"]["name"], "Exclude");
    let placed = std::fs::read_to_string(reviews.join("hotspots.log")).unwrap();
    let last: Value = serde_json::from_str(placed.lines().last().unwrap()).unwrap();
    assert_eq!((&last["schema"], &last["reviewer"]), (&"mithras.hotspot/1".into(), &"anna".into()));
    let log = std::fs::read_to_string(reviews.join("anna.jsonl")).unwrap();
    assert!(log.contains("\"comment\":\"plate seen from the side\""), "{log}");
    // A name and a look write nothing: there is one log, of reviewers and their verdicts.
    let logs: Vec<_> = std::fs::read_dir(&reviews)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".jsonl"))
        .collect();
    assert_eq!(logs, ["anna.jsonl"]);
    // The count with the hotspot that she placed.
    let out = Command::new(crate::program())
        .arg("recount")
        .arg(&made.run)
        .args(["--reviews", "anna", "--hotspot", "reviewed", "--json"])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    let placed = &answer["slides"][0]["placed_hotspot"];
    assert_eq!(
        (&placed["reviewer"], &placed["preset"]),
        (&"anna".into(), &"melanoma".into()),
        "{answer}"
    );
    // A circle of 1 mm2 on a slide of 0.65 x 0.525 mm: what hangs over is not counted as looked at.
    let area = placed["area_mm2"].as_f64().unwrap();
    assert!(area > 0.2 && area < 0.342, "{placed}");
    assert!(answer["slides"][1]["placed_hotspot"].is_null());
}

#[test]
fn the_page_finds_the_densest_places_by_every_rule() {
    let Some(node) = found(&["node"]) else {
        return eprintln!("SKIPPED: the page's own counting was not tested; it needs Node");
    };
    let rules = [
        HotspotRule::PAPER,
        HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.237, apart: false },
        HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.2, apart: true },
        HotspotRule { shape: Shape::Square, fields: 1, field_mm2: 5.0, apart: false },
    ];
    let cases: Vec<Case> = cases().into_iter().filter(|c| c.points.len() <= 300).collect();
    let script = format!(
        "import {{ countOf, hotspots, onSlideMm2 }} from {:?}; let text = ''; \
         for await (const part of process.stdin) text += part; \
         const [rules, cases] = JSON.parse(text); \
         console.log(JSON.stringify(cases.map((c) => rules.map((r) => hotspots(c.points, c.mpp, r, 3).map((s) => ({{ ...s, again: countOf(c.points, c.mpp, r, s.centres), mm2: onSlideMm2(r, s.centres, c.mpp, [9000, 7000]) }}))))));",
        format!("file://{}", page_file("model.js").display())
    );
    let mut child = Command::new(node)
        .args(["--input-type=module", "-e", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&(&rules, &cases)).unwrap()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let answer: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    let mut cut = 0;
    for (case, answer) in cases.iter().zip(answer) {
        let points: Vec<Point<Level0>> =
            case.points.iter().map(|p| Point::new(p[0], p[1])).collect();
        let [x, y] = case.mpp.map(|v| Mpp::new(v).unwrap());
        let resolution = Resolution { x, y, source: ResolutionSource::User };
        for (rule, answer) in rules.iter().zip(answer.as_array().unwrap()) {
            let own = rule.densest(&points, &resolution, 3).unwrap();
            assert_eq!(
                answer.as_array().unwrap().len(),
                own.len(),
                "{rule:?}, {} points",
                points.len()
            );
            for (spot, answer) in own.iter().zip(answer.as_array().unwrap()) {
                assert_eq!(
                    (&answer["count"], &answer["again"]),
                    (&spot.count.into(), &spot.count.into()),
                    "{rule:?}"
                );
                // As far as on a slide that many of them hang over.
                let mm2 = rule.on_slide_mm2(&spot.centres, [9000.0, 7000.0], &resolution);
                let found = answer["mm2"].as_f64().unwrap();
                assert!((found - mm2).abs() < 1e-9, "{rule:?}: {found} is not {mm2}");
                cut += usize::from(mm2 > 0.0 && mm2 < rule.area_mm2() - 1e-6);
                let centres: Vec<[f64; 2]> = spot.centres.iter().map(|c| [c.x, c.y]).collect();
                let reported_centres: Vec<[f64; 2]> =
                    serde_json::from_value(answer["centres"].clone()).unwrap();
                // JSON is read to the last digit but one.
                let same =
                    |(a, b): (&[f64; 2], &[f64; 2])| (0..2).all(|k| (a[k] - b[k]).abs() < 1e-9);
                assert!(reported_centres.iter().zip(&centres).all(same), "{rule:?}");
            }
        }
    }
    assert!(cut > 0, "none hangs over the edge");
}

#[test]
fn a_hundred_thousand_candidates_on_a_huge_slide_in_a_real_browser() {
    let made = huge();
    let server = serve(&[&made.run]);
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    in_a_browser("huge.mjs", &server.url, &[], shot.as_deref());
}
