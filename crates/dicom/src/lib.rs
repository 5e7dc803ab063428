//! What was found on a slide as a DICOM object that archives and viewers take: Microscopy Bulk Simple
//! Annotations (PS3.3 A.87), on their image.
//!
//! Of an image only its header is read, up to the frames. The person is named only where
//! the caller asks for it: see [`Annotations::patient`].

#![forbid(unsafe_code)]

mod annotation;
mod code;
pub mod report;
mod source;
pub mod uid;

pub use annotation::{Annotations, EncodeError, Group, Measurement, Shapes, Software};
pub use code::Code;
pub use source::{Source, SourceError, is_dicom};

use dicom_core::{DataElement, PrimitiveValue, Tag, VR};
use dicom_object::InMemDicomObject;

/// Adds text, also an empty one.
fn text(to: &mut InMemDicomObject, tag: Tag, vr: VR, value: &str) {
    to.put(DataElement::new(tag, vr, PrimitiveValue::from(value)));
}
