//! Who a slide belongs to, and which slides must not be read.

use super::error::ConstructError;
use base::table::{Format, Table, Unmatched, Unread};
use crops::{Columns, Corpus};
use mithras::input::{Input, stem};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Cohort and patient of a slide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// As the slide table names it, or else the default.
    pub cohort: String,
    /// Patient, when known.
    pub patient: Option<String>,
}

/// The slide table: `slide`, and `cohort` and `patient` where known.
#[derive(Default)]
pub struct Origins {
    rows: BTreeMap<String, (Option<String>, Option<String>)>,
    /// Columns of the table that are not read.
    pub(super) unread_columns: Option<Unread>,
}

impl Origins {
    /// Reads the CSV.
    ///
    /// # Errors
    /// [`ConstructError::Table`], also for a slide that is listed twice.
    pub fn read(path: &Path) -> Result<Self, ConstructError> {
        let table = Table::read(path, &Format::default())?;
        let slide = table.need(&["slide"])?;
        let (cohort, patient) = (table.find(&["cohort"]), table.find(&["patient"]));
        let mut rows = BTreeMap::new();
        for row in 0..table.len() {
            let cell = |column| table.filled(row, column).map(str::to_owned);
            let Some(name) = cell(Some(slide)) else { continue };
            if rows.insert(name.clone(), (cell(cohort), cell(patient))).is_some() {
                return Err(ConstructError::Twice { place: table.place(row, slide), slide: name });
            }
        }
        Ok(Self { rows, unread_columns: table.unread() })
    }

    /// Cohort and patient: the table (by name, with or without the file's suffix), then the TCGA
    /// barcode (first twelve characters), then the default cohort.
    ///
    /// # Errors
    /// [`ConstructError::NoCohort`] when neither names the cohort: it decides whether the slide may
    /// be read.
    pub fn origin(
        &self,
        slide: &str,
        file: &str,
        default: Option<&str>,
    ) -> Result<Origin, ConstructError> {
        let (cohort, patient) =
            [slide, file].iter().find_map(|n| self.rows.get(*n)).cloned().unwrap_or_default();
        let cohort = cohort
            .or_else(|| default.map(str::to_owned))
            .ok_or_else(|| ConstructError::NoCohort { slide: slide.to_owned() })?;
        let patient = patient.or_else(|| barcode(slide));
        Ok(Origin { cohort, patient })
    }
}

/// The patient of a TCGA barcode: its first twelve characters.
fn barcode(name: &str) -> Option<String> {
    let patient = name.get(..12)?.to_ascii_uppercase();
    (patient.starts_with("TCGA-") && patient.as_bytes().get(7) == Some(&b'-')).then_some(patient)
}

impl Origins {
    /// Rows of slides that are not there, with the slides without a row; `None` where every row is a slide's.
    pub(super) fn unmatched(&self, slides: &[Input]) -> Option<(Unmatched, bool)> {
        let names = |i: &Input| [i.name.clone(), i.file_name()];
        let known: BTreeSet<String> = slides.iter().flat_map(names).collect();
        let alone: Vec<&str> =
            self.rows.keys().filter(|k| !known.contains(*k)).map(String::as_str).collect();
        let idle = slides.iter().filter(|i| !names(i).iter().any(|n| self.rows.contains_key(n)));
        let idle: Vec<&str> = idle.map(|i| i.name.as_str()).collect();
        let none = alone.len() == self.rows.len();
        let join = Unmatched::from_keys(("the table of slides", "the slides"), &alone, &idle);
        join.filter(|_| !alone.is_empty()).map(|join| (join, none))
    }
}

/// Everything that is kept out.
#[derive(Default)]
pub struct Exclusions {
    cohorts: BTreeSet<String>,
    /// The cohorts that a corpus is made of; empty where any will do.
    known: BTreeSet<String>,
    patients: BTreeMap<String, String>,
    slides: BTreeMap<String, String>,
}

impl Exclusions {
    /// From the preset's cohorts, lists of `cohort|patient|slide,NAME` lines, and evaluation
    /// corpora whose slides and patients must not be trained on.
    ///
    /// # Errors
    /// A list or corpus that cannot be read; [`ConstructError::Table`], [`ConstructError::Line`].
    pub fn new(
        cohorts: &[String],
        lists: &[impl AsRef<Path>],
        evaluation: &[impl AsRef<Path>],
    ) -> Result<Self, ConstructError> {
        let mut out =
            Self { cohorts: cohorts.iter().flat_map(|c| parts(c)).collect(), ..Self::default() };
        for path in lists {
            let path = path.as_ref();
            out.list(path)?;
        }
        for dir in evaluation {
            let corpus = Corpus::open(dir)?;
            let why = format!("in the evaluation corpus {}", corpus.manifest().header.name);
            for crop in corpus.crops(Columns::Meta)? {
                let m = crop?.meta;
                let name = m.slide.rsplit('/').next().unwrap_or(&m.slide);
                out.slide(name, &why);
                if let Some(p) = m.patient {
                    out.patient(&p, &why);
                }
            }
        }
        Ok(out)
    }

