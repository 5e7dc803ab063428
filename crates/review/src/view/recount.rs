//! The count of a run with a reviewer's corrections, next to the network's own.

use super::content::{HOTSPOTS, LogTexts, SETTLED};
use super::decisions::{self, PlacedHotspot, SlideFile};
use super::open::{OpenError, every_folder};
use super::places::{Joined, Nearby};
use super::qupath::{ObjectError, Objects, is_objects, slide_key};
use super::review::{Entry, ReviewError, Verdict, VerdictLog, Verdicts, names_by_case};
use super::reviews::Reviews;
use super::searched::{Outside, SearchedArea, SearchedError, places};
use super::settle::TOGETHER;
use super::tissue::{Windows, rings};
use crate::agreement::Agreement;
use base::file::WriteError;
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use base::table::{TableError, Unmatched, Writer};
use base::text::{Many, Shown};
use mithras::export::{CountsFile, pictures};
use mithras::regions::RegionOutline;
use mithras::report::{PlacedCount, ReportError, Results, ResultsError, Reviewed, gather, results};
use mitosis::count::{CountError, density_per_20_mm2, hotspot};
use mitosis::hotspots::HotspotRule;
use mitosis::{Level0, Mm2, MppError, Point};
use outcome::{Rule, Scheme};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Below this a slide holds less tissue than the square of a hotspot.
const SQUARE_MM2: f64 = 2.0;
/// Resolutions that differ by a smaller share are the same.
const SAME_MPP: f64 = 1e-3;
/// Logs that are not one reviewer's and decide numbers.
const SHARED: [&str; 2] = [HOTSPOTS, SETTLED];
/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

/// Why a recount is impossible.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RecountError {
    /// The run's folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The reviews.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// Reviews that are not where they should be.
    #[error("{}: no such file or folder, and no reviewer's name", Shown(path))]
    NoFile { path: PathBuf },
    /// Objects of QuPath.
    #[error(transparent)]
    Objects(#[from] ObjectError),
    /// Agreement that cannot be computed.
    #[error(transparent)]
    Agreement(#[from] stats::StatsError),
    /// No reviews of this run.
    #[error(
        "{}: says nothing about the slides of this run{}", Shown(path),
        join.as_ref().map_or_else(String::new, |join| format!(": {join}"))
    )]
    NoVerdicts {
        /// The log, or the objects.
        path: PathBuf,
        /// The names on both sides, where they differ; else it is about other files of these names.
        join: Option<Box<Unmatched>>,
    },
    /// A slide's count.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A slide's candidates.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A slide's resolution.
    #[error("{slide}: {source}")]
    Resolution {
        /// Name of the slide.
        slide: String,
        /// What is wrong with it.
        source: MppError,
    },
    /// A place that is not valid.
    #[error("{slide}: {source}")]
    Count {
        /// Name of the slide.
        slide: String,
        /// What is wrong with it.
        source: CountError,
    },
    /// A slide's tissue.
    #[error(transparent)]
    Tissue(#[from] JsonError),
    /// A slide's regions.
    #[error(transparent)]
    Regions(#[from] SearchedError),
    /// A placed hotspot of which nothing was searched.
    #[error(
        "{}: the hotspot that {} placed on {} ({}) is {outside}: place it in the viewer where the slide was \
         searched, or take it back", Shown(path), spot.reviewer, spot.of.slide, places(&spot.centres_px)
    )]
    HotspotOutside {
        /// The log of hotspots.
        path: PathBuf,
        spot: Box<PlacedHotspot>,
        outside: Outside,
    },
    /// A hotspot that was placed at another resolution, so that it would cover another part of the slide.
    #[error(
        "{}: {} placed the hotspot on {} ({}) at {placed} um/px, and this run has {run} um/px, at which it covers \
         another part of the slide: place it again in the viewer", Shown(path), spot.reviewer, spot.of.slide,
        places(&spot.centres_px)
    )]
    HotspotScale {
        /// The log of hotspots.
        path: PathBuf,
        spot: Box<PlacedHotspot>,
        /// um/px when it was placed.
        placed: f64,
        /// um/px of the run on the same axis.
        run: f64,
    },
    /// The grading scheme.
    #[error(transparent)]
    Grade(#[from] outcome::Error),
    /// The table cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// One way to count a slide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Figures.
    pub figures: usize,
    /// Exact 95 % interval of the figures as a Poisson count.
    pub figures_95: [f64; 2],
    /// Figures in the densest 2 mm2.
    pub hotspot_count: usize,
    /// Its centre, level-0 px; none without figures.
    pub hotspot_px: Option<[f64; 2]>,
    /// The part of it on the slide, mm2; none without figures.
    pub hotspot_mm2: Option<f64>,
    /// Figures per 20 mm2 of analysed tissue; none without any.
    pub density_per_20_mm2: Option<f64>,
    /// The figures' interval per 20 mm2.
    pub density_95: Option<[f64; 2]>,
    /// 95 % percentile interval of the density over resampled windows of 500 um, which knows that
    /// figures cluster; none with fewer than ten windows of tissue.
    pub density_resampled_95: Option<[f64; 2]>,
    /// What a scheme gives for the hotspot that counts, the placed one before the densest, where one was asked for;
    /// `at least` in front where less tissue was looked at than the scheme's area, or figures are missed.
    pub mitotic_score: Option<String>,
}

