//! Cutting, folds, merging, interchange, repeated images, audit.

use bytes::Bytes;
use crops::Encoding;
use crops::audit::{
    BoxSize, Entry, Key, Package, Question, ReviewLog, SampleOptions, StratumBy, Verdict, sample,
    tally,
};
use crops::contradiction::repeated_images;
use crops::inspect::{histograms, montage};
use crops::schema::pixel_hash;
use crops::transform::{Interchange, Scores, interchange, merge};
use crops::{Columns, Corpus, CorpusWriter, CropMeta, Header, Label, Layout, Split};
use mitosis::{Mpp, RgbTile, Score};
use regions::Given;
use regions::annotations::{ImportOptions, importer};
use regions::cut::{CutOptions, cut};
use regions::folds::{FoldManifest, Place, Scheme};
use regions::overlap::refuse_overlap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tempfile::tempdir;

struct Draw {
    slide: String,
    patient: Option<String>,
    cohort: &'static str,
    label: Label,
    s_cls: Option<f32>,
    split: Split,
    grey: u8,
}

fn draw(i: usize) -> Draw {
    Draw {
        slide: format!("s{}", i % 12),
        patient: Some(format!("p{}", (i % 12) / 2)),
        cohort: ["A", "B"][(i % 12) / 6],
        label: if i.is_multiple_of(3) { Label::MitoticFigure } else { Label::Mimicker },
        s_cls: Some(if i.is_multiple_of(3) {
            0.5 + 0.004 * (i % 100) as f32
        } else {
            0.004 * (i % 100) as f32
        }),
        split: Split::Unassigned,
        grey: 0,
    }
}

fn build(dir: &Path, draws: impl IntoIterator<Item = Draw>) -> Corpus {
    let header = Header { name: "t".into(), builder: "test".into(), ..Header::default() };
    let layout = Layout { rows_per_group: 16, crops_per_shard: 64 };
    let mut w = CorpusWriter::create(dir, header, layout).unwrap();
    for (i, d) in draws.into_iter().enumerate() {
        let mut tile = RgbTile::filled(8, 8, [d.grey; 3]);
        tile.data[..3].copy_from_slice(&[(i % 256) as u8, (i / 256) as u8, 7]);
        if d.grey > 0 {
            tile = RgbTile::filled(8, 8, [d.grey; 3]);
        }
        let meta = CropMeta {
            s_seg: d.s_cls.map(|_| Score::new(0.5).unwrap()),
            s_cls: d.s_cls.map(|s| Score::new(s).unwrap()),
            patient: d.patient,
            cohort: d.cohort.into(),
            source: "test".into(),
            split: d.split,
            pixels: Some(pixel_hash(&tile)),
            ..CropMeta::new(format!("{}/{i}.png", d.slide), d.label, d.slide, Mpp::PAPER, (8, 8))
        };
        w.push(meta, Bytes::from(Encoding::Png.encode(&tile).unwrap())).unwrap();
    }
    w.finish().unwrap();
    Corpus::open(dir).unwrap()
}

fn metas(c: &Corpus) -> Vec<CropMeta> {
    c.crops(Columns::Meta).unwrap().map(|c| c.unwrap().meta).collect()
}

fn split(corpus: &Corpus, k: usize) -> Result<FoldManifest, String> {
    FoldManifest::of_crops(corpus, Scheme::Stratified(k), 7).map_err(|e| e.to_string())
}

#[test]
fn folds_keep_patients_whole_and_shares_even() {
    let dir = tempdir().unwrap();
    let corpus = build(&dir.path().join("c"), (0..600).map(draw));
    let made = split(&corpus, 3).unwrap();
    assert_eq!(made, split(&corpus, 3).unwrap());
    assert_eq!(made.groups.len(), 6);
    for fold in 0..3 {
        let mut sides: BTreeMap<String, BTreeSet<Split>> = BTreeMap::new();
        let mut held = 0;
        for m in metas(&corpus) {
            let side = made.side(fold, &m.slide).unwrap();
            held += usize::from(side == Split::Validation);
            sides.entry(m.patient.unwrap()).or_default().insert(side);
        }
        assert!(sides.values().all(|s| s.len() == 1));
        assert_eq!(held, 200);
        // Patients 0-2 are cohort A, 3-5 cohort B: one of each per fold.
        let names: Vec<&str> = made
            .groups
            .iter()
            .filter(|g| g.place == Place::Fold(fold))
            .map(|g| g.name.as_str())
            .collect();
        assert_eq!((names.iter().filter(|p| **p < "p3").count(), names.len()), (1, 2));
    }
    let file = dir.path().join("folds.json");
    made.write(&file).unwrap();
    assert_eq!(FoldManifest::read(&file).unwrap(), made);
}

