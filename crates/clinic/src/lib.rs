//! What a pathologist takes away: one page of A4 per case, as PDF and as HTML that prints alike.
//!
//! | module | what |
//! |---|---|
//! | [`case`] | what a run and its reviews say of each case |
//! | [`page`] | the page as blocks: headings, rows, pictures |
//! | [`picture`] | slide, hotspot and figures as pictures |
//! | [`pdf`] | the blocks as PDF, fonts inside |
//! | [`html`] | the blocks as HTML |

#![forbid(unsafe_code)]

pub mod case;
pub mod html;
pub mod page;
pub mod pdf;
pub mod picture;

use case::{Case, CaseError};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why there are no pages.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A page cannot be made.
    #[error("case {case}: {reason}")]
    Page {
        /// The case.
        case: String,
        /// The reason.
        reason: String,
    },
    /// A page cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
    /// The folder.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct Written {
    /// The folder.
    pub folder: PathBuf,
    /// The cases, each with the name of its files without suffix.
    pub cases: Vec<(String, String)>,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, file) in &self.cases {
            writeln!(f, "{}: {file}.pdf, {file}.html", base::text::plain(case))?;
        }
        writeln!(
            f,
            "{} in {}",
            base::text::Many(self.cases.len(), "case"),
            self.folder.display()
        )
    }
}

/// Writes `CASE.pdf` and `CASE.html` into a folder for every case of a run; a slide without a case is one of its own. `slides` is where
/// the slides' files lie now, for pictures of the hotspot; `grading` adds a mitotic score.
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
    let mut written = Written { folder: out.to_owned(), cases: Vec::new() };
    for case in &cases {
        let page = page::page(case, grading);
        let name = mithras::input::stem(Path::new(&format!("{}.x", case.name)));
        let fail = |reason: String| ReportError::Page { case: case.name.clone(), reason };
        let pdf = pdf::bytes(&page).map_err(fail)?;
        base::file::write(&out.join(format!("{name}.pdf")), &pdf)?;
        base::file::write(&out.join(format!("{name}.html")), html::text(&page).as_bytes())?;
        written.cases.push((case.name.clone(), name));
    }
    Ok(written)
}
