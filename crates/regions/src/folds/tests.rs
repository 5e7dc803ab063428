use super::*;
use proptest::prelude::*;

fn unit<'a>(slide: &'a str, patient: Option<&'a str>, figures: u64) -> Unit<'a> {
    Unit {
        slide,
        patient,
        copy: None,
        pixels: None,
        strata: vec![Stratum { name: "s".into(), count: figures }],
        figures,
        test: false,
        validates: true,
    }
}

fn made(units: Vec<Unit<'_>>, scheme: Scheme) -> Result<FoldManifest> {
    FoldManifest::new(DataKind::Regions, "d", units, scheme, 7)
}

fn place(m: &FoldManifest, slide: &str) -> Place {
    m.groups.iter().find(|g| g.slides.iter().any(|s| s == slide)).unwrap().place
}

#[test]
fn a_patient_and_a_slide_stay_whole() {
    let units = vec![
        unit("a", Some("p"), 1),
        unit("b", Some("p"), 1),
        unit("b", Some("q"), 1),
        unit("c", None, 1),
        unit("d", None, 1),
    ];
    let m = made(units, Scheme::Stratified(2)).unwrap();
    assert_eq!(m.groups.len(), 3);
    assert_eq!((m.groups[2].name.as_str(), m.groups[2].slides.len()), ("p", 2));
    assert_eq!(m.groups[2].patients, ["p", "q"]);
    assert_eq!(place(&m, "c"), place(&m, "d"));
}

fn sought<'a>(slide: &'a str, patient: Option<&'a str>) -> Sought<'a> {
    Sought { slide, patient, content: [None; 2] }
}

#[test]
fn images_of_another_dataset_are_found_by_slide_and_patient() {
    let units = vec![
        unit("001.tiff", Some("p"), 1),
        unit("002.tiff", None, 1),
        unit("003.tiff", None, 1),
        Unit { validates: false, ..unit("patch", None, 1) },
    ];
    let m = made(units, Scheme::LeaveOneOut).unwrap();
    let of = |items: &[Sought<'_>]| m.find_places(items.iter().copied()).map_err(|e| e.to_string());
    let own = |s| place(&m, s);
    // Other suffixes, a slide known by its patient alone, and one that trains everywhere.
    let found = of(&[sought("002", None), sought("x", Some("p")), sought("patch", None)]).unwrap();
    assert_eq!(found, [own("002.tiff"), own("001.tiff"), Place::Train]);
    let strange =
        of(&[sought("002", None), sought("2", None), sought("y", Some("q"))]).unwrap_err();
    assert!(strange.contains("2 of 3 slides are in no fold: 2, y"), "{strange}");
    let torn = of(&[sought("002", Some("p"))]).unwrap_err();
    assert!(torn.contains("belongs to the groups `002.tiff` and `p`"), "{torn}");
    // The same pixels under two slides, which the dataset of the folds did not have.
    let twin = |slide| Sought { slide, patient: None, content: [None, Some("same")] };
    let copied = of(&[twin("002"), twin("003")]).unwrap_err();
    assert!(copied.contains("hold the same image"), "{copied}");
    let seen = ["001", "002.tiff", "patch", "elsewhere"];
    let leaked = |slides: &[&'static str], patients: &[&'static str]| -> usize {
        let names = (slides.iter().copied(), patients.iter().copied());
        (0..3).map(|k| m.leaked(k, names.0.clone(), names.1.clone()).len()).sum()
    };
    assert_eq!((leaked(&[], &["p", "001"]), leaked(&["p"], &[])), (1, 0));
    assert_eq!(leaked(&seen, &[]), 2, "each where it is held out, and what all train on nowhere");
}

fn crops(slides: &[&str]) -> Splittable {
    let meta = |s: &&str| {
        crops::CropMeta::new(
            format!("{s}.png"),
            crops::Label::MitoticFigure,
            *s,
            mitosis::Mpp::PAPER,
            (8, 8),
        )
    };
    Splittable::Crops(slides.iter().map(meta).collect(), slides.join("+"))
}

#[test]
fn a_published_split_becomes_folds() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("folds.csv");
    let sets = [crops(&["001.tiff", "002.tiff", "003.tiff", "004.tiff"]), crops(&["005.tiff"])];
    let run = |text: &str| {
        std::fs::write(&table, text).unwrap();
        FoldManifest::given(&sets, &table).map_err(|e| e.to_string())
    };
    let m = run("image,fold\n1,10\n2,9\n3,10\n4,test\n5,train\n").unwrap();
    assert_eq!(
        (m.folds.as_slice(), m.kind),
        (["9".to_owned(), "10".to_owned()].as_slice(), DataKind::Several)
    );
    let places = ["001.tiff", "002.tiff", "003.tiff", "004.tiff", "005.tiff"].map(|s| place(&m, s));
    let (a, b) = (Place::Fold(0), Place::Fold(1));
    assert_eq!(places, [b, a, b, Place::Test, Place::Train]);
    let path = dir.path().join("folds.json");
    m.write(&path).unwrap();
    assert_eq!(FoldManifest::read(&path).unwrap(), m);
    let short = run("image,fold\n1,0\n2,1\n3,0\n").unwrap_err();
    assert!(short.contains("2 groups are not in the table, e.g. `004.tiff`"), "{short}");
    assert!(short.contains("not in the table ('004.tiff', '005.tiff')"), "{short}");
    let one = run("image,fold\n1,0\n2,0\n3,0\n4,0\n5,0\n").unwrap_err();
    assert!(one.contains("1 folds"), "{one}");
}

