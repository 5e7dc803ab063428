//! `mithras.Classifier` and `mithras.Encoder`: packages at work on images.

use crate::detection::Engine;
use crate::error::{ModelError, about, plain, with_path};
use crate::image;
use crate::slides::mpp;
use features::Frozen;
use features::classify::fit;
use infer::ModelPackage;
use infer::card::ClassifierCard;
use mitosis::{ClassProbs, RgbTile};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regions::scene::read_rgb;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// An image in memory or in a file.
#[derive(FromPyObject)]
pub enum Image<'py> {
    #[pyo3(transparent)]
    Array(PyReadonlyArray3<'py, u8>),
    #[pyo3(transparent)]
    File(PathBuf),
}

/// The pixels of all images; those in files are read while other threads run.
fn pixels(py: Python<'_>, images: Vec<Image<'_>>) -> PyResult<Vec<RgbTile>> {
    images
        .into_iter()
        .map(|image| match image {
            Image::Array(array) => image::tile(&array),
            Image::File(path) => py
                .detach(|| read_rgb(&path))
                .map_err(|e| about::<crate::error::Error>(Some(&path), &e)),
        })
        .collect()
}

/// One vector per image as an array of two dimensions that takes over the memory.
fn rows(py: Python<'_>, values: Vec<f32>, width: usize) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let n = values.len() / width;
    values.into_pyarray(py).reshape([n, width])
}

/// A classifier's package at work.
#[pyclass(frozen, subclass, module = "mithras._mithras")]
pub struct Classifier {
    /// Name in the card.
    #[pyo3(get)]
    name: String,
    card: ClassifierCard,
    /// What runs the network, as text.
    #[pyo3(get)]
    engine: String,
    network: Mutex<Box<dyn mitosis::Classifier>>,
}

#[pymethods]
impl Classifier {
    #[new]
    fn new(py: Python<'_>, model: PathBuf, engine: Engine) -> PyResult<Self> {
        let options = engine.options()?;
        let fail = |e: &dyn std::fmt::Display| about::<ModelError>(Some(&model), e);
        let package = ModelPackage::find(Some(&model)).map_err(|e| fail(&e))?;
        let models = py.detach(|| infer::open(&package, &options)).map_err(|e| fail(&e))?;
        let name = package.card.name.clone();
        let (Some(card), Some(network)) = (package.card.classifier.clone(), models.classifier)
        else {
            return Err(fail(&format!("model `{name}` has no classifier")));
        };
        Ok(Self { name, card, engine: models.report.to_string(), network: network.into() })
    }

    /// Names of the classes, in the order of the probabilities.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.card.classes.clone()
    }

    /// Resolution that the network looks at, um/px.
    #[getter]
    fn mpp(&self) -> f64 {
        self.card.mpp.get()
    }

    /// Index of the class that each image is called, and all probabilities.
    fn _predict<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Image<'py>>,
        mpp: Option<f64>,
    ) -> PyResult<(Vec<usize>, Bound<'py, PyArray2<f32>>)> {
        let own = self::mpp(mpp)?.unwrap_or(self.card.mpp);
        let tiles = pixels(py, images)?;
        let crops = py.detach(|| tiles.iter().map(|t| fit(t, own, &self.card)).collect());
        let crops: Vec<RgbTile> =
            Result::map_err(crops, |e| PyValueError::new_err(format!("{e}")))?;
        let answers = py.detach(|| {
            let mut network = self.network.lock().unwrap_or_else(PoisonError::into_inner);
            network.classes(&crops)
        });
        let answers = answers.map_err(plain::<ModelError, _>)?;
        let called = answers.iter().map(|ClassProbs(p)| self.card.called(p)).collect();
        let all = answers.into_iter().flat_map(|ClassProbs(p)| p).collect();
        Ok((called, rows(py, all, self.card.classes.len())?))
    }
}

/// An encoder's package at work.
#[pyclass(frozen, subclass, module = "mithras._mithras")]
pub struct Encoder {
    frozen: Mutex<Frozen>,
    /// Name in the card.
    #[pyo3(get)]
    name: String,
    /// Numbers per vector.
    #[pyo3(get)]
    width: usize,
    /// Side of the network's input, px.
    #[pyo3(get)]
    side: usize,
    /// Resolution that the network was trained at, um/px, where its makers state one.
    #[pyo3(get)]
    mpp: Option<f64>,
    /// What runs the network, as text.
    #[pyo3(get)]
    engine: String,
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(py: Python<'_>, package: PathBuf, engine: Engine) -> PyResult<Self> {
        let options = engine.options()?;
        let opened = py.detach(|| Frozen::open(&package, &options));
        let frozen = opened.map_err(with_path::<ModelError, _>(&package))?;
        Ok(Self {
            name: frozen.about.encoder.clone(),
            width: frozen.about.width,
            side: frozen.fit.input,
            mpp: frozen.mpp.map(mitosis::Mpp::get),
            engine: frozen.engine.to_string(),
            frozen: frozen.into(),
        })
    }

    /// One vector per image.
    fn _embed<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Image<'py>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let tiles = pixels(py, images)?;
        let values = py.detach(|| {
            let mut frozen = self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
            frozen.network.features(&tiles)
        });
        rows(py, values.map_err(plain::<ModelError, _>)?, self.width)
    }
}
