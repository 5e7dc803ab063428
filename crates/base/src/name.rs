//! Names of folders, made of text from outside.

use crate::text::plain;

/// Longest folder name in bytes; file systems take 255.
const LONGEST: usize = 200;

/// A name for one folder below the one it is joined to, whatever the text: control characters, `/ \ : * ? " < > |` and
/// dots at either end become `_`, an empty one becomes `_`, and a very long one is cut.
#[must_use]
pub fn folder_name(name: &str) -> String {
    let strange = |c: char| c.is_control() || r#"/\:*?"<>|"#.contains(c) || plain_differs(c);
    let mut safe: String = name.chars().map(|c| if strange(c) { '_' } else { c }).collect();
    while safe.len() > LONGEST {
        safe.pop();
    }
    let dots = |s: &str, from_end: bool| {
        let dot = |c: &char| matches!(c, '.' | ' ');
        if from_end {
            s.chars().rev().take_while(dot).count()
        } else {
            s.chars().take_while(|c| *c == '.').count()
        }
    };
    let (head, tail) = (dots(&safe, false), dots(&safe, true));
    let all = safe.chars().count();
    if all == 0 {
        return "_".into();
    }
    let keep = |(i, c): (usize, char)| if i < head || i + tail >= all { '_' } else { c };
    safe.chars().enumerate().map(keep).collect()
}

/// Whether a character is written out when it is shown.
fn plain_differs(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    plain(text) != text
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, folder_name};

    #[test]
    fn long_names_are_cut_and_empty_ones_filled() {
        let long = folder_name(&"ü".repeat(300));
        assert!(long.len() <= LONGEST && long.len() > LONGEST - 4, "{}", long.len());
        assert_eq!([folder_name(""), folder_name("a/b.")], ["_", "a_b_"]);
    }
}
