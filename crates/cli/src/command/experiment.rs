//! `mithras experiment`: the paper's tables and figures as commands.

use crate::progress::LogArgs;
use crate::{interrupt, show::result};
use anyhow::{Context, Result};
use detect::CancelToken;
use experiments::run::{Ended, Options, memory_gib};
use experiments::spec::DataKind;
use experiments::{Chosen, Workflow, report, spec};
use std::path::PathBuf;
use std::process::ExitCode;

/// The paper's tables and figures, each one command: list, show, run, report, export
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
#[allow(clippy::large_enum_variant, reason = "parsed once per process")]
enum What {
    /// List all experiments
    List,
    /// Show one experiment: what it repeats, its data sets, its steps
    Show {
        /// Its name, as `experiment list` prints it
        id: String,
    },
    /// Run one or several experiments and write the report
    ///
    /// Each step is a mithras command. What is done is not done again; a step runs again if its command,
    /// its data or what it needs changed. A killed run continues with the same command. A failed step
    /// stops only what needs it. `all` runs every experiment of the paper, `public` those on public data
    /// (`subtypes-public` ...), which need no GPU.
    ///
    /// Example: mithras experiment run subtypes-public --data DATA --encoders ENCODERS --out runs --threads 2
    Run {
        #[command(flatten)]
        run: RunArgs,
        #[command(flatten)]
        log: LogArgs,
    },
    /// Write the report of a run again: HTML, CSV, LaTeX, figures
    Report {
        /// Folder of `experiment run`
        dir: PathBuf,
    },
    /// Write the graph as a Snakemake workflow whose rules call this program
    Export {
        /// The kind of workflow
        #[arg(long, required = true)]
        snakemake: bool,
        #[command(flatten)]
        steps: StepArgs,
        /// File to write
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

/// What a run and a workflow share.
#[derive(clap::Args, Clone, Debug)]
struct StepArgs {
    /// Experiments, or `all`, or `public`
    #[arg(required = true)]
    ids: Vec<String>,
    /// Folder of the data sets (`data check` lists what is missing)
    #[arg(long, value_name = "ROOT")]
    data: Option<PathBuf>,
    /// Folder of encoders' weights, under the file names that `experiment show` prints
    #[arg(long, value_name = "ROOT")]
    encoders: Option<PathBuf>,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Run this step, or all whose names begin with it, and what it needs; may be repeated
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Threads of each step [default: all cores divided by the jobs; in a workflow 1]
    #[arg(long)]
    threads: Option<usize>,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Run the whole experiment in minutes on drawn slides with tiny networks; its numbers mean nothing
    #[arg(long, conflicts_with_all = ["data", "encoders"])]
    shrink: bool,
}

#[derive(clap::Args, Debug)]
struct RunArgs {
    #[command(flatten)]
    steps: StepArgs,
    /// Steps at the same time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// GiB of memory for all steps together [default: 80 % of the machine's]
    #[arg(long, value_name = "GIB")]
    memory: Option<f64>,
    /// Print the steps with their state and an estimate of hours, and stop
    #[arg(long)]
    dry_run: bool,
    /// Run this step and nothing else, while other processes run other steps (for workflows)
    #[arg(long, value_name = "STEP", hide = true)]
    alone: Option<String>,
    /// Print what came of each step as JSON
    #[arg(long)]
    json: bool,
}

impl StepArgs {
    fn chosen(&self) -> Result<Chosen> {
        let kind = match self.ids.as_slice() {
            [one] if one == "all" => Some(DataKind::Paper),
            [one] if one == "public" => Some(DataKind::Public),
            _ => None,
        };
        let experiments = match kind {
            Some(kind) => {
                let all = spec::all()?.into_iter();
                all.filter(|e| e.data == kind).map(|e| e.id).collect()
            }
            None => self.ids.clone(),
        };
        Ok(Chosen { experiments, only: self.only.clone(), shrink: self.shrink })
    }

    /// The command that runs one step, up to its name.
    fn command(&self) -> Vec<String> {
        let mut words = vec!["mithras".to_owned(), "experiment".into(), "run".into()];
        words.extend(self.ids.iter().cloned());
        let out = Some(self.out.clone());
        let folders = [("--data", &self.data), ("--encoders", &self.encoders), ("--out", &out)];
        for (flag, folder) in folders {
            words.extend(folder.iter().flat_map(|f| [flag.to_owned(), f.display().to_string()]));
        }
        words.extend(self.shrink.then(|| "--shrink".to_owned()));
        let settings = ["--threads", "{threads}", "--device", &self.device, "--alone"];
        words.extend(settings.map(str::to_owned));
        words
    }
}

impl RunArgs {
    fn options(&self, cancel: &CancelToken) -> Result<Options> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let StepArgs { data, encoders, out, threads, device, .. } = self.steps.clone();
        Ok(Options {
            out,
            data,
            encoders,
            program: std::env::current_exe().context("where this program is")?,
            jobs: self.jobs.max(1),
            threads: threads.unwrap_or((cores / self.jobs.max(1)).max(1)),
            device,
            memory: self.memory.or_else(|| Some(memory_gib()? * 0.8)).unwrap_or(8.0),
            cancel: cancel.flag(),
            alone: self.alone.clone(),
        })
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::List => {
            spec::all()?.iter().for_each(|e| outln!("{:<20} {}", e.id, e.title));
        }
        What::Show { id } => crate::show::text(&spec::find(&id)?.described()?),
        What::Report { dir } => outln!("{}", report::write(&dir)?.display()),
        What::Run { run, log } => return perform(&run, &log),
        What::Export { steps, to, .. } => {
            let (command, report) =
                (steps.command(), ["mithras", "experiment", "report"].map(str::to_owned));
            let report = [&report[..], &[steps.out.display().to_string()]].concat();
            let threads = steps.threads.unwrap_or(1);
            let w = Workflow { command: &command, report: &report, out: &steps.out, threads };
            base::file::write(&to, experiments::workflow(&steps.chosen()?, &w)?.as_bytes())?;
            outln!("{}", to.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn perform(run: &RunArgs, log: &LogArgs) -> Result<ExitCode> {
    let cancel = CancelToken::default();
    let (chosen, options) = (run.steps.chosen()?, run.options(&cancel)?);
    if run.dry_run {
        result(run.json, &experiments::plan(&chosen, &options)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    interrupt::cancels(&cancel)?;
    let (summary, page) = experiments::perform(&chosen, &options, &mut *log.listener(false))?;
    if run.json {
        crate::show::json(&summary)?;
    } else {
        let count = |fits: fn(&Ended) -> bool| summary.count(fits);
        crate::progress::print_progress(&format!(
            "{} steps: {} done, {} done before, {} failed, {} not run",
            summary.steps.len(),
            count(|e| matches!(e, Ended::Done { .. })),
            count(|e| matches!(e, Ended::Before)),
            count(|e| matches!(e, Ended::Failed { .. })),
            count(|e| matches!(e, Ended::Blocked { .. } | Ended::Cancelled)),
        ));
        outln!("{}", page.display());
    }
    Ok(super::exit(summary.not_done(), summary.steps.len()))
}
