//! What a pathologist takes away: one page of A4 per case, as PDF and as HTML that prints alike.
//!
//! | module | what |
//! |---|---|
//! | [`case`] | a run's results and reviews by case |
//! | [`page`] | the page as blocks: headings, rows, pictures |
//! | [`picture`] | slide, hotspot and figures as pictures |
//! | [`pdf`] | the blocks as PDF, fonts inside |
//! | [`html`] | the blocks as HTML |
//! | `earlier` | pages of an earlier report of the same run |
//! | [`quality`] | what is wrong with the slides of a cohort, before anything is counted |

#![forbid(unsafe_code)]

pub mod case;
mod earlier;
pub mod html;
pub mod page;
pub mod pdf;
pub mod picture;
pub mod quality;

use base::file::Access;
use base::remedy::{Remedied, Remedy};
use case::{Case, CaseError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why no page can be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum ReportError {
    /// The run.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A page cannot be made.
    #[error("case {case}: {reason}")]
    Page {
        case: String,
        /// Why the PDF cannot be made.
        reason: pdf::PdfError,
    },
    /// A page cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
    /// The list of pages that are there already.
    #[error(transparent)]
    Earlier(#[from] base::json::JsonError),
    /// The folder cannot be made or read.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Folder for the pages.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// The pages of a run that were written, left and removed.
#[derive(Debug, Serialize)]
pub struct Written {
    /// Folder with the pages.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: PathBuf,
    /// The cases, each with the name of its files without suffix.
    pub cases: Vec<(String, String)>,
    /// Slides that are in no page, each with the reason.
    pub missing: Vec<(String, String)>,
    /// Files of an earlier report of the same run that were taken away: their cases are gone, or have another name now.
    pub removed: Vec<String>,
    /// Files of an earlier report that are left, each with the reason.
    pub left: Vec<String>,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, file) in &self.cases {
            writeln!(f, "{}: {file}.pdf, {file}.html", base::text::plain(case))?;
        }
        for (slide, why) in &self.missing {
            writeln!(f, "{} is not counted: {}", base::text::plain(slide), base::text::plain(why))?;
        }
        for file in &self.removed {
            writeln!(f, "removed, as its case is gone: {}", base::text::plain(file))?;
        }
        for file in &self.left {
            writeln!(f, "note: of a case that is gone: {}", base::text::plain(file))?;
        }
        writeln!(f, "{} in {}", base::text::Many(self.cases.len(), "case"), self.folder.display())
    }
}

/// A case's name as one of files, without suffix, that no earlier case has, however the disc compares names.
fn file_name(case: &str, earlier: &[(String, String)]) -> String {
    let safe = case.replace(['/', '\\'], "_");
    let name = mithras::input::stem(Path::new(&format!("{safe}.x")));
    let free = |n: &String| earlier.iter().all(|(_, e)| e.to_lowercase() != n.to_lowercase());
    let numbered = (2..).map(|k| format!("{name}-{k}"));
    std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or(name)
}

/// Writes `CASE.pdf` and `CASE.html` into a folder for every case of a run; a slide without a case is one of its own.
/// `slides` is the folder of the slides' files, if they have moved, for pictures of the hotspot; `grading` adds a
/// mitotic score. Pages that an earlier report of the run wrote for cases that it has no longer are taken away.
///
/// # Errors
/// [`ReportError`].
pub fn report(
    run: &Path,
    out: &Path,
    slides: Option<&Path>,
    grading: Option<&review::view::Grading>,
) -> Result<Written, ReportError> {
    let cases = Case::all(run, slides)?;
    std::fs::create_dir_all(out)
        .map_err(|source| ReportError::Folder { path: out.to_owned(), source })?;
    let earlier = earlier::Pages::read(out)?;
    let (mut written, mut pages) = (Vec::new(), BTreeMap::new());
    for case in &cases {
        let page = page::page(case, grading);
        let name = file_name(&case.name, &written);
        let fail = |reason: pdf::PdfError| ReportError::Page { case: case.name.clone(), reason };
        let fit = pdf::fit(&page).map_err(fail)?;
        let pdf = pdf::bytes(&page).map_err(fail)?;
        let html = html::text(&page, fit).into_bytes();
        let by_hand =
            |s: &case::Slide| s.reviewed.is_some() || s.placed.is_some() || s.signed.is_some();
        // What a reviewer decided is for the owner alone.
        let access = if case.slides.iter().any(by_hand) { Access::Private } else { Access::Umask };
        for (file, bytes) in [(format!("{name}.pdf"), pdf), (format!("{name}.html"), html)] {
            base::file::write_with(&out.join(&file), &bytes, access)?;
            pages.insert(file, bytes);
        }
        written.push((case.name.clone(), name));
    }
    let earlier::Removed { removed, left } = earlier.replace(out, run, &pages)?;
    let missing = cases.into_iter().flat_map(|c| c.missing).collect();
    Ok(Written { folder: out.to_owned(), cases: written, missing, removed, left })
}

impl Remedied for ReportError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Case(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn no_two_cases_share_a_file() {
        let mut made: Vec<(String, String)> = Vec::new();
        for case in ["B/2", "B_2", "b_2", "../x", "M\u{fc}ller & S\u{f6}n"] {
            let name = file_name(case, &made);
            made.push((case.to_owned(), name));
        }
        let names: Vec<&str> = made.iter().map(|(_, n)| n.as_str()).collect();
        assert_eq!(names[..3], ["B_2", "B_2-2", "b_2-3"]);
        assert!(!names[3].contains('/'), "{names:?}");
        assert_eq!(names[4], "M\u{fc}ller & S\u{f6}n");
    }
}
