use super::import::{Exhaustive, Options, annotated, folder_importer};
use super::*;
use crate::annotations::{ImportOptions, importer};
use crate::cut::{CutOptions, cut};
use crate::folds::{FoldManifest, Scheme};
use crops::slide_name::bare;
use mitosis::Mpp;
use proptest::prelude::*;
use std::fs;

fn png(path: &Path, side: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let pixel = |x, y| image::Rgb([(x % 251) as u8, (y % 241) as u8, (side % 199) as u8]);
    image::RgbImage::from_fn(side, side, pixel).save(path).unwrap();
}

fn options() -> Options {
    let given = Given { all: Some(Mpp::new(0.5).unwrap()), ..Given::default() };
    Options { name: "t".into(), program: "test".into(), given, ..Options::default() }
}

/// Imports a table as regions with images next to it: what is printed, and `import.json`.
fn import_table(folder: &Path, table: &str, mpp: f64, set: &str) -> (String, String) {
    fs::write(folder.join("t.csv"), table).unwrap();
    let given = Given { all: Some(Mpp::new(mpp).unwrap()), ..Given::default() };
    let plan = import::RegionsPlan {
        format: "csv",
        file: &folder.join("t.csv"),
        images: Some(folder),
        annotations: &ImportOptions::default(),
        options: &Options { given, ..options() },
        out: &folder.join(set),
    };
    let printed = plan.run().unwrap().to_string();
    (printed, fs::read_to_string(plan.out.join("import.json")).unwrap())
}

/// Two images of two slides with two figures and a mimicker.
fn made(dir: &Path) -> Dataset {
    let mut b = Builder::new("t", "test");
    for (name, side) in [("a", 64), ("b", 80)] {
        let file = dir.join(format!("{name}.png"));
        png(&file, side);
        let given = Some(GivenMpp { mpp: Mpp::new(0.5).unwrap(), source: MppSource::User });
        let mut image = probe(&file, given).unwrap().image(name, name, "made");
        image.exhaustive = true;
        let bbox = Some(Area::around(20.0, 30.0, 10.0));
        image.labels.push(Label { bbox, ..Label::at("mitotic_figure", 20.0, 30.0) });
        image.ignore.push(Area::around(1.0, 1.0, 4.0));
        b.push(image);
    }
    b.images[1].labels.push(Label::at("mimicker", 40.25, 41.0));
    b.write(dir).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let set = made(dir.path());
    assert_eq!(Dataset::open(dir.path()).unwrap(), set);
    assert_eq!(Dataset::open(dir.path().join(FILE)).unwrap().digest(), set.digest());
    assert!(Dataset::is_dataset(dir.path()) && !Dataset::is_dataset(&dir.path().join("a.png")));
    set.verify().unwrap();
    let c = set.counts();
    assert_eq!((c.images, c.exhaustive, c.slides, c.patients, c.ignore), (2, 2, 2, 0, 2));
    assert_eq!((c.classes["mitotic_figure"], c.classes["mimicker"]), (2, 1));
    assert_eq!(set.positive(), "mitotic_figure");
    assert_eq!(set.image("b").unwrap().labels[1].kind, Kind::Mimicker);
    assert_eq!(set.image("a").unwrap().coding.as_deref(), Some("png"));
    assert_eq!(set.image("a").unwrap().file, Path::new("a.png"));
    let again = manifest::write(dir.path(), set.head.clone(), set.images.clone()).unwrap_err();
    assert!(again.to_string().contains("is a dataset already"), "{again}");
}

#[test]
fn pixels_and_labels_share_a_frame() {
    let dir = tempfile::tempdir().unwrap();
    let set = made(dir.path());
    let native = set.load(set.image("a").unwrap(), Mpp::new(0.5).unwrap()).unwrap();
    assert_eq!((native.tile.width, native.tile.pixel(20, 30)), (64, [20, 30, 64]));
    let half = set.load(set.image("a").unwrap(), Mpp::new(1.0).unwrap()).unwrap();
    assert_eq!((half.tile.width, half.tile.height), (32, 32));
    let label = &half.labels[0];
    assert_eq!((label.kind, label.x, label.y), (Kind::Figure, 10.0, 15.0));
    assert_eq!(label.bbox, Some(Area::around(10.0, 15.0, 5.0)));
    assert_eq!(half.ignore[0], Area { x0: -0.5, y0: -0.5, x1: 1.5, y1: 1.5 });
    // The area mean of four pixels around (20, 30) at twice the um/px.
    assert_eq!(half.tile.pixel(10, 15)[2], 64);
}

#[test]
fn files_that_changed_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = made(dir.path());
    let a = set.image("a").unwrap();
    let file = dir.path().join("a.png");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, &bytes).unwrap();
    // The size is right, so opening works; reading does not.
    let set = Dataset::open(dir.path()).unwrap();
    assert!(matches!(set.load(a, Mpp::PAPER), Err(RegionsError::Changed { .. })));
    assert!(set.verify().unwrap_err().to_string().contains("its SHA-256"));
    bytes.push(0);
    fs::write(&file, &bytes).unwrap();
    let e = Dataset::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("its size") && e.contains("a.png"), "{e}");
    fs::remove_file(&file).unwrap();
    let e = Dataset::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("a.png"), "{e}");
}

