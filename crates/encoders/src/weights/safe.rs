//! Files of safetensors.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use safetensors::{Dtype, SafeTensors};

use super::Arrays;
use crate::array::{Array, Kind};
use crate::error::{EncoderError, Result};

/// A safetensors file.
#[derive(Debug)]
pub struct Safe {
    /// Its tensors.
    pub tensors: Arrays,
    /// All text metadata of the file.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a safetensors file whole.
///
/// # Errors
/// [`EncoderError::Io`] or [`EncoderError::File`] when it is unreadable or no safetensors.
pub fn read_safetensors(path: &Path) -> Result<Safe> {
    let bytes = base::file::read_whole(path).map_err(|e| EncoderError::io(path, e))?;
    let bytes = Bytes::from(bytes);
    let bad = |e: safetensors::SafeTensorError| {
        EncoderError::file(path, format!("no readable safetensors file ({e})"), "export it again")
    };
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
    let metadata: BTreeMap<String, String> =
        header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    let file = SafeTensors::deserialize(&bytes).map_err(bad)?;
    let mut tensors = Arrays::new();
    for (name, view) in file.tensors() {
        let kind = match view.dtype() {
            Dtype::F32 => Kind::Float,
            Dtype::F64 => Kind::Double,
            Dtype::F16 => Kind::Half,
            Dtype::BF16 => Kind::BFloat16,
            Dtype::I64 => Kind::Int64,
            Dtype::I32 => Kind::Int,
            Dtype::U8 => Kind::Uint8,
            Dtype::BOOL => Kind::Bool,
            other => {
                let why = format!("`{name}` has the type {other:?}, which is not supported");
                return Err(EncoderError::file(path, why, "convert it to f32"));
            }
        };
        let dims = view.shape().iter().map(|&d| d as i64).collect();
        let array = Array::new(dims, kind, bytes.slice_ref(view.data()));
        let array = array.ok_or_else(|| {
            EncoderError::file(path, format!("`{name}` is cut"), "export it again")
        })?;
        tensors.insert(name, array);
    }
    Ok(Safe { tensors, metadata })
}
