//! What QuPath calls its objects, and the objects below them.
//!
//! Words are those of `PathObjectTypeAdapters` and `GsonTools` in QuPath's sources: 0.2 wrote the type
//! into `id`, 0.3 into `properties.object_type`, 0.4 to 0.6 into `properties.objectType`; readers take
//! `properties.type`, too. Scripts that write a hierarchy put children into `properties.childObjects`.

use serde_json::Value;
use std::collections::HashSet;

/// A type of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The hierarchy's root, which frames everything.
    Root,
    /// A tile of an analysis.
    Tile,
    /// A core of a tissue microarray.
    Core,
    /// What a person draws.
    Annotation,
    /// What an analysis finds.
    Detection,
    /// A cell that an analysis finds.
    Cell,
    /// The type that QuPath itself calls so.
    Unknown,
}

/// Names of the types in lower case: of 0.2, of 0.3 and later, and of classes and older scripts.
const NAMES: [(Kind, &[&str]); 7] = [
    (Kind::Root, &["pathrootobject", "root", "pathroot"]),
    (Kind::Tile, &["pathtileobject", "tile", "pathtile"]),
    (Kind::Core, &["tmacoreobject", "tma_core", "tmacore", "tma core"]),
    (Kind::Annotation, &["pathannotationobject", "annotation"]),
    (Kind::Detection, &["pathdetectionobject", "detection"]),
    (Kind::Cell, &["pathcellobject", "cell"]),
    (Kind::Unknown, &["unknown"]),
];
/// Keys of `properties` that hold the type, in the order in which QuPath looks at them.
const TYPE_KEYS: [&str; 3] = ["objectType", "object_type", "type"];
/// Where children of an object are listed.
const CHILD_KEYS: [&str; 2] = ["childObjects", "children"];
/// Objects within objects: deeper ones are an error, not a loss.
const DEEPEST: usize = 32;

/// The type that an object states, in lower case; empty where it states none.
#[must_use]
pub fn object_type(feature: &Value) -> String {
    let p = &feature["properties"];
    let stated = TYPE_KEYS.iter().find_map(|k| p[*k].as_str());
    let by_id = || feature["id"].as_str().filter(|id| kind(&id.to_lowercase()).is_some());
    stated.or_else(by_id).unwrap_or_default().to_lowercase()
}

/// The type that a name in lower case means; `None` for a name that QuPath does not use.
#[must_use]
pub fn kind(object_type: &str) -> Option<Kind> {
    NAMES.iter().find(|(_, names)| names.contains(&object_type)).map(|(kind, _)| *kind)
}

/// Whether an object of this type only frames others.
#[must_use]
pub fn is_frame(object_type: &str) -> bool {
    matches!(kind(object_type), Some(Kind::Root | Kind::Tile | Kind::Core))
}

/// An object of a file.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// Number of the feature, from 0, that it is or is below.
    pub feature: usize,
    /// It, as a feature.
    pub value: &'a Value,
}

/// All objects of a list of features, parents first. Some exports list children below their parents and again at the
/// top level: each is taken once. `wrong` gets the numbers of features whose children cannot be read, with the reason.
pub fn objects<'a>(
    features: impl IntoIterator<Item = &'a Value>,
    mut wrong: impl FnMut(usize, String),
) -> Vec<Object<'a>> {
    let (mut all, mut own) = (Vec::new(), 0);
    for (feature, value) in features.into_iter().enumerate() {
        match with_children(value) {
            Ok(list) => {
                own += 1;
                all.extend(list.into_iter().map(|value| Object { feature, value }));
            }
            Err(reason) => wrong(feature, reason),
        }
    }
    let mut seen = HashSet::new();
    if all.len() > own {
        all.retain(|o| match o.value["id"].as_str() {
            Some(id) => seen.insert(format!("{id} {}", o.value["geometry"])),
            None => true,
        });
    }
    all
}

/// A feature and everything below it, parents first.
///
/// # Errors
/// Children that are not a list of features, or too deep.
fn with_children(feature: &Value) -> Result<Vec<&Value>, String> {
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
