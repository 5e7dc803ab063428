//! What of a slide's properties may be shown: nothing that says who the patient is.

/// DICOM's attributes of the patient that do not begin with `Patient`, and those that lead to one.
const OTHERS: [&str; 8] = [
    "accessionnumber",
    "otherpatientids",
    "otherpatientnames",
    "issuerofpatientid",
    "responsibleperson",
    "referringphysicianname",
    "medicalrecordlocator",
    "ethnicgroup",
];

/// Whether a property, such as `dicom.PatientName`, says who the patient is.
#[must_use]
pub fn names_patient(property: &str) -> bool {
    let words = property.split(['.', '[', ']', ' ', '_', '-']);
    words
        .map(str::to_ascii_lowercase)
        .any(|word| word.starts_with("patient") || OTHERS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::names_patient;

    #[test]
    fn the_patient_is_not_named() {
        for hidden in [
            "dicom.PatientName",
            "dicom.PatientID",
            "dicom.PatientBirthDate",
            "dicom.AccessionNumber",
            "aperio.Patient Name",
            "dicom.OtherPatientIDs",
        ] {
            assert!(names_patient(hidden), "{hidden}");
        }
        for shown in ["aperio.MPP", "openslide.mpp-x", "dicom.Modality", "tiff.Software"] {
            assert!(!names_patient(shown), "{shown}");
        }
    }
}