    /// Adds a list without a header, of two columns.
    fn list(&mut self, path: &Path) -> Result<(), ConstructError> {
        let format = Format { headless: true, comment: Some(b'#'), ..Format::default() };
        let table = Table::read(path, &format)?;
        let why = format!("listed in {}", path.display());
        for row in 0..table.len() {
            let line: Vec<&str> = (0..table.names().len()).map(|c| table.cell(row, c)).collect();
            match line[..] {
                ["cohort", name] if !name.is_empty() => self.cohorts.extend(parts(name)),
                ["patient", name] if !name.is_empty() => {
                    self.patient(name, &why);
                }
                ["slide", name] if !name.is_empty() => self.slide(name, &why),
                _ => {
                    return Err(ConstructError::Line {
                        path: path.to_owned(),
                        number: table.line(row),
                        line: line.join(","),
                    });
                }
            }
        }
        Ok(())
    }

    /// Takes slides of these cohorts alone; a slide of any other one is refused, because it may be of an
    /// excluded one under another name. An empty list takes all.
    #[must_use]
    pub fn with_cohorts(mut self, known: &[String]) -> Self {
        self.known = known.iter().flat_map(|c| parts(c)).collect();
        self
    }

    /// Whether the cohort of a slide is one that the corpus is made of, or an excluded one.
    ///
    /// # Errors
    /// [`ConstructError::UnknownCohort`].
    pub fn check(&self, slide: &str, origin: &Origin) -> Result<(), ConstructError> {
        let all = parts(&origin.cohort);
        let fits = |c: &String| self.known.contains(c) || self.cohorts.contains(c);
        if self.known.is_empty() || all.iter().all(fits) {
            return Ok(());
        }
        Err(ConstructError::UnknownCohort {
            slide: slide.to_owned(),
            cohort: origin.cohort.clone(),
            known: self.known.iter().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// Names to keep out that match no slide or patient here, but would by another spelling. Lists
    /// hold names of other places, too: those are nothing to speak of.
    pub(super) fn misspelt(&self, slides: &[&str], patients: &[&str]) -> Vec<Unmatched> {
        let sides = |what| ("the lists to exclude", what);
        let missed = |what, kept_out: &BTreeMap<String, String>, here: &[&str]| {
            let names = kept_out.keys().map(String::as_str).filter(|k| !here.contains(k));
            let alone: Vec<&str> = names.collect();
            let idle = here.iter().copied().filter(|n| !kept_out.contains_key(*n));
            let idle: Vec<&str> = idle.collect();
            Unmatched::from_keys(sides(what), &alone, &idle).filter(Unmatched::has_rule)
        };
        let slides = missed("the slides", &self.slides, slides);
        slides.into_iter().chain(missed("the patients", &self.patients, patients)).collect()
    }

    /// A name may come with or without the file's suffix, and may itself hold dots.
    fn slide(&mut self, name: &str, why: &str) {
        self.slides.insert(name.to_owned(), why.to_owned());
        self.slides.insert(stem(Path::new(name)), why.to_owned());
    }

    /// The barcode of a patient's sample names the patient, too.
    fn patient(&mut self, name: &str, why: &str) {
        self.patients.insert(name.to_owned(), why.to_owned());
        if let Some(patient) = barcode(name).filter(|p| name.len() > p.len()) {
            self.patients.insert(patient, why.to_owned());
        }
    }

    /// Why a slide must not be read. The patient of a TCGA slide is known by its barcode as well, whatever a table
    /// calls it.
    #[must_use]
    pub fn reason(&self, slide: &str, origin: &Origin) -> Option<String> {
        if parts(&origin.cohort).iter().any(|c| self.cohorts.contains(c)) {
            return Some(format!("cohort {} is excluded", origin.cohort));
        }
        if let Some(why) = self.slides.get(slide) {
            return Some(format!("slide {why}"));
        }
        let stated = origin.patient.as_deref();
        let barcodes = [barcode(slide), stated.and_then(barcode)];
        let names = stated.into_iter().chain(barcodes.iter().flatten().map(String::as_str));
        let mut known = names.filter_map(|p| Some((p, self.patients.get(p)?)));
        known.next().map(|(patient, why)| format!("patient {patient} {why}"))
    }
}

/// Names under which several cohorts are distributed together, and other names of one.
const TOGETHER: [(&str, &[&str]); 7] = [
    ("GBMLGG", &["GBM", "LGG"]),
    ("GLIOMA", &["GBM", "LGG"]),
    ("COADREAD", &["COAD", "READ"]),
    ("COLON_DX", &["COAD"]),
    ("KIPAN", &["KICH", "KIRC", "KIRP"]),
    ("STES", &["STAD", "ESCA"]),
    ("SARCOMA", &["SARC"]),
];

/// The cohorts of a name: `TCGA-GBM` and `gbm` are one cohort, `GBMLGG` is two.
pub(super) fn parts(cohort: &str) -> Vec<String> {
    let upper = cohort.trim().to_uppercase();
    let plain = upper.strip_prefix("TCGA-").unwrap_or(&upper);
    let bare: String = plain.chars().filter(|c| !matches!(c, '-' | ' ' | '/' | '+')).collect();
    match TOGETHER.iter().find(|(name, _)| *name == bare) {
        Some((_, all)) => all.iter().map(|c| (*c).to_owned()).collect(),
        None => vec![plain.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cohorts_patients_and_slides_are_kept_out() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("no.csv");
        std::fs::write(&list, "# evaluation\npatient,TCGA-AA-0001\nslide,s7.svs\n").unwrap();
        let none: [&Path; 0] = [];
        let e = Exclusions::new(&["GBM".into()], &[&list], &none).unwrap();
        let origin =
            |c: &str, p: Option<&str>| Origin { cohort: c.into(), patient: p.map(Into::into) };
        assert!(e.reason("x", &origin("TCGA-gbm", None)).is_some());
        assert!(e.reason("x", &origin("BRCA", Some("TCGA-AA-0001"))).is_some());
        assert!(e.reason("s7", &origin("BRCA", None)).is_some());
        assert!(e.reason("s8", &origin("BRCA", Some("TCGA-AA-0002"))).is_none());
        // Whatever the table of slides calls the patient, and by the barcode of a sample.
        let named = |p: &str| origin("BRCA", Some(p));
        assert!(e.reason("TCGA-AA-0001-01Z-00-DX1", &named("case 7")).is_some());
        assert!(e.reason("x", &named("tcga-aa-0001-01A")).is_some());
        assert!(e.reason("TCGA-AA-0002-01Z-00-DX1", &named("case 7")).is_none());
        std::fs::write(&list, "patient,TCGA-AA-0003-01A\n").unwrap();
        let samples = Exclusions::new(&[], &[&list], &none).unwrap();
        assert!(samples.reason("TCGA-AA-0003-11A-01-TS1", &named("case 8")).is_some());
        for wrong in ["patients TCGA\n", "patient,\n", "patient,a\npatient,b,c\n", "person,a\n"] {
            std::fs::write(&list, wrong).unwrap();
            assert!(Exclusions::new(&[], &[&list], &none).is_err(), "{wrong}");
        }
    }

    /// Every name on the list is kept out, however a program wrote it.
    #[test]
    fn a_list_is_read_as_spreadsheets_write_it() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("no.csv");
        let none: [&Path; 0] = [];
        let text = "patient,TCGA-AA-0001\r\nslide,\"s7, left.svs\"\r\n";
        let utf16: Vec<u8> =
            format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (what, bytes) in [
            ("plain", text.as_bytes().to_vec()),
            ("mark", format!("\u{feff}{text}").into_bytes()),
            ("UTF-16", utf16),
            ("quoted", b"\"patient\",\"TCGA-AA-0001\"\n\"slide\",\"s7, left.svs\"\n".to_vec()),
            ("semicolons", b"patient;TCGA-AA-0001\nslide;s7, left.svs\n".to_vec()),
            ("tabs", b"# of 2026\npatient\tTCGA-AA-0001\nslide\ts7, left.svs\n".to_vec()),
            ("sep", b"sep=;\npatient;TCGA-AA-0001\nslide;s7, left.svs\n".to_vec()),
        ] {
            std::fs::write(&list, bytes).unwrap();
            let e = Exclusions::new(&[], &[&list], &none).unwrap();
            let patient = |p: &str| Origin { cohort: "BRCA".into(), patient: Some(p.into()) };
            assert!(e.reason("x", &patient("TCGA-AA-0001")).is_some(), "{what}");
            assert!(e.reason("s7, left", &Origin::default()).is_some(), "{what}");
            assert!(e.reason("x", &patient("TCGA-AA-0002")).is_none(), "{what}");
        }
        for text in ["", "# nobody yet\n", "#patient,TCGA-AA-0001\n"] {
            std::fs::write(&list, text).unwrap();
            let refused = Exclusions::new(&[], &[&list], &none).err().unwrap().to_string();
            assert!(refused.contains("no.csv: has no rows; "), "{text:?}: {refused}");
        }
    }

    #[test]
    fn cohorts_under_other_names_do_not_pass() {
        let none: [&Path; 0] = [];
        let five = ["GBM", "SARC", "DLBC", "THCA", "LGG"].map(String::from);
        let e = Exclusions::new(&five, &none, &none).unwrap();
        let e = e.with_cohorts(&["BRCA".into(), "COAD".into()]);
        let origin = |c: &str| Origin { cohort: c.into(), patient: None };
        for name in ["GBMLGG", "TCGA-GBMLGG", "gbm/lgg", "GBM-LGG", "TCGA-LGG"] {
            assert!(e.reason("x", &origin(name)).is_some(), "{name}");
            e.check("x", &origin(name)).unwrap();
        }
        for name in ["BRCA", "tcga-brca", "COLON_DX"] {
            assert_eq!(e.reason("x", &origin(name)), None);
            e.check("x", &origin(name)).unwrap();
        }
        for name in ["COADREAD", "glioblastoma", "X"] {
            let refused = e.check("s", &origin(name)).unwrap_err().to_string();
            assert!(refused.contains(name) && refused.contains("BRCA, COAD"), "{refused}");
        }
        Exclusions::new(&five, &none, &none).unwrap().check("s", &origin("X")).unwrap();
    }

    #[test]
    fn rows_and_names_that_meet_no_slide_are_reported_with_the_rule_that_would_match() {
        let dir = tempfile::tempdir().unwrap();
        let (csv, list) = (dir.path().join("t.csv"), dir.path().join("no.csv"));
        let input = |name: &str| Input::new(Path::new(&format!("{name}.svs")));
        let slides = [input("001"), input("Case2")];
        let read = |rows: &str| {
            std::fs::write(&csv, format!("slide,cohort\n{rows}")).unwrap();
            Origins::read(&csv).unwrap().unmatched(&slides)
        };
        assert!(read("001,GBM\nCase2.svs,GBM\n").is_none());
        let (some, none) = read("001,GBM\ncase2,GBM\n").unwrap();
        assert!(!none && some.to_string().contains("ignoring upper and lower case"), "{some}");
        let (all, none) = read("1,GBM\n").unwrap();
        assert!(none && all.to_string().contains("without leading zeros"), "{all}");

        std::fs::write(&list, "slide,1\nslide,elsewhere\npatient,tcga-aa-0001\n").unwrap();
        let nothing: [&Path; 0] = [];
        let kept_out = Exclusions::new(&[], &[&list], &nothing).unwrap();
        let named = kept_out.misspelt(&["001", "Case2"], &["TCGA-AA-0001"]);
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        assert!(named.len() == 2 && named[0].contains("'001'"), "{named:?}");
        assert!(named[1].contains("'TCGA-AA-0001'"), "{named:?}");
        assert!(kept_out.misspelt(&["Case2"], &[]).is_empty(), "of another place");
    }

    #[test]
    fn barcodes_name_patients() {
        let dir = tempfile::tempdir().unwrap();
        let csv = dir.path().join("t.csv");
        let name = "TCGA-06-0174-01Z-00-DX3.23b6e12e-dfc1";
        std::fs::write(&csv, format!("slide,cohort\n{name},GBM\nb.x.svs,BRCA\n")).unwrap();
        let t = Origins::read(&csv).unwrap();
        assert_eq!(t.unread_columns, None);
        let gbm = t.origin(name, "TCGA-06-0174-01Z-00-DX3.23b6e12e-dfc1.png", None).unwrap();
        assert_eq!((gbm.cohort.as_str(), gbm.patient.as_deref()), ("GBM", Some("TCGA-06-0174")));
        assert_eq!(t.origin("b.x", "b.x.svs", None).unwrap().cohort, "BRCA");
        assert!(t.origin("c", "c.svs", None).is_err());
        let c = t.origin("tcga-cr-7395-01a", "c.svs", Some("x")).unwrap();
        assert_eq!((c.cohort.as_str(), c.patient.as_deref()), ("x", Some("TCGA-CR-7395")));
        std::fs::write(&csv, "slide,cohort,patient_id\na,GBM,p\n").unwrap();
        let unread = Origins::read(&csv).unwrap().unread_columns.unwrap().to_string();
        assert!(unread.ends_with("not read: `patient_id` (is `patient` meant?)"), "{unread}");
    }
}
