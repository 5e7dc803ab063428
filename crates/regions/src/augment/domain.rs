//! Images of one origin, and the places in them worth showing to a classifier.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::sample::{figures, sample_dark_places};
use crate::folds::Frames;
use crate::scene::{SampledPlace, Scene};
use crate::shortcuts::ShortcutItem as Item;

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceKind {
    /// A mitotic figure: the only positive kind.
    Figure,
    /// A dark nucleus away from every mark.
    Dark,
    /// A place listed as no figure: by the data's own table, or by a model that took it for one.
    Listed,
    /// Of those, a place that the data's own labels list: a look-alike that somebody reviewed.
    Reviewed,
    /// Of those, a place that a model took for a figure.
    Mined,
}

/// A place in an image of one of several domains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DomainPlace {
    /// Index of the domain.
    pub domain: usize,
    /// Where, among its images.
    pub place: SampledPlace,
}

/// A place in a named image, pixels at the working resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPlace {
    /// Name of the image.
    pub image: String,
    /// Rightwards.
    pub x: f32,
    /// Downwards.
    pub y: f32,
}

/// An image that a domain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no image `{0}`")]
pub struct NoImage(pub String);

/// Smallest distance of nuclei of unlabelled images from the edges, px.
const EDGE: f32 = 42.0;

/// Smallest distance of dark nuclei from every mark, px.
const CLEAR: f32 = 40.0;
/// A place this near to a figure is that figure, px: the matching radius.
const SAME: f32 = 30.0;

/// Images of one origin.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its name in presets.
    pub name: String,
    /// Every figure of its images is marked.
    pub labelled: bool,
    /// The images at the working resolution.
    pub scenes: Vec<Scene>,
    figures: Vec<SampledPlace>,
    dark: Vec<SampledPlace>,
    /// First the `reviewed` ones of the data's labels, then what models took for figures.
    listed: Vec<SampledPlace>,
    reviewed: usize,
}

impl Domain {
    /// The frames of one fold's training side, with its placed negatives.
    #[must_use]
    pub fn frames(name: &str, train: &Frames) -> Self {
        Self {
            name: name.to_owned(),
            labelled: true,
            figures: figures(&train.scenes),
            dark: sample_dark_places(&train.scenes, CLEAR, 250),
            listed: train.lookalikes.clone(),
            reviewed: train.lookalikes.len(),
            scenes: train.scenes.clone(),
        }
    }

    /// Patches with a figure in their middle; the nuclei around it are not figures.
    #[must_use]
    pub fn patches(name: &str, scenes: Vec<Scene>) -> Self {
        let middle = |(scene, s): (usize, &Scene)| SampledPlace {
            scene,
            x: s.image.width as f32 / 2.0,
            y: s.image.height as f32 / 2.0,
        };
        Self {
            name: name.to_owned(),
            labelled: true,
            figures: scenes.iter().enumerate().map(middle).collect(),
            dark: sample_dark_places(&scenes, 34.0, 4),
            listed: vec![],
            reviewed: 0,
            scenes,
        }
    }

    /// Images without labels: each dark nucleus is taken for no figure, though one may be. Marks, where there are any,
    /// are a detector's own.
    #[must_use]
    pub fn unlabelled(name: &str, scenes: Vec<Scene>) -> Self {
        let most = |s: &Scene| (s.image.width * s.image.height).div_ceil(9_000).max(4);
        // A mirrored edge in a crop would distinguish tissue without figures from the rest.
        let inner = |p: &SampledPlace| {
            let image = &scenes[p.scene].image;
            let inner = |v: f32, n: usize| v > EDGE && v < n as f32 - EDGE;
            inner(p.x, image.width) && inner(p.y, image.height)
        };
        let dark: Vec<Vec<SampledPlace>> = (scenes.par_iter().enumerate())
            .map(|(i, s)| {
                let found = crate::scene::dark_places(s, CLEAR, most(s)).into_iter();
                found.map(|(x, y)| SampledPlace { scene: i, x, y }).filter(inner).collect()
            })
            .collect();
        let dark = dark.into_iter().flatten().collect();
        let figures = figures(&scenes).into_iter().filter(inner).collect();
        let (name, listed) = (name.to_owned(), vec![]);
        Self { name, labelled: false, figures, dark, listed, reviewed: 0, scenes }
    }

    /// Adds false positives of a model to the domains of their images; those at a figure
    /// are skipped.
    ///
    /// # Errors
    /// For an image that is in no domain.
    pub fn list(domains: &mut [Self], found: &[NamedPlace]) -> Result<(), NoImage> {
        let mut index = HashMap::new();
        for (d, domain) in domains.iter().enumerate() {
            index.extend(domain.scenes.iter().enumerate().map(|(i, s)| (s.name.clone(), (d, i))));
        }
        for NamedPlace { image: name, x, y } in found {
            let &(domain, scene) = index.get(name).ok_or_else(|| NoImage(name.clone()))?;
            let of = &mut domains[domain];
            let figure = |f: &SampledPlace| f.scene == scene && (f.x - x).hypot(f.y - y) <= SAME;
            if !of.figures.iter().any(figure) {
                of.listed.push(SampledPlace { scene, x: *x, y: *y });
            }
        }
        Ok(())
    }

    /// Forgets a place without a figure.
    pub(super) fn forget(&mut self, place: SampledPlace) {
        self.dark.retain(|p| *p != place);
        let reviewed = &self.listed[..self.reviewed];
        self.reviewed -= reviewed.iter().filter(|p| **p == place).count();
        self.listed.retain(|p| *p != place);
    }

    /// At most `most` places of one kind as crops of `side` px, as stored, for
    /// [`crate::shortcuts::check`].
    #[must_use]
    pub fn items(&self, kind: PlaceKind, side: usize, most: usize) -> Vec<Item> {
        let places = self.places(kind);
        let item = |p: &SampledPlace| {
            let scene = &self.scenes[p.scene];
            let share = |v: f32, n: usize| f64::from(v) / n as f64;
            Item {
                tile: scene.cut(p.x, p.y, side),
                figure: kind == PlaceKind::Figure,
                source: self.name.clone(),
                slide: scene.source.clone(),
                place: Some((share(p.x, scene.image.width), share(p.y, scene.image.height))),
                bytes: None,
            }
        };
        places.iter().step_by(places.len().div_ceil(most).max(1)).map(item).collect()
    }

    /// Its places of one kind.
    #[must_use]
    pub fn places(&self, kind: PlaceKind) -> &[SampledPlace] {
        match kind {
            PlaceKind::Figure => &self.figures,
            PlaceKind::Dark => &self.dark,
            PlaceKind::Listed => &self.listed,
            PlaceKind::Reviewed => &self.listed[..self.reviewed],
            PlaceKind::Mined => &self.listed[self.reviewed..],
        }
    }
}
