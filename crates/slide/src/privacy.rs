//! What of a file's properties may be shown: technical ones, and nothing that states whose slide it is,
//! who worked on it, when and where.
//!
//! Names are judged, not values: they are those of DICOM's attributes, of TIFF's tags, and of what
//! scanners write (Aperio, Hamamatsu, Leica, 3DHISTECH, Philips, Ventana). DICOM's UIDs count as
//! technical: every file has them, and nothing in it states whether they were replaced. A DICOM attribute
//! is also judged by its kind in the standard (names, dates, free text, bytes), and a private one counts as
//! free text: nobody but its maker knows what it states.

use crate::code_words::{CODES, SCHEMES};
use dicom_core::VR;
use dicom_core::dictionary::{DataDictionary, DataDictionaryEntry};
use dicom_dictionary_std::StandardDataDictionary;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// What a property states about people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Personal {
    /// Somebody: patient, physician, operator, user.
    Person,
    /// What leads to somebody in another register: accession, barcode, name of a file.
    Identifier,
    /// A date or time, of whatever event.
    Date,
    /// A hospital, department, host or address.
    Place,
    /// One device among others of its kind, by its serial number: it leads to a place.
    Device,
    /// Free text, which may hold anything.
    Text,
    /// The same in letters that no field makes known: it is not UTF-8.
    UnknownCodePage,
    /// A picture that may show the label.
    Picture,
}

impl fmt::Display for Personal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Person => "a person",
            Self::Identifier => "an identifier",
            Self::Date => "a date or time",
            Self::Place => "a place",
            Self::Device => "a device, by its serial number",
            Self::Text => "free text, which somebody has to read",
            Self::UnknownCodePage => "text in an unknown code page, which somebody has to read",
            Self::Picture => "a picture that may show the label",
        })
    }
}

/// Parts of a name, its letters and digits alone in lower case.
const PARTS: &[(Personal, &[&str])] = &[
    (
        Personal::Person,
        &[
            "patient",
            "physician",
            "operator",
            "responsibleperson",
            "personname",
            "observer",
            "username",
            "ethnicgroup",
            "medicalrecord",
            "experimenter",
            // Sequences of codes in that table, whose words are names.
            "personidentification",
            "contentcreator",
            "humanperformer",
            "participant",
            // DICOM PS3.15, table E.1-1, of values that are not text.
            "pregnancystatus",
            "smokingstatus",
        ],
    ),
    (
        Personal::Identifier,
        &[
            "accession",
            "barcode",
            "containeridentifier",
            "specimenidentifier",
            "studyid",
            "slideid",
            "slidename",
            "caseid",
            "imageid",
            "filename",
            "documentname",
            "projectname",
            "dsrid",
            "labeltext",
            "hamamatsureference",
            "pagename",
            "iptc",
            "clinicaltrial",
            "admissionid",
            "ordernumber",
            "requestedprocedureid",
            "procedurestepid",
            "insurance",
        ],
    ),
    (
        Personal::Place,
        &[
            "institution",
            "hospital",
            "department",
            "hostcomputer",
            "stationname",
            "requestingservicecode",
        ],
    ),
    (
        Personal::Device,
        &[
            "serialnumber",
            "serialno",
            // Aperio, Hamamatsu, 3DHISTECH, Ventana.
            "scanscopeid",
            "ndpsn",
            "hardwareid",
            "unitnumber",
            // DICOM PS3.15, table E.1-1, of the retain-device-identity option.
            "gantryid",
            "detectorid",
            "plateid",
            "cassetteid",
            "xraysourceid",
            "devicelabel",
            "udideviceidentifier",
            "uniquedeviceidentifier",
        ],
    ),
    (
        Personal::Text,
        &[
            "imagedescription",
            "openslidecomment",
            // Sequences of codes in that table.
            "admittingdiagnos",
            "reasonforvisit",
            "reasonforrequestedprocedure",
            "requestedprocedurecode",
            "comments",
            "studydescription",
            "seriesdescription",
            "xmp",
            "usercomment",
            "makernote",
        ],
    ),
];

/// Whole words of the last part of a name.
const WORDS: &[(Personal, &[&str])] = &[
    (Personal::Person, &["user", "artist", "author", "owner", "creator", "copyright"]),
    (Personal::Identifier, &["title"]),
    (Personal::Date, &["date", "time", "datetime", "created", "updated", "creationdatetime"]),
    (Personal::Place, &["address"]),
];

/// Technical, though they sound otherwise.
const TECHNICAL: &[&str] = &[
    "patientidentityremoved",
    "patientorientation",
    "exposuretime",
    "timezone",
    "frametime",
    "opticalpathdescription",
    "codingschemename",
    "codingschemeresponsibleorganization",
];

/// DICOM's attributes of short text with words of the standard alone (PS3.3, 8.8, C.7.6.17, C.8.12.4, C.8.12.5; the
/// last is what the copy without persons states). In every other one anybody may have written anything.
const DICOM_WORDS: [&str; 11] = [
    "CodeMeaning",
    "CodeValue",
    "CodingSchemeDesignator",
    "CodingSchemeRegistry",
    "CodingSchemeVersion",
    "DimensionDescriptionLabel",
    // Of the library that wrote the file.
    "ImplementationVersionName",
    "LongCodeValue",
    "OpticalPathIdentifier",
    "PositionReferenceIndicator",
    "DeidentificationMethod",
];
/// Of these, the ones whose words are known: another value may state anything. Of coding schemes PS3.16, table 8-1; a
/// scheme of a hospital's own may count its people.
const CODING_SCHEMES: &[&str] = &[
    "ACR",
    "C4",
    "C5",
    "CD2",
    "CTCAE",
    "DC",
    "DCM",
    "DCMUID",
    "FMA",
    "HPC",
    "I10",
    "I10C",
    "I10P",
    "I11",
    "I9",
    "I9C",
    "IBSI",
    "ICDO3",
    "ISO3166_1",
    "ISO639_1",
    "ISO639_2",
    "ISO_OID",
    "ITIS_TSN",
    "LN",
    "MA",
    "MDC",
    "MDNS",
    "MSH",
    "NCIt",
    "NDC",
    "NEU",
    "NICIP",
    "PATHLEX",
    "POS",
    "PubChem_CID",
    "RADELEMENT",
    "RADLEX",
    "RFC3066",
    "RFC5646",
    "RO",
    "SCPECG",
    "SCT",
    "SNM3",
    "SPM",
    "SRT",
    "UBERON",
    "UCUM",
    "UMLS",
    "UNS",
    "99SDM",
];
/// Of `PositionReferenceIndicator` on slides (PS3.3, C.7.4.1.1.2).
const POSITIONS: [&str; 2] = ["SLIDE_CORNER", "UNKNOWN"];
/// Of `DimensionDescriptionLabel`, next to keywords of attributes.
const DIMENSIONS: &[&str] = &[
    "column",
    "focal",
    "frame",
    "identifier",
    "in",
    "index",
    "matrix",
    "number",
    "offset",
    "optical",
    "path",
    "pixel",
    "plane",
    "position",
    "row",
    "segment",
    "tile",
    "total",
    "y",
    "z",
];
/// Letters of a word that can only be the mark of an optical path.
const SHORT: usize = 2;

