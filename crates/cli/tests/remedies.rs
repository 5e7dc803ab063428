//! Every remedy that an error names is followed on the input that provoked it, and helps.

use crate::remedies_prose::check_test;
use crate::upgrading::{former, output_text, review_of, tiny};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A line that fails, the words it must have (several parts are separated by ` ... `), and the same with the remedy,
/// which must succeed. Words in braces are short forms, which `text` writes out.
struct Case {
    /// The variant of `base::remedy::Remedy`, or of its `Setting`.
    remedy: &'static str,
    fails: &'static str,
    words: &'static str,
    works: &'static str,
}

const fn case(
    remedy: &'static str,
    fails: &'static str,
    words: &'static str,
    works: &'static str,
) -> Case {
    Case { remedy, fails, words, works }
}

const TABLES: &[Case] = &[
    case("Level", "survival km {T} --level 2", "--level", "survival km {T} --level 0.9"),
    case("Times", "survival km {T} --at=-5", "--at", "survival km {T} --at=5"),
    case(
        "EventValue",
        "survival km --table t.csv --time t --event answer",
        "--event-value",
        "survival km --table t.csv --time t --event answer --event-value yes",
    ),
    case(
        "Coding",
        "survival cox {T} --covariates lost",
        "--missing",
        "survival cox {T} --covariates lost --missing lost",
    ),
    case(
        "Categorical",
        "survival cox {T} --covariates id",
        "--categorical",
        "survival km {T} --covariates id --categorical id",
    ),
    case(
        "Covariates",
        "survival lrt {T} --covariates x --add x",
        "--add",
        "survival lrt {T} --covariates x --add z",
    ),
    // The message names the verb that takes them.
    case(
        "Weights",
        "survival logrank {T} --covariates g --weights w",
        "use a Cox model and its score test",
        "survival cox {T} --covariates g --weights w",
    ),
    case(
        "Patient",
        "survival logrank {T} --covariates g --cluster p",
        "a Cox model with clusters",
        "survival cox {T} --covariates g --cluster p",
    ),
    case(
        "Rho",
        "survival logrank {T} --covariates g --rho nan",
        "--rho",
        "survival logrank {T} --covariates g --rho 1",
    ),
    case(
        "Cut",
        "survival logrank {T} --covariates id",
        "--cut",
        "survival logrank {T} --covariates x --cut median",
    ),
    case(
        "Fit",
        "survival cindex {T} --covariates g",
        "--fit",
        "survival cindex {T} --covariates g --fit",
    ),
    case(
        "Protective",
        "survival cindex {T} --covariates x --fit --protective",
        "--protective",
        "survival cindex {T} --covariates x --protective",
    ),
    case(
        "Scheme",
        "survival grade --counts n.csv --scheme nope",
        "--scheme",
        "survival grade --counts n.csv --scheme nottingham",
    ),
    case(
        "FieldDiameter",
        "survival grade --counts n.csv --scheme nottingham --field-diameter 9",
        "--field-diameter",
        "survival grade --counts n.csv --scheme nottingham --field-diameter 0.55",
    ),
    case(
        "Area",
        "survival grade --counts n.csv --scheme nottingham --area 0",
        "--area",
        "survival grade --counts n.csv --scheme nottingham --area 3",
    ),
    case("TimeScale", "{S} --out s1 --time-scale 0", "--time-scale", "{S} --out s1 --time-scale 2"),
    case("Replicates", "{S} --out s2 --replicates 0", "--replicates", "{S} --out s2"),
    case("Horizon", "{S} --out s0 --horizon 0", "--horizon", "{S} --out s0 --horizon 5"),
    case(
        "Methods",
        "{S} --out s3 --method MiTHras=n.csv",
        "--method",
        "{S} --out s3 --method other=n.csv",
    ),
    case("Training", "{S} --out s4 --train p=none", "--train", "{S} --out s4 --train p=train"),
    case(
        "Out",
        "{S} --out s4 --time-scale 3",
        "--overwrite",
        "{S} --out s4 --time-scale 3 --overwrite",
    ),
    case("Truth", "{C} c.csv", "--truth", "{C} c.csv --truth seen"),
    case(
        "Predicted",
        "{C} l.csv --truth truth",
        "--predicted",
        "{C} l.csv --truth truth --predicted answer",
    ),
    case("Positive", "{C} k.csv --positive c", "--positive", "{C} k.csv --positive b"),
    case(
        "Threshold",
        "{C} k.csv --threshold 0.5",
        "p_<class> columns",
        "{C} c.csv --truth seen --threshold 0.5",
    ),
    case("Key", "{C} k.csv --labels l.csv", "--key", "{C} k.csv --labels l.csv --key who"),
];

