//! Takes the files of `datasets/`, `experiments/` and `presets/` into the library, by their names.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    // As cargo states it when the script runs: the folder that it was compiled in may be gone.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let root = Path::new(&own).join("../..");
    let mut code = String::new();
    for (name, folder, deep) in [
        ("DATASETS", "datasets", false),
        ("EXPERIMENTS", "experiments", true),
        ("PRESETS", "presets", true),
    ] {
        let folder = root.join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files = vec![];
        list(&folder, deep, &mut files);
        files.sort();
        let _ = writeln!(code, "pub(crate) static {name}: &[(&str, &str)] = &[");
        for file in files {
            let below = file.strip_prefix(&folder).expect("below its folder");
            let below = below.to_string_lossy().replace('\\', "/");
            let file = file.canonicalize().expect("a file that was listed");
            let _ =
                writeln!(code, "    ({below:?}, include_str!({:?})),", file.display().to_string());
        }
        code.push_str("];\n");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    std::fs::write(out.join("files.rs"), code).expect("the build folder can be written");
}

fn list(folder: &Path, deep: bool, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder);
    for entry in entries.unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap_or_else(|e| panic!("{}: {e}", folder.display())).path();
        if path.is_dir() && deep {
            println!("cargo:rerun-if-changed={}", path.display());
            list(&path, deep, files);
        } else if path.extension().is_some_and(|e| e == "toml" || e == "csv") {
            files.push(path);
        }
    }
}