/// DICOM's attributes that name a product ([`PRODUCTS`]).
const DICOM_PRODUCTS: [&str; 4] =
    ["Manufacturer", "ManufacturerModelName", "OpticalPathDescription", "SoftwareVersions"];

/// Ends of the names of DICOM's attributes of bytes that are tables of numbers.
const DICOM_TABLES: [&str; 5] = [
    "iccprofile",
    "lookuptabledata",
    "lutdata",
    "extendedoffsettable",
    "extendedoffsettablelengths",
];

/// Whether an attribute of this keyword is a table of numbers.
pub(crate) fn is_table(keyword: &str) -> bool {
    let own = keyword.to_ascii_lowercase();
    DICOM_TABLES.iter().any(|end| own.ends_with(end))
}

/// The kind of an attribute of this keyword in the standard.
pub(crate) fn kind_in_the_standard(keyword: &str) -> Option<VR> {
    StandardDataDictionary.by_name(keyword).map(|e| e.vr().relaxed())
}

/// What a property of this name states about people; `None` for a technical one.
#[must_use]
pub fn personal(name: &str) -> Option<Personal> {
    let squeezed: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let is_picture =
        ["pixeldata", "overlaydata", "curvedata"].iter().any(|end| squeezed.ends_with(end));
    if name.starts_with("dicom") && is_picture {
        return Some(Personal::Picture);
    }
    let kind = kind_of_attribute(name);
    // Values of several are numbered.
    let attribute = squeezed.trim_end_matches(|c: char| c.is_ascii_digit());
    if kind == Some(VR::UI) || TECHNICAL.iter().any(|t| attribute.ends_with(t)) {
        return None;
    }
    let part = PARTS.iter().find(|(_, parts)| parts.iter().any(|p| squeezed.contains(p)));
    let own = split_words(name);
    let word = || WORDS.iter().find(|(_, all)| own.iter().any(|w| all.contains(&w.as_str())));
    part.or_else(word).map(|(kind, _)| *kind).or_else(|| match kind? {
        VR::PN => Some(Personal::Person),
        VR::DA | VR::DT | VR::TM => Some(Personal::Date),
        // Private attributes are of no kind that is known.
        VR::LT | VR::ST | VR::UT | VR::UN => Some(Personal::Text),
        VR::AE => Some(Personal::Place),
        kind if is_bytes(kind) => {
            let is_table = DICOM_TABLES.iter().any(|end| attribute.ends_with(end));
            (!is_table).then_some(Personal::Text)
        }
        VR::LO | VR::SH | VR::UC | VR::UR => {
            let keyword = keyword(name)?;
            let known = DICOM_WORDS.contains(&keyword) || DICOM_PRODUCTS.contains(&keyword);
            (!known).then_some(Personal::Text)
        }
        _ => None,
    })
}

/// Whether values of a kind are bytes, or numbers in bytes, of any length.
fn is_bytes(kind: VR) -> bool {
    matches!(kind, VR::OB | VR::OD | VR::OF | VR::OL | VR::OV | VR::OW)
}

/// Whether a property is free text only where its bytes hold words.
pub(crate) fn is_of_bytes(name: &str) -> bool {
    personal(name) == Some(Personal::Text) && kind_of_attribute(name).is_some_and(is_bytes)
}

/// Whether a property may state something about people, whatever its value.
pub(crate) fn may_be_personal(name: &str) -> bool {
    const MAY: [&str; 4] = [
        "CodingSchemeDesignator",
        "DimensionDescriptionLabel",
        "OpticalPathIdentifier",
        "PositionReferenceIndicator",
    ];
    personal(name).is_some()
        || names_a_product(name)
        || keyword(name).is_some_and(|k| MAY.contains(&k))
}

/// The keyword of a DICOM attribute: of `dicom.A[0].SoftwareVersions[1]` the last, without its number.
fn keyword(name: &str) -> Option<&str> {
    name.strip_prefix("dicom")?.rsplit('.').next()?.split('[').next()
}

/// The kind of a DICOM attribute in the standard: `dicom.A[0].TextValue` is text of any length.
fn kind_of_attribute(name: &str) -> Option<VR> {
    let keyword = keyword(name)?;
    if keyword.starts_with('(') {
        return Some(VR::UN);
    }
    kind_in_the_standard(keyword)
}

/// The words of a name's last part: `dicom.AcquisitionDateTime` has acquisition, date and time.
fn split_words(name: &str) -> Vec<String> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut all = vec![String::new()];
    let mut before = ' ';
    for c in last.chars() {
        let starts = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        if starts || !c.is_ascii_alphanumeric() {
            all.push(String::new());
        }
        if c.is_ascii_alphanumeric() {
            all.last_mut().expect("never empty").push(c.to_ascii_lowercase());
        }
        before = c;
    }
    all
}

/// What a property states about people, by name, where it states something: of a scanner's description
/// its single fields.
#[must_use]
pub fn personal_parts(name: &str, value: &str) -> Vec<(String, Personal)> {
    if is_blank(value) {
        return Vec::new();
    }
    let text = || vec![(name.to_owned(), kind_of_text(value))];
    match personal(name) {
        None if names_a_product(name) && !is_product(value) => text(),
        None if keyword(name).is_some_and(|k| is_out_of_place(k, value)) => text(),
        // Whatever the field is for, nobody knows what is written in it.
        None if kind_of_text(value) == Personal::UnknownCodePage => text(),
        None => Vec::new(),
        Some(Personal::Text) => fields_found(name, value).unwrap_or_else(text),
        Some(kind) => vec![(name.to_owned(), kind)],
    }
}

/// The kind of free text: whether its letters are known.
pub(crate) fn kind_of_text(value: &str) -> Personal {
    let is_binary = |c: char| c.is_control() && !c.is_whitespace();
    match value.contains(char::REPLACEMENT_CHARACTER) && !value.contains(is_binary) {
        true => Personal::UnknownCodePage,
        false => Personal::Text,
    }
}

