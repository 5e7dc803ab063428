use std::fs;
use std::path::Path;

use super::*;
use crate::fold::Fold;
use mitosis::RgbTile;

fn drawn(dir: &Path, classes: &[&str], sources: usize, side: u32) {
    for (c, class) in classes.iter().enumerate() {
        for s in 0..sources {
            let folder = dir.join(class).join(format!("s{s}"));
            fs::create_dir_all(&folder).unwrap();
            for k in 0..2_u8 {
                let grey = [(40 * c) as u8, (10 * s) as u8, k];
                let image = image::RgbImage::from_pixel(side, side, image::Rgb(grey));
                image.save(folder.join(format!("{k}.png"))).unwrap();
            }
        }
    }
}

#[test]
fn folders_of_classes_become_folds_of_whole_sources() {
    let dir = tempfile::tempdir().unwrap();
    drawn(dir.path(), &["a", "b"], 7, 12);
    let set = TrainingSet::open(Task::Folder, dir.path()).unwrap();
    assert_eq!((set.classes(), set.items().len()), (&["a".into(), "b".into()][..], 28));
    let folds = Folds::new(&set, 3, 1).unwrap();
    assert_eq!(folds, Folds::new(&set, 3, 1).unwrap(), "seeded");
    assert_ne!(folds.holding_folds(), Folds::new(&set, 3, 2).unwrap().holding_folds());
    let mut held = 0;
    for k in 0..3 {
        let Fold { train, validation } = folds.fold(k).unwrap();
        let of = |side: &[usize]| -> std::collections::BTreeSet<String> {
            side.iter().map(|&i| set.items()[i].source.clone()).collect()
        };
        assert!(of(&train).is_disjoint(&of(&validation)));
        assert_eq!(train.len() + validation.len(), 28);
        held += validation.len();
    }
    assert_eq!(held, 28);
    assert!(folds.fold(3).is_err());
    let path = dir.path().join("folds.json");
    folds.write(&path).unwrap();
    assert_eq!(Folds::read(&path, &set).unwrap(), folds);
}

#[test]
fn a_manifest_with_a_slide_on_both_sides_or_a_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drawn(dir.path(), &["a", "b"], 4, 12);
    let set = TrainingSet::open(Task::Folder, dir.path()).unwrap();
    let path = dir.path().join("folds.json");
    let good = Folds::new(&set, 2, 1).unwrap();
    good.write(&path).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replacen("\"seed\": 1", "\"seed\": 9", 1)).unwrap();
    let refused = Folds::read(&path, &set).unwrap_err().to_string();
    assert!(refused.contains("changed after it was written"), "{refused}");
    good.write(&path).unwrap();
    fs::remove_file(dir.path().join("a/s0/0.png")).unwrap();
    let other = TrainingSet::open(Task::Folder, dir.path()).unwrap();
    assert!(Folds::read(&path, &other).is_ok(), "folds belong to slides, not to their images");
    fs::create_dir(dir.path().join("a/s9")).unwrap();
    fs::copy(dir.path().join("a/s1/1.png"), dir.path().join("a/s9/new.png")).unwrap();
    let other = TrainingSet::open(Task::Folder, dir.path());
    assert!(other.is_err() || Folds::read(&path, &other.unwrap()).is_err(), "s9 is in no fold");
}

