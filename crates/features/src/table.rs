//! Features with what they are of, as Parquet (`docs/artifacts.md`).

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
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
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
        Self { about: about.clone(), rows: vec![], values: vec![], tiles: None }
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
        let about = |k: &str, v: &str| KeyValue::new(k.to_owned(), v.to_owned());
        let mut notes = vec![
            about("mithras.schema", "mithras.features/1"),
            about("mithras.encoder", &self.about.encoder),
            about("mithras.encoder_sha256", &self.about.sha256),
            about("mithras.dim", &self.about.width.to_string()),
            about("mithras.precision", self.about.precision()),
        ];
        if let Some(t) = &self.tiles {
            notes.push(about("mithras.tile_px", &t.side.to_string()));
            notes.push(about("mithras.tile_px_level0", &t.level0.to_string()));
            notes.push(about("mithras.tile_mpp", &t.mpp.to_string()));
        }
        if !self.about.random.is_empty() {
            notes.push(about("mithras.random_at_start", &self.about.random));
        }
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
                    let of = |r| ByteArray::from(texts[index](r).as_bytes().to_vec());
                    let values: Vec<_> = self.rows.iter().map(of).collect();
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
