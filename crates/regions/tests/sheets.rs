//! Small regions laid out in sheets.

use mitosis::Mpp;
use regions::export::ExportError;
use regions::sheets::{SheetOptions, write};
use regions::{Area, Builder, Dataset, GivenMpp, Image, Kind, Label, MppSource, probe};
use std::fs;
use std::path::Path;

const OPTIONS: SheetOptions = SheetOptions { mpp: Mpp::PAPER, across: 2, mirror: 0 };

/// `n` regions of 40 x 30 px, each of its own grey, with a figure at (10 + i, 20) and a look-alike.
fn dataset(dir: &Path, n: u8, also: impl Fn(&mut Image, u8)) -> Dataset {
    painted(dir, n, |i, _, _| image::Rgb([100 + i; 3]), also)
}

/// The same with pixels of any colours.
fn painted(
    dir: &Path,
    n: u8,
    pixel: impl Fn(u8, u32, u32) -> image::Rgb<u8>,
    also: impl Fn(&mut Image, u8),
) -> Dataset {
    let mut builder = Builder::new("set", "a test");
    builder.class("cell", Kind::Other).unwrap();
    for i in 0..n {
        let path = dir.join(format!("{i}.png"));
        image::RgbImage::from_fn(40, 30, |x, y| pixel(i, x, y)).save(&path).unwrap();
        let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::User });
        let mut image = probe(&path, given).unwrap().image(format!("{i}"), "one", "drawn");
        image.exhaustive = true;
        image.labels = vec![
            Label::at("mitotic_figure", 10.0 + f64::from(i), 20.0),
            Label::at("mimicker", 30.0, 5.0),
        ];
        also(&mut image, i);
        builder.push(image);
    }
    builder.write(&dir.join("set")).unwrap()
}

#[test]
fn every_region_is_where_the_tables_place_it() {
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path(), 7, |_, _| ());
    let images: Vec<&Image> = set.images().iter().collect();
    let out = dir.path().join("sheets");
    let written = write(&set, &images, "a", &out, &OPTIONS).unwrap();
    // Four, then a row of two, then one.
    assert_eq!((written.sheets, written.regions, written.figures), (3, 7, 7));
    assert!((written.mm2 - 7.0 * 1200.0 * 0.0625e-6).abs() < 1e-12, "{}", written.mm2);
    let sheets: Vec<_> = ["a-000.png", "a-001.png", "a-002.png"]
        .map(|n| image::open(out.join(n)).unwrap().into_rgb8())
        .into();
    let sizes: Vec<_> = sheets.iter().map(image::RgbImage::dimensions).collect();
    assert_eq!(sizes, [(80, 60), (80, 30), (40, 30)]);
    for (k, (x, y)) in [(0, 0), (40, 0), (0, 30), (40, 30)].into_iter().enumerate() {
        for (dx, dy) in [(0, 0), (39, 0), (0, 29), (39, 29)] {
            assert_eq!(sheets[0].get_pixel(x + dx, y + dy).0, [100 + k as u8; 3]);
        }
    }
    let truth = fs::read_to_string(out.join("truth.csv")).unwrap();
    let rows: Vec<&str> = truth.lines().collect();
    assert_eq!(rows[0], "slide,x_px,y_px");
    assert_eq!(
        rows[1..5],
        [
            "a-000.png,10.00,20.00",
            "a-000.png,51.00,20.00",
            "a-000.png,12.00,50.00",
            "a-000.png,53.00,50.00"
        ]
    );
    assert_eq!(rows[6..], ["a-001.png,55.00,20.00", "a-002.png,16.00,20.00"]);
    let places = fs::read_to_string(out.join("regions.csv")).unwrap();
    assert!(places.contains("a-000.png,40,30,40,30,3,one,"), "{places}");
    assert!(matches!(write(&set, &images, "a", &out, &OPTIONS), Err(ExportError::Exists(_))));
}

