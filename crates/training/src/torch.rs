//! libtorch as an engine: the ports over the very file that is shipped.

use infer::{EngineError, Network, Plugin, Provider, Session, Started};
use net::device;
use net::onnx::Program;

/// libtorch of the training build.
#[derive(Clone, Copy, Debug, Default)]
pub struct Torch;

impl Plugin for Torch {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn version(&self) -> String {
        device::version()
    }

    fn start(&self, provider: Provider, threads: usize) -> Result<Started, EngineError> {
        let asked = match provider {
            Provider::Cpu => "cpu",
            Provider::Cuda => "cuda",
            _ => "auto",
        };
        let device = device::pick(asked).map_err(|e| EngineError::Unavailable {
            what: format!("torch/{asked}"),
            reason: e.to_string(),
            remedy: "take the provider cpu".into(),
        })?;
        device::set_threads(threads);
        let provider = if device.is_cuda() { Provider::Cuda } else { Provider::Cpu };
        let load = Box::new(move |network: &Network<'_>| {
            let program = Program::load(network.onnx, device, network.bf16_from)
                .map_err(|e| e.to_string())?;
            let shape = network.shape.iter().map(|n| *n as i64).collect();
            let buffer = vec![0.0; network.shape.iter().product()];
            Ok(Box::new(Loaded { program, shape, buffer }) as Box<dyn Session>)
        });
        Ok(Started { provider, load })
    }
}

struct Loaded {
    program: Program,
    shape: Vec<i64>,
    buffer: Vec<f32>,
}

impl Session for Loaded {
    fn input(&mut self) -> Result<&mut [f32], String> {
        Ok(&mut self.buffer)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        self.program.run_buffer(&self.buffer, &self.shape).map_err(|e| e.to_string())
    }
}
