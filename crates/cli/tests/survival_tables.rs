//! Tables and joins as other people write them: read the same, or refused with the reason.

use assert_cmd::Command;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

fn mithras(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(crate::program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn command(verb: &str, table: &str, more: &[&str]) -> (bool, String, String) {
    let base = ["survival", verb, "--table", table, "--time", "t", "--event", "e", "--json"];
    mithras(&[&base[..], more].concat())
}

#[track_caller]
fn ok(result: (bool, String, String)) -> Value {
    assert!(result.0, "{}", result.2);
    serde_json::from_str(&result.1).expect(&result.1)
}

const ROWS: [(f64, bool, &str, f64); 12] = [
    (5.0, true, "b", 1.5),
    (6.0, true, "a", 0.5),
    (6.0, false, "b", 2.0),
    (2.5, true, "b", 3.0),
    (1.0, true, "a", 1.0),
    (9.0, false, "a", 0.25),
    (7.0, true, "a", 2.5),
    (3.0, true, "b", 0.75),
    (4.0, false, "a", 1.25),
    (8.0, true, "b", 1.0),
    (2.0, true, "a", 4.0),
    (10.0, true, "b", 0.5),
];

/// The rows as text.
fn text(separator: &str, header: &str, yes: &str, no: &str) -> String {
    let mut out = format!("{}\n", header.replace(',', separator));
    for (t, e, g, x) in ROWS {
        let cells = [t.to_string(), (if e { yes } else { no }).into(), g.into(), x.to_string()];
        out += &format!("{}\n", cells.join(separator));
    }
    out
}

#[test]
fn one_table_in_many_forms() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let header = "t,e,g,x";
    let base = write(at, "base.csv", &text(",", header, "1", "0"));
    let cox = |table: &str| ok(command("cox", table, &["--covariates", "g,x"]));
    let want = cox(&base);
    assert_eq!((&want["n"], &want["events"]), (&12.into(), &9.into()));
    assert_eq!(want["coefficients"][0]["name"], "gb");
    let quoted = text(",", "\"t\",\"e\",\"g\",\"x\"", "TRUE", "FALSE");
    let numbered: String = text("\t", header, "2", "1")
        .lines()
        .enumerate()
        .map(|(i, l)| if i == 0 { format!("{l}\n") } else { format!("\"{i}\"\t{l}\n") })
        .collect();
    let forms = [
        ("tab.tsv", text("\t", header, "true", "false")),
        ("semicolon.csv", text(";", header, "1.0", "0.0")),
        ("bom.csv", format!("\u{feff}{}", quoted.replace('\n', "\r\n"))),
        ("r_codes.csv", text(",", header, "2", "1")),
        ("r_row_names.txt", numbered),
    ];
    for (name, form) in forms {
        let got = cox(&write(at, name, &form));
        for key in ["n", "events", "coefficients", "loglik", "concordance", "score"] {
            assert_eq!(got[key], want[key], "{name}: {key}");
        }
    }
    let path = at.join("t.parquet");
    parquet_table(&path);
    assert_eq!(cox(path.to_str().unwrap())["coefficients"], want["coefficients"]);
}

/// The same rows as typed columns.
pub(crate) fn parquet_table(path: &Path) {
    packed_table(path, Compression::UNCOMPRESSED);
}

fn packed_table(path: &Path, codec: Compression) {
    let schema = "message t { required double t; required boolean e; required binary g (UTF8); optional double x; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let properties = WriterProperties::builder().set_compression(codec).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! column {
        ($kind:ty, $levels:expr, $values:expr) => {{
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$kind>().write_batch(&$values, $levels, None).unwrap();
            column.close().unwrap();
        }};
    }
    column!(DoubleType, None, ROWS.map(|r| r.0));
    column!(BoolType, None, ROWS.map(|r| r.1));
    column!(ByteArrayType, None, ROWS.map(|r| ByteArray::from(r.2)));
    column!(DoubleType, Some(&[1; ROWS.len()]), ROWS.map(|r| r.3));
    group.close().unwrap();
    writer.close().unwrap();
}

/// Files of other programs are packed in ways that this one does not unpack: the error names the way, not damage.
#[test]
fn a_parquet_file_packed_in_another_way_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    parquet_table(&path);
    let plain = std::fs::read(&path).unwrap();
    // In the description of a column (Thrift, compact): the list of its one name, then its codec; 0 means uncompressed.
    let described = |codec: u8| [&[0x19, 0x18, 1, b'x', 0x15][..], &[codec]].concat();
    let from = described(0);
    let at: Vec<usize> = (0..plain.len()).filter(|i| plain[*i..].starts_with(&from)).collect();
    assert_eq!(at.len(), 1, "where the codec of column x is");
    for (number, name) in [(7, "LZ4"), (5, "LZ4"), (4, "BROTLI"), (2, "GZIP"), (3, "LZO")] {
        let mut packed = plain.clone();
        packed[at[0] + from.len() - 1] = 2 * number;
        std::fs::write(&path, packed).unwrap();
        let (good, _, err) = command("cox", path.to_str().unwrap(), &["--covariates", "x"]);
        assert!(!good && err.contains(name) && err.contains("compress"), "{err}");
        assert!(!err.contains("damaged") && err.contains("t.parquet"), "{err}");
        assert!(err.contains("write it with Snappy or Zstandard, or as CSV"), "{err}");
    }
    for codec in [Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
        packed_table(&path, codec);
        let (good, _, err) = command("cox", path.to_str().unwrap(), &["--covariates", "x"]);
        assert!(good, "{codec}: {err}");
    }
    let path = folder.path().join("t.csv");
    let rows = ROWS.map(|(t, e, g, x)| format!("{t},{e},{g},{x}\n"));
    std::fs::write(&path, format!("t,e,g,x\n{}", rows.concat())).unwrap();
    let (good, _, err) = command("cox", path.to_str().unwrap(), &["--covariates", "x"]);
    assert!(good, "{err}");
}

