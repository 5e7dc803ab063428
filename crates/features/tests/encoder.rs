//! A tiny encoder against PyTorch's values: packages, crops, tiles, files.

use base::progress::{Listener, Silent};
use features::crops::{self, Source};
use features::package::{self, Package};
use features::{FeatureError, Frozen, Grid, Listing, Table, tiles};
use infer::card::{CardError, Interpolation, SourceCard};
use infer::convert::{ConvertError, Draft};
use infer::{EngineChoice, EngineError, EngineOptions, PackageError, Precision, Provider};
use mitosis::{Mpp, PortError, RgbTile};
use std::path::{Path, PathBuf};

const SIDE: usize = 32;
/// What the golden values may differ by.
const CLOSE: f32 = 1e-4;

fn golden_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn golden() -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(golden_file("golden.json")).unwrap()).unwrap()
}

fn floats(v: &serde_json::Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn draft() -> Draft {
    Draft {
        name: "tiny".into(),
        license: "no licence needed: seeded weights".into(),
        architecture: "seeded".into(),
        mpp: Some(Mpp::new(0.5).unwrap()),
        image: SIDE,
        resize: None,
        interpolation: Interpolation::Bilinear,
        mean: [0.7032, 0.5361, 0.6610],
        std: [0.2172, 0.2608, 0.2072],
        pooling: "mean of patches".into(),
        width: None,
        output: None,
        half: false,
        source: SourceCard::default(),
    }
}

fn rten() -> EngineOptions {
    EngineOptions { engine: EngineChoice::Rten, threads: 1, ..EngineOptions::default() }
}

fn made(dir: &Path, draft: Draft) -> PathBuf {
    let out = dir.join("pkg");
    package::convert(&golden_file("tiny.onnx"), &out, draft, &rten()).unwrap();
    out
}

/// What `generate.py` draws.
fn picture(side: usize, k: usize) -> RgbTile {
    let mut data = vec![];
    for y in 0..side {
        for x in 0..side {
            let planes = [x * 7 + y * 3 + k * 31, x * x / 5 + y * (k + 1), x ^ y ^ k];
            data.extend(planes.map(|v| (v % 256) as u8));
        }
    }
    RgbTile::new(side, side, data)
}

/// White with a drawn block of 5 x 3 tiles, as `generate.py` draws it.
fn slide_image() -> image::RgbImage {
    image::RgbImage::from_fn(9 * SIDE as u32, 6 * SIDE as u32, |x, y| {
        let (x, y) = (x as usize, y as usize);
        if !(2 * SIDE..7 * SIDE).contains(&x) || !(SIDE..4 * SIDE).contains(&y) {
            return image::Rgb([245; 3]);
        }
        let (x, y) = (x - 2 * SIDE, y - SIDE);
        let planes = [120 + (x * 3 + y) % 80, 40 + (x + y * 5) % 60, 110 + (x * y) % 70];
        image::Rgb(planes.map(|v| v as u8))
    })
}

fn save(tile: &RgbTile, path: &Path) {
    let (w, h) = (tile.width as u32, tile.height as u32);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    image::RgbImage::from_raw(w, h, tile.data.clone()).unwrap().save(path).unwrap();
}

fn farthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_engine_gives_pytorchs_features_and_batch_equals_single() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), draft());
    let pictures: Vec<RgbTile> = (0..5).map(|k| picture(SIDE, k)).collect();
    let expected: Vec<f32> =
        golden()["pictures"].as_array().unwrap().iter().flat_map(floats).collect();
    let engines = [
        (EngineChoice::Rten, Provider::Auto),
        (EngineChoice::OnnxRuntime, Provider::Cpu),
        (EngineChoice::OpenVino, Provider::OpenVino),
    ];
    for (engine, provider) in engines {
        let options = EngineOptions { engine, provider, threads: 1, ..EngineOptions::default() };
        let mut encoder = match Frozen::open(&package, &options) {
            Ok(e) => e,
            Err(FeatureError::Engine(EngineError::Unavailable { what, reason, .. }))
                if engine != EngineChoice::Rten && reason.starts_with("no ") =>
            {
                eprintln!("SKIPPED: {what}: {reason}");
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        assert_eq!(encoder.network.width(), 6);
        let together = encoder.network.features(&pictures).unwrap();
        let off = farthest(&together, &expected);
        assert!(off < CLOSE, "{engine}: off by {off}");
        let single: Vec<f32> =
            pictures.chunks(1).flat_map(|p| encoder.network.features(p).unwrap()).collect();
        assert_eq!(single, together, "{engine}: batch and single differ");
        // Another batch size: another kernel may serve it.
        let options = EngineOptions { classifier_batch: 1, ..options };
        let mut one = Frozen::open(&package, &options).unwrap();
        assert!(farthest(&one.network.features(&pictures).unwrap(), &together) < 1e-5, "{engine}");
        assert!(encoder.network.features(&[]).unwrap().is_empty());
    }
}

/// In bf16 a feature has eight bits, and the file records it; engines without bf16 refuse.
#[test]
fn bf16_moves_features_a_little_and_is_never_a_silent_f32() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), draft());
    let bf16 = |engine| EngineOptions { engine, precision: Precision::Bf16, ..rten() };
    let refused = Frozen::open(&package, &bf16(EngineChoice::Rten)).err().unwrap();
    assert!(refused.to_string().contains("computes in f32 only"), "{refused}");
    let mut encoder = match Frozen::open(&package, &bf16(EngineChoice::OpenVino)) {
        Ok(encoder) => encoder,
        Err(e) if ["no libopenvino_c", "no bf16"].iter().any(|w| e.to_string().contains(w)) => {
            return eprintln!("SKIPPED: {e}");
        }
        Err(e) => panic!("{e}"),
    };
    assert!(encoder.engine.to_string().contains("bf16"), "{}", encoder.engine);
    assert_eq!(encoder.about.precision(), "bf16");
    let mut exact = Frozen::open(&package, &rten()).unwrap();
    assert_eq!(exact.about.precision(), "f32");
    let pictures: Vec<RgbTile> = (0..5).map(|k| picture(SIDE, k)).collect();
    let have = encoder.network.features(&pictures).unwrap();
    let want = exact.network.features(&pictures).unwrap();
    let largest = want.iter().fold(0.0, |m: f32, v| m.max(v.abs()));
    let off = farthest(&have, &want) / largest;
    assert!(off > 1e-6 && off < 0.02, "off by {off} of the largest");
}

