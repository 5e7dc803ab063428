//! libtorch as an engine: the ports over the very file that is shipped.

use infer::{
    EngineChoice, EngineError, EngineOptions, Network, Plug, Plugin, Provider, Session, Started,
};
use net::device;
use net::onnx::Program;
use std::sync::Arc;

/// libtorch of the training build.
#[derive(Clone, Debug, Default)]
pub struct Torch {
    /// Its device where the provider names none: `auto`, `cpu`, `cuda`, `cuda:N`.
    device: Option<String>,
}

/// Weights on a device of libtorch's: with `auto` on its GPU, where there is one and neither an engine nor a provider
/// was asked for.
///
/// # Errors
/// [`EngineError::Options`] of a GPU of libtorch's next to another engine, or to a provider.
pub fn on_device(options: EngineOptions, device: &str) -> Result<EngineOptions, EngineError> {
    let EngineOptions { engine, provider, .. } = options;
    let own = matches!(engine, EngineChoice::Auto | EngineChoice::Torch);
    let free = own && provider == Provider::Auto;
    let gpu = || engine == EngineChoice::Auto && device::pick("auto").is_ok_and(|d| d.is_cuda());
    match device {
        "auto" if !(free && gpu()) => return Ok(options),
        "cpu" if !free => return Ok(options),
        _ if !free => {
            return Err(EngineError::Options(format!(
                "the device {device} is of libtorch, but another engine or a provider is named"
            )));
        }
        _ => {}
    }
    let torch = Some(Plug(Arc::new(Torch { device: Some(device.into()) })));
    Ok(EngineOptions { engine: EngineChoice::Torch, torch, ..options })
}

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
            _ => self.device.as_deref().unwrap_or("auto"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_the_provider_cpu_runs() {
        let torch = Torch::default();
        let on = |provider| torch.start(provider, 1).map(|s| s.provider).map_err(|e| e.to_string());
        match on(Provider::Cuda) {
            Ok(_) => eprintln!("SKIPPED: libtorch has a GPU here"),
            Err(e) => assert!(e.contains("take the provider cpu"), "{e}"),
        }
        assert_eq!(on(Provider::Cpu), Ok(Provider::Cpu));
    }
}
