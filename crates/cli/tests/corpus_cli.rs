//! `mithras corpus`: counts as JSON, the whole way from a table to folds, and its refusals.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

fn mithras(args: &[&str]) -> (bool, String, String) {
    let out = Command::new(crate::program()).args(args).output().unwrap();
    (
        out.status.success(),
        String::from_utf8_lossy(&out.stdout).into_owned(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

fn json(args: &[&str]) -> Value {
    let (ok, out, err) = mithras(args);
    assert!(ok, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn s(p: &Path) -> &str {
    p.to_str().unwrap()
}

#[test]
fn published_counts_as_json() {
    for (format, file, images, labelled, figures, mimickers) in [
        ("midog-json", "annotations/MIDOG++.json", 553, 503, 11_937, 14_349),
        ("sliderunner", "annotations/MIDOG2021.sqlite", 200, 150, 1_721, 2_714),
        ("ami-br", "ami_br/labels.csv", 202, 202, 3_720, 0),
        (
            "midog25-csv",
            "annotations/MIDOG25_Atypical_Classification_Train_Set.csv",
            475,
            475,
            11_937,
            0,
        ),
    ] {
        let Some(path) = testkit::data(file) else { continue };
        let v = json(&["corpus", "import", "--format", format, s(&path), "--json"]);
        assert_eq!(v["images"], images, "{file}");
        assert_eq!(v["labelled_images"], labelled, "{file}");
        assert_eq!(v["figures"], figures, "{file}");
        assert_eq!(v["mimickers"], mimickers, "{file}");
    }
}

#[test]
fn from_a_table_to_folds() {
    let dir = tempdir().unwrap();
    let images = dir.path().join("images");
    std::fs::create_dir(&images).unwrap();
    let mut table = String::from("image,x,y,label,patient\n");
    for i in 0..6u8 {
        let mut picture = image::RgbImage::new(200, 200);
        picture
            .pixels_mut()
            .enumerate()
            .for_each(|(k, p)| p.0 = [i, (k % 251) as u8, (k / 251 % 251) as u8]);
        picture.save(images.join(format!("{i}.png"))).unwrap();
        for k in 0..10 {
            let label = if k % 2 == 0 { "mf" } else { "imposter" };
            table += &format!("{i}.png,{},{},{label},p{}\n", 60 + k * 7, 70 + k * 3, i / 2);
        }
    }
    let csv = dir.path().join("t.csv");
    std::fs::write(&csv, table).unwrap();
    let out = dir.path().join("c");
    let import =
        ["corpus", "import", "--format", "csv", s(&csv), "--images", s(&images), "--out", s(&out)];
    let (ok, _, err) = mithras(&import);
    assert!(!ok && err.contains("--mpp"), "a resolution was guessed: {err}");
    let mut with_mpp = import.to_vec();
    with_mpp.extend(["--mpp", "0.25", "--json"]);
    let v = json(&with_mpp);
    assert_eq!((&v["figures"], &v["corpus"]["crops"]), (&30.into(), &60.into()));
    assert!(out.join("annotations.csv").is_file());

    let (ok, text, err) = mithras(&["corpus", "verify", s(&out)]);
    assert!(ok && text.contains("60 crops"), "{err}");
    let v = json(&["corpus", "inspect", s(&out), "--json"]);
    assert_eq!(v["manifest"]["counts"]["labels"]["mimicker"], 30);
    let page = dir.path().join("page.html");
    assert!(mithras(&["corpus", "inspect", s(&out), "--html", s(&page)]).0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("data:image/png;base64,"));

    let split = dir.path().join("split.json");
    let args = ["corpus", "split", s(&out), "--out", s(&split), "--folds", "3"];
    let (ok, first, err) = mithras(&args);
    assert!(ok && first.contains("fold 2: 1 group,"), "{first}{err}");
    assert_eq!(mithras(&args).1, first);
    let (ok, _, err) =
        mithras(&["corpus", "split", s(&out), "--out", s(&split), "--seed", "3", "--folds", "2"]);
    assert!(!ok && err.contains("holds other folds"), "{err}");
    let (ok, _, err) = mithras(&["corpus", "overlap", s(&out), s(&out)]);
    assert!(!ok && err.contains("6 slides"), "{err}");
    let merged = dir.path().join("m");
    let (ok, _, err) = mithras(&["corpus", "merge", s(&out), s(&out), "--out", s(&merged)]);
    assert!(!ok && err.contains("has the same pixels as"), "{err}");
}

#[test]
fn regions_from_a_table_to_folds() {
    let dir = tempdir().unwrap();
    let (images, more) = (dir.path().join("images"), dir.path().join("more"));
    let mut table = "image,x,y,label,patient\n".to_owned();
    for (folder, side) in [(&images, 80_u32), (&more, 90)] {
        std::fs::create_dir(folder).unwrap();
        for i in 0..4_u8 {
            let picture = image::RgbImage::from_pixel(side, side, image::Rgb([i, 9, 9]));
            picture.save(folder.join(format!("{i}.png"))).unwrap();
        }
    }
    for i in 0..4 {
        table += &format!("{i}.png,20,30,mf,p{i}\n{i}.png,60,50,imposter,p{i}\n");
    }
    let csv = dir.path().join("t.csv");
    std::fs::write(&csv, table).unwrap();
    let set = dir.path().join("set");
    let mut import = vec!["corpus", "import", "--kind", "regions", "--format", "csv", s(&csv)];
    import.extend(["--images", s(&images), "--out", s(&set)]);
    let (ok, _, err) = mithras(&import);
    assert!(!ok && err.contains("--mpp-table") && err.contains("3 other files"), "{err}");
    import.extend(["--mpp", "0.25", "--json"]);
    let v = json(&import);
    assert_eq!((&v["images"], &v["exhaustive"], &v["patients"]), (&4.into(), &4.into(), &4.into()));
    assert_eq!(v["classes"]["mitotic_figure"], 4);

    let (ok, text, err) = mithras(&["corpus", "verify", s(&set)]);
    assert!(ok && text.contains("sound: 4 images"), "{err}");
    let plain = dir.path().join("plain");
    let mut folder = vec!["corpus", "import", "--format", "he-folder", s(&more)];
    folder.extend(["--mpp", "0.5", "--out", s(&plain)]);
    let (ok, text, err) = mithras(&folder);
    assert!(ok && text.contains("plain: 4 images"), "{text}{err}");
    let all = dir.path().join("all");
    let (ok, _, err) = mithras(&["corpus", "merge", s(&set), s(&plain), "--out", s(&all)]);
    assert!(ok, "{err}");
    let v = json(&["corpus", "inspect", s(&all), "--json"]);
    assert_eq!((&v["counts"]["images"], &v["sources"]["more"]["images"]), (&8.into(), &4.into()));

    let folds = dir.path().join("folds.json");
    let (ok, text, err) =
        mithras(&["corpus", "split", s(&all), "--leave-one-out", "--out", s(&folds)]);
    assert!(ok && text.contains("fold p3: 1 group, 1 item, 1 figure"), "{text}{err}");
    assert!(text.contains("in every fold's training: 4 groups"), "{text}");
    std::fs::write(images.join("0.png"), "changed").unwrap();
    let (ok, _, err) = mithras(&["corpus", "verify", s(&all)]);
    assert!(!ok && err.contains("0.png"), "{err}");
}

#[test]
fn refusals_exit_with_an_error() {
    let dir = tempdir().unwrap();
    let csv = dir.path().join("t.csv");
    std::fs::write(&csv, "image,x,y,label\na,1,2,banana\n").unwrap();
    for (args, part) in [
        (&["corpus", "import", "--format", "csv", s(&csv)][..], "`banana` (1 annotations)"),
        (&["corpus", "import", "--format", "csv", s(&csv), "--map", "banana"], "--map"),
        (&["corpus", "import", "--format", "csv", s(&csv), "--images", s(dir.path())], "--out"),
        (&["corpus", "import", "--format", "none", s(&csv)], "midog-json"),
        (&["corpus", "verify", s(dir.path())], "manifest.json"),
        (&["audit", "serve", s(dir.path())], "audit.json"),
        (&["audit", "score", s(dir.path())], "key.json"),
    ] {
        let (ok, _, err) = mithras(args);
        assert!(!ok && err.contains(part), "{args:?}: {err}");
    }
    let v = json(&["corpus", "import", "--format", "csv", s(&csv), "--map", "banana=mf", "--json"]);
    assert_eq!(v["figures"], 1);
}

/// A regions dataset whose labelled places all look alike, but that figures may be sharper in chroma.
fn labelled_noise(dir: &Path, cue: bool) -> std::path::PathBuf {
    let images = dir.join("images");
    std::fs::create_dir_all(&images).unwrap();
    let mix = |n: u64| {
        let h = (n ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (h ^ (h >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    };
    let mut table = "image,x,y,label,patient\n".to_owned();
    for i in 0..6_u64 {
        let figure = |x: u64, y: u64| mix(i * 1000 + x / 80 * 30 + y / 80).is_multiple_of(2);
        let picture = image::RgbImage::from_fn(400, 400, |x, y| {
            let (x, y) = (u64::from(x), u64::from(y));
            let near = |v: u64| (v % 80).abs_diff(40) < 16;
            let step = if cue && near(x) && near(y) && figure(x, y) { 1 } else { 4 };
            let at = |x: u64, y: u64, salt: u64| mix(((i * 7 + salt) * 1000 + x) * 1000 + y) % 30;
            let (luma, chroma) = (at(x, y, 1), at(x / step, y / step, 2 + step));
            let level = |v: u64| (v + luma / 2) as u8;
            image::Rgb([level(180 + chroma), level(150), level(200 - chroma)])
        });
        picture.save(images.join(format!("{i}.png"))).unwrap();
        for (x, y) in (0..25).map(|k| (k % 5 * 80 + 40, k / 5 * 80 + 40)) {
            let label = if figure(x, y) { "mf" } else { "imposter" };
            table += &format!("{i}.png,{x},{y},{label},p{i}\n");
        }
    }
    let (csv, set) = (dir.join("t.csv"), dir.join("set"));
    std::fs::write(&csv, table).unwrap();
    let mut import = vec!["corpus", "import", "--kind", "regions", "--format", "csv", s(&csv)];
    import.extend(["--images", s(&images), "--out", s(&set), "--mpp", "0.25"]);
    let (ok, _, err) = mithras(&import);
    assert!(ok, "{err}");
    set
}

#[test]
fn shortcuts_of_a_pasted_cue_are_named_and_a_clean_dataset_passes() {
    let dir = tempdir().unwrap();
    let clean = labelled_noise(&dir.path().join("clean"), false);
    let (ok, text, err) = mithras(&["corpus", "shortcuts", s(&clean), "--strict"]);
    assert!(ok && err.is_empty(), "{text}{err}");
    assert!(text.contains("together, all"), "{text}");

    let cued = labelled_noise(&dir.path().join("cued"), true);
    let strict = Command::new(crate::program())
        .args(["corpus", "shortcuts", s(&cued), "--strict", "--json"])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&strict.stderr);
    assert_eq!(strict.status.code(), Some(1), "{err}");
    assert!(err.contains("fine detail of Cb separates figures from the others"), "{err}");
    let report: Value = serde_json::from_slice(&strict.stdout).unwrap();
    let verdicts = report["sources"][0]["verdicts"].as_array().unwrap();
    let of = |name: &str| verdicts.iter().find(|v| v["feature"] == name).unwrap();
    assert_eq!(of("fine detail of Cb")["warns"], true);
    assert_eq!(of("together")["warns"], true);
    assert!(of("together, all")["auc"].as_f64().unwrap() > 0.9);
    // Without --strict it warns and continues.
    let (ok, _, err) = mithras(&["corpus", "shortcuts", s(&cued)]);
    assert!(ok && err.contains("fine detail of Cb"), "{err}");
}
