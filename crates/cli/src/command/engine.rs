//! The engine options every verb starts from.

use infer::EngineOptions;

/// Defaults, with libtorch where this build has it.
pub fn options() -> EngineOptions {
    #[cfg(feature = "train")]
    let torch = Some(infer::Plug(std::sync::Arc::new(mithras::torch::Torch)));
    #[cfg(not(feature = "train"))]
    let torch = None;
    EngineOptions { torch, ..EngineOptions::default() }
}