const SLIDES: &[Case] = &[
    case(
        "GiveResolution",
        "slide tissue flat.png --out g",
        "--mpp 0.25",
        "slide tissue flat.png --out g --mpp 0.25",
    ),
    case(
        "ForceResolution",
        "detect small.svs {Q} --mpp-table mpp.csv --out f",
        "--force-mpp",
        "detect small.svs {Q} --mpp-table mpp.csv --out f --resume --force-mpp",
    ),
    case(
        "RegionResolution",
        "detect {F} --out r --regions mask.png",
        "state its resolution ... --regions-mpp 8",
        "detect {F} --out r --regions mask.png --regions-mpp 2.5",
    ),
    case(
        "RegionClasses",
        "detect {F} --out c --regions r.geojson --region-class Stroma",
        "--region-class",
        "detect {F} --out c --regions r.geojson --region-class Tumor",
    ),
    case(
        "FirstStagePoint",
        "detect {F} --out p --stages 1",
        "too low without the second; name one ... --operating-point SEG,0",
        "detect {F} --out p --stages 1 --operating-point 0.3,0",
    ),
    case(
        "Limit",
        "slide info small.svs --limit pixels=1000",
        "--limit",
        "slide info small.svs --limit pixels=1e9",
    ),
    case(
        "OperatingPoint",
        "detect flat.png --mpp 0.25 --threads 1 -q --model m --engine rten --out point --operating-point missing",
        "--operating-point",
        "detect flat.png --mpp 0.25 --threads 1 -q --model m --engine rten --out point --operating-point 0.5,0.6",
    ),
    case(
        "Engines",
        "detect flat.png --mpp 0.25 --threads 1 -q --model m --out doctor --engine onnxruntime --engine-library nowhere.so",
        "mithras doctor",
        "detect flat.png --mpp 0.25 --threads 1 -q --model m --out doctor --engine rten",
    ),
    case(
        "FirstStage",
        "detect flat.png --mpp 0.25 --engine rten --threads 1 -q --model single --out n",
        "--stages 1",
        "detect flat.png --mpp 0.25 --engine rten --threads 1 -q --model single --out n --stages 1",
    ),
    case(
        "RedoSlide",
        "detect one.tiff {Q} --out later --resume",
        "--overwrite",
        "detect one.tiff {Q} --out later --overwrite",
    ),
    case(
        "Replace",
        "detect one.tiff {Q} --out changed --resume",
        "--overwrite",
        "detect one.tiff {Q} --out changed --overwrite",
    ),
    case(
        "WithoutScheduler",
        "slurm --out s --list slides.csv",
        "do this where jobs are submitted from, or write the job file alone ... --dry-run",
        "slurm --out s --list slides.csv --dry-run",
    ),
    case(
        "UnreadShare",
        "detect {F} --out u --max-unread 2",
        "--max-unread",
        "detect {F} --out u --max-unread 0.5",
    ),
    case(
        "ContinueOrReplace",
        "detect {F} --out u --max-unread 0.5",
        "choose whether to resume or to overwrite them ... --resume",
        "detect {F} --out u --max-unread 0.5 --resume",
    ),
    case(
        "ContinueOrReplace",
        "detect {F} --out u --max-unread 0.5",
        "choose whether to resume or to overwrite them ... --overwrite",
        "detect {F} --out u --max-unread 0.5 --overwrite",
    ),
    case(
        "OtherFolderOrReplace",
        "detect {F} --out u --max-unread 0.4 --resume",
        "--overwrite",
        "detect {F} --out u --max-unread 0.4 --overwrite",
    ),
    case(
        "OtherFolder",
        "detect small.svs {Q} --out u",
        "one folder holds the slides of one configuration ... --out for another folder",
        "detect small.svs {Q} --out v",
    ),
    case(
        "Engine",
        "detect {F} --out e --provider cuda",
        "--provider",
        "detect {F} --out e --provider cpu",
    ),
    case(
        "FolderPerRun",
        "detect flat.png twin/flat.png {Q} --mpp 0.25 --out t",
        "rename one or run them into different folders ... --out, for runs",
        "detect twin/flat.png {Q} --mpp 0.25 --out t",
    ),
    case(
        "ListSlides",
        "detect s3://bucket/cohort/ {Q} --out l",
        "names no object; give the slides one by one, or in a list ... --list",
        "detect --list slides.csv {Q} --mpp 0.25 --out l",
    ),
    case(
        "ContinueDetection",
        "gather lone",
        "run detection again and resume, which writes the record ... mithras detect --resume",
        "detect one.tiff {Q} --out lone --resume",
    ),
    case(
        "SlideFolder",
        "recount run --operating-point 0.2,0.1 --into w",
        "name the folder of the slides ... --slides",
        "recount run --operating-point 0.2,0.1 --into w --slides moved",
    ),
    case(
        "PackageOrThresholds",
        "recount run --operating-point sensitive --into x --model fast",
        "--operating-point 0.5,0.6",
        "recount run --operating-point 0.5,0.6 --into x --slides moved",
    ),
    case(
        "TileResolution",
        "embed small.svs --encoder enc --engine rten --threads 1 -q --out m",
        "give the um/px of tiles ... --tile-mpp",
        "embed small.svs --encoder enc --engine rten --threads 1 -q --out m --tile-mpp 0.5",
    ),
    case("Folder", "{E} --out enc", "--out", "{E} --out enc2"),
    case(
        "DrawnSize",
        "demo --draw-only --out d --size 10,10 --figures 2",
        "--size",
        "demo --draw-only --out d --size 600,600 --figures 2",
    ),
    case(
        "DrawnSize",
        "demo --draw-only --out d3 --size 1000,1000 --figures 2 --tissue-mm2 1",
        "--size",
        "demo --draw-only --out d3 --size 6000,6000 --figures 2 --tissue-mm2 1",
    ),
    case(
        "DrawnFigures",
        "demo --draw-only --out d2 --size 600,600 --figures 4000",
        "--figures",
        "demo --draw-only --out d2 --size 600,600 --figures 2",
    ),
];

