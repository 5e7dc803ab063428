//! Ground truth of detections: a table of figures, as annotators and importers write it.

use super::EvaluateError;
use super::label::{Labels, Meaning};
use super::position::{Columns, Place};
use base::table::{Format, Table, Unmatched, Unread};
use mithras::input::stem;
use mithras::record::SlideEntry;
use mitosis::{Physical, Point, Resolution};
use regions::annotations::columns::OWN;
use regions::rows::Rows;
use regions::units::{Conflict, Units};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::Path;

/// Ground truth of one slide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TruthCase {
    /// What is compared as soon as the slide's resolution is known.
    units: Units,
    pub(super) points: Vec<Place>,
    /// Places where the truth is unknown.
    pub(super) ignored: Vec<Place>,
    pub(super) tumour: Option<String>,
}

impl TruthCase {
    /// Checks that rows with px and um name one place, and that the um/px of a column are those of the slide.
    ///
    /// # Errors
    /// The first row that does not, as a [`Conflict`].
    pub fn check_units(&self, resolution: &Resolution) -> Result<(), Conflict> {
        self.units.check([resolution.x.get(), resolution.y.get()])
    }

    /// Its figures in micrometres.
    #[must_use]
    pub fn points(&self, resolution: &Resolution) -> Vec<Point<Physical>> {
        self.points.iter().map(|p| p.physical(resolution)).collect()
    }

    /// The first place, level-0 px, that a slide does not have. One pixel over the edge still counts
    /// as on it: places are rounded.
    pub(super) fn outside(&self, slide: &SlideEntry, resolution: &Resolution) -> Option<[f64; 2]> {
        let (w, h) = (slide.width as f64 + 1.0, slide.height as f64 + 1.0);
        let at = |place: &Place| match *place {
            Place::Level0(x, y) => [x, y],
            Place::Physical(x, y) => [x / resolution.x.get(), y / resolution.y.get()],
        };
        let inside = |p: &[f64; 2]| (-1.0..=w).contains(&p[0]) && (-1.0..=h).contains(&p[1]);
        self.points.iter().chain(&self.ignored).map(at).find(|p| !inside(p))
    }

    /// Places to ignore, in micrometres: what is found there is neither right nor wrong.
    #[must_use]
    pub fn ignored(&self, resolution: &Resolution) -> Vec<Point<Physical>> {
        self.ignored.iter().map(|p| p.physical(resolution)).collect()
    }
}

/// Ground truth by slide name.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    cases: BTreeMap<String, TruthCase>,
    /// Columns of the table that are not read.
    pub unread_columns: Option<Unread>,
}

impl Deref for Truth {
    type Target = BTreeMap<String, TruthCase>;

    fn deref(&self) -> &Self::Target {
        &self.cases
    }
}

/// How a truth is read.
#[derive(Clone, Debug, Default)]
pub struct TruthOptions {
    /// The column with the label of a row; if absent `label`, then `kind`, then the only one with a usual name
    /// for labels whose words are all known, then the only one with words for figures and for mimickers.
    pub column: Option<String>,
    /// Words of that column that mean a mitotic figure, in addition to the usual ones.
    pub figures: Vec<String>,
    /// Slides to keep, by name; all if empty.
    pub only: Vec<String>,
}

const FRACTIONS: &str = "every figure has a position between 0 and 1: parts of the image, not pixels; multiply them by \
                         the image's width and height";
const TWO_LABELS: &str =
    "a row above has this place with another label, as a figure or as none; remove one of the two";

