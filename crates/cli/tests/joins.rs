//! Tables that do not meet what they are joined with: every verb that joins prints the first keys of both sides and
//! the rule by which they would meet.

use crate::upgrading::{detect, former, output_text, tiny};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn mithras(dir: &Path, line: &str) -> Output {
    Command::new(crate::program()).current_dir(dir).args(line.split(' ')).output().unwrap()
}

/// A run and pictures of the slide `0007`, and tables about a slide `7`.
fn place() -> tempfile::TempDir {
    let dir = former();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    fs::remove_dir_all(at.join("run")).unwrap();
    fs::rename(at.join("one.tiff"), at.join("0007.tiff")).unwrap();
    let model = tiny();
    let words = detect(&model, &["0007.tiff"], &["-q"]).join(" ");
    let out = mithras(at, &words);
    assert!(out.status.success(), "{}", output_text(&out));
    fs::create_dir(at.join("s")).unwrap();
    for name in ["0007.png", "0008.png"] {
        let shade = if name == "0007.png" { 244 } else { 240 };
        let flat = image::RgbImage::from_pixel(400, 300, image::Rgb([shade; 3]));
        flat.save(at.join("s").join(name)).unwrap();
    }
    write("list.csv", "slide,case\n7.tiff,K1\n");
    write("mpp.csv", "slide,mpp\n7,0.25\n");
    write("mpp-image.csv", "image,mpp\n7.png,0.25\n");
    write("truth.csv", "slide,x,y\n7,375,335\n");
    write("called.csv", "file,class\n0007,a\n0008,b\n");
    write("labels.csv", "file,truth\n7,a\n8,b\n");
    write("counts.csv", "slide,hotspot_count,density_per_20_mm2\n0007,3,4\n0008,1,2\n");
    write("clinical.csv", "id,time,event\n7,1,1\n8,2,0\n");
    write("boxes.csv", "image,x,y,label\n0007.png,90,90,mf\n0008.png,120,90,mf\n");
    write("splits.csv", "image,split\n7.png,train\n8.png,test\n");
    write("folds.csv", "image,fold\n7.png,a\n8.png,b\n");
    write("cohorts.csv", "slide,cohort\n7,DRAWN\n");
    fs::create_dir(at.join("drawn")).unwrap();
    write("drawn/7.geojson", r#"{"type": "FeatureCollection", "features": []}"#);
    fs::create_dir(at.join("run/reviews")).unwrap();
    let word = serde_json::json!({
        "schema": "mithras.review/1", "time": 1.0, "slide": "7", "slide_digest": "0", "model_digest": "0",
        "key": "+5.00,5.00", "x": 5.0, "y": 5.0, "verdict": "figure", "added": true,
    });
    write("run/reviews/anna.jsonl", &format!("{word}\n"));
    let regions = "corpus import --kind regions --format csv boxes.csv --images s --mpp 0.25 --exhaustive all";
    let out = mithras(at, &format!("{regions} --out sets"));
    assert!(out.status.success(), "{}", output_text(&out));
    dir
}

/// A table that meets in part gives its columns, and names the rest.
#[test]
fn a_list_that_meets_in_part_names_both_sides() {
    let dir = place();
    let (at, model) = (dir.path(), tiny());
    fs::copy(at.join("0007.tiff"), at.join("0008.tiff")).unwrap();
    let words = detect(&model, &["0007.tiff", "0008.tiff"], &["-q", "--resume"]).join(" ");
    assert!(mithras(at, &words).status.success());
    fs::write(at.join("part.csv"), "slide,case\n0007.tiff,K1\n8.tiff,K2\n").unwrap();
    let out = mithras(at, "gather run --list part.csv");
    let printed = output_text(&out);
    assert!(out.status.success(), "{printed}");
    for words in
        ["1 slide of the run", "1 slide of the table", "'0008'", "'8'", "without leading zeros"]
    {
        assert!(printed.contains(words), "`{words}` is not in: {printed}");
    }
}
