//! Words that programs write for "no value" and for events: one list of each.

use unicode_normalization::UnicodeNormalization;

/// Cells that mean "missing". Compared as written; the comments name who writes them.
pub const MISSING: &[&str] = &[
    "",
    // R, pandas (its `na_values`), NumPy, SQL, Julia.
    "NA",
    "N/A",
    "n/a",
    "<NA>",
    "NaN",
    "nan",
    "-nan",
    "-NaN",
    "NULL",
    "null",
    "None",
    "missing",
    // C libraries of Windows; pandas reads them so.
    "1.#IND",
    "-1.#IND",
    "1.#QNAN",
    "-1.#QNAN",
    // SAS, Stata, SPSS; their lettered ones (`.a`) are in [`may_mean_missing`].
    ".",
    // GDC (clinical.tsv of the Genomic Data Commons).
    "'--",
    "--",
    "Not Reported",
    "not reported",
    "Not Allowed To Collect",
    "not allowed to collect",
    // cBioPortal and the TCGA biotabs; these in any case, as readers of such files compare them.
    "[Not Available]",
    "[Not Applicable]",
    "[Not Evaluated]",
    "[Unknown]",
    "[Discrepancy]",
    "[Pending]",
    "[Completed]",
    "[Null]",
    // REDCap's missing data codes: unknown, not asked, asked but unknown, unavailable for now and for good. Its shorter
    // ones may be words of other columns, too: see [`MAYBE_MISSING`].
    "UNK",
    "NASK",
    "ASKU",
    "NAV",
    "NAVU",
    // Excel, LibreOffice, Google Sheets.
    "#N/A",
    "#N/A N/A",
    "#NA",
    "#VALUE!",
    "#REF!",
    "#DIV/0!",
    "#NUM!",
    "#NAME?",
    "#NULL!",
    "#ERROR!",
    // Excel since 2019: formulas that spill, linked data types, data under way.
    "#SPILL!",
    "#CALC!",
    "#FIELD!",
    "#BUSY!",
    "#BLOCKED!",
    "#CONNECT!",
    "#UNKNOWN!",
    "#GETTING_DATA",
];

/// Whether a cell means "missing": one of [`MISSING`], those in square brackets in any case, or an error of LibreOffice
/// (`Err:502`).
#[must_use]
pub fn is_missing(cell: &str) -> bool {
    let bracketed =
        || cell.starts_with('[') && MISSING.iter().any(|m| m.eq_ignore_ascii_case(cell));
    let error = || cell.strip_prefix("Err:").is_some_and(digits);
    MISSING.contains(&cell) || bracketed() || error()
}

/// Further words for "missing", in lower case; a category may have such a name.
const MAYBE_MISSING: &[&str] = &[
    // What people type.
    "na",
    "n.a.",
    "n.d.",
    "nd",
    "not known",
    "not applicable",
    "unk.",
    "?",
    "-",
    // REDCap's shorter codes: no information, invalid, not present, masked.
    "ni",
    "inv",
    "np",
    "msk",
];

/// Whether a word in lower case is one of the missing values that SAS and Stata number by letters: `.a` to `.z`, `._`.
fn is_lettered(word: &str) -> bool {
    matches!(word.as_bytes(), [b'.', b'a'..=b'z' | b'_'])
}

/// Whether a cell that is a value may have been meant as "missing": one of [`MISSING`] but for case, a word that
/// leaves open what happened, one that people type, or a short code of a program.
#[must_use]
pub fn may_mean_missing(cell: &str) -> bool {
    let word = cell.trim().to_lowercase();
    let same = || MISSING.iter().any(|m| !m.is_empty() && m.to_lowercase() == word);
    let listed = |list: &[&str]| list.contains(&word.as_str());
    let known = listed(OPEN) || listed(MAYBE_MISSING) || is_lettered(&word);
    !is_missing(cell) && (known || same())
}

