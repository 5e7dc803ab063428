//! What this machine has, how fast it is, what to install.

use infer::engine::{
    bf16_cpu, find_inactive, find_onnxruntime, find_openvino, find_openvino_plugin,
    native_is_automatic,
};
use infer::timing::{self, Timing};
use infer::{EngineChoice, EngineOptions, EngineReport, ModelPackage, Precision, Provider};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What this machine has.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReport {
    schema: &'static str,
    version: &'static str,
    machine: Machine,
    libraries: Vec<LibraryAt>,
    openslide: Part,
    training: Part,
    bundled_models: Vec<&'static str>,
    engines: Vec<Engine>,
    /// What `--engine auto` takes for the model, with the reasons why the engines before it do not run.
    auto: Option<EngineReport>,
    /// What would make this machine faster or read more.
    advice: Vec<String>,
}

/// Processor and memory.
#[derive(Clone, Debug, Serialize)]
struct Machine {
    system: String,
    cpu: Option<String>,
    cores: usize,
    memory_gib: Option<f64>,
    features: Vec<&'static str>,
    bf16: bool,
}

#[derive(Clone, Debug, Serialize)]
struct LibraryAt {
    what: &'static str,
    #[serde(serialize_with = "base::json::lossy")]
    path: PathBuf,
    found_by: String,
}

#[derive(Clone, Debug, Serialize)]
struct Part {
    found: bool,
    about: String,
}

#[derive(Clone, Debug, Serialize)]
struct Engine {
    engine: &'static str,
    provider: &'static str,
    precision: &'static str,
    #[serde(flatten)]
    timing: Option<Timing>,
    error: Option<String>,
}

/// Every engine worth timing on a processor; `cuda` joins where a device shows.
const ENGINES: [(EngineChoice, Provider, Precision); 8] = [
    (EngineChoice::Rten, Provider::Cpu, Precision::F32),
    (EngineChoice::Native, Provider::Cpu, Precision::F32),
    (EngineChoice::Native, Provider::Cpu, Precision::Bf16),
    (EngineChoice::OnnxRuntime, Provider::Cpu, Precision::F32),
    (EngineChoice::OnnxRuntime, Provider::OpenVino, Precision::Auto),
    (EngineChoice::OnnxRuntime, Provider::Cuda, Precision::F32),
    (EngineChoice::OpenVino, Provider::OpenVino, Precision::F32),
    (EngineChoice::OpenVino, Provider::OpenVino, Precision::Bf16),
];

/// Looks around; `runs` of each network of `model` are timed on every engine found; 0 skips
/// the timing. `training` is whether this program can train; `options` holds threads and plug-ins.
#[must_use]
pub fn examine(
    model: Option<&Path>,
    runs: usize,
    options: &EngineOptions,
    training: bool,
) -> DoctorReport {
    let mut advice = Vec::new();
    let libraries = libraries();
    let has = |what: &str| libraries.iter().any(|l| l.what == what);
    if !has("openvino") {
        let what = match native_is_automatic() {
            true => {
                "pip install openvino: faster than rten for encoders that are transformers, and bf16"
            }
            false => "pip install openvino: faster than the embedded engines on x86-64 processors",
        };
        advice.push(what.into());
    }
    if !has("openvino") && !has("onnxruntime") {
        advice.push("pip install onnxruntime: faster than rten, on any processor".into());
    }
    advice.extend(find_inactive().into_iter().map(|l| {
        let (library, venv) = (l.path.display(), l.found_by);
        format!(
            "{library} is left aside, because its environment is not active; to use it: \
             VIRTUAL_ENV={venv} mithras ..."
        )
    }));
    let openslide = match slide::openslide_version() {
        Ok(version) => Part { found: true, about: format!("OpenSlide {version}") },
        Err(reason) => {
            advice.push("pip install openslide-bin: NDPI, MRXS, SCN, BIF and more".into());
            Part { found: false, about: reason.to_string() }
        }
    };
    let training = if training {
        Part { found: true, about: "this build trains (libtorch)".into() }
    } else {
        Part {
            found: false,
            about: "this build does not train; if you have its source: pip install torch==2.11.0, then \
                    LIBTORCH_USE_PYTORCH=1 cargo build --release --features train"
                .into(),
        }
    };
    let (auto, engines) = match ModelPackage::find(model) {
        _ if runs == 0 => (None, Vec::new()),
        Ok(package) => {
            (infer::open(&package, options).ok().map(|m| m.report), time(&package, runs, options))
        }
        Err(e) => {
            advice.push(format!("engines were not timed: {e}"));
            (None, Vec::new())
        }
    };
    DoctorReport {
        schema: "mithras.doctor/1",
        version: env!("CARGO_PKG_VERSION"),
        machine: machine(),
        libraries,
        openslide,
        training,
        bundled_models: ModelPackage::bundled_names().collect(),
        engines,
        auto,
        advice,
    }
}

