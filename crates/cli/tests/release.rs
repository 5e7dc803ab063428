//! What goes into an archive beside the program.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::process::Command as Process;

#[test]
fn man_pages_and_completions_are_made_of_the_help() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("share/all");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mithras"));
    command.arg("manual").arg("--out").arg(&out).assert().success();
    for file in ["mithras.bash", "_mithras", "mithras.fish"] {
        let text = fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains("accept-engine"), "{file} knows every flag");
    }
    let page = fs::read_to_string(out.join("mithras-detect.1")).unwrap();
    assert!(page.contains("operating\\-point") && page.contains("slides/"), "with its examples");
    assert!(out.join("mithras.1").is_file() && out.join("mithras-slide-info.1").is_file());
    let help = Command::new(env!("CARGO_BIN_EXE_mithras")).arg("--help").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("manual"), "a verb for packages");
}

#[test]
fn the_bill_of_materials_names_what_is_built_in_and_no_more() {
    let root = testkit::workspace();
    let script = root.join("scripts/sbom.py");
    let new = Process::new("python3").args(["-c", "import tomllib"]).output();
    if !new.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: scripts/sbom.py needs Python 3.11");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let made = Process::new("python3")
        .arg(script)
        .args(["--target", &host, "--out"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let bill: Value =
        serde_json::from_slice(&fs::read(dir.path().join("sbom.cdx.json")).unwrap()).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let parts = bill["components"].as_array().unwrap();
    let named = |name: &str| parts.iter().find(|p| p["name"] == name);
    for name in ["rten", "clap", "mithras-tiny", "mithras-atypical"] {
        assert!(named(name).is_some(), "{name}");
    }
    for name in ["tch", "assert_cmd", "insta", "cli"] {
        assert!(named(name).is_none(), "{name} is not in the program");
    }
    for part in parts {
        assert!(!part["licenses"].as_array().unwrap().is_empty(), "{part}");
        assert_eq!(part["hashes"][0]["content"].as_str().unwrap().len(), 64, "{part}");
    }
    let texts = fs::read_to_string(dir.path().join("licenses.txt")).unwrap();
    assert!(texts.contains("Permission is hereby granted") && texts.contains("mithras-tiny:"));
}
