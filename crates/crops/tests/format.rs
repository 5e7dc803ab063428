//! The corpus on disk: what is written is read back, in order, and damage is noticed.

use bytes::Bytes;
use crops::{
    Columns, Corpus, CorpusError, CorpusWriter, Crop, CropBox, CropMeta, Header, Label, Layout,
    Split, StreamOptions,
};
use mitosis::{Mpp, Point, Score};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

fn crop(i: usize) -> Crop {
    let some = i.is_multiple_of(3);
    Crop {
        meta: CropMeta {
            path: format!("s{}/{i}.png", i % 7),
            label: Label::ALL[i % 3],
            subtype: some.then(|| "atypical".into()),
            s_seg: some.then(|| Score::new(0.25).unwrap()),
            s_cls: i.is_multiple_of(2).then(|| Score::new(0.75).unwrap()),
            bbox: some.then(|| CropBox::centred(128, 50)),
            centroid: (!i.is_multiple_of(5)).then(|| Point::new(i as f64 + 0.5, -3.0)),
            slide: format!("s{}", i % 7),
            patient: some.then(|| format!("p{}", i % 4)),
            cohort: ["A", "B"][i % 2].into(),
            mpp: Mpp::new(0.25).unwrap(),
            width: 128,
            height: 128,
            source: "test".into(),
            split: [Split::Train, Split::Test, Split::Unassigned][i % 3],
            votes: some.then(|| r#"{"a":1}"#.into()),
            pixels: some.then_some([i as u8; 32]),
        },
        image: Bytes::from(vec![i as u8; 10 + i]),
    }
}

fn header() -> Header {
    Header { name: "test".into(), builder: "test 1".into(), ..Header::default() }
}

fn write(dir: &Path, range: std::ops::Range<usize>, layout: Layout) -> crops::Manifest {
    let mut w = if range.start == 0 {
        CorpusWriter::create(dir, header(), layout).unwrap()
    } else {
        CorpusWriter::append(dir, layout).unwrap()
    };
    for i in range {
        let c = crop(i);
        w.push(c.meta, c.image).unwrap();
    }
    w.finish().unwrap()
}

fn layout(rows: usize, crops: u64) -> Layout {
    Layout { rows_per_group: rows, crops_per_shard: crops }
}

#[test]
fn what_is_written_is_read_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let m = write(dir.path(), 0..97, layout(10, 40));
    assert_eq!(m.shards.len(), 3);
    assert_eq!(m.counts.slides, 7);
    assert_eq!(m.counts.labels["mitotic_figure"], 33);
    assert_eq!(m.counts.cohorts["A"].values().sum::<u64>(), 49);
    let corpus = Corpus::open(dir.path()).unwrap();
    corpus.verify().unwrap();
    let read: Vec<Crop> = corpus.crops(Columns::All).unwrap().map(Result::unwrap).collect();
    assert_eq!(read, (0..97).map(crop).collect::<Vec<_>>());
    let meta = corpus.crops(Columns::Meta).unwrap().map(Result::unwrap);
    assert!(meta.zip(&read).all(|(m, c)| m.meta == c.meta && m.image.is_empty()));
}

#[test]
fn the_digest_knows_order_and_content_but_not_the_layout() {
    let digest = |ends: &[usize], l| {
        let dir = tempfile::tempdir().unwrap();
        let mut start = 0;
        let mut last = None;
        for &end in ends {
            last = Some(write(dir.path(), start..end, l));
            start = end;
        }
        Corpus::open(dir.path()).unwrap().verify().unwrap();
        let last = last.unwrap();
        (last.digest, last.counts)
    };
    let once = digest(&[60], layout(1000, 1000));
    assert_eq!(once, digest(&[60], layout(7, 20)));
    assert_eq!(once, digest(&[13, 60], layout(8, 1000)));
    assert_ne!(once, digest(&[59], layout(1000, 1000)));
    let mut other = crop(3);
    let before = other.digest();
    other.meta.label = Label::Mimicker;
    assert_ne!(before, other.digest());
}

proptest! {
    #[test]
    fn every_field_enters_the_digest(i in 0usize..50, field in 0usize..14) {
        let a = crop(i);
        let mut b = a.clone();
        let m = &mut b.meta;
        match field {
            0 => m.path.push('x'),
            1 => m.subtype = Some("other".into()),
            2 => m.s_seg = Some(Score::new(0.3).unwrap()),
            3 => m.s_cls = Some(Score::new(0.3).unwrap()),
            4 => m.bbox = Some(CropBox::centred(128, 52)),
            5 => m.centroid = Some(Point::new(0.0, 0.0)),
            6 => m.slide.push('x'),
            7 => m.patient = Some("other".into()),
            8 => m.cohort.push('x'),
            9 => m.mpp = Mpp::new(0.5).unwrap(),
            10 => m.width += 1,
            11 => m.source.push('x'),
            12 => m.split = Split::Validation,
            _ => b.image = Bytes::from(vec![1, 2, 3]),
        }
        prop_assert_ne!(a.digest(), b.digest());
    }
}

