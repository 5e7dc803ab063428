//! How much arithmetic an exported network asks for.

use std::collections::HashMap;

use tch::{Device, Kind, Tensor};

use super::run::Program;
use crate::error::Result;

/// Multiply-accumulates of one image: convolutions and matrix products, counted on the shapes that
/// really occur. Additions, normalisations and activations are left out, as tools for this do.
///
/// # Errors
/// A file that [`Program::load`] refuses.
pub fn multiply_accumulates(onnx: &[u8], side: i64) -> Result<u64> {
    let program = Program::load(onnx, Device::Cpu, None)?;
    let mut shapes: HashMap<String, Vec<i64>> = program.weight_shapes().collect();
    let image = Tensor::zeros([1, 3, side, side], (Kind::Float, Device::Cpu));
    let _ = program.watched(&image, &mut |name, value| {
        shapes.insert(name.to_owned(), value.size());
        Ok(())
    })?;
    let shape = |name: &String| shapes.get(name).map_or(&[][..], Vec::as_slice);
    let volume = |s: &[i64]| s.iter().product::<i64>();
    let sum: i64 = program
        .operators()
        .map(|(op, inputs, outputs)| match (op, inputs, outputs) {
            // Each value is a sum over the kernel of one output channel.
            ("Conv", [_, kernel, ..], [out]) => {
                volume(shape(out)) * volume(shape(kernel).get(1..).unwrap_or(&[]))
            }
            ("MatMul" | "Gemm", [a, ..], [out]) => {
                volume(shape(out)) * shape(a).last().copied().unwrap_or(0)
            }
            _ => 0,
        })
        .sum();
    Ok(sum.unsigned_abs())
}
