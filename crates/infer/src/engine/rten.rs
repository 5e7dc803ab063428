//! The embedded engine: pure Rust, always there.

use super::{Network, Session};
use crate::onnx::for_rten;
use base::panics;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::{Tensor, TensorView};
use std::sync::Arc;

/// Version of the engine in this build.
pub(crate) const VERSION: &str = env!("RTEN_VERSION");

/// Weights of a file from here on are not packed before the first run: that would be a second copy of
/// all of them, and packing each time is little next to multiplying.
const LARGE: usize = 512 << 20;

struct Rten {
    model: Model,
    input: NodeId,
    output: NodeId,
    options: RunOptions,
    buffer: Vec<f32>,
    shape: Vec<usize>,
}

/// A pool that the networks of one [`crate::open`] share.
pub(crate) fn pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(ThreadPool::with_num_threads(threads))
}

/// Loads a network.
///
/// # Errors
/// The engine's own message.
pub(crate) fn load(
    network: &Network<'_>,
    pool: Arc<ThreadPool>,
) -> Result<Box<dyn Session>, String> {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(network.onnx.len() < LARGE);
    let onnx = for_rten(network.onnx)?.into_owned();
    let model = panics::catch_panic(|| options.load(onnx).map_err(|e| e.to_string()))?;
    let node = |name| model.node_id(name).map_err(|e| e.to_string());
    Ok(Box::new(Rten {
        input: node(network.input)?,
        output: node(network.output)?,
        options: RunOptions::default().with_thread_pool(Some(pool)),
        buffer: vec![0.0; network.shape.iter().product()],
        shape: network.shape.to_vec(),
        model,
    }))
}

impl Session for Rten {
    fn input(&mut self) -> Result<&mut [f32], String> {
        Ok(&mut self.buffer)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        let view = TensorView::from_data(self.shape.as_slice(), &*self.buffer);
        let [output]: [Value; 1] = self
            .model
            .run_n(vec![(self.input, view.into())], [self.output], Some(self.options.clone()))
            .map_err(|e| e.to_string())?;
        let output: Tensor<f32> =
            output.try_into().map_err(|e: rten::TryFromValueError| e.to_string())?;
        Ok(output.into_data())
    }
}
