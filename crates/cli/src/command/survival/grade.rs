//! `mithras survival grade`.

use crate::show::{print_messages, result};
use anyhow::Result;
use outcome::{GradePlan, Table, grade};
use std::path::PathBuf;

/// Mitotic scores of a grading scheme
#[derive(clap::Args)]
pub struct Args {
    /// counts.csv of a detection run, or any table of counts
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
    /// nottingham, fnclcc, gist, who-net, or a TOML file of the same form
    #[arg(long, value_name = "SCHEME")]
    scheme: String,
    /// Field diameter in mm (Nottingham)
    #[arg(long, value_name = "MM")]
    field_diameter: Option<f64>,
    /// Column that names the slide
    #[arg(long, value_name = "COLUMN", default_value = "slide")]
    slide_column: String,
    /// Column of counts in the hotspot
    #[arg(long, value_name = "COLUMN", default_value = "hotspot_count")]
    hotspot_column: String,
    /// Area the counts refer to, mm2
    #[arg(long, value_name = "MM2", default_value_t = 2.0)]
    area: f64,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let plan = GradePlan {
        scheme: args.scheme.clone(),
        field_diameter: args.field_diameter,
        slide_column: args.slide_column.clone(),
        hotspot_column: args.hotspot_column.clone(),
        area_mm2: args.area,
    };
    let grades = grade(&Table::read(&args.counts, &[])?, &plan)?;
    print_messages("note", &grades.notes);
    if let Some(out) = &args.out {
        grades.write_csv(out)?;
    }
    result(args.json, &grades)
}