#[test]
fn hostile_manifests_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path());
    let path = dir.path().join(FILE);
    let text = fs::read_to_string(&path).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in the manifest");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        Dataset::open(dir.path()).unwrap_err().to_string()
    };
    for (from, to, word) in [
        ("mithras-regions", "mithras-corpus", "`format` is not"),
        ("\"schema\": 1", "\"schema\": 2", "schema is 2"),
        ("\"name\": \"b\"", "\"name\": \"a\"", "two images are named `a`"),
        ("\"name\": \"b\"", "\"name\": \"\"", "image 2 (`"),
        ("\"class\": \"mimicker\"", "\"class\": \"nucleus\"", "unknown class `nucleus`"),
        ("\"kind\": \"figure\"", "\"kind\": \"other\"", "0 classes are of kind"),
        ("\"kind\": \"mimicker\"", "\"kind\": \"figure\"", "2 classes are of kind"),
        ("\"x\": 20.0", "\"x\": 2000.0", "is outside"),
        ("\"x\": 0.5", "\"x\": 0.0", "implausible"),
        ("15.0", "1500.0", "is empty or outside"),
        ("\"width\": 64", "\"width\": 0", "has no pixels"),
        ("\"x\": 20.0", "\"x\": 21.0", "changed after"),
        ("\"slide\": \"a\"", "\"slide\": \"\"", "no slide"),
        ("\"part\": \"train\"", "\"part\": \"both\"", "unknown variant"),
        ("\"exhaustive\": true", "\"exhaustive\": true, \"more\": 1", "unknown field"),
        ("{", "[", "no regions dataset"),
    ] {
        let e = refused(from, to);
        assert!(e.contains(word) && e.contains("regions.json"), "{from}: {e}");
    }
}

#[test]
fn a_test_part_stays_out_of_training() {
    let dir = tempfile::tempdir().unwrap();
    let mut images = made(dir.path()).images;
    images[1].part = Part::Test;
    let mut b = Builder::new("t", "test");
    images.into_iter().for_each(|i| b.push(Image { file: dir.path().join(&i.file), ..i }));
    let out = tempfile::tempdir().unwrap();
    let set = b.write(out.path()).unwrap();
    assert_eq!(set.training().images().len(), 1);
    assert_eq!(set.test().images()[0].name, "b");
    // One slide is left to train on: no folds.
    assert!(FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).is_err());
}

#[test]
fn folds_hold_slides_out_and_know_their_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let set = made(dir.path());
    let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
    assert_eq!(folds.folds, ["a", "b"]);
    let part = set.training();
    let fold = folds.regions(&part, 0).unwrap();
    assert_eq!((fold.train[0].name.as_str(), fold.validation[0].name.as_str()), ("b", "a"));
    assert_eq!(folds.all_regions(&part).unwrap().train.len(), 2);
    assert!(folds.regions(&part, 2).is_err());
    // Folds belong to slides: made for another dataset of the same slides they hold, too.
    let other = FoldManifest { dataset: "x".into(), ..folds.clone() };
    assert_eq!(other.regions(&part, 0).unwrap().validation[0].name, "a");
    let mut few = folds;
    few.groups[1].slides = vec!["c".into()];
    assert!(few.regions(&part, 0).is_err(), "slide b is in no group");
}

#[test]
fn merging_keeps_names_apart_and_refuses_copies() {
    let (one, two, out) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let a = made(one.path());
    png(&two.path().join("a.png"), 48);
    let mut b = Builder::new("other", "test");
    b.class("eosinophil", Kind::Other).unwrap();
    let given = Some(GivenMpp { mpp: Mpp::PAPER, source: MppSource::Table });
    let mut image = probe(&two.path().join("a.png"), given).unwrap().image("a", "c", "made");
    image.labels.push(Label::at("eosinophil", 5.0, 5.0));
    b.push(image);
    let b = b.write(two.path()).unwrap();
    let all = merge(&[a.clone(), b], out.path(), "all", "test").unwrap();
    let names: Vec<&str> = all.images().iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "other/a"]);
    assert_eq!(all.classes().len(), 3);
    all.verify().unwrap();
    let twice = tempfile::tempdir().unwrap();
    let e = merge(&[a.clone(), a], twice.path(), "t", "test").unwrap_err().to_string();
    assert!(e.contains("same bytes as `a`"), "{e}");
}

