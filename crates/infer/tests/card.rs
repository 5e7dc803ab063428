//! A card is complete and consistent, or it is refused with the key.

use crate::common;
use base::remedy::{Remedied as _, Remedy};
use infer::card::{CandidateMethod, CardError, Interpolation};
use infer::{ModelCard, ModelPackage, PackageError};

fn text() -> String {
    std::fs::read_to_string(common::tiny_dir().join("card.toml")).unwrap()
}

fn refused(from: &str, to: &str) -> String {
    let text = text();
    assert!(text.contains(from), "the fixture lacks {from}");
    ModelCard::parse(&text.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_card_is_read_as_written() {
    let card = ModelCard::parse(&text()).unwrap();
    let parts = card.detector().unwrap();
    assert_eq!((parts.segmenter.window, parts.segmenter.stride), (64, 48));
    assert_eq!(parts.segmenter.mpp.get(), 0.25);
    assert_eq!(parts.candidates.method, CandidateMethod::Regions);
    assert_eq!(parts.classifier.unwrap().positive_index(), 1);
    assert_eq!(parts.operating_point.seg.get(), 0.3);
    assert_eq!(ModelCard::parse(&card.to_toml().unwrap()).unwrap(), card);
}

#[test]
fn a_card_with_the_earlier_name_of_a_key_is_read() {
    let with = |key: &str| {
        let (after, text) = ("opening_radius = 1\n", text());
        assert!(text.contains(after));
        ModelCard::parse(&text.replacen(after, &format!("{after}{key} = 12.0\n"), 1)).unwrap()
    };
    let (earlier, now) = (with("apart_um"), with("min_separation_um"));
    assert_eq!(earlier.detector().unwrap().candidates.min_separation_um, Some(12.0));
    assert_eq!(earlier, now);
    let written = earlier.to_toml().unwrap();
    assert!(written.contains("min_separation_um = 12.0") && !written.contains("apart_um"));
}

#[test]
fn another_operating_point_is_the_remedy_of_one_that_is_not_there() {
    let e = ModelCard::parse(&text()).unwrap().point("no such point").unwrap_err();
    assert!(e.to_string().contains("no operating point `no such point`"), "{e}");
    assert_eq!(e.remedy(), Some(Remedy::OperatingPoint));
    let e = ModelCard::parse("").unwrap_err();
    assert_eq!(e.remedy(), None);
}

#[test]
fn unknown_and_missing_keys_are_errors() {
    let e = refused("opening_radius = 1", "opening_radius = 1\nopenning = 2");
    assert!(e.contains("openning") && e.contains("opening_radius"), "{e}");
    let e = refused("seg = 0.3", "seg = 0.3\nsegm = 0.3");
    assert!(e.contains("segm"), "{e}");
    let e = refused("stride = 48\n", "");
    assert!(e.contains("stride"), "{e}");
}

#[test]
fn values_out_of_range_name_their_key() {
    for (from, to, key) in [
        ("window = 64", "window = 8", "segmenter.window"),
        ("stride = 48", "stride = 65", "segmenter.stride"),
        ("stride = 48", "stride = 0", "segmenter.stride"),
        ("stride = 48", "stride = 31", "segmenter.stride"),
        ("\"regions\"", "\"peaks\"", "candidates.min_distance_px"),
        ("threshold = 0.3", "threshold = 1.0", "candidates.threshold"),
        ("threshold = 0.3", "threshold = nan", "candidates.threshold"),
        ("std = [0.229", "std = [0.0", "segmenter.std"),
        ("mean = [0.485", "mean = [nan", "segmenter.mean"),
        ("mean = [0.485", "mean = [124.0", "segmenter.mean"),
        ("\"segmenter.onnx\"", "\"../segmenter.onnx\"", "segmenter.file"),
        ("sha256 = \"", "sha256 = \"0", "segmenter.sha256"),
        ("crop = 32", "crop = 0", "classifier.crop"),
        ("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\", \"b\"]", "classifier.classes"),
        ("positive = \"b\"", "positive = \"mitotic\"", "classifier.positive"),
        ("mpp = 0.25", "mpp = 25400.0", "mpp"),
        ("seg = 0.3", "seg = 1.3", "seg"),
    ] {
        let e = refused(from, to);
        assert!(e.contains(key), "{from} -> {to}: {e}");
    }
}

#[test]
fn a_bound_of_further_symmetries_belongs_to_several() {
    let with = |lines: &str| text().replacen("positive = ", &format!("{lines}\npositive = "), 1);
    let card = ModelCard::parse(&with("symmetries = 2\nsymmetries_from = 0.1")).unwrap();
    assert_eq!(card.classifier.unwrap().symmetries_from, Some(0.1));
    for wrong in [
        "symmetries_from = 0.1",
        "symmetries = 2\nsymmetries_from = 1.0",
        "symmetries = 2\nsymmetries_from = nan",
    ] {
        let why = ModelCard::parse(&with(wrong)).unwrap_err().to_string();
        assert!(why.contains("classifier.symmetries_from"), "{why}");
    }
}

/// What results are known by: all that changes the numbers of the networks, and nothing else. Its value for this card
/// is fixed, as results are kept by it.
#[test]
fn the_digest_of_the_networks_changes_with_what_feeds_or_reads_them() {
    let screen = format!(
        "\n[screen]\nfile = \"screen.onnx\"\nsha256 = \"{}\"\narchitecture = \"lite\"\ninput = 64\n\
         mean = [0.5, 0.5, 0.5]\nstd = [0.2, 0.2, 0.2]\npasses_from = 0.05\n",
        "0".repeat(64)
    );
    let whole = text() + &screen;
    let digest =
        |text: &str, second| ModelCard::parse(text).unwrap().networks_sha256(second).unwrap();
    let (two, one) = (digest(&whole, true), digest(&whole, false));
    assert_eq!(two, "b620470672a70fd823dfc1bac8dc62aa4d6b3d673ea1c7337fd7fdae73336ae9");
    assert_ne!(two, one);
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        whole.replace(from, to)
    };
    for (from, to) in [
        ("window = 64", "window = 80"),
        ("mean = [0.485", "mean = [0.5"),
        ("std = [0.229", "std = [0.2"),
    ] {
        let other = changed(from, to);
        assert_ne!(digest(&other, true), two, "{from}");
        assert_ne!(digest(&other, false), one, "{from}");
    }
    for (from, to) in [
        ("positive = \"b\"", "positive = \"c\""),
        ("positive = ", "symmetries = 2\npositive = "),
        ("positive = ", "interpolation = \"bicubic\"\npositive = "),
        ("positive = ", "outputs = [\"a\", \"b\", \"c\", \"c\"]\npositive = "),
        ("[\"a\", \"b\", \"c\"]", "[\"b\", \"a\", \"c\"]"),
        ("input = 64\nmean = [0.5", "input = 64\nmean = [0.4"),
        ("passes_from = 0.05", "passes_from = 0.06"),
    ] {
        let other = changed(from, to);
        assert_ne!(digest(&other, true), two, "{from}");
        assert_eq!(digest(&other, false), one, "the second stage is not asked: {from}");
    }
    for (from, to) in [
        ("name = \"", "name = \"other-"),
        ("license = \"", "license = \"other "),
        ("\"segmenter.onnx\"", "\"first.onnx\""),
        ("architecture = \"", "architecture = \"as "),
        ("seg = 0.3", "seg = 0.4"),
        ("positive = ", "bf16 = true\nfolds = [\"one\"]\npositive = "),
    ] {
        assert_eq!(digest(&changed(from, to), true), two, "{from}");
    }
}

#[test]
fn a_screen_is_in_front_of_a_classifier() {
    let screen = |passes_from: &str| {
        format!(
            "\n[screen]\nfile = \"screen.onnx\"\nsha256 = \"{}\"\narchitecture = \"efficientnet_lite0\"\n\
             input = 64\nmean = [0.5, 0.5, 0.5]\nstd = [0.2, 0.2, 0.2]\npasses_from = {passes_from}\n",
            "0".repeat(64)
        )
    };
    let with = |value: &str| ModelCard::parse(&(text() + &screen(value)));
    let card = with("0.05").unwrap();
    assert_eq!(card.screen.as_ref().unwrap().passes_from, 0.05);
    assert_eq!(ModelCard::parse(&card.to_toml().unwrap()).unwrap(), card);
    for wrong in ["0.0", "1.0", "nan"] {
        let why = with(wrong).unwrap_err().to_string();
        assert!(why.contains("screen.passes_from"), "{why}");
    }
    let alone = ModelCard { classifier: None, ..card };
    assert!(alone.check().unwrap_err().to_string().contains("belongs to a [classifier]"));
}

#[test]
fn a_scale_belongs_to_two_classes() {
    let two = text().replace(r#"classes = ["a", "b", "c"]"#, r#"classes = ["a", "b"]"#);
    let with = |text: &str, slope: &str| {
        let table = format!("\n[classifier.scale]\nslope = {slope}\noffset = -0.5\n");
        ModelCard::parse(&format!("{text}{table}"))
    };
    let card = with(&two, "1.5").unwrap();
    let scale = card.classifier.as_ref().unwrap().scale.unwrap();
    assert_eq!((scale.slope, scale.offset), (1.5, -0.5));
    assert_eq!(ModelCard::parse(&card.to_toml().unwrap()).unwrap(), card);
    for (text, slope) in [(&*two, "0.0"), (&*two, "nan"), (&*text(), "1.5")] {
        assert!(with(text, slope).unwrap_err().to_string().contains("classifier.scale"));
    }
}

#[test]
fn a_threshold_calls_one_of_two_classes() {
    let two = text().replace(r#"classes = ["a", "b", "c"]"#, r#"classes = ["a", "b"]"#);
    let with = |line: &str| two.replace("positive = ", &format!("{line}\npositive = "));
    let called = |line: &str, p: &[f32]| {
        ModelCard::parse(&with(line)).unwrap().classifier.unwrap().called(p)
    };
    assert_eq!((called("", &[0.6, 0.4]), called("", &[0.5, 0.5])), (0, 0));
    let at = "threshold = 0.4";
    assert_eq!((called(at, &[0.6, 0.4]), called(at, &[0.61, 0.39])), (1, 0));
    for wrong in ["threshold = 1.0", "threshold = nan"] {
        let why = ModelCard::parse(&with(wrong)).unwrap_err().to_string();
        assert!(why.contains("classifier.threshold"), "{why}");
    }
    let three = refused("positive = ", &format!("{at}\npositive = "));
    assert!(three.contains("belongs to two classes"), "{three}");
}

#[test]
fn a_class_is_the_sum_of_its_outputs() {
    let with = |line: &str| text().replace("positive = ", &format!("{line}\npositive = "));
    let card = ModelCard::parse(&with(r#"outputs = ["c", "a", "b", "a"]"#)).unwrap();
    assert_eq!(ModelCard::parse(&card.to_toml().unwrap()).unwrap(), card);
    let card = card.classifier.unwrap();
    assert_eq!((card.width(), card.summed(&[0.5, 0.125, 0.25, 0.125])), (4, vec![0.25, 0.25, 0.5]));
    let plain = ModelCard::parse(&text()).unwrap().classifier.unwrap();
    assert_eq!((plain.width(), plain.summed(&[0.5, 0.25, 0.25])), (3, vec![0.5, 0.25, 0.25]));
    for wrong in [r#"outputs = ["a", "b"]"#, r#"outputs = ["a", "b", "c", "d"]"#] {
        let why = ModelCard::parse(&with(wrong)).unwrap_err().to_string();
        assert!(why.contains("classifier.outputs"), "{why}");
    }
}

/// What packages share is in the program once, and an atypical figure is the sum of its morphologies.
#[test]
fn two_bundled_packages_are_one_network() {
    let packages =
        ["atypical", "morphology"].map(|name| ModelPackage::bundled_named(name).unwrap());
    let [a, m] = packages.each_ref().map(|p| p.classifier().unwrap().as_ptr());
    assert_eq!(a, m);
    let crops = common::noise(64, 3);
    let [atypical, morphology] = packages.map(|p| {
        let mut models = infer::open(&p, &infer::EngineOptions::default()).unwrap();
        models.classifier.as_mut().unwrap().classes(&crops).unwrap()
    });
    for (a, m) in atypical.iter().zip(&morphology) {
        assert_eq!((a.0.len(), m.0.len()), (2, 8));
        assert!((a.0[1] - m.0[4..].iter().sum::<f32>()).abs() < 1e-6, "{a:?} {m:?}");
    }
}

#[test]
fn another_schema_is_named_before_its_keys() {
    let e = ModelCard::parse("schema = 2\nnew_key = 1\n").unwrap_err();
    assert_eq!(e, CardError::Schema { found: 2 });
}

#[test]
fn a_classifier_alone_is_a_package_but_no_detector() {
    let text = text();
    let (head, tail) = (text.find("[segmenter]").unwrap(), text.find("[classifier]").unwrap());
    let end = text.find("[operating_point]").unwrap();
    let alone = format!("{}{}", &text[..head], &text[tail..end]);
    let card = ModelCard::parse(&alone).unwrap();
    assert!(card.detector().unwrap_err().to_string().contains("[segmenter]"));
    assert!(ModelCard::parse(&text[..head]).is_err(), "a card without a network");
}

#[test]
fn a_card_of_gigabytes_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let card = std::fs::File::create(dir.path().join("card.toml")).unwrap();
    card.set_len(3 << 30).unwrap();
    let error = ModelPackage::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("card.toml") && error.contains("larger than the 16 MiB"), "{error}");
}

#[test]
fn a_network_of_another_card_is_refused_with_both_digests() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["card.toml", "segmenter.onnx", "classifier.onnx"] {
        std::fs::copy(common::tiny_dir().join(file), dir.path().join(file)).unwrap();
    }
    let package = ModelPackage::open(dir.path()).unwrap();
    let expected = package.card.segmenter.unwrap().sha256;

    let path = dir.path().join("segmenter.onnx");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let e = ModelPackage::open(dir.path()).unwrap_err();
    assert!(matches!(e, PackageError::Digest { .. }));
    let e = e.to_string();
    assert!(e.contains(&expected) && e.contains(&base::digest::sha256(&bytes)), "{e}");

    std::fs::remove_file(&path).unwrap();
    let e = ModelPackage::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("segmenter.onnx"), "{e}");
    std::fs::remove_file(dir.path().join("card.toml")).unwrap();
    let e = ModelPackage::open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("card.toml"), "{e}");
}

