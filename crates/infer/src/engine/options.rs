//! What may be asked of an engine, and what runs.

use super::choice::{EngineChoice, Precision, Provider};
use super::plugin::Plug;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// How to run the networks. The default is the first engine of [`EngineChoice::Auto`]'s order that runs, on all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Which engine runs the networks.
    pub engine: EngineChoice,
    /// Provider of ONNX Runtime.
    pub provider: Provider,
    /// f32, or bf16 where that is allowed ([`Precision::Bf16`]).
    pub precision: Precision,
    /// Threads inside one session; 0 means every core.
    pub threads: usize,
    /// Windows per run of the segmenter; 0 means 1 on a processor (`native`: one per thread), 8 on a GPU.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier, 0 being 1 on a processor and 32 on a GPU; images per run of
    /// an encoder, 0 being 8 and 64.
    pub classifier_batch: usize,
    /// `libonnxruntime` to open instead of the one found.
    pub library: Option<PathBuf>,
    /// The engine behind [`EngineChoice::Torch`], which only the training build has.
    pub torch: Option<Plug>,
}

impl EngineOptions {
    /// The same for each of `n` that work at once: its share of the threads.
    #[must_use]
    pub fn shared(mut self, n: usize) -> Self {
        if n > 1 {
            self.threads = (self.threads_or_cores() / n).max(1);
        }
        self
    }

    /// Threads inside one session, a 0 resolved.
    pub(super) fn threads_or_cores(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }
}

/// What runs, for `run.json` and the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// `rten`, `native`, `onnxruntime`, `openvino` or `torch`; where `native` runs some of a package's networks and
    /// another engine the rest, both in the order of the networks, as `native+rten`.
    pub engine: String,
    /// `cpu`, `openvino`, `cuda`, `tensorrt` or `coreml`.
    pub provider: String,
    /// Shared library, when one was opened.
    #[serde(serialize_with = "base::json::lossy")]
    pub library: Option<PathBuf>,
    /// Provider plug-in, when one was opened.
    #[serde(serialize_with = "base::json::lossy")]
    pub plugin: Option<PathBuf>,
    /// Version of the engine; of both, as `0.1.0 avx512+0.27.0`.
    pub version: String,
    /// `f32`, or `bf16` for a segmenter whose decoder computes in bf16, and for an encoder.
    pub segmenter_precision: String,
    /// `f32`, or `bf16` for a classifier whose card allows it, and for an encoder.
    pub classifier_precision: String,
    /// Threads inside one session.
    pub threads: usize,
    /// Windows per run of the segmenter.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier, or images per run of an encoder.
    pub classifier_batch: usize,
    /// Why a faster engine does not run; `None` when the first choice runs.
    pub fallback_reason: Option<String>,
}

impl EngineReport {
    /// The engine of the first of a package's networks.
    #[must_use]
    pub fn first_engine(&self) -> &str {
        self.engine.split('+').next().unwrap_or_default()
    }

    /// Names `native`, too, where it runs some of the networks; `native` alone where it runs all of them.
    pub(super) fn add_native(&mut self, runs: &[bool]) {
        if self.engine == "native" || !runs.contains(&true) {
            return;
        }
        let joined = |own: &str, other: &str| {
            let mut each: Vec<_> = runs.iter().map(|&r| if r { own } else { other }).collect();
            each.dedup();
            each.join("+")
        };
        self.version = joined(&super::native::version(), &self.version);
        self.engine = joined("native", &self.engine);
    }
}

/// Letters of the reason for a slower engine that a line of text has room for.
const LONGEST_REASON: usize = 120;

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
            Some(reason) => {
                // All of it is in the run's files.
                let short: String = reason.chars().take(LONGEST_REASON).collect();
                let more = if short.len() < reason.len() { "..." } else { "" };
                write!(f, " (not faster because: {}{more})", short.trim_end())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_takes_one_line_of_text_and_stays_whole_in_the_files() {
        let report = |reason: &str| EngineReport {
            engine: "rten".into(),
            provider: "cpu".into(),
            library: None,
            plugin: None,
            version: "1".into(),
            segmenter_precision: "f32".into(),
            classifier_precision: "f32".into(),
            threads: 2,
            segmenter_batch: 1,
            classifier_batch: 1,
            fallback_reason: Some(reason.into()),
        };
        let long = "openvino: über neun Bibliotheken fehlen; ".repeat(40);
        let text = report(&long).to_string();
        assert!(text.chars().count() < 230 && text.contains("not faster because"), "{text}");
        assert!(text.ends_with("...)"), "{text}");
        let kept = serde_json::to_string(&report(&long)).unwrap();
        assert!(kept.contains(&long), "{kept}");
        assert!(report("no AVX").to_string().ends_with("(not faster because: no AVX)"));
    }
}