const CORPORA: &[Case] = &[
    case(
        "Lenient",
        "corpus import --format csv bad.csv",
        "--lenient",
        "corpus import --format csv bad.csv --lenient",
    ),
    case(
        "Categories",
        "corpus import --format coco coco.json",
        "state what they mean ... --map",
        "corpus import --format coco coco.json --map oddity=mf",
    ),
    case(
        "AssumeClass",
        "corpus import --format csv bare.csv",
        "--assume",
        "corpus import --format csv bare.csv --assume mf",
    ),
    case(
        "BoxOrder",
        "corpus import --format csv box.csv",
        "--boxes xywh",
        "corpus import --format csv box.csv --boxes xywh",
    ),
    case(
        "BoxOrder",
        "corpus import --format coco turned.json --map oddity=mf",
        "import it as `midog-json`",
        "corpus import --format midog-json turned.json --map oddity=mf",
    ),
    case("GiveResolutions", "{R} --out reg", "--mpp", "{R} --out reg --mpp 0.25"),
    case(
        "FigureWords",
        "evaluate detections --predictions run --truth words.csv",
        "state the words that mean a figure ... --figures",
        "evaluate detections --predictions run --truth words.csv --figures wow",
    ),
    case(
        "SampleCounts",
        "audit sample run --slides moved --out au --per x",
        "--per",
        "audit sample run --slides moved --out au --per rejected=1",
    ),
    case(
        "AllowShort",
        "audit sample run --slides moved --out au2",
        "--allow-short",
        "audit sample run --slides moved --out au2 --allow-short",
    ),
    case(
        "MovedSlides",
        "audit sample run --out au3 --per rejected=1",
        "--slides",
        "audit sample run --out au3 --per rejected=1 --slides moved",
    ),
    case(
        "CutFromSlides",
        "audit sample c64 --allow-short --out au4",
        "--slides",
        "audit sample c64 --allow-short --out au4 --slides pics",
    ),
    case(
        "GiveResolution",
        "audit sample cflat --allow-short --out au5 --slides twin",
        "--mpp, e.g. --mpp 0.25",
        "audit sample cflat --allow-short --out au5 --slides twin --mpp 0.25",
    ),
    case(
        "AnyCohort",
        "{B} --out b2 --cohort DRAWN",
        "--any-cohort",
        "{B} --out b2 --cohort DRAWN --any-cohort",
    ),
    case(
        "FilterResolution",
        "{U} other --out b4",
        "convert it with the um/px it is to be used at ... encoders convert --mpp",
        "{U} filter --out b4",
    ),
];

