//! `mithras audit serve`: the reviewer's page, on this machine only.

use crate::show::print_line;
use anyhow::Context;
use base::text::{Many, Shown};
use mithras::web;
use review::audit::Desk;
use std::path::PathBuf;

/// Serves the review page on this machine. Every key stroke is saved at once.
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
    let listener = web::listen(a.port)
        .with_context(|| format!("127.0.0.1:{}: choose another --port", a.port))?;
    let (at, pictures, reviews) = (listener.local_addr()?, desk.pictures(), desk.reviews());
    let text = format!("{}; reviews are saved in {}", Many(pictures, "picture"), Shown(&reviews));
    print_line(&format!("http://{at}/\n{text}\nCtrl-C ends the server"));
    web::serve(&listener, move |request| desk.answer(request))?;
    Ok(())
}
