//! Engines behind the ports, and how one is chosen.
//!
//! `rten` is part of the binary. OpenVINO and ONNX Runtime (with its providers) are shared
//! libraries that are looked for at run time. [`open`] takes what was asked for, or the fastest that is there,
//! and says in an [`EngineReport`] what runs and why.
//!
//! # Threads
//! One [`Models`] holds one session per network; the sessions of one `Models` run with
//! [`EngineOptions::threads`] threads each. See [`EngineOptions::threads`] for how to share cores.

mod find;
mod onnxruntime;
mod openvino;
mod plugin;
mod precision;
mod rten;

pub use find::{Library, find_onnxruntime, find_openvino, find_openvino_plugin};
pub use plugin::{Load, Plug, Plugin, Started};
pub use precision::bf16_cpu;

use crate::network::{OnnxClassifier, OnnxSegmenter};
use crate::onnx;
use crate::package::ModelPackage;
use mitosis::{Classifier, Segmenter, Symmetric};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Which engine runs the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fastest that is found.
    #[default]
    Auto,
    /// The embedded engine.
    Rten,
    /// ONNX Runtime, opened at run time.
    OnnxRuntime,
    /// The OpenVINO runtime itself, opened at run time.
    OpenVino,
    /// libtorch, in the training build: CPU and GPU.
    Torch,
}

/// Which kernels run the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// CUDA where it is found, then OpenVINO, then the engine's own CPU kernels.
    #[default]
    Auto,
    /// ONNX Runtime's own CPU kernels.
    Cpu,
    /// OpenVINO's CPU kernels: its own runtime, or ONNX Runtime's plug-in (Intel processors only).
    OpenVino,
    /// NVIDIA GPUs.
    Cuda,
    /// NVIDIA GPUs through TensorRT (minutes of compilation at the start).
    TensorRt,
    /// Apple devices.
    CoreMl,
}

/// Arithmetic of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32.
    #[default]
    Auto,
    /// f32.
    F32,
    /// bf16: about twice as fast where provider and processor have it (an error where not), but
    /// scores move by 0.01 and more. Not for results that are compared with f32.
    Bf16,
}

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Every choice, as written on the command line.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word on the command line.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(s: &str) -> Result<Self, String> {
                match s {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("`{s}` is none of {}", Self::WORDS.join(", "))),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words!(EngineChoice {
    Auto = "auto",
    Rten = "rten",
    OnnxRuntime = "onnxruntime",
    OpenVino = "openvino",
    Torch = "torch",
});
words!(Provider {
    Auto = "auto",
    Cpu = "cpu",
    OpenVino = "openvino",
    Cuda = "cuda",
    TensorRt = "tensorrt",
    CoreMl = "coreml",
});
words!(Precision { Auto = "auto", F32 = "f32", Bf16 = "bf16" });

/// How to run the networks. The default is the fastest engine found on all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Engine.
    pub engine: EngineChoice,
    /// Provider of ONNX Runtime.
    pub provider: Provider,
    /// Arithmetic.
    pub precision: Precision,
    /// Threads inside one session; 0 means every core.
    pub threads: usize,
    /// Windows per run of the segmenter; 0 means 1 on a processor, 8 on a GPU.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier; 0 means 1 on a processor, 32 on a GPU.
    pub classifier_batch: usize,
    /// `libonnxruntime` to open instead of the one found.
    pub library: Option<PathBuf>,
    /// The engine behind [`EngineChoice::Torch`], which only the training build has.
    pub torch: Option<Plug>,
}

/// What runs, for `run.json` and the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// `rten`, `onnxruntime`, `openvino` or `torch`.
    pub engine: String,
    /// `cpu`, `openvino`, `cuda`, `tensorrt` or `coreml`.
    pub provider: String,
    /// Shared library, when one was opened.
    pub library: Option<PathBuf>,
    /// Provider plug-in, when one was opened.
    pub plugin: Option<PathBuf>,
    /// Version of the engine.
    pub version: String,
    /// `f32` or `bf16` in the segmenter.
    pub segmenter_precision: String,
    /// `f32` or `bf16` in the classifier.
    pub classifier_precision: String,
    /// Threads inside one session.
    pub threads: usize,
    /// Windows per run of the segmenter.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier.
    pub classifier_batch: usize,
    /// Why a faster engine does not run; `None` when the first choice runs.
    pub fallback_reason: Option<String>,
}

