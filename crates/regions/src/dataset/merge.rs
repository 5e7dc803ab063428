//! Joining datasets.

use super::{Builder, Dataset, Image, Kind, RegionsError, Result};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Writes the images of several datasets as one, in order. The positive classes must have one word;
/// names of images that repeat get the dataset's name in front. The same bytes or pixels in two of
/// them are refused: it would count twice, or be trained on and tested with.
///
/// # Errors
/// [`RegionsError`]: nothing to merge, classes that contradict each other, a repeated image, or a
/// disk that refuses.
pub fn merge(parts: &[Dataset], folder: &Path, name: &str, program: &str) -> Result<Dataset> {
    let first = parts.first().ok_or_else(|| RegionsError::Invalid("no dataset to merge".into()))?;
    let mut made = Builder::with_classes(name, program, first.classes().to_vec());
    let mut names = HashSet::new();
    let mut files = HashMap::<(&str, &str), (usize, &str)>::new();
    for (number, part) in parts.iter().enumerate() {
        for class in part.classes() {
            if class.kind == Kind::Figure && class.name != first.positive() {
                return Err(RegionsError::Invalid(format!(
                    "the positive class is `{}` in {} and `{}` in {}",
                    first.positive(),
                    first.name(),
                    class.name,
                    part.name()
                )));
            }
            made.class(&class.name, class.kind)?;
        }
        made.note(part.name(), format!("digest {}", part.digest()));
        for (key, value) in part.notes() {
            made.note(format!("{}: {key}", part.name()), value);
        }
        for image in part.images() {
            let keys = [("bytes", Some(&image.sha256)), ("pixels", image.pixels.as_ref())];
            for (what, key) in keys.into_iter().filter_map(|(what, key)| Some((what, key?))) {
                let known = files.insert((what, key), (number, &image.name));
                if let Some((_, other)) = known.filter(|(of, _)| *of != number) {
                    let reason = format!("has the same {what} as `{other}`; leave one of them out");
                    return Err(RegionsError::image(&image.name, reason));
                }
            }
            let path = part.path(image);
            let file = path.canonicalize().map_err(RegionsError::io(&path))?;
            let mut name = image.name.clone();
            if !names.insert(name.clone()) {
                name = format!("{}/{name}", part.name());
                names.insert(name.clone());
            }
            made.push(Image { name, file, ..image.clone() });
        }
    }
    made.write(folder)
}
