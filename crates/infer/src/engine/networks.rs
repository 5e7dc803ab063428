//! The networks of a package on one engine.

use super::loader::{Backend, Loader};
use super::models::Models;
use super::part::{Part, f32_network};
use super::{EngineError, EngineOptions, EngineReport, Network, Precision, native, precision};
use crate::card::{BoxesCard, ClassifierCard, SegmenterCard};
use crate::network::{OnnxClassifier, OnnxEncoder, OnnxSegmenter};
use crate::onnx::{self, BOXES, EMBEDDING, INPUT, OUTPUT, Output};
use crate::package::ModelPackage;
use mitosis::{Classifier, Encoder, PortError, RgbTile, Scaled, Screened, Segmenter, Symmetric};
use std::slice;

/// What the networks of a package are opened with.
struct Opening<'a> {
    package: &'a ModelPackage,
    options: &'a EngineOptions,
    loader: &'a Loader,
    bf16: bool,
    gpu: bool,
}

/// Images per run: as asked for, 0 where nothing is; else on a GPU, or on the own executor. One on other engines.
#[derive(Clone, Copy)]
struct Images {
    asked: usize,
    gpu: usize,
    native: usize,
}

/// A classifier, or the screen that decides what it sees.
struct SecondPart<'a> {
    card: ClassifierCard,
    part: Part<'a>,
}

/// Loads a package's networks on one way to run; `beside_native`: those that `native` runs, on `native`.
///
/// # Errors
/// [`EngineError`] when a network does not fit its card, or does not run.
pub(super) fn open(
    package: &ModelPackage,
    options: &EngineOptions,
    backend: Backend,
    beside_native: bool,
) -> Result<Models, EngineError> {
    let bf16 = precision::bf16(options.precision, backend)?;
    let mut loader = Loader::new(backend, options)?;
    if beside_native && !bf16 && package.card.encoder.is_none() {
        loader = loader.beside_native();
    }
    let mut report = loader.report.clone();
    let gpu = matches!(report.provider.as_str(), "cuda" | "tensorrt");
    let opening = Opening { package, options, loader: &loader, bf16, gpu };
    let first = opening.read_segmenter(&mut report)?;
    let second = opening.read_classifiers(&mut report)?;
    report.segmenter_batch = first.as_ref().map_or(0, Part::batch);
    report.classifier_batch = second.first().map_or(0, |s| s.part.batch());
    let parts = first.iter().chain(second.iter().map(|s| &s.part));
    report.add_native(&parts.map(|p| p.native).collect::<Vec<_>>());
    // Tests run the bundled networks on it.
    let trial = !(backend == Backend::Native && package.is_bundled());
    let (segmenter, second) = opening.load(&report.engine, first.as_ref(), &second, trial)?;
    let encoder = opening.open_encoder(&mut report)?;
    Ok(Models {
        segmenter: segmenter.map(|s| Box::new(s) as _),
        classifier: opening.classifier(second),
        encoder: encoder.map(|e| Box::new(e) as _),
        report,
    })
}

impl<'a> Opening<'a> {
    /// Images per run: as asked for, or as a GPU or the engine takes them best.
    fn batch(&self, asked: usize, on_gpu: usize, here: usize) -> usize {
        match asked {
            0 if self.gpu => on_gpu,
            0 => here,
            n => n,
        }
    }

