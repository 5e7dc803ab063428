//! Two tables whose keys should meet: which do not, and the rule by which they would.

use super::bare;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use unicode_normalization::UnicodeNormalization;

/// A way to write a key so that keys of two tables may meet.
struct Rule {
    /// As in "without leading zeros they would match".
    name: &'static str,
    apply: fn(&str) -> String,
}

const RULES: &[Rule] = &[
    Rule {
        name: "with every accent as a character of its own (they look the same)",
        apply: |k| k.nfd().collect(),
    },
    Rule { name: "ignoring upper and lower case", apply: |k| k.to_lowercase() },
    Rule { name: "without the file's ending", apply: |k| without_ending(k).to_owned() },
    Rule { name: "without the folder", apply: |k| file_name(k).to_owned() },
    Rule {
        name: "without the folder and the file's ending",
        apply: |k| without_ending(file_name(k)).to_owned(),
    },
    Rule { name: "without leading zeros", apply: zeros },
    Rule { name: "ignoring blanks and punctuation", apply: letters },
    Rule { name: "as numbers", apply: number },
    Rule { name: "by their first 12 characters (the patient in a TCGA barcode)", apply: patient },
    Rule {
        name: "ignoring case, the file's ending, leading zeros, blanks and punctuation",
        apply: loose,
    },
    Rule {
        name: "with letters that look alike as one, without characters that are not seen",
        apply: bare,
    },
];

/// The last part of a path.
#[must_use]
pub fn file_name(key: &str) -> &str {
    key.rsplit(['/', '\\']).next().unwrap_or(key)
}

/// Up to two short endings off, as in `a.ome.tif`; numbers such as `1.5` keep theirs.
#[must_use]
pub fn without_ending(key: &str) -> &str {
    let once = |k: &'_ str| -> Option<usize> {
        let (stem, ending) = k.rsplit_once('.')?;
        let short = (2..=8).contains(&ending.len());
        let word = ending.chars().all(|c| c.is_ascii_alphanumeric())
            && ending.chars().any(|c| c.is_ascii_alphabetic());
        (short && word && !stem.is_empty()).then_some(stem.len())
    };
    let Some(n) = once(key) else { return key };
    let first = &key[..n];
    match once(first) {
        Some(m) if first.ends_with(".ome") => &first[..m],
        _ => first,
    }
}

/// Leading zeros of every run of digits off: `case01-02` is `case1-2`.
fn zeros(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut chars = key.chars().peekable();
    let mut within = false;
    while let Some(c) = chars.next() {
        let more = chars.peek().is_some_and(char::is_ascii_digit);
        if c == '0' && !within && more {
            continue;
        }
        within = c.is_ascii_digit();
        out.push(c);
    }
    out
}

fn letters(key: &str) -> String {
    key.chars().filter(|c| !c.is_whitespace() && !c.is_ascii_punctuation()).collect()
}

fn number(key: &str) -> String {
    key.parse::<f64>().map_or_else(|_| key.to_owned(), |v| v.to_string())
}

fn patient(key: &str) -> String {
    let file = file_name(key);
    if file.len() >= 12 && file.starts_with("TCGA-") && file.is_char_boundary(12) {
        return file[..12].to_owned();
    }
    key.to_owned()
}

fn loose(key: &str) -> String {
    zeros(&letters(without_ending(file_name(key)))).to_lowercase()
}

/// Keys of one side that the other lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoneKeys {
    /// The first of them.
    pub first: Vec<String>,
    /// How many there are.
    pub count: usize,
}

/// A rule by which keys would match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchingRule {
    /// As in "3 would match without leading zeros".
    pub name: &'static str,
    /// How many keys of the left side.
    pub count: usize,
}

/// What two sets of keys do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Keys of the left side alone.
    pub left: LoneKeys,
    /// Keys of the right side alone.
    pub right: LoneKeys,
    /// The rule by which most of the left ones would meet a right one.
    pub rule: Option<MatchingRule>,
    names: (String, String),
}

/// Keys named in an [`Unmatched`], of each side.
const NAMED: usize = 3;

impl Unmatched {
    /// Compares the keys of two tables; `None` when each has the other's. `names` are the names of the
    /// two sides, for example the two files.
    #[must_use]
    pub fn between<'a>(
        names: (&str, &str),
        left: impl IntoIterator<Item = &'a str>,
        right: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let left: BTreeSet<&str> = left.into_iter().collect();
        let right: BTreeSet<&str> = right.into_iter().collect();
        let alone: Vec<&str> = left.difference(&right).copied().collect();
        let others: Vec<&str> = right.difference(&left).copied().collect();
        Self::from_keys(names, &alone, &others)
    }

    /// Whether a rule is known by which some of the keys would match.
    #[must_use]
    pub fn has_rule(&self) -> bool {
        self.rule.is_some()
    }

    /// What two tables do not share, where a join by rules of its own has found the keys without a
    /// partner; `None` without any.
    #[must_use]
    pub fn from_keys(names: (&str, &str), alone: &[&str], others: &[&str]) -> Option<Self> {
        if alone.is_empty() && others.is_empty() {
            return None;
        }
        let first = |all: &[&str]| LoneKeys {
            first: all.iter().take(NAMED).map(|k| (*k).to_owned()).collect(),
            count: all.len(),
        };
        let rule = best(alone, others);
        let names = (names.0.to_owned(), names.1.to_owned());
        Some(Self { left: first(alone), right: first(others), rule, names })
    }
}

