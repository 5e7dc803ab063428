//! Parts of images that count: where an annotator looked, or what was laid out in a margin of its own.

use super::RobustnessError;
use base::table::{Format, Table, Unmatched};
use mithras::input::stem;
use std::collections::BTreeMap;
use std::path::Path;

/// Rectangles `[x0, y0, x1, y1]` in px of images, by the images' names without suffix.
pub type Areas = BTreeMap<String, Vec<[f64; 4]>>;

/// Reads a table `slide, x_px, y_px, width_px, height_px` of rectangles, such as `regions.csv` of
/// `corpus export --format sheets`. Those of one image do not overlap.
///
/// # Errors
/// [`RobustnessError`]: a missing column, a cell that is not a number, an empty or overlapping rectangle.
pub fn read_areas(path: &Path) -> Result<Areas, RobustnessError> {
    let table = Table::read(path, &Format::default())?;
    let slide = table.need(&["slide", "file", "filename", "case", "image"])?;
    let (x, y) = (table.need(&["x_px", "x"])?, table.need(&["y_px", "y"])?);
    let (w, h) = (table.need(&["width_px", "width"])?, table.need(&["height_px", "height"])?);
    let mut areas = Areas::new();
    for row in 0..table.len() {
        if table.cell(row, slide).is_empty() {
            return Err(table.wrong(row, slide, "names no image").into());
        }
        for side in [w, h] {
            if table.number(row, side)? <= 0.0 {
                return Err(table.wrong(row, side, "an area without extent").into());
            }
        }
        let (x0, y0) = (table.number(row, x)?, table.number(row, y)?);
        let area = [x0, y0, x0 + table.number(row, w)?, y0 + table.number(row, h)?];
        let own = areas.entry(stem(Path::new(table.cell(row, slide)))).or_default();
        let overlaps = |a: &&[f64; 4]| {
            a[0].max(area[0]) < a[2].min(area[2]) && a[1].max(area[1]) < a[3].min(area[3])
        };
        if own.iter().any(|a| overlaps(&a)) {
            return Err(table.wrong(row, x, "overlaps an area above it").into());
        }
        own.push(area);
    }
    Ok(areas)
}

/// Those of one image of `size` px, all within it.
pub(super) fn areas_within_image(
    areas: &Areas,
    name: &str,
    (w, h): (usize, usize),
) -> Result<Vec<[f64; 4]>, String> {
    let own = areas.get(name).ok_or_else(|| {
        let all = areas.keys().map(String::as_str);
        let join = Unmatched::between(("the images", "the table of areas"), [name], all)
            .map_or_else(String::new, |join| format!(": {join}"));
        format!("no area of it is named, so nothing of it would count{join}")
    })?;
    let outside = |a: &&[f64; 4]| a[0] < 0.0 || a[1] < 0.0 || a[2] > w as f64 || a[3] > h as f64;
    match own.iter().find(outside) {
        Some([x0, y0, x1, y1]) => {
            Err(format!("the area {x0},{y0} to {x1},{y1} leaves the image of {w} x {h} px"))
        }
        None => Ok(own.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &str) -> Result<Areas, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("areas.csv");
        std::fs::write(&path, format!("slide,x_px,y_px,width_px,height_px\n{rows}")).unwrap();
        read_areas(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn areas_are_read_by_image() {
        let areas = read("a.png,3,4,10,20\nb.png,0,0,5,5\na.png,13,4,10,20\n").unwrap();
        assert_eq!(areas["a"], [[3.0, 4.0, 13.0, 24.0], [13.0, 4.0, 23.0, 24.0]]);
        assert_eq!(areas_within_image(&areas, "b", (5, 5)).unwrap(), [[0.0, 0.0, 5.0, 5.0]]);
        assert!(
            areas_within_image(&areas, "b", (4, 5))
                .unwrap_err()
                .contains("leaves the image of 4 x 5")
        );
        assert!(areas_within_image(&areas, "c", (5, 5)).unwrap_err().contains("no area of it"));
        let join = areas_within_image(&areas, "A", (5, 5)).unwrap_err();
        assert!(join.contains("'a'") && join.contains("ignoring upper and lower case"), "{join}");
    }

    #[test]
    fn what_would_count_twice_or_nothing_is_refused() {
        for (rows, why) in [
            ("a,0,0,10,10\na,9,9,10,10\n", "overlaps an area above it"),
            ("a,0,0,0,10\n", "without extent"),
            (",0,0,10,10\n", "names no image"),
            ("a,0,0,wide,10\n", "wide"),
        ] {
            let e = read(rows).unwrap_err();
            assert!(e.contains(why), "{e}");
        }
    }
}
