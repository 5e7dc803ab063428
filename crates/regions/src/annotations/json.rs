//! MIDOG JSON and COCO JSON: the same keys, two ways of writing boxes.

use super::boxes::{BoxOrder, StatedBox, check_order};
use super::collect::{Category, Collector, Place, Raw};
use super::columns::SLIDE;
use super::files::{broken, read_json};
use super::sheet::pixels;
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions, LabelSource};
use crate::units::{MPP, StatedMpp};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

pub(super) fn midog(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    read("midog-json", BoxOrder::Xyxy, file, options)
}

pub(super) fn coco(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    read("coco", BoxOrder::Xywh, file, options)
}

/// Identifiers may be numbers or strings; 7, 7.0 and "7" are one.
fn key(v: &Value) -> Option<String> {
    match v {
        Value::String(s) => Some(s.clone()),
        #[expect(clippy::cast_possible_truncation, reason = "whole numbers only")]
        Value::Number(n) if n.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 1e15) => {
            n.as_f64().map(|f| (f as i64).to_string())
        }
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

/// The first of these keys that has a value, as text.
fn text(v: &Value, keys: &[&str]) -> Result<Option<String>, String> {
    let empty = |v: &Value| v.is_null() || v.as_str().is_some_and(str::is_empty);
    let Some(name) = keys.iter().find(|k| !empty(&v[**k])) else { return Ok(None) };
    let stated = &v[*name];
    key(stated).map(Some).ok_or_else(|| format!("`{name}` is {stated}, not text or a number"))
}

/// A side of an image; some programs write 0 where it is not known.
fn side(v: &Value, name: &str) -> Result<Option<u32>, String> {
    let stated = text(v, &[name])?.filter(|s| s != "0");
    stated.map(|s| pixels(&s)).transpose().map_err(|e| format!("`{name}` is {e}"))
}

/// An image of the list.
fn entry(v: &Value) -> Result<ImageEntry, String> {
    let name = ["file_name", "filename", "name"].iter().find_map(|k| filled(&v[*k]));
    Ok(ImageEntry {
        name: name.ok_or("it has no `file_name`")?.into(),
        width: side(v, "width")?,
        height: side(v, "height")?,
        cohort: text(v, &["tumor_type", "tumour_type", "tumor", "cohort", "domain"])?,
        slide: text(v, SLIDE)?,
        patient: text(v, &["patient", "patient_id", "case", "case_id"])?,
        scanner: text(v, &["scanner", "scanner_name"])?,
        ..ImageEntry::default()
    })
}

/// Text that is not blank.
fn filled(stated: &Value) -> Option<&str> {
    stated.as_str().filter(|text| !text.trim().is_empty())
}

/// Whether an annotation has a flag of COCO: its word for "many objects here, not one" (`iscrowd`), and that of its
/// evaluation for objects that do not count (`ignore`).
fn is_set(v: &Value, flag: &str) -> bool {
    v[flag].as_bool() == Some(true) || key(&v[flag]).is_some_and(|k| k == "1")
}

/// The numbers of the images by their identifiers.
fn images(
    c: &mut Collector<'_>,
    file: &Path,
    root: &Value,
) -> Result<HashMap<String, usize>, ImportError> {
    let mut images = HashMap::new();
    for (i, v) in list(file, root, "images")?.iter().enumerate() {
        let id = key(&v["id"]).ok_or_else(|| broken(file, format!("images[{i}] has no `id`")))?;
        let mut entry = entry(v).map_err(|why| broken(file, format!("images[{i}]: {why}")))?;
        let stated = MPP.iter().find_map(|name| v[*name].as_f64()).filter(|mpp| *mpp > 0.0);
        let row = || format!("{}: images[{i}]", file.display());
        stated
            .into_iter()
            .for_each(|m| entry.units.push_mpp(StatedMpp { mpp: [m; 2], row: row() }));
        let (name, number) = (entry.name.clone(), c.image(entry));
        if let Some(first) = images.insert(id.clone(), number) {
            let first = &c.image_entry(first).name;
            let why = format!("two images have the id {id}: `{first}` and `{name}`");
            return Err(broken(file, why));
        }
    }
    Ok(images)
}

/// The names of the categories by their identifiers.
fn categories(
    c: &mut Collector<'_>,
    file: &Path,
    root: &Value,
) -> Result<HashMap<String, String>, ImportError> {
    let mut categories = HashMap::new();
    for (i, v) in list(file, root, "categories")?.iter().enumerate() {
        let id =
            key(&v["id"]).ok_or_else(|| broken(file, format!("categories[{i}] has no `id`")))?;
        let name = filled(&v["name"])
            .ok_or_else(|| broken(file, format!("categories[{i}] has no `name`")))?;
        c.category(name);
        if categories.insert(id.clone(), name.to_owned()).is_some() {
            return Err(broken(file, format!("two categories have the id {id}")));
        }
    }
    Ok(categories)
}

/// Refuses annotations of one identifier; they may have none.
fn ids_once(file: &Path, annotations: &[Value]) -> Result<(), ImportError> {
    let mut known = HashMap::new();
    for (i, v) in annotations.iter().enumerate() {
        let Some(id) = key(&v["id"]) else { continue };
        if let Some((first, bbox)) = known.insert(id.clone(), (i, &v["bbox"])) {
            let here = &v["bbox"];
            let why = format!(
                "two annotations have the id {id}: annotations[{first}] with the bbox {bbox} and annotations[{i}] \
                 with {here}"
            );
            return Err(broken(file, why));
        }
    }
    Ok(())
}

/// Refuses scores: what has them was found by a program. Some programs give labels a score of 1.
fn no_scores(file: &Path, annotations: &[Value]) -> Result<(), ImportError> {
    let scored = annotations.iter().enumerate().find_map(|(i, v)| {
        let score = v["score"].as_f64().filter(|score| *score != 1.0)?;
        Some((i, score))
    });
    scored.map_or(Ok(()), |(i, score)| {
        let why = format!(
            "annotations[{i}] has a score of {score}, as predictions have: labels are read, without scores"
        );
        Err(broken(file, why))
    })
}

fn read(
    format: &'static str,
    order: BoxOrder,
    file: &Path,
    options: &ImportOptions,
) -> Result<Annotations, ImportError> {
    let root = read_json(file)?;
    let mut c = Collector::new(format, file, options);

    let images = images(&mut c, file, &root)?;
    let categories = categories(&mut c, file, &root)?;
    let mut boxes = Vec::new();
    let mut raws = Vec::new();
    let annotations = list(file, &root, "annotations")?;
    ids_once(file, annotations)?;
    no_scores(file, annotations)?;
    for (i, v) in annotations.iter().enumerate() {
        let record = match key(&v["id"]) {
            Some(id) => format!("annotation {id}"),
            None => format!("annotations[{i}]"),
        };
        let Some(&image) = key(&v["image_id"]).and_then(|id| images.get(&id)) else {
            c.problem(record, format!("its image_id {} is not among the images", v["image_id"]));
            continue;
        };
        let (category, votes) = label(v, &categories, options);
        if let Some(flag) = ["iscrowd", "ignore"].iter().find(|flag| is_set(v, flag)) {
            let name = key(&v["category_id"]).and_then(|id| categories.get(&id).cloned());
            c.ignore(format!("{} ({flag})", name.unwrap_or_default()));
            continue;
        }
        let place = match place(v, order == BoxOrder::Xywh) {
            Ok(place) => place,
            Err(reason) => {
                c.problem(record, reason);
                continue;
            }
        };
        let Some(category) = category else {
            c.problem(
                record,
                format!("its category_id {} is not among the categories", v["category_id"]),
            );
            continue;
        };
        let b = match place {
            Shape::Numbers(b) => {
                let e = c.image_entry(image);
                boxes.push(StatedBox { numbers: b, image: e.size() });
                Some(b)
            }
            Shape::Outline(_) => None,
        };
        if let Some(id) = strange_vote(v, &categories) {
            c.problem(record, format!("its labels hold {id}, which is not among the categories"));
            continue;
        }
        let corners = place.corners();
        raws.push((Raw { votes, ..Raw::new(image, record, category, Place::Box(corners)) }, b));
    }
    let order = match options.boxes {
        Some(stated) => stated,
        None => {
            check_order(file, order, format, &boxes)?;
            order
        }
    };
    for (mut raw, b) in raws {
        if let Some(b) = b {
            raw.place = Place::Box(order.corners(b));
        }
        c.take(raw);
    }
    c.finish()
}

/// How an annotation gives its position.
enum Shape {
    /// `bbox`, in the file's order.
    Numbers([f64; 4]),
    /// Corners of the outline, for COCO files with polygons alone.
    Outline([f64; 4]),
}

impl Shape {
    const fn corners(&self) -> [f64; 4] {
        match self {
            Self::Numbers(b) | Self::Outline(b) => *b,
        }
    }
}

fn place(v: &Value, outlines: bool) -> Result<Shape, String> {
    let (bbox, outline) = (&v["bbox"], &v["segmentation"]);
    let missing = bbox.is_null() || bbox.as_array().is_some_and(Vec::is_empty);
    if !missing || !outlines || outline.is_null() {
        let four = four(bbox).ok_or_else(|| {
            let note =
                if bbox.to_string().contains("null") { " (null, NaN or infinity)" } else { "" };
            format!("its bbox is {bbox}, not four numbers{note}")
        })?;
        return match outline.as_array().map(|rings| around(rings)) {
            Some(Ok(b)) if outlines && is_elsewhere(four, b) => Err(format!(
                "its bbox is {bbox}, but its segmentation reaches from {}, {} to {}, {}; correct one of them",
                b[0], b[1], b[2], b[3]
            )),
            _ if outlines => check_area(v, Shape::Numbers(four)),
            _ => Ok(Shape::Numbers(four)),
        };
    }
    let Some(rings) = outline.as_array() else {
        return Err("it has no bbox, and a run-length mask is not read; export boxes".into());
    };
    around(rings).map(Shape::Outline).and_then(|shape| check_area(v, shape))
}

/// Compares the `area` of COCO, px2, with that of the box, and with that of an outline of one ring. Some programs write
/// the area of the box, count the pixels of a mask, or write 0 for an area that they do not know.
fn check_area(v: &Value, shape: Shape) -> Result<Shape, String> {
    let Some(area) = v["area"].as_f64().filter(|area| *area != 0.0) else { return Ok(shape) };
    let sides = |[x0, y0, x1, y1]: [f64; 4]| [(x1 - x0).max(0.0), (y1 - y0).max(0.0)];
    let [w, h] = match shape {
        Shape::Outline(b) => sides(b),
        // In the order of the two that has the larger box.
        Shape::Numbers(four) => [BoxOrder::Xywh, BoxOrder::Xyxy]
            .map(|order| sides(order.corners(four)))
            .into_iter()
            .fold([0.0, 0.0], |a, b| if b[0] * b[1] > a[0] * a[1] { b } else { a }),
    };
    if !(0.0..=(w + 1.0) * (h + 1.0)).contains(&area) {
        return Err(format!(
            "its area is {area} px2, but its box is {w} x {h} px; correct one of them"
        ));
    }
    let Some([ring]) = v["segmentation"].as_array().map(Vec::as_slice) else { return Ok(shape) };
    let (own, length) = ring_area(ring);
    let tolerance = (0.1 * own).max(length / 2.0 + 2.0);
    if (area - own).abs() > tolerance && area < 0.9 * w * h {
        return Err(format!(
            "its area is {area} px2, but that of its segmentation is {own:.1} px2; correct one of them"
        ));
    }
    Ok(shape)
}

/// Area, px2, and length, px, of a ring x, y, x, y...
fn ring_area(ring: &Value) -> (f64, f64) {
    let numbers = ring.as_array().map(Vec::as_slice).unwrap_or_default();
    let points: Vec<[f64; 2]> = numbers
        .as_chunks::<2>()
        .0
        .iter()
        .filter_map(|[x, y]| Some([x.as_f64()?, y.as_f64()?]))
        .collect();
    let next = points.iter().cycle().skip(1);
    let (double, length) = points.iter().zip(next).fold((0.0, 0.0), |(double, length), (a, b)| {
        (double + a[0] * b[1] - b[0] * a[1], length + (b[0] - a[0]).hypot(b[1] - a[1]))
    });
    (double.abs() / 2.0, length)
}

/// Whether a box of COCO and an outline do not touch, in either order of the box.
fn is_elsewhere(four: [f64; 4], [x0, y0, x1, y1]: [f64; 4]) -> bool {
    [BoxOrder::Xywh, BoxOrder::Xyxy].iter().all(|order| {
        let b = order.corners(four);
        b[2] < x0 || b[0] > x1 || b[3] < y0 || b[1] > y1
    })
}

/// The box around the rings of an outline.
fn around(rings: &[Value]) -> Result<[f64; 4], String> {
    let mut b = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
    for (i, n) in rings.iter().filter_map(Value::as_array).flat_map(|r| r.iter().enumerate()) {
        let n = n.as_f64().ok_or_else(|| format!("its segmentation holds {n}, not a number"))?;
        let k = i % 2;
        (b[k], b[k + 2]) = (b[k].min(n), b[k + 2].max(n));
    }
    if b[2] < b[0] || b[3] < b[1] {
        return Err("it has neither a bbox nor an outline".into());
    }
    Ok(b)
}

fn four(v: &Value) -> Option<[f64; 4]> {
    let list = v.as_array()?;
    let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
    numbers?.try_into().ok()
}

/// A vote (MIDOG++ `labels`) for a category that the file lacks; 0 and null mean no vote.
fn strange_vote<'v>(v: &'v Value, categories: &HashMap<String, String>) -> Option<&'v Value> {
    let is_known = |id: &Value| {
        id.is_null() || key(id).is_some_and(|id| id == "0" || categories.contains_key(&id))
    };
    v["labels"].as_array()?.iter().find(|id| !is_known(id))
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
            let id = key(&v["category_id"]);
            let name = id.as_ref().and_then(|id| categories.get(id));
            match name {
                Some(name) => Some(Category::Named(name.clone())),
                // SlideRunner's agreed class, exported as it is: nobody agreed.
                None if v.get("category_id").is_some() && id.is_none_or(|id| id == "0") => {
                    Some(Category::Fixed(Class::Unresolved, "(no agreement)".into()))
                }
                None => None,
            }
        }
        LabelSource::Annotator(who) => Some(match votes.get(who) {
            Some(name) => Category::Named(name.clone()),
            None => Category::Fixed(Class::Unresolved, "(not labelled)".into()),
        }),
    };
    (category, votes)
}
