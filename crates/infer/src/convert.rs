//! An encoder's ONNX file, as anyone exports it, to a card and a network that the engines agree on.

use crate::card::{EncoderCard, FileCard, Interpolation, ModelCard, ParityCard, RanOn, SourceCard};
use crate::engine::{
    self, EngineChoice, EngineError, EngineOptions, Models, Network, Provider, find_onnxruntime,
    find_openvino, open,
};
use crate::onnx::{self, Gives, Misfit, Wanted};
use crate::package::{ModelPackage, PackageError};
use base::digest::sha256;
use base::remedy::{Remedied, Remedy};
use mitosis::{Mpp, PortError, RgbTile};

/// Name of the network in a package.
pub const FILE: &str = "encoder.onnx";

/// Name of the file that runs after so many others: [`FILE`], `encoder-2.onnx`, `encoder-3.onnx`.
#[must_use]
pub fn file_name(before: usize) -> String {
    match before {
        0 => FILE.into(),
        n => format!("encoder-{}.onnx", n + 1),
    }
}

/// Largest difference of a feature between two engines, as a share of the largest magnitude.
pub const TOLERANCE: f32 = 1e-3;
/// The same between f16 weights and those that they were rounded from: what rounding does not explain.
pub const ROUNDING: f32 = 5e-2;
/// Both of a probability.
const PROBABILITY: [f32; 2] = [1e-4, 1e-2];

/// What a file cannot state of itself. A default deviation of 0 is refused: it has to be given, or to come from the
/// table.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Name of the package.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// Description of the architecture.
    pub architecture: String,
    /// um/px that it was trained at, where that is known.
    pub mpp: Option<Mpp>,
    /// Side of its input, px.
    pub image: usize,
    /// What a tile's shorter side becomes before its middle is cut out, px; `None` where nothing is cut off.
    pub resize: Option<usize>,
    /// How tiles are resized.
    pub interpolation: Interpolation,
    /// Per-channel mean in [0, 1].
    pub mean: [f32; 3],
    /// Per-channel standard deviation of the input in [0, 1], > 0.
    pub std: [f32; 3],
    /// What the vector is, as text.
    pub pooling: String,
    /// Numbers per vector, where they are known.
    pub width: Option<usize>,
    /// Which output is taken; `None` where there is one.
    pub output: Option<String>,
    /// Whether large weights are stored as f16.
    pub half: bool,
    /// The file that the weights come from.
    pub source: SourceCard,
}

/// Why a file becomes no package.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ConvertError {
    /// It is not an encoder of this shape.
    #[error("it cannot be used: {0}")]
    File(String),
    /// It has several outputs, or not the one that was named.
    #[error("it cannot be used: {0}")]
    Output(String),
    /// The card or the network is refused.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No engine runs it.
    #[error("no engine runs it: {}", .0.join("; "))]
    NoEngine(Vec<String>),
    /// A run failed, or gave NaN.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The network does not fit what was reported of it.
    #[error(transparent)]
    Engine(EngineError),
    /// Two engines, or an engine and the weights, give different features.
    #[error(
        "{engine} differs from {other} by {difference} where the largest feature is {largest}; at most \
         {allowed} of it is allowed"
    )]
    Disagree {
        engine: String,
        other: String,
        difference: f32,
        /// Largest magnitude of a feature.
        largest: f32,
        /// What share of it may be.
        allowed: f32,
    },
    /// The same of probabilities.
    #[error(
        "{engine} is off by {difference} from {other} in a probability where {allowed} is allowed"
    )]
    Probability {
        engine: String,
        other: String,
        difference: f32,
        /// How much may be.
        allowed: f32,
    },
    /// A vector changes with the image next to it.
    #[error(
        "an image's features change by {difference} with the image next to it; export the network in \
         its evaluation mode if it was in another one"
    )]
    Neighbours { difference: f32 },
    /// Two images have the same features.
    #[error("two different images have the same features; the weights are not an encoder's")]
    Constant,
}

impl From<Misfit> for ConvertError {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Output(reason) => Self::Output(reason),
            Misfit::Other(reason) => Self::File(reason),
        }
    }
}

/// A package before it is written.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Its card, with the engines' parity.
    pub card: ModelCard,
    /// The files of its network, in the order of the card's.
    pub files: Vec<Vec<u8>>,
}

