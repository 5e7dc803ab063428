//! Measurements as a structured report: Comprehensive SR (PS3.3 A.35.3) by the template TID 1500, Measurement Report
//! (PS3.16).

use crate::annotation::{EncodeError, Software};
use crate::code::{OWN, items};
use crate::source::Source;
use crate::{Code, text, uid};
use dicom_core::chrono::{DateTime, Utc};
use dicom_core::{DataElement, PrimitiveValue, VR};
use dicom_dictionary_std::{tags, uids};
use dicom_object::{FileMetaTableBuilder, InMemDicomObject};
use std::time::SystemTime;

/// A report on one image.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The image.
    pub source: &'a Source,
    /// Whether to include the patient's data, as [`crate::Annotations::patient`].
    pub patient: bool,
    /// What made it.
    pub software: Software<'a>,
    /// Digest of what it was made of: the object's identifiers are derived from it.
    pub digest: &'a str,
    /// When that was found.
    pub made: SystemTime,
    /// What it is, in at most 64 characters.
    pub description: &'a str,
    /// What was measured; at least one.
    pub groups: Vec<Measured>,
    /// What a reader of the numbers must know, in sentences.
    pub notes: Vec<String>,
}

/// A measured number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// What it is.
    pub name: Code,
    /// Its unit.
    pub unit: Code,
    /// The number, in that unit.
    pub value: f64,
}

/// What was measured on one area.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name, of at most 64 characters; unlike the others'.
    pub name: String,
    /// What was found there.
    pub finding: Code,
    /// Corners of the area, px of the total pixel matrix; the first is not repeated. None: the image, or what no
    /// polygon shows.
    pub area: Option<Vec<[f64; 2]>>,
    /// What was measured there.
    pub numbers: Vec<Number>,
}

const REPORT: Code = Code("126000", "DCM", "Imaging Measurement Report");
const LANGUAGE: Code = Code("121049", "DCM", "Language of Content Item and Descendants");
const ENGLISH: Code = Code("en", "RFC5646", "English");
const OBSERVER_TYPE: Code = Code("121005", "DCM", "Observer Type");
const DEVICE: Code = Code("121007", "DCM", "Device");
const DEVICE_UID: Code = Code("121012", "DCM", "Device Observer UID");
const DEVICE_NAME: Code = Code("121013", "DCM", "Device Observer Name");
const DEVICE_MAKER: Code = Code("121014", "DCM", "Device Observer Manufacturer");
const DEVICE_MODEL: Code = Code("121015", "DCM", "Device Observer Model Name");
const PROCEDURE: Code = Code("121058", "DCM", "Procedure reported");
const MICROSCOPY: Code = Code("104157003", "SCT", "Light microscopy procedure");
const MEASUREMENTS: Code = Code("126010", "DCM", "Imaging Measurements");
const GROUP: Code = Code("125007", "DCM", "Measurement Group");
const TRACKING: Code = Code("112039", "DCM", "Tracking Identifier");
const TRACKING_UID: Code = Code("112040", "DCM", "Tracking Unique Identifier");
const FINDING: Code = Code("121071", "DCM", "Finding");
const REGION: Code = Code("111030", "DCM", "Image Region");
const EVALUATIONS: Code = Code("C0034375", "UMLS", "Qualitative Evaluations");
const COMMENT: Code = Code("121106", "DCM", "Comment");

/// Square millimetres.
pub const MM2: Code = Code("mm2", "UCUM", "square millimeter");
/// Per square millimetre.
pub const PER_MM2: Code = Code("/mm2", "UCUM", "per square millimeter");

/// A content item; the root has no relation.
fn item(relation: &str, kind: &str, name: Option<Code>) -> InMemDicomObject {
    let mut item = InMemDicomObject::new_empty();
    if !relation.is_empty() {
        text(&mut item, tags::RELATIONSHIP_TYPE, VR::CS, relation);
    }
    text(&mut item, tags::VALUE_TYPE, VR::CS, kind);
    if let Some(name) = name {
        item.put(name.under(tags::CONCEPT_NAME_CODE_SEQUENCE));
    }
    item
}

fn coded(relation: &str, name: Code, value: Code) -> InMemDicomObject {
    let mut item = item(relation, "CODE", Some(name));
    item.put(value.under(tags::CONCEPT_CODE_SEQUENCE));
    item
}

fn worded(relation: &str, name: Code, value: &str) -> InMemDicomObject {
    let mut item = item(relation, "TEXT", Some(name));
    text(&mut item, tags::TEXT_VALUE, VR::UT, value);
    item
}

