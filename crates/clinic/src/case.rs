//! A run's results and reviews by case.

use base::remedy::{Remedied, Remedy};
use base::text::{Many, Shown};
use mithras::batch::DetectionState;
use mithras::export::{CountsFile, HOTSPOT_MM2};
use mithras::record::DetectionRow;
use mithras::report::{PlacedCount, Results, Reviewed, Unfinished, case_name, one_reviewer};
use mitosis::hotspots::HotspotRule;
use mitosis::{Level0, Point};
use review::view::decisions::{self, LogTexts, PlacedHotspot, Signature, SlideFile};
use review::view::{SearchedArea, TOGETHER, run_folders};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why a run has no cases.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// `run.json` is missing or damaged.
    #[error(transparent)]
    Run(#[from] base::json::JsonError),
    /// The folder has no `run.json`.
    #[error(
        "{}: this folder has no run.json; gather the run again, or name the folder of a run",
        Shown(folder)
    )]
    NotGathered {
        /// The folder.
        folder: PathBuf,
    },
    /// Reviews.
    #[error(transparent)]
    Review(#[from] review::view::ReviewError),
    /// The run's folders.
    #[error(transparent)]
    Open(#[from] review::view::OpenError),
    /// A slide's folder that `run.json` does not list: without a page it would be missing in silence.
    #[error("{}: this slide is not in run.json; gather the run again", Shown(folder))]
    Unlisted {
        /// Folder of the slide.
        folder: PathBuf,
    },
    /// No slide is done.
    #[error("{}: no slide of this run is finished{}", path.display(), reason(first))]
    Nothing {
        /// Folder of the run.
        path: PathBuf,
        /// The first slide that is not, with the reason.
        first: Option<(String, String)>,
    },
}

#[derive(Deserialize)]
struct Run {
    version: String,
    config_sha256: String,
    slides: Vec<Line>,
    #[serde(default)]
    unfinished: Vec<String>,
    #[serde(default)]
    left_out: Vec<String>,
    #[serde(default)]
    without_result: Vec<Unfinished>,
}

impl Run {
    /// Every slide with or without a result; `run` is its folder.
    fn lines(self, run: &Path) -> Vec<Line> {
        let mut open = self.without_result;
        // Of earlier versions, which noted the names alone.
        for name in &self.unfinished {
            if open.iter().all(|s| s.name != *name) {
                let state = DetectionState::load(&run.join(name));
                let columns = state.map(|s| s.columns).unwrap_or_default();
                open.push(Unfinished { name: name.clone(), columns });
            }
        }
        let line = |Unfinished { name, columns }: Unfinished| {
            let reason = match (self.unfinished.contains(&name), self.left_out.contains(&name)) {
                (true, _) => "detection has not ended",
                (_, true) => "its results are of another configuration than the others",
                _ => "detection has not begun",
            };
            let (status, reason) = ("unfinished".to_owned(), Some(reason.to_owned()));
            Line { name, folder: None, status, reason, columns, counts: None, reviewed: None }
        };
        self.slides.into_iter().chain(open.into_iter().map(line)).collect()
    }
}

#[derive(Deserialize)]
struct Line {
    name: String,
    /// Relative to the run's folder, where it is not the one of its name there: of tables over several runs.
    #[serde(default)]
    folder: Option<String>,
    status: String,
    reason: Option<String>,
    #[serde(default)]
    columns: Vec<(String, String)>,
    counts: Option<CountsFile>,
    reviewed: Option<Reviewed>,
}

impl Line {
    fn folder(&self, run: &Path) -> PathBuf {
        run.join(self.folder.as_deref().unwrap_or(&self.name))
    }
}

/// What cases are kept by while a run is read: a slide without a case may be called as a case is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CaseKey {
    name: String,
    is_slide: bool,
}

