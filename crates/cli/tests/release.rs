//! What an archive contains in addition to the program, and what `scripts/release.sh` makes and refuses.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

#[test]
fn man_pages_and_completions_are_made_of_the_help() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("share/all");
    let mut command = Command::new(crate::training_program());
    command.arg("manual").arg("--out").arg(&out).assert().success();
    for file in ["mithras.bash", "_mithras", "mithras.fish"] {
        let text = fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains("accept-engine"), "{file} knows every flag");
    }
    let page = fs::read_to_string(out.join("mithras-detect.1")).unwrap();
    assert!(page.contains("operating\\-point") && page.contains("slides/"), "with its examples");
    assert!(out.join("mithras.1").is_file() && out.join("mithras-slide-info.1").is_file());
    let help = Command::new(crate::training_program()).arg("--help").output().unwrap();
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
    for name in ["rten", "clap", "mithras-standard", "mithras-atypical"] {
        assert!(named(name).is_some(), "{name}");
    }
    for name in ["tch", "assert_cmd", "insta", "mithras-cli"] {
        assert!(named(name).is_none(), "{name} is not in the program");
    }
    for part in parts {
        assert!(!part["licenses"].as_array().unwrap().is_empty(), "{part}");
        assert_eq!(part["hashes"][0]["content"].as_str().unwrap().len(), 64, "{part}");
    }
    let texts = fs::read_to_string(dir.path().join("licenses.txt")).unwrap();
    assert!(texts.contains("Permission is hereby granted") && texts.contains("mithras-standard:"));
}

/// Exit code and output of `scripts/release.sh` for a program.
fn release(binary: &Path, out: &Path) -> (i32, String) {
    let script = testkit::workspace().join("scripts/release.sh");
    let ran = Process::new("bash")
        .arg(script)
        .args(["--profile", "dev", "--binary"])
        .arg(binary)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    let printed = [ran.stdout, ran.stderr].concat();
    (ran.status.code().unwrap(), String::from_utf8_lossy(&printed).into_owned())
}

/// The archive of a release matches its checksums, and the newest symbols are named if they are
/// newer than Debian 11's.
fn is_whole(code: i32, printed: &str, out: &Path) {
    let archive =
        printed.lines().find(|l| l.ends_with(".tar.gz")).unwrap_or_else(|| panic!("{printed}"));
    let unpacked = out.join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar = Process::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&unpacked).status();
    assert!(tar.unwrap().success());
    let checked = |folder: &Path, sums: &str| {
        let ran =
            Process::new("sha256sum").args(["-c", sums]).current_dir(folder).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{text}");
        text
    };
    let archive = Path::new(archive);
    let sums = format!("{}.sha256", archive.file_name().unwrap().to_str().unwrap());
    checked(archive.parent().unwrap(), &sums);
    let folder = fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    let text = checked(&folder, "SHA256SUMS");
    for file in ["mithras", "share/mithras.1", "sbom.cdx.json", "licenses.txt", "NOTICE"] {
        assert!(text.contains(&format!("./{file}: OK")), "{file} is not in the archive: {text}");
    }
    // What is packed is the stripped program, not a link to the building machine.
    assert!(fs::symlink_metadata(folder.join("mithras")).unwrap().is_file());
    let newest =
        printed.split("needs glibc ").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    let number = |text: &str| text.split('.').map(|p| p.parse().unwrap()).collect::<Vec<u32>>();
    let newer = newest != "none" && number(newest) > vec![2, 31];
    assert_eq!(code, if newer { 3 } else { 0 }, "{printed}");
    assert_eq!(printed.contains(&format!("GLIBC_{newest}")), newer, "{printed}");
    assert_eq!(printed.contains("--target"), newer, "{printed}");
}

#[test]
fn a_release_of_this_program_is_whole_or_refused_for_libtorch() {
    let dir = tempfile::tempdir().unwrap();
    let (code, printed) = release(Path::new(crate::training_program()), dir.path());
    if cfg!(feature = "train") {
        // The training build needs what is not on every Linux, wherever it was built.
        let named = ["libtorch", "libstdc++", "libc10"].iter().any(|l| printed.contains(l));
        assert!(code == 1 && (named || printed.contains("folders of this machine")), "{printed}");
        assert!(!printed.contains(".tar.gz"), "{printed}");
        return;
    }
    is_whole(code, &printed, dir.path());
}

const STAND_IN: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int n, char **word) {
    char path[4096];
    if (n < 4 || strcmp(word[1], "manual")) return 2;
    snprintf(path, sizeof path, "%s/mithras.1", word[3]);
    FILE *f = fopen(path, "w");
    return f && fputs(".TH MITHRAS 1", f) >= 0 && !fclose(f) ? 0 : 1;
}
"#;

/// A short program in place of `mithras manual`; none without a C compiler.
fn compile_substitute(dir: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = dir.join("compile_substitute.c");
    fs::write(&source, STAND_IN).unwrap();
    let program = dir.join(name);
    let made = Process::new("cc").arg(&source).args(flags).arg("-o").arg(&program).output();
    let made = made.ok().filter(|o| o.status.success());
    if made.is_none() {
        eprintln!("SKIPPED: no C compiler makes {name}");
    }
    made.map(|_| program)
}

#[test]
fn programs_that_run_elsewhere_are_packed_and_others_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("lib")).unwrap();
    let library = at("lib/libodd.so");
    fs::write(at("odd.c"), "int odd(void) { return 1; }\n").unwrap();
    let made = Process::new("cc")
        .args(["-shared", "-fPIC"])
        .arg(at("odd.c"))
        .arg("-o")
        .arg(&library)
        .output();
    if !made.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: no C compiler");
        return;
    }
    if let Some(plain) = compile_substitute(dir.path(), "plain", &[]) {
        let (code, printed) = release(&plain, &at("out"));
        is_whole(code, &printed, &at("out"));
    }
    if let Some(all_in_it) = compile_substitute(dir.path(), "static", &["-static"]) {
        let (code, printed) = release(&all_in_it, &at("out-static"));
        assert_eq!(code, 0, "{printed}");
        is_whole(code, &printed, &at("out-static"));
    }
    let needs = ["-Wl,--no-as-needed", library.to_str().unwrap()];
    let names = ["-Wl,-rpath,/home/somebody/lib"];
    for (name, flags, word) in [
        ("odd", &needs[..], "libraries that are not everywhere: "),
        ("led", &names[..], "names folders of this machine"),
    ] {
        let Some(program) = compile_substitute(dir.path(), name, flags) else { continue };
        let (code, printed) = release(&program, &at(&format!("out-{name}")));
        assert!(code == 1 && printed.contains(word), "{printed}");
        assert!(!printed.contains(".tar.gz"), "nothing is packed: {printed}");
    }
}
