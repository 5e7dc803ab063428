//! The OpenVINO runtime itself, opened at run time through its C library.
//!
//! The provider plug-in of ONNX Runtime takes Intel processors only; OpenVINO's own library runs
//! the same kernels on any x86-64 processor.

use super::find::{INSTALL_OPENVINO_RUNTIME, find_openvino};
use super::precision::{self, Chosen};
use super::{EngineError, Network, Precision, Session};
use crate::onnx::{INPUT, OUTPUT};
use openvino::{Core, DeviceType, InferRequest, PartialShape, RwPropertyKey, Tensor};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

struct Runtime {
    core: Mutex<Core>,
    library: PathBuf,
    version: String,
}

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// The runtime with its settings.
pub(crate) struct Opened {
    runtime: &'static Runtime,
    precision: Chosen,
    threads: usize,
}

/// Opens the first usable library found; its failure is remembered too.
fn runtime() -> Result<&'static Runtime, EngineError> {
    let opened = RUNTIME.get_or_init(|| {
        let mut refused = Vec::new();
        for library in find_openvino() {
            match start(&library.path) {
                Ok((core, version)) => {
                    return Ok(Runtime { core: Mutex::new(core), library: library.path, version });
                }
                Err(e) => refused.push(format!("{}: {e}", library.path.display())),
            }
        }
        Err(if refused.is_empty() {
            "no libopenvino_c in the Python environments or the system folders".into()
        } else {
            refused.join("; ")
        })
    });
    opened.as_ref().map_err(|reason| EngineError::Unavailable {
        what: "openvino".into(),
        reason: reason.clone(),
        remedy: INSTALL_OPENVINO_RUNTIME.into(),
    })
}

fn start(path: &Path) -> Result<(Core, String), String> {
    openvino_sys::library::load_from(path.to_path_buf())?;
    let core = Core::new().map_err(|e| e.to_string())?;
    // The library without its CPU plug-in is of no use.
    core.versions("CPU").map_err(|e| e.to_string())?;
    let build = openvino::version().build_number;
    let version = build.split('-').next().unwrap_or(&build).to_string();
    Ok((core, version))
}

impl Opened {
    pub(crate) fn new(asked: Precision, threads: usize) -> Result<Self, EngineError> {
        let runtime = runtime()?;
        let precision = precision::choose(asked, true)?;
        Ok(Self { runtime, precision, threads })
    }

    pub(crate) fn library(&self) -> &Path {
        &self.runtime.library
    }

    pub(crate) fn version(&self) -> &str {
        &self.runtime.version
    }

    pub(crate) fn precision(&self) -> Chosen {
        self.precision
    }

    /// Compiles a network for its fixed input shape.
    ///
    /// # Errors
    /// The runtime's own message.
    pub(crate) fn load(&self, network: &Network<'_>) -> Result<Box<dyn Session>, String> {
        let text = |e: openvino::InferenceError| e.to_string();
        let mut core = self.runtime.core.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu = DeviceType::CPU;
        let threads = self.threads.to_string();
        for (key, value) in [
            (RwPropertyKey::HintPerformanceMode, "LATENCY"),
            (RwPropertyKey::NumStreams, "1"),
            (RwPropertyKey::InferenceNumThreads, &threads),
            (RwPropertyKey::HintInferencePrecision, network.precision.word()),
        ] {
            core.set_property(&cpu, &key, value).map_err(text)?;
        }
        let mut model = core.read_model_from_buffer(network.onnx, None).map_err(text)?;
        let shape = network.shape.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let shape = PartialShape::new_static(4, &shape).map_err(text)?;
        model.reshape_input_by_name(INPUT, &shape).map_err(text)?;
        let mut compiled = core.compile_model(&model, cpu).map_err(text)?;
        let request = compiled.create_infer_request().map_err(text)?;
        let input = request.get_tensor(INPUT).map_err(text)?;
        Ok(Box::new(OpenVino { request, input }))
    }
}

struct OpenVino {
    request: InferRequest,
    input: Tensor,
}

impl Session for OpenVino {
    fn input(&mut self) -> Result<&mut [f32], String> {
        self.input.get_data_mut::<f32>().map_err(|e| e.to_string())
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        self.request.infer().map_err(|e| e.to_string())?;
        let output = self.request.get_tensor(OUTPUT).map_err(|e| e.to_string())?;
        Ok(output.get_data::<f32>().map_err(|e| e.to_string())?.to_vec())
    }
}