#[test]
fn a_table_of_folds_lists_slides_or_cases_whose_names_may_be_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("folds.csv");
    // Slide 1 is of patient 3, slide 2 of 1 and slide 3 of 2; slide 4 is of a patient without a name.
    let meta = |(slide, patient): (&str, Option<&str>)| crops::CropMeta {
        patient: patient.map(str::to_owned),
        ..crops::CropMeta::new(
            format!("{slide}.png"),
            crops::Label::MitoticFigure,
            slide,
            mitosis::Mpp::PAPER,
            (8, 8),
        )
    };
    let three = [("1", Some("3")), ("2", Some("1")), ("3", Some("2"))];
    let run = |items: &[(&str, Option<&str>)], text: &str| {
        std::fs::write(&table, text).unwrap();
        let sets = [Splittable::Crops(items.iter().copied().map(meta).collect(), "d".into())];
        let made = FoldManifest::given(&sets, &table).map_err(|e| e.to_string())?;
        Ok::<_, String>(items.iter().map(|i| place(&made, i.0)).collect::<Vec<_>>())
    };
    let [a, b, c] = [0, 1, 2].map(Place::Fold);
    assert_eq!(run(&three, "slide,fold\n1,a\n2,b\n3,c\n").unwrap(), [a, b, c]);
    assert_eq!(run(&three, "case,fold\n1,a\n2,b\n3,c\n").unwrap(), [c, a, b]);
    let named = [("s1", Some("3")), ("s2", Some("1")), ("4", None)];
    assert_eq!(run(&named, "image,fold\n1,a\n3,b\n4,c\n").unwrap(), [b, a, c]);
    let mixed = [three[0], three[1], three[2], ("4", None), ("x", Some("P"))];
    let unclear = run(&mixed, "image,fold\n1,a\n2,b\n3,c\n4,a\nP,b\n").unwrap_err();
    assert!(unclear.contains("`1` of the table is a slide and another patient"), "{unclear}");
    assert!(
        unclear.contains("list slides alone, or patients alone in a column `case`"),
        "{unclear}"
    );
    let slides = run(&mixed, "slide,fold\n1,a\n2,b\n3,c\n4,a\nx,b\n").unwrap();
    assert_eq!(slides, [a, b, c, a, b]);
    let named = [&three[..], &[("x", Some("P"))]].concat();
    let patients = run(&named, "case,fold\n1,a\n2,b\n3,c\nP,b\n").unwrap();
    assert_eq!(patients, [c, a, b, b]);
}

#[test]
fn names_with_and_without_a_suffix_are_one_slide() {
    // The last part of a barcode belongs to the name.
    let names = ["a", "a.png", "b.TIFF", "b", "TCGA-1.x", "TCGA-1.y"];
    let m = made(names.map(|s| unit(s, None, 1)).to_vec(), Scheme::LeaveOneOut).unwrap();
    assert_eq!(m.folds, ["TCGA-1.x", "TCGA-1.y", "a", "b"]);
    assert_eq!((place(&m, "a"), place(&m, "b")), (place(&m, "a.png"), place(&m, "b.TIFF")));
    let k = m.number("a").unwrap();
    for name in ["a", "a.png", "a.svs"] {
        assert_eq!(m.side(k, name).unwrap(), crops::Split::Validation, "{name}");
    }
    assert_eq!(m.leaked(k, ["a.svs", "b", "TCGA-1"].into_iter(), [].into_iter()), ["a.svs"]);
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("folds.csv");
    std::fs::write(&table, "image,fold\na.png,0\nb.svs,1\n").unwrap();
    let sets = [crops(&["a", "b"]), crops(&["a.png", "b.png"])];
    let given = FoldManifest::given(&sets, &table).unwrap();
    assert_eq!((place(&given, "a"), place(&given, "b.png")), (Place::Fold(0), Place::Fold(1)));
    // An older manifest that took them for two slides still opens, and what it holds out stays held out.
    let mut old = m.clone();
    old.groups[2].slides = vec!["a".into()];
    let twin = Group {
        name: "a.png".into(),
        slides: vec!["a.png".into()],
        place: Place::Train,
        ..m.groups[2].clone()
    };
    old.groups.push(twin);
    old.digest = old.own_digest();
    let path = dir.path().join("folds.json");
    old.write(&path).unwrap();
    let old = FoldManifest::read(&path).unwrap();
    assert_eq!(old.leaked(k, ["a.png"].into_iter(), [].into_iter()), ["a.png"]);
}