#[test]
fn a_margin_mirrors_each_region_in_itself() {
    let dir = tempfile::tempdir().unwrap();
    // Every pixel of every region is of its own colour.
    let pixel = |i: u8, x: u32, y: u32| image::Rgb([50 * i, x as u8, y as u8]);
    let set = painted(dir.path(), 2, pixel, |_, _| ());
    let images: Vec<&Image> = set.images().iter().collect();
    let out = dir.path().join("sheets");
    let written = write(&set, &images, "a", &out, &SheetOptions { mirror: 3, ..OPTIONS }).unwrap();
    assert!((written.mm2 - 2.0 * 1200.0 * 0.0625e-6).abs() < 1e-12, "the regions' own area");
    let sheet = image::open(out.join("a-000.png")).unwrap().into_rgb8();
    assert_eq!(sheet.dimensions(), (92, 36));
    let mirrored = |at: i32, side: i32| if at < 0 { -at } else { at.min(2 * (side - 1) - at) };
    for (x, y, found) in sheet.enumerate_pixels() {
        let (from_x, from_y) = (mirrored(x as i32 % 46 - 3, 40), mirrored(y as i32 - 3, 30));
        assert_eq!(*found, pixel((x / 46) as u8, from_x as u32, from_y as u32), "{x} {y}");
    }
    let truth = fs::read_to_string(out.join("truth.csv")).unwrap();
    assert!(truth.contains("a-000.png,13.00,23.00\na-000.png,60.00,23.00"), "{truth}");
    let places = fs::read_to_string(out.join("regions.csv")).unwrap();
    assert!(places.contains("a-000.png,57,11,24,14,1,one,"), "{places}");
    let wide = SheetOptions { mirror: 30, ..OPTIONS };
    let e = write(&set, &images, "a", &dir.path().join("wide"), &wide).unwrap_err().to_string();
    assert!(e.contains("30 px around regions of 40 x 30"), "{e}");
}

#[test]
fn what_is_not_labelled_throughout_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path(), 4, |image, i| {
        image.exhaustive = i != 1;
        if i == 2 {
            image.ignore = vec![Area { x0: 0.0, y0: 0.0, x1: 5.0, y1: 5.0 }];
        }
    });
    let images: Vec<&Image> = set.images().iter().collect();
    let written = write(&set, &images, "a", &dir.path().join("x"), &OPTIONS).unwrap();
    assert_eq!((written.regions, written.left_out), (2, 2));
    let none = write(&set, &images[1..3], "a", &dir.path().join("y"), &OPTIONS).unwrap_err();
    assert!(none.to_string().contains("labelled throughout"), "{none}");
}

#[test]
fn sizes_that_do_not_fit_are_refused_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path(), 2, |_, _| ());
    let path = dir.path().join("large.png");
    let mut builder = Builder::new("large", "a test");
    for (name, w) in [("b", 41), ("c", 1025)] {
        image::RgbImage::from_pixel(w, 30, image::Rgb([w as u8; 3]))
            .save(path.with_file_name(format!("{name}.png")))
            .unwrap();
        let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::User });
        let mut image = probe(&path.with_file_name(format!("{name}.png")), given)
            .unwrap()
            .image(name, "two", "drawn");
        image.exhaustive = true;
        builder.push(image);
    }
    let other = builder.write(&dir.path().join("other")).unwrap();
    let parts = [set, other];
    let merged = regions::merge(&parts, &dir.path().join("merged"), "m", "a test").unwrap();
    let all: Vec<&Image> = merged.images().iter().filter(|i| i.name != "c").collect();
    let out = dir.path().join("out");
    let e = write(&merged, &all, "a", &out, &OPTIONS).unwrap_err().to_string();
    assert!(e.contains("41 x 30") && e.contains("40 x 30"), "{e}");
    let large: Vec<&Image> = merged.images().iter().filter(|i| i.name == "c").collect();
    let e = write(&merged, &large, "a", &out, &OPTIONS).unwrap_err().to_string();
    assert!(e.contains("1025 x 30") && e.contains("as they are"), "{e}");
    let e = write(&merged, &large, "a", &out, &SheetOptions { across: 0, ..OPTIONS }).unwrap_err();
    assert!(matches!(e, ExportError::Options(_)));
    assert!(!out.exists());
}
