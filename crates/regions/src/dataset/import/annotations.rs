//! Annotations of any format, and the images they belong to.

use super::{Imported, Options, Wanted, probe_all, some};
use crate::annotations::{Annotation, Annotations, Class, Problem};
use crate::dataset::{Area, Image, Kind, Label, Part, Probe, RegionsError, Result};
use crate::image_index::ImageIndex;
use base::text::Many;
use crops::schema::Split;
use std::collections::HashMap;
use std::path::Path;

/// Side of the ignore area around a bare point without an agreed label, level-0 px.
const UNRESOLVED_PX: f64 = 50.0;

/// A dataset of the images that annotations name, found by name at any depth below `images`.
///
/// Annotations without an agreed label become ignore areas; exact repeats are left out and named. Images that the
/// source lists without a single label are taken where they are found, but their labels do not count as exhaustive.
///
/// # Errors
/// Images that are missing (unless lenient, or unlabelled), ambiguous, of two names, unreadable or without um/px;
/// labels outside their image; an image that is partly test data.
pub fn annotated(all: &Annotations, images: &Path, o: &Options) -> Result<Imported> {
    let index = ImageIndex::below(images)?;
    let found = index.named(all.images.iter().map(|i| i.name.as_str()));
    let mut left_out = vec![];
    let labels = by_image(all, &mut left_out);
    let repeats = left_out.len();
    let mut dataset = o.builder();
    let mut missing = vec![];
    let mut wanted = vec![];
    let mut name_of = HashMap::new();
    for (number, entry) in all.images.iter().enumerate() {
        if let Some(two) = found.two(&entry.name) {
            return Err(RegionsError::image(&two.record, two.reason));
        }
        match found.get(&entry.name) {
            Some(file) => {
                if let Some(other) = name_of.insert(file, &entry.name) {
                    let reason =
                        format!("is {}, and so is `{other}`: one name each", file.display());
                    return Err(RegionsError::image(&entry.name, reason));
                }
                let given = o.given.lookup(&entry.names_of(file));
                wanted.push(Wanted { file: file.clone(), given, what: number });
            }
            None if labels[number].is_empty() => {}
            None => missing.push(entry.name.as_str()),
        }
    }
    if !missing.is_empty() && !o.lenient {
        let shown = missing.iter().take(10).copied().collect::<Vec<_>>().join(", ");
        let join = found.unmatched(&missing, all.images.iter().map(|i| i.name.as_str()));
        return Err(RegionsError::Invalid(format!(
            "{} labelled images are not below {}: {shown}{join}",
            missing.len(),
            images.display()
        )));
    }
    left_out.extend(
        missing.iter().map(|m| Problem { record: (*m).into(), reason: "no such image".into() }),
    );
    let mut moved = 0;
    for (probe, number) in probe_all(wanted, o.lenient, &mut left_out)? {
        moved += usize::from(all.from_bounds && probe.bounds_offset != [0, 0]);
        if let Err(e) = agrees(all, number, &probe) {
            if !o.lenient {
                return Err(e);
            }
            left_out
                .push(Problem { record: all.images[number].name.clone(), reason: e.to_string() });
            continue;
        }
        let image = image(all, number, &labels[number], probe, o, &mut left_out)?;
        for a in labels[number].iter().filter(|a| a.class == Class::Other) {
            dataset.class(&a.category, Kind::Other)?;
        }
        dataset.push(image);
    }
    some(dataset.images(), images)?;
    dataset.note("format", all.format);
    if repeats > 0 {
        dataset.note("repeats", format!("{} left out", Many(repeats, "repeated annotation")));
    }
    if moved > 0 {
        dataset.note(
            "bounds",
            format!("coordinates on {} count from the slide's bounds", Many(moved, "image")),
        );
    }
    if let Some(name) = all.file.file_name() {
        dataset.note("annotations", name.to_string_lossy());
    }
    Ok(Imported { dataset, left_out, unread_columns: None })
}

/// Compares the size and um/px that the annotations state with those of the image.
fn agrees(all: &Annotations, number: usize, probe: &Probe) -> Result<()> {
    let entry = &all.images[number];
    let (w, h) = probe.size;
    if !all.sizes_are_hearsay {
        entry.agrees((w.into(), h.into())).map_err(|e| RegionsError::image(&entry.name, e))?;
    }
    let mpp = [probe.mpp.x.get(), probe.mpp.y.get()];
    let image = || entry.name.clone();
    entry.units.check(mpp).map_err(|source| RegionsError::Units { image: image(), source })
}

