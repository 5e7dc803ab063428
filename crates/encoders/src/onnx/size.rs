//! How large a file a network needs, before anything is computed.

use super::options::WeightKind;
use crate::encoder::{Architecture, NetworkConfig, NetworkShape, entry};
use crate::error::{EncoderError, Result};
use crate::vit::VitConfig;

/// An ONNX file is one message of protobuf, which ends here.
pub const MOST_BYTES: u64 = (1 << 31) - 1;

impl WeightKind {
    fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Rounded => 2,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 | Self::Rounded => "f16",
        }
    }
}

/// Values in the matrices of a transformer's blocks: all but a hundredth of it.
fn matrices(c: &VitConfig) -> u64 {
    let (dim, hidden) = (c.dim.unsigned_abs(), c.hidden().unsigned_abs());
    let back = c.inner().unsigned_abs();
    c.depth.unsigned_abs() * dim * (4 * dim + hidden + back)
}

/// Refuses an encoder of the table that would not fit into one ONNX file, as a classifier has to, in the
/// moment that it is asked for: reading the weights of a giant takes minutes. Unknown names pass.
///
/// # Errors
/// [`EncoderError::TooLarge`].
pub fn check_size(name: &str, weights: WeightKind) -> Result<()> {
    match entry(name).map(|e| e.architecture) {
        Some(Architecture::Vit(c)) => {
            fits(name, matrices(&c) * weights.bytes(), weights, MOST_BYTES)
        }
        // The others have at most 70 million.
        _ => Ok(()),
    }
}

/// Refuses a file of so many bytes where `most` are allowed.
pub(super) fn fits(name: &str, bytes: u64, weights: WeightKind, most: u64) -> Result<()> {
    if bytes <= most {
        return Ok(());
    }
    let halves = weights == WeightKind::F32 && bytes / 2 <= most;
    Err(EncoderError::TooLarge { name: name.into(), bytes, most, weights: weights.word(), halves })
}

/// The bytes at which a file of several ends: all are to be about as large as each other, as an engine
/// that reads one needs its size again.
pub(super) fn share(network: &NetworkConfig, weights: WeightKind, most: u64) -> u64 {
    let NetworkShape::Vit(vit) = &network.shape else { return most };
    let blocks = matrices(vit) * weights.bytes();
    if blocks <= most {
        return most;
    }
    let all = blocks + blocks / 20;
    let block = all / vit.depth.unsigned_abs().max(1);
    (all / all.div_ceil(most.max(1)) + block).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::{ENCODERS, EncoderConfig};
    use crate::onnx::outline;
    use base::remedy::{Remedied as _, Remedy};

    #[test]
    fn matrices_are_what_a_network_consists_of() {
        for name in ["lunit-vits16", "gigapath-flash", "vit_base_patch16_224"] {
            let network = EncoderConfig::new(name, 0).network().unwrap();
            let count = |dims: &Vec<i64>| dims.iter().product::<i64>();
            let all: i64 = outline(&network).values().map(count).sum();
            let Architecture::Vit(c) = entry(name).unwrap().architecture else { panic!("{name}") };
            let share = matrices(&c) as f64 / all as f64;
            assert!((0.97..1.0).contains(&share), "{name}: {share}");
        }
    }

    #[test]
    fn giants_are_refused_as_one_file_and_the_huge_ones_halved() {
        let refused = |kind| -> Vec<&str> {
            let names = ENCODERS.iter().map(|e| e.name);
            names.filter(|name| check_size(name, kind).is_err()).collect()
        };
        let giants = [
            "dinov2-vitg14",
            "dinov2-vitg14-reg4",
            "gigapath",
            "hoptimus0",
            "hoptimus1",
            "openmidnight",
            "midnight12k",
        ];
        assert_eq!(refused(WeightKind::F16), giants);
        let huge = ["vit_huge_patch14_224", "mae-vith14", "uni_v2", "virchow", "virchow2"];
        for name in huge.iter().chain(&["virchow2-cls"]) {
            let e = check_size(name, WeightKind::F32).unwrap_err();
            assert_eq!(e.remedy(), Some(Remedy::HalfPrecision));
            let e = e.to_string();
            assert!(e.contains("take the precision f16") && e.contains("GB"), "{e}");
            check_size(name, WeightKind::F16).unwrap();
        }
        assert_eq!(refused(WeightKind::F32).len(), giants.len() + huge.len() + 1);
        let e = check_size("gigapath", WeightKind::F32).unwrap_err();
        assert_eq!(e.remedy(), None);
        let e = e.to_string();
        assert!(e.contains("`gigapath`: ") && e.contains("4.5 GB"), "{e}");
        assert!(e.contains("a classifier is one file"), "{e}");
        assert!(check_size("no such encoder", WeightKind::F32).is_ok());
        assert!(fits("x", 7, WeightKind::F16, 7).is_ok());
        assert!(fits("x", 8, WeightKind::F16, 7).is_err());
    }
}
