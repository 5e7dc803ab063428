//! From annotations and images to a corpus: crops cut at one physical resolution, or the source's
//! ready-made patches taken as they are.

mod import;

pub use import::{CropsPlan, ImportedCrops};

use crate::annotations::{Annotation, Annotations, Class, ImageEntry, ImportError, Problem};
use crate::dataset::import::write_same_pixels;
use crate::dataset::{Given, pixel_digest};
use crate::image_index::ImageIndex;
use crops::Encoding;
use crops::error::CorpusError;
use crops::manifest::Header;
use crops::schema::{CropBox, CropMeta, Label, Split, pixel_hash};
use crops::writer::{CorpusWriter, Layout};
use mitosis::{Mpp, RgbTile};
use slide::{OpenOptions, Rect, Slide};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

/// What to cut.
#[derive(Clone, Debug)]
pub struct CutOptions {
    /// um/px of the crops (0.25 in the paper).
    pub mpp: Mpp,
    /// Side of a crop in its own pixels (128 in the paper).
    pub side: u32,
    /// um/px of images that state none.
    pub given: Given,
    /// How crops are stored.
    pub encoding: Encoding,
    /// Leave images and crops that cannot be read out and count them.
    pub lenient: bool,
    /// Side of every crop unless the source fixes one.
    pub split: Split,
    /// The manifest's header.
    pub header: Header,
}

/// What came out.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CutReport {
    /// Crops written.
    pub crops: u64,
    /// Annotations that give no training crop: regions, annotations without an agreed label.
    pub unused: u64,
    /// Images that were not there; their annotations are missing from the corpus.
    pub missing_images: Vec<String>,
    /// Crops that could not be read.
    pub failed: Vec<Problem>,
    /// Images with the pixels of another one under another name; crops of both are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same_pixels: Vec<String>,
    /// The corpus digest.
    pub digest: String,
    /// um/px of the images that were opened, by number.
    #[serde(skip)]
    pub mpp: BTreeMap<usize, [f64; 2]>,
}

impl fmt::Display for CutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>9} crops written, digest {}", self.crops, self.digest)?;
        if !self.missing_images.is_empty() {
            let (n, names) = (self.missing_images.len(), self.missing_images.join(", "));
            writeln!(f, "{n:>9} images were not found: {names}")?;
        }
        write_same_pixels(f, &self.same_pixels)?;
        self.failed.iter().take(20).try_for_each(|p| writeln!(f, "          not cut: {p}"))
    }
}

