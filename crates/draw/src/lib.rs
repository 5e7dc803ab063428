//! Drawn slides: H&E-like, seeded, with every mitotic figure known.
//!
//! A drawn slide shows that the whole job runs, and is the generator for tests of scale and
//! invariance. A score on it means nothing for real tissue.
//!
//! ```
//! use draw::{Layout, Rect, Spec, draw};
//! let layout = Layout::new(Spec::new(1024, 1024, 7, 3)?)?;
//! assert_eq!(layout.truth().len(), 3 + 4);
//! let whole = draw(&layout, Rect::new(0, 0, 96, 64));
//! let part = draw(&layout, Rect::new(32, 32, 64, 32));
//! assert_eq!(part.pixel(0, 0), whole.pixel(32, 32));
//! # Ok::<(), draw::SpecError>(())
//! ```

#![forbid(unsafe_code)]

mod layout;
mod noise;
mod paint;
mod pyramid;
mod shape;
mod truth;

use base::file::WriteError;
use base::table::Writer;
use std::path::Path;

pub use layout::{Layout, Spec, SpecError};
pub use mitosis::Rect;
pub use paint::draw;
pub use pyramid::{Container, PyramidError, write};
pub use truth::{Kind, Phase, TruthPoint};

/// Writes the true places of a drawn slide as CSV: slide, x_px, y_px, kind, phase.
///
/// # Errors
/// When the file cannot be written.
pub fn write_truth(layout: &Layout, slide: &str, path: &Path) -> Result<(), WriteError> {
    let mut table = Writer::new(["slide", "x_px", "y_px", "kind", "phase"]);
    for p in layout.truth() {
        let kind = match p.kind {
            Kind::Mitotic => "mitotic",
            Kind::Mimicker => "mimicker",
        };
        let (x, y) = (p.x_px.to_string(), p.y_px.to_string());
        table.push([slide.into(), x, y, kind.into(), p.phase.to_string()]);
    }
    table.write(path)
}
