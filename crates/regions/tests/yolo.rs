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
