//! Remedies in texts of their own (`"save it as PNG or TIFF"`), which errors put behind what is wrong: entries and
//! cases like those of [`crate::remedies_prose`].

use crate::remedies::place;
use crate::remedies_prose::How::{Case, MayNot, Test};
use crate::remedies_prose::{Followed, How, case, follow};
use std::fs;

const LAYOUTS: &str = "crates/slide/tests/layouts.rs";
const LABELS: (&str, &str) =
    ("crates/cli/tests/remedies.rs", "remedies_of_corpora_and_labels_help");
const ENGINES: (&str, &str) = ("crates/infer/tests/engines.rs", "auto_runs_and_reports_what");
const PROTOCOL: (&str, &str) =
    ("crates/cli/tests/train_protocol.rs", "folders_to_folds_to_test_to_package");
const SCENES: (&str, &str) =
    ("crates/slide/tests/dicom.rs", "two_pictures_of_one_size_and_several_scenes_are_refused");
const DETECTOR: (&str, &str) = (
    "crates/training/tests/detector_chain.rs",
    "a_drawn_dataset_becomes_a_package_and_a_killed_run_continues",
);
const HEADS: (&str, &str) =
    ("crates/cli/tests/encoder_weights.rs", "encoders_with_a_head_become_classifiers");
const WEIGHTS: (&str, &str) =
    ("crates/cli/tests/embed_cli.rs", "weights_become_a_package_without_libtorch");

/// Every remedy in a text of its own, as in [`crate::remedies_prose`].
pub(crate) const ALONE: &[(&str, &str, How)] = &[
    (
        "name the package with --encoder",
        "cli",
        Test(
            "crates/cli/tests/embed_cli.rs",
            "crops_go_to_parquet_and_what_does_not_fit_is_reported",
        ),
    ),
    ("name --weights, --encoder and --mpp", "cli", Test(HEADS.0, HEADS.1)),
    ("name --positive, or --text with --tokenizer", "cli", Test(HEADS.0, HEADS.1)),
    ("name --onnx, or --weights with --encoder", "cli", Test(WEIGHTS.0, WEIGHTS.1)),
    ("name the tumour filter with --tumour-filter DIR", "cli", Case),
    (
        "name two filters with",
        "cli",
        Test(
            "crates/cli/tests/corpus_build.rs",
            "two_filters_in_one_pass_give_the_strata_of_the_audit",
        ),
    ),
    ("name --candidates-from SCORE", "cli", MayNot("if they may rise")),
    (
        "take the precision f16",
        "encoders",
        Test(
            "crates/encoders/src/onnx/size.rs",
            "giants_are_refused_as_one_file_and_the_huge_ones_halved",
        ),
    ),
    ("save its state_dict with torch.save", "encoders", MayNot("if PyTorch loads it")),
    ("export it again", "encoders", MayNot("if its source is whole")),
    ("convert it to f32", "encoders", MayNot("if its values fit")),
    ("fetch the whole folder again", "encoders", MayNot("if its source is whole")),
    (
        "save it as f32 (in PyTorch",
        "encoders",
        Test("crates/net/tests/foreign.rs", "f16_is_converted_and_anything_else_but_f32_refused"),
    ),
    ("state the words that mean a figure", "evaluation", Test(LABELS.0, LABELS.1)),
    ("state it as well if it means a figure", "evaluation", MayNot("if it means a figure")),
    ("pip install onnxruntime", "infer", Test(ENGINES.0, ENGINES.1)),
    ("pip install openvino", "infer", Test(ENGINES.0, ENGINES.1)),
    ("take the engine {other}", "infer", MayNot("which may run it")),
    ("install the training build", "infer", Test(ENGINES.0, ENGINES.1)),
    ("take the engine rten", "infer", MayNot("which may run it and needs nothing")),
    ("pip install openvino: faster", "mithras", Test(ENGINES.0, ENGINES.1)),
    ("pip install onnxruntime: faster", "mithras", Test(ENGINES.0, ENGINES.1)),
    (
        "pip install openslide-bin: NDPI",
        "mithras",
        Test("crates/slide/tests/parity.rs", "drawn_slides_equal_openslide"),
    ),
    ("report it if it happens again", "net", MayNot("if it happens again")),
    ("export it again", "net", MayNot("if its source is whole")),
    ("use the preset it was made with", "net", MayNot("if you have it")),
    ("give a package of the preset's network", "net", MayNot("if you have one")),
    ("name its columns x, y, width, height", "regions", Case),
    (
        "import it as",
        "regions",
        Test("crates/regions/tests/import.rs", "coco_and_midog_are_not_confused"),
    ),
    (
        "save it upright",
        "slide",
        Test(LAYOUTS, "turned_images_are_refused_everywhere_and_0_means_upright"),
    ),
    (
        "save the picture that is meant",
        "slide",
        Test(LAYOUTS, "further_pictures_of_png_and_jpeg_are_refused_or_named"),
    ),
    ("export one focal plane", "slide", MayNot("if its program can")),
    ("save it as 8-bit RGB JPEG or as PNG", "slide", Case),
    ("export it as 8-bit RGB", "slide", MayNot("if its program can")),
    (
        "write the pictures as pages of one TIFF",
        "slide",
        Test(
            "crates/cli/tests/challenge.rs",
            "track_2_classifies_every_page_of_the_stack_in_its_order",
        ),
    ),
    ("export it as RGB", "slide", MayNot("if its program can")),
    ("install OpenSlide 4", "slide", MayNot("which may read it")),
    ("name a slide or an image file", "slide", Case),
    ("download the slide first", "slide", MayNot("if the server allows it")),
    ("check the file", "slide", MayNot("which may be incomplete")),
    ("download the slide again", "slide", MayNot("if you have the permissions that it needs")),
    ("name the slide file itself", "slide", Case),
    ("copy it again from its source", "slide", Case),
    ("fetch the file with `git lfs pull`", "slide", Case),
    ("unpack it and name the slide inside", "slide", Case),
    ("save it as PNG or TIFF", "slide", Case),
    ("convert it to one 8-bit RGB picture", "slide", MayNot("if you have a converter")),
    ("name a file of the slide's levels", "slide", MayNot("if there is one")),
    ("leave one of them in the folder", "slide", Test(SCENES.0, SCENES.1)),
    ("leave the files of one scene in the folder", "slide", Test(SCENES.0, SCENES.1)),
    ("state which class is the positive one", "train", Test(PROTOCOL.0, PROTOCOL.1)),
    (
        "take the provider cpu",
        "training",
        Test("crates/cli/tests/remedies.rs", "remedies_of_slides_and_runs_help"),
    ),
    ("give a number from 0, or `final`", "training", Test(DETECTOR.0, DETECTOR.1)),
];

