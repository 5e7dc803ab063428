//! The walls of `docs/ARCHITECTURE.md`, read from the manifests, and rules of the sources that no lint of rustc or
//! clippy has. A rule that a lint can check is in `clippy.toml` and in `[workspace.lints]`.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Our packages, as Cargo knows them.
fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(testkit::workspace().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata")
}

/// Per crate of ours: the names it depends on outside tests, sibling or not.
fn graph() -> Graph {
    let metadata = metadata();
    metadata
        .packages
        .iter()
        .map(|p| {
            let names = p
                .dependencies
                .iter()
                .filter(|d| d.kind != DependencyKind::Development)
                .map(|d| short(&d.name).to_owned());
            (short(&p.name).to_owned(), names.collect())
        })
        .collect()
}

/// The folder and the name in code of a package of ours.
fn short(package: &str) -> &str {
    package.strip_prefix("mithras-").unwrap_or(package)
}

/// Everything of ours that a crate can see, directly or through others.
fn siblings(graph: &Graph, of: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![of.to_owned()];
    while let Some(name) = open.pop() {
        for next in graph[&name].iter().filter(|d| graph.contains_key(*d)) {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

fn who_names(graph: &Graph, wanted: &[&str]) -> Vec<String> {
    let names = |deps: &BTreeSet<String>| wanted.iter().any(|w| deps.contains(*w));
    graph.iter().filter(|(_, deps)| names(deps)).map(|(n, _)| n.clone()).collect()
}

#[test]
fn every_crate_is_there() {
    let crates: Vec<String> = graph().into_keys().collect();
    let expected = [
        "base",
        "cli",
        "clinic",
        "construct",
        "crops",
        "detect",
        "dicom",
        "draw",
        "encoders",
        "evaluation",
        "experiments",
        "features",
        "infer",
        "kernels",
        "mithras",
        "mitosis",
        "net",
        "outcome",
        "pages",
        "pixels",
        "proto",
        "python",
        "regions",
        "remote",
        "review",
        "roi",
        "slide",
        "slurm",
        "start",
        "stats",
        "testkit",
        "train",
        "training",
    ];
    assert_eq!(crates, expected, "docs/ARCHITECTURE.md and this test list the crates");
}

#[test]
fn the_table_of_crates_is_up_to_date() {
    let script = testkit::workspace().join("scripts/crate_table.py");
    let ran = std::process::Command::new("python3").arg(script).arg("--check").output();
    let ran = ran.expect("python3 runs scripts/crate_table.py");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn only_net_and_train_name_libtorch() {
    let named = who_names(&graph(), &["tch", "torch-sys"]);
    assert!(named.iter().all(|n| n == "net" || n == "train"), "{named:?}");
    assert!(named.contains(&"net".to_owned()));
}

#[test]
fn only_remote_talks_to_the_network() {
    let graph = graph();
    let clients = ["ureq", "rustls", "hyper", "reqwest", "object_store", "tokio", "curl"];
    assert_eq!(who_names(&graph, &clients), ["remote"]);
    assert_eq!(siblings(&graph, "remote"), BTreeSet::from(["base".to_owned()]));
}

#[test]
fn only_infer_names_onnx_engines() {
    assert_eq!(
        who_names(
            &graph(),
            &["ort", "rten", "rten-tensor", "openvino", "openvino-sys", "tract-onnx"]
        ),
        ["infer"]
    );
}

#[test]
fn mitosis_and_stats_depend_on_nothing_and_do_no_io() {
    let graph = graph();
    for alone in ["mitosis", "stats"] {
        assert_eq!(siblings(&graph, alone), BTreeSet::from(["base".to_owned()]), "{alone}");
        let io = [
            "csv",
            "serde_json",
            "toml",
            "image",
            "tiff",
            "parquet",
            "arrow",
            "rusqlite",
            "tempfile",
            "libloading",
            "tokio",
            "memmap2",
            "glob",
        ];
        let found: Vec<_> = graph[alone].iter().filter(|d| io.contains(&d.as_str())).collect();
        assert!(found.is_empty(), "{alone} names {found:?}");
    }
}

#[test]
fn pixels_sees_mitosis_alone_and_reads_no_file() {
    let graph = graph();
    assert_eq!(siblings(&graph, "pixels"), BTreeSet::from(["base", "mitosis"].map(str::to_owned)));
    for io in ["image", "tiff", "tempfile", "memmap2"] {
        assert!(!graph["pixels"].contains(io), "pixels names {io}");
    }
}

#[test]
fn detect_sees_no_engine() {
    let seen = siblings(&graph(), "detect");
    assert_eq!(seen, BTreeSet::from(["base", "mitosis", "remote", "slide"].map(str::to_owned)));
}

#[test]
fn slide_infer_and_net_see_little() {
    let graph = graph();
    for (name, allowed) in [
        ("slide", &["base", "mitosis", "remote"][..]),
        ("encoders", &["base", "mitosis", "pixels", "proto"]),
        ("net", &["base", "encoders", "mitosis", "pixels", "proto"]),
        ("infer", &["base", "kernels", "mitosis", "pixels", "proto"]),
        ("kernels", &["proto"]),
        ("proto", &[]),
    ] {
        let seen = siblings(&graph, name);
        let allowed: BTreeSet<String> = allowed.iter().map(|s| (*s).to_owned()).collect();
        assert!(seen.is_subset(&allowed), "{name} sees {seen:?}");
    }
}

#[test]
fn features_sees_engines_corpora_and_slides_and_no_libtorch() {
    let graph = graph();
    let own: BTreeSet<&str> =
        graph["features"].iter().map(String::as_str).filter(|d| graph.contains_key(*d)).collect();
    assert_eq!(
        own,
        BTreeSet::from([
            "base", "crops", "encoders", "infer", "mitosis", "pixels", "regions", "slide"
        ])
    );
    let seen = siblings(&graph, "features");
    for heavy in ["net", "train", "detect", "mithras"] {
        assert!(!seen.contains(heavy), "features sees {heavy}");
    }
    assert_eq!(who_names(&graph, &["hdf5-pure"]), ["features"], "one crate writes HDF5");
}

/// What a Rust user calls, and the rooms around it: none sees another but `training` the scores.
#[test]
fn the_rooms_are_side_by_side_on_mithras() {
    let graph = graph();
    let rooms = ["construct", "evaluation", "review", "slurm", "training"];
    let below = siblings(&graph, "mithras");
    for room in rooms {
        assert!(!below.contains(room), "mithras sees {room}");
        let seen: Vec<&str> =
            graph[room].iter().map(String::as_str).filter(|d| rooms.contains(d)).collect();
        let allowed: &[&str] = if room == "training" { &["evaluation"] } else { &[] };
        assert_eq!(seen, allowed, "{room}");
    }
    for heavy in ["net", "train"] {
        assert!(!below.contains(heavy), "mithras sees {heavy}");
    }
}

#[test]
fn train_reads_corpora_and_opens_no_slide() {
    let graph = graph();
    assert!(!graph["train"].contains("slide"), "train names slide");
    assert!(!graph["train"].contains("detect"), "train names detect");
}

#[test]
fn training_is_optional_in_the_binary() {
    let metadata = metadata();
    let cli = metadata.packages.iter().find(|p| short(&p.name) == "cli").unwrap();
    for name in ["train", "training", "net"] {
        for d in cli.dependencies.iter().filter(|d| short(&d.name) == name) {
            assert!(d.optional, "{name} must stay behind the feature `train`");
        }
    }
    assert!(!cli.features.get("default").is_some_and(|f| f.iter().any(|f| f == "train")));
}

#[test]
fn dicom_depends_on_nothing_and_alone_writes_its_format() {
    let graph = graph();
    assert_eq!(siblings(&graph, "dicom"), BTreeSet::new());
    assert_eq!(who_names(&graph, &["dicom-object"]), ["dicom"]);
    // The reader of slides takes the dictionary alone.
    assert_eq!(who_names(&graph, &["dicom-core"]), ["dicom", "slide"]);
    assert!(!graph["slide"].contains("dicom-parser"));
}

#[test]
fn base_depends_on_nothing_and_outcome_sees_no_slide() {
    let graph = graph();
    assert_eq!(siblings(&graph, "base"), BTreeSet::new());
    let allowed = ["base", "pages", "stats"].map(str::to_owned).into();
    assert_eq!(siblings(&graph, "outcome"), allowed);
    assert_eq!(siblings(&graph, "pages"), BTreeSet::from(["base".to_owned()]));
}

#[test]
fn faces_and_plots_stay_at_the_edge() {
    let graph = graph();
    for face in ["anyhow", "clap", "indicatif"] {
        // `train` holds an error of its trainers' loops; its owner takes it out.
        let known = |n: &str| n == "cli" || (n, face) == ("train", "anyhow");
        let named: Vec<_> = who_names(&graph, &[face]).into_iter().filter(|n| !known(n)).collect();
        assert!(named.is_empty(), "{named:?} name {face}");
    }
    assert_eq!(who_names(&graph, &["kuva"]), ["pages"], "one crate draws charts");
}

#[test]
fn python_is_a_face_of_the_libraries_like_the_command_line() {
    let graph = graph();
    assert_eq!(who_names(&graph, &["pyo3", "numpy"]), ["python"], "one crate speaks with Python");
    assert_eq!(who_names(&graph, &["python"]), Vec::<String>::new());
    let seen = siblings(&graph, "python");
    assert!(!seen.contains("cli"), "python sees cli");
    assert!(!graph["python"].contains("net") && !graph["python"].contains("train"));
    let manifest = std::fs::read_to_string(testkit::workspace().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let default = manifest["workspace"]["default-members"].as_array().unwrap();
    let name = "crates/python";
    assert!(default.iter().all(|m| m.as_str() != Some(name)), "a plain build needs no Python");
}

/// Source lines outside tests: crate, file below `crates`, line number, text.
fn sources() -> Vec<(String, String, usize, String)> {
    fn walk(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                files.push(path);
            }
        }
    }
    let root = testkit::workspace().join("crates");
    let mut lines = Vec::new();
    for krate in graph().into_keys() {
        let mut files = Vec::new();
        walk(&root.join(&krate).join("src"), &mut files);
        for file in files {
            let name = file.strip_prefix(&root).expect("below crates").display().to_string();
            let text = std::fs::read_to_string(&file).expect("a source file");
            let body = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for (i, line) in body.lines().enumerate() {
                lines.push((krate.clone(), name.clone(), i + 1, line.to_owned()));
            }
        }
    }
    lines
}

/// Files that contain one of `words` outside comments, except those in `known`.
fn holders(words: &[&str], inside: impl Fn(&str) -> bool, known: &[&str]) -> BTreeSet<String> {
    sources()
        .into_iter()
        .filter(|(krate, file, _, line)| {
            let code = line.trim_start();
            inside(krate)
                && !known.contains(&file.as_str())
                && !code.starts_with("//")
                && words.iter().any(|w| code.contains(w))
        })
        .map(|(_, file, ..)| file)
        .collect()
}

/// Clippy sees no format within a text.
#[test]
fn one_way_to_hexadecimal_digits() {
    let found = holders(&["02x}"], |k| k != "base", &[]);
    assert!(found.is_empty(), "{found:?} write hexadecimal digits; base::digest does");
}

/// So that each can be published; the helper of the tests is not.
#[test]
fn packages_have_the_projects_name() {
    let metadata = metadata();
    let ours = |n: &str| n == "mithras" || n == "testkit" || n.starts_with("mithras-");
    let other = metadata.packages.iter().filter(|p| !ours(&p.name)).map(|p| p.name.to_string());
    assert_eq!(other.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Cargo takes the lints of the workspace only where a manifest names them.
#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    for package in metadata().packages {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let shared = manifest.get("lints").and_then(|l| l["workspace"].as_bool());
        assert_eq!(shared, Some(true), "{}", package.name);
    }
}

/// Folders within folders are walked in one place, which no circle of links can trap. A lint on `read_dir` would also
/// refuse what reads one folder.
#[test]
fn one_walk_through_folders() {
    let found = holders(&["open.push(entry", "open.push(path)"], |k| k != "base", &[]);
    assert!(found.is_empty(), "{found:?} walk through folders; base::walk does");
}

/// One crate has the messages: those that are written and run, and those whose nodes stay bytes. No lint forbids a
/// derive.
#[test]
fn the_schema_of_onnx_is_in_one_crate() {
    let found =
        holders(&["PartialEq, Message)]"], |_| true, &["proto/src/lib.rs", "proto/src/parts.rs"]);
    assert!(found.is_empty(), "{found:?} have messages; `proto` does");
}

/// Text of files is cut into cells by `base::table` alone: a hand-made cut takes quotation marks, byte order marks
/// and other delimiters for names. No lint looks at the argument of `split`.
#[test]
fn one_reader_cuts_files_into_cells() {
    let delimiter = |arguments: &str| {
        let end = arguments.find(')').unwrap_or(arguments.len());
        let arguments = &arguments[..end];
        ["','", "\",\"", "';'", "\";\"", "'\\t'"].iter().any(|d| arguments.contains(d))
    };
    let cuts = |code: &str| {
        ["split", "split_once", "splitn", "split_terminator"].iter().any(|method| {
            code.match_indices(&format!(".{method}("))
                .any(|(at, call)| delimiter(&code[at + call.len()..]))
        })
    };
    let known = [
        // Values of flags and settings, and words of messages.
        "cli/src/hint.rs",
        "pages/src/canvas.rs",
        "cli/src/command/bench.rs",
        "cli/src/command/demo.rs",
        "cli/src/command/encoders.rs",
        "experiments/src/value.rs",
        "mithras/src/detector/options.rs",
        "outcome/src/frame/mod.rs",
        "slide/src/limits.rs",
        // Names of columns.
        "outcome/src/table.rs",
        // Environment and answers of queues.
        "net/src/dist/mod.rs",
        "slurm/src/queue.rs",
        // A field of a slide's description.
        "slide/src/format/aperio.rs",
        "slide/src/privacy.rs",
    ];
    let ours = |file: &str| file.starts_with("base/src/table") || known.contains(&file);
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(_, file, _, line)| {
            !ours(file) && !line.trim_start().starts_with("//") && cuts(line)
        })
        .map(|(_, file, number, _)| format!("{file}:{number}"))
        .collect();
    assert!(found.is_empty(), "read these by base::table: {found:?}");
}

/// No lint counts a crate's lines.
#[test]
fn no_crate_holds_more_than_its_share() {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (krate, ..) in sources() {
        *lines.entry(krate).or_default() += 1;
    }
    let all: usize = lines.values().sum();
    for (krate, n) in &lines {
        assert!(n * 100 <= all * 14, "{krate} holds {n} of {all} lines, more than 14 %");
    }
    // What a Rust user calls stays small enough to be read.
    assert!(lines["mithras"] <= 9_500, "mithras holds {} lines", lines["mithras"]);
}

/// A dependency that no code of its crate names only costs time, and draws a false arrow. The lint
/// `unused_crate_dependencies` judges each target alone, and so refuses what only tests or examples name.
#[test]
fn no_dependency_is_unused() {
    // Named for its features alone.
    let for_features = ["python"];
    let metadata = metadata();
    let mut unused = vec![];
    for package in metadata.packages.iter().filter(|p| !for_features.contains(&short(&p.name))) {
        let folder = package.manifest_path.parent().unwrap().as_std_path();
        let mut text = String::new();
        let own = ["src", "tests", "benches", "examples", "build.rs"].map(|f| folder.join(f));
        let examples = package.targets.iter().map(|t| t.src_path.clone().into_std_path_buf());
        for path in own.into_iter().chain(examples) {
            rust_text(&path, &mut text);
        }
        let called = |d: &cargo_metadata::Dependency| {
            let name = d.rename.as_ref().unwrap_or(&d.name).replace('-', "_");
            let name = name.strip_prefix("mithras_").unwrap_or(&name).to_owned();
            let whole = |i: usize| {
                let before = text[..i].chars().next_back();
                let after = text[i + name.len()..].chars().next();
                let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                !inside(before) && !inside(after)
            };
            text.match_indices(&name).any(|(i, _)| whole(i))
        };
        let idle = package.dependencies.iter().filter(|d| !called(d));
        unused.extend(idle.map(|d| format!("{}: {}", package.name, d.name)));
    }
    // In a file of tests that two crates share.
    unused.retain(|u| u != "mithras-training: bolero");
    assert!(unused.is_empty(), "{unused:#?}");
}

/// Adds the Rust code of a file or a folder.
fn rust_text(path: &Path, text: &mut String) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            rust_text(&entry.unwrap().path(), text);
        }
    } else if path.extension().is_some_and(|e| e == "rs") && path.exists() {
        text.push_str(&std::fs::read_to_string(path).unwrap());
    }
}