/// One slide of a case.
pub struct Slide {
    /// Its name.
    pub name: String,
    /// That of the run.
    pub folder: PathBuf,
    /// Its `counts.json`.
    pub counts: CountsFile,
    /// Its file, where that exists and is still the one of the run.
    pub file: Option<PathBuf>,
    /// The rows of its `detections.csv`.
    pub rows: Vec<DetectionRow>,
    /// The same with a reviewer's verdicts.
    pub reviewed: Option<Reviewed>,
    /// Places of the reviewer's figures; none where the log is not in the run, or was changed after the recount.
    pub reviewed_places: Option<Vec<Point<Level0>>>,
    /// Logs that were changed after the recount, by name: its numbers are not those of the reviews as they are now.
    pub changed_logs: Vec<String>,
    /// The hotspot that a reviewer placed: of the recount, else as it was kept last, by the reviewer if there is one.
    pub placed: Option<Placed>,
    /// Who signed it, and what has changed since.
    pub signed: Option<Signature>,
    /// When it was searched, seconds since 1970; none where that is not known.
    pub searched: Option<u64>,
}

impl Slide {
    /// The part of the square of 2 mm2 around a place that was searched, mm2; none where that is not known.
    fn square_mm2(&self, [x, y]: [f64; 2]) -> Option<f64> {
        let (resolution, at) = (self.counts.resolution().ok()?, [Point::new(x, y)]);
        let searched = SearchedArea::read(&self.folder, &self.counts).ok()?;
        searched.hotspot_mm2(&HotspotRule::PAPER, &at, &resolution).ok()
    }
}

/// A hotspot that a reviewer placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Who.
    pub reviewer: String,
    /// When, seconds since 1970.
    pub time: f64,
    /// Name of the rule.
    pub preset: String,
    /// The rule.
    pub rule: HotspotRule,
    /// Its centre, or those of its fields, level-0 px.
    pub centres_px: Vec<[f64; 2]>,
}

impl From<PlacedCount> for Placed {
    fn from(p: PlacedCount) -> Self {
        let PlacedCount { reviewer, time, preset, rule, centres_px, .. } = p;
        Self { reviewer, time, preset, rule, centres_px }
    }
}

impl From<PlacedHotspot> for Placed {
    fn from(p: PlacedHotspot) -> Self {
        let PlacedHotspot { reviewer, time, preset, rule, centres_px, .. } = p;
        Self { reviewer, time, preset, rule, centres_px }
    }
}

/// The hotspot that gives a case its number.
pub struct Headline<'a> {
    /// Its slide.
    pub slide: &'a Slide,
    /// Mitotic figures in the hotspot.
    pub figures: usize,
    /// Its area on the slide, mm2.
    pub mm2: f64,
    /// Its area by the rule: more where it hangs over the edge of the slide.
    pub whole_mm2: f64,
    /// The hotspot, where a reviewer placed it and it was asked for in the recount.
    pub placed: Option<&'a PlacedCount>,
}

/// The slides that a list puts into one case, or a slide that is a case of its own.
pub struct Case {
    /// Its name.
    pub name: String,
    /// Fields of the list that are the same on all its slides.
    pub fields: Vec<(String, String)>,
    /// Its slides with a result.
    pub slides: Vec<Slide>,
    /// Its slides without one, with the reason.
    pub missing: Vec<(String, String)>,
    /// Version of the program that searched.
    pub version: String,
    /// Digest of the configuration.
    pub config: String,
}

