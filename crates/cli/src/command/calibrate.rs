//! `mithras calibrate`.

use anyhow::{Context, ensure};
use evaluation::calibrate::{self, CalibrateError, Candidate, Slide};
use evaluation::robustness::Robustness;
use infer::ModelPackage;
use review::view::{JudgedCandidate, JudgedRun, JudgedSlide, judged_slides};
use std::path::{Path, PathBuf};

/// Fit a detector's scores and thresholds to a laboratory's own judged candidates
///
/// On another scanner or stain the order of a detector's scores holds better than their size. Some 50 candidates
/// that a pathologist judged set a scale for the second stage (slope and offset of the logit) and new operating points
/// (greatest expected F-beta). The scale stays near the package's own, and is kept only if it is better on labels that
/// it was not fitted to. Writes a package of its own; the networks are the same. Judge candidates one after the other,
/// right ones and wrong ones, on both sides of the threshold.
#[derive(clap::Args)]
pub struct Args {
    /// Package to calibrate: a bundled name or a folder
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
    /// Runs of `mithras detect` with this package that were reviewed in `mithras view`, or folders of measurements with
    /// known figures (`mithras evaluate robustness --changes clean`)
    #[arg(long, value_name = "RUN|DIR", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// The reviewer whose verdicts count, by name, or a log [default: the only one]
    #[arg(long, value_name = "NAME|FILE")]
    reviews: Option<String>,
    /// Use at most so many judged candidates, drawn evenly over the likeliest quarter [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(20..))]
    labels: Option<u32>,
    /// Name of the new package [default: NAME-calibrated]
    #[arg(long)]
    name: Option<String>,
    /// Folder for the new package
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: Args) -> anyhow::Result<()> {
    let package = ModelPackage::find(a.model.as_deref())?;
    let mut slides = Vec::new();
    for data in &a.data {
        slides.extend(read(data, a.reviews.as_deref(), &package)?);
    }
    if let Some(labels) = a.labels {
        let point = package.card.operating_point.as_ref();
        calibrate::draw(&mut slides, labels as usize, point.map_or(0.0, |p| p.seg.get()));
    }
    let made = calibrate::calibrate(&package, &slides)?;
    let name = a.name.unwrap_or_else(|| format!("{}-calibrated", package.card.name));
    made.write(&package, &name, &slides, &a.out)?;
    crate::show::result(a.json, &made)?;
    if !a.json {
        outln!("{}", a.out.display());
    }
    Ok(())
}

fn read(data: &Path, reviewer: Option<&str>, package: &ModelPackage) -> anyhow::Result<Vec<Slide>> {
    if data.join("robustness.json").is_file() {
        let measured = Robustness::open(data)?;
        // A measurement names no weights; another version of a package has another point.
        let point = &measured.operating_point;
        let own = package.card.operating_point.as_ref();
        let same_point = own.is_some_and(|o| (o.seg, o.cls) == (point.seg, point.cls));
        if measured.model != package.card.name || !same_point {
            return Err(other(&data.display().to_string(), &measured.model, package).into());
        }
        return Ok(Slide::measured(&measured)?);
    }
    ensure!(data.is_dir(), "{}: no such folder", data.display());
    let run = judged_slides(data, reviewer).with_context(|| data.display().to_string())?;
    let JudgedRun { slides, notes } = run;
    crate::show::print_messages("note", &notes);
    slides.into_iter().map(|s| Ok(slide(s, package)?)).collect()
}

fn slide(judged: JudgedSlide, package: &ModelPackage) -> Result<Slide, CalibrateError> {
    let model = &judged.counts.model;
    if !model.matches_card(&package.card) {
        return Err(other(&judged.name, &model.name, package));
    }
    let one_stage = || CalibrateError::OneStage { slide: judged.name.clone() };
    let candidate = |JudgedCandidate { row, figure }: &JudgedCandidate| {
        let s_cls = row.s_cls.ok_or_else(one_stage)?;
        Ok(Candidate { s_seg: row.s_seg, s_cls, figure: *figure })
    };
    // A candidate outside the tissue is never accepted, whatever its score.
    let inside = judged.candidates.iter().filter(|c| !c.row.outside_tissue);
    let candidates = inside.map(candidate).collect::<Result<_, CalibrateError>>()?;
    Ok(Slide {
        name: judged.name.clone(),
        digest: Some(judged.counts.slide.digest.clone()),
        candidates,
    })
}

fn other(slide: &str, found: &str, package: &ModelPackage) -> CalibrateError {
    let (slide, found, package) = (slide.to_owned(), found.to_owned(), package.card.name.clone());
    CalibrateError::OtherWeights { slide, found, package }
}