/// Cuts every labelled annotation into a new corpus, image by image in the source's order.
///
/// # Errors
/// Missing images, images without a resolution, unreadable crops (unless `lenient`), or a disk
/// that refuses. Nothing is left but temporary files when it fails.
#[expect(
    clippy::too_many_lines,
    reason = "one pass over the images; what cannot be cut is counted"
)]
pub fn cut(
    annotations: &Annotations,
    images: &Path,
    out: &Path,
    options: &CutOptions,
) -> Result<CutReport, ImportError> {
    let index = ImageIndex::below(images)?;
    let found = index.named(annotations.images.iter().map(|i| i.name.as_str()));
    let patches = annotations.annotations.iter().filter_map(|a| a.patch.as_deref());
    let patches = index.named(patches);
    let mut report = CutReport::default();
    let mut by_image: BTreeMap<usize, Vec<&Annotation>> = BTreeMap::new();
    for a in &annotations.annotations {
        if matches!(a.class, Class::Unresolved | Class::Ignored) {
            report.unused += 1;
        } else {
            by_image.entry(a.image).or_default().push(a);
        }
    }
    let patch_of = |a: &Annotation| a.patch.as_ref().and_then(|p| patches.get(p));
    for (&image, list) in &by_image {
        let name = &annotations.images[image].name;
        if found.get(name).is_none() && list.iter().any(|a| patch_of(a).is_none()) {
            report.missing_images.push(name.clone());
        }
    }
    let records = |problems: Vec<Problem>, total| {
        Err(ImportError::Records { file: annotations.file.clone(), problems, total })
    };
    if !options.lenient && !report.missing_images.is_empty() {
        let missing: Vec<&str> = report.missing_images.iter().map(String::as_str).collect();
        let mut join =
            found.unmatched(&missing, annotations.images.iter().map(|i| i.name.as_str()));
        // Once, with the first of them.
        let problems = missing.iter().take(20).map(|m| Problem {
            record: (*m).to_owned(),
            reason: format!("not found below {}{}", images.display(), std::mem::take(&mut join)),
        });
        return records(problems.collect(), missing.len());
    }
    // Also when lenient: a wrong picture under a right label is worse than none.
    let names = || by_image.keys().map(|&i| annotations.images[i].name.as_str());
    let mut two: Vec<Problem> = names().filter_map(|name| found.two(name)).collect();
    two.extend(found.shared(names()));
    if !two.is_empty() {
        let total = two.len();
        return records(two.into_iter().take(20).collect(), total);
    }
    let mut writer = CorpusWriter::create(out, options.header.clone(), Layout::default())?;
    let mut pixels = KnownPixels::default();
    for (&image, list) in &by_image {
        let entry = &annotations.images[image];
        let mut slide = None;
        for (k, a) in list.iter().enumerate() {
            let mut a = Cow::Borrowed(*a);
            let made = match patch_of(&a) {
                Some(file) => ready_made(file, options),
                None => match found.get(&entry.name) {
                    None => continue,
                    Some(file) => {
                        if slide.is_none() {
                            let opened = open(file, entry, options);
                            let mpp = opened.as_ref().ok().and_then(|s| resolution(s).ok());
                            report.mpp.extend(mpp.map(|mpp| (image, mpp)));
                            let first = pixels.first_of(opened.as_ref().ok(), &entry.name);
                            report.same_pixels.extend(first);
                            slide = Some(opened);
                        }
                        match slide.as_ref() {
                            Some(Ok(s))
                                if !annotations.sizes_are_hearsay
                                    && entry.agrees(s.dimensions()).is_err() =>
                            {
                                Err(entry.agrees(s.dimensions()).unwrap_err().to_string())
                            }
                            Some(Ok(s)) => {
                                let bounds = s.bounds().map_or([0, 0], |b| [b.x, b.y]);
                                a = Cow::Owned(a.moved(annotations.offset(bounds)));
                                centred(s, &a, options)
                            }
                            Some(Err(e)) => Err(e.clone()),
                            None => continue,
                        }
                    }
                },
            };
            let made = match made {
                Ok(made) => made,
                Err(reason) => {
                    let record = format!("{}, {}", entry.name, a.record);
                    report.failed.push(Problem { record, reason });
                    if options.lenient {
                        continue;
                    }
                    return records(report.failed, 1);
                }
            };
            let meta = meta(annotations, &a, &made, k, options)?;
            writer.push(meta, made.bytes)?;
            report.crops += 1;
        }
    }
    if report.crops == 0 {
        return Err(ImportError::NoCrops { file: annotations.file.clone(), unused: report.unused });
    }
    report.digest = writer.finish()?.digest;
    Ok(report)
}

/// Names of images by the digests of their pixels.
#[derive(Default)]
struct KnownPixels(HashMap<String, String>);

impl KnownPixels {
    /// An image and the one before it that has its pixels.
    fn first_of(&mut self, slide: Option<&Slide>, name: &str) -> Option<String> {
        let first = self.0.entry(pixel_digest(slide?)?).or_insert_with(|| name.to_owned());
        (first != name).then(|| format!("{name} and {first}"))
    }
}

struct Made {
    bytes: Vec<u8>,
    tile: RgbTile,
    extension: String,
    bbox: Option<CropBox>,
}

