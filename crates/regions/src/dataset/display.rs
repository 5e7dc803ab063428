//! Counts of a dataset, as text.

use super::Dataset;
use base::text::Many;
use std::fmt;

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (c, test) = (self.counts(), self.test().images().len());
        writeln!(
            f,
            "{}: {}, {test} of them in the test part",
            self.name(),
            Many(c.images, "image")
        )?;
        writeln!(f, "{:>9} exhaustively labelled", c.exhaustive)?;
        writeln!(f, "{:>9} slides", c.slides)?;
        if c.patients > 0 {
            writeln!(f, "{:>9} patients", c.patients)?;
        }
        for (class, n) in &c.classes {
            let role = if class == self.positive() { " (the positive class)" } else { "" };
            writeln!(f, "{n:>9} {class}{role}")?;
        }
        if c.ignore > 0 {
            writeln!(f, "{:>9} areas to be ignored", c.ignore)?;
        }
        writeln!(f, "digest {}", self.digest())
    }
}
