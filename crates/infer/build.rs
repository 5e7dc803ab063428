//! Embeds every package under `models/` (its card and its ONNX files), so that a new package
//! needs no code; a network that several packages share is embedded once. With the feature
//! `external-weights` only the cards.

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

    let external = env::var_os("CARGO_FEATURE_EXTERNAL_WEIGHTS").is_some();
    let (mut code, mut packages) = (String::new(), String::new());
    let mut seen: Vec<(Vec<u8>, String)> = vec![];
    for package in children(&models) {
        let dir = models.join(&package);
        if !dir.join("card.toml").is_file() {
            continue;
        }
        writeln!(packages, "    ({package:?}, &[").unwrap();
        for file in children(&dir) {
            if file != "card.toml" && !file.ends_with(".onnx") {
                continue;
            }
            let path = dir.join(&file).canonicalize().unwrap();
            let bytes = fs::read(&path).unwrap();
            let place = match seen.iter().position(|(b, _)| *b == bytes) {
                Some(place) => place,
                None => {
                    let place = seen.len();
                    if file.ends_with(".onnx") && external {
                        writeln!(code, "static FILE_{place}: Option<&[u8]> = None;").unwrap();
                    } else {
                        let bytes = format!("Some(include_bytes!({path:?}))");
                        writeln!(code, "static FILE_{place}: Option<&[u8]> = {bytes};").unwrap();
                    }
                    seen.push((bytes, format!("{package}/{file}")));
                    place
                }
            };
            let home = &seen[place].1;
            writeln!(packages, "        ({file:?}, {home:?}, &FILE_{place}),").unwrap();
        }
        packages.push_str("    ]),\n");
    }
    code.push_str(
        "type Files = &'static [(&'static str, &'static str, &'static Option<&'static [u8]>)];\n\
         /// Packages built in: name, then file names, the place below the weights' folder where the bytes\n\
         /// are, and the bytes, if they are built in, too. Equal files have one place.\n\
         static BUNDLED: &[(&str, Files)] = &[\n",
    );
    code.push_str(&packages);
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
