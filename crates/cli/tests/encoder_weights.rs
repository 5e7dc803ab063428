//! Files of weights to packages and features, by the program itself, with seeded weights of published rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use encoders::encoder::EncoderConfig;
use encoders::onnx::outline;
use net::checkpoint::{Tensors, read_tensors, save_tensors};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{ListAccessor, RowAccessor};
use serde_json::Value;
use testkit::conch;
use train::headed::Headed;

fn mithras(args: &[&str]) -> (Option<i32>, String, String) {
    run(&training(), args)
}

/// The program with libtorch, as in `all.rs`.
fn training() -> String {
    std::env::var("MITHRAS_TEST_TRAINS").unwrap_or(env!("CARGO_BIN_EXE_mithras").into())
}

/// The program as most users have it, without libtorch.
fn plain() -> String {
    std::env::var("MITHRAS_TEST_PROGRAM").unwrap_or_else(|_| training())
}

fn run(program: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(program).args(args).env("OMP_NUM_THREADS", "1").output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn s(p: &Path) -> &str {
    p.to_str().unwrap()
}

fn done(args: &[&str]) -> String {
    let (code, printed, err) = mithras(args);
    assert_eq!(code, Some(0), "{args:?}: {err}");
    printed
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// A folder, and what is written into it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Seeded weights of a row with `classes` outputs, whose names go through `rename`.
    fn drawn(
        &self,
        row: &str,
        (image, classes): (i64, usize),
        rename: impl Fn(&str) -> String,
    ) -> Tensors {
        let path = self.at("drawn.safetensors");
        Headed::drawn(row, image, classes, 3).unwrap().save(&path).unwrap();
        let mut file = read_tensors(&path).unwrap();
        file.tensors = file.tensors.into_iter().map(|(n, t)| (rename(&n), t)).collect();
        file
    }

    fn save(&self, name: &str, file: &Tensors) -> PathBuf {
        let path = self.at(name);
        save_tensors(&path, &file.tensors, BTreeMap::new()).unwrap();
        path
    }

    /// Pictures of several sizes, none of them a network's own.
    fn pictures(&self) -> PathBuf {
        let folder = self.at("pictures");
        std::fs::create_dir(&folder).unwrap();
        for (k, (w, h)) in [(48, 48), (60, 44), (40, 90)].into_iter().enumerate() {
            let image = image::RgbImage::from_fn(w, h, |x, y| {
                let v = |a: u32, b: u32| ((x * a + y * b + 37 * k as u32) % 200) as u8;
                image::Rgb([v(3, 7), v(5, 2) / 2, 40 + v(1, 9) / 2])
            });
            image.save(folder.join(format!("{k}.png"))).unwrap();
        }
        folder
    }
}

fn convert(
    weights: &Path,
    encoder: &str,
    out: &Path,
    more: &[&str],
) -> (Option<i32>, String, String) {
    convert_by(&training(), weights, encoder, out, more)
}

fn convert_by(
    program: &str,
    weights: &Path,
    encoder: &str,
    out: &Path,
    more: &[&str],
) -> (Option<i32>, String, String) {
    let args =
        ["encoders", "convert", "--weights", s(weights), "--encoder", encoder, "--out", s(out)];
    run(program, &[&args[..], &["--name", "made", "--license", "CC BY-NC 4.0"], more].concat())
}

fn vectors(table: &Path) -> Vec<f32> {
    let file = SerializedFileReader::new(std::fs::File::open(table).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let list = row.get_list(7).unwrap();
        (0..list.len()).map(|i| list.get_float(i).unwrap()).collect::<Vec<f32>>()
    });
    rows.flatten().collect()
}

/// Largest difference, as a share of the largest magnitude.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / largest
}

const LUNIT: &str = "lunit-vits16";