#[test]
fn test_data_enters_no_fold_and_leaks_are_refused() {
    let dir = tempdir().unwrap();
    let marked = |i: usize| {
        let d = draw(i);
        let test = d.patient.as_deref() == Some("p5");
        Draw { split: if test { Split::Test } else { Split::Unassigned }, ..d }
    };
    let corpus = build(&dir.path().join("a"), (0..120).map(marked));
    let made = split(&corpus, 2).unwrap();
    let tests: Vec<_> = made.groups.iter().filter(|g| g.place == Place::Test).collect();
    assert_eq!((tests.len(), tests[0].name.as_str()), (1, "p5"));
    let held = metas(&corpus);
    let held = held.iter().filter(|m| m.split == Split::Test);
    assert!(held.map(|m| made.side(0, &m.slide).unwrap()).all(|s| s == Split::Test));

    let torn =
        |i: usize| Draw { split: if i == 0 { Split::Test } else { Split::Train }, ..draw(i) };
    let torn = build(&dir.path().join("b"), (0..60).map(torn));
    assert!(split(&torn, 2).unwrap_err().contains("partly test"));
    // Patients that share slides are one group, as far as the chain goes.
    let chained = |i: usize| Draw { patient: Some(format!("p{i}")), ..draw(i) };
    let chained = build(&dir.path().join("c"), (0..24).map(chained));
    let whole = split(&chained, 2).unwrap();
    assert!(whole.groups.iter().all(|g| g.slides.len() == 1 && g.patients.len() > 1));
    assert!(split(&corpus, 9).is_err() && split(&corpus, 1).is_err());
}

#[test]
fn overlap_is_found_by_slide_patient_and_pixels() {
    let dir = tempdir().unwrap();
    let one = |name: &str, slide: &str, patient: &str, grey: u8| {
        let d = Draw { slide: slide.into(), patient: Some(patient.into()), grey, ..draw(0) };
        build(&dir.path().join(name), [d])
    };
    let base = one("a", "s1", "p1", 10);
    refuse_overlap(base.dir(), one("b", "s2", "p2", 20).dir()).unwrap();
    for (name, other, word) in [
        ("c", ("s1", "p2", 20), "1 slides (s1)"),
        ("f", ("s1.PNG", "p2", 20), "1 slides (s1)"),
        ("d", ("s2", "p1", 20), "1 patients (p1)"),
        ("e", ("s2", "p2", 10), "1 images"),
    ] {
        let other = one(name, other.0, other.1, other.2);
        let e = refuse_overlap(base.dir(), other.dir()).unwrap_err();
        assert!(e.to_string().contains(word), "{e}");
    }
}

#[test]
fn merging_keeps_everything() {
    let dir = tempdir().unwrap();
    let a = build(&dir.path().join("a"), (0..50).map(draw));
    let other = |i| Draw { grey: 100 + i as u8, ..draw(i) };
    let b = build(&dir.path().join("b"), (0..30).map(other));
    let m = merge(&[a, b], &dir.path().join("m"), Header::default()).unwrap();
    assert_eq!(m.counts.crops, 80);
    let merged = Corpus::open(dir.path().join("m")).unwrap();
    merged.verify().unwrap();
    assert_eq!(metas(&merged).iter().filter(|m| m.path.starts_with("1/")).count(), 30);
}

#[test]
fn an_image_of_two_corpora_is_not_merged_and_one_that_repeats_in_its_own_is_kept() {
    let dir = tempdir().unwrap();
    let grey = |grey: u8, slide: &str| Draw { grey, slide: slide.into(), ..draw(0) };
    let a = build(&dir.path().join("a"), [grey(1, "s1"), grey(2, "s1"), grey(2, "s2")]);
    let b = build(&dir.path().join("b"), [grey(3, "s3"), grey(2, "s4")]);
    let c = build(&dir.path().join("c"), [grey(4, "s5")]);
    let out = dir.path().join("m");
    assert_eq!(merge(&[a.clone(), c], &out, Header::default()).unwrap().counts.crops, 4);
    let out = dir.path().join("n");
    let refused = merge(&[a.clone(), b], &out, Header::default()).unwrap_err().to_string();
    assert!(refused.contains("crop `s4/1.png`: has the same pixels as `s1/1.png`"), "{refused}");
    assert!(refused.contains("leave one of them out") && !out.exists(), "{refused}");
    let b = build(&dir.path().join("without"), [grey(3, "s3")]);
    assert_eq!(merge(&[a, b], &out, Header::default()).unwrap().counts.crops, 4);
}

