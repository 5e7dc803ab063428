//! Features with what they are of, as Parquet and HDF5 (`docs/artifacts.md`).

use super::error::EmbedError;
use artifact::file;
use hdf5_pure::{AttrValue, FileBuilder};
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

/// What a vector is of.
pub struct Row {
    /// Its own name.
    pub name: String,
    /// The slide that it is of.
    pub slide: String,
    /// `mitotic_figure`, `mimicker`, `unlabeled`.
    pub label: String,
    /// Its subtype, or nothing.
    pub subtype: String,
    /// Its side of an evaluation.
    pub split: String,
    /// Level-0 px: centre of a crop's object (NaN where unknown), upper left corner of a tile.
    pub x: f64,
    /// The same, down.
    pub y: f64,
}

/// The grid of slide tiles.
pub struct Tiles {
    /// Side, pixels at `mpp`.
    pub side: i64,
    /// Side in level-0 pixels.
    pub level0: i64,
    /// um/px.
    pub mpp: f64,
}

/// Features of one encoder.
pub struct Table {
    encoder: String,
    dim: usize,
    rows: Vec<Row>,
    values: Vec<f32>,
    /// The grid, of slide tiles.
    pub tiles: Option<Tiles>,
    /// Names of weights that no file gave, comma-separated.
    pub random: String,
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
    /// Without rows yet; `dim` numbers each.
    #[must_use]
    pub fn new(encoder: &str, dim: usize) -> Self {
        Self {
            encoder: encoder.into(),
            dim,
            rows: vec![],
            values: vec![],
            tiles: None,
            random: String::new(),
        }
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
        assert_eq!(values.len(), rows.len() * self.dim, "one vector per row");
        self.rows.extend(rows);
        self.values.extend_from_slice(values);
    }

    /// Writes Parquet.
    ///
    /// # Errors
    /// [`EmbedError`].
    pub fn write_parquet(&self, path: &Path) -> Result<(), EmbedError> {
        let bytes = self.parquet()?;
        Ok(file::write(path, &bytes)?)
    }

    fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let about = |k: &str, v: &str| KeyValue::new(k.to_owned(), v.to_owned());
        let mut notes = vec![
            about("mithras.schema", "mithras.features/1"),
            about("mithras.encoder", &self.encoder),
            about("mithras.dim", &self.dim.to_string()),
        ];
        if !self.random.is_empty() {
            notes.push(about("mithras.random_at_start", &self.random));
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
                    let repeats: Vec<i16> =
                        (0..self.values.len()).map(|i| i16::from(i % self.dim > 0)).collect();
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

    /// Writes HDF5: `features` and `coords` at the root, with CLAM's and TRIDENT's attributes.
    ///
    /// # Errors
    /// [`EmbedError`].
    pub fn write_hdf5(&self, path: &Path) -> Result<(), EmbedError> {
        let n = self.rows.len() as u64;
        let coords: Vec<i64> = self.rows.iter().flat_map(|r| [r.x as i64, r.y as i64]).collect();
        let mut out = FileBuilder::new();
        let features = out.create_dataset("features");
        features
            .with_f32_data(&self.values)
            .with_shape(&[n, self.dim as u64])
            .set_attr("encoder", AttrValue::AsciiString(self.encoder.clone()));
        // An empty attribute would say that something stayed as drawn.
        if !self.random.is_empty() {
            features.set_attr("random_at_start", AttrValue::AsciiString(self.random.clone()));
        }
        let made = out.create_dataset("coords").with_i64_data(&coords).with_shape(&[n, 2]);
        if let Some(t) = &self.tiles {
            made.set_attr("patch_level", AttrValue::I64(0));
            made.set_attr("patch_size", AttrValue::I64(t.side));
            made.set_attr("patch_size_level0", AttrValue::I64(t.level0));
            made.set_attr("patch_mpp", AttrValue::F64(t.mpp));
        }
        let bytes = out.finish().map_err(|e| EmbedError::Hdf5(e.to_string()))?;
        Ok(file::write(path, &bytes)?)
    }
}
