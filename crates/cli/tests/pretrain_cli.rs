//! `mithras train pretrain` and `mithras embed` on a drawn corpus.

#[cfg(feature = "train")]
use std::path::Path;
use std::process::Command;

fn mithras(args: &[&str]) -> (bool, String, String) {
    let out = Command::new(crate::training_program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

#[cfg(feature = "train")]
fn s(p: &Path) -> &str {
    p.to_str().unwrap()
}

#[cfg(not(feature = "train"))]
#[test]
fn without_libtorch_the_verbs_state_how_to_get_it() {
    let (ok, _, err) = mithras(&["train", "pretrain", "--preset", "x"]);
    assert!(!ok && err.contains("--features train"), "{err}");
    let (ok, _, err) =
        mithras(&["corpus", "labelled", "/none", "--folds", "/none.json", "--out", "x"]);
    assert!(!ok && err.contains("/none"), "{err}");
}

#[cfg(feature = "train")]
mod training {
    use super::*;
    use crops::Encoding;
    use crops::{CorpusWriter, CropBox, CropMeta, Header, Label, Layout, Split};
    use mitosis::{Mpp, RgbTile};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn draw_corpus(dir: &Path, n: u8) {
        let mut w = CorpusWriter::create(dir, Header::default(), Layout::default()).unwrap();
        for i in 0..n {
            let tile = RgbTile::filled(48, 48, [200 - 5 * i, 150, 190]);
            let label = if i % 2 == 0 { Label::MitoticFigure } else { Label::Mimicker };
            let meta = CropMeta {
                bbox: Some(CropBox::centred(48, 20)),
                cohort: "drawn".into(),
                source: "drawn".into(),
                split: Split::Train,
                ..CropMeta::new(format!("{i}.png"), label, "s", Mpp::PAPER, (48, 48))
            };
            w.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
        }
        w.finish().unwrap();
    }

    #[test]
    fn pretrains_and_embeds() {
        let dir = tempfile::tempdir().unwrap();
        let (data, run) = (dir.path().join("corpus"), dir.path().join("run"));
        draw_corpus(&data, 16);
        let preset = testkit::workspace().join("presets/pretrain-smoke.toml");
        let (preset, corpus, out) = (s(&preset), s(&data), s(&run));
        let train = ["train", "pretrain", "--preset", preset, "--corpus", corpus, "--out", out];
        let cpu = ["--device", "cpu", "--threads", "1"];
        let (ok, _, err) = mithras(&[&train[..], &cpu].concat());
        assert!(ok, "{err}");
        for file in ["encoder.safetensors", "terms.csv", "terms.svg", "run.json"] {
            assert!(run.join(file).is_file(), "{file}");
        }
        assert!(run.join("figures/epoch-0001.png").is_file());
        let (ok, _, err) = mithras(&[&train[..], &cpu].concat());
        assert!(!ok && err.contains("--resume"), "{err}");
        let (ok, _, err) = mithras(&[&train[..], &["--set", "train.batch=80"], &cpu].concat());
        assert!(!ok && err.contains("lower the batch"), "{err}");

        let (weights, table) = (run.join("encoder.safetensors"), dir.path().join("f.parquet"));
        // The smoke preset's encoder is shallower than its name suggests, and that is reported.
        let embed = ["embed", "--weights", s(&weights), "--corpus", corpus, "--out", s(&table)];
        let (ok, _, err) = mithras(&[&embed[..], &cpu].concat());
        assert!(!ok && err.contains("missing"), "{err}");
        let whole = dir.path().join("whole");
        let set = ["--set", "model.depth=12", "--set", "train.epochs=1"];
        let train = [&train[..7], &[s(&whole)], &set, &cpu].concat();
        let (ok, _, err) = mithras(&train);
        assert!(ok, "{err}");
        let weights = whole.join("encoder.safetensors");
        let embed = ["embed", "--weights", s(&weights), "--crops", corpus, "--out", s(&table)];
        let (ok, printed, err) = mithras(&[&embed[..], &cpu].concat());
        assert!(ok && printed.contains("16 x 192"), "{printed}{err}");
        let file = std::fs::File::open(&table).unwrap();
        let rows: Vec<_> =
            SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap().collect();
        assert_eq!(rows.len(), 16);
        let row = rows[3].as_ref().unwrap();
        assert_eq!(
            (row.get_string(0).unwrap(), row.get_string(2).unwrap()),
            (&"3.png".to_string(), &"mimicker".to_string())
        );
        assert_eq!(row.get_list(7).unwrap().len(), 192);
        let wrong = dir.path().join("f.txt");
        let (ok, _, err) =
            mithras(&["embed", "--weights", s(&weights), "--corpus", corpus, "--out", s(&wrong)]);
        assert!(!ok && err.contains("FILE.parquet"), "{err}");

        // The same weights as a package, run by an ONNX engine.
        let package = dir.path().join("package");
        let convert = ["encoders", "convert", "--weights", s(&weights), "--encoder"];
        let more = ["vit_tiny_patch16_224", "--image", "48", "--out", s(&package)];
        let named = ["--name", "smoke", "--license", "none"];
        let (ok, printed, err) = mithras(&[&convert[..], &more, &named].concat());
        assert!(ok && printed.contains("libtorch on the weights"), "{printed}{err}");
        let again = dir.path().join("again.parquet");
        let embed = ["embed", "--encoder", s(&package), "--crops", corpus, "--out", s(&again)];
        let (ok, _, err) = mithras(&[&embed[..], &["--engine", "rten"]].concat());
        assert!(ok, "{err}");
        let vector = |path: &Path| -> Vec<f32> {
            let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
            let row = file.get_row_iter(None).unwrap().nth(5).unwrap().unwrap();
            let list = row.get_list(7).unwrap().clone();
            use parquet::record::ListAccessor;
            (0..list.len()).map(|i| list.get_float(i).unwrap()).collect()
        };
        for (a, b) in vector(&table).iter().zip(vector(&again)) {
            assert!((a - b).abs() < 1e-3, "{a} by libtorch, {b} by rten");
        }

        let Some(slide) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
        let features = dir.path().join("features");
        let embed = ["embed", s(&slide), "--weights", s(&weights), "--out", s(&features)];
        let how = ["--tile", "512", "--tile-mpp", "0.25"];
        let (ok, _, err) = mithras(&[&embed[..], &how, &cpu].concat());
        assert!(ok, "{err}");
        let file = hdf5_pure::File::open(features.join("CMU-1-Small-Region.h5")).unwrap();
        let (x, at) = (file.dataset("features").unwrap(), file.dataset("coords").unwrap());
        let n = x.shape().unwrap()[0];
        assert!(n > 10 && x.shape().unwrap() == [n, 192] && at.shape().unwrap() == [n, 2]);
        assert!(x.read_f32().unwrap().iter().all(|v| v.is_finite()));
        assert!(at.read_i64().unwrap().iter().all(|v| *v >= 0));
    }
}
