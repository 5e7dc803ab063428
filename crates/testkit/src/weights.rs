//! Files of weights that are drawn, not trained.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Writes a safetensors file of the tensors of an outline, in f32: seeded by their names, norms near one, all else
/// near zero.
pub fn drawn(path: &Path, outline: &BTreeMap<String, Vec<i64>>) {
    let (mut header, mut data) = (String::from("{"), Vec::new());
    for (name, dims) in outline {
        let count = dims.iter().product::<i64>() as usize;
        let start = data.len();
        let norm = name.contains("norm") || name.contains("ln_");
        let about = match name.as_str() {
            "logit_scale" => 3.0,
            _ if norm && name.ends_with("weight") || name.ends_with("_var") => 1.0,
            _ => 0.0,
        };
        let mut state =
            name.bytes().fold(7_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 40) as f32 / (1 << 24) as f32;
            data.extend((about + 0.1 * (unit - 0.5)).to_le_bytes());
        }
        let comma = if start == 0 { "" } else { "," };
        let end = data.len();
        write!(
            header,
            "{comma}\"{name}\":{{\"dtype\":\"F32\",\"shape\":{dims:?},\"data_offsets\":[{start},{end}]}}"
        )
        .expect("a text");
    }
    header.push('}');
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&length[..], header.as_bytes(), &data].concat()).expect("written");
}
