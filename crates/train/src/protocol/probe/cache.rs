//! Features of a frozen encoder, computed once.
//!
//! ```text
//! CACHE/<first 16 digits of the digest>/about.json      what the features are made from
//! CACHE/.../copy-S-part-P.safetensors                    those of symmetric copy S
//! ```
//!
//! The digest is over all that changes a feature, so that another encoder, other weights, crops or
//! images have another folder. A part is there whole or not at all: a killed run loses one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::digest::{Digest as _, Sha256, hex};
use mitosis::RgbTile;
use net::checkpoint;
use net::encoder::{Encoder, EncoderConfig};
use pixels::geometry::centred;
use pixels::input::Normalisation;
use regions::task::TrainingSet;
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::normalised;
use crate::error::{Result, TrainError};
use crate::text::write_text;

const SCHEMA: &str = "mithras.features-cache/1";
/// Images of a part.
const PART: usize = 512;
/// Images at a time.
const BATCH: usize = 32;
const FEATURES: &str = "features";
const MADE_FROM: &str = "made_from";

/// All that changes a feature.
#[derive(Serialize)]
struct Made<'a> {
    schema: &'a str,
    /// The network, without its head.
    encoder: EncoderConfig,
    /// Of names, shapes and values, without the head.
    weights_sha256: String,
    /// Side of the centred square, pixels at 0.25 um/px.
    crop: usize,
    set_sha256: String,
}

/// SHA-256 over names, shapes and values of all but the head.
fn digest(vs: &VarStore, head: &str) -> Result<String> {
    let all: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
    let mut hash = Sha256::new();
    for (name, t) in all.iter().filter(|(n, _)| !n.starts_with(head)) {
        hash.update(format!("{name}\n{:?}\n", t.size()));
        let t = t.detach().to_kind(Kind::Float).to_device(Device::Cpu).contiguous();
        let mut bytes = vec![0; t.numel() * Kind::Float.elt_size_in_bytes()];
        t.f_copy_data_u8(&mut bytes, t.numel())?;
        hash.update(bytes);
    }
    Ok(hex(&hash.finalize()))
}

/// The features of one encoder of one set.
pub(super) struct Cache {
    folder: PathBuf,
    /// SHA-256 of all that changes a feature.
    pub sha256: String,
    about: String,
}

/// The encoder and the images it sees.
pub(super) struct Source<'a> {
    pub net: &'a dyn Encoder,
    pub model: &'a EncoderConfig,
    pub vs: &'a VarStore,
    pub set: &'a TrainingSet,
    pub crop: usize,
}

impl Cache {
    /// Below `root`, where nothing is written yet.
    pub fn new(root: &Path, from: &Source<'_>) -> Result<Self> {
        let plain = EncoderConfig::new(&from.model.name, 0);
        let EncoderConfig { image, pool, mean, std, .. } = *from.model;
        let about = serde_json::to_string_pretty(&Made {
            schema: SCHEMA,
            encoder: EncoderConfig { image, pool, mean, std, ..plain },
            weights_sha256: digest(from.vs, from.net.head())?,
            crop: from.crop,
            set_sha256: from.set.digest(),
        })
        .expect("plain data");
        let sha256 = base::digest::sha256(&about);
        Ok(Self { folder: root.join(&sha256[..16]), sha256, about })
    }

    /// `[copies, N, D]` of all images in f32, computed where no earlier call left them whole.
    pub fn features(&self, from: &Source<'_>, copies: u8) -> Result<Tensor> {
        std::fs::create_dir_all(&self.folder).map_err(|e| TrainError::run(&self.folder, e))?;
        write_text(&self.folder.join("about.json"), &self.about)?;
        let norm = Normalisation::new(from.model.mean, from.model.std);
        let mut all = vec![];
        for copy in 0..copies {
            let mut parts = vec![];
            for (p, images) in from.set.images().chunks(PART).enumerate() {
                let path = self.folder.join(format!("copy-{copy}-part-{p}.safetensors"));
                let shape = [images.len() as i64, from.net.dim()];
                parts.push(match self.read(&path, shape) {
                    Some(known) => known,
                    None => self.compute(&path, from, images, copy, &norm)?,
                });
            }
            all.push(Tensor::cat(&parts, 0));
        }
        Ok(Tensor::stack(&all, 0))
    }

    /// What an earlier call left; a file that is damaged or another's is as good as none.
    fn read(&self, path: &Path, shape: [i64; 2]) -> Option<Tensor> {
        let mut file = checkpoint::read_tensors(path).ok()?;
        let features = file.tensors.remove(FEATURES)?;
        let own = file.metadata.get(MADE_FROM) == Some(&self.sha256);
        (own && features.size() == shape && features.kind() == Kind::Float).then_some(features)
    }

    fn compute(
        &self,
        path: &Path,
        from: &Source<'_>,
        images: &[RgbTile],
        copy: u8,
        norm: &Normalisation,
    ) -> Result<Tensor> {
        let side = from.model.image as usize;
        let parts: Vec<Tensor> = images
            .chunks(BATCH)
            .map(|part| {
                let shown = |i| centred(i, from.crop, side).symmetric(copy);
                let tiles: Vec<RgbTile> = part.iter().map(shown).collect();
                let x = normalised(&tiles, norm, from.vs.device()).contiguous();
                tch::no_grad(|| from.net.embed(&x, false))
                    .to_kind(Kind::Float)
                    .to_device(Device::Cpu)
            })
            .collect();
        let features = Tensor::cat(&parts, 0);
        if features.isfinite().all().int64_value(&[]) == 0 {
            return Err(TrainError::run(
                path,
                "the encoder returned features that are not numbers",
            ));
        }
        let named = BTreeMap::from([(FEATURES.to_string(), features.shallow_clone())]);
        let metadata = BTreeMap::from([(MADE_FROM.to_string(), self.sha256.clone())]);
        checkpoint::save_tensors(path, &named, metadata)?;
        Ok(features)
    }
}
