//! A model package with weights as they start, to time engines on or to try a runtime with:
//! `cargo run -p mithras-net --example untrained_package -- FOLDER [f16]`.
//!
//! The card carries no checksums; it is not a model.

use std::path::PathBuf;

use net::encoder::{self, EncoderConfig};
use net::onnx::{self, ExportOptions, WeightKind};
use net::unet::{EfficientUnet, UnetConfig};
use tch::{Device, nn::VarStore};

fn main() -> net::Result<()> {
    tch::manual_seed(1);
    let mut args = std::env::args().skip(1);
    let out = PathBuf::from(args.next().unwrap_or_else(|| "untrained".into()));
    let half = args.next().is_some_and(|w| w == "f16");
    let weights = if half { WeightKind::F16 } else { WeightKind::F32 };
    let options = ExportOptions { weights, ..ExportOptions::default() };
    std::fs::create_dir_all(&out).map_err(|source| {
        net::NetError::from(encoders::EncoderError::Io { path: out.clone(), source })
    })?;
    let vs = VarStore::new(Device::Cpu);
    let net = EfficientUnet::new(&vs.root(), &UnetConfig::default())?;
    onnx::write(&out.join("segmenter.onnx"), &onnx::unet(&net, &vs, &options)?)?;
    for name in ["vit_tiny_patch16_224", "efficientnet_b0"] {
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::build(&vs.root(), &EncoderConfig::new(name, 2))?;
        let bytes = onnx::classifier(&*net, &vs, 224, &options)?;
        onnx::write(&out.join(format!("{name}.onnx")), &bytes)?;
    }
    Ok(())
}