/// Whether a property may be shown.
#[must_use]
pub fn is_technical(name: &str, value: &str) -> bool {
    match personal(name) {
        None | Some(Personal::Text) => personal_parts(name, value).is_empty(),
        Some(_) => false,
    }
}

/// Whether an associated image may show the label with its names and barcodes: every image but a
/// thumbnail of the scanned area and a mask. One that nothing names may be anything.
#[must_use]
pub fn may_show_label(image: &str) -> bool {
    let name = image.to_ascii_lowercase();
    !["thumbnail", "mask"].iter().any(|word| name.starts_with(word))
}

/// The personal fields of a scanner's description; `None` where it is free text of another form.
pub(crate) fn fields_found(name: &str, value: &str) -> Option<Vec<(String, Personal)>> {
    let filled = fields(value)?.into_iter().filter(|(_, value)| !is_blank(value));
    let kinds = filled.filter_map(|(key, value)| Some((key, of_field(key, value)?)));
    let kinds = kinds.map(|(key, kind)| (format!("{name}: {key}"), kind));
    let head = value.split('|').next().unwrap_or_default();
    let mut words = head.split(|c: char| c.is_whitespace() || c == ';').filter(|w| !w.is_empty());
    let other = words.any(|w| !is_head(w));
    let first = other.then(|| (format!("{name}: first lines"), Personal::Text));
    Some(first.into_iter().chain(kinds).collect())
}

/// What the value of a technical field is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Technical {
    /// A number with at most so many digits before the point.
    Number(usize),
    /// Words of products ([`PRODUCTS`]).
    Words,
}

use Technical::{Number, Words};

/// Digits of a count of places in the scanner, of a measure, and of a side in pixels: what has more may be a number of
/// a case, or a date.
const PLACE: Technical = Number(3);
const MEASURE: Technical = Number(5);
const SIDE: Technical = Number(7);
/// Digits behind the point of a number as programs print it.
const DECIMALS: usize = 20;

/// Fields of Aperio's descriptions without personal data: those that ImageScope and the scanners'
/// consoles write (ScanScope CS, XT, AT, AT2, GT 450).
const APERIO_TECHNICAL: [(&str, Technical); 28] = [
    ("appmag", MEASURE),
    ("mpp", MEASURE),
    ("stripewidth", MEASURE),
    ("parmset", Words),
    ("left", MEASURE),
    ("top", MEASURE),
    ("linecameraskew", MEASURE),
    ("lineareaxoffset", MEASURE),
    ("lineareayoffset", MEASURE),
    ("focus offset", MEASURE),
    ("exposure time", MEASURE),
    ("exposure scale", MEASURE),
    ("displaycolor", MEASURE),
    ("originalwidth", SIDE),
    ("originalheight", SIDE),
    ("icc profile", Words),
    ("gamma", MEASURE),
    ("offsetz", MEASURE),
    ("sessonmode", Words),
    ("sessionmode", Words),
    ("time zone", Words),
    ("scannertype", Words),
    ("scanner type", Words),
    ("rack", PLACE),
    ("slide", PLACE),
    ("filtered", MEASURE),
    ("intended use", Words),
    ("totaldepth", MEASURE),
];

/// Words of the names of scanners, cameras, microscopes and programs that write slides, in lower case: those of their
/// makers, of the formats' own descriptions, and of `Software` as libtiff's users write it.
#[rustfmt::skip]
const PRODUCTS: &[&str] = &[
    // Scanners and cameras.
    "3dhistech", "ag", "aperio", "at", "axio", "axiocam", "axioscan", "axioscope", "biosystems", "camera", "canon",
    "carl", "console", "corporation", "corp", "cs", "desk", "dp", "dx", "easyscan", "eos", "evident", "flash", "gmbh",
    "grundium", "gt", "hamamatsu", "ht", "huron", "ii", "imager", "inc", "intellisite", "iscan", "coreo", "kfbio",
    "kk", "leica", "ltd", "microscope", "microscopy", "microsystems", "midi", "mirax", "motic", "nanozoomer", "ndp",
    "nikon", "nzacquire", "ocus", "olympus", "omnyx", "pannoramic", "philips", "photonics", "roche", "sakura", "scan",
    "scanner", "scanscope", "slide", "slideview", "tissuescope", "trestle", "ufs", "ventana", "visiontek", "vs", "xr",
    "xt", "zeiss",
    // Programs.
    "adobe", "asap", "bio", "bioformats", "builder", "cellsens", "converter", "dcmtk", "dicom", "fiji", "formats",
    "gdal", "gimp", "gdcm", "glencoe", "graphicsmagick", "highdicom", "imagej", "imagemagick", "imageio", "imagescope",
    "indica", "itk", "java", "large", "halo", "libtiff", "libvips", "loci", "macintosh", "magick", "matlab",
    "mathworks", "micro", "manager", "mithras", "offis", "ome", "opencv", "openslide", "orthanc", "photoshop",
    "pillow", "py", "pydicom", "pyvips", "python", "qupath", "simpleitk", "tifffile", "vips", "visiopharm", "wsidicom",
    "wsidicomizer", "windows", "zen",
    // Settings of scanners, colour profiles, and words between names.
    "a", "adobe98", "and", "black", "blue", "bright", "brightfield", "field", "build", "by", "clinical", "color",
    "colour", "coverslip", "created", "default", "diagnostic", "digital", "edition", "embedded", "filter", "gmt", "gs",
    "iec", "illumination", "image", "imaging", "ivd", "lab", "library", "light", "lite", "none", "nr", "of", "only",
    "pathology", "product", "profile", "release", "research", "rgb", "ruo", "server", "software", "space", "srgb",
    "standard", "studio", "system", "systems", "the", "tiff", "tool", "toolbox", "tools", "transmitted", "unknown",
    "use", "usm", "utc", "v", "ver", "version", "viewer", "with", "writer", "x",
];

/// Known words that are names of people, too: a text of these alone may be one.
const SURNAMES: &[&str] =
    &["black", "carl", "eastman", "field", "gray", "grey", "hewlett", "light", "little", "packard"];

/// Whether a text is of names of products, versions and short numbers alone.
pub(crate) fn is_product(text: &str) -> bool {
    is_of_known_words(text, &[])
}