/// Errors whose remedy is a text of its own, and the input that it helps.
pub(crate) const CASES: &[Followed] = &[
    case(
        "name the tumour filter with --tumour-filter DIR, or keep all tissue with --no-tumour-filter",
        "$M corpus build one.tiff --preset tcga-mf-pseudo --cohort BRCA --model m $Q --out unfiltered",
        "true",
        "$M corpus build one.tiff --preset tcga-mf-pseudo --cohort BRCA --model m $Q --no-tumour-filter \
         --out unfiltered",
    ),
    case(
        "name its columns x, y, width, height, or state that they are xywh",
        "printf 'image,xmin,ymin,xmax,ymax,label\nflat.png,60,30,50,50,mf\nflat.png,9,20,50,50,mf\n' >so.csv; \
         $M corpus import --format csv so.csv $IM so",
        "sed -i 1s/.*/image,x,y,width,height,label/ so.csv",
        "$M corpus import --format csv so.csv --boxes xywh $IM so",
    ),
    case(
        "save it as 8-bit RGB JPEG or as PNG",
        "$M slide info deep.jpg",
        "cp flat.png deep.png",
        "$M slide info deep.png",
    ),
    case(
        "name a slide or an image file; a multi-file slide is named by its main file",
        "printf '\\001\\002\\003\\004abcdefgh' >odd.bin; $M slide info odd.bin",
        "true",
        "$M slide info flat.png",
    ),
    case(
        "unpack it and name the slide inside",
        "gzip -c small.svs >packed.svs; $M slide info packed.svs",
        "gzip -d <packed.svs >inside.svs",
        "$M slide info inside.svs",
    ),
    case(
        "save it as PNG or TIFF",
        "printf 'GIF89a' >drawn.gif; $M slide info drawn.gif",
        "cp flat.png drawn.png",
        "$M slide info drawn.png",
    ),
];

#[test]
fn remedies_in_texts_of_their_own_help() {
    let dir = place();
    let at = dir.path();
    fs::write(at.join("km.csv"), "time,event\n1,1\n2,0\n3,1\n").unwrap();
    let plain = testkit::workspace().join("crates/slide/tests/golden/slides/flat_444.jpg");
    let mut deep = fs::read(plain).unwrap();
    let frame = deep.windows(2).position(|mark| mark == [0xFF, 0xC0]).unwrap();
    deep[frame + 4] = 12;
    fs::write(at.join("deep.jpg"), deep).unwrap();
    follow(at, CASES);
}
