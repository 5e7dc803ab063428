//! The plain-buffer ports over libtorch: trained weights where `detect` expects an engine.

use std::path::Path;

use base::digest;
use mitosis::{ClassProbs, Classifier, PortError, ProbMap, RgbTile, Segmenter};
use net::checkpoint::{self, Spec};
use net::device::{MemoryFormat, Precision};
use net::encoder::{self, Encoder, EncoderConfig};
use net::onnx::{self, ExportOptions};
use net::unet::{EfficientUnet, UnetConfig};
use pixels::input::Normalisation;
use pixels::resize::{Fit, Interpolation};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::{images, normalised};
use crate::error::{Result, TrainError};

fn plain<T: serde::de::DeserializeOwned>(path: &Path, spec: &Spec) -> Result<T> {
    serde_json::from_value(spec.config.clone())
        .map_err(|e| TrainError::run(path, format!("its description does not fit: {e}")))
}

/// bf16 on a GPU, f32 on a CPU.
fn place(asked: &str) -> Result<(Device, Precision)> {
    let device = net::device::pick(asked)?;
    Ok((device, if device == Device::Cpu { Precision::F32 } else { Precision::Bf16 }))
}

fn floats(t: &Tensor) -> Vec<f32> {
    let flat = t.to_kind(Kind::Float).to_device(Device::Cpu).contiguous().view(-1);
    Vec::<f32>::try_from(&flat).expect("a flat f32 tensor")
}

fn checked(values: &[f32]) -> std::result::Result<(), PortError> {
    match values.iter().find(|v| !(0.0..=1.0).contains(*v)) {
        Some(&value) => Err(PortError::NotAProbability { engine: "libtorch".into(), value }),
        None => Ok(()),
    }
}

/// A trained U-Net.
pub struct TorchSegmenter {
    vs: VarStore,
    net: EfficientUnet,
    device: Device,
    precision: Precision,
    /// Its description.
    pub spec: Spec,
}

impl TorchSegmenter {
    /// Loads `model.safetensors` of a segmenter run on `auto`, `cpu`, `cuda`, `cuda:1`.
    ///
    /// # Errors
    /// [`TrainError`] when the file is not such a checkpoint.
    pub fn open(path: &Path, device: &str) -> Result<Self> {
        let (device, precision) = place(device)?;
        let spec = checkpoint::read_spec(path)?;
        let config: UnetConfig = plain(path, &spec)?;
        let vs = VarStore::new(device);
        let net = EfficientUnet::new(&vs.root(), &config)?;
        checkpoint::load(path, &vs, &spec)?;
        MemoryFormat::ChannelsLast.apply(&vs);
        Ok(Self { vs, net, device, precision, spec })
    }

    /// The network as an ONNX file's bytes.
    ///
    /// # Errors
    /// A file that would be too large.
    pub fn onnx(&self, options: &ExportOptions) -> Result<Vec<u8>> {
        Ok(onnx::unet(&self.net, &self.vs, options)?)
    }
}

impl Segmenter for TorchSegmenter {
    fn probabilities(
        &mut self,
        windows: &[RgbTile],
    ) -> std::result::Result<Vec<ProbMap>, PortError> {
        let mut out = Vec::with_capacity(windows.len());
        for w in windows {
            if w.width % 32 != 0 || w.height % 32 != 0 || w.width == 0 || w.height == 0 {
                return Err(PortError::TileSize {
                    expected: "multiples of 32".into(),
                    width: w.width,
                    height: w.height,
                });
            }
            // One at a time: a result depends on its window alone.
            let p = tch::no_grad(|| {
                let x = images(std::slice::from_ref(w), self.device);
                let logits = self.precision.run(self.device, || self.net.forward(&x, false));
                logits.to_kind(Kind::Float).sigmoid()
            });
            let data = floats(&p);
            checked(&data)?;
            out.push(ProbMap { width: w.width, height: w.height, data });
        }
        Ok(out)
    }
}

/// Note of a description: SHA-256 of the files of weights whose mean a network has.
pub const MEAN_OF: &str = "mean_of_sha256";

/// A trained classifier.
pub struct TorchClassifier {
    vs: VarStore,
    net: Box<dyn Encoder>,
    device: Device,
    precision: Precision,
    norm: Normalisation,
    /// Its description.
    pub spec: Spec,
}

impl TorchClassifier {
    /// Loads `model.safetensors` of a classifier run on `auto`, `cpu`, `cuda`, `cuda:1`.
    ///
    /// # Errors
    /// [`TrainError`] when the file is not such a checkpoint.
    pub fn open(path: &Path, device: &str) -> Result<Self> {
        Self::open_mean::<&Path>(path, &[], device)
    }