#[test]
fn codes_of_events_follow_the_whole_column() {
    let folder = tempfile::tempdir().unwrap();
    // The complete rows hold 1 alone, which means censored here, as in R.
    let table = write(folder.path(), "t.csv", "t,e,x\n1,1,1\n2,1,2\n3,2,NA\n4,1,3\n");
    let (good, _, err) = command("cox", &table, &["--covariates", "x"]);
    assert!(!good && err.contains("no events"), "{err}");
    let table = write(folder.path(), "three.csv", "t,e,x\n1,0,1\n2,1,2\n3,2,4\n4,1,3\n");
    let (good, _, err) = command("cox", &table, &["--covariates", "x"]);
    assert!(!good && err.contains("'2'") && err.contains("--event-value"), "{err}");
    let got = ok(command("cox", &table, &["--covariates", "x", "--event-value", "2"]));
    assert_eq!(got["events"], 1);
}

#[test]
fn what_cannot_be_analysed_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, text: &str, verb: &str, more: &[&str]| {
        command(verb, &write(folder.path(), name, text), more)
    };
    let fails = |result: (bool, String, String), word: &str| {
        assert!(!result.0 && result.2.contains(word), "{word}: {}", result.2);
    };
    let x = ["--covariates", "x"];
    // Where semicolons separate, a comma is the decimal one.
    assert!(run("comma.csv", "t;e;x\n1,5;1;1,5\n2;1;2,5\n3;1;2\n", "cox", &x).0);
    fails(run("inf.csv", "t,e,x\n1,1,inf\n2,1,2\n", "cox", &x), "not a finite number");
    fails(run("gaps.csv", "t,e,x\n1,1,NA\nNA,1,2\n", "cox", &x), "no row is complete");
    fails(run("one.csv", "t,e,x\n1,1,a\n2,1,a\n", "logrank", &x), "only one group");
    fails(run("none.csv", "t,e,x\n1,0,a\n2,0,b\n", "logrank", &x), "no events");
    fails(run("pairs.csv", "t,e,x\n1,0,5\n2,1,6\n", "cindex", &x), "no comparable pairs");
    fails(
        run("weight.csv", "t,e,x\n1,1,0\n2,1,6\n", "cox", &["--covariates", "x", "--weights", "x"]),
        "not > 0",
    );
    let text = "a,t,e,x\n0,1,1,1\n1,2,1,2\n";
    let table = write(folder.path(), "entry.csv", text);
    fails(
        mithras(&[
            "survival",
            "cox",
            "--table",
            &table,
            "--time",
            "a,t",
            "--event",
            "e",
            "--covariates",
            "x",
        ]),
        "left truncation",
    );
    // Analysed, and reported.
    let got = ok(run("censored.csv", "t,e\n1,0\n2,0\n", "km", &[]));
    assert!(got["groups"][0]["median"].is_null());
    assert_eq!(got["groups"][0]["points"][1]["survival"], 1.0);
    assert!(!got.to_string().contains("-0.0"), "{got}");
    let got = ok(run("zero.csv", "t,e,x\n0,1,1\n2,1,2\n3,1,1.5\n", "cox", &x));
    assert!(got["notes"].to_string().contains("time 0 in 1 row,"), "{got}");
    assert!(got["warnings"].to_string().contains("few events"), "{got}");
}