/// Whether a number is formed as one that people type for "missing": 99, 999 or 9999, the same of sevens or eights
/// (refused, does not apply), or one of these or a single digit below zero. Most such numbers are values: a caller
/// looks at the others of the column, too.
#[must_use]
pub fn may_be_code(number: f64) -> bool {
    let text = number.abs().to_string();
    let first = text.as_bytes()[0];
    let repeated = text.len() <= 6 && text.bytes().all(|b| b == first);
    let digits = repeated && (b'7'..=b'9').contains(&first);
    (digits && (number < 0.0 || text.len() > 1)) || number == -1.0
}

/// Small letters of Cyrillic, and capitals of Greek, of which a large one looks as one of Latin, and those of Latin.
const CYRILLIC: (&str, &str) = ("авекмнорстухіјѕ", "abekmhopctyxijs");
const GREEK: (&str, &str) = ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX");

/// The letter that looks alike, or the letter itself.
fn alike(c: char, (from, to): (&str, &str)) -> char {
    from.chars().zip(to.chars()).find(|(own, _)| *own == c).map_or(c, |(_, other)| other)
}

/// Whether nothing is seen of a character: marks of direction, of bytes' order and between syllables, and blanks of no
/// width.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

/// A word as it is seen: accents and ligatures in one form, dashes alike, Greek capitals next to Latin letters as
/// those, without what is invisible.
fn as_seen(word: &str) -> String {
    let is_dash = |c: char| matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}');
    let visible = word.nfkc().filter(|c| !is_invisible(*c));
    let seen: String = visible.map(|c| if is_dash(c) { '-' } else { c }).collect();
    let is_mixed = seen.contains(|c: char| c.is_ascii_alphabetic()) || seen.chars().count() == 1;
    if is_mixed { seen.chars().map(|c| alike(c, GREEK)).collect() } else { seen }
}

/// A word of a category without what spellings of one differ by: case, blanks, a hyphen or an underscore between
/// words, the form of a number (`1` and `1.0`), the form of an accent, letters that look alike, what is invisible.
#[must_use]
pub fn bare(word: &str) -> String {
    let word = if word.is_ascii() { word.to_owned() } else { as_seen(word) };
    let word = word.trim();
    if let Ok(number) = word.parse::<f64>() {
        return number.to_string();
    }
    let lower = word.chars().flat_map(char::to_lowercase);
    let letters: Vec<char> = lower.map(|c| alike(c, CYRILLIC)).collect();
    let is_word =
        |i: Option<usize>| i.and_then(|i| letters.get(i)).is_some_and(|c| c.is_alphanumeric());
    let parts = |(i, c): (usize, &char)| match c {
        '-' | '_' if is_word(i.checked_sub(1)) && is_word(Some(i + 1)) => ' ',
        c => *c,
    };
    let text: String = letters.iter().enumerate().map(parts).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Words for yes, in lower case; the comments name who writes them.
const YES: &[&str] = &[
    // R, pandas, SQL, Excel and LibreOffice (`TRUE`, `True`, `true`).
    "true",
    // GDC (clinical.tsv), cBioPortal (`YES`), and REDCap's labels of a yes-no field.
    "yes", // REDCap's label of a box that is ticked.
    "checked",
];

/// Words for no, in lower case: the opposites of [`YES`].
const NO: &[&str] = &["false", "no", "unchecked"];

/// What a cell of a column of yes and no means: a known word, whatever its case, or 1 and 0 as
/// REDCap's raw values and integers are (`1.0` after a missing cell in pandas). `None` for anything else.
#[must_use]
pub fn yes_no(cell: &str) -> Option<bool> {
    let word = cell.trim().to_lowercase();
    match word.as_str() {
        "1" | "1.0" => Some(true),
        "0" | "0.0" => Some(false),
        word if YES.contains(&word) => Some(true),
        word if NO.contains(&word) => Some(false),
        _ => None,
    }
}

/// A word for "the event happened", in lower case, besides [`YES`].
const ANY: &[&str] = &["event"];
/// Words for death: vital status of GDC (`Dead`), cBioPortal (`DECEASED`), REDCap and R.
const DEATH: &[&str] = &["dead", "deceased", "died", "death"];
/// Words for recurrence and progression: GDC, cBioPortal (`Recurred/Progressed`).
const RECURRENCE: &[&str] = &[
    "relapse",
    "relapsed",
    "recurred",
    "recurrence",
    "progressed",
    "progression",
    "recurred/progressed",
];

/// Words for "no event until then", in lower case, besides [`NO`]: GDC (`Alive`), cBioPortal (`LIVING`, `DiseaseFree`).
const CENSORED: &[&str] = &[
    "no event",
    "censored",
    "alive",
    "living",
    "diseasefree",
    "disease free",
    "disease-free",
    "progression free",
    "not recurred",
];

/// Words in an event column that leave open what happened, in lower case.
const OPEN: &[&str] = &["unknown", "unspecified", "not reported", "not available"];

/// What a cell of an event column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventCell {
    /// It happened.
    Happened,
    /// It had not happened at the end of the observation.
    Censored,
    /// The cell leaves it open: as good as missing.
    Open,
}

