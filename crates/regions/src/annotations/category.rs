//! What annotators call things. Known words are mapped here and nowhere else; anything else is an
//! error that names it, until the user maps it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// What an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A mitotic figure.
    MitoticFigure,
    /// Resembles one but is not one: hard negative, imposter, look-alike.
    Mimicker,
    /// Another labelled cell, e.g. an eosinophil; kept, never counted as a mimicker.
    Other,
    /// The annotators did not agree, or none decided.
    Unresolved,
    /// Left out: regions, and what the user maps to `ignore`.
    Ignored,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "mf" => Ok(Self::MitoticFigure),
            "mimicker" => Ok(Self::Mimicker),
            "other" => Ok(Self::Other),
            "ignore" => Ok(Self::Ignored),
            _ => Err(format!("`{s}` is not one of mf, mimicker, other, ignore")),
        }
    }
}

/// A category's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What it is.
    pub class: Class,
    /// `typical` or `atypical`, if the name contains it.
    pub subtype: Option<&'static str>,
}

/// The user's own mapping, NAME=mf, mimicker, other or ignore; looked up before the built-in
/// words, ignoring case and outer blanks.
#[derive(Clone, Debug, Default)]
pub struct Mapping(BTreeMap<String, Class>);

fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

impl Mapping {
    /// Reads `NAME=CLASS` pairs.
    ///
    /// # Errors
    /// The pair that cannot be read, or a name mapped twice.
    pub fn parse<S: AsRef<str>>(pairs: impl IntoIterator<Item = S>) -> Result<Self, MappingError> {
        let mut map = BTreeMap::new();
        for pair in pairs {
            let pair = pair.as_ref();
            let (name, class) =
                pair.rsplit_once('=').ok_or_else(|| MappingError::Pair(pair.to_owned()))?;
            let class: Class = class.trim().parse().map_err(MappingError::Class)?;
            if map.insert(folded(name), class).is_some_and(|old| old != class) {
                return Err(MappingError::Twice(name.to_owned()));
            }
        }
        Ok(Self(map))
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in lower case, that these categories have in another spelling alone, or all where the format fixes
    /// the classes.
    pub(super) fn unmatched(&self, categories: &BTreeSet<String>, is_fixed: bool) -> Vec<String> {
        let there: BTreeSet<String> = categories.iter().map(|c| folded(c)).collect();
        // One mapping may serve many files, some of which lack a category; where the format fixes them, it serves none.
        let is_meant = |name: &&String| {
            let mut others = there.iter().filter(|known| !self.0.contains_key(*known));
            is_fixed || others.any(|known| is_spelling(known, name))
        };
        let missing = self.0.keys().filter(|name| !there.contains(*name));
        missing.filter(is_meant).cloned().collect()
    }

    /// The meaning of a category name, or `None` when nobody knows it.
    #[must_use]
    pub fn meaning(&self, name: &str) -> Option<Meaning> {
        match self.0.get(&folded(name)) {
            Some(&class) => Some(Meaning { class, subtype: None }),
            None => known(name),
        }
    }
}

/// Whether two names differ as a typing error does: by what parts words, an ending, or one letter or two neighbours.
fn is_spelling(a: &str, b: &str) -> bool {
    let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    let same = short.iter().zip(long).take_while(|(x, y)| x == y).count();
    let behind = |skip: usize| short.get(same + skip..);
    // The rest is the same behind one letter more, another letter, or two that changed places.
    let one_more = behind(0) == long.get(same + 1..);
    let another = short.len() == long.len() && behind(1) == long.get(same + 1..);
    let swapped =
        short.len() == long.len() && behind(2).is_some() && behind(2) == long.get(same + 2..);
    let more = long.len() - short.len();
    let is_word = short.len() >= 5;
    let ending = same == short.len() && more <= if is_word { 3 } else { 1 };
    // The first letters agree: `atypical` is not a spelling of `typical`.
    short.len() >= 3 && same > 0 && (ending || (is_word && (one_more || another || swapped)))
}

/// A mapping that is not clear.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Not of the form.
    #[error("`{0}` is not NAME=mf|mimicker|other|ignore")]
    Pair(String),
    /// No class.
    #[error("{0}")]
    Class(String),
    /// Two classes for one name.
    #[error("`{0}` is mapped twice")]
    Twice(String),
}