#[test]
fn the_folder_of_a_fold_is_inside_the_runs() {
    let units = ["MIDOG21/001", "../x", "/x", "a"].map(|s| unit(s, None, 1)).to_vec();
    let m = made(units, Scheme::LeaveOneOut).unwrap();
    let folder = |fold| m.folder(Path::new("runs"), fold).map_err(|e| e.to_string());
    assert_eq!(folder("MIDOG21/001").unwrap(), Path::new("runs/MIDOG21/001"));
    for outside in ["../x", "/x", "a/../..", "."] {
        let e = folder(outside).unwrap_err();
        assert!(e.contains("cannot be a folder; give the folds other names"), "{outside}: {e}");
    }
    let units = ["MIDOG21/001", "x", "y", "a"].map(|s| unit(s, None, 1)).to_vec();
    let m = made(units, Scheme::LeaveOneOut).unwrap();
    for (fold, at) in [("x", "runs/x"), ("y", "runs/y")] {
        assert_eq!(m.folder(Path::new("runs"), fold).unwrap(), Path::new(at));
    }
}

#[test]
fn copies_stay_together() {
    let twin = |slide| Unit { copy: Some("x"), ..unit(slide, None, 1) };
    let m = made(vec![twin("a"), twin("b"), unit("c", None, 1)], Scheme::LeaveOneOut).unwrap();
    assert_eq!(m.folds, ["a", "c"]);
    assert_eq!(place(&m, "a"), place(&m, "b"));
}

#[test]
fn what_cannot_validate_trains_everywhere_and_tests_are_in_no_fold() {
    let units = vec![
        unit("a", None, 3),
        unit("b", None, 3),
        Unit { validates: false, ..unit("patch", None, 9) },
        Unit { test: true, ..unit("secret", None, 9) },
    ];
    let m = made(units, Scheme::LeaveOneOut).unwrap();
    assert_eq!(m.folds, ["a", "b"]);
    assert_eq!((place(&m, "patch"), place(&m, "secret")), (Place::Train, Place::Test));
    assert_eq!(m.side(0, "a").unwrap(), crops::Split::Validation);
    assert_eq!(m.side(1, "a").unwrap(), crops::Split::Train);
    assert_eq!(m.side(0, "patch").unwrap(), crops::Split::Train);
    assert_eq!(m.side(0, "secret").unwrap(), crops::Split::Test);
    assert!(m.side(2, "a").is_err() && m.side(0, "unknown").is_err());
    let rows: Vec<_> = m.counts().into_iter().map(|c| (c.name, c.figures)).collect();
    let row = |n: &str, f| (n.to_owned(), f);
    assert_eq!(rows, [row("a", 3), row("b", 3), row("train", 9), row("test", 9)]);
}

#[test]
fn what_cannot_validate_is_held_out_too_but_never_alone() {
    let tissue = |slide| Unit {
        validates: false,
        strata: vec![Stratum { name: "tissue".into(), count: 9 }],
        ..unit(slide, None, 0)
    };
    let frames = ["a", "b", "c"].map(|s| unit(s, None, 1));
    let others = ["t0", "t1", "t2", "t3", "t4", "t5"].map(tissue);
    let m = made(others.into_iter().chain(frames).collect(), Scheme::Stratified(3)).unwrap();
    for k in 0..3 {
        let of = |names: &[&str]| names.iter().filter(|s| place(&m, s) == Place::Fold(k)).count();
        assert_eq!(of(&["a", "b", "c"]), 1, "fold {k}");
        assert_eq!(of(&["t0", "t1", "t2", "t3", "t4", "t5"]), 2, "fold {k}");
    }
}

#[test]
fn refuses_what_is_not_a_split() {
    let e = made(vec![unit("a", None, 1)], Scheme::LeaveOneOut).unwrap_err().to_string();
    assert!(e.contains("at least 2 folds"), "{e}");
    let half =
        vec![Unit { test: true, ..unit("a", None, 1) }, unit("a", None, 1), unit("b", None, 1)];
    let e = made(half, Scheme::LeaveOneOut).unwrap_err().to_string();
    assert!(e.contains("partly test or calibration data"), "{e}");
    let few = vec![unit("a", None, 1), unit("b", None, 1)];
    assert!(made(few, Scheme::Stratified(3)).is_err());
}