#[test]
fn bad_sets_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |f: &dyn Fn(&Path)| {
        let at = tempfile::tempdir_in(dir.path()).unwrap();
        drawn(at.path(), &["a", "b"], 3, 12);
        f(at.path());
        TrainingSet::open(Task::Folder, at.path()).unwrap_err().to_string()
    };
    let twice = refused(&|d| {
        fs::copy(d.join("a/s0/0.png"), d.join("b/s1/copy.png")).map(drop).unwrap();
    });
    assert!(twice.contains("same image under two labels"), "{twice}");
    // Without one of them the folder is read.
    let at = tempfile::tempdir_in(dir.path()).unwrap();
    drawn(at.path(), &["a", "b"], 3, 12);
    fs::copy(at.path().join("a/s0/0.png"), at.path().join("b/s1/copy.png")).unwrap();
    assert!(TrainingSet::open(Task::Folder, at.path()).is_err());
    fs::remove_file(at.path().join("b/s1/copy.png")).unwrap();
    TrainingSet::open(Task::Folder, at.path()).unwrap();
    let size = refused(&|d| {
        image::RgbImage::new(9, 12).save(d.join("a/s0/z.png")).unwrap();
    });
    assert!(size.contains("9x12 px") && size.contains("12x12"), "{size}");
    let broken = refused(&|d| fs::write(d.join("a/s0/z.png"), b"no image").unwrap());
    assert!(broken.contains("z.png"), "{broken}");
    let one = refused(&|d| fs::remove_dir_all(d.join("b")).unwrap());
    assert!(one.contains("two or more"), "{one}");

    // A class of only one source cannot be on both sides.
    let at = tempfile::tempdir_in(dir.path()).unwrap();
    drawn(at.path(), &["a", "b", "c"], 3, 12);
    ["c/s1", "c/s2"].iter().for_each(|s| fs::remove_dir_all(at.path().join(s)).unwrap());
    let set = TrainingSet::open(Task::Folder, at.path()).unwrap();
    let missing = Folds::new(&set, 3, 1).unwrap_err();
    assert!(matches!(&missing, TaskError::MissingClass { class, .. } if class == "c"), "{missing}");

    let table = "slide,dataset,uid,expert1_label,majority_atypical\n1.tif,MIDOG21,4,odd,Perhaps\n";
    fs::write(dir.path().join("labels.csv"), table).unwrap();
    for (task, word) in [(Task::AmiBr, "Perhaps"), (Task::AmiMorph, "odd")] {
        let unknown = TrainingSet::open(task, dir.path()).unwrap_err();
        assert!(unknown.to_string().contains(&format!("unknown label `{word}`")), "{unknown}");
    }
    // An expert's word that nobody knows is refused too, not left out of the votes.
    let table = "slide,dataset,uid,expert1_label,expert2_label,majority_atypical\n\
                 1.tif,MIDOG21,4,NMF metaphase,NMF strange,False\n";
    fs::write(dir.path().join("labels.csv"), table).unwrap();
    let unknown = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap_err();
    assert!(unknown.to_string().contains("unknown label `NMF strange`"), "{unknown}");
}

#[test]
fn copies_of_an_image_stay_on_one_side() {
    let dir = tempfile::tempdir().unwrap();
    drawn(dir.path(), &["a", "b"], 6, 12);
    fs::copy(dir.path().join("a/s0/0.png"), dir.path().join("a/s5/copy.png")).unwrap();
    let set = TrainingSet::open(Task::Folder, dir.path()).unwrap();
    let folds = Folds::new(&set, 3, 4).unwrap();
    let fold = |source: &str| {
        folds.holding_folds()[set.items().iter().position(|i| i.source == source).unwrap()]
    };
    assert_eq!(fold("s0"), fold("s5"));
}

#[test]
fn the_real_figures_split_evenly_and_the_test_part_is_another_type() {
    let Some(dir) = testkit::data("ami_br") else { return };
    let set = TrainingSet::open(Task::AmiMorph, &dir).unwrap();
    assert_eq!(set.items().len(), 1721);
    assert!(set.items().iter().all(|i| i.source.starts_with("MIDOG21/")));
    let folds = Folds::new(&set, 3, 1).unwrap();
    for class in set.classes() {
        let mut held = [0_usize; 3];
        let items = set.items().iter().zip(folds.holding_folds());
        items
            .filter(|(i, _)| set.classes()[i.class] == *class)
            .for_each(|(_, k)| held[k.unwrap()] += 1);
        let share = held.iter().sum::<usize>() as f64 / 3.0;
        let far = held.iter().map(|&n| (n as f64 - share).abs()).fold(0.0, f64::max);
        assert!(far <= (0.15 * share).max(3.0), "{class}: {held:?}");
    }
    // The label is expert 1's for morphology, and the majority of three for atypia.
    assert!(set.items().iter().all(|i| i.votes.len() == 2 && i.votes[0] == i.class));
    let atypia = TrainingSet::open(Task::AmiBr, &dir).unwrap();
    let majority = |v: &[usize]| usize::from(v.iter().sum::<usize>() >= 2);
    assert!(atypia.items().iter().all(|i| i.votes.len() == 3 && majority(&i.votes) == i.class));
    // Two experts named a morphology, three decided whether the figure is atypical.
    let of = Task::AmiMorph.coarser().unwrap().of;
    for (fine, coarse) in set.items().iter().zip(atypia.items()) {
        let Coarse { class, votes } = fine.coarse.as_ref().unwrap();
        assert_eq!((&fine.file, *class, votes), (&coarse.file, coarse.class, &coarse.votes));
        let named: Vec<usize> = fine.votes.iter().map(|&v| of[v]).collect();
        assert_eq!(named, votes[..2]);
    }
    let test = TestSet::open(Task::AmiBr, dir.parent().unwrap()).unwrap();
    let atypical = test.items().iter().filter(|i| i.class == 1).count();
    assert_eq!((test.items().len(), atypical), (1999, 428));
}