#[test]
fn an_image_without_um_per_px_is_refused_until_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["x.png", "deep/y.png", "masks/z.png"] {
        png(&dir.path().join(name), 40);
    }
    let read = folder_importer("he-folder").unwrap().read;
    let e = read(dir.path(), &Options { given: Given::default(), ..options() }).unwrap_err();
    assert!(e.to_string().contains("1 other files state no micrometres"), "{e}");
    let table = dir.path().join("mpp.csv");
    fs::write(&table, "image,mpp\ndeep/y.png,0.25\nx,0.5\n").unwrap();
    let given = Given { all: None, table: Given::read_table(&table).unwrap(), ..Given::default() };
    let found = read(dir.path(), &Options { given, ..options() }).unwrap();
    assert!(found.left_out[0].to_string().contains("masks"));
    let mpps: Vec<_> = found.dataset.images().iter().map(|i| i.mpp.x.get()).collect();
    assert_eq!(mpps, [0.25, 0.5]);
    // Some are for calibration by the beginning of their names; a name that nothing has is a mistake.
    png(&dir.path().join("deep/y.png"), 48);
    let kept = |name: &str| Options { calibration: vec![name.into()], ..options() };
    let found = read(dir.path(), &kept("y")).unwrap();
    let parts: Vec<_> = found.dataset.images().iter().map(|i| i.part).collect();
    assert_eq!(parts, [Part::Calibration, Part::Train]);
    let out = tempfile::tempdir().unwrap();
    let set = found.dataset.write(out.path()).unwrap();
    let names = |images: &[&Image]| images.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(set.training().images()), ["x.png"]);
    assert_eq!(
        (names(&set.calibration()), set.test().images().len()),
        (vec!["deep/y.png".into()], 0)
    );
    let folds = FoldManifest::of_regions(&set, Scheme::Whole, 0).unwrap();
    assert!(
        folds.to_string().contains("test and calibration data, in no fold: 1 group"),
        "{folds}"
    );
    assert!(read(dir.path(), &kept("q")).unwrap_err().to_string().contains("for calibration"));
    for bad in ["image,mpp\na,0\n", "image,mpp\na,0.5\na,0.25\n", "image,um\na,0.5\n"] {
        fs::write(&table, bad).unwrap();
        assert!(Given::read_table(&table).is_err(), "{bad}");
    }
}

fn import(format: &str, dir: &Path, file: &str, o: &Options) -> Result<import::Imported> {
    let read = importer(format).unwrap().read;
    let all = read(&dir.join(file), &ImportOptions::default()).unwrap();
    annotated(&all, dir, o)
}

#[test]
fn an_image_has_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("one.png"), 400);
    let feature = |image: &str| {
        format!(
            r#"{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [125, 125]}},
               "properties": {{{image}"classification": {{"name": "Mitosis"}}}}}}"#
        )
    };
    // A file next to the image that its features name must not give a second image without figures.
    let o = Options { exhaustive: Exhaustive::All, ..options() };
    let named = feature(r#""image": "one.png", "#);
    fs::write(d.join("one.geojson"), format!("[{named}]")).unwrap();
    let found = import("geojson", d, "one.geojson", &o).unwrap();
    let names = |i: &import::Imported| {
        i.dataset.images().iter().map(|i| (i.name.clone(), i.labels.len())).collect::<Vec<_>>()
    };
    assert_eq!(names(&found), [("one.png".into(), 1)]);
    let none = r#"{"type": "FeatureCollection", "features": []}"#;
    fs::write(d.join("one.geojson"), none).unwrap();
    assert_eq!(names(&import("geojson", d, "one.geojson", &o).unwrap()), [("one".into(), 0)]);

    // Two names for one file would be two images, in two folds for all that is known.
    fs::write(d.join("one.geojson"), format!("[{named}, {}]", feature(""))).unwrap();
    fs::write(d.join("t.csv"), "image,x,y,label\none.png,125,125,mf\none,325,45,mf\n").unwrap();
    for (format, file) in [("geojson", "one.geojson"), ("csv", "t.csv")] {
        let e = import(format, d, file, &o).unwrap_err().to_string();
        assert!(
            e.contains("`one`") && e.contains("`one.png`") && e.contains("one name each"),
            "{e}"
        );
    }
}

#[test]
fn a_misspelt_column_of_ami_br_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    fs::create_dir(d.join("Normal")).unwrap();
    image::RgbImage::new(128, 128).save(d.join("Normal/MIDOG21_6.png")).unwrap();
    let head =
        ",slide,dataset,uid,x,y,expert1_label,expert2_label,expert1_atypical,majority_atypical";
    let import = |head: &str| {
        let row = "0,002.tiff,MIDOG21,6,44,21,NMF ring shape,NMF metaphase,False,False";
        fs::write(d.join("labels.csv"), format!("{head}\n{row}\n")).unwrap();
        let found = (folder_importer("ami-br").unwrap().read)(d, &options()).unwrap();
        let votes = found.dataset.images()[0].labels[0].votes.len();
        (votes, found.unread_columns.map(|unread| unread.to_string()))
    };
    assert_eq!(import(head), (2, None));
    let (votes, unread) = import(&head.replace("expert2_label", "expert2_lable"));
    let unread = unread.unwrap();
    assert!(
        votes == 1 && unread.contains("`expert2_lable` (is `expert2_label` meant?)"),
        "{unread}"
    );
    let plan = import::RegionsPlan {
        format: "ami-br",
        file: d,
        images: None,
        annotations: &ImportOptions::default(),
        options: &options(),
        out: &d.join("set"),
    };
    let printed = plan.run().unwrap().to_string();
    let json = fs::read_to_string(d.join("set/import.json")).unwrap();
    assert!(printed.contains(&unread) && json.contains("\"expert2_lable\""), "{printed}{json}");
}

