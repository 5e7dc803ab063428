//! Tensors of files as libtorch's, and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use encoders::onnx::Source;
use encoders::weights::{self, Arrays, Outline};
use encoders::{Array, Kind as FileKind};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// Reads weights by name as [`encoders::weights::read`] does.
///
/// # Errors
/// As there.
pub fn read_weights(path: &Path, key: Option<&str>) -> Result<BTreeMap<String, Tensor>> {
    from_arrays(weights::read(path, key)?)
}

/// The files that weights are in; see [`encoders::weights::files`].
///
/// # Errors
/// As there.
pub fn weight_files(path: &Path) -> Result<Vec<PathBuf>> {
    Ok(weights::files(path)?)
}

/// Tensors of a file on the CPU, one after the other, so that both are not held whole.
///
/// # Errors
/// libtorch's own.
pub fn from_arrays(arrays: Arrays) -> Result<BTreeMap<String, Tensor>> {
    arrays.into_iter().map(|(name, array)| Ok((name, from_array(&array)?))).collect()
}

pub(crate) fn from_array(array: &Array) -> Result<Tensor> {
    let kind = match array.kind() {
        FileKind::Float => Kind::Float,
        FileKind::Double => Kind::Double,
        FileKind::Half => Kind::Half,
        FileKind::BFloat16 => Kind::BFloat16,
        FileKind::Int64 => Kind::Int64,
        FileKind::Int => Kind::Int,
        FileKind::Int16 => Kind::Int16,
        FileKind::Int8 => Kind::Int8,
        FileKind::Uint8 => Kind::Uint8,
        FileKind::Bool => Kind::Bool,
    };
    Ok(Tensor::f_from_data_size(array.bytes(), array.dims(), kind)?)
}

/// A network's tensors by name, as f32.
#[must_use]
pub fn to_arrays(vs: &VarStore) -> Arrays {
    let variables = Variables::new(vs);
    let array = |(name, dims): (String, Vec<i64>)| {
        let values = variables.values(&name, &dims)?;
        Some((name, Array::from_f32(dims, &values)))
    };
    outline(vs).into_iter().filter_map(array).collect()
}

/// A network's tensors by name, each as its sides.
pub(crate) fn outline(vs: &VarStore) -> Outline {
    vs.variables().into_iter().map(|(name, t)| (name, t.size())).collect()
}

/// The tensors of a network on libtorch.
pub(crate) struct Variables(BTreeMap<String, Tensor>);

impl Variables {
    pub(crate) fn new(vs: &VarStore) -> Self {
        Self(vs.variables().into_iter().collect())
    }
}

impl Source for Variables {
    fn values(&self, name: &str, dims: &[i64]) -> Option<Vec<f32>> {
        let tensor = self.0.get(name).filter(|t| t.size() == dims)?;
        let flat = tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
        Vec::<f32>::try_from(flat.reshape([-1])).ok()
    }
}
