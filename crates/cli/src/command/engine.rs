//! Which engine runs networks, and the options every verb starts from.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use infer::{EngineChoice, EngineOptions, Provider};
use std::path::PathBuf;

/// What runs the networks.
#[derive(clap::Args, Debug, Default)]
pub struct RunArgs {
    /// What runs the networks; auto: the first that runs of CUDA, native (AVX2, AVX-512), openvino, onnxruntime, rten
    #[arg(long, value_name = "E", default_value = "auto", value_parser = choice::<EngineChoice>(EngineChoice::WORDS))]
    engine: EngineChoice,
    /// Which kernels the engine uses
    #[arg(long, value_name = "P", default_value = "auto", value_parser = choice::<Provider>(Provider::WORDS))]
    provider: Provider,
    /// The engine's shared library to open instead of the one found
    #[arg(long, value_name = "FILE")]
    engine_library: Option<PathBuf>,
    /// Threads of the engine, and most threads that decode [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl RunArgs {
    /// How the networks run.
    pub fn options(&self) -> EngineOptions {
        EngineOptions {
            engine: self.engine,
            provider: self.provider,
            threads: self.threads.map_or(0, usize::from),
            library: self.engine_library.clone(),
            ..options()
        }
    }
}

/// A choice by its word.
pub fn choice<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|s| s.parse::<T>())
}

/// Defaults, with libtorch where this build has it.
pub fn options() -> EngineOptions {
    #[cfg(feature = "train")]
    let torch = Some(infer::Plug(std::sync::Arc::new(training::torch::Torch::default())));
    #[cfg(not(feature = "train"))]
    let torch = None;
    EngineOptions { torch, ..EngineOptions::default() }
}
