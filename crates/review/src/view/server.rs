//! Answers the page's requests.

use super::decisions::{
    self, Drawn, DrawnRegion, PlacedHotspot, Placement, ResultDigests, Signed, SlideSignatures,
};
use super::keep::keep_point;
use super::logs::now;
use super::open::{Item, Opened, run_folder};
use super::places::Nearby;
use super::refusal::Refusal;
use super::review::{
    Entry, LONGEST_COMMENT, ReviewError, SlideKey, Verdict, VerdictLog, Verdicts, agreement,
};
use super::reviews::model_digest;
use super::searched::{Outside, SearchedArea, places};
use super::settle::{self, Disagreement, disagreements};
use super::tiles::{TILE, TileAddress, TileError, Tiles, max_level};
use super::tissue::{self, Area, Rings};
use crate::OPEN_LOGS;
use crate::agreement::Agreement;
use detect::Flaw;
use infer::ModelPackage;
use mithras::export::{Caveat, CaveatKind, pictures};
use mithras::record::DetectionRow;
use mithras::regions;
use mithras::report::results;
use mitosis::Score;
use mitosis::hotspots::{HotspotRule, Shape};
use pages::server::{Answer, Request};
use pages::{Page, Script};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const PAGE: Page<'_> = Page {
    title: "mithras view",
    style: include_str!("page/view.css"),
    body: include_str!("page/index.html"),
    script: Script::Files { plain: &["openseadragon.js"], modules: &["view.js"] },
};
/// Its scripts: path and content.
const SCRIPTS: [(&str, &str); 5] = [
    ("view.js", include_str!("page/view.js")),
    ("model.js", include_str!("page/model.js")),
    ("marks.js", include_str!("page/marks.js")),
    ("common.js", pages::COMMON),
    ("openseadragon.js", include_str!("page/openseadragon.js")),
];

#[derive(Serialize)]
struct Index {
    /// Scores, counts and operating points are not sent.
    blinded: bool,
    /// The run, for commands that the page shows; none without one.
    run: Option<String>,
    points: BTreeMap<String, Point>,
    slides: Vec<SlideLine>,
}

#[derive(Serialize)]
struct Point {
    seg: Score,
    cls: Score,
    precision: Option<f64>,
    recall: Option<f64>,
}

#[derive(Serialize)]
struct SlideLine {
    id: usize,
    name: String,
    note: String,
    /// Why its file cannot be opened.
    unopened: Option<String>,
    /// Whether the network counted on it.
    counted: bool,
    caveats: Vec<Warned>,
    case: Option<String>,
    width: u64,
    height: u64,
    tile: usize,
    max_level: u32,
}

/// A caveat of a slide's count.
#[derive(Serialize)]
struct Warned {
    kind: CaveatKind,
    label: &'static str,
    text: String,
    /// Whether it shows what the network found.
    of_figures: bool,
}

impl Warned {
    fn new(c: &Caveat) -> Self {
        let (kind, text) = (c.kind, c.text.clone());
        Self { kind, label: kind.label(), text, of_figures: !kind.is_about_the_slide() }
    }
}

#[derive(Serialize)]
struct Detail {
    /// Whether detection ran and ended; without it nothing below is about figures.
    searched: bool,
    point: Pair,
    mpp: Option<[f64; 2]>,
    analysed_mm2: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    atypical_from: Option<f32>,
    columns: Columns,
    tissue: Rings,
    flaws: Vec<Area>,
    unread: Vec<[f64; 4]>,
    /// The regions that the run searched.
    regions: Vec<Outline>,
}

/// A region that the run searched.
#[derive(Serialize)]
struct Outline {
    name: String,
    rings: Rings,
}

#[derive(Serialize)]
struct Pair {
    seg: Score,
    cls: Score,
}

#[derive(Serialize)]
struct Columns {
    x: Vec<f64>,
    y: Vec<f64>,
    s_seg: Vec<f32>,
    s_cls: Vec<Option<f32>>,
    outside: Vec<bool>,
    flaw: Vec<Option<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_atypical: Option<Vec<Option<f32>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    morphology: Option<Vec<Option<&'static str>>>,
}

#[derive(Serialize)]
struct Entries {
    entries: Vec<Entry>,
}

