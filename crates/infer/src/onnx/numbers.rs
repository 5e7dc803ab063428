//! The numbers of a small tensor.

use proto::TensorProto;

pub(super) const FLOAT: i32 = 1;

/// `TensorProto.DataType.INT64`.
pub(super) const INT64: i32 = 7;

/// A tensor's whole numbers, if it is a short list of such.
pub(super) fn ints(tensor: &TensorProto) -> Vec<i64> {
    const LONGEST: usize = 64;
    if tensor.data_type != INT64 {
        return Vec::new();
    }
    let raw = tensor.raw_data.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b));
    tensor.int64_data.iter().copied().chain(raw).take(LONGEST).collect()
}

/// A tensor's numbers, if it is a short list of whole ones or of f32.
pub(super) fn numbers(tensor: &TensorProto) -> Option<Vec<f64>> {
    if tensor.data_type == FLOAT {
        let raw = tensor.raw_data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
        return Some(tensor.float_data.iter().copied().chain(raw).map(f64::from).collect());
    }
    (tensor.data_type == INT64).then(|| ints(tensor).into_iter().map(|n| n as f64).collect())
}