#[test]
fn other_sizes_are_resized_as_the_card_states() {
    for (word, interpolation) in
        [("bilinear", Interpolation::Bilinear), ("bicubic", Interpolation::Bicubic)]
    {
        let dir = tempfile::tempdir().unwrap();
        let package = made(dir.path(), Draft { interpolation, ..draft() });
        let mut encoder = Frozen::open(&package, &rten()).unwrap();
        let features = encoder.network.features(&[picture(100, 3)]).unwrap();
        // Pillow rounds a few pixels another way by one level.
        let off = farthest(&features, &floats(&golden()["resized"][word]));
        assert!(off < 4e-3, "{word}: off by {off}");
    }
    let resized = golden()["resized"].clone();
    let apart = farthest(&floats(&resized["bilinear"]), &floats(&resized["bicubic"]));
    assert!(apart > 2e-2, "the two filters differ by {apart} only");
}

#[test]
fn the_middle_of_a_picture_goes_in_where_the_card_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let resize = Some(40);
    let package = made(dir.path(), Draft { resize, ..draft() });
    let card = Package::open(&package).unwrap().card;
    assert_eq!(card.encoder().unwrap().resize, resize);
    let mut encoder = Frozen::open(&package, &rten()).unwrap();
    let wide = RgbTile::new(60, 50, picture(60, 3).data[..3 * 60 * 50].to_vec());
    let middle = card.encoder().unwrap().fit().apply(&wide).into_owned();
    assert_eq!((middle.width, middle.height), (SIDE, SIDE));
    let both = encoder.network.features(&[wide.clone(), middle]).unwrap();
    assert_eq!(both[..6], both[6..]);
    // Without it the whole of the shorter side goes in.
    let other = tempfile::tempdir().unwrap();
    let mut whole = Frozen::open(&made(other.path(), draft()), &rten()).unwrap();
    assert!(farthest(&whole.network.features(&[wide]).unwrap(), &both[..6]) > 1e-3);

    let out = dir.path().join("small");
    let small = Draft { resize: Some(SIDE - 1), ..draft() };
    let e = package::convert(&golden_file("tiny.onnx"), &out, small, &rten()).unwrap_err();
    assert!(e.to_string().contains("encoder.resize") && !out.exists(), "{e}");
}

