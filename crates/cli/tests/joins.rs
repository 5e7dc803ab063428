//! Two tables that do not meet: the first keys of both sides are printed, and the rule by which they would meet.

use crate::upgrading::{detect, former, output_text, review_of, tiny};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn mithras(dir: &Path, line: &str) -> Output {
    Command::new(crate::program()).current_dir(dir).args(line.split(' ')).output().unwrap()
}

/// A run of the slide `0007`.
fn place() -> tempfile::TempDir {
    let dir = former();
    let at = dir.path();
    fs::remove_dir_all(at.join("run")).unwrap();
    fs::rename(at.join("one.tiff"), at.join("0007.tiff")).unwrap();
    let model = tiny();
    let words = detect(&model, &["0007.tiff"], &["-q"]).join(" ");
    let out = mithras(at, &words);
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

/// A study of the one slide that meets is refused for that, not for its covariates.
#[test]
fn a_study_of_one_slide_that_meets_names_the_join() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let mut counts = "slide,hotspot_count,density_per_20_mm2\n".to_owned();
    let mut clinical = "id,t,e\nS-3,5,1\n".to_owned();
    for i in 1..=30 {
        counts += &format!("S-{i},{},{}\n", i % 7, i % 5);
        clinical += &format!("{i},{i},{}\n", i % 2);
    }
    fs::write(at.join("n.csv"), counts).unwrap();
    fs::write(at.join("t.csv"), clinical).unwrap();
    let study = "survival study --counts n.csv --clinical t.csv --join slide=id --time t --event e --replicates 20 \
                 --out o";
    let out = mithras(at, study);
    let printed = output_text(&out);
    assert_eq!(out.status.code(), Some(1), "{printed}");
    for words in ["n.csv: 1 of 30 slides (slide) match a row of t.csv (id)", "'S-1'", "'1'"] {
        assert!(printed.contains(words), "`{words}` is not in: {printed}");
    }
    assert!(!printed.contains("fewer covariates"), "{printed}");
}