impl Case {
    /// The cases of a run, by name. `slides`: the folder of the slides' files, if they have moved.
    ///
    /// # Errors
    /// [`CaseError`].
    pub fn all(run: &Path, slides: Option<&Path>) -> Result<Vec<Self>, CaseError> {
        let path = run.join("run.json");
        if run.is_dir() && !path.exists() {
            return Err(CaseError::NotGathered { folder: run.to_owned() });
        }
        let file: Run = base::json::read(&path)?;
        let (version, config) = (file.version.clone(), file.config_sha256.clone());
        let lines = file.lines(run);
        let mut files = files(run, &lines, slides)?;
        let mut cases: BTreeMap<CaseKey, Self> = BTreeMap::new();
        let listed = |line: &Line| case_name(&line.columns).map(str::to_owned);
        let names: BTreeSet<String> = lines.iter().filter_map(listed).collect();
        for line in lines {
            let key = match listed(&line) {
                Some(name) => CaseKey { name, is_slide: false },
                None => CaseKey { name: line.name.clone(), is_slide: true },
            };
            let name = match key.is_slide && names.contains(&key.name) {
                true => format!("{} (slide without a case)", key.name),
                false => key.name.clone(),
            };
            let case = cases.entry(key).or_insert_with(|| Self {
                name,
                fields: line.columns.clone(),
                slides: Vec::new(),
                missing: Vec::new(),
                version: version.clone(),
                config: config.clone(),
            });
            case.fields.retain(|field| line.columns.contains(field));
            let folder = line.folder(run);
            let Some(counts) = line.counts else {
                case.missing.push((line.name, line.reason.unwrap_or(line.status)));
                continue;
            };
            // What is there now may be damaged, or not what the numbers of the run were gathered from.
            let found = match mithras::report::results(&folder) {
                Ok(found) if same(&found.counts, &counts) => {
                    same_recount(&folder, line.reviewed.as_ref()).map(|()| found)
                }
                Ok(_) => {
                    Err("its folder has other counts than run.json; gather the run again".into())
                }
                Err(e) => Err(e.to_string()),
            };
            let found = match found {
                Ok(found) => found,
                Err(reason) => {
                    case.missing.push((line.name, reason));
                    continue;
                }
            };
            let file = files.remove(&folder).flatten();
            case.slides.push(slide(folder, line.name, line.reviewed, found, file)?);
        }
        let cases: Vec<Self> = cases.into_values().collect();
        if cases.iter().all(|c| c.slides.is_empty()) {
            let first = cases.into_iter().flat_map(|c| c.missing).next();
            return Err(CaseError::Nothing { path: run.to_owned(), first });
        }
        Ok(cases)
    }

    /// The slide with the highest hotspot, of equal ones the first: by the reviewer's verdicts where all slides were
    /// reviewed, else by the network.
    #[must_use]
    pub fn best(&self) -> Option<&Slide> {
        let reviewed = self.is_reviewed();
        let figures = |s: &Slide| match (&s.reviewed, reviewed) {
            (Some(r), true) => r.hotspot_count,
            _ => s.counts.hotspot_count,
        };
        // No figure on tissue comes before no tissue.
        let count = |s: &&Slide| (figures(s), s.counts.has_tissue);
        // Of equal ones the first by name.
        self.slides.iter().rev().max_by_key(count)
    }

    /// The hotspot that gives the case its number: of those that a reviewer placed, where the recount asked for them,
    /// the one with most figures, whether or not the other slides were reviewed; else the densest square of the best
    /// slide. None without slides.
    #[must_use]
    pub fn headline(&self) -> Option<Headline<'_>> {
        let placed = self.slides.iter();
        let placed = placed.filter_map(|s| Some((s, s.reviewed.as_ref()?.placed.as_ref()?)));
        // Of equal ones the first by name.
        if let Some((slide, p)) = placed.rev().max_by_key(|(_, p)| p.figures) {
            let centres: Vec<_> = p.centres_px.iter().map(|[x, y]| Point::new(*x, *y)).collect();
            let whole = slide.counts.resolution().map(|r| p.rule.placed_mm2(&centres, &r));
            let whole_mm2 = whole.map_or(p.area_mm2, |mm2| (mm2 * 1e6).round() / 1e6);
            let mm2 = p.area_mm2;
            return Some(Headline { slide, figures: p.figures, mm2, whole_mm2, placed: Some(p) });
        }
        let slide = self.best()?;
        let (figures, centre) = match (&slide.reviewed, self.is_reviewed()) {
            (Some(r), true) => (r.hotspot_count, r.hotspot_px),
            _ => (slide.counts.hotspot_count, slide.counts.hotspot.map(|h| h.centre_px)),
        };
        // Without figures the square has no place, and is whole.
        let mm2 = centre.and_then(|at| slide.square_mm2(at)).unwrap_or(HOTSPOT_MM2);
        Some(Headline { slide, figures, mm2, whole_mm2: HOTSPOT_MM2, placed: None })
    }

    /// The slide whose pictures are shown: that of the headline, if a reviewer placed no hotspot on another.
    #[must_use]
    pub fn shown(&self) -> Option<&Slide> {
        let headline = self.headline()?;
        let by_hand = |s: &&Slide| s.placed.is_some();
        let other = self.slides.iter().find(by_hand).filter(|_| !by_hand(&headline.slide));
        Some(other.unwrap_or(headline.slide))
    }

    /// Whether the reviewer's verdicts count in what the page shows of a slide: where they do on all, and where the
    /// hotspot that gives the number was placed on it.
    #[must_use]
    pub fn shows_review(&self, slide: &Slide) -> bool {
        self.is_reviewed() || slide.reviewed.as_ref().is_some_and(|r| r.placed.is_some())
    }

    /// Whether one reviewer's verdicts count on all slides with candidates.
    #[must_use]
    pub fn is_reviewed(&self) -> bool {
        let all = self.slides.iter().map(|s| (&s.counts, s.reviewed.as_ref()));
        one_reviewer(all).is_some()
    }
}

