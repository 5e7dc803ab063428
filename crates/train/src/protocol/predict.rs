//! Predictions per item, always written, so that any metric can be recomputed.

use std::fmt::Write as _;
use std::path::Path;

use corpus::augment::geometry::centred;
use corpus::task::Crops;
use mitosis::RgbTile;
use net::encoder::Encoder;
use tch::{Device, Kind, Tensor};

use super::Model;
use crate::batch::images;
use crate::error::{Result, TrainError};
use crate::run::write_text;

/// One item's probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// File relative to the data folder.
    pub file: String,
    /// Slide.
    pub source: String,
    /// Scanner or collection.
    pub domain: String,
    /// The fold whose model this is, or `ensemble`.
    pub fold: String,
    /// True class.
    pub truth: usize,
    /// One per class, summing to one.
    pub probabilities: Vec<f64>,
}

impl Prediction {
    /// The likeliest class; the first of equals.
    #[must_use]
    pub fn class(&self) -> usize {
        let mut best = 0;
        for (i, p) in self.probabilities.iter().enumerate() {
            if *p > self.probabilities[best] {
                best = i;
            }
        }
        best
    }

    /// Mean probabilities of several models on one item.
    pub(super) fn mean(parts: &[&Self]) -> Self {
        let n = parts.len() as f64;
        let sum = |c: usize| parts.iter().map(|p| p.probabilities[c]).sum::<f64>() / n;
        let probabilities = (0..parts[0].probabilities.len()).map(sum).collect();
        Self { fold: "ensemble".into(), probabilities, ..parts[0].clone() }
    }
}

/// `[N, classes]` of equal tiles. They stay channels-last, as the tiles are: 1.5 times faster on a
/// CPU than planes.
pub(super) fn logits(net: &dyn Encoder, tiles: &[RgbTile], device: Device) -> Tensor {
    net.forward(&images(tiles, device), false)
}

/// Probabilities of `items`, in f32, averaged over the symmetric copies.
pub(super) fn all(
    model: &Model,
    set: &Crops,
    items: &[usize],
    fold: usize,
    crop: usize,
    symmetries: u8,
) -> Result<Vec<Prediction>> {
    let side = model.spec.input as usize;
    let classes = set.classes().len();
    let device = model.vs.device();
    let mut out = Vec::with_capacity(items.len());
    for part in items.chunks(32) {
        let mut sum = vec![0.0_f64; part.len() * classes];
        for s in 0..symmetries {
            let tiles: Vec<RgbTile> =
                part.iter().map(|&i| centred(&set.images()[i], crop, side).symmetric(s)).collect();
            let p = tch::no_grad(|| {
                logits(model.net.as_ref(), &tiles, device).softmax(-1, Kind::Double)
            });
            let p = Vec::<f64>::try_from(p.to_device(Device::Cpu).contiguous().view(-1))?;
            sum.iter_mut().zip(p).for_each(|(a, b)| *a += b / f64::from(symmetries));
        }
        for (&i, p) in part.iter().zip(sum.chunks_exact(classes)) {
            out.push(of(set, i, fold, p.to_vec())?);
        }
    }
    Ok(out)
}

/// An item with its probabilities.
pub(super) fn of(set: &Crops, i: usize, fold: usize, p: Vec<f64>) -> Result<Prediction> {
    let item = &set.items()[i];
    if p.iter().any(|v| !v.is_finite()) {
        return Err(TrainError::run(Path::new(&item.file), "the model gives no number for it"));
    }
    Ok(Prediction {
        file: item.file.clone(),
        source: item.source.clone(),
        domain: item.domain.clone(),
        fold: fold.to_string(),
        truth: item.class,
        probabilities: p,
    })
}

/// Writes `file,source,domain,fold,truth,class,p_<class>...`.
///
/// # Errors
/// The file system's.
pub fn write(path: &Path, classes: &[String], rows: &[Prediction]) -> Result<()> {
    let mut text = String::from("file,source,domain,fold,truth,class");
    classes.iter().for_each(|c| text.push_str(&format!(",p_{}", quoted(c))));
    text.push('\n');
    for r in rows {
        let [file, source, domain] = [&r.file, &r.source, &r.domain].map(|s| quoted(s));
        let (truth, class) = (quoted(&classes[r.truth]), quoted(&classes[r.class()]));
        let _ = write!(text, "{file},{source},{domain},{},{truth},{class}", r.fold);
        r.probabilities.iter().for_each(|p| {
            let _ = write!(text, ",{p:.6}");
        });
        text.push('\n');
    }
    write_text(path, &text)
}

fn quoted(s: &str) -> String {
    if s.contains([',', '"', '\n']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.into() }
}