/// The two fixed images that a network is tried on.
#[must_use]
pub fn probes(side: usize) -> [RgbTile; 2] {
    let draw = |k: usize| {
        let pixel = |i: usize| {
            let (x, y) = (i % side, i / side);
            let nucleus = (x * 7 / side + y * 5 / side + k).is_multiple_of(3);
            let grain = ((i * 2_654_435_761 + k * 97) >> 7) % 32;
            let base: [usize; 3] = if nucleus { [90, 60, 130] } else { [215, 160, 200] };
            base.map(|v| (v + grain) as u8)
        };
        RgbTile::new(side, side, (0..side * side).flat_map(pixel).collect())
    };
    [draw(0), draw(1)]
}

/// Brings an ONNX file to a package: `image` in, `embedding` out, run on every available engine on
/// [`probes`]. `reference` holds their features by the weights themselves, where somebody has them;
/// `file` then has its weights stored as `draft.half` states already, and is never made whole: as f32 it
/// may be larger than a file of ONNX can be. `options` states threads and libraries; its engine is not asked.
///
/// # Errors
/// [`ConvertError`].
pub fn convert(
    file: &[u8],
    draft: &Draft,
    reference: Option<Reference<'_>>,
    options: &EngineOptions,
) -> Result<Converted, ConvertError> {
    let adapted = |width, half| {
        let output = draft.output.as_deref();
        let gives = Gives::Features;
        let wanted = Wanted { image: draft.image, gives, output, width, half };
        onnx::adapt(file, &wanted).map_err(ConvertError::from)
    };
    let mut whole = adapted(draft.width, false)?;
    let width = match whole.width {
        Some(width) => width,
        None => {
            let width = measured(&whole.onnx, draft.image, options)?;
            whole = adapted(Some(width), false)?;
            width
        }
    };
    let (mut made, given) = tried(draft, vec![whole.onnx], width, options)?;
    if let Some(reference) = reference {
        made.compare(reference, &given, draft.half)?;
    }
    if !draft.half || reference.is_some() {
        return Ok(made);
    }
    drop(made);
    let halved = adapted(Some(width), true)?;
    let (mut made, rounded) = tried(draft, vec![halved.onnx], width, options)?;
    if let Some(parity) = made.card.encoder.as_mut().and_then(|e| e.parity.as_mut()) {
        parity.rounding = Some(farthest(&given, &rounded));
    }
    Ok(made)
}

/// Features of [`probes`] that a network's have to equal.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// What gave them, as text.
    pub by: &'a str,
    /// The vectors, one after the other.
    pub features: &'a [f32],
}

/// The same of a network that was exported here from weights, in the files that run one after the
/// other: `image` into the first, `embedding` out of the last. What is one file goes through [`convert`].
///
/// # Errors
/// [`ConvertError`].
pub fn exported(
    files: Vec<Vec<u8>>,
    draft: &Draft,
    width: usize,
    reference: Option<Reference<'_>>,
    options: &EngineOptions,
) -> Result<Converted, ConvertError> {
    if let ([whole], Some(reference)) = (&files[..], reference) {
        return convert(whole, draft, Some(reference), options);
    }
    let (mut made, given) = tried(draft, files, width, options)?;
    if let Some(reference) = reference {
        made.compare(reference, &given, draft.half)?;
    }
    Ok(made)
}

/// Features of [`probes`] by a network that was exported here, and the engine that gave them.
///
/// # Errors
/// As [`exported`].
pub fn features(
    files: Vec<Vec<u8>>,
    draft: &Draft,
    width: usize,
    options: &EngineOptions,
) -> Result<(String, Vec<f32>), ConvertError> {
    let (made, given) = tried(draft, files, width, options)?;
    let parity = made.card.encoder.and_then(|e| e.parity);
    let engine = parity.and_then(|p| p.engines.into_iter().next());
    Ok((engine.map(|ran| ran.engine).unwrap_or_default(), given))
}

impl Converted {
    /// Holds features of the probes against those by the weights, and writes down how far they are.
    fn compare(
        &mut self,
        reference: Reference<'_>,
        given: &[f32],
        half: bool,
    ) -> Result<(), ConvertError> {
        match self.card.encoder.as_mut().and_then(|e| e.parity.as_mut()) {
            Some(parity) => compare(parity, reference, given, half, Measure::Feature),
            None => Ok(()),
        }
    }
}

/// Holds what the engines gave against `reference`, and writes down how far it is.
fn compare(
    parity: &mut ParityCard,
    reference: Reference<'_>,
    given: &[f32],
    half: bool,
    measure: Measure,
) -> Result<(), ConvertError> {
    let first = parity.engines[0].engine.clone();
    let Reference { by, features } = reference;
    let difference = measure.agree(
        Ran { engine: by, features },
        Ran { engine: &first, features: given },
        parity.largest,
        half,
    )?;
    if half {
        parity.rounding = Some(difference);
    } else {
        parity.engines.push(RanOn { engine: by.into(), difference });
    }
    Ok(())
}

