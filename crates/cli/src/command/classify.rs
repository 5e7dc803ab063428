//! `mithras classify`: image crops to class probabilities (K5), with any classifier package.

use super::detect::{EngineArgs, mpp};
use crate::progress::Meter;
use anyhow::{Context, Result, bail, ensure};
use corpus::augment::geometry::centred;
use corpus::crops::read_rgb;
use corpus::resample::to_resolution;
use infer::ModelPackage;
use infer::card::ClassifierCard;
use mitosis::{ClassProbs, Mpp, RgbTile};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Classify image crops: typical or atypical figures, morphologies, or any other package
///
/// Writes one row per image: file, class, p_<class>... Images may have any size: an image is brought
/// to the model's resolution, then the square in its middle that the model was trained on is
/// classified (mirrored where the image is smaller). `mithras evaluate classification` reads the
/// file.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  mithras classify figures/ --model atypical --out atypical.csv
  mithras classify a.png b.png --model morphology --out types.csv --mpp 0.23 --json
  mithras classify crops/ --model models/mine --out mine.csv

--model: a package folder, or a bundled one by name: atypical (typical, atypical), morphology (eight
classes), mithras-tiny (non_mitotic, mitotic).")]
pub struct Args {
    /// Images, or folders that are searched through
    #[arg(required = true, value_name = "IMAGE")]
    inputs: Vec<PathBuf>,
    /// CSV to write
    #[arg(long, value_name = "CSV")]
    out: PathBuf,
    /// Resolution of the images in um/px [default: the model's own]
    #[arg(long, value_name = "X", value_parser = mpp, allow_negative_numbers = true)]
    mpp: Option<Mpp>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Larger images are no crops.
const LARGEST: usize = 8192;

fn is_image(path: &Path) -> bool {
    let suffix = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    ["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp"].contains(&suffix.as_str())
}

fn walk(dir: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if is_image(&path) {
            found.insert(path);
        }
    }
    Ok(())
}

fn images(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for input in inputs {
        let mut found = BTreeSet::new();
        if input.is_dir() {
            walk(input, &mut found)?;
            ensure!(!found.is_empty(), "{}: no image in this folder", input.display());
        } else if input.exists() {
            found.insert(input.clone());
        } else {
            bail!("{}: no such file or folder", input.display());
        }
        all.extend(found.into_iter().filter(|p| seen.insert(p.clone())));
    }
    Ok(all)
}

/// An image as the model wants it.
fn crop_of(path: &Path, own: Mpp, card: &ClassifierCard) -> Result<RgbTile, String> {
    let image = read_rgb(path).map_err(|e| e.to_string())?;
    let (w, h) = (image.width, image.height);
    if w.max(h) > LARGEST {
        return Err(format!(
            "{}: {w}x{h} px is no crop (at most {LARGEST}); slides go through `mithras detect`",
            path.display()
        ));
    }
    let least = w.min(h) as f64 / own.ratio(card.mpp);
    if least < 8.0 {
        return Err(format!(
            "{}: {w}x{h} px at {} um/px is less than 8 px at the model's {} um/px",
            path.display(),
            own.get(),
            card.mpp.get()
        ));
    }
    // Enlarged before the symmetric copies are taken, as in training: the order shows in the last bit.
    let side = card.input.max(card.crop);
    Ok(centred(&to_resolution(&image, own, card.mpp), card.crop, side))
}

pub fn run(args: Args) -> Result<ExitCode> {
    let model =
        args.engine.model().context("--model is needed: a package folder, or `atypical`")?;
    let package = ModelPackage::find(Some(model))?;
    let card = package
        .card
        .classifier
        .clone()
        .with_context(|| format!("model `{}` has no classifier", package.card.name))?;
    let files = images(&args.inputs)?;
    let own = args.mpp.unwrap_or(card.mpp);
    let mut models = infer::open(&package, &args.engine.options())?;
    let classifier = models.classifier.as_mut().context("the package has no classifier")?;
    let started = std::time::Instant::now();
    let mut meter = Meter::new("classify", "images", args.quiet);
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["file".to_string(), "class".into()];
    table.write_record(header.into_iter().chain(card.classes.iter().map(|c| format!("p_{c}"))))?;
    let mut counts = vec![0_usize; card.classes.len()];
    let mut failed = Vec::new();
    let mut done = 0;
    for part in files.chunks(64) {
        let (mut names, mut crops) = (Vec::new(), Vec::new());
        for path in part {
            match crop_of(path, own, &card) {
                Ok(crop) => {
                    names.push(path.display().to_string());
                    crops.push(crop);
                }
                Err(reason) => failed.push(reason),
            }
        }
        for (name, ClassProbs(p)) in names.into_iter().zip(classifier.classes(&crops)?) {
            let best = card.called(&p);
            counts[best] += 1;
            let cells = [name, card.classes[best].clone()];
            table.write_record(cells.into_iter().chain(p.iter().map(|v| format!("{v:.6}"))))?;
        }
        done += part.len();
        meter.update(done as u64, files.len() as u64);
    }
    meter.finish();
    artifact::file::write(&args.out, &table.into_inner()?)?;
    for reason in &failed {
        eprintln!("error: {reason}");
    }
    let of_class = card.classes.iter().zip(&counts);
    if args.json {
        let out = json!({
            "schema": "mithras.classify/1", "model": package.card.name, "out": args.out,
            "images": files.len() - failed.len(), "failed": failed, "mpp": own.get(),
            "mpp_source": if args.mpp.is_some() { "given by the user" } else { "the model's own" },
            "crop_px": card.crop, "model_mpp": card.mpp.get(), "engine": models.report,
            "seconds": started.elapsed().as_secs_f64(),
            "classes": of_class.map(|(c, n)| (c.clone(), json!(n)))
                .collect::<serde_json::Map<_, _>>(),
        });
        println!("{}", serde_json::to_string_pretty(&out)?);
    } else {
        let each = of_class.map(|(c, n)| format!("{n} {c}")).collect::<Vec<_>>().join(", ");
        let source = if args.mpp.is_some() { "" } else { ", taken from the model" };
        println!("{} images at {} um/px{source}: {each}", files.len() - failed.len(), own.get());
        println!("written to {}", args.out.display());
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
