//! A regions dataset as detectors of boxes are trained: windows as PNG, boxes as text, in the folders
//! that Ultralytics' YOLO reads.
//!
//! ```text
//! OUT/data.yaml                       classes and folders
//! OUT/images/train/*.png  OUT/labels/train/*.txt
//! OUT/images/val/*.png    OUT/labels/val/*.txt      the held-out side of the fold
//! ```
//! A line of a label file is `class cx cy w h`, in shares of the window. Windows without a label have an
//! empty file. What is in an ignored area has no label. Areas without labels (ignored areas, and the outside of the
//! image) are grey.

use crate::dataset::{Area, Dataset, Image, Kind, RegionsError};
use crate::export::{ExportError, Unfinished};
use crate::folds::RegionFold;
use base::file;
use base::file::FileError;
use base::text::Many;
use crops::Encoding;
use mitosis::{Mpp, Rect, RgbTile};
use rayon::prelude::*;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// YOLO's own grey, with which it fills up images.
const GREY: [u8; 3] = [114; 3];
/// Share of a box, of its part inside the image, that must be in a window for the window to show it.
const SHOWN: f64 = 0.5;

/// How windows are cut.
#[derive(Clone, Copy, Debug)]
pub struct YoloOptions {
    /// Resolution of the windows.
    pub mpp: Mpp,
    /// Their side, px.
    pub window: u32,
    /// Distance of neighbours, px; at most the side.
    pub stride: u32,
    /// Side of the box of a label that has none, um.
    pub box_um: f64,
}

/// What was written to train on, or held out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Windows.
    pub windows: usize,
    /// Windows with a box of a figure.
    pub with_figures: usize,
    /// Boxes of figures; a figure in the overlap of windows is in each.
    pub figures: usize,
    /// Boxes of look-alikes.
    pub mimickers: usize,
}

/// What was written, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WrittenYolo {
    /// Version of this record.
    pub schema: &'static str,
    /// To train on.
    pub train: Side,
    /// Held out.
    pub val: Side,
    /// Images that may contain unlabelled figures: these would be learnt as background.
    pub left_out: usize,
    /// Figures in areas to be ignored, which are grey and have no box.
    pub ignored: usize,
    /// Figures of which no window shows half.
    pub lost: usize,
}

impl fmt::Display for WrittenYolo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, side) in [("train", &self.train), ("val", &self.val)] {
            let Side { with_figures, .. } = side;
            let (windows, figures) = (Many(side.windows, "window"), Many(side.figures, "figure"));
            let mimickers = Many(side.mimickers, "look-alike");
            writeln!(f, "{name:<6} {windows}, {with_figures} of them with {figures}; {mimickers}")?;
        }
        if self.left_out > 0 {
            let images = Many(self.left_out, "image");
            writeln!(f, "left out: {images}, which may contain unlabelled figures")?;
        }
        if self.ignored > 0 {
            writeln!(f, "left out: {} in areas to be ignored", Many(self.ignored, "figure"))?;
        }
        if self.lost > 0 {
            let figures = Many(self.lost, "figure");
            writeln!(
                f,
                "lost: {figures}, as no window shows half of the box; make windows overlap more if \
                 the box fits into one"
            )?;
        }
        Ok(())
    }
}