#[test]
fn a_slide_with_and_without_a_suffix_counts_once() {
    let dir = tempdir().unwrap();
    let one = |name: &str, slide: &str, grey: u8| {
        build(&dir.path().join(name), [Draw { slide: slide.into(), grey, ..draw(0) }])
    };
    let parts = [one("a", "s1", 1), one("b", "s1.tiff", 2)];
    let made = merge(&parts, &dir.path().join("m"), Header::default()).unwrap();
    assert_eq!(made.counts.slides, 1);
    Corpus::open(dir.path().join("m")).unwrap().verify().unwrap();
    // Corpora of earlier versions counted two.
    let manifest = dir.path().join("m/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let of = |slides: u8| text.replace("\"slides\": 1", &format!("\"slides\": {slides}"));
    for (slides, valid) in [(2, true), (3, false)] {
        fs::write(&manifest, of(slides)).unwrap();
        let merged = Corpus::open(dir.path().join("m")).unwrap();
        assert_eq!(merged.verify().is_ok(), valid, "{slides}");
    }
}

#[test]
fn interchange_swaps_the_least_certain_labels() {
    let dir = tempdir().unwrap();
    let corpus = build(&dir.path().join("c"), (0..300).map(draw));
    let what = Interchange { count: Some(5), ..Interchange::default() };
    let r = interchange(&corpus, &dir.path().join("x"), what, None).unwrap();
    assert_eq!((r.figures_swapped, r.mimickers_swapped), (5, 5));
    assert!((r.percent - 10.0 / 3.0).abs() < 1e-9);
    let swapped = Corpus::open(dir.path().join("x")).unwrap();
    swapped.verify().unwrap();
    let (before, after) = (metas(&corpus), metas(&swapped));
    let changed: Vec<&CropMeta> =
        before.iter().zip(&after).filter(|(a, b)| a.label != b.label).map(|(a, _)| a).collect();
    assert_eq!(changed.len(), 10);
    // Brute force: the five lowest figures above 0.5 and the five highest mimickers.
    let mut figures: Vec<f32> = before
        .iter()
        .filter(|m| m.label == Label::MitoticFigure)
        .map(|m| m.s_cls.unwrap().get())
        .filter(|&s| s > 0.5 && s <= 0.6)
        .collect();
    let mut mimickers: Vec<f32> = before
        .iter()
        .filter(|m| m.label == Label::Mimicker)
        .map(|m| m.s_cls.unwrap().get())
        .collect();
    figures.sort_by(f32::total_cmp);
    mimickers.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(r.figure_scores, Some([figures[0], figures[4]]));
    assert_eq!(r.mimicker_scores, Some([mimickers[4], mimickers[0]]));
    assert!(
        changed
            .iter()
            .filter(|m| m.label == Label::MitoticFigure)
            .all(|m| m.s_cls.unwrap().get() <= figures[4])
    );
    let too_many = Interchange { count: Some(1000), ..Interchange::default() };
    assert!(interchange(&corpus, &dir.path().join("y"), too_many, None).is_err());
    let no_scores = build(&dir.path().join("n"), (0..9).map(|i| Draw { s_cls: None, ..draw(i) }));
    let refused = interchange(&no_scores, &dir.path().join("z"), Interchange::default(), None);
    assert!(refused.unwrap_err().to_string().contains("has no s_cls"));
}

