//! `mithras data`: data sets by name.

use crate::show::result;
use anyhow::Result;
use experiments::dataset::{self, DataSet};
use std::fmt;
use std::path::PathBuf;

/// Data sets by name: what they contain, where to get them, what a folder has of them
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// List all data sets with their licences
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one data set: files, places, counts, tumour types, scanners, how it is imported
    Show {
        /// Its name, as `data list` prints it
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the labels of a data set that is some tumour types of a collection (MIDOG22, MIDOGpp)
    ///
    /// The file has the collection's form; images without a label stay out.
    Part {
        /// Its name
        name: String,
        /// Label file of the collection
        #[arg(long, value_name = "JSON")]
        labels: PathBuf,
        /// File to write
        #[arg(long, value_name = "JSON")]
        out: PathBuf,
    },
    /// Count what a folder contains of each data set, and list the experiments that can run
    ///
    /// Labels are read and counted; images that they name are looked for. What is missing is named with
    /// the page where it is to be had.
    Check {
        /// Folder of the data sets, each at one of the places that `data show` prints
        root: PathBuf,
        /// Check these data sets alone
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(serde::Serialize)]
#[serde(transparent)]
struct All(Vec<DataSet>);

impl fmt::Display for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|d| writeln!(f, "{:<16} {} [{}]", d.name, d.title, d.licence))
    }
}

pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::List { json } => result(json, &All(dataset::all()?)),
        What::Show { name, json } => result(json, &dataset::find(&name)?),
        What::Part { name, labels, out } => {
            let [images, annotations] = dataset::part(&dataset::find(&name)?, &labels, &out)?;
            outln!("{}: {images} images, {annotations} annotations", out.display());
            Ok(())
        }
        What::Check { root, only, json } => result(json, &experiments::check_data(&root, &only)?),
    }
}