fn meta(
    all: &Annotations,
    a: &Annotation,
    made: &Made,
    number: usize,
    o: &CutOptions,
) -> Result<CropMeta, CorpusError> {
    let entry = &all.images[a.image];
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let path = format!("{}/{number:05}.{}", entry.name, made.extension);
    let votes = serde_json::to_string(&a.votes).ok().filter(|_| !a.votes.is_empty());
    Ok(CropMeta {
        label: match a.class {
            Class::MitoticFigure => Label::MitoticFigure,
            Class::Mimicker => Label::Mimicker,
            Class::Other | Class::Unresolved | Class::Ignored => Label::Unlabeled,
        },
        subtype: a
            .subtype
            .clone()
            .or_else(|| (a.class == Class::Other).then(|| a.category.clone())),
        s_seg: None,
        s_cls: None,
        bbox: made.bbox,
        centroid: Some(a.centre),
        slide: entry.slide_name().to_owned(),
        patient: entry.patient.clone(),
        cohort: entry.cohort.clone().unwrap_or_else(|| all.format.to_owned()),
        mpp: o.mpp,
        width: side(made.tile.width),
        height: side(made.tile.height),
        source: format!("{}: {}", all.format, a.record),
        split: a.split.unwrap_or(o.split),
        votes,
        pixels: Some(pixel_hash(&made.tile)),
        path,
    })
}

/// um/px across and down.
fn resolution(slide: &Slide) -> Result<[f64; 2], String> {
    slide.resolution().map(|r| [r.x.get(), r.y.get()]).map_err(|e| e.to_string())
}

fn open(file: &Path, entry: &ImageEntry, o: &CutOptions) -> Result<Slide, String> {
    let given = o.given.lookup(&entry.names_of(file)).map(|g| g.mpp);
    let options = OpenOptions { mpp: given, ..OpenOptions::default() };
    let slide = Slide::open_with(file, &options).map_err(|e| e.to_string())?;
    let mpp = resolution(&slide)?;
    entry.units.check(mpp).map_err(|e| e.to_string())?;
    Ok(slide)
}

/// A crop whose centre pixel holds the annotation's centre.
fn centred(slide: &Slide, a: &Annotation, o: &CutOptions) -> Result<Made, String> {
    let (sx, sy) = slide.working_scale(o.mpp).map_err(|e| e.to_string())?;
    let (w, h) = slide.dimensions();
    let [x0, y0] = a.bbox.map_or([a.centre.x - 25.0, a.centre.y - 25.0], |b| [b[0], b[1]]);
    #[expect(clippy::cast_precision_loss, reason = "pixels of an image")]
    if x0 >= w as f64 || y0 >= h as f64 {
        return Err(format!(
            "({}, {}) is outside the image ({w} x {h} px)",
            a.centre.x, a.centre.y
        ));
    }
    let (cx, cy) = (a.centre.x / sx, a.centre.y / sy);
    let half = f64::from(o.side) / 2.0;
    #[expect(clippy::cast_possible_truncation, reason = "pixel coordinates of an image")]
    let corner = |c: f64| (c - half).round() as i64;
    let (x, y) = (corner(cx), corner(cy));
    let side = o.side as usize;
    let tile = slide.read_at(o.mpp, Rect::new(x, y, side, side)).map_err(|e| e.to_string())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "crop pixels")]
    let bbox = a.bbox.map(|b| CropBox {
        x0: (b[0] / sx - x as f64) as f32,
        y0: (b[1] / sy - y as f64) as f32,
        x1: (b[2] / sx - x as f64) as f32,
        y1: (b[3] / sy - y as f64) as f32,
    });
    let bytes = o.encoding.encode(&tile).map_err(|e| e.to_string())?;
    Ok(Made { bytes, tile, extension: o.encoding.extension().into(), bbox })
}

/// A patch that the source ships: its bytes as they are, after proving that they decode.
fn ready_made(file: &Path, _: &CutOptions) -> Result<Made, String> {
    let bytes = base::file::read_whole(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let tile = slide::read_picture(&bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    let extension = file.extension().map_or_else(|| "png".into(), |e| e.to_string_lossy().into());
    Ok(Made { bytes, tile, extension, bbox: None })
}