/// Lines of code of all crates but `left_out`, outside comments and tests, that hold what is asked for.
fn code_with(left_out: &[&str], wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    sources()
        .into_iter()
        .filter(|(krate, _, _, line)| {
            let code = line.trim_start();
            !left_out.contains(&krate.as_str()) && !code.starts_with("//") && wanted(code)
        })
        .map(|(_, file, number, line)| format!("{file}:{number}: {}", line.trim()))
        .collect()
}

/// A `--flag` in a line of code.
fn names_a_flag(code: &str) -> bool {
    // Cargo's own flags, in the advice how to build with training.
    let code = code.replace("--features", "").replace("--release", "");
    code.match_indices("--").any(|(i, _)| {
        let before = code[..i].chars().next_back();
        let (after, rest) = (code[i + 2..].chars().next(), &code[i + 2..]);
        // A variable of a style sheet.
        let name = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
        if code[..i].ends_with("var(") || name.starts_with(':') {
            return false;
        }
        after.is_some_and(|c| c.is_ascii_lowercase()) && before.is_none_or(|c| " `\"(".contains(c))
    })
}

/// No lint reads texts.
#[test]
fn libraries_name_no_flag() {
    assert!(names_a_flag("give it with --mpp 0.25") && !names_a_flag("a -- b; x --> y"));
    assert!(!names_a_flag("style=\"--height: 3pt\"; width: calc(1pt * var(--letters))"));
    let mut found = code_with(&["cli"], names_a_flag);
    // Write and run commands: of Slurm, and of this program.
    let writers = ["slurm/src/", "experiments/src/graph.rs", "review/src/view/keep.rs"];
    found.retain(|line| !writers.iter().any(|w| line.starts_with(w)));
    assert!(
        found.is_empty(),
        "name a base::remedy::Remedy; cli/src/hint.rs has its flag: {found:#?}"
    );
}