#[test]
fn the_card_states_where_it_comes_from_and_how_far_engines_agree() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), draft());
    let opened = Package::open(&package).unwrap();
    let card = opened.card.encoder().unwrap();
    assert_eq!((card.width, card.input), (6, SIDE));
    assert_eq!(card.source.file, "tiny.onnx");
    assert_eq!(card.source.sha256, package::digest(&golden_file("tiny.onnx")).unwrap());
    assert_eq!(card.sha256, package::digest(&package.join("encoder.onnx")).unwrap());
    let parity = card.parity.as_ref().unwrap();
    assert!(parity.engines[0].engine.starts_with("rten") && parity.largest > 0.1);
    assert!(parity.engines.iter().all(|e| e.difference <= 1e-3 * parity.largest));
    assert!(opened.to_string().contains("mean of patches"), "{opened}");

    let listing = Listing::read(dir.path()).unwrap();
    assert_eq!(listing.packages.len(), 1, "{listing}");
    assert_eq!(listing.packages[0].name, "tiny");
    let open = dir.path().join("open");
    let found = package::convert(&golden_file("open.onnx"), &open, draft(), &rten()).unwrap();
    assert_eq!(found.card.encoder().unwrap().width, 6, "found by running it");
    assert_eq!(found.card.encoder().unwrap().sha256, card.sha256, "and written down");
    let again = package::convert(&golden_file("tiny.onnx"), &package, draft(), &rten());
    assert!(matches!(again, Err(FeatureError::Exists(_))));
}

#[test]
fn f16_weights_move_features_a_little_and_the_card_states_how_much() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), Draft { half: true, ..draft() });
    let opened = Package::open(&package).unwrap();
    let rounding = opened.card.encoder().unwrap().parity.as_ref().unwrap().rounding.unwrap();
    assert!(rounding > 0.0 && rounding < 2e-2, "{rounding}");
    assert!(opened.bytes < std::fs::metadata(golden_file("tiny.onnx")).unwrap().len() as usize);
    let mut encoder = Frozen::open(&package, &rten()).unwrap();
    let off = farthest(
        &encoder.network.features(&[picture(SIDE, 0)]).unwrap(),
        &floats(&golden()["pictures"][0]),
    );
    assert!(off < 2e-2, "{off}");
}

