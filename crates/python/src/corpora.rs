//! `mithras.Corpus`: crops by their number.

use crate::error::{CorpusError, with_path};
use crate::image;
use crops::shard::Shard;
use crops::{Columns, Crop, Label};
use numpy::PyArray3;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Row groups that stay in memory; their images are slices of the mapped file.
const KEPT: usize = 16;

/// A group of crops: which shard, which of its groups, and the number of its first crop.
#[derive(Clone, Copy)]
struct Group {
    shard: usize,
    group: usize,
    first: usize,
}

/// A corpus of crops in which every crop has its number.
#[pyclass(frozen, subclass, module = "mithras._mithras")]
pub struct Corpus {
    dir: PathBuf,
    digest: String,
    shards: Vec<Shard>,
    groups: Vec<Group>,
    /// Label and split of every crop.
    about: Vec<(Label, &'static str)>,
    /// The groups read last, newest last.
    kept: Mutex<Vec<(usize, Arc<Vec<Crop>>)>>,
}

impl Corpus {
    fn open(dir: PathBuf) -> Result<Self, crops::CorpusError> {
        let opened = crops::Corpus::open(&dir)?;
        let digest = opened.manifest().digest.clone();
        let shards = opened.shards()?;
        let (mut groups, mut about) = (Vec::new(), Vec::new());
        for (number, shard) in shards.iter().enumerate() {
            for group in 0..shard.groups() {
                groups.push(Group { shard: number, group, first: about.len() });
                let crops = shard.read(group, Columns::Meta)?;
                about.extend(crops.iter().map(|c| (c.meta.label, c.meta.split.name())));
            }
        }
        Ok(Self { dir, digest, shards, groups, about, kept: Mutex::default() })
    }

    fn group(&self, number: usize) -> Result<Arc<Vec<Crop>>, crops::CorpusError> {
        let known = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, crops)) = known().iter().find(|(n, _)| *n == number) {
            return Ok(Arc::clone(crops));
        }
        let Group { shard, group, .. } = self.groups[number];
        let crops = Arc::new(self.shards[shard].read(group, Columns::All)?);
        let mut kept = known();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((number, Arc::clone(&crops)));
        Ok(crops)
    }

    /// The crop of this number.
    fn with<T>(
        &self,
        i: usize,
        f: impl FnOnce(&Crop) -> Result<T, crops::CorpusError>,
    ) -> Result<T, crops::CorpusError> {
        let number = self.groups.partition_point(|g| g.first <= i) - 1;
        let crops = self.group(number)?;
        f(&crops[i - self.groups[number].first])
    }

    fn check(&self, i: usize) -> PyResult<()> {
        let n = self.about.len();
        let out = || PyIndexError::new_err(format!("crop {i} of a corpus of {n}"));
        if i < n { Ok(()) } else { Err(out()) }
    }
}

#[pymethods]
impl Corpus {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let dir = path.clone();
        py.detach(|| Self::open(dir)).map_err(with_path::<CorpusError, _>(&path))
    }

    /// Its folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.dir.clone()
    }

    /// Digest over every crop, from the manifest.
    #[getter]
    fn digest(&self) -> &str {
        &self.digest
    }

    fn __len__(&self) -> usize {
        self.about.len()
    }

    /// Name of every crop's label.
    fn _labels(&self) -> Vec<&'static str> {
        self.about.iter().map(|(label, _)| label.name()).collect()
    }

    /// Split of every crop.
    fn _splits(&self) -> Vec<&'static str> {
        self.about.iter().map(|(_, split)| *split).collect()
    }

    /// Pixels of the crop of this number in the whole corpus, `uint8 [height, width, 3]`.
    fn image<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyArray3<u8>>> {
        self.check(i)?;
        let decoded = py.detach(|| self.with(i, Crop::decode));
        image::array(py, decoded.map_err(with_path::<CorpusError, _>(&self.dir))?)
    }

    /// All that is known of a crop, as the dataset's schema names it.
    fn _meta(&self, py: Python<'_>, i: usize) -> PyResult<String> {
        self.check(i)?;
        let meta = py.detach(|| self.with(i, |c| Ok(c.meta.clone())));
        let meta = meta.map_err(with_path::<CorpusError, _>(&self.dir))?;
        crate::tables::json(&meta)
    }
}