fn cut_options() -> CutOptions {
    CutOptions {
        mpp: Mpp::new(0.5).unwrap(),
        side: 32,
        given: options().given,
        encoding: crops::Encoding::Png,
        lenient: false,
        split: crops::Split::Train,
        header: crops::Header::default(),
    }
}

#[test]
fn images_of_one_slide_stay_in_one_fold() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let mut table = "file,x,y,label,slide\n".to_owned();
    for (n, slide) in ["S1", "S1", "S1", "S2", "S2", "S2"].iter().enumerate() {
        png(&d.join(format!("{n}.png")), 100 + n as u32);
        table += &format!("{n}.png,50,50,mf,{slide}\n");
    }
    fs::write(d.join("t.csv"), table).unwrap();
    let set = import("csv", d, "t.csv", &options()).unwrap().dataset.write(&d.join("set")).unwrap();
    let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
    assert_eq!(folds.folds, ["S1", "S2"]);
    let all = (importer("csv").unwrap().read)(&d.join("t.csv"), &ImportOptions::default()).unwrap();
    cut(&all, d, &d.join("crops"), &cut_options()).unwrap();
    let corpus = crops::Corpus::open(d.join("crops")).unwrap();
    assert_eq!((corpus.manifest().counts.crops, corpus.manifest().counts.slides), (6, 2));
    let (crops, regions) = (d.join("crops"), d.join("set"));
    // Either kind, and one against the other.
    for (a, b) in [(&crops, &crops), (&regions, &regions), (&crops, &regions)] {
        let e = crate::overlap::refuse_overlap(a, b).unwrap_err().to_string();
        assert!(e.contains("2 slides (S1, S2)"), "{e}");
    }
}

#[test]
fn an_image_of_another_folder_is_not_the_missing_one() {
    let dir = tempfile::tempdir().unwrap();
    let (d, images) = (dir.path(), dir.path().join("images"));
    png(&images.join("A/y.png"), 100);
    png(&images.join("B/x.png"), 101);
    let run = |names: &[&str]| {
        let rows: String = names.iter().map(|n| format!("{n},50,50,mf\n")).collect();
        fs::write(d.join("t.csv"), format!("image,x,y,label\n{rows}")).unwrap();
        let read = importer("csv").unwrap().read;
        let all = read(&d.join("t.csv"), &ImportOptions::default()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let crops = cut(&all, &images, out.path(), &cut_options()).map(|r| r.crops as usize);
        let regions = annotated(&all, &images, &options()).map(|i| i.dataset.images().len());
        let words = |e: &dyn std::fmt::Display| e.to_string();
        [crops.map_err(|e| words(&e)), regions.map_err(|e| words(&e))]
    };
    for e in run(&["A/y.png", "A/x.png"]) {
        let e = e.unwrap_err();
        assert!(e.contains("`A/x.png`") && e.contains("B/x.png is in another folder"), "{e}");
    }
    for names in [["A/y.png", "B/x.png"], ["y.png", "x.png"], ["old/A/y.png", "old/B/x.png"]] {
        assert_eq!(run(&names), [Ok(2), Ok(2)], "{names:?}");
    }
    // The folder itself by a way around, and a folder deeper below the one that is named.
    assert_eq!(run(&["../images/A/y.png", "../images/B/x.png"]), [Ok(2), Ok(2)]);
    png(&images.join("B/raw/z.png"), 102);
    assert_eq!(run(&["A/y.png", "B/z.png"]), [Ok(2), Ok(2)]);
    assert!(run(&["A/y.png", "A/z.png"]).iter().all(Result::is_err));
    // What is next to B is not in A.
    assert!(run(&["old/y.png", "old/B/x.png"]).iter().all(Result::is_err));
    // Folders that are elsewhere: file names decide.
    assert_eq!(run(&["p/y.png", "q/x.png"]), [Ok(2), Ok(2)]);
}

#[test]
fn repeated_annotations_are_left_out_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    let rows = "a.png,50,50,mf\na.png,50,50,mf\na.png,50.2,50,mf\na.png,50,50,imposter\n";
    fs::write(d.join("t.csv"), format!("image,x,y,label\n{rows}")).unwrap();
    let found = import("csv", d, "t.csv", &options()).unwrap();
    assert_eq!(found.left_out.len(), 1);
    assert_eq!(found.left_out[0].to_string(), "a.png, line 3: repeats line 2");
    let set = found.dataset.write(&d.join("set")).unwrap();
    assert_eq!(set.notes()["repeats"], "1 repeated annotation left out");
    // Places that differ, and other labels of one place, are kept.
    assert_eq!(set.images()[0].labels.len(), 3);
}

/// Both labels of one place are kept, as experts may differ; nobody should find that out in a training.
#[test]
fn places_with_two_labels_and_categories_that_are_left_out_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    let rows = "a.png,50,50,mf\na.png,50,50,imposter\na.png,9,9,Tumor region\n";
    fs::write(d.join("t.csv"), format!("image,x,y,label,type\n{}", rows.replace('\n', ",H&E\n")))
        .unwrap();
    let plan = import::RegionsPlan {
        format: "csv",
        file: &d.join("t.csv"),
        images: Some(d),
        annotations: &ImportOptions::default(),
        options: &options(),
        out: &d.join("set"),
    };
    let printed = plan.run().unwrap().to_string();
    assert!(printed.contains("1 `Tumor region` ignored"), "{printed}");
    assert!(printed.contains("1 places with two labels (kept)"), "{printed}");
    assert!(printed.contains("a.png: line 2 is `mf`, line 3 is `imposter`"), "{printed}");
    let json = fs::read_to_string(d.join("set/import.json")).unwrap();
    assert!(json.contains("\"contradictions\"") && json.contains("\"ignored\""), "{json}");
}