#[test]
fn what_is_not_an_encoder_does_not_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("pkg");
    let refused =
        |file: &str, draft: Draft| match package::convert(&golden_file(file), &out, draft, &rten())
            .unwrap_err()
        {
            FeatureError::Convert { source, .. } => *source,
            e => panic!("{e}"),
        };
    let e = refused("nan.onnx", draft());
    assert!(
        matches!(e, ConvertError::Port(PortError::NotFinite { .. }))
            || matches!(e, ConvertError::NoEngine(_)),
        "{e}"
    );
    assert!(e.to_string().contains("NaN"), "{e}");
    let e = refused("tokens.onnx", draft());
    assert!(matches!(e, ConvertError::File(_)) && e.to_string().contains("3 dimensions"), "{e}");
    let e = refused("mixed.onnx", draft());
    assert!(matches!(e, ConvertError::Neighbours { .. }), "{e}");
    let e = refused("tiny.onnx", Draft { width: Some(7), ..draft() });
    assert!(e.to_string().contains("width of 6, not 7"), "{e}");
    let e = refused("tiny.onnx", Draft { image: 64, ..draft() });
    assert!(e.to_string().contains("height of 32, not 64"), "{e}");
    let e = refused("golden.json", draft());
    assert!(e.to_string().contains("not an ONNX file"), "{e}");
    let e = refused("tiny.onnx", Draft { std: [0.0; 3], ..draft() });
    assert!(matches!(e, ConvertError::Package(PackageError::Card { .. })), "{e}");
    assert!(!out.exists(), "nothing is written");
}

#[test]
fn a_damaged_package_is_refused_by_type() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), draft());
    let (net, card) = (package.join("encoder.onnx"), package.join("card.toml"));
    let (bytes, text) = (std::fs::read(&net).unwrap(), std::fs::read_to_string(&card).unwrap());
    let open = || Frozen::open(&package, &rten()).map(|_| ()).unwrap_err();

    std::fs::write(&net, &bytes[..bytes.len() / 2]).unwrap();
    let e = open();
    assert!(matches!(e, FeatureError::Package(PackageError::Digest { .. })), "{e}");
    // A card of the damaged file: then the file itself is looked at.
    let digest = package::digest(&net).unwrap();
    let own = package::digest(&golden_file("tiny.onnx")).unwrap();
    let whole = Package::open(&made(&dir.path().join("b"), draft())).unwrap();
    let sha = whole.card.encoder().unwrap().sha256.clone();
    assert_ne!(own, sha);
    std::fs::write(&card, text.replace(&sha, &digest)).unwrap();
    let e = open();
    assert!(matches!(e, FeatureError::Engine(EngineError::Model { .. })), "{e}");
    // One weight is not a number.
    let nan = std::fs::read(golden_file("nan.onnx")).unwrap();
    let wrong = bytes.clone();
    assert_ne!(nan, wrong);
    std::fs::write(&net, &bytes).unwrap();
    for (from, to) in [("width = 6", "width = 5"), ("input = 32", "input = 48")] {
        std::fs::write(&card, text.replace(from, to)).unwrap();
        let e = open();
        assert!(matches!(e, FeatureError::Engine(EngineError::Model { .. })), "{to}: {e}");
    }
    std::fs::write(&card, text.replace("[encoder]", "[encoder]\nmagic = 1")).unwrap();
    assert!(matches!(open(), FeatureError::Package(PackageError::Card { .. })));
    std::fs::write(&card, text.replace("pooling = \"mean of patches\"", "pooling = \"\"")).unwrap();
    assert!(open().to_string().contains("encoder.pooling"));
    // A detector is not an encoder.
    let detector = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let e = Frozen::open(&detector, &rten()).map(|_| ()).unwrap_err();
    assert!(matches!(e, FeatureError::Card(CardError::Missing { part: "encoder", .. })), "{e}");
    // The card as it was.
    std::fs::write(&card, text).unwrap();
    Frozen::open(&package, &rten()).unwrap();
}

/// The progress that was reported.
#[derive(Default)]
struct Updates(Vec<(u64, u64)>);

impl Listener for Updates {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, done: u64, total: u64) {
        self.0.push((done, total));
    }
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

