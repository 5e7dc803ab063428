//! Second stage: crops around the candidates, and their class.

use super::flow::{Event, Stored};
use super::shared::{Meter, Shared};
use super::stages::StageOutput;
use crate::candidates::Region;
use crate::checkpoint::{self, Scored};
use crate::error::{DetectError, ReadError};
use crate::recipe::{CropRecipe, Recipe};
use crate::source::{TileSource, WorkingFrame};
use crossbeam_channel::{Receiver, Sender};
use mitosis::{Classifier, Rect, RgbTile, Score};
use std::thread::Scope;

/// Between reading crops and classifying them.
pub(super) enum Cropped {
    Crop(Region, RgbTile),
    /// Needs no classifier: segmentation only, or the crop could not be read.
    Final(Scored),
    UnitEnd(Box<Stored>),
    End,
}

/// The second stage of one run, if there is one.
pub(super) struct Second<'a, 'm> {
    crops: Option<Crops<'a>>,
    classify: Option<Classify<'m>>,
}

/// Where crops come from.
struct Crops<'a> {
    source: &'a dyn TileSource,
    recipe: &'a CropRecipe,
    /// Pixels of the crop's frame per pixel of the candidates' frame, per axis.
    scale: (f64, f64),
}

struct Classify<'a> {
    model: &'a mut dyn Classifier,
    positive: usize,
    classes: usize,
}

/// What the second stage takes from and hands on to.
pub(super) struct Channels {
    pub(super) regions: Receiver<StageOutput>,
    pub(super) crop_out: Sender<Cropped>,
    pub(super) crops_in: Receiver<Cropped>,
    pub(super) events: Sender<Event>,
}

impl<'a, 'm> Second<'a, 'm> {
    pub(super) fn new(
        source: &'a dyn TileSource,
        recipe: &'a Recipe,
        model: Option<&'m mut dyn Classifier>,
    ) -> Result<Self, DetectError> {
        let (crop, model) = match (&recipe.crops, model) {
            (None, None) => return Ok(Self { crops: None, classify: None }),
            (Some(crop), Some(model)) => (crop, model),
            (Some(_), None) => {
                return Err(DetectError::Recipe(
                    "the recipe wants a classifier, none was given".into(),
                ));
            }
            (None, Some(_)) => {
                return Err(DetectError::Recipe(
                    "a classifier was given, the recipe has none".into(),
                ));
            }
        };
        let names = model.class_names();
        let classes = names.len();
        let Some(positive) = names.iter().position(|n| *n == crop.positive) else {
            return Err(DetectError::Recipe(format!(
                "the positive class `{}` is not one of the classifier's classes {names:?}",
                crop.positive
            )));
        };
        let scale = if crop.mpp == recipe.mpp {
            (1.0, 1.0)
        } else {
            let (own, other) = (
                WorkingFrame::at_resolution(source, crop.mpp)?.scale,
                source.working_scale(recipe.mpp)?,
            );
            (other.0 / own.0, other.1 / own.1)
        };
        Ok(Self {
            crops: Some(Crops { source, recipe: crop, scale }),
            classify: Some(Classify { model, positive, classes }),
        })
    }

    pub(super) fn spawn<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        control: &'scope Shared,
        (crop_meter, classify_meter): (&'scope Meter, &'scope Meter),
        batch: usize,
        Channels { regions, crop_out, crops_in, events }: Channels,
    ) where
        'a: 'scope,
        'm: 'scope,
    {
        let Self { crops, classify } = self;
        control.spawn(scope, "crop", move || {
            for found in regions {
                let next = match found {
                    StageOutput::Region(region) => match &crops {
                        Some(crops) => crop_meter.time(1, || crops.cut(region))?,
                        None => Cropped::Final(Scored { region, second: checkpoint::Second::None }),
                    },
                    StageOutput::UnitEnd(stored) => Cropped::UnitEnd(stored),
                    StageOutput::End => Cropped::End,
                };
                if crop_out.send(next).is_err() || control.stopped() {
                    break;
                }
            }
            Ok(())
        });
        control.spawn(scope, "classify", move || {
            let mut stage = classify;
            let mut held: Vec<(Region, RgbTile)> = Vec::new();
            for next in crops_in {
                let (event, flush) = match next {
                    Cropped::Crop(region, tile) => {
                        held.push((region, tile));
                        (None, held.len() == batch)
                    }
                    Cropped::Final(scored) => (Some(Event::Scored(scored)), false),
                    Cropped::UnitEnd(stored) => (Some(Event::UnitEnd(stored)), true),
                    Cropped::End => (Some(Event::End), true),
                };
                if control.stopped() {
                    break;
                }
                if let Some(stage) = stage.as_mut().filter(|_| flush && !held.is_empty()) {
                    let (regions, tiles): (Vec<_>, Vec<_>) = held.drain(..).unzip();
                    let scores = classify_meter.time(tiles.len(), || stage.predict(&tiles))?;
                    for (region, score) in regions.into_iter().zip(scores) {
                        let second = checkpoint::Second::Score(score);
                        let _ = events.send(Event::Scored(Scored { region, second }));
                    }
                }
                if event.is_some_and(|event| events.send(event).is_err()) {
                    break;
                }
            }
            Ok(())
        });
    }
}

impl Crops<'_> {
    /// The crop whose centre is nearest to the candidate.
    fn cut(&self, region: Region) -> Result<Cropped, ReadError> {
        let at = region.candidate().at;
        let side = self.recipe.side;
        let corner = |v: f64| (v - f64::from(side) / 2.0 + 0.5).floor() as i64;
        let (x, y) = (corner(at.x * self.scale.0), corner(at.y * self.scale.1));
        let side = side as usize;
        match self.source.read_at(self.recipe.mpp, Rect::new(x, y, side, side)) {
            Ok(tile) => Ok(Cropped::Crop(region, tile)),
            Err(e @ ReadError::File(_)) => Err(e),
            Err(ReadError::Damaged(reason)) => {
                let second = checkpoint::Second::Unread(reason);
                Ok(Cropped::Final(Scored { region, second }))
            }
        }
    }
}

impl Classify<'_> {
    fn predict(&mut self, tiles: &[RgbTile]) -> Result<Vec<Score>, DetectError> {
        let stage = "classify";
        let wrong = |reason: String| DetectError::Answer { stage, reason };
        let answers =
            self.model.classes(tiles).map_err(|source| DetectError::Model { stage, source })?;
        if answers.len() != tiles.len() {
            return Err(wrong(format!("{} answers for {} crops", answers.len(), tiles.len())));
        }
        answers
            .iter()
            .map(|answer| {
                if answer.0.len() != self.classes {
                    let got = answer.0.len();
                    return Err(wrong(format!("{got} probabilities for {} classes", self.classes)));
                }
                Score::new(answer.0[self.positive]).map_err(|e| wrong(e.to_string()))
            })
            .collect()
    }
}
