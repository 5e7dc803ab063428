//! Words that programs write for "no value" and for events: one list of each.

/// Cells that mean "missing". Compared as written; the comments name who writes them.
pub const MISSING: &[&str] = &[
    "",
    // R, pandas, NumPy, SQL, Julia.
    "NA",
    "N/A",
    "n/a",
    "<NA>",
    "NaN",
    "nan",
    "-nan",
    "NULL",
    "null",
    "None",
    "missing",
    // SAS, Stata, SPSS.
    ".",
    // GDC (clinical.tsv of the Genomic Data Commons).
    "'--",
    "--",
    "Not Reported",
    "not reported",
    "Not Allowed To Collect",
    "not allowed to collect",
    // cBioPortal and the TCGA biotabs.
    "[Not Available]",
    "[Not Applicable]",
    "[Not Evaluated]",
    "[Unknown]",
    "[Discrepancy]",
    "[Pending]",
    // REDCap's missing data codes: unknown, not asked, asked but unknown, not available. Its shorter
    // ones (NI, OTH, MSK) are words of other columns, too; name them where they occur.
    "UNK",
    "NASK",
    "ASKU",
    "NAV",
    // Excel, LibreOffice.
    "#N/A",
    "#N/A N/A",
    "#NA",
    "#VALUE!",
    "#REF!",
    "#DIV/0!",
    "#NUM!",
    "#NAME?",
    "#NULL!",
];

/// Whether a cell means "missing": see [`MISSING`].
#[must_use]
pub fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell)
}

/// Words for "the event happened", in lower case: vital status of GDC and cBioPortal, REDCap, R.
const EVENT: &[&str] = &[
    "true",
    "yes",
    "event",
    "dead",
    "deceased",
    "died",
    "death",
    "relapse",
    "relapsed",
    "recurred",
    "recurrence",
    "progressed",
    "progression",
    "recurred/progressed",
];

/// Words for "no event until then", in lower case.
const CENSORED: &[&str] = &[
    "false",
    "no",
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
    let lists =
        [(EVENT, EventCell::Happened), (CENSORED, EventCell::Censored), (OPEN, EventCell::Open)];
    lists.into_iter().find(|(list, _)| list.contains(&word.as_str())).map(|(_, e)| e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_programs_that_write_tables() {
        for word in ["", "'--", "[Not Available]", "UNK", "#N/A", "NaN", "Not Reported"] {
            assert!(is_missing(word), "{word}");
        }
        for word in ["0", "Stage I", "-", "no", "Unknown primary"] {
            assert!(!is_missing(word), "{word}");
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
}
