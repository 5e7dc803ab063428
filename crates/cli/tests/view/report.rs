//! `mithras report`: one page per case, as PDF and HTML.

use super::made::serve;
use mithras::demo::{Container, Layout, Spec, write};
use std::path::Path;
use std::process::Command;

fn mithras(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_mithras")).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn occurrences(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|w| *w == what).count()
}

#[test]
fn a_case_of_two_slides_has_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    for (name, seed) in [("one", 3), ("two", 4), ("other", 5)] {
        let layout = Layout::new(Spec::new(900, 800, seed, 4).unwrap()).unwrap();
        write(&layout, &at(&format!("{name}.tiff")), Container::Auto, &mut |_, _| {}).unwrap();
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
        "rten",
        "--quiet",
    ]);
    let told = mithras(&["report", &run, "--out", &out, "--mitotic-score", "gist"]);
    assert!(told.contains("2 cases"), "{told}");
    let pdf = std::fs::read(at("pages/Müller & Sön.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-1."));
    assert_eq!(occurrences(&pdf, b"/Type /Page\n"), 1, "one page");
    // Both fonts are inside, and only those letters of them that are used.
    assert_eq!(occurrences(&pdf, b"/FontFile2") + occurrences(&pdf, b"/FontFile3"), 2);
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

    // Reviewed and signed, the page says so.
    let server = serve(&[Path::new(&run)]);
    let index = server.get("api/index").json();
    for name in ["one", "two"] {
        let slide =
            index["slides"].as_array().unwrap().iter().position(|s| s["name"] == name).unwrap();
        assert_eq!(server.say("anna", slide, [400.0, 400.0], "\"figure\"", true).status, 200);
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
    if let Some(shots) = std::env::var_os("MITHRAS_SCREENSHOT") {
        let to = Path::new(&shots).with_file_name("case.pdf");
        std::fs::copy(at("pages/Müller & Sön.pdf"), to).unwrap();
    }
}
