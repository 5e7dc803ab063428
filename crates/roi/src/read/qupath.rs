//! What QuPath calls its objects, and the objects below them.
//!
//! Words are those of `PathObjectTypeAdapters` and `GsonTools` in QuPath's sources: 0.2 wrote the type
//! into `id`, 0.3 into `properties.object_type`, 0.4 to 0.6 into `properties.objectType`; readers take
//! `properties.type`, too. Scripts that write a hierarchy put children into `properties.childObjects`.

use serde_json::Value;

/// Objects that frame others and are not labels: the hierarchy's root, tiles, cores of a tissue
/// microarray. By release: `id` of 0.2; `object_type` of 0.3; `objectType` of 0.4 to 0.6.
const FRAMES: [&str; 10] = [
    "pathrootobject",
    "pathtileobject",
    "tmacoreobject",
    "root",
    "tile",
    "tma_core",
    "tmacore",
    // Names of the classes and of older scripts.
    "pathroot",
    "pathtile",
    "tma core",
];
/// The other types: what QuPath itself makes of them is a label.
const LABELS: [&str; 7] = [
    "pathannotationobject",
    "pathdetectionobject",
    "pathcellobject",
    "annotation",
    "detection",
    "cell",
    "unknown",
];
/// Keys of `properties` that hold the type, in the order in which QuPath looks at them.
const TYPE_KEYS: [&str; 3] = ["objectType", "object_type", "type"];
/// Where children of an object are listed.
const CHILD_KEYS: [&str; 2] = ["childObjects", "children"];
/// Objects within objects: deeper ones are an error, not a loss.
const DEEPEST: usize = 32;

/// The type of an object, in lower case; empty where none is stated.
pub(super) fn object_type(feature: &Value) -> String {
    let p = &feature["properties"];
    let stated = TYPE_KEYS.iter().find_map(|k| p[*k].as_str());
    let known = |id: &&str| {
        let id = id.to_lowercase();
        FRAMES.contains(&id.as_str()) || LABELS.contains(&id.as_str())
    };
    let by_id = || feature["id"].as_str().filter(known);
    stated.or_else(by_id).unwrap_or_default().to_lowercase()
}

/// Whether an object of this type only frames others.
pub(super) fn is_frame(object_type: &str) -> bool {
    FRAMES.contains(&object_type)
}

/// A feature and everything below it, parents first.
///
/// # Errors
/// Children that are not a list of features, or too deep.
pub(super) fn with_children(feature: &Value) -> Result<Vec<&Value>, String> {
    let mut all = Vec::new();
    let mut left = vec![(feature, 0)];
    while let Some((f, depth)) = left.pop() {
        if depth > DEEPEST {
            return Err(format!("objects within objects, more than {DEEPEST} deep"));
        }
        all.push(f);
        for key in CHILD_KEYS {
            for place in [&f["properties"][key], &f[key]] {
                match place {
                    Value::Null => {}
                    Value::Array(list) => left.extend(list.iter().rev().map(|c| (c, depth + 1))),
                    other => return Err(format!("its `{key}` is {other}, not a list of features")),
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_release_names_its_frames() {
        for (feature, frame) in [
            (json!({"id": "PathTileObject", "properties": {}}), true),
            (json!({"id": "TMACoreObject", "properties": {}}), true),
            (json!({"id": "PathAnnotationObject", "properties": {}}), false),
            (json!({"properties": {"object_type": "tile"}}), true),
            (json!({"properties": {"object_type": "tma_core"}}), true),
            (json!({"properties": {"objectType": "tmaCore"}}), true),
            (json!({"properties": {"objectType": "root"}}), true),
            (json!({"properties": {"type": "tile"}}), true),
            (json!({"properties": {"objectType": "cell"}}), false),
            (json!({"id": "17", "properties": {}}), false),
        ] {
            assert_eq!(is_frame(&object_type(&feature)), frame, "{feature}");
        }
    }

    #[test]
    fn children_follow_their_parents() {
        let leaf = |n: u32| json!({"type": "Feature", "id": n.to_string(), "properties": {}});
        let middle = json!({"id": "m", "properties": {"childObjects": [leaf(1), leaf(2)]}});
        let top = json!({"id": "t", "properties": {"childObjects": [middle, leaf(3)]}});
        let ids: Vec<_> = with_children(&top)
            .unwrap()
            .iter()
            .map(|f| f["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids, ["t", "m", "1", "2", "3"]);
        assert!(with_children(&json!({"properties": {"childObjects": 3}})).is_err());
    }
}
