//! Compiles the small C++ shim over libtorch and lets this package's own tests find libtorch at
//! run time.
//!
//! A dependant that links a binary or runs tests needs the same rpath. It depends on `net`
//! directly and has a build script of its own:
//!
//! ```ignore
//! if let Ok(dir) = std::env::var("DEP_MITHRAS_NET_LIBTORCH_LIB") {
//!     println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
//! }
//! ```

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=src/shim.cpp");
    println!("cargo:rerun-if-changed=src/dist");
    println!("cargo:rerun-if-changed=build.rs");
    // torch-sys has already found libtorch (LIBTORCH, or Python's torch with LIBTORCH_USE_PYTORCH)
    // and states where through its `links` metadata.
    let lib = std::env::var("DEP_TCH_LIBTORCH_LIB").expect(
        "torch-sys did not state where libtorch is; set LIBTORCH_USE_PYTORCH=1 with torch 2.11 \
         installed, or LIBTORCH=/path/to/libtorch",
    );
    let include = PathBuf::from(&lib).join("../include");
    // Only static members of the C++ 11 ABI are used; wheels since torch 2.6 have it switched on.
    let nccl = nccl_headers(&PathBuf::from(&lib));
    let build = |file: &str, name: &str, extra: &[PathBuf]| {
        let mut build = cc::Build::new();
        if !extra.is_empty() {
            build.define("MITHRAS_NCCL", None).includes(extra);
        }
        // It hands calls on to libtorch.
        if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
            build.opt_level(0);
        }
        build
            .cpp(true)
            .pic(true)
            .warnings(false)
            .std("c++20")
            .include("src/dist")
            .include(&include)
            .include(include.join("torch/csrc/api/include"))
            .define("_GLIBCXX_USE_CXX11_ABI", "1")
            .file(file)
            .compile(name);
    };
    build("src/shim.cpp", "mithras_net_shim", &[]);
    build("src/dist/c10d.cpp", "mithras_net_dist", &nccl);
    println!("cargo:rustc-link-search=native={lib}");
    if !nccl.is_empty() {
        println!("cargo:rustc-link-lib=torch_cuda");
        println!("cargo:rustc-link-lib=c10_cuda");
    }
    println!("cargo:rustc-link-lib=torch_cpu");
    println!("cargo:rustc-link-lib=c10");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    println!("cargo:libtorch_lib={lib}");
}

/// Include folders for c10d's NCCL backend: there when libtorch has CUDA and the headers are where
/// `pip install torch nvidia-cuda-crt` puts them. Else GPU tensors of several ranks go over the CPU.
fn nccl_headers(lib: &Path) -> Vec<PathBuf> {
    let nvidia = lib.join("../../nvidia");
    let folders = [nvidia.join("cu13/include"), nvidia.join("nccl/include")];
    let wanted = [
        lib.join("libtorch_cuda.so"),
        folders[0].join("crt/host_config.h"),
        folders[1].join("nccl.h"),
    ];
    if wanted.iter().all(|f| f.is_file()) { folders.into() } else { vec![] }
}
