//! Images of one origin, and the places in them worth showing to a classifier.

use std::collections::HashMap;
use std::path::Path;

use mitosis::Mpp;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::sample::{dark_in, figures};
use crate::ami::TrainingSet;
use crate::crops::{CropError, Scene, read_rgb};
use crate::fold::LeftOut;
use crate::icpr::Icpr;
use crate::resample::to_resolution;

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceKind {
    /// A mitotic figure: the only positive kind.
    Figure,
    /// A dark nucleus away from every mark.
    Dark,
    /// A place listed as no figure: by the data's own table, or by a model that took it for one.
    Listed,
}

/// A place in one of a domain's images, pixels at the working resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Index of the image.
    pub scene: usize,
    /// Rightwards.
    pub x: f32,
    /// Downwards.
    pub y: f32,
}

fn places(from: Vec<(usize, f32, f32)>) -> Vec<Place> {
    from.into_iter().map(|(scene, x, y)| Place { scene, x, y }).collect()
}

/// A folder of images of other tissue without figures' labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFolder {
    /// Name of the domain.
    pub name: String,
    /// Folder below the data folder.
    pub folder: String,
    /// Resolution of its images, um/px.
    pub mpp: Mpp,
    /// Only files whose names begin with one of these; empty: all.
    #[serde(default)]
    pub begins: Vec<String>,
    /// Left out wherever this slide is, so that the fold has tissue it never saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_with: Option<String>,
}

/// An image that a domain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no image `{0}`")]
pub struct NoImage(pub String);

impl ImageFolder {
    /// Whether a fold trains on it.
    #[must_use]
    pub fn trains(&self, left_out: &LeftOut) -> bool {
        let with = self.left_out_with.as_deref();
        !matches!(left_out, LeftOut::Source(s) if Some(s.as_str()) == with)
    }

    /// Reads its images at `target`, in name order.
    ///
    /// # Errors
    /// [`CropError::Read`] for a folder without images or an image that is none.
    pub fn read(&self, data: &Path, target: Mpp) -> Result<Vec<Scene>, CropError> {
        let folder = data.join(&self.folder);
        let entries = std::fs::read_dir(&folder).map_err(|e| CropError::read(&folder, e))?;
        let entries: Vec<_> =
            entries.collect::<Result<_, _>>().map_err(|e| CropError::read(&folder, e))?;
        let wanted = |p: &std::path::PathBuf| {
            let name = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kind = p.extension().is_some_and(|x| x == "jpg" || x == "png" || x == "tif");
            kind && (self.begins.is_empty() || self.begins.iter().any(|b| name.starts_with(b)))
        };
        let mut files: Vec<_> = entries.into_iter().map(|e| e.path()).filter(wanted).collect();
        files.sort();
        if files.is_empty() {
            return Err(CropError::read(&folder, "holds no image of this name"));
        }
        files
            .par_iter()
            .map(|path| {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let image = to_resolution(&read_rgb(path)?, self.mpp, target);
                let source = format!("{}/{name}", self.name);
                Ok(Scene { name, source, image, marks: vec![], partial: false })
            })
            .collect()
    }
}

/// Nuclei of unlabelled images lie at least this far from their edges, px.
const EDGE: f32 = 42.0;

/// Images of one origin.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its name in presets.
    pub name: String,
    /// Every figure of its images is marked.
    pub labelled: bool,
    /// The images at the working resolution.
    pub scenes: Vec<Scene>,
    figures: Vec<Place>,
    dark: Vec<Place>,
    listed: Vec<Place>,
}

impl Domain {
    /// The frames of one fold's training side, with its placed negatives.
    #[must_use]
    pub fn icpr(train: &Icpr) -> Self {
        let placed = train.negatives.iter().filter_map(|n| n.place).collect();
        Self {
            name: "icpr".into(),
            labelled: true,
            figures: places(figures(&train.scenes)),
            dark: places(dark_in(&train.scenes, 40.0, 250)),
            listed: places(placed),
            scenes: train.scenes.clone(),
        }
    }

    /// Patches with a figure in their middle; the nuclei around it are no figures.
    #[must_use]
    pub fn ami(patches: &TrainingSet) -> Self {
        let scenes = patches.scenes().to_vec();
        let middle = |(scene, s): (usize, &Scene)| Place {
            scene,
            x: s.image.width as f32 / 2.0,
            y: s.image.height as f32 / 2.0,
        };
        Self {
            name: "ami".into(),
            labelled: true,
            figures: scenes.iter().enumerate().map(middle).collect(),
            dark: places(dark_in(&scenes, 34.0, 4)),
            listed: vec![],
            scenes,
        }
    }

    /// Images without marks: each dark nucleus is taken for no figure, though one may be.
    #[must_use]
    pub fn unlabelled(name: &str, scenes: Vec<Scene>) -> Self {
        let most = |s: &Scene| (s.image.width * s.image.height).div_ceil(9_000).max(4);
        let dark: Vec<Vec<Place>> = scenes
            .par_iter()
            .enumerate()
            .map(|(i, s)| {
                // A crop that shows a mirrored edge would tell tissue without figures from the rest.
                let (w, h) = (s.image.width as f32, s.image.height as f32);
                let inner = |v: f32, n: f32| v > EDGE && v < n - EDGE;
                let found = crate::crops::dark_places(s, 0.0, most(s));
                let found = found.into_iter().filter(|&(x, y)| inner(x, w) && inner(y, h));
                found.map(|(x, y)| Place { scene: i, x, y }).collect()
            })
            .collect();
        let dark = dark.into_iter().flatten().collect();
        let (name, figures, listed) = (name.to_owned(), vec![], vec![]);
        Self { name, labelled: false, figures, dark, listed, scenes }
    }

    /// Adds places that a model took for figures (image's name, x, y) to the domains of their images.
    ///
    /// # Errors
    /// For an image that is in no domain.
    pub fn list(domains: &mut [Self], found: &[(String, f32, f32)]) -> Result<(), NoImage> {
        let mut index = HashMap::new();
        for (d, domain) in domains.iter().enumerate() {
            index.extend(domain.scenes.iter().enumerate().map(|(i, s)| (s.name.clone(), (d, i))));
        }
        for (name, x, y) in found {
            let &(domain, scene) = index.get(name).ok_or_else(|| NoImage(name.clone()))?;
            domains[domain].listed.push(Place { scene, x: *x, y: *y });
        }
        Ok(())
    }

    /// Its places of one kind.
    #[must_use]
    pub fn places(&self, kind: PlaceKind) -> &[Place] {
        match kind {
            PlaceKind::Figure => &self.figures,
            PlaceKind::Dark => &self.dark,
            PlaceKind::Listed => &self.listed,
        }
    }
}
