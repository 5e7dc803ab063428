//! Remedies in texts of their own (`"save it as PNG or TIFF"`), which errors put behind what is wrong: entries and
//! cases like those of [`crate::remedies_prose`].

use crate::remedies::place;
use crate::remedies_prose::How::{Case, MayNot, Test};
use crate::remedies_prose::{Followed, How, case, follow};
use std::fs;

/// Every remedy in a text of its own, as in [`crate::remedies_prose`].
pub(crate) const ALONE: &[(&str, &str, How)] = &[
    (
        "name the package with --encoder",
        "cli",
        Test(
            "crates/cli/tests/embed_cli.rs",
            "crops_go_to_parquet_and_what_does_not_fit_is_reported",
            "name the package with --encoder",
            "&[\"--encoder\", s(&made)]",
        ),
    ),
    (
        "name --positive, or --text with --tokenizer",
        "cli",
        Test(
            "crates/cli/tests/encoder_weights.rs",
            "encoders_with_a_head_become_classifiers",
            "name --positive, or --text with --tokenizer",
            "\"--positive\", \"TUM\"",
        ),
    ),
    ("name the tumour filter with --tumour-filter DIR", "cli", Case),
    (
        "name two filters with",
        "cli",
        Test(
            "crates/cli/tests/corpus_build.rs",
            "two_filters_in_one_pass_give_the_strata_of_the_audit",
            "name two filters with --tumour-filter DIR",
            "build(\"tumour-tiles\", &apart, &filters)",
        ),
    ),
    ("name --candidates-from SCORE", "cli", MayNot("if they may rise")),
    (
        "take the precision f16",
        "encoders",
        Test(
            "crates/encoders/src/onnx/size.rs",
            "giants_are_refused_as_one_file_and_the_huge_ones_halved",
            "take the precision f16",
            "check_size(name, WeightKind::F16)",
        ),
    ),
    ("save its state_dict with torch.save", "encoders", MayNot("if PyTorch loads it")),
    ("export it again", "encoders", MayNot("if its source is whole")),
    ("convert it to f32", "encoders", MayNot("if its values fit")),
    ("copy the package again", "infer", MayNot("if its source is whole")),
    ("fetch the whole folder again", "encoders", MayNot("if its source is whole")),
    (
        "save it as f32 (in PyTorch",
        "encoders",
        Test(
            "crates/net/tests/foreign.rs",
            "f16_is_converted_and_anything_else_but_f32_refused",
            "save it as f32",
            "as_kind(Kind::Float)",
        ),
    ),
    ("state the words that mean a figure", "evaluation", Case),
    ("state it as well if it means a figure", "evaluation", MayNot("if it means a figure")),
    (
        "pip install onnxruntime",
        "infer",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install onnxruntime, or name the library itself",
            "assert_eq!(error(&with, engine), \"\"",
        ),
    ),
    ("pip install onnxruntime-gpu", "infer", MayNot("if this machine has an NVIDIA GPU")),
    (
        "pip install onnxruntime onnxruntime-ep-openvino",
        "infer",
        Test(
            "crates/cli/tests/doctor.rs",
            "the_plug_in_of_openvino_is_advised_where_it_is_missing_alone",
            "pip install onnxruntime onnxruntime-ep-openvino",
            "link(\"onnxruntime_ep_openvino\")",
        ),
    ),
    ("take the engine openvino", "infer", MayNot("which may run it")),
    (
        "pip install openvino",
        "infer",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install openvino, or name libopenvino_c",
            "assert_eq!(error(&with, engine), \"\"",
        ),
    ),
    ("take the engine {other}", "infer", MayNot("which may run it")),
    ("install the training build", "infer", Case),
    ("take the engine rten", "infer", MayNot("which may run it and needs nothing")),
    (
        "pip install openvino: faster than rten",
        "mithras",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install openvino: faster",
            "advice(&with)",
        ),
    ),
    (
        "pip install openvino: faster than the embedded",
        "mithras",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install openvino: faster",
            "advice(&with)",
        ),
    ),
    (
        "pip install onnxruntime: faster",
        "mithras",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install onnxruntime: faster",
            "advice(&with)",
        ),
    ),
    (
        "pip install openslide-bin: NDPI",
        "mithras",
        Test(
            "crates/cli/tests/doctor.rs",
            "what_pip_installs_is_found_and_not_advised_any_more",
            "pip install openslide-bin: NDPI",
            "advice(&with)",
        ),
    ),
    ("report it if it happens again", "net", MayNot("if it happens again")),
    ("export it again", "net", MayNot("if its source is whole")),
    ("use the preset it was made with", "net", MayNot("if you have it")),
    ("give a package of the preset's network", "net", MayNot("if you have one")),
    ("name its columns x, y, width, height", "regions", Case),
    ("import it as `midog-json`", "regions", Case),
    (
        "import it as `coco`",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "coco_and_midog_are_not_confused",
            "import it as `coco`",
            "text(\"coco\", \"a.json\", &coco",
        ),
    ),
    (
        "save it upright",
        "slide",
        Test(
            "crates/slide/tests/layouts.rs",
            "turned_images_are_refused_everywhere_and_0_means_upright",
            "save it upright, with orientation 1",
            "for o in [0, 1]",
        ),
    ),
    (
        "save the picture that is meant",
        "slide",
        Test(
            "crates/slide/tests/layouts.rs",
            "further_pictures_of_png_and_jpeg_are_refused_or_named",
            "save the picture that is meant in a file of its own",
            "drawn.file(\"own.jpg\", &whole)",
        ),
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
            "write the pictures as pages of one TIFF",
            "fs::write(&stack, pages)",
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
    (
        "leave one of them in the folder",
        "slide",
        Test(
            "crates/slide/tests/dicom.rs",
            "two_pictures_of_one_size_and_several_scenes_are_refused",
            "leave one of them in the folder",
            "remove_file(dir.path().join(\"2.dcm\"))",
        ),
    ),
    (
        "leave the files of one scene in the folder",
        "slide",
        Test(
            "crates/slide/tests/dicom.rs",
            "two_pictures_of_one_size_and_several_scenes_are_refused",
            "leave the files of one scene in the folder",
            "remove_file(dir.path().join(\"2.dcm\"))",
        ),
    ),
    (
        "state which class is the positive one",
        "train",
        Test(
            "crates/cli/tests/train_protocol.rs",
            "folders_to_folds_to_test_to_package",
            "state which class is the positive one",
            "\"positive=\\\"marked\\\"\"",
        ),
    ),
    (
        "take the provider cpu",
        "training",
        Test(
            "crates/training/src/torch.rs",
            "without_a_gpu_the_provider_cpu_runs",
            "take the provider cpu",
            "on(Provider::Cpu)",
        ),
    ),
    (
        "give a number from 0, or `final`",
        "training",
        Test(
            "crates/training/src/chain/inputs.rs",
            "models_are_of_a_fold_by_its_number_or_final",
            "give a number from 0, or `final`",
            "(\"final\", None)",
        ),
    ),
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
        "such as an error message of a server; name the slide file itself",
        "echo 'error 404: not found' >page.svs; $M slide info page.svs",
        "true",
        "$M slide info small.svs",
    ),
    case(
        "as a copy leaves them that was interrupted; copy it again from its source",
        "head -c 4096 /dev/zero >zeros.svs; $M slide info zeros.svs",
        "cp small.svs zeros.svs",
        "$M slide info zeros.svs",
    ),
    case(
        "fetch the file with `git lfs pull`",
        "printf 'version https://git-lfs.github.com/spec/v1\\n' >lfs.svs; $M slide info lfs.svs",
        "cp small.svs lfs.svs",
        "$M slide info lfs.svs",
    ),
    case(
        "save it as PNG or TIFF",
        "printf 'GIF89a' >drawn.gif; $M slide info drawn.gif",
        "cp flat.png drawn.png",
        "$M slide info drawn.png",
    ),
    case(
        "install the training build (`mithras train` prints how), or take another engine",
        "$M detect flat.png --mpp 0.25 --threads 1 -q --model m --engine torch --out torch",
        "true",
        "$M detect flat.png --mpp 0.25 --threads 1 -q --model m --engine rten --out torch",
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
