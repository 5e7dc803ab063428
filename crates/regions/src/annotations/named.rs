//! Published tables with fixed columns: MIDOG 2025 and AMi-Br / AMi-Morph.
//!
//! Both list mitotic figures only; the label is the subtype, typical or atypical.

use super::collect::{Category, Collector, Place, Raw};
use super::sheet::{Sheet, cell, filled};
use super::twice::Twice;
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions, LabelSource};
use base::table::yes_no;
use crops::schema::Split;
use std::collections::BTreeMap;
use std::path::Path;

const X: &[&str] = &["coordinateX", "x", "center_x", "cx"];
const Y: &[&str] = &["coordinateY", "y", "center_y", "cy"];
/// Columns of experts in the published tables, of which other tables may have fewer or more.
const EXPERTS: &[&str] = &["expert1", "expert2", "expert3"];
const AMI_EXPERTS: &[&str] =
    &["expert1_label", "expert2_label", "expert1_atypical", "expert2_atypical", "expert3_atypical"];

/// `NMF` is a normal (typical), `AMF` an atypical mitotic figure in these tables.
fn typical(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let first = lower.split([' ', '_', '-']).next().unwrap_or_default();
    match (first, yes_no(&lower)) {
        ("nmf" | "normal" | "typical", _) | (_, Some(false)) => Some("typical"),
        ("amf" | "atypical", _) | (_, Some(true)) => Some("atypical"),
        _ => None,
    }
}

/// More than half of the votes that were given.
fn majority<'s>(votes: impl Iterator<Item = &'s str>) -> Option<&'static str> {
    let (mut typ, mut atyp) = (0, 0);
    for v in votes {
        match typical(v) {
            Some("typical") => typ += 1,
            Some(_) => atyp += 1,
            None => return None,
        }
    }
    match typ.cmp(&atyp) {
        std::cmp::Ordering::Greater => Some("typical"),
        std::cmp::Ordering::Less => Some("atypical"),
        std::cmp::Ordering::Equal => None,
    }
}

pub(super) fn midog25(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    let sheet = Sheet::read(file)?;
    let [image, x, y] = sheet.need([
        ("the image", &["filename", "file_name", "slide", "image"]),
        ("the horizontal position", X),
        ("the vertical position", Y),
    ])?;
    let experts = sheet.experts(EXPERTS);
    let verdict = sheet.find(&["majority", "majority_vote", "label", "final_label"]);
    if verdict.is_none() && experts.is_empty() {
        sheet.need([("the verdict", &["majority", "expert1"])])?;
    }
    let slide = sheet.slide(image);
    let patch = sheet.find(&["image_id", "patch"]);
    let cohort = sheet.find(&["Tumor", "tumor_type", "tumour", "dataset"]);
    let mut c = Collector::new("midog25-csv", file, options);
    let twice = Twice::find(sheet.table(), &[x, y]);
    c.unread_columns(sheet.table().misspelt());
    for (number, (line, row)) in sheet.rows.iter().enumerate() {
        let record = format!("line {line}");
        let name = cell(row, image).to_owned();
        if name.is_empty() {
            c.problem(record, "no image name");
            continue;
        }
        let (px, py) = match (sheet.number(row, x, "x"), sheet.number(row, y, "y")) {
            (Ok(x), Ok(y)) => (x, y),
            (Err(e), _) | (_, Err(e)) => {
                c.problem(record, e);
                continue;
            }
        };
        let votes = votes(&sheet, row, &experts);
        let word = match (&options.labels, verdict) {
            (LabelSource::Annotator(who), _) => votes.get(who).cloned(),
            (LabelSource::Agreed, Some(v)) => filled(row, Some(v)),
            (LabelSource::Agreed, None) => {
                majority(votes.values().map(String::as_str)).map(str::to_owned)
            }
        };
        let subtype = match word.as_deref().map(typical) {
            Some(None) => {
                let word = word.unwrap_or_default();
                c.problem(record, format!("verdict `{word}` is neither NMF nor AMF"));
                continue;
            }
            known => known.flatten().map(str::to_owned),
        };
        let entry = || ImageEntry {
            name: name.clone(),
            cohort: filled(row, cohort),
            slide: filled(row, slide),
            ..ImageEntry::default()
        };
        let image = c.image_named(&name, entry);
        if let Err(e) = c.origin(image, entry()) {
            c.problem(record, e);
            continue;
        }
        let category = Category::Fixed(Class::MitoticFigure, word.unwrap_or_default());
        let raw = Raw {
            subtype,
            votes,
            patch: filled(row, patch),
            ..Raw::new(image, record, category, Place::Point(px, py))
        };
        twice.take(&mut c, sheet.table(), number, raw);
    }
    c.finish()
}