#[test]
fn thca_with_and_without_the_row_at_time_zero() {
    let Some(table) = testkit::data("survival/TCGA-CDR_THCA.csv") else { return };
    // R 4.2.2, survival 3.5.3: coxph on 507 rows and, as the reference has it, on the 506 with
    // OS.time > 0.
    let want = [
        ("beta", [0.113_385_002_947_5, 0.038_179_987_784_4]),
        ("se", [0.020_040_225_281_2, 0.542_412_696_460_1]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut reader = csv::Reader::from_path(&table).unwrap();
    let header = reader.headers().unwrap().clone();
    let time = header.iter().position(|h| h == "OS.time").unwrap();
    let positive = folder.path().join("positive.csv");
    let mut writer = csv::Writer::from_path(&positive).unwrap();
    writer.write_record(&header).unwrap();
    for record in reader.records().map(Result::unwrap).filter(|r| r[time] != *"0") {
        writer.write_record(&record).unwrap();
    }
    writer.flush().unwrap();
    for (path, n) in [(table.as_path(), 507), (positive.as_path(), 506)] {
        let base = ["survival", "cox", "--table", path.to_str().unwrap(), "--json", "--time"];
        let more = ["OS.time", "--event", "OS", "--covariates"];
        let covariates = ["age_at_initial_pathologic_diagnosis,gender"];
        let got = ok(mithras(&[&base[..], &more, &covariates].concat()));
        assert_eq!((&got["n"], &got["events"]), (&n.into(), &16.into()));
        for (key, values) in want {
            for (j, value) in values.into_iter().enumerate() {
                let v = got["coefficients"][j][key].as_f64().unwrap();
                assert!((v / value - 1.0).abs() < 1e-6, "{key} {j}: {v} against {value}");
            }
        }
        let loglik = got["loglik"].as_f64().unwrap();
        assert!((loglik - -59.776_967_433_5).abs() < 1e-8, "{loglik}");
        let counts: Vec<f64> = ["concordant", "discordant", "tied_risk"]
            .map(|k| got["concordance"][k].as_f64().unwrap())
            .to_vec();
        assert_eq!(counts, [3488.0, 263.0, 11.0]);
        assert_eq!(got["notes"].to_string().contains("time 0 in 1 row,"), n == 507);
    }
}

/// Six patients, the first with two slides.
fn cohort(folder: &Path) -> (String, String) {
    let counts = "slide,hotspot_count,density_per_20_mm2,analysed_mm2\nA-1,4,10,30\nA-2,9,1,30\n\
                  B-1,2,5,30\nC-1,7,4,1.5\nD-1,1,2,30\nE-1,12,30,30\nF-1,3,6,30\n";
    let clinical = "id,months,died,age,sex,part\nA,10,1,60,F,train\nB,40,1,50,M,train\n\
                    C,20,1,71,F,test\nD,60,0,44,M,train\nE,5,1,66,F,test\nF,35,0,58,M,test\n";
    (write(folder, "counts.csv", counts), write(folder, "clinical.csv", clinical))
}

fn study(counts: &str, clinical: &str, out: &Path, more: &[&str]) -> (bool, String, String) {
    let base = ["survival", "study", "--counts", counts, "--clinical", clinical, "--event", "died"];
    let rest = ["--time", "months", "--replicates", "50", "--out", out.to_str().unwrap()];
    mithras(&[&base[..], &rest, more].concat())
}

/// A slide of which nothing was looked at, or whose counts mean nothing, has no grade; a slide in two rows is named.
#[test]
fn rows_without_a_valid_count_have_no_grade() {
    let folder = tempfile::tempdir().unwrap();
    let counts = write(
        folder.path(),
        "counts.csv",
        "slide,hotspot_count,hotspot_mm2,analysed_mm2,notes\na,25,2,30,\nb,0,,0,no tissue\n\
         c,25,2,30,2 um/px is outside the model's range: the counts mean nothing\nd,15,0.5,30,\
         \"0.45 um/px is coarser than 0.36 um/px, beyond which the model misses figures\"\na,3,2,30,\n",
    );
    let base = ["survival", "grade", "--counts", &counts, "--scheme", "who-net", "--json"];
    let (good, out, err) = mithras(&base);
    assert!(good, "{err}");
    let graded: Value = serde_json::from_str(&out).unwrap();
    let of = |s: &Value| format!("{} {}", s["slide"], s["grade"]).replace('"', "");
    let all: Vec<String> = graded["slides"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(all, ["a G3", "d G2", "a G2"], "{graded}");
    let notes = graded["notes"].to_string();
    for words in [
        "1 of 5 slides have no count, or no tissue",
        "1 of 5 slides have no grade: their notes state",
        "1 slides have more than one row, the first 'a'",
        "1 of 5 slides have a hotspot that hangs over the edge",
        "1 of 5 slides have notes that figures are missed: their grades are lower bounds",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    // In a study they are named.
    let rows = (0..8).map(|k| format!("P{k},{k},{k},2,30,\n")).collect::<String>();
    let head = "slide,hotspot_count,density,hotspot_mm2,analysed_mm2,notes\n";
    let last = "P8,3,1,0.7,30,the counts mean nothing\n";
    let counts = write(folder.path(), "many.csv", &format!("{head}{rows}{last}"));
    let rows = (0..9).map(|k| format!("P{k},{},{}\n", 10 + 3 * k % 7, k % 2)).collect::<String>();
    let clinical = write(folder.path(), "c.csv", &format!("id,months,died\n{rows}"));
    let more = ["--join", "slide=id"];
    let (good, _, err) = study(&counts, &clinical, &folder.path().join("report"), &more);
    assert!(good, "{err}");
    for words in [
        "used although their notes state that the counts mean nothing: 1 slide",
        "hang over the edge of the slide (hotspot_mm2) on 1 slide",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
}

/// A table that was pasted together twice, and one without names, whose equal rows may be of different patients.
#[test]
fn rows_that_are_copies_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |named: bool| {
        let row = |k: usize| {
            let id = if named { format!("S{k},") } else { String::new() };
            format!("{id}{},{}\n", 5 + k / 2, k % 2)
        };
        (0..8).map(row).collect::<String>()
    };
    let km = |name: &str, text: &str| {
        let table = write(folder.path(), name, text);
        let (good, out, err) =
            mithras(&["survival", "km", "--table", &table, "--time", "t", "--event", "e"]);
        assert!(good, "{err}");
        out + &err
    };
    let named = km("twice.csv", &format!("slide,t,e\n{}{}", rows(true), rows(true)));
    let words =
        "8 rows repeated in every cell, each counted again; the first is row 9, a copy of row 1";
    assert!(named.contains(words), "{named}");
    for (name, text) in [
        ("once.csv", format!("slide,t,e\n{}", rows(true))),
        ("unnamed.csv", format!("t,e\n{}{}", rows(false), rows(false))),
    ] {
        let printed = km(name, &text);
        assert!(!printed.contains("repeated in every cell"), "{name}: {printed}");
    }
}

#[test]
fn joins_patients_and_training_medians() {
    let folder = tempfile::tempdir().unwrap();
    let (counts, clinical) = cohort(folder.path());
    let out = folder.path().join("report");
    let more = ["--join", "slide=id", "--train", "part=train", "--covariates", "age"];
    let (good, _, err) = study(&counts, &clinical, &out, &more);
    assert!(good, "{err}");
    assert!(err.contains("matched to a clinical row by prefix: 7 slides"), "{err}");
    assert!(err.contains("less than 2 mm2 of analysed tissue on 1 slide:"), "{err}");
    let results: Value =
        serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
    // Patients, not slides, are cut in two: A, whose two slides have 9 and 4, B and D with counts 9, 1, 2 and
    // densities 10, 2, 5.
    assert_eq!(results["features"][0]["unit"], "patients (max)");
    assert_eq!(results["features"][0]["logrank"]["cut"], 2.0);
    assert_eq!(results["features"][1]["logrank"]["cut"], 5.0);
    let named = |t: &Value| t["test"].as_str().unwrap().contains("patients (max)");
    assert!(results["p_values"].as_array().unwrap().iter().all(named), "{}", results["p_values"]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Proportional hazards") && page.contains("all patients (max)"), "{page}");
    let table = std::fs::read_to_string(out.join("counts_patients.csv")).unwrap();
    let mut lines = table.lines();
    let header = lines.next().unwrap();
    assert_eq!(
        header,
        "patient,slides,hotspot_max,hotspot_mean,hotspot_sum,density_max,density_mean,density_sum"
    );
    // The density under `sum` is that of both slides together, which have the same area.
    assert_eq!(lines.next().unwrap(), "A,2,9,6.5,13,10,5.5,5.5");
    assert_eq!(lines.count(), 5);
    // Another unit of time is another question: refused, until its remedy is taken.
    let other = [&more[..], &["--time-scale", "30.44"]].concat();
    let (good, _, err) = study(&counts, &clinical, &out, &other);
    assert!(!good && err.contains("time_scale was 1.0 and is 30.44"), "{err}");
    assert!(err.contains("report") && err.contains("--overwrite"), "{err}");
    assert_eq!(std::fs::read_to_string(out.join("report.html")).unwrap(), page);
    assert!(study(&counts, &clinical, &out, &more).0, "the same question may be asked again");
    assert!(study(&counts, &clinical, &out, &[&other[..], &["--overwrite"]].concat()).0);
    // Holm's p-values of the table of tests.
    let tests = results["p_values"].as_array().unwrap();
    let mut p: Vec<(f64, f64)> =
        tests.iter().map(|t| (t["p"].as_f64().unwrap(), t["p_holm"].as_f64().unwrap())).collect();
    p.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut least = 0.0_f64;
    for (k, (raw, holm)) in p.iter().enumerate() {
        least = least.max(raw * (p.len() - k) as f64).min(1.0);
        assert!((least - holm).abs() < 1e-12, "{k}: {holm} against {least}");
    }
    // The study's likelihood-ratio test is that of `survival lrt` on the patients.
    let joined = out.join("cohort_patients.csv");
    let base = ["survival", "lrt", "--table", joined.to_str().unwrap(), "--time", "months"];
    let more = ["--event", "died", "--covariates", "age", "--add", "hotspot", "--json"];
    let alone = ok(mithras(&[&base[..], &more].concat()));
    let within = &results["features"][0]["adjusted"]["lrt"]["chi2"];
    assert!((alone["chi2"].as_f64().unwrap() - within.as_f64().unwrap()).abs() < 1e-9);
}

/// Eight patients with one row each, and the same with a second slide of each but the last, of half the count.
fn slides_and_patients(folder: &Path) -> (String, String) {
    let head = "patient,months,died,age,hotspot,group\n";
    let times = [
        (5, 1, 14),
        (9, 1, 3),
        (12, 0, 6),
        (20, 1, 11),
        (24, 0, 2),
        (30, 1, 5),
        (33, 0, 1),
        (40, 0, 4),
    ];
    let (mut one, mut two) = (head.to_owned(), head.to_owned());
    for (k, (time, died, count)) in times.into_iter().enumerate() {
        let row = |count: f64, text: &mut String| {
            text.push_str(&format!(
                "p{k},{time},{died},{},{count},{}\n",
                50 + 3 * (k * k % 7),
                k % 2
            ));
        };
        row(f64::from(count), &mut one);
        row(f64::from(count), &mut two);
        if k < 7 {
            row(f64::from(count) / 2.0, &mut two);
        }
    }
    (write(folder, "patients.csv", &one), write(folder, "slides.csv", &two))
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table whose reading every command shares")]
fn rows_of_one_patient_become_one_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (patients, slides) = slides_and_patients(folder.path());
    let run = |verb: &str, table: &str, more: &[&str]| {
        let base = ["survival", verb, "--table", table, "--time", "months", "--event", "died"];
        mithras(&[&base[..], more].concat())
    };
    let verbs: [(&str, &[&str]); 5] = [
        ("cox", &["--covariates", "hotspot,age", "--json"]),
        ("km", &["--covariates", "group", "--json"]),
        ("logrank", &["--covariates", "hotspot", "--cut", "4", "--json"]),
        ("cindex", &["--covariates", "hotspot", "--bootstrap", "20", "--json"]),
        ("lrt", &["--covariates", "age", "--add", "hotspot", "--json"]),
    ];
    let strip = |mut v: Value| {
        for key in ["unit", "rows_in_table", "notes"] {
            v.as_object_mut().unwrap().remove(key);
        }
        v
    };
    for (verb, more) in verbs {
        let (good, out, err) = run(verb, &slides, more);
        assert!(!good && out.is_empty(), "{verb}: {out}");
        for words in
            ["'patient' names 8 patients in 15 rows", "not be valid", "--patient", "--cluster"]
        {
            assert!(err.contains(words), "{verb}, {words}: {err}");
        }
        let one = strip(ok(run(verb, &patients, more)));
        let each = ok(run(verb, &slides, &[more, &["--patient", "patient"]].concat()));
        assert_eq!(each["unit"], "patients (max)", "{verb}");
        assert_eq!((&each["n"], &each["rows_in_table"]), (&8.into(), &15.into()), "{verb}");
        assert!(each["notes"].to_string().contains("15 rows of 8 patients"), "{verb}: {each}");
        assert_eq!(strip(each), one, "{verb}");
        // Named as clusters, the rows stay: what is not of patients is marked, and the log-rank test has no such form.
        let (good, out, err) = run(verb, &slides, &[more, &["--cluster", "patient"]].concat());
        if verb == "logrank" {
            assert!(
                !good && err.contains("one row per patient") && err.contains("--patient"),
                "{err}"
            );
            continue;
        }
        let got: Value = serde_json::from_str(&out).unwrap();
        let not_valid = got["not_valid"].as_array().unwrap();
        let marked =
            [("cox", "lrt"), ("km", "curves"), ("cindex", "bootstrap.rows"), ("lrt", "lrt")];
        let (_, part) = marked.into_iter().find(|(v, _)| *v == verb).unwrap();
        assert!(not_valid.iter().any(|v| v == part), "{verb}: {got}");
        assert!(
            err.contains("not valid") && err.contains("15 rows of 8 clusters"),
            "{verb}: {err}"
        );
        let (_, words, _) =
            run(verb, &slides, &[&more[..more.len() - 1], &["--cluster", "patient"]].concat());
        assert!(words.contains("not valid"), "{verb}: {words}");
    }
    // Means are means; what cannot be combined is named with its row.
    let mean = [
        "--covariates",
        "hotspot",
        "--cut",
        "4",
        "--patient",
        "patient",
        "--patient-rule",
        "mean",
        "--json",
    ];
    let got = ok(run("logrank", &slides, &mean));
    assert_eq!(got["groups"][1]["n"], 3, "14, 11 and 6 become 10.5, 8.25 and 4.5: {got}");
    assert!(
        got["notes"]
            .to_string()
            .contains("'hotspot' differs between the rows of 7 patients: the mean counts")
    );
    let text = std::fs::read_to_string(&slides).unwrap();
    let other =
        |from: &str, to: &str| write(folder.path(), "other.csv", &text.replacen(from, to, 1));
    let km = ["--covariates", "group", "--patient", "patient"];
    for (from, to, words) in [
        (
            "p0,5,1,50,7,0",
            "p0,6,1,50,7,0",
            "column 'months', row 2 (line 3): '6', but '5' of the same patient 'p0' in row 1",
        ),
        ("p0,5,1,50,7,0", "p0,5,0,50,7,0", "column 'died', row 2"),
        ("p0,5,1,50,7,0", "p0,5,1,50,7,high", "only numbers are combined"),
    ] {
        let (good, _, err) = run("km", &other(from, to), &km);
        assert!(!good && err.contains(words), "{words}: {err}");
    }
    // A column that states who is a case names no patients.
    let rows = "case,months,died,group\nyes,5,1,0\nno,9,1,1\nyes,12,0,0\nno,20,1,1\n";
    let case = write(folder.path(), "case.csv", rows);
    ok(run("km", &case, &["--covariates", "group", "--json"]));
    let named = write(folder.path(), "named.csv", &rows.replace("yes", "c1").replace("no", "c2"));
    assert!(!run("km", &named, &["--covariates", "group"]).0);
}

/// The list of a run names the patients of its slides, so that `counts.csv` joins by them.
#[test]
fn slides_of_one_patient_join_by_the_patient() {
    let folder = tempfile::tempdir().unwrap();
    let (counts, clinical) = cohort(folder.path());
    let text = std::fs::read_to_string(&counts).unwrap();
    let named = |line: &str| match line.split_once('-') {
        Some((patient, _)) => format!("{line},{patient}\n"),
        None => format!("{line},who\n"),
    };
    let named: String = text.lines().map(named).collect();
    let named = write(folder.path(), "named.csv", &named);
    let results = |name: &str, counts: &str, join: &str| -> Value {
        let out = folder.path().join(name);
        let (good, _, err) = study(counts, &clinical, &out, &["--join", join]);
        assert!(good, "{err}");
        serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap()
    };
    let (by_slide, by_patient) =
        (results("a", &counts, "slide=id"), results("b", &named, "who=id"));
    assert_eq!((&by_patient["slides"], &by_patient["patients"]), (&7.into(), &6.into()));
    for field in ["features", "patient_level", "p_values"] {
        assert_eq!(by_patient[field], by_slide[field], "{field}");
    }
}

/// The cases of a run as they are, without a join by hand; a row that adjusted models drop is a note.
#[test]
fn a_study_of_cases_needs_no_table_made_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let (_, clinical) = cohort(folder.path());
    let text = std::fs::read_to_string(&clinical).unwrap().replace("F,35,0,58,", "F,35,0,NA,");
    let clinical = write(folder.path(), "clinical.csv", &text);
    let head = "case,slides,not_counted,figures,hotspot_count,hotspot_slide,hotspot_rule,density_per_20_mm2,analysed_mm2\n";
    let case = |(k, name): (usize, char)| {
        format!(
            "{name},2,0,{},{},s,highest of the slides,{},30\n",
            6 * k + 12,
            [9, 2, 7, 1, 12, 3][k],
            4 * k + 8
        )
    };
    let rows: String = "ABCDEF".chars().enumerate().map(case).collect();
    let cases = write(folder.path(), "cases.csv", &format!("{head}{rows}"));
    let out = folder.path().join("report");
    let (good, _, err) =
        study(&cases, &clinical, &out, &["--join", "case=id", "--covariates", "age"]);
    assert!(good, "{err}");
    assert!(err.contains("adjusted models: 5 of 6 rows; the others lack a covariate"), "{err}");
    let results: Value =
        serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
    assert_eq!((&results["slides"], &results["patients"]), (&6.into(), &6.into()));
    assert_eq!(results["features"][0]["adjusted"]["full"]["n"], 5);
    assert!(results["features"][0]["cox"]["not_valid"].is_null());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("adjusted models: 5 of 6 rows"), "the reader of the page knows it, too");
}

#[test]
fn bad_joins_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (counts, clinical) = cohort(folder.path());
    let out = folder.path().join("report");
    let fails = |counts: &str, clinical: &str, more: &[&str], words: &[&str]| {
        let (good, _, err) = study(counts, clinical, &out, more);
        assert!(!good, "{words:?}");
        for word in words {
            assert!(err.contains(word), "{word}: {err}");
        }
    };
    let join = ["--join", "slide=id"];
    fails(&counts, &clinical, &["--join", "slide=ID"], &["no column 'ID'", "did you mean 'id'"]);
    fails(&counts, &clinical, &["--join", "file=id"], &["no column 'file'", "slide"]);
    fails(&counts, &clinical, &["--join", "slide=sex"], &["occurs twice"]);
    fails(
        &counts,
        &clinical,
        &["--join", "slide=months"],
        &["no slide (slide)", "matches a row of"],
    );
    fails(&counts, &clinical, &["--join", "=id"], &["--join", "of the form A=B"]);
    let twice =
        write(folder.path(), "twice.csv", "slide,hotspot_count,density\nA-1,1,2\nA-1,2,3\n");
    fails(&twice, &clinical, &join, &["'A-1' is already in row 1"]);
    let odd = write(folder.path(), "odd.csv", "slide,figures,hotspot_count,density\nA-1,3,4,2\n");
    fails(&odd, &clinical, &join, &["4 figures in the hotspot, but 3 on the slide"]);
    let negative = write(folder.path(), "neg.csv", "slide,hotspot_count,density\nA-1,-1,2\n");
    fails(&negative, &clinical, &join, &["-1 is negative"]);
    let bare = write(folder.path(), "bare.csv", "slide,count\nA-1,1\n");
    fails(&bare, &clinical, &join, &["hotspot_count"]);
    let part = [&join[..], &["--train", "part=training"]].concat();
    fails(&counts, &clinical, &part, &["no slide with an outcome has 'training'"]);
    let cut = [&join[..], &["--cut", "hot=5"]].concat();
    fails(&counts, &clinical, &cut, &["the features are hotspot and density"]);
    let time = [&join[..], &["--time-scale", "0"]].concat();
    fails(&counts, &clinical, &time, &["not a positive number"]);
    assert!(!out.join("report.html").exists(), "no half report");
}

/// A table with a fault, a word of the error, and what that error advises: the table and further words of
/// the command line.
struct Remedy {
    table: Vec<u8>,
    advice: &'static str,
    mended: Vec<u8>,
    flags: &'static [&'static str],
}

#[test]
fn the_remedy_that_an_error_about_a_table_names_helps() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |x: &dyn Fn(usize) -> String| -> String {
        (1..=12).map(|i| format!("{i},{},{}\n", i % 3 / 2, x(i))).collect()
    };
    let number = |i: usize| (i * 7 % 5).to_string();
    let bytes = |text: &str| text.as_bytes().to_vec();
    let utf8 = bytes(&format!("t,e,x,n\n{}", rows(&number).replace('\n', ",caf\u{e9}\n")));
    let latin = utf8
        .iter()
        .copied()
        .filter(|b| *b != 0xc3)
        .map(|b| if b == 0xa9 { 0xe9 } else { b })
        .collect();
    let with = |i: usize, cell: &str| {
        let of = |row: usize| if row == i { cell.to_owned() } else { number(row) };
        bytes(&format!("t,e,x\n{}", rows(&of)))
    };
    let named: String = format!("t,e,x\n{}", rows(&|i| format!("\"name {i}\"")));
    let cases = [
        Remedy {
            table: with(3, "\"4"),
            advice: "close it or remove it",
            mended: with(3, "4"),
            flags: &[],
        },
        Remedy { table: latin, advice: "save the table as UTF-8", mended: utf8, flags: &[] },
        Remedy {
            table: with(2, "4,5"),
            advice: "quotation marks",
            mended: with(2, "4.5"),
            flags: &[],
        },
        Remedy {
            table: with(2, "\"4,5\""),
            advice: "with a point",
            mended: with(2, "4.5"),
            flags: &[],
        },
        Remedy {
            table: with(2, "lost"),
            advice: "--missing",
            mended: with(2, "lost"),
            flags: &["--missing", "lost"],
        },
        Remedy {
            table: bytes(&named),
            advice: "--categorical",
            mended: bytes(&named),
            flags: &["--categorical", "x"],
        },
    ];
    for Remedy { table, advice, mended, flags } in cases {
        let path = folder.path().join("t.csv");
        let run = |table: &[u8], flags: &[&str]| {
            std::fs::write(&path, table).unwrap();
            let cox = ["survival", "cox", "--table", path.to_str().unwrap(), "--time", "t"];
            let cox = [&cox[..], &["--event", "e", "--covariates", "x"], flags].concat();
            mithras(&cox)
        };
        let (good, _, err) = run(&table, &[]);
        assert!(!good && err.contains(advice), "{advice}: {err}");
        let (good, _, err) = run(&mended, flags);
        assert!(good, "{advice} was followed: {err}");
    }
}

