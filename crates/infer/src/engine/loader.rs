//! One way to run: its library opened, its networks loaded.

use super::{
    EngineError, EngineOptions, EngineReport, Load, Network, Plug, Provider, Session, Started,
    native, onnxruntime, openvino, rten,
};
use crate::onnx;
use crate::session::Chain;
use mitosis::PortError;
use std::fmt;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

/// One way to run, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    Rten,
    Native,
    OpenVino,
    OnnxRuntime(Provider),
    Torch,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rten => f.write_str("rten"),
            Self::Native => f.write_str("native"),
            Self::OpenVino => f.write_str("openvino"),
            Self::Torch => f.write_str("torch"),
            Self::OnnxRuntime(p) => write!(f, "onnxruntime/{p}"),
        }
    }
}

enum Kernels {
    Rten(std::sync::Arc<::rten::ThreadPool>),
    /// Threads.
    Native(usize),
    /// `native` for each network that it runs, the other for the rest.
    NativeAnd(usize, Box<Loader>),
    OpenVino(openvino::Opened),
    OnnxRuntime(onnxruntime::Opened),
    Torch(Load),
}

/// Loads networks on one way to run.
pub(super) struct Loader {
    kernels: Kernels,
    pub(super) report: EngineReport,
}

/// What to do where an engine does not run a network: never to take the engine that has just failed.
pub(super) fn other_engine(failed: &str, functions: bool) -> String {
    if functions {
        return "the file calls functions of its own, which not every engine knows: write it without them if \
                `onnx.inliner.inline_local_functions` (Python package onnx) can, and convert it again"
            .into();
    }
    let other = if failed == "rten" { "onnxruntime, which runs all of ONNX" } else { "rten" };
    format!(
        "take the engine {other}, which may run it, and report this with the output of `mithras doctor`"
    )
}

impl Loader {
    pub(super) fn new(backend: Backend, options: &EngineOptions) -> Result<Self, EngineError> {
        let threads = options.threads_or_cores();
        let report = EngineReport {
            engine: "rten".into(),
            provider: "cpu".into(),
            library: None,
            plugin: None,
            version: rten::VERSION.into(),
            segmenter_precision: "f32".into(),
            classifier_precision: "f32".into(),
            threads,
            segmenter_batch: 0,
            classifier_batch: 0,
            fallback_reason: None,
        };
        match backend {
            Backend::Rten => Ok(Self { kernels: Kernels::Rten(rten::pool(threads)), report }),
            Backend::Native => {
                let (engine, version) = ("native".into(), native::version());
                let report = EngineReport { engine, version, ..report };
                Ok(Self { kernels: Kernels::Native(threads), report })
            }
            Backend::OpenVino => {
                let opened = openvino::Opened::new(threads)?;
                let report = EngineReport {
                    engine: "openvino".into(),
                    provider: "openvino".into(),
                    library: Some(opened.library().to_path_buf()),
                    version: opened.version().into(),
                    ..report
                };
                Ok(Self { kernels: Kernels::OpenVino(opened), report })
            }
            Backend::Torch => {
                let Some(Plug(torch)) = &options.torch else {
                    return Err(EngineError::Unavailable {
                        what: "torch".into(),
                        reason: "this build has no libtorch".into(),
                        remedy: "install the training build (`mithras train` prints how), or take \
                                 another engine"
                            .into(),
                    });
                };
                let Started { provider, load } = torch.start(options.provider, threads)?;
                let report = EngineReport {
                    engine: torch.name().into(),
                    provider: provider.word().into(),
                    version: torch.version(),
                    ..report
                };
                Ok(Self { kernels: Kernels::Torch(load), report })
            }
            Backend::OnnxRuntime(provider) => {
                let opened = onnxruntime::Opened::new(provider, options, threads)?;
                let report = EngineReport {
                    engine: "onnxruntime".into(),
                    provider: provider.word().into(),
                    library: Some(opened.library().to_path_buf()),
                    plugin: opened.plugin().map(Into::into),
                    version: opened.version().into(),
                    ..report
                };
                Ok(Self { kernels: Kernels::OnnxRuntime(opened), report })
            }
        }
    }

