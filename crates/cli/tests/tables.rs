//! Tables as programs and people write them: read whole, or refused with the line.

use crate::common;
use std::fs;
use std::path::Path;
use std::process::Command;

fn km(dir: &Path, text: &[u8], more: &[&str]) -> (Option<i32>, String) {
    let path = dir.join("t.csv");
    fs::write(&path, text).unwrap();
    let out = Command::new(crate::program())
        .args(["survival", "km", "--table", path.to_str().unwrap()])
        .args(more)
        .output()
        .unwrap();
    let printed = [&out.stdout[..], &out.stderr].concat();
    (out.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

const COLUMNS: [&str; 4] = ["--time", "months", "--event", "died"];

#[test]
fn no_quotation_mark_takes_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |by: char| {
        let row = |k: usize| {
            let note = if k == 3 { "\"see letter" } else { "ok" };
            format!("P{k}{by}{k}{by}{}{by}{note}\n", k % 2)
        };
        format!("id{by}months{by}died{by}note\n") + &(1..=60).map(row).collect::<String>()
    };
    let (code, printed) = km(dir.path(), rows('\t').as_bytes(), &COLUMNS);
    assert!(code == Some(0) && printed.contains("60 rows"), "{printed}");
    let (code, printed) = km(dir.path(), rows(',').as_bytes(), &COLUMNS);
    assert!(
        code == Some(1) && printed.contains("line 4") && printed.contains("never closed"),
        "{printed}"
    );
}

#[test]
fn tables_of_other_programs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "id,months,died\nP1,9.4,0\nP2,3.7,1\nP3,5,1\n";
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(plain.replace(',', "\t").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let sep = format!("sep=,\r\n{}", plain.replace('\n', "\r\n"));
    let german = plain.replace(',', ";").replace('.', ",");
    for text in [&utf16[..], sep.as_bytes(), german.as_bytes()] {
        let (code, printed) = km(dir.path(), text, &COLUMNS);
        assert!(code == Some(0) && printed.contains("3 rows, 2 events"), "{printed}");
    }
    let bio = "#Patient\tMonths\tStatus\n#1\t1\t1\nPATIENT_ID\tOS_MONTHS\tOS_STATUS\nP1\t9.4\t0:LIVING\n\
               P2\t3.7\t1:DECEASED\nP3\t[Not Available]\t1:DECEASED\n";
    let (code, printed) =
        km(dir.path(), bio.as_bytes(), &["--time", "OS_MONTHS", "--event", "OS_STATUS"]);
    assert!(code == Some(0) && printed.contains("2 rows, 1 event"), "{printed}");
    assert!(printed.contains("'[Not Available]' (1)"), "{printed}");
}

/// Lists of slides, of those to take, and of true figures, as a spreadsheet saves "Unicode text".
#[test]
fn lists_and_truths_of_other_programs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for (k, name) in ["a.tiff", "b.tiff"].iter().enumerate() {
        common::draw(&dir.path().join(name), 640, 640, k as u64 + 1, 2);
    }
    let save = |name: &str, lines: &[&str]| {
        let text =
            std::iter::once(0xfeff).chain(lines.join("\r\n").encode_utf16().collect::<Vec<_>>());
        fs::write(dir.path().join(name), text.flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
            .unwrap();
    };
    save("list.txt", &["slide\tmpp\tpatient", "\"a.tiff\"\t0.25\t07", "b.tiff\t0.25\t08", ""]);
    save("only.txt", &["label\tslide", "mf\tb", ""]);
    save("truth.txt", &["slide\tx_px\ty_px\tlabel", "b\t1\t1\tmitotic figure", ""]);
    let run = |line: &str| {
        let out = Command::new(crate::program())
            .current_dir(dir.path())
            .args(line.split(' '))
            .output()
            .unwrap();
        let printed = [&out.stdout[..], &out.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(out.status.success(), "{line}: {printed}");
        printed
    };
    run("detect --list list.txt --model fast --quiet --out listed");
    let counts = fs::read_to_string(dir.path().join("listed/counts.csv")).unwrap();
    assert!(
        counts.contains("patient") && counts.contains(",07") && counts.contains(",08"),
        "{counts}"
    );
    run("detect a.tiff b.tiff --only only.txt --model fast --quiet --out chosen");
    assert!(dir.path().join("chosen/b").is_dir() && !dir.path().join("chosen/a").exists());
    let printed = run("evaluate detections --predictions listed --truth truth.txt");
    assert!(printed.contains("1 figure on 1 slide"), "{printed}");
}

#[test]
fn events_that_differ_by_case_are_refused_and_names_may_hold_commas() {
    let dir = tempfile::tempdir().unwrap();
    let text = "months,died,\"Age, years\"\n1,Dead,60\n2,dead ,61\n3,Alive,62\n";
    let more = [&COLUMNS[..], &["--event-value", "Dead"]].concat();
    let (code, printed) = km(dir.path(), text.as_bytes(), &more);
    assert!(code == Some(1) && printed.contains("several ways"), "{printed}");
    let more = [&COLUMNS[..], &["--group", "\"Age, years\""]].concat();
    let (code, printed) = km(dir.path(), text.replace("dead ", "Dead").as_bytes(), &more);
    assert!(code == Some(0) && printed.contains("Age, years=60"), "{printed}");
}

#[test]
fn cells_do_not_reach_a_terminal_as_commands() {
    let dir = tempfile::tempdir().unwrap();
    let text = "months,died,\u{1b}[31mg\n1,1,a\n2,0,\u{1b}[31mb\n3,1,b\n";
    let more = [&COLUMNS[..], &["--group", "\u{1b}[31mg"]].concat();
    let (code, printed) = km(dir.path(), text.as_bytes(), &more);
    assert!(code == Some(0) && printed.contains("\\u{1b}[31mb"), "{printed}");
    assert!(!printed.contains('\u{1b}'), "{printed}");
}

/// A file's name, a title of an experiment, a model's name: whatever is printed goes one way.
#[test]
#[cfg(unix)]
fn names_do_not_reach_a_terminal_as_commands() {
    let dir = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[31m\u{9b}2J";
    image::RgbImage::from_pixel(64, 64, image::Rgb([200, 120, 180]))
        .save(dir.path().join(format!("{name}.png")))
        .unwrap();
    fs::write(dir.path().join("t.csv"), format!("image,x,y,label\n{name}.png,30,30,mf\n")).unwrap();
    let images = dir.path().to_str().unwrap();
    let import =
        format!("corpus import t.csv --format csv --mpp 0.25 --crop 16 --images {images} --name");
    for line in [
        format!("{import} x --out {name}"),
        format!("corpus inspect {name} --montage m{name}.png"),
        format!("corpus merge {name} --out {name}2"),
        format!("corpus overlap {name}/../{name} {name}2"),
        format!("corpus split {name} --folds 2 --out {name}.json"),
        format!("slide tile {name}.png --mpp 0.25 --at 0,0 --size 16,16 --out {name}-t.png"),
        format!("slide info {name}.png --json"),
    ] {
        let out = Command::new(crate::program())
            .current_dir(dir.path())
            .args(line.split(' '))
            .output()
            .unwrap();
        for text in [String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)] {
            assert!(!text.contains(['\u{1b}', '\u{9b}']), "{line:?}: {text:?}");
        }
        if line.ends_with("--json") {
            serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap();
        }
    }
    let table = fs::read_to_string(dir.path().join(name).join("annotations.csv")).unwrap();
    assert!(table.contains("a\\u{1b}[31m") && !table.contains('\u{1b}'), "{table:?}");
}

/// Nothing is made of a header alone: not an empty corpus, not a study, not a table of um/px that changes nothing.
#[test]
fn a_table_without_rows_is_refused_by_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    let header =
        "image,slide,file,x,y,label,mpp,time,event,count,cohort,patient,split,truth,class,score\n";
    fs::write(dir.path().join("h.csv"), header).unwrap();
    fs::write(dir.path().join("t.csv"), "slide,time,event,count\na,1,1,2\nb,2,0,3\n").unwrap();
    fs::write(dir.path().join("one.csv"), "image,x,y,label\na.png,30,30,mf\n").unwrap();
    fs::write(dir.path().join("none.csv"), "image,x,y,label\na.png,30,30,ignore\n").unwrap();
    image::RgbImage::from_pixel(64, 64, image::Rgb([200, 120, 180]))
        .save(dir.path().join("a.png"))
        .unwrap();
    let run = |line: &str| {
        let words = line.split(' ');
        Command::new(crate::program()).current_dir(dir.path()).args(words).output().unwrap()
    };
    for line in [
        "corpus import h.csv --format csv",
        "corpus import h.csv --format csv --images . --mpp 0.25 --out c",
        "corpus import h.csv --format csv --kind regions --images . --mpp 0.25 --out c",
        "corpus import h.csv --format ami-br --out c",
        "corpus import h.csv --format midog25-csv --out c",
        "corpus import one.csv --format csv --images . --mpp-table h.csv --out c",
        "corpus import one.csv --format csv --images . --mpp 0.25 --splits h.csv --out c",
        "corpus import one.csv --format csv --images . --mpp 0.25 --only-images h.csv --out c",
        "corpus build a.png --preset tcga-unlabeled --table h.csv --out c --cohort BRCA --mpp 0.25",
        "corpus build a.png --preset tcga-unlabeled --mpp-table h.csv --out c --cohort BRCA",
        "corpus build --list h.csv --preset tcga-unlabeled --out c --cohort BRCA",
        "detect --list h.csv --out c",
        "detect a.png --mpp-table h.csv --out c",
        "survival km --table h.csv --time time --event event",
        "survival cox --table h.csv --time time --event event --covariates count",
        "survival study --counts h.csv --clinical t.csv --join slide=slide --time time --event event --out c",
        "survival study --counts t.csv --clinical h.csv --join slide=slide --time time --event event --out c",
        "survival grade --counts h.csv --scheme nottingham --field-diameter 0.5",
        "evaluate detections --predictions . --truth h.csv",
        "evaluate classification --predictions h.csv",
    ] {
        let out = run(line);
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{line}: {printed}");
        assert!(printed.contains("h.csv: has a header but no rows; "), "{line}: {printed}");
        assert_eq!(printed.matches("h.csv").count(), 1, "{line}: {printed}");
        assert!(!dir.path().join("c/manifest.json").exists(), "{line}");
    }
    // A list has no header: of comments alone it is empty, and of one name it is not.
    fs::write(dir.path().join("c.csv"), "# nobody\r\n").unwrap();
    fs::write(dir.path().join("name.csv"), "a.png\n").unwrap();
    for line in [
        "corpus build a.png --preset tcga-unlabeled --exclude c.csv --out c --cohort BRCA --mpp 0.25",
        "corpus import one.csv --format csv --images . --mpp 0.25 --only-images c.csv --out c",
    ] {
        let out = run(line);
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{line}: {printed}");
        let words = ["c.csv: has no rows; ", "c.csv: the file is empty"];
        assert!(words.iter().any(|w| printed.contains(w)), "{line}: {printed}");
        assert!(!dir.path().join("c/manifest.json").exists(), "{line}");
    }
    let one = "corpus import one.csv --format csv --images . --mpp 0.25 --crop 16 --out name";
    assert!(run(&format!("{one} --only-images name.csv")).status.success());
    let none = run(
        "corpus import none.csv --format csv --images . --mpp 0.25 --out c --map ignore=ignore",
    );
    let printed = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.code() == Some(1) && printed.contains("gives no crop"), "{printed}");
    assert!(!dir.path().join("c/manifest.json").exists());
}