/// A verb that joins: its line (`{Q}`: the model and how it runs), the sources that do it, and the keys that must be
/// printed. All of them meet by the same rule.
struct Joined {
    line: &'static str,
    source: &'static str,
    keys: [&'static str; 2],
}

const fn joined(line: &'static str, source: &'static str, keys: [&'static str; 2]) -> Joined {
    Joined { line, source, keys }
}

const NAMES: [&str; 2] = ["'0007'", "'7'"];

/// A column of keys against the slide `0007`, the crops of it, and what else the lines name.
const ALL: &[Joined] = &[
    joined("gather run --list cases.csv", "mithras/src/report/assign.rs", NAMES),
    joined(
        "detect 0007.tiff {Q} --out new --mpp-table mpp.csv",
        "mithras/src/batch/inputs.rs",
        NAMES,
    ),
    joined("detect 0007.tiff {Q} --out new --only only.csv", "mithras/src/batch/inputs.rs", NAMES),
    joined(
        "detect 0007.tiff {Q} --out new --regions regions",
        "roi/src/assign.rs",
        ["'0007'", "'7.geojson'"],
    ),
    joined("recount run --reviews anna", "review/src/view/recount.rs", NAMES),
    joined(
        "evaluate detections --predictions run --truth truth.csv",
        "evaluation/src/evaluate/mod.rs",
        NAMES,
    ),
    joined(
        "evaluate detections --predictions run --truth own.csv --only 7",
        "evaluation/src/evaluate/truth.rs",
        NAMES,
    ),
    joined(
        "evaluate classification --predictions p.csv --labels l.csv",
        "evaluation/src/evaluate/classification/items.rs",
        ["'0007.png'", "'7.png'"],
    ),
    joined(
        "evaluate robustness --images pics --no-figures --mpp 0.25 {Q} --changes clean --within areas.csv --out rob",
        "evaluation/src/robustness/areas.rs",
        NAMES,
    ),
    joined(
        "survival study --counts counts.csv --clinical clinical.csv --join slide=id --time t --event e \
         --density-column density_per_20_mm2 --out study",
        "outcome/src/cohort.rs",
        ["'0007'", "'10'"],
    ),
    joined(
        "corpus build 0007.tiff --preset tcga-mf-pseudo --no-tumour-filter {Q} --cohort BRCA --out built \
         --table slides.csv",
        "construct/src/exclude.rs",
        NAMES,
    ),
    joined(
        "corpus build 0007.tiff --preset tcga-mf-pseudo --no-tumour-filter {Q} --cohort BRCA --out built \
         --exclude no.csv",
        "construct/src/exclude.rs",
        NAMES,
    ),
    joined(
        "corpus build 0007.tiff --preset tcga-mf-pseudo --no-tumour-filter {Q} --cohort BRCA --out built2 \
         --mpp-table mpp.csv",
        "mithras/src/batch/inputs.rs",
        NAMES,
    ),
    joined(
        "corpus import --format csv other.csv --images pics --mpp 0.25 --crop 64 --out crops2",
        "regions/src/image_index.rs",
        ["'0007.png'", "'7.png'"],
    ),
    joined(
        "corpus import --kind regions --format csv other.csv --images pics --mpp 0.25 --out regions2",
        "regions/src/image_index.rs",
        ["'0007.png'", "'7.png'"],
    ),
    joined(
        "corpus import --kind regions --format csv boxes.csv --images pics --mpp-table mpp.csv --mpp 0.25 --out r3",
        "regions/src/dataset/build.rs",
        ["'0007.png'", "'7'"],
    ),
    joined(
        "corpus import --format csv boxes.csv --images pics --mpp 0.25 --crop 64 --out crops3 --only-images list.csv",
        "regions/src/annotations/select.rs",
        ["'0007.png'", "'7-.png'"],
    ),
    joined(
        "corpus import --format csv boxes.csv --images pics --mpp 0.25 --crop 64 --out crops3 --splits split.csv",
        "regions/src/annotations/select.rs",
        ["'0007.png'", "'7-.png'"],
    ),
    joined(
        "corpus split sets --splits folds.csv --out folds.json",
        "regions/src/annotations/select.rs",
        ["'0007.png'", "'7-.png'"],
    ),
];

/// Sources whose join needs a training, a folder of experiments or a reviewer: the file and the test that has it.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "crops/src/transform.rs",
        "crates/regions/tests/reshape.rs",
        "labels_given_by_experts_are_interchanged_by_held_out_scores",
    ),
    (
        "crops/src/audit/tally.rs",
        "crates/regions/tests/reshape.rs",
        "verdicts_survive_crashes_and_can_be_undone",
    ),
    (
        "experiments/src/report/compare.rs",
        "crates/experiments/src/report/compare.rs",
        "models_of_other_slides_are_not_compared",
    ),
    (
        "experiments/src/dataset/check.rs",
        "crates/experiments/tests/experiments.rs",
        "a_folder_is_counted_by_tumour_type_and_missing_images_are_named",
    ),
    // A table of folds whose names were all found, and that lacks some of the data.
    (
        "regions/src/folds/deal.rs",
        "crates/regions/src/folds/tests.rs",
        "a_published_split_becomes_folds",
    ),
    (
        "train/src/bench/figure.rs",
        "crates/train/src/bench/figure.rs",
        "every_encoder_that_was_timed_is_named_within_the_picture",
    ),
    (
        "train/src/data.rs",
        "crates/training/tests/detector_chain.rs",
        "pseudo_labels_of_a_detector_mark_what_was_not_labelled",
    ),
    (
        "train/src/finetune.rs",
        "crates/train/tests/loops.rs",
        "mined_places_of_the_left_out_slide_are_refused",
    ),
    (
        "train/src/protocol/teacher.rs",
        "crates/train/src/protocol/teacher.rs",
        "a_table_of_other_items_is_refused_with_both_sides",
    ),
];

