//! Microscopy Bulk Simple Annotations: PS3.3 A.87 and C.37.1.

use crate::code::{OWN, items};
use crate::source::Source;
use crate::{Code, text, uid};
use dicom_core::chrono::{DateTime, Utc};
use dicom_core::{DataElement, PrimitiveValue, Tag, VR};
use dicom_dictionary_std::{tags, uids};
use dicom_object::{FileMetaTableBuilder, InMemDicomObject};
use std::time::SystemTime;

/// The object cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the object: {0}")]
pub struct EncodeError(pub(crate) String);

/// Annotations on one image.
///
/// Positions are px of the total pixel matrix, (0, 0) its upper left corner and (1, 1) the lower right
/// one of the first pixel: the frame of level 0.
#[derive(Clone, Debug)]
pub struct Annotations<'a> {
    /// The image.
    pub source: &'a Source,
    /// Whether to name the patient: name, number, birth date and sex of the patient, number, date
    /// and physician of the study, as far as the image has them. Otherwise these fields are present and empty.
    pub patient: bool,
    /// What made them.
    pub software: Software<'a>,
    /// Digest of what they were made of: the object's identifiers are derived from it.
    pub digest: &'a str,
    /// When they were found.
    pub made: SystemTime,
    /// A short name, of at most 16 capitals, digits and underscores.
    pub label: &'a str,
    /// What it is, in at most 64 characters.
    pub description: &'a str,
    /// At least one, none of them empty.
    pub groups: Vec<Group>,
}

/// What made annotations; each text of at most 64 characters.
#[derive(Clone, Copy, Debug)]
pub struct Software<'a> {
    /// Who is behind it.
    pub maker: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The weights.
    pub model: &'a str,
    /// Digest of the weights.
    pub model_digest: &'a str,
    /// Settings, as text.
    pub settings: &'a str,
}

/// Annotations of one kind.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name, of at most 64 characters.
    pub label: String,
    /// What it is, in at most 1,024 characters.
    pub description: String,
    /// What kind of thing (CID 7150).
    pub category: Code,
    /// What (CID 8135, extended).
    pub kind: Code,
    /// Where.
    pub shapes: Shapes,
    /// What was measured on them.
    pub measurements: Vec<Measurement>,
    /// Colour to show it in: CIELab as PS3.3 C.10.7.1.1 encodes it.
    pub colour: [u16; 3],
}

/// Places, px.
#[derive(Clone, Debug, PartialEq)]
pub enum Shapes {
    /// Points (x, y).
    Points(Vec<[f64; 2]>),
    /// Upper left and lower right corners.
    Rectangles(Vec<[[f64; 2]; 2]>),
    /// Corners of polygons without holes; the first is not repeated.
    Polygons(Vec<Vec<[f64; 2]>>),
}

/// A number for each annotation of a group, or none.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What was measured.
    pub name: Code,
    /// In which unit.
    pub unit: Code,
    /// As many as there are annotations.
    pub values: Vec<Option<f32>>,
}

impl Shapes {
    fn len(&self) -> usize {
        match self {
            Self::Points(p) => p.len(),
            Self::Rectangles(r) => r.len(),
            Self::Polygons(p) => p.len(),
        }
    }

    fn graphic_type(&self) -> &'static str {
        match self {
            Self::Points(_) => "POINT",
            Self::Rectangles(_) => "RECTANGLE",
            Self::Polygons(_) => "POLYGON",
        }
    }

    /// Where in the list of coordinates each shape begins, from 1; shapes of a fixed number of points need none.
    fn starts(&self) -> Option<Vec<u32>> {
        let Self::Polygons(all) = self else { return None };
        let (mut at, mut starts) = (1, Vec::with_capacity(all.len()));
        for polygon in all {
            starts.push(at);
            at += 2 * polygon.len() as u32;
        }
        Some(starts)
    }

    /// x and y of all points, one after the other.
    fn coordinates(&self) -> Vec<f64> {
        match self {
            Self::Points(points) => points.as_flattened().to_vec(),
            Self::Polygons(all) => all.iter().flat_map(|p| p.as_flattened().to_vec()).collect(),
            Self::Rectangles(all) => {
                let corners =
                    |[[x0, y0], [x1, y1]]: &[[f64; 2]; 2]| [*x0, *y0, *x1, *y0, *x1, *y1, *x0, *y1];
                all.iter().flat_map(corners).collect()
            }
        }
    }
}

