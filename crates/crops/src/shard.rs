//! One Parquet file of crops: written whole to a temporary name, read a row group at a time.

use crate::error::{CorpusError, Result};
use crate::schema::{Crop, CropBox, CropMeta, HUGGINGFACE, Hash, Label, MESSAGE, leaf};
use bytes::Bytes;
use mitosis::{Mpp, Point, Score};
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A crop to be written, with its digest.
struct Row {
    crop: Crop,
    digest: Hash,
}

/// Streams crops into one Parquet file; memory holds one row group.
pub(crate) struct ShardWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    pending: Vec<Row>,
    rows_per_group: usize,
}

impl<W: Write + Send> ShardWriter<W> {
    pub fn new(out: W, rows_per_group: usize) -> Result<Self, ParquetError> {
        let bytes = ColumnPath::new(vec!["image".into(), "bytes".into()]);
        let props = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_column_compression(bytes.clone(), Compression::UNCOMPRESSED)
            .set_column_dictionary_enabled(bytes.clone(), false)
            .set_column_statistics_enabled(bytes, EnabledStatistics::None)
            .set_created_by(format!("mithras {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![
                KeyValue::new("mithras.schema".into(), crate::SCHEMA_VERSION.to_string()),
                KeyValue::new("huggingface".into(), HUGGINGFACE.replace('\n', "")),
            ]))
            .build();
        let schema = Arc::new(parse_message_type(MESSAGE)?);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(props))?;
        Ok(Self { writer, pending: Vec::new(), rows_per_group })
    }

    pub fn push(&mut self, crop: Crop, digest: Hash) -> Result<(), ParquetError> {
        self.pending.push(Row { crop, digest });
        if self.pending.len() >= self.rows_per_group { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.pending);
        let mut group = self.writer.next_row_group()?;
        write_group(&mut group, &rows)?;
        group.close()?;
        Ok(())
    }

    /// Writes the footer and gives the sink back.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.writer.into_inner()
    }
}

fn write_group<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let text = |s: &str| ByteArray::from(s.as_bytes().to_vec());
    let m = || rows.iter().map(|r| &r.crop.meta);
    let opt = |s: &Option<String>| s.as_deref().map(text);
    let side = |f: fn(CropBox) -> f32| m().map(move |c| c.bbox.map(f)).collect::<Vec<_>>();

    let images = rows.iter().map(|r| ByteArray::from(r.crop.image.clone())).collect();
    nested::<W>(group, images)?;
    nested::<W>(group, m().map(|c| text(&c.path)).collect())?;
    optional::<Int64Type, W>(group, m().map(|c| c.label.code()))?;
    optional::<ByteArrayType, W>(group, m().map(|c| opt(&c.subtype)))?;
    optional::<FloatType, W>(group, m().map(|c| c.s_seg.map(Score::get)))?;
    optional::<FloatType, W>(group, m().map(|c| c.s_cls.map(Score::get)))?;
    optional::<FloatType, W>(group, side(|b| b.x0))?;
    optional::<FloatType, W>(group, side(|b| b.y0))?;
    optional::<FloatType, W>(group, side(|b| b.x1))?;
    optional::<FloatType, W>(group, side(|b| b.y1))?;
    optional::<DoubleType, W>(group, m().map(|c| c.centroid.map(|p| p.x)))?;
    optional::<DoubleType, W>(group, m().map(|c| c.centroid.map(|p| p.y)))?;
    required::<ByteArrayType, W>(group, m().map(|c| text(&c.slide)).collect())?;
    optional::<ByteArrayType, W>(group, m().map(|c| opt(&c.patient)))?;
    required::<ByteArrayType, W>(group, m().map(|c| text(&c.cohort)).collect())?;
    required::<DoubleType, W>(group, m().map(|c| c.mpp.get()).collect())?;
    required::<Int32Type, W>(group, m().map(|c| c.width.cast_signed()).collect())?;
    required::<Int32Type, W>(group, m().map(|c| c.height.cast_signed()).collect())?;
    required::<ByteArrayType, W>(group, m().map(|c| text(&c.source)).collect())?;
    required::<ByteArrayType, W>(group, m().map(|c| text(c.split.name())).collect())?;
    optional::<ByteArrayType, W>(group, m().map(|c| opt(&c.votes)))?;
    optional::<ByteArrayType, W>(
        group,
        m().map(|c| c.pixels.map(|h| ByteArray::from(h.to_vec()))),
    )?;
    required::<ByteArrayType, W>(
        group,
        rows.iter().map(|r| ByteArray::from(r.digest.to_vec())).collect(),
    )
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("columns".into()))?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// A leaf that is always there, inside an optional group.
fn nested<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<ByteArray>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("columns".into()))?;
    let levels = vec![2; values.len()];
    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl IntoIterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("columns".into()))?;
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Which columns a reader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Everything.
    All,
    /// Everything but the image bytes.
    Meta,
}

