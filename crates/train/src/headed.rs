//! Frozen encoders as classifiers: by the linear layer in their file (IMPaSh), or by texts
//! that describe the classes (CONCH, zero-shot).

use std::collections::BTreeMap;
use std::path::Path;

use encoders::Array;
use encoders::encoder::fit;
use encoders::weights::Arrays;
use mitosis::RgbTile;
use net::encoder::{self, Encoder, EncoderConfig};
use net::foreign::{self, Allowed};
use net::onnx::{self, ExportOptions, WeightKind};
use net::text;
use pixels::input::Normalisation;
use pixels::resize::Fit;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::normalised;
use crate::error::{Result, TrainError};
use crate::prompts::{Prompts, Tokens, vectors};

/// Name of the scale of likenesses in files of images' and texts' encoders, as a logarithm.
const SCALE: &str = "logit_scale";

/// An encoder and its head.
pub struct Headed {
    vs: VarStore,
    net: Box<dyn Encoder>,
    fit: Fit,
    norm: Normalisation,
}

impl Headed {
    /// The encoder `name` and the head of `classes` outputs, both from a file in a published layout.
    ///
    /// # Errors
    /// [`TrainError`] when the file does not hold exactly these.
    pub fn open(path: &Path, name: &str, image: i64, classes: usize) -> Result<Self> {
        let tensors = read(path)?;
        Self::load(path, &tensors, name, image, classes, &|_| false)
    }

    /// The encoder `name` with one output per class of `prompts`: the likeness of the image to the
    /// class's texts, by the same file's text tower and scale. The texts of a class are averaged, as
    /// published.
    ///
    /// # Errors
    /// [`TrainError`] when the file holds no text tower of CONCH's, or its vectors are not as long as
    /// the encoder's.
    pub fn zero_shot(
        path: &Path,
        name: &str,
        image: i64,
        prompts: &Prompts,
        tokens: &Tokens,
    ) -> Result<Self> {
        let mut tensors = read(path)?;
        let bad = |reason: String| TrainError::run(path, reason);
        let projected = encoder::entry(name).is_some_and(|e| match e.architecture {
            encoder::Architecture::Vit(vit) => vit.projection.is_some_and(|p| p.unit),
            _ => false,
        });
        if !projected {
            let reason = format!(
                "`{name}` gives no vectors to hold against texts; an encoder of images and texts does, as conch_v1_projected"
            );
            return Err(bad(reason));
        }
        let scale = tensors.get(SCALE).map(Array::to_f64);
        let scale = match scale.as_deref() {
            Some([scale]) => scale.exp(),
            _ => return Err(bad(format!("has no `{SCALE}`"))),
        };
        if !scale.is_finite() {
            return Err(bad(format!("`{SCALE}` is out of range")));
        }
        // What the images' encoder has nothing to do with, whatever the layout.
        let tower = tensors.extract_if(.., |name, _| name.starts_with(text::TOWER)).collect();
        tensors.remove(SCALE);
        let of_classes = vectors(path, &net::from_arrays(tower)?, prompts, tokens)?;
        let classes = prompts.classes.len();
        let headed = Self::load(path, &tensors, name, image, classes, &|n| n.starts_with("head."))?;
        let (texts, images) = (of_classes.size()[1], headed.net.dim());
        if texts != images {
            return Err(bad(format!("texts have {texts} numbers, images {images}")));
        }
        let mut head = headed.vs.variables();
        let weight = head.get_mut("head.weight").expect("a transformer with classes");
        tch::no_grad(|| weight.copy_(&(of_classes * scale)));
        Ok(headed)
    }

    /// As drawn from a seed, the head too, for comparison.
    ///
    /// # Errors
    /// An unknown name.
    pub fn drawn(name: &str, image: i64, classes: usize, seed: i64) -> Result<Self> {
        tch::manual_seed(seed);
        let vs = VarStore::new(Device::Cpu);
        let config = EncoderConfig { image, ..EncoderConfig::new(name, classes as i64) };
        let net = encoder::build(&vs.root(), &config)?;
        for (_, mut t) in vs.variables().into_iter().filter(|(n, _)| n.starts_with(net.head())) {
            tch::no_grad(|| t.copy_(&t.randn_like()));
        }
        let fit = whole(name, net.image().unwrap_or(image) as usize);
        Ok(Self { vs, net, fit, norm: Normalisation::new(config.mean, config.std) })
    }

    /// Writes its weights in timm's names, as safetensors.
    ///
    /// # Errors
    /// The file system's, with the path.
    pub fn save(&self, path: &Path) -> Result<()> {
        let tensors: Vec<(String, Tensor)> = self.vs.variables().into_iter().collect();
        Ok(net::checkpoint::save_tensors(path, &tensors, BTreeMap::new())?)
    }

    fn load(
        path: &Path,
        tensors: &Arrays,
        name: &str,
        image: i64,
        classes: usize,
        free: &dyn Fn(&str) -> bool,
    ) -> Result<Self> {
        let config = EncoderConfig { image, ..EncoderConfig::new(name, classes as i64) };
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::build(&vs.root(), &config)?;
        let allowed = Allowed { free, partial: false };
        let keep = |n: &str| Some(n.to_string());
        foreign::load_encoder(path, tensors, &vs, net.architecture(), keep, &allowed)?;
        let fit = whole(name, net.image().unwrap_or(image) as usize);
        Ok(Self { vs, net, fit, norm: Normalisation::new(config.mean, config.std) })
    }

    /// timm's name.
    #[must_use]
    pub fn architecture(&self) -> &str {
        self.net.architecture()
    }

    /// Side of its input, pixels.
    #[must_use]
    pub fn side(&self) -> usize {
        self.fit.input
    }

    /// How crops become its input.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Probabilities of the classes, tile by tile: `tiles.len() * classes` values.
    #[must_use]
    pub fn probabilities(&self, tiles: &[RgbTile]) -> Vec<f32> {
        if tiles.is_empty() {
            return vec![];
        }
        let sized: Vec<RgbTile> = tiles.iter().map(|t| self.fit.apply(t).into_owned()).collect();
        let x = normalised(&sized, &self.norm, Device::Cpu).contiguous();
        let y = tch::no_grad(|| self.net.forward(&x, false).softmax(-1, Kind::Float));
        Vec::<f32>::try_from(&y.contiguous().view(-1)).expect("a flat f32 tensor")
    }

    /// As an ONNX file's bytes: `image [N, 3, S, S]` to `probability [N, C]`.
    ///
    /// # Errors
    /// None that an encoder of the table can cause.
    pub fn onnx(&self, half: bool) -> Result<Vec<u8>> {
        let options = ExportOptions { weights: WeightKind::halved(half), metadata: vec![] };
        Ok(onnx::classifier(&*self.net, &self.vs, self.side() as i64, &options)?)
    }
}

fn read(path: &Path) -> Result<Arrays> {
    Ok(encoders::weights::read(path, None).map_err(net::NetError::from)?)
}

/// A classifier sees its whole crop, at the size that its card states: nothing is cut off, whatever the
/// encoder's makers do with pictures.
fn whole(name: &str, input: usize) -> Fit {
    Fit::whole(input, fit(name, input).by)
}