/// Both labels are kept, as two cells may touch; by the um/px of the image, which its table does not state.
#[test]
fn labels_of_a_dataset_that_may_be_of_one_cell_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    let table = "image,x,y,label,scaner\na.png,50,50,mf,x\na.png,65,50,mf,x\n";
    let run = |mpp: f64| import_table(d, table, mpp, &format!("set-{mpp}"));
    let (printed, json) = run(0.25);
    let line = "1 pair of labels is closer than 6.25 um (kept): first at t.csv, a.png: line 2 (`mf`) and line 3 \
                (`mf`), 3.75 um apart\n";
    assert!(printed.contains(line), "{printed}");
    assert!(printed.contains("1 column is not read: `scaner` (is `scanner` meant?)"), "{printed}");
    assert!(json.contains("\"close_labels\"") && json.contains("\"unread_columns\""), "{json}");
    let set = Dataset::open(d.join("set-0.25")).unwrap();
    assert_eq!(set.images()[0].labels.len(), 2);
    let (printed, json) = run(0.5);
    assert!(!printed.contains("closer") && !json.contains("close_labels"), "{printed}");
}

/// A box over the edge is kept with its middle outside, and that is printed.
#[test]
fn labels_whose_middle_is_outside_the_image_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    let run = |x0: u32| {
        let boxes = format!("a.png,{x0},50,{},90,mf\na.png,20,50,60,90,mf\n", x0 + 40);
        let table = format!("image,xmin,ymin,xmax,ymax,label\n{boxes}");
        import_table(d, &table, 0.25, &format!("set-{x0}"))
    };
    let (printed, json) = run(190);
    let words = "1 label has its middle outside the image (kept): first at a.png, (210, 70) px\n";
    assert!(printed.contains(words), "{printed}");
    assert!(json.contains("\"outside\""), "{json}");
    let (printed, json) = run(170);
    assert!(!printed.contains("outside") && !json.contains("outside"), "{printed}{json}");
}

/// Two names of one file are two images of two slides, which may be in two folds.
#[test]
fn one_file_under_two_names_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    png(&d.join("c.png"), 199);
    fs::copy(d.join("a.png"), d.join("b.png")).unwrap();
    let run = |second: &str| {
        let table = format!("image,x,y,label\na.png,50,50,mf\n{second}.png,90,90,mf\n");
        import_table(d, &table, 0.25, &format!("set-{second}")).0
    };
    let printed = run("b");
    assert!(
        printed.contains("1 image is the same file as another (kept): first b.png and a.png\n"),
        "{printed}"
    );
    assert!(!run("c").contains("same file"));
}

/// Other formats and codings have other bytes; of a large image some parts are compared.
#[test]
fn the_same_pixels_in_another_file_are_one_image() {
    for (side, more) in [(200, 199), (2100, 2101)] {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path();
        png(&d.join("a.png"), side);
        png(&d.join("c.png"), more);
        image::open(d.join("a.png")).unwrap().to_rgb8().save(d.join("b.tif")).unwrap();
        let head = "image,x,y,label\n";
        let run = |names: &[&str], set: &str| {
            let rows = names.iter().map(|name| format!("{name},50,50,mf\n"));
            let table = format!("{head}{}", rows.collect::<String>());
            let (printed, json) = import_table(d, &table, 0.25, set);
            (printed, json, Dataset::open(d.join(set)).unwrap())
        };
        let (printed, json, set) = run(&["a.png", "b.tif", "c.png"], "all");
        let words = "1 image has the same pixels as another (kept): first b.tif and a.png\n";
        assert!(printed.contains(words) && json.contains("same_pixels"), "{printed}{json}");
        assert!(!printed.contains("same file"), "{printed}");
        let folds = FoldManifest::of_regions(&set, Scheme::Stratified(2), 0).unwrap();
        let slides: Vec<Vec<&str>> =
            folds.groups.iter().map(|g| g.slides.iter().map(|s| bare(s)).collect()).collect();
        assert_eq!(slides, [vec!["a", "b"], vec!["c"]]);
        let (.., first) = run(&["a.png", "c.png"], "first");
        let (.., second) = run(&["b.tif"], "second");
        let merged = merge(&[first.clone(), second], &d.join("m"), "m", "test").unwrap_err();
        let words = "image `b.tif`: has the same pixels as `a.png`; leave one of them out";
        assert!(merged.to_string().contains(words), "{merged}");
        let e = crate::overlap::refuse_overlap(&d.join("first"), &d.join("second")).unwrap_err();
        assert!(e.to_string().ends_with("share the pixels of 1 image (a.png as b.tif)"), "{e}");
        let (.., other) = run(&["c.png"], "other");
        crate::overlap::refuse_overlap(&d.join("second"), &d.join("other")).unwrap();
        merge(&[Dataset::open(d.join("second")).unwrap(), other], &d.join("o"), "o", "t").unwrap();
        // A dataset of an earlier version is the same one.
        let path = d.join("first").join(FILE);
        let mut json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for image in json["images"].as_array_mut().unwrap() {
            assert!(image.as_object_mut().unwrap().remove("pixels").is_some());
        }
        fs::write(&path, json.to_string()).unwrap();
        assert_eq!(Dataset::open(d.join("first")).unwrap().digest(), first.digest());
    }
}