/// An open shard. The file is mapped into memory, and the images that [`Shard::read`] hands out are
/// slices of that map: no byte is copied, and a shuffle buffer holds no picture.
pub struct Shard {
    path: PathBuf,
    map: Bytes,
    reader: SerializedFileReader<Bytes>,
}

impl Shard {
    /// Opens a shard and checks its columns against the schema.
    ///
    /// # Errors
    /// [`CorpusError::Shard`] when it is not a complete Parquet file, [`CorpusError::Schema`] when
    /// its columns differ.
    pub fn open(path: &Path) -> Result<Self> {
        let file = base::file::open_regular(path).map_err(CorpusError::io(path))?;
        // SAFETY: the map is only read, and shards never change: they are written under another
        // name, renamed when whole, and at most unlinked later, which leaves the map alone. Who cuts a
        // shard short while it is read kills this process (SIGBUS), but corrupts nothing.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(CorpusError::io(path))?;
        let map = Bytes::from_owner(map);
        let reader = walled(path, || {
            SerializedFileReader::new(map.clone()).map_err(CorpusError::shard(path))
        })?;
        for group in reader.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(u64::MAX);
            // Every row holds a digest at least.
            if rows > map.len() as u64 || rows > MOST_ROWS {
                let claim = format!("{rows} rows in a file of {} bytes", map.len());
                return Err(CorpusError::shard(path)(ParquetError::General(claim)));
            }
        }
        let expected = parse_message_type(MESSAGE).map_err(CorpusError::shard(path))?;
        let schema = reader.metadata().file_metadata().schema();
        for (i, want) in expected.get_fields().iter().enumerate() {
            let problem = match schema.get_fields().get(i) {
                None => Some("is missing".to_owned()),
                Some(got) if got.name() != want.name() => {
                    Some(format!("is missing (found `{}` in its place)", got.name()))
                }
                Some(got) if got.as_ref() != want.as_ref() => Some("has another type".to_owned()),
                Some(_) => None,
            };
            if let Some(reason) = problem {
                let column = want.name().to_owned();
                return Err(CorpusError::Schema { path: path.into(), column, reason });
            }
        }
        Ok(Self { path: path.into(), map, reader })
    }

    /// Row groups in the shard.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Crops in the shard.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0).cast_unsigned()
    }

    /// Reads one row group; with [`Columns::Meta`] the images are empty.
    ///
    /// # Errors
    /// [`CorpusError::Shard`] when the pages cannot be decoded, [`CorpusError::Schema`] when a
    /// value breaks the schema.
    pub fn read(&self, group: usize, columns: Columns) -> Result<Vec<Crop>> {
        walled(&self.path, || self.read_group(group, columns))
    }

    fn read_group(&self, group: usize, columns: Columns) -> Result<Vec<Crop>> {
        let rg = self.reader.get_row_group(group).map_err(CorpusError::shard(&self.path))?;
        let c = Cells { shard: self, rg: rg.as_ref() };
        let n = c.rows();
        let mut images = match columns {
            Columns::All => c.bytes(leaf::BYTES)?,
            Columns::Meta => vec![Some(Bytes::new()); n],
        };
        let mut paths = c.text(leaf::PATH)?;
        let labels = c.cells::<Int64Type>(leaf::LABEL)?;
        let mut subtypes = c.text(leaf::SUBTYPE)?;
        let s_seg = c.cells::<FloatType>(leaf::S_SEG)?;
        let s_cls = c.cells::<FloatType>(leaf::S_CLS)?;
        let sides = [0, 1, 2, 3].map(|k| c.cells::<FloatType>(leaf::BOX + k));
        let [x0, y0, x1, y1] = sides;
        let (x0, y0, x1, y1) = (x0?, y0?, x1?, y1?);
        let xs = c.cells::<DoubleType>(leaf::X)?;
        let ys = c.cells::<DoubleType>(leaf::Y)?;
        let mut slides = c.text(leaf::SLIDE)?;
        let mut patients = c.text(leaf::PATIENT)?;
        let mut cohorts = c.text(leaf::COHORT)?;
        let mpps = c.cells::<DoubleType>(leaf::MPP)?;
        let widths = c.cells::<Int32Type>(leaf::WIDTH)?;
        let heights = c.cells::<Int32Type>(leaf::HEIGHT)?;
        let mut sources = c.text(leaf::SOURCE)?;
        let splits = c.text(leaf::SPLIT)?;
        let mut votes = c.text(leaf::VOTES)?;
        let pixels = c.cells::<ByteArrayType>(leaf::PIXELS)?;

        (0..n)
            .map(|i| {
                let bad = |column: &str, reason: String| CorpusError::Schema {
                    path: self.path.clone(),
                    column: column.into(),
                    reason: format!("row {i} of group {group}: {reason}"),
                };
                let score = |column, v: Option<f32>| {
                    v.map(Score::new).transpose().map_err(|e| bad(column, e.to_string()))
                };
                let need = |column, v: Option<String>| v.ok_or_else(|| bad(column, "null".into()));
                let bbox = match (x0[i], y0[i], x1[i], y1[i]) {
                    (Some(x0), Some(y0), Some(x1), Some(y1)) => Some(CropBox { x0, y0, x1, y1 }),
                    _ => None,
                };
                let size = |column, v: Option<i32>| {
                    v.and_then(|v| u32::try_from(v).ok())
                        .ok_or_else(|| bad(column, format!("{v:?}")))
                };
                let meta = CropMeta {
                    path: need("image.path", paths[i].take())?,
                    label: Label::from_code(labels[i])
                        .ok_or_else(|| bad("label", format!("{:?}", labels[i])))?,
                    subtype: subtypes[i].take(),
                    s_seg: score("s_seg", s_seg[i])?,
                    s_cls: score("s_cls", s_cls[i])?,
                    bbox,
                    centroid: xs[i].zip(ys[i]).map(|(x, y)| Point::new(x, y)),
                    slide: need("slide", slides[i].take())?,
                    patient: patients[i].take(),
                    cohort: need("cohort", cohorts[i].take())?,
                    mpp: Mpp::new(mpps[i].unwrap_or(f64::NAN))
                        .map_err(|e| bad("mpp", e.to_string()))?,
                    width: size("width", widths[i])?,
                    height: size("height", heights[i])?,
                    source: need("source", sources[i].take())?,
                    split: splits[i]
                        .as_deref()
                        .unwrap_or_default()
                        .parse()
                        .map_err(|e| bad("split", e))?,
                    votes: votes[i].take(),
                    pixels: pixels[i].as_ref().and_then(hash),
                };
                meta.check()?;
                Ok(Crop { meta, image: images[i].take().unwrap_or_default() })
            })
            .collect()
    }

    /// The value as a slice of the map; copied where a page was compressed.
    fn slice(&self, value: &ByteArray) -> Bytes {
        let (file, part) = (self.map.as_ptr_range(), value.data().as_ptr_range());
        if file.start <= part.start && part.end <= file.end {
            self.map.slice_ref(value.data())
        } else {
            Bytes::copy_from_slice(value.data())
        }
    }

    /// The recorded digests of one row group.
    pub(crate) fn digests(&self, group: usize) -> Result<Vec<Hash>> {
        walled(&self.path, || self.read_digests(group))
    }

    fn read_digests(&self, group: usize) -> Result<Vec<Hash>> {
        let rg = self.reader.get_row_group(group).map_err(CorpusError::shard(&self.path))?;
        let cells = Cells { shard: self, rg: rg.as_ref() }.cells::<ByteArrayType>(leaf::DIGEST)?;
        cells
            .iter()
            .map(|b| b.as_ref().and_then(hash))
            .map(|h| {
                h.ok_or_else(|| CorpusError::Schema {
                    path: self.path.clone(),
                    column: "digest".into(),
                    reason: "is not a SHA-256 digest".into(),
                })
            })
            .collect()
    }
}

