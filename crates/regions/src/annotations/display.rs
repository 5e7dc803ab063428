//! What an import found, as text.

use super::{Annotations, Class, Summary};
use base::table::Writer;
use crops::schema::Split;
use std::fmt;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})", self.file, self.format)?;
        writeln!(f, "{:>9} images, {} of them labelled", self.images, self.labelled_images)?;
        writeln!(f, "{:>9} mitotic figures", self.figures)?;
        if let (Some(t), Some(a)) = (self.typical, self.atypical) {
            writeln!(f, "{t:>9}   typical")?;
            writeln!(f, "{a:>9}   atypical")?;
        }
        writeln!(f, "{:>9} mimickers", self.mimickers)?;
        for (n, what) in [
            (self.other, "other cells"),
            (self.unresolved, "without an agreed label"),
            (self.clipped, "boxes over an image's edge (kept)"),
            (self.duplicates, "repeated annotations (kept)"),
            (self.contradictions.len(), "places with two labels (kept)"),
            (self.skipped, "records left out"),
        ] {
            if n > 0 {
                writeln!(f, "{n:>9} {what}")?;
            }
        }
        for (name, n) in &self.ignored {
            writeln!(f, "{n:>9} `{name}` ignored")?;
        }
        for (why, n) in &self.not_selected {
            writeln!(f, "{n:>9} images not taken: {why}")?;
        }
        for c in self.contradictions.iter().take(10) {
            writeln!(f, "          {c}")?;
        }
        self.close_labels.iter().try_for_each(|close| write!(f, "{close}"))?;
        self.unread_columns.iter().try_for_each(|unread| writeln!(f, "note: {unread}"))?;
        self.skipped_records.iter().try_for_each(|p| writeln!(f, "          left out: {p}"))
    }
}

impl Annotations {
    /// A CSV table of one line per annotation, with every single label next to the agreed one.
    #[must_use]
    pub fn table(&self) -> Vec<u8> {
        let slides = self.images.iter().any(|i| i.slide.is_some());
        let mut header = vec![
            "image", "record", "x", "y", "xmin", "ymin", "xmax", "ymax", "label", "category",
            "subtype", "cohort", "patient", "split", "clipped", "votes",
        ];
        // Not `slide`: a table of slides to search would be read by it instead of by `image`.
        header.extend(slides.then_some("slide_name"));
        let mut table = Writer::new(header);
        for r in &self.annotations {
            let image = &self.images[r.image];
            let side = |i: usize| r.bbox.map(|b| b[i].to_string()).unwrap_or_default();
            let label = match r.class {
                Class::MitoticFigure => "mf",
                Class::Mimicker => "mimicker",
                Class::Other => "other",
                Class::Unresolved => "",
                Class::Ignored => "ignore",
            };
            let votes = if r.votes.is_empty() {
                String::new()
            } else {
                serde_json::to_string(&r.votes).expect("names and words")
            };
            let slide = slides.then(|| image.slide_name());
            table.push(
                [
                    image.name.as_str(),
                    &r.record,
                    &r.centre.x.to_string(),
                    &r.centre.y.to_string(),
                    &side(0),
                    &side(1),
                    &side(2),
                    &side(3),
                    label,
                    &r.category,
                    r.subtype.as_deref().unwrap_or_default(),
                    image.cohort.as_deref().unwrap_or_default(),
                    image.patient.as_deref().unwrap_or_default(),
                    r.split.map(Split::name).unwrap_or_default(),
                    if r.clipped { "true" } else { "false" },
                    &votes,
                ]
                .into_iter()
                .chain(slide),
            );
        }
        table.into_bytes()
    }
}
