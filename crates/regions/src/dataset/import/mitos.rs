//! The folder of the MITOS-ATYPIA-14 contest (ICPR 2014): frames of a Hamamatsu NanoZoomer with every
//! figure labelled, and look-alikes that pathologists reviewed one by one.

use super::{Imported, Options, Wanted, probe_all, some};
use crate::dataset::{Area, Builder, GivenMpp, Image, Label, MppSource, RegionsError, Result};
use base::table::{Format, Table};
use mitosis::Mpp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Resolution of the frames, um/px.
const NANOZOOMER_MPP: f64 = 0.2273;
/// Name of the collection.
const SOURCE: &str = "mitos14";
/// A look-alike from this published score upwards may be a figure: its place teaches nothing.
const DOUBTFUL: f64 = 0.2;
/// Side of the area that is ignored around a doubtful look-alike, um.
const DOUBTFUL_SIDE_UM: f64 = 12.5;

/// A row of `labels.csv`.
#[derive(Deserialize)]
struct Row {
    file: String,
    x: f64,
    y: f64,
    label: String,
    slide: String,
    score: f64,
}

/// Frames by file: the slide and the rows of each.
type Rows = BTreeMap<String, (String, Vec<Row>)>;

/// Reads the folder: `labels.csv` (columns `file,x,y,label,slide,score`; x and y in pixels of the
/// frame) and the frames that it names. One slide is one patient.
///
/// Every frame is labelled exhaustively. `mitosis` is a figure whatever its score; `non_mitosis` is a
/// mimicker, and from a score of 0.2 upwards an area to ignore, because its reviewers disagreed.
///
/// # Errors
/// [`RegionsError`] naming the file that is missing or malformed, the frame with two slides or the
/// label that is unknown.
pub fn mitos(dir: &Path, o: &Options) -> Result<Imported> {
    let mpp = Mpp::new(NANOZOOMER_MPP).map_err(|e| RegionsError::file(dir, e))?;
    let source = MppSource::Publisher("MITOS-ATYPIA-14 contest, Hamamatsu".into());
    let given = GivenMpp { mpp, source };
    let wanted = read(&dir.join("labels.csv"))?.into_iter().map(|(file, what)| Wanted {
        file: dir.join(PathBuf::from(&file)),
        given: Some(given.clone()),
        what: (file, what),
    });
    let mut left_out = vec![];
    let mut dataset = o.builder();
    for (probe, (file, (slide, rows))) in probe_all(wanted.collect(), o.lenient, &mut left_out)? {
        let stem = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        let mut image = probe.image(stem, &slide, SOURCE);
        image.patient = Some(slide);
        image.scanner = Some("Hamamatsu".into());
        image.exhaustive = o.is_exhaustive(true);
        for row in rows {
            if row.label == "mitosis" {
                image.labels.push(Label::at(o.figure(), row.x, row.y));
            } else if row.score < DOUBTFUL {
                image.labels.push(Label::at(Builder::MIMICKER, row.x, row.y));
            } else {
                let side = DOUBTFUL_SIDE_UM / mpp.get();
                image.ignore.push(Area::around(row.x, row.y, side));
            }
        }
        dataset.push(Image { part: o.part, ..image });
    }
    some(dataset.images(), dir)?;
    dataset.note("format", "mitos");
    Ok(Imported { dataset, left_out, unread_columns: None })
}

