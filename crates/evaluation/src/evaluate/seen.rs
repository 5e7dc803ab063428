//! Slides that a model has seen in training: results on them do not show its quality on other slides.

use super::{EvaluateError, Evaluation};
use std::collections::BTreeSet;
use std::path::Path;

/// Items named in a warning; more are counted.
const NAMED: usize = 10;

/// What a card's `[training]` lists: `slides` (names of slides, images or patients, file names and digests, where a
/// final `*` matches anything) and `slide_digests`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    whole: BTreeSet<String>,
    starts: Vec<String>,
}

impl Listed {
    /// Of a card; nothing where it lists nothing.
    #[must_use]
    pub fn from_card(card: &infer::ModelCard) -> Self {
        let mut listed = Self::default();
        let arrays = ["slides", "slide_digests"].map(|key| {
            card.training.as_ref().and_then(|t| t.get(key)?.as_array()).into_iter().flatten()
        });
        for text in arrays.into_iter().flatten().filter_map(|v| v.as_str()) {
            match text.strip_suffix('*') {
                Some(start) if !start.is_empty() => listed.starts.push(start.to_lowercase()),
                _ => {
                    listed.whole.insert(text.to_lowercase());
                    listed.whole.insert(mithras::input::stem(Path::new(text)).to_lowercase());
                }
            }
        }
        listed
    }

    /// Whether a slide, an image or a crop of this name (with or without folder and suffix) or digest is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
        let short = mithras::input::stem(Path::new(&last));
        [&last, &short].iter().any(|n| self.whole.contains(*n))
            || self.starts.iter().any(|start| last.starts_with(start.as_str()))
    }
}

/// Slides of an evaluation that a model's card lists among those it was trained on, by digest or by name.
#[must_use]
pub fn slides_seen_in_training(evaluation: &Evaluation, card: &infer::ModelCard) -> Vec<String> {
    let listed = Listed::from_card(card);
    let known = |(name, digest): &(&String, &String)| listed.has(name) || listed.has(digest);
    evaluation.digests.iter().filter(known).map(|(name, _)| name.clone()).collect()
}

/// A warning when the model behind the predictions was trained on some of the slides: of the package
/// `model`, or else of the bundled one that the predictions name.
///
/// # Errors
/// [`EvaluateError::Package`] when `model` is not a package.
pub fn seen_in_training(
    evaluation: &Evaluation,
    model: Option<&Path>,
) -> Result<Option<String>, EvaluateError> {
    let package = match (model, &evaluation.model) {
        (Some(dir), _) => infer::ModelPackage::find(Some(dir))?,
        // Otherwise it is a package of the user, which cannot be found by name.
        (None, Some(name)) => match infer::ModelPackage::find(Some(name.as_ref())) {
            Ok(package) => package,
            Err(_) => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    let known = slides_seen_in_training(evaluation, &package.card);
    Ok(warning(&package.card.name, "slides", &known))
}

/// None where nothing is known.
pub(super) fn warning(model: &str, what: &str, known: &[String]) -> Option<String> {
    let mut names = known.iter().take(NAMED).cloned().collect::<Vec<_>>();
    if known.len() > NAMED {
        names.push(format!("and {} more", known.len() - NAMED));
    }
    let count = known.len();
    (count > 0).then(|| {
        format!(
            "{model} was trained on {count} of these {what}, by their names or digests ({}); these results do not show its quality \
             on others",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundled(name: &str) -> Listed {
        Listed::from_card(&infer::ModelPackage::bundled_named(name).unwrap().card)
    }

    #[test]
    fn every_bundled_card_names_what_it_was_trained_on() {
        for name in infer::ModelPackage::bundled_names() {
            let listed = bundled(name);
            for seen in [
                "A00_03",
                "A02_09.jpg",
                "002",
                "002.tiff",
                "Atypical/MIDOG21_1044.png",
                "TCGA-A7-A13E-01Z-00-DX1",
                "test_1",
                "train_27_003.jpg",
            ] {
                assert!(listed.has(seen), "{name}: {seen}");
            }
            // Left out of training, held back, or of others.
            for other in ["A03_00", "H05_00Ab", "TUPAC16_12.png", "001", "TCGA-CR-7395", "test", ""]
            {
                assert!(!listed.has(other), "{name}: {other}");
            }
            let digests = listed.whole.iter().filter(|w| w.len() == 64);
            assert_eq!(digests.count(), 65, "{name}: 21 frames and 44 tiles");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (0..12).map(|k| format!("s{k}")).collect();
        let text = warning("m", "slides", &names).unwrap();
        assert!(
            text.contains("on 12 of these slides") && text.contains("s9, and 2 more"),
            "{text}"
        );
        assert_eq!(warning("m", "slides", &[]), None);
    }
}