/// Runs the Parquet reader on bytes that may be wrong: if it panics, the shard is at fault.
fn walled<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let refused = |e: String| CorpusError::shard(path)(ParquetError::General(e));
    base::panics::catch_panic(|| Ok(work())).map_err(refused)?
}

/// A column of a row group, as Parquet stores it.
struct StoredColumn<T> {
    /// Those that are there.
    values: Vec<T>,
    /// Definition level of each row; empty where no value may be missing.
    levels: Vec<i16>,
    rows: usize,
    /// Level of a value that is there.
    present: i16,
}

/// Rows of one row group that are read; a writer makes groups of some thousand.
const MOST_ROWS: u64 = 4 << 20;
/// Bytes that the values of one column of a row group may take: a few bytes of a file can be many equal
/// values.
const MOST_BYTES: usize = 1 << 30;

/// The columns of one row group as plain vectors of optional values.
struct Cells<'a> {
    shard: &'a Shard,
    rg: &'a dyn RowGroupReader,
}

impl Cells<'_> {
    fn rows(&self) -> usize {
        usize::try_from(self.rg.metadata().num_rows()).unwrap_or(0)
    }

    fn cells<T: DataType>(&self, leaf: usize) -> Result<Vec<Option<T::T>>> {
        let fail = CorpusError::shard(&self.shard.path);
        let n = self.rows();
        let read = || -> Result<StoredColumn<T::T>, ParquetError> {
            let present = self.rg.metadata().column(leaf).column_descr().max_def_level();
            let mut column = get_typed_column_reader::<T>(self.rg.get_column_reader(leaf)?);
            let (mut values, mut levels) = (Vec::with_capacity(n), Vec::new());
            let mut rows = 0;
            while rows < n {
                let defs = (present > 0).then_some(&mut levels);
                let (got, _, _) = column.read_records(n - rows, defs, None, &mut values)?;
                if got == 0 {
                    break;
                }
                rows += got;
            }
            Ok(StoredColumn { values, levels, rows, present })
        };
        let StoredColumn { values, levels, rows, present } = read().map_err(fail)?;
        if rows != n {
            return Err(CorpusError::Shard {
                path: self.shard.path.clone(),
                reason: format!("column {leaf} holds {rows} of {n} rows"),
            });
        }
        if levels.is_empty() {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|&l| if l == present { values.next() } else { None }).collect())
    }

    /// The values of a column that together are not too large to be copied.
    fn within(&self, leaf: usize) -> Result<Vec<Option<ByteArray>>> {
        let cells = self.cells::<ByteArrayType>(leaf)?;
        let all = cells.iter().flatten().try_fold(0usize, |n, b| n.checked_add(b.len()));
        if all.is_none_or(|n| n > MOST_BYTES) {
            let reason =
                format!("the values of column {leaf} are more than {} MiB", MOST_BYTES >> 20);
            return Err(CorpusError::Shard { path: self.shard.path.clone(), reason });
        }
        Ok(cells)
    }

    fn bytes(&self, leaf: usize) -> Result<Vec<Option<Bytes>>> {
        let cells = self.within(leaf)?;
        Ok(cells.into_iter().map(|c| c.map(|b| self.shard.slice(&b))).collect())
    }

    fn text(&self, leaf: usize) -> Result<Vec<Option<String>>> {
        self.within(leaf)?
            .into_iter()
            .map(|c| {
                c.map(|b| std::str::from_utf8(b.data()).map(str::to_owned)).transpose().map_err(
                    |e| CorpusError::Shard {
                        path: self.shard.path.clone(),
                        reason: format!("column {leaf}: {e}"),
                    },
                )
            })
            .collect()
    }
}

fn hash(b: &ByteArray) -> Option<Hash> {
    Hash::try_from(b.data()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Split;

    struct FullDisk(usize);

    impl Write for FullDisk {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            if buf.len() > self.0 {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
            }
            self.0 -= buf.len();
            Ok(buf.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_strikes() {
        let crop = |i: usize| Crop {
            meta: CropMeta {
                cohort: "c".into(),
                source: "test".into(),
                split: Split::Train,
                ..CropMeta::new(format!("{i}.png"), Label::Unlabeled, "s", Mpp::PAPER, (1, 1))
            },
            image: Bytes::from(vec![0; 100]),
        };
        let write = |space: usize| -> Result<(), ParquetError> {
            let mut shard = ShardWriter::new(FullDisk(space), 4)?;
            for i in 0..10 {
                shard.push(crop(i), [0; 32])?;
            }
            shard.finish().map(drop)
        };
        assert!(write(1 << 20).is_ok());
        for space in [0, 3, 500, 2_000, 5_000] {
            assert!(write(space).is_err(), "{space} bytes were enough");
        }
    }
}