/// What a program cannot know for certain is noted.
#[test]
fn times_and_events_that_may_be_meant_otherwise_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t.csv");
    let km_by = |second: &str, event: &str, rows: &dyn Fn(usize) -> String| {
        let rows: String = (0..20).map(|i| format!("{},{}\n", rows(i), i % 2)).collect();
        fs::write(&table, format!("months,{second},{event}\n{rows}")).unwrap();
        let words = ["survival", "km", "--time", "months", "--event", event, "--table"];
        let out = Command::new(crate::program()).args(words).arg(&table).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    let km = |event: &str, rows: &dyn Fn(usize) -> String| km_by("unit", event, rows);
    let printed = km("died", &|i| format!("{},months", i + 1));
    assert!(!printed.contains("note:"), "{printed}");
    for (event, rows, words) in [
        (
            "died",
            &(|i: usize| format!("201105{:02},x", i + 1)) as &dyn Fn(usize) -> String,
            "times of 'months' look like dates (20110501 to 20110520)",
        ),
        (
            "died",
            &|i| format!("{},{}", i + 1, ["days", "months"][i % 2]),
            "column 'unit' holds 'days' (10), 'months' (10), and times of 'months' are compared as they are",
        ),
        (
            "Censored",
            &|i| format!("{},x", i + 1),
            "column 'Censored': 1 and true are read as the event; by its name they may mean censored",
        ),
    ] {
        let printed = km(event, rows);
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert!(!km("uncensored", &|i| format!("{},x", i + 1)).contains("note:"));
    let printed = km_by("cohort", "died", &|i| {
        format!("{},{}", [1, 30][i % 2] * (10 + i), ["A", "B"][i % 2])
    });
    let words = "median of 600 where 'cohort' is 'B', and of 19 where it is 'A'";
    assert!(printed.contains(words), "{printed}");
}

#[test]
fn numbers_that_may_be_codes_for_missing_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t.csv");
    let rows =
        (0..20).map(|i| format!("{},{},{}\n", i + 1, i % 2, if i % 7 == 3 { 999 } else { 50 + i }));
    fs::write(&table, "months,died,age\n".to_owned() + &rows.collect::<String>()).unwrap();
    let cox = |more: &[&str]| {
        let words = ["survival", "cox", "--covariates", "age", "--table", table.to_str().unwrap()];
        let out = Command::new(crate::program()).args(words).args(COLUMNS).args(more).output();
        let out = out.unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    let printed = cox(&[]);
    assert!(printed.contains("codes for missing count as values: 999 (3)"), "{printed}");
    let counts = dir.path().join("counts.csv");
    let rows = (0..20).map(|i| format!("{i},finished,{},{},5\n", i % 4, i % 3));
    let header = "slide,status,hotspot_count,density_per_20_mm2,analysed_mm2\n".to_owned();
    fs::write(&counts, header + &rows.collect::<String>()).unwrap();
    let with_id = fs::read_to_string(&table).unwrap();
    let with_id = with_id.lines().enumerate().map(|(i, line)| match i {
        0 => format!("id,{line}\n"),
        i => format!("{},{line}\n", i - 1),
    });
    fs::write(dir.path().join("c.csv"), with_id.collect::<String>()).unwrap();
    let words = "survival study --counts counts.csv --clinical c.csv --join slide=id --covariates age --replicates 2 --out s";
    let out = Command::new(crate::program())
        .current_dir(dir.path())
        .args(words.split(' '))
        .args(COLUMNS)
        .output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let page = fs::read_to_string(dir.path().join("s/report.html")).unwrap();
    assert!(page.contains("codes for missing count as values: 999 (3)"));
    let named = cox(&["--missing", "999"]);
    assert!(!named.contains("codes for missing") && named.contains("17 rows"), "{named}");
}

#[test]
#[cfg(target_os = "linux")]
fn special_files_and_sparse_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("sparse.csv");
    fs::write(&table, "image,x,y,label\na,1,2,mf\n").unwrap();
    fs::File::options().write(true).open(&table).unwrap().set_len(3 << 30).unwrap();
    for (path, words) in
        [("/dev/zero", "not a regular file"), (table.to_str().unwrap(), "larger than")]
    {
        let out = Command::new(crate::program())
            .args(["corpus", "import", "--format", "csv", path])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && printed.contains(words), "{path}: {printed}");
    }
}

#[test]
fn more_covariates_than_rows_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.csv");
    let many: Vec<String> = (0..300).map(|k| format!("x{k}")).collect();
    let row = |i: usize| {
        let cells: Vec<String> = (0..300).map(|k| (i * k % 7).to_string()).collect();
        format!("{i},{},{}\n", i % 2, cells.join(","))
    };
    for (rows, most) in [(20, 20), (400, 200)] {
        let rows: String = (1..=rows).map(row).collect();
        fs::write(&path, format!("t,e,{}\n{rows}", many.join(","))).unwrap();
        let out = Command::new(crate::program())
            .args(["survival", "cox", "--table", path.to_str().unwrap(), "--time", "t"])
            .args(["--event", "e", "--covariates", &many.join(",")])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&out.stderr);
        assert!(printed.contains(&format!("300 coefficients, more than the {most}")), "{printed}");
        assert_eq!(out.status.code(), Some(1));
    }
}