/// The slides' files by the slides' folders, where they are available. Every slide of the folders of runs is listed,
/// and done with the configuration of the others.
fn files(
    run: &Path,
    lines: &[Line],
    slides: Option<&Path>,
) -> Result<BTreeMap<PathBuf, Option<PathBuf>>, CaseError> {
    let counted = lines.iter().filter(|l| l.counts.is_some()).map(|l| l.folder(run));
    let mut runs: BTreeSet<PathBuf> =
        counted.filter(|f| f.is_dir()).filter_map(|f| f.parent().map(Path::to_owned)).collect();
    if !run_folders(run)?.is_empty() {
        runs.insert(run.to_owned());
    }
    if runs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let opened = review::view::open(&Vec::from_iter(runs), slides, None)?;
    let items = opened.items.into_iter().filter_map(|i| Some((i.name, i.folder?, i.file)));
    let names: BTreeSet<&str> = lines.iter().map(|l| l.name.as_str()).collect();
    // Folders whose name begins with a dot are not of the run.
    let listed = |name: &str| names.contains(name) || name.starts_with('.');
    items
        .map(|(name, folder, file)| match listed(&name) {
            true => Ok((folder, file)),
            false => Err(CaseError::Unlisted { folder }),
        })
        .collect()
}

/// The first slide that is not there, as the end of a sentence.
fn reason(first: &Option<(String, String)>) -> String {
    first.as_ref().map(|(name, why)| format!(": {name}: {why}")).unwrap_or_default()
}

/// Compares the recount in a slide's folder with the one that the run was gathered from; else the reason.
fn same_recount(folder: &Path, gathered: Option<&Reviewed>) -> Result<(), String> {
    let here = Reviewed::read(folder).map_err(|e| e.to_string())?;
    if here.as_ref().and_then(Reviewed::read_back).as_ref() == gathered {
        return Ok(());
    }
    let numbers = |r: Option<&Reviewed>| match r {
        Some(r) => format!("{} by {}", Many(r.figures, "figure"), r.reviewer),
        None => "none".to_owned(),
    };
    Err(format!(
        "its folder has another recount ({}) than run.json ({}); gather the run again",
        numbers(here.as_ref()),
        numbers(gathered)
    ))
}

/// Whether two counts are of one file and one detection.
fn same(a: &CountsFile, b: &CountsFile) -> bool {
    let numbers = |c: &CountsFile| (c.candidates, c.figures, c.hotspot_count);
    let made_from =
        |c: &CountsFile| (c.slide.digest.clone(), c.model.clone(), c.thresholds.clone());
    numbers(a) == numbers(b) && made_from(a) == made_from(b)
}

/// The logs that are not as they were when a slide was recounted; nothing is known of recounts of earlier versions.
fn changed_logs(
    reviews: &Path,
    recount: &Reviewed,
    slide: SlideFile<'_>,
) -> Result<Vec<String>, CaseError> {
    let Some(logs) = &recount.logs else { return Ok(Vec::new()) };
    let now = LogTexts::read(reviews, |name| logs.contains_key(name))?;
    let now = now.digests(logs.keys().map(String::as_str), slide);
    Ok(logs
        .iter()
        .filter(|(name, digest)| now.get(*name) != Some(*digest))
        .map(|l| l.0.clone())
        .collect())
}

