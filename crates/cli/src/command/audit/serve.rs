//! `mithras audit serve`: the reviewer's page, on this machine only.
//!
//! The server knows the package, not the key: labels and scores cannot reach the browser.

use anyhow::{Context, anyhow};
use corpus::audit::{Entry, Package, ReviewLog};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

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
    let server = Server::http(address)
        .map_err(|e| anyhow!("{e}"))
        .with_context(|| format!("{address}: choose another --port"))?;
    let address = server.server_addr().to_ip().context("no address")?;
    // Nobody has to go on reading what is said here.
    let _ = writeln!(
        std::io::stdout(),
        "http://{address}/\n{} pictures; reviews are saved in {}\nCtrl-C ends the server",
        package.items.len(),
        a.package.join("reviews").display()
    );
    let mut desk = Desk { dir: a.package.clone(), package, logs: HashMap::new() };
    for mut request in server.incoming_requests() {
        let answer = if is_local(&request, address.port()) {
            desk.answer(&mut request)
        } else {
            plain(403, "text/plain", b"only from this machine".to_vec())
        };
        // A browser that went away is no reason to stop.
        let _ = request.respond(answer);
    }
    Ok(ExitCode::SUCCESS)
}

type Answer = Response<std::io::Cursor<Vec<u8>>>;

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name.as_bytes(), value.as_bytes()).expect("a constant header")
}

fn plain(status: u16, kind: &str, body: Vec<u8>) -> Answer {
    Response::from_data(body)
        .with_status_code(StatusCode(status))
        .with_header(header("Content-Type", kind))
        .with_header(header("Cache-Control", "no-store"))
        .with_header(header("X-Content-Type-Options", "nosniff"))
        .with_header(header(
            "Content-Security-Policy",
            "default-src 'self'; frame-ancestors 'none'",
        ))
}

fn json_answer(status: u16, value: &Value) -> Answer {
    plain(status, "application/json", value.to_string().into_bytes())
}

/// The name in the request must be this machine's, so that no foreign page can reach the server
/// through a name of its own.
fn is_local(request: &Request, port: u16) -> bool {
    let value = |name: &'static str| {
        request.headers().iter().find(|h| h.field.equiv(name)).map(|h| h.value.as_str())
    };
    let own =
        |host: &str| host == format!("127.0.0.1:{port}") || host == format!("localhost:{port}");
    value("Host").is_some_and(own)
        && value("Origin").is_none_or(|o| o.strip_prefix("http://").is_some_and(own))
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
    logs: HashMap<String, ReviewLog>,
}

impl Desk {
    fn log(&mut self, reviewer: &str) -> Result<&mut ReviewLog, corpus::CorpusError> {
        Ok(match self.logs.entry(reviewer.to_owned()) {
            Slot::Occupied(o) => o.into_mut(),
            Slot::Vacant(v) => v.insert(ReviewLog::open(&self.dir, &self.package.audit, reviewer)?),
        })
    }

    fn answer(&mut self, request: &mut Request) -> Answer {
        let url = request.url().to_owned();
        let result = match (request.method(), url.as_str()) {
            (Method::Get, "/") => Ok(plain(200, "text/html; charset=utf-8", PAGE.into())),
            (Method::Get, "/page.css") => Ok(plain(200, "text/css", STYLE.into())),
            (Method::Get, "/page.js") => Ok(plain(200, "text/javascript", SCRIPT.into())),
            (Method::Get, path) => self.picture(path),
            (Method::Post, "/open") => body(request).and_then(|w: Who| self.state(&w.reviewer)),
            (Method::Post, "/set") => body(request).and_then(|c: Change| self.set(&c)),
            (Method::Post, "/undo") => body(request).and_then(|w: Who| self.undo(&w.reviewer)),
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

    fn state(&mut self, reviewer: &str) -> Result<Answer, (u16, String)> {
        let items: Vec<String> = self.package.items.iter().map(|i| i.id.clone()).collect();
        let question = self.package.question;
        let log = self.log(reviewer).map_err(|e| (400, e.to_string()))?;
        Ok(json_answer(
            200,
            &json!({"question": question, "items": items, "entries": log.entries()}),
        ))
    }

    fn set(&mut self, c: &Change) -> Result<Answer, (u16, String)> {
        if !self.package.items.iter().any(|i| i.id == c.item) {
            return Err((404, format!("no picture `{}`", c.item)));
        }
        let log = self.log(&c.reviewer).map_err(|e| (400, e.to_string()))?;
        log.set(&c.item, c.entry).map_err(|e| (500, e.to_string()))?;
        Ok(json_answer(200, &json!({"saved": true, "done": log.entries().len()})))
    }

    fn undo(&mut self, reviewer: &str) -> Result<Answer, (u16, String)> {
        let log = self.log(reviewer).map_err(|e| (400, e.to_string()))?;
        let item = log.undo().map_err(|e| (500, e.to_string()))?;
        let entry = item.as_ref().and_then(|i| log.entries().get(i)).copied();
        Ok(json_answer(200, &json!({"item": item, "entry": entry})))
    }
}

fn body<T: for<'de> Deserialize<'de>>(request: &mut Request) -> Result<T, (u16, String)> {
    let json = request
        .headers()
        .iter()
        .any(|h| h.field.equiv("Content-Type") && h.value.as_str().starts_with("application/json"));
    if !json {
        return Err((415, "JSON only".to_owned()));
    }
    let mut text = String::new();
    request
        .as_reader()
        .take(1 << 16)
        .read_to_string(&mut text)
        .map_err(|e| (400, e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| (400, e.to_string()))
}
