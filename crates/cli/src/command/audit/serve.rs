//! `mithras audit serve`: the reviewer's page, on this machine only.
//!
//! The server knows the package, not the key: labels and scores cannot reach the browser.

use super::http::{self, Answer, Request};
use anyhow::Context;
use corpus::audit::{Entry, Package, ReviewLog};
use mitosis::text::Shown;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Serves the review page on this machine (A2). Every key stroke is saved at once.
#[derive(clap::Args)]
pub struct Args {
    /// Package folder from `audit sample`.
    package: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8377)]
    port: u16,
}

/// Runs `audit serve` until it is interrupted.
pub fn run(a: &Args) -> anyhow::Result<ExitCode> {
    let package = Package::read(&a.package)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, a.port));
    let listener =
        TcpListener::bind(address).with_context(|| format!("{address}: choose another --port"))?;
    let address = listener.local_addr()?;
    // Nobody has to go on reading what is said here.
    let _ = writeln!(
        std::io::stdout(),
        "http://{address}/\n{} pictures; reviews are saved in {}\nCtrl-C ends the server",
        package.items.len(),
        Shown(&a.package.join("reviews"))
    );
    let desk = Desk { dir: a.package.clone(), package, logs: Mutex::default() };
    http::serve(&listener, move |request| {
        if request.is_local() {
            desk.answer(request)
        } else {
            Answer::text(403, "only from this machine")
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn plain(status: u16, kind: &'static str, body: Vec<u8>) -> Answer {
    Answer { status, kind, body }
}

fn json_answer(status: u16, value: &Value) -> Answer {
    plain(status, "application/json", value.to_string().into_bytes())
}

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

struct Desk {
    dir: PathBuf,
    package: Package,
    /// Held while a log is used, never while a request is read or an answer sent.
    logs: Mutex<HashMap<String, ReviewLog>>,
}

impl Desk {
    /// Works on a reviewer's log. One that failed is closed: the next request reads what is on disk.
    fn with<T>(
        &self,
        reviewer: &str,
        work: impl FnOnce(&mut ReviewLog) -> Result<T, corpus::CorpusError>,
    ) -> Result<T, (u16, String)> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let log = match logs.entry(reviewer.to_owned()) {
            Slot::Occupied(o) => o.into_mut(),
            Slot::Vacant(v) => v.insert(
                ReviewLog::open(&self.dir, &self.package.audit, reviewer)
                    .map_err(|e| (400, e.to_string()))?,
            ),
        };
        work(log).map_err(|e| {
            logs.remove(reviewer);
            (500, format!("nothing was saved: {e}"))
        })
    }

    fn answer(&self, request: &Request) -> Answer {
        let result = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => Ok(plain(200, "text/html; charset=utf-8", PAGE.into())),
            ("GET", "/page.css") => Ok(plain(200, "text/css", STYLE.into())),
            ("GET", "/page.js") => Ok(plain(200, "text/javascript", SCRIPT.into())),
            ("GET", path) => self.picture(path),
            ("POST", "/open") => body(request).and_then(|w: Who| self.state(&w.reviewer)),
            ("POST", "/set") => body(request).and_then(|c: Change| self.set(&c)),
            ("POST", "/undo") => body(request).and_then(|w: Who| self.undo(&w.reviewer)),
            _ => Err((404, "nothing here".to_owned())),
        };
        result.unwrap_or_else(|(status, reason)| json_answer(status, &json!({ "error": reason })))
    }

    fn picture(&self, path: &str) -> Result<Answer, (u16, String)> {
        let id = path.strip_prefix("/image/").and_then(|p| p.strip_suffix(".png"));
        let known = id.and_then(|id| self.package.items.iter().find(|i| i.id == id));
        let known = known.ok_or((404, "no such picture".to_owned()))?;
        let file = self.dir.join("images").join(format!("{}.png", known.id));
        let bytes = std::fs::read(&file).map_err(|e| (500, format!("{}: {e}", file.display())))?;
        Ok(plain(200, "image/png", bytes))
    }

    fn state(&self, reviewer: &str) -> Result<Answer, (u16, String)> {
        let items: Vec<String> = self.package.items.iter().map(|i| i.id.clone()).collect();
        let question = self.package.question;
        self.with(reviewer, |log| {
            let state = json!({"question": question, "items": items, "entries": log.entries()});
            Ok(json_answer(200, &state))
        })
    }

    fn set(&self, c: &Change) -> Result<Answer, (u16, String)> {
        if !self.package.items.iter().any(|i| i.id == c.item) {
            return Err((404, format!("no picture `{}`", c.item)));
        }
        self.with(&c.reviewer, |log| {
            log.set(&c.item, c.entry)?;
            Ok(json_answer(200, &json!({"saved": true, "done": log.entries().len()})))
        })
    }

    fn undo(&self, reviewer: &str) -> Result<Answer, (u16, String)> {
        self.with(reviewer, |log| {
            let item = log.undo()?;
            let entry = item.as_ref().and_then(|i| log.entries().get(i)).copied();
            Ok(json_answer(200, &json!({"item": item, "entry": entry})))
        })
    }
}

fn body<T: for<'de> Deserialize<'de>>(request: &Request) -> Result<T, (u16, String)> {
    if !request.header("Content-Type").is_some_and(|v| v.starts_with("application/json")) {
        return Err((415, "JSON only".to_owned()));
    }
    serde_json::from_slice(&request.body).map_err(|e| (400, e.to_string()))
}