/// Remedies that need a training, a server, a signal or a scheduler: the file, the test that provokes and follows each,
/// and two pieces of that test, as of [`crate::remedies_prose`]'s `Test`.
const ELSEWHERE: &[(&str, [&str; 2], [&str; 2])] = &[
    (
        "PatientRule",
        ["crates/outcome/tests/km_times.rs", "sums_of_a_patients_rows_belong_to_a_study"],
        ["Setting::PatientRule", "plan(PatientRule::Max)"],
    ),
    (
        "Package",
        [
            "crates/cli/tests/view/start_page.rs",
            "a_package_without_a_segmenter_is_refused_with_the_flag_that_gives_another",
        ],
        ["no package for detection", "page_with(&tiny"],
    ),
    (
        "HalfPrecision",
        [
            "crates/encoders/src/onnx/size.rs",
            "giants_are_refused_as_one_file_and_the_huge_ones_halved",
        ],
        ["Some(Remedy::HalfPrecision)", "check_size(name, WeightKind::F16)"],
    ),
    (
        "NetworkOutput",
        ["crates/infer/src/onnx/adapt.rs", "what_is_not_an_encoder_is_refused"],
        ["Misfit::Output", "adapt(&two, &named)"],
    ),
    (
        "AnyResolution",
        [
            "crates/mithras/tests/job.rs",
            "a_resolution_that_the_model_is_not_made_for_is_refused_or_marked",
        ],
        ["um/px is outside", "-forced\"), r, true)"],
    ),
    (
        "Cohorts",
        [
            "crates/cli/tests/corpus_build.rs",
            "what_is_excluded_never_enters_and_failures_stay_alone",
        ],
        ["has no cohort", "[\"--cohort\", \"BRCA\", s(&folder)"],
    ),
    (
        "TumourClass",
        ["crates/cli/tests/corpus_build.rs", "a_tile_is_kept_when_all_sixteen_patches_are_tumour"],
        ["smooth_muscle", "of(\"stroma\")"],
    ),
    (
        "KeepEngine",
        [
            "crates/cli/tests/precision.rs",
            "slides_of_two_engines_are_in_one_table_and_differ_by_no_more_than_stated",
        ],
        ["see --accept-engine", "resume_with(&[\"--accept-engine\"])"],
    ),
    (
        "Continue",
        ["crates/cli/tests/scale.rs", "ctrl_c_and_a_scheduler_s_wish_leave_tables_of_what_is_done"],
        ["--resume, which keeps finished slides", "&[\"--quiet\", \"--resume\"]"],
    ),
    (
        "ReviewAudit",
        ["crates/cli/tests/audit.rs", "the_server_is_for_this_machine_and_reveals_nothing"],
        ["see mithras audit serve", "serve(&out.join(\"package\"))"],
    ),
    (
        "EncoderName",
        ["crates/cli/tests/embed_cli.rs", "weights_are_embedded_as_by_their_package"],
        ["see --encoder", "\"--encoder\", \"lunit-vits16\""],
    ),
    (
        "PartialWeights",
        [
            "crates/train/tests/start.rs",
            "a_file_that_fits_in_part_is_refused_by_every_loop_unless_a_part_is_allowed",
        ],
        ["names_what_is_missing", "options(&out, &part, true)"],
    ),
    (
        "StartingWeights",
        ["crates/cli/tests/train_protocol.rs", "folders_to_folds_to_test_to_package"],
        ["--init FILE", "&[\"--init\", &weights]"],
    ),
    (
        "PositiveClass",
        ["crates/cli/tests/train_protocol.rs", "folders_to_folds_to_test_to_package"],
        ["--set positive=CLASS", "\"positive=\\\"marked\\\"\""],
    ),
    (
        "ContinueTraining",
        ["crates/cli/tests/train_protocol.rs", "folders_to_folds_to_test_to_package"],
        ["--resume to continue", "train(&[\"--resume\"])"],
    ),
    (
        "ScoreAgain",
        ["crates/cli/tests/train_protocol.rs", "folders_to_folds_to_test_to_package"],
        ["scored on this test set before", "&[\"--again\"]"],
    ),
    (
        "AllowSeen",
        [
            "crates/training/tests/detector_chain.rs",
            "a_drawn_dataset_becomes_a_package_and_a_killed_run_continues",
        ],
        ["TrainingError::Seen", "allow_seen: true, ..what.clone()"],
    ),
];