fn libraries() -> Vec<LibraryAt> {
    let runtime = find_onnxruntime();
    let near = runtime.first().map(|l| l.path.clone());
    [
        ("onnxruntime", runtime),
        ("onnxruntime-ep-openvino", find_openvino_plugin(near.as_deref())),
        ("openvino", find_openvino()),
    ]
    .into_iter()
    .flat_map(|(what, found)| {
        found.into_iter().map(move |l| LibraryAt { what, path: l.path, found_by: l.found_by })
    })
    .collect()
}

fn time(package: &ModelPackage, runs: usize, options: &EngineOptions) -> Vec<Engine> {
    let torch = options.torch.is_some().then_some([
        (EngineChoice::Torch, Provider::Auto, Precision::F32),
        (EngineChoice::Torch, Provider::Auto, Precision::Bf16),
    ]);
    ENGINES
        .into_iter()
        .chain(torch.into_iter().flatten())
        .map(|(engine, provider, precision)| {
            let options = EngineOptions { engine, provider, precision, ..options.clone() };
            let (timing, error) = match timing::time(package, &options, runs) {
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
        let text = base::file::read_string(file).ok()?;
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

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (r, m) = (self, &self.machine);
        writeln!(f, "mithras {} on {}", r.version, m.system)?;
        let memory = m.memory_gib.map_or_else(|| "unknown".into(), |g| format!("{g:.1} GiB"));
        writeln!(f, "  processor   {}, {} cores", m.cpu.as_deref().unwrap_or("unknown"), m.cores)?;
        writeln!(f, "  extensions  {}", m.features.join(" "))?;
        writeln!(f, "  memory      {memory}")?;
        writeln!(f, "  training    {}", r.training.about)?;
        writeln!(f, "  openslide   {}", r.openslide.about)?;
        let models =
            if r.bundled_models.is_empty() { "none".into() } else { r.bundled_models.join(", ") };
        writeln!(f, "  models      {models}")?;
        writeln!(f, "\nlibraries")?;
        for l in &r.libraries {
            writeln!(f, "  {:<24}{} ({})", l.what, l.path.display(), l.found_by)?;
        }
        if r.libraries.is_empty() {
            writeln!(f, "  none; the embedded engines run")?;
        }
        if !r.engines.is_empty() {
            writeln!(
                f,
                "\n{:<13}{:<10}{:<6}{:>8}{:>12}{:>10}",
                "engine", "provider", "", "load s", "ms/window", "ms/pass"
            )?;
        }
        let ms = |s: Option<f64>| s.map_or_else(|| "-".into(), |s| format!("{:.1}", 1e3 * s));
        for e in &r.engines {
            match (&e.timing, &e.error) {
                (Some(t), _) => writeln!(
                    f,
                    "{:<13}{:<10}{:<6}{:>8.2}{:>12}{:>10}",
                    e.engine,
                    t.report.provider,
                    t.report.segmenter_precision,
                    t.load_s,
                    ms(t.window_s),
                    ms(t.crop_s)
                )?,
                (None, error) => {
                    let error = error.as_deref().unwrap_or_default().replace("\n  remedy:", ";");
                    writeln!(f, "{:<13}{:<10}{:<6}{error}", e.engine, e.provider, e.precision)?;
                }
            }
        }
        if let Some(auto) = &r.auto {
            writeln!(f, "\nauto takes {auto}")?;
        }
        if !r.advice.is_empty() {
            writeln!(f, "\nadvice")?;
            for line in &r.advice {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
