//! A blinded sample of a corpus or of a detection run, with the surroundings of every crop.

use crate::view::{Item, OpenError, is_counted, open_run, opened, patient, run_folders};
use base::digest::sha256;
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use crops::audit::{
    CountsError, Drawn, Key, PackageWriter, Pools, Question, Quota, SampleOptions, StratumBy,
    counts, sample_wider,
};
use crops::{Corpus, CorpusError, CropMeta, Label};
use mithras::batch::{InputError, find};
use mithras::input::stem;
use mithras::report::{ReportError, results};
use mitosis::{Level0, Mpp, Point, RgbTile, Score};
use slide::{MppRule, OpenOptions, Rect, Slide, SlideError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// um/px of pictures cut from the slides of a run: what the detector reads at.
const MPP: Mpp = Mpp::PAPER;
/// Side of what is shown first of them, px: the detector's own crop in the paper, 32 um.
const CLOSE: u32 = 128;
/// A picture shows so many times the side of its crop.
const WIDER: u32 = 3;
/// Its side at most, px.
const MOST: u32 = 1024;
/// Crops and drawn figures of a run that are usual, as of labels in the paper.
const USUAL: [Quota; 2] = [Quota::new("accepted", 30), Quota::new("rejected", 20)];
/// Mean difference of the blocks of two pictures of one place, grey levels, at most.
const ALIKE: f64 = 16.0;

/// What is asked of whom.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest<'a> {
    /// The question.
    pub question: Question,
    /// What makes a stratum of a corpus; of a run it is whether a candidate was accepted.
    pub by: StratumBy,
    /// Crops per cohort of a stratum as `NAME=COUNT`; the usual numbers if it is empty.
    pub per: &'a [String],
    /// Seed of the draw, the order and the names.
    pub seed: u64,
    /// Take all of a stratum that holds fewer than asked.
    pub allow_short: bool,
    /// Folder of slides: for a run whose slides were moved, and for crops of a corpus, which are shown
    /// without their surroundings otherwise.
    pub slides: Option<&'a Path>,
    /// um/px of slides of a corpus that state none; a run knows those of its slides.
    pub mpp: Option<Mpp>,
}