/// The first rule of those that match most. Keys that a rule would make equal on one side do not
/// match: they would be ambiguous.
fn best(left: &[&str], right: &[&str]) -> Option<MatchingRule> {
    let mut best: Option<MatchingRule> = None;
    let mut consider = |name, count: usize| {
        if count > best.map_or(0, |rule| rule.count) {
            best = Some(MatchingRule { name, count });
        }
    };
    for rule in RULES {
        let right: BTreeSet<String> = right.iter().map(|k| (rule.apply)(k)).collect();
        let mut left_of: BTreeMap<String, usize> = BTreeMap::new();
        for key in left {
            *left_of.entry((rule.apply)(key)).or_default() += 1;
        }
        let unique = !rule.name.starts_with("by their first");
        let met = left_of.iter().filter(|(k, n)| right.contains(*k) && (!unique || **n == 1));
        consider(rule.name, met.map(|(_, n)| n).sum());
    }
    // Prefixes: sorted, the keys that begin with a key follow it.
    let mut sorted: Vec<&str> = right.to_vec();
    sorted.sort_unstable();
    let begins = |k: &&&str| {
        let at = sorted.partition_point(|r| *r < **k);
        sorted.get(at).is_some_and(|r| r.starts_with(**k) && !k.is_empty())
    };
    consider("as the first is the beginning of the second", left.iter().filter(begins).count());
    let mut sorted: Vec<&str> = left.to_vec();
    sorted.sort_unstable();
    let begun = |k: &&&str| {
        let at = sorted.partition_point(|l| *l < **k);
        sorted.get(at).is_some_and(|l| l.starts_with(**k) && !k.is_empty())
    };
    consider("as the second is the beginning of the first", right.iter().filter(begun).count());
    best
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (LoneKeys { first: keys, count: n }, name, other) in [
            (&self.left, &self.names.0, &self.names.1),
            (&self.right, &self.names.1, &self.names.0),
        ] {
            if *n == 0 {
                continue;
            }
            let listed: Vec<String> = keys.iter().map(|k| format!("'{k}'")).collect();
            let more = if *n > keys.len() { ", ..." } else { "" };
            parts.push(format!(
                "{n} key{} only in {name}, not in {other} ({}{more})",
                if *n == 1 { "" } else { "s" },
                listed.join(", ")
            ));
        }
        if let Some(MatchingRule { name, count }) = self.rule {
            parts.push(format!("{count} would match {name}"));
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(left: &[&str], right: &[&str]) -> Option<Unmatched> {
        Unmatched::between(("a.csv", "b.csv"), left.iter().copied(), right.iter().copied())
    }

    #[test]
    fn the_rule_that_would_match_is_named() {
        for (left, right, words) in [
            (["0001", "0002"], ["1", "2"], "without leading zeros"),
            (["a.svs", "b.svs"], ["a", "b"], "without the file's ending"),
            (["Case1", "Case2"], ["case1", "case2"], "ignoring upper and lower case"),
            (["x/1.svs", "y/2.svs"], ["1.svs", "2.svs"], "without the folder"),
            (["P-1", "P-2"], ["P1", "P 2"], "ignoring blanks"),
            // A case's number, of which a file's name has no stroke, and Excel's mark of a text.
            (["S21-1", "S21-2"], ["S21/1", "'S21-2"], "ignoring blanks and punctuation"),
            (["TCGA-A1-A0SB-01Z", "TCGA-A1-A0SC-01Z"], ["TCGA-A1-A0SB", "TCGA-A1-A0SC"], "TCGA"),
            (["S1_x", "S2_x"], ["S1", "S2"], "the second is the beginning of the first"),
            // As on macOS and as typed.
            (["S1", "S2"], ["\u{405}1", "S2\u{200B}"], "letters that look alike as one"),
            (["Müller", "Škoda"], ["Mu\u{308}ller", "S\u{30c}koda"], "every accent as a character"),
        ] {
            let mismatch = between(&left, &right).unwrap();
            assert_eq!(mismatch.rule.map(|rule| rule.count), Some(2), "{mismatch}");
            let text = mismatch.to_string();
            assert!(text.contains(words) && text.contains(&format!("'{}'", left[0])), "{text}");
            assert!(text.contains(&format!("'{}'", right[0])), "{text}");
        }
        assert_eq!(between(&["a", "b"], &["b", "a"]), None);
        assert_eq!(between(&["x"], &["y"]).unwrap().rule, None);
        assert_eq!(between(&["é"], &["e"]).unwrap().rule, None, "an accent is a difference");
    }

    #[test]
    fn keys_that_a_rule_would_make_equal_do_not_match() {
        assert_eq!(between(&["01", "001"], &["1"]).unwrap().rule, None);
    }

    #[test]
    fn endings() {
        let of = ["a.svs", "a.ome.tif", "1.5", "a.b.c", "a"].map(without_ending);
        assert_eq!(of, ["a", "a", "1.5", "a.b.c", "a"]);
    }
}
