//! The OpenVINO runtime itself, opened at run time through its C library.
//!
//! The provider plug-in of ONNX Runtime takes Intel processors only; OpenVINO's own library runs
//! the same kernels on any x86-64 processor.

use super::find::{INSTALL_OPENVINO_RUNTIME, find_openvino};
use super::{EngineError, Network, Precision, Session};
use crate::onnx;
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
    pub(crate) fn new(threads: usize) -> Result<Self, EngineError> {
        Ok(Self { runtime: runtime()?, threads })
    }

    pub(crate) fn library(&self) -> &Path {
        &self.runtime.library
    }

    pub(crate) fn version(&self) -> &str {
        &self.runtime.version
    }

    /// Compiles a network for its fixed input shape, in two parts where its end is in bf16: the
    /// runtime takes one precision per network.
    ///
    /// # Errors
    /// The runtime's own message.
    pub(crate) fn load(&self, network: &Network<'_>) -> Result<Box<dyn Session>, String> {
        let side = |n: &usize| i64::try_from(*n).unwrap_or(i64::MAX);
        let image = [(network.input, network.shape.iter().map(side).collect())];
        let from = match network.bf16_from {
            Some(from) if from != network.input => from,
            all => {
                let precision = if all.is_some() { Precision::Bf16 } else { Precision::F32 };
                let whole = self.compile(network.onnx, &image, precision)?;
                return OpenVino::session(vec![whole], network);
            }
        };
        let halves = onnx::cut(network.onnx, from)?;
        let first = self.compile(&halves.first, &image, Precision::F32)?;
        let mut handed = Vec::new();
        for name in &halves.between {
            let value = first.get_tensor(name).map_err(text)?;
            let shape = value.get_shape().map_err(text)?;
            handed.push((name.as_str(), shape.get_dimensions().to_vec(), value));
        }
        let shapes: Vec<_> = handed.iter().map(|(n, s, _)| (*n, s.clone())).collect();
        let mut second = self.compile(&halves.second, &shapes, Precision::Bf16)?;
        for (name, _, value) in &handed {
            second.set_tensor(name, value).map_err(text)?;
        }
        OpenVino::session(vec![first, second], network)
    }

    fn compile(
        &self,
        onnx: &[u8],
        inputs: &[(&str, Vec<i64>)],
        precision: Precision,
    ) -> Result<InferRequest, String> {
        let mut core = self.runtime.core.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu = DeviceType::CPU;
        let threads = self.threads.to_string();
        for (key, value) in [
            (RwPropertyKey::HintPerformanceMode, "LATENCY"),
            (RwPropertyKey::NumStreams, "1"),
            (RwPropertyKey::InferenceNumThreads, &threads),
            (RwPropertyKey::HintInferencePrecision, precision.word()),
        ] {
            core.set_property(&cpu, &key, value).map_err(text)?;
        }
        let mut model = core.read_model_from_buffer(onnx, None).map_err(text)?;
        let mut shapes = Vec::new();
        for (name, dims) in inputs {
            let rank = i64::try_from(dims.len()).map_err(|e| e.to_string())?;
            shapes.push((*name, PartialShape::new_static(rank, dims).map_err(text)?));
        }
        let shapes: Vec<_> = shapes.iter().map(|(name, s)| (*name, s)).collect();
        model.reshape(&shapes).map_err(text)?;
        let mut compiled = core.compile_model(&model, cpu).map_err(text)?;
        compiled.create_infer_request().map_err(text)
    }
}

fn text(e: openvino::InferenceError) -> String {
    e.to_string()
}

struct OpenVino {
    /// One after the other; each reads what the one before wrote.
    parts: Vec<InferRequest>,
    input: Tensor,
    output: String,
}

impl OpenVino {
    fn session(
        parts: Vec<InferRequest>,
        network: &Network<'_>,
    ) -> Result<Box<dyn Session>, String> {
        let input = parts[0].get_tensor(network.input).map_err(text)?;
        Ok(Box::new(Self { parts, input, output: network.output.into() }))
    }
}

impl Session for OpenVino {
    fn input(&mut self) -> Result<&mut [f32], String> {
        self.input.get_data_mut::<f32>().map_err(text)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        for part in &mut self.parts {
            part.infer().map_err(text)?;
        }
        let output = self.parts[self.parts.len() - 1].get_tensor(&self.output).map_err(text)?;
        Ok(output.get_data::<f32>().map_err(text)?.to_vec())
    }
}
