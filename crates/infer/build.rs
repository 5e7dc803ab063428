//! Embeds every package under `models/` (its card and its ONNX files), so that a new package
//! needs no code. With the feature `weights-beside` cards alone.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let models = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../models");
    // A folder is watched with everything in it. A missing one is not watched: cargo would then
    // run this script on every build.
    if models.is_dir() {
        println!("cargo::rerun-if-changed={}", models.display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let lock = models.join("../Cargo.lock");
    if lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    let version = locked(&fs::read_to_string(&lock).unwrap_or_default(), "rten");
    println!("cargo::rustc-env=RTEN_VERSION={version}");

    let beside = env::var_os("CARGO_FEATURE_WEIGHTS_BESIDE").is_some();
    let mut code = String::from(
        "type Files = &'static [(&'static str, Option<&'static [u8]>)];\n\
         /// Packages built in: name, then file names and bytes, if they are built in, too.\n\
         static BUNDLED: &[(&str, Files)] = &[\n",
    );
    for package in children(&models) {
        let dir = models.join(&package);
        if !dir.join("card.toml").is_file() {
            continue;
        }
        writeln!(code, "    ({package:?}, &[").unwrap();
        for file in children(&dir) {
            let path = dir.join(&file).canonicalize().unwrap();
            if file.ends_with(".onnx") && beside {
                writeln!(code, "        ({file:?}, None),").unwrap();
            } else if file == "card.toml" || file.ends_with(".onnx") {
                writeln!(code, "        ({file:?}, Some(include_bytes!({path:?}))),").unwrap();
            }
        }
        code.push_str("    ]),\n");
    }
    code.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("bundled.rs"), code).unwrap();
}

/// Version of a package in a lock file, for reports.
fn locked(lock: &str, package: &str) -> String {
    let mut lines = lock.lines().skip_while(|l| *l != format!("name = \"{package}\""));
    let version = lines.nth(1).and_then(|l| l.strip_prefix("version = "));
    version.map_or_else(|| "unknown".into(), |v| v.trim_matches('"').to_string())
}

fn children(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