/// The same where these words, in lower case, are technical as well.
pub(crate) fn is_of_known_words(text: &str, more: &[&str]) -> bool {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    let parts: Vec<String> = parts.map(str::to_lowercase).collect();
    let is_name = |word: &String| SURNAMES.contains(&word.as_str());
    // Signs of another script, too, may be letters of a code page that were taken for others.
    let is_foreign = |c: char| !c.is_ascii() && !c.is_alphanumeric() && !"©®™".contains(c);
    !text.contains(is_foreign)
        && !text.split_whitespace().any(is_accession)
        && !holds_date(text)
        && (parts.is_empty() || !parts.iter().all(is_name))
        && parts.iter().all(|word| {
            // A version or model (`19045`, `gt450dx`, `c13220`) is short; a longer one is a number of something.
            let is_number = word.chars().all(|c| c.is_ascii_digit());
            let has_digit = word.chars().any(|c| c.is_ascii_digit());
            (has_digit && word.len() <= if is_number { 5 } else { 7 })
                || PRODUCTS.contains(&word.as_str())
                || more.contains(&word.as_str())
        })
}

/// Whether three numbers in a row can be a day, a month and a year: one of four digits, first or last, whatever parts
/// them, or one of two between strokes. Versions have points between short numbers.
pub(crate) fn holds_date(text: &str) -> bool {
    let number = |s: &str, digits: usize| {
        let all = (1..=digits).contains(&s.len()) && s.chars().all(|c| c.is_ascii_digit());
        s.parse::<u32>().ok().filter(|_| all)
    };
    let is_year = |s: &str| s.len() == 4 && number(s, 4).is_some_and(|y| (1900..2100).contains(&y));
    let is_day = |a: &str, b: &str| match (number(a, 2), number(b, 2)) {
        (Some(a), Some(b)) => (1..=31).contains(&a.max(b)) && (1..=12).contains(&a.min(b)),
        _ => false,
    };
    let parts: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let in_full = parts
        .windows(3)
        .any(|w| (is_year(w[0]) && is_day(w[1], w[2])) || (is_year(w[2]) && is_day(w[0], w[1])));
    let short = |word: &str| {
        let w: Vec<&str> = word.split(['-', '/']).collect();
        let years = w.len() == 3 && w.iter().all(|s| number(s, 2).is_some());
        years && (is_day(w[0], w[1]) || is_day(w[1], w[2]))
    };
    in_full || text.split_whitespace().any(short)
}

/// Whether a word is formed as a laboratory counts its cases: letters and the year, a hyphen, a number.
fn is_accession(word: &str) -> bool {
    let Some((year, number)) = word.split_once('-') else { return false };
    let digits = year.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let counts = |s: &str, n: usize| s.len() >= n && s.chars().all(|c| c.is_ascii_digit());
    year.len() - digits.len() <= 3
        && [2, 4].contains(&digits.len())
        && counts(digits, 2)
        && counts(number, 3)
}

/// Whether a property is to name a product, in a field where anybody may write anything.
fn names_a_product(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    name.starts_with("tiff") && ["Make", "Model", "Software"].contains(&last)
        || keyword(name).is_some_and(|k| DICOM_PRODUCTS.contains(&k))
}

/// Whether an attribute of DICOM with words of the standard has another value.
fn is_out_of_place(keyword: &str, value: &str) -> bool {
    match keyword {
        "CodingSchemeDesignator" => !is_public_scheme(value),
        "PositionReferenceIndicator" => !POSITIONS.contains(&value) && value.len() > SHORT,
        "OpticalPathIdentifier" => value.len() > SHORT && !is_product(value),
        "DimensionDescriptionLabel" => {
            let known = StandardDataDictionary.by_name(value).is_some();
            !known && !is_of_known_words(value, DIMENSIONS)
        }
        "CodingSchemeRegistry" | "CodingSchemeName" | "CodingSchemeResponsibleOrganization" => {
            !is_of_known_words(value, SCHEMES)
        }
        _ => match kind_in_the_standard(keyword) {
            Some(VR::CS) => !value.split('\\').all(is_code),
            // What a file has as bytes is shown by its length, and looked into elsewhere.
            _ if value.strip_suffix(" bytes").is_some_and(|n| is_number(n, 20)) => false,
            Some(VR::AS) => !value.split('\\').all(is_age),
            Some(VR::DS | VR::IS | VR::US | VR::SS | VR::UL | VR::SL | VR::UV | VR::SV) => {
                !value.split('\\').all(is_stated_number)
            }
            Some(VR::FL | VR::FD) => !value.split('\\').all(is_stated_number),
            Some(VR::UI) => {
                let is_of_uid =
                    |c: char| c.is_ascii_digit() || matches!(c, '.' | '\\' | '\0' | ' ');
                !value.chars().all(is_of_uid)
            }
            _ => false,
        },
    }
}

/// Whether a text is an age as DICOM writes it: three digits, and days, weeks, months or years; or nothing.
fn is_age(part: &str) -> bool {
    let part = part.trim_matches(['\0', ' ']);
    let is_unit = |unit: &str| ["D", "W", "M", "Y"].contains(&unit);
    let is_number = |n: &str| n.len() == 3 && n.chars().all(|c| c.is_ascii_digit());
    part.is_empty()
        || part.split_at_checked(3).is_some_and(|(n, unit)| is_number(n) && is_unit(unit))
}

/// Whether a text is a number, also one of another spelling, or one that is not finite.
fn is_stated_number(part: &str) -> bool {
    let part = part.trim_matches(['\0', ' ']);
    let is_of_number = |c: char| c.is_ascii_digit() || "+-.,eE ".contains(c);
    ["NaN", "inf", "-inf"].contains(&part) || part.chars().all(is_of_number)
}

/// Whether a code string is one of the standard's, or too short for a name.
fn is_code(part: &str) -> bool {
    let part = part.trim_matches(['\0', ' ']);
    part.len() <= SHORT || is_of_known_words(part, CODES)
}

/// Of code strings those of the standard, each in its place.
pub(crate) fn known_codes(value: &str) -> String {
    let kept = value.split('\\').map(|part| if is_code(part) { part } else { "" });
    kept.collect::<Vec<_>>().join("\\")
}

/// Whether codes of this scheme are of a public list.
pub(crate) fn is_public_scheme(designator: &str) -> bool {
    CODING_SCHEMES.contains(&designator)
}

/// Whether a field is one of [`APERIO_TECHNICAL`] with a value as such a field has.
fn is_technical_field(key: &str, value: &str) -> bool {
    let key = key.to_lowercase();
    let held = APERIO_TECHNICAL.iter().find(|(name, _)| *name == key).map(|(_, held)| *held);
    match held {
        Some(Words) => is_product(value),
        Some(Number(most)) => is_number(value.trim(), most),
        None => false,
    }
}

/// Whether a text is empty, or one number with at most so many digits before the point.
fn is_number(text: &str, most: usize) -> bool {
    fn unsigned(text: &str) -> &str {
        text.strip_prefix(['+', '-']).unwrap_or(text)
    }
    let digits = |s: &str, most: usize| s.len() <= most && s.chars().all(|c| c.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, ""));
    let (whole, part) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, ""));
    digits(unsigned(whole), most) && digits(part, DECIMALS) && digits(unsigned(exponent), 3)
}