/// Two slides of each of ten patients; `name` gives the patient's name in the row of a slide.
fn patients_spelt(column: &str, name: impl Fn(usize, usize) -> String) -> String {
    let row = |k: usize| {
        let (p, s) = (k / 2, k % 2);
        format!("{},{},{},{}\n", name(p, s), 5 + 7 * p % 31, p % 3 / 2, 2 * p + s)
    };
    format!("{column},t,e,x\n{}", (0..20).map(row).collect::<String>())
}

#[test]
fn patients_spelt_in_two_ways_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let spelt = |p: usize, s: usize| [format!("P{p}"), format!("p0{p}")][s].clone();
    let table = write(folder.path(), "spelt.csv", &patients_spelt("patient", spelt));
    let words =
        "values of 'patient' that are one but for their spelling count apart: 'P0' (1), 'p00' (1)";
    for more in [&["--patient", "patient"][..], &["--cluster", "patient"], &[]] {
        let got = ok(command("cox", &table, &[&["--covariates", "x"], more].concat()));
        let notes = got["notes"].as_array().unwrap();
        assert_eq!(notes.iter().filter(|n| *n == words).count(), 1, "{more:?}: {got}");
        assert_eq!(got["n"], 20, "{more:?}: as groups do, they count apart");
    }
    let names = [
        "patient_number",
        "PatientNo",
        "patient_barcode",
        "case_barcode",
        "bcr_patient_uuid",
        "Pat-ID",
    ];
    for column in names {
        let text = patients_spelt(column, |p, _| format!("P{p}"));
        let table = write(folder.path(), "named.csv", &text);
        let (good, _, err) = command("cox", &table, &["--covariates", "x"]);
        assert!(
            !good && err.contains(&format!("'{column}' names 10 patients in 20 rows")),
            "{err}"
        );
    }
    for column in ["patient_age", "case_mix", "slide", "pattern"] {
        let table =
            write(folder.path(), "plain.csv", &patients_spelt(column, |p, _| p.to_string()));
        ok(command("cox", &table, &["--covariates", "x"]));
    }
}