/// Words for a mitotic figure.
const MITOTIC: &[&str] = &[
    "mitosis",
    "mitoses",
    "mitose",
    "mitosen",
    "mitotic",
    "mitotische",
    "mf",
    "mfs",
    "mitosefigur",
    "mitosefiguren",
    // Names of classes without blanks.
    "mitoticfigure",
    "mitoticfigures",
];
/// Words for what only resembles one.
const NEGATED: &[&str] = &[
    "nonmitosis",
    "nonmitoses",
    "nonmitotic",
    "nonmf",
    "nonmitoticfigure",
    "nonmitoticfigures",
    "notmitotic",
    "notmitoticfigure",
    "notmitoticfigures",
    "hardnegative",
    "hardnegatives",
    "hardnegativelookalike",
    "imposter",
    "imposters",
    "impostor",
    "impostors",
    "mimic",
    "mimics",
    "mimicker",
    "mimickers",
    "lookalike",
    "lookalikes",
];
const NEGATION: &[&str] = &["not", "non", "no", "nicht", "keine", "hard", "false", "look", "like"];
const NEUTRAL: &[&str] = &[
    "figure",
    "figures",
    "figur",
    "figuren",
    "cell",
    "cells",
    "nucleus",
    "nuclei",
    "negative",
    "negatives",
    "alike",
    "alikes",
    "example",
    "examples",
    "a",
    "of",
];
const OTHER_CELLS: &[&str] = &[
    "granulocyte",
    "granulocytes",
    "granulozyt",
    "granulozyten",
    "eosinophil",
    "eosinophils",
    "eosinophile",
    "eosinophilic",
    "neutrophil",
    "neutrophils",
    "tumorzelle",
    "tumorzellen",
    "tumorcell",
    "tumorcells",
    "lymphocyte",
    "lymphocytes",
    "neutrophilic",
    "mastcell",
    "mastcells",
];
/// Words that may precede "cell": other kinds of cells.
const OTHER_KINDS: &[&str] =
    &["tumor", "tumour", "mast", "neoplastic", "inflammatory", "normal", "immune", "stromal"];
const REGIONS: &[&str] = &[
    "roi",
    "region of interest",
    "tumorzone",
    "tumor zone",
    "tumour zone",
    "tumor region",
    "tumour region",
    "tumor area",
    "tumour area",
    "region",
    "area",
    IGNORED,
];

/// The word of reviews and counts for a mitotic figure. An annotator may mean any figure by it.
pub const COUNTED: &str = "figure";
/// The one of [`REGIONS`] that a single place may have.
const IGNORED: &str = "ignore";

impl Meaning {
    /// The meaning of a name in a table with a place in each row, such as a table of truth: as [`Mapping`] knows it.
    /// But [`COUNTED`] is a mitotic figure, and names of areas have no meaning, except `ignore`.
    #[must_use]
    pub fn in_table(name: &str) -> Option<Self> {
        let plain =
            || name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        match known(name) {
            None if plain() == COUNTED => Some(Self { class: Class::MitoticFigure, subtype: None }),
            Some(Self { class: Class::Ignored, .. }) if plain() != IGNORED => None,
            known => known,
        }
    }
}

/// The built-in vocabulary. Every word of the name must be known; `NMF` alone is not, because it
/// means "normal mitotic figure" to some and "non-mitotic figure" to others.
fn known(name: &str) -> Option<Meaning> {
    let lower = name.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let meaning = |class, subtype| Some(Meaning { class, subtype });
    if words.is_empty() {
        return None;
    }
    let has = |set: &[&str]| words.iter().any(|w| set.contains(w));
    let only = |sets: &[&[&str]]| words.iter().all(|w| sets.iter().any(|s| s.contains(w)));
    if REGIONS.contains(&words.join(" ").as_str()) {
        return meaning(Class::Ignored, None);
    }
    if has_mark(lower.trim()) {
        return None;
    }
    if words[0] == "hotspot" {
        return meaning(Class::Ignored, None);
    }
    let kind = has(OTHER_KINDS) && has(&["cell", "cells"]) && only(&[OTHER_KINDS, NEUTRAL]);
    let cell = has(OTHER_CELLS) && only(&[OTHER_CELLS, OTHER_KINDS, NEUTRAL]);
    if kind || cell || words == ["other"] {
        return meaning(Class::Other, None);
    }
    if words == ["amf"] {
        return meaning(Class::MitoticFigure, Some("atypical"));
    }
    if only(&[MITOTIC, NEGATED, NEGATION, NEUTRAL]) {
        let negated = has(NEGATED) || has(NEGATION);
        let hard = has(&["hard"]) && has(&["negative", "negatives", "example", "examples"]);
        if has(NEGATED) || hard || (negated && has(MITOTIC)) {
            return meaning(Class::Mimicker, None);
        }
        if has(MITOTIC) && !has(&["negative", "negatives"]) {
            return meaning(Class::MitoticFigure, None);
        }
        return None;
    }
    const TYPICAL: &[&str] = &["typical", "normal"];
    const ATYPICAL: &[&str] = &["atypical"];
    if has(MITOTIC) && only(&[MITOTIC, NEUTRAL, TYPICAL, ATYPICAL]) {
        return match (has(TYPICAL), has(ATYPICAL)) {
            (true, false) => meaning(Class::MitoticFigure, Some("typical")),
            (false, true) => meaning(Class::MitoticFigure, Some("atypical")),
            _ => None,
        };
    }
    None
}

