//! Pixels to and from numpy.

use mitosis::RgbTile;
use numpy::{IntoPyArray, PyArray3, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Pixels as an array `[height, width, 3]` that takes over their memory.
pub fn array(py: Python<'_>, tile: RgbTile) -> PyResult<Bound<'_, PyArray3<u8>>> {
    let shape = [tile.height, tile.width, 3];
    tile.data.into_pyarray(py).reshape(shape)
}

/// An array `[height, width, 3]` as pixels: copied once, because Python may change its own.
pub fn tile(array: &PyReadonlyArray3<'_, u8>) -> PyResult<RgbTile> {
    let &[height, width, channels] = array.shape() else { unreachable!("three dimensions") };
    if channels != 3 || height == 0 || width == 0 {
        let found = array.shape();
        return Err(PyValueError::new_err(format!(
            "an image has the shape [height, width, 3], and not {found:?}"
        )));
    }
    let data = match array.as_slice() {
        Ok(slice) => slice.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    };
    Ok(RgbTile::new(width, height, data))
}
