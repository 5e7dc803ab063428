//! Answers the page's requests.

use crate::error::{PageError, full_message};
use crate::look;
use crate::places::{self, Place};
use crate::results::results;
use crate::work::{Desk, Plan, Progress};
use infer::{EngineOptions, ModelCard, ModelPackage};
use mithras::batch::{self, Existing, Input};
use mithras::regions::Classes;
use mithras::{Builder, Thresholds};
use mitosis::Mpp;
use pages::server::{Answer, Request};
use pages::{Page, Script};
use review::view::{Grading, Viewer, open, recount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAGE: Page<'_> = Page {
    title: "mithras",
    style: include_str!("page/start.css"),
    body: include_str!("page/index.html"),
    script: Script::Files { plain: &[], modules: &["start.js"] },
};
const SCRIPTS: [(&str, &str); 2] =
    [("start.js", include_str!("page/start.js")), ("common.js", pages::COMMON)];
/// Folder of the reports, in that of the run.
const REPORTS: &str = "reports";
/// Folder of reviews in that of the run, and in it that of drawn regions.
const REVIEWS: &str = "reviews";
const DRAWN: &str = "regions";

/// Settings of the command line.
#[derive(Clone, Default)]
pub struct Settings {
    /// A package of one's own; without it the bundled ones can be chosen.
    pub model: Option<PathBuf>,
    /// How networks run.
    pub engine: EngineOptions,
    /// Folder in which new folders for results are proposed; without it `mithras` in the user's own.
    pub out: Option<PathBuf>,
    /// The command line, which the files of a run name.
    pub command: Vec<String>,
    /// Opens a folder in the computer's own file browser.
    pub reveal: Option<fn(&Path) -> std::io::Result<()>>,
}

/// A package that can be chosen.
#[derive(Serialize)]
struct Model {
    /// What is sent back to choose it.
    name: String,
    points: Vec<NamedPoint>,
    /// um/px of the slides it takes.
    range: Option<[f64; 2]>,
    #[serde(skip)]
    card: ModelCard,
}

#[derive(Serialize)]
struct NamedPoint {
    name: String,
    precision: f64,
    recall: f64,
    own: bool,
}

#[derive(Serialize)]
struct Begin<'a> {
    version: String,
    places: Vec<Place>,
    /// Where the page begins to list.
    at: Option<String>,
    models: &'a [Model],
}

#[derive(Serialize)]
struct Chosen {
    slides: Vec<ChosenSlide>,
    /// What was not taken for a slide of its own, one line each.
    notes: Vec<String>,
    /// A folder for their results, which does not exist yet.
    out: String,
}

#[derive(Serialize)]
struct ChosenSlide {
    id: usize,
    name: String,
    path: String,
}

#[derive(Serialize)]
struct Link {
    name: String,
    url: String,
}

#[derive(Serialize)]
struct Reports {
    folder: String,
    pages: Vec<Link>,
}

#[derive(Serialize)]
struct Address {
    url: String,
    /// Where the regions that are drawn on a slide without results will be.
    regions: Option<String>,
}

#[derive(Serialize)]
struct FolderExists {
    found: bool,
}

