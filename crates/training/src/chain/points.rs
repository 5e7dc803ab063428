//! Named operating points of a chain: every fold's own package on what it left out, under a grid of
//! changes, and one choice over all of it.

use super::super::export::{self, Choice, Package};
use super::super::folds::WORKING;
use super::super::{Result, TrainingError};
use super::Chain;
use base::json;
use evaluation::robustness::fold::FoldRun;
use evaluation::robustness::point::Chosen;
use evaluation::robustness::{self, Labelled, Options, Robustness, RobustnessError};
use infer::ModelPackage;
use mithras::detector::Builder;
use mitosis::{Point, Resolution};
use pixels::perturb::{Grid, Perturbation};
use regions::folds::is_frame;
use regions::{Dataset, Image};
use std::path::{Path, PathBuf};
use train::run::MODEL;

/// The choice, in the calibration's folder.
const FILE: &str = "points.json";

fn file(chain: &Chain<'_>) -> PathBuf {
    chain.options.out.join("calibration").join(FILE)
}

/// Where the package's operating points come from, once they are chosen.
pub(super) fn choice(chain: &Chain<'_>) -> Result<Choice> {
    let path = file(chain);
    let chosen: Chosen = json::read(&path).map_err(|e| TrainingError::file(&path, e))?;
    let at = chain.options.out.join("calibration").join("final");
    let tissue = match chosen.tissue {
        Some(_) => on_tissue(chain, &packaged(chain, None, &at)?, &at)?,
        None => None,
    };
    Ok(points_choice(chain, Some(Box::new(chosen)), tissue))
}

fn points_choice(
    chain: &Chain<'_>,
    chosen: Option<Box<Chosen>>,
    tissue: Option<Robustness>,
) -> Choice {
    Choice::Points {
        chosen,
        tissue: tissue.map(Box::new),
        candidates: chain.preset.candidates,
        crop: chain.preset.second().crop(),
        symmetries: chain.preset.calibrate.symmetries,
    }
}

/// Measures every fold and chooses; gives the file of the choice.
pub(super) fn choose(chain: &Chain<'_>, grid: Grid) -> Result<PathBuf> {
    let mut folds = vec![];
    for (k, name) in chain.source.folds.folds.iter().enumerate() {
        let at = chain.options.out.join("calibration").join(format!("fold-{k}"));
        let package = packaged(chain, Some(k), &at)?;
        let held = chain.fold(Some(k))?.validation;
        let (frames, rest): (Vec<&Image>, Vec<&Image>) =
            held.into_iter().partition(|i| is_frame(i, WORKING));
        let foreign: Vec<&Image> =
            rest.into_iter().filter(|i| !i.exhaustive && i.labels.is_empty()).collect();
        let set = &chain.source.set;
        let changes = grid.changes();
        let labelled = measured(set, &package, &frames, changes, &at.join("labelled"))?;
        let foreign = match foreign[..] {
            [] => None,
            _ => Some(measured(set, &package, &foreign, changes, &at.join("foreign"))?),
        };
        let tissue = on_tissue(chain, &package, &at)?;
        folds.push(FoldRun { name: name.clone(), labelled, foreign, tissue });
    }
    let path = file(chain);
    json::write(&path, &robustness::choose(&folds, None, None)?)?;
    Ok(path)
}

/// A package's scores on the tissue that sets the scale of scores; `None` if the dataset has no such tissue.
fn on_tissue(chain: &Chain<'_>, package: &ModelPackage, at: &Path) -> Result<Option<Robustness>> {
    let images = chain.source.set.calibration();
    if images.is_empty() {
        return Ok(None);
    }
    measured(&chain.source.set, package, &images, &[], &at.join("tissue")).map(Some)
}

/// The models of a fold, or the final ones, as a package with a provisional operating point.
fn packaged(chain: &Chain<'_>, k: Option<usize>, at: &Path) -> Result<ModelPackage> {
    let (models, p) = (chain.folder(k), &chain.preset.package);
    let what = Package {
        segmenter: models.join("segment").join(MODEL),
        classifier: chain.second_model(k),
        averaged: vec![],
        segmentation: None,
        choice: points_choice(chain, None, None),
        training: toml::Table::new(),
        license: p.license.clone(),
        name: k.map_or(p.name.clone(), |k| format!("{}-fold-{k}", p.name)),
        f32: p.f32,
    };
    let folder = at.join("package");
    export::package(&what, &folder)?;
    Ok(ModelPackage::open(&folder)?)
}

fn measured(
    set: &Dataset,
    package: &ModelPackage,
    images: &[&Image],
    changes: &[Perturbation],
    folder: &Path,
) -> Result<Robustness> {
    let mut detector = Builder::default().open(package)?;
    let options = Options { changes: changes.to_vec(), ..Options::default() };
    let mut load = |i: usize| {
        labelled(set, images[i]).map_err(|e| RobustnessError::Image {
            path: images[i].file.clone(),
            reason: e.to_string(),
        })
    };
    let found = robustness::over(
        &mut detector,
        images.len(),
        &mut load,
        &options,
        &mut base::progress::Silent,
    )?;
    std::fs::create_dir_all(folder).map_err(TrainingError::io(folder))?;
    found.write(folder)?;
    Ok(found)
}

/// An image at its own resolution with its figures.
fn labelled(set: &Dataset, image: &Image) -> Result<Labelled> {
    let region = set.load(image, image.mpp.x)?;
    let resolution = Resolution::user(region.mpp);
    let (fx, fy) = image.scale(region.mpp);
    let figures = image.figures().map(|l| l.centre());
    let truth = figures.map(|c| resolution.to_physical(Point::new(c.x * fx, c.y * fy))).collect();
    let ignore = region.ignore.iter().map(|a| [a.x0, a.y0, a.x1, a.y1]).collect();
    let (name, within) = (image.name.clone(), vec![]);
    Ok(Labelled { name, tile: region.tile, resolution, truth, ignore, within })
}
