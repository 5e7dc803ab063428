//! The project's own executor for convolutional networks (crate `kernels`): part of the binary.

use super::{Network, Session};
use base::panics;
use kernels::{Isa, PlanOptions, Workspace};

/// Images that one thread takes through each layer together, at most.
const TOGETHER: usize = 4;

struct Native {
    network: kernels::Network,
    workspaces: Vec<Workspace>,
    threads: usize,
    /// `[N,C,H,W]` of the network's shape.
    buffer: Vec<f32>,
    images: usize,
}

/// Whether its speed was measured against the other engines on this kind of processor (docs/results/speed.md), so that
/// `auto` may take it.
#[must_use]
pub fn native_is_automatic() -> bool {
    matches!(Isa::best(), Isa::Avx512 | Isa::Avx2)
}

/// Version and instruction set, which moves the last digits.
pub(crate) fn version() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), Isa::best())
}

/// Crops per run, at least: a screen lets less than half of them pass, and what passes fills [`TOGETHER`] for two
/// threads. A crop takes 110 KiB.
const CROPS: usize = 32;

/// Windows per run where nothing is asked for: one for each thread.
pub(crate) fn windows(threads: usize) -> usize {
    threads
}

/// Crops per run where nothing is asked for: as many as keep each thread busy.
pub(crate) fn crops(threads: usize) -> usize {
    (4 * threads).max(CROPS)
}

/// Plans a network of images.
///
/// # Errors
/// A network that does not take images, or the operator that the executor lacks.
pub(crate) fn load(network: &Network<'_>, threads: usize) -> Result<Box<dyn Session>, String> {
    let &[images, c, h, w] = network.shape else {
        return Err(format!("it takes {:?}, and this engine takes images", network.shape));
    };
    let options = PlanOptions {
        together: images.div_ceil(threads.max(1)).clamp(1, TOGETHER),
        bf16_from: network.bf16_from,
        ..PlanOptions::new(network.input, [c, h, w], network.output)
    };
    let plan = || kernels::Network::plan(network.onnx.clone(), &options).map_err(|e| e.to_string());
    Ok(Box::new(Native {
        network: panics::catch_panic(plan)?,
        workspaces: vec![],
        threads,
        buffer: vec![0.0; images * c * h * w],
        images,
    }))
}

impl Session for Native {
    fn input(&mut self) -> Result<&mut [f32], String> {
        Ok(&mut self.buffer)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        self.run_first(self.images)
    }

    fn run_first(&mut self, images: usize) -> Result<Vec<f32>, String> {
        let images = images.min(self.images);
        let input = &self.buffer[..images * self.network.input_len()];
        let mut output = vec![0.0; images * self.network.output_len()];
        self.network
            .run(&mut self.workspaces, input, &mut output, self.threads)
            .map_err(|e| e.to_string())?;
        Ok(output)
    }
}
