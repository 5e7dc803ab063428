//! `mithras manual`: man pages and completions, for packages.

use clap_complete::{Shell, generate_to};

/// Write man pages, and completions for bash, zsh and fish
#[derive(clap::Args)]
pub struct Args {
    /// Folder; made if missing
    #[arg(long, value_name = "DIR")]
    out: std::path::PathBuf,
}

pub fn run(a: &Args, program: clap::Command) -> anyhow::Result<()> {
    let mut command = crate::examples::with_examples(program);
    std::fs::create_dir_all(&a.out)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "mithras", &a.out)?;
    }
    Ok(clap_mangen::generate_to(command, &a.out)?)
}
