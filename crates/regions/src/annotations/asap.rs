//! ASAP XML: `ASAP_Annotations/Annotations/Annotation[@Type, @PartOfGroup]/Coordinates/Coordinate`.
//!
//! The class is the group, or where that name is unknown, the nearest group around it that is known;
//! an annotation outside every group goes by its name if that is a known word, and stays unresolved
//! otherwise. A `PointSet` is one annotation per point.

use super::collect::{Category, Collector, Place, Raw};
use super::files::{annotated_image, broken, list_files, read_text};
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions};
use std::collections::HashMap;
use std::path::Path;

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    let mut c = Collector::new("asap", path, options);
    c.ignore_below(path, &["xml"])?;
    for file in list_files(path, &["xml"])? {
        let text = read_text(&file)?;
        let doc = roxmltree::Document::parse(&text)
            .map_err(|e| broken(&file, format!("not valid XML ({e})")))?;
        let root = doc.root_element();
        if root.tag_name().name() != "ASAP_Annotations" {
            let reason = format!("no ASAP file: the root is <{}>", root.tag_name().name());
            return Err(broken(&file, reason));
        }
        let name = annotated_image(&file);
        let image =
            c.image_named(&name, || ImageEntry { name: name.clone(), ..ImageEntry::default() });
        let parents: HashMap<&str, &str> = root
            .descendants()
            .filter(|n| n.has_tag_name("Group"))
            .filter_map(|g| Some((g.attribute("Name")?, g.attribute("PartOfGroup")?)))
            .collect();
        parents.keys().for_each(|group| c.category(group));
        for (i, a) in root.descendants().filter(|n| n.has_tag_name("Annotation")).enumerate() {
            let own = a.attribute("Name").unwrap_or_default();
            let record = format!("annotation {i} `{own}`");
            let group = a.attribute("PartOfGroup").filter(|g| !g.is_empty() && *g != "None");
            let category = match group {
                Some(g) => {
                    // A chain of groups cannot be longer than their number.
                    let known = std::iter::successors(Some(g), |g| parents.get(g).copied())
                        .take(parents.len() + 1)
                        .find(|g| c.meaning(g).is_some());
                    Category::Named(known.unwrap_or(g).to_owned())
                }
                None if c.meaning(own).is_some() => Category::Named(own.to_owned()),
                None => Category::Fixed(Class::Unresolved, own.to_owned()),
            };
            if let Category::Named(name) = &category
                && let Some([first, other]) = c.opposed(&[name, own])
            {
                c.problem(
                    record,
                    format!("it is called `{other}` in the group `{first}`; correct one of them"),
                );
                continue;
            }
            let points = match points(a) {
                Ok(points) => points,
                Err(reason) => {
                    c.problem(record, reason);
                    continue;
                }
            };
            match (a.attribute("Type").unwrap_or_default(), points.as_slice()) {
                (_, []) => c.problem(record, "it has no coordinates"),
                ("Dot" | "PointSet", all) => {
                    for &(x, y) in all {
                        c.take(Raw::new(
                            image,
                            record.clone(),
                            category.clone(),
                            Place::Point(x, y),
                        ));
                    }
                }
                (_, &[(x, y)]) => c.take(Raw::new(image, record, category, Place::Point(x, y))),
                (_, all) => {
                    c.take(Raw::new(image, record, category, Place::around(all)));
                }
            }
        }
    }
    c.finish()
}

/// The coordinates of an annotation.
fn points(annotation: roxmltree::Node<'_, '_>) -> Result<Vec<(f64, f64)>, String> {
    let all = annotation.descendants().filter(|n| n.has_tag_name("Coordinate"));
    let point = |(k, p): (usize, roxmltree::Node<'_, '_>)| {
        // Some locales write a decimal comma.
        let read = |key| {
            let text = p.attribute(key).unwrap_or_default().replace(',', ".");
            text.parse::<f64>().map_err(|_| format!("coordinate {k}: {key} is `{text}`"))
        };
        Ok((read("X")?, read("Y")?))
    };
    all.enumerate().map(point).collect()
}
