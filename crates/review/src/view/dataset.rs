//! A regions dataset from reviewers' verdicts on a run.

use super::decisions::SlideFile;
use super::open::{Item, OpenError, open_run, opened, patient};
use super::places::Nearby;
use super::review::{Entry, ReviewError, Verdict};
use super::reviews::{Reviews, SlideReviews};
use crate::agreement::Word;
use base::file::{self, WriteError};
use base::remedy::{Remedied, Remedy};
use base::text::{Many, Shown};
use crops::{EncodeError, Encoding};
use mithras::export::CountsFile;
use mithras::report::{self, ReportError};
use mitosis::Mpp;
use regions::import::{Exhaustive, Options};
use regions::{Area, Builder, ClassInfo, Counts, Dataset, GivenMpp, Image, Kind, Label, MppSource};
use regions::{RegionsError, probe};
use serde::Serialize;
use slide::{Rect, Slide, SlideError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Name on the command line, and a line of help.
pub const REVIEWS: (&str, &str) =
    ("reviews", "run of detect with its review logs: frames around the places that were judged");

/// um/px of the frames: what the detector reads and trains at.
const MPP: Mpp = Mpp::PAPER;
/// Side of a frame, px of [`MPP`]; the last of a row or column holds the rest, too.
const SIDE: f64 = 512.0;
/// A frame of less holds no window to detect on.
const LEAST: f64 = 256.0;
/// Side of the area around a place that is not settled, px of [`MPP`].
const OPEN: f64 = 50.0;

/// Why no dataset was made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum DatasetError {
    /// The run.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The reviews.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// The reviews contain nothing to learn from.
    #[error("{}: {reason}", Shown(path))]
    NoVerdicts {
        /// Folder of the run.
        path: PathBuf,
        reason: String,
    },
    /// A dataset is there already.
    #[error("{}: holds a dataset; choose another folder", Shown(path))]
    Exists {
        /// Folder for the dataset.
        path: PathBuf,
    },
    /// The folder cannot be made or read.
    #[error("{}: {source}", Shown(path))]
    Folder {
        /// Folder for the dataset.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A slide that was reviewed and cannot be read.
    #[error("{slide}: {reason}")]
    Gone { slide: String, reason: String },
    /// A slide's candidates.
    #[error(transparent)]
    Results(#[from] ReportError),
    /// A slide's pixels.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// A frame that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The disk.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The dataset.
    #[error(transparent)]
    Regions(#[from] RegionsError),
}

/// What was made; `import.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewedRegions {
    /// Name of the dataset.
    pub dataset: String,
    /// Its digest.
    pub digest: String,
    /// Reviewers whose verdicts are in it.
    pub reviewers: Vec<String>,
    /// Places on which reviewers differ, or are unsure: ignored.
    pub open: usize,
    /// Words about candidates that the run lacks, or about another file.
    pub lost: usize,
    /// Added figures within 7.5 um of a candidate or of another added figure, which are one place with it.
    #[serde(skip_serializing_if = "is_zero")]
    pub joined: usize,
    /// Verdicts on the same candidates of other weights.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_weights: usize,
    /// Slides that failed, are not finished, or whose results cannot be used, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Sums.
    #[serde(flatten)]
    pub counts: Counts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl fmt::Display for ReviewedRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        let (frames, slides) = (Many(c.images, "frame"), Many(c.slides, "slide"));
        writeln!(f, "{}: {frames} of {slides}", self.dataset)?;
        c.classes.iter().try_for_each(|(class, n)| writeln!(f, "  {class}: {n}"))?;
        writeln!(f, "  not settled: {}", self.open)?;
        if self.lost > 0 {
            writeln!(f, "  about places that the run lacks, left out: {}", self.lost)?;
        }
        if self.joined > 0 {
            let what = "added figures within 7.5 um of a candidate or of another one, joined";
            writeln!(f, "  {what}: {}", self.joined)?;
        }
        if self.other_weights > 0 {
            writeln!(f, "  about the same candidates of other weights: {}", self.other_weights)?;
        }
        self.left_out.iter().try_for_each(|slide| writeln!(f, "  left out: {slide}"))?;
        writeln!(f, "  reviewed by {}", self.reviewers.join(", "))
    }
}

/// The joint verdict of all reviewers on a place.
#[derive(Clone, Copy, PartialEq)]
enum Settled {
    Figure {
        atypical: bool,
    },
    Mimicker,
    /// A figure that was added and taken back by its own reviewer: nothing was ever there.
    Nothing,
    Open,
}

struct Place {
    x: f64,
    y: f64,
    what: Settled,
}

/// Makes a dataset of what reviewers of a run settled: figures that they confirmed or added, candidates
/// that they rejected as mimickers. Places on which they differ or are unsure, and candidates that
/// nobody judged, are areas to be ignored. With a `reviewer`, the verdicts of that one alone count.
///
/// A slide is too large to train on whole: frames of 128 um at 0.25 um/px around the judged places are
/// written as PNG into `out`; they belong to their slide when folds are made. Their other tissue counts
/// as free of figures, because who judged a place saw what is around it, unless `options` states that no
/// image is exhaustive.
///
/// # Errors
/// [`DatasetError`].
pub fn dataset(
    run: &Path,
    slides: Option<&Path>,
    reviewer: Option<&str>,
    options: &Options,
    out: &Path,
) -> Result<ReviewedRegions, DatasetError> {
    let nothing = |reason: String| DatasetError::NoVerdicts { path: run.to_owned(), reason };
    if Dataset::is_dataset(out) {
        return Err(DatasetError::Exists { path: out.to_owned() });
    }
    let reviews = Reviews::all(&run.join("reviews"), reviewer)?;
    if reviews.reviewers().is_empty() {
        let who = reviewer.map_or(String::new(), |n| format!(" of {n}"));
        return Err(nothing(format!("no review log{who} in its folder `reviews`")));
    }
    let class = |name: &str, kind| ClassInfo { name: name.into(), kind };
    let figure = options.positive.as_deref().unwrap_or(Builder::FIGURE);
    let classes = vec![class(figure, Kind::Figure), class(Builder::MIMICKER, Kind::Mimicker)];
    let mut made = Making {
        builder: Builder::with_classes(&options.name, &options.program, classes),
        figure,
        options,
        out,
        open: 0,
        lost: 0,
        joined: 0,
        other_weights: 0,
    };
    let mut left_out = Vec::new();
    for item in &open_run(run, slides)? {
        match &item.counts {
            Some(counts) => made.slide(item, counts, &reviews)?,
            None => left_out.push(format!("{}: {}", item.name, item.note)),
        }
    }
    if made.builder.images().is_empty() {
        let unread: String = left_out.iter().map(|slide| format!("; left out: {slide}")).collect();
        return Err(nothing(format!("its reviewers settled no figure and no mimicker{unread}")));
    }
    let reviewers = reviews.reviewers().to_vec();
    made.builder.note("format", REVIEWS.0);
    made.builder.note("reviewers", reviewers.join(", "));
    let (open, lost) = (made.open, made.lost);
    let (joined, other_weights) = (made.joined, made.other_weights);
    let set: Dataset = made.builder.write(out)?;
    let done = ReviewedRegions {
        dataset: set.name().into(),
        digest: set.digest().into(),
        reviewers,
        open,
        lost,
        joined,
        other_weights,
        left_out,
        counts: set.counts(),
    };
    file::write(&out.join("import.json"), &base::json::pretty(&done))?;
    Ok(done)
}

struct Making<'a> {
    builder: Builder,
    figure: &'a str,
    options: &'a Options,
    out: &'a Path,
    open: usize,
    lost: usize,
    joined: usize,
    other_weights: usize,
}