fn read(path: &Path) -> Result<Rows> {
    let all = Table::read(path, &Format::default()).and_then(|table| table.rows::<Row>());
    let mut rows = Rows::new();
    for row in all.map_err(|e| RegionsError::file(path, e))? {
        let bad = |reason: String| Err(RegionsError::file(path, reason));
        if !matches!(row.label.as_str(), "mitosis" | "non_mitosis") {
            return bad(format!(
                "unknown label `{}` of {}; known are mitosis and non_mitosis",
                row.label, row.file
            ));
        }
        if !(0.0..=1.0).contains(&row.score) {
            return bad(format!("score {} of {} is outside 0 to 1", row.score, row.file));
        }
        let frame = rows.entry(row.file.clone()).or_insert_with(|| (row.slide.clone(), vec![]));
        if frame.0 != row.slide {
            return bad(format!(
                "{} belongs to the slides {} and {}",
                row.file, frame.0, row.slide
            ));
        }
        frame.1.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::close::close_labels;
    use super::*;
    use crate::dataset::Kind;

    fn folder(table: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("frames")).unwrap();
        for name in ["H05_00Ab", "H10_01"] {
            let image = image::RgbImage::from_pixel(300, 260, image::Rgb([200, 150, 190]));
            image.save(dir.path().join(format!("frames/{name}.jpg"))).unwrap();
        }
        std::fs::write(dir.path().join("labels.csv"), table).unwrap();
        dir
    }

    fn import(table: &str) -> Result<Imported> {
        let dir = folder(table);
        mitos(dir.path(), &Options { name: "m".into(), ..Options::default() })
    }

    const HEAD: &str = "file,x,y,label,slide,score\n";

    #[test]
    fn doubtful_look_alikes_are_ignored_and_patients_are_groups() {
        let table = format!(
            "{HEAD}frames/H05_00Ab.jpg,100.0,120.5,mitosis,H05,0.65\n\
             frames/H05_00Ab.jpg,200.0,60.0,non_mitosis,H05,0.0\n\
             frames/H05_00Ab.jpg,30.0,40.0,non_mitosis,H05,0.2\n\
             frames/H10_01.jpg,10.0,10.0,non_mitosis,H10,0.0\n"
        );
        let found = import(&table).unwrap();
        let images = found.dataset.images();
        assert_eq!(images.len(), 2);
        let first = &images[0];
        assert_eq!((first.name.as_str(), first.slide.as_str()), ("H05_00Ab", "H05"));
        assert_eq!(first.patient.as_deref(), Some("H05"));
        assert!(first.exhaustive && (first.mpp.x.get() - 0.2273).abs() < 1e-12);
        let classes: Vec<&str> = first.labels.iter().map(|l| l.class.as_str()).collect();
        assert_eq!(classes, ["mitotic_figure", "mimicker"]);
        assert_eq!(first.ignore.len(), 1);
        assert!(first.ignore[0].contains(30.0, 40.0) && !first.ignore[0].contains(60.0, 40.0));
    }

    #[test]
    fn figures_of_one_place_are_named_by_it() {
        let rows = ["100.0,120.5,mitosis,H05,0.65", "101.0,120.5,mitosis,H05,0.65"];
        let rows = rows.map(|row| format!("frames/H05_00Ab.jpg,{row}\n")).concat();
        let found = import(&format!("{HEAD}{rows}frames/H10_01.jpg,9,9,non_mitosis,H10,0.0\n"));
        let close = close_labels(found.unwrap().dataset.images(), "mitotic_figure");
        let close = close.unwrap();
        assert_eq!((close.pairs, close.assumed_mpp), (1, None));
        assert_eq!(close.first[0].records, ["(100, 120.5) px", "(101, 120.5) px"]);
    }

    #[test]
    fn what_the_table_contradicts_is_refused() {
        let two = format!(
            "{HEAD}frames/H05_00Ab.jpg,1,1,mitosis,H05,1.0\nframes/H05_00Ab.jpg,2,2,mitosis,H10,1.0\n"
        );
        assert!(import(&two).unwrap_err().to_string().contains("slides H05 and H10"));
        let word = format!("{HEAD}frames/H05_00Ab.jpg,1,1,mitotic,H05,1.0\n");
        assert!(import(&word).unwrap_err().to_string().contains("unknown label `mitotic`"));
        let score = format!("{HEAD}frames/H05_00Ab.jpg,1,1,mitosis,H05,7\n");
        assert!(import(&score).unwrap_err().to_string().contains("outside 0 to 1"));
        let missing = format!("{HEAD}frames/none.jpg,1,1,mitosis,H05,1.0\n");
        assert!(import(&missing).is_err());
    }

    #[test]
    fn the_real_folder_has_the_published_counts() {
        let Some(dir) = testkit::data("mitos14") else { return };
        let found = mitos(&dir, &Options { name: "m".into(), ..Options::default() }).unwrap();
        assert_eq!(close_labels(found.dataset.images(), "mitotic_figure"), None);
        let out = tempfile::tempdir().unwrap();
        let set = found.dataset.write(out.path()).unwrap();
        let c = set.counts();
        assert_eq!((c.images, c.exhaustive, c.slides, c.ignore), (91, 91, 6, 18));
        assert_eq!((c.classes["mitotic_figure"], c.classes["mimicker"]), (147, 328));
        assert!(set.images().iter().all(|i| i.labels.iter().all(|l| l.kind != Kind::Other)));
    }
}