/// The kind of a field of a description: by its name, and as free text where nobody knows the name, which may itself be
/// somebody's, or the value is not of it.
fn of_field(key: &str, value: &str) -> Option<Personal> {
    personal(key).or_else(|| (!is_technical_field(key, value)).then(|| kind_of_text(value)))
}

/// Words of the lines before the fields, as Aperio's scanners and ImageScope write them: program,
/// geometry, coding.
const APERIO_HEAD: [&str; 19] = [
    "aperio",
    "image",
    "library",
    "leica",
    "biosystems",
    "gt450",
    "gt450dx",
    "scanscope",
    "label",
    "macro",
    "thumbnail",
    "zoomify",
    "raw",
    "none",
    "lzw",
    "kdu",
    "j2k",
    "bigtiff",
    "svs",
];

/// Parts of the coding there.
const APERIO_CODING: [&str; 12] =
    ["JPEG", "RGB", "J2K", "JP2", "KDU", "YUV8", "YUV16", "YCC", "LZW", "RAW", "BGR", "GRAY"];

/// Whether a word of the lines before the fields is technical.
fn is_head(word: &str) -> bool {
    let geometry = |c: char| c.is_ascii_digit() || "[](),xX.+".contains(c);
    let version = || {
        word.strip_prefix('v').is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    let quality = || word.strip_prefix("Q=").is_some_and(|v| v.chars().all(|c| c.is_ascii_digit()));
    // `JPEG/RGB`, `J2K/YUV16`, `J2K/KDU`.
    let coding = || {
        let mut parts = word.split(['/', ':']);
        word.contains('/') && parts.all(|p| APERIO_CODING.contains(&p))
    };
    // `46000x32914`, `[0,100`, `(256x256)`; a number alone that is longer may count cases.
    let is_geometry = || {
        let alone = word.chars().all(|c| c.is_ascii_digit());
        let short = word.split(|c: char| !c.is_ascii_digit()).all(|n| n.len() <= 7);
        word.chars().all(geometry) && short && !(alone && word.len() > 5) && !holds_date(word)
    };
    matches!(word, "->" | "-")
        || is_geometry()
        || APERIO_HEAD.contains(&word.to_lowercase().as_str())
        || version()
        || quality()
        || coding()
}

/// An Aperio description with its technical words and fields alone.
pub(crate) fn without_persons(text: &str) -> String {
    let (head, fields) = text.split_once('|').unwrap_or((text, ""));
    let lines = head.lines().map(|line| {
        let parts = line.split(';').map(|part| {
            let words = part.split_whitespace().filter(|w| is_head(w));
            words.collect::<Vec<_>>().join(" ")
        });
        parts.filter(|p| !p.is_empty()).collect::<Vec<_>>().join(";")
    });
    let mut out = lines.collect::<Vec<_>>().join("\r\n");
    for field in fields.split('|') {
        let Some((key, value)) = field.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if is_technical_field(key, value) && personal(key).is_none() {
            out.push_str(&format!("|{key} = {value}"));
        }
    }
    out
}

/// Nothing, or a word that was put where something was.
pub(crate) fn is_blank(value: &str) -> bool {
    const PUT: [&str; 10] = [
        // Dummy dates of DICOM PS3.15.
        "19000101",
        "19000101000000",
        "none",
        "anonymous",
        "anonymized",
        "anonymised",
        "removed",
        "deidentified",
        "unknown",
        "notavailable",
    ];
    // Bytes of another coding are not one of these words, though none of their letters is known.
    let is_coded = |c: char| !c.is_whitespace() && (!c.is_ascii() || c.is_control());
    if value.contains(is_coded) {
        return false;
    }
    let letters: String =
        value.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    letters.chars().all(|c| c == '0' || c == 'x') || PUT.contains(&letters.as_str())
}

/// The fields of a description as Aperio's scanners and converters write it: a line about the image,
/// then `|`, then `key = value` between bars.
fn fields(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut parts = text.split('|');
    parts.next().filter(|head| head.starts_with("Aperio"))?;
    let parts = parts.filter(|p| !p.trim().is_empty());
    parts.map(|p| p.split_once('=').map(|(key, value)| (key.trim(), value.trim()))).collect()
}

/// Whether a character may be part of a name or of another word.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, ' ' | '^' | '-' | '_' | '.')
}

/// Whether bytes hold a word, in one byte per character, in UTF-8, in UTF-16 or in a code page: four characters of
/// ASCII in a row, or as much of another script.
pub(crate) fn holds_words(bytes: &[u8]) -> bool {
    let every_other =
        |from: usize| bytes.iter().skip(from).step_by(2).copied().collect::<Vec<u8>>();
    let wide = |from: usize| {
        let zero = bytes.iter().skip(1 - from).step_by(2).filter(|b| **b == 0).count();
        let own = every_other(from);
        zero * 4 > bytes.len() && (holds_run(&own) || holds_coded(&own))
    };
    let foreign = |from: usize| {
        let pairs = bytes.get(from..).unwrap_or_default().as_chunks::<2>().0;
        let units = |unit: fn([u8; 2]) -> u16| pairs.iter().map(|p| unit(*p)).collect::<Vec<u16>>();
        holds_foreign(&units(u16::from_le_bytes)) || holds_foreign(&units(u16::from_be_bytes))
    };
    let words = holds_run(bytes) || holds_coded(bytes);
    words || wide(0) || wide(1) || foreign(0) || foreign(1)
}

/// Fewest letters of a word in a table of numbers.
const IN_TABLE: usize = 4;

/// Whether a table of numbers of one byte or two holds words: a run of characters of words that is not a part of a
/// curve, whose numbers rise or fall from one to the next, as those of a ramp through the codes of all letters do.
pub(crate) fn table_holds_words(bytes: &[u8]) -> bool {
    let is_of_word = |b: u8| b.is_ascii_alphanumeric() || b" ^-_.".contains(&b);
    let every = |from: usize, step: usize| -> Vec<u8> {
        bytes.iter().skip(from).step_by(step).copied().collect()
    };
    let wide = |from: usize| {
        let zeros = every(1 - from, 2).iter().filter(|b| **b == 0).count();
        zeros * 4 > bytes.len()
    };
    // Of UTF-16 the letters are every other byte.
    let ways = [Some(bytes.to_vec()), wide(0).then(|| every(0, 2)), wide(1).then(|| every(1, 2))];
    ways.into_iter().flatten().any(|letters| {
        let mut runs = letters.split(|b| !is_of_word(*b));
        runs.any(|run| {
            let count = run.iter().filter(|b| b.is_ascii_alphabetic()).count();
            count >= IN_TABLE && !is_part_of_curve(run)
        })
    })
}

