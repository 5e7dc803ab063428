//! Constants of a file.

use crate::error::PlanError;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use proto::TensorProto;
use std::sync::Arc;

/// A constant: a weight, or a small list of whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub dims: Vec<usize>,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// The weights of a step are these, without a copy.
    F32(Arc<Vec<f32>>),
    I64(Vec<i64>),
}

impl Tensor {
    pub(crate) fn ints(dims: Vec<usize>, data: Vec<i64>) -> Self {
        Self { dims, data: Data::I64(data) }
    }

    pub(crate) fn floats(dims: Vec<usize>, data: Vec<f32>) -> Self {
        Self { dims, data: Data::F32(Arc::new(data)) }
    }

    pub(crate) fn as_floats(&self) -> Option<&[f32]> {
        match &self.data {
            Data::F32(v) => Some(v),
            Data::I64(_) => None,
        }
    }

    pub(crate) fn as_ints(&self) -> Option<&[i64]> {
        match &self.data {
            Data::I64(v) => Some(v),
            Data::F32(_) => None,
        }
    }

    /// Whether it is of an ONNX type already. f16 weights were widened when they were read; a conversion to f16 would
    /// have to round.
    pub(crate) fn has_type(&self, onnx_type: i64) -> bool {
        matches!((&self.data, onnx_type), (Data::F32(_), 1) | (Data::I64(_), 6 | 7))
    }

    /// Reads a stored tensor; f16, bf16 and f64 become f32, whole numbers i64.
    ///
    /// # Errors
    /// [`PlanError::File`] for other types, values outside the file, or too few of them.
    pub(crate) fn read(stored: &TensorProto) -> Result<Self, PlanError> {
        let bad = |why: &str| Err(PlanError::File(format!("constant `{}`: {why}", stored.name)));
        if stored.data_location != 0 {
            return bad("its values are in another file");
        }
        let dims: Option<Vec<usize>> =
            stored.dims.iter().map(|d| usize::try_from(*d).ok()).collect();
        let Some(dims) = dims else { return bad("a negative dimension") };
        let count = dims.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        let raw = &stored.raw_data;
        let (floats, ints): (Vec<f32>, Vec<i64>) = match stored.data_type {
            1 => (
                decode(raw, f32::from_le_bytes).chain(stored.float_data.iter().copied()).collect(),
                vec![],
            ),
            10 => {
                let list = stored.int32_data.iter().map(|v| f16::from_bits(*v as u16).to_f32());
                let mut floats = halves(raw);
                floats.extend(list);
                (floats, vec![])
            }
            16 => {
                let list = stored.int32_data.iter().map(|v| bf16::from_bits(*v as u16));
                (decode(raw, bf16::from_le_bytes).chain(list).map(bf16::to_f32).collect(), vec![])
            }
            11 => {
                let list = stored.double_data.iter().copied();
                (decode(raw, f64::from_le_bytes).chain(list).map(|v| v as f32).collect(), vec![])
            }
            7 => (
                vec![],
                decode(raw, i64::from_le_bytes).chain(stored.int64_data.iter().copied()).collect(),
            ),
            6 => {
                let list = stored.int32_data.iter().copied();
                (vec![], decode(raw, i32::from_le_bytes).chain(list).map(i64::from).collect())
            }
            other => return bad(&format!("ONNX type {other} is not supported")),
        };
        let whole = matches!(stored.data_type, 6 | 7);
        if Some(if whole { ints.len() } else { floats.len() }) != count {
            return bad(&format!("the file does not hold {dims:?} values"));
        }
        Ok(Self { dims, data: if whole { Data::I64(ints) } else { Data::F32(Arc::new(floats)) } })
    }
}

fn decode<const N: usize, T>(raw: &[u8], read: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    raw.as_chunks::<N>().0.iter().map(move |b| read(*b))
}

/// f16 as f32, some at once.
fn halves(raw: &[u8]) -> Vec<f32> {
    const SOME: usize = 64;
    let raw = raw.as_chunks::<2>().0;
    let mut floats = vec![0.0; raw.len()];
    let mut some = [f16::ZERO; SOME];
    for (from, to) in raw.chunks(SOME).zip(floats.chunks_mut(SOME)) {
        let some = &mut some[..from.len()];
        some.iter_mut().zip(from).for_each(|(half, b)| *half = f16::from_le_bytes(*b));
        some.convert_to_f32_slice(to);
    }
    floats
}