#[test]
fn a_published_file_becomes_a_package_that_embeds_as_its_weights_do() {
    let desk = Desk::new();
    // As published: 224 px, and 32 here, so that the test is short.
    let weights = desk.save("dino.safetensors", &desk.drawn(LUNIT, (224, 0), str::to_owned));
    let pictures = desk.pictures();
    let embed = |name: &str, how: &[&str]| {
        let table = desk.at(name);
        let args = ["embed", "--crops", s(&pictures), "--out", s(&table), "--threads", "1"];
        done(&[&args[..], how].concat());
        vectors(&table)
    };
    let named = ["--encoder", LUNIT, "--image", "32", "--device", "cpu"];
    let own = embed("own.parquet", &[&["--weights", s(&weights)][..], &named].concat());
    assert_eq!(own.len(), 3 * 384);

    let [whole, half] = ["f32", "f16"].map(|precision| {
        let out = desk.at(precision);
        let (code, printed, err) =
            convert(&weights, LUNIT, &out, &["--image", "32", "--precision", precision]);
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(printed.contains("libtorch on the weights"), precision == "f32", "{printed}");
        assert_eq!(printed.contains("f16 weights move a feature"), precision == "f16", "{printed}");
        out
    });
    let bytes = |package: &Path| std::fs::metadata(package.join("encoder.onnx")).unwrap().len();
    assert!(bytes(&half) * 10 < bytes(&whole) * 6, "{} {}", bytes(&half), bytes(&whole));

    let shown = json(&done(&["encoders", "show", s(&half), "--json"]));
    let card = &shown["card"]["encoder"];
    let (_, digest) = base::digest::sha256_file(&weights).unwrap();
    assert_eq!(
        (&card["source"]["file"], &card["source"]["sha256"]),
        (&"dino.safetensors".into(), &digest.into())
    );
    assert_eq!((&card["width"], &card["input"]), (&384.into(), &32.into()));
    assert_eq!(
        (&card["pooling"], &card["interpolation"]),
        (&"class token".into(), &"bicubic".into())
    );
    assert!((card["mean"][0].as_f64().unwrap() - 0.7032).abs() < 1e-3, "{card}");
    assert_eq!(shown["card"]["license"], "CC BY-NC 4.0");
    let rounding = card["parity"]["rounding"].as_f64().unwrap();
    let largest = card["parity"]["largest"].as_f64().unwrap();
    assert!(rounding > 0.0 && rounding < 1e-2 * largest, "{rounding} of {largest}");
    let words = done(&["encoders", "show", s(&half)]);
    assert!(
        words.contains("bicubic, the shorter side to 32 px") && words.contains("CC BY-NC"),
        "{words}"
    );

    for engine in ["rten", "torch"] {
        let with = |package: &Path, name: &str| {
            embed(
                &format!("{engine}-{name}.parquet"),
                &["--encoder", s(package), "--engine", engine],
            )
        };
        let off = apart(&own, &with(&whole, "f32"));
        assert!(off < 1e-4, "{engine}: {off}");
        let off = apart(&own, &with(&half, "f16"));
        assert!(off < 1e-2, "{engine} with f16 weights: {off}");
    }
}

#[test]
fn files_that_do_not_fit_end_with_1_and_leave_nothing() {
    let desk = Desk::new();
    let mut file = desk.drawn(LUNIT, (32, 0), str::to_owned);
    let weights = desk.save("whole.safetensors", &file);
    let refused = |weights: &Path, encoder: &str, more: &[&str], words: &[&str]| {
        let out = desk.at("package");
        let (code, printed, err) = convert(weights, encoder, &out, more);
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{err}");
        assert!(words.iter().all(|w| err.contains(w)), "{words:?} not in: {err}");
        assert!(!out.exists(), "{} was left", out.display());
        let table = desk.at("f.parquet");
        let embed = ["embed", "--weights", s(weights), "--encoder", encoder, "--crops", "none"];
        let how = ["--image", "32", "--device", "cpu", "--out", s(&table)];
        let (code, _, _) = mithras(&[&embed[..], &how].concat());
        assert!(code == Some(1) && !table.exists());
    };
    let small = ["--image", "32"];
    let bytes = std::fs::read(&weights).unwrap();
    let cut = desk.at("cut.safetensors");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    refused(&cut, LUNIT, &small, &["cut.safetensors", "no readable safetensors file"]);
    refused(&weights, "lunit-vits8", &small, &["whole.safetensors", "patch_embed.proj.weight"]);
    refused(&weights, "phikon", &small, &["whole.safetensors"]);
    refused(&weights, "no-such", &small, &["no-such", "lunit-vits16"]);
    let _ = file.tensors.get_mut("blocks.3.norm1.weight").expect("a norm").fill_(f64::NAN);
    let nan = desk.save("nan.safetensors", &file);
    refused(&nan, LUNIT, &small, &["nan.safetensors", "blocks.3.norm1.weight"]);
    // Giants become several files, but a classifier has one: refused before the weights are read.
    let none = desk.at("none.safetensors");
    refused(&none, "gigapath", &["--precision", "f16"], &["none.safetensors"]);
    let head = ["--classes", "a,b", "--positive", "a", "--mpp", "0.5"];
    refused(&none, "virchow", &head, &["virchow", "2.5 GB", "take the precision f16"]);
    let halved = [&head[..], &["--precision", "f16"]].concat();
    refused(&none, "gigapath", &halved, &["gigapath", "2.3 GB", "a classifier is one file"]);
    refused(&none, "virchow", &halved, &["none.safetensors"]);
}

