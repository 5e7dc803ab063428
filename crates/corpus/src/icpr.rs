//! ICPR 2012 frames: the only exhaustively labelled regions among the training data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mitosis::{Mpp, RgbTile};
use rayon::prelude::*;
use serde::Deserialize;

use crate::crops::{CropError, Mark, MarkKind, Scene, read_rgb};
use crate::fold::{Fold, LeftOut};
use crate::resample::to_resolution;

/// Resolution of the Aperio frames, um/px.
pub const APERIO_MPP: f64 = 0.2456;

/// A non-mitotic dark nucleus mined by rule.
#[derive(Clone, Debug)]
pub struct Negative {
    /// Slide of the Aperio series; the other scanner's `H00` is the same glass as `A00`.
    pub source: String,
    /// 80 x 80 px patch with the nucleus in the middle, at the working resolution for Aperio and
    /// as scanned for Hamamatsu (its um/px is not stated).
    pub patch: RgbTile,
    /// Where it lies, when its frame is among the scenes: (scene, x, y) in working pixels.
    pub place: Option<(usize, f32, f32)>,
}

/// Frames, partial frames and negatives, at the working resolution.
#[derive(Clone, Debug)]
pub struct Icpr {
    /// Frames first, then partial frames, each in name order.
    pub scenes: Vec<Scene>,
    /// All negatives in file order.
    pub negatives: Vec<Negative>,
}

/// Both sides of one fold.
#[derive(Clone, Debug)]
pub struct IcprFold {
    /// Training side: scenes and negatives of the other slides.
    pub train: Icpr,
    /// Validation side: the complete frames of the left-out slide. Its partial frames and its
    /// negatives are on neither side.
    pub validation: Vec<Scene>,
}

#[derive(Deserialize)]
struct MarkRow {
    file: String,
    cx: f32,
    cy: f32,
    xmin: f32,
    ymin: f32,
    xmax: f32,
    ymax: f32,
    status: Option<String>,
}

#[derive(Deserialize)]
struct NegativeRow {
    patch: String,
    frame: String,
    scanner: String,
    x: f32,
    y: f32,
}

fn rows<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, CropError> {
    let mut reader = csv::Reader::from_path(path).map_err(|e| CropError::read(path, e))?;
    reader.deserialize().collect::<Result<_, _>>().map_err(|e| CropError::read(path, e))
}

fn slide_of(frame: &str) -> String {
    // H00 and A00 are one glass slide under two scanners.
    format!("A{}", frame.get(1..3).unwrap_or_default())
}

fn jpegs(folder: &Path) -> Result<Vec<PathBuf>, CropError> {
    let entries = std::fs::read_dir(folder).map_err(|e| CropError::read(folder, e))?;
    let mut files: Vec<PathBuf> = entries
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| CropError::read(folder, e))?
        .into_iter()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == "jpg"))
        .collect();
    files.sort();
    Ok(files)
}

impl Icpr {
    /// Reads the folder `icpr2012` and resamples the Aperio images to `target`.
    ///
    /// # Errors
    /// [`CropError::Read`] naming the file that is missing or malformed; a mark whose frame is
    /// missing is an error, too.
    pub fn open(dir: &Path, target: Mpp) -> Result<Self, CropError> {
        let native = Mpp::new(APERIO_MPP).expect("a plausible constant");
        let scale = (native.get() / target.get()) as f32;
        let mut marks: BTreeMap<String, Vec<Mark>> = BTreeMap::new();
        for (file, partial) in [("mitoses.csv", false), ("partial_mitoses.csv", true)] {
            let path = dir.join(file);
            for row in rows::<MarkRow>(&path)? {
                let kind = match (partial, row.status.as_deref()) {
                    (false, _) | (true, Some("recovered")) => MarkKind::Figure,
                    (true, Some("ignore")) => MarkKind::Ignore,
                    (true, other) => {
                        let reason = format!("unknown status {other:?} of {}", row.file);
                        return Err(CropError::read(&path, reason));
                    }
                };
                let half = (row.xmax - row.xmin).max(row.ymax - row.ymin) / 2.0;
                marks.entry(row.file.trim_end_matches(".jpg").to_string()).or_default().push(
                    Mark {
                        x: (row.cx + 0.5) * scale,
                        y: (row.cy + 0.5) * scale,
                        half: half * scale,
                        kind,
                    },
                );
            }
        }
        let mut files = vec![];
        for (folder, partial) in [("frames", false), ("partial", true)] {
            files.extend(jpegs(&dir.join(folder))?.into_iter().map(|f| (f, partial)));
        }
        let mut scenes = files
            .into_par_iter()
            .map(|(path, partial)| {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let image = to_resolution(&read_rgb(&path)?, native, target);
                Ok(Scene { source: slide_of(&name), name, image, marks: vec![], partial })
            })
            .collect::<Result<Vec<_>, CropError>>()?;
        for scene in &mut scenes {
            scene.marks = marks.remove(&scene.name).unwrap_or_default();
        }
        if let Some(name) = marks.keys().next() {
            return Err(CropError::read(dir, format!("frame {name} has marks but no image")));
        }
        let place_of = |row: &NegativeRow| {
            let scene = scenes.iter().position(|s| s.name == row.frame)?;
            (row.scanner == "Aperio").then_some((
                scene,
                (row.x + 0.5) * scale,
                (row.y + 0.5) * scale,
            ))
        };
        let negatives = rows::<NegativeRow>(&dir.join("negatives.csv"))?
            .into_par_iter()
            .map(|row| {
                let raw = read_rgb(&dir.join("negatives").join(&row.patch))?;
                let aperio = row.scanner == "Aperio";
                let patch = if aperio { to_resolution(&raw, native, target) } else { raw };
                Ok(Negative { source: slide_of(&row.frame), patch, place: place_of(&row) })
            })
            .collect::<Result<Vec<_>, CropError>>()?;
        Ok(Self { scenes, negatives })
    }