impl fmt::Display for EngineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, version, provider, segmenter_precision: s, threads, .. } = self;
        let c = &self.classifier_precision;
        write!(f, "{engine} {version}, {provider}, ")?;
        match s == c {
            true => write!(f, "{s}")?,
            false => write!(f, "{s} and {c}")?,
        }
        write!(f, ", {threads} threads")?;
        match &self.fallback_reason {
            Some(reason) => write!(f, " (not faster because: {reason})"),
            None => Ok(()),
        }
    }
}

/// Why no engine runs.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A library that was asked for is not there or does not open.
    #[error("{what}: {reason}\n  remedy: {remedy}")]
    Unavailable {
        /// Engine or provider.
        what: String,
        /// What was tried.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A network does not fit its card.
    #[error("{origin}, {network}: {reason}")]
    Model {
        /// Package.
        origin: String,
        /// `segmenter` or `classifier`.
        network: &'static str,
        /// What differs.
        reason: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
}

/// The networks of a package, ready to run, and what runs them.
pub struct Models {
    /// First stage, where the package has one.
    pub segmenter: Option<Box<dyn Segmenter>>,
    /// Second stage, where the package has one.
    pub classifier: Option<Box<dyn Classifier>>,
    /// What runs.
    pub report: EngineReport,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("segmenter", &self.segmenter.is_some())
            .field("classifier", &self.classifier.is_some())
            .field("report", &self.report)
            .finish()
    }
}

/// One network as an engine gets it.
pub struct Network<'a> {
    /// The file's bytes.
    pub onnx: &'a [u8],
    /// Input shape `[N,3,H,W]`, the same for every run.
    pub shape: [usize; 4],
    /// Arithmetic.
    pub precision: Precision,
    /// Named axes of the input with the size they take; 0 for the batch.
    pub symbols: &'a [(String, usize)],
}

/// A loaded network with its input buffer, `[N,3,H,W]` row-major.
pub trait Session: Send {
    /// The buffer that the next run reads.
    ///
    /// # Errors
    /// The engine's own words.
    fn input(&mut self) -> Result<&mut [f32], String>;
    /// The whole output, row-major.
    ///
    /// # Errors
    /// The engine's own words.
    fn run(&mut self) -> Result<Vec<f32>, String>;
}

/// One way to run, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Rten,
    OpenVino,
    OnnxRuntime(Provider),
    Torch,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rten => f.write_str("rten"),
            Self::OpenVino => f.write_str("openvino"),
            Self::Torch => f.write_str("torch"),
            Self::OnnxRuntime(p) => write!(f, "onnxruntime/{p}"),
        }
    }
}

fn order(options: &EngineOptions) -> Result<Vec<Backend>, EngineError> {
    use Backend::{OnnxRuntime, OpenVino, Rten};
    let gpu = || find::nvidia_gpu().then_some(OnnxRuntime(Provider::Cuda)).into_iter();
    let misfit = |engine| {
        Err(EngineError::Options(format!(
            "the {engine} engine has no provider {}; use --engine onnxruntime",
            options.provider
        )))
    };
    match (options.engine, options.provider) {
        (EngineChoice::Rten, Provider::Auto | Provider::Cpu) => Ok(vec![Rten]),
        (EngineChoice::Rten, _) => misfit("rten"),
        (EngineChoice::OpenVino, Provider::Auto | Provider::Cpu | Provider::OpenVino) => {
            Ok(vec![OpenVino])
        }
        (EngineChoice::OpenVino, _) => misfit("openvino"),
        (EngineChoice::Torch, Provider::Auto | Provider::Cpu | Provider::Cuda) => {
            Ok(vec![Backend::Torch])
        }
        (EngineChoice::Torch, _) => misfit("torch"),
        (EngineChoice::OnnxRuntime, Provider::Auto) => {
            Ok(gpu().chain([OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu)]).collect())
        }
        // What was asked for by name is never swapped for something else.
        (EngineChoice::Auto, Provider::OpenVino) if options.library.is_none() => {
            Ok(vec![OpenVino, OnnxRuntime(Provider::OpenVino)])
        }
        (EngineChoice::Auto, Provider::Auto) if options.library.is_some() => {
            Ok(gpu().chain([OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu)]).collect())
        }
        (EngineChoice::Auto, Provider::Auto) => Ok(gpu()
            .chain([OpenVino, OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu), Rten])
            .collect()),
        (EngineChoice::OnnxRuntime | EngineChoice::Auto, named) => Ok(vec![OnnxRuntime(named)]),
    }
}