/// Every reviewer's verdicts on a slide.
#[derive(Serialize)]
struct AgreementAnswer {
    voices: BTreeMap<String, BTreeMap<String, Verdict>>,
    agreement: Vec<Agreement>,
    /// Where they differ, with what was decided.
    disagreements: Vec<Disagreement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {
    reviewer: String,
    slide: usize,
    key: String,
    /// The decision; null takes it back.
    verdict: Option<Verdict>,
}

/// What reviewers decided about a slide as a whole.
#[derive(Default, Serialize)]
struct DeskState {
    hotspot: Option<PlacedHotspot>,
    drawn: Vec<DrawnRegion>,
    drawn_by: Option<Drawn>,
    signatures: Vec<Signed>,
    /// Nothing can be changed until it is opened again.
    frozen: bool,
    /// Files that are not as they were signed, by name.
    changed: Vec<String>,
    /// It was signed with candidates of other weights.
    other_weights: bool,
    /// Why it is not known what changed.
    notes: Vec<String>,
    /// Sizes of the drawn regions, mm2, and of what is left of all of them together.
    mm2: Vec<f64>,
    all_mm2: Option<f64>,
    /// Drawn regions that share area, in sentences.
    overlaps: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    reviewer: String,
    slide: usize,
    preset: String,
    shape: Shape,
    fields: u32,
    field_mm2: f64,
    apart: bool,
    centres_px: Vec<[f64; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draw {
    reviewer: String,
    slide: usize,
    regions: Vec<DrawnRegion>,
    /// The time of the regions that they replace, as the page got it; none where it was shown none.
    #[serde(default)]
    seen: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sign {
    reviewer: String,
    slide: usize,
    #[serde(default)]
    reopen: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    /// A slide of the run.
    slide: usize,
    /// A name of the package's card, or two thresholds, as the command line takes it.
    point: String,
}

#[derive(Serialize)]
struct Kept {
    folder: String,
}

#[derive(Serialize)]
struct SignedSlides {
    slides: Vec<String>,
}

#[derive(Serialize)]
struct Saved {
    saved: bool,
}

#[derive(Serialize)]
struct Undone {
    entry: Option<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewVerdict {
    reviewer: String,
    slide: usize,
    key: String,
    x: f64,
    y: f64,
    verdict: Option<Verdict>,
    added: bool,
    #[serde(default)]
    morphology: Option<String>,
    #[serde(default)]
    comment: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Undo {
    reviewer: String,
    slide: usize,
    /// Of which place; the last verdict of all without it.
    #[serde(default)]
    key: Option<String>,
}

/// Where the reviews of a slide go, and what names it there.
struct ReviewPlace<'a> {
    folder: &'a Path,
    of: SlideKey,
}

/// Slides under view.
pub struct Viewer {
    items: Vec<Item>,
    tiles: Tiles,
    /// Folder with the slides, where they have moved.
    slides: Option<PathBuf>,
    blinded: bool,
    /// Held while a log is used, never while a request is read or an answer sent.
    logs: Mutex<HashMap<(PathBuf, String), VerdictLog>>,
    /// Keys of the slide's candidates, of the slides that were reviewed.
    keys: Mutex<HashMap<usize, std::collections::HashSet<String>>>,
    /// Held while a run is written at other thresholds: one at a time.
    keeping: Mutex<()>,
}

impl Viewer {
    /// A viewer of these slides.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self {
            items: opened.items,
            tiles: Tiles::default(),
            slides: opened.slides,
            blinded: false,
            logs: Mutex::default(),
            keys: Mutex::default(),
            keeping: Mutex::default(),
        }
    }

    /// Sends no score, no count and no operating point, so that nobody who looks can know the network's opinion.
    #[must_use]
    pub fn blinded(mut self, blinded: bool) -> Self {
        self.blinded = blinded;
        self
    }

    /// Slides in the list.
    #[must_use]
    pub fn slides(&self) -> usize {
        self.items.len()
    }

    /// Answers one request.
    pub fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let result = match (request.method.as_str(), path) {
            ("GET", "api/index") => Ok(Answer::json(200, &self.index())),
            ("GET", path) => self.get(path, query),
            ("POST", "api/review") => {
                request.json().and_then(|v: NewVerdict| self.record_verdict(v))
            }
            ("POST", "api/undo") => request.json().and_then(|u: Undo| self.undo(&u)),
            ("POST", "api/hotspot") => request.json().and_then(|p: Place| self.place(p)),
            ("POST", "api/regions") => request.json().and_then(|d: Draw| self.draw(&d)),
            ("POST", "api/settle") => request.json().and_then(|s: Settle| self.settle(&s)),
            ("POST", "api/keep") => request.json().and_then(|k: Keep| self.keep_thresholds(&k)),
            ("POST", "api/sign") => request.json().and_then(|s: Sign| self.sign(&s)),
            _ => Err(nothing()),
        };
        result.unwrap_or_else(|refusal| refusal)
    }

    fn get(&self, path: &str, query: &str) -> Result<Answer, Answer> {
        if path.is_empty() {
            let kind = "text/html; charset=utf-8";
            return Ok(Answer { status: 200, kind, body: PAGE.html().into() });
        }
        if let Some((_, text)) = SCRIPTS.iter().find(|(name, _)| *name == path) {
            let kind = "text/javascript; charset=utf-8";
            return Ok(Answer { status: 200, kind, body: text.as_bytes().to_vec() });
        }
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["api", "slide", id] => self.detail(number(id)?),
            ["api", "reviews", id] => {
                let reviewer = query_reviewer(query).ok_or_else(nothing)?;
                let ReviewPlace { folder, of } = self.change(number(id)?)?;
                // Nothing is written before the first verdict.
                let entries = VerdictLog::read_slide(folder, &reviewer, &of)
                    .map_err(|e| Answer::refusal(400, &e.to_string()))?;
                Ok(Answer::json(200, &Entries { entries }))
            }
            ["api", "voices", id] => self.voices(number(id)?),
            ["api", "desk", id] => {
                self.desk(number(id)?, &query_reviewer(query).unwrap_or_default())
            }
            ["tile", id, level, place] => {
                let (x, y) = pair(place)?;
                let (id, level) = (number(id)?, number(level)?);
                let (_, file) = self.file(id)?;
                let level = u32::try_from(level).map_err(|_| nothing())?;
                let at = TileAddress { level, column: number(x)? as u64, row: number(y)? as u64 };
                picture(self.tiles.tile(id, file, at).map(|t| t.to_vec()))
            }
            ["crop", id, place] => {
                let (x, y) = pair(place)?;
                let id = number(id)?;
                let (item, file) = self.file(id)?;
                let at = (coordinate(x)?, coordinate(y)?);
                let mpp = match &item.counts {
                    Some(c) => Some(c.resolution.x),
                    None => self.mpp(id, file).map(|m| m[0]),
                };
                picture(self.tiles.crop(id, file, mpp, at))
            }
            _ => Err(nothing()),
        }
    }

    fn item(&self, id: usize) -> Result<&Item, Answer> {
        self.items.get(id).ok_or_else(nothing)
    }

    fn file(&self, id: usize) -> Result<(&Item, &Path), Answer> {
        let item = self.item(id)?;
        item.file.as_deref().map(|f| (item, f)).ok_or_else(nothing)
    }

    fn mpp(&self, id: usize, file: &Path) -> Option<[f64; 2]> {
        let slide = self.tiles.slide(id, file).ok()?;
        let r = slide.resolution().ok()?;
        Some([r.x.get(), r.y.get()])
    }

    /// um/px across and down, as the run has it; of a slide without a run as its file states it.
    fn resolution(&self, id: usize, item: &Item) -> Option<[f64; 2]> {
        match &item.counts {
            Some(c) => Some([c.resolution.x, c.resolution.y]),
            None => item.file.as_deref().and_then(|file| self.mpp(id, file)),
        }
    }