fn embedded_slide(dir: &Path, batch: usize) -> Table {
    let package = dir.join("pkg");
    let package = if package.exists() { package } else { made(dir, draft()) };
    let path = dir.join("drawn.png");
    slide_image().save(&path).unwrap();
    let mpp = Mpp::new(0.5).unwrap();
    let options = slide::OpenOptions { mpp: Some(mpp), ..slide::OpenOptions::default() };
    let slide = slide::Slide::open_with(&path, &options).unwrap();
    let mut encoder = Frozen::open(&package, &rten()).unwrap();
    let grid = Grid::choose(&encoder, None, None).unwrap();
    assert_eq!(grid, Grid { mpp, side: SIDE }, "the card's");
    let mut seen = Updates::default();
    let table = tiles::embed(&mut encoder, &slide, grid, batch, &mut seen).unwrap();
    let seen = seen.0;
    let n = table.len() as u64;
    assert_eq!((seen[0], *seen.last().unwrap()), ((0, n), (n, n)));
    table
}

#[test]
fn tissue_tiles_have_pytorchs_features_whatever_the_batch() {
    let dir = tempfile::tempdir().unwrap();
    let table = embedded_slide(dir.path(), 4);
    let tiles = golden()["tiles"].clone();
    assert!(table.len() >= 15 && table.len() < 54, "{} of 54 tiles are tissue", table.len());
    for (row, vector) in table.rows().iter().zip(table.values().chunks(6)) {
        let expected = floats(&tiles[format!("{}_{}", row.x, row.y)]);
        let off = farthest(vector, &expected);
        assert!(off < CLOSE, "{}: off by {off}", row.name);
    }
    for (x, y) in (2..7).flat_map(|x| (1..4).map(move |y| (x * SIDE, y * SIDE))) {
        let at = |r: &features::Row| r.x == x as f64 && r.y == y as f64;
        assert!(table.rows().iter().any(at), "tile {x} {y} is tissue");
    }
    assert_eq!(embedded_slide(dir.path(), 100).values(), table.values());
}

#[test]
fn files_are_the_same_bytes_every_time_and_hdf5_holds_the_grid() {
    let dir = tempfile::tempdir().unwrap();
    let table = embedded_slide(dir.path(), 4);
    for name in ["a.h5", "a.parquet"] {
        let path = dir.path().join(name);
        table.write(&path).unwrap();
        let first = std::fs::read(&path).unwrap();
        embedded_slide(dir.path(), 4).write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first, "{name}");
    }
    assert!(matches!(table.write(&dir.path().join("a.txt")), Err(FeatureError::Form(_))));
    let grid = table.tiles.clone().unwrap();
    assert_eq!((grid.side, grid.level0, grid.extent), (32, 32, (288, 192)));
    let mut crops = table;
    crops.tiles = None;
    assert!(matches!(crops.write(&dir.path().join("a.h5")), Err(FeatureError::Crops(_))));
}

