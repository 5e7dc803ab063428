//! Encoders whose network is stored in several files, by a lowered limit.

use features::Listing;
use features::package::Package;
use features::{FeatureError, Frozen};
use infer::card::FileCard;
use infer::convert::{Draft, probes};
use infer::{EngineChoice, EngineError, EngineOptions, ModelCard, PackageError, Plug, Provider};
use net::onnx::MOST_BYTES;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use train::headed::Headed;
use training::encoders::weights::convert_below;
use training::torch::Torch;

const ENCODER: &str = "vit_tiny_patch16_224";
const SIDE: usize = 32;

fn options(engine: EngineChoice, provider: Provider) -> EngineOptions {
    let torch = Some(Plug(Arc::new(Torch::default())));
    EngineOptions { engine, provider, threads: 1, torch, ..EngineOptions::default() }
}

fn rten() -> EngineOptions {
    EngineOptions { torch: None, ..options(EngineChoice::Rten, Provider::Auto) }
}

fn draft(half: bool) -> Draft {
    Draft { name: "drawn".into(), license: "none".into(), image: SIDE, half, ..Draft::default() }
}

/// Seeded weights, and packages of them.
struct Desk(TempDir, PathBuf);

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let weights = dir.path().join("drawn.safetensors");
        Headed::drawn(ENCODER, SIDE as i64, 0, 3).unwrap().save(&weights).unwrap();
        Self(dir, weights)
    }

    fn package(&self, name: &str, most: u64, half: bool) -> PathBuf {
        let out = self.0.path().join(name);
        convert_below(most, &self.1, ENCODER, &out, draft(half), &rten()).unwrap();
        out
    }
}

