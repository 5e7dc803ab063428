//! Any delimited table: columns are found by their usual names, in any order.
//!
//! `x, y` with `width, height` may be a centre or a corner and is refused unless the boxes are
//! stated; positions that are all between 0 and 1 are not pixels and are refused.

use super::boxes::{BoxOrder, StatedBox, check_order};
use super::collect::{Category, Collector, Place, Raw};
use super::columns::{FLAG, H, LABEL, OWN, W, X0, X1, Y0, Y1};
use super::sheet::{Sheet, cell, filled, pixels};
use super::twice::Twice;
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions, LabelSource, Mapping};
use crate::rows::{ONE_CELL_PX, Rows};
use base::table::yes_no;
use std::collections::BTreeSet;
use std::path::Path;

const IMAGE: &[&str] = &[
    "image",
    "file",
    "filename",
    "file_name",
    "image_name",
    "slide",
    "slide_name",
    "wsi",
    "image_id",
    "slide_id",
    "frame",
];
const CX: &[&str] = &[
    "cx",
    "center_x",
    "centre_x",
    "centroid_x",
    "centroid_x_px",
    "x_center",
    "coordinateX",
    "x_px",
    "x",
    "col",
    "column",
];
const CY: &[&str] = &[
    "cy",
    "center_y",
    "centre_y",
    "centroid_y",
    "centroid_y_px",
    "y_center",
    "coordinateY",
    "y_px",
    "y",
    "row",
];

enum Where {
    Centre([usize; 2]),
    Corners([usize; 4]),
    /// Left, top, width, height.
    Sized([usize; 4]),
}

impl Where {
    fn find(sheet: &Sheet, stated: Option<BoxOrder>) -> Result<Self, ImportError> {
        let [x0, y0, x1, y1, w, h] = [X0, Y0, X1, Y1, W, H].map(|n| sheet.find(n));
        match (x0.zip(y0), x1.zip(y1), w.zip(h)) {
            // `x1, y1` without `x2, y2` are not corners.
            (Some((a, b)), Some((c, d)), _) => return Ok(Self::Corners([a, b, c, d])),
            (Some((a, b)), None, Some((c, d))) => return Ok(Self::Sized([a, b, c, d])),
            _ => {}
        }
        let um = sheet.headers.iter().any(|h| h.contains("µm") || h.contains("μm"));
        let note = if um { "; positions in µm are not read: export pixels" } else { "" };
        let across = format!("the horizontal position, or a box xmin, ymin, xmax, ymax{note},");
        let [x, y] = sheet.need([(across.as_str(), CX), ("the vertical position", CY)])?;
        let plain = sheet.headers[x].eq_ignore_ascii_case("x");
        match (w.zip(h), stated) {
            (Some((w, h)), Some(BoxOrder::Xywh)) if plain => Ok(Self::Sized([x, y, w, h])),
            (Some(_), _) if plain => Err(sheet.boxes(
                "ambiguous boxes: x, y with width, height may be a corner or a centre; state \
                 that they are xywh if it is the corner, or rename x, y to cx, cy if it is the centre",
            )),
            _ => Ok(Self::Centre([x, y])),
        }
    }

    fn columns(&self) -> &[usize] {
        match self {
            Self::Corners(all) | Self::Sized(all) => all,
            Self::Centre(pair) => pair,
        }
    }

    /// The columns `width` and `height` where they are those of images, as TensorFlow's tables of corners have them:
    /// each box is within, and some are smaller.
    fn image_sides(&self, sheet: &Sheet) -> Option<[usize; 2]> {
        let Self::Corners([x0, y0, x1, y1]) = *self else { return None };
        let [w, h] = [sheet.find(&["width"])?, sheet.find(&["height"])?];
        let table = sheet.table();
        let number = |row: usize, column: usize| table.number(row, column).ok();
        let mut is_smaller = false;
        for row in 0..table.len() {
            for [low, high, side] in [[x0, x1, w], [y0, y1, h]] {
                let (low, high) = (number(row, low)?, number(row, high)?);
                let side = number(row, side)?;
                // Boxes reach over an edge.
                if f64::midpoint(low, high) > side {
                    return None;
                }
                is_smaller |= (high - low).abs() + 2.0 < side;
            }
        }
        is_smaller.then_some([w, h])
    }
}

/// Other columns than the one of the labels that may state the class, too.
fn further(sheet: &Sheet, label: Option<usize>) -> Vec<usize> {
    let names = LABEL.iter().chain(FLAG);
    let columns: BTreeSet<usize> = names.filter_map(|name| sheet.find(&[name])).collect();
    columns.into_iter().filter(|column| Some(*column) != label).collect()
}

