//! Texts of a file while it is searched.

use super::tags;
use crate::privacy::{self, Personal, holds_words};

/// A text of a file.
pub(crate) struct FileText {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Its kind whatever its name; without it the name is judged.
    pub(crate) kind: Option<Personal>,
}

impl FileText {
    pub(super) fn text(name: impl Into<String>, value: &[u8]) -> Self {
        // Zeros end texts, and separate several of them.
        let value = String::from_utf8_lossy(value).replace('\0', " ");
        Self { name: name.into(), value: value.trim().to_owned(), kind: Some(Personal::Text) }
    }

    /// The texts of a colour profile that may identify somebody.
    pub(super) fn of_profile(name: &str, profile: &[u8]) -> Vec<Self> {
        let texts = crate::icc::texts(profile).into_iter();
        texts.map(|(tag, text)| Self::text(format!("{name}.{tag}"), text.as_bytes())).collect()
    }

    /// The text of a technical field, in which anybody may have written anything, unless it names a product. `kind` is
    /// TIFF's number of the field's type.
    pub(super) fn of_product(name: String, kind: u16, value: &[u8]) -> Option<Self> {
        let found = Self::text(name, value);
        let is_text = tags::is_text(kind) || (tags::is_bytes(kind) && holds_words(value));
        (is_text && !privacy::is_product(&found.value)).then_some(found)
    }

    /// Judged by its name; free text where that is unknown.
    pub(super) fn named(name: impl Into<String>, value: &[u8]) -> Self {
        let name = name.into();
        let kind = privacy::personal(&name).unwrap_or(Personal::Text);
        Self { kind: Some(kind), ..Self::text(name, value) }
    }

    pub(super) fn findings(&self) -> Vec<(String, Personal)> {
        match self.kind {
            None => privacy::personal_parts(&self.name, &self.value),
            Some(_) if privacy::is_blank(&self.value) => Vec::new(),
            // Of a description in a known form the single fields are named.
            Some(Personal::Text) => match privacy::fields_found(&self.name, &self.value) {
                Some(fields) => fields,
                None => vec![(self.name.clone(), privacy::kind_of_text(&self.value))],
            },
            Some(kind) => vec![(self.name.clone(), kind)],
        }
    }
}

/// Of a flat picture: what nothing here takes apart.
pub(crate) const CODED: &str = "bytes among the coded pixels that no decoder reads";

/// What a part of the search gives.
#[derive(Default)]
pub(crate) struct Search {
    pub(crate) texts_found: Vec<FileText>,
    pub(crate) looked_at: Vec<String>,
    pub(crate) not_looked_at: Vec<String>,
}