/// Whether numbers of one byte, or of two from either of the first bytes on, never rise or never fall.
fn is_part_of_curve(run: &[u8]) -> bool {
    let is_even = |numbers: Vec<u16>| {
        numbers.len() > 1 && (numbers.is_sorted() || numbers.iter().rev().is_sorted())
    };
    let pairs = |from: usize, unit: fn([u8; 2]) -> u16| -> Vec<u16> {
        let pairs = run.get(from..).unwrap_or_default().as_chunks::<2>().0;
        pairs.iter().map(|p| unit(*p)).collect()
    };
    is_even(run.iter().map(|b| u16::from(*b)).collect())
        || [0, 1].iter().any(|from| {
            is_even(pairs(*from, u16::from_le_bytes)) || is_even(pairs(*from, u16::from_be_bytes))
        })
}

/// Fewest bytes of a text in a code page, and the share of them that are letters.
const CODED: usize = 4;
const LETTERS: f64 = 0.75;

/// Whether bytes hold a text in a code page. Which one is not known, and of numbers at random most bytes are letters of
/// some page: so a part between zeros has to be text as a whole.
fn holds_coded(bytes: &[u8]) -> bool {
    let parts = bytes.split(|b| *b == 0).filter(|part| part.len() >= CODED);
    parts.filter(|part| std::str::from_utf8(part).is_err()).any(|part| {
        let letters = part.iter().filter(|b| b.is_ascii_alphabetic() || !b.is_ascii()).count();
        let foreign: BTreeSet<u8> = part.iter().copied().filter(|b| !b.is_ascii()).collect();
        let latin = part.iter().any(u8::is_ascii_alphabetic);
        letters as f64 >= LETTERS * part.len() as f64
            && (foreign.len() > 1 || latin)
            && !part.windows(2).any(|w| w == [0xFF; 2])
            && (is_of_one_byte_letters(part) || is_of_two_byte_letters(part))
    })
}

/// Whether bytes are letters and signs of a page with a byte for each, or of EUC and GB2312 with two of the same bytes.
fn is_of_one_byte_letters(part: &[u8]) -> bool {
    part.iter().all(|b| matches!(b, 0x20..=0x7E | 0xA0..=0xFF | b'\t' | b'\n' | b'\r'))
}

/// Whether bytes are ASCII and at least two characters of Shift-JIS, GBK or Big5: a first byte that is not ASCII, and a
/// second one from the at sign on.
fn is_of_two_byte_letters(part: &[u8]) -> bool {
    let (mut at, mut pairs) = (0, 0);
    while let Some(first) = part.get(at) {
        match (first, part.get(at + 1)) {
            (0x20..=0x7E | b'\t' | b'\n' | b'\r', _) => at += 1,
            (0x81..=0xFE, Some(0x40..=0x7E | 0x80..=0xFE)) => (at, pairs) = (at + 2, pairs + 1),
            _ => return false,
        }
    }
    pairs >= 2
}

/// Whether bytes hold a run of characters of words in UTF-8. A letter of two bytes counts as one and a half, because it
/// occurs less often by chance, one of three as two: four make a word.
fn holds_run(bytes: &[u8]) -> bool {
    let valid = bytes.utf8_chunks().map(|chunk| chunk.valid());
    let mut runs = valid.flat_map(|text| text.split(|c: char| !is_of_word(c)));
    runs.any(|run| {
        let halves: usize = run.chars().map(|c| c.len_utf8() + 1).sum();
        halves >= 8 && run.contains(char::is_alphabetic)
    })
}

/// Whether units of UTF-16 hold a text in letters that are not Latin. Of numbers at random most are letters of some
/// script: so between zeros and controls the whole run has to be text of a single one.
fn holds_foreign(units: &[u16]) -> bool {
    let is_end = |unit: &u16| *unit < 32 || matches!(*unit, 0xFEFF | 0xFFFE);
    let mut rest = units;
    while !rest.is_empty() {
        let n = rest.iter().position(is_end).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(n);
        if is_foreign_text(run, behind.first() == Some(&0)) {
            return true;
        }
        rest = behind.get(1..).unwrap_or_default();
    }
    false
}