/// Why a row's label is not what another column of it states. Only a mitotic figure and what resembles one exclude each
/// other: columns such as `type` have words of other meanings.
fn contradiction(
    sheet: &Sheet,
    row: &[String],
    label: usize,
    others: &[usize],
    mapping: &Mapping,
) -> Option<String> {
    let is_figure = |column: usize| {
        let text = filled(row, Some(column))?;
        let is_flag = FLAG.iter().any(|name| sheet.find(&[name]) == Some(column));
        match mapping.meaning(&text).map(|m| m.class) {
            Some(Class::MitoticFigure) => Some(true),
            Some(Class::Mimicker) => Some(false),
            None if is_flag => yes_no(&text),
            _ => None,
        }
    };
    let own = is_figure(label)?;
    let other = others.iter().find(|column| is_figure(**column) == Some(!own))?;
    let stated = |column: usize| (&sheet.headers[column], cell(row, column));
    let ((first, word), (second, other)) = (stated(label), stated(*other));
    Some(format!(
        "column `{first}` has `{word}` and column `{second}` has `{other}`; correct one of them"
    ))
}

#[expect(
    clippy::too_many_lines,
    reason = "one pass over the columns, in the order of the format's rules"
)]
pub(super) fn read(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    let sheet = Sheet::read(file)?;
    let [image] = sheet.need([("the image", IMAGE)])?;
    let place = Where::find(&sheet, options.boxes)?;
    // A class that is assumed for all records takes the place of columns without any value.
    let stated = |c: &usize| options.assume.is_none() || sheet.has_values(*c);
    let label = sheet.find(LABEL).filter(stated);
    let flag = sheet.find(FLAG).filter(stated);
    let agreed = options.labels == LabelSource::Agreed;
    if let (Some(column), Some(_)) = (label.or(flag), options.assume) {
        let states = format!("the column `{}` states", sheet.headers[column]);
        return Err(ImportError::Assumed { file: file.into(), states });
    }
    if label.is_none() && flag.is_none() && agreed && options.assume.is_none() {
        sheet.need([("the label (unless one class is assumed for every record)", LABEL)])?;
    }
    let slide = sheet.slide(image);
    let patient = sheet.find(&["patient", "patient_id", "case", "case_id"]);
    let scanner = sheet.find(&["scanner", "scanner_name"]);
    let cohort = sheet.find(&["cohort", "dataset", "tumor_type", "tumor", "tumour", "domain"]);
    let subtype = sheet.find(&["subtype", "morphology"]);
    let split = sheet.find(&["split"]);
    let patch = sheet.find(&["patch"]);
    let id = sheet.find(&["id", "uid", "annotation_id"]);
    let sides = place.image_sides(&sheet);
    let width = sheet.find(&["image_width", "img_width"]).or(sides.map(|s| s[0]));
    let height = sheet.find(&["image_height", "img_height"]).or(sides.map(|s| s[1]));
    let twice = Twice::find(sheet.table(), place.columns());
    let twice = if sides.is_some() { twice.of_images() } else { twice };
    let mut people = Rows::find(sheet.table());
    let experts: Vec<usize> = [sheet.family("expert", ""), sheet.family("annotator", "")].concat();

    let others = further(&sheet, label.or(flag));
    let mut c = Collector::new("csv", file, options);
    let assumed = if agreed && label.or(flag).is_none() { c.assume() } else { None };
    let (mut boxes, mut raws) = (Vec::new(), Vec::new());
    for (number, (line, row)) in sheet.rows.iter().enumerate() {
        let record = match filled(row, id) {
            Some(id) => format!("line {line}, id {id}"),
            None => format!("line {line}"),
        };
        for word in label.iter().chain(&experts).filter_map(|&column| filled(row, Some(column))) {
            c.category(&word);
        }
        if let Some(column) = people.left_out(sheet.table(), number) {
            c.ignore(format!("(marked as {column})"));
            continue;
        }
        let name = cell(row, image).to_owned();
        if name.is_empty() {
            c.problem(record, "no image name");
            continue;
        }
        if let (LabelSource::Agreed, Some(column)) = (&options.labels, label.or(flag))
            && let Some(why) = contradiction(&sheet, row, column, &others, &options.mapping)
        {
            c.problem(record, why);
            continue;
        }
        let at = match place {
            Where::Centre([x, y]) => sheet
                .number(row, x, "x")
                .and_then(|x| Ok(Place::Point(x, sheet.number(row, y, "y")?))),
            Where::Corners([a, b, c, d]) => (|| {
                let n = |i, what| sheet.number(row, i, what);
                Ok(Place::Box([n(a, "xmin")?, n(b, "ymin")?, n(c, "xmax")?, n(d, "ymax")?]))
            })(),
            Where::Sized([a, b, c, d]) => (|| {
                let n = |i, what| sheet.number(row, i, what);
                let four = [n(a, "x")?, n(b, "y")?, n(c, "width")?, n(d, "height")?];
                Ok(Place::Box(BoxOrder::Xywh.corners(four)))
            })(),
        };
        let at = match at {
            Ok(at) => at,
            Err(e) => {
                c.problem(record, e);
                continue;
            }
        };
        let votes: std::collections::BTreeMap<String, String> = experts
            .iter()
            .filter_map(|&e| filled(row, Some(e)).map(|v| (sheet.headers[e].clone(), v)))
            .collect();
        let unresolved = || Category::Fixed(Class::Unresolved, "(no label)".into());
        let category = match (&options.labels, label, flag) {
            (LabelSource::Annotator(who), ..) => {
                votes.get(who).map_or_else(unresolved, |w| Category::Named(w.clone()))
            }
            (_, Some(l), _) => filled(row, Some(l)).map_or_else(unresolved, Category::Named),
            (_, None, Some(f)) => match yes_no(cell(row, f)) {
                Some(true) => Category::Fixed(Class::MitoticFigure, cell(row, f).into()),
                Some(false) => Category::Fixed(Class::Mimicker, cell(row, f).into()),
                None => Category::Named(cell(row, f).into()),
            },
            (_, None, None) => {
                let class = assumed.unwrap_or(Class::Unresolved);
                Category::Fixed(class, "(assumed)".into())
            }
        };
        let split = match filled(row, split).map(|s| s.to_lowercase().parse()) {
            Some(Err(e)) => {
                c.problem(record, e);
                continue;
            }
            Some(Ok(s)) => Some(s),
            None => None,
        };
        let px = |col| filled(row, col).map(|v| pixels(&v)).transpose();
        let (wide, high) = match (px(width), px(height)) {
            (Ok(wide), Ok(high)) => (wide, high),
            (Err(e), _) | (_, Err(e)) => {
                c.problem(record, format!("the image's size is {e}"));
                continue;
            }
        };
        let entry = || ImageEntry {
            name: name.clone(),
            width: wide,
            height: high,
            cohort: filled(row, cohort),
            slide: filled(row, slide),
            patient: filled(row, patient),
            scanner: filled(row, scanner),
            ..ImageEntry::default()
        };
        let image = c.image_named(&name, entry);
        if let Err(e) = c.origin(image, entry()) {
            c.problem(record, e);
            continue;
        }
        if let (Place::Box(b), Where::Corners(_)) = (at, &place) {
            let e = c.image_entry(image);
            boxes.push(StatedBox { numbers: b, image: e.size() });
        }
        let [x0, y0, x1, y1] = at.corners();
        let centre = [f64::midpoint(x0, x1), f64::midpoint(y0, y1)];
        if let Some(why) = people.same_object(sheet.table(), number, &name, centre, ONE_CELL_PX) {
            c.problem(record, why);
            continue;
        }
        let raw = Raw {
            subtype: filled(row, subtype),
            votes,
            patch: filled(row, patch),
            split,
            ..Raw::new(image, record, category, at)
        };
        raws.push((number, raw));
    }
    sheet.table().pass_over(OWN);
    c.unread_columns(sheet.table().unread());
    // The header names corners; widths written under such names would still give themselves away.
    let numbers = || boxes.iter().map(|b| b.numbers);
    let all_xyxy = numbers().all(|b| b[2] > b[0] && b[3] > b[1]);
    let turned = |b: [f64; 4], [x, y]: [bool; 2]| (b[2] < b[0]) == x && (b[3] < b[1]) == y;
    for (both, what) in
        [([true, true], "both"), ([true, false], "xmin and xmax"), ([false, true], "ymin and ymax")]
    {
        if boxes.len() > 1 && numbers().all(|b| turned(b, both)) {
            return Err(sheet.broken(&format!(
                "every box ends before it begins: the columns are swapped ({what}); swap their names"
            )));
        }
    }
    if options.boxes.is_none() && !all_xyxy {
        check_order(file, BoxOrder::Xyxy, "csv", &boxes)?;
    }
    let order = match place {
        Where::Sized(_) => BoxOrder::Xyxy,
        _ => options.boxes.unwrap_or(BoxOrder::Xyxy),
    };
    for (row, mut raw) in raws {
        if let Place::Box(b) = raw.place {
            raw.place = Place::Box(order.corners(b));
        }
        twice.take(&mut c, sheet.table(), row, raw);
    }
    c.finish()
}
