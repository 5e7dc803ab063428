//! What is found on a machine, and what is left aside.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// `mithras doctor --json` in a folder, with nothing of this machine's Python but `venv`, if active.
fn doctor(here: &Path, venv: Option<&Path>) -> Value {
    doctor_with(here, venv, &["--runs", "0"])
}

fn doctor_with(here: &Path, venv: Option<&Path>, words: &[&str]) -> Value {
    let mut command = Command::new(crate::program());
    for variable in ["CONDA_PREFIX", "ORT_DYLIB_PATH", "OPENVINO_C_PATH", "INTEL_OPENVINO_DIR"] {
        command.env_remove(variable);
    }
    command.env("PATH", "").env("HOME", here).env("VIRTUAL_ENV", venv.unwrap_or(Path::new("")));
    let output = command.current_dir(here).args(["doctor", "--json"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A virtual environment with files of the names that engines have.
fn venv(at: &Path) -> (PathBuf, [PathBuf; 2]) {
    let packages = at.join("lib/python3.12/site-packages");
    let engines = ["onnxruntime/capi/libonnxruntime.so.1", "openvino/libs/libopenvino_c.so"];
    let engines = engines.map(|e| packages.join(e));
    for engine in &engines {
        fs::create_dir_all(engine.parent().unwrap()).unwrap();
        fs::write(engine, "no library").unwrap();
    }
    fs::write(at.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    (at.to_owned(), engines)
}

fn listed(report: &Value, library: &Path) -> bool {
    let all = report["libraries"].as_array().unwrap();
    all.iter().any(|l| l["path"] == library.display().to_string().as_str())
}

#[test]
#[cfg(target_os = "linux")]
fn an_environment_that_is_merely_above_is_left_aside_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let work = dir.join("a/b");
    fs::create_dir_all(&work).unwrap();
    let (above, engines) = venv(&dir.join(".venv"));
    let (active, other) = venv(&work.join("venv"));
    let report = doctor(&work, None);
    assert_eq!(report["schema"], "mithras.doctor/1");
    let advice = report["advice"].to_string();
    // Who has no such device is not asked about it.
    if !Path::new("/proc/driver/nvidia").exists() {
        assert!(!advice.to_lowercase().contains("cuda"), "{advice}");
    }
    for engine in engines.iter().chain(&other) {
        assert!(!listed(&report, engine), "{}", engine.display());
        assert!(advice.contains(&engine.display().to_string()), "{advice}");
    }
    assert!(advice.contains(&format!("VIRTUAL_ENV={}", above.display())), "{advice}");

    // Asked for, by being active.
    let report = doctor(&work, Some(&active));
    let advice = report["advice"].to_string();
    for (taken, left) in other.iter().zip(&engines) {
        assert!(listed(&report, taken) && !listed(&report, left), "{report}");
        assert!(!advice.contains(&format!("{} is left aside", taken.display())), "{advice}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_engine_does_not_depend_on_the_working_folder() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    venv(&dir.join(".venv"));
    let crop = dir.join("crop.png");
    image::RgbImage::from_pixel(128, 128, image::Rgb([200, 150, 190])).save(&crop).unwrap();
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let output = Command::new(crate::program())
        .args(["classify", "--json", "--engine", "auto", "--model"])
        .arg(&tiny)
        .arg(&crop)
        .arg("--out")
        .arg(dir.join("out.csv"))
        .current_dir(&dir)
        .env_remove("CONDA_PREFIX")
        .env("PATH", "")
        .env("HOME", &dir)
        .env("VIRTUAL_ENV", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = ran["engine"].to_string();
    assert!(!text.contains(".venv"), "it was not even tried: {text}");
}

/// Without an environment the report advises to install what the active one has, and with it there is nothing to
/// advise, and the engine runs.
#[test]
fn what_pip_installs_is_found_and_not_advised_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let words = ["--runs", "1", "--model", tiny.to_str().unwrap()];
    let Some(active) = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from) else {
        return eprintln!("SKIPPED: no environment with engines is active");
    };
    let [without, with] =
        [None, Some(active.as_path())].map(|venv| doctor_with(dir.path(), venv, &words));
    let error = |report: &Value, [engine, provider]: [&str; 2]| {
        let all = report["engines"].as_array().unwrap();
        let row = all.iter().find(|e| e["engine"] == engine && e["provider"] == provider).unwrap();
        row["error"].as_str().unwrap_or_default().to_owned()
    };
    let advice = |report: &Value| report["advice"].to_string();
    for remedy in [
        "pip install openvino: faster",
        "pip install onnxruntime: faster",
        "pip install openslide-bin: NDPI",
    ] {
        assert!(advice(&without).contains(remedy), "{without}");
        assert!(!advice(&with).contains(remedy), "{with}");
    }
    for (engine, remedy) in [
        (["onnxruntime", "cpu"], "pip install onnxruntime, or name the library itself"),
        (["openvino", "openvino"], "pip install openvino, or name libopenvino_c"),
    ] {
        let lacking = error(&without, engine);
        assert!(lacking.contains(remedy), "{engine:?}: {without}");
        assert_eq!(error(&with, engine), "", "{engine:?}: {with}");
    }
}

/// Where the runtime is installed, but not the plug-in, the plug-in is advised, and where it is there, too, it is not.
#[test]
#[cfg(target_os = "linux")]
fn the_plug_in_of_openvino_is_advised_where_it_is_missing_alone() {
    let dir = tempfile::tempdir().unwrap();
    let packages = std::env::var_os("VIRTUAL_ENV").map(|v| Path::new(&v).join("lib"));
    let below = |lib: PathBuf| fs::read_dir(lib).unwrap().next().unwrap().unwrap().path();
    let Some(packages) = packages.map(|lib| below(lib).join("site-packages")) else {
        return eprintln!("SKIPPED: no environment with engines is active");
    };
    let venv = dir.path().join("venv");
    let own = venv.join("lib/python3.12/site-packages");
    fs::create_dir_all(&own).unwrap();
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    let link = |name: &str| {
        let from = packages.join(name);
        assert!(from.is_dir(), "{}", from.display());
        std::os::unix::fs::symlink(from, own.join(name)).unwrap();
    };
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let words = ["--runs", "1", "--model", tiny.to_str().unwrap()];
    let error = || {
        let report = doctor_with(dir.path(), Some(&venv), &words);
        let all = report["engines"].as_array().unwrap();
        let is = |e: &&Value| e["engine"] == "onnxruntime" && e["provider"] == "openvino";
        all.iter().find(is).unwrap()["error"].as_str().unwrap_or_default().to_owned()
    };
    link("onnxruntime");
    let lacking = error();
    assert!(lacking.contains("no OpenVINO provider plug-in"), "{lacking}");
    assert!(lacking.contains("pip install onnxruntime onnxruntime-ep-openvino"), "{lacking}");
    link("onnxruntime_ep_openvino");
    // It serves Intel's processors only: of others it is not advised again.
    let there = error();
    assert!(!there.contains("pip install"), "{there}");
    assert!(there.is_empty() || there.contains("take the engine openvino"), "{there}");
}

/// The row of CUDA names what installs it: the runtime where none is here, else its build for GPUs.
#[test]
fn cuda_names_what_installs_it() {
    let dir = tempfile::tempdir().unwrap();
    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let words = ["--runs", "1", "--model", tiny.to_str().unwrap()];
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    for venv in [None, active.as_deref()] {
        let report = doctor_with(dir.path(), venv, &words);
        let engines = report["engines"].as_array().unwrap();
        let cuda = engines.iter().find(|e| e["provider"] == "cuda").unwrap();
        let Some(error) = cuda["error"].as_str() else {
            eprintln!("SKIPPED: CUDA runs here");
            continue;
        };
        let has =
            report["libraries"].as_array().unwrap().iter().any(|l| l["what"] == "onnxruntime");
        match has {
            true => assert!(
                error.contains("; pip install onnxruntime-gpu if this machine has"),
                "{error}"
            ),
            false => assert!(error.contains("remedy: pip install onnxruntime, or name"), "{error}"),
        }
    }
    if active.is_none() {
        eprintln!("SKIPPED: no environment with a runtime is active");
    }
}