/// What a word of an event column means, whatever its case; cBioPortal's codes before a colon
/// (`1:DECEASED`, `0:LIVING`) count, the word behind them need not be known. `None` for a word that is
/// not in the lists.
#[must_use]
pub fn event(cell: &str) -> Option<EventCell> {
    let word = cell.trim().to_lowercase();
    match word.split_once(':') {
        Some(("1", _)) => return Some(EventCell::Happened),
        Some(("0", _)) => return Some(EventCell::Censored),
        _ => {}
    }
    let lists = [
        (YES, EventCell::Happened),
        (ANY, EventCell::Happened),
        (DEATH, EventCell::Happened),
        (RECURRENCE, EventCell::Happened),
        (NO, EventCell::Censored),
        (CENSORED, EventCell::Censored),
        (OPEN, EventCell::Open),
    ];
    lists.into_iter().find(|(list, _)| list.contains(&word.as_str())).map(|(_, e)| e)
}

/// Whether two words mean that the same event happened: two for death, or one of any event (`yes`) and another.
/// Death and recurrence are two events.
#[must_use]
pub fn same_event(a: &str, b: &str) -> bool {
    let which = |cell: &str| {
        let word = cell.trim().to_lowercase();
        let word = word.strip_prefix("1:").unwrap_or(&word).trim();
        [DEATH, RECURRENCE].iter().position(|list| list.contains(&word))
    };
    let both = [a, b].iter().all(|word| event(word) == Some(EventCell::Happened));
    both && which(a).zip(which(b)).is_none_or(|(a, b)| a == b)
}

