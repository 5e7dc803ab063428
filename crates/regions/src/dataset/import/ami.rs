//! AMi-Br: patches of 128 x 128 px with a mitotic figure in the middle. MIDOG21 trains, TUPAC16 is
//! the test part, whatever the options.

use super::{Imported, Options, Wanted, probe_all, some};
use crate::dataset::{Area, GivenMpp, Label, MppSource, Part, RegionsError, Result};
use base::table::{Format, Table, TableError};
use mitosis::Mpp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Side of the box of a figure in MIDOG's and TUPAC's labels, px.
const BOX: f64 = 50.0;
/// Side of a patch, px.
const PATCH: f64 = 128.0;

#[derive(Deserialize)]
struct Row {
    slide: String,
    dataset: String,
    uid: u64,
    x: f64,
    y: f64,
    majority_atypical: String,
    /// Words of single experts, by the names of their columns.
    #[serde(skip)]
    votes: BTreeMap<String, String>,
}

/// Who says which kind of figure it is, and the column of it.
const EXPERTS: [(&str, &str); 2] = [("expert1", "expert1_label"), ("expert2", "expert2_label")];

impl Row {
    fn atypical(&self) -> bool {
        self.majority_atypical == "True"
    }

    fn file(&self) -> String {
        let folder = if self.atypical() { "Atypical" } else { "Normal" };
        format!("{folder}/{}_{}.png", self.dataset, self.uid)
    }

    /// MIDOG21 by scanner: cases 1-50, 51-100, 101-150.
    fn scanner(&self) -> Option<&'static str> {
        let digits: String = self.slide.chars().take_while(char::is_ascii_digit).collect();
        match (self.dataset.as_str(), digits.parse().unwrap_or(0_u32)) {
            ("MIDOG21", 1..=50) => Some("Hamamatsu XR"),
            ("MIDOG21", 51..=100) => Some("Hamamatsu S360"),
            ("MIDOG21", 101..=150) => Some("Aperio CS2"),
            _ => None,
        }
    }

    fn label(&self, class: &str, x: f64, y: f64) -> Label {
        Label {
            bbox: Some(Area::around(x, y, BOX)),
            subtype: Some(if self.atypical() { "atypical" } else { "typical" }.into()),
            votes: self.votes.clone(),
            ..Label::at(class, x, y)
        }
    }
}

/// Reads the folder (or its `labels.csv`). Every figure of the same slide inside a patch is also
/// labelled there, but other objects are not: the patches count as exhaustively labelled only if the
/// options state it. The default resolution is the publisher's 0.25 um/px; a table may
/// name scanners.
///
/// # Errors
/// [`RegionsError`] naming the file that is missing or malformed, or the row of an unknown part.
pub fn ami_br(path: &Path, o: &Options) -> Result<Imported> {
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let table = dir.join("labels.csv");
    let fail = |e: TableError| RegionsError::file(&table, e);
    let read = Table::read(&table, &Format::default()).map_err(fail)?;
    let mut rows: Vec<Row> = read.rows().map_err(fail)?;
    for (who, column) in EXPERTS {
        let column = read.find(&[column]);
        for (i, row) in rows.iter_mut().enumerate() {
            let word = column.map(|column| read.cell(i, column)).filter(|word| !word.is_empty());
            row.votes.extend(word.map(|word| (who.to_owned(), word.to_owned())));
        }
    }
    let mut slides: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        slides.entry((&row.dataset, &row.slide)).or_default().push(i);
    }
    let source = MppSource::Publisher("AMi-Br patches".into());
    let published = GivenMpp { mpp: Mpp::PAPER, source };
    let wanted = rows.iter().map(|row| {
        let mut names = vec![row.slide.as_str(), &row.dataset];
        names.extend(row.scanner());
        let given = o.given.lookup(&names).unwrap_or_else(|| published.clone());
        Wanted { file: dir.join(row.file()), given: Some(given), what: row }
    });
    let mut dataset = o.builder();
    let mut left_out = vec![];
    for (probe, row) in probe_all(wanted.collect(), o.lenient, &mut left_out)? {
        let part = match row.dataset.as_str() {
            "MIDOG21" => o.part,
            "TUPAC16" => Part::Test,
            other => {
                return Err(RegionsError::file(&table, format!("unknown data set `{other}`")));
            }
        };
        let size = probe.size;
        if size != (PATCH as u32, PATCH as u32) {
            let reason = format!("{} x {} px, expected 128 x 128", size.0, size.1);
            return Err(RegionsError::file(&probe.file, reason));
        }
        let slide = format!("{}/{}", row.dataset, row.slide);
        let mut image = probe.image(row.file(), slide, "ami_br");
        image.source = format!("ami_br {}", row.dataset);
        image.scanner = row.scanner().map(str::to_owned);
        image.exhaustive = o.is_exhaustive(false);
        image.part = part;
        let others = slides[&(row.dataset.as_str(), row.slide.as_str())].iter().map(|&i| &rows[i]);
        for other in others {
            let (x, y) = (other.x - row.x + PATCH / 2.0, other.y - row.y + PATCH / 2.0);
            if (0.0..PATCH).contains(&x) && (0.0..PATCH).contains(&y) {
                image.labels.push(other.label(o.figure(), x, y));
            }
        }
        dataset.push(image);
    }
    some(dataset.images(), dir)?;
    dataset.note("format", "ami-br");
    Ok(Imported { dataset, left_out, unread_columns: read.misspelt() })
}