/// Why a sample cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SampleError {
    /// The corpus, or the package.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The run.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The numbers asked for.
    #[error(transparent)]
    Counts(#[from] CountsError),
    /// The candidates of a slide.
    #[error(transparent)]
    Results(#[from] ReportError),
    /// The folder of slides.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A slide's results that cannot be used: the sample would not be one of the run.
    #[error("{0}")]
    Unsound(String),
    /// A slide that was drawn from and is not where it was, or is another one.
    #[error("{slide}: {reason}")]
    Gone {
        slide: String,
        /// What is known of it.
        reason: String,
    },
    /// A slide that cannot be read.
    #[error("{slide}: {reason}")]
    Slide {
        slide: String,
        /// The reason (no `source`: the message contains it).
        reason: SlideError,
    },
    /// Candidates of a run are figures or none, nothing else.
    #[error("{}: a run holds candidates, accepted or rejected; {asked} takes a corpus", Shown(run))]
    NeedsCorpus {
        /// Folder of the run.
        run: PathBuf,
        asked: &'static str,
    },
}

/// What was drawn.
#[derive(Debug)]
pub struct Sampled {
    /// What the pictures are, by number.
    pub key: Key,
    /// Slides of a run that have no result, each with the reason.
    pub left_out: Vec<String>,
}

impl From<Key> for Sampled {
    fn from(key: Key) -> Self {
        Self { key, left_out: Vec::new() }
    }
}

/// Draws a sample of `from`, a corpus or a folder that `mithras detect` wrote, into `out/package` and
/// `out/key.json`.
///
/// Candidates of a run are strata by whether they were accepted; those outside the tissue, which
/// nobody judged, are left out. Their pictures are cut from the slides at 0.25 um/px, 96 um wide.
///
/// # Errors
/// [`SampleError`].
pub fn sample(
    from: &Path,
    out: &Path,
    request: &SampleRequest<'_>,
) -> Result<Sampled, SampleError> {
    let folders = run_folders(from)?;
    if !folders.is_empty() {
        return of_run(from, out, request);
    }
    let corpus = Corpus::open(from)?;
    let options = SampleOptions {
        question: request.question,
        by: request.by,
        per_cohort: request.by.counts(request.per)?,
        seed: request.seed,
        allow_short: request.allow_short,
    };
    let Some(folder) = request.slides else {
        return Ok(crops::audit::sample(&corpus, out, &options)?.into());
    };
    let mut around = Surroundings::new(folder, request.mpp)?;
    let key = sample_wider(&corpus, out, &options, |meta, crop| around.cut(meta, crop).map(Some));
    Ok(key?.into())
}

fn of_run(run: &Path, out: &Path, request: &SampleRequest<'_>) -> Result<Sampled, SampleError> {
    let asked = match request {
        SampleRequest { question: Question::Tumour, .. } => Some("a question about tissue"),
        SampleRequest { by: StratumBy::Subtype, .. } => Some("a stratum by subtype"),
        _ => None,
    };
    if let Some(asked) = asked {
        return Err(SampleError::NeedsCorpus { run: run.to_owned(), asked });
    }
    let (items, without): (Vec<_>, Vec<_>) =
        open_run(run, request.slides)?.into_iter().partition(|i| i.counts.is_some());
    let lost = |i: &&Item| i.unsound.is_some() || i.folder.as_deref().is_some_and(is_counted);
    if let Some(item) = without.iter().find(lost) {
        let unread = || format!("{}: {}", item.name, item.note);
        return Err(SampleError::Unsound(item.unsound.clone().unwrap_or_else(unread)));
    }
    let left_out =
        without.into_iter().map(|i| format!("{} is left out: {}", i.name, i.note)).collect();
    let cohort = run.canonicalize().ok();
    let cohort = cohort.as_deref().and_then(Path::file_name).unwrap_or("run".as_ref());
    let cohort = cohort.to_string_lossy().into_owned();
    // Numbers alone are kept of what is not drawn: a run may hold millions of candidates.
    let mut pools = Pools::default();
    let (mut starts, mut number) = (Vec::new(), 0);
    let mut what = String::new();
    for item in &items {
        starts.push(number);
        for row in candidates(item)? {
            if let Some(stratum) = row.stratum {
                pools.add(&cohort, stratum, number);
            }
            number += 1;
        }
        what += &format!("{} {} {number}\n", item.name, item.digest());
    }
    let wanted = counts(request.per, &USUAL)?;
    let drawn = pools.draw(&wanted, request.seed, request.allow_short)?;
    let mut package = PackageWriter::create(out, request.question, &sha256(what), request.seed)?;
    for (item, start) in items.iter().zip(starts) {
        put(&mut package, item, start, &cohort, &drawn)?;
    }
    Ok(Sampled { key: package.finish(drawn.strata)?, left_out })
}

/// A candidate of a run.
struct Row {
    place: Point<Level0>,
    s_seg: f32,
    s_cls: Option<f32>,
    /// None outside the tissue.
    stratum: Option<&'static str>,
}

fn candidates(item: &Item) -> Result<Vec<Row>, ReportError> {
    let Some(folder) = &item.folder else { return Ok(Vec::new()) };
    let rows = results(folder).map_err(ReportError::from)?.rows;
    let stratum = |accepted| if accepted { USUAL[0].stratum } else { USUAL[1].stratum };
    let row = |r: &mithras::record::DetectionRow| Row {
        place: Point::new(r.x_px, r.y_px),
        s_seg: r.s_seg,
        s_cls: r.s_cls,
        stratum: (!r.outside_tissue).then(|| stratum(r.accepted)),
    };
    Ok(rows.iter().map(row).collect())
}

/// Cuts what was drawn of one slide, whose first candidate is number `start`.
fn put(
    package: &mut PackageWriter,
    item: &Item,
    start: usize,
    cohort: &str,
    drawn: &Drawn,
) -> Result<(), SampleError> {
    let (rows, name) = (candidates(item)?, &item.name);
    let mut chosen = drawn.chosen.range(start..start + rows.len()).peekable();
    if chosen.peek().is_none() {
        return Ok(());
    }
    let gone = || SampleError::Gone { slide: name.clone(), reason: item.note.clone() };
    let (Some(file), Some(counts)) = (&item.file, &item.counts) else { return Err(gone()) };
    let fail = |reason| SampleError::Slide { slide: name.clone(), reason };
    let slide = opened(file, counts).map_err(fail)?;
    let patient = item.folder.as_deref().and_then(patient);
    let score = |v: f32| Score::new(v).ok();
    for (number, stratum) in chosen {
        let row = &rows[number - start];
        let side = WIDER * CLOSE;
        let picture = cut(&slide, MPP, row.place, side).map_err(fail)?;
        let path = format!("{name}/{:.2},{:.2}", row.place.x, row.place.y);
        let meta = CropMeta {
            s_seg: score(row.s_seg),
            s_cls: row.s_cls.and_then(score),
            centroid: Some(row.place),
            patient: patient.clone(),
            cohort: cohort.to_owned(),
            source: format!("mithras detect, {}", counts.model.name),
            ..CropMeta::new(path, Label::Unlabeled, name, MPP, (side, side))
        };
        package.push(meta, stratum.clone(), &picture, Some(CLOSE))?;
    }
    Ok(())
}

/// A square around a place; pixels that cannot be decoded or are outside the slide are white.
fn cut(slide: &Slide, mpp: Mpp, place: Point<Level0>, side: u32) -> Result<RgbTile, SlideError> {
    let (sx, sy) = slide.working_scale(mpp)?;
    let corner = |v: f64, scale: f64| (v / scale).round() as i64 - i64::from(side / 2);
    let at = (corner(place.x, sx), corner(place.y, sy));
    Ok(slide.read_partial(mpp, Rect::new(at.0, at.1, side as usize, side as usize))?.0)
}

/// The surroundings of the crops of a corpus, on the slides in a folder.
struct Surroundings {
    folder: PathBuf,
    files: BTreeMap<String, PathBuf>,
    mpp: Option<Mpp>,
    open: Option<(PathBuf, Slide)>,
}

impl Surroundings {
    fn new(folder: &Path, mpp: Option<Mpp>) -> Result<Self, SampleError> {
        let found = find(&[folder.to_owned()], None, &BTreeMap::new())?;
        let files = found.slides.iter().map(|s| (stem(&s.path), s.path.clone())).collect();
        Ok(Self { folder: folder.to_owned(), files, mpp, open: None })
    }

    /// The crop's place and what is around it, at the crop's um/px.
    fn cut(&mut self, meta: &CropMeta, crop: &RgbTile) -> Result<RgbTile, SampleError> {
        let gone = |reason: String| SampleError::Gone { slide: meta.slide.clone(), reason };
        let place = meta
            .centroid
            .ok_or_else(|| gone(format!("the corpus has no place for its crop {}", meta.path)))?;
        // The place is in the image of the crop, which may be a part of the slide.
        let image = Path::new(&meta.path).parent().unwrap_or(Path::new(""));
        let image = [image.to_string_lossy().into_owned(), stem(image)];
        let slide = [meta.slide.clone(), stem(Path::new(&meta.slide))];
        let file = image.into_iter().chain(slide).find_map(|n| self.files.get(&n)).cloned();
        let file = file.ok_or_else(|| gone(format!("not in {}", Shown(&self.folder))))?;
        let fail = |reason| SampleError::Slide { slide: meta.slide.clone(), reason };
        let slide = match self.open.take() {
            Some((path, slide)) if path == file => slide,
            _ => {
                let options = OpenOptions {
                    mpp: self.mpp,
                    mpp_rule: MppRule::Fill,
                    ..OpenOptions::default()
                };
                Slide::open_with(&file, &options).map_err(fail)?
            }
        };
        let own = meta.width.max(meta.height).max(Question::MitoticFigure.least_side());
        let side = (WIDER * own).min(MOST).max(own);
        let picture = cut(&slide, meta.mpp, place, side).map_err(fail)?;
        self.open = Some((file, slide));
        let apart = difference(&picture, crop);
        if apart > ALIKE {
            return Err(gone(format!(
                "does not show the crop {} at its place ({apart:.0} grey levels apart)",
                meta.path
            )));
        }
        Ok(picture)
    }
}

/// Mean difference of a crop from the middle of a picture, over blocks of 8 px, so that a pixel's shift
/// and another coding do not count; 0 where the crop is the larger one.
fn difference(picture: &RgbTile, crop: &RgbTile) -> f64 {
    const BLOCK: usize = 8;
    if crop.width > picture.width || crop.height > picture.height {
        return 0.0;
    }
    let (left, top) = ((picture.width - crop.width) / 2, (picture.height - crop.height) / 2);
    let mean = |tile: &RgbTile, x0: usize, y0: usize| {
        let pixels = (0..BLOCK * BLOCK).map(|k| tile.pixel(x0 + k % BLOCK, y0 + k / BLOCK));
        pixels.flatten().map(f64::from).sum::<f64>() / (3 * BLOCK * BLOCK) as f64
    };
    let (mut sum, mut n) = (0.0, 0.0);
    for y in (0..crop.height / BLOCK).map(|k| k * BLOCK) {
        for x in (0..crop.width / BLOCK).map(|k| k * BLOCK) {
            sum += (mean(crop, x, y) - mean(picture, left + x, top + y)).abs();
            n += 1.0;
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

impl Remedied for SampleError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Corpus(e) => e.remedy(),
            Self::Open(e) => e.remedy(),
            Self::Results(e) => e.remedy(),
            Self::Input(e) => e.remedy(),
            Self::Gone { .. } => Some(Remedy::MovedSlides),
            // What is given fills a gap, and settles a contradiction inside the file.
            Self::Slide { reason, .. } => reason.remedy().map(|_| Remedy::GiveResolution),
            Self::Counts(_) => Some(Remedy::SampleCounts),
            _ => None,
        }
    }
}
