//! Files of `torch.save` that are made to hurt, and one that holds two state dicts.

use std::io::{Cursor, Write};
use std::path::PathBuf;

use encoders::weights::read as read_weights;
use zip::CompressionMethod::{self, Deflated, Stored};
use zip::write::{FileOptions, ZipWriter};

/// A pickle of protocol 2, operation by operation.
#[derive(Clone)]
struct Pickle(Vec<u8>);

impl Pickle {
    fn new() -> Self {
        Self(vec![0x80, 2])
    }

    fn op(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn text(self, text: &str) -> Self {
        self.op(b"X").op(&(text.len() as u32).to_le_bytes()).op(text.as_bytes())
    }

    fn int(self, n: i64) -> Self {
        self.op(&[0x8a, 8]).op(&n.to_le_bytes())
    }

    fn ints(self, values: &[i64]) -> Self {
        values.iter().fold(self.op(b"("), |p, n| p.int(*n)).op(b"t")
    }

    fn global(self, module: &str, name: &str) -> Self {
        self.op(format!("c{module}\n{name}\n").as_bytes())
    }

    /// A float tensor, as `torch.save` writes it.
    fn tensor(self, key: &str, size: &[i64], stride: &[i64]) -> Self {
        self.global("torch._utils", "_rebuild_tensor_v2")
            .op(b"((")
            .text("storage")
            .global("torch", "FloatStorage")
            .text(key)
            .text("cpu")
            .int(size.iter().fold(1, |all, n| all.wrapping_mul(*n)))
            .op(b"tQ")
            .int(0)
            .ints(size)
            .ints(stride)
            .op(&[0x89])
            .global("collections", "OrderedDict")
            .op(b")RtR")
    }

    fn end(self) -> Vec<u8> {
        self.op(b".").0
    }
}

/// A state dict of one tensor `w` in the storage `0`.
fn one_tensor(size: &[i64], stride: &[i64]) -> Vec<u8> {
    Pickle::new().op(b"}(").text("w").tensor("0", size, stride).op(b"u").end()
}

struct File {
    dir: tempfile::TempDir,
    path: PathBuf,
}

/// A zip of these entries; `zeros` more bytes follow the content of each.
fn file(entries: &[(&str, &[u8], CompressionMethod, usize)]) -> File {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, method, zeros) in entries {
        let how = FileOptions::default().compression_method(*method);
        zip.start_file(format!("archive/{name}"), how).expect("an entry");
        zip.write_all(bytes).expect("written");
        let part = vec![0; 1 << 20];
        (0..zeros >> 20).for_each(|_| zip.write_all(&part).expect("written"));
    }
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("w.pth");
    std::fs::write(&path, zip.finish().expect("a zip").into_inner()).expect("written");
    File { dir, path }
}

fn refused(file: &File, word: &str) {
    let why = read_weights(&file.path, None).expect_err("refused").to_string();
    assert!(why.contains(word) && why.contains("w.pth"), "`{word}` not in: {why}");
}

const GIB: usize = 1 << 30;

#[test]
fn a_gigabyte_of_deflated_zeros_is_not_unpacked() {
    let values: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let (small, large) = (one_tensor(&[4], &[1]), one_tensor(&[(GIB / 4) as i64], &[1]));
    // Behind four values, which are all that the tensor has.
    let mut made = file(&[("data.pkl", &small, Stored, 0), ("data/0", &values, Deflated, GIB)]);
    let length = std::fs::metadata(&made.path).expect("there").len();
    assert!(length < 8 << 20, "{length} bytes");
    assert_eq!(
        read_weights(&made.path, None).expect("four values")["w"].to_f32(),
        [1.0, 2.0, 3.0, 4.0]
    );

    // The same bytes, of a pickle that states they are all values.
    let whole = std::fs::read(&made.path).expect("read");
    let mut from = zip::ZipArchive::new(Cursor::new(whole)).expect("a zip");
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("archive/data.pkl", FileOptions::default().compression_method(Stored))
        .expect("an entry");
    zip.write_all(&large).expect("written");
    zip.raw_copy_file(from.by_name("archive/data/0").expect("there")).expect("copied");
    std::fs::write(&made.path, zip.finish().expect("a zip").into_inner()).expect("written");
    refused(&made, "more than weights deflate");

    // And as the pickle itself.
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let entry = from.by_name("archive/data/0").expect("there");
    zip.raw_copy_file_rename(entry, "archive/data.pkl").expect("copied");
    made.path = made.dir.path().join("pickle-w.pth");
    std::fs::write(&made.path, zip.finish().expect("a zip").into_inner()).expect("written");
    refused(&made, "data.pkl is larger than");
}