/// Runs a classifier's package on every engine found: all have to give the same probabilities of [`probes`], and
/// those of `reference`, which with `half` has the weights in f32. The probabilities are the first engine's. `options`
/// states threads and libraries; its engine is not asked.
///
/// # Errors
/// [`ConvertError`].
pub fn classifier(
    package: &ModelPackage,
    reference: Option<Reference<'_>>,
    half: bool,
    options: &EngineOptions,
) -> Result<(ParityCard, Vec<f32>), ConvertError> {
    let side = package.card.classifier.as_ref().map_or(0, |c| c.input);
    let runs = on_every_engine(package, options, |models| {
        let classifier = models.classifier.as_mut().expect("a package of one");
        let given = classifier.classes(&probes(side))?;
        Ok(given.into_iter().flat_map(|p| p.0).collect())
    })?;
    let (mut parity, given) = runs.parity(Measure::Probability)?;
    if let Some(reference) = reference {
        compare(&mut parity, reference, &given, half, Measure::Probability)?;
    }
    Ok((parity, given))
}

/// What a network that was exported here gives for rows of values, a run taking as many as its shape states. Every
/// engine that is found has to give the same. `options` states threads and libraries; its engine is not asked.
///
/// # Errors
/// [`ConvertError`].
pub fn vectors(
    network: &Network<'_>,
    rows: &[f32],
    options: &EngineOptions,
) -> Result<Vec<f32>, ConvertError> {
    let misfit =
        |reason| EngineError::Model { origin: "the file".into(), network: "text tower", reason };
    let mut runs = Runs::default();
    for (engine, provider) in available_engines(options) {
        let options = EngineOptions { engine, provider, ..options.clone() };
        match engine::outputs(network, rows, &options, &misfit) {
            Ok((engine, given)) => match given.iter().find(|v| !v.is_finite()) {
                Some(&value) => return Err(PortError::NotFinite { engine, value }.into()),
                None => runs.ran.push((engine, given)),
            },
            Err(e) => runs.refuse(&e),
        }
    }
    Ok(runs.parity(Measure::Feature)?.1)
}

/// Numbers per vector, by the first engine that runs the file.
fn measured(onnx: &[u8], side: usize, options: &EngineOptions) -> Result<usize, ConvertError> {
    let mut refused = Vec::new();
    for (engine, provider) in available_engines(options) {
        match engine::width(onnx, side, &EngineOptions { engine, provider, ..options.clone() }) {
            Ok(width) => return Ok(width),
            Err(e) => refused.push(e.to_string().replace("\n  ", "; ")),
        }
    }
    Err(ConvertError::NoEngine(refused))
}

/// A network with its card and parity, and its features of the probes.
fn tried(
    draft: &Draft,
    files: Vec<Vec<u8>>,
    width: usize,
    options: &EngineOptions,
) -> Result<(Converted, Vec<f32>), ConvertError> {
    let mut card = card(draft, &files, width);
    let package = ModelPackage::of_parts(&card, files)?;
    // Two images at once, so that one could show on the other.
    let pairs = EngineOptions { classifier_batch: 2, ..options.clone() };
    let runs = on_every_engine(&package, &pairs, |models| {
        run(models.encoder.as_mut().expect("a package of one").as_mut(), draft.image)
    })?;
    let (parity, features) = runs.parity(Measure::Feature)?;
    card.encoder.as_mut().expect("made with one").parity = Some(parity);
    Ok((Converted { card, files: package.into_encoder() }, features))
}

/// What the engines gave.
#[derive(Default)]
struct Runs {
    ran: Vec<(String, Vec<f32>)>,
    /// Why others gave nothing.
    refused: Vec<String>,
}

/// Runs a package on every engine found.
fn on_every_engine(
    package: &ModelPackage,
    options: &EngineOptions,
    mut run: impl FnMut(&mut Models) -> Result<Vec<f32>, ConvertError>,
) -> Result<Runs, ConvertError> {
    let mut runs = Runs::default();
    for (engine, provider) in available_engines(options) {
        match open(package, &EngineOptions { engine, provider, ..options.clone() }) {
            Ok(mut models) => {
                let named = format!("{} {}", models.report.engine, models.report.version);
                runs.ran.push((named, run(&mut models)?));
            }
            Err(e @ EngineError::Model { .. }) => return Err(ConvertError::Engine(e)),
            Err(e) => runs.refuse(&e),
        }
    }
    Ok(runs)
}

impl Runs {
    fn refuse(&mut self, e: &EngineError) {
        self.refused.push(e.to_string().replace("\n  ", "; "));
    }

