//! `detections.parquet`: the same rows, typed.

use super::kind::{Export, ExportError};
use crate::record::{self, DetectionRow, SlideRecord};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

pub(super) const EXPORT: Export =
    Export { file: "detections.parquet", about: "the same rows, typed", bytes };

const COLUMNS: &str = "
    required double x_px;
    required double y_px;
    required double x_um;
    required double y_um;
    required float s_seg;
    optional float s_cls;
    required boolean accepted;
    required boolean outside_tissue;
    optional binary flaw (UTF8);
";

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    encode(record).map_err(|e| ExportError::Encode { file: EXPORT.file, reason: e.to_string() })
}

fn encode(record: &SlideRecord) -> Result<Vec<u8>, ParquetError> {
    let about = |k: &str, v: &str| KeyValue::new(k.to_owned(), v.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mithras {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            about("mithras.schema", "mithras.detections/1"),
            about("mithras.slide", &record.slide.name),
            about("mithras.mpp_x", &record.resolution.x.get().to_string()),
            about("mithras.mpp_y", &record.resolution.y.get().to_string()),
            about("mithras.operating_point", &record.point_name),
            about("mithras.threshold_seg", &record.point.seg.get().to_string()),
            about("mithras.threshold_cls", &record.point.cls.get().to_string()),
        ]))
        .build();
    let more = if record.subtypes.is_some() { &record::COLUMNS[..] } else { &[] };
    let more_columns: String = more.iter().map(|c| format!("optional float {c};\n")).collect();
    let message = format!("message detections {{{COLUMNS}{more_columns}}}");
    let schema = Arc::new(parse_message_type(&message)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let rows = &record.rows;
    let places: [fn(&DetectionRow) -> f64; 4] = [|r| r.x_px, |r| r.y_px, |r| r.x_um, |r| r.y_um];
    for f in places {
        column::<DoubleType>(&mut group, rows.iter().map(f).collect(), None)?;
    }
    column::<FloatType>(&mut group, rows.iter().map(|r| r.s_seg).collect(), None)?;
    let levels: Vec<i16> = rows.iter().map(|r| i16::from(r.s_cls.is_some())).collect();
    column::<FloatType>(&mut group, rows.iter().filter_map(|r| r.s_cls).collect(), Some(&levels))?;
    let flags: [fn(&DetectionRow) -> bool; 2] = [|r| r.accepted, |r| r.outside_tissue];
    for f in flags {
        column::<BoolType>(&mut group, rows.iter().map(f).collect(), None)?;
    }
    let levels: Vec<i16> = rows.iter().map(|r| i16::from(r.flaw.is_some())).collect();
    let flaws = rows.iter().filter_map(|r| r.flaw).map(|f| ByteArray::from(f.name())).collect();
    column::<ByteArrayType>(&mut group, flaws, Some(&levels))?;
    let levels: Vec<i16> = rows.iter().map(|r| i16::from(r.subtypes.is_some())).collect();
    for i in 0..more.len() {
        let values = rows.iter().filter_map(|r| Some(r.subtypes?.0[i])).collect();
        column::<FloatType>(&mut group, values, Some(&levels))?;
    }
    group.close()?;
    writer.into_inner()
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("too few columns".into()))?;
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}