fn text(words: &str) -> Vec<String> {
    let short = [
        ("{T}", "--table t.csv --time t --event e"),
        (
            "{S}",
            "survival study --counts n.csv --clinical t.csv --join slide=id --time t --event e \
             --density-column density_per_20_mm2 --replicates 20",
        ),
        ("{C}", "evaluate classification --predictions"),
        ("{F}", "flat.png --mpp 0.25 {Q}"),
        ("{Q}", "--engine rten --threads 1 -q --model m"),
        (
            "{E}",
            "encoders convert --onnx e.onnx --image 32 --mean 0.5,0.5,0.5 --std 0.5,0.5,0.5 --pooling x \
             --license MIT --name e",
        ),
        ("{R}", "corpus import --kind regions --format csv odd.csv --images twin"),
        (
            "{B}",
            "corpus build flat.png --preset tcga-mf-pseudo --no-tumour-filter --mpp 0.25 --threads 1",
        ),
        (
            "{U}",
            "corpus build flat.png --preset tcga-mf-pseudo --cohort BRCA --mpp 0.25 --threads 1 --tumour-filter",
        ),
    ];
    let full = short.iter().fold(words.to_owned(), |line, (mark, text)| line.replace(mark, text));
    full.split_whitespace().map(str::to_owned).collect()
}

/// Runs a line; of an option that is given twice the last one counts here.
fn run(at: &Path, line: &str) -> Output {
    let mut words = text(line);
    for once in ["--replicates", "--provider"] {
        while words.iter().filter(|w| *w == once).count() > 1 {
            let first = words.iter().position(|w| w == once).unwrap();
            words.drain(first..first + 2);
        }
    }
    let trains = words.iter().any(|w| ["train", "experiment"].contains(&w.as_str()));
    let program = if trains { crate::training_program() } else { crate::program() };
    Command::new(program).current_dir(at).args(words).output().unwrap()
}

/// The words of every error that is followed here.
pub(crate) fn flag_words() -> impl Iterator<Item = &'static str> {
    TABLES.iter().chain(SLIDES).chain(CORPORA).map(|c| c.words)
}

fn follow(at: &Path, cases: &[Case]) {
    for Case { remedy, fails, words, works } in cases {
        let out = run(at, fails);
        let printed = output_text(&out);
        assert!(matches!(out.status.code(), Some(1..=3)), "{remedy}, {fails}: {printed}");
        let parts = words.split(" ... ");
        for part in parts {
            assert!(printed.contains(part), "{remedy}, {fails}: `{part}` is not in: {printed}");
        }
        let out = run(at, works);
        assert!(out.status.success(), "{remedy} does not help, {works}: {}", output_text(&out));
    }
}

#[test]
fn remedies_of_tables_help() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    let mut table = "id,t,e,g,x,z,w,p,answer,lost\n".to_owned();
    let mut counts = "slide,hotspot_count,density_per_20_mm2\n".to_owned();
    for (i, (t, e, g, x)) in [
        (5.0, 1, "b", 1.5),
        (6.0, 1, "a", 0.5),
        (6.0, 0, "b", 2.0),
        (2.5, 1, "b", 3.0),
        (1.0, 1, "a", 1.0),
        (9.0, 0, "a", 0.25),
        (7.0, 1, "a", 2.5),
        (3.0, 1, "b", 0.75),
        (4.0, 0, "a", 1.25),
        (8.0, 1, "b", 1.0),
        (2.0, 1, "a", 4.0),
        (10.0, 1, "b", 0.5),
    ]
    .into_iter()
    .enumerate()
    {
        let part = if i % 2 == 1 { "train" } else { "held" };
        let answer = ["no", "perhaps", "yes"][if e == 1 { 2 } else { i % 2 }];
        let lost = if i == 3 { "lost".to_owned() } else { (i * 5 % 7).to_string() };
        table += &format!("S{i},{t},{e},{g},{x},{},1,{part},{answer},{lost}\n", i * 7 % 5);
        counts += &format!("S{i},{},{}\n", i * 3 % 7, i * 5 % 11);
    }
    write("t.csv", &table);
    write("n.csv", &counts);
    write("c.csv", "file,seen,called,p_a,p_b\n1,a,a,0.9,0.1\n2,b,a,0.6,0.4\n3,b,b,0.2,0.8\n");
    write("k.csv", "who,truth,class\n1,a,a\n2,b,a\n3,b,b\n");
    write("l.csv", "who,truth,answer\n1,a,a\n2,b,b\n3,b,b\n");
    follow(at, TABLES);
}