    /// `native` for each network that it runs, this one for the rest.
    pub(super) fn beside_native(self) -> Self {
        let (threads, report) = (self.report.threads, self.report.clone());
        Self { kernels: Kernels::NativeAnd(threads, Box::new(self)), report }
    }

    /// Whether the own executor takes a network.
    pub(super) fn is_native(&self, network: &Network<'_>) -> bool {
        match &self.kernels {
            Kernels::Native(_) => true,
            Kernels::NativeAnd(threads, _) => native::load(network, *threads).is_ok(),
            _ => false,
        }
    }

    pub(super) fn load(&self, network: &Network<'_>) -> Result<Box<dyn Session>, EngineError> {
        match &self.kernels {
            Kernels::NativeAnd(threads, other) => match native::load(network, *threads) {
                Ok(session) => return Ok(session),
                Err(_) => return other.load(network),
            },
            Kernels::Rten(pool) => rten::load(network, pool.clone()),
            Kernels::Native(threads) => native::load(network, *threads),
            Kernels::OpenVino(opened) => opened.load(network),
            Kernels::OnnxRuntime(opened) => opened.load(network),
            Kernels::Torch(load) => load(network),
        }
        .map_err(|reason| self.refused(network, &reason))
    }

    fn refused(&self, network: &Network<'_>, reason: &str) -> EngineError {
        EngineError::Unavailable {
            what: format!("{}/{}", self.report.engine, self.report.provider),
            reason: format!("the network does not load: {reason}"),
            remedy: other_engine(&self.report.engine, onnx::has_functions(network.onnx)),
        }
    }

    /// Several networks, each made `ready` at its place in the list; the own executor does them side by side.
    pub(super) fn load_all<T: Send>(
        &self,
        networks: &[Network<'_>],
        ready: &(dyn Fn(usize, Box<dyn Session>) -> Result<T, PortError> + Sync),
    ) -> Result<Vec<T>, EngineError> {
        let threads = match self.kernels {
            Kernels::Native(threads) if threads > 1 => threads,
            _ => {
                let load = |(i, n)| ready(i, self.load(n)?).map_err(|e| self.failed(&e));
                return networks.iter().enumerate().map(load).collect();
            }
        };
        let loaded: Vec<_> = thread::scope(|scope| {
            let start = |(i, n)| {
                scope.spawn(move || native::load(n, threads).map(|session| ready(i, session)))
            };
            let started: Vec<_> = networks.iter().enumerate().map(start).collect();
            started.into_iter().map(ScopedJoinHandle::join).collect()
        });
        let mut all = Vec::with_capacity(loaded.len());
        for (loaded, network) in loaded.into_iter().zip(networks) {
            let loaded = loaded.unwrap_or_else(|p| resume_unwind(p));
            let ready = loaded.map_err(|reason| self.refused(network, &reason))?;
            all.push(ready.map_err(|e| self.failed(&e))?);
        }
        Ok(all)
    }

    /// The error of a network whose first run failed.
    pub(super) fn failed(&self, error: &PortError) -> EngineError {
        EngineError::Unavailable {
            what: format!("{}/{}", self.report.engine, self.report.provider),
            reason: format!("the first run failed: {error}"),
            remedy: other_engine(&self.report.engine, false),
        }
    }

    /// The files of one network, to be run one after the other.
    pub(super) fn chain(&self, files: &[Network<'_>]) -> Result<Box<dyn Session>, EngineError> {
        match files {
            [whole] => self.load(whole),
            files => {
                let sessions = files.iter().map(|f| self.load(f)).collect::<Result<_, _>>()?;
                Ok(Box::new(Chain::new(sessions)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::other_engine;

    #[test]
    fn a_remedy_never_names_the_engine_that_failed() {
        for failed in ["rten", "native", "openvino", "onnxruntime", "torch"] {
            let remedy = other_engine(failed, false);
            assert!(!remedy.contains(failed), "{failed}: {remedy}");
            assert!(remedy.starts_with("take the engine "), "{remedy}");
            let without = other_engine(failed, true);
            assert!(!without.contains(failed) && without.contains("inline"), "{failed}: {without}");
        }
    }
}
