//! An image's pixels and labels at a working resolution, read as a slide is read.

use super::{Area, Dataset, Image, Kind, MppSource, RegionsError, Result};
use base::digest::sha256_file;
use mitosis::{Mpp, RgbTile};
use slide::{MppRule, OpenOptions, Rect, Slide};

/// A label in pixels of a [`Region`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedLabel {
    /// Number of the label in [`Image::labels`].
    pub index: usize,
    /// What it is.
    pub kind: Kind,
    /// Centre, px rightwards; pixel (0, 0) covers `[0, 1) x [0, 1)`.
    pub x: f64,
    /// Centre, px downwards.
    pub y: f64,
    /// Its box, when known.
    pub bbox: Option<Area>,
}

/// A whole image at one resolution, with its labels and ignore areas in the same pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The pixels.
    pub tile: RgbTile,
    /// Their resolution.
    pub mpp: Mpp,
    /// The labels.
    pub labels: Vec<PlacedLabel>,
    /// Areas that teach nothing.
    pub ignore: Vec<Area>,
}

/// Cache of a slide of which every pixel is read once.
const CACHE_BYTES: usize = 16 << 20;

impl Dataset {
    /// Opens an image for reading parts of it, at the resolution that the dataset records. The
    /// digest is not checked; use [`Dataset::verify`] once.
    ///
    /// # Errors
    /// [`RegionsError`]: unreadable, or of another size or resolution than recorded.
    pub fn open_image(&self, image: &Image) -> Result<Slide> {
        let path = self.path(image);
        let stated = matches!(image.mpp.source, MppSource::File(_));
        let options = OpenOptions {
            mpp: (!stated).then_some(image.mpp.x),
            mpp_rule: if stated { MppRule::Agree } else { MppRule::Force },
            cache_bytes: CACHE_BYTES,
            ..OpenOptions::default()
        };
        let slide = Slide::open_with(&path, &options)?;
        let (expected, found) =
            ((u64::from(image.width), u64::from(image.height)), slide.dimensions());
        let changed = |what, found: String, expected: String| {
            Err(RegionsError::Changed { path: path.clone(), what, found, expected })
        };
        if found != expected {
            return changed("its extent in pixels", format!("{found:?}"), format!("{expected:?}"));
        }
        let r = slide.resolution()?;
        let off = |a: Mpp, b: Mpp| (a.get() - b.get()).abs() > 1e-6 * b.get();
        if off(r.x, image.mpp.x) || off(r.y, image.mpp.y) {
            let (found, expected) = (r.x.to_string(), image.mpp.x.to_string());
            return changed("its resolution", found, expected);
        }
        Ok(slide)
    }

    /// The whole image at `mpp`, resampled as slides are for detection. A strip narrower than one
    /// output pixel at the right and bottom is left out.
    ///
    /// # Errors
    /// [`RegionsError`]: the file is not the recorded one, cannot be read, or is too large to be
    /// held whole (read windows of [`Dataset::open_image`] instead).
    pub fn load(&self, image: &Image, mpp: Mpp) -> Result<Region> {
        self.check_digest(image)?;
        let slide = self.open_image(image)?;
        let scale = image.scale(mpp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels")]
        let side = |n: u32, f: f64| ((f64::from(n) * f + 1e-6).floor() as usize).max(1);
        let (w, h) = (side(image.width, scale.0), side(image.height, scale.1));
        let tile = slide.read_at(mpp, Rect::new(0, 0, w, h))?;
        let labels = image.labels.iter().enumerate();
        let labels = labels.map(|(index, l)| PlacedLabel {
            index,
            kind: l.kind,
            x: l.x * scale.0,
            y: l.y * scale.1,
            bbox: l.bbox.map(|b| b.scaled(scale)),
        });
        Ok(Region {
            tile,
            mpp,
            labels: labels.collect(),
            ignore: image.ignore.iter().map(|a| a.scaled(scale)).collect(),
        })
    }

    /// Reads every byte of every image and compares digests.
    ///
    /// # Errors
    /// [`RegionsError::Changed`] naming the first file that differs.
    pub fn verify(&self) -> Result<()> {
        use rayon::prelude::*;
        self.images().par_iter().try_for_each(|i| self.check_digest(i))
    }

    fn check_digest(&self, image: &Image) -> Result<()> {
        let path = self.path(image);
        let (_, found) = sha256_file(&path).map_err(|e| RegionsError::file(&path, e))?;
        if found == image.sha256 {
            return Ok(());
        }
        let expected = image.sha256.clone();
        Err(RegionsError::Changed { path, what: "its SHA-256", found, expected })
    }
}