/// The scheme that grades hotspots.
#[derive(Debug, Serialize)]
pub struct Grading {
    /// Its name.
    pub scheme: String,
    /// What it is about.
    pub title: String,
    /// What it gives, in its own words: a mitotic score as a rule, never a grade.
    pub gives: String,
    /// The area that its thresholds refer to, mm2; the counts of hotspots are rescaled to it and rounded.
    pub area_mm2: f64,
    #[serde(skip)]
    rule: Rule,
}

impl Grading {
    /// A scheme of `mithras survival grade` by name, or a file of that form, with the field diameter
    /// in mm where it depends on it.
    ///
    /// # Errors
    /// When the scheme is unknown, or lacks the diameter.
    pub fn load(scheme: &str, field_diameter: Option<f64>) -> Result<Self, RecountError> {
        let scheme = Scheme::load(scheme)?;
        let rule = scheme.rule(field_diameter)?;
        let (scheme, title, gives) = (scheme.name, scheme.title, scheme.gives);
        Ok(Self { scheme, title, gives, area_mm2: rule.area_mm2, rule })
    }

    /// What the scheme gives for this many figures in a hotspot of so many mm2 on a slide. Where less than the
    /// scheme's area was looked at, or a smaller place was chosen by hand, the count is not taken up to that area:
    /// that it is as dense in the rest is not known, and `at least` would be wrong.
    #[must_use]
    pub fn score(&self, figures: usize, hotspot_mm2: f64, slide: &CountsFile) -> String {
        let analysed_mm2 = slide.analysed_mm2;
        let small = hotspot_mm2 < self.area_mm2.min(SQUARE_MM2);
        let short = small || analysed_mm2 < self.area_mm2.max(hotspot_mm2);
        let of_mm2 = match short {
            true => hotspot_mm2.min(analysed_mm2).max(self.area_mm2),
            false => hotspot_mm2,
        };
        let (_, score) = self.rule.apply(figures as f64, of_mm2);
        match short || slide.misses_figures() {
            true => format!("at least {score}"),
            false => score.to_owned(),
        }
    }
}

/// One slide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecountRow {
    /// Name of its folder.
    pub slide: String,
    /// Places that the reviewer judged.
    #[serde(rename = "said")]
    pub judged: usize,
    /// Of them: accepted candidates that the reviewer took out.
    pub taken_out: usize,
    /// Of them: rejected candidates that the reviewer took in.
    pub taken_in: usize,
    /// Of them: figures that the network missed.
    pub added: usize,
    /// Of them: unsure, which leaves the network's decision.
    pub unsure: usize,
    /// The network alone, as the run counted.
    pub model: Counted,
    /// With the reviewer's verdicts on top.
    pub reviewed: Counted,
    /// The hotspot that a reviewer placed, with the reviewed figures in it; none where nobody placed one, or it was
    /// not asked for.
    pub placed_hotspot: Option<PlacedCount>,
    /// Tissue read, mm2.
    pub analysed_mm2: f64,
    /// What is to be known of the numbers; empty where nothing is.
    pub notes: Vec<String>,
}

