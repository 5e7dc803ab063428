//! ONNX Runtime, opened at run time, with its providers.
//!
//! A process holds one ONNX Runtime: the first that opens stays, and asking for another is an
//! error.

use super::find::{
    INSTALL_CUDA, INSTALL_OPENVINO, INSTALL_RUNTIME, find_onnxruntime, find_openvino_plugin,
};
use super::{EngineError, EngineOptions, Network, Provider, Session};
use crate::session::Symbol;
use ort::environment::Environment;
use ort::ep;
use ort::logging::LogLevel;
use ort::memory::DeviceType;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Oldest ONNX Runtime that has the calls in use (1.x).
const OLDEST: u32 = 24;
/// What the plug-in calls itself.
const OPENVINO: &str = "OpenVINOExecutionProvider";

struct Runtime {
    environment: Environment,
    library: PathBuf,
    version: String,
    plugins: Mutex<BTreeMap<PathBuf, Result<(), String>>>,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// A runtime with a provider and its settings.
pub(crate) struct Opened {
    runtime: &'static Runtime,
    provider: Provider,
    plugin: Option<PathBuf>,
    threads: usize,
}

fn unavailable(what: &str, reason: impl Into<String>, remedy: &str) -> EngineError {
    EngineError::Unavailable { what: what.into(), reason: reason.into(), remedy: remedy.into() }
}

fn text<R>(e: ort::Error<R>) -> String {
    e.message().to_string()
}

/// Opens the library named, or the first usable one found.
fn runtime(library: Option<&Path>) -> Result<&'static Runtime, EngineError> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let fail = |reason: String| unavailable("onnxruntime", reason, INSTALL_RUNTIME);

    if let Some(open) = RUNTIME.get() {
        let same = |p: &Path| p.canonicalize().ok() == open.library.canonicalize().ok();
        return match library {
            Some(p) if !same(p) => Err(fail(format!(
                "this process already runs {}, it cannot open {} too",
                open.library.display(),
                p.display()
            ))),
            _ => Ok(open),
        };
    }
    let candidates = match library {
        Some(p) if !p.is_file() => return Err(fail(format!("no file {}", p.display()))),
        Some(p) => vec![p.to_path_buf()],
        None => find_onnxruntime().into_iter().map(|l| l.path).collect(),
    };
    let mut refused = Vec::new();
    for path in candidates {
        match read_version(&path).and_then(|v| start(&path).map(|e| (v, e))) {
            Ok((version, environment)) => {
                environment.set_log_level(LogLevel::Error);
                let open =
                    Runtime { environment, library: path, version, plugins: Mutex::default() };
                return Ok(RUNTIME.get_or_init(|| open));
            }
            Err(reason) => refused.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(fail(if refused.is_empty() {
        "no libonnxruntime in ORT_DYLIB_PATH, the Python environments or the system folders".into()
    } else {
        refused.join("; ")
    }))
}

fn start(path: &Path) -> Result<Environment, String> {
    ort::init_from(path)
        .map_err(|e| e.to_string())?
        .with_name("mithras")
        .with_telemetry(false)
        .build()
        .map_err(text)
}

/// Asks a library for its version without starting it, so that one that is too old can be passed
/// by for the next.
pub(crate) fn read_version(path: &Path) -> Result<String, String> {
    #[repr(C)]
    struct ApiBase {
        get_api: unsafe extern "C" fn(u32) -> *const std::ffi::c_void,
        get_version: unsafe extern "C" fn() -> *const c_char,
    }
    // SAFETY: opening runs the library's initialisers; it is named or found as ONNX Runtime.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
    // SAFETY: `OrtGetApiBase` has had this C signature in every release of ONNX Runtime.
    let version = unsafe {
        let base: libloading::Symbol<'_, unsafe extern "C" fn() -> *const ApiBase> =
            library.get(b"OrtGetApiBase").map_err(|_| "it is not ONNX Runtime".to_string())?;
        let base = base();
        if base.is_null() {
            return Err("it has no API".into());
        }
        CStr::from_ptr(((*base).get_version)()).to_string_lossy().into_owned()
    };
    // The runtime does not like being unloaded, and is opened again in a moment.
    std::mem::forget(library);
    let minor = version.split('.').nth(1).and_then(|m| m.parse::<u32>().ok());
    match minor {
        Some(minor) if version.starts_with("1.") && minor >= OLDEST => Ok(version),
        _ => Err(format!("version {version}, at least 1.{OLDEST} is needed")),
    }
}

impl Runtime {
    /// Registers a plug-in once per process.
    fn register(&self, path: &Path) -> Result<(), String> {
        let mut plugins = self.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        plugins
            .entry(path.to_path_buf())
            .or_insert_with(|| self.environment.register_ep_library("OpenVINO", path).map_err(text))
            .clone()
    }

    fn openvino(&self) -> Result<PathBuf, EngineError> {
        let fail =
            |reason: String, remedy: &str| Err(unavailable("onnxruntime/openvino", reason, remedy));
        let found = find_openvino_plugin(Some(&self.library));
        let mut refused = Vec::new();
        for plugin in found {
            match self.register(&plugin.path) {
                Ok(()) if self.openvino_cpu().next().is_some() => return Ok(plugin.path),
                Ok(()) => refused.push(format!(
                    "{}: it serves Intel processors only and finds none here",
                    plugin.path.display()
                )),
                Err(e) => refused.push(format!("{}: {e}", plugin.path.display())),
            }
        }
        if refused.is_empty() {
            let reason =
                "no OpenVINO provider plug-in in the Python environments or the system folders";
            return fail(reason.into(), INSTALL_OPENVINO);
        }
        // To install what is here already does not help.
        fail(refused.join("; "), "take the engine openvino, which may run it")
    }

    fn openvino_cpu(&self) -> impl Iterator<Item = ort::device::Device<'_>> {
        self.environment.devices().filter(|d| {
            d.ep().is_ok_and(|name| name == OPENVINO) && d.hardware_device().ty() == DeviceType::CPU
        })
    }
}

impl Opened {
    pub(crate) fn new(
        provider: Provider,
        options: &EngineOptions,
        threads: usize,
    ) -> Result<Self, EngineError> {
        let runtime = runtime(options.library.as_deref())?;
        let plugin = match provider {
            Provider::OpenVino => Some(runtime.openvino()?),
            _ => None,
        };
        Ok(Self { runtime, provider, plugin, threads })
    }

