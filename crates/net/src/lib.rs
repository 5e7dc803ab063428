//! Networks that train: heads, losses, optimisers, checkpoints (libtorch). Their shapes, names and ONNX files are
//! [`encoders`]'.
//!
//! | module | reference |
//! |---|---|
//! | [`encoder`], [`vit`], [`efficientnet`], [`resnet`], [`swin`] | timm, torchvision |
//! | [`unet`] | timm's features and a plain decoder |
//! | [`mae`] | the MAE reference's network on timm's blocks |
//! | [`loss`] | loops in f64, torch |
//! | [`optim`], [`schedule`], [`ema`] | torch, timm, the MAE reference |
//! | [`lora`] | peft |
//! | [`probe`] | the MAE reference |
//! | [`checkpoint`], [`foreign`], [`onnx`] | [`encoders`] |
//! | [`device`] | |
//! | [`dist`] | c10d |
//!
//! A training loop, in short:
//!
//! ```
//! use net::{checkpoint, device, encoder, loss, optim, schedule};
//! use tch::{Kind, Tensor, nn::VarStore};
//!
//! # fn main() -> net::Result<()> {
//! let device = device::pick("auto")?; // before anything else of libtorch
//! tch::manual_seed(7); // initial weights, stochastic depth, masking noise
//! let config = encoder::EncoderConfig {
//!     image: 32,
//!     drop_path: 0.1,
//!     ..encoder::EncoderConfig::new("vit_tiny_patch16_224", 2)
//! };
//! let vs = VarStore::new(device);
//! let net = encoder::build(&vs.root(), &config)?;
//! // Convolutional networks on CPU: several times faster.
//! let format = device::MemoryFormat::ChannelsLast;
//! format.apply(&vs);
//! let groups = encoder::layer_decay_groups(&vs, &*net, 0.05, 0.75);
//! let mut opt = optim::AdamW::new(&vs, groups, optim::AdamWConfig::default())?;
//! let rate = schedule::WarmupCosine {
//!     lr: schedule::BaseLr(2.5e-4).scaled(4),
//!     min_lr: 1e-6,
//!     warmup_epochs: 1.0,
//!     epochs: 2.0,
//! };
//! let loss = loss::CrossEntropy { smoothing: 0.1, class_weights: vec![] };
//! for step in 0..4 {
//!     let images = format.image(&Tensor::rand([4, 3, 32, 32], (Kind::Float, device)));
//!     let labels = Tensor::from_slice(&[0i64, 1, 0, 1]).to_device(device);
//!     let logits = device::Precision::Bf16.run(device, || net.forward(&images, true));
//!     let value = loss.forward(&logits, &labels);
//!     opt.zero_grad();
//!     value.backward();
//!     let norm = opt.clip_grad_norm(5.0)?;
//!     assert!(norm.is_finite());
//!     opt.step(rate.at(f64::from(step) / 2.0))?;
//! }
//! let mut spec = checkpoint::Spec::new(&config.name, &config, 32)?;
//! spec.classes = vec!["non_mitotic".into(), "mitotic".into()];
//! # let dir = tempfile::tempdir().expect("a folder");
//! # let path = dir.path().join("best.safetensors");
//! checkpoint::save(&path, &vs, &spec)?;
//! checkpoint::load(&path, &vs, &spec)?; // refuses anything that does not match
//! let onnx = net::onnx::classifier(&*net, &vs, 32, &net::onnx::ExportOptions::default())?;
//! # assert!(onnx.len() > 1000);
//! # Ok(())
//! # }
//! ```
//!
//! Randomness comes from torch's generator alone: `tch::manual_seed(seed + step)` before each step
//! makes a resumed run repeat a straight one.

pub mod checkpoint;
pub mod device;
pub mod dist;
pub mod efficientnet;
pub mod ema;
pub mod encoder;
mod error;
pub mod foreign;
pub mod layer;
pub mod lora;
pub mod loss;
pub mod mae;
pub mod onnx;
pub mod optim;
pub mod probe;
pub mod resnet;
pub mod schedule;
mod shim;
pub mod swin;
mod tensors;
pub mod unet;
pub mod vit;

pub use error::{NetError, Result};
pub use tensors::{from_arrays, read_weights, to_arrays, weight_files};