/// Whether the reviews that were counted are in the run, as far as that is known.
fn of_run(recount: &Reviewed) -> bool {
    recount.logs.as_ref().is_none_or(|logs| {
        recount.reviewer.split(TOGETHER).all(|name| logs.contains_key(&format!("{name}.jsonl")))
    })
}

fn slide(
    folder: PathBuf,
    name: String,
    reviewed: Option<Reviewed>,
    found: Results,
    file: Option<PathBuf>,
) -> Result<Slide, CaseError> {
    let reviews = folder.with_file_name("reviews");
    let this = SlideFile { name: &name, digest: &found.counts.slide.digest };
    let placed = match reviewed.as_ref().and_then(|r| r.placed.clone()) {
        Some(p) => Some(p.into()),
        None => {
            let whose = reviewed.as_ref().map(|r| r.reviewer.as_str());
            decisions::reviewers_hotspot(&reviews, whose, this)?.map(Placed::from)
        }
    };
    let signed = decisions::signed_slide(&reviews, Some(&folder), this)?;
    let searched = std::fs::metadata(folder.join("counts.json"))
        .and_then(|m| m.modified())
        .ok()
        .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok())
        .map(|d| d.as_secs());
    let places = match &reviewed {
        // A recount may use a log from elsewhere, whose name is not a reviewer's name.
        Some(r) if r.reviewer.split(TOGETHER).all(|n| base::log::check_name(n).is_ok()) => {
            let regions = mithras::regions::outlines(&folder, found.counts.slide.bounds_offset)?;
            review::view::figures_after_review(&reviews, &r.reviewer, &found, &regions)?
        }
        _ => None,
    };
    let changed_logs = match &reviewed {
        Some(r) => changed_logs(&reviews, r, this)?,
        None => Vec::new(),
    };
    let places = places.filter(|p| {
        let counted = |r: &Reviewed| r.figures == p.len() && of_run(r);
        changed_logs.is_empty() && reviewed.as_ref().is_some_and(counted)
    });
    let Results { counts, rows } = found;
    Ok(Slide {
        name,
        folder,
        file,
        counts,
        rows,
        reviewed,
        reviewed_places: places,
        changed_logs,
        placed,
        signed,
        searched,
    })
}

