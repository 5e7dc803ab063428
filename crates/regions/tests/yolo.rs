//! Regions datasets in the form that Ultralytics' YOLO reads.

use mitosis::Mpp;
use regions::export::ExportError;
use regions::folds::RegionFold;
use regions::yolo::{Side, YoloOptions, write};
use regions::{Area, Builder, Dataset, GivenMpp, Kind, Label, MppSource, probe};
use std::fs;
use std::path::Path;

const OPTIONS: YoloOptions = YoloOptions { mpp: Mpp::PAPER, window: 64, stride: 48, box_um: 5.0 };

/// Two images of 100 x 64 px at 0.25 um/px; the second may contain unlabelled figures.
fn dataset(dir: &Path) -> Dataset {
    let mut builder = Builder::new("set \"one\"", "a test");
    builder.class("cell", Kind::Other).unwrap();
    for (name, exhaustive) in [("a", true), ("b", false)] {
        let path = dir.join(format!("{name}.png"));
        let shade = if exhaustive { [200, 100, 150] } else { [201, 100, 150] };
        image::RgbImage::from_pixel(100, 64, image::Rgb(shade)).save(&path).unwrap();
        let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::User });
        let mut image = probe(&path, given).unwrap().image(name, name, "drawn");
        image.exhaustive = exhaustive;
        let boxed = Area { x0: 50.0, y0: 20.0, x1: 70.0, y1: 30.0 };
        image.labels = vec![
            Label::at("mitotic_figure", 10.0, 32.0),
            Label { bbox: Some(boxed), ..Label::at("mimicker", 60.0, 25.0) },
            Label::at("cell", 30.0, 30.0),
        ];
        image.ignore = vec![Area { x0: 90.0, y0: 0.0, x1: 100.0, y1: 8.0 }];
        builder.push(image);
    }
    builder.write(&dir.join("set")).unwrap()
}

#[test]
fn figures_at_edges_and_seams_and_in_ignored_areas_have_a_box_or_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.png");
    image::RgbImage::from_pixel(128, 128, image::Rgb([200, 100, 150])).save(&path).unwrap();
    let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::User });
    let mut image = probe(&path, given).unwrap().image("a", "a", "drawn");
    image.exhaustive = true;
    // In the corner, on the crossing of four windows, and under grey.
    image.labels = [(1.0, 1.0), (64.0, 64.0), (100.0, 20.0)]
        .map(|(x, y)| Label::at("mitotic_figure", x, y))
        .into();
    image.ignore = vec![Area { x0: 95.0, y0: 15.0, x1: 105.0, y1: 25.0 }];
    let mut builder = Builder::new("set", "a test");
    builder.push(image);
    let set = builder.write(&dir.path().join("set")).unwrap();
    let fold = || RegionFold {
        name: "none".into(),
        train: set.images().iter().collect(),
        validation: vec![],
    };
    let out = dir.path().join("seams");
    let seams = YoloOptions { stride: 64, ..OPTIONS };
    let written = write(&set, &fold(), &out, &seams).unwrap();
    assert_eq!(written.train, Side { windows: 4, with_figures: 1, figures: 1, mimickers: 0 });
    assert_eq!((written.ignored, written.lost), (1, 1));
    let label = fs::read_to_string(out.join("labels/train/00000_0_0.txt")).unwrap();
    assert_eq!(label, "0 0.085938 0.085938 0.171875 0.171875\n");
    let shown = written.to_string();
    assert!(shown.contains("lost: 1 figure,") && shown.contains("1 figure in areas"), "{shown}");
    let overlapping = write(&set, &fold(), &dir.path().join("more"), &OPTIONS).unwrap();
    assert_eq!((overlapping.ignored, overlapping.lost), (1, 0));
}

#[test]
fn windows_and_boxes_are_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path());
    let train = set.images().iter().collect();
    let fold = RegionFold { name: "none".into(), train, validation: vec![] };
    let out = dir.path().join("yolo");
    let written = write(&set, &fold, &out, &OPTIONS).unwrap();
    // The look-alike, 50 to 70 px, is to 70 % in the first window and whole in the second.
    assert_eq!(written.train, Side { windows: 2, with_figures: 1, figures: 1, mimickers: 2 });
    assert_eq!((written.val, written.left_out), (Side::default(), 1));
    let yaml = fs::read_to_string(out.join("data.yaml")).unwrap();
    assert!(yaml.ends_with("names:\n  0: \"mitotic_figure\"\n  1: \"mimicker\"\n"), "{yaml}");
    let label = |name: &str| fs::read_to_string(out.join("labels/train").join(name)).unwrap();
    assert_eq!(
        label("00000_0_0.txt"),
        "0 0.156250 0.500000 0.312500 0.312500\n1 0.890625 0.390625 0.218750 0.156250\n"
    );
    assert_eq!(label("00000_36_0.txt"), "1 0.375000 0.390625 0.312500 0.156250\n");
    let window = image::open(out.join("images/train/00000_36_0.png")).unwrap().into_rgb8();
    assert_eq!(window.dimensions(), (64, 64));
    assert_eq!(window.get_pixel(60, 3).0, [114; 3], "an area to be ignored is grey");
    assert_eq!(window.get_pixel(60, 9).0, [200, 100, 150]);
    assert_eq!(fs::read_dir(out.join("images/val")).unwrap().count(), 0);

    // Nothing is written over, and nothing half-written stays.
    assert!(matches!(write(&set, &fold, &out, &OPTIONS), Err(ExportError::Exists(_))));
    let bad = YoloOptions { stride: 65, ..OPTIONS };
    let other = dir.path().join("other");
    assert!(write(&set, &fold, &other, &bad).unwrap_err().to_string().contains("65 px"));
    fs::remove_file(dir.path().join("a.png")).unwrap();
    assert!(write(&set, &fold, &other, &OPTIONS).is_err());
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().starts_with(".writing")), "{left:?}");
    assert!(!other.exists());
}