#[test]
fn tensors_have_no_more_values_than_the_file() {
    let four = [0; 16];
    let read = |size: &[i64], stride: &[i64]| {
        file(&[("data.pkl", &one_tensor(size, stride), Stored, 0), ("data/0", &four, Stored, 0)])
    };
    assert!(read_weights(&read(&[2, 2], &[1, 2]).path, None).is_ok());
    refused(&read(&[1 << 40], &[0]), "values of the 1 that it has");
    refused(&read(&[2, 2], &[0, 1]), "values of the 2 that it has");
    refused(&read(&[1 << 40, 1 << 40], &[1, 1]), "no tensor can be");
    refused(&read(&[2, 2], &[i64::MAX, 1]), "no tensor can be");
    refused(&read(&[2, 2], &[1]), "no tensor can be");
    refused(&read(&[1 << 40], &[1]), "more than weights deflate");
    refused(&read(&[5], &[1]), "does not fit its storage");
    refused(&read(&[1; 65], &[1; 65]), "a shape of 65 sides");
}

#[test]
fn a_pickle_in_a_zip_runs_no_code() {
    for (module, name) in [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")] {
        let code = Pickle::new()
            .op(b"}(")
            .text("w")
            .global(module, name)
            .op(b"(")
            .text("touch /tmp/owned")
            .op(b"tRu")
            .end();
        let made = file(&[("data.pkl", &code, Stored, 0), ("data/0", &[0; 16], Stored, 0)]);
        refused(&made, &format!("asks to run `{module}.{name}`"));
    }
}

#[test]
fn pickles_that_nest_without_end_do_not_crash() {
    let nested = |inner: &[u8], times: usize| {
        let deep = (0..times).fold(Pickle::new().op(b"}(").text("w").op(b")"), |p, _| p.op(inner));
        file(&[("data.pkl", &deep.op(b"u").end(), Deflated, 0)])
    };
    // Tuples of one, and lists of one by way of the memo.
    refused(&nested(b"\x85", 1_000_000), "no tensors found");
    refused(&nested(b"q\x00]h\x00a", 300_000), "no tensors found");
    refused(&nested(b"N", 6_000_000), "more than 5000000 values");
    let mut slot = Pickle::new().op(b"}r");
    slot = slot.op(&40_000_000_u32.to_le_bytes());
    refused(&file(&[("data.pkl", &slot.end(), Stored, 0)]), "an impossible memo slot");
    let long = Pickle::new().op(b"}(").text(&"w".repeat(5000)).op(b"Nu").end();
    refused(&file(&[("data.pkl", &long, Stored, 0)]), "a name without an end");
}

/// IMPaSh: an encoder below `model`, the layer that distinguishes tissues below `classifier`.
#[test]
fn an_encoder_and_a_head_in_another_file_are_read_together() {
    let dict = Pickle::new()
        .op(b"}(")
        .text("epoch")
        .int(20)
        .text("model")
        .op(b"}(")
        .text("module.encoder.layer1.0.conv1.weight")
        .tensor("0", &[2, 2], &[2, 1])
        .text("module.encoder.bn1.weight")
        .tensor("1", &[1], &[1])
        .op(b"u")
        .text("classifier")
        .op(b"}(")
        .text("module.weight")
        .tensor("2", &[3], &[1])
        .op(b"uu")
        .end();
    let floats = |v: &[f32]| -> Vec<u8> { v.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let made = file(&[
        ("data.pkl", &dict, Stored, 0),
        ("data/0", &floats(&[1.0, 2.0, 3.0, 4.0]), Stored, 0),
        ("data/1", &floats(&[5.0]), Stored, 0),
        ("data/2", &floats(&[6.0, 7.0, 8.0]), Stored, 0),
    ]);
    let all = read_weights(&made.path, None).expect("both");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let [head, conv, norm] =
        ["classifier.weight", "encoder.layer1.0.conv1.weight", "encoder.bn1.weight"];
    assert_eq!(names, [head, norm, conv]);
    assert_eq!(all[head].to_f32(), [6.0, 7.0, 8.0]);
    assert_eq!(all[conv].to_f32(), [1.0, 2.0, 3.0, 4.0]);
    // Named by its key, each is alone.
    assert_eq!(read_weights(&made.path, Some("model")).expect("there").len(), 2);
    assert_eq!(read_weights(&made.path, Some("classifier")).expect("there").len(), 1);
}
