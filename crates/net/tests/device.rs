//! Devices, precision and layout.

use crate::common::{fill, signed};
use net::device::{self, Cuda, MemoryFormat, Precision};
use net::encoder::{self, EncoderConfig};
use net::unet::{EfficientUnet, UnetConfig};
use tch::{Device, Kind, Tensor, nn::VarStore};

#[test]
fn devices_are_picked_by_word_and_refused_with_the_reason() {
    let found = device::init();
    assert_eq!(found, device::init());
    assert_eq!(device::pick("cpu").expect("always there"), Device::Cpu);
    match found {
        Cuda::Ready(n) => {
            assert_eq!(device::pick("auto").expect("there"), Device::Cuda(0));
            let why = device::pick(&format!("cuda:{n}")).expect_err("one too many");
            assert!(why.to_string().contains("CUDA devices"), "{why}");
        }
        Cuda::Absent(reason) => {
            assert_eq!(device::pick("auto").expect("the CPU"), Device::Cpu);
            let why = device::pick("cuda").expect_err("absent").to_string();
            assert!(why.contains(&reason), "{why}");
        }
    }
    for word in ["gpu", "cuda:", "cuda:x", ""] {
        assert!(device::pick(word).expect_err("no device").to_string().contains("auto"));
    }
    assert!(device::libtorch_dir().expect("loaded").join("libtorch_cpu.so").exists());
}

fn worst(a: &Tensor, b: &Tensor) -> f64 {
    let a = a.to_kind(Kind::Float);
    let scale = f64::try_from(b.abs().max()).expect("scalar");
    f64::try_from((a - b).abs().max()).expect("scalar") / scale
}

#[test]
fn bf16_and_channels_last_change_little_and_gradients_stay_f32() {
    let vs = VarStore::new(Device::Cpu);
    let net = EfficientUnet::new(&vs.root(), &UnetConfig::default()).expect("valid");
    fill(&vs);
    let x = signed("input", &[2, 3, 64, 64], 1.5);
    let plain = tch::no_grad(|| net.forward(&x, false));
    MemoryFormat::ChannelsLast.apply(&vs);
    let laid = MemoryFormat::ChannelsLast.image(&x);
    assert_eq!(laid.size(), x.size());
    assert_eq!(laid.stride(), [64 * 64 * 3, 1, 64 * 3, 3]);
    assert!(worst(&tch::no_grad(|| net.forward(&laid, false)), &plain) < 1e-4);

    let low = Precision::Bf16.run(Device::Cpu, || net.forward(&laid, true));
    assert_eq!(low.kind(), Kind::BFloat16);
    low.to_kind(Kind::Float).mean(Kind::Float).backward();
    for (name, v) in vs.variables() {
        assert_eq!(v.kind(), Kind::Float, "{name}");
        assert!(!v.requires_grad() || v.grad().kind() == Kind::Float, "{name}");
    }
    // Outside the guard arithmetic is f32 again.
    assert_eq!(net.forward(&laid, false).kind(), Kind::Float);
}

#[test]
fn a_transformer_runs_in_bf16() {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 64, ..EncoderConfig::new("vit_tiny_patch16_224", 4) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    fill(&vs);
    let x = signed("input", &[2, 3, 64, 64], 1.5);
    let plain = tch::no_grad(|| net.embed(&x, false));
    let low = Precision::Bf16.run(Device::Cpu, || tch::no_grad(|| net.embed(&x, false)));
    let difference = worst(&low, &plain);
    assert!(difference > 0.0 && difference < 0.1, "{difference}");
}