#[test]
fn a_code_for_missing_means_its_number_in_the_table_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40)
        .map(|i| {
            format!("{},{},{}.0\n", 1 + i * 7 % 31, i % 2, if i % 10 == 0 { 999 } else { 40 + i })
        })
        .collect();
    let table = write(folder.path(), "codes.csv", &format!("t,e,age\n{rows}"));
    let cox =
        |more: &[&str]| ok(command("cox", &table, &[&["--covariates", "age"], more].concat()));
    assert!(cox(&[])["notes"].to_string().contains("codes for missing count as values: 999 (4)"));
    for code in ["999", "999.0"] {
        let got = cox(&["--missing", code]);
        assert_eq!((&got["n"], &got["missing"]["age"]), (&36.into(), &4.into()), "{code}");
    }
    let negative =
        write(folder.path(), "negative.csv", &format!("t,e,age\n{rows}").replace("999", "-99"));
    let got = ok(command("cox", &negative, &["--covariates", "age", "--missing", "-99"]));
    assert_eq!(got["n"], 36);
    // The mean of 10 and 20 is not the code 15.
    let table = write(
        folder.path(),
        "mean.csv",
        "id,t,e,x\na,1,1,10\na,1,1,20\nb,2,1,12\nc,3,0,9\nd,4,1,3\n",
    );
    let mean =
        ["--covariates", "x", "--patient", "id", "--patient-rule", "mean", "--missing", "15"];
    assert_eq!(ok(command("cox", &table, &mean))["n"], 4);
}