/// The former run, a flat picture without um/px, and what else the lines name.
pub(crate) fn place() -> tempfile::TempDir {
    let dir = former();
    let at = dir.path();
    let root = testkit::workspace();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    let copy = |from: &Path, to: &str| {
        fs::create_dir(at.join(to)).unwrap();
        for file in fs::read_dir(from).unwrap().map(|f| f.unwrap().path()) {
            if file.is_file() {
                fs::copy(&file, at.join(to).join(file.file_name().unwrap())).unwrap();
            }
        }
    };
    copy(&PathBuf::from(tiny()), "m");
    let filter = root.join("crates/cli/tests/golden/colour_filter");
    copy(&filter, "filter");
    copy(&filter, "other");
    let card = fs::read_to_string(filter.join("card.toml")).unwrap();
    write("other/card.toml", &card.replace("mpp = 0.25", "mpp = 0.3"));
    let flat = image::RgbImage::from_pixel(400, 300, image::Rgb([244, 243, 244]));
    flat.save(at.join("flat.png")).unwrap();
    fs::create_dir(at.join("twin")).unwrap();
    fs::copy(at.join("flat.png"), at.join("twin/flat.png")).unwrap();
    image::GrayImage::from_pixel(40, 30, image::Luma([255])).save(at.join("mask.png")).unwrap();
    let small = root.join("crates/slide/tests/golden/slides/svs_jpeg_420.svs");
    fs::copy(small, at.join("small.svs")).unwrap();
    fs::copy(root.join("crates/features/tests/golden/tiny.onnx"), at.join("e.onnx")).unwrap();
    // A slide's results alone, of a later version, and of a file that has changed.
    for run in ["lone", "later", "changed"] {
        copy(&at.join("run/one"), "copied");
        fs::create_dir(at.join(run)).unwrap();
        fs::rename(at.join("copied"), at.join(run).join("one")).unwrap();
    }
    let change = |run: &str, from: &str, to: &str| {
        let path = at.join(run).join("one/state.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    change("later", "mithras.state/1", "mithras.state/99");
    let state = fs::read_to_string(at.join("changed/one/state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    change("changed", state["input"]["sha256"].as_str().unwrap(), &"0".repeat(64));
    let modified = format!("\"modified\": {}", state["input"]["modified"]);
    change("changed", &modified, "\"modified\": 1");
    // A package of one stage.
    copy(&PathBuf::from(tiny()), "single");
    let card = fs::read_to_string(at.join("single/card.toml")).unwrap();
    let (first, rest) = card.split_once("[classifier]").unwrap();
    let (_, point) = rest.split_once("[operating_point]").unwrap();
    write("single/card.toml", &format!("{first}[operating_point]{point}"));
    fs::remove_file(at.join("single/classifier.onnx")).unwrap();
    fs::create_dir(at.join("run/reviews")).unwrap();
    write("run/reviews/anna.jsonl", &review_of(at));
    write("mpp.csv", "slide,mpp\nsmall,0.5\n");
    write("slides.csv", "slide\nflat.png\n");
    write(
        "r.geojson",
        r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties":
        {"classification": {"name": "Tumor"}}, "geometry": {"type": "Polygon", "coordinates":
        [[[0, 0], [390, 0], [390, 290], [0, 290], [0, 0]]]}}]}"#,
    );
    dir
}

/// Moves the slide of the former run, as somebody does who tidies up; its time of change stays.
fn tidy(at: &Path) {
    fs::create_dir(at.join("moved")).unwrap();
    fs::rename(at.join("one.tiff"), at.join("moved/one.tiff")).unwrap();
}

#[test]
fn remedies_of_slides_and_runs_help() {
    let dir = place();
    let at = dir.path();
    let made = run(at, "{E} --out enc");
    assert!(made.status.success(), "{}", output_text(&made));
    let lost = |c: &&Case| ["SlideFolder", "PackageOrThresholds"].contains(&c.remedy);
    for case in SLIDES {
        if lost(&case) && at.join("one.tiff").exists() {
            tidy(at);
        }
        follow(at, std::slice::from_ref(case));
    }
}

#[test]
fn remedies_of_corpora_and_labels_help() {
    let dir = place();
    let at = dir.path();
    tidy(at);
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    write("bad.csv", "image,x,y,label\nflat.png,20,30,mf\nflat.png,x,50,mf\n");
    write("odd.csv", "image,x,y,label\nflat.png,20,30,mf\nflat.png,60,50,imposter\n");
    write("bare.csv", "image,x,y\nflat.png,20,30\nflat.png,60,50\n");
    write(
        "box.csv",
        "image,x,y,width,height,label\nflat.png,20,30,50,50,mf\nflat.png,60,50,50,50,mf\n",
    );
    write("words.csv", "slide,x,y,label\none,375,335,wow\none,10,10,mimicker\n");
    let boxes = |boxes: [[u32; 4]; 2]| {
        format!(
            r#"{{"images": [{{"id": 1, "file_name": "flat.png", "width": 400, "height": 300}}],
            "categories": [{{"id": 1, "name": "oddity"}}], "annotations": [
            {{"id": 1, "image_id": 1, "category_id": 1, "bbox": {:?}}},
            {{"id": 2, "image_id": 1, "category_id": 1, "bbox": {:?}}}]}}"#,
            boxes[0], boxes[1]
        )
    };
    write("coco.json", &boxes([[10, 20, 50, 50], [90, 20, 50, 50]]));
    write("small.csv", "image,x,y\nsmall.svs,60,60\n");
    fs::create_dir(at.join("pics")).unwrap();
    fs::copy(at.join("small.svs"), at.join("pics/small.svs")).unwrap();
    let cut = "corpus import --format csv small.csv --assume mf --images pics --crop 64 --out c64";
    let made = run(at, cut);
    assert!(made.status.success(), "{}", output_text(&made));
    let cut = "corpus import --format csv bare.csv --assume mf --images twin --mpp 0.25 --crop 64 --out cflat";
    let made = run(at, cut);
    assert!(made.status.success(), "{}", output_text(&made));
    write("turned.json", &boxes([[310, 220, 360, 270], [340, 200, 390, 250]]));
    follow(at, CORPORA);
}

