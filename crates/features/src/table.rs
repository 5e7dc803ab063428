//! Features with what they are of, as Parquet (`docs/artifacts.md`).

use crate::encoder::Grid;
use crate::error::FeatureError;
use crate::hdf5;
use crate::row::{About, Row, Tiles};
use base::file;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The form of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Parquet: crops, images and tiles.
    Parquet,
    /// HDF5 as CLAM and TRIDENT read it: slide tiles.
    #[default]
    Hdf5,
}

impl Form {
    /// By a file's suffix.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
            "parquet" => Some(Self::Parquet),
            "h5" | "hdf5" => Some(Self::Hdf5),
            _ => None,
        }
    }

    /// The suffix of its files.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Hdf5 => "h5",
        }
    }
}

impl std::str::FromStr for Form {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "parquet" => Ok(Self::Parquet),
            "h5" => Ok(Self::Hdf5),
            _ => Err(format!("`{word}` is neither h5 nor parquet")),
        }
    }
}

/// Features of one encoder.
#[derive(Clone, Debug)]
pub struct Table {
    about: About,
    rows: Vec<Row>,
    values: Vec<f32>,
    /// The grid, of slide tiles.
    pub tiles: Option<Tiles>,
    /// What crops these are; `None` of a slide's tiles.
    pub crops: Option<Crops>,
}

const MESSAGE: &str = "message features {
    required binary name (UTF8);
    required binary slide (UTF8);
    required binary label (UTF8);
    required binary subtype (UTF8);
    required binary split (UTF8);
    required double x;
    required double y;
    required group features (LIST) { repeated group list { required float element; } }
}";

impl Table {
    /// Without rows yet.
    #[must_use]
    pub fn new(about: &About) -> Self {
        Self { about: about.clone(), rows: vec![], values: vec![], tiles: None, crops: None }
    }

    /// By which encoder.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What the vectors are of, in order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The vectors, row by row: `len() * width` numbers.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds rows with their vectors, row by row.
    pub fn extend(&mut self, rows: Vec<Row>, values: &[f32]) {
        assert_eq!(values.len(), rows.len() * self.about.width, "one vector per row");
        self.rows.extend(rows);
        self.values.extend_from_slice(values);
    }

    /// Writes the form of the file's suffix, whole or not at all.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn write(&self, path: &Path) -> Result<(), FeatureError> {
        let bytes =
            match Form::from_path(path).ok_or_else(|| FeatureError::Form(path.to_owned()))? {
                Form::Parquet => self.parquet()?,
                Form::Hdf5 => {
                    let tiles = self.tiles.as_ref();
                    let tiles = tiles.ok_or_else(|| FeatureError::Crops(path.to_owned()))?;
                    hdf5::encode(&self.about, &self.rows, &self.values, tiles)?
                }
            };
        Ok(file::write(path, &bytes)?)
    }

    fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let mut notes = settings(&self.about, self.crops.as_ref());
        let mut note = |key: &str, value: String| notes.insert(format!("mithras.{key}"), value);
        note("schema", SCHEMA.into());
        note("encoder", self.about.encoder.clone());
        note("dim", self.about.width.to_string());
        if let Some(t) = &self.tiles {
            note("tile_px", t.side.to_string());
            note("tile_px_level0", t.level0.to_string());
            note("tile_mpp", t.mpp.to_string());
        }
        let notes = notes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("mithras {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(notes))
            .build();
        let schema = Arc::new(parse_message_type(MESSAGE)?);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        let texts: [fn(&Row) -> &str; 5] =
            [|r| &r.name, |r| &r.slide, |r| &r.label, |r| &r.subtype, |r| &r.split];
        let numbers: [fn(&Row) -> f64; 2] = [|r| r.x, |r| r.y];
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            match index {
                0..5 => {
                    let bytes = |r| ByteArray::from(texts[index](r).as_bytes().to_vec());
                    let values: Vec<_> = self.rows.iter().map(bytes).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                5 | 6 => {
                    let values: Vec<_> = self.rows.iter().map(numbers[index - 5]).collect();
                    column.typed::<DoubleType>().write_batch(&values, None, None)?;
                }
                _ => {
                    debug_assert!(matches!(column.untyped(), ColumnWriter::FloatColumnWriter(_)));
                    let levels = vec![1; self.values.len()];
                    let repeats: Vec<i16> = (0..self.values.len())
                        .map(|i| i16::from(i % self.about.width > 0))
                        .collect();
                    let typed = column.typed::<FloatType>();
                    typed.write_batch(&self.values, Some(&levels), Some(&repeats))?;
                }
            }
            column.close()?;
            index += 1;
        }
        group.close()?;
        writer.into_inner()
    }
}

/// Version of a Parquet file of features.
const SCHEMA: &str = "mithras.features/1";

/// The crops of a file of features.
#[derive(Clone, Debug, PartialEq)]
pub struct Crops {
    /// At which scale they were cut out of regions; `None` of whole ones.
    pub grid: Option<Grid>,
    /// Digest of the dataset; of images without one, of their names and contents.
    pub digest: String,
}

/// What decides the vectors of crops, as a file of features records it.
fn settings(about: &About, crops: Option<&Crops>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut note = |key: &str, value: String| all.insert(format!("mithras.{key}"), value);
    note("encoder_sha256", about.sha256.clone());
    note("precision", about.precision().into());
    if !about.input.is_empty() {
        note("input", about.input.clone());
    }
    if !about.random.is_empty() {
        note("random_at_start", about.random.clone());
    }
    if let Some(crops) = crops {
        note("dataset_sha256", crops.digest.clone());
    }
    if let Some(Grid { mpp, side }) = crops.and_then(|c| c.grid) {
        note("crop_px", side.to_string());
        note("crop_mpp", mpp.get().to_string());
    }
    all
}

/// Checks that features of crops may go into a file: the file does not exist, or holds features made with the same
/// settings. A setting that an older file does not record is not compared.
///
/// # Errors
/// [`FeatureError::Others`] of a file of something else, [`FeatureError::Stored`] of features made otherwise.
pub fn check_stored(path: &Path, about: &About, crops: &Crops) -> Result<(), FeatureError> {
    if !path.exists() {
        return Ok(());
    }
    let read = || {
        let file = file::open_regular(path).ok()?;
        let read = SerializedFileReader::new(file).ok()?;
        let notes = read.metadata().file_metadata().key_value_metadata()?.clone();
        Some(notes.into_iter().filter_map(|n| Some((n.key, n.value?))).collect())
    };
    let before: BTreeMap<String, String> = read().unwrap_or_default();
    if before.get("mithras.schema").map(String::as_str) != Some(SCHEMA) {
        return Err(FeatureError::Others(path.to_owned()));
    }
    let now = settings(about, Some(crops));
    let differs = now.iter().find_map(|(key, value)| {
        let before = before.get(key).filter(|before| *before != value)?;
        let name = key.trim_start_matches("mithras.");
        Some(format!("{name} was {before} and is {value}"))
    });
    match differs {
        Some(differs) => Err(FeatureError::Stored { path: path.to_owned(), differs }),
        None => Ok(()),
    }
}