#[test]
fn a_network_in_several_files_is_shown_and_embeds() {
    let desk = Desk::new();
    let weights = desk.save("dino.safetensors", &desk.drawn(LUNIT, (32, 0), str::to_owned));
    let (whole, parts, pictures) = (desk.at("whole"), desk.at("parts"), desk.pictures());
    for (out, most) in [(&whole, u64::MAX), (&parts, 20_000_000)] {
        let draft = infer::convert::Draft {
            name: "made".into(),
            license: "none".into(),
            image: 32,
            half: true,
            ..Default::default()
        };
        let options = infer::EngineOptions::default();
        training::encoders::weights::convert_below(most, &weights, LUNIT, out, draft, &options)
            .unwrap();
    }
    let shown = json(&done(&["encoders", "show", s(&parts), "--json"]));
    let rest = shown["card"]["encoder"]["rest"].as_array().unwrap();
    assert!(rest[0]["file"] == "encoder-2.onnx" && rest[0]["sha256"].is_string(), "{shown}");
    let embed = |package: &Path, name: &str| {
        let table = desk.at(name);
        let args = ["embed", "--crops", s(&pictures), "--encoder", s(package), "--threads", "1"];
        done(&[&args[..], &["--engine", "rten", "--out", s(&table)]].concat());
        vectors(&table)
    };
    let off = apart(&embed(&whole, "whole.parquet"), &embed(&parts, "parts.parquet"));
    assert!(off <= 1e-6, "{off}");
    std::fs::remove_file(parts.join("encoder-3.onnx")).unwrap();
    let (code, _, err) = mithras(&["encoders", "show", s(&parts)]);
    assert!(code == Some(1) && err.contains("encoder-3.onnx"), "{err}");
}

