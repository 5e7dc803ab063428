//! Starting weights of a run.

use std::path::Path;

use mitosis::RgbTile;
use net::checkpoint::{self, Spec, TrainedOn};
use net::encoder::{self, Encoder, EncoderConfig};
use net::foreign::{self, Allowed, Loaded};
use net::onnx;
use net::unet::EfficientUnet;
use pixels::input::{MEAN, Normalisation, STD};
use tch::Device;
use tch::nn::VarStore;

use crate::batch::normalised;
use crate::error::{Result, TrainError};
use crate::preset::Init;
use crate::seen::{self, Names};

/// Where the weights of a run came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The source, as text.
    pub text: String,
    /// Names outside the head that stayed as drawn, where a part was allowed.
    pub random: Vec<String>,
    /// What the weights were trained on, if their file records it.
    pub trained_on: TrainedOn,
    /// What they were pretrained on without labels.
    pub pretrained_on: TrainedOn,
    /// Whether they are of this program and record nothing of it.
    pub unlisted: bool,
    /// SHA-256 of their file.
    pub sha256: Option<String>,
}

impl Start {
    /// Into a model's description: what it is trained on, and what its starting weights were.
    pub fn note(&self, spec: &mut Spec, own: TrainedOn) {
        let mut all = own;
        all.extend(&self.trained_on);
        spec.trained_on = Some(all);
        let seen = self.pretrained_on != TrainedOn::default();
        spec.pretrained_on = seen.then(|| self.pretrained_on.clone());
    }

    /// Notes for the reader of a fold's held-out results.
    pub fn notes(&self, fold: &str, held_out: &[Names]) -> Vec<String> {
        let mut notes = seen::notes(&self.trained_on, &self.pretrained_on, fold, held_out);
        if self.unlisted && !held_out.is_empty() {
            notes.push(format!(
                "the starting weights do not list the slides they were trained on (made by an older version); fold \
                 `{fold}` may hold some of them out"
            ));
        }
        notes
    }
}

/// The description of an encoder's checkpoint: its image side and its normalisation.
pub(crate) fn describe(model: &EncoderConfig) -> Result<Spec> {
    let plain = Spec::new(&model.name, model, model.image as u32)?;
    Ok(Spec { mean: model.mean, std: model.std, ..plain })
}

/// SHA-256 of a file of starting weights.
pub(crate) fn digest(file: &Path) -> Result<String> {
    Ok(base::digest::sha256_file(file).map_err(|e| TrainError::run(file, e))?.1)
}

/// Where a file's names go.
pub(crate) enum Target<'a> {
    /// An encoder with a head of its own.
    Encoder(&'a dyn Encoder),
    /// A segmenter: a trunk of timm's names under `encoder.`, or one of this project whole.
    Segmenter,
}

/// The stage that an exported network becomes.
pub(crate) enum Exported<'a> {
    /// The first.
    Segmenter(&'a EfficientUnet),
    /// The second, and how it is fed.
    Classifier(&'a dyn Encoder, &'a EncoderConfig),
}

/// Batches that the batch norms of an exported network are measured on.
const MEASURED: usize = 8;