#[test]
fn shuffling_is_fixed_by_seed_and_epoch_and_parts_share_the_corpus() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0..200, layout(9, 60));
    let corpus = Corpus::open(dir.path()).unwrap();
    let run = |seed, epoch, part, parts, buffer| -> Vec<String> {
        let o = StreamOptions { part, parts, buffer, ..StreamOptions::shuffled(seed, epoch) };
        corpus.stream(o).unwrap().map(|c| c.unwrap().meta.path).collect()
    };
    let a = run(1, 0, 0, 1, 32);
    assert_eq!(a, run(1, 0, 0, 1, 32));
    assert_ne!(a, run(1, 1, 0, 1, 32));
    assert_ne!(a, run(2, 0, 0, 1, 32));
    let all: BTreeSet<String> = (0..200).map(|i| crop(i).meta.path).collect();
    assert_eq!(a.len(), 200);
    assert_eq!(a.into_iter().collect::<BTreeSet<_>>(), all);
    let parts: Vec<String> = (0..3).flat_map(|p| run(5, 2, p, 3, 16)).collect();
    assert_eq!(parts.len(), 200);
    assert_eq!(parts.into_iter().collect::<BTreeSet<_>>(), all);
    let o = StreamOptions { part: 3, parts: 3, ..StreamOptions::shuffled(0, 0) };
    assert!(corpus.stream(o).is_err());
}

#[test]
fn damage_is_noticed_and_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0..100, layout(10, 50));
    let shard = dir.path().join("shard-00001.parquet");
    let bytes = std::fs::read(&shard).unwrap();

    std::fs::write(&shard, &bytes[..bytes.len() / 2]).unwrap();
    let e = Corpus::open(dir.path()).unwrap_err();
    assert!(e.to_string().contains("shard-00001.parquet"), "{e}");
    assert!(matches!(e, CorpusError::Mismatch { what: "size", .. }));
    assert!(matches!(
        crops::shard::Shard::open(&shard).map(|_| ()).unwrap_err(),
        CorpusError::Shard { .. }
    ));

    let mut flipped = bytes.clone();
    flipped[200] ^= 1;
    std::fs::write(&shard, &flipped).unwrap();
    let e = Corpus::open(dir.path()).unwrap().verify().unwrap_err();
    assert!(matches!(e, CorpusError::Mismatch { what: "SHA-256", .. }), "{e}");

    std::fs::remove_file(&shard).unwrap();
    let e = Corpus::open(dir.path()).unwrap_err();
    assert!(matches!(e, CorpusError::Io { .. }), "{e}");
    std::fs::write(&shard, &bytes).unwrap();
    Corpus::open(dir.path()).unwrap().verify().unwrap();

    let manifest = dir.path().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    for (from, to, what) in [
        ("\"schema\": 1", "\"schema\": 2", "schema version 2"),
        ("mithras-corpus", "other", "not a corpus manifest"),
        ("shard-00000", "../shard-00000", "leaves the folder"),
    ] {
        std::fs::write(&manifest, text.replace(from, to)).unwrap();
        let e = Corpus::open(dir.path()).unwrap_err().to_string();
        assert!(e.contains(what), "{e}");
    }
    std::fs::write(&manifest, text.replace("\"mimicker\": 33", "\"mimicker\": 34")).unwrap();
    let e = Corpus::open(dir.path()).unwrap().verify().unwrap_err();
    assert!(matches!(e, CorpusError::Mismatch { what: "count table", .. }), "{e}");
}

#[test]
fn a_crash_leaves_the_old_corpus_and_the_next_writer_continues() {
    let dir = tempfile::tempdir().unwrap();
    let before = write(dir.path(), 0..30, layout(10, 10));
    {
        let mut w = CorpusWriter::append(dir.path(), layout(10, 10)).unwrap();
        for i in 30..55 {
            let c = crop(i);
            w.push(c.meta, c.image).unwrap();
        }
        let locked = CorpusWriter::append(dir.path(), layout(10, 10)).map(|_| ()).unwrap_err();
        assert!(matches!(locked, CorpusError::Locked { .. }));
        assert!(locked.to_string().contains("wait for it to end"), "{locked}");
    }
    let corpus = Corpus::open(dir.path()).unwrap();
    assert_eq!(corpus.manifest(), &before);
    corpus.verify().unwrap();
    let after = write(dir.path(), 30..60, layout(10, 10));
    assert_eq!(after.counts.crops, 60);
    Corpus::open(dir.path()).unwrap().verify().unwrap();
}

#[test]
fn a_corpus_refuses_repeats_and_broken_crops() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = CorpusWriter::create(dir.path(), header(), Layout::default()).unwrap();
    let c = crop(1);
    w.push(c.meta.clone(), c.image.clone()).unwrap();
    assert!(w.push(c.meta.clone(), c.image.clone()).is_err());
    let mut bad = crop(2);
    bad.meta.bbox = Some(CropBox { x0: 5.0, y0: 5.0, x1: 5.0, y1: 9.0 });
    assert!(w.push(bad.meta, bad.image).is_err());
    let mut bad = crop(4);
    bad.meta.centroid = Some(Point::new(f64::NAN, 0.0));
    assert!(w.push(bad.meta, bad.image).is_err());
    w.finish().unwrap();
    assert!(CorpusWriter::create(dir.path(), header(), Layout::default()).is_err());
}
