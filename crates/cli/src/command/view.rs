//! `mithras view` and `mithras recount`: slides in the browser, and the count after review.

use crate::show::{print_line, result};
use anyhow::Context;
use base::text::Many;
use mithras::Thresholds;
use mithras::report::AtPoint;
use mithras::web;
use review::view::{Grading, Viewer, open};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show slides, what was found on them, and review it, in a browser
///
/// Serves a page on this machine: pan and zoom, accepted and rejected candidates, hotspot, tissue and density, and both
/// thresholds to be turned. The first line printed is its address; who has it may look and review. A reviewer's
/// verdicts are saved at once into RUN/reviews/REVIEWER.jsonl; `mithras recount` counts with them. See docs/view.md.
#[derive(clap::Args)]
pub struct Args {
    /// Runs (folders of `mithras detect`), single folders of a run, slides, or folders of slides
    #[arg(required = true, value_name = "RUN|SLIDE")]
    inputs: Vec<PathBuf>,
    /// Folder with the slides of a run, if they have moved [default: where the run read them]
    #[arg(long, value_name = "DIR")]
    slides: Option<PathBuf>,
    /// Folder of the review logs [default: RUN/reviews]
    #[arg(long, value_name = "DIR")]
    reviews: Option<PathBuf>,
    /// Port; 0 takes a free one
    #[arg(long, default_value_t = 8378)]
    port: u16,
    /// Another address of this machine, which others can then reach
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), hide_default_value = true)]
    host: IpAddr,
    /// Blinded for everybody: no score, no count and no operating point leaves the server
    #[arg(long)]
    blinded: bool,
    /// Only print the address; this version opens no browser in either case
    #[arg(long)]
    no_browser: bool,
}

/// Runs `view` until it is interrupted.
pub fn run(a: Args) -> anyhow::Result<()> {
    let opened = open(&a.inputs, a.slides.as_deref(), a.reviews.as_deref())?;
    let viewer = Viewer::new(opened).blinded(a.blinded);
    let server = web::Server::bind(a.host, a.port)
        .with_context(|| format!("{}:{}: choose another --port", a.host, a.port))?;
    if !a.host.is_loopback() {
        let text = format!("every machine that reaches {} and has the address can look", a.host);
        crate::progress::print_message("warning", &text);
    }
    let slides = Many(viewer.slides(), "slide");
    print_line(&format!("{}\n{slides}; Ctrl-C ends the server", server.url()?));
    server.serve(move |request| viewer.answer(request))?;
    Ok(())
}

/// Count a run again with a reviewer's verdicts on top
///
/// Shows figures, hotspot and density side by side, as the network has them and as reviewed, each with
/// its exact 95 % Poisson interval. The density has one over resampled windows of tissue, too, and slides
/// with less than 2 mm2 of tissue are marked. Writes recount.csv, writes counts.csv and summary.html again
/// with both numbers, and reports the agreement of the run's reviewers (kappa).
#[derive(clap::Args)]
pub struct RecountArgs {
    /// Folder of `mithras detect`
    run: PathBuf,
    /// A reviewer's name (RUN/reviews/NAME.jsonl) or a log; several names as anna+bert, with what was settled in
    /// `mithras view`. Or GeoJSON that was corrected in QuPath, a file or a folder (`mithras export qupath`)
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "operating_point")]
    reviews: Option<String>,
    /// Which hotspot counts: the densest 2 mm2 (Chebyshev distance), or the one that this reviewer placed in `mithras
    /// view`
    #[arg(long, value_name = "WHICH", default_value = "densest", value_parser = ["densest", "reviewed"])]
    hotspot: String,
    /// Another operating point, without another detection: a name in the package's card (balanced, sensitive,
    /// specific), or two thresholds, first and second stage. Writes every file as `mithras detect` would at that point
    #[arg(long, value_name = "NAME|SEG,CLS", requires = "into", conflicts_with_all = ["reviews", "mitotic_score"])]
    operating_point: Option<Thresholds>,
    /// Folder for the run at the other operating point; made if missing, and empty
    #[arg(long, value_name = "DIR", requires = "operating_point")]
    into: Option<PathBuf>,
    /// The run's model package, where it is not a bundled one: it names operating points
    #[arg(long, value_name = "DIR", requires = "operating_point")]
    model: Option<PathBuf>,
    /// Folder where the slides of the run are now [default: where the run read them]
    #[arg(long, value_name = "DIR", requires = "operating_point")]
    slides: Option<PathBuf>,
    /// Mitotic score of the hotspots by a scheme: nottingham, fnclcc, gist, who-net, or a TOML file of the same form
    #[arg(long, alias = "grade", value_name = "SCHEME")]
    mitotic_score: Option<String>,
    /// Field diameter in mm (Nottingham)
    #[arg(long, value_name = "MM", requires = "mitotic_score")]
    field_diameter: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn recount(a: RecountArgs) -> anyhow::Result<ExitCode> {
    if let Some((thresholds, into)) = a.operating_point.as_ref().zip(a.into.as_deref()) {
        let command = crate::progress::typed_words();
        let (package, slides) = (a.model.as_deref(), a.slides.as_deref());
        let of = AtPoint { run: &a.run, into, thresholds, package, slides, command: &command };
        let run = mithras::report::at_point(&of)?;
        super::detect::print_result(into, &run, a.json)?;
        let open = run.failed + run.without_result.len();
        return Ok(super::exit(open, run.done + open));
    }
    let grading = a.mitotic_score.map(|g| Grading::load(&g, a.field_diameter)).transpose()?;
    let reviews = a.reviews.as_deref().unwrap_or_default();
    let made = review::view::recount(&a.run, reviews, grading, a.hotspot == "reviewed")?;
    result(a.json, &made)?;
    Ok(left_out(&made.failed, made.slides.len()))
}

/// Prints the slides whose results could not be used, and returns the exit code.
fn left_out(failed: &std::collections::BTreeMap<String, String>, good: usize) -> ExitCode {
    failed.values().for_each(|reason| crate::progress::print_message("warning", reason));
    super::exit(failed.len(), failed.len() + good)
}

/// Where a run is written to.
#[derive(clap::Subcommand)]
pub enum ExportArgs {
    /// GeoJSON of every slide, and scripts that put all into a QuPath project and take them out again
    Qupath {
        /// Folder of `mithras detect`
        run: PathBuf,
        /// Folder to write; made if missing
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Microscopy Bulk Simple Annotations of every slide, for DICOM archives and viewers: figures and other
    /// candidates with both scores, and the hotspot
    Dicom {
        /// Folder of `mithras detect`
        run: PathBuf,
        /// Folder to write, NAME.dcm and the structured report NAME.sr.dcm per slide; made if missing
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Folder with the slides, if they have moved, or with DICOM conversions of other slides: NAME.dcm or
        /// a folder NAME [default: where the run read them]
        #[arg(long, value_name = "DIR")]
        slides: Option<PathBuf>,
        /// Copy the patient's name, number, birth date and sex, and the study's number, date and physician
        /// from the images. Empty otherwise
        #[arg(long)]
        patient: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn export(a: ExportArgs) -> anyhow::Result<ExitCode> {
    Ok(match a {
        ExportArgs::Qupath { run, out, json } => {
            let made = review::view::write_project(&run, &out)?;
            result(json, &made)?;
            left_out(&made.failed, made.slides.len())
        }
        ExportArgs::Dicom { run, out, slides, patient, json } => {
            let written = review::view::write_dicom(&run, &out, slides.as_deref(), patient)?;
            result(json, &written)?;
            super::exit(written.failed(), written.slides.len())
        }
    })
}
