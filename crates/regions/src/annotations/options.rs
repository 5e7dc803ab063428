//! How files of annotations are read.

use super::boxes::BoxOrder;
use super::category::{Class, Mapping};
use super::select::Selection;

/// Whose labels count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelSource {
    /// The file's consensus: agreed class, category, majority.
    #[default]
    Agreed,
    /// One annotator, by the name the file uses.
    Annotator(String),
}

/// What the user may decide.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Meanings of category names.
    pub mapping: Mapping,
    /// Leave impossible records out and count them, instead of refusing the file.
    pub lenient: bool,
    /// States how boxes are written, against all evidence checks.
    pub boxes: Option<BoxOrder>,
    /// Whose labels count.
    pub labels: LabelSource,
    /// Class of every record of a table without a label column.
    pub assume: Option<Class>,
    /// Side of the box around a bare point, in level-0 pixels.
    pub box_px: f64,
    /// Cohort for sources that name none.
    pub cohort: Option<String>,
    /// Which images are taken.
    pub select: Selection,
    /// Whether objects of QuPath that this program found count: for those that a person has looked at.
    pub own_detections: bool,
}

impl ImportOptions {
    /// Whether nothing is set that only files of annotations can follow.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.select.is_all() && self.mapping.is_empty() && self.assume.is_none()
    }
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            mapping: Mapping::default(),
            lenient: false,
            boxes: None,
            labels: LabelSource::Agreed,
            assume: None,
            box_px: 50.0,
            cohort: None,
            select: Selection::default(),
            own_detections: false,
        }
    }
}
