//! Image crops to class probabilities, with any classifier package.

use crate::files;
pub use crate::files::images;
use base::progress::{Listener, Piece};
use base::remedy::{Remedied, Remedy};
use base::table::Writer;
use base::text::Many;
use infer::card::ClassifierCard;
use infer::{EngineError, EngineOptions, EngineReport, ModelPackage};
use mitosis::{ClassProbs, Mpp, PortError, RgbTile};
use pixels::geometry::centred;
use pixels::resize::to_resolution;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Larger images are not crops.
const LARGEST: usize = 8192;

/// Why crops are not classified.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The package is for something else.
    #[error("model `{0}` has no classifier")]
    NoClassifier(String),
    /// No engine runs the package.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The network stopped.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The table cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
}

/// A table of predictions that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Classified {
    /// Version of this format.
    pub schema: &'static str,
    /// Name of the package.
    pub model: String,
    /// The table.
    #[serde(serialize_with = "base::json::lossy")]
    pub out: PathBuf,
    /// Images in it.
    pub images: usize,
    /// Images that could not be used, with the reason.
    pub failed: Vec<String>,
    /// um/px of the images.
    pub mpp: f64,
    /// The source of the resolution.
    pub mpp_source: &'static str,
    /// Side of the square in the middle that is looked at, px at the model's resolution.
    pub crop_px: usize,
    /// The model's resolution, um/px.
    pub model_mpp: f64,
    /// What ran the network.
    pub engine: EngineReport,
    /// Seconds, all in all.
    pub seconds: f64,
    /// Images per class, in the package's order.
    #[serde(serialize_with = "in_order")]
    pub classes: Vec<ClassImages>,
}

/// How many images are of a class.
#[derive(Clone, Debug)]
pub struct ClassImages {
    /// Name of the class.
    pub class: String,
    /// Images whose likeliest class it is.
    pub images: usize,
}

fn in_order<S: serde::Serializer>(all: &[ClassImages], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|c| (&c.class, c.images)))
}

impl fmt::Display for Classified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> =
            self.classes.iter().map(|c| format!("{} {}", c.images, c.class)).collect();
        let source = if self.mpp_source == OWN { ", taken from the model" } else { "" };
        let images = Many(self.images, "image");
        writeln!(f, "{images} at {} um/px{source}: {}", self.mpp, each.join(", "))?;
        writeln!(f, "written to {}", self.out.display())
    }
}

const OWN: &str = "the model's own";

/// Why an image is not a crop for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoCrop(String);

/// An image file as the model wants it.
fn read_crop(path: &Path, own: Mpp, card: &ClassifierCard) -> Result<RgbTile, String> {
    let image = files::image(path)?;
    fit(&image, own, card).map_err(|e| format!("{}: {e}", path.display()))
}

/// An image of `own` um/px as the model wants it: at the model's resolution, the square in its middle.
///
/// # Errors
/// [`NoCrop`] when it is as large as a slide, or next to nothing.
pub fn fit(image: &RgbTile, own: Mpp, card: &ClassifierCard) -> Result<RgbTile, NoCrop> {
    let (w, h) = (image.width, image.height);
    if w.max(h) > LARGEST {
        return Err(NoCrop(format!(
            "{w}x{h} px is too large for a crop (at most {LARGEST}); use `mithras detect` for slides"
        )));
    }
    let least = w.min(h) as f64 / own.ratio(card.mpp);
    if least < 8.0 {
        return Err(NoCrop(format!(
            "{w}x{h} px at {} um/px is less than 8 px at the model's {} um/px",
            own.get(),
            card.mpp.get()
        )));
    }
    // Enlarged before the symmetric copies are taken, as in training: the order shows in the last bit.
    let side = card.input.max(card.crop);
    Ok(centred(&to_resolution(image, own, card.mpp), card.crop, side))
}

