//! `mithras report`: one page per case, as PDF and HTML.

use super::made::serve;
use super::page::in_a_browser;
use mithras::demo::{Container, Layout, Spec, write};
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

/// A case with much text keeps to one page, in smaller letters.
#[test]
fn a_case_with_many_words_has_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let layout = Layout::new(Spec::new(512, 512, 3, 1).unwrap()).unwrap();
    let mut list = String::from("slide,case");
    (0..12).for_each(|k| list += &format!(",field {k}"));
    for k in 0..10 {
        let name = format!("{}-{k}.tiff", "slide with a long name".repeat(3));
        write(&layout, Path::new(&at(&name)), Container::Auto, &mut mithras::progress::Silent)
            .unwrap();
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
        let layout = Layout::new(Spec::new(900, 800, seed, 4).unwrap()).unwrap();
        write(
            &layout,
            &at(&format!("{name}.tiff")),
            Container::Auto,
            &mut mithras::progress::Silent,
        )
        .unwrap();
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
        "mitotic figures in 2 mm²",
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
