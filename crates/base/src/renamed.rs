//! Keys of presets and recipes that were renamed. Files with the earlier names are read, and digests are of the text
//! with the earlier names: so the digests of finished runs stay those of the same work.

use crate::digest::sha256;
use serde::Serialize;

/// A key's name now, and its earlier one.
const KEYS: [[&str; 2]; 1] = [["min_separation_um", "apart_um"]];

/// A dotted path of a key by its name now.
#[must_use]
pub fn current(path: &str) -> String {
    let (tables, key) = path.rsplit_once('.').map_or((None, path), |(t, k)| (Some(t), k));
    let now = KEYS.iter().find(|[_, earlier]| *earlier == key).map_or(key, |[now, _]| *now);
    tables.map_or_else(|| now.to_owned(), |tables| format!("{tables}.{now}"))
}

/// SHA-256 of JSON or TOML, the same for both names of a key.
#[must_use]
pub fn digest(text: &str) -> String {
    let earlier = |text: String, [now, earlier]: &[&str; 2]| {
        let json = text.replace(&format!("\"{now}\":"), &format!("\"{earlier}\":"));
        json.replace(&format!("\n{now} = "), &format!("\n{earlier} = "))
    };
    sha256(KEYS.iter().fold(text.to_owned(), earlier))
}

/// [`digest`] of a value as JSON.
///
/// # Panics
/// For what JSON cannot hold, as a map whose keys are not text.
#[must_use]
pub fn json_digest<T: Serialize + ?Sized>(value: &T) -> String {
    digest(&serde_json::to_string(value).expect("plain data becomes JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_text_with_the_earlier_name() {
        let toml = |key: &str| format!("[candidates]\nmin_area_px = 20\n{key} = 12.0\n");
        let json = |key: &str| format!("{{\"min_area_px\":20,\"{key}\":12.0}}");
        for text in [toml, json] as [fn(&str) -> String; 2] {
            assert_eq!(digest(&text("min_separation_um")), sha256(text("apart_um")));
            assert_eq!(digest(&text("apart_um")), sha256(text("apart_um")));
        }
        assert_eq!(digest("a = 1\n"), sha256("a = 1\n"));
    }

    #[test]
    fn a_path_has_the_name_that_a_key_has_now() {
        assert_eq!(current("recipe.apart_um"), "recipe.min_separation_um");
        assert_eq!(current("apart_um"), "min_separation_um");
        assert_eq!(current("recipe.mpp"), "recipe.mpp");
    }
}
