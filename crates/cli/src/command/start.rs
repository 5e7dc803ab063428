//! `mithras start`: the start page, for people without a command line.

use super::detect::EngineArgs;
use crate::progress::print_message;
use crate::show::print_line;
use anyhow::Context;
use mithras::web;
use start::{Settings, Start};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Pick slides, count their figures and look at the results, in a browser
///
/// Opens a page of this computer in the browser. Slides or folders are picked (drives, home, or a typed path), with
/// regions if there are any, and shown with um/px, scanner and warnings. Detection can be cancelled and resumed. Then
/// come figures, hotspot and counts, the viewer, the report as PDF, and the folder. Only this computer is answered,
/// and only with the whole address. On Windows a double click on mithras.exe does the same. See docs/start.md.
#[derive(clap::Args)]
pub struct Args {
    /// Folder in which folders for results are proposed [default: mithras in the home folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Only print the address, and open no browser
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Runs `start` until it is ended.
pub fn run(a: Args) -> anyhow::Result<()> {
    let out = a.out.as_deref().map(std::path::absolute).transpose().context("--out")?;
    let settings = Settings {
        model: a.engine.model().map(Path::to_owned),
        engine: a.engine.options(),
        out,
        command: crate::progress::typed_words(),
        reveal: Some(reveal),
    };
    let start = Start::new(settings)?;
    let server = web::Server::bind(Ipv4Addr::LOCALHOST.into(), a.port)
        .with_context(|| format!("port {}: choose another --port, or none", a.port))?;
    let url = server.url()?;
    print_line(&format!("{url}\nthe page is open as long as this runs; Ctrl-C ends it"));
    if !a.no_browser
        && let Err(e) = open::that_detached(&url)
    {
        print_message("note", &format!("no browser could be opened ({e}); the address is above"));
    }
    server.serve(move |request| start.answer(request))?;
    Ok(())
}

/// Opens a folder in the computer's own file browser.
fn reveal(folder: &Path) -> std::io::Result<()> {
    open::that_detached(folder)
}

/// What a double click means: on Windows, no word at all opens the start page; elsewhere it is help that is asked for.
pub fn with_verb(typed: Vec<std::ffi::OsString>, windows: bool) -> Vec<std::ffi::OsString> {
    let mut words = typed;
    if windows && words.len() == 1 {
        words.push("start".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::with_verb;

    #[test]
    fn a_double_click_on_windows_is_start() {
        let typed = |w: &[&str]| w.iter().map(|w| (*w).into()).collect::<Vec<_>>();
        assert_eq!(with_verb(typed(&["mithras"]), true), typed(&["mithras", "start"]));
        assert_eq!(with_verb(typed(&["mithras"]), false), typed(&["mithras"]));
        assert_eq!(with_verb(typed(&["mithras", "demo"]), true), typed(&["mithras", "demo"]));
    }
}