    fn index(&self) -> Index {
        let line = |(id, i): (usize, &Item)| {
            let (width, height) = if i.file.is_some() { i.size } else { (0, 0) };
            let name = i.name.clone();
            // The note of a slide that was searched has the network's numbers.
            let hidden = self.blinded && i.counts.is_some();
            let note = if hidden { String::new() } else { i.note.clone() };
            let unopened = i.unopened.clone();
            // What holds for the slide whatever was found on it is not an opinion.
            let caveats = i.caveats.iter().filter(|c| !self.blinded || c.kind.is_about_the_slide());
            let caveats = caveats.map(Warned::new).collect();
            let counted = i.counts.is_some();
            let (case, max_level) = (i.case.clone(), max_level((width, height)));
            SlideLine {
                id,
                name,
                note,
                unopened,
                counted,
                caveats,
                case,
                width,
                height,
                tile: TILE,
                max_level,
            }
        };
        let folder = self.items.iter().find_map(|i| i.folder.as_deref());
        Index {
            blinded: self.blinded,
            run: folder.map(|f| run_folder(f).display().to_string()),
            points: if self.blinded { BTreeMap::new() } else { self.points() },
            slides: self.items.iter().enumerate().map(line).collect(),
        }
    }

    /// The named points of the weights that all slides were searched with, where their package is found.
    fn points(&self) -> BTreeMap<String, Point> {
        let mut models: Vec<_> =
            self.items.iter().filter_map(|i| Some(&i.counts.as_ref()?.model)).collect();
        models.dedup_by(|a, b| a == b);
        let [model] = models[..] else { return BTreeMap::new() };
        let Ok(package) = ModelPackage::bundled_named(&model.name) else { return BTreeMap::new() };
        let card = &package.card;
        if card.segmenter.as_ref().is_none_or(|s| s.sha256 != model.segmenter_sha256) {
            return BTreeMap::new();
        }
        card.operating_points
            .iter()
            .map(|(name, p)| {
                let (precision, recall) = (Some(p.precision), Some(p.recall));
                (name.clone(), Point { seg: p.seg, cls: p.cls, precision, recall })
            })
            .collect()
    }

    fn detail(&self, id: usize) -> Result<Answer, Answer> {
        // A slide without its results would look like one that was never searched.
        if let Some(reason) = &self.item(id)?.unsound {
            return Err(Answer::refusal(500, reason));
        }
        let (item, file) = self.file(id)?;
        unchanged(item)?;
        // A slide that cannot be opened is reported here, before its tiles stay white.
        self.tiles.slide(id, file).map_err(|e| Answer::refusal(500, &e.to_string()))?;
        let (rows, tissue, flaws) = match (&item.folder, &item.counts) {
            (Some(folder), Some(counts)) => {
                // A run without outlines is shown without them.
                let (file, offset) = (|name| folder.join(name), counts.slide.bounds_offset);
                let tissue = tissue::rings(&file(pictures::TISSUE), offset);
                let flaws = tissue::areas(&file(pictures::FLAWS), offset);
                (rows(folder)?, tissue.unwrap_or_default(), flaws.unwrap_or_default())
            }
            _ => (vec![], vec![], vec![]),
        };
        let rows = if self.blinded { without_opinion(rows) } else { rows };
        let regions = match (&item.folder, &item.counts) {
            (Some(folder), Some(counts)) => {
                let all = regions::outlines(folder, counts.slide.bounds_offset).unwrap_or_default();
                let outline = |r: regions::RegionOutline| Outline {
                    name: r.name,
                    rings: r.area.closed().into_iter().flatten().collect(),
                };
                all.into_iter().map(outline).collect()
            }
            _ => Vec::new(),
        };
        let all = |f: fn(&DetectionRow) -> f64| rows.iter().map(f).collect();
        let subtyped = rows.iter().any(|r| r.subtypes.is_some());
        let counts = item.counts.as_ref();
        let pair = counts.map(|c| Pair { seg: c.thresholds.seg, cls: c.thresholds.cls });
        let detail = Detail {
            searched: counts.is_some(),
            point: pair
                .filter(|_| !self.blinded)
                .unwrap_or(Pair { seg: Score::ZERO, cls: Score::ZERO }),
            mpp: match counts {
                Some(c) => Some([c.resolution.x, c.resolution.y]),
                None => self.mpp(id, file),
            },
            analysed_mm2: counts.map_or(0.0, |c| c.analysed_mm2),
            atypical_from: counts
                .filter(|_| !self.blinded)
                .and_then(|c| c.subtypes.as_ref()?.models.first())
                .map(|m| m.atypical_from),
            columns: Columns {
                x: all(|r| r.x_px),
                y: all(|r| r.y_px),
                s_seg: rows.iter().map(|r| r.s_seg).collect(),
                s_cls: rows.iter().map(|r| r.s_cls).collect(),
                outside: rows.iter().map(|r| r.outside_tissue).collect(),
                flaw: rows.iter().map(|r| r.flaw.map(Flaw::label)).collect(),
                p_atypical: subtyped
                    .then(|| rows.iter().map(|r| r.subtypes.map(|s| s.atypical())).collect()),
                morphology: subtyped
                    .then(|| rows.iter().map(|r| r.subtypes.map(|s| s.morphology())).collect()),
            },
            tissue,
            flaws,
            unread: counts.map_or_else(Vec::new, |c| {
                let corners = c.unread_windows.iter();
                corners.map(|u| [u.min_px[0], u.min_px[1], u.max_px[0], u.max_px[1]]).collect()
            }),
            regions,
        };
        Ok(Answer::json(200, &detail))
    }

    /// Where a slide's reviews go, and what names it there.
    fn change(&self, id: usize) -> Result<ReviewPlace<'_>, Answer> {
        let item = self.item(id)?;
        let none = || {
            Answer::refusal(
                400,
                "no folder was given for reviews of slides without a run, or of a run whose `reviews` is a link",
            )
        };
        let folder = item.reviews.as_deref().ok_or_else(none)?;
        unchanged(item)?;
        let model = item.counts.as_ref().map(|c| &c.model);
        let model_digest = model.map_or_else(String::new, model_digest);
        let of = SlideKey { slide: item.name.clone(), slide_digest: item.digest(), model_digest };
        Ok(ReviewPlace { folder, of })
    }