fn identified(relation: &str, name: Code, value: &str) -> InMemDicomObject {
    let mut item = item(relation, "UIDREF", Some(name));
    text(&mut item, tags::UID, VR::UI, value);
    item
}

fn holding(
    relation: &str,
    name: Code,
    template: Option<&str>,
    content: Vec<InMemDicomObject>,
) -> InMemDicomObject {
    let mut item = item(relation, "CONTAINER", Some(name));
    text(&mut item, tags::CONTINUITY_OF_CONTENT, VR::CS, "SEPARATE");
    if let Some(template) = template {
        let mut one = InMemDicomObject::new_empty();
        text(&mut one, tags::MAPPING_RESOURCE, VR::CS, "DCMR");
        text(&mut one, tags::TEMPLATE_IDENTIFIER, VR::CS, template);
        item.put(items(tags::CONTENT_TEMPLATE_SEQUENCE, vec![one]));
    }
    item.put(items(tags::CONTENT_SEQUENCE, content));
    item
}

/// A number; as text in at most 16 characters, and in full.
fn number(name: Code, unit: Code, value: f64) -> InMemDicomObject {
    let short = [format!("{value}"), format!("{value:.6}"), format!("{value:.6e}")];
    let short = short.iter().find(|s| s.len() <= 16).map_or("0", String::as_str);
    let mut measured =
        InMemDicomObject::from_element_iter([unit.under(tags::MEASUREMENT_UNITS_CODE_SEQUENCE)]);
    text(&mut measured, tags::NUMERIC_VALUE, VR::DS, short);
    measured.put(DataElement::new(
        tags::FLOATING_POINT_VALUE,
        VR::FD,
        PrimitiveValue::F64([value].as_slice().into()),
    ));
    let mut item = item("CONTAINS", "NUM", Some(name));
    item.put(items(tags::MEASURED_VALUE_SEQUENCE, vec![measured]));
    item
}

