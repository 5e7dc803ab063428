//! Exported files give libtorch's probabilities in the engines that Python has here.

use crate::common;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use crate::common::{fill, signed};
use net::efficientnet::Variant;
use net::encoder::{self, Encoder, EncoderConfig};
use net::onnx::{self, ExportOptions, Program, WeightKind};
use net::unet::{EfficientUnet, UnetConfig};
use net::vit::Pool;
use tch::{Device, Kind, Tensor, nn::VarStore};

/// Python with the engines: starting it takes longer than any network here.
struct Engines {
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Engines {
    fn start() -> Option<Mutex<Self>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_onnx.py");
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let mut command = Command::new(&python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = command.spawn().ok().and_then(|mut child| {
            let (asks, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
            let mut engines = Self { asks, answers };
            (engines.answer() == "ready").then_some(Mutex::new(engines))
        });
        if started.is_none() {
            eprintln!("SKIPPED: no {python} with onnx, onnxruntime and safetensors (set PYTHON)");
        }
        started
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("python");
        line.trim().to_owned()
    }
}

/// Largest difference per engine, or `None` without Python with an engine.
fn run(bytes: &[u8], cases: &[(Tensor, Tensor)]) -> Option<BTreeMap<String, f64>> {
    static ENGINES: LazyLock<Option<Mutex<Engines>>> = LazyLock::new(Engines::start);
    let mut engines = ENGINES.as_ref()?.lock().expect("no test of this process failed");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (model, data) = (dir.path().join("m.onnx"), dir.path().join("cases.safetensors"));
    onnx::write(&model, bytes).expect("written");
    let mut tensors = BTreeMap::new();
    for (i, (image, expected)) in cases.iter().enumerate() {
        tensors.insert(format!("image.{i}"), image.shallow_clone());
        tensors.insert(format!("expected.{i}"), expected.shallow_clone());
    }
    net::checkpoint::save_tensors(&data, &tensors, BTreeMap::new()).expect("written");
    writeln!(engines.asks, "{}\t{}", model.display(), data.display()).expect("python");
    let answer = engines.answer();
    let differences: BTreeMap<String, f64> =
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
    assert!(differences.contains_key("onnxruntime"));
    eprintln!("{differences:?}");
    Some(differences)
}

fn check(bytes: &[u8], cases: &[(Tensor, Tensor)], tolerance: f64) {
    let here = Program::load(bytes, Device::Cpu, None).expect("every operator is known");
    for (image, expected) in cases {
        let out = here.run(image).expect("it runs");
        let worst = f64::try_from((out - expected).abs().max()).expect("scalar");
        assert!(worst <= tolerance, "libtorch: {worst:e}");
    }
    for (engine, worst) in run(bytes, cases).into_iter().flatten() {
        assert!(worst <= tolerance, "{engine}: {worst:e}");
    }
}

/// An embedding in one file.
fn whole(net: &dyn Encoder, vs: &VarStore, side: i64, options: &ExportOptions) -> Vec<u8> {
    let files = onnx::embedding(net, vs, side, options, onnx::MOST_BYTES).expect("exported");
    let [file] = <[Vec<u8>; 1]>::try_from(files).expect("one file");
    file
}

fn range(t: &Tensor) -> (f64, f64) {
    (f64::try_from(t.min()).expect("scalar"), f64::try_from(t.max()).expect("scalar"))
}

#[test]
fn the_unet_in_other_engines_equals_libtorch() {
    let whole = UnetConfig::default().decoder;
    for (encoder, decoder, output_stride) in [
        (Variant::B0, whole.clone(), 32),
        (Variant::Lite0, whole.clone(), 32),
        (Variant::TfB0, whole, 32),
        // Ends at a quarter and at half of the resolution.
        (Variant::Lite0, vec![48, 32, 16], 32),
        (Variant::Lite0, vec![48, 32, 16, 16], 32),
        // Begins at stride 16, and ends at a quarter and at the whole of the resolution.
        (Variant::Lite0, vec![32, 16], 16),
        (Variant::B0, vec![48, 32, 16, 8], 16),
    ] {
        let vs = VarStore::new(Device::Cpu);
        let config = UnetConfig { encoder, decoder, output_stride, ..UnetConfig::default() };
        let net = EfficientUnet::new(&vs.root(), &config).expect("valid");
        fill(&vs);
        // Batch, height and width are free.
        let cases: Vec<_> = [[1, 3, 64, 96], [3, 3, 128, 64]]
            .iter()
            .map(|shape| {
                let x = signed("input", shape, 1.5);
                let y = tch::no_grad(|| net.forward(&x, false).sigmoid());
                (x, y)
            })
            .collect();
        let (low, high) = range(&cases[0].1);
        assert!(high - low > 0.01, "a flat map would prove nothing: {low} {high}");
        check(&onnx::unet(&net, &vs, &ExportOptions::default()).expect("exported"), &cases, 1e-5);
        let half = ExportOptions { weights: WeightKind::F16, ..ExportOptions::default() };
        let bytes = onnx::unet(&net, &vs, &half).expect("exported");
        assert!(
            bytes.len()
                < onnx::unet(&net, &vs, &ExportOptions::default()).expect("exported").len() * 6
                    / 10
        );
        check(&bytes, &cases, 3e-3);
        let rounded = ExportOptions { weights: WeightKind::Rounded, ..ExportOptions::default() };
        let short = onnx::unet(&net, &vs, &rounded).expect("exported");
        assert!(short.len() == bytes.len() && short != bytes);
        check(&short, &cases, 0.1 * (high - low));
    }
}

#[test]
fn classifiers_in_other_engines_equal_libtorch() {
    for (name, side, pool) in [
        ("vit_tiny_patch16_224", 224, Pool::Cls),
        ("vit_tiny_patch16_224", 112, Pool::Mean),
        ("efficientnet_b0", 96, Pool::Cls),
        ("efficientnetv2_s", 64, Pool::Cls),
        ("resnet50", 64, Pool::Cls),
        ("swin_tiny_convstem_window7_224", 224, Pool::Cls),
    ] {
        let vs = VarStore::new(Device::Cpu);
        let config = EncoderConfig { image: side, pool, ..EncoderConfig::new(name, 3) };
        let net = encoder::build(&vs.root(), &config).expect("valid");
        fill(&vs);
        let cases = |f: &dyn Fn(&Tensor) -> Tensor| -> Vec<_> {
            [1, 4]
                .map(|n| signed("input", &[n, 3, side, side], 1.5))
                .into_iter()
                .map(|x| (x.shallow_clone(), tch::no_grad(|| f(&x))))
                .collect()
        };
        let classes = cases(&|x| net.forward(x, false).softmax(-1, Kind::Float));
        let bytes =
            onnx::classifier(&*net, &vs, side, &ExportOptions::default()).expect("exported");
        eprintln!("{name} {side} {pool:?}");
        check(&bytes, &classes, 1e-4);
        assert!(
            onnx::classifier(&*net, &vs, side + 1, &ExportOptions::default()).is_err()
                || net.image().is_none()
        );
    }
}

#[test]
fn an_embedding_in_other_engines_equals_libtorch() {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 112, ..EncoderConfig::new("vit_tiny_patch16_224", 0) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    fill(&vs);
    let x = signed("input", &[2, 3, 112, 112], 1.5);
    let y = tch::no_grad(|| net.embed(&x, false));
    let bytes = whole(&*net, &vs, 112, &ExportOptions::default());
    check(&bytes, &[(x.shallow_clone(), y.shallow_clone())], 1e-4);
    let low = Program::load(&bytes, Device::Cpu, Some("image")).expect("all of it in bf16");
    let low = low.run(&x).expect("it runs");
    let cosine =
        f64::try_from(Tensor::cosine_similarity(&low, &y, 1, 1e-8).min()).expect("a number");
    assert!(cosine > 0.999 && low.kind() == Kind::Float && !low.equal(&y), "{cosine}");
    let why = onnx::classifier(&*net, &vs, 112, &ExportOptions::default()).expect_err("no head");
    assert!(why.to_string().contains("head"), "{why}");
}

#[test]
fn every_vision_transformer_in_other_engines_equals_libtorch() {
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        config: net::vit::VitConfig,
    }
    #[derive(serde::Deserialize)]
    struct Row {
        rows: Vec<String>,
        config: net::vit::VitConfig,
    }
    let cases: Vec<Case> = common::golden("vit_switches");
    let rows = common::golden::<Vec<Row>>("vit_layouts").into_iter();
    let conch = rows
        .map(|r| Case { name: r.rows.join(", "), config: r.config })
        .filter(|c| c.name.starts_with("conch"));
    for Case { name, config } in cases.into_iter().chain(conch) {
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::vit(&vs.root(), &config).expect("valid");
        fill(&vs);
        let cases: Vec<_> = [1, 3]
            .map(|n| signed("input", &[n, 3, config.image, config.image], 1.5))
            .into_iter()
            .map(|x| (x.shallow_clone(), tch::no_grad(|| net.embed(&x, false))))
            .collect();
        let bytes = whole(&*net, &vs, config.image, &ExportOptions::default());
        eprintln!("{name}");
        let (low, high) = range(&cases[0].1);
        check(&bytes, &cases, 1e-4 * (high - low));
        if config.layer_scale.is_some() {
            let half = ExportOptions { weights: WeightKind::F16, ..ExportOptions::default() };
            let bytes = whole(&*net, &vs, config.image, &half);
            check(&bytes, &cases, 3e-3 * (high - low));
        }
    }
}

#[test]
fn a_transformer_in_several_files_is_the_one_and_none_is_too_large() {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 32, ..EncoderConfig::new("vit_tiny_patch16_224", 0) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    fill(&vs);
    let x = signed("input", &[2, 3, 32, 32], 1.5);
    let y = tch::no_grad(|| net.embed(&x, false));
    for weights in [WeightKind::F32, WeightKind::F16] {
        let options = ExportOptions { weights, metadata: vec![("a".into(), "b".into())] };
        let files = |most| onnx::embedding(&*net, &vs, 32, &options, most);
        let whole = whole(&*net, &vs, 32, &options);
        let all = whole.len() as u64;
        // What a file has besides its weights is counted generously.
        assert!(files(all + 16_384).expect("it fits") == [&*whole], "the same file");
        let run = |files: &[Vec<u8>]| {
            files.iter().fold(x.shallow_clone(), |x, bytes| {
                Program::load(bytes, Device::Cpu, None).expect("known").run(&x).expect("it runs")
            })
        };
        let one = run(&[whole]);
        for (share, least) in [(2, 2), (3, 3), (10, 6)] {
            let files = files(all / share + all / 12).expect("cut");
            assert!(files.len() >= least, "{}", files.len());
            assert!(files.iter().all(|f| f.len() as u64 <= all / share + all / 12));
            assert!(files.iter().map(Vec::len).sum::<usize>() < all as usize + 16_384);
            assert!(run(&files) == one, "{} files", files.len());
        }
        // A block is not cut.
        let why = files(all / 30).expect_err("too small").to_string();
        assert!(why.contains("vit_tiny_patch16_224") && why.contains("GB"), "{why}");
    }
    let whole = whole(&*net, &vs, 32, &ExportOptions::default());
    check(&whole, &[(x, y)], 1e-4);
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 64, ..EncoderConfig::new("resnet50", 0) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    assert!(onnx::embedding(&*net, &vs, 64, &ExportOptions::default(), 1 << 20).is_err());
}

#[test]
fn embeddings_of_other_families_in_other_engines_equal_libtorch() {
    for (name, side) in [
        ("efficientnet_b0", 64),
        // Odd sides on the way: the zeros are at one end.
        ("tf_efficientnet_b0", 75),
        ("resnet50", 64),
        ("resnet50v2_stage3", 64),
        // Windows that do not come out even, an odd side to merge, one window in the last stage.
        ("swin_tiny_patch4_window7_224", 152),
        ("swin_tiny_convstem_window7_224", 160),
    ] {
        let vs = VarStore::new(Device::Cpu);
        let config = EncoderConfig { image: side, ..EncoderConfig::new(name, 0) };
        let net = encoder::build(&vs.root(), &config).expect("valid");
        fill(&vs);
        let x = signed("input", &[2, 3, side, side], 1.5);
        let y = tch::no_grad(|| net.embed(&x, false));
        assert_eq!(tch::no_grad(|| net.forward(&x, false)), y);
        let (low, high) = range(&y);
        let bytes = whole(&*net, &vs, side, &ExportOptions::default());
        eprintln!("{name} {side}: {low} to {high}");
        check(&bytes, &[(x, y)], 2e-5 * (high - low));
        assert!(onnx::classifier(&*net, &vs, side, &ExportOptions::default()).is_err());
    }
}

#[test]
fn repeated_numbers_are_written_one_by_one_as_proto2_has_them() {
    // rten 0.27 refuses packed ones.
    use prost::Message;
    let ints = proto::AttributeProto { ints: vec![1, 2], ..Default::default() };
    assert_eq!(ints.encode_to_vec(), [0x40, 1, 0x40, 2]);
    let dims = proto::TensorProto { dims: vec![3, 4], ..Default::default() };
    assert_eq!(dims.encode_to_vec(), [0x08, 3, 0x08, 4]);
}

/// A network after unfolding computes what the file does, and while training, too, over the images that its norms
/// were measured on.
fn unfolded(
    (file, batch): (&[u8], &Tensor),
    unfold: impl Fn(&Path, &mut dyn Iterator<Item = Tensor>) -> net::Result<()>,
    forward: impl Fn(&Tensor, bool) -> Tensor,
    tolerance: f64,
) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("m.onnx");
    onnx::write(&path, file).expect("written");
    unfold(&path, &mut std::iter::once(batch.shallow_clone())).expect("the same network");
    let program = Program::load(file, Device::Cpu, None).expect("every operator is known");
    let other = signed("other", &batch.size(), 1.5);
    let differs = |a: &Tensor, b: &Tensor| f64::try_from((a - b).abs().max()).expect("scalar");
    for (x, train, tolerance) in
        [(&other, false, tolerance), (batch, false, tolerance), (batch, true, 0.02)]
    {
        let (here, there) = (tch::no_grad(|| forward(x, train)), program.run(x).expect("it runs"));
        let (low, high) = range(&there);
        assert!(high - low > 0.02, "flat outputs would prove nothing: {low} {high}");
        let worst = differs(&here, &there);
        assert!(worst <= tolerance, "train {train}: {worst:e}");
    }
    // Wrong weights in a layer are seen.
    let none = unfold(&path, &mut std::iter::empty()).expect_err("nothing to measure on");
    assert!(none.to_string().contains("images"), "{none}");
    std::fs::write(&path, b"no network").expect("written");
    let no = unfold(&path, &mut std::iter::once(batch.shallow_clone())).expect_err("no ONNX");
    assert!(no.to_string().contains("m.onnx"), "{no}");
}