/// Whether a name has a mark of doubt or of the opposite (`mf?`, `MF-`, `!mitosis`), or QuPath's of a class to be
/// ignored (`Mitosis*`).
fn has_mark(name: &str) -> bool {
    name.contains(['?', '!', '~', '*', '+', '\u{ac}', '\u{bf}', '\u{2260}'])
        || name.starts_with(['-', '\u{2212}'])
        || name.ends_with(['-', '\u{2212}'])
        || name.contains("(-)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_doubt_and_of_the_opposite_are_no_words() {
        for marked in ["mf?", "Mitosis?", "mitotic figure (?)", "MF-", "MF (-)", "!mitosis", "MF+"]
        {
            assert_eq!(known(marked), None, "{marked}");
        }
        for marked in ["Mitosis*", "-mf", "~mitosis", "imposter?", "mitotic figure -"] {
            assert_eq!(known(marked), None, "{marked}");
        }
        let named = known("Mitotic figure - atypical").map(|m| m.class);
        assert_eq!(named, Some(Class::MitoticFigure));
    }

    #[test]
    fn words_in_use_are_known() {
        let class = |n: &str| known(n).map(|m| m.class);
        for mf in [
            "mitotic figure",
            "Mitotic Figures",
            "Mitose",
            "mitosis",
            "MF",
            "mitotic cell",
            "atypical mitotic figure",
            "AMF",
            "normal mitotic figure",
            "Mitotische Figur",
            "MitoticFigure",
        ] {
            assert_eq!(class(mf), Some(Class::MitoticFigure), "{mf}");
        }
        for no in [
            "not mitotic figure",
            "hard negative",
            "Hard negative",
            "non-mitotic",
            "imposter",
            "nonmitosis",
            "Non-mitotic cells",
            "hard negative look-alike",
            "mimicker",
            "mitosis-like",
            "mitotic figure look-alike",
            "hard_negative",
            "Mitosis look-alikes",
            "NotMitotic",
            "HardNegative",
            "nonmitotic_figure",
        ] {
            assert_eq!(class(no), Some(Class::Mimicker), "{no}");
        }
        for other in [
            "eosinophil",
            "Granulocytes",
            "tumor cell",
            "Tumorzellen",
            "Eosinophilic granulocyte",
            "neoplastic mast cells",
            "Inflammatory granulocytes",
            "normal tumor cells",
            "Other",
        ] {
            assert_eq!(class(other), Some(Class::Other), "{other}");
        }
        for region in ["ROI", "Tumor region", "Region*", "Ignore*", "Hotspot 2 mm²"] {
            assert_eq!(class(region), Some(Class::Ignored), "{region}");
        }
        for unknown in [
            "",
            "NMF",
            "apoptotic body",
            "1",
            "mitotic figure?maybe",
            "questionable mitosis",
            "negative",
            "normal",
            "figure",
            "cell",
            "1st class",
            "like",
            "no",
            "mitotic negative",
            "tumor",
            "Stroma",
        ] {
            assert_eq!(class(unknown), None, "{unknown}");
        }
        assert_eq!(known("Atypical mitotic figure").unwrap().subtype, Some("atypical"));
        assert_eq!(known("typical mitosis").unwrap().subtype, Some("typical"));
    }

    #[test]
    fn a_table_of_places_has_the_same_words_and_two_of_its_own() {
        let class = |n: &str| Meaning::in_table(n).map(|m| m.class);
        for name in ["Mitotic figure", "hard negative", "Granulocytes", "NMF", "AMF", "cell", ""] {
            assert_eq!(Meaning::in_table(name), known(name), "{name}");
        }
        assert_eq!((class("Figure"), known("figure")), (Some(Class::MitoticFigure), None));
        assert_eq!(class("Ignore*"), Some(Class::Ignored));
        for area in ["ROI", "tumor region", "hotspot 2"] {
            assert_eq!(class(area), None, "{area}");
        }
    }

    #[test]
    fn the_users_mapping_comes_first() {
        let m = Mapping::parse(["apoptosis=mimicker", "Mitose=ignore", "a=b=mf"]).unwrap();
        assert_eq!(m.meaning("Apoptosis").unwrap().class, Class::Mimicker);
        assert_eq!(m.meaning(" mitose ").unwrap().class, Class::Ignored);
        assert_eq!(m.meaning("a=b").unwrap().class, Class::MitoticFigure);
        assert!(Mapping::parse(["x"]).is_err());
        assert!(Mapping::parse(["x=banana"]).is_err());
        assert!(Mapping::parse(["x=mf", "X=ignore"]).is_err());
    }
}