    /// The current reviews of a slide in the logs of all reviewers on disk.
    fn voices(&self, id: usize) -> Result<Answer, Answer> {
        let ReviewPlace { folder, of } = self.change(id)?;
        if self.blinded {
            // The verdicts of others are an opinion, too.
            return Ok(Answer::json(
                200,
                &AgreementAnswer {
                    voices: BTreeMap::new(),
                    agreement: Vec::new(),
                    disagreements: Vec::new(),
                },
            ));
        }
        let fail = |e: &dyn std::fmt::Display| Answer::refusal(500, &e.to_string());
        let mut logs = VerdictLog::read_all(folder).map_err(|e| fail(&e))?;
        let here = |o: &SlideKey| (&o.slide, &o.slide_digest) == (&of.slide, &of.slide_digest);
        logs.values_mut().for_each(|verdicts| verdicts.retain(|o, _| here(o)));
        let by_key = |verdicts: &Verdicts| {
            let entries = verdicts.values().flat_map(|s| s.entries.values());
            entries.filter_map(|e| Some((e.key.clone(), e.verdict?))).collect()
        };
        let voices = logs.iter().map(|(name, s)| (name.clone(), by_key(s))).collect();
        let agreement = agreement(&logs).map_err(|e| fail(&e))?;
        let settled = settle::settled(folder).map_err(|e| fail(&e))?;
        let near = nearby(self.item(id)?)?;
        let disagreements = disagreements(&logs, &of, &settled, near.as_ref());
        Ok(Answer::json(200, &AgreementAnswer { voices, agreement, disagreements }))
    }

    /// Keeps what was decided about a place on which reviewers differ.
    fn settle(&self, s: &Settle) -> Result<Answer, Answer> {
        let wrong = |why: &str| Answer::refusal(400, why);
        if self.blinded {
            return Err(wrong("blinded, nobody sees where reviewers differ"));
        }
        if s.verdict == Some(Verdict::Unsure) {
            return Err(wrong("a decision is a figure or none"));
        }
        let ReviewPlace { folder, of } = self.change(s.slide)?;
        self.open_to_change(folder, &of)?;
        let fail = |e: ReviewError| Answer::refusal(500, &e.to_string());
        let _one = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let logs = VerdictLog::read_all(folder).map_err(fail)?;
        let (settled, near) =
            (settle::settled(folder).map_err(fail)?, nearby(self.item(s.slide)?)?);
        let all = disagreements(&logs, &of, &settled, near.as_ref());
        let about = all.iter().find(|d| d.key == s.key);
        let about = about.ok_or_else(|| wrong("reviewers do not differ on this place"))?;
        let kept = settle::settle(folder, &s.reviewer, &of, about, s.verdict);
        Ok(Answer::json(200, &kept.map_err(|e| Answer::refusal(400, &e.to_string()))?))
    }

