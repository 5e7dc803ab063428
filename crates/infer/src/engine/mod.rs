//! Engines behind the ports, and how one is chosen.
//!
//! `native` and `rten` are part of the binary; `native` runs convolutional networks alone. OpenVINO and ONNX Runtime
//! (with its providers) are shared libraries that are looked for at run time. [`open`] takes what was asked for, or the
//! first of [`EngineChoice::Auto`]'s order that runs, and states in an [`EngineReport`] what runs and why.
//!
//! # Threads
//! One [`Models`] holds one session per network; the sessions of one `Models` run with
//! [`EngineOptions::threads`] threads each. See [`EngineOptions::threads`] for how to share cores.

mod choice;
mod error;
mod find;
mod loader;
mod models;
mod native;
mod networks;
mod onnxruntime;
mod openvino;
mod options;
mod part;
mod plugin;
mod precision;
mod rten;

pub use models::Models;

pub use choice::{EngineChoice, Precision, Provider};
pub use error::EngineError;
pub use find::{Library, find_inactive, find_onnxruntime, find_openvino, find_openvino_plugin};
pub use native::native_is_automatic;
pub use options::{EngineOptions, EngineReport};
pub use plugin::{Load, Plug, Plugin, Started};
pub use precision::bf16_cpu;

pub use crate::session::{Bytes, Network, Session, Symbol};

use crate::onnx::{EMBEDDING, Output};
use crate::package::ModelPackage;
use base::panics;
use loader::{Backend, Loader};
use part::Part;

fn order(options: &EngineOptions) -> Result<Vec<Backend>, EngineError> {
    use Backend::{Native, OnnxRuntime, OpenVino, Rten};
    let gpu = || find::nvidia_gpu().then_some(OnnxRuntime(Provider::Cuda)).into_iter();
    let misfit = |engine| {
        Err(EngineError::Options(format!(
            "the {engine} engine has no provider {}; take the engine onnxruntime if its library is installed",
            options.provider
        )))
    };
    match (options.engine, options.provider) {
        (EngineChoice::Rten, Provider::Auto | Provider::Cpu) => Ok(vec![Rten]),
        (EngineChoice::Rten, _) => misfit("rten"),
        (EngineChoice::Native, Provider::Auto | Provider::Cpu) => Ok(vec![Native]),
        (EngineChoice::Native, _) => misfit("native"),
        (EngineChoice::OpenVino, Provider::Auto | Provider::Cpu | Provider::OpenVino) => {
            Ok(vec![OpenVino])
        }
        (EngineChoice::OpenVino, _) => misfit("openvino"),
        (EngineChoice::Torch, Provider::Auto | Provider::Cpu | Provider::Cuda) => {
            Ok(vec![Backend::Torch])
        }
        (EngineChoice::Torch, _) => misfit("torch"),
        (EngineChoice::OnnxRuntime, Provider::Auto) => {
            Ok(gpu().chain([OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu)]).collect())
        }
        // What was asked for by name is never swapped for something else.
        (EngineChoice::Auto, Provider::OpenVino) if options.library.is_none() => {
            Ok(vec![OpenVino, OnnxRuntime(Provider::OpenVino)])
        }
        (EngineChoice::Auto, Provider::Auto) if options.library.is_some() => {
            Ok(gpu().chain([OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu)]).collect())
        }
        // `native` was faster than each of the others with each network measured, in f32 and in bf16.
        (EngineChoice::Auto, Provider::Auto) => Ok(gpu()
            .chain(native_is_automatic().then_some(Native))
            .chain([OpenVino, OnnxRuntime(Provider::OpenVino), OnnxRuntime(Provider::Cpu), Rten])
            .collect()),
        (EngineChoice::OnnxRuntime | EngineChoice::Auto, named) => Ok(vec![OnnxRuntime(named)]),
    }
}

