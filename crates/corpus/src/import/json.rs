//! MIDOG JSON and COCO JSON: the same keys, two ways of writing boxes.

use super::boxes::{BoxOrder, check_order};
use super::collect::{Category, Collector, Place, Raw, broken, read_bytes};
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions, LabelSource};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

pub(super) fn midog(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    read("midog-json", BoxOrder::Xyxy, file, options)
}

pub(super) fn coco(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    read("coco", BoxOrder::Xywh, file, options)
}

/// Identifiers may be numbers or strings.
fn key(v: &Value) -> Option<String> {
    match v {
        Value::String(s) => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

fn list<'v>(file: &Path, root: &'v Value, name: &str) -> Result<&'v Vec<Value>, ImportError> {
    let found = || root.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    root.get(name).and_then(Value::as_array).ok_or_else(|| ImportError::Missing {
        file: file.into(),
        missing: vec![format!("the list `{name}`")],
        found: found(),
    })
}

fn size(v: &Value) -> Option<u32> {
    let n = v.as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked")]
    (n >= 1.0 && n <= f64::from(u32::MAX)).then_some(n as u32)
}

fn read(
    format: &'static str,
    order: BoxOrder,
    file: &Path,
    options: &ImportOptions,
) -> Result<Annotations, ImportError> {
    let root: Value = serde_json::from_slice(&read_bytes(file)?)
        .map_err(|e| broken(file, format!("not valid JSON ({e})")))?;
    let mut c = Collector::new(format, file, options);

    let mut images = HashMap::new();
    for (i, v) in list(file, &root, "images")?.iter().enumerate() {
        let id = key(&v["id"]).ok_or_else(|| broken(file, format!("images[{i}] has no `id`")))?;
        let name = ["file_name", "filename", "name"].iter().find_map(|k| v[*k].as_str());
        let name = name.ok_or_else(|| broken(file, format!("images[{i}] has no `file_name`")))?;
        let text = |keys: &[&str]| {
            keys.iter().find_map(|k| v[*k].as_str()).filter(|s| !s.is_empty()).map(str::to_owned)
        };
        let number = c.image(ImageEntry {
            name: name.into(),
            width: size(&v["width"]),
            height: size(&v["height"]),
            cohort: text(&["tumor_type", "tumour_type", "tumor", "cohort", "domain"]),
            patient: text(&["patient", "patient_id", "case", "case_id"]),
        });
        if images.insert(id.clone(), number).is_some() {
            return Err(broken(file, format!("two images have the id {id}")));
        }
    }
    let mut categories = HashMap::new();
    for (i, v) in list(file, &root, "categories")?.iter().enumerate() {
        let id =
            key(&v["id"]).ok_or_else(|| broken(file, format!("categories[{i}] has no `id`")))?;
        let name = v["name"]
            .as_str()
            .ok_or_else(|| broken(file, format!("categories[{i}] has no `name`")))?;
        if categories.insert(id.clone(), name.to_owned()).is_some() {
            return Err(broken(file, format!("two categories have the id {id}")));
        }
    }

    let mut boxes = Vec::new();
    let mut raws = Vec::new();
    for (i, v) in list(file, &root, "annotations")?.iter().enumerate() {
        let record = match key(&v["id"]) {
            Some(id) => format!("annotation {id}"),
            None => format!("annotations[{i}]"),
        };
        let Some(&image) = key(&v["image_id"]).and_then(|id| images.get(&id)) else {
            c.problem(record, format!("its image_id {} is not among the images", v["image_id"]));
            continue;
        };
        let Some(b) = four(&v["bbox"]) else {
            c.problem(record, format!("its bbox is {}, not four numbers", v["bbox"]));
            continue;
        };
        let (category, votes) = label(v, &categories, options);
        let Some(category) = category else {
            c.problem(
                record,
                format!("its category_id {} is not among the categories", v["category_id"]),
            );
            continue;
        };
        let e = c.image_entry(image);
        boxes.push((b, e.width.zip(e.height).map(|(w, h)| (f64::from(w), f64::from(h)))));
        raws.push((Raw { votes, ..Raw::new(image, record, category, Place::Box(b)) }, b));
    }
    let order = match options.boxes {
        Some(stated) => stated,
        None => {
            check_order(file, order, format, &boxes)?;
            order
        }
    };
    for (mut raw, b) in raws {
        raw.place = Place::Box(order.corners(b));
        c.take(raw);
    }
    c.finish()
}

fn four(v: &Value) -> Option<[f64; 4]> {
    let list = v.as_array()?;
    let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
    numbers?.try_into().ok()
}

/// The category, by consensus or by one annotator, and everyone's vote (MIDOG++ `labels`).
fn label(
    v: &Value,
    categories: &HashMap<String, String>,
    options: &ImportOptions,
) -> (Option<Category>, BTreeMap<String, String>) {
    let mut votes = BTreeMap::new();
    if let Some(list) = v["labels"].as_array() {
        for (i, id) in list.iter().enumerate() {
            if let Some(name) = key(id).and_then(|id| categories.get(&id)) {
                votes.insert((i + 1).to_string(), name.clone());
            }
        }
    }
    let category = match &options.labels {
        LabelSource::Agreed => {
            key(&v["category_id"]).and_then(|id| categories.get(&id)).cloned().map(Category::Named)
        }
        LabelSource::Annotator(who) => Some(match votes.get(who) {
            Some(name) => Category::Named(name.clone()),
            None => Category::Fixed(Class::Unresolved, "(not labelled)".into()),
        }),
    };
    (category, votes)
}