    /// Works on a reviewer's log. One that failed is closed: the next request reads what is on disk.
    fn with<T>(
        &self,
        folder: &Path,
        reviewer: &str,
        work: impl FnOnce(&mut VerdictLog) -> Result<T, ReviewError>,
    ) -> Result<T, Answer> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (folder.to_owned(), reviewer.to_owned());
        if !logs.contains_key(&key) {
            // Each holds an open file; one that is closed is opened again.
            if logs.len() >= OPEN_LOGS {
                logs.clear();
            }
            let log = VerdictLog::open(folder, reviewer);
            logs.insert(key.clone(), log.map_err(|e| Answer::refusal(400, &e.to_string()))?);
        }
        let Some(log) = logs.get_mut(&key) else { return Err(nothing()) };
        work(log).map_err(|e| {
            logs.remove(&key);
            Answer::refusal(500, &format!("nothing was saved: {e}"))
        })
    }

    fn record_verdict(&self, s: NewVerdict) -> Result<Answer, Answer> {
        let wrong = |why: &str| Answer::refusal(400, why);
        let item = self.item(s.slide)?;
        let place = [s.x, s.y];
        if SearchedArea::whole(item.size).check(place).is_err() {
            return Err(wrong("the place is not on the slide"));
        }
        let key = Entry::place_key(s.x, s.y);
        let expected = if s.added { format!("+{key}") } else { key };
        if s.key != expected {
            return Err(wrong("the key is not that of the place"));
        }
        if !s.added && !self.is_candidate(s.slide, &s.key)? {
            return Err(Answer::refusal(404, "no candidate there"));
        }
        if s.added && searched(item)?.check(place).is_err() {
            return Err(wrong(
                "the place is outside the regions that were searched, and would not count",
            ));
        }
        let ReviewPlace { folder, of } = self.change(s.slide)?;
        self.open_to_change(folder, &of)?;
        let (verdict, added, morphology) = (s.verdict, s.added, s.morphology);
        let is_figure = verdict.and_then(Verdict::counts) == Some(true);
        if morphology.as_deref().is_some_and(|m| !is_figure || !Entry::is_morphology(m)) {
            return Err(wrong("no morphology of a figure"));
        }
        let comment = s.comment.map(|c| c.trim().to_owned()).filter(|c| !c.is_empty());
        if comment.as_ref().is_some_and(|c| c.chars().count() > LONGEST_COMMENT) {
            return Err(wrong("the comment has more than 500 characters"));
        }
        let entry = Entry { key: s.key, x: s.x, y: s.y, verdict, added, morphology, comment };
        self.with(folder, &s.reviewer, |log| log.record(&of, entry))?;
        Ok(Answer::json(200, &Saved { saved: true }))
    }

    fn undo(&self, u: &Undo) -> Result<Answer, Answer> {
        let ReviewPlace { folder, of } = self.change(u.slide)?;
        self.open_to_change(folder, &of)?;
        let log = VerdictLog::path(folder, &u.reviewer)
            .map_err(|e| Answer::refusal(400, &e.to_string()))?;
        // Nothing is written before the first verdict.
        if !log.exists() {
            return Ok(Answer::json(200, &Undone { entry: None }));
        }
        let entry =
            self.with(folder, &u.reviewer, |log| log.undo_verdict(&of, u.key.as_deref()))?;
        Ok(Answer::json(200, &Undone { entry }))
    }

    /// Refuses a change of a slide whose case was finished.
    fn open_to_change(&self, folder: &Path, of: &SlideKey) -> Result<(), Answer> {
        match decisions::signed(folder, of).map_err(|e| Answer::refusal(500, &e.to_string()))? {
            None => Ok(()),
            Some(s) => {
                let why = format!(
                    "signed by {}, version {}: open the case again to change it",
                    s.reviewer, s.version
                );
                Err(Answer::refusal(409, &why))
            }
        }
    }

    /// What reviewers decided about a slide as a whole.
    fn desk(&self, id: usize, reviewer: &str) -> Result<Answer, Answer> {
        // A slide that has no place for verdicts has none of these either.
        if self.item(id)?.reviews.is_none() {
            return Ok(Answer::json(200, &DeskState::default()));
        }
        Ok(Answer::json(200, &self.desk_state(id, reviewer, &self.change(id)?)?))
    }

    /// The upper left corner of a slide's bounds, which regions in files are counted from: as the run has it; of a
    /// slide without a run as its file states it.
    fn bounds_offset(&self, id: usize, item: &Item) -> Result<[i64; 2], Answer> {
        if let Some(counts) = &item.counts {
            return Ok(counts.slide.bounds_offset);
        }
        let Some(file) = item.file.as_deref() else { return Ok([0, 0]) };
        let slide = self.tiles.slide(id, file);
        let slide = slide.map_err(|e| Answer::refusal(500, &e.to_string()))?;
        Ok(slide.bounds().map_or([0, 0], |b| [b.x, b.y]))
    }

    /// The regions of a slide, with who drew them.
    fn drawn(
        &self,
        id: usize,
        ReviewPlace { folder, of }: &ReviewPlace<'_>,
    ) -> Result<Option<(Drawn, Vec<DrawnRegion>)>, Answer> {
        let offset = self.bounds_offset(id, self.item(id)?)?;
        let drawn = decisions::drawn(folder, &of.slide, offset)
            .map_err(|e| Answer::refusal(500, &e.to_string()))?;
        Ok(drawn.filter(|(by, _)| by.slide_digest == of.slide_digest))
    }

    /// Whether a reviewer is shown what was drawn: blinded, only by herself.
    fn is_shown(&self, by: &Drawn, reviewer: &str) -> bool {
        !self.blinded || by.reviewer == reviewer
    }

    fn desk_state(
        &self,
        id: usize,
        reviewer: &str,
        place: &ReviewPlace<'_>,
    ) -> Result<DeskState, Answer> {
        let fail = |e: ReviewError| Answer::refusal(500, &e.to_string());
        let (item, ReviewPlace { folder, of }) = (self.item(id)?, place);
        let drawn = self.drawn(id, place)?.filter(|(by, _)| self.is_shown(by, reviewer));
        let (drawn_by, drawn) =
            drawn.map_or_else(Default::default, |(by, drawn)| (Some(by), drawn));
        let mpp = self.resolution(id, item);
        let areas: Vec<roi::Area> =
            drawn.iter().map(|d| roi::Area::polygon(&d.ring, &[])).collect();
        let union = |exclude: bool| {
            let of_kind = drawn.iter().zip(&areas).filter(|(d, _)| d.exclude == exclude);
            of_kind.fold(roi::Area::default(), |all, (_, a)| all.or(a))
        };
        let excluded = union(true);
        let all = union(false).minus(&excluded);
        let drawn_to_search = || {
            let named = |(k, (d, area)): (usize, (&DrawnRegion, &roi::Area))| {
                // As the page calls them.
                let name =
                    if d.name.is_empty() { format!("region {}", k + 1) } else { d.name.clone() };
                (!d.exclude).then(|| roi::Region {
                    name,
                    class: d.class.clone(),
                    area: area.minus(&excluded),
                })
            };
            drawn.iter().zip(&areas).enumerate().filter_map(named).collect::<Vec<_>>()
        };
        let overlaps =
            mpp.map_or_else(Vec::new, |m| roi::overlap::overlap_notes(&drawn_to_search(), m));
        let SlideSignatures { all: mut signatures, changed, other_weights, notes } =
            decisions::signatures(folder, item.folder.as_deref(), of).map_err(fail)?;
        if self.blinded {
            // Why a case was opened again, and whose logs have how many lines, are an opinion, too.
            signatures.iter_mut().for_each(|s| (s.reason, s.content) = (None, None));
        }
        Ok(DeskState {
            // Where somebody saw the most figures is an opinion, too.
            hotspot: match self.blinded {
                true => None,
                false => decisions::hotspots(folder).map_err(fail)?.remove(of),
            },
            drawn_by,
            mm2: mpp.map_or_else(Vec::new, |m| areas.iter().map(|a| a.mm2(m)).collect()),
            all_mm2: mpp.filter(|_| !all.is_empty()).map(|m| all.mm2(m)),
            overlaps,
            drawn,
            frozen: signatures.last().is_some_and(|s| s.signed),
            changed,
            other_weights,
            notes,
            signatures,
        })
    }

    fn place(&self, p: Place) -> Result<Answer, Answer> {
        let wrong = |why: &str| Answer::refusal(400, why);
        let rule = HotspotRule {
            shape: p.shape,
            fields: p.fields,
            field_mm2: p.field_mm2,
            apart: p.apart,
        };
        let most = if rule.apart { rule.fields as usize } else { 1 };
        if !rule.is_sound() || p.centres_px.len() > most || p.preset.chars().count() > 40 {
            return Err(wrong("no such hotspot: 1 to 100 fields of 0.01 to 20 mm2"));
        }
        let item = self.item(p.slide)?;
        let whole = SearchedArea::whole(item.size);
        if !p.centres_px.iter().all(|c| whole.check(*c).is_ok()) {
            return Err(wrong("the place is not on the slide"));
        }
        if is_unsearched(item, &rule, &p.centres_px)? {
            let at = places(&p.centres_px);
            return Err(wrong(&format!(
                "the place ({at}) is outside the regions that were searched: nothing was counted there"
            )));
        }
        let ReviewPlace { folder, of } = self.change(p.slide)?;
        self.open_to_change(folder, &of)?;
        let _one = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let mpp = self.resolution(p.slide, item);
        let Place { reviewer, preset, centres_px, .. } = p;
        let placement = Placement { preset, rule, centres_px, mpp };
        let placed = decisions::place(folder, &reviewer, &of, placement);
        Ok(Answer::json(200, &placed.map_err(|e| Answer::refusal(400, &e.to_string()))?))
    }

    fn draw(&self, d: &Draw) -> Result<Answer, Answer> {
        let wrong = |why: &str| Answer::refusal(400, why);
        let item = self.item(d.slide)?;
        base::log::check_name(&d.reviewer).map_err(|e| wrong(&e.to_string()))?;
        let (w, h) = item.size;
        let on_slide =
            |c: &[f64; 2]| (0.0..=w as f64).contains(&c[0]) && (0.0..=h as f64).contains(&c[1]);
        let sound = |r: &DrawnRegion| {
            (3..=20_000).contains(&r.ring.len())
                && r.ring.iter().all(on_slide)
                && r.name.chars().count() <= 80
                && r.class.chars().count() <= 80
        };
        if d.regions.len() > 200 || !d.regions.iter().all(sound) {
            return Err(wrong(
                "no such regions: at most 200, each of 3 corners or more, on the slide",
            ));
        }
        let place = self.change(d.slide)?;
        let ReviewPlace { folder, of } = &place;
        self.open_to_change(folder, of)?;
        let offset = self.bounds_offset(d.slide, item)?;
        {
            let _one = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
            let replaced = self.drawn(d.slide, &place)?.map(|(by, _)| by);
            self.is_of_the_replaced(d, replaced.as_ref())?;
            let by = Drawn {
                slide_digest: of.slide_digest.clone(),
                reviewer: d.reviewer.clone(),
                // No two states of the regions have one time.
                time: replaced.map_or(0.0, |by| by.time + 0.001).max(now()),
            };
            decisions::draw(folder, &of.slide, by, offset, &d.regions)
                .map_err(|e| Answer::refusal(500, &format!("not saved: {e}")))?;
        }
        Ok(Answer::json(200, &self.desk_state(d.slide, &d.reviewer, &place)?))
    }

    /// Refuses regions in place of others than those that the page showed.
    fn is_of_the_replaced(&self, d: &Draw, replaced: Option<&Drawn>) -> Result<(), Refusal> {
        let Some(by) = replaced else { return Ok(()) };
        if !self.is_shown(by, &d.reviewer) {
            return Err(Refusal::Hidden);
        }
        // Times are to a millisecond; their last digit may differ after reading.
        match d.seen.is_some_and(|seen| (seen - by.time).abs() < 0.0005) {
            true => Ok(()),
            false => Err(Refusal::Redrawn { reviewer: by.reviewer.clone() }),
        }
    }

    /// Writes the run of a slide at other thresholds into a folder next to it.
    fn keep_thresholds(&self, k: &Keep) -> Result<Answer, Answer> {
        let wrong = |why: &str| Answer::refusal(400, why);
        if self.blinded {
            return Err(wrong("blinded, the server has no thresholds to keep"));
        }
        let item = self.item(k.slide)?;
        unchanged(item)?;
        let folder = item
            .folder
            .as_deref()
            .ok_or_else(|| wrong("a slide without a run has no thresholds"))?;
        let _one = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = keep_point(&run_folder(folder), &k.point, self.slides.as_deref());
        let folder = kept.map_err(|e| wrong(&e.to_string()))?.display().to_string();
        Ok(Answer::json(200, &Kept { folder }))
    }

    /// Finishes the case of a slide, or opens it again: all its slides in the list.
    fn sign(&self, s: &Sign) -> Result<Answer, Answer> {
        let item = self.item(s.slide)?;
        let reopen = s.reopen.as_deref().map(str::trim);
        if reopen.is_some_and(|r| r.is_empty() || r.chars().count() > LONGEST_COMMENT) {
            return Err(Answer::refusal(400, "say why the case is opened again"));
        }
        let same = |i: &Item| match (&item.case, &item.reviews) {
            (Some(case), folder) => i.case.as_ref() == Some(case) && i.reviews == *folder,
            (None, _) => false,
        };
        let of_case: Vec<usize> =
            (0..self.items.len()).filter(|&id| id == s.slide || same(&self.items[id])).collect();
        if reopen.is_none() {
            of_case.iter().try_for_each(|&id| self.can_be_seen(id))?;
        }
        let _one = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slides = Vec::new();
        for id in of_case {
            let ReviewPlace { folder, of } = self.change(id)?;
            let fail = |e: ReviewError| Answer::refusal(400, &e.to_string());
            let signature = decisions::signed(folder, &of).map_err(fail)?;
            if signature.is_some() == reopen.is_some() {
                let results = self.items[id].folder.as_deref();
                decisions::sign(folder, results, &s.reviewer, &of, reopen).map_err(fail)?;
                slides.push(of.slide);
            }
        }
        Ok(Answer::json(200, &SignedSlides { slides }))
    }

    /// Refuses a slide whose picture cannot be opened.
    fn can_be_seen(&self, id: usize) -> Result<(), Answer> {
        let item = self.item(id)?;
        let reason = match &item.file {
            Some(file) => self.tiles.slide(id, file).err().map(|e| e.to_string()),
            None => Some(item.unopened.clone().unwrap_or_default()),
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(Refusal::Unseen { slide: item.name.clone(), reason }.into()),
        }
    }

    fn is_candidate(&self, id: usize, key: &str) -> Result<bool, Answer> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let of_slide = match keys.entry(id) {
            MapEntry::Occupied(known) => known.into_mut(),
            MapEntry::Vacant(place) => {
                let rows = self.item(id)?.folder.as_deref().map(rows).transpose()?;
                let rows = rows.unwrap_or_default();
                place.insert(rows.iter().map(|r| Entry::place_key(r.x_px, r.y_px)).collect())
            }
        };
        Ok(of_slide.contains(key))
    }
}

