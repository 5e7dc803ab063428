//! What the project depends on, against `deny.toml`: licences, sources, refused and doubled crates.

use cargo_metadata::{Metadata, MetadataCommand};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

fn rules() -> Deny {
    let text = std::fs::read_to_string(testkit::workspace().join("deny.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

fn everything() -> Metadata {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    MetadataCommand::new()
        .manifest_path(testkit::workspace().join("Cargo.toml"))
        .features(cargo_metadata::CargoOpt::AllFeatures)
        // What the build has fetched: other platforms' crates are not there.
        .other_options(["--offline", "--locked", "--filter-platform", &host].map(str::to_owned))
        .exec()
        .expect("cargo metadata")
}

fn allowed(expression: &str, allow: &BTreeSet<String>) -> Result<bool, String> {
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX)
        .map_err(|e| e.to_string())?;
    Ok(parsed.evaluate(|r| r.license.id().is_some_and(|id| allow.contains(id.name))))
}

#[test]
#[cfg(target_os = "linux")]
fn licences_and_sources_are_those_allowed() {
    let rules = rules();
    let mut wrong = vec![];
    for p in everything().packages.iter().filter(|p| p.source.is_some()) {
        let source = p.source.as_ref().unwrap();
        if !source.is_crates_io() {
            wrong.push(format!("{} {}: from {source}", p.name, p.version));
        }
        match &p.license {
            Some(l) if allowed(l, &rules.licenses.allow) == Ok(true) => {}
            other => wrong.push(format!("{} {}: licence {other:?}", p.name, p.version)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(allowed("GPL-3.0-only AND MIT", &rules.licenses.allow), Ok(false));
}

#[test]
#[cfg(target_os = "linux")]
fn doubled_and_refused_crates_are_those_listed() {
    let rules = rules();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for p in everything().packages {
        versions.entry(p.name.to_string()).or_default().insert(p.version.to_string());
    }
    for refused in &rules.bans.deny {
        assert!(!versions.contains_key(&refused.name), "{}: {}", refused.name, refused.reason);
    }
    let doubled: BTreeSet<&str> =
        versions.iter().filter(|(_, v)| v.len() > 1).map(|(n, _)| n.as_str()).collect();
    let listed: BTreeSet<&str> = rules.bans.skip.iter().map(|s| s.name.as_str()).collect();
    let unlisted: Vec<_> = doubled.difference(&listed).collect();
    assert!(unlisted.is_empty(), "deny.toml gives no reason for these duplicates: {unlisted:?}");
    assert!(doubled.len() > 5, "{doubled:?}");
}

/// Crates with their features, as cargo would build them.
fn built(dev: bool, of: &[&str]) -> BTreeSet<String> {
    let edges = if dev { "normal,build,dev" } else { "normal,build" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = std::process::Command::new(cargo)
        .current_dir(testkit::workspace())
        .args(["tree", "--locked", "--offline", "--prefix", "none"])
        .args(["--edges", edges, "--format", "{p} [{f}]"])
        .args(of)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8(out.stdout).unwrap();
    lines.lines().map(|l| l.replace(" (*)", "").replace(" (proc-macro)", "")).collect()
}

/// scripts/wheel.sh after the tests: minutes of building are spared where it finds their crates.
#[test]
fn the_wheel_of_the_tests_is_built_on_their_crates() {
    let tests = built(true, &["--workspace", "--features", "mithras-cli/train"]);
    let features = "infer/external-weights,mithras-python/as-tested";
    let wheel = built(
        false,
        &["--package", "mithras-cli", "--package", "mithras-python", "--features", features],
    );
    let again: Vec<&String> = wheel.difference(&tests).collect();
    let names = ["mithras-cli", "mithras-infer", "mithras", "mithras-python"];
    let ours = |l: &String| names.contains(&&l[..l.find(' ').unwrap()]);
    assert!(
        again.iter().all(|l| ours(l)),
        "`as-tested` of crates/python/Cargo.toml lacks features of the tests' crates: {again:?}"
    );
    // The module alone, as maturin asks for it.
    let module = built(false, &["--package", "mithras-python", "--features", features]);
    let again: Vec<&String> = module.difference(&wheel).collect();
    assert!(
        again.is_empty(),
        "`as-tested` of crates/python/Cargo.toml lacks features of the program's crates: {again:?}"
    );
}