fn features(package: &Path, options: &EngineOptions) -> Option<Vec<f32>> {
    match Frozen::open(package, options) {
        Ok(mut encoder) => Some(encoder.network.features(&probes(SIDE)).unwrap()),
        Err(FeatureError::Engine(EngineError::Unavailable { what, reason, .. }))
            if reason.starts_with("no ") =>
        {
            eprintln!("SKIPPED: {what}: {reason}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn three_files_give_what_one_gives_on_every_engine() {
    let desk = Desk::new();
    for (half, most) in [(false, 9_000_000), (true, 4_500_000)] {
        let whole = desk.package(&format!("whole-{half}"), MOST_BYTES, half);
        let parts = desk.package(&format!("parts-{half}"), most, half);
        for engine in [
            (EngineChoice::Rten, Provider::Auto),
            (EngineChoice::OnnxRuntime, Provider::Cpu),
            (EngineChoice::OpenVino, Provider::OpenVino),
            (EngineChoice::Torch, Provider::Cpu),
        ] {
            let options = options(engine.0, engine.1);
            let Some(one) = features(&whole, &options) else { continue };
            let three = features(&parts, &options).expect("it ran a moment ago");
            let largest = one.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
            let off = one.iter().zip(&three).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= 1e-6 * largest, "{engine:?}, half {half}: off by {off} of {largest}");
        }

        let [whole, parts] = [whole, parts].map(|p| Package::open(&p).unwrap());
        let card = parts.card.encoder().unwrap();
        let names: Vec<&str> = card.files().map(|(name, _)| name).collect();
        assert_eq!(names, ["encoder.onnx", "encoder-2.onnx", "encoder-3.onnx"]);
        let sizes = names.iter().map(|n| std::fs::metadata(parts.folder.join(n)).unwrap().len());
        let sizes: Vec<u64> = sizes.collect();
        assert!(sizes.iter().all(|n| *n <= most), "{sizes:?}");
        assert_eq!(sizes.iter().sum::<u64>(), parts.bytes as u64);
        assert!(parts.bytes.abs_diff(whole.bytes) < 2000, "no weight is doubled: {sizes:?}");
        let parity = card.parity.as_ref().unwrap();
        assert_eq!(parity.rounding.is_some(), half);
        assert_eq!(parity.engines.iter().any(|e| e.engine.starts_with("libtorch")), !half);

        // What features are known by is of all files.
        let all: Vec<u8> =
            names.iter().flat_map(|n| std::fs::read(parts.folder.join(n)).unwrap()).collect();
        let known = Frozen::open(&parts.folder, &rten()).unwrap().about.sha256;
        assert_eq!(known, base::digest::sha256(&all));
        assert!(parts.to_string().contains("in 3 files"), "{parts}");
        assert!(parts.to_string().contains("encoder-3.onnx, SHA-256"), "{parts}");

        // A card of one file does not mention others.
        let text = std::fs::read_to_string(whole.folder.join("card.toml")).unwrap();
        assert!(!text.contains("rest"), "{text}");
        let own = whole.card.encoder().unwrap().sha256.clone();
        assert_eq!(Frozen::open(&whole.folder, &rten()).unwrap().about.sha256, own);
    }
    let listed = Listing::read(desk.0.path()).unwrap();
    assert_eq!((listed.packages.len(), listed.broken.len()), (4, 0), "{listed}");
    // An existing package is not overwritten, and the error comes before the weights are read.
    let none = Path::new("no-such.safetensors");
    let out = desk.0.path().join("whole-true");
    let again = convert_below(MOST_BYTES, none, ENCODER, &out, draft(true), &rten());
    assert!(again.unwrap_err().to_string().contains("whole-true"));
}

#[test]
fn files_that_are_damaged_missing_or_out_of_order_are_refused_by_name() {
    let desk = Desk::new();
    let package = desk.package("parts", 9_000_000, false);
    let at = |name: &str| package.join(name);
    let (second, third, card) = (at("encoder-2.onnx"), at("encoder-3.onnx"), at("card.toml"));
    let [two, three] = [&second, &third].map(|p| std::fs::read(p).unwrap());
    let text = std::fs::read_to_string(&card).unwrap();
    let refused = || Frozen::open(&package, &rten()).map(|_| ()).unwrap_err();

    std::fs::remove_file(&third).unwrap();
    let e = refused();
    assert!(matches!(e, FeatureError::Package(PackageError::Read { .. })), "{e}");
    assert!(e.to_string().contains("encoder-3.onnx"), "{e}");

    let digest = |word: &str| {
        let e = refused();
        let FeatureError::Package(PackageError::Digest { file, .. }) = &e else { panic!("{e}") };
        assert_eq!(file, word);
    };
    std::fs::write(&third, &three[..three.len() / 2]).unwrap();
    digest("encoder-3.onnx");
    // The files themselves swapped.
    std::fs::write(&second, &three).unwrap();
    std::fs::write(&third, &two).unwrap();
    digest("encoder-2.onnx");
    std::fs::write(&second, &two).unwrap();
    std::fs::write(&third, &three).unwrap();

    // The card's list, every digest being right.
    let model = |list: &dyn Fn(&mut Vec<FileCard>), words: &[&str]| {
        let mut changed = ModelCard::parse(&text).unwrap();
        list(&mut changed.encoder.as_mut().unwrap().rest);
        std::fs::write(&card, changed.to_toml().unwrap()).unwrap();
        let e = refused();
        assert!(matches!(e, FeatureError::Engine(EngineError::Model { .. })), "{e}");
        assert!(words.iter().all(|w| e.to_string().contains(w)), "{words:?}: {e}");
    };
    model(&|rest| rest.reverse(), &["`encoder-3.onnx`", "the order is wrong"]);
    model(&|rest| drop(rest.remove(0)), &["`encoder-3.onnx`", "The file before gives"]);
    model(&|rest| drop(rest.pop()), &["`encoder-2.onnx`", "no output named `embedding`"]);
    model(&|rest| rest.clear(), &["no output named `embedding`"]);

    // A card that no file can fit.
    for (from, to, words) in [
        ("encoder-3.onnx", "encoder-2.onnx", "is repeated"),
        ("encoder-3.onnx", "encoder.onnx", "is repeated"),
        ("encoder-3.onnx", "../encoder-3.onnx", "encoder.rest[1].file"),
        ("file = \"encoder-3.onnx\"", "file = \"encoder-3.onnx\"\nmagic = 1", "magic"),
    ] {
        std::fs::write(&card, text.replace(from, to)).unwrap();
        let e = refused();
        assert!(matches!(e, FeatureError::Package(PackageError::Card { .. })), "{to}: {e}");
        assert!(e.to_string().contains(words), "{words}: {e}");
    }
    std::fs::write(&card, text).unwrap();
    Frozen::open(&package, &rten()).unwrap();
}