    /// The network with the mean of the weights of several trainings that began with the same weights
    /// ([`checkpoint::load_mean`]); its description is the first one's, with the files' digests as
    /// [`MEAN_OF`] among the notes where there are several.
    ///
    /// # Errors
    /// [`TrainError`] for a file that is not such a checkpoint, or one of another network.
    pub fn open_mean<P: AsRef<Path>>(path: &Path, others: &[P], device: &str) -> Result<Self> {
        let (device, precision) = place(device)?;
        let mut spec = checkpoint::read_spec(path)?;
        let config: EncoderConfig = plain(path, &spec)?;
        let vs = VarStore::new(device);
        let net = encoder::build(&vs.root(), &config)?;
        checkpoint::load_mean(path, others, &vs, &spec)?;
        if !others.is_empty() {
            let mut sums = vec![];
            for file in [path].into_iter().chain(others.iter().map(AsRef::as_ref)) {
                let sum = digest::sha256_file(file).map_err(|e| TrainError::run(file, e))?;
                sums.push(sum.1);
                // The mean has seen what any of them has; one without a list makes it unknown.
                let own = checkpoint::description(file)?;
                if let Some(more) = own.as_ref().and_then(|o| o.pretrained_on.as_ref()) {
                    spec.pretrained_on.get_or_insert_default().extend(more);
                }
                spec.trained_on = match (spec.trained_on.take(), own.and_then(|o| o.trained_on)) {
                    (Some(mut all), Some(more)) => {
                        all.extend(&more);
                        Some(all)
                    }
                    _ => None,
                };
            }
            // A file may contain anything; null becomes an object.
            if !spec.notes.is_object() {
                spec.notes = serde_json::Value::Null;
            }
            spec.notes[MEAN_OF] = sums.into();
        }
        let norm = Normalisation::new(spec.mean, spec.std);
        Ok(Self { vs, net, device, precision, norm, spec })
    }

    /// Saves it as it is, with its description.
    ///
    /// # Errors
    /// The file system's, with the path.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(checkpoint::save(path, &self.vs, &self.spec)?)
    }

    /// In f32 wherever it runs: for figures that are reported.
    #[must_use]
    pub fn in_f32(self) -> Self {
        Self { precision: Precision::F32, ..self }
    }

    /// Writes a Platt scale into the last layer: from then on the second of two classes has the
    /// probability `sigmoid(slope * (its logit - the other's) + offset)`.
    ///
    /// # Errors
    /// [`TrainError::Run`] for a network without a head of two classes.
    pub fn scaled(self, slope: f64, offset: f64) -> Result<Self> {
        let variables = self.vs.variables();
        // `classifier.weight`, `fc.weight`, `head.fc.weight`: one of them by family.
        let part = |end: &str| {
            let own = |n: &&String| n.starts_with(self.net.head()) && n.ends_with(end);
            variables.keys().find(own).map(|n| variables[n].shallow_clone())
        };
        let heads = part(".weight").zip(part(".bias"));
        let Some((mut weight, mut bias)) = heads.filter(|(w, _)| w.size()[0] == 2) else {
            let why = "has no head of two classes to scale";
            return Err(TrainError::run(Path::new(&self.spec.architecture), why));
        };
        tch::no_grad(|| {
            let scale = |t: &Tensor, add: f64| {
                let two = (t.select(0, 1) - t.select(0, 0)) * slope + add;
                Tensor::stack(&[&two.zeros_like(), &two], 0)
            };
            let (w, b) = (scale(&weight, 0.0), scale(&bias, offset));
            weight.copy_(&w);
            bias.copy_(&b);
        });
        Ok(self)
    }

    /// The network as an ONNX file's bytes, for images of its own side.
    ///
    /// # Errors
    /// A file that would be too large.
    pub fn onnx(&self, options: &ExportOptions) -> Result<Vec<u8>> {
        Ok(onnx::classifier(&*self.net, &self.vs, i64::from(self.spec.input), options)?)
    }
}

impl Classifier for TorchClassifier {
    fn class_names(&self) -> &[String] {
        &self.spec.classes
    }

    fn classes(&mut self, crops: &[RgbTile]) -> std::result::Result<Vec<ClassProbs>, PortError> {
        // As it was trained: whole crops, bilinear, whatever the makers of its encoder do.
        let fit = Fit::whole(self.spec.input as usize, Interpolation::Bilinear);
        let mut out = Vec::with_capacity(crops.len());
        for part in crops.chunks(16) {
            let sized: Vec<RgbTile> = part.iter().map(|c| fit.apply(c).into_owned()).collect();
            let p = tch::no_grad(|| {
                let x = normalised(&sized, &self.norm, self.device);
                let logits = self.precision.run(self.device, || self.net.forward(&x, false));
                logits.to_kind(Kind::Float).softmax(-1, Kind::Float)
            });
            let data = floats(&p);
            checked(&data)?;
            out.extend(data.chunks_exact(self.spec.classes.len()).map(|c| ClassProbs(c.to_vec())));
        }
        Ok(out)
    }
}