#[test]
fn an_exported_unet_trains_on() {
    let config =
        UnetConfig { encoder: Variant::Lite0, decoder: vec![48, 32, 16], ..UnetConfig::default() };
    let build = || {
        let vs = VarStore::new(Device::Cpu);
        let net = EfficientUnet::new(&vs.root(), &config).expect("valid");
        (vs, net)
    };
    let (vs, net) = build();
    fill(&vs);
    for (weights, tolerance) in [(WeightKind::F32, 1e-4), (WeightKind::F16, 1e-4)] {
        let file = onnx::unet(&net, &vs, &ExportOptions { weights, ..ExportOptions::default() })
            .expect("exported");
        let (vs, net) = build();
        let batch = signed("input", &[4, 3, 64, 96], 1.5);
        let unfold = |path: &Path, images: &mut dyn Iterator<Item = Tensor>| {
            onnx::unfold_unet(&net, &vs, path, images)
        };
        unfolded((&file, &batch), unfold, |x, train| net.forward(x, train).sigmoid(), tolerance);
    }
}

/// A file that states that it knows `classes` classes.
fn of_classes(file: &[u8], classes: i64) -> Vec<u8> {
    use prost::Message;
    use proto::{Dimension, ModelProto};
    let mut model = ModelProto::decode(file).expect("an ONNX file");
    let output = &mut model.graph.as_mut().expect("a graph").output[0];
    let tensor = output.r#type.as_mut().and_then(|t| t.tensor_type.as_mut()).expect("a tensor");
    tensor.shape.as_mut().expect("a shape").dim[1].value = Some(Dimension::Value(classes));
    model.encode_to_vec()
}

