//! `mithras manual`: man pages and completions, for packages.

use clap::Command;
use clap_complete::{Shell, generate_to};

/// Write man pages, and completions for bash, zsh and fish
#[derive(clap::Args)]
pub struct Args {
    /// Folder; made if missing
    #[arg(long, value_name = "DIR")]
    out: std::path::PathBuf,
}

/// Writes them for the `program`, which is all verbs.
pub fn run(a: &Args, program: Command) -> anyhow::Result<()> {
    let mut command = crate::examples::with_examples(program);
    std::fs::create_dir_all(&a.out)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "mithras", &a.out)?;
    }
    Ok(clap_mangen::generate_to(command, &a.out)?)
}
