//! An error in words.

use std::error::Error;
use std::iter::successors;

/// An error and its causes, without those that it already ends with: many of our errors say why.
#[must_use]
pub fn said_once(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in successors(Some(error), |e| e.source()).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportError;

    #[test]
    fn a_reason_is_said_once() {
        let disk = || std::io::Error::other("no such file");
        let twice = artifact::file::ReadError { path: "a.csv".into(), source: disk() };
        assert_eq!(said_once(&twice), "a.csv: cannot be read: no such file");
        #[derive(Debug, thiserror::Error)]
        #[error("no tables")]
        struct Outer(#[source] ReportError);
        let outer = Outer(ReportError::Nothing { outs: vec!["out".into()] });
        assert_eq!(said_once(&outer), "no tables: out: no slide with results here");
    }
}
