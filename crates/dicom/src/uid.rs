//! Unique identifiers that are the same every time: `2.25.` and the decimal number of a UUID (PS3.5 B.2)
//! made of words.

use uuid::Uuid;

/// Of nobody else.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d69_7468_7261_7300_8000_6469_636f_6d00);

/// The identifier of these words, in this order.
#[must_use]
pub fn from_words(words: &[&str]) -> String {
    let joined = words.join("\0");
    format!("2.25.{}", Uuid::new_v5(&NAMESPACE, joined.as_bytes()).as_u128())
}

#[cfg(test)]
mod tests {
    use super::from_words;

    #[test]
    fn words_make_one_identifier_and_others_another() {
        let a = from_words(&["a", "b"]);
        assert_eq!(a, from_words(&["a", "b"]));
        assert!(a != from_words(&["ab"]) && a != from_words(&["a", "b", ""]));
        assert!(a.len() <= 64 && a.starts_with("2.25.") && !a.starts_with("2.25.0"));
    }
}
