//! Devices, precision and memory format.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tch::{Device, Tensor, nn};

use crate::error::{NetError, Result};
use crate::shim;

/// What [`init`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuda {
    /// libtorch's CUDA part is loaded and sees this many devices.
    Ready(i64),
    /// No CUDA; the reason as text.
    Absent(String),
}

static CUDA: OnceLock<Cuda> = OnceLock::new();

/// Opens libtorch's CUDA part where an NVIDIA driver is, so that one binary serves CPU and GPU.
///
/// Call it first: libtorch decides once whether it has CUDA. Harmless and cheap without a driver.
/// Calling again returns the first answer.
pub fn init() -> Cuda {
    CUDA.get_or_init(|| {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        // SAFETY: the driver's library has no unsound initialisers; the handle may close again.
        if let Err(e) = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOW) } {
            return Cuda::Absent(format!("no NVIDIA driver ({e})"));
        }
        let path = libtorch_dir().map_or_else(
            || "libtorch_cuda.so".into(),
            |dir| dir.join("libtorch_cuda.so").into_os_string(),
        );
        // SAFETY: libtorch's own library, made to be loaded next to libtorch_cpu.
        match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                // Its registered kernels must outlive everything.
                std::mem::forget(library);
                match tch::Cuda::device_count() {
                    0 => Cuda::Absent("driver found, but no CUDA device".into()),
                    n => Cuda::Ready(n),
                }
            }
            Err(e) => Cuda::Absent(format!("driver found, but libtorch has no CUDA part ({e})")),
        }
    })
    .clone()
}

/// The folder of the loaded `libtorch_cpu`, read from the process's own map.
#[must_use]
pub fn libtorch_dir() -> Option<std::path::PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|l| l.contains("libtorch_cpu.so"))?;
    let path = std::path::Path::new(&line[line.find('/')?..]);
    Some(path.parent()?.to_path_buf())
}

/// Version of libtorch.
#[must_use]
pub fn version() -> String {
    shim::version()
}

/// Keeps freed memory in the process instead of handing it back to the system (glibc; for the whole
/// process). A training step frees and takes the same gigabytes again; without this 2 to 13 % of its
/// time on a CPU goes into fresh pages (`docs/results/speed.md`).
pub fn keep_freed_memory() {
    shim::keep_freed_memory();
}

/// Threads inside one operation; for the whole process.
pub fn set_threads(n: usize) {
    tch::set_num_threads(i32::try_from(n.max(1)).unwrap_or(i32::MAX));
}

/// `auto` (CUDA when there), `cpu`, `cuda`, `cuda:1`.
///
/// # Errors
/// [`NetError::Device`] for an unknown word or a device that is not there.
pub fn pick(asked: &str) -> Result<Device> {
    let cuda = init();
    let refuse = |reason: String| Err(NetError::Device { asked: asked.to_string(), reason });
    let index = match asked {
        "cpu" => return Ok(Device::Cpu),
        "auto" => {
            return Ok(match cuda {
                Cuda::Ready(_) => Device::Cuda(0),
                Cuda::Absent(_) => Device::Cpu,
            });
        }
        "cuda" => 0,
        other => match other.strip_prefix("cuda:").and_then(|n| n.parse::<usize>().ok()) {
            Some(n) => n,
            None => return refuse("not one of auto, cpu, cuda, cuda:N".into()),
        },
    };
    match cuda {
        Cuda::Absent(reason) => refuse(reason),
        Cuda::Ready(n) if i64::try_from(index).is_ok_and(|i| i < n) => Ok(Device::Cuda(index)),
        Cuda::Ready(n) => refuse(format!("there are {n} CUDA devices")),
    }
}

/// Arithmetic of the forward pass. Parameters, losses and optimiser stay in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Everything in f32.
    #[default]
    F32,
    /// Matrix multiplications and convolutions in bfloat16 (autocast), CPU and GPU.
    Bf16,
}

impl Precision {
    /// Runs the forward pass in this precision; the backward pass follows it by itself.
    ///
    /// # Panics
    /// When libtorch has no autocast for the device.
    pub fn run<T>(self, device: Device, forward: impl FnOnce() -> T) -> T {
        match self {
            Self::F32 => forward(),
            Self::Bf16 => {
                let _guard = shim::AutocastGuard::new(device).expect("autocast to bfloat16");
                forward()
            }
        }
    }
}

/// Whether libtorch has kernels in bfloat16 for this processor (AVX-512, or AVX-NE-CONVERT). Without, it
/// convolves in bfloat16 far more slowly than in f32.
#[must_use]
pub fn cpu_has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512bw")
            || std::arch::is_x86_feature_detected!("avxneconvert")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        true
    }
}

/// Layout of images and convolution weights in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryFormat {
    /// NCHW.
    #[default]
    Contiguous,
    /// NHWC strides; the shape stays `[N, C, H, W]`.
    ChannelsLast,
}

impl MemoryFormat {
    /// The image batch `[N, C, H, W]` in this layout.
    ///
    /// # Panics
    /// For a tensor without four dimensions.
    pub fn image(self, x: &Tensor) -> Tensor {
        match self {
            Self::Contiguous => x.shallow_clone(),
            Self::ChannelsLast => shim::channels_last(x).expect("a four-dimensional image batch"),
        }
    }

    /// Lays out the convolution weights of a model. Call once, before the optimiser is made.
    pub fn apply(self, vs: &nn::VarStore) {
        if self == Self::ChannelsLast {
            for mut v in vs.variables().into_values() {
                if v.dim() == 4 {
                    let laid = tch::no_grad(|| shim::channels_last(&v.detach()))
                        .expect("a four-dimensional weight");
                    v.set_data(&laid);
                }
            }
        }
    }
}