#[test]
fn tables_that_do_not_meet_name_both_sides_and_the_rule() {
    let dir = place();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    fs::create_dir(at.join("run/reviews")).unwrap();
    fs::rename(at.join("run/0007"), at.join("run/one")).unwrap();
    let review = review_of(at).replace("\"one\"", "\"7\"");
    fs::rename(at.join("run/one"), at.join("run/0007")).unwrap();
    write("run/reviews/anna.jsonl", &review);
    write("cases.csv", "slide,case\n7.tiff,K1\n");
    write("only.csv", "slide\n7\n");
    write("mpp.csv", "slide,mpp\n7,0.25\n");
    write("truth.csv", "slide,x,y\n7,375,335\n");
    write("own.csv", "slide,x,y\n0007,375,335\n");
    write("p.csv", "file,class,p_a,p_b\n0007.png,a,0.9,0.1\n");
    write("l.csv", "file,truth\n7.png,a\n");
    write("areas.csv", "slide,x_px,y_px,width_px,height_px\n7,0,0,10,10\n");
    write("slides.csv", "slide,cohort,patient\n7,BRCA,P1\n");
    write("no.csv", "slide,7\n");
    write("boxes.csv", "image,x,y,label\n0007.png,90,90,mf\n");
    write("other.csv", "image,x,y,label\n7.png,90,90,mf\n");
    write("list.csv", "image\n7-.png\n");
    write("split.csv", "image,split\n7-.png,train\n");
    write("folds.csv", "image,fold\n7-.png,a\n");
    let mut counts = "slide,hotspot_count,density_per_20_mm2\n".to_owned();
    let mut clinical = "id,t,e\n".to_owned();
    for k in 7..19 {
        counts += &format!("{k:04},{},{}\n", k % 5, k % 7);
        clinical += &format!("{k},{k},{}\n", k % 2);
    }
    write("counts.csv", &counts);
    write("clinical.csv", &clinical);
    fs::create_dir(at.join("regions")).unwrap();
    write("regions/7.geojson", r#"{"type": "FeatureCollection", "features": []}"#);
    fs::create_dir(at.join("pics")).unwrap();
    let flat = image::RgbImage::from_pixel(400, 300, image::Rgb([244, 243, 244]));
    flat.save(at.join("pics/0007.png")).unwrap();
    let sets =
        "corpus import --kind regions --format csv boxes.csv --images pics --mpp 0.25 --out sets";
    let out = mithras(at, sets);
    assert!(out.status.success(), "{}", output_text(&out));
    let q = format!("--model {} --engine rten --threads 1 -q", tiny());
    for Joined { line, keys, .. } in ALL {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ").replace("{Q}", &q);
        let printed = output_text(&mithras(at, &words));
        for word in keys.iter().copied().chain(["would match", "leading zeros"]) {
            assert!(printed.contains(word), "{line}: `{word}` is not in: {printed}");
        }
    }
}

/// No join in the sources without a line or a test.
#[test]
fn every_join_is_tried() {
    let root = testkit::workspace();
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(root.join("crates")).unwrap().map(|f| f.unwrap().path()) {
        for file in base::walk::files(&folder.join("src"), &|_| true).unwrap() {
            let Ok(source) = fs::read_to_string(&file) else { continue };
            if source.contains("Unmatched::between(") || source.contains("Unmatched::from_keys(") {
                let short = file.strip_prefix(root.join("crates")).unwrap();
                found.insert(short.to_str().unwrap().to_owned());
            }
        }
    }
    let here = ALL.iter().map(|j| j.source).chain(ELSEWHERE.iter().map(|e| e.0));
    let tried: BTreeSet<String> = here.map(str::to_owned).collect();
    found.remove("base/src/table/join.rs");
    assert_eq!(found, tried, "sources that join, and those that are tried");
    for (_, file, test) in ELSEWHERE {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
    }
}