/// Writes a fold of a dataset. The folder appears when it is complete.
///
/// # Errors
/// [`ExportError`].
pub fn write(
    set: &Dataset,
    fold: &RegionFold<'_>,
    out: &Path,
    options: &YoloOptions,
) -> Result<WrittenYolo, ExportError> {
    let YoloOptions { window, stride, box_um, .. } = *options;
    if !(32..=8192).contains(&window) || stride == 0 || stride > window {
        return Err(ExportError::Options(format!("windows of {window} px every {stride} px")));
    }
    if !(box_um > 0.0 && box_um < 1000.0) {
        return Err(ExportError::Options(format!("boxes of {box_um} um")));
    }
    let unfinished = Unfinished::new(out)?;
    let root = unfinished.path();
    let mut written = WrittenYolo { schema: "mithras.yolo/1", ..WrittenYolo::default() };
    for (name, images) in [("train", &fold.train), ("val", &fold.validation)] {
        for kind in ["images", "labels"] {
            let folder = root.join(kind).join(name);
            std::fs::create_dir_all(&folder).map_err(ExportError::io(&folder))?;
        }
        let (whole, partly): (Vec<&Image>, Vec<&Image>) =
            images.iter().copied().partition(|i| i.exhaustive);
        written.left_out += partly.len();
        let sides: Vec<OfImage> = whole
            .par_iter()
            .enumerate()
            .map(|(k, image)| write_image(set, image, &format!("{k:05}"), root, name, options))
            .collect::<Result<_, _>>()?;
        for OfImage { side: s, ignored, lost } in sides {
            written.ignored += ignored;
            written.lost += lost;
            let sum = if name == "train" { &mut written.train } else { &mut written.val };
            sum.windows += s.windows;
            sum.with_figures += s.with_figures;
            sum.figures += s.figures;
            sum.mimickers += s.mimickers;
        }
    }
    file::write(&root.join("data.yaml"), description(set).as_bytes()).map_err(FileError::from)?;
    unfinished.finish()?;
    Ok(written)
}

/// `data.yaml`: class 0 is the figure, class 1 what resembles one, where the dataset has such.
fn description(set: &Dataset) -> String {
    let class_name =
        |kind| set.classes().iter().find(move |c| c.kind == kind).map(|c| c.name.as_str());
    let mut text = format!(
        "# {} {}\ntrain: images/train\nval: images/val\nnames:\n",
        set.name(),
        set.digest()
    );
    for (k, name) in
        [class_name(Kind::Figure), class_name(Kind::Mimicker)].into_iter().flatten().enumerate()
    {
        // JSON's quotes are YAML's.
        let quoted = serde_json::to_string(name).unwrap_or_default();
        text += &format!("  {k}: {quoted}\n");
    }
    text
}

/// What was written of one image, and what was not.
#[derive(Default)]
struct OfImage {
    side: Side,
    ignored: usize,
    lost: usize,
}

/// A labelled object, working pixels.
struct Boxed {
    class: usize,
    area: Area,
    /// Size of its part inside the image, px^2.
    inside: f64,
    /// Whether a window shows it.
    shown: bool,
}

/// The figures and look-alikes outside the areas to be ignored, and how many figures are in these.
fn boxes(image: &Image, options: &YoloOptions) -> (Vec<Boxed>, usize) {
    let (fx, fy) = image.scale(options.mpp);
    let (w, h) = (f64::from(image.width) * fx, f64::from(image.height) * fy);
    let (mut all, mut ignored) = (vec![], 0);
    for l in &image.labels {
        let class = match l.kind {
            Kind::Figure => 0,
            Kind::Mimicker => 1,
            Kind::Other => continue,
        };
        if image.ignore.iter().any(|a| a.contains(l.x, l.y)) {
            ignored += usize::from(class == 0);
            continue;
        }
        let given = l.bbox.map(|b| b.scaled((fx, fy)));
        let made = || Area::around(l.x * fx, l.y * fy, options.box_um / options.mpp.get());
        let area = given.unwrap_or_else(made);
        let inside = size(&within(&area, w, h));
        all.push(Boxed { class, area, inside, shown: false });
    }
    (all, ignored)
}

/// The part of an area inside a window from the origin.
fn within(area: &Area, w: f64, h: f64) -> Area {
    let clip = |v: f64, most: f64| v.clamp(0.0, most);
    Area { x0: clip(area.x0, w), y0: clip(area.y0, h), x1: clip(area.x1, w), y1: clip(area.y1, h) }
}

fn size(a: &Area) -> f64 {
    (a.x1 - a.x0) * (a.y1 - a.y0)
}