    /// A network with the images per run that its engine takes best: the own executor runs one on each thread, the
    /// others run their threads on each.
    fn part(
        &self,
        images: Images,
        bf16_from: Option<&str>,
        read: impl Fn(usize) -> Result<Part<'a>, String>,
    ) -> Result<Part<'a>, String> {
        let sized = |here| {
            let mut part = read(self.batch(images.asked, images.gpu, here))?;
            part.bf16_from = bf16_from.map(Into::into);
            Ok::<_, String>(part)
        };
        let mut part = sized(images.native)?;
        part.native = self.loader.is_native(&part.network());
        if part.native { Ok(part) } else { sized(1) }
    }

    fn misfit(&self, network: &'static str, reason: String) -> EngineError {
        EngineError::Model { origin: self.package.origin.clone(), network, reason }
    }

    fn read_segmenter(&self, report: &mut EngineReport) -> Result<Option<Part<'a>>, EngineError> {
        let package = self.package;
        let (Some(card), Some(bytes)) = (&package.card.segmenter, &package.segmenter) else {
            return Ok(None);
        };
        let boxes = card.boxes.as_ref().map(BoxesCard::sides);
        let output = match &boxes {
            None => Output { name: OUTPUT, shape: &[1, card.window, card.window] },
            Some(sides) => Output { name: BOXES, shape: sides },
        };
        let misfit = |e| self.misfit("segmenter", e);
        // Places to a pixel need more than bf16's eight bits.
        let mut bf16_from = None;
        if self.bf16 && card.boxes.is_none() {
            bf16_from = Some(onnx::decoder(bytes).map_err(misfit)?);
            report.segmenter_precision = Precision::Bf16.word().into();
        }
        let threads = self.loader.report.threads;
        let images = Images {
            asked: self.options.segmenter_batch,
            gpu: 8,
            native: native::windows(threads),
        };
        let read = |batch| Part::read(bytes, card.window, output, batch);
        self.part(images, bf16_from.as_deref(), read).map(Some).map_err(misfit)
    }

    /// The classifier, and behind it the screen that decides what it sees.
    fn read_classifiers(
        &self,
        report: &mut EngineReport,
    ) -> Result<Vec<SecondPart<'a>>, EngineError> {
        let package = self.package;
        let (Some(card), Some(bytes)) = (&package.card.classifier, &package.classifier) else {
            return Ok(vec![]);
        };
        let threads = self.loader.report.threads;
        let images = Images {
            asked: self.options.classifier_batch,
            gpu: 32,
            native: native::crops(threads),
        };
        let screen = package.card.screen.as_ref().zip(package.screen.as_ref());
        let screen = screen.map(|(s, bytes)| (s.as_classifier(card), bytes, "screen"));
        let mut second = vec![];
        for (card, bytes, name) in [(card.clone(), bytes, "classifier")].into_iter().chain(screen) {
            let output = Output { name: OUTPUT, shape: &[card.width()] };
            let read = |batch| Part::read(bytes, card.input, output, batch);
            let bf16_from = (self.bf16 && card.bf16).then_some(INPUT);
            let part = self.part(images, bf16_from, read).map_err(|e| self.misfit(name, e))?;
            second.push(SecondPart { card, part });
        }
        if self.bf16 && card.bf16 {
            report.classifier_precision = Precision::Bf16.word().into();
        }
        Ok(second)
    }

    /// Loads both stages side by side; on trial each is run once.
    fn load(
        &self,
        engine: &str,
        first: Option<&Part<'_>>,
        second: &[SecondPart<'_>],
        trial: bool,
    ) -> Result<(Option<OnnxSegmenter>, Vec<OnnxClassifier>), EngineError> {
        let first = self.package.card.segmenter.as_ref().zip(first);
        let parts = first.iter().map(|(_, part)| *part).chain(second.iter().map(|s| &s.part));
        let stages = self.loader.load_all(
            &parts.map(Part::network).collect::<Vec<_>>(),
            &|i, session| match (first, i) {
                (Some((card, part)), 0) => {
                    let network = OnnxSegmenter::new(session, engine.into(), card, part.batch());
                    Stage::first(network, trial.then_some(card))
                }
                _ => {
                    let SecondPart { card, part } = &second[i - usize::from(first.is_some())];
                    let network = OnnxClassifier::new(session, engine.into(), card, part.batch());
                    Stage::second(network, trial.then_some(card))
                }
            },
        )?;
        let (mut segmenter, mut classifiers) = (None, Vec::new());
        for stage in stages {
            match stage {
                Stage::First(network) => segmenter = Some(network),
                Stage::Second(network) => classifiers.push(*network),
            }
        }
        Ok((segmenter, classifiers))
    }

    /// The second stage as its card has it: symmetric copies, behind a screen, on the scale of probabilities.
    fn classifier(&self, networks: Vec<OnnxClassifier>) -> Option<Box<dyn Classifier>> {
        let mut networks = networks.into_iter();
        let (card, network) = self.package.card.classifier.as_ref().zip(networks.next())?;
        let positive = card.positive_index();
        let mut network = Symmetric::new(network, card.symmetries);
        if let Some(least) = card.symmetries_from {
            network = network.from_probability(positive, least);
        }
        let all: Box<dyn Classifier> = match (&self.package.card.screen, networks.next()) {
            (Some(s), Some(screen)) => Box::new(Screened::new(
                screen.with_crops_like(card),
                network,
                positive,
                s.passes_from,
            )),
            _ => Box::new(network),
        };
        Some(match card.scale {
            Some(s) => Box::new(Scaled::new(all, positive, s.slope, s.offset)),
            None => all,
        })
    }

    fn open_encoder(&self, report: &mut EngineReport) -> Result<Option<OnnxEncoder>, EngineError> {
        let (package, loader) = (self.package, self.loader);
        let Some(card) = &package.card.encoder else { return Ok(None) };
        let output = Output { name: EMBEDDING, shape: slice::from_ref(&card.width) };
        let files = &package.encoder;
        let chained = onnx::chain(files, card.input, output).map_err(|(i, e)| {
            let file = card.files().nth(i).filter(|_| files.len() > 1);
            let reason = file.map_or_else(|| e.clone(), |(file, _)| format!("`{file}`: {e}"));
            self.misfit("encoder", reason)
        })?;
        let asked = self.batch(self.options.classifier_batch, 64, 8);
        let batch = chained.fixed_batch.unwrap_or(asked);
        let shape = |link: &onnx::Link| [&[batch], &*link.sides].concat();
        let shapes: Vec<_> = chained.links.iter().map(shape).collect();
        let networks =
            chained.links.iter().zip(&shapes).zip(files).map(|((link, shape), onnx)| Network {
                input: &link.input,
                bf16_from: self.bf16.then_some(&link.input),
                ..f32_network(onnx, shape, &link.output, &link.symbols)
            });
        let session = loader.chain(&networks.collect::<Vec<_>>())?;
        report.classifier_batch = batch;
        if self.bf16 {
            let EngineReport { segmenter_precision: s, classifier_precision: c, .. } = report;
            (*s, *c) = (Precision::Bf16.word().into(), Precision::Bf16.word().into());
        }
        let (engine, name) = (report.engine.clone(), package.card.name.clone());
        let mut network = OnnxEncoder::new(session, (engine, name), card, batch);
        network.features(&[grey(card.input)]).map_err(|e| loader.failed(&e))?;
        Ok(Some(network))
    }
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