    pub(crate) fn library(&self) -> &Path {
        &self.runtime.library
    }

    pub(crate) fn plugin(&self) -> Option<&Path> {
        self.plugin.as_deref()
    }

    pub(crate) fn version(&self) -> &str {
        &self.runtime.version
    }

    /// Loads a network.
    ///
    /// # Errors
    /// The runtime's own message.
    pub(crate) fn load(&self, network: &Network<'_>) -> Result<Box<dyn Session>, String> {
        let mut builder = SessionBuilder::new(&self.runtime.environment)
            .map_err(text)?
            .with_optimization_level(GraphOptimizationLevel::All)
            .map_err(text)?
            // Two networks share the cores: a waiting one must not burn them.
            .with_intra_op_spinning(false)
            .map_err(text)?
            .with_inter_threads(1)
            .map_err(text)?;
        for Symbol { name, size } in network.symbols {
            let size = if *size == 0 { network.shape[0] } else { *size };
            let size = i64::try_from(size).map_err(|e| e.to_string())?;
            builder = builder.with_dimension_override(name, size).map_err(text)?;
        }
        let own_threads = if self.provider == Provider::OpenVino { 1 } else { self.threads };
        let builder = builder.with_intra_threads(own_threads).map_err(text)?;
        let mut builder = self.with_provider(builder)?;
        let session = builder.commit_from_memory(network.onnx).map_err(text)?;
        Ok(Box::new(OnnxRuntime {
            session,
            buffer: vec![0.0; network.shape.iter().product()],
            shape: network.shape.to_vec(),
            input: network.input.into(),
            output: network.output.into(),
        }))
    }

    fn with_provider(&self, builder: SessionBuilder) -> Result<SessionBuilder, String> {
        let dispatch = match self.provider {
            Provider::Auto | Provider::Cpu => return Ok(builder),
            Provider::OpenVino => {
                let config = format!(
                    r#"{{"CPU":{{"PERFORMANCE_HINT":"LATENCY","NUM_STREAMS":"1","INFERENCE_NUM_THREADS":"{}","INFERENCE_PRECISION_HINT":"f32"}}}}"#,
                    self.threads
                );
                let options = [(format!("{OPENVINO}.load_config"), config)];
                let devices = self.runtime.openvino_cpu().take(1);
                return builder.with_devices(devices, Some(&options)).map_err(text);
            }
            Provider::Cuda => ep::CUDA::default().build(),
            Provider::TensorRt => ep::TensorRT::default().build(),
            Provider::CoreMl => ep::CoreML::default().build(),
        };
        // A provider asked for by name must not turn into the CPU behind the user's back.
        builder.with_execution_providers([dispatch.error_on_failure()]).map_err(|e| {
            let e = text(e);
            match self.provider {
                Provider::Cuda | Provider::TensorRt => format!("{e}; {INSTALL_CUDA}"),
                _ => e,
            }
        })
    }
}

struct OnnxRuntime {
    session: ort::session::Session,
    buffer: Vec<f32>,
    shape: Vec<usize>,
    input: String,
    output: String,
}

impl Session for OnnxRuntime {
    fn input(&mut self) -> Result<&mut [f32], String> {
        Ok(&mut self.buffer)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        let tensor =
            TensorRef::from_array_view((self.shape.as_slice(), &*self.buffer)).map_err(text)?;
        let outputs =
            self.session.run(ort::inputs![self.input.as_str() => tensor]).map_err(text)?;
        let output =
            outputs.get(&self.output).ok_or_else(|| format!("no output `{}`", self.output))?;
        let (_, data) = output.try_extract_tensor::<f32>().map_err(text)?;
        Ok(data.to_vec())
    }
}