/// A name of a column as it is compared: without case, blanks, underscores and hyphens.
#[must_use]
pub fn normal(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether all of a text is ASCII digits.
pub(super) fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_programs_that_write_tables() {
        for word in ["", "'--", "[Not Available]", "UNK", "#N/A", "NaN", "Not Reported"] {
            assert!(is_missing(word), "{word}");
        }
        for word in ["[Completed]", "[Null]", "[not available]", "[NOT EVALUATED]", "NAVU"] {
            assert!(is_missing(word), "{word}");
        }
        for word in ["#SPILL!", "#CALC!", "#GETTING_DATA", "Err:502", "-NaN", "1.#IND"] {
            assert!(is_missing(word), "{word}");
        }
        for word in ["0", "Stage I", "-", "no", "Unknown primary", "[x]", "Err:", "Err:x", "na"] {
            assert!(!is_missing(word), "{word}");
        }
    }

    #[test]
    fn numbers_that_may_be_codes() {
        for number in [99.0, 999.0, 9999.0, 88.0, 777.0, -9.0, -99.0, -1.0] {
            assert!(may_be_code(number), "{number}");
        }
        for number in [9.0, 0.0, 98.0, 99.9, 90.0, -2.0, 111.0, 99_999_999.0, f64::NAN] {
            assert!(!may_be_code(number), "{number}");
        }
    }

    #[test]
    fn values_that_may_mean_missing() {
        for word in
            ["na", "Na", "N/a", "unknown", "NOT REPORTED", "none", "-", "?", "INV", ".a", ".Z"]
        {
            assert!(may_mean_missing(word) && !is_missing(word), "{word}");
        }
        for word in ["NA", "", "a", "Stage I", "no", ".", ".ab", ".5"] {
            assert!(!may_mean_missing(word), "{word}");
        }
    }

    #[test]
    fn spellings_of_one_word() {
        for (a, b) in
            [("Male", " MALE"), ("1", "01.0"), ("Non-mitotic", "non mitotic"), ("a_b", "A  b")]
        {
            assert_eq!(bare(a), bare(b), "{a}");
        }
        for (a, b) in [
            // An accent in one character and in two, Cyrillic and Greek capitals, marks that are not seen, a dash.
            ("Déc\u{e9}dé", "De\u{301}cédé"),
            ("A", "\u{410}"),
            ("grade A", "grade \u{391}"),
            ("A\u{200B}", "a"),
            ("\u{FEFF}low", "low"),
            ("non\u{AD}mitotic", "nonmitotic"),
            ("I\u{2013}II", "I-II"),
            ("\u{2161}", "II"),
            ("ВЕНА", "вена"),
            ("ΝΑΙ", "ναι"),
            ("\u{B5}m", "\u{3BC}m"),
        ] {
            assert_eq!(bare(a), bare(b), "{a}, {b}");
        }
        for (a, b) in [("\u{3BC}m", "mm"), ("ERα", "ERβ"), ("é", "e"), ("Ä", "A")] {
            assert_ne!(bare(a), bare(b), "{a}, {b}");
        }
        for (a, b) in [("I-II", "III"), ("ER-", "ER"), ("ER+", "ER-"), ("1-2", "12"), ("-", "")] {
            assert_ne!(bare(a), bare(b), "{a}");
        }
    }

    #[test]
    fn words_for_yes_and_no() {
        for word in ["true", "TRUE", "Yes", " YES", "1", "1.0", "Checked"] {
            assert_eq!(yes_no(word), Some(true), "{word}");
            let plain = word.starts_with('1');
            assert_eq!(event(word).is_none(), plain, "{word}");
        }
        for word in ["false", "False", "NO", "0", "0.0", "Unchecked"] {
            assert_eq!(yes_no(word), Some(false), "{word}");
        }
        for word in ["", "2", "y", "Unknown", "not reported"] {
            assert_eq!(yes_no(word), None, "{word}");
        }
    }

    #[test]
    fn events() {
        let of = |words: &[&str]| words.iter().map(|w| event(w)).collect::<Vec<_>>();
        assert_eq!(of(&["Dead", "1:DECEASED", "YES"]), [Some(EventCell::Happened); 3]);
        assert_eq!(of(&["Alive", "0:LIVING", "0:DiseaseFree"]), [Some(EventCell::Censored); 3]);
        assert_eq!(of(&["Unknown", "not reported"]), [Some(EventCell::Open); 2]);
        assert_eq!(of(&["1", "0", "maybe", "12:x"]), [None; 4]);
    }

    #[test]
    fn two_words_for_one_event() {
        for (a, b) in
            [("Dead", "Deceased"), ("1:DECEASED", "died"), ("yes", "Dead"), ("Relapse", "Recurred")]
        {
            assert!(same_event(a, b), "{a}, {b}");
        }
        for (a, b) in
            [("Relapse", "Dead"), ("Dead", "Alive"), ("Dead", "moved"), ("1", "Dead"), ("yes", "0")]
        {
            assert!(!same_event(a, b), "{a}, {b}");
        }
    }
}
