//! The reviewer's page.

use crate::OPEN_LOGS;
use crops::CorpusError;
use crops::audit::{Entry, Item, Package, Question, ReviewLog};
use pages::server::{Answer, Request};
use pages::{COMMON, Page, Script};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const PAGE: Page<'_> = Page {
    title: "Blinded review",
    style: include_str!("page.css"),
    body: include_str!("page.html"),
    script: Script::Files { plain: &[], modules: &["page.js"] },
};
const SCRIPT: &str = include_str!("page.js");
const CODE: &str = "text/javascript; charset=utf-8";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    reviewer: String,
    item: String,
    entry: Option<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Who {
    reviewer: String,
}

#[derive(Serialize)]
struct Open<'a> {
    question: Question,
    items: &'a [Item],
    /// The path of the log, below the package.
    log: String,
    entries: &'a BTreeMap<String, Entry>,
}

#[derive(Serialize)]
struct Saved {
    saved: bool,
    done: usize,
}

#[derive(Serialize)]
struct Undone {
    item: Option<String>,
    entry: Option<Entry>,
}

fn page(kind: &'static str, text: &str) -> Answer {
    Answer { status: 200, kind, body: text.into() }
}

/// A package under review. It knows no labels and no scores, so none can reach the browser.
pub struct Desk {
    dir: PathBuf,
    package: Package,
    /// Held while a log is used, never while a request is read or an answer sent.
    logs: Mutex<HashMap<String, ReviewLog>>,
}

impl Desk {
    /// Opens a package of an audit.
    ///
    /// # Errors
    /// When it is not there or damaged.
    pub fn open(dir: &Path) -> Result<Self, CorpusError> {
        let package = Package::read(dir)?;
        Ok(Self { dir: dir.to_owned(), package, logs: Mutex::default() })
    }

    /// How many pictures there are.
    #[must_use]
    pub fn pictures(&self) -> usize {
        self.package.items.len()
    }

    /// Where the reviews are saved.
    #[must_use]
    pub fn reviews(&self) -> PathBuf {
        self.dir.join("reviews")
    }

    /// Works on a reviewer's log. One that failed is closed: the next request reads what is on disk.
    fn with<T>(
        &self,
        reviewer: &str,
        work: impl FnOnce(&mut ReviewLog) -> Result<T, CorpusError>,
    ) -> Result<T, Answer> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        // Each holds an open file; one that is closed is opened again.
        if logs.len() >= OPEN_LOGS && !logs.contains_key(reviewer) {
            logs.clear();
        }
        let log = match logs.entry(reviewer.to_owned()) {
            Slot::Occupied(o) => o.into_mut(),
            Slot::Vacant(v) => v.insert(
                ReviewLog::open(&self.dir, &self.package.audit, reviewer)
                    .map_err(|e| Answer::refusal(400, &e.to_string()))?,
            ),
        };
        work(log).map_err(|e| {
            logs.remove(reviewer);
            Answer::refusal(500, &format!("nothing was saved: {e}"))
        })
    }

    /// Answers one request of the page.
    pub fn answer(&self, request: &Request) -> Answer {
        let result = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => Ok(page("text/html; charset=utf-8", &PAGE.html())),
            ("GET", "/page.js") => Ok(page(CODE, SCRIPT)),
            ("GET", "/common.js") => Ok(page(CODE, COMMON)),
            ("GET", path) if path.starts_with("/log/") => self.log(path),
            ("GET", path) => self.picture(path),
            ("POST", "/open") => request.json().and_then(|w: Who| self.state(&w.reviewer)),
            ("POST", "/set") => request.json().and_then(|c: Change| self.set(&c)),
            ("POST", "/undo") => request.json().and_then(|w: Who| self.undo(&w.reviewer)),
            _ => Err(Answer::refusal(404, "nothing here")),
        };
        result.unwrap_or_else(|refusal| refusal)
    }

    fn picture(&self, path: &str) -> Result<Answer, Answer> {
        let id = path.strip_prefix("/image/").and_then(|p| p.strip_suffix(".png"));
        let known = id.and_then(|id| self.package.items.iter().find(|i| i.id == id));
        let known = known.ok_or_else(|| Answer::refusal(404, "no such picture"))?;
        let file = self.dir.join("images").join(format!("{}.png", known.id));
        let bytes = base::file::read_whole(&file)
            .map_err(|e| Answer::refusal(500, &format!("{}: {e}", file.display())))?;
        Ok(Answer { status: 200, kind: "image/png", body: bytes })
    }

    fn state(&self, reviewer: &str) -> Result<Answer, Answer> {
        let (question, items) = (self.package.question, &self.package.items[..]);
        let log = format!("reviews/{reviewer}.jsonl");
        self.with(reviewer, |l| {
            Ok(Answer::json(200, &Open { question, items, log, entries: l.entries() }))
        })
    }

    /// A copy of a log, for reviewers at another machine than the package's.
    fn log(&self, path: &str) -> Result<Answer, Answer> {
        let name = path.strip_prefix("/log/").and_then(|p| p.strip_suffix(".jsonl"));
        let name = name.filter(|n| base::log::check_name(n).is_ok());
        let nothing = || Answer::refusal(404, "no such log");
        let file = self.reviews().join(format!("{}.jsonl", name.ok_or_else(nothing)?));
        let body = base::file::read_whole(file).map_err(|_| nothing())?;
        Ok(Answer { status: 200, kind: "application/jsonl", body })
    }

    fn set(&self, c: &Change) -> Result<Answer, Answer> {
        if !self.package.items.iter().any(|i| i.id == c.item) {
            return Err(Answer::refusal(404, &format!("no picture `{}`", c.item)));
        }
        self.with(&c.reviewer, |log| {
            log.set(&c.item, c.entry)?;
            Ok(Answer::json(200, &Saved { saved: true, done: log.entries().len() }))
        })
    }

    fn undo(&self, reviewer: &str) -> Result<Answer, Answer> {
        self.with(reviewer, |log| {
            let item = log.undo()?;
            let entry = item.as_ref().and_then(|i| log.entries().get(i)).copied();
            Ok(Answer::json(200, &Undone { item, entry }))
        })
    }
}