/// Loads a package's networks on the engine asked for, or on the fastest that is found.
///
/// Each call makes sessions of its own: a worker thread that wants one calls `open` again.
///
/// # Errors
/// [`EngineError`] when a network does not fit its card, or nothing that was asked for runs; the
/// error says what to install.
pub fn open(package: &ModelPackage, options: &EngineOptions) -> Result<Models, EngineError> {
    let mut failures: Vec<(Backend, EngineError)> = Vec::new();
    for backend in order(options)? {
        match open_on(package, options, backend) {
            Ok(mut models) => {
                if !failures.is_empty() {
                    models.report.fallback_reason = Some(reasons(&failures));
                }
                return Ok(models);
            }
            Err(e @ EngineError::Model { .. }) => return Err(e),
            Err(e) => failures.push((backend, e)),
        }
    }
    // The wanted engine's own error; where several were tried, each with its reason.
    match failures.len() {
        1 => Err(failures.swap_remove(0).1),
        _ => Err(EngineError::Unavailable {
            what: "no engine runs".into(),
            reason: reasons(&failures),
            remedy: "try --engine rten, which needs nothing; `mithras doctor` says what is missing"
                .into(),
        }),
    }
}

fn reasons(failures: &[(Backend, EngineError)]) -> String {
    let each =
        failures.iter().map(|(b, e)| format!("{b}: {}", e.to_string().replace("\n  ", "; ")));
    each.collect::<Vec<_>>().join(" | ")
}

fn open_on(
    package: &ModelPackage,
    options: &EngineOptions,
    backend: Backend,
) -> Result<Models, EngineError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let mut loader = Loader::new(backend, options, threads)?;
    let gpu = matches!(loader.report.provider.as_str(), "cuda" | "tensorrt");
    let batch = |asked: usize, on_gpu: usize| match asked {
        0 if gpu => on_gpu,
        0 => 1,
        n => n,
    };
    let misfit =
        |network, reason| EngineError::Model { origin: package.origin.clone(), network, reason };

    let mut segmenter = None;
    let mut segmenter_batch = 0;
    if let (Some(card), Some(bytes)) = (&package.card.segmenter, package.segmenter()) {
        let signature = onnx::signature(bytes, card.window, &[1, card.window, card.window])
            .map_err(|e| misfit("segmenter", e))?;
        segmenter_batch = signature.fixed_batch.unwrap_or(batch(options.segmenter_batch, 8));
        let shape = [segmenter_batch, 3, card.window, card.window];
        let session = loader.load(bytes, shape, loader.precision.segmenter, &signature.symbols)?;
        let name = loader.report.engine.clone();
        segmenter = Some(OnnxSegmenter::new(session, name, card, segmenter_batch));
    }
    let mut classifier = None;
    let mut classifier_batch = 0;
    if let (Some(card), Some(bytes)) = (&package.card.classifier, package.classifier()) {
        let signature = onnx::signature(bytes, card.input, &[card.classes.len()])
            .map_err(|e| misfit("classifier", e))?;
        classifier_batch = signature.fixed_batch.unwrap_or(batch(options.classifier_batch, 32));
        let shape = [classifier_batch, 3, card.input, card.input];
        let session = loader.load(bytes, shape, loader.precision.classifier, &signature.symbols)?;
        let name = loader.report.engine.clone();
        let network = OnnxClassifier::new(session, name, card, classifier_batch);
        classifier = Some(Symmetric::new(network, card.symmetries));
    }
    let report = EngineReport { segmenter_batch, classifier_batch, ..loader.report };
    let mut models = Models {
        segmenter: segmenter.map(|s| Box::new(s) as _),
        classifier: classifier.map(|c| Box::new(c) as _),
        report,
    };
    rehearse(package, &mut models).map_err(|e| EngineError::Unavailable {
        what: backend.to_string(),
        reason: format!("the first run failed: {e}"),
        remedy: "try --engine rten, and report this with the output of `mithras doctor`".into(),
    })?;
    Ok(models)
}