/// Loads a package's networks on the engine asked for, or on the fastest that is found.
///
/// Each call makes sessions of its own: a worker thread that wants one calls `open` again.
///
/// # Errors
/// [`EngineError`] when a network does not fit its card, or nothing that was asked for runs; the
/// error states what to install.
pub fn open(package: &ModelPackage, options: &EngineOptions) -> Result<Models, EngineError> {
    let mut failures: Vec<Failed> = Vec::new();
    for backend in order(options)? {
        // `native` refused one of the networks; it still runs the others.
        let beside_native = failures.iter().any(|f| f.backend == Backend::Native);
        let open = |beside_native| networks::open(package, options, backend, beside_native);
        let opened = match open(beside_native) {
            // What `native` loads it may still fail to run.
            Err(_) if beside_native => open(false),
            opened => opened,
        };
        match opened {
            Ok(mut models) => {
                if !failures.is_empty() {
                    models.report.fallback_reason = Some(reasons(&failures));
                }
                return Ok(models);
            }
            Err(e @ EngineError::Model { .. }) => return Err(e),
            Err(e) => failures.push(Failed { backend, error: e }),
        }
    }
    // The wanted engine's own error; where several were tried, each with its reason.
    match failures.len() {
        1 => Err(failures.swap_remove(0).error),
        _ => Err(EngineError::None {
            reason: reasons(&failures),
            remedy: match failures.iter().any(|f| matches!(f.backend, Backend::Rten)) {
                true => "each engine's own remedy is above",
                false => "take the engine rten, which may run it and needs nothing",
            },
        }),
    }
}

/// An engine that did not start.
struct Failed {
    backend: Backend,
    error: EngineError,
}

fn reasons(failures: &[Failed]) -> String {
    let each = failures
        .iter()
        .map(|f| format!("{}: {}", f.backend, f.error.to_string().replace("\n  ", "; ")));
    each.collect::<Vec<_>>().join(" | ")
}

/// Numbers per vector of an encoder's file that does not state it: it is run once, on black.
///
/// # Errors
/// [`EngineError`] of the last engine tried.
pub(crate) fn width(
    onnx: &[u8],
    side: usize,
    options: &EngineOptions,
) -> Result<usize, EngineError> {
    let black = vec![0.0; 3 * side * side];
    let output = Output { name: EMBEDDING, shape: &[1] };
    Ok(given(onnx, side, "encoder", output, &black, options)?.len())
}

/// What a file gives for images, `[N,3,side,side]`; errors call it `network`.
///
/// # Errors
/// [`EngineError`] of the last engine tried.
pub(crate) fn given(
    onnx: &[u8],
    side: usize,
    network: &'static str,
    output: Output<'_>,
    images: &[f32],
    options: &EngineOptions,
) -> Result<Vec<f32>, EngineError> {
    let misfit = |reason| EngineError::Model { origin: "the file".into(), network, reason };
    let onnx = Bytes::copy_from_slice(onnx);
    let part = Part::read(&onnx, side, output, 1).map_err(misfit)?;
    let options = EngineOptions { threads: 1, ..options.clone() };
    Ok(outputs(&part.network(), images, &options, &misfit)?.1)
}

/// What a network gives for rows of values, and the engine that ran it; a run takes as many rows as its shape states.
/// `misfit` is the error of a run that stops.
///
/// # Errors
/// [`EngineError`] of the last engine tried.
pub(crate) fn outputs(
    network: &Network<'_>,
    rows: &[f32],
    options: &EngineOptions,
    misfit: &dyn Fn(String) -> EngineError,
) -> Result<(String, Vec<f32>), EngineError> {
    let batch = network.shape.first().copied().unwrap_or(1);
    let row = network.shape.iter().skip(1).product::<usize>().max(1);
    let run = |backend| {
        let loader = Loader::new(backend, options)?;
        let mut session = loader.load(network)?;
        let mut all = Vec::new();
        for chunk in rows.chunks(batch * row) {
            let input = session.input().map_err(misfit)?;
            input.fill(0.0);
            let room = input.get_mut(..chunk.len());
            room.ok_or_else(|| misfit("its input is smaller".into()))?.copy_from_slice(chunk);
            let output = panics::catch_panic(|| session.run()).map_err(misfit)?;
            all.extend_from_slice(&output[..chunk.len() / row * (output.len() / batch)]);
        }
        Ok((format!("{} {}", loader.report.engine, loader.report.version), all))
    };
    let mut last = misfit("no engine was tried".into());
    for backend in order(options)? {
        match run(backend) {
            Ok(given) => return Ok(given),
            Err(e) => last = e,
        }
    }
    Err(last)
}