/// Refuses a slide whose results are not those that were read when the viewer was started: what a page shows, and what
/// would be signed.
fn unchanged(item: &Item) -> Result<(), Answer> {
    let Some(folder) = &item.folder else { return Ok(()) };
    match ResultDigests::read(Some(folder)) {
        Ok(now) if now == item.results => Ok(()),
        Ok(_) => Err(Refusal::Changed { folder: folder.clone() }.into()),
        Err(e) => Err(Answer::refusal(500, &e.to_string())),
    }
}

/// The reviewer in the query of an address.
fn query_reviewer(query: &str) -> Option<String> {
    // So that a refusal names what was typed.
    query.strip_prefix("reviewer=").map(remote::percent_decoded)
}

/// What was searched of a slide: all of one without a run.
fn searched(item: &Item) -> Result<SearchedArea, Answer> {
    let (Some(folder), Some(counts)) = (&item.folder, &item.counts) else {
        return Ok(SearchedArea::whole(item.size));
    };
    SearchedArea::read(folder, counts).map_err(|e| Answer::refusal(500, &e.to_string()))
}

/// Whether a hotspot has no part in the regions that were searched.
fn is_unsearched(item: &Item, rule: &HotspotRule, centres_px: &[[f64; 2]]) -> Result<bool, Answer> {
    let Some(resolution) = item.counts.as_ref().and_then(|c| c.resolution().ok()) else {
        return Ok(false);
    };
    let centres: Vec<_> = centres_px.iter().map(|[x, y]| mitosis::Point::new(*x, *y)).collect();
    let mm2 = searched(item)?.hotspot_mm2(rule, &centres, &resolution);
    Ok(!centres.is_empty() && mm2 == Err(Outside::Regions))
}