#[test]
fn crops_of_two_files_with_the_same_pixels_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("a.png"), 200);
    png(&d.join("d.png"), 199);
    image::open(d.join("a.png")).unwrap().to_rgb8().save(d.join("b.tif")).unwrap();
    fs::copy(d.join("a.png"), d.join("c.png")).unwrap();
    let table = "image,x,y,label\na.png,50,50,mf\nb.tif,90,90,mf\nc.png,70,70,mf\nd.png,70,70,mf\n";
    fs::write(d.join("t.csv"), table).unwrap();
    let all = importer("csv").unwrap().annotations(&d.join("t.csv"), &ImportOptions::default());
    let report = cut(&all.unwrap(), d, &d.join("out"), &cut_options()).unwrap();
    assert_eq!(report.same_pixels, ["b.tif and a.png", "c.png and a.png"]);
    let words = "2 images have the same pixels as another (kept): first b.tif and a.png\n";
    assert!(report.to_string().contains(words), "{report}");
}

#[test]
fn folders_that_are_taken_whole_take_no_meanings() {
    let dir = tempfile::tempdir().unwrap();
    let run = |annotations: &ImportOptions| {
        let plan = import::RegionsPlan {
            format: "icpr",
            file: dir.path(),
            images: None,
            annotations,
            options: &options(),
            out: &dir.path().join("set"),
        };
        plan.run().unwrap_err().to_string()
    };
    let mapping = crate::annotations::Mapping::parse(["odd=mf"]).unwrap();
    let assume = Some(crate::annotations::Class::MitoticFigure);
    for o in [
        ImportOptions { mapping, ..ImportOptions::default() },
        ImportOptions { assume, ..ImportOptions::default() },
    ] {
        assert!(run(&o).contains("taken whole"), "{}", run(&o));
    }
    assert!(!run(&ImportOptions::default()).contains("taken whole"));
}

#[test]
fn annotation_files_become_regions() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("one.png"), 400);
    png(&d.join("two.png"), 400);
    let midog = r#"{"images": [{"id": 1, "file_name": "one.png", "width": 400, "height": 400,
          "tumor_type": "breast", "patient": "p1"}, {"id": 2, "file_name": "two.png"},
          {"id": 3, "file_name": "absent.png"}],
        "categories": [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}],
        "annotations": [
          {"id": 1, "image_id": 1, "category_id": 1, "bbox": [100, 100, 150, 150]},
          {"id": 2, "image_id": 1, "category_id": 2, "bbox": [300, 20, 350, 70]}]}"#;
    fs::write(d.join("midog.json"), midog).unwrap();
    let coco = midog
        .replace("[100, 100, 150, 150]", "[100, 100, 50, 50]")
        .replace("[300, 20, 350, 70]", "[300, 20, 50, 50]");
    fs::write(d.join("coco.json"), coco).unwrap();
    fs::write(d.join("t.csv"), "image,x,y,label\none.png,125,125,mf\none.png,325,45,mimicker\n")
        .unwrap();
    let point = |x: u32, y: u32, name: &str| {
        format!(
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{x},{y}]}},
               "properties":{{"classification":{{"name":"{name}"}}}}}}"#
        )
    };
    let geo = format!(
        r#"{{"type":"FeatureCollection","features":[{},{}]}}"#,
        point(125, 125, "Mitosis"),
        point(325, 45, "non-mitosis")
    );
    fs::write(d.join("one.geojson"), geo).unwrap();
    let dot = |group: &str, x: u32, y: u32| {
        format!(
            r#"<Annotation Name="a" Type="Dot" PartOfGroup="{group}"><Coordinates>
               <Coordinate Order="0" X="{x}" Y="{y}"/></Coordinates></Annotation>"#
        )
    };
    let asap = format!(
        "<ASAP_Annotations><Annotations>{}{}</Annotations></ASAP_Annotations>",
        dot("mitosis", 125, 125),
        dot("non-mitosis", 325, 45)
    );
    fs::write(d.join("one.xml"), asap).unwrap();
    for (format, file, boxes, images) in [
        ("midog-json", "midog.json", true, 2),
        ("coco", "coco.json", true, 2),
        ("csv", "t.csv", false, 1),
        ("geojson", "one.geojson", false, 1),
        ("asap", "one.xml", false, 1),
    ] {
        let found = import(format, d, file, &options()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let set = found.dataset.write(out.path()).unwrap();
        assert_eq!(set.images().len(), images, "{format}");
        let one = &set.images()[0];
        let places: Vec<_> = one.labels.iter().map(|l| (l.kind, l.x, l.y)).collect();
        let expected = [(Kind::Figure, 125.0, 125.0), (Kind::Mimicker, 325.0, 45.0)];
        assert_eq!(places, expected, "{format}");
        assert_eq!(one.labels[0].bbox.is_some(), boxes, "{format}");
        assert!(one.exhaustive);
        // Listed without a label: taken, but it may contain figures.
        assert!(set.images().get(1).is_none_or(|i| !i.exhaustive), "{format}");
        assert_eq!(Dataset::open(out.path()).unwrap(), set);
    }
    let named = Options { positive: Some("mitosis".into()), ..options() };
    let found = import("midog-json", d, "midog.json", &named).unwrap();
    let one = &found.dataset.images()[0];
    assert_eq!((one.source.as_str(), one.patient.as_deref()), ("breast", Some("p1")));
    assert_eq!(one.labels[0].class, "mitosis");
    let all = Options { exhaustive: Exhaustive::All, ..options() };
    let found = import("midog-json", d, "midog.json", &all).unwrap();
    assert!(found.dataset.images().iter().all(|i| i.exhaustive));
}