impl Remedied for CaseError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, CaseError};
    use crate::page::{Block, page};
    use mithras::batch::DetectionState;
    use mithras::batch::state::Status;
    use mithras::report::{ReportError, Reviewed, assign, counts, gather};
    use mitosis::hotspots::HotspotRule;
    use review::view::decisions::{Placement, place};
    use review::view::{Entry, SlideKey, Verdict, VerdictLog, recount};
    use std::path::{Path, PathBuf};

    /// The run that release 0.1.0 left of the slide `one`.
    fn run(folder: &Path) -> PathBuf {
        fn copy(from: &Path, to: &Path) {
            std::fs::create_dir_all(to).unwrap();
            for path in std::fs::read_dir(from).unwrap().map(|e| e.unwrap().path()) {
                let target = to.join(path.file_name().unwrap());
                match path.is_dir() {
                    true => copy(&path, &target),
                    false => drop(std::fs::copy(&path, &target).unwrap()),
                }
            }
        }
        let run = folder.join("run");
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/release-0.1.0");
        copy(&golden.join("run"), &run);
        run
    }

    fn key(run: &Path) -> SlideKey {
        let counts = counts(&run.join("one")).unwrap();
        SlideKey {
            slide: "one".into(),
            slide_digest: counts.slide.digest,
            model_digest: counts.model.segmenter_sha256,
        }
    }

    /// Judges the candidate of the run, or with `added` a place near it.
    fn judge(run: &Path, verdict: Verdict, added: bool) {
        let (x, y) = if added { (400.0, 335.57) } else { (375.05, 335.57) };
        let (morphology, comment) = (None, None);
        let place_key = format!("{}{}", if added { "+" } else { "" }, Entry::place_key(x, y));
        let entry =
            Entry { key: place_key, x, y, verdict: Some(verdict), added, morphology, comment };
        let mut log = VerdictLog::open(&run.join("reviews"), "anna").unwrap();
        log.record(&key(run), entry).unwrap();
    }

    fn first(run: &Path) -> Case {
        Case::all(run, None).unwrap().remove(0)
    }

    fn changed(run: &Path) -> Vec<String> {
        first(run).slides.remove(0).changed_logs
    }

    #[test]
    fn slides_without_a_result_are_missing_in_their_cases_also_of_gathered_runs() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        for (name, case, status) in [
            ("one", "K1", Status::Finished),
            ("big", "K1", Status::Running),
            ("late", "K2", Status::Running),
        ] {
            let mut state = DetectionState::load(&run.join("one")).unwrap();
            (state.status, state.columns) = (status, vec![("case".into(), case.into())]);
            std::fs::create_dir_all(run.join(name)).unwrap();
            state.save(&run.join(name)).unwrap();
        }
        judge(&run, Verdict::Figure, false);
        let all = dir.path().join("all");
        for into in [&run, &all] {
            gather(std::slice::from_ref(&run), Some(into)).unwrap();
            let cases = Case::all(into, None).unwrap();
            let shown = |c: &Case| (c.name.clone(), c.slides.len(), c.missing.clone());
            let open = |name: &str| vec![(name.to_owned(), "detection has not ended".to_owned())];
            let expected = [("K1".to_owned(), 1, open("big")), ("K2".to_owned(), 0, open("late"))];
            assert_eq!(cases.iter().map(shown).collect::<Vec<_>>(), expected);
        }
        // Reviews and results are those of the run.
        recount(&run, "anna", None, false).unwrap();
        gather(std::slice::from_ref(&run), Some(&all)).unwrap();
        let case = Case::all(&all, None).unwrap().remove(0);
        assert!(case.is_reviewed() && case.slides[0].reviewed_places.is_some());
        assert!(case.slides[0].folder.join("counts.json").is_file());
    }

    #[test]
    fn a_slide_without_a_case_is_not_a_part_of_the_case_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        std::fs::create_dir(run.join("pad")).unwrap();
        for path in std::fs::read_dir(run.join("one")).unwrap().map(|e| e.unwrap().path()) {
            std::fs::copy(&path, run.join("pad").join(path.file_name().unwrap())).unwrap();
        }
        let list = dir.path().join("list.csv");
        std::fs::write(&list, "slide,case\none.tiff,\npad.tiff,one\n").unwrap();
        assign(std::slice::from_ref(&run), &list).unwrap();
        gather(std::slice::from_ref(&run), None).unwrap();
        let cases = Case::all(&run, None).unwrap();
        let slides = |c: &Case| c.slides.iter().map(|s| s.name.clone()).collect::<Vec<_>>();
        let all: Vec<_> = cases.iter().map(|c| (c.name.as_str(), slides(c))).collect();
        let expected = [("one", "pad"), ("one (slide without a case)", "one")];
        assert_eq!(all, expected.map(|(case, slide)| (case, vec![slide.to_owned()])));
    }

    #[test]
    fn a_review_after_the_recount_is_noticed_whatever_the_number_of_figures() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        judge(&run, Verdict::Figure, false);
        recount(&run, "anna", None, false).unwrap();
        assert!(changed(&run).is_empty() && first(&run).slides[0].reviewed_places.is_some());
        // One figure is taken out, and one added.
        judge(&run, Verdict::Mimicker, false);
        judge(&run, Verdict::Figure, true);
        assert_eq!(changed(&run), ["anna.jsonl"]);
        let case = first(&run);
        assert!(case.slides[0].reviewed_places.is_none());
        let (mut head, mut notes) = (String::new(), Vec::new());
        for block in page(&case, None).blocks {
            match block {
                Block::Main(_, what) => head = what,
                Block::Notes(all) => notes.extend(all),
                _ => {}
            }
        }
        assert!(head.contains("the reviews were changed after the recount"), "{head}");
        assert!(notes[0].contains("one: anna.jsonl: changed after the recount"), "{notes:?}");
        // Nothing but the number is known of a recount of an earlier version.
        let folder = run.join("one");
        let earlier = Reviewed { logs: None, ..Reviewed::read(&folder).unwrap().unwrap() };
        earlier.write(&folder).unwrap();
        gather(std::slice::from_ref(&run), None).unwrap();
        assert!(changed(&run).is_empty() && first(&run).slides[0].reviewed_places.is_some());
        // The log of the run is not the one that was counted.
        let elsewhere = dir.path().join("anna.jsonl");
        std::fs::copy(run.join("reviews/anna.jsonl"), &elsewhere).unwrap();
        recount(&run, elsewhere.to_str().unwrap(), None, false).unwrap();
        assert!(changed(&run).is_empty() && first(&run).slides[0].reviewed_places.is_none());
    }

    #[test]
    fn a_hotspot_that_was_moved_after_the_recount_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        let hotspot = |who: &str, x: f64| {
            let (preset, rule) = ("paper".to_owned(), HotspotRule::PAPER);
            let placed = Placement { preset, rule, centres_px: vec![[x, 335.57]], mpp: None };
            place(&run.join("reviews"), who, &key(&run), placed).unwrap();
        };
        judge(&run, Verdict::Figure, false);
        recount(&run, "anna", None, false).unwrap();
        hotspot("anna", 375.05);
        assert!(changed(&run).is_empty(), "the recount was not of a placed hotspot");
        recount(&run, "anna", None, true).unwrap();
        hotspot("bert", 390.0);
        assert!(changed(&run).is_empty(), "the recount was not of this reviewer's");
        hotspot("anna", 380.0);
        assert_eq!(changed(&run), ["hotspots.log"]);
        let note =
            "hotspots.log: changed after the recount, whose numbers these are; recount the run";
        let notes = || crate::page::notes(&first(&run)).join("; ");
        assert!(notes().contains(note), "{}", notes());
        recount(&run, "anna", None, true).unwrap();
        assert!(changed(&run).is_empty() && !notes().contains(note), "{}", notes());
        // A recount of an earlier version, which counted in a larger area than was searched.
        let folder = run.join("one");
        let mut earlier = Reviewed::read(&folder).unwrap().unwrap();
        earlier.placed.as_mut().unwrap().area_mm2 += 1.0;
        earlier.write(&folder).unwrap();
        gather(std::slice::from_ref(&run), None).unwrap();
        assert!(notes().contains("the hotspot was counted in "), "{}", notes());
        recount(&run, "anna", None, true).unwrap();
        assert!(!notes().contains("the hotspot was counted in "), "{}", notes());
    }

    #[test]
    fn a_recount_that_was_changed_by_hand_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path());
        judge(&run, Verdict::Figure, false);
        recount(&run, "anna", None, false).unwrap();
        let edit = |file: &str, before: &str, after: &str| {
            let text = std::fs::read_to_string(run.join(file)).unwrap();
            assert!(text.contains(before), "{text}");
            std::fs::write(run.join(file), text.replace(before, after)).unwrap();
        };
        let reason = || match Case::all(&run, None) {
            Err(CaseError::Nothing { first: Some((_, why)), .. }) => why,
            other => panic!("{:?}", other.map(|cases| cases.len())),
        };
        let (counted, other) = ("\"hotspot_count\": 1,", "\"hotspot_count\": 7,");
        edit("one/recount.json", counted, other);
        assert!(reason().contains("recount.json: its numbers have SHA-256 "), "{}", reason());
        let refused = gather(std::slice::from_ref(&run), None);
        assert!(matches!(refused, Err(ReportError::Recount { .. })), "{refused:?}");
        recount(&run, "anna", None, false).unwrap();
        assert_eq!(first(&run).slides.len(), 1);
        edit("run.json", counted, other);
        assert!(
            reason().contains("its folder has another recount (1 figure by anna) than run.json"),
            "{}",
            reason()
        );
        gather(std::slice::from_ref(&run), None).unwrap();
        assert_eq!(first(&run).slides.len(), 1);
    }
}
