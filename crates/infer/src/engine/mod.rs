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
mod native;
mod onnxruntime;
mod openvino;
mod options;
mod part;
mod plugin;
mod precision;
mod rten;

pub use choice::{EngineChoice, Precision, Provider};
pub use error::EngineError;
pub use find::{Library, find_inactive, find_onnxruntime, find_openvino, find_openvino_plugin};
pub use native::native_is_automatic;
pub use options::{EngineOptions, EngineReport};
pub use plugin::{Load, Plug, Plugin, Started};
pub use precision::bf16_cpu;

pub use crate::session::{Bytes, Network, Session};

use crate::card::{BoxesCard, ClassifierCard, SegmenterCard};
use crate::network::{OnnxClassifier, OnnxEncoder, OnnxSegmenter};
use crate::onnx::{self, BOXES, EMBEDDING, INPUT, OUTPUT, Output};
use crate::package::ModelPackage;
use base::panics;
use loader::{Backend, Loader};
use mitosis::{Classifier, Encoder, PortError, RgbTile, Scaled, Screened, Segmenter, Symmetric};
use part::{Part, f32_network};
use std::fmt;

/// The networks of a package, ready to run, and what runs them.
pub struct Models {
    /// First stage, where the package has one.
    pub segmenter: Option<Box<dyn Segmenter>>,
    /// Second stage, where the package has one.
    pub classifier: Option<Box<dyn Classifier>>,
    /// The encoder, where the package is one.
    pub encoder: Option<Box<dyn Encoder>>,
    /// What runs.
    pub report: EngineReport,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("segmenter", &self.segmenter.is_some())
            .field("classifier", &self.classifier.is_some())
            .field("encoder", &self.encoder.is_some())
            .field("report", &self.report)
            .finish()
    }
}

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
        match open_networks(package, options, backend) {
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

#[expect(clippy::too_many_lines, reason = "three networks of a package, with the rules of each")]
fn open_networks(
    package: &ModelPackage,
    options: &EngineOptions,
    backend: Backend,
) -> Result<Models, EngineError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let bf16 = precision::bf16(options.precision, backend)?;
    let mut loader = Loader::new(backend, options, threads)?;
    let gpu = matches!(loader.report.provider.as_str(), "cuda" | "tensorrt");
    // The own executor runs an image on each thread; the others, the threads on each image.
    let [windows, crops] = match backend {
        Backend::Native => native::batches(threads),
        _ => [1, 1],
    };
    let batch = |asked: usize, on_gpu: usize, here: usize| match asked {
        0 if gpu => on_gpu,
        0 => here,
        n => n,
    };
    let misfit =
        |network, reason| EngineError::Model { origin: package.origin.clone(), network, reason };

    let mut first = None;
    if let (Some(card), Some(bytes)) = (&package.card.segmenter, &package.segmenter) {
        let boxes = card.boxes.as_ref().map(BoxesCard::sides);
        let output = match &boxes {
            None => Output { name: OUTPUT, shape: &[1, card.window, card.window] },
            Some(sides) => Output { name: BOXES, shape: sides },
        };
        let batch = batch(options.segmenter_batch, 8, windows);
        let misfit = |e| misfit("segmenter", e);
        let mut part = Part::read(bytes, card.window, output, batch).map_err(misfit)?;
        // Places to a pixel need more than bf16's eight bits.
        if bf16 && card.boxes.is_none() {
            part.bf16_from = Some(onnx::decoder(bytes).map_err(misfit)?);
            loader.report.segmenter_precision = Precision::Bf16.word().into();
        }
        first = Some((card, part));
    }
    // The classifier, and behind it the screen that decides what it sees.
    let mut second = vec![];
    if let (Some(card), Some(bytes)) = (&package.card.classifier, &package.classifier) {
        let screen = package.card.screen.as_ref().zip(package.screen.as_ref());
        let screen = screen.map(|(s, bytes)| (s.as_classifier(card), bytes, "screen"));
        for (card, bytes, name) in [(card.clone(), bytes, "classifier")].into_iter().chain(screen) {
            let output = Output { name: OUTPUT, shape: &[card.width()] };
            let batch = batch(options.classifier_batch, 32, crops);
            let part = Part::read(bytes, card.input, output, batch);
            let mut part = part.map_err(|e| misfit(name, e))?;
            part.bf16_from = (bf16 && card.bf16).then(|| INPUT.into());
            second.push((card, part));
        }
        if bf16 && card.bf16 {
            loader.report.classifier_precision = Precision::Bf16.word().into();
        }
    }
    let segmenter_batch = first.as_ref().map_or(0, |(_, part)| part.batch());
    let mut classifier_batch = second.first().map_or(0, |(_, part)| part.batch());
    let parts = first.iter().map(|(_, part)| part).chain(second.iter().map(|(_, part)| part));
    let engine = loader.report.engine.clone();
    // Tests run the bundled networks on it.
    let trial = !(backend == Backend::Native && package.is_bundled());
    let stages = loader.load_all(
        &parts.map(Part::network).collect::<Vec<_>>(),
        &|i, session| match (&first, i) {
            (Some((card, part)), 0) => {
                let network = OnnxSegmenter::new(session, engine.clone(), card, part.batch());
                Stage::first(network, trial.then_some(card))
            }
            _ => {
                let (card, part) = &second[i - usize::from(first.is_some())];
                let network = OnnxClassifier::new(session, engine.clone(), card, part.batch());
                Stage::second(network, trial.then_some(card))
            }
        },
    )?;
    let (mut segmenter, mut second) = (None, Vec::new());
    for stage in stages {
        match stage {
            Stage::First(network) => segmenter = Some(network),
            Stage::Second(network) => second.push(*network),
        }
    }
    let mut second = second.into_iter();
    let mut classifier = None;
    if let (Some(card), Some(network)) = (&package.card.classifier, second.next()) {
        let mut network = Symmetric::new(network, card.symmetries);
        if let Some(least) = card.symmetries_from {
            network = network.from_probability(card.positive_index(), least);
        }
        let positive = card.positive_index();
        let all: Box<dyn Classifier> = match (&package.card.screen, second.next()) {
            (Some(s), Some(screen)) => Box::new(Screened::new(
                screen.with_crops_like(card),
                network,
                positive,
                s.passes_from,
            )),
            _ => Box::new(network),
        };
        classifier = Some(match card.scale {
            Some(s) => Box::new(Scaled::new(all, positive, s.slope, s.offset)),
            None => all,
        });
    }
    let mut encoder = None;
    if let Some(card) = &package.card.encoder {
        let output = Output { name: EMBEDDING, shape: &[card.width] };
        let files = &package.encoder;
        let chained = onnx::chain(files, card.input, output).map_err(|(i, e)| {
            let file = card.files().nth(i).filter(|_| files.len() > 1);
            misfit("encoder", file.map_or_else(|| e.clone(), |(file, _)| format!("`{file}`: {e}")))
        })?;
        let asked = match options.classifier_batch {
            0 if gpu => 64,
            0 => 8,
            n => n,
        };
        classifier_batch = chained.fixed_batch.unwrap_or(asked);
        let shape = |link: &onnx::Link| [&[classifier_batch], &*link.sides].concat();
        let shapes: Vec<_> = chained.links.iter().map(shape).collect();
        let networks =
            chained.links.iter().zip(&shapes).zip(files).map(|((link, shape), onnx)| Network {
                input: &link.input,
                bf16_from: bf16.then_some(&link.input),
                ..f32_network(onnx, shape, &link.output, &link.symbols)
            });
        let session = loader.chain(&networks.collect::<Vec<_>>())?;
        if bf16 {
            let EngineReport { segmenter_precision: s, classifier_precision: c, .. } =
                &mut loader.report;
            (*s, *c) = (Precision::Bf16.word().into(), Precision::Bf16.word().into());
        }
        let (engine, name) = (loader.report.engine.clone(), package.card.name.clone());
        let mut network = OnnxEncoder::new(session, (engine, name), card, classifier_batch);
        network.features(&[grey(card.input)]).map_err(|e| loader.failed(&e))?;
        encoder = Some(network);
    }
    let report = EngineReport { segmenter_batch, classifier_batch, ..loader.report };
    Ok(Models {
        segmenter: segmenter.map(|s| Box::new(s) as _),
        classifier,
        encoder: encoder.map(|e| Box::new(e) as _),
        report,
    })
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
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let run = |backend| {
        let loader = Loader::new(backend, options, threads)?;
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

/// A stage whose network was loaded, and on trial run once on a grey tile: an engine that loads a network but cannot
/// run it (a missing kernel, a provider without its device) must show before the work starts.
enum Stage {
    First(OnnxSegmenter),
    Second(Box<OnnxClassifier>),
}

impl Stage {
    fn first(mut network: OnnxSegmenter, trial: Option<&SegmenterCard>) -> Result<Self, PortError> {
        if let Some(card) = trial {
            network.probabilities(&[grey(card.window)])?;
        }
        Ok(Self::First(network))
    }

    fn second(
        mut network: OnnxClassifier,
        trial: Option<&ClassifierCard>,
    ) -> Result<Self, PortError> {
        if let Some(card) = trial {
            network.classes(&[grey(card.crop)])?;
        }
        Ok(Self::Second(Box::new(network)))
    }
}

fn grey(side: usize) -> RgbTile {
    RgbTile::filled(side, side, [200; 3])
}
