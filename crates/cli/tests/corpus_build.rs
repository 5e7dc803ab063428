//! `mithras corpus build`: kills, exclusions, the tumour filter, magnifications, a disk that is full.

use crate::common;
use crops::{Columns, Corpus};
use mitosis::Mpp;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use slide::{OpenOptions, Rect, Slide};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::tempdir;

fn s(p: &Path) -> &str {
    p.to_str().unwrap()
}

fn run(args: &[&str]) -> (bool, String, String) {
    let out = Command::new(crate::program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

fn json(args: &[&str]) -> Value {
    let (ok, out, err) = run(args);
    assert!(ok, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn slides(dir: &Path, n: u64) -> PathBuf {
    let folder = dir.join("slides");
    std::fs::create_dir(&folder).unwrap();
    for i in 0..n {
        common::draw(&folder.join(format!("drawn-{i:03}.tiff")), 1400, 1100, 100 + i, 8);
    }
    folder
}

/// Runs the build to its end with up to `kills` SIGKILLs on the way; how many struck, and the report.
fn with_kills(args: &[&str], kills: usize) -> (usize, Value) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for struck in 0..kills {
        let mut child = Command::new(crate::program())
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A line per finished slide: first after one, then anywhere, start and join included.
        let mut answer = BufReader::new(child.stderr.take().unwrap());
        let finished = if struck == 0 { 1 } else { rng.random_range(0..5) };
        for _ in 0..finished {
            answer.read_line(&mut String::new()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(20..400)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.signal() != Some(9) {
            assert!(status.success());
            return (struck, json(args));
        }
    }
    (kills, json(args))
}

fn killed_and_not(n: u64, kills: usize) {
    let dir = tempdir().unwrap();
    let folder = slides(dir.path(), n);
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let args = |out: &'static str, workers: &'static str| {
        [
            "corpus",
            "build",
            "--preset",
            "tcga-mf-pseudo",
            "--no-tumour-filter",
            "--model",
            "fast",
            "--any-cohort",
            "--cohort",
        ]
        .into_iter()
        .chain(["DRAWN", "--threads", "1", "--json", "--workers", workers, "--out", out])
        .collect::<Vec<_>>()
    };
    let leak = |p: &Path| -> &'static str { Box::leak(s(p).to_owned().into_boxed_str()) };
    let with = |out: &Path, workers| {
        let mut all = args(leak(out), workers);
        all.push(leak(&folder));
        all
    };
    let one = json(&with(&whole, "1"));
    let (struck, two) = with_kills(&with(&killed, "2"), kills);
    assert!(struck > 0, "no kill struck");
    println!("{struck} kills; {}", serde_json::to_string_pretty(&one).unwrap());
    assert!(two["resumed"].as_u64().unwrap() > 0, "nothing was taken over");
    assert_eq!(one["digest"], two["digest"]);
    assert_eq!(one["funnel"], two["funnel"]);
    assert!(one["crops"].as_u64().unwrap() >= n, "too little to compare: {one}");
    let files = |dir: &Path| {
        let mut files: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file() && p.file_name().unwrap() != "build.json")
            .map(|p| (p.file_name().unwrap().to_owned(), std::fs::read(&p).unwrap()))
            .collect();
        files.sort();
        files
    };
    assert_eq!(files(&whole), files(&killed), "manifest or shards differ");
    Corpus::open(&killed).unwrap().verify().unwrap();
    // A third run has nothing to do and changes nothing.
    let again = json(&with(&killed, "1"));
    assert_eq!((&again["digest"], &again["resumed"]), (&one["digest"], &n.into()));
}

#[test]
fn kills_change_nothing() {
    killed_and_not(3, 2);
}

/// `cargo nextest run -p mithras-cli corpus_build --run-ignored only --no-capture`
#[test]
#[ignore = "minutes: 56 slides; docs/results/corpus.md has its figures"]
fn kills_change_nothing_at_scale() {
    killed_and_not(56, 8);
}

/// A list gives the same corpus as its slides named one by one; its um/px hold, and paths are from its own folder.
#[test]
fn a_list_gives_the_corpus_of_its_slides() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join("slides");
    std::fs::create_dir(&folder).unwrap();
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut picture = image::RgbImage::new(300, 300);
        let shade = |x: u32| (x as usize * (i + 1) % 90) as u8;
        picture.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [120, shade(x + y), 140]);
        picture.save(folder.join(format!("{name}.png"))).unwrap();
    }
    let preset = dir.path().join("p.toml");
    let text = "schema = 1\nname = \"p\"\nkind = \"unlabeled\"\nexclude_cohorts = [\"GBM\"]\n\
        [patches]\nmpp = [0.25]\nside = 128\nper_slide = 3\nseed = 1\n";
    std::fs::write(&preset, text).unwrap();
    let build = |out: &str, more: &[&str]| {
        let out = dir.path().join(out);
        let args = ["corpus", "build", "--preset", s(&preset), "--cohort", "DRAWN", "--json"];
        run(&[&args[..], &["--threads", "1", "--out", s(&out)], more].concat())
    };
    let list = dir.path().join("list.csv");
    std::fs::write(&list, "slide,mpp,note\nslides/a.png,0.25,x\nslides/c.png,0.25,y\n").unwrap();
    let (ok, listed, err) = build("listed", &["--list", s(&list)]);
    assert!(ok, "{err}");
    let [a, c] = ["a.png", "c.png"].map(|n| folder.join(n));
    let (ok, named, err) = build("named", &["--mpp", "0.25", s(&a), s(&c)]);
    assert!(ok, "{err}");
    let [listed, named] = [listed, named].map(|t| serde_json::from_str::<Value>(&t).unwrap());
    assert_eq!((&listed["slides"], &listed["crops"]), (&2.into(), &6.into()), "{listed}");
    assert_eq!(listed["digest"], named["digest"]);
    assert_eq!(listed["funnel"], named["funnel"]);
    // More slides join the corpus, fewer would take some of it away.
    let b = folder.join("b.png");
    let before = std::fs::read(dir.path().join("named/manifest.json")).unwrap();
    let (ok, _, err) = build("named", &["--mpp", "0.25", s(&a), s(&b)]);
    assert!(!ok && err.contains("has crops of 1 slide (`c`), not among the slides now"), "{err}");
    assert!(err.contains("name these slides, too, or choose another folder"), "{err}");
    assert_eq!(std::fs::read(dir.path().join("named/manifest.json")).unwrap(), before);
    let (ok, more, err) = build("named", &["--mpp", "0.25", s(&a), s(&b), s(&c)]);
    assert!(ok && more.contains("\"slides\": 3"), "{more} {err}");
    // A list is instead of slides; one that names what is not there fails that slide alone.
    let (ok, _, err) = build("both", &["--list", s(&list), s(&a)]);
    assert!(!ok && err.contains("cannot be used with"), "{err}");
    std::fs::write(&list, "slide,mpp\nslides/a.png,0.25\nslides/gone.png,0.25\n").unwrap();
    let (ok, text, err) = build("gone", &["--list", s(&list)]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(!ok && report["failed"][0]["slide"] == "gone", "{err} {report}");
    assert_eq!(report["crops"], 3, "{report}");
}

/// Neither a slide's part nor the corpus itself is trusted by its manifest alone.
#[test]
fn a_part_whose_bytes_changed_is_made_again() {
    let dir = tempdir().unwrap();
    let mut picture = image::RgbImage::new(300, 300);
    picture.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [120, (x * y % 90) as u8, 140]);
    picture.save(dir.path().join("a.png")).unwrap();
    let preset = dir.path().join("p.toml");
    let text = "schema = 1\nname = \"p\"\nkind = \"unlabeled\"\nexclude_cohorts = [\"GBM\"]\n\
        [patches]\nmpp = [0.25]\nside = 128\nper_slide = 3\nseed = 1\n";
    std::fs::write(&preset, text).unwrap();
    let (slide, out) = (dir.path().join("a.png"), dir.path().join("c"));
    let args = ["corpus", "build", "--preset", s(&preset), "--cohort", "DRAWN", "--mpp", "0.25"];
    let build =
        || json(&[&args[..], &["--threads", "1", "--json", "--out", s(&out), s(&slide)]].concat());
    let first = build();
    // As a kill leaves it between making a file and writing to it.
    let unfinished = out.join(".writing-build.json");
    std::fs::write(&unfinished, "").unwrap();
    build();
    assert!(!unfinished.exists(), "an unfinished file of a killed run stays");
    let files = ["shard-00000.parquet", ".build/a/crops/shard-00000.parquet"];
    let whole = files.map(|f| std::fs::read(out.join(f)).unwrap());
    for (file, whole) in files.iter().zip(&whole) {
        let mut bytes = whole.clone();
        bytes[whole.len() / 2] ^= 1;
        std::fs::write(out.join(file), bytes).unwrap();
        assert_eq!(build()["digest"], first["digest"], "{file}");
        assert!(std::fs::read(out.join(file)).unwrap() == *whole, "{file}");
        Corpus::open(&out).unwrap().verify().unwrap();
    }
}

/// Two tiles of 4 x 4 sub-patches; one sub-patch of the second is not tumour.
fn two_tiles(path: &Path) {
    let mut picture = image::RgbImage::new(1792, 896);
    for (x, y, p) in picture.enumerate_pixels_mut() {
        let grain = (x * 7 + y * 13) as u8 % 17;
        let stroma = (1120..1344).contains(&x) && (448..672).contains(&y);
        p.0 = if stroma { [235, 180 + grain, 215] } else { [150 + grain, 90 + grain, 160] };
    }
    picture.save(path).unwrap();
}

#[test]
fn a_tile_is_kept_when_all_sixteen_patches_are_tumour() {
    let dir = tempdir().unwrap();
    let slide = dir.path().join("tiles.png");
    two_tiles(&slide);
    let filter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/colour_filter");
    let out = dir.path().join("c");
    let build = |out: &Path, more: &[&str]| {
        let args =
            ["corpus", "build", "--preset", "tcga-mf-pseudo", "--cohort", "BRCA", "--mpp", "0.25"];
        run(&[&args[..], &["--threads", "1", "--json", "--out", s(out), s(&slide)], more].concat())
    };
    let (ok, text, err) = build(&out, &["--tumour-filter", s(&filter)]);
    assert!(ok, "{err}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["funnel"]["tiles on tissue"], 2);
    assert_eq!(report["funnel"]["tiles kept by the filter"], 1);
    let shares: f64 =
        report["shares"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{report}");
    let corpus = Corpus::open(&out).unwrap();
    let used = &corpus.manifest().header.notes["build"]["tumour_filter"];
    assert_eq!((&used["name"], &used["sub_patches"]), (&"colour-filter".into(), &16.into()));
    assert_eq!(
        (&used["tumour_class"], &used["used_at_mpp"]),
        (&"tumour_epithelium".into(), &0.25.into())
    );
    assert_eq!(used["classes"].as_array().unwrap().len(), 9);
    assert_eq!(used["sha256"].as_str().unwrap().len(), 64);

    let page = dir.path().join("page.html");
    assert!(run(&["corpus", "inspect", s(&out), "--html", s(&page)]).0);
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["Tumour filter: colour-filter", r#"<td>tumour tiles</td><td class="n">1</td>"#] {
        assert!(page.contains(part), "`{part}` is not in the page");
    }

    // Another class, another answer; a class that is not there is refused and the others named.
    let of = |class: &'static str| ["--tumour-filter", s(&filter), "--tumour-class", class];
    let (ok, text, _) = build(&dir.path().join("s"), &of("stroma"));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(ok && report["funnel"]["tiles kept by the filter"] == 0, "{text}");
    let (ok, _, err) = build(&dir.path().join("n"), &of("TUM"));
    assert!(!ok && err.contains("`TUM`") && err.contains("smooth_muscle"), "{err}");
    // Without a filter only on demand, and the manifest records it.
    let (ok, _, err) = build(&dir.path().join("n"), &[]);
    assert!(!ok && err.contains("--no-tumour-filter"), "{err}");
    let (ok, text, _) = build(&dir.path().join("w"), &["--no-tumour-filter"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(ok && report["funnel"]["tiles kept by the filter"] == 2, "{text}");
    let corpus = Corpus::open(dir.path().join("w")).unwrap();
    let used = corpus.manifest().header.notes["build"]["tumour_filter"].as_str().unwrap();
    assert!(used.contains("every tissue tile was kept"), "{used}");
    // A package whose crops have another size cannot filter these tiles.
    let odd = dir.path().join("odd");
    std::fs::create_dir(&odd).unwrap();
    std::fs::copy(filter.join("classifier.onnx"), odd.join("classifier.onnx")).unwrap();
    let card = std::fs::read_to_string(filter.join("card.toml")).unwrap();
    std::fs::write(odd.join("card.toml"), card.replace("crop = 224", "crop = 128")).unwrap();
    let (ok, _, err) = build(&dir.path().join("n"), &["--tumour-filter", s(&odd)]);
    assert!(!ok && err.contains("128 px") && err.contains("224 px"), "{err}");
}

/// A tile of tumour, one of both, one of stroma, by the green that the filter sees.
fn three_tiles(path: &Path) {
    let mut picture = image::RgbImage::new(2688, 896);
    for (x, y, p) in picture.enumerate_pixels_mut() {
        let grain = (x * 7 + y * 13) as u8 % 17;
        let stroma = x >= 1344;
        p.0 = if stroma { [90, 180 + grain, 240] } else { [150 + grain, 90 + grain, 160] };
    }
    picture.save(path).unwrap();
}

#[test]
fn two_filters_in_one_pass_give_the_strata_of_the_audit() {
    let dir = tempdir().unwrap();
    let slide = dir.path().join("tiles.png");
    three_tiles(&slide);
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/colour_filter");
    // The same network with stroma for tumour.
    let second = dir.path().join("second");
    std::fs::create_dir(&second).unwrap();
    std::fs::copy(first.join("classifier.onnx"), second.join("classifier.onnx")).unwrap();
    let card = std::fs::read_to_string(first.join("card.toml")).unwrap();
    let card =
        card.replace("\"stroma\", \"tumour_epithelium\"]", "\"tumour_epithelium\", \"stroma\"]");
    std::fs::write(second.join("card.toml"), card.replace("colour-filter", "swapped")).unwrap();
    let filters = ["--tumour-filter", s(&first), "--second-filter", s(&second)];
    let build = |preset: &str, out: &Path, more: &[&str]| {
        let args = ["corpus", "build", "--preset", preset, "--cohort", "BRCA", "--mpp", "0.25"];
        run(&[&args[..], &["--json", "--out", s(out), s(&slide)], more].concat())
    };
    let strata = |out: &Path| {
        let corpus = Corpus::open(out).unwrap();
        corpus.verify().unwrap();
        let crops = corpus.crops(Columns::Meta).unwrap().map(|c| c.unwrap().meta);
        crops.map(|m| (m.path, m.subtype.unwrap())).collect::<Vec<_>>()
    };
    let apart = dir.path().join("apart");
    let (ok, _, err) = build("tumour-tiles", &apart, &filters[..2]);
    assert!(
        !ok && err.contains("name two filters with --tumour-filter DIR and --second-filter"),
        "{err}"
    );
    let (ok, text, err) = build("tumour-tiles", &apart, &filters);
    assert!(ok, "{err}");
    let report: Value = serde_json::from_str(&text).unwrap();
    let row = |name: &str| report["funnel"][name].as_u64().unwrap();
    assert_eq!((row("tiles on tissue"), row("tiles kept by the filter")), (3, 1), "{report}");
    let of_two = (row("tiles kept by both filters"), row("tiles kept by the second alone"));
    assert_eq!((of_two, row("unlabelled patches")), ((0, 1), 2), "{report}");
    let third = 1.0 / 3.0;
    assert_eq!(report["kept_shares"], serde_json::json!([third, third]), "{report}");
    assert_eq!(report["cohort_kept_shares"]["BRCA"], report["kept_shares"]);
    assert_eq!(report["organ_sites"], serde_json::json!({"breast": 2}));
    let named = |path: &str, stratum: &str| (path.to_owned(), stratum.to_owned());
    let found =
        [named("tiles/0_0.jpg", "colour-filter-only"), named("tiles/1792_0.jpg", "swapped-only")];
    assert_eq!(strata(&apart), found);
    let corpus = Corpus::open(&apart).unwrap();
    let notes = &corpus.manifest().header.notes["build"];
    assert_eq!(notes["tumour_filter"]["name"], "colour-filter");
    assert_eq!(notes["second_filter"]["name"], "swapped");

    // With its own stroma for tumour the second agrees with the first; a reviewer gets what both keep.
    let agree = dir.path().join("agree");
    let (ok, _, err) =
        build("tumour-tiles", &agree, &[&filters[..], &["--second-class", "stroma"]].concat());
    assert!(ok, "{err}");
    assert_eq!(strata(&agree), [named("tiles/0_0.jpg", "both")]);
    let audit = dir.path().join("audit");
    let sample = ["audit", "sample", s(&agree), "--question", "tumour", "--by", "subtype"];
    let (ok, _, err) = run(&[&sample[..], &["--per", "both=1", "--out", s(&audit)]].concat());
    assert!(ok && audit.join("package").is_dir(), "{err}");

    // Two filters are too many for pseudo-labels, one is for patches.
    let none = dir.path().join("none");
    let (ok, _, err) = build("tcga-mf-pseudo", &none, &filters);
    assert!(!ok && err.contains("takes one at most"), "{err}");
    let (ok, _, err) = build("tcga-unlabeled", &none, &filters[..2]);
    assert!(!ok && err.contains("takes none"), "{err}");
}

/// A cohort has its number of tiles although one of its slides has few.
#[test]
fn what_a_small_slide_lacks_the_others_of_its_cohort_give() {
    let dir = tempdir().unwrap();
    let slides = dir.path().join("slides");
    std::fs::create_dir(&slides).unwrap();
    for (name, tiles) in [("a", 1), ("b", 4), ("c", 4)] {
        let mut picture =
            image::RgbImage::from_pixel(896 * tiles, 896, image::Rgb([250, 250, 250]));
        // Tissue that both filters call tumour.
        picture
            .enumerate_pixels_mut()
            .for_each(|(x, y, p)| p.0 = [200, 40 + ((x + y) % 7) as u8, 160]);
        picture.save(slides.join(format!("{name}.png"))).unwrap();
    }
    let preset = dir.path().join("p.toml");
    let tumour_tiles = testkit::workspace().join("presets/corpus/tumour-tiles.toml");
    let text = std::fs::read_to_string(tumour_tiles).unwrap();
    std::fs::write(&preset, text.replace("per_cohort = 10000", "per_cohort = 7")).unwrap();
    let filter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/colour_filter");
    let files = ["a", "b", "c"].map(|name| slides.join(format!("{name}.png")));
    let build = |out: &str| {
        let out = dir.path().join(out);
        let words = ["corpus", "build", "--cohort", "BRCA", "--mpp", "0.25", "--json"];
        let given = ["--preset", s(&preset), "--workers", "2", "--out", s(&out)];
        let filters = ["--tumour-filter", s(&filter), "--second-filter", s(&filter)];
        let files = files.each_ref().map(|f| s(f));
        json(&[&words[..], &given, &filters, &files].concat())
    };
    let one = build("one");
    let drawn = one["funnel"]["tiles drawn for two filters"].as_u64().unwrap();
    assert_eq!(drawn, 7, "3 + 3 + 1 and not 3 + 2 + 1");
    assert_eq!(build("two")["digest"], one["digest"]);
    // Its share is the same although it cannot be counted any more.
    std::fs::remove_file(&files[0]).unwrap();
    let again = build("one");
    assert_eq!((&again["digest"], &again["resumed"]), (&one["digest"], &3.into()));
}

#[test]
fn what_is_excluded_never_enters_and_failures_stay_alone() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join("slides");
    std::fs::create_dir(&folder).unwrap();
    let names = ["a", "gbm", "TCGA-AA-0001-01Z", "TCGA-AA-0002-01Z", "seen", "broken"];
    for (i, name) in names.iter().enumerate() {
        let mut picture = image::RgbImage::new(300, 300);
        let shade = |x: u32| (x as usize * (i + 1) % 90) as u8;
        picture.enumerate_pixels_mut().for_each(|(x, y, p)| p.0 = [120, shade(x + y), 140]);
        picture.save(folder.join(format!("{name}.png"))).unwrap();
    }
    std::fs::write(folder.join("broken.png"), b"\x89PNG\r\n\x1a\nnothing").unwrap();
    let table = dir.path().join("t.csv");
    std::fs::write(&table, "slide,cohort\ngbm.png,TCGA-GBM\nseen.png,BRCA\n").unwrap();
    let list = dir.path().join("no.csv");
    std::fs::write(&list, "# kept for evaluation\npatient,TCGA-AA-0001\n").unwrap();
    let preset = dir.path().join("p.toml");
    let text = "schema = 1\nname = \"p\"\nkind = \"unlabeled\"\nexclude_cohorts = [\"GBM\"]\n\
        [patches]\nmpp = [0.25]\nside = 128\nper_slide = 3\nseed = 1\n";
    std::fs::write(&preset, text).unwrap();
    let build = |out: &Path, more: &[&str]| {
        let args =
            ["corpus", "build", "--preset", s(&preset), "--table", s(&table), "--mpp", "0.25"];
        run(&[&args[..], &["--json", "--out", s(out)], more].concat())
    };
    let (ok, _, err) = build(&dir.path().join("n"), &[s(&folder)]);
    assert!(!ok && err.contains("has no cohort"), "{err}");
    let (eval, out) = (dir.path().join("eval"), dir.path().join("c"));
    let (ok, _, err) = build(&eval, &["--cohort", "TEST", s(&folder.join("seen.png"))]);
    assert!(ok, "{err}");
    let keep_out = ["--exclude", s(&list), "--evaluation", s(&eval)];
    let gone = dir.path().join("gone.png");
    let inputs = ["--cohort", "BRCA", s(&folder), s(&gone)];
    let (ok, text, err) = build(&out, &[&inputs[..], &keep_out].concat());
    assert!(!ok, "a failed slide must show in the exit code: {err}");
    let code = |out: &str, inputs: &[&str]| {
        let words =
            ["corpus", "build", "--preset", s(&preset), "--mpp", "0.25", "--cohort", "BRCA"];
        let mut build = Command::new(crate::program());
        build.current_dir(dir.path()).args(words).args(["--out", out]).args(inputs);
        build.output().unwrap().status.code()
    };
    let broken = folder.join("broken.png");
    assert_eq!(code("some", &[s(&folder.join("a.png")), s(&broken)]), Some(3));
    assert_eq!(code("none", &[s(&broken)]), Some(1));
    for file in ["manifest.json", "build.json"] {
        assert!(dir.path().join("some").join(file).exists(), "{file}");
        assert!(
            !dir.path().join("none").join(file).exists(),
            "{file} of a corpus that is not there"
        );
    }
    // A corpus that is there stays as it was.
    let manifest = std::fs::read(dir.path().join("some/manifest.json")).unwrap();
    assert_eq!(code("some", &[s(&broken)]), Some(1));
    assert_eq!(std::fs::read(dir.path().join("some/manifest.json")).unwrap(), manifest);
    std::fs::write(&gone, "slide,cohort\n").unwrap();
    let (ok, _, err) = build(&dir.path().join("rows"), &["--table", s(&gone), s(&folder)]);
    assert!(!ok && err.contains("cannot be used multiple times"), "{err}");
    std::fs::remove_file(&gone).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["slides"], &report["excluded"]), (&7.into(), &3.into()));
    assert_eq!(report["failed"][0]["slide"], "broken");
    assert_eq!(report["failed"][1]["slide"], "gone");
    assert!(report["failed"][1]["reason"].as_str().unwrap().contains("gone.png: No such file"));
    let corpus = Corpus::open(&out).unwrap();
    corpus.verify().unwrap();
    let mut slides: Vec<String> =
        corpus.crops(Columns::Meta).unwrap().map(|c| c.unwrap().meta.slide).collect();
    slides.dedup();
    assert_eq!(slides, ["TCGA-AA-0002-01Z", "a"]);
    let notes = serde_json::to_string(&corpus.manifest().header.notes["excluded"]).unwrap();
    for part in ["cohort TCGA-GBM is excluded", "patient TCGA-AA-0001 listed", "evaluation corpus"]
    {
        assert!(notes.contains(part), "`{part}` is not in {notes}");
    }
    assert!(regions::overlap::refuse_overlap(&out, &eval).is_ok());
}

#[test]
fn four_magnifications_of_real_slides() {
    let dir = tempdir().unwrap();
    for (file, mpp, finest) in [
        ("slides/CMU-1-Small-Region.svs", None, 0.5),
        ("slides/tcga-cr-7395-01a-01-ts1.svs", Some("0.25"), 0.25),
    ] {
        let Some(path) = testkit::data(file) else { continue };
        let out = dir.path().join(mithras::input::stem(&path));
        let mut args =
            vec!["corpus", "build", "--preset", "tcga-unlabeled", "--cohort", "OV", "--json"];
        args.extend(["--out", s(&out), s(&path)]);
        args.extend(mpp.iter().flat_map(|m| ["--mpp", m]));
        let report = json(&args);
        let slide_mpp = mpp.map(|m| Mpp::new(m.parse().unwrap()).unwrap());
        let options = OpenOptions { mpp: slide_mpp, ..OpenOptions::default() };
        let slide = Slide::open_with(&path, &options).unwrap();
        let own = slide.resolution().unwrap().mean().get();
        let corpus = Corpus::open(&out).unwrap();
        let mut found = Vec::new();
        for (i, crop) in corpus.crops(Columns::All).unwrap().enumerate() {
            let crop = crop.unwrap();
            let mpp = crop.meta.mpp.get();
            if found.last() != Some(&mpp) {
                found.push(mpp);
            }
            if i % 40 == 0 {
                // The centre is correct, and the pixels are the slide's at that resolution.
                let c = crop.meta.centroid.unwrap();
                let corner = |v: f64| (v * own / mpp - 112.0).round() as i64;
                let there = slide
                    .read_at(crop.meta.mpp, Rect::new(corner(c.x), corner(c.y), 224, 224))
                    .unwrap();
                let here = crop.decode().unwrap();
                let off: u64 =
                    here.data.iter().zip(&there.data).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
                assert!(off < 4 * here.data.len() as u64, "{}: off by {off}", crop.meta.path);
            }
        }
        let wanted: Vec<f64> = [0.25, 0.5, 1.0, 2.0].into_iter().filter(|&m| m >= finest).collect();
        assert!(!found.is_empty() && wanted.starts_with(&found), "{file}: {found:?}");
        assert_eq!(report["funnel"]["resolutions finer than the slide"], 4 - wanted.len());
        // Each resolution is counted, in the report and later.
        let inspected = json(&["corpus", "inspect", s(&out), "--json"]);
        let counts = report["resolutions"].as_object().unwrap();
        assert_eq!(inspected["resolutions"], report["resolutions"]);
        assert_eq!(inspected["organ_sites"]["ovary"], report["crops"]);
        assert!(found.iter().all(|m| counts[&m.to_string()].as_u64() > Some(0)), "{counts:?}");
        let all: u64 = counts.values().filter_map(Value::as_u64).sum();
        assert_eq!(all, report["crops"].as_u64().unwrap());
    }
}

/// A limit on file size imitates a full disk: writing fails in the middle of a shard.
#[test]
fn a_full_disk_loses_nothing() {
    let dir = tempdir().unwrap();
    let (folder, table) = (dir.path().join("i"), dir.path().join("t.csv"));
    std::fs::create_dir(&folder).unwrap();
    let mut text = String::from("image,x,y,label\n");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut picture = image::RgbImage::new(400, 400);
    picture.pixels_mut().for_each(|p| p.0 = rng.random());
    picture.save(folder.join("a.png")).unwrap();
    (0..40).for_each(|i| text += &format!("a.png,{},{},mf\n", 100 + 5 * i, 300 - 5 * i));
    std::fs::write(&table, text).unwrap();
    let (good, out) = (dir.path().join("good"), dir.path().join("out"));
    let program = crate::program();
    let import = |out: &Path, limit: &str| {
        let line = format!(
            "trap '' XFSZ; ulimit -f {limit}; exec {program} corpus import --format csv {} --images {} \
             --mpp 0.25 --out {} --json",
            s(&table),
            s(&folder),
            s(out)
        );
        Command::new("bash").args(["-c", &line]).output().unwrap()
    };
    assert!(import(&good, "unlimited").status.success());
    let digest = Corpus::open(&good).unwrap().manifest().digest.clone();
    let full = import(&out, "200");
    let answer = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(!full.status.success() && answer.contains(s(&out)), "{answer}");
    assert!(Corpus::open(&out).is_err(), "half a corpus passes for a whole one");
    // With space again, the same folder takes the whole corpus.
    assert!(import(&out, "unlimited").status.success());
    assert_eq!(Corpus::open(&out).unwrap().manifest().digest, digest);
    // A corpus that is there outlives a failed merge and a failed second import.
    let merged = dir.path().join("m");
    let line = format!(
        "trap '' XFSZ; ulimit -f 200; exec {program} corpus merge {} --out {}",
        s(&good),
        s(&merged)
    );
    let full = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert!(!full.status.success() && Corpus::open(&merged).is_err());
    assert!(!import(&good, "200").status.success());
    Corpus::open(&good).unwrap().verify().unwrap();
}