#[test]
fn exported_classifiers_train_on() {
    for name in ["efficientnet_lite0", "efficientnet_b0", "resnet50v2_stage3"] {
        let build = |classes| {
            let vs = VarStore::new(Device::Cpu);
            let config = EncoderConfig { image: 64, ..EncoderConfig::new(name, classes) };
            let net = encoder::build(&vs.root(), &config).expect("valid");
            (vs, net)
        };
        let (vs, net) = build(2);
        fill(&vs);
        let file = onnx::classifier(&*net, &vs, 64, &ExportOptions::default()).expect("exported");
        let batch = signed("input", &[12, 3, 64, 64], 1.5);
        let (vs, net) = build(2);
        eprintln!("{name}");
        unfolded(
            (&file, &batch),
            |path, images| onnx::unfold_classifier(&*net, &vs, 64, path, images),
            |x, train| net.forward(x, train).softmax(-1, Kind::Float),
            1e-4,
        );
        let (vs, other) = build(3);
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("two.onnx");
        onnx::write(&path, &file).expect("written");
        assert_eq!(onnx::count_classes(&path).expect("a classifier"), 2);
        for claim in [0, -1, 1 << 40] {
            let file_with_claim = dir.path().join("wrong.onnx");
            onnx::write(&file_with_claim, &of_classes(&file, claim)).expect("written");
            let no = onnx::count_classes(&file_with_claim)
                .expect_err("no network has so many")
                .to_string();
            assert!(no.contains("wrong.onnx") && no.contains(&claim.to_string()), "{no}");
        }
        let images = &mut std::iter::once(batch);
        let no = onnx::unfold_classifier(&*other, &vs, 64, &path, images).expect_err("three");
        assert!(no.to_string().contains("where the preset's network has"), "{no}");
    }
}

#[test]
fn what_an_export_does_not_keep_is_reported() {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 64, ..EncoderConfig::new("vit_tiny_patch16_224", 2) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("vit.onnx");
    let file = onnx::classifier(&*net, &vs, 64, &ExportOptions::default()).expect("exported");
    onnx::write(&path, &file).expect("written");
    let images = &mut std::iter::once(signed("input", &[2, 3, 64, 64], 1.5));
    let no = onnx::unfold_classifier(&*net, &vs, 64, &path, images).expect_err("a transformer");
    assert!(no.to_string().contains("model.safetensors"), "{no}");
}