/// One run of each network on a grey tile: an engine that loads a network but cannot run it (a
/// missing kernel, a provider without its device) must show before the work starts.
fn rehearse(package: &ModelPackage, models: &mut Models) -> Result<(), mitosis::PortError> {
    use mitosis::RgbTile;
    if let (Some(card), Some(s)) = (&package.card.segmenter, &mut models.segmenter) {
        s.probabilities(&[RgbTile::filled(card.window, card.window, [200; 3])])?;
    }
    if let (Some(card), Some(c)) = (&package.card.classifier, &mut models.classifier) {
        c.classes(&[RgbTile::filled(card.crop, card.crop, [200; 3])])?;
    }
    Ok(())
}

enum Kernels {
    Rten(std::sync::Arc<::rten::ThreadPool>),
    OpenVino(openvino::Opened),
    OnnxRuntime(onnxruntime::Opened),
    Torch(Load),
}

struct Loader {
    kernels: Kernels,
    precision: precision::Chosen,
    report: EngineReport,
}

impl Loader {
    fn new(backend: Backend, options: &EngineOptions, threads: usize) -> Result<Self, EngineError> {
        let report = EngineReport {
            engine: "rten".into(),
            provider: "cpu".into(),
            library: None,
            plugin: None,
            version: rten::VERSION.into(),
            segmenter_precision: "f32".into(),
            classifier_precision: "f32".into(),
            threads,
            segmenter_batch: 0,
            classifier_batch: 0,
            fallback_reason: None,
        };
        match backend {
            Backend::Rten if options.precision == Precision::Bf16 => {
                Err(EngineError::Options("the rten engine computes in f32 only".into()))
            }
            Backend::Rten => Ok(Self {
                kernels: Kernels::Rten(rten::pool(threads)),
                precision: precision::Chosen::F32,
                report,
            }),
            Backend::OpenVino => {
                let opened = openvino::Opened::new(options.precision, threads)?;
                let precision = opened.precision();
                let report = EngineReport {
                    engine: "openvino".into(),
                    provider: "openvino".into(),
                    library: Some(opened.library().to_path_buf()),
                    version: opened.version().into(),
                    segmenter_precision: precision.segmenter.word().into(),
                    classifier_precision: precision.classifier.word().into(),
                    ..report
                };
                Ok(Self { kernels: Kernels::OpenVino(opened), precision, report })
            }
            Backend::Torch => {
                let Some(Plug(torch)) = &options.torch else {
                    return Err(EngineError::Unavailable {
                        what: "torch".into(),
                        reason: "this build has no libtorch".into(),
                        remedy: "install the training build (`mithras train` says how), or take \
                                 another engine"
                            .into(),
                    });
                };
                let Started { provider, precision, load } =
                    torch.start(options.provider, options.precision, threads)?;
                let report = EngineReport {
                    engine: torch.name().into(),
                    provider: provider.word().into(),
                    version: torch.version(),
                    segmenter_precision: precision.word().into(),
                    classifier_precision: precision.word().into(),
                    ..report
                };
                let precision = precision::Chosen { segmenter: precision, classifier: precision };
                Ok(Self { kernels: Kernels::Torch(load), precision, report })
            }
            Backend::OnnxRuntime(provider) => {
                let opened = onnxruntime::Opened::new(provider, options, threads)?;
                let precision = opened.precision();
                let report = EngineReport {
                    engine: "onnxruntime".into(),
                    provider: provider.word().into(),
                    library: Some(opened.library().to_path_buf()),
                    plugin: opened.plugin().map(Into::into),
                    version: opened.version().into(),
                    segmenter_precision: precision.segmenter.word().into(),
                    classifier_precision: precision.classifier.word().into(),
                    ..report
                };
                Ok(Self { kernels: Kernels::OnnxRuntime(opened), precision, report })
            }
        }
    }

    fn load(
        &mut self,
        onnx: &[u8],
        shape: [usize; 4],
        precision: Precision,
        symbols: &[(String, usize)],
    ) -> Result<Box<dyn Session>, EngineError> {
        let network = Network { onnx, shape, precision, symbols };
        match &self.kernels {
            Kernels::Rten(pool) => rten::load(&network, pool.clone()),
            Kernels::OpenVino(opened) => opened.load(&network),
            Kernels::OnnxRuntime(opened) => opened.load(&network),
            Kernels::Torch(load) => load(&network),
        }
        .map_err(|reason| EngineError::Unavailable {
            what: format!("{}/{}", self.report.engine, self.report.provider),
            reason: format!("the network does not load: {reason}"),
            remedy: "try --engine rten, and report this with the output of `mithras doctor`".into(),
        })
    }
}