/// Whether a file is a network as packages have it.
pub(crate) fn is_exported(file: Option<&Path>) -> Option<&Path> {
    file.filter(|f| f.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")))
}

/// Training samples, batch by batch.
pub(crate) struct Samples<F> {
    /// Samples of a batch.
    pub(crate) batch: usize,
    /// Draws the i-th.
    pub(crate) draw: F,
}

/// Continues training from the network of a package. Its batch norms were folded into its convolutions; they are
/// unfolded with the statistics of training samples.
///
/// # Errors
/// A preset that starts elsewhere, and what [`onnx::unfold_unet`] refuses.
pub(crate) fn unfold(
    vs: &VarStore,
    init: Init,
    file: &Path,
    stage: &Exported<'_>,
    samples: Samples<impl Fn(u64) -> RgbTile>,
) -> Result<Start> {
    if init != Init::Checkpoint {
        return Err(TrainError::Preset {
            path: "init".into(),
            reason: format!(
                "is not `checkpoint`: the whole network of {} would not be used",
                file.display()
            ),
        });
    }
    let (mean, std) = match stage {
        Exported::Segmenter(_) => (MEAN, STD),
        Exported::Classifier(_, model) => (model.mean, model.std),
    };
    let norm = Normalisation::new(mean, std);
    let Samples { batch, draw } = samples;
    let mut batches = (0..MEASURED).map(|k| {
        let tiles: Vec<RgbTile> = (0..batch).map(|i| draw((k * batch + i) as u64)).collect();
        normalised(&tiles, &norm, Device::Cpu)
    });
    match stage {
        Exported::Segmenter(net) => onnx::unfold_unet(net, vs, file, &mut batches),
        Exported::Classifier(net, model) => {
            onnx::unfold_classifier(*net, vs, model.image, file, &mut batches)
        }
    }?;
    let sha256 = digest(file)?;
    let text =
        format!("the exported network {} ({sha256}), its norms measured again", file.display());
    let trained_on = seen::of_package(file)?.unwrap_or_default();
    Ok(Start { text, trained_on, sha256: Some(sha256), ..Start::default() })
}

/// Takes the trunk of a package's classifier, whose classes may be others: the head stays as it is.
///
/// # Errors
/// As [`unfold`].
pub(crate) fn unfold_trunk(
    vs: &VarStore,
    net: &dyn Encoder,
    init: Init,
    file: &Path,
    model: &EncoderConfig,
    samples: Samples<impl Fn(u64) -> RgbTile>,
) -> Result<Start> {
    let (aside, whole) = (
        VarStore::new(Device::Cpu),
        EncoderConfig { classes: onnx::count_classes(file)?, ..model.clone() },
    );
    let other = encoder::build(&aside.root(), &whole)?;
    let stage = Exported::Classifier(other.as_ref(), &whole);
    let start = unfold(&aside, init, file, &stage, samples)?;
    let found = aside.variables();
    tch::no_grad(|| {
        for (name, mut own) in vs.variables() {
            if !name.starts_with(net.head()) {
                own.f_copy_(&found[&name])?;
            }
        }
        Ok(start)
    })
}

/// The file's name of a head in timm's EfficientNets, above the trunk.
fn above_the_trunk(name: &str) -> bool {
    ["classifier.", "conv_head", "bn2."].iter().any(|p| name.starts_with(p))
}

/// The file of starting weights.
#[derive(Clone, Copy)]
pub(crate) struct StartingWeights<'a> {
    pub(crate) file: Option<&'a Path>,
    /// Whether a part of it will do.
    pub(crate) partial: bool,
}

/// Copies starting weights into a model. All but the head must be in the file and fit; a Lite0 file
/// may also lack squeeze and excitation, which that network does without, and of a segmenter it is
/// the trunk alone. With `partial` what fits is taken.
///
/// # Errors
/// A preset that asks for a file where none is given, and what [`foreign::load`] refuses.
pub(crate) fn initialise(
    vs: &VarStore,
    init: Init,
    StartingWeights { file, partial }: StartingWeights<'_>,
    place: &Target<'_>,
) -> Result<Start> {
    if init == Init::Scratch {
        return Ok(Start { text: "drawn from the seed".into(), ..Start::default() });
    }
    let file = file.ok_or_else(|| TrainError::Preset {
        path: "init".into(),
        reason: "this preset starts from a file of weights, and none is given".into(),
    })?;
    let found = encoders::weights::read(file, None).map_err(net::NetError::from)?;
    let lite = init == Init::Lite0;
    // A model that pools the mean has a norm of its own after it, in place of the class token's.
    let names = vs.variables();
    let pools = names.contains_key("fc_norm.weight") && !names.contains_key("norm.weight");
    // A trunk that ends at stride 16 has no use for the stages below.
    let below = |n: &str| {
        let stage = |n: &str| n.strip_prefix("blocks.")?.split('.').next()?.parse::<usize>().ok();
        let own = names.keys().filter_map(|n| stage(n.strip_prefix("encoder.")?)).max();
        stage(n) > own
    };
    let rename = |n: &str| match place {
        Target::Encoder(_) if pools && n.starts_with("norm.") => None,
        Target::Segmenter if lite => {
            (!above_the_trunk(n) && !below(n)).then(|| format!("encoder.{n}"))
        }
        Target::Encoder(_) if lite && n.starts_with("classifier.") => None,
        _ => Some(n.to_string()),
    };
    let free = |n: &str| {
        let without = lite && n.contains(".se.");
        without
            || match place {
                Target::Encoder(net) => {
                    n.starts_with(net.head()) || pools && n.starts_with("fc_norm.")
                }
                Target::Segmenter => lite && !n.starts_with("encoder."),
            }
    };
    let allowed = Allowed { free: &free, partial };
    let Loaded { report, random, .. } = match place {
        Target::Encoder(net) => {
            foreign::load_encoder(file, &found, vs, net.architecture(), rename, &allowed)
        }
        Target::Segmenter => foreign::load(file, &found, vs, rename, &allowed),
    }?;
    let spec = checkpoint::description(file)?;
    let unlisted = spec.as_ref().is_some_and(|s| s.trained_on.is_none());
    let [trained_on, pretrained_on] = match spec {
        Some(spec) => [spec.trained_on, spec.pretrained_on].map(Option::unwrap_or_default),
        None => Default::default(),
    };
    let (text, sha256) = (report.to_string(), Some(digest(file)?));
    Ok(Start { text, random, trained_on, pretrained_on, unlisted, sha256 })
}
