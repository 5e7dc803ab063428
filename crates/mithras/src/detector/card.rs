//! From a package's card to what the detector does.

use super::error::DetectorError;
use super::options::Stages;
use crate::record::ModelEntry;
use detect::{CandidateRule, CropRecipe, DetectError, Grid, Overlap, Recipe};
use infer::ModelPackage;
use infer::card::CandidateMethod;
use mitosis::{OperatingPoint, Score};

/// The recipe, the threshold that was chosen for these stages where there is one, and the
/// model's entry for a run's record.
pub(super) fn from_card(
    package: &ModelPackage,
    stages: Stages,
) -> Result<(Recipe, Option<OperatingPoint>, ModelEntry), DetectorError> {
    let card = package.card.detector()?;
    let name = &package.card.name;
    let wrong = |source| DetectorError::Recipe { name: name.clone(), source };
    let refuse = |what: String| wrong(DetectError::Recipe(what));
    let side =
        |v: usize, what: &str| u32::try_from(v).map_err(|_| refuse(format!("{what} of {v} px")));
    let grid = Grid::new(
        side(card.segmenter.window, "windows")?,
        side(card.segmenter.stride, "a stride")?,
    )
    .map_err(wrong)?;
    let threshold = Score::new(card.candidates.threshold).map_err(|e| refuse(e.to_string()))?;
    let candidates = match card.candidates.method {
        CandidateMethod::Regions => CandidateRule::Regions {
            threshold,
            opening_radius: card.candidates.opening_radius,
            min_area_px: u64::from(card.candidates.min_area_px),
        },
        CandidateMethod::Peaks => CandidateRule::Peaks {
            threshold,
            min_distance_px: card.candidates.min_distance_px.unwrap_or_default(),
        },
    };
    let second = match (stages, card.classifier) {
        (Stages::One, _) => None,
        (Stages::Two, Some(c)) => Some(c),
        // All that there is: boxes have no second stage.
        (Stages::Two, None) if card.segmenter.boxes.is_some() => None,
        (Stages::Two, None) => return Err(DetectorError::OneStage(name.clone())),
    };
    let crops = second
        .map(|c| {
            let (mpp, read) = infer::preprocess::sampling(c.mpp, c.crop, c.input);
            let side = side(read, "crops")?;
            Ok::<_, DetectorError>(CropRecipe { mpp, side, positive: c.positive.clone() })
        })
        .transpose()?;
    let recipe = Recipe {
        mpp: card.segmenter.mpp,
        grid,
        overlap: match card.segmenter.boxes {
            None => Overlap::Mean,
            Some(_) => Overlap::Highest,
        },
        candidates,
        min_separation_um: card.candidates.min_separation_um,
        crops,
        max_unread_share: Recipe::MAX_UNREAD_SHARE,
    };
    let model = ModelEntry {
        name: name.clone(),
        segmenter_sha256: card.segmenter.sha256.clone(),
        classifier_sha256: second.map(|c| c.sha256.clone()),
        classifier_scale: second.and_then(|c| c.scale),
        classifier_symmetries_from: second.and_then(|c| c.symmetries_from),
        screen: package.card.screen.as_ref().filter(|_| second.is_some()).map(Into::into),
        networks_sha256: Some(package.card.networks_sha256(second.is_some())?),
        license: package.card.license.clone(),
    };
    let own = match second {
        Some(_) => Some(card.operating_point.clone()),
        None => package.card.first_stage_point().cloned(),
    };
    Ok((recipe, own, model))
}