/// A run recounted.
#[derive(Debug, Serialize)]
pub struct Recount {
    /// Name of the log without its suffix.
    pub reviewer: String,
    /// How hotspots were graded, if they were.
    pub grading: Option<Grading>,
    /// The table written.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: PathBuf,
    /// Every slide of the run with a result.
    pub slides: Vec<RecountRow>,
    /// Slides that failed, are not finished, or whose results cannot be used, by name, with the reason. They have
    /// no row.
    pub failed: BTreeMap<String, String>,
    /// Names of slides that the reviewer judged and the run lacks, with the rule that would match them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// Every two reviewers of the run, over the places that both judged.
    pub agreement: Vec<Agreement>,
    /// What is to be known of the reviews as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Where the corrections are from.
enum Source {
    /// Logs of reviewers.
    Reviews(Reviews),
    /// Objects corrected in QuPath.
    Objects(Objects),
}

/// The corrections that were named.
struct Corrections {
    source: Source,
    /// The log, or the objects.
    file: PathBuf,
    /// Folder of the logs.
    reviews: PathBuf,
    /// Whose they are.
    reviewer: String,
}

impl Corrections {
    /// Reads what is named: reviewers of the run go before a file or folder of that name.
    fn read(run: &Path, reviews: &str) -> Result<Self, RecountError> {
        let (own, given) = (run.join("reviews"), Path::new(reviews));
        let is_name = given.file_name().is_some_and(|n| n == given.as_os_str());
        let are_names = |folder: &Path, names: &str| {
            names.split(TOGETHER).all(|name| VerdictLog::path(folder, name).is_ok())
        };
        if is_name
            && are_names(&own, reviews)
            && let Some(all) = Reviews::read(&own, reviews)?
        {
            let file = own.join(format!("{reviews}.jsonl"));
            let source = Source::Reviews(all);
            return Ok(Self { source, file, reviews: own, reviewer: reviews.to_owned() });
        }
        let parent = given.parent().filter(|p| !p.as_os_str().is_empty());
        let stem = given.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let here = |source, reviews| Self {
            source,
            file: given.to_owned(),
            reviews,
            reviewer: stem.clone(),
        };
        let folder = parent.unwrap_or(Path::new(".")).to_owned();
        if given.exists() {
            return Ok(match is_objects(given) {
                true => here(Source::Objects(Objects::read(given)?), own),
                false => {
                    let log = Reviews::single(&stem, VerdictLog::read(given)?);
                    here(Source::Reviews(log), folder)
                }
            });
        }
        // Reviewers of another folder: DIR/anna.jsonl, of whom a hotspot alone may be there, or DIR/anna+bert.
        if !is_name || given.extension().is_some_and(|e| e == "jsonl") {
            let names = given.file_name().unwrap_or_default().to_string_lossy();
            let names = names.strip_suffix(".jsonl").unwrap_or(&names);
            if are_names(&folder, names)
                && let Some(all) = Reviews::read(&folder, names)?
            {
                let file = given.to_owned();
                let source = Source::Reviews(all);
                return Ok(Self { source, file, reviews: folder, reviewer: names.to_owned() });
            }
            return Err(RecountError::NoFile { path: given.to_owned() });
        }
        if !reviews.contains(TOGETHER) {
            // Names the reviewers of the folder.
            VerdictLog::read(&VerdictLog::path(&own, reviews)?)?;
        }
        Err(RecountError::NoFile { path: own.join(reviews) })
    }
}

/// The corrections of a slide.
#[derive(Default)]
struct SlideCorrections {
    /// The verdict on each place, by key.
    verdicts: BTreeMap<String, Entry>,
    /// Verdicts about another file of its name.
    other_file: usize,
    /// Whether anything was written about a slide of its name.
    any: bool,
    /// Remarks.
    notes: Vec<String>,
}

impl Source {
    /// The slides that it is about.
    fn names(&self) -> BTreeSet<&str> {
        match self {
            Self::Reviews(all) => all.slides().map(|(of, _)| of.slide.as_str()).collect(),
            Self::Objects(objects) => objects.names().collect(),
        }
    }

    /// Its names against those of the run's slides.
    fn unmatched(&self, folders: &[PathBuf]) -> Option<Unmatched> {
        let names: Vec<_> =
            folders.iter().filter_map(|f| f.file_name()).map(OsStr::to_string_lossy).collect();
        let sides = ("the reviews", "the run");
        Unmatched::between(sides, self.names(), names.iter().map(AsRef::as_ref))
    }

    /// The same as text, where it is about slides that the run lacks.
    fn strange(&self, folders: &[PathBuf]) -> Option<String> {
        let join = self.unmatched(folders).filter(|join| join.left.count > 0 && join.has_rule());
        join.map(|join| join.to_string())
    }

    /// The corrections of a slide inside what was searched of it.
    fn about(&self, name: &str, results: &Results, searched: &SearchedArea) -> SlideCorrections {
        match self {
            Self::Reviews(all) => corrections(all, name, results, searched),
            Self::Objects(objects) => {
                match objects.verdicts(name, &results.counts, &results.rows) {
                    Some((verdicts, mut notes)) => {
                        let log = Verdicts::from([(slide_key(name, &results.counts), verdicts)]);
                        let own = corrections(&Reviews::single("", log), name, results, searched);
                        notes.extend(own.notes);
                        SlideCorrections { notes, ..own }
                    }
                    None => SlideCorrections::default(),
                }
            }
        }
    }

