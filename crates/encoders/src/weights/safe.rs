//! Files of safetensors.

use std::collections::BTreeMap;
use std::io::Read;
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
        EncoderError::file(
            path,
            format!("no readable safetensors file ({e})"),
            "export it again if its source is whole",
        )
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
                return Err(EncoderError::file(path, why, "convert it to f32 if its values fit"));
            }
        };
        let dims = view.shape().iter().map(|&d| d as i64).collect();
        let array = Array::new(dims, kind, bytes.slice_ref(view.data()));
        let array = array.ok_or_else(|| {
            EncoderError::file(
                path,
                format!("`{name}` is cut"),
                "export it again if its source is whole",
            )
        })?;
        tensors.insert(name, array);
    }
    Ok(Safe { tensors, metadata })
}

/// Largest header of a file that is read for its metadata.
const HEADER_BYTES: u64 = 256 << 20;

/// The text metadata below `key` of a safetensors file, of which only the header is read. `None` where it has none,
/// and for files of other kinds.
///
/// # Errors
/// [`EncoderError::Io`] of a file that cannot be read.
pub fn metadata(path: &Path, key: &str) -> Result<Option<String>> {
    let fail = |e: std::io::Error| EncoderError::io(path, e);
    let mut file = base::file::open_regular(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let mut length = [0u8; 8];
    if file.read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let length = u64::from_le_bytes(length);
    if length > HEADER_BYTES.min(size.saturating_sub(8)) {
        return Ok(None);
    }
    let mut header = vec![0u8; length as usize];
    file.read_exact(&mut header).map_err(fail)?;
    let header = serde_json::from_slice::<serde_json::Value>(&header).ok();
    Ok(header.and_then(|h| Some(h["__metadata__"][key].as_str()?.to_owned())))
}