#[test]
fn labels_given_by_experts_are_interchanged_by_held_out_scores() {
    let dir = tempdir().unwrap();
    let corpus = build(&dir.path().join("c"), (0..300).map(|i| Draw { s_cls: None, ..draw(i) }));
    let before = metas(&corpus);
    let score = |i: usize| f64::from(u32::try_from(i * 37 % 301).unwrap()) / 301.0;
    let table = dir.path().join("predictions.csv");
    let write = |rows: &mut dyn Iterator<Item = String>| {
        let rows: String = rows.collect();
        fs::write(&table, format!("file,truth,p_mitotic_figure\n{rows}")).unwrap();
        Scores::read(&table, &corpus)
    };
    let row = |i: usize, p: f64| format!("{},x,{p}\n", before[i].path);
    let scores = write(&mut (0..300).map(|i| row(i, score(i)))).unwrap();
    let what = Interchange { up_to: 1.0, count: Some(4), ..Interchange::default() };
    let unscored = interchange(&corpus, &dir.path().join("x"), what, None).unwrap_err().to_string();
    assert!(unscored.contains("give scores of held-out crops"), "{unscored}");
    let r = interchange(&corpus, &dir.path().join("x"), what, Some(&scores)).unwrap();
    let after = metas(&Corpus::open(dir.path().join("x")).unwrap());
    // Brute force: the four lowest figures above 0.5 and the four highest mimickers.
    let ranked = |label: Label| {
        let all = (0..300).filter(|&i| before[i].label == label);
        let mut all: Vec<usize> =
            all.filter(|&i| label == Label::Mimicker || score(i) > 0.5).collect();
        all.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
        all
    };
    let (figures, mimickers) = (ranked(Label::MitoticFigure), ranked(Label::Mimicker));
    let mut expected: Vec<usize> =
        figures[..4].iter().chain(&mimickers[mimickers.len() - 4..]).copied().collect();
    expected.sort_unstable();
    let changed = (0..300).filter(|&i| before[i].label != after[i].label);
    assert_eq!(changed.collect::<Vec<_>>(), expected);
    assert_eq!((r.figures_swapped, r.mimickers_swapped), (4, 4));
    assert!(
        (after[7].s_cls.unwrap().get() - score(7) as f32).abs() < 1e-6,
        "the copy keeps scores"
    );

    let fault = |rows: &mut dyn Iterator<Item = String>| write(rows).unwrap_err().to_string();
    let lacking = fault(&mut (1..300).map(|i| row(i, score(i))));
    assert!(lacking.contains(&before[0].path) && lacking.contains("predictions.csv"), "{lacking}");
    let bare = |i: usize| format!("{},x,0.5\n", before[i].path.trim_end_matches(".png"));
    let other = fault(&mut (0..300).map(bare));
    assert!(other.contains("would match"), "{other}");
    let twice = fault(&mut (0..300).chain([3]).map(|i| row(i, score(i))));
    let advice = "is scored twice; give the predictions of held-out crops, not those of a test";
    assert!(twice.contains(advice), "{twice}");
    write(&mut (0..300).map(|i| row(i, score(i)))).unwrap();
    let too_large = fault(&mut (0..300).map(|i| row(i, score(i) * 2.0)));
    assert!(too_large.contains("predictions.csv"), "{too_large}");
}

#[test]
fn equal_pictures_with_two_labels_are_listed() {
    let dir = tempdir().unwrap();
    let corpus = build(
        &dir.path().join("c"),
        (0..40).map(|i| Draw {
            grey: match i {
                3 | 4 => 50,
                6 | 9 => 60,
                _ => 0,
            },
            ..draw(i)
        }),
    );
    let found = repeated_images(&corpus).unwrap();
    assert_eq!(found.len(), 2);
    let bad: Vec<_> = found.iter().filter(|f| f.contradicts).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].crops[0].path, "s3/3.png");
    let h = histograms(&corpus).unwrap();
    assert_eq!(h.s_cls["mimicker"].iter().sum::<u64>(), 26);
    let m = montage(&corpus, 5, 16, 1).unwrap();
    assert_eq!((m.width, m.height), (5 * 20 + 4, 2 * 20 + 4));
}

fn options(side: u32, lenient: bool) -> CutOptions {
    CutOptions {
        mpp: Mpp::PAPER,
        side,
        given: Given { all: Some(Mpp::PAPER), ..Given::default() },
        encoding: Encoding::Png,
        lenient,
        split: Split::Train,
        header: Header { name: "cut".into(), builder: "test".into(), ..Header::default() },
    }
}