impl Report<'_> {
    /// Identifier of the object: of the image, of what was found on it, and of whether it names a person.
    #[must_use]
    pub fn instance_uid(&self) -> String {
        let person = if self.patient { "person" } else { "" };
        uid::from_words(&[
            "report",
            &self.source.instance,
            self.digest,
            self.software.version,
            person,
        ])
    }

    /// The file, Explicit VR Little Endian; the same measurements give the same bytes.
    ///
    /// # Errors
    /// [`EncodeError`].
    pub fn bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let meta = FileMetaTableBuilder::new().transfer_syntax(uids::EXPLICIT_VR_LITTLE_ENDIAN);
        let file = self.object().with_meta(meta).map_err(|e| EncodeError(e.to_string()))?;
        let mut bytes = Vec::new();
        file.write_all(&mut bytes).map_err(|e| EncodeError(e.to_string()))?;
        Ok(bytes)
    }

    fn object(&self) -> InMemDicomObject {
        let mut all = holding("", REPORT, Some("1500"), self.content());
        let made = DateTime::<Utc>::from(self.made);
        let (date, time) = (made.format("%Y%m%d").to_string(), made.format("%H%M%S").to_string());
        let (s, source) = (&self.software, self.source);
        let series =
            uid::from_words(&["report series", &source.series, &source.instance, s.model_digest]);
        for (tag, vr, value) in source.person(self.patient) {
            text(&mut all, tag, vr, value);
        }
        for (tag, vr, value) in [
            (tags::SPECIFIC_CHARACTER_SET, VR::CS, "ISO_IR 192"),
            (tags::SOP_CLASS_UID, VR::UI, uids::COMPREHENSIVE_SR_STORAGE),
            (tags::SOP_INSTANCE_UID, VR::UI, &self.instance_uid()),
            (tags::TIMEZONE_OFFSET_FROM_UTC, VR::SH, "+0000"),
            (tags::STUDY_INSTANCE_UID, VR::UI, &source.study),
            (tags::SERIES_INSTANCE_UID, VR::UI, &series),
            (tags::MODALITY, VR::CS, "SR"),
            (tags::SERIES_NUMBER, VR::IS, "2"),
            (tags::SERIES_DESCRIPTION, VR::LO, self.description),
            (tags::INSTANCE_NUMBER, VR::IS, "1"),
            (tags::MANUFACTURER, VR::LO, s.maker),
            (tags::MANUFACTURER_MODEL_NAME, VR::LO, s.name),
            (tags::DEVICE_SERIAL_NUMBER, VR::LO, s.model_digest),
            (tags::SOFTWARE_VERSIONS, VR::LO, s.version),
            (tags::COMPLETION_FLAG, VR::CS, "COMPLETE"),
            (tags::VERIFICATION_FLAG, VR::CS, "UNVERIFIED"),
            (tags::CONTENT_DATE, VR::DA, &date),
            (tags::CONTENT_TIME, VR::TM, &time),
        ] {
            text(&mut all, tag, vr, value);
        }
        let mut scheme = InMemDicomObject::new_empty();
        text(&mut scheme, tags::CODING_SCHEME_DESIGNATOR, VR::SH, OWN);
        text(&mut scheme, tags::CODING_SCHEME_NAME, VR::ST, "Concepts of mithras");
        all.put(items(tags::CODING_SCHEME_IDENTIFICATION_SEQUENCE, vec![scheme]));
        all.put(items(tags::PERFORMED_PROCEDURE_CODE_SEQUENCE, Vec::new()));
        all.put(items(tags::REFERENCED_PERFORMED_PROCEDURE_STEP_SEQUENCE, Vec::new()));
        let mut series = InMemDicomObject::new_empty();
        text(&mut series, tags::SERIES_INSTANCE_UID, VR::UI, &source.series);
        series.put(items(tags::REFERENCED_SOP_SEQUENCE, vec![self.image()]));
        let mut study = InMemDicomObject::new_empty();
        text(&mut study, tags::STUDY_INSTANCE_UID, VR::UI, &source.study);
        study.put(items(tags::REFERENCED_SERIES_SEQUENCE, vec![series]));
        all.put(items(tags::CURRENT_REQUESTED_PROCEDURE_EVIDENCE_SEQUENCE, vec![study]));
        all
    }

    fn image(&self) -> InMemDicomObject {
        let mut image = InMemDicomObject::new_empty();
        text(&mut image, tags::REFERENCED_SOP_CLASS_UID, VR::UI, &self.source.class);
        text(&mut image, tags::REFERENCED_SOP_INSTANCE_UID, VR::UI, &self.source.instance);
        image
    }

    fn content(&self) -> Vec<InMemDicomObject> {
        let s = &self.software;
        let groups = self.groups.iter().map(|g| self.group(g)).collect();
        let device = uid::from_words(&["device", s.name, s.version, s.model_digest]);
        let observer = "HAS OBS CONTEXT";
        let mut all = vec![
            coded("HAS CONCEPT MOD", LANGUAGE, ENGLISH),
            coded(observer, OBSERVER_TYPE, DEVICE),
            identified(observer, DEVICE_UID, &device),
            worded(observer, DEVICE_NAME, s.model),
            worded(observer, DEVICE_MAKER, s.maker),
            worded(observer, DEVICE_MODEL, &format!("{} {}", s.name, s.version)),
            coded("HAS CONCEPT MOD", PROCEDURE, MICROSCOPY),
            holding("CONTAINS", MEASUREMENTS, None, groups),
        ];
        if !self.notes.is_empty() {
            let notes = self.notes.iter().map(|n| worded("CONTAINS", COMMENT, n)).collect();
            all.push(holding("CONTAINS", EVALUATIONS, None, notes));
        }
        all
    }

    fn group(&self, group: &Measured) -> InMemDicomObject {
        let own = uid::from_words(&["report group", &self.instance_uid(), &group.name]);
        let mut content = vec![
            worded("HAS OBS CONTEXT", TRACKING, &group.name),
            identified("HAS OBS CONTEXT", TRACKING_UID, &own),
            coded("CONTAINS", FINDING, group.finding),
        ];
        if let Some(area) = &group.area {
            let mut region = item("CONTAINS", "SCOORD", Some(REGION));
            let corners = area.iter().chain(area.first()).flatten();
            let corners: Vec<f32> = corners.map(|v| *v as f32).collect();
            region.put(DataElement::new(
                tags::GRAPHIC_DATA,
                VR::FL,
                PrimitiveValue::F32(corners.into()),
            ));
            text(&mut region, tags::GRAPHIC_TYPE, VR::CS, "POLYLINE");
            text(&mut region, tags::PIXEL_ORIGIN_INTERPRETATION, VR::CS, "VOLUME");
            let mut from = item("SELECTED FROM", "IMAGE", None);
            from.put(items(tags::REFERENCED_SOP_SEQUENCE, vec![self.image()]));
            region.put(items(tags::CONTENT_SEQUENCE, vec![from]));
            content.push(region);
        }
        content.extend(group.numbers.iter().map(|n| number(n.name, n.unit, n.value)));
        let template = if group.area.is_some() { "1410" } else { "1501" };
        holding("CONTAINS", GROUP, Some(template), content)
    }
}