/// No variant without a case, so that a new remedy comes with one.
#[test]
fn every_remedy_is_followed_by_a_test() {
    let root = testkit::workspace();
    let source = fs::read_to_string(root.join("crates/base/src/remedy.rs")).unwrap();
    let body = source.split("pub enum Remedy {").nth(1).unwrap();
    let (remedies, rest) = body.split_once("\n}").unwrap();
    let settings = rest.split("pub enum Setting {").nth(1).unwrap().split_once("\n}").unwrap().0;
    let names = |body: &str| -> BTreeSet<String> {
        let variants =
            body.lines().map(str::trim).filter(|l| l.ends_with(',') && !l.starts_with("//"));
        variants.map(|l| l.trim_end_matches(',').to_owned()).collect()
    };
    let mut wanted = names(remedies);
    wanted.remove("Change(Setting)");
    wanted.extend(names(settings));
    let here = TABLES.iter().chain(SLIDES).chain(CORPORA).map(|c| c.remedy);
    for (_, of, pieces) in ELSEWHERE {
        check_test(&root, *of, *pieces);
    }
    let followed: BTreeSet<String> =
        here.chain(ELSEWHERE.iter().map(|e| e.0)).map(str::to_owned).collect();
    let lacking: Vec<_> = wanted.difference(&followed).collect();
    assert!(lacking.is_empty(), "provoked and followed by no test: {lacking:?}");
    let unknown: Vec<_> = followed.difference(&wanted).collect();
    assert!(unknown.is_empty(), "no such remedy: {unknown:?}");
}