#[test]
fn crops_are_cut_around_the_centre_and_missing_images_are_named() {
    let dir = tempdir().unwrap();
    let images = dir.path().join("images/deep");
    fs::create_dir_all(&images).unwrap();
    let mut tile = RgbTile::filled(60, 40, [0; 3]);
    for y in 0..40 {
        for x in 0..60 {
            let i = 3 * (y * 60 + x);
            tile.data[i..i + 3].copy_from_slice(&[x as u8, y as u8, 9]);
        }
    }
    fs::write(images.join("a.png"), Encoding::Png.encode(&tile).unwrap()).unwrap();
    let csv = dir.path().join("t.csv");
    fs::write(
        &csv,
        "image,xmin,ymin,xmax,ymax,label\na.png,20,10,30,20,mf\na.png,52,0,60,8,hard negative\n",
    )
    .unwrap();
    let read =
        |file: &Path| (importer("csv").unwrap().read)(file, &ImportOptions::default()).unwrap();
    let out = dir.path().join("out");
    let report = cut(&read(&csv), &dir.path().join("images"), &out, &options(16, false)).unwrap();
    assert_eq!(report.crops, 2);
    let corpus = Corpus::open(&out).unwrap();
    corpus.verify().unwrap();
    let crops: Vec<_> = corpus.crops(Columns::All).unwrap().map(Result::unwrap).collect();
    let first = crops[0].decode().unwrap();
    assert_eq!(first.pixel(0, 0), [25 - 8, 15 - 8, 9]);
    assert_eq!(first.pixel(8, 8), [25, 15, 9]);
    let b = crops[0].meta.bbox.unwrap();
    assert_eq!((b.x0, b.y0, b.x1, b.y1), (3.0, 3.0, 13.0, 13.0));
    assert_eq!(crops[1].meta.label, Label::Mimicker);
    // White beyond the edge: the second centre is (56, 4).
    assert_eq!(crops[1].decode().unwrap().pixel(15, 0), [255; 3]);

    fs::write(&csv, "image,x,y,label\na.png,20,10,mf\ngone.png,5,5,mf\n").unwrap();
    let e =
        cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o2"), &options(16, false));
    assert!(e.unwrap_err().to_string().contains("gone.png"));
    let r =
        cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o3"), &options(16, true))
            .unwrap();
    assert_eq!((r.crops, r.missing_images.len()), (1, 1));
    fs::write(images.join("gone.png"), b"no picture").unwrap();
    assert!(
        cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o4"), &options(16, false))
            .is_err()
    );
    let r =
        cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o5"), &options(16, true))
            .unwrap();
    assert_eq!((r.crops, r.failed.len()), (1, 1));
    fs::write(&csv, "image,x,y,label\na.png,20,10,mf\na.png,900,5,mf\n").unwrap();
    let e =
        cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o7"), &options(16, false));
    assert!(e.unwrap_err().to_string().contains("outside the image (60 x 40 px)"));
    let unstated = CutOptions { given: Given::default(), ..options(16, false) };
    let e = cut(&read(&csv), &dir.path().join("images"), &dir.path().join("o6"), &unstated)
        .unwrap_err();
    assert!(e.to_string().contains("they have to be given"), "{e}");
}

#[test]
fn ami_br_patches_become_a_corpus_with_its_test_part_marked() {
    let Some(labels) = testkit::data("ami_br/labels.csv") else { return };
    let all = (importer("ami-br").unwrap().read)(&labels, &ImportOptions::default()).unwrap();
    let dir = tempdir().unwrap();
    let report = cut(&all, labels.parent().unwrap(), dir.path(), &options(128, false)).unwrap();
    assert_eq!(report.crops, 3_720);
    let corpus = Corpus::open(dir.path()).unwrap();
    let c = &corpus.manifest().counts;
    assert_eq!((c.subtypes["atypical"], c.subtypes["typical"]), (832, 2_888));
    assert_eq!((c.splits["test"], c.splits["train"]), (1_999, 1_721));
    let folds = split(&corpus, 3).unwrap();
    for group in &folds.groups {
        let part = if group.place == Place::Test { "TUPAC16/" } else { "MIDOG21/" };
        assert!(group.slides.iter().all(|s| s.starts_with(part)), "{group:?}");
    }
}

fn sampling(seed: u64) -> SampleOptions {
    SampleOptions {
        // The drawn crops are small, and about figures larger ones are asked for.
        question: Question::Tumour,
        by: StratumBy::Label,
        per_cohort: BTreeMap::from([("mitotic_figure".into(), 6), ("mimicker".into(), 4)]),
        seed,
        allow_short: false,
    }
}