    /// What the first gave; the others have to agree with it.
    fn parity(mut self, measure: Measure) -> Result<(ParityCard, Vec<f32>), ConvertError> {
        if self.ran.is_empty() {
            return Err(ConvertError::NoEngine(self.refused));
        }
        let (first, features) = self.ran.remove(0);
        let largest = features.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        let mut engines = vec![RanOn { engine: first.clone(), difference: 0.0 }];
        for (engine, other) in &self.ran {
            let difference = measure.agree(
                Ran { engine, features: other },
                Ran { engine: &first, features: &features },
                largest,
                false,
            )?;
            engines.push(RanOn { engine: engine.clone(), difference });
        }
        Ok((ParityCard { largest, engines, refused: self.refused, rounding: None }, features))
    }
}

fn card(draft: &Draft, files: &[Vec<u8>], width: usize) -> ModelCard {
    let named = files.iter().enumerate();
    let mut named = named.map(|(i, bytes)| FileCard { file: file_name(i), sha256: sha256(bytes) });
    let first = named.next().expect("a network is in at least one file");
    let encoder = EncoderCard {
        file: first.file,
        sha256: first.sha256,
        rest: named.collect(),
        architecture: draft.architecture.clone(),
        mpp: draft.mpp,
        input: draft.image,
        resize: draft.resize.filter(|px| *px != draft.image),
        interpolation: draft.interpolation,
        mean: draft.mean,
        std: draft.std,
        pooling: draft.pooling.clone(),
        width,
        source: draft.source.clone(),
        parity: None,
    };
    ModelCard { encoder: Some(encoder), ..ModelCard::new(&draft.name, &draft.license) }
}

/// The engines that are on this machine, the embedded ones first.
pub(crate) fn available_engines(options: &EngineOptions) -> Vec<(EngineChoice, Provider)> {
    let mut all =
        vec![(EngineChoice::Rten, Provider::Auto), (EngineChoice::Native, Provider::Auto)];
    if options.library.is_some() || !find_onnxruntime().is_empty() {
        all.push((EngineChoice::OnnxRuntime, Provider::Cpu));
    }
    if !find_openvino().is_empty() {
        all.push((EngineChoice::OpenVino, Provider::OpenVino));
    }
    if options.torch.is_some() {
        all.push((EngineChoice::Torch, Provider::Cpu));
    }
    all
}

/// Features of both probes; refuses a network whose answer depends on what is next to an image.
fn run(encoder: &mut dyn mitosis::Encoder, side: usize) -> Result<Vec<f32>, ConvertError> {
    let probes = probes(side);
    let width = encoder.width();
    let both = encoder.features(&probes)?;
    let alone = encoder.features(&probes[..1])?;
    let (first, second) = both.split_at(width);
    let largest = first.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let difference = farthest(&alone, first);
    if difference > TOLERANCE * largest {
        return Err(ConvertError::Neighbours { difference });
    }
    if farthest(first, second) <= 1e-6 * largest {
        return Err(ConvertError::Constant);
    }
    Ok(both)
}

/// The features that an engine gave.
struct Ran<'a> {
    engine: &'a str,
    features: &'a [f32],
}

/// What is compared.
#[derive(Clone, Copy)]
enum Measure {
    Feature,
    Probability,
}

impl Measure {
    /// How far two runs are apart, where they may be; `half`: one has the weights as f16.
    fn agree(
        self,
        one: Ran<'_>,
        two: Ran<'_>,
        largest: f32,
        half: bool,
    ) -> Result<f32, ConvertError> {
        let (a, b) = (one.features, two.features);
        let difference = if a.len() == b.len() { farthest(a, b) } else { f32::INFINITY };
        let (engine, other) = (one.engine.into(), two.engine.into());
        match self {
            Self::Feature => {
                let allowed = if half { ROUNDING } else { TOLERANCE };
                if difference <= allowed * largest {
                    return Ok(difference);
                }
                Err(ConvertError::Disagree { engine, other, difference, largest, allowed })
            }
            Self::Probability => {
                let allowed = PROBABILITY[usize::from(half)];
                if difference <= allowed {
                    return Ok(difference);
                }
                Err(ConvertError::Probability { engine, other, difference, allowed })
            }
        }
    }
}

pub(crate) fn farthest(a: &[f32], b: &[f32]) -> f32 {
    // A difference that is not a number stays, and is then not allowed.
    let farther = |most: f32, d: f32| if d > most || d.is_nan() { d } else { most };
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, farther)
}

impl Remedied for ConvertError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            Self::Output(_) => Some(Remedy::NetworkOutput),
            _ => None,
        }
    }
}