    /// Remarks on verdicts about a slide's file under a name that no slide of the run has: it was renamed.
    fn renamed(&self, counts: &CountsFile, names: &BTreeSet<String>) -> Vec<String> {
        let Self::Reviews(all) = self else { return Vec::new() };
        let mut former: BTreeMap<&str, usize> = BTreeMap::new();
        for (of, own) in all.slides() {
            let is_former = of.slide_digest == counts.slide.digest && !names.contains(&of.slide);
            if is_former && !own.entries.is_empty() {
                *former.entry(&of.slide).or_default() += own.entries.len();
            }
        }
        let note = |(slide, n): (&str, usize)| {
            format!(
                "{} about this file under its former name `{slide}`, left out: recount the run of that name \
                 if you have it",
                Many(n, "verdict"),
            )
        };
        former.into_iter().map(note).collect()
    }
}

/// What reviewers wrote about a slide, without figures that were added where nothing was searched: they would be in the
/// count and not in the area.
fn corrections(
    all: &Reviews,
    name: &str,
    Results { counts, rows }: &Results,
    searched: &SearchedArea,
) -> SlideCorrections {
    let slide = SlideFile { name, digest: &counts.slide.digest };
    let candidates = Nearby::candidates(counts, rows);
    let is_searched = |e: &Entry| !e.added || searched.check([e.x, e.y]).is_ok();
    let own = all.slide_reviews(slide, Some(&candidates), is_searched);
    let keys: BTreeSet<String> = rows.iter().map(|r| Entry::place_key(r.x_px, r.y_px)).collect();
    let mut notes = own.notes();
    notes.extend(all.model_note(slide, &counts.model, |k| keys.contains(k)));
    let lost = all.slide_reviews(slide, None, |e| !is_searched(e)).verdicts();
    notes.extend(left_out(lost.values(), searched));
    SlideCorrections {
        verdicts: own.verdicts(),
        other_file: all.left_out(slide, |_| true).0,
        any: all.slides().any(|(of, _)| of.slide == name),
        notes,
    }
}

/// Remarks on figures that were added where nothing was searched.
fn left_out<'a>(entries: impl Iterator<Item = &'a Entry>, searched: &SearchedArea) -> Vec<String> {
    let mut lost: BTreeMap<Outside, Vec<[f64; 2]>> = BTreeMap::new();
    for e in entries.filter(|e| e.verdict.and_then(Verdict::counts) == Some(true)) {
        if let Err(outside) = searched.check([e.x, e.y]) {
            lost.entry(outside).or_default().push([e.x, e.y]);
        }
    }
    let remark = |(outside, all): (Outside, Vec<[f64; 2]>)| {
        format!("{} {outside}, left out: {}", Many(all.len(), "added figure"), places(&all))
    };
    lost.into_iter().map(remark).collect()
}

/// Recounts every slide of a run with a reviewer's log - a file, or a name of one in the run's folder
/// `reviews`, or several such names as `anna+bert`, whose decisions count where they differ - or with corrected
/// objects of QuPath, a GeoJSON file or a folder of them, one per slide and called as it. Writes `recount.csv` next
/// to `counts.csv`.
///
/// # Errors
/// [`RecountError`].
pub fn recount(
    run: &Path,
    reviews: &str,
    grading: Option<Grading>,
    placed: bool,
) -> Result<Recount, RecountError> {
    let folders = every_folder(run)?;
    if folders.iter().any(|f| f == run) {
        return Err(OpenError::NoRun { path: run.to_owned() }.into());
    }
    // Before they are counted: what is appended in between is a change.
    let texts =
        LogTexts::read(&run.join("reviews"), |n| n.ends_with(".jsonl") || SHARED.contains(&n))?;
    let corrections = Corrections::read(run, reviews)?;
    let (mut slides, mut counted, mut failed) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut any, mut unsound) = (false, None);
    let everyone = everyone(run, &corrections)?;
    let mut judged = BTreeMap::new();
    let names: BTreeSet<String> = folders.iter().map(|f| folder_name(f)).collect();
    let plan = RecountPlan { corrections, placed, grading, names };
    for folder in &folders {
        let name = folder_name(folder);
        let row = results(folder).map(|found| (plan.row(name.clone(), folder, &found), found));
        let damaged = match row {
            Err(e) => e,
            // Outlines of early versions, which no digest covers.
            Ok((Err(e @ RecountError::Tissue(_)), _)) => ResultsError::because(folder, &e),
            Ok((row, found)) => {
                let (row, is_about) = row?;
                let (digest, candidates) =
                    (&found.counts.slide.digest, Nearby::candidates(&found.counts, &found.rows));
                let slide = SlideFile { name: &name, digest };
                let joined: Joined =
                    everyone.slide_reviews(slide, Some(&candidates), |_| true).joined;
                judged.insert((name, digest.clone()), joined);
                counted.push(folder);
                // A reviewer who placed a hotspot on a slide has looked at it.
                any |= is_about || row.placed_hotspot.is_some();
                slides.push(row);
                continue;
            }
        };
        failed.insert(name, damaged.to_string());
        unsound.get_or_insert(damaged);
    }
    let used = plan.logs(run);
    let RecountPlan {
        corrections: Corrections { source, file: log, reviewer, .. }, grading, ..
    } = plan;
    if !any {
        // Nothing was asked of the reviews where no slide can be read.
        if let Some(e) = unsound.filter(|_| counted.is_empty()) {
            return Err(ReportError::from(e).into());
        }
        let join = source.unmatched(&folders).map(Box::new);
        return Err(RecountError::NoVerdicts { path: log, join });
    }
    let notes = names_by_case(everyone.reviewers());
    let agreement = everyone.agreement(judged)?;
    let (file, unmatched) = (run.join("recount.csv"), source.strange(&folders));
    let recount = Recount { reviewer, grading, file, slides, failed, unmatched, agreement, notes };
    table(&recount).write_private(&recount.file)?;
    for (folder, row) in counted.into_iter().zip(&recount.slides) {
        match row.judged == 0 && row.placed_hotspot.is_none() {
            true => Reviewed::forget(folder)?,
            false => {
                let digest = &mithras::report::counts(folder)?.slide.digest;
                let slide = SlideFile { name: &row.slide, digest };
                let logs = Some(texts.digests(used.iter().map(String::as_str), slide));
                Reviewed { logs, ..reviewed(&recount, row) }.write(folder)?;
            }
        }
    }
    // A run whose tables were never made is under way, or its slides' folders were put together by hand.
    if run.join("run.json").is_file() {
        gather(&[run.to_owned()], None)?;
    }
    Ok(recount)
}