fn votes(sheet: &Sheet, row: &[String], columns: &[usize]) -> BTreeMap<String, String> {
    let named = |&c: &usize| filled(row, Some(c)).map(|v| (sheet.headers[c].clone(), v));
    columns.iter().filter_map(named).collect()
}

#[expect(clippy::too_many_lines, reason = "one pass over the columns")]
pub(super) fn ami_br(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    // The data set is a folder with this table, as the import of its patches takes it.
    let within = file.join("labels.csv");
    let file = if file.is_dir() && within.is_file() { &within } else { file };
    let sheet = Sheet::read(file)?;
    let [image, x, y] = sheet.need([
        ("the image", &["slide", "filename", "file_name"]),
        ("the horizontal position", X),
        ("the vertical position", Y),
    ])?;
    let (dataset, uid) = (sheet.find(&["dataset"]), sheet.find(&["uid", "id"]));
    let patch = sheet.find(&["dataset_uid", "patch"]);
    let verdict = sheet.find(&["majority_atypical", "majority", "final_label"]);
    let binary = sheet.family("expert", "atypical");
    let classes = sheet.family("expert", "label");
    if verdict.is_none() && binary.is_empty() && classes.is_empty() {
        sheet
            .need([("the verdict", &["majority_atypical", "expert1_atypical", "expert1_label"])])?;
    }
    let experts = sheet.experts(AMI_EXPERTS);
    let mut c = Collector::new("ami-br", file, options);
    let twice = Twice::find(sheet.table(), &[x, y]);
    c.unread_columns(sheet.table().misspelt());
    for (number, (line, row)) in sheet.rows.iter().enumerate() {
        let record = format!("line {line}");
        let slide = cell(row, image);
        if slide.is_empty() {
            c.problem(record, "no slide name");
            continue;
        }
        let (px, py) = match (sheet.number(row, x, "x"), sheet.number(row, y, "y")) {
            (Ok(x), Ok(y)) => (x, y),
            (Err(e), _) | (_, Err(e)) => {
                c.problem(record, e);
                continue;
            }
        };
        let votes = votes(&sheet, row, &experts);
        let word = match &options.labels {
            LabelSource::Annotator(who) => votes.get(who).cloned(),
            LabelSource::Agreed => filled(row, verdict)
                .or_else(|| {
                    let given = binary.iter().filter_map(|&b| filled(row, Some(b)));
                    majority(given.collect::<Vec<_>>().iter().map(String::as_str))
                        .map(str::to_owned)
                })
                .or_else(|| classes.first().and_then(|&b| filled(row, Some(b)))),
        };
        let subtype = match word.as_deref().map(typical) {
            Some(None) => {
                let word = word.unwrap_or_default();
                c.problem(record, format!("verdict `{word}` is neither normal nor atypical"));
                continue;
            }
            known => known.flatten().map(str::to_owned),
        };
        let cohort = filled(row, dataset);
        // Evaluation data of the paper: nobody trains on it by accident.
        let split = cohort
            .as_deref()
            .is_some_and(|d| d.to_uppercase().starts_with("TUPAC"))
            .then_some(Split::Test);
        let patch = filled(row, patch).or_else(|| {
            let (d, u) = (cohort.as_deref()?, filled(row, uid)?);
            Some(format!("{d}_{u}.png"))
        });
        let record = match filled(row, uid) {
            Some(u) => format!("uid {u}, {record}"),
            None => record,
        };
        // Slide names of two data sets may coincide.
        let name = match &cohort {
            Some(d) => format!("{d}/{slide}"),
            None => slide.to_owned(),
        };
        let entry =
            || ImageEntry { name: name.clone(), cohort: cohort.clone(), ..ImageEntry::default() };
        let image = c.image_named(&name, entry);
        let category = Category::Fixed(Class::MitoticFigure, word.unwrap_or_default());
        let raw = Raw {
            subtype,
            votes,
            patch,
            split,
            ..Raw::new(image, record, category, Place::Point(px, py))
        };
        twice.take(&mut c, sheet.table(), number, raw);
    }
    c.finish()
}
