//! Frozen features of crops and slide tiles: any encoder of the table.

use std::path::Path;

use encoders::encoder::fit;
use encoders::weights::Arrays;
use mitosis::RgbTile;
use net::NetError;
use net::checkpoint::{self, Spec};
use net::encoder::{self, Encoder, EncoderConfig};
use net::foreign::{self, Allowed};
use pixels::input::Normalisation;
use pixels::resize::{Fit, Interpolation};
use tch::nn::VarStore;
use tch::{Device, Kind};

use crate::batch::normalised;
use crate::error::{Result, TrainError};

/// An encoder with frozen weights.
pub struct Embedder {
    vs: VarStore,
    net: Box<dyn Encoder>,
    device: Device,
    fit: Fit,
    norm: Normalisation,
    random: Vec<String>,
}

impl Embedder {
    /// Loads weights: a checkpoint of this project (`encoder.safetensors` of a pretraining, a
    /// classifier's `model.safetensors`), or with `name` any file in timm's names (safetensors or
    /// `torch.save`). `image` is the side for encoders that take any, and for files in timm's names.
    /// With `partial` the weights that match are loaded, and [`Self::random`] lists the others.
    ///
    /// # Errors
    /// [`TrainError`] when the file does not contain exactly the whole encoder (and perhaps a head),
    /// or does not name the encoder.
    pub fn open(
        path: &Path,
        name: Option<&str>,
        image: i64,
        partial: bool,
        device: &str,
    ) -> Result<Self> {
        let device = net::device::pick(device)?;
        tch::manual_seed(0); // what no file gives is at least the same every time
        let tensors = encoders::weights::read(path, None).map_err(NetError::from)?;
        let config = match name {
            Some(name) => EncoderConfig { image, ..EncoderConfig::new(name, 0) },
            None => described(path, checkpoint::description(path)?.as_ref())?,
        };
        let vs = VarStore::new(device);
        let net = encoder::build(&vs.root(), &config)?;
        let free = |n: &str| n.starts_with(net.head());
        let allowed = Allowed { free: &free, partial };
        let keep = |n: &str| Some(n.to_string());
        let random =
            foreign::load_encoder(path, &tensors, &vs, net.architecture(), keep, &allowed)?.random;
        // A checkpoint of ours was trained on whole crops, bilinear.
        let side = net.image().unwrap_or(image) as usize;
        let ours = || Fit::whole(side, Interpolation::Bilinear);
        let fit = name.map_or_else(ours, |name| fit(name, side));
        let norm = Normalisation::new(config.mean, config.std);
        Ok(Self { vs, net, device, fit, norm, random })
    }

    /// An encoder as drawn from a seed, for comparison.
    ///
    /// # Errors
    /// An unknown name.
    pub fn untrained(name: &str, image: i64, seed: i64) -> Result<Self> {
        tch::manual_seed(seed);
        let vs = VarStore::new(Device::Cpu);
        let config = EncoderConfig { image, ..EncoderConfig::new(name, 0) };
        let net = encoder::build(&vs.root(), &config)?;
        let fit = fit(name, net.image().unwrap_or(image) as usize);
        let norm = Normalisation::new(config.mean, config.std);
        Ok(Self { vs, net, device: Device::Cpu, fit, norm, random: vec![] })
    }

    /// timm's name.
    #[must_use]
    pub fn architecture(&self) -> &str {
        self.net.architecture()
    }

    /// Weights that no file gave, where a part was allowed.
    #[must_use]
    pub fn random(&self) -> &[String] {
        &self.random
    }

    /// Length of a feature vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.net.dim() as usize
    }

    /// Side of its input, pixels.
    #[must_use]
    pub fn side(&self) -> usize {
        self.fit.input
    }

    /// How tiles become its input.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// One vector per tile, in order: `tiles.len() * dim` values.
    #[must_use]
    pub fn embed(&self, tiles: &[RgbTile]) -> Vec<f32> {
        use rayon::prelude::*;
        if tiles.is_empty() {
            return vec![];
        }
        let fit = self.fit;
        let sized: Vec<RgbTile> = tiles.par_iter().map(|t| fit.apply(t).into_owned()).collect();
        let x = normalised(&sized, &self.norm, self.device).contiguous();
        let y = tch::no_grad(|| self.net.embed(&x, false)).to_kind(Kind::Float);
        let flat = y.to_device(Device::Cpu).contiguous().view(-1);
        Vec::<f32>::try_from(&flat).expect("a flat f32 tensor")
    }

    /// Its tensors by timm's names.
    #[must_use]
    pub fn tensors(&self) -> Arrays {
        net::to_arrays(&self.vs)
    }
}

/// The encoder that a checkpoint describes, fed as it was trained; a head is left out where the encoder can do without.
fn described(path: &Path, spec: Option<&Spec>) -> Result<EncoderConfig> {
    let none = || TrainError::run(path, "does not name its encoder, and none was given");
    let spec = spec.ok_or_else(none)?;
    let config: EncoderConfig = serde_json::from_value(spec.config.clone()).map_err(|e| {
        TrainError::run(path, format!("describes no encoder ({e}); a segmenter has no features"))
    })?;
    let transformer = encoder::entry(&config.name)
        .is_some_and(|e| matches!(e.architecture, encoder::Architecture::Vit(_)));
    let classes = if transformer { 0 } else { config.classes };
    let (mean, std) = (spec.mean, spec.std);
    Ok(EncoderConfig { classes, drop_path: 0.0, dropout: 0.0, mean, std, ..config })
}
