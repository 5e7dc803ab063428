//! Slides that weights were trained on, among those that a result is stated for.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use net::checkpoint::TrainedOn;
use regions::slide_name::bare;
use regions::task::Item;
use serde::Deserialize;

use crate::error::{Result, TrainError};

/// Slides that a note names; more are counted.
const SHOWN: usize = 5;

/// An image or crop, by all that a list of training data may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of its slide.
    pub slide: String,
    /// Its patient, where known.
    pub patient: Option<String>,
    /// Its file.
    pub file: String,
    /// SHA-256 of its file, where known.
    pub sha256: Option<String>,
}

impl From<&Item> for Names {
    fn from(item: &Item) -> Self {
        let (slide, patient) = (item.slide.clone(), item.patient.clone());
        Self { slide, patient, file: item.file.clone(), sha256: None }
    }
}

impl From<&regions::Image> for Names {
    fn from(image: &regions::Image) -> Self {
        Self {
            slide: image.slide.clone(),
            patient: image.patient.clone(),
            file: image.name.clone(),
            sha256: Some(image.sha256.clone()),
        }
    }
}

/// What weights were trained on, to be asked by name: slides, or digests of their files, with or without the suffix
/// of a slide file, and patients; an entry of a slide with a final `*` is the start of a name.
pub struct Seen<'a> {
    slides: HashSet<&'a str>,
    patients: HashSet<&'a str>,
    starts: Vec<&'a str>,
}

impl<'a> Seen<'a> {
    /// From the list of a checkpoint.
    #[must_use]
    pub fn new(list: &'a TrainedOn) -> Self {
        let (mut slides, mut starts) = (HashSet::new(), vec![]);
        for name in &list.slides {
            match name.strip_suffix('*') {
                Some(start) if !start.is_empty() => starts.push(start),
                _ => slides.extend([name, bare(name)]),
            }
        }
        Self { slides, patients: list.patients.iter().map(String::as_str).collect(), starts }
    }

    /// Whether an image, or another of its slide or patient, was trained on.
    #[must_use]
    pub fn has(&self, image: &Names) -> bool {
        let whole = |name: &str| self.slides.contains(name);
        let started = |name: &str| {
            let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
            self.starts.iter().any(|start| name.starts_with(start) || last.starts_with(start))
        };
        let patient = image.patient.as_deref();
        whole(&image.slide)
            || whole(bare(&image.slide))
            || image.sha256.as_deref().is_some_and(whole)
            || patient.is_some_and(|p| self.patients.contains(p) || started(p))
            || started(&image.slide)
            || started(&image.file)
    }

    /// The slides of these images that were trained on.
    #[must_use]
    pub fn slides<'i>(&self, images: &'i [Names]) -> BTreeSet<&'i str> {
        images.iter().filter(|i| self.has(i)).map(|i| i.slide.as_str()).collect()
    }
}

/// The first of some names, and how many more there are.
#[must_use]
pub fn shown<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let more = all.len().saturating_sub(SHOWN);
    let first = all[..all.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// Notes on starting weights that have seen what a fold holds out.
pub(crate) fn notes(
    trained_on: &TrainedOn,
    pretrained_on: &TrainedOn,
    fold: &str,
    held_out: &[Names],
) -> Vec<String> {
    let all = held_out.iter().map(|i| &i.slide).collect::<BTreeSet<_>>().len();
    let overlap = |list| {
        let slides = Seen::new(list).slides(held_out);
        let count = slides.len();
        (count > 0).then(|| format!("{count} of {all} ({})", shown(slides)))
    };
    let trained = overlap(trained_on).map(|slides| {
        format!(
            "the starting weights were trained on slides that fold `{fold}` holds out: {slides}; its held-out \
             results do not show the quality on other slides"
        )
    });
    let pretrained = overlap(pretrained_on).map(|slides| {
        format!(
            "the starting weights were pretrained, without labels, on slides that fold `{fold}` holds out: \
             {slides}; results on other slides may be lower"
        )
    });
    trained.into_iter().chain(pretrained).collect()
}

/// The part of a package's card that lists its training data.
#[derive(Default, Deserialize)]
struct Card {
    #[serde(default)]
    training: Training,
}

#[derive(Default, Deserialize)]
struct Training {
    #[serde(default)]
    slides: BTreeSet<String>,
    #[serde(default)]
    slide_digests: BTreeSet<String>,
    #[serde(default)]
    patients: BTreeSet<String>,
}

/// What the network of a package was trained on, by the card in its folder: names and digests of files. `None`
/// without a card, or where it lists nothing.
///
/// # Errors
/// A card that cannot be read.
pub(crate) fn of_package(network: &Path) -> Result<Option<TrainedOn>> {
    let path = network.with_file_name("card.toml");
    if !path.is_file() {
        return Ok(None);
    }
    let text = base::file::read_string(&path).map_err(|e| TrainError::run(&path, e))?;
    let card: Card = toml::from_str(&text).map_err(|e| TrainError::run(&path, e))?;
    let Training { mut slides, slide_digests, patients } = card.training;
    slides.extend(slide_digests);
    let listed = TrainedOn { slides, patients };
    Ok((listed != TrainedOn::default()).then_some(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(slide: &str, file: &str) -> Names {
        Names { slide: slide.into(), patient: None, file: file.into(), sha256: None }
    }

    #[test]
    fn slides_are_found_by_name_suffix_start_patient_and_digest() {
        let listed = ["001.tiff", "A00_*", "abc"].map(str::to_owned).into();
        let list = TrainedOn { slides: listed, patients: ["P1".to_owned()].into() };
        let seen = Seen::new(&list);
        assert!(seen.has(&names("001", "x.png")) && seen.has(&names("001.svs", "x.png")));
        assert!(seen.has(&names("A00", "frames/A00_03.jpg")));
        assert!(seen.has(&Names { patient: Some("P1".into()), ..names("s", "x.png") }));
        assert!(seen.has(&Names { sha256: Some("abc".into()), ..names("s", "x.png") }));
        // Slide P1 is not patient P1, nor patient 001 slide 001.
        assert!(!seen.has(&names("P1", "x.png")));
        assert!(!seen.has(&Names { patient: Some("001".into()), ..names("s", "x.png") }));
        // Another collection, another frame, and an image that only has the name of a slide.
        for other in [names("MIDOG/001", "x"), names("A03", "A03_00.jpg"), names("s", "001.tiff")] {
            assert!(!seen.has(&other), "{other:?}");
        }
        assert_eq!(shown(["a", "b"]), "a, b");
        assert_eq!(shown(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