/// Classifies `files` at `mpp` um/px (the model's own where it is not given) and writes one row per
/// image to `out`: file, class, `p_CLASS`...
///
/// # Errors
/// [`ClassifyError`]; an image that cannot be used is listed in the result instead.
pub fn classify(
    package: &ModelPackage,
    options: &EngineOptions,
    files: &[PathBuf],
    mpp: Option<Mpp>,
    out: &Path,
    listener: &mut dyn Listener,
) -> Result<Classified, ClassifyError> {
    let none = || ClassifyError::NoClassifier(package.card.name.clone());
    let card = package.card.classifier.as_ref().ok_or_else(none)?;
    let own = mpp.unwrap_or(card.mpp);
    let models = infer::open(package, options)?;
    let mut classifier = models.classifier.ok_or_else(none)?;
    let started = Instant::now();
    let header = ["file".to_owned(), "class".into()];
    let mut table =
        Writer::new(header.into_iter().chain(card.classes.iter().map(|c| format!("p_{c}"))));
    let mut counts = vec![0_usize; card.classes.len()];
    let mut failed = Vec::new();
    let mut done = 0;
    let mut piece = Piece::begin(listener, "classify", "classify", "images");
    for part in files.chunks(64) {
        let (mut names, mut crops) = (Vec::new(), Vec::new());
        for path in part {
            match read_crop(path, own, card) {
                Ok(crop) => {
                    names.push(path.display().to_string());
                    crops.push(crop);
                }
                Err(reason) => failed.push(reason),
            }
        }
        for (name, ClassProbs(p)) in names.into_iter().zip(classifier.classes(&crops)?) {
            let best = card.called(&p);
            counts[best] += 1;
            let cells = [name, card.classes[best].clone()];
            table.push(cells.into_iter().chain(p.iter().map(|v| format!("{v:.6}"))));
        }
        done += part.len();
        piece.update(done as u64, files.len() as u64);
    }
    piece.finish();
    table.write(out)?;
    Ok(Classified {
        schema: "mithras.classify/1",
        model: package.card.name.clone(),
        out: out.to_owned(),
        images: files.len() - failed.len(),
        failed,
        mpp: own.get(),
        mpp_source: if mpp.is_some() { "given by the user" } else { OWN },
        crop_px: card.crop,
        model_mpp: card.mpp.get(),
        engine: models.report,
        seconds: started.elapsed().as_secs_f64(),
        classes: card
            .classes
            .iter()
            .zip(counts)
            .map(|(class, images)| ClassImages { class: class.clone(), images })
            .collect(),
    })
}

impl Remedied for ClassifyError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer::EngineChoice;

    /// Takes a file away, and cuts another, as soon as the first images are done.
    struct Damage {
        gone: PathBuf,
        cut: PathBuf,
    }

    impl Listener for Damage {
        fn begin(&mut self, _: &str, _: &'static str) {}
        fn update(&mut self, _: u64, _: u64) {
            let _ = std::fs::remove_file(&self.gone);
            let half = std::fs::metadata(&self.cut).unwrap().len() / 2;
            std::fs::File::options().write(true).open(&self.cut).unwrap().set_len(half).unwrap();
        }
        fn finish(&mut self) {}
        fn report(&mut self, _: &str) {}
        fn note(&mut self, _: &str) {}
    }

    #[test]
    fn what_cannot_be_read_any_more_after_the_first_images_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let package = testkit::workspace().join("crates/infer/tests/golden/tiny");
        let package = ModelPackage::find(Some(&package)).unwrap();
        let files: Vec<PathBuf> = (0..67).map(|k| dir.path().join(format!("{k}.png"))).collect();
        for (k, file) in files.iter().enumerate() {
            let at = |x: u32, y: u32| image::Rgb([(x * 7) as u8, (y * 5) as u8, k as u8]);
            image::RgbImage::from_fn(32, 32, at).save(file).unwrap();
        }
        let options =
            EngineOptions { engine: EngineChoice::Rten, threads: 1, ..EngineOptions::default() };
        let out = dir.path().join("out.csv");
        let mut damage = Damage { gone: files[64].clone(), cut: files[66].clone() };
        let done = classify(&package, &options, &files, None, &out, &mut damage).unwrap();
        assert_eq!((done.images, done.failed.len()), (65, 2), "{:?}", done.failed);
        let table = std::fs::read_to_string(&out).unwrap();
        assert_eq!(table.lines().count(), 66);
        for (failed, file) in done.failed.iter().zip([&files[64], &files[66]]) {
            let name = file.to_str().unwrap();
            assert!(failed.contains(name) && !table.contains(name), "{failed}");
        }
        assert!(table.contains(files[65].to_str().unwrap()), "{table}");
    }
}
