//! `mithras audit serve`: the reviewer's page, on this machine only.

use crate::show::print_line;
use anyhow::Context;
use base::text::{Many, Shown};
use mithras::web;
use review::audit::Desk;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Serves the review page on this machine. Every key stroke is saved at once.
///
/// The first line printed is the page's address. It holds a secret that is new at every start: without it
/// other users of this machine see no picture and no log, and save no verdict.
#[derive(clap::Args)]
pub struct Args {
    /// Package folder from `audit sample`.
    package: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8377)]
    port: u16,
}

/// Runs `audit serve` until it is interrupted.
pub fn run(a: &Args) -> anyhow::Result<()> {
    let desk = Desk::open(&a.package)?;
    let server = web::Server::bind(Ipv4Addr::LOCALHOST.into(), a.port)
        .with_context(|| format!("port {} of this machine: choose another --port", a.port))?;
    let (pictures, reviews) = (desk.pictures(), desk.reviews());
    let text = format!("{}; reviews are saved in {}", Many(pictures, "picture"), Shown(&reviews));
    print_line(&format!("{}\n{text}\nCtrl-C ends the server", server.url()?));
    server.serve(move |request| desk.answer(request))?;
    Ok(())
}
