//! Cells that a spreadsheet must not compute.

use std::borrow::Cow;

/// A cell of a CSV file that a spreadsheet takes for text. A spreadsheet computes what begins with
/// `=`, `+`, `-`, `@`, a tab or a carriage return; such a cell gets an apostrophe in front, unless it
/// is a number. [`uncell`] takes it off again.
#[must_use]
pub fn cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(computes) && text.parse::<f64>().is_err() {
        return format!("'{text}").into();
    }
    text.into()
}

/// What [`cell`] was given.
#[must_use]
pub fn uncell(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if text.starts_with(computes) => text,
        _ => cell,
    }
}

/// The text with control characters written out, but for tabs and ends of lines, which a quoted cell
/// may hold.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
            || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

fn computes(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_computed_and_all_come_back() {
        for text in ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "a", "'a", "", "-1.5", "+3"] {
            let safe = cell(text);
            assert!(!safe.starts_with(computes) || text.parse::<f64>().is_ok(), "{safe}");
            assert_eq!(uncell(&safe), text);
        }
    }
}