/// All windows of one image.
fn write_image(
    set: &Dataset,
    image: &Image,
    number: &str,
    root: &Path,
    part: &str,
    options: &YoloOptions,
) -> Result<OfImage, ExportError> {
    let slide = set.open_image(image)?;
    let (fx, fy) = image.scale(options.mpp);
    let (side, stride) = (f64::from(options.window), options.stride);
    let (mut boxes, ignored) = boxes(image, options);
    let grey: Vec<Area> = image.ignore.iter().map(|a| a.scaled((fx, fy))).collect();
    let whole = (f64::from(image.width) * fx, f64::from(image.height) * fy);
    let mut sum = Side::default();
    for (x, y) in corners(whole, options.window, stride) {
        let n = options.window as usize;
        let mut tile =
            slide.read_at(options.mpp, Rect::new(x, y, n, n)).map_err(RegionsError::from)?;
        let (left, top) = (x as f64, y as f64);
        let shift =
            |a: &Area| Area { x0: a.x0 - left, y0: a.y0 - top, x1: a.x1 - left, y1: a.y1 - top };
        let outside = [
            Area { x0: whole.0 - left, y0: 0.0, x1: side, y1: side },
            Area { x0: 0.0, y0: whole.1 - top, x1: side, y1: side },
        ];
        for area in grey.iter().map(shift).chain(outside) {
            fill(&mut tile, &area);
        }
        let mut text = String::new();
        let mut found = [0; 2];
        for Boxed { class, area, inside, shown } in &mut boxes {
            let part = within(&shift(area), side, side);
            let (w, h) = (part.x1 - part.x0, part.y1 - part.y0);
            if size(&part) <= 0.0 || size(&part) < SHOWN * *inside {
                continue;
            }
            *shown = true;
            found[*class] += 1;
            let (cx, cy) = ((part.x0 + part.x1) / 2.0 / side, (part.y0 + part.y1) / 2.0 / side);
            text += &format!("{class} {cx:.6} {cy:.6} {:.6} {:.6}\n", w / side, h / side);
        }
        let name = format!("{number}_{x}_{y}");
        let path = root.join("images").join(part).join(format!("{name}.png"));
        let png = Encoding::Png.encode(&tile);
        let png =
            png.map_err(|e| ExportError::Image { path: path.clone(), reason: e.to_string() })?;
        file::write(&path, &png).map_err(FileError::from)?;
        let path = root.join("labels").join(part).join(format!("{name}.txt"));
        file::write(&path, text.as_bytes()).map_err(FileError::from)?;
        sum.windows += 1;
        sum.with_figures += usize::from(found[0] > 0);
        sum.figures += found[0];
        sum.mimickers += found[1];
    }
    let lost = boxes.iter().filter(|b| b.class == 0 && !b.shown).count();
    Ok(OfImage { side: sum, ignored, lost })
}

/// Upper left corners of the windows over an image: a grid from the origin whose last row and column
/// end at the image's edge.
fn corners((w, h): (f64, f64), window: u32, stride: u32) -> Vec<(i64, i64)> {
    let along = |length: f64| {
        let last = (length - f64::from(window)).ceil().max(0.0) as i64;
        let mut all: Vec<i64> = (0..last).step_by(stride as usize).collect();
        all.push(last);
        all
    };
    let columns = along(w);
    along(h).into_iter().flat_map(|y| columns.iter().map(move |x| (*x, y))).collect()
}

fn fill(tile: &mut RgbTile, area: &Area) {
    let clip = |v: f64, n: usize| v.clamp(0.0, n as f64) as usize;
    let (x0, x1) = (clip(area.x0.floor(), tile.width), clip(area.x1.ceil(), tile.width));
    for y in clip(area.y0.floor(), tile.height)..clip(area.y1.ceil(), tile.height) {
        for x in x0..x1 {
            let at = 3 * (y * tile.width + x);
            tile.data[at..at + 3].copy_from_slice(&GREY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::corners;

    #[test]
    fn windows_reach_every_edge_and_no_further() {
        let x = |w| corners((w, 100.0), 100, 80).into_iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(x(100.0), [0]);
        assert_eq!(x(60.0), [0]);
        assert_eq!(x(181.0), [0, 80, 81]);
        assert_eq!(x(260.0), [0, 80, 160]);
        assert_eq!(corners((100.0, 180.0), 100, 80), [(0, 0), (0, 80)]);
    }
}
