//! `mithras report`: one page per case, as PDF and HTML.

use super::made::serve;
use super::page::in_a_browser;
use crate::upgrading::{detect, former, output_text, tiny};
use std::path::Path;
use std::process::Command;

fn mithras(args: &[&str]) -> String {
    let out = Command::new(crate::program()).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Text of the only page, words apart by one blank, and the names of the fonts that are inside.
fn read_back(pdf: &[u8]) -> (String, Vec<String>) {
    let document = lopdf::Document::load_mem(pdf).unwrap();
    let pages = document.get_pages();
    assert_eq!(pages.len(), 1, "one page");
    let text = document.extract_text(&[1]).unwrap();
    let size = document.get_dictionary(pages[&1]).unwrap().get(b"MediaBox").unwrap();
    let size: Vec<f32> = size.as_array().unwrap().iter().map(|v| v.as_float().unwrap()).collect();
    assert_eq!(size, [0.0, 0.0, 595.0, 842.0], "A4");
    let descriptors = document.objects.values().filter_map(|o| o.as_dict().ok());
    let inside = descriptors.filter(|d| d.has(b"FontFile2") || d.has(b"FontFile3"));
    let name = |d: &lopdf::Dictionary| {
        String::from_utf8_lossy(d.get(b"FontName").unwrap().as_name().unwrap()).into_owned()
    };
    (text.split_whitespace().collect::<Vec<_>>().join(" "), inside.map(name).collect())
}

/// What a page would show and cannot is named on it, with the reason.
#[test]
fn a_picture_that_cannot_be_read_is_named_on_the_page() {
    let dir = former();
    let at = dir.path();
    let here = |words: &[&str]| {
        let out = Command::new(crate::program()).current_dir(at).args(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", output_text(&out));
    };
    std::fs::remove_dir_all(at.join("run")).unwrap();
    let model = tiny();
    // At this point the weights, which mean nothing, accept figures.
    here(&detect(&model, &["one.tiff"], &["-q", "--operating-point", "0.3,0"]));
    let page = || {
        here(&["report", "run", "--out", "pages"]);
        let text = std::fs::read_to_string(at.join("pages/one.html")).unwrap();
        let pictures = text.matches("data:image/jpeg").count();
        (text, pictures)
    };
    let (whole, all) = page();
    assert!(!whole.contains("no picture") && !whole.contains("left white"), "{whole}");
    assert_eq!(all, 3, "slide, hotspot, figures");

    // The state of an early version lists no files: of later ones a missing picture is the slide's failure.
    let state = at.join("run/one/state.json");
    let mut early = crate::upgrading::json(&state);
    early["results"] = serde_json::Value::Null;
    std::fs::write(&state, early.to_string()).unwrap();
    let (slide, thumbnail) = (at.join("one.tiff"), at.join("run/one/thumbnail.jpg"));
    let kept = std::fs::read(&thumbnail).unwrap();
    std::fs::remove_file(&thumbnail).unwrap();
    for folder in [false, true] {
        if folder {
            std::fs::create_dir(&thumbnail).unwrap();
        }
        let (text, pictures) = page();
        let words = "one: no picture of the slide: thumbnail.jpg cannot be read";
        assert!(text.contains(words) && pictures == all - 1, "{text}");
    }
    std::fs::remove_dir(&thumbnail).unwrap();
    std::fs::write(&thumbnail, kept).unwrap();

    // Of the same size and time of change, and yet not to be read.
    let (bytes, about) = (std::fs::read(&slide).unwrap(), std::fs::metadata(&slide).unwrap());
    let put = |bytes: &[u8]| {
        std::fs::write(&slide, bytes).unwrap();
        let file = std::fs::File::options().write(true).open(&slide).unwrap();
        file.set_modified(about.modified().unwrap()).unwrap();
    };
    put(&vec![0; bytes.len()]);
    let (text, pictures) = page();
    assert!(text.contains("one: no picture of the hotspot: ") && pictures == all - 1, "{text}");
    // Tiles that cannot be decoded are white, which the page states as well.
    let mut holes = bytes.clone();
    holes[bytes.len() / 4..bytes.len() * 3 / 4].fill(0);
    put(&holes);
    let (text, _) = page();
    assert!(text.contains("white on the picture of the hotspot: "), "{text}");
    std::fs::remove_file(&slide).unwrap();
    let (text, pictures) = page();
    let words = "one: no picture of the hotspot: its file is not in its place";
    assert!(text.contains(words) && pictures == all - 1, "{text}");
    std::fs::remove_file(at.join("run/one/figures.jpg")).unwrap();
    let (text, pictures) = page();
    let words = "one: no pictures of the figures: figures.jpg cannot be read";
    assert!(text.contains(words) && pictures == all - 2, "{text}");
    put(&bytes);
    assert_eq!(page().1, all);
}

/// A case with much text keeps to one page, in smaller letters.
#[test]
fn a_case_with_many_words_has_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut list = String::from("slide,case");
    (0..12).for_each(|k| list += &format!(",field {k}"));
    for k in 0..10 {
        let name = format!("{}-{k}.tiff", "slide with a long name".repeat(3));
        crate::common::draw(Path::new(&at(&name)), 512, 512, 3, 1);
        list += &format!("\n{name},one");
        (0..12).for_each(|_| list += &format!(",{}", "many words ".repeat(40)));
    }
    std::fs::write(at("list.csv"), list).unwrap();
    mithras(&[
        "detect",
        "--list",
        &at("list.csv"),
        "--out",
        &at("run"),
        "--engine",
        "native",
        "--quiet",
    ]);
    mithras(&["report", &at("run"), "--out", &at("pages")]);
    // The page for the browser prints on one sheet, too, however much is on it.
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let shot = shot.map(|s| Path::new(&s).with_file_name("words.png"));
    let shot = shot.as_deref().map(Path::as_os_str);
    in_a_browser("report.mjs", &at("pages/one.html"), &["1".into()], shot);
    let (text, _) = read_back(&std::fs::read(at("pages/one.pdf")).unwrap());
    for part in ["10 slides", "and 2 more", "and 3 more, in cases.csv", "Research use only"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    if let Some(shots) = std::env::var_os("MITHRAS_SCREENSHOT") {
        std::fs::copy(at("pages/one.pdf"), Path::new(&shots).with_file_name("words.pdf")).unwrap();
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_case_of_two_slides_has_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    for (name, seed) in [("one", 3), ("two", 4), ("other", 5)] {
        crate::common::draw(&at(&format!("{name}.tiff")), 900, 800, seed, 4);
    }
    let list = "slide,case,born\none.tiff,Müller & Sön,1961\ntwo.tiff,Müller & Sön,1961\nother.tiff,B/2,1970\n";
    std::fs::write(at("list.csv"), list).unwrap();
    let (run, out) = (text(&at("run")), text(&at("pages")));
    mithras(&[
        "detect",
        "--list",
        &text(&at("list.csv")),
        "--out",
        &run,
        "--engine",
        "native",
        "--quiet",
    ]);
    let answer = mithras(&["report", &run, "--out", &out, "--mitotic-score", "gist"]);
    assert!(answer.contains("2 cases"), "{answer}");
    let pdf = std::fs::read(at("pages/Müller & Sön.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-1."));
    let (text, fonts) = read_back(&pdf);
    // Both fonts are inside, and only those letters of them that are used.
    assert!(fonts.iter().all(|f| f.as_bytes()[6] == b'+' && f.contains("DejaVuSans")), "{fonts:?}");
    assert_eq!(fonts.len(), 2);
    for part in [
        "Mitotic count: Müller & Sön",
        "at least ",
        " of 2 mm² (the rest is off the slide), the densest square",
        "by the network, not reviewed",
        "Mitotic rate",
        "born 1961",
        "Hotspot",
        "0.250",
        "whole slide",
        "95 %:",
        "Count, 95 %",
        "exact Poisson interval (Garwood 1936)",
        "less than the 2 mm2",
        "Operating point balanced",
        "Reviewer nobody",
        "Signed not signed",
        "not stated",
        "mithras-",
        "Research use only: not for diagnosis",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.to_lowercase().contains("grade") && !text.contains('?'), "{text}");
    assert!(pdf.len() < 600_000, "{} bytes", pdf.len());
    let page = std::fs::read_to_string(at("pages/Müller & Sön.html")).unwrap();
    for part in [
        "Müller &amp; Sön",
        "<dd>1961</dd>",
        "Mitotic rate",
        "at least ",
        "2 slides",
        "not signed",
        "Research use only",
        "less than the 2 mm2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("grade") && !page.contains("src=\"http") && !page.contains("1970"));
    // Slide, hotspot and figures as pictures, each with its words, in both forms.
    let captions: Vec<&str> = page
        .split("<figcaption>")
        .skip(1)
        .map(|c| c.split("</figcaption>").next().unwrap())
        .collect();
    assert_eq!((captions.len(), page.matches("src=\"data:image/jpeg;base64,").count()), (3, 3));
    assert!(captions[0].ends_with(": hotspot"), "{captions:?}");
    assert!(captions[1].contains("figures in the hotspot at x "), "{captions:?}");
    let counted = captions[2].split(' ').next().unwrap().parse::<usize>().unwrap();
    let best = if captions[0].starts_with("one") { "one" } else { "two" };
    let rows = mithras::export::read_detections(&at("run").join(best).join("detections.csv"));
    let figures = rows.unwrap().iter().filter(|r| r.accepted).count();
    assert!(counted > 1 && counted == figures, "{captions:?}, {figures} figures");
    assert!(captions[2].contains("counted figures of "), "{captions:?}");
    for caption in &captions {
        assert!(text.contains(caption), "{caption}: {text}");
    }
    let document = lopdf::Document::load_mem(&pdf).unwrap();
    let streams = document.objects.values().filter_map(|o| o.as_stream().ok());
    let images = streams.filter(|s| {
        s.dict.get(b"Subtype").and_then(lopdf::Object::as_name).is_ok_and(|n| n == b"Image")
    });
    assert_eq!(images.count(), 3, "images in the PDF");
    // The weights by the first letters of their digests, and the rule of the hotspot by its name.
    let counts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(at("run/one/counts.json")).unwrap()).unwrap();
    for stage in ["segmenter_sha256", "classifier_sha256"] {
        let digest = counts["model"][stage].as_str().unwrap();
        let (short, longer) = (&digest[..12], &digest[..13]);
        assert!(page.contains(short) && !page.contains(longer) && text.contains(short), "{page}");
    }
    assert!(page.contains("densest 2 mm² square (Chebyshev distance), centred on x "), "{page}");
    // The same case gives the same bytes; what holds no letters of a path is made safe.
    mithras(&["report", &run, "--out", &out, "--mitotic-score", "gist"]);
    assert_eq!(std::fs::read(at("pages/Müller & Sön.pdf")).unwrap(), pdf);
    assert!(at("pages/B_2.pdf").is_file());
    // A case with another name leaves no page under its former one; what others put there stays.
    std::fs::write(at("pages/letter.pdf"), b"by hand").unwrap();
    let list = std::fs::read_to_string(at("list.csv")).unwrap();
    std::fs::write(at("renamed.csv"), list.replace("B/2", "B 3")).unwrap();
    mithras(&["gather", &run, "--list", at("renamed.csv").to_str().unwrap()]);
    let answer = mithras(&["report", &run, "--out", &out]);
    assert!(answer.contains("removed, as its case is gone: B_2.pdf"), "{answer}");
    let there = |name: &str| at("pages").join(name).is_file();
    assert!(there("B 3.pdf") && there("B 3.html") && there("letter.pdf"));
    assert!(there("Müller & Sön.pdf") && !there("B_2.pdf") && !there("B_2.html"));

    // Reviewed and signed, as the page shows.
    let server = serve(&[Path::new(&run)]);
    let index = server.get("api/index").json();
    for name in ["one", "two"] {
        let slide =
            index["slides"].as_array().unwrap().iter().position(|s| s["name"] == name).unwrap();
        assert_eq!(server.review("anna", slide, [400.0, 400.0], "\"figure\"", true).status, 200);
    }
    let one = index["slides"].as_array().unwrap().iter().position(|s| s["name"] == "one").unwrap();
    let signed = server.post("api/sign", &format!(r#"{{"reviewer":"anna","slide":{one}}}"#)).json();
    assert_eq!(signed["slides"], serde_json::json!(["one", "two"]), "all slides of the case");
    drop(server);
    mithras(&["recount", &run, "--reviews", "anna"]);
    mithras(&["report", &run, "--out", &out]);
    let page = std::fs::read_to_string(at("pages/Müller & Sön.html")).unwrap();
    for part in
        ["(reviewed)", "<dt>Reviewer</dt><dd>anna</dd>", "<dt>Signed</dt><dd>anna, ", "version 1"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let png = shot.as_ref().map(|s| Path::new(s).with_file_name("case.png"));
    let case = at("pages/Müller & Sön.html").to_str().unwrap().to_owned();
    in_a_browser("report.mjs", &case, &["1".into()], png.as_deref().map(Path::as_os_str));
    // What was found comes before what the machine did.
    let html = std::fs::read_to_string(at("run/summary.html")).unwrap();
    let place = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words} is not there"));
    let order = ["figures in the hotspot", "Highest scores", "How busy each stage was"].map(place);
    assert!(order.is_sorted(), "{order:?}");
    let summary = at("run/summary.html").to_str().unwrap().to_owned();
    let png = shot.as_ref().map(|s| Path::new(s).with_file_name("summary.png"));
    in_a_browser("report.mjs", &summary, &["0".into()], png.as_deref().map(Path::as_os_str));
    if let Some(shots) = std::env::var_os("MITHRAS_SCREENSHOT") {
        let to = Path::new(&shots).with_file_name("case.pdf");
        std::fs::copy(at("pages/Müller & Sön.pdf"), to).unwrap();
    }
}

/// A run of slides with their cases, searched with seeded weights.
fn searched(folder: &Path, slides: &[(&str, &str, u64)]) -> String {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut list = String::from("slide,case\n");
    for (name, case, seed) in slides {
        crate::common::draw(Path::new(&at(&format!("{name}.tiff"))), 1200, 900, *seed, 4);
        list += &format!("{name}.tiff,{case}\n");
    }
    std::fs::write(at("list.csv"), list).unwrap();
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let model = model.to_str().unwrap();
    let run = at("run");
    let engine = ["--engine", "rten", "--threads", "1", "--operating-point", "0.3,0.1", "--quiet"];
    let base = ["detect", "--list", &at("list.csv"), "--out", &run, "--model", model];
    mithras(&[&base[..], &engine].concat());
    run
}

/// Cells of a table by the names of its columns.
fn cells(path: &Path) -> Vec<std::collections::HashMap<String, String>> {
    let mut table = csv::Reader::from_path(path).unwrap();
    table.deserialize().map(Result::unwrap).collect()
}

/// The hotspot that the reviewer placed, with its own area, is the number of the case: in the score, the tables and
/// the pages.
#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_placed_hotspot_counts_wherever_the_count_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let run = searched(dir.path(), &[("one", "A", 3), ("two", "A", 4)]);
    let at = |name: &str| Path::new(&run).join(name);
    let rows = |slide: &str| {
        let rows = mithras::export::read_detections(&at(slide).join("detections.csv")).unwrap();
        rows.into_iter().filter(|r| r.accepted).map(|r| [r.x_px, r.y_px]).collect::<Vec<_>>()
    };
    let (one, two) = (rows("one"), rows("two"));
    // On the slide with fewer figures, around one of them.
    let (own, figures, other) = match one.len() < two.len() {
        true => ("one", one, "two"),
        false => ("two", two, "one"),
    };
    let centre = figures[0];
    let server = serve(&[Path::new(&run)]);
    let place = |who: &str, slide: &str, [x, y]: [f64; 2]| {
        let id = usize::from(slide == "two");
        let body = format!(
            r#"{{"reviewer":"{who}","slide":{id},"preset":"own","shape":"circle","fields":1,"field_mm2":0.01,"apart":false,"centres_px":[[{x},{y}]]}}"#
        );
        assert_eq!(server.post("api/hotspot", &body).status, 200);
        id
    };
    let id = place("anna", own, centre);
    place("bert", other, [1.0, 1.0]);
    place("bert", own, [899.0, 1.0]);
    // A figure that the network missed in the hotspot, and one far from it.
    let far = if centre[0] > 600.0 { 100.0 } else { 1100.0 };
    for added in [[centre[0] + 40.0, centre[1]], [far, centre[1]]] {
        assert_eq!(server.review("anna", id, added, "\"figure\"", true).status, 200);
    }
    drop(server);
    // 0.01 mm2 are a circle of 56.4 um: 225.7 px.
    let near = |p: &&[f64; 2]| (p[0] - centre[0]).hypot(p[1] - centre[1]) <= 225.675_8;
    let inside = figures.iter().filter(near).count() + 1;
    assert!(inside < figures.len() + 2, "some are outside: {figures:?}");

    let recount = |more: &[&str]| -> serde_json::Value {
        let base = ["recount", &run, "--reviews", "anna", "--json", "--mitotic-score", "who-net"];
        serde_json::from_str(&mithras(&[&base[..], more].concat())).unwrap()
    };
    let densest = recount(&[]);
    let page = |more: &[&str]| {
        let pages = dir.path().join("pages");
        let base = ["report", &run, "--out", pages.to_str().unwrap()];
        mithras(&[&base[..], &["--mitotic-score", "who-net"], more].concat());
        std::fs::read_to_string(pages.join("A.html")).unwrap()
    };
    assert!(page(&[]).contains("the densest square of any slide"));
    let answer = recount(&["--hotspot", "reviewed"]);
    let slide = |answer: &serde_json::Value, name: &str| {
        let all = answer["slides"].as_array().unwrap();
        all.iter().find(|s| s["slide"] == name).unwrap().clone()
    };
    let (here, there) = (slide(&answer, own), slide(&answer, other));
    let placed = &here["placed_hotspot"];
    assert_eq!((&placed["reviewer"], &placed["figures"]), (&"anna".into(), &inside.into()));
    assert_eq!(placed["model_figures"], inside - 1);
    // Bert placed one on the other slide, and later one on this: these are not anna's.
    assert!(there["placed_hotspot"].is_null(), "{there}");
    assert!(there["notes"].to_string().contains("no hotspot was placed by anna"), "{there}");
    // So many in 0.01 mm2 are as many at least in the 2 mm2 of the scheme, not 200 times as many.
    let score = if inside < 2 { "at least G1" } else { "at least G2" };
    assert!(inside <= 20 && here["reviewed"]["mitotic_score"] == score, "{here}");
    assert_eq!(slide(&densest, own)["reviewed"]["mitotic_score"], "at least G2", "{densest}");

    let counts = cells(&at("counts.csv"));
    let line = counts.iter().find(|r| r["slide"] == own).unwrap();
    let cell = |r: &std::collections::HashMap<String, String>| {
        ["placed_by", "placed_rule", "placed_mm2", "placed_figures"].map(|c| r[c].clone())
    };
    let expected = ["anna", "own", "0.01", &inside.to_string()].map(str::to_owned);
    assert_eq!((cell(line), line["reviewed_mitotic_score"].as_str()), (expected.clone(), score));
    let cases = cells(&at("cases.csv"));
    assert_eq!((cases[0]["placed_slide"].as_str(), cell(&cases[0])), (own, expected));
    let summary = std::fs::read_to_string(at("summary.html")).unwrap();
    let words = format!(
        "{inside} figures in the hotspot of 0.01 mm² that anna placed (circle of 0.01 mm²)"
    );
    assert!(summary.contains(&words.replace("1 figures", "1 figure")), "{words}: {summary}");
    // In the line of the slide, and in that of its case.
    let short = format!("{inside} in 0.01 mm²");
    assert_eq!(summary.matches(&short).count(), 2, "{summary}");
    let now = page(&[]);
    let head = format!(
        "<p class=\"main\"><b>{inside}</b>mitotic figures in 0.01 mm², the hotspot that anna placed (circle of 0.01 mm²)"
    );
    assert!(now.contains(&head), "{head}: {now}");
    assert!(
        now.contains(&format!("(circle of 0.01 mm²) on {own}, centred on x {:.0}", centre[0])),
        "{now}"
    );
    assert!(now.contains(&format!("{score} (")), "{now}");
    assert!(now.contains(&format!("<figcaption>{own}: hotspot")), "{now}");
    // Without it the densest square counts again.
    recount(&[]);
    assert!(!std::fs::read_to_string(at("counts.csv")).unwrap().contains("placed_by"));
    assert!(page(&[]).contains("the densest square of any slide"));
}

/// A case of which nothing was looked at has no figures, which is not the count 0.
#[test]
fn a_case_without_a_result_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let run = searched(dir.path(), &[("one", "A", 3)]);
    let list = dir.path().join("list.csv");
    let text = std::fs::read_to_string(&list).unwrap() + "two.tiff,A\ngone.tiff,B\n";
    std::fs::write(&list, text).unwrap();
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let done = Command::new(crate::program())
        .args(["detect", "--resume", "--operating-point", "0.3,0.1", "--engine", "rten"])
        .args(["--threads", "1", "--out", &run, "--quiet", "--model"])
        .arg(model)
        .arg("--list")
        .arg(&list)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&done.stdout);
    assert!(words.contains("case B: not counted, 1 slide without a result"), "{words}");
    let cases = cells(&Path::new(&run).join("cases.csv"));
    let cell = |case: usize, name: &str| cases[case][name].clone();
    assert_eq!((cell(0, "not_counted").as_str(), cell(0, "figures").is_empty()), ("1", false));
    let lost = ["figures", "hotspot_count", "density_per_20_mm2", "analysed_mm2"];
    assert_eq!(lost.map(|name| cell(1, name)), ["", "", "", "0"]);
    let summary = std::fs::read_to_string(Path::new(&run).join("summary.html")).unwrap();
    let row = summary.split_once("<tr><td>B").unwrap().1.split_once("</tr>").unwrap().0;
    assert!(
        row.contains("<td class=\"n\">0</td><td class=\"n\">–</td><td class=\"n\">–</td>"),
        "{row}"
    );
    assert!(!row.contains("-0"), "{row}");
    let pages = dir.path().join("pages");
    let to = ["--out", pages.to_str().unwrap(), "--mitotic-score", "who-net"];
    // The pages are there; slides are missing.
    let report = Command::new(crate::program()).args(["report", &run]).args(to).output().unwrap();
    let words = String::from_utf8_lossy(&report.stdout);
    assert!(report.status.code() == Some(3) && words.contains("gone is not counted: "), "{words}");
    let page = std::fs::read_to_string(pages.join("B.html")).unwrap();
    assert!(page.contains("<b>not counted</b>no slide of this case has a result"), "{page}");
    let body = page.rsplit("</style>").next().unwrap();
    assert!(!body.contains("tissue") && !body.contains("-0.00"), "{body}");
    // What the scheme gives is named in full on paper, too.
    let (text, _) = read_back(&std::fs::read(pages.join("A.pdf")).unwrap());
    assert!(text.contains("Grade by") && text.contains("mitoses alone"), "{text}");
}