#[test]
fn h5py_reads_what_clam_and_trident_expect() {
    let dir = tempfile::tempdir().unwrap();
    embedded_slide(dir.path(), 8).write(&dir.path().join("tissue.h5")).unwrap();
    let mut none = embedded_slide(dir.path(), 8);
    let grid = none.tiles.take();
    none = Table::new(none.about());
    none.tiles = grid;
    none.write(&dir.path().join("empty.h5")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_features.py");
    let python = std::env::var_os("VIRTUAL_ENV")
        .map_or_else(|| PathBuf::from("python3"), |v| PathBuf::from(v).join("bin/python"));
    let run = std::process::Command::new(&python).arg(script).arg(dir.path()).output();
    let Ok(run) = run else {
        eprintln!("SKIPPED: no {}", python.display());
        return;
    };
    let err = String::from_utf8_lossy(&run.stderr);
    if err.contains("No module named 'h5py'") || err.contains("No module named 'numpy'") {
        eprintln!("SKIPPED: no h5py (scripts/requirements.txt)");
        return;
    }
    assert!(run.status.success(), "{err}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("read"), "{err}");
}

#[test]
fn a_folder_of_images_gives_a_row_each_and_one_bad_image_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), draft());
    let images = dir.path().join("images");
    for k in 0..5 {
        save(&picture(SIDE, k), &images.join(format!("class{}/{k}.png", k % 2)));
    }
    std::fs::write(images.join("class0/broken.png"), b"no image").unwrap();
    // Formats that are not decoded are named, not passed over.
    std::fs::write(images.join("class0/old.BMP"), b"BM").unwrap();
    std::fs::write(images.join("class1/new.webp"), b"RIFF").unwrap();
    let mut encoder = Frozen::open(&package, &rten()).unwrap();
    let source = Source::from_path(&images);
    assert!(matches!(source, Source::Images(_)));
    let made =
        crops::embed(&mut encoder, &source, crops::CropSize::default(), 2, &mut Silent).unwrap();
    assert_eq!(made.table.len(), 5);
    let mut failed = made.failed.clone();
    failed.sort_unstable();
    assert!(failed.len() == 3 && failed[0].contains("broken.png"), "{failed:?}");
    assert!(failed[1].contains("old.BMP: images of the format BMP are not read"), "{failed:?}");
    assert!(failed[2].contains("new.webp") && failed[2].contains("save it as PNG"), "{failed:?}");
    let expected = golden()["pictures"].clone();
    for (row, vector) in made.table.rows().iter().zip(made.table.values().chunks(6)) {
        let k: usize = row.slide.parse().unwrap();
        assert_eq!(row.subtype, format!("class{}", k % 2));
        assert!(farthest(vector, &floats(&expected[k])) < CLOSE, "{}", row.name);
    }
    let nowhere = Source::from_path(&dir.path().join("nowhere"));
    let e = crops::embed(&mut encoder, &nowhere, crops::CropSize::default(), 2, &mut Silent)
        .unwrap_err();
    assert!(matches!(e, FeatureError::Files(_)), "{e}");
}

/// The same network, fed otherwise, gives other features.
#[test]
fn features_of_another_normalisation_do_not_take_the_place_of_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    save(&picture(SIDE, 0), &images.join("0.png"));
    let out = dir.path().join("features.parquet");
    let encoder = |name: &str, draft: Draft| {
        Frozen::open(&made(&dir.path().join(name), draft), &rten()).unwrap()
    };
    let mut first = encoder("first", draft());
    let (source, size) = (Source::from_path(&images), crops::CropSize::default());
    let identity = crops::identity(&first, &source, size).unwrap();
    let mut table = crops::embed(&mut first, &source, size, 1, &mut Silent).unwrap().table;
    table.crops = Some(identity.clone());
    table.write(&out).unwrap();
    let stored = |encoder: &Frozen| features::check_stored(&out, &encoder.about, &identity);
    stored(&first).unwrap();
    stored(&encoder("renamed", Draft { name: "other".into(), ..draft() })).unwrap();
    for (name, other) in [
        ("mean", Draft { mean: [0.5; 3], ..draft() }),
        ("deviation", Draft { std: [0.5; 3], ..draft() }),
        ("filter", Draft { interpolation: Interpolation::Bicubic, ..draft() }),
        ("cut", Draft { resize: Some(40), ..draft() }),
    ] {
        let encoder = encoder(name, other);
        assert_eq!(encoder.about.sha256, first.about.sha256);
        let e = stored(&encoder).unwrap_err();
        assert!(
            matches!(&e, FeatureError::Stored { differs, .. } if differs.contains("input was")),
            "{e}"
        );
    }
}

#[test]
fn an_encoder_without_a_resolution_asks_for_one() {
    let dir = tempfile::tempdir().unwrap();
    let package = made(dir.path(), Draft { mpp: None, ..draft() });
    let encoder = Frozen::open(&package, &rten()).unwrap();
    assert!(matches!(Grid::choose(&encoder, None, None), Err(FeatureError::Resolution(_))));
    let half = Mpp::new(0.5).unwrap();
    assert_eq!(Grid::choose(&encoder, Some(half), Some(64)).unwrap(), Grid { mpp: half, side: 64 });
}
