//! Labelled crops cut from the images of a regions dataset: what the second stage of a detector learns from
//! where it is trained as the paper's classifier is.

use super::item::LabelledCrop;
use super::{Crops, Item, Result, Task, TaskError, TrainingSet};
use crate::dataset::{Dataset, Image, Kind};
use base::digest::hex;
use crops::schema::pixel_hash;
use mitosis::{Mpp, Rect};
use rayon::prelude::*;

impl TrainingSet {
    /// A square of `side` px at `mpp` around every figure and every mimicker of the training part, as
    /// [`crate::cut`] cuts them: two classes, `mimicker` and `mitotic_figure`.
    ///
    /// # Errors
    /// An image that cannot be read, or no label of one of the classes.
    pub fn of_regions(set: &Dataset, side: u32, mpp: Mpp) -> Result<Self> {
        let part = set.training();
        let cut = part.images().par_iter().map(|image| of_image(set, image, side, mpp));
        let found: Vec<Vec<LabelledCrop>> = cut.collect::<Result<_>>()?;
        let found: Vec<LabelledCrop> = found.into_iter().flatten().collect();
        let classes = super::LABELS.map(str::to_owned).to_vec();
        for (class, name) in classes.iter().enumerate() {
            if !found.iter().any(|c| c.item.class == class) {
                let reason = format!("no `{name}` is labelled; a classifier needs both classes");
                return Err(TaskError::file(std::path::Path::new(set.name()), reason));
            }
        }
        let crops = Crops::new(Task::Crops, classes, found)?;
        Ok(Self(Crops { dataset: Some(set.digest().to_owned()), ..crops }))
    }
}

fn of_image(set: &Dataset, image: &Image, side: u32, mpp: Mpp) -> Result<Vec<LabelledCrop>> {
    let fail = |e: &dyn std::fmt::Display| TaskError::file(&image.file, e.to_string());
    let labels = image.labels.iter().filter_map(|l| match l.kind {
        Kind::Figure => Some((l, 1)),
        Kind::Mimicker => Some((l, 0)),
        Kind::Other => None,
    });
    let labels: Vec<_> = labels.collect();
    if labels.is_empty() {
        return Ok(vec![]);
    }
    let slide = set.open_image(image).map_err(|e| fail(&e))?;
    let (sx, sy) = slide.working_scale(mpp).map_err(|e| fail(&e))?;
    let pixels = side as usize;
    #[expect(clippy::cast_possible_truncation, reason = "pixel coordinates of an image")]
    let corner = |c: f64| (c - f64::from(side) / 2.0).round() as i64;
    let crop = |(n, (label, class)): (usize, (&crate::dataset::Label, usize))| {
        let (x, y) = (corner(label.x / sx), corner(label.y / sy));
        let tile = slide.read_at(mpp, Rect::new(x, y, pixels, pixels)).map_err(|e| fail(&e))?;
        let item = Item {
            file: format!("{}#{n}", image.name),
            class,
            votes: vec![class],
            coarse: None,
            source: image.patient.as_ref().unwrap_or(&image.slide).clone(),
            patient: image.patient.clone(),
            slide: image.slide.clone(),
            domain: image.source.clone(),
            hash: hex(&pixel_hash(&tile)),
        };
        Ok(LabelledCrop { item, image: tile })
    };
    labels.into_iter().enumerate().map(crop).collect()
}