#[test]
fn the_benchmarks_split_shares_no_slide() {
    let Some(dir) = testkit::data("ami_br") else { return };
    let train = TrainingSet::open(Task::AmiBrBenchmark, &dir).unwrap();
    let test = TestSet::open(Task::AmiBrBenchmark, &dir).unwrap();
    let sources = |items: &[Item]| -> std::collections::BTreeSet<String> {
        items.iter().map(|i| i.source.clone()).collect()
    };
    let atypical = |items: &[Item]| items.iter().filter(|i| i.class == 1).count();
    assert_eq!((train.items().len(), sources(train.items()).len()), (2894, 146));
    assert_eq!((test.items().len(), atypical(test.items())), (826, 184));
    assert!(sources(train.items()).is_disjoint(&sources(test.items())));
    assert_eq!(train.task().positive(), Some("atypical"));

    // Without the list the split does not exist.
    let bare = tempfile::tempdir().unwrap();
    fs::copy(dir.join("labels.csv"), bare.path().join("labels.csv")).unwrap();
    let e = TrainingSet::open(Task::AmiBrBenchmark, bare.path()).unwrap_err().to_string();
    assert!(e.contains("benchmark_split.csv"), "{e}");
}

#[test]
fn a_dataset_of_crops_is_read_by_part() {
    use crops::Encoding;
    use crops::{CorpusWriter, CropMeta, Header, Label, Layout, Split};
    let dir = tempfile::tempdir().unwrap();
    let header = Header { name: "t".into(), builder: "test".into(), ..Header::default() };
    let mut writer = CorpusWriter::create(dir.path(), header, Layout::default()).unwrap();
    for i in 0..24_u8 {
        let label = [Label::MitoticFigure, Label::Mimicker, Label::Unlabeled][usize::from(i % 3)];
        let slide = format!("s{}", i / 6);
        let meta = CropMeta {
            cohort: "c".into(),
            split: if i >= 18 { Split::Test } else { Split::Train },
            ..CropMeta::new(format!("{i}.png"), label, slide, mitosis::Mpp::PAPER, (8, 8))
        };
        let png = Encoding::Png.encode(&RgbTile::filled(8, 8, [i, 0, 9])).unwrap();
        writer.push(meta, png).unwrap();
    }
    writer.finish().unwrap();
    let train = TrainingSet::open(Task::Crops, dir.path()).unwrap();
    let test = TestSet::open(Task::Crops, dir.path()).unwrap();
    assert_eq!(train.classes(), ["mimicker", "mitotic_figure"]);
    assert_eq!((train.items().len(), test.items().len()), (12, 4));
    assert_eq!((train.items()[0].class, train.items()[0].source.as_str()), (1, "s0"));
    assert!(test.items().iter().all(|i| i.source == "s3"));
    assert_eq!(train.images()[1].pixel(0, 0), [1, 0, 9]);
    assert_eq!(Folds::new(&train, 3, 0).unwrap().holding_folds().len(), 12);

    // The dataset's one manifest of folds serves as it is.
    let corpus = crops::Corpus::open(dir.path()).unwrap();
    let scheme = crate::folds::Scheme::Stratified(3);
    let one = crate::folds::FoldManifest::of_crops(&corpus, scheme, 0).unwrap();
    let path = dir.path().join("folds.json");
    one.write(&path).unwrap();
    let folds = Folds::read(&path, &train).unwrap();
    assert_eq!((folds.count(), folds.holding_folds().len()), (3, 12));
    for (i, k) in train.items().iter().zip(folds.holding_folds()) {
        assert_eq!(one.side(k.unwrap(), &i.slide).unwrap(), Split::Validation, "{}", i.file);
    }
    // So does one of other data on the same slides, and none of other slides.
    let other = crate::folds::FoldManifest { dataset: "another".into(), ..one };
    assert_eq!(Folds::apply(&train, other.clone()).unwrap().holding_folds(), folds.holding_folds());
    let mut strange = other;
    strange.groups.iter_mut().for_each(|g| g.slides = vec![format!("x{}", g.name)]);
    let refused = Folds::apply(&train, strange).unwrap_err().to_string();
    assert!(refused.contains("3 of 3 slides are in no fold: s0, s1, s2"), "{refused}");
}

