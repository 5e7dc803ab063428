//! Engines against PyTorch's values and against one another.

use crate::common;
use crate::common::{golden, noise, picture, real_size, tiny};
use infer::preprocess::resize;
use infer::{EngineChoice, EngineError, EngineOptions, Models, Precision, Provider, open};
use mitosis::{PortError, RgbTile};

fn options(engine: EngineChoice, provider: Provider) -> EngineOptions {
    EngineOptions { engine, provider, precision: Precision::F32, threads: 2, ..Default::default() }
}

fn rten() -> EngineOptions {
    options(EngineChoice::Rten, Provider::Auto)
}

/// ONNX Runtime with a provider, or a plain word when the machine lacks it.
fn try_open(package: &infer::ModelPackage, options: &EngineOptions) -> Option<Models> {
    match open(package, options) {
        Ok(models) => Some(models),
        Err(EngineError::Unavailable { what, reason, .. })
            if reason.starts_with("no ") || reason.contains("Intel processors only") =>
        {
            eprintln!("SKIPPED: {what}: {reason}");
            None
        }
        Err(EngineError::None { reason, .. }) if reason.contains("Intel processors only") => {
            eprintln!("SKIPPED: {reason}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn largest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn segment(m: &mut Models, windows: &[RgbTile]) -> Vec<f32> {
    let maps = m.segmenter.as_mut().unwrap().probabilities(windows).unwrap();
    maps.into_iter().flat_map(|p| p.data).collect()
}

fn classify(m: &mut Models, crops: &[RgbTile]) -> Vec<f32> {
    let all = m.classifier.as_mut().unwrap().classes(crops).unwrap();
    all.into_iter().flat_map(|p| p.0).collect()
}

fn floats(v: &serde_json::Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// The fixture's weights are rounded to f16, the expected values are not.
const F16: f32 = 2e-3;

fn equals_pytorch(mut m: Models) {
    let golden = golden();
    let map = segment(&mut m, &[picture(64)]);
    let mean = map.iter().sum::<f32>() / map.len() as f32;
    assert!((mean - golden["segmenter"]["mean"].as_f64().unwrap() as f32).abs() < F16);
    let corner: Vec<f32> = map[..8].iter().chain(&map[64..72]).copied().collect();
    let off = largest(&corner, &floats(&golden["segmenter"]["corner"]));
    assert!(off < F16, "segmenter off by {off}");
    let off = largest(&classify(&mut m, &[picture(32)]), &floats(&golden["classifier"]));
    assert!(off < F16, "classifier off by {off}");
}

#[test]
fn rten_equals_pytorch() {
    let m = open(&tiny(), &rten()).unwrap();
    assert_eq!((m.report.engine.as_str(), m.report.segmenter_precision.as_str()), ("rten", "f32"));
    assert_eq!(m.report.fallback_reason, None);
    equals_pytorch(m);
}

/// The own executor gives rten's probabilities on the bundled networks, the same bits on any number of threads, and
/// names the operator that it lacks.
#[test]
fn native_equals_rten_on_the_bundled_networks() {
    let native =
        |threads| EngineOptions { threads, ..options(EngineChoice::Native, Provider::Auto) };
    let e = open(&tiny(), &native(1)).unwrap_err().to_string();
    assert!(e.contains("Erf") && e.contains("take the engine rten"), "{e}");
    for name in ["standard", "fast"] {
        let package = infer::ModelPackage::bundled_named(name).unwrap();
        let side = package.card.segmenter.as_ref().unwrap().window;
        let crop = package.card.classifier.as_ref().unwrap().crop;
        let (windows, crops) = (noise(side, 2), noise(crop, 5));
        let mut both = [native(1), native(2), rten()].map(|o| {
            let mut m = open(&package, &o).unwrap();
            (segment(&mut m, &windows), classify(&mut m, &crops), m.report.engine)
        });
        assert_eq!((&*both[0].2, &*both[2].2), ("native", "rten"));
        assert!(both[0].0 == both[1].0 && both[0].1 == both[1].1, "{name}: threads change bits");
        // Short batches, other batches and another order.
        let more = EngineOptions { segmenter_batch: 3, classifier_batch: 16, ..native(2) };
        let mut more = open(&package, &more).unwrap();
        assert_eq!(segment(&mut more, &windows), both[0].0, "{name}: the batch changes bits");
        let turned: Vec<RgbTile> = crops.iter().rev().cloned().collect();
        let classes = classify(&mut more, &turned);
        let classes: Vec<f32> = classes.rchunks(2).flatten().copied().collect();
        assert_eq!(classes, both[0].1, "{name}: batch or order change bits");
        let [own, _, other] = &mut both;
        let off = [largest(&own.0, &other.0), largest(&own.1, &other.1)];
        assert!(off.iter().all(|d| *d <= 1e-5), "{name}: windows and crops differ by {off:?}");
    }
}

const OPENED_AT_RUN_TIME: [(EngineChoice, Provider); 3] = [
    (EngineChoice::OnnxRuntime, Provider::Cpu),
    (EngineChoice::OnnxRuntime, Provider::OpenVino),
    (EngineChoice::OpenVino, Provider::OpenVino),
];

#[test]
fn engines_opened_at_run_time_equal_pytorch() {
    for (engine, provider) in OPENED_AT_RUN_TIME {
        let Some(m) = try_open(&tiny(), &options(engine, provider)) else { continue };
        assert_eq!((&*m.report.engine, &*m.report.provider), (engine.word(), provider.word()));
        assert!(m.report.library.as_ref().unwrap().is_file());
        equals_pytorch(m);
    }
}

#[test]
fn auto_runs_and_reports_what() {
    let m = open(&tiny(), &EngineOptions::default()).unwrap();
    let reason = m.report.fallback_reason.as_deref();
    if m.report.provider == "cpu" {
        assert!(reason.expect("a slower engine needs a reason").contains("pip install"));
    }
    // The own executor goes first where it was measured, and is passed by with the operator that it lacks.
    let measured = kernels::Isa::best() >= kernels::Isa::Avx2;
    if measured && m.report.provider != "cuda" {
        let reason = reason.expect("the first engine lacks an operator");
        assert!(reason.contains("native: ") && reason.contains("Erf"), "{reason}");
        assert!(m.report.engine.starts_with("native+"), "{}", m.report.engine);
        let fast = infer::ModelPackage::bundled_named("fast").unwrap();
        let own = open(&fast, &EngineOptions::default()).unwrap().report;
        assert_eq!((&*own.engine, own.fallback_reason.as_deref()), ("native", None));
        assert!(own.version.ends_with(&kernels::Isa::best().to_string()), "{}", own.version);
        // bf16 needs nothing installed where the processor has it.
        let bf16 = EngineOptions { precision: Precision::Bf16, ..EngineOptions::default() };
        match open(&fast, &bf16) {
            Ok(Models { report, .. }) => assert_eq!(
                (&*report.engine, &*report.segmenter_precision, &*report.classifier_precision),
                ("native", "bf16", "bf16")
            ),
            Err(e) => assert!(!kernels::bf16(), "{e}"),
        }
    }
    let text = serde_json::to_string(&m.report).unwrap();
    assert_eq!(serde_json::from_str::<infer::EngineReport>(&text).unwrap(), m.report);
}

/// Where the own executor lacks an operator of the second stage, it still runs the first.
#[test]
fn auto_takes_the_fastest_engine_of_each_network() {
    if kernels::Isa::best() < kernels::Isa::Avx2 {
        eprintln!("SKIPPED: native is not automatic here");
        return;
    }
    let mut both = open(&tiny(), &options(EngineChoice::Auto, Provider::Auto)).unwrap();
    let engine = both.report.engine.clone();
    let Some(other) = engine.strip_prefix("native+") else {
        eprintln!("SKIPPED: {engine} comes before native");
        return;
    };
    assert_eq!(both.report.first_engine(), "native");
    assert_eq!((both.report.segmenter_batch, both.report.classifier_batch), (2, 1));
    let (named, provider) = (other.parse().unwrap(), both.report.provider.parse().unwrap());
    let mut alone = open(&tiny(), &options(named, provider)).unwrap();
    let (windows, crops) = (noise(64, 3), noise(32, 5));
    assert_eq!(classify(&mut both, &crops), classify(&mut alone, &crops));
    let off = largest(&segment(&mut both, &windows), &segment(&mut alone, &windows));
    assert!(off > 0.0 && off <= 1e-5, "the first stages differ by {off}");
    equals_pytorch(both);
    // What was asked for by name runs everything, or nothing.
    let e = open(&tiny(), &options(EngineChoice::Native, Provider::Auto)).unwrap_err();
    assert!(e.to_string().contains("Erf"), "{e}");
    assert_eq!(alone.report.engine, other);
}

#[test]
fn a_result_depends_on_its_image_alone() {
    let embedded = [(EngineChoice::Rten, Provider::Auto)];
    for (engine, provider) in embedded.into_iter().chain(OPENED_AT_RUN_TIME) {
        let windows = noise(64, 5);
        let crops = noise(32, 7);
        let base = options(engine, provider);
        let Some(mut single) = try_open(&tiny(), &base) else { continue };
        let maps: Vec<f32> = windows.chunks(1).flat_map(|w| segment(&mut single, w)).collect();
        let probs: Vec<f32> = crops.chunks(1).flat_map(|c| classify(&mut single, c)).collect();
        // The default batch is 1, so that any grouping gives the same bits.
        assert_eq!(segment(&mut single, &windows), maps, "{}", single.report);
        assert_eq!(classify(&mut single, &crops), probs, "{}", single.report);

        let wide = EngineOptions { segmenter_batch: 3, classifier_batch: 4, ..base };
        let mut wide = open(&tiny(), &wide).unwrap();
        assert!(largest(&segment(&mut wide, &windows), &maps) <= 1e-6, "{}", wide.report);
        assert!(largest(&classify(&mut wide, &crops), &probs) <= 1e-6, "{}", wide.report);
        // Within one batch size, order and neighbours change nothing.
        let alone = segment(&mut wide, &windows[4..]);
        assert_eq!(alone, segment(&mut wide, &windows)[4 * 64 * 64..], "{}", wide.report);
    }
}

#[test]
fn no_image_gives_no_result() {
    let mut m = open(&tiny(), &rten()).unwrap();
    assert!(segment(&mut m, &[]).is_empty());
    assert!(classify(&mut m, &[]).is_empty());
}

#[test]
fn a_tile_of_another_size_is_refused() {
    let mut m = open(&tiny(), &rten()).unwrap();
    let e = m.segmenter.as_mut().unwrap().probabilities(&[picture(65)]).unwrap_err();
    assert!(matches!(e, PortError::TileSize { .. }), "{e}");
    let e = m.classifier.as_mut().unwrap().classes(&[picture(16)]).unwrap_err();
    assert!(e.to_string().contains("32x32"), "{e}");
}

#[test]
fn what_was_asked_for_by_name_is_never_swapped() {
    let missing = EngineOptions { library: Some("no/such/libonnxruntime.so".into()), ..rten() };
    for engine in [EngineChoice::OnnxRuntime, EngineChoice::Auto] {
        let e = open(&tiny(), &EngineOptions { engine, ..missing.clone() }).unwrap_err();
        assert!(e.to_string().contains("pip install onnxruntime"), "{e}");
    }
    let e = open(&tiny(), &options(EngineChoice::Rten, Provider::Cuda)).unwrap_err();
    assert!(matches!(e, EngineError::Options(_)), "{e}");
    let bf16 = EngineOptions { precision: Precision::Bf16, ..rten() };
    assert!(matches!(open(&tiny(), &bf16), Err(EngineError::Options(_))));
    if !std::path::Path::new("/dev/nvidia0").exists()
        && try_open(&tiny(), &options(EngineChoice::OnnxRuntime, Provider::Cpu)).is_some()
    {
        let e = open(&tiny(), &options(EngineChoice::OnnxRuntime, Provider::Cuda)).unwrap_err();
        assert!(e.to_string().contains("onnxruntime-gpu"), "{e}");
    }
}

#[test]
fn a_network_that_does_not_fit_its_card_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["card.toml", "segmenter.onnx", "classifier.onnx"] {
        std::fs::copy(common::tiny_dir().join(file), dir.path().join(file)).unwrap();
    }
    let card = std::fs::read_to_string(dir.path().join("card.toml")).unwrap();
    let opened = |from: &str, to: &str| {
        assert!(card.contains(from));
        std::fs::write(dir.path().join("card.toml"), card.replace(from, to)).unwrap();
        let package = infer::ModelPackage::open(dir.path()).unwrap();
        open(&package, &rten()).unwrap_err().to_string()
    };
    let e = opened("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\"]");
    assert!(e.contains("classifier") && e.contains('3') && e.contains('2'), "{e}");
    let e = opened("window = 64", "window = 96");
    assert!(e.contains("segmenter") && e.contains("64") && e.contains("96"), "{e}");
}

#[test]
fn a_crop_read_at_the_networks_size_is_taken_as_it_is() {
    let package = tiny();
    let input = package.card.classifier.as_ref().unwrap().input;
    let crops = noise(32, 3);
    let fine: Vec<RgbTile> = crops.iter().map(|c| resize(c, input, input)).collect();
    let mut m = open(&package, &rten()).unwrap();
    assert_eq!(classify(&mut m, &fine), classify(&mut m, &crops));
}

/// Frames of the real data cut into windows and crops.
fn real(window: usize, crop: usize) -> Option<(Vec<RgbTile>, Vec<RgbTile>)> {
    let folder = testkit::data("icpr2012/frames")?;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut windows, mut crops) = (Vec::new(), Vec::new());
    for file in files.iter().step_by(6) {
        let frame = image::open(file).unwrap().to_rgb8();
        let cut = |x: usize, y: usize, side: usize| {
            let (x, y, s) = (x as u32, y as u32, side as u32);
            let part = image::imageops::crop_imm(&frame, x, y, s, s).to_image();
            RgbTile::new(side, side, part.into_raw())
        };
        windows.extend([(0, 0), (700, 900)].map(|(x, y)| cut(x, y, window)));
        crops.extend((0..6).map(|i| cut(100 + 300 * i, 1800 - 250 * i, crop)));
    }
    Some((windows, crops))
}

#[test]
fn engines_agree_on_real_frames() {
    let Some((package, trained)) = real_size() else { return };
    let parts = package.card.detector().unwrap();
    let crop = parts.classifier.map_or(128, |c| c.crop);
    let Some((windows, crops)) = real(parts.segmenter.window, crop) else { return };
    let mut yardstick = open(&package, &rten()).unwrap();
    let map = segment(&mut yardstick, &windows);
    let probs = classify(&mut yardstick, &crops);
    for (engine, provider, precision, allowed) in [
        (EngineChoice::OnnxRuntime, Provider::Cpu, Precision::F32, 1e-3),
        (EngineChoice::OnnxRuntime, Provider::OpenVino, Precision::F32, 1e-3),
        (EngineChoice::OpenVino, Provider::OpenVino, Precision::F32, 1e-3),
        (EngineChoice::OpenVino, Provider::OpenVino, Precision::Bf16, 5e-3),
        (EngineChoice::Native, Provider::Cpu, Precision::F32, 1e-5),
        (EngineChoice::Native, Provider::Cpu, Precision::Bf16, 5e-3),
    ] {
        if precision == Precision::Bf16 && !trained {
            eprintln!("SKIPPED: bf16 needs trained weights");
            continue;
        }
        let options = EngineOptions { precision, ..options(engine, provider) };
        let mut m = match open(&package, &options) {
            Err(EngineError::Options(e)) => {
                eprintln!("SKIPPED: {e}");
                continue;
            }
            _ => match try_open(&package, &options) {
                Some(m) => m,
                None => continue,
            },
        };
        let got = segment(&mut m, &windows);
        let seg = largest(&got, &map);
        let sum: f32 = got.iter().zip(&map).map(|(a, b)| (a - b).abs()).sum();
        let seg_mean = sum / map.len() as f32;
        let cls = largest(&classify(&mut m, &crops), &probs);
        eprintln!(
            "{}: pixels within {seg:.1e} (mean {seg_mean:.1e}), classes within {cls:.1e}",
            m.report
        );
        if precision == Precision::Bf16 {
            // `s_seg` is a mean over a region; single pixels on a slope move further.
            assert_eq!(m.report.segmenter_precision, "bf16");
            assert!(seg_mean <= 0.1 * allowed && seg <= 10.0 * allowed, "{}: {seg}", m.report);
            assert_eq!(m.report.classifier_precision, "bf16");
            assert!(cls > 0.0 && cls <= 2.0 * allowed, "{}: {cls}", m.report);
            // One whose card does not allow it stays in f32.
            let mut other = package.clone();
            other.card.classifier.as_mut().unwrap().bf16 = false;
            let mut m = open(&other, &options).unwrap();
            assert_eq!(m.report.classifier_precision, "f32");
            let cls = largest(&classify(&mut m, &crops), &probs);
            assert!(cls <= 1e-3, "{}: {cls}", m.report);
        } else {
            assert!(seg <= allowed && cls <= allowed, "{}: {seg} {cls}", m.report);
        }
    }
}