#[derive(Serialize)]
struct Opened {
    opened: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choose {
    paths: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookAt {
    id: usize,
    model: String,
    mpp: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Go {
    slides: Vec<usize>,
    regions: Option<PathBuf>,
    /// A table of cases.
    #[serde(default)]
    table: Option<PathBuf>,
    model: String,
    point: Option<String>,
    mpp: Option<f64>,
    out: PathBuf,
    existing: Wish,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Wish {
    Refuse,
    Resume,
    Overwrite,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewOf {
    /// A run, or a slide.
    path: PathBuf,
    /// Of a slide that has no results as yet: the folder that they will be in, for what is drawn before.
    #[serde(default)]
    out: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountWith {
    path: PathBuf,
    reviewer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportOf {
    path: PathBuf,
    scheme: Option<String>,
    field_diameter: Option<f64>,
}

/// A run or slide under view.
struct Viewed {
    id: usize,
    run: PathBuf,
    reviews: Option<PathBuf>,
    viewer: Arc<Viewer>,
}

/// The start page: answers requests by their path below the server's token.
pub struct Start {
    settings: Settings,
    models: Vec<Model>,
    desk: Desk,
    /// Slides that were chosen, by their number.
    chosen: Mutex<Vec<PathBuf>>,
    /// Viewers of runs, below `view/N/`, and the next N.
    viewers: Mutex<(Vec<Viewed>, usize)>,
    /// Pages of reports, by their number.
    reports: Mutex<Vec<PathBuf>>,
}

impl Start {
    /// A page on which nothing is chosen yet.
    ///
    /// # Errors
    /// [`PageError::Package`] or [`PageError::NoPackage`].
    pub fn new(settings: Settings) -> Result<Self, PageError> {
        let packages: Vec<(String, ModelPackage)> = match &settings.model {
            Some(model) => {
                let package = ModelPackage::find(Some(model))?;
                vec![(package.card.name.clone(), package)]
            }
            None => ModelPackage::bundled_names()
                .map(|n| Ok((n.to_owned(), ModelPackage::bundled_named(n)?)))
                .collect::<Result<_, PageError>>()?,
        };
        let detects = |(_, p): &(String, ModelPackage)| p.card.segmenter.is_some();
        let mut models: Vec<Model> =
            packages.into_iter().filter(detects).map(|(name, p)| model(name, p.card)).collect();
        models.sort_by_key(|m| m.name != infer::DEFAULT);
        if models.is_empty() {
            return Err(PageError::NoPackage);
        }
        Ok(Self {
            settings,
            models,
            desk: Desk::default(),
            chosen: Mutex::default(),
            viewers: Mutex::default(),
            reports: Mutex::default(),
        })
    }

    /// How far the run is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.desk.progress()
    }

    /// Answers one request.
    pub fn answer(&self, request: &Request) -> Answer {
        if let Some((viewer, path)) = self.viewer(&request.path) {
            return viewer.answer(&request.at(path));
        }
        let (path, _) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let below = path.strip_prefix('/').unwrap_or(path);
        let result = match request.method.as_str() {
            "GET" => self.get(below),
            "POST" => self.post(below, request),
            _ => Err(nothing()),
        };
        result.unwrap_or_else(|refusal| refusal)
    }

    fn get(&self, path: &str) -> Result<Answer, Answer> {
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
            ["api", "begin"] => Ok(Answer::json(200, &self.begin())),
            ["api", "run"] => Ok(Answer::json(200, &self.desk.progress())),
            ["picture", file] => {
                let id = file.strip_suffix(".jpg").ok_or_else(nothing)?;
                let input = self.input(number(id)?, None)?;
                let opener = Builder::default().opener(&self.models[0].card);
                let body = look::picture(&input, &opener)?;
                Ok(Answer { status: 200, kind: "image/jpeg", body })
            }
            ["report", id, _] => {
                let file = held(&self.reports).get(number(id)?).cloned().ok_or_else(nothing)?;
                let body = base::file::read_whole(&file)
                    .map_err(|e| refusal(&format!("{}: {e}", file.display())))?;
                Ok(Answer { status: 200, kind: "application/pdf", body })
            }
            _ => Err(nothing()),
        }
    }

    fn post(&self, path: &str, request: &Request) -> Result<Answer, Answer> {
        match path {
            "api/list" => {
                let at: At = request.json()?;
                Ok(Answer::json(200, &places::list(&at.path)?))
            }
            "api/choose" => self.choose(&request.json()?),
            "api/look" => self.look(&request.json()?),
            "api/start" => Ok(Answer::json(200, &self.start(request.json()?)?)),
            "api/cancel" => Ok(Answer::json(200, &self.desk.cancel())),
            "api/results" => {
                let at: At = request.json()?;
                Ok(Answer::json(200, &results(&at.path)?))
            }
            "api/recount" => {
                let c: CountWith = request.json()?;
                recount(&c.path, &c.reviewer, None, true).map_err(PageError::from)?;
                Ok(Answer::json(200, &results(&c.path)?))
            }
            "api/view" => self.view(&request.json()?),
            "api/drawn" => {
                let at: At = request.json()?;
                Ok(Answer::json(200, &FolderExists { found: at.path.is_dir() }))
            }
            "api/report" => self.report(&request.json()?),
            "api/reveal" => {
                let at: At = request.json()?;
                let reveal = self.settings.reveal.ok_or_else(nothing)?;
                let folder = at.path.as_path();
                let fail = |e: &dyn std::fmt::Display| {
                    refusal(&format!("{}: cannot be opened: {e}", folder.display()))
                };
                if !folder.is_dir() {
                    return Err(fail(&"no such folder"));
                }
                reveal(folder).map_err(|e| fail(&e))?;
                Ok(Answer::json(200, &Opened { opened: true }))
            }
            _ => Err(nothing()),
        }
    }

    fn begin(&self) -> Begin<'_> {
        let at = places::home().and_then(|h| h.to_str().map(str::to_owned));
        let version = mithras::program();
        Begin { version, places: places::places(), at, models: &self.models }
    }

    fn model(&self, name: &str) -> Result<&Model, Answer> {
        let unknown = || refusal(&format!("`{name}` is not a model of this page"));
        self.models.iter().find(|m| m.name == name).ok_or_else(unknown)
    }

    /// A chosen slide as an input.
    fn input(&self, id: usize, mpp: Option<Mpp>) -> Result<Input, Answer> {
        let path = held(&self.chosen).get(id).cloned().ok_or_else(nothing)?;
        Ok(Input { mpp, ..Input::new(&path) })
    }

    /// The slides of files and folders, each with its number.
    fn choose(&self, c: &Choose) -> Result<Answer, Answer> {
        let found = batch::find(&c.paths, None, &BTreeMap::new()).map_err(PageError::from)?;
        let paths: Vec<PathBuf> = found.slides.iter().map(|s| s.path.clone()).collect();
        let mut chosen = held(&self.chosen);
        let notes = found.notes();
        let slides = found.slides.into_iter().map(|slide| {
            let id = chosen.iter().position(|p| *p == slide.path).unwrap_or_else(|| {
                chosen.push(slide.path.clone());
                chosen.len() - 1
            });
            ChosenSlide { id, name: slide.name, path: slide.path.display().to_string() }
        });
        let slides = slides.collect();
        let own = || places::home().unwrap_or_else(std::env::temp_dir).join("mithras");
        let parent = self.settings.out.clone().unwrap_or_else(own);
        let out = places::fresh(&parent, &paths).display().to_string();
        Ok(Answer::json(200, &Chosen { slides, notes, out }))
    }

    fn look(&self, l: &LookAt) -> Result<Answer, Answer> {
        let opener = Builder::default().opener(&self.model(&l.model)?.card);
        let input = self.input(l.id, mpp(l.mpp)?)?;
        Ok(Answer::json(200, &look::look(&input, &opener)))
    }

    fn start(&self, g: Go) -> Result<Progress, PageError> {
        if g.slides.is_empty() {
            return Err(PageError::NoSlides);
        }
        if !g.out.is_absolute() {
            return Err(PageError::PartialPath(g.out));
        }
        let paths = {
            let chosen = held(&self.chosen);
            let path = |id: &usize| chosen.get(*id).cloned().ok_or(PageError::NoSlide(*id));
            g.slides.iter().map(path).collect::<Result<Vec<_>, _>>()?
        };
        let mpp = g.mpp.map(Mpp::new).transpose()?;
        let mut found = batch::find(&paths, mpp, &BTreeMap::new())?;
        let mut remarks = found.notes();
        if let Some(table) = &g.table {
            let note = found.take_columns(table, &mithras::report::written_columns())?;
            remarks.extend(note.map(|n| base::text::plain_lines(&n.to_string())));
        }
        if let Some(regions) = &g.regions {
            found.restrict(regions, &[], &Classes::default(), None)?;
        }
        let own = self.settings.model.as_deref();
        let package = ModelPackage::find(Some(own.unwrap_or(Path::new(&g.model))))?;
        let thresholds = g.point.map_or(Thresholds::Package, Thresholds::Named);
        let existing = match g.existing {
            Wish::Refuse => Existing::Refuse,
            Wish::Resume => Existing::Resume,
            Wish::Overwrite => Existing::Overwrite,
        };
        let (engine, command) = (self.settings.engine.clone(), self.settings.command.clone());
        let out = g.out.clone();
        let slides = found.slides;
        let plan = Plan { slides, package, thresholds, out, existing, engine, command, remarks };
        let progress = self.desk.begin(plan)?;
        // A viewer opened before shows what was there then.
        held(&self.viewers).0.retain(|v| v.run != g.out);
        Ok(progress)
    }

    /// The viewer that a path below `view/N` belongs to, and what follows.
    fn viewer(&self, path: &str) -> Option<(Arc<Viewer>, String)> {
        let (id, below) = path.strip_prefix("/view/")?.split_once('/')?;
        let id = number(id).ok()?;
        let viewers = held(&self.viewers);
        let found = viewers.0.iter().find(|v| v.id == id)?;
        Some((Arc::clone(&found.viewer), format!("/{below}")))
    }

    /// The address of the viewer of a run, or of a slide.
    fn view(&self, v: &ViewOf) -> Result<Answer, Answer> {
        if let Some(out) = v.out.as_ref().filter(|out| !out.is_absolute()) {
            return Err(PageError::PartialPath(out.clone()).into());
        }
        let reviews = v.out.as_ref().map(|out| out.join(REVIEWS));
        let regions = reviews.as_ref().map(|r| r.join(DRAWN).display().to_string());
        let address =
            |id: usize| Answer::json(200, &Address { url: format!("view/{id}/"), regions });
        let is_same = |old: &&Viewed| old.run == v.path && old.reviews == reviews;
        if let Some(old) = held(&self.viewers).0.iter().find(is_same) {
            return Ok(address(old.id));
        }
        let opened = open(std::slice::from_ref(&v.path), None, reviews.as_deref());
        let viewer = Arc::new(Viewer::new(opened.map_err(|e| refusal(&full_message(&e)))?));
        let (viewers, next) = &mut *held(&self.viewers);
        let id = *next;
        *next += 1;
        viewers.push(Viewed { id, run: v.path.clone(), reviews, viewer });
        Ok(address(id))
    }

    /// Writes the pages of a run's cases and gives their addresses.
    fn report(&self, r: &ReportOf) -> Result<Answer, Answer> {
        let scheme = r.scheme.as_deref().map(|s| Grading::load(s, r.field_diameter)).transpose();
        let scheme = scheme.map_err(|e| refusal(&full_message(&e)))?;
        let folder = r.path.join(REPORTS);
        let written = clinic::report(&r.path, &folder, None, scheme.as_ref());
        let written = written.map_err(|e| refusal(&full_message(&e)))?;
        let mut reports = held(&self.reports);
        let link = |(case, file): &(String, String)| {
            let path = folder.join(format!("{file}.pdf"));
            let id = reports.iter().position(|p| *p == path).unwrap_or_else(|| {
                reports.push(path);
                reports.len() - 1
            });
            Link { name: case.clone(), url: format!("report/{id}/report.pdf") }
        };
        let pages = written.cases.iter().map(link).collect();
        Ok(Answer::json(200, &Reports { folder: folder.display().to_string(), pages }))
    }
}

fn model(name: String, card: ModelCard) -> Model {
    let own = card.operating_point.as_ref().map(|p| (p.seg, p.cls));
    let point = |(name, p): (&String, &infer::card::NamedPoint)| NamedPoint {
        name: name.clone(),
        precision: p.precision,
        recall: p.recall,
        own: own == Some((p.seg, p.cls)),
    };
    let points = card.operating_points.iter().map(point).collect();
    let range = card.resolution.map(|r| [r.min.get(), r.max.get()]);
    Model { name, points, range, card }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nothing() -> Answer {
    Answer::refusal(404, "nothing here")
}

fn refusal(words: &str) -> Answer {
    Answer::refusal(400, words)
}

fn number(text: &str) -> Result<usize, Answer> {
    let digits = !text.is_empty() && text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(nothing)
}

fn mpp(value: Option<f64>) -> Result<Option<Mpp>, Answer> {
    Ok(value.map(Mpp::new).transpose().map_err(PageError::from)?)
}
