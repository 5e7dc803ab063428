//! Labels of some tumour types of a collection, as a file of the same form.

use super::DataSet;
use crate::error::{ExperimentError, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Writes the labels of a data set out of a collection in MIDOG's JSON; gives how many images and
/// annotations it has. Images without a label stay out: they are not labelled exhaustively.
///
/// # Errors
/// A data set that is not part of a collection, a file in another format, a file without labels of these
/// tumour types, a full disk.
pub fn part(set: &DataSet, labels: &Path, out: &Path) -> Result<[usize; 2]> {
    let bad = |reason: &str| ExperimentError::path(labels, reason);
    let types = set.types();
    if types.is_empty() {
        return Err(bad(&format!("{} is not some tumour types of a collection", set.name)));
    }
    let text = base::file::read_whole(labels).map_err(|e| ExperimentError::path(labels, e))?;
    let mut root: Value = base::json::parse(&text).map_err(|e| ExperimentError::path(labels, e))?;
    let number = |v: &Value, key: &str| v.get(key).map(ToString::to_string);
    let list = |root: &Value, name: &str| root[name].as_array().cloned();
    let (images, annotations) = list(&root, "images")
        .zip(list(&root, "annotations"))
        .ok_or_else(|| bad("has no lists `images` and `annotations`: is it a MIDOG JSON file?"))?;
    let labelled: BTreeSet<Option<String>> =
        annotations.iter().map(|a| number(a, "image_id")).collect();
    let wanted = |i: &Value| {
        i["tumor_type"].as_str().is_some_and(|t| types.iter().any(|own| own == t))
            && labelled.contains(&number(i, "id"))
    };
    let images: Vec<Value> = images.into_iter().filter(wanted).collect();
    let kept: BTreeSet<Option<String>> = images.iter().map(|i| number(i, "id")).collect();
    let annotations: Vec<Value> =
        annotations.into_iter().filter(|a| kept.contains(&number(a, "image_id"))).collect();
    if annotations.is_empty() {
        return Err(bad(&format!("has no label of {}", types.join(", "))));
    }
    let counts = [images.len(), annotations.len()];
    root["images"] = Value::Array(images);
    root["annotations"] = Value::Array(annotations);
    base::json::write(out, &root)?;
    Ok(counts)
}