#[test]
fn missing_images_and_labels_outside_are_refused_or_counted() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    png(&d.join("one.png"), 100);
    fs::write(d.join("t.csv"), "image,x,y,label\none.png,50,50,mf\nabsent.png,5,5,mf\n").unwrap();
    let e = import("csv", d, "t.csv", &options()).unwrap_err().to_string();
    assert!(e.contains("absent.png"), "{e}");
    let lenient = Options { lenient: true, ..options() };
    let found = import("csv", d, "t.csv", &lenient).unwrap();
    assert_eq!((found.dataset.images().len(), found.left_out.len()), (1, 1));
    fs::write(d.join("t.csv"), "image,x,y,label\none.png,50,500,mf\none.png,5,5,mf\n").unwrap();
    let e = import("csv", d, "t.csv", &options()).unwrap_err().to_string();
    assert!(e.contains("(50, 500) is outside"), "{e}");
    let found = import("csv", d, "t.csv", &lenient).unwrap();
    assert_eq!(found.dataset.images()[0].labels.len(), 1);
}

#[test]
fn the_icpr_folder() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let jpeg = |name: &str| {
        let path = d.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        image::RgbImage::from_pixel(200, 200, image::Rgb([9, 9, 9])).save(path).unwrap();
    };
    jpeg("frames/A00_02.jpg");
    jpeg("partial/A01_01.jpg");
    png(&d.join("negatives/A09_02_1_2.png"), 80);
    png(&d.join("negatives/H00_02_1_2.png"), 80);
    let head = "file,cx,cy,xmin,ymin,xmax,ymax,pixels";
    fs::write(d.join("mitoses.csv"), format!("{head}\nA00_02.jpg,49.5,60,40,50,59,70,9\n"))
        .unwrap();
    let partial = format!(
        "{head},status\nA01_01.jpg,20,20,10,10,30,30,9,recovered\n\
         A01_01.jpg,99,99,90,90,110,110,9,ignore\n"
    );
    fs::write(d.join("partial_mitoses.csv"), &partial).unwrap();
    let negatives = "patch,frame,scanner,x,y\nA00_02_7_8.png,A00_02,Aperio,7,8\nA09_02_1_2.png,A09_02,Aperio,1,2\n\
         H00_02_1_2.png,H00_02,Hamamatsu,1,2\n";
    fs::write(d.join("negatives.csv"), negatives).unwrap();
    let read = folder_importer("icpr").unwrap().read;
    let found = read(d, &options()).unwrap();
    let images = found.dataset.images();
    assert_eq!(images.len(), 3);
    assert!(found.left_out[0].to_string().contains("1 Hamamatsu"));
    let frame = &images[0];
    assert_eq!((frame.slide.as_str(), frame.exhaustive, frame.mpp.x.get()), ("A00", true, 0.2456));
    // A listed look-alike belongs to its frame and is not an image of its own.
    let of = |k: usize| (frame.labels[k].class.as_str(), frame.labels[k].x, frame.labels[k].y);
    assert_eq!((of(0), of(1)), (("mimicker", 7.5, 8.5), ("mitotic_figure", 50.0, 60.5)));
    assert!(frame.coding.as_deref().unwrap().starts_with("jpeg 4:"));
    assert_eq!(
        (images[1].exhaustive, images[1].labels.len(), images[1].ignore.len()),
        (true, 1, 1)
    );
    assert_eq!((images[2].labels[0].class.as_str(), images[2].labels[0].x), ("mimicker", 40.0));
    let table = [("Hamamatsu".to_owned(), Mpp::new(0.2273).unwrap())].into();
    let given = Given { all: None, table, ..Given::default() };
    let found = read(d, &Options { given, ..options() }).unwrap();
    assert_eq!(found.dataset.images()[3].slide, "A00");
    fs::write(d.join("partial_mitoses.csv"), partial.replace("ignore", "perhaps")).unwrap();
    assert!(read(d, &options()).unwrap_err().to_string().contains("perhaps"));
}

