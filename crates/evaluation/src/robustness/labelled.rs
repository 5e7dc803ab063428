//! An image whose figures are known.

use super::{Options, RobustnessError, areas};
use crate::evaluate::Truth;
use mithras::input::stem;
use mitosis::{Physical, Point, Resolution, RgbTile};
use regions::scene::read_rgb;
use slide::{OpenOptions, Slide};
use std::path::Path;

/// A labelled image in memory.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Its name.
    pub name: String,
    /// Its pixels.
    pub tile: RgbTile,
    /// um/px of these.
    pub resolution: Resolution,
    /// Its figures.
    pub truth: Vec<Point<Physical>>,
    /// Rectangles `[x0, y0, x1, y1]` in px, of which nothing is known.
    pub ignore: Vec<[f64; 4]>,
    /// Such rectangles, apart from each other, outside which nothing counts; none for the whole image.
    pub within: Vec<[f64; 4]>,
}

impl Labelled {
    /// An image of a folder, its truth and the areas that count.
    pub(super) fn read(
        path: &Path,
        truth: Option<&Truth>,
        options: &Options,
    ) -> Result<Self, RobustnessError> {
        let fail = |reason: String| RobustnessError::Image { path: path.to_owned(), reason };
        let open = OpenOptions { mpp: options.mpp, ..OpenOptions::default() };
        let slide = Slide::open_with(path, &open).map_err(|e| fail(e.to_string()))?;
        let resolution = slide.resolution().map_err(|e| fail(e.to_string()))?.clone();
        let tile = read_rgb(path)?;
        let (w, h) = (tile.width, tile.height);
        let name = stem(path);
        let (x, y) = (resolution.x.get(), resolution.y.get());
        let r = options.radius.0;
        let case = truth.and_then(|t| t.get(&name));
        case.map_or(Ok(()), |c| c.check_units(&resolution))?;
        let (truth, ignore) = match case {
            Some(case) => (
                case.points(&resolution),
                (case.ignored(&resolution).iter())
                    .map(|p| [(p.x - r) / x, (p.y - r) / y, (p.x + r) / x, (p.y + r) / y])
                    .collect(),
            ),
            None => (vec![], vec![]),
        };
        let within = match &options.within {
            Some(areas) => areas::areas_within_image(areas, &name, (w, h)).map_err(fail)?,
            None => vec![],
        };
        let mut image = Self { name, tile, resolution, truth, ignore, within };
        let truth = std::mem::take(&mut image.truth);
        image.truth = truth.into_iter().filter(|p| image.counts(p.x / x, p.y / y)).collect();
        Ok(image)
    }

    /// Whether a place in px is one whose figures are known.
    pub(super) fn counts(&self, x: f64, y: f64) -> bool {
        let inside = |a: &[f64; 4]| x >= a[0] && y >= a[1] && x < a[2] && y < a[3];
        !self.ignore.iter().any(inside)
            && (self.within.is_empty() || self.within.iter().any(inside))
    }

    /// Area that counts, `ignore` included, mm2.
    pub(super) fn mm2(&self) -> f64 {
        let px = if self.within.is_empty() {
            (self.tile.width * self.tile.height) as f64
        } else {
            self.within.iter().map(|a| (a[2] - a[0]) * (a[3] - a[1])).sum()
        };
        px * self.resolution.x.get() * self.resolution.y.get() / 1e6
    }
}