/// Every reviewer of the folder that the corrections are from.
///
/// # Errors
/// [`ReviewError`] for logs of the run; a folder of another place may hold other files of their ending.
fn everyone(run: &Path, corrections: &Corrections) -> Result<Reviews, ReviewError> {
    let all = Reviews::all(&corrections.reviews, None);
    match is_same(&corrections.reviews, &run.join("reviews")) {
        true => all,
        false => Ok(all.unwrap_or_default()),
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().ok().is_some_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// What a recount is asked for.
struct RecountPlan {
    corrections: Corrections,
    /// Whether a reviewer's hotspot counts.
    placed: bool,
    grading: Option<Grading>,
    /// The slides of the run.
    names: BTreeSet<String>,
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl RecountPlan {
    /// The logs of the run, by name, that the numbers depend on.
    fn logs(&self, run: &Path) -> Vec<String> {
        let Corrections { source, file, reviews, reviewer } = &self.corrections;
        if !is_same(reviews, &run.join("reviews")) {
            return Vec::new();
        }
        let log = |name: &str| format!("{name}.jsonl");
        let mut all: Vec<String> = match source {
            Source::Reviews(all) if all.is_several() => {
                let logs = all.needed_reviewers().into_iter().map(log);
                logs.chain([SETTLED.to_owned()]).collect()
            }
            Source::Reviews(_) if file.extension().is_some_and(|e| e == "jsonl") => {
                vec![log(reviewer)]
            }
            _ => Vec::new(),
        };
        all.extend(self.placed.then(|| HOTSPOTS.to_owned()));
        all
    }

    /// A slide counted again, and whether anything was written about it.
    fn row(
        &self,
        name: String,
        folder: &Path,
        found: &Results,
    ) -> Result<(RecountRow, bool), RecountError> {
        let Corrections { source, reviews, reviewer, .. } = &self.corrections;
        let searched = SearchedArea::read(folder, &found.counts)?;
        let mut about = source.about(&name, found, &searched);
        let mut remarks = std::mem::take(&mut about.notes);
        remarks.extend(source.renamed(&found.counts, &self.names));
        let this = SlideFile { name: &name, digest: &found.counts.slide.digest };
        remarks.extend(about_signature(reviews, folder, this, reviewer)?);
        // A hotspot belongs to the reviewer who judged; objects of QuPath name nobody.
        let whose = Some(reviewer.as_str()).filter(|_| !matches!(source, Source::Objects(_)));
        let spot = match self.placed {
            true => decisions::reviewers_hotspot(reviews, whose, this)?,
            false => None,
        };
        let placed = match spot {
            Some(spot) => Some(self.in_placed(spot, found, &about.verdicts, &searched)?),
            None => None,
        };
        if self.placed && placed.is_none() {
            let by = whose.map_or_else(String::new, |name| format!(" by {name}"));
            let other = decisions::hotspot_on_another_file(reviews, whose, this)?;
            let other = other.map_or("", |_| " (one on another file of this name is left out)");
            remarks.push(format!("no hotspot was placed{by}{other}: it is the densest 2 mm2"));
        }
        let mut row = row(name, folder, found, &about, &searched)?;
        row.placed_hotspot = placed;
        row.notes.extend(remarks);
        if let Some(grading) = &self.grading {
            row.score(grading, &found.counts);
        }
        Ok((row, about.any))
    }

    /// The count in a hotspot that a reviewer placed.
    fn in_placed(
        &self,
        spot: PlacedHotspot,
        results: &Results,
        about: &BTreeMap<String, Entry>,
        searched: &SearchedArea,
    ) -> Result<PlacedCount, RecountError> {
        let Results { counts, rows } = results;
        let resolution = counts.resolution().map_err(|source| RecountError::Resolution {
            slide: counts.slide.name.clone(),
            source,
        })?;
        let path = decisions::hotspots_file(&self.corrections.reviews);
        let run = [resolution.x.get(), resolution.y.get()];
        let pairs = spot.mpp.into_iter().flat_map(|placed| placed.into_iter().zip(run));
        let other = pairs.into_iter().find(|(placed, run)| (placed / run - 1.0).abs() >= SAME_MPP);
        if let Some((placed, run)) = other {
            return Err(RecountError::HotspotScale { path, spot: Box::new(spot), placed, run });
        }
        let centres: Vec<Point<Level0>> =
            spot.centres_px.iter().map(|[x, y]| Point::new(*x, *y)).collect();
        let area_mm2 = match searched.hotspot_mm2(&spot.rule, &centres, &resolution) {
            Ok(mm2) => mm2,
            Err(outside) => {
                return Err(RecountError::HotspotOutside { path, spot: Box::new(spot), outside });
            }
        };
        let figures = reviewed_figures(results, about);
        let model: Vec<Point<Level0>> =
            rows.iter().filter(|r| r.accepted).map(|r| Point::new(r.x_px, r.y_px)).collect();
        Ok(PlacedCount {
            figures: spot.rule.count(&figures, &centres, &resolution),
            model_figures: spot.rule.count(&model, &centres, &resolution),
            reviewer: spot.reviewer,
            time: spot.time,
            preset: spot.preset,
            rule: spot.rule,
            area_mm2,
            centres_px: spot.centres_px,
        })
    }
}

/// What is to be known of a slide's signature, where there is one.
fn about_signature(
    reviews: &Path,
    results: &Path,
    slide: SlideFile<'_>,
    reviewer: &str,
) -> Result<Vec<String>, RecountError> {
    let Some(signature) = decisions::signed_slide(reviews, Some(results), slide)? else {
        return Ok(Vec::new());
    };
    let (who, version) = (&signature.line.reviewer, signature.line.version);
    let mut notes = Vec::new();
    if !reviewer.split(TOGETHER).any(|name| name == who) {
        notes.push(format!("signed by {who} (version {version}), whose verdicts these are not"));
    }
    if !signature.changed.is_empty() {
        let changed = signature.changed.join(", ");
        notes.push(format!("changed since {who} signed it (version {version}): {changed}"));
    }
    Ok(notes)
}

/// What the tables of the run show of a slide.
fn reviewed(recount: &Recount, row: &RecountRow) -> Reviewed {
    let r = &row.reviewed;
    Reviewed {
        reviewer: recount.reviewer.clone(),
        figures: r.figures,
        hotspot_count: r.hotspot_count,
        hotspot_px: r.hotspot_px,
        hotspot_mm2: r.hotspot_mm2,
        density_per_20_mm2: r.density_per_20_mm2,
        scheme: recount.grading.as_ref().map(|g| g.scheme.clone()),
        gives: recount.grading.as_ref().map(|g| g.gives.clone()),
        model_mitotic_score: row.model.mitotic_score.clone(),
        mitotic_score: r.mitotic_score.clone(),
        placed: row.placed_hotspot.clone(),
        logs: None,
    }
}

impl RecountRow {
    /// Scores both counts by a scheme: of the placed hotspot, where there is one.
    fn score(&mut self, grading: &Grading, counts: &CountsFile) {
        if counts.is_outside_range() || !counts.has_tissue {
            return self.notes.push(format!("no {}: see the notes on this slide", grading.gives));
        }
        let score = |figures: usize, mm2: f64| Some(grading.score(figures, mm2, counts));
        let densest = |c: &Counted| score(c.hotspot_count, c.hotspot_mm2.unwrap_or(SQUARE_MM2));
        (self.model.mitotic_score, self.reviewed.mitotic_score) = match &self.placed_hotspot {
            Some(p) => (score(p.model_figures, p.area_mm2), score(p.figures, p.area_mm2)),
            None => (densest(&self.model), densest(&self.reviewed)),
        };
    }
}

fn row(
    slide: String,
    folder: &Path,
    Results { counts, rows }: &Results,
    about: &SlideCorrections,
    searched: &SearchedArea,
) -> Result<RecountRow, RecountError> {
    let mut notes = Vec::new();
    let judged = &about.verdicts;
    if about.other_file > 0 {
        let n = Many(about.other_file, "verdict");
        notes.push(format!("{n} about another file of this name, left out"));
    }
    let keys: BTreeSet<String> = rows.iter().map(|r| Entry::place_key(r.x_px, r.y_px)).collect();
    let lost = judged.values().filter(|e| !e.added && !keys.contains(&e.key)).count();
    if lost > 0 {
        let n = Many(lost, "verdict");
        notes.push(format!("{n} about candidates that this run lacks, left out"));
    }
    notes.extend(counts.notes());
    let (mut taken_out, mut taken_in) = (0, 0);
    let mut figures: Vec<Point<Level0>> = Vec::new();
    for r in rows {
        let entry = judged.get(&Entry::place_key(r.x_px, r.y_px));
        let is_figure = entry.and_then(|e| e.verdict?.counts()).unwrap_or(r.accepted);
        taken_out += usize::from(r.accepted && !is_figure);
        taken_in += usize::from(!r.accepted && is_figure);
        if is_figure {
            figures.push(Point::new(r.x_px, r.y_px));
        }
    }
    let judged: Vec<&Entry> =
        judged.values().filter(|e| e.added || keys.contains(&e.key)).collect();
    let counts_here = |e: &Entry| e.verdict.and_then(Verdict::counts);
    let added = judged.iter().filter(|e| e.added && counts_here(e) == Some(true));
    let before = figures.len();
    figures.extend(added.map(|e| Point::new(e.x, e.y)));
    let resolution = counts
        .resolution()
        .map_err(|source| RecountError::Resolution { slide: slide.clone(), source })?;
    let spot = hotspot(&figures, &resolution)
        .map_err(|source| RecountError::Count { slide: slide.clone(), source })?;
    let area = counts.analysed_mm2;
    let model = counts.hotspot.map(|h| h.centre_px);
    let tissue = match counts.has_tissue {
        true => rings(&folder.join(pictures::TISSUE), counts.slide.bounds_offset)?,
        false => Vec::new(),
    };
    let size = [counts.slide.width as f64, counts.slide.height as f64];
    let windows = Windows::new(&tissue, size, &resolution);
    let accepted = rows.iter().filter(|r| r.accepted).map(|r| Point::new(r.x_px, r.y_px));
    let accepted: Vec<Point<Level0>> = accepted.collect();
    Ok(RecountRow {
        judged: judged.len(),
        taken_out,
        taken_in,
        added: figures.len() - before,
        unsure: judged.iter().filter(|e| counts_here(e).is_none()).count(),
        model: counted(&accepted, counts.hotspot_count, model, counts, &windows, searched),
        reviewed: counted(
            &figures,
            spot.map_or(0, |s| s.count),
            spot.map(|s| [s.centre.x, s.centre.y]),
            counts,
            &windows,
            searched,
        ),
        analysed_mm2: area,
        notes,
        placed_hotspot: None,
        slide,
    })
}

/// Places of all that counts with a reviewer's verdicts on top.
fn reviewed_figures(
    Results { rows, .. }: &Results,
    judged: &BTreeMap<String, Entry>,
) -> Vec<Point<Level0>> {
    let counts_here = |e: &Entry| e.verdict.and_then(Verdict::counts);
    let accepted = rows.iter().filter(|r| {
        let entry = judged.get(&Entry::place_key(r.x_px, r.y_px));
        entry.and_then(counts_here).unwrap_or(r.accepted)
    });
    let added = judged.values().filter(|e| e.added && counts_here(e) == Some(true));
    accepted
        .map(|r| Point::new(r.x_px, r.y_px))
        .chain(added.map(|e| Point::new(e.x, e.y)))
        .collect()
}

/// Places that count on a slide with the verdicts of one reviewer's log on top, or of several together (`anna+bert`),
/// level-0 px; none where a folder of reviews has no log of that name. `regions`: what was searched of the slide;
/// none for all of it.
///
/// # Errors
/// [`ReviewError`].
pub fn figures_after_review(
    reviews: &Path,
    reviewer: &str,
    results: &Results,
    regions: &[RegionOutline],
) -> Result<Option<Vec<Point<Level0>>>, ReviewError> {
    let Some(all) = Reviews::read(reviews, reviewer)? else { return Ok(None) };
    let searched = SearchedArea::new(&results.counts, regions);
    let about = corrections(&all, &results.counts.slide.name, results, &searched);
    Ok(Some(reviewed_figures(results, &about.verdicts)))
}

fn counted(
    figures: &[Point<Level0>],
    hotspot_count: usize,
    hotspot_px: Option<[f64; 2]>,
    counts: &CountsFile,
    windows: &Windows,
    searched: &SearchedArea,
) -> Counted {
    let (n, area) = (figures.len(), counts.analysed_mm2);
    let round = |v: f64| (v * 1e6).round() / 1e6;
    let i = stats::interval::poisson(n as u64, LEVEL).expect("a level of 0.95");
    let (lower, upper) = (i.lower, i.upper);
    let per = |n: f64| density_per_20_mm2(n, Mm2(area));
    Counted {
        figures: n,
        figures_95: [round(lower), round(upper)],
        hotspot_count,
        hotspot_px,
        hotspot_mm2: hotspot_px.and_then(|[x, y]| {
            let (rule, resolution) = (&HotspotRule::PAPER, counts.resolution().ok()?);
            searched.hotspot_mm2(rule, &[Point::new(x, y)], &resolution).ok()
        }),
        density_per_20_mm2: per(n as f64),
        density_95: per(lower).zip(per(upper)).map(|(lower, upper)| [lower, upper]),
        density_resampled_95: per(0.0).and(windows.density_95(figures)).map(|i| i.map(round)),
        mitotic_score: None,
    }
}

fn table(recount: &Recount) -> Writer {
    let mut header = vec!["slide", "reviewer", "said", "taken_out", "taken_in", "added", "unsure"];
    header.extend(["figures", "reviewed_figures", "figures_low", "figures_high"]);
    header.extend(["reviewed_figures_low", "reviewed_figures_high"]);
    header.extend(["hotspot_count", "reviewed_hotspot_count", "hotspot_x_px", "hotspot_y_px"]);
    header.extend(["reviewed_hotspot_x_px", "reviewed_hotspot_y_px"]);
    header.extend(["density_per_20_mm2", "reviewed_density_per_20_mm2", "density_low"]);
    header.extend(["density_high", "reviewed_density_low", "reviewed_density_high"]);
    header.extend(["density_resampled_low", "density_resampled_high"]);
    header.extend(["reviewed_density_resampled_low", "reviewed_density_resampled_high"]);
    header.extend(["mitotic_score", "reviewed_mitotic_score", "analysed_mm2", "placed_by"]);
    header.extend(["placed_rule", "placed_mm2", "placed_figures", "hotspot_mm2"]);
    header.extend(["reviewed_hotspot_mm2", "notes"]);
    let mut table = Writer::new(&header);
    for s in &recount.slides {
        let (m, r) = (&s.model, &s.reviewed);
        let mut cells = vec![s.slide.clone(), recount.reviewer.clone()];
        let whole = [s.judged, s.taken_out, s.taken_in, s.added, s.unsure, m.figures, r.figures];
        cells.extend(whole.map(|n| n.to_string()));
        cells.extend([m.figures_95, r.figures_95].concat().iter().map(f64::to_string));
        cells.extend([m.hotspot_count, r.hotspot_count].map(|n| n.to_string()));
        let both =
            |v: Option<[f64; 2]>| v.map_or_else(Default::default, |v| v.map(|v| v.to_string()));
        cells.extend(both(m.hotspot_px));
        cells.extend(both(r.hotspot_px));
        let text = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
        cells.extend([m.density_per_20_mm2, r.density_per_20_mm2].map(text));
        cells.extend(both(m.density_95));
        cells.extend(both(r.density_95));
        cells.extend(both(m.density_resampled_95));
        cells.extend(both(r.density_resampled_95));
        cells.extend([&m.mitotic_score, &r.mitotic_score].map(|g| g.clone().unwrap_or_default()));
        cells.push(s.analysed_mm2.to_string());
        let placed =
            |f: fn(&PlacedCount) -> String| s.placed_hotspot.as_ref().map_or_else(String::new, f);
        cells.extend([
            placed(|p| p.reviewer.clone()),
            placed(|p| p.preset.clone()),
            placed(|p| p.area_mm2.to_string()),
            placed(|p| p.figures.to_string()),
            text(m.hotspot_mm2),
            text(r.hotspot_mm2),
            s.notes.join("; "),
        ]);
        table.push(cells);
    }
    table
}

impl fmt::Display for Recount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in &self.slides {
            // On less tissue a note covers it.
            let cut = |mm2: &f64| *mm2 < SQUARE_MM2 && s.analysed_mm2 >= SQUARE_MM2;
            let line = |f: &mut fmt::Formatter<'_>, who: &str, c: &Counted| {
                let [low, high] = c.figures_95;
                let (n, spot) = (Many(c.figures, "figure"), c.hotspot_count);
                write!(f, "  {who}: {n} ({low:.1} to {high:.1}), hotspot {spot}")?;
                if let Some(mm2) = c.hotspot_mm2.filter(cut) {
                    write!(f, " in {mm2:.3} mm2 on the slide")?;
                }
                if let Some((d, [l, h])) = c.density_per_20_mm2.zip(c.density_95) {
                    write!(f, ", {d:.1} per 20 mm2 ({l:.1} to {h:.1}")?;
                    if let Some([l, h]) = c.density_resampled_95 {
                        write!(f, "; over resampled windows {l:.1} to {h:.1}")?;
                    }
                    write!(f, ")")?;
                }
                match c.mitotic_score.as_ref().zip(self.grading.as_ref()) {
                    Some((score, g)) => {
                        let of = s.placed_hotspot.as_ref().map_or("", |_| " (placed hotspot)");
                        writeln!(f, ", {} {score}{of}", g.gives)
                    }
                    None => writeln!(f),
                }
            };
            writeln!(f, "{} ({} of {})", s.slide, Many(s.judged, "verdict"), self.reviewer)?;
            line(f, "network ", &s.model)?;
            line(f, "reviewed", &s.reviewed)?;
            if let Some(p) = &s.placed_hotspot {
                writeln!(
                    f,
                    "  hotspot placed by {}: {} in {} mm2 ({} by the network)",
                    p.reviewer,
                    Many(p.figures, "figure"),
                    p.mm2(),
                    p.model_figures
                )?;
            }
            for note in &s.notes {
                writeln!(f, "  note: {note}")?;
            }
        }
        if let Some(join) = &self.unmatched {
            writeln!(f, "note: {join}")?;
        }
        if let Some(g) = &self.grading {
            let area = g.area_mm2;
            writeln!(
                f,
                "{}: {}, counts rescaled to {area:.3} mm2 and rounded, those of less tissue not: \
                 at least; {}",
                g.gives, g.scheme, g.title
            )?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        self.agreement.iter().try_for_each(|a| writeln!(f, "{a}"))?;
        writeln!(f, "{}", Shown(&self.file))
    }
}

impl Remedied for RecountError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            Self::Objects(e) => e.remedy(),
            Self::Report(e) => e.remedy(),
            Self::Grade(e) => e.remedy(),
            _ => None,
        }
    }
}