/// Reads ground truth: a table with a column that names the slide (`slide`, `file`, `filename`,
/// `case` or `image`; matched by file name without suffix) and a position: `x_um`, `y_um`, or
/// level-0 pixels as `x_px`/`x`/`cx` and `y_px`/`y`/`cy`; a row may have both, which
/// [`TruthCase::check_units`] compares. A position is a centre: one that may be the corner of a box, by other columns,
/// is refused. If a column has labels, only mitotic figures count and an unknown label is refused, as is a column
/// that may have labels (`class`, `category`, ...) and is not stated. Detections near a row labelled `ignore` are
/// neither right nor wrong. A row without a label is undecided and left out. Optional: `tumour` (or `tumor`,
/// `tumour_type`, `tumor_type`). A row with empty positions means that the slide was annotated.
///
/// # Errors
/// [`EvaluateError`] for a missing column, a position that is not a number, an unknown word, or a slide
/// to keep that the truth does not name.
pub fn read_truth(path: &Path, options: &TruthOptions) -> Result<Truth, EvaluateError> {
    let fail = |reason: String| EvaluateError::Truth { path: path.to_owned(), reason };
    let table = Table::read(path, &Format::default())?;
    let slide = table.need(&["slide", "file", "filename", "case", "image"])?;
    let columns = Columns::find(&table)?;
    let labels = Labels::find(&table, options.column.as_deref(), &options.figures)?;
    let mut rows = Rows::find(&table);
    let tumour = table.find(&["tumour", "tumor", "tumour_type", "tumor_type"]);
    let mut truth = BTreeMap::new();
    let mut spelled: BTreeMap<String, usize> = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for row in 0..table.len() {
        let cell = table.cell(row, slide);
        if cell.is_empty() {
            return Err(table.wrong(row, slide, "names no slide").into());
        }
        let name = stem(Path::new(cell));
        let first = *spelled.entry(name.clone()).or_insert(row);
        if !is_one_slide(table.cell(first, slide), cell) {
            let reason = format!(
                "'{cell}' and '{}' (row {}) are two files, and both would be the slide `{name}`; rename one, or \
                 evaluate them separately",
                table.cell(first, slide),
                first + 1
            );
            return Err(table.wrong(row, slide, reason).into());
        }
        let case: &mut TruthCase = truth.entry(name.clone()).or_default();
        if let Some(column) = tumour
            && let Some(t) = table.filled(row, tumour)
        {
            if case.tumour.as_deref().is_some_and(|known| known != t) {
                return Err(table.wrong(row, column, "a slide with two tumour types").into());
            }
            case.tumour = Some(t.to_owned());
        }
        columns.mpp(&table, row)?.into_iter().for_each(|stated| case.units.push_mpp(stated));
        if columns.filled(&table, row).next().is_none() {
            continue;
        }
        if let Some(mark) = rows.left_out(&table, row) {
            let reason = format!("the row is marked as `{mark}`, and would count");
            return Err(table.wrong(row, columns.first(), reason).into());
        }
        let meaning = labels.meaning(&table, row)?;
        let others = others.entry(name.clone()).or_default();
        if meaning == Meaning::Other {
            // A mimicker is not counted, and no other row may call it a figure.
            if let Ok((place, _)) = columns.read(&table, row) {
                if case.points.contains(&place) {
                    return Err(table.wrong(row, columns.first(), TWO_LABELS).into());
                }
                others.push(place);
            }
            continue;
        }
        let (place, both) = columns.read(&table, row)?;
        if let Some(why) = place.same_object(&mut rows, &table, row, &name) {
            return Err(table.wrong(row, columns.first(), why).into());
        }
        both.into_iter().for_each(|both| case.units.push(both));
        if meaning == Meaning::Figure && others.contains(&place) {
            return Err(table.wrong(row, columns.first(), TWO_LABELS).into());
        }
        if case.points.contains(&place) || case.ignored.contains(&place) {
            let reason = "the slide has this place already in a row above; remove one of the two";
            return Err(table.wrong(row, columns.first(), reason).into());
        }
        match meaning {
            Meaning::Ignored => case.ignored.push(place),
            _ => case.points.push(place),
        }
    }
    if !options.only.is_empty() {
        retain_named(&mut truth, &options.only).map_err(fail)?;
    }
    if are_fractions(&truth) {
        return Err(fail(FRACTIONS.to_owned()));
    }
    table.pass_over(OWN);
    Ok(Truth { cases: truth, unread_columns: table.unread() })
}

/// Whether all positions of at least two figures are between 0 and 1: parts of an image.
fn are_fractions(truth: &BTreeMap<String, TruthCase>) -> bool {
    let part = |place: &Place| match place {
        Place::Level0(x, y) => [x, y].into_iter().all(|v| (0.0..=1.0).contains(v)),
        Place::Physical(..) => false,
    };
    let mut places = truth.values().flat_map(|case| &case.points);
    places.clone().nth(1).is_some() && places.all(part)
}