/// The candidates as places alone, in a neutral order: by their place on the slide.
fn without_opinion(rows: Vec<DetectionRow>) -> Vec<DetectionRow> {
    let blank = |r: DetectionRow| DetectionRow {
        s_seg: 0.0,
        s_cls: Some(0.0),
        accepted: false,
        subtypes: None,
        ..r
    };
    let mut places: Vec<_> = rows.into_iter().filter(|r| !r.outside_tissue).map(blank).collect();
    places.sort_by(|a, b| a.y_px.total_cmp(&b.y_px).then(a.x_px.total_cmp(&b.x_px)));
    places
}

fn nothing() -> Answer {
    Answer::refusal(404, "nothing here")
}

fn number(text: &str) -> Result<usize, Answer> {
    let digits = !text.is_empty() && text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(nothing)
}

fn coordinate(text: &str) -> Result<f64, Answer> {
    number(text).map(|n| n as f64)
}

/// The two halves of `X_Y.jpg`.
fn pair(text: &str) -> Result<(&str, &str), Answer> {
    text.strip_suffix(".jpg").and_then(|t| t.split_once('_')).ok_or_else(nothing)
}

fn picture(made: Result<Vec<u8>, TileError>) -> Result<Answer, Answer> {
    match made {
        Ok(body) => Ok(Answer { status: 200, kind: "image/jpeg", body }),
        Err(TileError::Outside) => Err(nothing()),
        Err(e) => Err(Answer::refusal(500, &e.to_string())),
    }
}

/// The places of a slide's candidates.
fn nearby(item: &Item) -> Result<Option<Nearby>, Answer> {
    let Some((counts, folder)) = item.counts.as_ref().zip(item.folder.as_deref()) else {
        return Ok(None);
    };
    Ok(Some(Nearby::candidates(counts, &rows(folder)?)))
}