#[test]
fn a_test_part_may_lack_a_class_of_the_model_and_has_no_other() {
    let dir = tempfile::tempdir().unwrap();
    drawn(dir.path(), &["train/a", "train/b", "train/c", "test/b", "test/c"], 1, 12);
    let train = TrainingSet::open(Task::Folder, dir.path()).unwrap();
    let test = TestSet::of_classes(Task::Folder, dir.path(), train.classes()).unwrap();
    assert_eq!((test.classes(), test.items().len()), (train.classes(), 4));
    assert!(test.items().iter().all(|i| i.file.starts_with(&test.classes()[i.class])));
    fs::remove_dir_all(dir.path().join("test/b")).unwrap();
    let one = TestSet::of_classes(Task::Folder, dir.path(), train.classes()).unwrap();
    assert_eq!(one.items().iter().map(|i| i.class).collect::<Vec<_>>(), [2, 2]);
    drawn(dir.path(), &["test/d"], 1, 12);
    let refused = TestSet::of_classes(Task::Folder, dir.path(), train.classes()).unwrap_err();
    assert!(refused.to_string().contains("`d` is not one of the classes a, b, c"), "{refused}");
}

#[test]
fn folds_of_crops_hold_out_their_own_slides_where_patients_have_the_numbers_of_other_slides() {
    use crops::{CorpusWriter, CropMeta, Encoding, Header, Label, Layout};
    let dir = tempfile::tempdir().unwrap();
    let mut writer =
        CorpusWriter::create(dir.path(), Header::default(), Layout::default()).unwrap();
    // Slide 1 is of patient 12, slide 2 of patient 11, ...
    for (i, class) in (0..24_u8).zip([Label::Mimicker, Label::MitoticFigure].into_iter().cycle()) {
        let slide = i / 2 + 1;
        let meta = CropMeta {
            patient: Some((13 - slide).to_string()),
            ..CropMeta::new(
                format!("{i}.png"),
                class,
                slide.to_string(),
                mitosis::Mpp::PAPER,
                (8, 8),
            )
        };
        let tile = RgbTile::filled(8, 8, [i, 0, 9]);
        writer.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let set = TrainingSet::open(Task::Crops, dir.path()).unwrap();
    let made = Folds::new(&set, 3, 0).unwrap();
    // An older version wrote the patients of a task as slides.
    let mut old = made.manifest().clone();
    old.groups.iter_mut().for_each(|g| g.slides = std::mem::take(&mut g.patients));
    for folds in [made.clone(), Folds::apply(&set, old).unwrap()] {
        assert_eq!(folds.holding_folds(), made.holding_folds());
        for (item, k) in set.items().iter().zip(folds.holding_folds()) {
            let group = made.manifest().groups.iter().find(|g| g.slides == [item.slide.clone()]);
            assert_eq!(group.unwrap().place, crate::folds::Place::Fold(k.unwrap()), "{item:?}");
        }
    }
}