/// Keeps the slides of these names; the reason, where the truth lacks one.
fn retain_named(truth: &mut BTreeMap<String, TruthCase>, only: &[String]) -> Result<(), String> {
    let wanted: BTreeSet<String> = only.iter().map(|name| stem(Path::new(name))).collect();
    if let Some(name) = wanted.iter().find(|name| !truth.contains_key(*name)) {
        let (kept, own) = (wanted.iter().map(String::as_str), truth.keys().map(String::as_str));
        let join = Unmatched::between(("the slides to keep", "the truth"), kept, own)
            .map_or_else(String::new, |j| format!(" ({j})"));
        return Err(format!("names no slide `{name}`, which was to be kept{join}"));
    }
    truth.retain(|name, _| wanted.contains(name));
    Ok(())
}

/// Whether two cells that give one name may be one file: they have the same parts from the end, as far as both have
/// them, a suffix that one of them lacks aside.
fn is_one_slide(a: &str, b: &str) -> bool {
    let parts = |cell: &str| cell.split(['/', '\\']).map(str::to_owned).rev().collect::<Vec<_>>();
    let (a, b) = (parts(a), parts(b));
    let bare = |name: &str, other: &str| {
        other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
    };
    let last = a[0] == b[0] || bare(&a[0], &b[0]) || bare(&b[0], &a[0]);
    last && a[1..].iter().zip(&b[1..]).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_name_are_not_one_slide() {
        let read = |text: &str| read(text, &TruthOptions::default()).map_err(|e| e.to_string());
        // Nor are they two where one is written in full.
        let one = read("slide,x,y\na.svs,1,2\nA/a.svs,3,4\na,5,6\nB/A/a.svs,7,8\n").unwrap();
        assert_eq!((one.len(), one["a"].points.len()), (1, 4));
        for (first, other) in [("A/a.svs", "B/a.svs"), ("a.svs", "a.tiff"), ("x.1", "x.2")] {
            let refused = read(&format!("slide,x,y\n{first},1,2\n{other},3,4\n")).unwrap_err();
            for words in [first, other, "row 2 (line 3)", "(row 1)"] {
                assert!(refused.contains(words), "{words}: {refused}");
            }
        }
    }

    #[test]
    fn both_coordinates_are_of_one_pair() {
        let read = |text: &str| read(text, &TruthOptions::default());
        let found = read("slide,x,y,x_px\na,375,335,1\n").unwrap();
        assert_eq!(found["a"].points, [Place::Level0(375.0, 335.0)]);
        let found = read("slide,x_px,x_um,y_um\na,1,2,3\n").unwrap();
        assert_eq!(found["a"].points, [Place::Physical(2.0, 3.0)]);
        assert!(read("slide,x_px,y\na,1,2\n").is_err());
    }

    #[test]
    fn a_place_in_px_and_um_is_compared_and_never_chosen() {
        let resolution = Resolution {
            x: mitosis::Mpp::new(0.25).unwrap(),
            y: mitosis::Mpp::new(0.5).unwrap(),
            source: mitosis::ResolutionSource::User,
        };
        let check = |rows: &str| {
            let text = format!("slide,x_px,y_px,x_um,y_um,label\n{rows}");
            let truth = read(&text, &TruthOptions::default()).unwrap();
            (
                truth["a"].check_units(&resolution).map_err(|e| e.to_string()),
                truth["a"].points.clone(),
            )
        };
        // Rounded to whole px, to whole um, and to neither; a row may have one of the two.
        let places = [Place::Level0(1000.0, 400.0), Place::Physical(12.5, 7.0)];
        for um in ["250.2,200.4", "250,200", "250.000,200.000"] {
            let (agree, points) = check(&format!("a,1000,400,{um},mf\na,,,12.5,7,mf\n"));
            assert_eq!((agree, &points[..]), (Ok(()), &places[..]), "{um}");
        }
        // The axes change places, or the um are of another um/px; places to ignore count as well.
        for (row, um) in [("200.00,250.00,mf", "200, 250"), ("500.00,400.00,ignore", "500, 400")] {
            let (conflict, _) = check(&format!("a,10,10,2.5,5,mf\na,1000,400,{row}\n"));
            let text = conflict.unwrap_err();
            for words in ["1000, 400 px", "250.00, 200.00 um", um, "truth.csv", "row 2 (line 3)"] {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
        // Rows that are left out, and several people.
        for (text, words) in [
            (
                "slide,x,y,deleted\na,1,2,0\na,9,9,1\n",
                "row 2 (line 3): the row is marked as `deleted`",
            ),
            (
                "slide,x,y,rater\na,100,2,A\na,90,9,B\n",
                "`B` has labelled the same place as `A` in line 2",
            ),
            (
                "slide,x_um,y_um,rater\na,100,2,A\na,97,3,B\n",
                "`B` has labelled the same place as `A` in line 2",
            ),
        ] {
            let error = read(text, &TruthOptions::default()).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        let unread = |text: &str| {
            let truth = read(text, &TruthOptions::default()).unwrap();
            truth.unread_columns.map(|u| u.to_string()).unwrap_or_default()
        };
        let misspelt = unread("slide,x,y,mpp_um,score\na,100,2,0.25,1\n");
        let named = "2 columns are not read: `mpp_um` (is `mpp` meant?), `score`";
        assert!(misspelt.ends_with(named), "{misspelt}");
        assert_eq!(unread("slide,x_px,y_px,kind,phase\na,100,2,mf,anaphase\n"), "");
        let apart = "slide,x,y,rater\na,100,2,A\na,90,90,B\nb,100,2,B\n";
        assert_eq!(read(apart, &TruthOptions::default()).unwrap()["a"].points.len(), 2);
        // um/px in a column of their own.
        let text = "slide,x,y,mpp_x,mpp_y\na,1,2,0.25,0.5\na,3,4,0.5,0.5\n";
        let truth = read(text, &TruthOptions::default()).unwrap();
        let conflict = truth["a"].check_units(&resolution).unwrap_err().to_string();
        assert!(conflict.contains("row 2 (line 3): 0.5 x 0.5 um/px, but 0.25 x 0.5"), "{conflict}");
        // The upper left corner of a box, and its centre.
        let text = "slide,x,y,cx,cy\na,100,100,125,125\n";
        let error = read(text, &TruthOptions::default()).unwrap_err().to_string();
        assert!(error.contains("100, 100 px") && error.contains("125, 125 px"), "{error}");
        assert!(error.contains("row 1") && error.contains("'cx'"), "{error}");
        assert!(read(&text.replace("125", "100.4"), &TruthOptions::default()).is_ok());
    }

    fn read(text: &str, options: &TruthOptions) -> Result<Truth, EvaluateError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("truth.csv");
        std::fs::write(&path, text).unwrap();
        read_truth(&path, options)
    }

    #[test]
    fn mimickers_never_count_whatever_the_column_is_called() {
        for column in ["label", "kind", "Label"] {
            let text = format!(
                "image;x;y;{column}\na.tiff;1;2;mf\na.tiff;3;4;mimicker\na.tiff;5,5;6;\n\
                 b.svs;;;\na.tiff;7;8;Mitotic Figure\n"
            );
            let truth = read(&text, &TruthOptions::default()).unwrap();
            assert_eq!(truth["a"].points, [Place::Level0(1.0, 2.0), Place::Level0(7.0, 8.0)]);
            assert!(truth["b"].points.is_empty(), "looked at, without a figure");
        }
    }

    #[test]
    fn unknown_words_are_refused_and_stated_ones_count() {
        let text = "slide,x_um,y_um,class\na,1,2,ring\na,3,4,NMF\na,5,6,debris\n";
        let column = Some("class".to_owned());
        let usual = TruthOptions { column: column.clone(), ..TruthOptions::default() };
        let error = read(text, &usual).unwrap_err().to_string();
        assert!(error.contains("'ring' is neither") && error.contains("row 1"), "{error}");
        let figures = vec!["ring".to_owned(), "NMF".to_owned()];
        let own = TruthOptions { column, figures, ..TruthOptions::default() };
        let error = read(text, &own).unwrap_err().to_string();
        assert!(error.contains("'debris'"), "{error}");
        let truth = read(&text.replace("debris", "other"), &own).unwrap();
        assert_eq!(truth["a"].points, [Place::Physical(1.0, 2.0), Place::Physical(3.0, 4.0)]);
    }

    #[test]
    fn words_that_imports_know_are_known() {
        for (word, figure) in [
            ("Mitotic figures", true),
            ("AMF", true),
            ("Mitose", true),
            ("impostor", false),
            ("mitosis look-alike", false),
            ("eosinophil", false),
        ] {
            let text = format!("slide,x,y,label\na,1,2,{word}\na,3,4,mf\n");
            let points = &read(&text, &TruthOptions::default()).unwrap()["a"].points;
            assert_eq!(points.len(), if figure { 2 } else { 1 }, "{word}");
        }
        // A region is not a place to ignore.
        assert!(read("slide,x,y,label\na,1,2,ROI\n", &TruthOptions::default()).is_err());
    }

    #[test]
    fn a_place_that_is_a_figure_and_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("truth.csv");
        let read = |rows: &str| {
            std::fs::write(&path, format!("slide,x,y,label\n{rows}")).unwrap();
            read_truth(&path, &TruthOptions::default())
        };
        for rows in ["a,1,2,mf\na,1.0,2,mimicker\n", "a,1,2,mimicker\na,1,2.0,mf\n"] {
            let error = read(rows).unwrap_err().to_string();
            assert!(error.contains("row 2") && error.contains("another label"), "{error}");
        }
        let sound = read("a,1,2,mimicker\na,1,2,mimicker\nb,1,2,mf\na,3,4,mf\n").unwrap();
        assert_eq!((sound["a"].points.len(), sound["b"].points.len()), (1, 1));
    }

    #[test]
    fn a_position_that_may_be_the_corner_of_a_box_is_refused() {
        let read = |text: &str| read(text, &TruthOptions::default()).map_err(|e| e.to_string());
        for (text, words) in [
            ("slide,x,y,width,height\na,10,20,50,50\n", &["'width', 'height'", "'x', 'y'"][..]),
            ("slide,x,y,x2,y2\na,10,20,60,70\n", &["the corner of a box that ends at 'x2', 'y2'"]),
            ("slide,x,y,x_max,y_max\na,10,20,60,70\n", &["'x_max', 'y_max'"]),
            ("slide,x,y,xmin,ymin,xmax,ymax\na,10,20,10,20,60,70\n", &["10, 20", "at 35, 45"]),
            ("slide,x,y,left,top,width,height\na,10,20,10,20,50,60\n", &["at 35, 50"]),
            ("slide,x,y,w,h\na,10,20,0,0\na,10,30,50,50\n", &["row 2 (line 3)"]),
        ] {
            let refused = read(text).unwrap_err();
            for word in ["truth.csv"].iter().chain(words) {
                assert!(refused.contains(word), "{text} {word}: {refused}");
            }
            let remedy = ["write its centre as", "to cx and cy"];
            assert!(remedy.iter().any(|r| refused.contains(r)), "{text}: {refused}");
        }
        // A centre by its name, by its box, rounded, without a box, and in um next to a box in px.
        for text in [
            "slide,cx,cy,width,height\na,35,45,50,50\n",
            "slide,x,y,xmin,ymin,xmax,ymax\na,35,45,10,20,60,70\n",
            "slide,x,y,xmin,ymin,xmax,ymax\na,35,46,10,20,61,71\n",
            "slide,x,y,xmin,ymin,xmax,ymax\na,35,45,,,,\n",
            "slide,x,y,width,height\na,35,45,,\n",
            "slide,x_um,y_um,xmin,ymin,xmax,ymax\na,35,45,10,20,60,70\n",
            "slide,x,y,image_width,image_height\na,35,45,900,900\n",
            // A figure's own centre in its box, the product's name of centres, and sizes of images.
            "slide,x,y,xmin,ymin,xmax,ymax\na,41,38,10,20,60,70\n",
            "slide,x_px,y_px,width,height\na,10,20,50,50\n",
            "slide,x_um,y_um,w,h\na,10,20,5,5\n",
            "slide,x,y,width,height\na,766,1400,1663,1485\n",
        ] {
            assert_eq!(read(text).unwrap()["a"].points.len(), 1, "{text}");
        }
    }

    #[test]
    fn parts_of_an_image_are_not_pixels() {
        let fails = |text| read(text, &TruthOptions::default()).map_err(|e| e.to_string()).err();
        let refused = fails("slide,x,y\na,0.25,0.5\na,0.75,0.125\n").unwrap();
        assert!(refused.contains("between 0 and 1"), "{refused}");
        assert_eq!(fails("slide,x,y\na,0.25,0.5\n"), None);
        assert_eq!(fails("slide,x_um,y_um\na,0.25,0.5\na,0.75,0.125\n"), None);
    }

    #[test]
    fn labels_in_a_column_of_another_name_are_read_or_refused() {
        let read = |text: &str| read(text, &TruthOptions::default()).map_err(|e| e.to_string());
        for column in ["class", "Category", "type", "class_name", "mitotic"] {
            let text =
                format!("slide,x,y,{column}\na,1,2,mitotic figure\na,3,4,Mimicker\na,5,6,\n");
            assert_eq!(read(&text).unwrap()["a"].points, [Place::Level0(1.0, 2.0)], "{column}");
        }
        // A name that no list has.
        for column in ["gt", "Name", "reader 1"] {
            let text = format!("slide,x,y,{column}\na,1,2,mitosis\na,3,4,Mimicker\na,5,6,other\n");
            assert_eq!(read(&text).unwrap()["a"].points, [Place::Level0(1.0, 2.0)], "{column}");
        }
        // The words of MIDOG; classes as numbers next to their words.
        for text in [
            "slide,x,y,category_name\na,1,2,mitotic figure\na,3,4,not mitotic figure\n",
            "slide,x,y,class,category\na,1,2,1,mitotic figure\na,3,4,2,hard negative\n",
        ] {
            assert_eq!(read(text).unwrap()["a"].points, [Place::Level0(1.0, 2.0)], "{text}");
        }
        for (text, words) in [
            (
                "slide,x,y,class\na,1,2,mf\na,3,4,mimicker\na,5,6,debris\n",
                &["'debris'", "row 3"][..],
            ),
            ("slide,x,y,class,type\na,1,2,mf,mf\na,3,4,mf,mimicker\n", &["'class'", "'type'"]),
            ("slide,x,y,category_id\na,1,2,1\na,3,4,2\n", &["'category_id'", "'1'"]),
            ("slide,x,y,is_mitotic\na,1,2,yes\na,3,4,no\n", &["'is_mitotic'", "'yes'"]),
            ("slide,x,y,label,label\na,1,2,mf,mimicker\n", &["label"]),
            ("slide,x,y,ground_truth\na,1,2,1\na,3,4,0\n", &["'ground_truth'", "'1'"]),
            ("slide,x,y,a,b\na,1,2,mf,mf\na,3,4,mimicker,mimicker\n", &["'a'", "'b'"]),
            ("slide,x,y,gt\na,1,2,mf\na,3,4,mimicker\na,5,6,debris\n", &["'gt'", "'debris'"]),
        ] {
            let refused = read(text).unwrap_err();
            for word in words {
                assert!(refused.contains(word), "{text} {word}: {refused}");
            }
        }
        // Columns of other things.
        for text in [
            "slide,x,y,note\na,1,2,mitosis\na,3,4,near edge\n",
            "slide,x,y,phase,reader\na,1,2,mitosis,mf\na,3,4,mitosis,mf\n",
            "slide,x,y,class\na,1,2,melanoma\na,3,4,other\n",
            "slide,x,y,type\na,1,2,1\na,3,4,2\n",
            "slide,x,y,class\na,1,2,3\na,3,4,3\n",
        ] {
            assert_eq!(read(text).unwrap()["a"].points.len(), 2, "{text}");
        }
    }

    #[test]
    fn stated_words_need_a_column() {
        let own = TruthOptions { figures: vec!["AMF".into()], ..TruthOptions::default() };
        let refused = read("slide,x,y\na,1,2\n", &own).unwrap_err().to_string();
        assert!(refused.contains("'label' or 'kind'"), "{refused}");
        let truth = read("slide,x,y,class\na,1,2,AMF\na,3,4,mf\n", &own).unwrap();
        assert_eq!(truth["a"].points, [Place::Level0(1.0, 2.0)]);
    }

    #[test]
    fn places_to_ignore_are_kept_apart() {
        let text = "slide,x,y,label\na,1,2,mf\na,3,4,Ignore\na,5,6,other\n";
        let truth = read(text, &TruthOptions::default()).unwrap();
        assert_eq!(truth["a"].points, [Place::Level0(1.0, 2.0)]);
        assert_eq!(truth["a"].ignored, [Place::Level0(3.0, 4.0)]);
    }

    #[test]
    fn a_subset_is_kept_by_name() {
        let text = "slide,x,y\na.svs,1,2\nb.svs,3,4\n";
        let only = |name: &str| TruthOptions { only: vec![name.into()], ..TruthOptions::default() };
        assert_eq!(read(text, &only("b.svs")).unwrap().keys().collect::<Vec<_>>(), ["b"]);
        assert!(read(text, &only("c")).unwrap_err().to_string().contains("no slide `c`"));
    }
}