fn rows(folder: &Path) -> Result<Vec<DetectionRow>, Answer> {
    match results(folder) {
        Ok(results) => Ok(results.rows),
        Err(e) => Err(Answer::refusal(500, &e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::open;
    use mithras::regions::{Classes, RegionSource};
    use std::sync::Arc;

    /// A Leica SCN of 1024 x 512 px at 0.25 um/px, whose picture is at x 1200, y 2000 px of a slide of 8000 x 12000 px.
    fn scn() -> Vec<u8> {
        const TILE: u32 = 512;
        let xml = r#"<?xml version="1.0"?><scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01"><collection name="c" uuid="u" sizeX="2000000" sizeY="3000000"><barcode>x</barcode><image name="i" uuid="v"><creationDate>2020-01-01T00:00:00Z</creationDate><device model="Leica SCN400" version="1"/><pixels sizeX="1024" sizeY="512"><dimension sizeX="1024" sizeY="512" r="0" ifd="0"/></pixels><view sizeX="256000" sizeY="128000" offsetX="300000" offsetY="500000" spacingZ="0"/><scanSettings><objectiveSettings><objective>20</objective></objectiveSettings><illuminationSettings><numericalAperture>0.4</numericalAperture><illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image></collection></scn>"#;
        let mut bytes = b"II*\0\0\0\0\0".to_vec();
        let tile: Vec<u8> = [200, 120, 170].repeat((TILE * TILE) as usize);
        let mut put = |part: &[u8]| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            let at = bytes.len() as u32;
            bytes.extend(part);
            at
        };
        let numbers = |all: &[u32]| all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let data = put(&tile);
        let words = put(&[xml.as_bytes(), b"\0"].concat());
        let offsets = put(&numbers(&[data, data]));
        let counts = put(&numbers(&[tile.len() as u32; 2]));
        let bits = put(&numbers(&[8 | 8 << 16, 8]));
        let per_cm = put(&numbers(&[40_000, 1]));
        // Tag, type (ASCII 2, SHORT 3, LONG 4, RATIONAL 5), count, value or its place.
        let entries = [
            (256, 4, 1, 2 * TILE),
            (257, 4, 1, TILE),
            (258, 3, 3, bits),
            (259, 3, 1, 1),
            (262, 3, 1, 2),
            (270, 2, xml.len() as u32 + 1, words),
            (277, 3, 1, 3),
            (282, 5, 1, per_cm),
            (283, 5, 1, per_cm),
            (284, 3, 1, 1),
            (296, 3, 1, 3),
            (322, 4, 1, TILE),
            (323, 4, 1, TILE),
            (324, 4, 2, offsets),
            (325, 4, 2, counts),
        ];
        let mut directory = (entries.len() as u16).to_le_bytes().to_vec();
        for (tag, kind, count, value) in entries {
            directory.extend([tag as u16, kind as u16].iter().flat_map(|n| n.to_le_bytes()));
            directory.extend([count, value].iter().flat_map(|n| n.to_le_bytes()));
        }
        directory.extend([0; 4]);
        let at = put(&directory);
        bytes[4..8].copy_from_slice(&at.to_le_bytes());
        bytes
    }

    /// Regions drawn on a slide without a run are counted from the bounds that its file states, as detection reads
    /// them.
    #[test]
    fn regions_on_a_slide_without_a_run_are_where_they_were_drawn() {
        let dir = tempfile::tempdir().unwrap();
        let (file, reviews) = (dir.path().join("s.scn"), dir.path().join("reviews"));
        std::fs::write(&file, scn()).unwrap();
        let mpp = mitosis::Mpp::new(0.25).ok();
        let options = slide::OpenOptions { mpp, ..slide::OpenOptions::default() };
        let Ok(slide) = slide::Slide::open_with(&file, &options) else {
            return eprintln!("SKIPPED: a slide that states bounds needs OpenSlide");
        };
        assert_eq!(slide.bounds().map(|b| [b.x, b.y]), Some([1200, 2000]));
        let viewer = Viewer::new(open(std::slice::from_ref(&file), None, Some(&reviews)).unwrap());
        let ring = vec![[1300.0, 2100.0], [1800.0, 2100.0], [1800.0, 2400.0], [1300.0, 2400.0]];
        let (name, class) = ("front".to_owned(), String::new());
        let region = DrawnRegion { name, class, exclude: false, ring: ring.clone() };
        let draw =
            Draw { reviewer: "anna".into(), slide: 0, regions: vec![region.clone()], seen: None };
        let answer = viewer.draw(&draw).unwrap_or_else(|refusal| refusal);
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let state: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(state["drawn"], serde_json::to_value([region]).unwrap());
        let drawn = roi::DrawnFile::read(&decisions::drawn_file(&reviews, "s"), None).unwrap();
        let source = RegionSource { file: Arc::new(drawn), classes: Classes::default() };
        let digest = mithras::input::InputDigest::from_file(&file).unwrap().sha256;
        let regions = source.read_slide_regions(&slide, "s", &digest).unwrap();
        let bounds = regions.list[0].area.bounds().unwrap();
        assert_eq!(bounds, (ring[0], ring[2]), "the same corners of level 0");
    }

    /// A slide of 800 x 700 px in a run that searched the left half of it alone.
    fn left_half(run: &Path) -> Item {
        const REGIONS: &str = r#"{"regions": {"source": {"file": "r", "format": "geojson", "sha256": ""},
            "area_mm2": 0.0175, "excluded_mm2": 0, "list": [{"name": "left", "class": "", "area_mm2": 0.0175,
            "tissue_mm2": 0, "analysed_mm2": 0, "unread_mm2": 0, "figures": 0, "hotspot_count": 0,
            "hotspot": null, "density_per_20_mm2": null}]},"#;
        let text = include_str!("../../../cli/tests/golden/release-0.1.0/run/one/counts.json");
        let counts = mithras::export::CountsFile::parse(&text.replacen('{', REGIONS, 1)).unwrap();
        let outline = r#"{"features": [{"geometry": {"coordinates":
            [[[[0, 0], [400, 0], [400, 700], [0, 700], [0, 0]]]]}, "properties": {"name": "left"}}]}"#;
        std::fs::write(run.join(regions::FILE), outline).unwrap();
        Item {
            name: "one".into(),
            folder: Some(run.to_owned()),
            unsound: None,
            size: (counts.slide.width, counts.slide.height),
            counts: Some(counts),
            file: None,
            unopened: None,
            note: String::new(),
            caveats: Vec::new(),
            case: None,
            reviews: Some(run.join("reviews")),
            results: ResultDigests::default(),
        }
    }

    /// A hotspot that was not searched would be a count of 0 in its whole area.
    #[test]
    fn a_hotspot_is_not_placed_where_nothing_was_searched() {
        let dir = tempfile::tempdir().unwrap();
        let opened = Opened { items: vec![left_half(dir.path())], slides: None };
        let viewer = Viewer::new(opened);
        let log = decisions::hotspots_file(&dir.path().join("reviews"));
        let place = |centres_px: &[[f64; 2]]| {
            let answer = viewer.place(Place {
                reviewer: "anna".into(),
                slide: 0,
                preset: "own".into(),
                shape: Shape::Circle,
                fields: 2,
                field_mm2: 0.01,
                apart: true,
                centres_px: centres_px.to_vec(),
            });
            let Answer { status, body, .. } = answer.unwrap_or_else(|refusal| refusal);
            (status, String::from_utf8(body).unwrap())
        };
        // Circles with a radius of 226 px.
        for places in [&[[640.0, 300.0]][..], &[[640.0, 300.0], [800.0, 700.0]]] {
            let (status, text) = place(places);
            assert_eq!(status, 400, "{text}");
            assert!(
                text.contains("x 640, y 300 px") && text.contains("regions that were searched")
            );
        }
        assert!(place(&[[801.0, 300.0]]).1.contains("not on the slide") && !log.exists());
        // One of two fields, a part of one, and none: taken back.
        for places in [&[[200.0, 300.0], [640.0, 300.0]][..], &[[500.0, 300.0]], &[]] {
            let (status, text) = place(places);
            assert_eq!(status, 200, "{text}");
            assert!(text.contains(r#""mpp":[0.25,0.25]"#), "{text}");
        }
        // Without the outlines it is not known what was searched.
        std::fs::remove_file(dir.path().join(regions::FILE)).unwrap();
        let (status, text) = place(&[[200.0, 300.0]]);
        assert!(status == 500 && text.contains("regions.geojson"), "{text}");
    }
}
