//! `mithras doctor`: what this machine has, how fast it is, what to install.

use anyhow::Result;
use infer::engine::{bf16_cpu, find_onnxruntime, find_openvino, find_openvino_plugin};
use infer::timing::{self, Timing};
use infer::{EngineChoice, EngineOptions, ModelPackage, Precision, Provider};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Say what is found here, how fast it is on one window, and what to install.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Model package to time: a folder, or the name of a bundled one.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Runs per network; the median is printed. 0 leaves the timing out.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Threads of an engine; 0 means every core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    machine: Machine,
    libraries: Vec<Found>,
    openslide: Part,
    training: Part,
    bundled_models: Vec<&'static str>,
    engines: Vec<Engine>,
    /// What would make this machine faster or read more.
    advice: Vec<String>,
}

#[derive(Serialize)]
struct Machine {
    system: String,
    cpu: Option<String>,
    cores: usize,
    memory_gib: Option<f64>,
    features: Vec<&'static str>,
    bf16: bool,
}

#[derive(Serialize)]
struct Found {
    what: &'static str,
    path: PathBuf,
    found_by: String,
}

#[derive(Serialize)]
struct Part {
    found: bool,
    about: String,
}

#[derive(Serialize)]
struct Engine {
    engine: &'static str,
    provider: &'static str,
    precision: &'static str,
    #[serde(flatten)]
    timing: Option<Timing>,
    error: Option<String>,
}

/// Every engine worth timing on a processor; `cuda` joins where a device shows.
const ENGINES: [(EngineChoice, Provider, Precision); 6] = [
    (EngineChoice::Rten, Provider::Cpu, Precision::F32),
    (EngineChoice::OnnxRuntime, Provider::Cpu, Precision::F32),
    (EngineChoice::OnnxRuntime, Provider::OpenVino, Precision::Auto),
    (EngineChoice::OnnxRuntime, Provider::Cuda, Precision::F32),
    (EngineChoice::OpenVino, Provider::OpenVino, Precision::F32),
    (EngineChoice::OpenVino, Provider::OpenVino, Precision::Bf16),
];

/// Runs the verb.
pub fn run(args: Args) -> Result<ExitCode> {
    let report = examine(&args);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(args: &Args) -> Report {
    let mut advice = Vec::new();
    let libraries = libraries();
    let has = |what: &str| libraries.iter().any(|l| l.what == what);
    if !has("openvino") {
        advice.push("pip install openvino: the fastest engine on x86-64 processors".into());
    }
    if !has("onnxruntime") {
        advice.push("pip install onnxruntime: faster than the embedded engine".into());
    }
    let openslide = match slide::openslide_version() {
        Ok(version) => Part { found: true, about: format!("OpenSlide {version}") },
        Err(reason) => {
            advice.push("pip install openslide-bin: NDPI, MRXS, SCN, BIF and more".into());
            Part { found: false, about: reason }
        }
    };
    let training = if cfg!(feature = "train") {
        Part { found: true, about: "this build trains (libtorch)".into() }
    } else {
        Part {
            found: false,
            about: "this build does not train; pip install torch==2.11.0, then \
                    LIBTORCH_USE_PYTORCH=1 cargo build --release --features train"
                .into(),
        }
    };
    let engines = match ModelPackage::find(args.model.as_deref()) {
        _ if args.runs == 0 => Vec::new(),
        Ok(package) => time(&package, args),
        Err(e) => {
            advice.push(format!("engines were not timed: {e}"));
            Vec::new()
        }
    };
    Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: machine(),
        libraries,
        openslide,
        training,
        bundled_models: ModelPackage::bundled_names().collect(),
        engines,
        advice,
    }
}

fn libraries() -> Vec<Found> {
    let runtime = find_onnxruntime();
    let near = runtime.first().map(|l| l.path.clone());
    [
        ("onnxruntime", runtime),
        ("onnxruntime-ep-openvino", find_openvino_plugin(near.as_deref())),
        ("openvino", find_openvino()),
    ]
    .into_iter()
    .flat_map(|(what, found)| {
        found.into_iter().map(move |l| Found { what, path: l.path, found_by: l.found_by })
    })
    .collect()
}

fn time(package: &ModelPackage, args: &Args) -> Vec<Engine> {
    let torch = super::engine::options().torch.is_some().then_some([
        (EngineChoice::Torch, Provider::Auto, Precision::F32),
        (EngineChoice::Torch, Provider::Auto, Precision::Bf16),
    ]);
    ENGINES
        .into_iter()
        .chain(torch.into_iter().flatten())
        .map(|(engine, provider, precision)| {
            let options = EngineOptions {
                engine,
                provider,
                precision,
                threads: args.threads,
                ..super::engine::options()
            };
            let (timing, error) = match timing::time(package, &options, args.runs) {
                Ok(timing) => (Some(timing), None),
                Err(e) => (None, Some(e.to_string())),
            };
            let (engine, provider) = (engine.word(), provider.word());
            Engine { engine, provider, precision: precision.word(), timing, error }
        })
        .collect()
}

fn machine() -> Machine {
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|l| l.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|m| m.split_whitespace().next()?.parse::<f64>().ok())
        .map(|kib| kib / f64::from(1 << 20));
    Machine {
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu: field("/proc/cpuinfo", "model name"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_gib: memory,
        features: features(),
        bf16: bf16_cpu(),
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    macro_rules! present {
        ($($name:tt),+) => {
            [$(($name, std::arch::is_x86_feature_detected!($name))),+]
        };
    }
    let all = present!("avx", "avx2", "fma", "avx512f", "avx512vnni", "avx512bf16");
    all.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

fn print(r: &Report) {
    let m = &r.machine;
    println!("mithras {} on {}", r.version, m.system);
    let memory = m.memory_gib.map_or_else(|| "unknown".into(), |g| format!("{g:.1} GiB"));
    println!("  processor   {}, {} cores", m.cpu.as_deref().unwrap_or("unknown"), m.cores);
    println!("  extensions  {}", m.features.join(" "));
    println!("  memory      {memory}");
    println!("  training    {}", r.training.about);
    println!("  openslide   {}", r.openslide.about);
    let models =
        if r.bundled_models.is_empty() { "none".into() } else { r.bundled_models.join(", ") };
    println!("  models      {models}");
    println!("\nlibraries");
    for l in &r.libraries {
        println!("  {:<24}{} ({})", l.what, l.path.display(), l.found_by);
    }
    if r.libraries.is_empty() {
        println!("  none; the embedded engine runs");
    }
    if !r.engines.is_empty() {
        println!(
            "\n{:<13}{:<10}{:<6}{:>8}{:>12}{:>10}",
            "engine", "provider", "", "load s", "ms/window", "ms/crop"
        );
    }
    let ms = |s: Option<f64>| s.map_or_else(|| "-".into(), |s| format!("{:.1}", 1e3 * s));
    for e in &r.engines {
        match (&e.timing, &e.error) {
            (Some(t), _) => println!(
                "{:<13}{:<10}{:<6}{:>8.2}{:>12}{:>10}",
                e.engine,
                t.report.provider,
                t.report.segmenter_precision,
                t.load_s,
                ms(t.window_s),
                ms(t.crop_s)
            ),
            (None, error) => {
                let error = error.as_deref().unwrap_or_default().replace("\n  remedy:", ";");
                println!("{:<13}{:<10}{:<6}{error}", e.engine, e.provider, e.precision);
            }
        }
    }
    if !r.advice.is_empty() {
        println!("\nadvice");
        for line in &r.advice {
            println!("  {line}");
        }
    }
}