#[test]
fn names_with_a_comma_are_quoted_in_every_option() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\"id, new\",\"t, days\",\"e, dead\",\"w, case\",x\n1,1,1,1,2\n2,2,1,2,3\n3,3,0,1,1\n4,4,1,1,2\n5,5,1,2,1\n";
    let table = write(folder.path(), "comma.csv", text);
    let cox = ["survival", "cox", "--table", &table, "--covariates", "x", "--json"];
    let columns = ["--time", "\"t, days\"", "--event", "\"e, dead\"", "--weights", "\"w, case\""];
    for more in [&[][..], &["--cluster", "\"id, new\""]] {
        assert_eq!(ok(mithras(&[&cox[..], &columns, more].concat()))["n"], 5, "{more:?}");
    }
    let (good, _, err) = mithras(&[&cox[..], &["--time", "\"t, days", "--event", "x"]].concat());
    assert!(!good && err.contains("a quotation mark is not closed"), "{err}");
}

/// A study whose clinical table has one row per slide, and a method that lacks slides.
#[test]
fn a_study_refuses_contradictions_and_compares_the_slides_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let row = |k: usize| format!("S{k},P{},{},{}\n", k / 2, 5 + 7 * (k / 2) % 31, k / 2 % 2);
    let rows: String = (0..24).map(row).collect();
    let clinical = write(folder.path(), "slides.csv", &format!("id,who,months,died\n{rows}"));
    let counts = |name: &str, n: usize| {
        let rows: String =
            (0..n).map(|k| format!("S{k},{},{}\n", k * 5 % 17, k * 3 % 11)).collect();
        write(folder.path(), name, &format!("slide,hotspot_count,density\n{rows}"))
    };
    let (all, half) = (counts("all.csv", 24), format!("half={}", counts("half.csv", 14)));
    let out = folder.path().join("report");
    let more = ["--join", "slide=id", "--patient", "who", "--method", &half];
    let (good, _, err) = study(&all, &clinical, &out, &more);
    assert!(good, "{err}");
    let words = "methods are compared on the 14 slides that all of them have; of 24 in any of them, half lacks 10 (";
    assert!(err.contains(words), "{err}");
    let results: Value =
        serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
    let sizes = |c: &Value| ["n", "slides"].map(|k| c[k].as_u64().unwrap());
    let compared: Vec<[u64; 2]> =
        results["comparison"].as_array().unwrap().iter().map(sizes).collect();
    assert_eq!(compared, [[14, 24], [14, 14], [14, 24], [14, 14]]);
    let picture = std::fs::read_to_string(out.join("c_index.svg")).unwrap();
    assert!(picture.contains(">n<") && picture.contains(">14<"), "{picture}");
    let text = std::fs::read_to_string(&clinical).unwrap().replace("S1,P0,5,0", "S1,P0,49,0");
    let other = write(folder.path(), "other.csv", &text);
    let (good, _, err) = study(&all, &other, &out, &more);
    let words = "other.csv, column 'months', row 2 (line 3): '49', but '5' of the same patient 'P0' in row 1";
    assert!(!good && err.contains(words), "{err}");
}