#[test]
fn a_changed_manifest_and_a_leak_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("folds.json");
    let m = made(vec![unit("a", None, 1), unit("b", None, 1)], Scheme::LeaveOneOut).unwrap();
    m.write(&path).unwrap();
    assert_eq!(FoldManifest::read(&path).unwrap(), m);

    let refused = |m: &FoldManifest| {
        m.write(&path).unwrap();
        FoldManifest::read(&path).unwrap_err().to_string()
    };
    let mut changed = m.clone();
    changed.groups[0].place = Place::Train;
    assert!(refused(&changed).contains("changed after"));
    // Signed again, as somebody might who edits on purpose.
    changed.digest = changed.own_digest();
    assert!(refused(&changed).contains("holds nothing out"));
    let mut leak = m.clone();
    leak.groups[1].slides.push("a".into());
    leak.digest = leak.own_digest();
    assert!(refused(&leak).contains("slide `a` belongs to the groups `a` and `b`"));
    let mut far = m.clone();
    far.groups[1].place = Place::Fold(9);
    far.digest = far.own_digest();
    assert!(refused(&far).contains("fold 9 does not exist"));
    std::fs::write(&path, "{\"format\": \"mithras-split\"}").unwrap();
    assert!(FoldManifest::read(&path).unwrap_err().to_string().contains("mithras-folds"));
}

proptest! {
    #[test]
    fn items_are_held_out_where_their_own_slide_and_patient_are_whatever_other_numbers_are_the_same(
        slides in prop::collection::btree_map(1u8..14, prop::option::of(1u8..14), 4..13),
    ) {
        let names: Vec<(String, Option<String>)> =
            slides.iter().map(|(s, p)| (s.to_string(), p.map(|p| p.to_string()))).collect();
        let units = names.iter().map(|(s, p)| unit(s, p.as_deref(), 1)).collect();
        let Ok(m) = made(units, Scheme::Stratified(2)) else { return Ok(()) };
        let sought = names.iter().map(|(s, p)| sought(s, p.as_deref()));
        let places = m.find_places(sought).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for ((slide, patient), found) in names.iter().zip(places) {
            let group = m.groups.iter().find(|g| g.slides.contains(slide)).unwrap();
            prop_assert_eq!(found, group.place);
            for k in 0..2 {
                let held = group.place == Place::Fold(k);
                let (s, p) = (std::iter::once(slide.as_str()), patient.as_deref().into_iter());
                let leaked = m.leaked(k, s, p).len();
                prop_assert_eq!(leaked, if held { 1 + usize::from(patient.is_some()) } else { 0 });
            }
        }
    }

    #[test]
    fn every_group_has_one_place_and_folds_share_the_figures(
        sizes in prop::collection::vec((0u8..12, 0u8..6, 0u64..9), 6..60),
        k in 2usize..5,
        seed in 0u64..50,
    ) {
        let names: Vec<(String, Option<String>, u64)> = sizes
            .iter()
            .map(|&(s, p, n)| (format!("s{s}"), (p > 0).then(|| format!("p{s}-{p}")), n))
            .collect();
        let units: Vec<Unit> =
            names.iter().map(|(s, p, n)| unit(s, p.as_deref(), *n)).collect();
        let slides = names.iter().map(|n| &n.0).collect::<std::collections::BTreeSet<_>>().len();
        let m = FoldManifest::new(DataKind::Crops, "d", units, Scheme::Stratified(k), seed);
        prop_assert_eq!(m.is_ok(), slides >= k);
        let Ok(m) = m else { return Ok(()) };
        // Each patient has one slide here, so slides are the groups.
        prop_assert_eq!(m.groups.len(), slides);
        let total: u64 = m.groups.iter().map(|g| g.figures).sum();
        prop_assert_eq!(total, names.iter().map(|n| n.2).sum::<u64>());
        let counts = m.counts();
        prop_assert_eq!(counts.len(), k);
        let largest = m.groups.iter().map(|g| g.figures).max().unwrap_or(0);
        let most = counts.iter().map(|c| c.figures).max().unwrap_or(0);
        let least = counts.iter().map(|c| c.figures).min().unwrap_or(0);
        prop_assert!(most - least <= largest.max(1), "{counts:?}, largest {largest}");
        let text = serde_json::to_vec(&m).unwrap();
        prop_assert_eq!(serde_json::from_slice::<FoldManifest>(&text).unwrap(), m);
    }
}