/// Annotations of each image; what repeats another one teaches nothing new and counts as a second figure.
fn by_image<'a>(all: &'a Annotations, left_out: &mut Vec<Problem>) -> Vec<Vec<&'a Annotation>> {
    let mut labels = vec![vec![]; all.images.len()];
    let repeats = all.repeats();
    for (number, a) in all.annotations.iter().enumerate() {
        match repeats.get(&number) {
            None => labels[a.image].push(a),
            Some(&first) => left_out.push(Problem {
                record: format!("{}, {}", all.images[a.image].name, a.record),
                reason: format!("repeats {}", all.annotations[first].record),
            }),
        }
    }
    labels
}

fn image(
    all: &Annotations,
    number: usize,
    labels: &[&Annotation],
    probe: Probe,
    o: &Options,
    left_out: &mut Vec<Problem>,
) -> Result<Image> {
    let entry = &all.images[number];
    let source = entry.cohort.clone().or_else(|| o.source.clone());
    let source = source.unwrap_or_else(|| all.format.to_owned());
    let offset = all.offset(probe.bounds_offset);
    let mut image = probe.image(&entry.name, entry.slide_name(), &source);
    image.patient.clone_from(&entry.patient);
    image.scanner.clone_from(&entry.scanner);
    image.exhaustive = o.is_exhaustive(!labels.is_empty());
    let tests = labels.iter().filter(|a| a.split == Some(Split::Test)).count();
    image.part = match tests {
        _ if entry.split == Some(Split::Validation) => {
            let why = "is for validation, which is a matter of folds here: `corpus split` takes such a table";
            return Err(RegionsError::image(&entry.name, why));
        }
        // A table has priority over the setting for all images.
        _ if entry.split == Some(Split::Test) => Part::Test,
        0 if entry.split == Some(Split::Train) => Part::Train,
        0 => o.part,
        n if n == labels.len() => Part::Test,
        _ => return Err(RegionsError::image(&entry.name, "is partly test data")),
    };
    let (w, h) = (f64::from(image.width), f64::from(image.height));
    for a in labels.iter().map(|a| a.moved(offset)) {
        let area = a.bbox.map(Area::from);
        let (x, y) = (a.centre.x, a.centre.y);
        let reach = area.unwrap_or(Area { x0: x, y0: y, x1: x, y1: y });
        if reach.x1 < 0.0 || reach.y1 < 0.0 || reach.x0 >= w || reach.y0 >= h {
            let reason = format!("({x}, {y}) is outside the {w} x {h} px of the image");
            let record = format!("{}, {}", entry.name, a.record);
            if !o.lenient {
                return Err(RegionsError::image(&record, reason));
            }
            left_out.push(Problem { record, reason });
            continue;
        }
        let class = match a.class {
            Class::MitoticFigure => o.figure(),
            Class::Mimicker => crate::dataset::Builder::MIMICKER,
            Class::Other => &a.category,
            Class::Unresolved => {
                let area = area.unwrap_or_else(|| Area::around(x, y, UNRESOLVED_PX));
                image.ignore.push(area);
                continue;
            }
            Class::Ignored => continue,
        };
        image.labels.push(Label {
            bbox: area,
            subtype: a.subtype.clone(),
            votes: a.votes.clone(),
            ..Label::at(class, x, y)
        });
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotations::ImageEntry;
    use crate::dataset::{MppSource, Resolution};
    use mitosis::Mpp;
    use std::collections::BTreeMap;

    #[test]
    fn labels_of_qupath_count_from_the_bounds() {
        let found = |from_bounds| {
            let entry = ImageEntry { name: "s".into(), ..ImageEntry::default() };
            let all = Annotations { from_bounds, images: vec![entry], ..Annotations::default() };
            let mpp = Resolution { x: Mpp::PAPER, y: Mpp::PAPER, source: MppSource::User };
            let (file, sha256) = ("s.mrxs".into(), String::new());
            let (bytes, size, bounds_offset) = (1, (5000, 4000), [1000, 200]);
            let (coding, pixels) = (None, None);
            let probe = Probe { file, sha256, bytes, size, bounds_offset, mpp, coding, pixels };
            let figure = Annotation {
                image: 0,
                record: "1".into(),
                class: Class::MitoticFigure,
                category: "Mitotic figure".into(),
                subtype: None,
                centre: mitosis::Point::new(20.0, 30.0),
                bbox: Some([10.0, 20.0, 30.0, 40.0]),
                clipped: false,
                votes: BTreeMap::new(),
                patch: None,
                split: None,
            };
            let open = Annotation { class: Class::Unresolved, ..figure.clone() };
            let o = Options::default();
            let image = image(&all, 0, &[&figure, &open], probe, &o, &mut vec![]).unwrap();
            let l = &image.labels[0];
            (l.x, l.y, l.bbox.map(|b| (b.x0, b.y1)), image.ignore[0].x0)
        };
        assert_eq!(found(false), (20.0, 30.0, Some((10.0, 40.0)), 10.0));
        assert_eq!(found(true), (1020.0, 230.0, Some((1010.0, 240.0)), 1010.0));
    }
}