#[test]
fn a_shard_is_part_of_what_features_are_known_by() {
    let desk = Desk::new();
    let file = desk.drawn(LUNIT, (32, 0), str::to_owned);
    let folder = desk.at("shards");
    std::fs::create_dir(&folder).unwrap();
    let mut map = serde_json::Map::new();
    let mut shards: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
    for (i, (name, t)) in file.tensors.iter().enumerate() {
        let shard = ["a.safetensors", "b.safetensors"][i % 2];
        map.insert(name.clone(), shard.into());
        shards.entry(shard).or_default().insert(name.clone(), t.shallow_clone());
    }
    for (shard, tensors) in &shards {
        save_tensors(&folder.join(shard), tensors, BTreeMap::new()).unwrap();
    }
    let index = folder.join("model.safetensors.index.json");
    let text = Value::Object([("weight_map".to_owned(), Value::Object(map))].into_iter().collect());
    std::fs::write(&index, text.to_string()).unwrap();

    let slide = desk.at("slide.png");
    let tissue = image::RgbImage::from_fn(288, 192, |x, y| {
        if !(64..224).contains(&x) || !(32..128).contains(&y) {
            return image::Rgb([245; 3]);
        }
        image::Rgb([120 + ((x * 3 + y) % 80) as u8, 60, 110 + ((x * y) % 70) as u8])
    });
    tissue.save(&slide).unwrap();
    let features = desk.at("features");
    let run = |image: &str, more: &[&str]| {
        let args =
            ["embed", s(&slide), "--weights", s(&index), "--encoder", LUNIT, "--image", image];
        let how = ["--out", s(&features), "--mpp", "0.5", "--tile-mpp", "0.5", "--tile", "32"];
        let quiet = ["--device", "cpu", "--threads", "1", "--json", "--quiet"];
        mithras(&[&args[..], &how, &quiet, more].concat())
    };
    let embed_with = |image: &str, more: &[&str]| {
        let (code, printed, error) = run(image, more);
        assert_eq!(code, Some(0), "{error}");
        let report = json(&printed);
        let sha256 = report["encoder_sha256"].as_str().unwrap().to_owned();
        (report["items"][0]["status"].as_str().unwrap().to_owned(), sha256)
    };
    let embed = || embed_with("32", &[]);
    let refused = |image: &str| {
        let (code, _, error) = run(image, &[]);
        assert!(code != Some(0) && error.contains("made with other settings"), "{error}");
    };
    let package = |name: &str| {
        let (code, printed, err) =
            convert(&index, LUNIT, &desk.at(name), &["--image", "32", "--json"]);
        assert_eq!(code, Some(0), "{err}");
        json(&printed)["card"]["encoder"]["source"]["sha256"].as_str().unwrap().to_owned()
    };
    let (status, first) = embed();
    assert_eq!(status, "done");
    assert_eq!(embed(), ("kept".to_owned(), first.clone()), "the same again");
    // The same weights, fed otherwise.
    refused("48");
    assert_eq!(embed_with("48", &["--overwrite"]).0, "done");
    refused("32");
    assert_eq!(embed_with("32", &["--overwrite"]).0, "done");
    assert_eq!(package("first"), first);
    // As `cat INDEX a.safetensors b.safetensors | sha256sum`.
    let files = [index.clone(), folder.join("a.safetensors"), folder.join("b.safetensors")];
    let all: Vec<u8> = files.iter().flat_map(|f| std::fs::read(f).unwrap()).collect();
    assert_eq!(base::digest::sha256(&all), first);

    let (shard, mut bytes) = (&files[2], std::fs::read(&files[2]).unwrap());
    // The lowest bit of the last value.
    let last = bytes.len() - 4;
    bytes[last] ^= 1;
    std::fs::write(shard, bytes).unwrap();
    // Other weights are other work.
    refused("32");
    let (status, second) = embed_with("32", &["--overwrite"]);
    assert_eq!(status, "done");
    assert_ne!(second, first);
    assert_eq!(package("second"), second);
}