impl Measurement {
    fn item(&self) -> InMemDicomObject {
        let known = || self.values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
        let numbers: Vec<f32> = known().map(|(_, v)| v).collect();
        let mut values = InMemDicomObject::new_empty();
        if numbers.len() < self.values.len() {
            let places: Vec<u32> = known().map(|(i, _)| i as u32 + 1).collect();
            let places = PrimitiveValue::U32(places.into());
            values.put(DataElement::new(tags::ANNOTATION_INDEX_LIST, VR::OL, places));
        }
        let numbers = PrimitiveValue::F32(numbers.into());
        values.put(DataElement::new(tags::FLOATING_POINT_VALUES, VR::OF, numbers));
        InMemDicomObject::from_element_iter([
            self.name.under(tags::CONCEPT_NAME_CODE_SEQUENCE),
            self.unit.under(tags::MEASUREMENT_UNITS_CODE_SEQUENCE),
            items(tags::MEASUREMENT_VALUES_SEQUENCE, vec![values]),
        ])
    }
}

fn number(to: &mut InMemDicomObject, tag: Tag, vr: VR, value: impl Into<PrimitiveValue>) {
    to.put(DataElement::new(tag, vr, value.into()));
}

impl Annotations<'_> {
    /// Identifier of the object: of the image, of what was found on it, and of whether it names a person.
    #[must_use]
    pub fn instance_uid(&self) -> String {
        let person = if self.patient { "person" } else { "" };
        uid::from_words(&[
            "instance",
            &self.source.instance,
            self.digest,
            self.software.version,
            person,
        ])
    }

    /// Identifier of its series: of the image's series and the weights.
    #[must_use]
    pub fn series_uid(&self) -> String {
        uid::from_words(&[
            "series",
            &self.source.series,
            &self.source.instance,
            self.software.model_digest,
        ])
    }

    /// The file, Explicit VR Little Endian; the same annotations give the same bytes.
    ///
    /// # Errors
    /// [`EncodeError`].
    pub fn bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let fail = |e: &dyn std::error::Error| EncodeError(e.to_string());
        let meta = FileMetaTableBuilder::new().transfer_syntax(uids::EXPLICIT_VR_LITTLE_ENDIAN);
        let file = self.object().with_meta(meta).map_err(|e| fail(&e))?;
        let mut bytes = Vec::new();
        file.write_all(&mut bytes).map_err(|e| fail(&e))?;
        Ok(bytes)
    }

    fn object(&self) -> InMemDicomObject {
        let mut all = InMemDicomObject::new_empty();
        self.put_common(&mut all);
        self.put_equipment(&mut all);
        self.put_references(&mut all);
        let groups = self.groups.iter().filter(|g| g.shapes.len() > 0);
        let groups = groups.enumerate().map(|(i, g)| self.group(i + 1, g)).collect();
        all.put(items(tags::ANNOTATION_GROUP_SEQUENCE, groups));
        all
    }

    /// The modules SOP Common, Patient, General Study and Series, and the object's own description.
    fn put_common(&self, all: &mut InMemDicomObject) {
        let made = DateTime::<Utc>::from(self.made);
        let (date, time) = (made.format("%Y%m%d").to_string(), made.format("%H%M%S").to_string());
        let class = uids::MICROSCOPY_BULK_SIMPLE_ANNOTATIONS_STORAGE;
        for (tag, vr, value) in self.source.person(self.patient) {
            text(all, tag, vr, value);
        }
        for (tag, vr, value) in [
            (tags::SPECIFIC_CHARACTER_SET, VR::CS, "ISO_IR 192"),
            (tags::SOP_CLASS_UID, VR::UI, class),
            (tags::SOP_INSTANCE_UID, VR::UI, &self.instance_uid()),
            (tags::TIMEZONE_OFFSET_FROM_UTC, VR::SH, "+0000"),
            (tags::STUDY_INSTANCE_UID, VR::UI, &self.source.study),
            (tags::SERIES_INSTANCE_UID, VR::UI, &self.series_uid()),
            (tags::MODALITY, VR::CS, "ANN"),
            (tags::SERIES_NUMBER, VR::IS, "1"),
            (tags::SERIES_DESCRIPTION, VR::LO, self.description),
            (tags::INSTANCE_NUMBER, VR::IS, "1"),
            (tags::CONTENT_LABEL, VR::CS, self.label),
            (tags::CONTENT_DESCRIPTION, VR::LO, self.description),
            (tags::CONTENT_DATE, VR::DA, &date),
            (tags::CONTENT_TIME, VR::TM, &time),
            (tags::ANNOTATION_COORDINATE_TYPE, VR::CS, "2D"),
            (tags::PIXEL_ORIGIN_INTERPRETATION, VR::CS, "VOLUME"),
        ] {
            text(all, tag, vr, value);
        }
        let mut scheme = InMemDicomObject::new_empty();
        text(&mut scheme, tags::CODING_SCHEME_DESIGNATOR, VR::SH, OWN);
        text(&mut scheme, tags::CODING_SCHEME_NAME, VR::ST, "Concepts of mithras");
        all.put(items(tags::CODING_SCHEME_IDENTIFICATION_SEQUENCE, vec![scheme]));
    }

    fn put_equipment(&self, all: &mut InMemDicomObject) {
        let s = &self.software;
        for (tag, value) in [
            (tags::MANUFACTURER, s.maker),
            (tags::MANUFACTURER_MODEL_NAME, s.name),
            (tags::DEVICE_SERIAL_NUMBER, s.model_digest),
            (tags::SOFTWARE_VERSIONS, s.version),
        ] {
            text(all, tag, VR::LO, value);
        }
    }

    fn put_references(&self, all: &mut InMemDicomObject) {
        let source = self.source;
        let mut image = InMemDicomObject::new_empty();
        text(&mut image, tags::REFERENCED_SOP_CLASS_UID, VR::UI, &source.class);
        text(&mut image, tags::REFERENCED_SOP_INSTANCE_UID, VR::UI, &source.instance);
        let mut series = InMemDicomObject::new_empty();
        text(&mut series, tags::SERIES_INSTANCE_UID, VR::UI, &source.series);
        series.put(items(tags::REFERENCED_INSTANCE_SEQUENCE, vec![image.clone()]));
        all.put(items(tags::REFERENCED_IMAGE_SEQUENCE, vec![image]));
        all.put(items(tags::REFERENCED_SERIES_SEQUENCE, vec![series]));
        if let Some(frame) = &source.frame_of_reference {
            text(all, tags::FRAME_OF_REFERENCE_UID, VR::UI, frame);
            text(all, tags::POSITION_REFERENCE_INDICATOR, VR::LO, "SLIDE_CORNER");
        }
    }

    fn group(&self, at: usize, group: &Group) -> InMemDicomObject {
        let s = &self.software;
        let mut algorithm = InMemDicomObject::from_element_iter([
            Code::ARTIFICIAL_INTELLIGENCE.under(tags::ALGORITHM_FAMILY_CODE_SEQUENCE)
        ]);
        text(&mut algorithm, tags::ALGORITHM_NAME, VR::LO, s.model);
        text(&mut algorithm, tags::ALGORITHM_VERSION, VR::LO, s.version);
        text(&mut algorithm, tags::ALGORITHM_PARAMETERS, VR::LT, s.settings);
        text(&mut algorithm, tags::ALGORITHM_SOURCE, VR::LO, s.maker);

        let mut item = InMemDicomObject::from_element_iter([
            group.category.under(tags::ANNOTATION_PROPERTY_CATEGORY_CODE_SEQUENCE),
            group.kind.under(tags::ANNOTATION_PROPERTY_TYPE_CODE_SEQUENCE),
            items(tags::ANNOTATION_GROUP_ALGORITHM_IDENTIFICATION_SEQUENCE, vec![algorithm]),
        ]);
        // Groups may share a label, as regions may share a name.
        let own = uid::from_words(&["group", &self.instance_uid(), &at.to_string(), &group.label]);
        for (tag, vr, value) in [
            (tags::ANNOTATION_GROUP_UID, VR::UI, own.as_str()),
            (tags::ANNOTATION_GROUP_LABEL, VR::LO, &group.label),
            (tags::ANNOTATION_GROUP_DESCRIPTION, VR::UT, &group.description),
            (tags::ANNOTATION_GROUP_GENERATION_TYPE, VR::CS, "AUTOMATIC"),
            (tags::ANNOTATION_APPLIES_TO_ALL_OPTICAL_PATHS, VR::CS, "YES"),
            (tags::ANNOTATION_APPLIES_TO_ALL_Z_PLANES, VR::CS, "YES"),
            (tags::GRAPHIC_TYPE, VR::CS, group.shapes.graphic_type()),
        ] {
            text(&mut item, tag, vr, value);
        }
        number(&mut item, tags::ANNOTATION_GROUP_NUMBER, VR::US, at as u16);
        number(&mut item, tags::NUMBER_OF_ANNOTATIONS, VR::UL, group.shapes.len() as u32);
        let colour = PrimitiveValue::U16(group.colour.to_vec().into());
        number(&mut item, tags::RECOMMENDED_DISPLAY_CIE_LAB_VALUE, VR::US, colour);
        // Doubles: in single precision a hundredth of a pixel is lost on wide slides.
        let places = PrimitiveValue::F64(group.shapes.coordinates().into());
        number(&mut item, tags::DOUBLE_POINT_COORDINATES_DATA, VR::OD, places);
        if let Some(starts) = group.shapes.starts() {
            let starts = PrimitiveValue::U32(starts.into());
            number(&mut item, tags::LONG_PRIMITIVE_POINT_INDEX_LIST, VR::OL, starts);
        }
        // A measurement that nobody has would be an empty list, which the standard does not know.
        let measured = group.measurements.iter().filter(|m| m.values.iter().any(Option::is_some));
        let measured: Vec<_> = measured.map(Measurement::item).collect();
        if !measured.is_empty() {
            item.put(items(tags::MEASUREMENTS_SEQUENCE, measured));
        }
        item
    }
}