#[test]
fn an_audit_is_stratified_seeded_and_blind() {
    let dir = tempdir().unwrap();
    let corpus = build(&dir.path().join("c"), (0..200).map(draw));
    let key = sample(&corpus, &dir.path().join("a"), &sampling(3)).unwrap();
    assert_eq!(key.items.len(), 20);
    assert_eq!(key.strata.iter().map(|s| s.drawn).collect::<Vec<_>>(), [4, 6, 4, 6]);
    assert_eq!(key.strata.iter().map(|s| s.pool).sum::<u64>(), 200);
    assert_eq!(key, sample(&corpus, &dir.path().join("b"), &sampling(3)).unwrap());
    assert_ne!(key.audit, sample(&corpus, &dir.path().join("d"), &sampling(4)).unwrap().audit);

    let package = dir.path().join("a/package");
    let shown = fs::read_to_string(package.join("audit.json")).unwrap();
    for secret in ["mimicker", "mitotic_figure\"}", "s_cls", "0.5", "cohort", "s0", "p0", "test"] {
        assert!(!shown.contains(secret), "{secret} is in the package");
    }
    let names: BTreeSet<String> = fs::read_dir(package.join("images"))
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 20);
    assert!(names.iter().all(|n| n.len() == 20));
    let order: Vec<Label> = key.items.iter().map(|i| i.meta.label).collect();
    assert!(order.windows(2).filter(|w| w[0] != w[1]).count() > 2, "labels are in blocks");

    let short = SampleOptions {
        per_cohort: BTreeMap::from([("mitotic_figure".into(), 600)]),
        ..sampling(0)
    };
    let e = sample(&corpus, &dir.path().join("e"), &short).unwrap_err().to_string();
    assert!(e.contains("A mitotic_figure") && e.contains("unless what there is may do"), "{e}");
    let none = SampleOptions { per_cohort: BTreeMap::from([("both".into(), 6)]), ..sampling(0) };
    assert!(sample(&corpus, &dir.path().join("f"), &none).is_err());
    assert!(sample(&corpus, &dir.path().join("a"), &sampling(3)).is_err());
}

#[test]
fn verdicts_survive_crashes_and_can_be_undone() {
    let dir = tempdir().unwrap();
    let corpus = build(&dir.path().join("c"), (0..200).map(draw));
    let key: Key = sample(&corpus, &dir.path().join("a"), &sampling(3)).unwrap();
    let package = dir.path().join("a/package");
    Package::read(&package).unwrap();
    let entry = |verdict, size, elsewhere| Some(Entry { verdict, size, elsewhere });
    {
        let mut log = ReviewLog::open(&package, &key.audit, "anna").unwrap();
        log.set(&key.items[0].id, entry(Verdict::Confirmed, Some(BoxSize::Px50), false)).unwrap();
        log.set(&key.items[1].id, entry(Verdict::Unsure, None, false)).unwrap();
        log.set(&key.items[1].id, entry(Verdict::NotConfirmed, None, true)).unwrap();
        log.set(&key.items[2].id, entry(Verdict::Unsure, None, false)).unwrap();
        assert_eq!(log.undo().unwrap().as_ref(), Some(&key.items[2].id));
        assert!(ReviewLog::open(&package, &key.audit, "anna").is_err(), "two writers");
    }
    let file = package.join("reviews/anna.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"audit\":\"")).unwrap();
    let mut log = ReviewLog::open(&package, &key.audit, "anna").unwrap();
    assert_eq!(log.entries().len(), 2);
    // The cut line is not an entry, and is removed before the next one is added.
    let again = log.entries()[&key.items[0].id];
    log.set(&key.items[0].id, Some(again)).unwrap();
    let added = fs::read_to_string(&file).unwrap();
    let added = added.strip_prefix(&whole).unwrap();
    assert!(added.starts_with('{') && added.matches("audit").count() == 1, "{added}");
    assert!(added.ends_with('\n'), "{added}");
    let rows = tally(&key, log.entries()).unwrap();
    let total =
        |f: fn(&crops::audit::ReviewCounts) -> u64| rows.iter().map(|r| f(&r.counts)).sum::<u64>();
    assert_eq!(
        (total(|c| c.confirmed), total(|c| c.not_confirmed), total(|c| c.unsure)),
        (1, 1, 0)
    );
    assert_eq!(
        (total(|c| c.boxes[1]), total(|c| c.elsewhere), total(|c| c.elsewhere_asked)),
        (1, 1, 1)
    );
    for bad in ["", "../x", "a b", ".hidden"] {
        assert!(ReviewLog::open(&package, &key.audit, bad).is_err(), "{bad}");
    }
    assert!(ReviewLog::open(&package, "other", "anna").is_err());
    let mut stray = log.entries().clone();
    let open = key.items.iter().find(|i| !stray.contains_key(&i.id)).unwrap();
    let upper = format!("{}.PNG", open.id);
    stray.insert(upper.clone(), stray[&key.items[0].id]);
    let refused = tally(&key, &stray).unwrap_err().to_string();
    for words in
        [&*format!("'{upper}'"), "only in the key", "would match without the file's ending"]
    {
        assert!(refused.contains(words), "{words}: {refused}");
    }
}