impl Making<'_> {
    fn slide(
        &mut self,
        item: &Item,
        counts: &CountsFile,
        reviews: &Reviews,
    ) -> Result<(), DatasetError> {
        let Some(folder) = &item.folder else { return Ok(()) };
        let rows = report::results(folder).map_err(ReportError::from)?.rows;
        let candidates: BTreeMap<String, [f64; 2]> =
            rows.iter().map(|r| (Entry::place_key(r.x_px, r.y_px), [r.x_px, r.y_px])).collect();
        let slide = SlideFile { name: &item.name, digest: &counts.slide.digest };
        let is_here = |e: &Entry| e.added || candidates.contains_key(&e.key);
        let own = reviews.slide_reviews(slide, Some(&Nearby::candidates(counts, &rows)), is_here);
        let (others, gone) = reviews.left_out(slide, is_here);
        self.lost += others + gone;
        self.joined += own.joined.joined;
        self.other_weights +=
            reviews.of_other_models(slide, &counts.model, |k| candidates.contains_key(k));
        let judged = own.joined.places();
        let settled: Vec<Place> = judged.iter().map(|(key, all)| place(&own, key, all)).collect();
        if !settled.iter().any(|p| matches!(p.what, Settled::Figure { .. } | Settled::Mimicker)) {
            return Ok(());
        }
        self.open += settled.iter().filter(|p| p.what == Settled::Open).count();
        let unjudged = candidates.iter().filter(|(key, _)| !judged.contains_key(key.as_str()));
        let unjudged = unjudged.map(|(_, &[x, y])| Place { x, y, what: Settled::Open });
        let all: Vec<Place> = settled.into_iter().chain(unjudged).collect();
        let gone = || DatasetError::Gone { slide: item.name.clone(), reason: item.note.clone() };
        let slide = opened(item.file.as_deref().ok_or_else(gone)?, counts)?;
        let patient = patient(folder);
        self.frames(item, counts, &slide, &all, patient.as_deref())
    }

    fn frames(
        &mut self,
        item: &Item,
        counts: &CountsFile,
        slide: &Slide,
        all: &[Place],
        patient: Option<&str>,
    ) -> Result<(), DatasetError> {
        let scale = [counts.resolution.x / MPP.get(), counts.resolution.y / MPP.get()];
        let whole = [counts.slide.width as f64 * scale[0], counts.slide.height as f64 * scale[1]];
        if whole.iter().any(|v| v.floor() < LEAST) {
            let reason = format!("is smaller than {LEAST} px at {MPP} um/px");
            return Err(DatasetError::Gone { slide: item.name.clone(), reason });
        }
        let number = |v: f64, all: f64| {
            let last = ((all / SIDE).floor() - 1.0).max(0.0);
            (v / SIDE).floor().clamp(0.0, last)
        };
        let at = |p: &Place| [p.x * scale[0], p.y * scale[1]];
        let judged = all.iter().filter(|p| p.what != Settled::Open && p.what != Settled::Nothing);
        let wanted: BTreeSet<[u64; 2]> =
            judged.map(|p| [0, 1].map(|k| number(at(p)[k], whole[k]) as u64)).collect();
        let folder = self.out.join("frames");
        std::fs::create_dir_all(&folder)
            .map_err(|source| DatasetError::Folder { path: folder.clone(), source })?;
        for frame in wanted {
            let from = frame.map(|n| n as f64 * SIDE);
            let rest = |k: usize| {
                let left = whole[k] - from[k];
                if left < 2.0 * SIDE { left.floor() } else { SIDE }
            };
            let size = [rest(0), rest(1)];
            let tile = slide.read_at(
                MPP,
                Rect::new(from[0] as i64, from[1] as i64, size[0] as usize, size[1] as usize),
            )?;
            let name = format!("{}_{}_{}", item.name, from[0], from[1]);
            let path = folder.join(format!("{name}.png"));
            file::write(&path, &Encoding::Png.encode(&tile)?)?;
            let source = MppSource::Publisher(format!("cut at {MPP} um/px by mithras"));
            let mut image = probe(&path, Some(GivenMpp { mpp: MPP, source }))?
                .image(name, &item.name, REVIEWS.0);
            image.patient = patient.map(str::to_owned);
            if let Some(source) = &self.options.source {
                image.source.clone_from(source);
            }
            image.part = self.options.part;
            image.exhaustive = self.options.exhaustive != Exhaustive::None;
            for p in all {
                let [x, y] = at(p);
                self.put(&mut image, p.what, [x - from[0], y - from[1]], size);
            }
            self.builder.push(image);
        }
        Ok(())
    }

    /// A place on a frame, at px of the frame.
    fn put(&self, image: &mut Image, what: Settled, [x, y]: [f64; 2], [w, h]: [f64; 2]) {
        let inside = x >= 0.0 && y >= 0.0 && x < w && y < h;
        let label = |class: &str| Label::at(class, x, y);
        match what {
            Settled::Nothing => {}
            Settled::Figure { atypical } if inside => {
                let subtype = atypical.then(|| "atypical".to_owned());
                image.labels.push(Label { subtype, ..label(self.figure) });
            }
            Settled::Mimicker if inside => image.labels.push(label(Builder::MIMICKER)),
            // Not settled, or a half of an object whose centre is on the next frame.
            _ => {
                let a = Area::around(x, y, OPEN);
                let a =
                    Area { x0: a.x0.max(0.0), y0: a.y0.max(0.0), x1: a.x1.min(w), y1: a.y1.min(h) };
                if a.x0 < a.x1 && a.y0 < a.y1 {
                    image.ignore.push(a);
                }
            }
        }
    }
}

/// What all verdicts on a place come to, or what was decided about it.
fn place(own: &SlideReviews, key: &str, entries: &BTreeMap<&str, &Entry>) -> Place {
    let decision = own.decisions.get(key).map(|s| s.verdict);
    let verdicts: Vec<Verdict> = match decision {
        Some(verdict) => verdict.into_iter().collect(),
        None => entries.values().filter_map(|e| e.verdict).collect(),
    };
    let only = |w: Word| !verdicts.is_empty() && verdicts.iter().all(|v| Word::from(*v) == w);
    let added = entries.values().any(|e| e.added);
    let what = match () {
        () if only(Word::Yes) => {
            Settled::Figure { atypical: verdicts.iter().all(|v| *v == Verdict::Atypical) }
        }
        () if only(Word::No) && added => Settled::Nothing,
        () if only(Word::No) => Settled::Mimicker,
        () => Settled::Open,
    };
    let [x, y] = entries.values().next().map_or([0.0; 2], |e| [e.x, e.y]);
    Place { x, y, what }
}

impl Remedied for DatasetError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            Self::Results(e) => e.remedy(),
            Self::Slide(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            _ => None,
        }
    }
}
