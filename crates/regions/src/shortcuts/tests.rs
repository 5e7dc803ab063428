//! The renewed frames pass; a copy with the old cue fails.

use super::*;
use crate::dataset::import::{Options, icpr};
use crate::folds::marked_scene;
use crate::scene::dark_places;
use mitosis::Mpp;
use mitosis::RgbTile;
use pixels::change;

const SIDE: usize = 64;

/// Crops of the frames as they are coded: figures and dark nuclei.
fn frames() -> Option<Vec<ShortcutItem>> {
    let dir = testkit::data("icpr2012")?;
    let set = icpr(&dir, &Options::default()).unwrap().dataset;
    let folder = tempfile::tempdir().unwrap();
    let set = set.write(&folder.path().join("set")).unwrap();
    let native = Mpp::new(0.2456).unwrap();
    let mut items = vec![];
    for image in set.images().iter().filter(|i| i.exhaustive) {
        let scene = &marked_scene(image, &set.load(image, native).unwrap());
        let item = |x: f32, y: f32, figure| ShortcutItem {
            tile: scene.cut(x, y, SIDE),
            figure,
            source: "icpr".into(),
            slide: scene.name.clone(),
            place: None,
            bytes: None,
        };
        let figures = scene.marks.iter().filter(|m| m.kind == crate::scene::MarkKind::Figure);
        items.extend(figures.map(|m| item(m.x, m.y, true)));
        items.extend(dark_places(scene, 40.0, 20).into_iter().map(|(x, y)| item(x, y, false)));
    }
    Some(items)
}

fn of<'a>(report: &'a Report, feature: &str) -> &'a Verdict {
    report.sources[0].verdicts.iter().find(|v| v.feature == feature).unwrap()
}

#[test]
fn the_renewed_frames_pass_and_a_copy_with_sharper_figures_fails() {
    let Some(items) = frames() else { return };
    let clean = check(&items);
    assert_eq!(clean.warnings(), Vec::<String>::new(), "{:?}", clean.sources[0].verdicts);
    // What the frames were like: figures pasted with chroma that had not been halved.
    let mut old = items;
    for (i, item) in old.iter_mut().enumerate().filter(|(_, item)| item.figure) {
        let mut rng = pixels::sample_rng(5, i as u64);
        let mut sharp = change::sharpen(&item.tile, 0.8);
        change::noise(&mut sharp, 3.0, &mut rng);
        for y in 16..48 {
            let at = 3 * (y * SIDE + 16);
            item.tile.data[at..at + 96].copy_from_slice(&sharp.data[at..at + 96]);
        }
    }
    let cued = check(&old);
    assert!(of(&cued, "fine detail of Cb").warns, "{:?}", cued.sources[0].verdicts);
    assert!(of(&cued, "together").warns);
    assert!(cued.warnings().iter().any(|w| w.contains("fine detail of Cb")));
}

/// Grey noise of a fixed seed, coded or not.
fn drawn(i: usize, figure: bool, coded: bool) -> ShortcutItem {
    let mut tile = RgbTile::filled(SIDE, SIDE, [180, 140, 170]);
    change::noise(&mut tile, 12.0, &mut pixels::sample_rng(1, i as u64));
    let tile = change::gaussian(&tile, 0.8);
    let chroma = if coded { change::Chroma::Half } else { change::Chroma::Full };
    ShortcutItem {
        tile: change::jpeg(&tile, 85, chroma),
        figure,
        source: "drawn".into(),
        slide: format!("s{}", i % 7),
        place: Some((0.5, 0.5)),
        bytes: Some(1000 + (i as u64 * 37) % 90),
    }
}

#[test]
fn classes_of_one_coding_pass_and_of_two_are_named() {
    let same: Vec<ShortcutItem> = (0..120).map(|i| drawn(i, i % 2 == 0, true)).collect();
    assert_eq!(check(&same).warnings(), Vec::<String>::new());
    let two: Vec<ShortcutItem> = (0..120).map(|i| drawn(i, i % 2 == 0, i % 2 == 0)).collect();
    let warnings = check(&two).warnings();
    assert!(warnings.iter().any(|w| w.contains("of Cb") || w.contains("of Cr")), "{warnings:?}");
}

#[test]
fn few_crops_are_not_judged() {
    let few: Vec<ShortcutItem> = (0..20).map(|i| drawn(i, i % 2 == 0, true)).collect();
    let report = check(&few);
    assert!(report.sources.is_empty());
    assert_eq!(report.too_few, ["drawn"]);
}

#[test]
fn the_error_of_an_auc_is_hanley_s() {
    // By hand: Q1 = 0.893 / 1.107, Q2 = 2 * 0.893^2 / 1.893, variance 0.0010569.
    assert!((error(0.893, 51.0, 58.0) - 0.032_51).abs() < 1e-5);
    assert_eq!(error(1.0, 10.0, 10.0), 0.0);
}

#[test]
fn sources_with_too_few_crops_are_summed_up_without_a_verdict() {
    let too_few = (0..3720).map(|i| format!("crop {i}.png")).collect();
    let text = Report { sources: vec![], too_few }.to_string();
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(text.contains("3715 other sources: too few"), "{text}");
    assert!(text.contains("no verdict"), "{text}");
}