#[test]
fn encoders_with_a_head_become_classifiers() {
    let desk = Desk::new();
    // IMPaSh's names: the encoder below `encoder.`, the linear layer `classifier.`.
    let texture = |n: &str| match n.strip_prefix("fc.") {
        Some(leaf) => format!("classifier.{leaf}"),
        None => format!("encoder.{n}"),
    };
    let weights = desk.save("impash.safetensors", &desk.drawn("impash", (64, 9), texture));
    let classes = "ADI,BACK,DEB,LYM,MUC,MUS,NORM,STR,TUM";
    let head =
        ["--classes", classes, "--positive", "TUM", "--mpp", "0.5", "--image", "64", "--json"];
    let out = desk.at("impash");
    let bare = desk.at("bare");
    let unnamed = ["--classes", classes, "--mpp", "0.5", "--image", "64"];
    let (code, _, err) = convert_by(&plain(), &weights, "impash", &bare, &unnamed);
    let advice = "name --positive, or --text with --tokenizer";
    assert!(code == Some(1) && err.contains(advice) && !bare.exists(), "{err}");
    // With libtorch the package is compared with it, without it with other engines and the weights in f32.
    let (torch, plain) = (training(), plain());
    let mut files = vec![];
    for (program, precision, allowed) in
        [(&torch, "f32", 1e-4), (&plain, "f32", 1e-4), (&torch, "f16", 1e-2), (&plain, "f16", 1e-2)]
    {
        let out = desk.at(&format!("impash-{}-{precision}", files.len()));
        let more = [&head[..], &["--precision", precision]].concat();
        let (code, printed, err) = convert_by(program, &weights, "impash", &out, &more);
        assert_eq!(code, Some(0), "{err}");
        let made = json(&printed);
        assert_eq!(made["schema"], "mithras.classifier/1");
        let card = &made["card"]["classifier"];
        assert_eq!((&card["positive"], &card["interpolation"]), (&"TUM".into(), &"bicubic".into()));
        assert_eq!(card["classes"].as_array().unwrap().len(), 9);
        assert!(made["difference"].as_f64().unwrap() <= allowed, "{made}");
        let parity = &made["parity"];
        assert!(parity["engines"].as_array().unwrap().len() > 2, "{made}");
        assert_eq!(parity["rounding"].as_f64().is_some(), precision == "f16", "{made}");
        if torch != plain {
            let compared = printed.contains("libtorch on the weights");
            assert_eq!(compared, program == &torch && precision == "f32", "{made}");
        }
        files.push(std::fs::read(out.join("classifier.onnx")).unwrap());
    }
    assert!(files[0] == files[1] && files[2] == files[3], "both builds write the same network");
    let eight = ["--classes", &classes[4..], "--positive", "TUM", "--mpp", "0.5", "--image", "64"];
    let (code, _, err) = convert_by(&plain, &weights, "impash", &out, &eight);
    assert!(code == Some(1) && err.contains("fc.weight") && !out.exists(), "{err}");

    // CONCH: images held against texts.
    const CONCH: &str = "conch_v1_projected";
    let network = EncoderConfig { image: 32, ..EncoderConfig::new(CONCH, 0) };
    let mut outline = outline(&network.network().unwrap());
    outline.extend(conch::text_tower());
    let weights = desk.at("conch.safetensors");
    testkit::weights::drawn(&weights, &outline);
    let (tokens, prompts) = (desk.at("tokenizer.json"), desk.at("prompts.toml"));
    conch::tokenizer(&tokens, &conch::WORDS, "<pad>");
    std::fs::write(&prompts, conch::PROMPTS).unwrap();
    let texts = ["--text", s(&prompts), "--tokenizer", s(&tokens), "--mpp", "0.5", "--image", "32"];
    let out = desk.at("conch");
    let (code, printed, err) = convert(&weights, CONCH, &out, &[&texts[..], &["--json"]].concat());
    assert_eq!(code, Some(0), "{err}");
    let made = json(&printed);
    let card = &made["card"]["classifier"];
    assert_eq!(card["classes"], serde_json::json!(["stroma", "tumour_epithelium"]));
    assert!(made["difference"].as_f64().unwrap() <= 1e-4, "{made}");
    assert!(printed.contains("libtorch on the weights"), "{made}");
    let training = &made["card"]["training"];
    assert!(training["prompts"].as_str().unwrap().contains("carcinoma"), "{training}");
}

#[test]
fn every_known_encoder_states_how_it_is_fed() {
    let listed = json(&done(&["encoders", "list", "--json"]));
    let known = listed["known"].as_array().unwrap();
    assert!(known.len() > 60, "{}", known.len());
    for encoder in known {
        for key in ["mean", "std"] {
            assert_eq!(encoder[key].as_array().unwrap().len(), 3, "{encoder}");
        }
        assert!(encoder["resize"].as_u64() >= encoder["input"].as_u64(), "{encoder}");
        assert!(["bilinear", "bicubic"].contains(&encoder["interpolation"].as_str().unwrap()));
        assert!(!encoder["pooling"].as_str().unwrap().is_empty(), "{encoder}");
        assert!(!encoder["layouts"].as_array().unwrap().is_empty(), "{encoder}");
    }
    let shown = json(&done(&["encoders", "show", "gigapath", "--json"]));
    assert_eq!(shown["schema"], "mithras.encoder-known/1");
    assert_eq!((&shown["resize"], &shown["input"]), (&256.into(), &224.into()));
    let words = done(&["encoders", "show", "phikon_v2"]);
    assert!(words.contains("hf_dino_v2") && words.contains("bilinear"), "{words}");
    let words = done(&["encoders", "show", "gigapath"]);
    assert!(words.contains("to 256 px, the middle 224 px of it"), "{words}");
}
