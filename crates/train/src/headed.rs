//! Frozen encoders with a head, to compare packages of classifiers with (`features::headed` makes those).

use std::collections::BTreeMap;
use std::path::Path;

use encoders::encoder::fit;
use encoders::weights::Arrays;
use mitosis::RgbTile;
use net::encoder::{self, Encoder, EncoderConfig};
use net::foreign::{self, Allowed};
use pixels::input::Normalisation;
use pixels::resize::Fit;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::normalised;
use crate::error::Result;

/// An encoder and its head.
pub struct Headed {
    vs: VarStore,
    net: Box<dyn Encoder>,
    fit: Fit,
    norm: Normalisation,
}

impl Headed {
    /// The encoder `name` and its head, of tensors under timm's names. `path` is the file that they are from.
    ///
    /// # Errors
    /// [`TrainError`](crate::TrainError) when they are not exactly these.
    pub fn load(
        path: &Path,
        tensors: &Arrays,
        name: &str,
        image: i64,
        classes: usize,
    ) -> Result<Self> {
        let config = EncoderConfig { image, ..EncoderConfig::new(name, classes as i64) };
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::build(&vs.root(), &config)?;
        let allowed = Allowed { free: &|_| false, partial: false };
        let keep = |n: &str| Some(n.to_string());
        foreign::load_encoder(path, tensors, &vs, net.architecture(), keep, &allowed)?;
        let fit = whole(name, net.image().unwrap_or(image) as usize);
        Ok(Self { vs, net, fit, norm: Normalisation::new(config.mean, config.std) })
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
        let tensors: BTreeMap<String, Tensor> = self.vs.variables().into_iter().collect();
        Ok(net::checkpoint::save_tensors(path, &tensors, BTreeMap::new())?)
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
}

/// A classifier sees its whole crop, at the size that its card states: nothing is cut off, whatever the
/// encoder's makers do with pictures.
fn whole(name: &str, input: usize) -> Fit {
    Fit::whole(input, fit(name, input).by)
}