/// The name of a type at the end of a path, without what it is generic over.
fn last_name(path: &str) -> &str {
    let name = path.rsplit("::").next().unwrap_or_default();
    name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// Per crate the error types that know a remedy.
fn remedied() -> BTreeSet<(String, String)> {
    let lines = sources();
    let found = lines.iter().filter_map(|(krate, _, _, line)| {
        let name = last_name(line.strip_prefix("impl Remedied for ")?);
        Some((krate.clone(), name.to_owned()))
    });
    found.collect()
}

/// No lint compares a list with what implements a trait.
#[test]
fn the_command_line_asks_every_error_that_knows_a_remedy() {
    let hints = sources().into_iter().filter(|(_, file, ..)| file == "cli/src/hint.rs");
    let mut asked: Vec<String> = hints
        .filter_map(|(.., line)| {
            Some(last_name(line.trim().strip_prefix("known::<")?.split_once('>')?.0).to_owned())
        })
        .collect();
    let mut known: Vec<String> = remedied().into_iter().map(|(_, name)| name).collect();
    asked.sort();
    known.sort();
    assert_eq!(asked, known, "cli/src/hint.rs lists the error types that implement Remedied");
    let downcasts =
        code_with(&["base"], |code| code.contains("downcast_ref::<") && code.contains("Error>"));
    assert!(downcasts.is_empty(), "base::remedy finds the type of an error: {downcasts:#?}");
}

/// A transparent wrapper hides the error inside from code that walks the chain, so it has to hand the remedy on. No
/// lint reads thiserror's attributes.
#[test]
fn errors_that_wrap_transparently_hand_the_remedy_on() {
    let (lines, remedied) = (sources(), remedied());
    let starts = |line: &str| line.strip_prefix("pub enum ").map(|l| last_name(l).to_owned());
    let defined: BTreeSet<(String, String)> = lines
        .iter()
        .filter_map(|(krate, _, _, line)| Some((krate.clone(), starts(line)?)))
        .collect();
    let (mut within, mut transparent, mut silent) = (String::new(), false, BTreeSet::new());
    for (krate, file, _, line) in &lines {
        if line.trim_start().starts_with("enum ") || line.contains(") enum ") {
            // Of one module: it becomes text there.
            within.clear();
        } else if let Some(name) = starts(line) {
            within = name;
        }
        let code = line.trim();
        if code == "#[error(transparent)]" {
            transparent = true;
        } else if transparent && !code.starts_with("//") {
            transparent = false;
            let Some((_, inner)) = code.split_once('(') else { continue };
            let inner = inner.trim_start_matches("#[from] ").trim_start_matches("Box<");
            let name = last_name(inner.trim_end_matches([',', ')', '>']));
            let own = (krate.clone(), name.to_owned());
            let knows = match name {
                // Of other crates, too.
                "Error" => inner.starts_with("outcome::Error"),
                _ if defined.contains(&own) => remedied.contains(&own),
                _ => remedied.iter().any(|(_, known)| known == name),
            };
            if knows && !within.is_empty() && !remedied.contains(&(krate.clone(), within.clone())) {
                silent.insert(format!("{file}: {within} wraps {name}"));
            }
        }
    }
    assert!(silent.is_empty(), "implement Remedied: {silent:#?}");
}

/// Clippy's `result_unit_err` knows the error `()` alone.
#[test]
fn public_functions_have_typed_errors() {
    let wanted = |code: &str| {
        let open = code.starts_with("pub fn ") && code.contains("Result<");
        open && code
            .split("->")
            .last()
            .is_some_and(|r| r.contains("Result<") && r.contains(", String>"))
    };
    let found = code_with(&["cli"], wanted);
    assert!(found.is_empty(), "{found:#?}");
}

/// `disallowed-macros` has no exception for tests, which write JSON in 25 files.
#[test]
fn json_is_written_from_types() {
    let found = code_with(&[], |code| code.contains("json!("));
    assert!(found.is_empty(), "derive Serialize instead: {found:#?}");
}

/// What [`base::json::lossy`] wrote is another name where a name is not UTF-8: no type that is read back may open it.
/// These are read back and show the path alone: what ran the networks, the note on an experiment's run. No lint reads
/// serde's attributes.
const SHOWN: [&str; 3] = [
    "experiments/src/run/mod.rs: RunNote",
    "infer/src/engine/options.rs: EngineReport",
    "training/src/protocol.rs: Scored",
];

#[test]
fn paths_that_are_read_back_are_written_as_they_are() {
    let (mut attributes, mut reads, mut name) = (String::new(), false, String::new());
    let mut found = BTreeSet::new();
    for (_, file, _, line) in sources() {
        let code = line.trim();
        if code.starts_with("#[derive(") {
            attributes = code.to_owned();
        } else if let Some((_, rest)) =
            code.split_once("struct ").filter(|_| !code.starts_with("//"))
        {
            name = last_name(rest).to_owned();
            reads = std::mem::take(&mut attributes).contains("Deserialize");
        } else if code.contains("json::lossy\"") && reads {
            found.insert(format!("{file}: {name}"));
        }
    }
    let allowed = SHOWN.map(str::to_owned).into();
    assert_eq!(found, allowed, "serde's own way is an error for a name that is not UTF-8");
}

/// Verbs of the command line with training; a test of the examples of each verb (`cli/src/examples.rs`) counts them.
const VERBS: usize = 72;

/// No lint counts a crate's lines.
#[test]
fn the_command_line_is_thin() {
    // Flags, options, one call, print: some 80 lines a verb (docs/DESIGN.md).
    let all = sources().iter().filter(|(krate, ..)| krate == "cli").count();
    assert!(all <= 80 * VERBS, "{all} lines for {VERBS} verbs");
}

/// Letter and number of a requirement or fault as a word of its own, e.g. in `(D3-D5)`.
fn names_a_requirement(line: &str) -> bool {
    let comment = line.trim_start();
    let words = comment.split(|c: char| !c.is_ascii_alphanumeric());
    comment.starts_with("//")
        && words.into_iter().any(|w| {
            let digits = w.get(1..).unwrap_or_default();
            let letter = w.starts_with(|c| "CPKZDWSATBUR".contains(c));
            // The slides of ICPR 2012 have such names; C0 and CF are marks in a JPEG file; S3 is a protocol, A4 a
            // size of paper.
            letter
                && !["S3", "A4"].contains(&w)
                && (1..=2).contains(&digits.len())
                && !digits.starts_with('0')
                && digits.bytes().all(|b| b.is_ascii_digit())
        })
}

/// No lint reads comments for words.
#[test]
fn requirements_are_named_in_the_paper_map_alone() {
    assert!(
        names_a_requirement("/// Candidates (D3): threshold") && !names_a_requirement("// A02")
    );
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(.., line)| names_a_requirement(line))
        .map(|(_, file, number, line)| format!("{file}:{number}: {}", line.trim()))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// A file that no target names is unknown to the compiler.
#[test]
fn every_file_of_tests_is_compiled() {
    let crates = testkit::workspace().join("crates");
    for crate_ in std::fs::read_dir(crates).expect("crates").map(|e| e.expect("an entry").path()) {
        // Where Cargo finds test files itself, none can be forgotten.
        let Ok(all) = std::fs::read_to_string(crate_.join("tests/all.rs")) else { continue };
        let manifest = std::fs::read_to_string(crate_.join("Cargo.toml")).expect("a manifest");
        for file in std::fs::read_dir(crate_.join("tests")).expect("a folder") {
            let path = file.expect("an entry").path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if name == "all" || path.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            let named = all.lines().any(|l| l == format!("mod {name};"))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""));
            assert!(named, "{} is in no test binary", path.display());
        }
    }
}