/// Whether a whole run is text of one script that is not Latin, and of ASCII; `ended`: by a zero.
fn is_foreign_text(run: &[u16], ended: bool) -> bool {
    // Scripts by their blocks of 256; those of East Asia, which have half of all numbers, are one.
    let block = |unit: u16| match unit {
        0x3000..=0x30FF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 => 0x4E,
        other => other >> 8,
    };
    let (ascii, foreign): (Vec<u16>, Vec<u16>) = run.iter().partition(|unit| **unit < 128);
    let Some(&first) = foreign.first() else { return false };
    let script = block(first);
    let least = match (script, ended) {
        (0..=2, _) => return false,
        (0x4E, true) => 2,
        (0x4E, false) => 6,
        _ => 3,
    };
    let is_letter = |unit: &&u16| char::from_u32((**unit).into()).is_some_and(char::is_alphabetic);
    foreign.iter().filter(is_letter).count() >= least
        && foreign.iter().any(|unit| *unit != first)
        && foreign.iter().all(|unit| block(*unit) == script)
        && ascii.iter().all(|unit| *unit != 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_in_digits_is_not_a_product() {
        let dates =
            ["20240131", "31-01-2024", "Aperio 2024-01-31", "31.01.2024", "01/31/24", "2024:01:31"];
        for date in dates {
            assert!(!is_product(date), "{date}");
        }
        for product in ["GT450 1.0.1", "Aperio 12.3.2", "v11.2.1", "40-60-80", "19045"] {
            assert!(is_product(product), "{product}");
        }
    }

    #[test]
    fn a_technical_number_is_short_and_not_a_date() {
        let head = "Aperio Image Library v11.2.1\r\n1024x1024 (256x256) JPEG/RGB Q=70";
        for field in [
            "Rack = 2021-03-04",
            "Rack = 2021",
            "Slide = 4711234567",
            "Slide = 1 2 2021",
            "Left = 04.03.2021",
            "AppMag = 20210304",
            "OriginalWidth = 4711234567",
        ] {
            let text = format!("{head}|{field}|MPP = 0.25");
            let found = personal_parts("tiff.ImageDescription", &text);
            assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [Personal::Text], "{field}");
            assert_eq!(without_persons(&text), format!("{head}|MPP = 0.25"));
        }
        let found = personal_parts("tiff.ImageDescription", &format!("{head} 20210304x1"));
        assert_eq!(found.len(), 1, "{found:?}");
        let sound = format!(
            "{head}|AppMag = 20|StripeWidth = 2040|Left = 25.691574|Top = 23.449873|LineCameraSkew = -0.000424\
             |MPP = 0.25199999999999999|Exposure Scale = 1e-06|OriginalWidth = 152640|Rack = 12|Slide = 40"
        );
        assert_eq!(personal_parts("tiff.ImageDescription", &sound), []);
        assert_eq!(without_persons(&sound), sound);
    }

    #[test]
    fn a_text_whose_letters_are_not_known_is_not_blank() {
        // In a code page, as they are read where UTF-8 is expected.
        let names = [&b"\xC8\xE2\xE0\xED\xEE\xE2"[..], b"\xD4\xCF\xC0\xDE", b"\x18\x04\x30\x04"];
        for name in names.map(String::from_utf8_lossy) {
            assert_eq!(personal_parts("dicom.PatientName", &name).len(), 1, "{name}");
        }
        // Capital letters of ISO 8859-5 as signs of Latin-1.
        for field in ["dicom.PatientName", "dicom.Manufacturer"] {
            assert_eq!(personal_parts(field, "\u{b0}\u{b4}\u{b8}\u{bb}").len(), 1, "{field}");
        }
        for field in ["tiff.XResolution", "dicom.CodeMeaning", "dicom.Manufacturer"] {
            let found = personal_parts(field, "M\u{FFFD}ller");
            assert_eq!(found, [(field.to_owned(), Personal::UnknownCodePage)]);
        }
    }

    #[test]
    fn surnames_alone_are_not_products() {
        for text in ["Carl Black", "Gray", "Field, Carl"] {
            assert!(!is_product(text), "{text}");
        }
        assert!(is_product("Carl Zeiss") && is_product("Bright Field"));
    }

    #[test]
    fn what_names_people_is_known_by_its_name() {
        for (name, kind) in [
            ("dicom.PatientName", Personal::Person),
            ("dicom.PatientID", Personal::Person),
            ("dicom.PatientBirthDate", Personal::Person),
            ("dicom.OtherPatientIDs", Personal::Person),
            ("dicom.OperatorsName", Personal::Person),
            ("dicom.ReferringPhysicianName", Personal::Person),
            ("dicom.AccessionNumber", Personal::Identifier),
            ("dicom.ContainerIdentifier", Personal::Identifier),
            ("dicom.SpecimenDescriptionSequence[0].SpecimenIdentifier", Personal::Identifier),
            ("dicom.StudyDate", Personal::Date),
            ("dicom.AcquisitionDateTime", Personal::Date),
            ("dicom.InstitutionName", Personal::Place),
            ("dicom.NamesOfIntendedRecipientsOfResults[1]", Personal::Person),
            ("dicom[2].ReviewerName", Personal::Person),
            ("dicom.SpecimenDescriptionSequence[0].TextValue", Personal::Text),
            ("dicom.CalibrationSequence[0].DateOfGainCalibration", Personal::Date),
            ("dicom.ClinicalTrialSubjectID", Personal::Identifier),
            ("dicom.(0009,1001)", Personal::Text),
            ("dicom.SpecimenDescriptionSequence[0].SpecimenShortDescription", Personal::Text),
            ("dicom.OpticalPathSequence[0].(0009,1001)", Personal::Text),
            ("aperio.ScanScope ID", Personal::Device),
            ("dicom.DeviceSerialNumber", Personal::Device),
            ("hamamatsu.NDP.S/N", Personal::Device),
            ("mirax.NONHIERLAYER_1_SECTION.SCANNER_HARDWARE_ID", Personal::Device),
            ("philips.DICOM_DEVICE_SERIAL_NUMBER", Personal::Device),
            ("aperio.Patient Name", Personal::Person),
            ("aperio.User", Personal::Person),
            ("aperio.Date", Personal::Date),
            ("aperio.Time", Personal::Date),
            ("aperio.Filename", Personal::Identifier),
            ("aperio.ImageID", Personal::Identifier),
            ("aperio.Title", Personal::Identifier),
            ("hamamatsu.Created", Personal::Date),
            ("hamamatsu.Reference", Personal::Identifier),
            ("leica.barcode", Personal::Identifier),
            ("leica.creation-date", Personal::Date),
            ("mirax.GENERAL.SLIDE_NAME", Personal::Identifier),
            ("mirax.GENERAL.SLIDE_CREATIONDATETIME", Personal::Date),
            ("philips.PIM_DP_UFS_BARCODE", Personal::Identifier),
            ("philips.PIIM_DP_SCANNER_OPERATOR_ID", Personal::Person),
            ("ventana.BarCode1D", Personal::Identifier),
            ("ventana.UserName", Personal::Person),
            ("tiff.Artist", Personal::Person),
            ("tiff.DateTime", Personal::Date),
            ("tiff.HostComputer", Personal::Place),
            ("tiff.ImageDescription", Personal::Text),
            ("openslide.comment", Personal::Text),
        ] {
            assert_eq!(personal(name), Some(kind), "{name}");
        }
    }

    /// Text of a DICOM attribute is technical only where it is of the standard's words or a product (PS3.15, E.1-1).
    #[test]
    fn any_text_of_dicom_may_name_somebody() {
        for keyword in [
            "Occupation",
            "CountryOfResidence",
            "ProtocolName",
            "ReasonForStudy",
            "RequestingService",
            "ResponsibleOrganization",
            "ServiceEpisodeID",
            "TextString",
            "Allergies",
            "Manufacturer",
            "SoftwareVersions[1]",
            "OpticalPathSequence[0].OpticalPathDescription",
            "ContributingEquipmentSequence[0].ManufacturerModelName",
        ] {
            let name = format!("dicom.{keyword}");
            assert_eq!(personal_parts(&name, "Jane Doe"), [(name, Personal::Text)]);
        }
        for (keyword, kind) in [
            ("PerformedStationAETitle", Personal::Place),
            ("SmokingStatus", Personal::Person),
            ("PregnancyStatus", Personal::Person),
        ] {
            let name = format!("dicom[1].{keyword}");
            assert_eq!(personal_parts(&name, "JANEDOE"), [(name, kind)]);
        }
        for (keyword, value) in [
            ("Manufacturer", "Leica Biosystems"),
            ("ManufacturerModelName", "Aperio GT450 DX"),
            ("SoftwareVersions[1]", "1.0.1.5027"),
            ("ImplementationVersionName", "OFFIS_DCMTK_366"),
            ("OpticalPathSequence[0].OpticalPathDescription", "Brightfield"),
            ("OpticalPathSequence[0].IlluminationTypeCodeSequence[0].CodeMeaning", "Brightfield"),
        ] {
            assert_eq!(personal_parts(&format!("dicom.{keyword}"), value), [], "{keyword}");
        }
    }

    #[test]
    fn technical_properties_are_not_personal() {
        for name in [
            "aperio.MPP",
            "aperio.AppMag",
            "aperio.Exposure Time",
            "aperio.Time Zone",
            "openslide.mpp-x",
            "openslide.level[0].downsample",
            "openslide.region[0].height",
            "openslide.quickhash-1",
            "dicom.Modality",
            "dicom.SOPClassUID",
            "dicom.FrameOfReferenceUID",
            "dicom.PatientIdentityRemoved",
            "dicom.Manufacturer",
            "dicom.OpticalPathSequence[0].OpticalPathDescription",
            "dicom.OpticalPathSequence[0].ICCProfile",
            "dicom.ImageType[2]",
            "dicom.InstanceCreatorUID",
            "tiff.Software",
            "tiff.XResolution",
            "ome.PhysicalSizeX",
            "hamamatsu.SourceLens",
            "mirax.GENERAL.OBJECTIVE_MAGNIFICATION",
        ] {
            assert_eq!(personal(name), None, "{name}");
        }
    }

    #[test]
    fn of_a_description_the_single_fields_are_reported() {
        let text = "Aperio Image Library v11\r\n2220x2967|AppMag = 20|User = x-y-z 7|Date = 12/29/09\
                    |Filename =  |MPP = 0.5";
        let names: Vec<_> = personal_parts("tiff.ImageDescription", text);
        assert_eq!(
            names,
            [
                ("tiff.ImageDescription: User".to_owned(), Personal::Person),
                ("tiff.ImageDescription: Date".to_owned(), Personal::Date),
            ]
        );
        assert!(!is_technical("tiff.ImageDescription", text));
        let clean = "Aperio Image Library v11\r\n2220x2967|AppMag = 20|MPP = 0.5";
        assert!(is_technical("tiff.ImageDescription", clean));
        assert!(is_technical("tiff.ImageDescription", "Aperio Image Library v11"));
        for read_by_somebody in ["case of Mrs. Doe", "{\"a\": 1}", "<OME></OME>", "a|b=c"] {
            assert!(!is_technical("tiff.ImageDescription", read_by_somebody), "{read_by_somebody}");
        }
    }

    #[test]
    fn the_lines_before_the_fields_hold_geometry_and_coding_alone() {
        let line = "46920x33014 [0,100 46000x32914] (256x256) -> 100x70";
        for coding in ["JPEG/RGB Q=30;Aperio Image Library v10.0.51", "J2K/YUV16 Q=70", "JPEG/YCC"]
        {
            let text = format!("Aperio Image Library v11.2.1\r\n{line} {coding}|AppMag = 20");
            assert_eq!(personal_parts("tiff.ImageDescription", &text), [], "{coding}");
        }
        for word in ["S21-4711/A2", "12/03/2021", "DOE/JANE", "2021.03.12", "12.03.2021", "4711234"]
        {
            let text = format!("Aperio Image Library v11.2.1\r\n{line} {word}|AppMag = 20");
            let found = personal_parts("tiff.ImageDescription", &text);
            assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [Personal::Text], "{word}");
            assert!(!without_persons(&text).contains(word), "{word}");
        }
    }

    #[test]
    fn a_value_of_several_is_of_its_attribute_and_overlays_are_pictures() {
        assert_eq!(personal("dicom.PatientOrientation[1]"), None);
        assert_eq!(personal("dicom.PatientName[0]"), Some(Personal::Person));
        assert_eq!(personal("dicom.OverlayData"), Some(Personal::Picture));
    }

    #[test]
    fn a_technical_field_holds_a_technical_value() {
        let head = "Aperio Image Library v11.2.1\r\n1024x1024 (256x256) JPEG/RGB Q=70";
        let sound = format!(
            "{head}|AppMag = 40|MPP = 0,2500|Parmset = USM Filter|ICC Profile = IEC 61966-2.1 \
             Default RGB colour space - sRGB|Time Zone = GMT-05:00"
        );
        assert_eq!(personal_parts("tiff.ImageDescription", &sound), []);
        assert_eq!(without_persons(&sound), sound);
        for fields in [
            "MPP = 0.25;Smith 2020-01-01",
            "Left = Smith",
            "Parmset = USM;Smith",
            "Slide = Smith",
            "Jane Doe = 5",
        ] {
            let text = format!("{head}|AppMag = 40|{fields}");
            let found = personal_parts("tiff.ImageDescription", &text);
            assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [Personal::Text], "{fields}");
            assert_eq!(without_persons(&text), format!("{head}|AppMag = 40"));
        }
    }

    #[test]
    fn the_scanner_is_a_device_and_a_product_has_no_other_words() {
        let head = "Aperio Image Library v11.2.1\r\n1024x1024 (256x256) JPEG/RGB Q=70|AppMag = 40";
        let text = format!("{head}|ScanScope ID = SS1302");
        let found = personal_parts("tiff.ImageDescription", &text);
        assert_eq!(found, [("tiff.ImageDescription: ScanScope ID".to_owned(), Personal::Device)]);
        assert_eq!(without_persons(&text), head);
        for product in
            ["tifffile.py", "OME Bio-Formats 6.7.0", "C13220", "GT450 DX", "ImageJ=1.53t"]
        {
            assert_eq!(personal_parts("tiff.Software", product), [], "{product}");
        }
        for person in
            ["Scanner of Jane Doe", "St Elsewhere 3", "tifffile.py S20-1234", "ImageJ 1234567"]
        {
            for name in ["tiff.Make", "tiff.Model", "tiff[2].Software"] {
                let found = personal_parts(name, person);
                assert_eq!(found, [(name.to_owned(), Personal::Text)], "{person}");
                assert!(!is_technical(name, person));
            }
        }
    }

    #[test]
    fn what_was_put_in_place_of_a_name_is_not_a_name() {
        for blank in ["", "  ", "Anonymous", "de-identified", "XXXX", "00000", "not available"] {
            assert!(personal_parts("dicom.PatientName", blank).is_empty(), "{blank}");
        }
        assert_eq!(personal_parts("dicom.PatientName", "Doe^Jane").len(), 1);
        assert!(!is_technical("dicom.PatientName", ""), "shown it is never");
        assert!(may_show_label("label") && may_show_label("Macro") && !may_show_label("thumbnail"));
    }
}