#[test]
fn what_is_not_bundled_is_reported() {
    let e = ModelPackage::bundled_named("no-such").unwrap_err().to_string();
    assert!(e.contains("no-such") && e.contains("give a package folder"), "{e}");
}

/// No start computes these digests.
#[test]
fn bundled_networks_are_those_of_their_cards() {
    for name in ModelPackage::bundled_names() {
        let package = ModelPackage::bundled_named(name).unwrap();
        let c = &package.card;
        let stated = c.segmenter.iter().map(|s| &s.sha256);
        let stated = stated.chain(c.classifier.iter().map(|c| &c.sha256));
        let stated: Vec<_> = stated.chain(c.screen.iter().map(|s| &s.sha256)).collect();
        let found: Vec<_> = package.files().map(|(_, bytes)| base::digest::sha256(bytes)).collect();
        assert!(!found.is_empty() && stated.into_iter().eq(&found), "{name}");
    }
}

#[test]
fn digest_is_sha_256() {
    // FIPS 180-2, example B.1.
    assert_eq!(
        base::digest::sha256(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

/// What is next to this program is handed on with it: its licence is reported, and it is not an encoder whose
/// makers keep that to themselves, under whatever name.
#[test]
fn bundled_packages_state_a_licence_and_hold_no_published_encoder() {
    // Gated, for research alone, or without a licence (`docs/encoders.md` has the rows).
    const KEPT: [&str; 29] = [
        "uni_v",
        "uni2",
        "conch",
        "virchow",
        "gigapath",
        "prov-giga",
        "hoptimus",
        "h-optimus",
        "h0-mini",
        "ctranspath",
        "transpath",
        "phikon",
        "hibou",
        "kaiko",
        "lunit",
        "gpfm",
        "digepath",
        "midnight",
        "impash",
        "plip",
        "genbio",
        "bertram-v2s",
        "mdfs",
        "dinov2",
        "clip",
        "augreg",
        "ssl_wsi",
        "quiltnet",
        "provgigapath",
    ];
    // What this project trains itself, from weights that may be handed on.
    const OURS: [&str; 6] = [
        "efficient-unet-",
        "efficientnet_",
        "tf_efficientnet",
        "resnet50",
        "vit_tiny",
        "vit_small",
    ];
    let models = testkit::workspace().join("models");
    let mut seen = 0;
    for folder in std::fs::read_dir(&models).unwrap().map(|f| f.unwrap().path()) {
        let Ok(text) = std::fs::read_to_string(folder.join("card.toml")) else { continue };
        let card = ModelCard::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let licence = card.license.to_lowercase();
        let known = !["none", "unknown", "todo", "?"].contains(&licence.trim());
        assert!(known && licence.len() >= 3, "{}: licence `{licence}`", card.name);
        assert!(card.encoder.is_none(), "{} is an encoder", card.name);
        let first = card.segmenter.as_ref().map(|s| &s.architecture);
        let second = card.classifier.as_ref().map(|c| &c.architecture);
        for architecture in first.into_iter().chain(second) {
            let ours = OURS.iter().any(|o| architecture.starts_with(o));
            assert!(ours, "{}: `{architecture}`", card.name);
        }
        let text = text.to_lowercase();
        let kept = KEPT.iter().find(|name| text.contains(*name));
        assert_eq!(kept, None, "{}: its card names an encoder of others", card.name);
        for file in std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap()) {
            // The smallest of them has 22 million values, as f16 44 MB.
            let (name, bytes) = (file.path(), file.metadata().unwrap().len());
            assert!(bytes < 40_000_000, "{}: {bytes} bytes", name.display());
        }
        seen += 1;
    }
    assert!(seen >= 4, "{seen} packages in {}", models.display());
}

#[test]
fn a_filter_is_optional_and_bilinear_where_none_is_stated() {
    let card = ModelCard::parse(&text()).unwrap();
    let of = |card: &ModelCard| card.classifier.as_ref().unwrap().interpolation;
    assert_eq!(of(&card), Interpolation::Bilinear);
    assert!(!card.to_toml().unwrap().contains("interpolation"), "as it was");
    let stated = text().replacen("crop = 32", "crop = 32\ninterpolation = \"bicubic\"", 1);
    let stated = ModelCard::parse(&stated).unwrap();
    assert_eq!(of(&stated), Interpolation::Bicubic);
    assert_eq!(ModelCard::parse(&stated.to_toml().unwrap()).unwrap(), stated);
    let e = refused("crop = 32", "crop = 32\ninterpolation = \"lanczos\"");
    assert!(e.contains("lanczos"), "{e}");
}
