//! Named operating points of a chain: every fold's own package on what it left out, under a grid of
//! changes, and one choice over all of it.

use super::super::export::{self, Choice, Package};
use super::super::folds::WORKING;
use super::super::{DetectorError, Result};
use super::Chain;
use crate::detector::Builder;
use crate::robustness::fold::FoldRun;
use crate::robustness::point::{self, Chosen};
use crate::robustness::{self, Labelled, Options, Robustness, RobustnessError};
use artifact::json;
use corpus::folds::is_frame;
use corpus::regions::{Dataset, Image};
use infer::ModelPackage;
use mitosis::{Point, Resolution};
use pixels::perturb::Grid;
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
    let chosen: Chosen = json::read(&path).map_err(|e| DetectorError::file(&path, e))?;
    Ok(of(chain, Some(Box::new(chosen))))
}

fn of(chain: &Chain<'_>, chosen: Option<Box<Chosen>>) -> Choice {
    Choice::Points {
        chosen,
        tissue: None,
        candidates: chain.preset.candidates,
        crop: chain.preset.finetune.data.crop,
        symmetries: chain.preset.calibrate.symmetries,
    }
}

/// Measures every fold and chooses; gives the file of the choice.
pub(super) fn choose(chain: &Chain<'_>, grid: Grid) -> Result<PathBuf> {
    let mut folds = vec![];
    for (k, name) in chain.source.folds.folds.iter().enumerate() {
        let at = chain.options.out.join("calibration").join(format!("fold-{k}"));
        let package = packaged(chain, k, &at)?;
        let held = chain.fold(Some(k))?.validation;
        let (frames, rest): (Vec<&Image>, Vec<&Image>) =
            held.into_iter().partition(|i| is_frame(i, WORKING));
        let foreign: Vec<&Image> =
            rest.into_iter().filter(|i| !i.exhaustive && i.labels.is_empty()).collect();
        let measure = |images: &[&Image], folder: &Path| {
            let found = measured(&chain.source.set, &package, images, grid)?;
            std::fs::create_dir_all(folder).map_err(DetectorError::io(folder))?;
            found.write(folder)?;
            Ok::<_, DetectorError>(found)
        };
        let labelled = measure(&frames, &at.join("labelled"))?;
        let foreign = match foreign[..] {
            [] => None,
            _ => Some(measure(&foreign, &at.join("foreign"))?),
        };
        folds.push(FoldRun { name: name.clone(), labelled, foreign, tissue: None });
    }
    let path = file(chain);
    json::write(&path, &point::choose(&folds, None, None)?)?;
    Ok(path)
}

/// A fold's models as a package with a provisional operating point.
fn packaged(chain: &Chain<'_>, k: usize, at: &Path) -> Result<ModelPackage> {
    let (models, p) = (chain.folder(Some(k)), &chain.preset.package);
    let what = Package {
        segmenter: models.join("segment").join(MODEL),
        classifier: models.join("finetune").join(MODEL),
        choice: of(chain, None),
        training: toml::Table::new(),
        license: p.license.clone(),
        name: format!("{}-fold-{k}", p.name),
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
    grid: Grid,
) -> Result<Robustness> {
    let mut detector = Builder::default().open(package)?;
    let options = Options { changes: grid.changes().to_vec(), ..Options::default() };
    let mut load = |i: usize| {
        labelled(set, images[i]).map_err(|e| RobustnessError::Image {
            path: images[i].file.clone(),
            reason: e.to_string(),
        })
    };
    Ok(robustness::over(&mut detector, images.len(), &mut load, &options, &mut |_| {})?)
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
