//! Coded concepts.

use dicom_core::{DataElement, Tag, VR};
use dicom_dictionary_std::tags;
use dicom_object::InMemDicomObject;
use dicom_object::mem::InMemElement;

/// A coded concept: the code, of at most 16 characters, the scheme that defines it, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub &'static str, pub &'static str, pub &'static str);

/// This project's own scheme, for what no other one names.
pub(crate) const OWN: &str = "99MITHRAS";

impl Code {
    /// SNOMED CT, as PS3.16 has it in CID 7150.
    pub const ANATOMICAL_STRUCTURE: Self = Self("91723000", "SCT", "Anatomical Structure");
    /// SNOMED CT, as PS3.16 has it in CID 7150.
    pub const SPATIAL_CONCEPT: Self = Self("309825002", "SCT", "Spatial and Relational Concept");
    /// A part of an image.
    pub const SELECTED_REGION: Self = Self("111099", "DCM", "Selected region");
    /// How an algorithm works.
    pub const ARTIFICIAL_INTELLIGENCE: Self = Self("123110", "DCM", "Artificial Intelligence");
    /// Unit of what has none.
    pub const NO_UNITS: Self = Self("1", "UCUM", "no units");

    /// A concept of this project.
    #[must_use]
    pub const fn own(code: &'static str, meaning: &'static str) -> Self {
        Self(code, OWN, meaning)
    }

    /// As the only item of the sequence `tag`.
    pub(crate) fn under(self, tag: Tag) -> InMemElement {
        let item = InMemDicomObject::from_element_iter([
            DataElement::new(tags::CODE_VALUE, VR::SH, self.0),
            DataElement::new(tags::CODING_SCHEME_DESIGNATOR, VR::SH, self.1),
            DataElement::new(tags::CODE_MEANING, VR::LO, self.2),
        ]);
        items(tag, vec![item])
    }
}

/// A sequence.
pub(crate) fn items(tag: Tag, items: Vec<InMemDicomObject>) -> InMemElement {
    DataElement::new(tag, VR::SQ, dicom_core::value::DataSetSequence::from(items))
}