/// What the program writes of a run's cases is what a study reads.
#[test]
fn the_cases_of_a_run_go_into_a_study() {
    let dir = tempfile::tempdir().unwrap();
    let slides: Vec<(String, String, u64)> = "ABCDEFGH"
        .chars()
        .enumerate()
        .flat_map(|(k, c)| {
            let one = (format!("{c}-1"), c.to_string(), 3 + k as u64);
            // Two cases have a second slide.
            let more = (k % 4 == 0).then(|| (format!("{c}-2"), c.to_string(), 40 + k as u64));
            std::iter::once(one).chain(more)
        })
        .collect();
    let named: Vec<(&str, &str, u64)> =
        slides.iter().map(|(n, c, seed)| (n.as_str(), c.as_str(), *seed)).collect();
    let run = searched(dir.path(), &named);
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut clinical = String::from("id,months,died\n");
    for (k, c) in "ABCDEFGH".chars().enumerate() {
        clinical += &format!("{c},{},{}\n", 5 + (k * 7) % 31, u8::from(k % 3 != 1));
    }
    std::fs::write(at("clinical.csv"), clinical).unwrap();
    let cases = format!("{run}/cases.csv");
    let base = ["survival", "study", "--counts", &cases, "--clinical", &at("clinical.csv")];
    let rest = ["--event", "died", "--time", "months", "--replicates", "20"];
    let (join, out) = (["--join", "case=id", "--out"], at("study"));
    mithras(&[&base[..], &rest, &join, &[out.as_str()]].concat());
    let results: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("study/results.json")).unwrap())
            .unwrap();
    assert_eq!((&results["slides"], &results["patients"]), (&8.into(), &8.into()), "a row a case");
    let table = cells(&dir.path().join("study/cohort_slides.csv"));
    let written = cells(Path::new(&cases));
    assert_eq!((table.len(), written.len()), (8, 8));
    let two = written.iter().filter(|r| r["slides"] == "2").count();
    assert_eq!(two, 2);
    for row in &table {
        let case = written.iter().find(|c| c["case"] == row["id"]).unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert_eq!(number(&row["hotspot"]), number(&case["hotspot_count"]), "{row:?}");
        assert_eq!(number(&row["density"]), number(&case["density_per_20_mm2"]), "{row:?}");
    }
}