#[test]
fn real_collections() {
    if let Some(dir) = testkit::data("icpr2012") {
        let found = (folder_importer("icpr").unwrap().read)(&dir, &options()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let set = found.dataset.write(out.path()).unwrap();
        let c = set.counts();
        assert_eq!((c.images, c.exhaustive, c.slides, c.ignore), (75, 21, 3, 8));
        assert_eq!((c.classes["mitotic_figure"], c.classes["mimicker"]), (94, 180));
        let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
        assert_eq!(folds.folds, ["A00", "A01", "A02"]);
        let fold = folds.regions(&set.training(), 0).unwrap();
        assert!(fold.validation.iter().all(|i| i.slide == "A00" && i.exhaustive));
        assert!(fold.train.iter().all(|i| i.slide != "A00"));
        let scenes = crate::folds::FoldScenes::load(&set, &fold, Mpp::PAPER).unwrap();
        assert_eq!(scenes.validation.len(), fold.validation.len());
        assert!(scenes.frames.scenes.iter().all(|s| s.source != "A00"));
        assert_eq!(
            (scenes.frames.lookalikes.len(), scenes.frames.other_lookalikes.len()),
            (78, 42)
        );
        assert!(scenes.patches.is_empty() && scenes.unlabelled.is_empty());
        let region = set.load(set.image("A00_02").unwrap(), Mpp::PAPER).unwrap();
        assert_eq!((region.tile.width, region.tile.height), (2047, 2047));
    }
    if let Some(dir) = testkit::data("ami_br") {
        let found = (folder_importer("ami-br").unwrap().read)(&dir, &options()).unwrap();
        assert_eq!(found.unread_columns, None);
        let images = found.dataset.images();
        let of = |part| images.iter().filter(|i| i.part == part).count();
        assert_eq!((of(Part::Train), of(Part::Test)), (1721, 1999));
        assert!(images.iter().all(|i| i.figures().count() >= 1 || !i.labels.is_empty()));
        assert!(
            images.iter().filter(|i| i.part == Part::Test).all(|i| i.slide.starts_with("TUPAC16/"))
        );
    }
}

#[test]
fn real_folders_without_labels() {
    let count = |folder: &str, images: usize, patients: usize| {
        let Some(dir) = testkit::data(&format!("extra_he/{folder}")) else { return };
        let read = folder_importer("he-folder").unwrap().read;
        let without = Options { given: Given::default(), ..options() };
        assert!(read(&dir, &without).unwrap_err().to_string().contains("no micrometres"));
        let out = tempfile::tempdir().unwrap();
        let set = read(&dir, &options()).unwrap().dataset.write(out.path()).unwrap();
        let c = set.counts();
        assert_eq!((c.images, c.patients, c.exhaustive), (images, patients, 0), "{folder}");
        assert!(c.classes.is_empty());
        assert!(set.images().iter().all(|i| i.source == folder));
    };
    count("monuseg_1000", 44, 44);
    count("tcga_256", 240, 0);
    count("crc_polyps_224", 300, 0);
    // 656 nuclei masks are next to the images.
    count("consep_256", 656, 0);
}

fn number() -> impl Strategy<Value = f64> {
    (0.0f64..64.0).prop_map(|v| v)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_manifest_comes_back_equal(
        labels in prop::collection::vec((number(), number(), 0.001f64..90.0, any::<bool>()), 0..20),
        mpp in 0.1f64..0.9,
        patient in prop::option::of("[a-z]{1,4}"),
        name in "[ -~]{1,12}",
        exhaustive in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("i.png");
        png(&file, 64);
        let given = Some(GivenMpp { mpp: Mpp::new(mpp).unwrap(), source: MppSource::User });
        let mut image = probe(&file, given).unwrap().image(name, "s", "made");
        image.patient = patient;
        image.exhaustive = exhaustive;
        for (x, y, side, figure) in labels {
            let class = if figure { Builder::FIGURE } else { Builder::MIMICKER };
            image.labels.push(Label { bbox: Some(Area::around(x, y, side)), ..Label::at(class, x, y) });
            image.ignore.push(Area::around(x, y, side));
        }
        let mut b = Builder::new("t", "test");
        b.push(image);
        let set = b.write(dir.path()).unwrap();
        let read = Dataset::open(dir.path()).unwrap();
        prop_assert_eq!(&read, &set);
        prop_assert!(read.load(&read.images()[0], Mpp::new(1.0).unwrap()).is_ok());
    }
}

#[test]
fn a_table_of_resolutions_lists_which_of_its_names_no_image_has() {
    let mpp = |n| Mpp::new(n).unwrap();
    let table = [("007.tif".to_owned(), mpp(0.25)), ("8".to_owned(), mpp(0.5))];
    let given = Given { table: table.into(), ..Given::default() };
    let copy = given.clone();
    assert!(copy.lookup(&["007.tif"]).is_some() && copy.lookup(&["008.tif"]).is_none());
    let join = given.unmatched().unwrap().to_string();
    assert!(join.contains("'8'") && join.contains("'008.tif'"), "{join}");
    let all = Given { table: [("8".to_owned(), mpp(0.5))].into(), ..Given::default() };
    assert!(all.lookup(&["8.tif"]).is_some() && all.unmatched().is_none());
}
