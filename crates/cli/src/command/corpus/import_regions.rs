//! `mithras corpus import --kind regions`: from flags to a regions dataset.

use super::import::Args;
use anyhow::Context;
use corpus::import::{ImportOptions, importer};
use corpus::regions::import::{Exhaustive, Imported, Options, annotated, folder_importer};
use corpus::regions::{Part, RegionsError};
use serde::Serialize;
use std::process::ExitCode;

/// What `--json` and `import.json` hold.
#[derive(Serialize)]
struct Output<'a> {
    dataset: &'a str,
    digest: &'a str,
    positive: &'a str,
    #[serde(flatten)]
    counts: corpus::regions::Counts,
    test_images: usize,
    left_out: &'a [corpus::import::Problem],
}

/// An error of the library with the flags that help.
fn hinted(e: RegionsError) -> anyhow::Error {
    match e {
        RegionsError::MissingMpp { .. } | RegionsError::ContradictingMpp { .. } => {
            anyhow::anyhow!("{e}\n--mpp gives um/px for all images, --mpp-table for some")
        }
        RegionsError::Import(e) => super::import::hinted(e),
        e => e.into(),
    }
}

/// Imports one dataset.
pub fn run(a: &Args, annotations: &ImportOptions) -> anyhow::Result<ExitCode> {
    let out = a.out.as_ref().context("--kind regions writes a dataset and needs --out")?;
    let name = || out.file_name().map(|n| n.to_string_lossy().into_owned());
    let options = Options {
        name: a.name.clone().or_else(name).unwrap_or_else(|| a.format.clone()),
        program: super::builder(),
        given: a.given()?,
        exhaustive: match a.exhaustive.as_str() {
            "all" => Exhaustive::All,
            "none" => Exhaustive::None,
            _ => Exhaustive::Known,
        },
        lenient: a.lenient,
        part: if a.split == corpus::Split::Test { Part::Test } else { Part::Train },
        source: a.cohort.clone(),
        positive: a.positive.clone(),
    };
    let Imported { dataset, left_out } = match folder_importer(&a.format) {
        Some(folder) => (folder.read)(&a.file, &options).map_err(hinted)?,
        None => {
            let images = a.images.as_ref().context("--kind regions needs --images")?;
            let format = importer(&a.format).context("unknown format")?;
            let read = (format.read)(&a.file, annotations).map_err(super::import::hinted)?;
            annotated(&read, images, &options).map_err(hinted)?
        }
    };
    let set = dataset.write(out)?;
    let output = Output {
        dataset: set.name(),
        digest: set.digest(),
        positive: set.positive(),
        counts: set.counts(),
        test_images: set.test().images().len(),
        left_out: &left_out,
    };
    let text = serde_json::to_string_pretty(&output)?;
    artifact::file::write(&out.join("import.json"), text.as_bytes())?;
    if a.json {
        println!("{text}");
    } else {
        print!("{set}");
        for p in left_out.iter().take(20) {
            println!("          left out: {p}");
        }
        if left_out.len() > 20 {
            println!("          left out: {} more", left_out.len() - 20);
        }
    }
    Ok(ExitCode::SUCCESS)
}
