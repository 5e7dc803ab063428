//! What of a card decides the numbers of a detector's networks.

use super::{CardError, ClassifierCard, ModelCard, ScreenCard, SegmenterCard};
use base::digest::sha256;

impl ModelCard {
    /// SHA-256 of all that feeds and reads the networks of a detector: their weights, sides, normalisation, boxes,
    /// classes and copies; with `second` those of the second stage as well. Names, licences, measured results and
    /// thresholds change nothing.
    ///
    /// # Errors
    /// [`CardError::Parse`] when the card cannot be written.
    pub fn networks_sha256(&self, second: bool) -> Result<String, CardError> {
        let segmenter = self.segmenter.clone().map(|s| SegmenterCard {
            file: String::new(),
            architecture: String::new(),
            ..s
        });
        // The precision is the engine's; whether a class is called is not asked in detection.
        let classifier = self.classifier.clone().map(|c| ClassifierCard {
            file: String::new(),
            architecture: String::new(),
            bf16: false,
            folds: vec![],
            threshold: None,
            ..c
        });
        let screen = self.screen.clone().map(|s| ScreenCard {
            file: String::new(),
            architecture: String::new(),
            ..s
        });
        let card = Self {
            segmenter,
            classifier: classifier.filter(|_| second),
            screen: screen.filter(|_| second),
            ..Self::new("", "")
        };
        Ok(sha256(card.to_toml()?))
    }
}
