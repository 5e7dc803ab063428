//! What is measured.

use super::areas::Areas;

use mitosis::matching::{PAPER_RADIUS, Rule};
use mitosis::{Microns, Mpp};
use pixels::perturb::Perturbation;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Resolution of images that state none.
    pub mpp: Option<Mpp>,
    /// The changes; the clean image comes first by itself.
    pub changes: Vec<Perturbation>,
    /// Matching radius.
    pub radius: Microns,
    /// Matching rule.
    pub rule: Rule,
    /// The parts of images that count; all of every image without them.
    pub within: Option<Areas>,
}

impl Default for Options {
    fn default() -> Self {
        let (radius, rule) = (PAPER_RADIUS, Rule::Midog);
        Self { mpp: None, changes: vec![], radius, rule, within: None }
    }
}