    /// Splits by slide.
    ///
    /// # Errors
    /// [`CropError::Fold`] when the slide is unknown or an image would be on both sides.
    pub fn fold(&self, left_out: &LeftOut) -> Result<IcprFold, CropError> {
        let fold =
            Fold::new(self.scenes.iter().map(|s| (s.source.as_str(), s.name.as_str())), left_out)?;
        let scenes = fold.train.iter().map(|&i| self.scenes[i].clone()).collect();
        let negatives = self
            .negatives
            .iter()
            .filter(|n| !matches!(left_out, LeftOut::Source(s) if *s == n.source))
            .map(|n| {
                let place = n.place.and_then(|(scene, x, y)| {
                    Some((fold.train.iter().position(|&i| i == scene)?, x, y))
                });
                Negative { place, ..n.clone() }
            })
            .collect();
        let validation = fold
            .validation
            .iter()
            .map(|&i| &self.scenes[i])
            .filter(|s| !s.partial)
            .cloned()
            .collect();
        Ok(IcprFold { train: Self { scenes, negatives }, validation })
    }

    /// The slides, in order.
    #[must_use]
    pub fn slides(&self) -> Vec<String> {
        let set: std::collections::BTreeSet<_> =
            self.scenes.iter().map(|s| s.source.clone()).collect();
        set.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_marks_and_folds_of_the_real_data() {
        let Some(dir) = testkit::data("icpr2012") else { return };
        let icpr = Icpr::open(&dir, Mpp::PAPER).unwrap();
        let count = |partial: bool, kind: MarkKind| {
            let scenes = icpr.scenes.iter().filter(|s| s.partial == partial);
            scenes.flat_map(|s| &s.marks).filter(|m| m.kind == kind).count()
        };
        assert_eq!(icpr.scenes.len(), 21);
        assert_eq!(count(false, MarkKind::Figure), 63);
        assert_eq!(count(true, MarkKind::Figure), 31);
        assert_eq!(count(true, MarkKind::Ignore), 8);
        assert_eq!(icpr.negatives.len(), 360);
        assert_eq!(icpr.slides(), ["A00", "A01", "A02"]);
        // 2084 px at 0.2456 um are 2047.3 px at 0.25 um.
        assert!(icpr.scenes.iter().all(|s| (s.image.width, s.image.height) == (2047, 2047)));

        let held: usize = icpr
            .slides()
            .into_iter()
            .map(|slide| {
                let fold = icpr.fold(&LeftOut::Source(slide.clone())).unwrap();
                assert!(fold.train.scenes.iter().all(|s| s.source != slide));
                assert!(fold.train.negatives.iter().all(|n| n.source != slide));
                assert_eq!(fold.train.negatives.len(), 240);
                for n in &fold.train.negatives {
                    if let Some((scene, x, y)) = n.place {
                        // The place shows the same pixels as the patch, up to recompression.
                        let cut = fold.train.scenes[scene].cut(x, y, 40);
                        let mean = |t: &RgbTile| {
                            t.data.iter().map(|&v| f64::from(v)).sum::<f64>() / t.data.len() as f64
                        };
                        let side = n.patch.width;
                        let centre = Scene {
                            name: String::new(),
                            source: String::new(),
                            image: n.patch.clone(),
                            marks: vec![],
                            partial: false,
                        }
                        .cut(side as f32 / 2.0, side as f32 / 2.0, 40);
                        assert!((mean(&cut) - mean(&centre)).abs() < 8.0);
                    }
                }
                fold.validation.iter().map(|s| s.marks.len()).sum::<usize>()
            })
            .sum();
        assert_eq!(held, 63);
        assert!(icpr.fold(&LeftOut::Source("A09".into())).is_err());
    }
}
