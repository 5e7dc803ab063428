//! Personal data in slide files, and slides that need a library.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tiff::encoder::{TiffEncoder, colortype::RGB8};
use tiff::tags::Tag;

fn mithras(args: &[&str], file: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(crate::program());
    let output = command.args(args).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), text)
}

/// A TIFF with a page for each list of text tags.
fn tiff(path: &Path, side: u32, pages: &[&[(Tag, &str)]]) {
    let mut file = TiffEncoder::new(fs::File::create(path).unwrap()).unwrap();
    for (i, tags) in pages.iter().enumerate() {
        // Pages of one size would be focal planes.
        let side = side >> i;
        let mut page = file.new_image::<RGB8>(side, side).unwrap();
        for (tag, text) in *tags {
            page.encoder().write_tag(*tag, *text).unwrap();
        }
        page.write_data(&vec![240; 3 * (side * side) as usize]).unwrap();
    }
}

#[test]
fn people_are_named_by_tag_and_never_by_value() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tif");
    let description =
        "Aperio Image Library v11\n64x64|AppMag = 20|User = secret-name|Date = 01/02/03";
    tiff(
        &slide,
        64,
        &[
            &[(Tag::ImageDescription, description), (Tag::Software, "a scanner")],
            &[(Tag::Artist, "secret-doctor"), (Tag::DateTime, "2001:02:03 04:05:06")],
        ],
    );
    for form in [&["slide", "info"][..], &["slide", "info", "--json"]] {
        let (code, printed) = mithras(form, &slide);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("a scanner"), "technical tags are shown: {printed}");
        assert!(!printed.contains("secret") && !printed.contains("01/02/03"), "{printed}");
        assert!(printed.contains("tiff.ImageDescription"), "its presence is reported: {printed}");
    }
    let (code, printed) = mithras(&["slide", "info", "--deidentified-check"], &slide);
    assert_eq!(code, Some(1), "{printed}");
    for tag in [
        "tiff.ImageDescription: User: a person",
        "tiff.ImageDescription: Date: a date",
        "tiff[1].Artist: a person",
        "tiff[1].DateTime: a date",
    ] {
        assert!(printed.contains(tag), "{tag}: {printed}");
    }
    assert!(!printed.contains("secret"), "{printed}");

    let clean = dir.path().join("clean.tif");
    tiff(&clean, 64, &[&[(Tag::ImageDescription, "Aperio Image Library v11|AppMag = 20")], &[]]);
    let (code, printed) = mithras(&["slide", "info", "--deidentified-check", "--json"], &clean);
    let checked: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, checked["findings"].as_array().unwrap().len()), (Some(0), 0), "{printed}");
    assert_eq!(checked["schema"], "mithras.deidentified/2");
}

#[test]
fn a_real_scan_names_its_user_and_its_date() {
    let Some(slide) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    let (code, printed) = mithras(&["slide", "info", "--deidentified-check"], &slide);
    assert_eq!(code, Some(1), "{printed}");
    for name in ["aperio.User", "aperio.Date", "aperio.Filename", "image label", "image macro"] {
        assert!(printed.contains(name), "{name}: {printed}");
    }
    let (_, printed) = mithras(&["slide", "info", "--json"], &slide);
    let info: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(info["properties"]["aperio.MPP"], "0.4990");
    assert_eq!(info["properties"]["aperio.User"], Value::Null);
    assert!(info["not_shown"].to_string().contains("aperio.User"));
}

#[test]
fn dicom_shows_no_patient() {
    let Some(slide) = testkit::data("slides/sm_image.dcm") else { return };
    let (code, printed) = mithras(&["slide", "info", "--json"], &slide);
    assert_eq!(code, Some(0), "{printed}");
    let info: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(info["reader"], "dicom");
    let shown = info["properties"].as_object().unwrap();
    assert!(shown.keys().any(|k| k.starts_with("dicom.")), "technical attributes are shown");
    for key in shown.keys() {
        assert!(!key.contains("Patient") || key.ends_with("IdentityRemoved"), "{key}");
    }
    let (code, printed) = mithras(&["slide", "info", "--deidentified-check"], &slide);
    assert_eq!(code, Some(1), "{printed}");
    for name in ["dicom.PatientName", "dicom.AccessionNumber", "dicom.StudyDate", "TextValue"] {
        assert!(printed.contains(name), "{name}: {printed}");
    }
}

#[test]
fn slides_that_need_a_library_fail_as_rows_that_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let slides = dir.path().join("slides");
    fs::create_dir(&slides).unwrap();
    tiff(&slides.join("a.ndpi"), 64, &[&[(Tag::Unknown(65421), "20")]]);
    // NDPI beyond 4 GB is not a valid TIFF to others.
    fs::write(slides.join("b.ndpi"), b"II*\0\xff\xff\xff\xff and more").unwrap();
    // The main file of a MIRAX slide is a picture, but not the slide.
    let picture = image::RgbImage::from_pixel(80, 60, image::Rgb([240, 240, 240]));
    picture.save_with_format(slides.join("c.mrxs"), image::ImageFormat::Jpeg).unwrap();
    picture.save(slides.join("good.png")).unwrap();
    let out = dir.path().join("out");
    let output = Command::new(crate::program())
        .args(["detect", "--engine", "rten", "--mpp", "0.25", "--model"])
        .arg(testkit::workspace().join("crates/infer/tests/golden/tiny"))
        .arg(&slides)
        .arg("--out")
        .arg(&out)
        .env("MITHRAS_OPENSLIDE", dir.path().join("none"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(out.join("counts.csv")).unwrap();
    for (slide, what) in [("a", "NDPI"), ("b", "NDPI"), ("c", "MIRAX")] {
        let row = table.lines().find(|l| l.starts_with(&format!("{slide},failed"))).unwrap();
        assert!(row.contains("needs OpenSlide 4") && row.contains(what), "{row}");
    }
    assert!(table.contains("\ngood,no-tissue"), "{table}");
}
