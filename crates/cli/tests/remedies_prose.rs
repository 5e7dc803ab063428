//! Remedies in the sentence of an error or note (`...; copy it again from its source`), wherever a source has such a
//! text: each is followed by a test, or the sentence itself states the condition on which it helps. Those of sentences
//! that are put together are in [`crate::remedies_built`], those behind a colon in [`crate::remedies_colon`], and
//! texts of their own in [`crate::remedies_alone`].

use crate::remedies::{flag_words, place};
use crate::remedies_alone::{self as alone, ALONE};
use crate::remedies_built::{self as built, BUILT};
use crate::remedies_colon::{self as colon, COLONS};
use crate::upgrading::output_text;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Words with which a remedy begins.
const VERBS: &[&str] = &[
    "add",
    "append",
    "ask",
    "begin",
    "call",
    "cancel",
    "change",
    "check",
    "choose",
    "close",
    "convert",
    "copy",
    "correct",
    "decompress",
    "delete",
    "detect",
    "detection",
    "divide",
    "do",
    "download",
    "draw",
    "evaluate",
    "export",
    "fetch",
    "gather",
    "give",
    "hand",
    "import",
    "install",
    "judge",
    "keep",
    "leave",
    "list",
    "look",
    "lower",
    "make",
    "map",
    "measure",
    "multiply",
    "name",
    "one",
    "open",
    "pip",
    "put",
    "raise",
    "recount",
    "remove",
    "rename",
    "report",
    "restore",
    "resume",
    "review",
    "run",
    "save",
    "separate",
    "set",
    "simplify",
    "spell",
    "start",
    "state",
    "swap",
    "take",
    "train",
    "unpack",
    "unroll",
    "use",
    "wait",
    "write",
];

/// What becomes of a remedy.
pub(crate) enum How {
    /// A case of [`CASES`] whose error has these words, of one sentence alone.
    Case,
    /// The file, the test in it that follows the remedy, and two pieces of that test: what shows the error by words of
    /// its sentence, and what follows the remedy ([`check_test`]).
    Test(&'static str, &'static str, &'static str, &'static str),
    /// It may not help: the part of its sentence that has a word of [`CONDITIONS`].
    MayNot(&'static str),
}

/// Words of a condition.
const CONDITIONS: &[&str] = &["if", "may", "once", "unless"];

use How::{Case, MayNot, Test};

/// Every remedy: its beginning, or, where several sentences have the same one, its end with some of the sentence
/// before it (`here; correct one of them`), the folder of sources that has it, and what becomes of it. Of several that
/// are meant the longest counts.
const PROSE: &[(&str, &str, How)] = &[
    ("wait until it ends, or choose another folder", "base", Case),
    ("take at most {LONGEST_NAME}", "base", Case),
    ("save it as UTF-8", "base", Case),
    ("save it as UTF-8 if it is text", "base", MayNot("if it is text")),
    ("add a letter or digit", "base", Case),
    (
        "have {}, {}; correct one of them",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "a_place_in_several_columns_is_compared_and_never_chosen",
            ", and the columns `",
            "content.replace(wrong, right)",
        ),
    ),
    (
        "by the columns `{}` and `{}`; correct one of them",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "a_place_in_several_columns_is_compared_and_never_chosen",
            " px by its corners and ",
            "content.replace(wrong, right)",
        ),
    ),
    (
        "{other} px here; correct one of them",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "a_place_in_several_columns_is_compared_and_never_chosen",
            " px in an earlier record and of ",
            "content.replace(wrong, right)",
        ),
    ),
    (
        "`{other}` here; correct one of them",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "a_place_in_several_columns_is_compared_and_never_chosen",
            "` in an earlier record and of `",
            "content.replace(wrong, right)",
        ),
    ),
    ("has `{other}`; correct one of them", "regions", Case),
    ("in the group `{first}`; correct one of them", "regions", Case),
    ("` and `{other}`; correct one of them", "regions", Case),
    ("but its segmentation reaches from {}, {} to {}, {}; correct one of them", "regions", Case),
    ("px2, but its box is {w} x {h} px; correct one of them", "regions", Case),
    ("px2, but that of its segmentation is {own:.1} px2; correct one of them", "regions", Case),
    (
        "list slides alone",
        "regions",
        Test(
            "crates/regions/src/folds/tests.rs",
            "a_table_of_folds_lists_slides_or_cases_whose_names_may_be_the_same_numbers",
            "list slides alone, or patients alone",
            "run(&mixed, \"slide,fold",
        ),
    ),
    (
        "draw yours again",
        "review",
        Test(
            "crates/cli/tests/view/together.rs",
            "regions_replace_only_those_that_were_seen",
            "changed the regions of this slide since they were shown here",
            "draw(&server, \"anna\", side, &seen)",
        ),
    ),
    (
        "rename each to one of",
        "review",
        Test(
            "crates/review/tests/recount.rs",
            "plain_classes_of_qupath_count_and_others_are_named_with_the_remedy",
            "rename each to one of",
            "classed(&run, &[(class, at)])",
        ),
    ),
    ("give them a class in QuPath", "review", MayNot("if they are figures")),
    (
        "make them annotations in QuPath",
        "review",
        Test(
            "crates/review/tests/recount.rs",
            "detections_of_other_programs_are_not_verdicts",
            "if a person has reviewed them, make",
            "counted(\"annotation\")",
        ),
    ),
    (
        "make it an annotation in QuPath",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "detections_of_qupath_are_not_labels",
            "make it an annotation",
            "import(&made, &plain())",
        ),
    ),
    ("Give a cut-point", "outcome", Case),
    ("begin with a letter or digit", "base", Case),
    ("take letters a to z", "base", Case),
    ("divide the table", "base", MayNot("if it is meant to be so large")),
    ("put cells that hold the delimiter into quotation marks", "base", Case),
    ("give a table with at least one row", "base", Case),
    ("close the mark where the cell ends", "base", Case),
    (
        "set `candidates.threshold` in the preset",
        "construct",
        MayNot("which may find too few all the same"),
    ),
    ("convert it with the um/px it is to be used at", "construct", Case),
    (
        "recount the run",
        "clinic",
        Test(
            "crates/clinic/src/case.rs",
            "a_hotspot_that_was_moved_after_the_recount_is_noticed",
            "changed after the recount, whose numbers these are; recount the run",
            "recount(&run, \"anna\", None, true)",
        ),
    ),
    (
        "but {why}: recount the run",
        "clinic",
        Test(
            "crates/clinic/src/case.rs",
            "a_hotspot_that_was_moved_after_the_recount_is_noticed",
            "the hotspot was counted in ",
            "recount(&run, \"anna\", None, true)",
        ),
    ),
    (
        "recount the run",
        "mithras",
        Test(
            "crates/clinic/src/case.rs",
            "a_recount_that_was_changed_by_hand_is_refused",
            "its numbers have SHA-256",
            "recount(&run, \"anna\", None, false)",
        ),
    ),
    ("gather the run again, or name the folder of a run", "clinic", Case),
    ("restore it from a copy or rebuild the corpus", "crops", Case),
    (
        "wait for it to end",
        "crops",
        Test(
            "crates/crops/tests/format.rs",
            "a_crash_leaves_the_old_corpus_and_the_next_writer_continues",
            "wait for it to end",
            "write(dir.path(), 30..60",
        ),
    ),
    (
        "look at the slide, or raise the limit",
        "detect",
        Test(
            "crates/detect/tests/failures.rs",
            "more_candidates_than_allowed_end_the_slide",
            "look at the slide, or raise the limit",
            "with(n).unwrap()",
        ),
    ),
    ("choose another folder", "evaluation", Case),
    (
        "one pair of columns is of another file",
        "regions",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_table_whose_px_and_um_are_two_places_is_refused",
            "one pair of columns is of another file",
            "for corrected in",
        ),
    ),
    ("detect it with both stages", "evaluation", MayNot("if the package has two")),
    ("give the um/px of tiles", "features", Case),
    (
        "give the encoder's name",
        "features",
        Test(
            "crates/cli/tests/embed_cli.rs",
            "weights_are_embedded_as_by_their_package",
            "give the encoder's name",
            "\"--encoder\", \"lunit-vits16\"",
        ),
    ),
    ("one folder holds the features of one encoder and grid", "features", Case),
    (
        "run detection on the same slides again and resume",
        "mithras",
        Test(
            "crates/mithras/tests/scale.rs",
            "slides_that_were_not_begun_are_missing_whatever_names_them",
            "run detection on the same slides again and resume",
            "whole_run(others, &out, &go)",
        ),
    ),
    (
        "name these slides, too, or choose another folder",
        "construct",
        Test(
            "crates/cli/tests/corpus_build.rs",
            "a_list_gives_the_corpus_of_its_slides",
            "name these slides, too, or choose another folder",
            "s(&a), s(&b), s(&c)",
        ),
    ),
    ("there is a package already; choose another folder", "features", Case),
    ("no earlier run wrote it; choose another folder", "features", Case),
    ("export the network in its evaluation mode", "infer", MayNot("if it was in another one")),
    ("give a package folder", "infer", Case),
    (
        "leave one of them out",
        "evaluation",
        Test(
            "crates/evaluation/src/calibrate.rs",
            "a_slide_that_comes_twice_is_refused",
            "leave one of them out",
            "calibrate(&package, &slides[..6])",
        ),
    ),
    (
        "start the viewer again",
        "review",
        Test(
            "crates/cli/tests/view/together.rs",
            "a_run_that_changed_under_the_viewer_is_neither_shown_nor_reviewed_nor_signed",
            "the run has changed since it was opened: start the viewer again",
            "assert_eq!(sign(&server, &json!({})).status, 200)",
        ),
    ),
    (
        "put its file back and start the viewer again",
        "review",
        Test(
            "crates/cli/tests/view/together.rs",
            "a_slide_that_cannot_be_opened_is_not_signed",
            "of this case cannot be opened",
            "rename(&away, made.slide(\"dots.png\"))",
        ),
    ),
    (
        "start it with a folder of reviews of your own",
        "review",
        Test(
            "crates/cli/tests/view/together.rs",
            "a_blinded_desk_has_only_the_reviewers_own_words",
            "another reviewer drew regions on this slide",
            "\"--reviews\".as_ref(), &own",
        ),
    ),
    ("save it as PNG, TIFF or JPEG", "features", Case),
    ("export it with one of them", "infer", MayNot("if its program can")),
    (
        "give the folds other names",
        "regions",
        Test(
            "crates/regions/src/folds/tests.rs",
            "the_folder_of_a_fold_is_inside_the_runs",
            "give the folds other names",
            "(\"x\", \"runs/x\")",
        ),
    ),
    ("make windows overlap more", "regions", MayNot("if the box fits into one")),
    (
        "leave one of them out",
        "crops",
        Test(
            "crates/regions/tests/reshape.rs",
            "an_image_of_two_corpora_is_not_merged_and_one_that_repeats_in_its_own_is_kept",
            "leave one of them out",
            "dir.path().join(\"without\")",
        ),
    ),
    (
        "give the predictions of held-out crops",
        "crops",
        Test(
            "crates/regions/tests/reshape.rs",
            "labels_given_by_experts_are_interchanged_by_held_out_scores",
            "give the predictions of held-out crops",
            "write(&mut (0..300)",
        ),
    ),
    (
        "give scores of held-out crops",
        "crops",
        Test(
            "crates/regions/tests/reshape.rs",
            "labels_given_by_experts_are_interchanged_by_held_out_scores",
            "give scores of held-out crops",
            "what, Some(&scores)",
        ),
    ),
    (
        "rename one of the slides, or run them into different folders",
        "mithras",
        Test(
            "crates/mithras/src/batch/preflight.rs",
            "names_that_are_one_folder_are_refused_until_one_is_renamed_or_runs_elsewhere",
            "rename one of the slides, or run them into different folders",
            "\"A2.svs\"",
        ),
    ),
    (
        "write into another folder, or gather this run with the others",
        "mithras",
        Test(
            "crates/mithras/tests/scale.rs",
            "what_does_not_belong_together_is_not_gathered",
            "write into another folder, or gather this run with the others",
            "Some(&at(\"further\"))",
        ),
    ),
    ("give a complete package folder", "infer", MayNot("if you have one")),
    (
        "give this account the right to read it",
        "base",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_file_without_permission_is_named_as_such_and_read_with_it",
            "give this account the right to read it",
            "give(&path, mode)",
        ),
    ),
    (
        "check the disk or network drive",
        "base",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_file_that_cannot_be_read_is_not_called_damaged",
            "check the disk or network drive",
            "fs::write(&path, whole)",
        ),
    ),
    (
        "detection with the slide again, resuming, does it again",
        "mithras",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_damaged_or_foreign_result_is_named_done_again_and_stops_no_other",
            "does it again",
            "&[\"--resume\", \"-q\"]",
        ),
    ),
    ("rename one or run them into different folders", "mithras", Case),
    ("choose whether to resume or to overwrite them", "mithras", Case),
    ("one folder holds the slides of one configuration", "mithras", Case),
    ("run it again", "mithras", MayNot("once nothing writes to it")),
    (
        "choose another folder for one of them",
        "mithras",
        Test(
            "crates/mithras/tests/scale.rs",
            "a_slide_done_meanwhile_with_another_configuration_is_left_alone",
            "choose another folder for one of them",
            "process_with(inputs(), &other",
        ),
    ),
    ("use the version that wrote it", "mithras", MayNot("if you have it")),
    ("too low without the second; name one", "mithras", Case),
    ("its tables are of other folders; name one: ", "mithras", Case),
    ("remove one", "mithras", Case),
    ("remove one of them", "mithras", Case),
    ("choose an empty folder", "mithras", Case),
    ("detect again at this operating point", "mithras", MayNot("if you have the slide")),
    ("name the folder of the slides", "mithras", Case),
    ("run detection again and resume, which writes the record", "mithras", Case),
    ("put them into folders of their own, or run one again", "mithras", Case),
    ("rename one of the files and run it again", "mithras", Case),
    ("rename {place} to cx and cy", "evaluation", MayNot("if they are the figure's centre")),
    ("run both", "evaluation", MayNot("if the package has two")),
    ("check coordinates and um/px", "mitosis", MayNot("which may be wrong")),
    (
        "write it with Snappy or Zstandard, or as CSV",
        "outcome",
        Test(
            "crates/cli/tests/survival_tables.rs",
            "a_parquet_file_packed_in_another_way_is_not_called_damaged",
            "write it with Snappy or Zstandard, or as CSV",
            "packed_table(&path, codec)",
        ),
    ),
    ("state what they mean", "regions", Case),
    ("choose another folder", "regions", Case),
    ("give a file with labelled figures or look-alikes", "regions", Case),
    (
        "remove one",
        "regions",
        Test(
            "crates/regions/src/task/tests.rs",
            "bad_sets_are_refused_with_a_reason",
            "same image under two labels",
            "remove_file(at.path().join(\"b/s1/copy.png\"))",
        ),
    ),
    ("take fewer folds", "regions", MayNot("which may help")),
    ("download it first", "remote", MayNot("if you can")),
    ("names no object; give the slides one by one, or in a list", "remote", Case),
    ("are for files on this machine; give the slides one by one, or in a list", "remote", Case),
    (
        "take it out",
        "remote",
        Test(
            "crates/remote/src/address.rs",
            "what_cannot_be_read_is_refused_without_its_secrets",
            "take it out",
            "\"https://h/a.svs\"",
        ),
    ),
    ("download the slide first", "remote", MayNot("if the server allows it")),
    (
        "run it again once it is written whole",
        "remote",
        Test(
            "crates/remote/tests/object.rs",
            "an_object_that_changes_is_given_up",
            "run it again once it is written whole",
            "open(&client, &url)",
        ),
    ),
    ("an export must not be mixed with; choose another folder", "review", Case),
    (
        "holds a dataset; choose another folder",
        "review",
        Test(
            "crates/cli/tests/view/back.rs",
            "reviews_become_a_dataset",
            "holds a dataset",
            "import_into(&another, ",
        ),
    ),
    ("name the folder of the slides", "review", MayNot("if they are elsewhere")),
    (
        "review the run in `mithras view`",
        "review",
        Test(
            "crates/cli/tests/view/calibrate.rs",
            "judged_candidates_set_the_scale_and_the_points_of_a_package",
            "review the run in `mithras view`",
            "judge(\"anna\", before.len())",
        ),
    ),
    (
        "name one of them",
        "review",
        Test(
            "crates/cli/tests/view/calibrate.rs",
            "judged_candidates_set_the_scale_and_the_points_of_a_package",
            "name one of them",
            "calibrate(&[\"--reviews\", \"anna\", \"--json\"])",
        ),
    ),
    (
        "review it in `mithras view` first",
        "review",
        Test(
            "crates/cli/tests/view/calibrate.rs",
            "judged_candidates_set_the_scale_and_the_points_of_a_package",
            "no candidate of this run was judged",
            "judge(\"anna\", before.len())",
        ),
    ),
    ("put back the file that was written with it", "review", MayNot("if you have it")),
    ("put the log that was signed back", "review", MayNot("if you have it")),
    ("state its resolution", "roi", Case),
    ("copy the file again if it was damaged", "slide", MayNot("if it was damaged")),
    ("name a new file or folder", "slide", Case),
    ("convert it to DICOM or OME-TIFF first", "slide", MayNot("if you have a converter")),
    ("is not a file; name the slide file itself", "slide", Case),
    ("the file is empty (0 bytes); copy it again from its source", "slide", Case),
    ("copy it again from its source or export it again", "slide", Case),
    ("raise that limit if the file can be trusted", "slide", Case),
    ("rename the file or change the option", "slurm", Case),
    ("do this where jobs are submitted from", "slurm", Case),
    (
        "cancel it first, or wait for its end",
        "start",
        Test(
            "crates/cli/tests/view/start_page.rs",
            "a_cancelled_run_leaves_nothing_half_written_and_is_resumed",
            "cancel it first",
            "\"api/cancel\"",
        ),
    ),
    (
        "resume it, or choose another folder",
        "train",
        Test(
            "crates/cli/tests/train_protocol.rs",
            "folders_to_folds_to_test_to_package",
            "a run is already here; resume it, or choose another folder",
            "train(&[\"--resume\"])",
        ),
    ),
    ("lower train.lr or raise train.warmup", "train", MayNot("which may help")),
    ("choose another folder", "training", MayNot("if that is meant")),
    (
        "train it with the segmenter's folds",
        "training",
        Test(
            "crates/training/tests/detector_chain.rs",
            "a_drawn_dataset_becomes_a_package_and_a_killed_run_continues",
            "train it with the segmenter's folds",
            "own.classifiers[0].value.reverse()",
        ),
    ),
    (
        "train it again, or allow it",
        "training",
        Test(
            "crates/training/tests/detector_chain.rs",
            "a_drawn_dataset_becomes_a_package_and_a_killed_run_continues",
            "train it again, or allow it",
            "allow_seen: true, ..own.clone()",
        ),
    ),
];

/// A remedy that is followed here: words of the error, what provokes it, what the remedy comes to, and the line that
/// then works; lines of bash with the program as `$M`.
pub(crate) struct Followed {
    words: &'static str,
    fails: &'static str,
    remedy: &'static str,
    works: &'static str,
}

pub(crate) const fn case(
    words: &'static str,
    fails: &'static str,
    remedy: &'static str,
    works: &'static str,
) -> Followed {
    Followed { words, fails, remedy, works }
}

const CASES: &[Followed] = &[
    case(
        "wait until it ends, or choose another folder",
        "mkdir -p cb/.build; flock cb/.build/.lock $CB cb",
        "true",
        "$CB cb",
    ),
    case(
        "take letters a to z",
        "$M recount run --reviews 'anna b'",
        "true",
        "$M recount run --reviews anna",
    ),
    case(
        "begin with a letter or digit",
        "$M recount run --reviews=.anna",
        "true",
        "$M recount run --reviews anna",
    ),
    case(
        "add a letter or digit",
        "$M recount run --reviews con",
        "sed 's/anna/con1/' run/reviews/anna.jsonl >run/reviews/con1.jsonl",
        "$M recount run --reviews con1",
    ),
    case(
        "there is a package already; choose another folder",
        "$EN encoder && $EN encoder",
        "true",
        "$EN encoder2",
    ),
    case(
        "no earlier run wrote it; choose another folder",
        "mkdir tiles; echo x >tiles/one.h5; $EM tiles; exit 1",
        "mkdir tiles2",
        "$EM tiles2",
    ),
    case(
        "which an export must not be mixed with; choose another folder",
        "$M export qupath run --out run/one",
        "true",
        "$M export qupath run --out objects",
    ),
    case(
        "save it as PNG, TIFF or JPEG",
        "echo x >flat.webp; $M classify flat.webp --model m --mpp 0.25 --engine rten --out webp; exit 1",
        "true",
        "$M classify flat.png --model m --mpp 0.25 --engine rten --out webp2",
    ),
    case(
        "is 'x' a number? Give a cut-point, or test it with a Cox model",
        "{ echo time,event,x; for i in {1..12}; do echo $i,1,$((i * 5 % 12)).5; done; } >cut.csv; \
         $M survival logrank --time time --event event --group x --table cut.csv",
        "true",
        "$M survival logrank --time time --event event --group x --table cut.csv --cut 6 && $COX x --table cut.csv",
    ),
    case(
        "take at most",
        "$M recount run --reviews $(printf 'a%.0s' {1..300})",
        "true",
        "$M recount run --reviews anna",
    ),
    case(
        "put cells that hold the delimiter into quotation marks",
        "printf 'time,event,note\\n1,1,a\\n2,0,b, c\\n3,1,d\\n' >cells.csv; $KM cells.csv",
        "sed -i 's/b, c/\"b, c\"/' cells.csv",
        "$KM cells.csv",
    ),
    case(
        "close the mark where the cell ends",
        "printf 'time,event,note\\n1,1,\"5 cm\\n2,0,b\\n3,1,9 cm\"\\n4,1,c\\n' >open.csv; $KM open.csv",
        "sed -i 's/\"5 cm/\"5 cm\"/; s/9 cm\"/9 cm/' open.csv",
        "$KM open.csv",
    ),
    case(
        "close it or remove it",
        "printf 'time,event,note\\n1,1,\"5 cm\\n2,0,b\\n3,1,c\\n' >never.csv; $KM never.csv",
        "sed -i 's/\"5 cm/5 cm/' never.csv",
        "$KM never.csv",
    ),
    case(
        "close the mark before the `,`",
        "printf 'time,event,note\\n1,1,\"5\" wide\\n2,0,b\\n3,1,c\\n' >wide5.csv; $KM wide5.csv",
        "sed -i 's/\"5\" wide/\"5 wide\"/' wide5.csv",
        "$KM wide5.csv",
    ),
    case(
        "take the # off the header",
        "printf '#slide,mpp\\nflat,0.25\\n' >hash.csv; $M detect flat.png $Q --model m --out hash --mpp-table hash.csv",
        "sed -i 's/^#//' hash.csv",
        "$M detect flat.png $Q --model m --out hash --mpp-table hash.csv",
    ),
    case("save it as a file first", "$KM <(cat km.csv)", "cat km.csv >saved.csv", "$KM saved.csv"),
    case(
        "the event value 'Dead' is spelt in several ways in this column ('Dead', 'dead'); make them one",
        "printf 'time,event\\n1,Dead\\n2,Alive\\n3,dead\\n' >spelt.csv; $KM spelt.csv --event-value Dead",
        "sed -i 's/dead/Dead/' spelt.csv",
        "$KM spelt.csv --event-value Dead",
    ),
    case(
        "spells one value in several ways ('A' (3), 'a' (3)); make them one; taken as categorical, they count apart",
        "{ echo time,event,g; for i in 1 2 3; do echo $i,1,a; echo $((i + 2)),1,A; echo $((i * 3)),0,b; \
         echo $((i * 2)),1,b; done; } >levels.csv; $M survival cox --time time --event event --covariates g \
         --table levels.csv",
        "sed 's/,A/,a/' levels.csv >one.csv",
        "cox=\"$M survival cox --time time --event event --covariates g --table\"; $cox one.csv && \
         $cox levels.csv --categorical g",
    ),
    case(
        "write all decimals in one way",
        "printf 'slide;mpp\\nsmall;0,5\\nflat;0.250\\n' >points.csv; \
         $M detect flat.png $Q --model m --out pts --mpp-table points.csv",
        "sed -i 's/0.250/0,250/' points.csv",
        "$M detect flat.png $Q --model m --out pts --mpp-table points.csv",
    ),
    case(
        "are stated twice: 0.25 um/px for `flat`, 0.5 um/px for `flat.png`; remove one",
        "printf 'slide,mpp\\nflat,0.25\\nflat.png,0.5\\n' >twice.csv; \
         $M detect flat.png $Q --model m --out twice --mpp-table twice.csv",
        "sed -i /png/d twice.csv",
        "$M detect flat.png $Q --model m --out twice --mpp-table twice.csv",
    ),
    case(
        "its folder has other counts than run.json; gather the run again",
        "cp -r run twofold; sed -i 's/\"candidates\": [0-9][0-9]*/\"candidates\": 77/' twofold/run.json; \
         $M report twofold --out pages",
        "true",
        "$M gather twofold && $M report twofold --out pages",
    ),
    case(
        "and so is `flat`: one name each",
        "printf 'image,x,y,label\\nflat,90,90,mf\\nflat.png,190,90,mf\\n' >names.csv; \
         $M corpus import --format csv names.csv --images twin --mpp 0.25 --crop 64 --out names",
        "sed -i 's/flat,/flat.png,/' names.csv",
        "$M corpus import --format csv names.csv --images twin --mpp 0.25 --crop 64 --out names",
    ),
    case(
        "restore it from a copy or rebuild the corpus",
        "cp -r crops kept; truncate -s -8 crops/*.parquet; head -c 8 /dev/zero >>crops/shard-00000.parquet; \
         $M corpus inspect crops",
        "rm -r crops; mv kept crops",
        "$M corpus verify crops",
    ),
    case(
        "holds a package already; choose another folder",
        "$M detectors import --onnx boxes.onnx --mpp 0.25 --name c --license none --out m",
        "true",
        "$M detectors import --onnx boxes.onnx --mpp 0.25 --name c --license none --out boxes",
    ),
    case(
        "give a package folder",
        "$M detect flat.png $Q --model no-such --out p1",
        "true",
        "$M detect flat.png $Q --model m --out p1",
    ),
    case(
        "give a table with at least one row",
        "echo slide,mpp >rows.csv; $M detect flat.png $Q --model m --mpp-table rows.csv --out rows",
        "echo flat,0.25 >>rows.csv",
        "$M detect flat.png $Q --model m --mpp-table rows.csv --out rows",
    ),
    case(
        "give a file with labelled figures or look-alikes",
        "printf 'image,x,y,label\nflat.png,9,9,x\n' >crop.csv; \
         $M corpus import crop.csv --format csv --images twin --mpp 0.25 --map x=ignore --out crops0",
        "sed -i s/,x$/,mf/ crop.csv",
        "$M corpus import crop.csv --format csv --images twin --mpp 0.25 --crop 64 --out crops0",
    ),
    case(
        "choose an empty folder",
        "mkdir w; touch w/counts.csv; $M recount run --operating-point 0.5,0.6 --into w",
        "true",
        "$M recount run --operating-point 0.5,0.6 --into w2",
    ),
    case(
        "put them into folders of their own, or run one again",
        "cp -r twin apart; mv apart/flat.png apart/second.png; $M detect twin/flat.png $Q --model m --out g1; \
         $M detect apart/second.png $Q --model m --operating-point 0.3,0.1 --out g2; $M gather g1 g2 --into all",
        "true",
        "$M gather g1 && $M gather g2",
    ),
    case(
        "rename one of the files and run it again, or gather them separately",
        "mkdir last; cp small.svs last/flat.svs; $M detect last/flat.svs $Q --model m --out g3; \
         $M gather g1 g3 --into all2",
        "mv last/flat.svs last/renamed.svs; $M detect last/renamed.svs $Q --model m --out g4",
        "$M gather g1 g4 --into all2",
    ),
    case(
        "all2: no slide with results here; its tables are of other folders; name one: ",
        "$M gather all2",
        "true",
        "$M gather g1",
    ),
    case(
        "'flat.png' is already in line 2; remove one of them",
        "printf 'slide\\nflat.png\\nflat.png\\n' >same.csv; $M detect --list same.csv $Q --model m --out same",
        "sed -i '$d' same.csv",
        "$M detect --list same.csv $Q --model m --out same",
    ),
    case(
        "patterns are for files on this machine; give the slides one by one, or in a list",
        "$M detect 's3://bucket/*.svs' $Q --model m --out pattern",
        "true",
        "$M detect --list slides.csv $Q --model m --out pattern",
    ),
    case(
        "choose another folder",
        "$M corpus export sets --format yolo --out yolo && $M corpus export sets --format yolo --out yolo",
        "true",
        "$M corpus export sets --format yolo --out yolo2",
    ),
    case(
        "name a new file or folder",
        "$M slide deidentify small.svs one.tiff",
        "true",
        "$M slide deidentify small.svs copy.svs",
    ),
    case(
        "is not a file; name the slide file itself",
        "$M slide info twin",
        "true",
        "$M slide info twin/flat.png",
    ),
    case(
        "the file is empty (0 bytes); copy it again from its source",
        ": >empty.svs; $M slide info empty.svs",
        "cp small.svs empty.svs",
        "$M slide info empty.svs",
    ),
    case(
        "copy it again from its source or export it again",
        "head -c 2000 small.svs >cut.svs; $M slide thumbnail cut.svs --out cut.png",
        "cp small.svs cut.svs",
        "$M slide thumbnail cut.svs --out cut.png",
    ),
    case(
        "raise that limit if the file can be trusted",
        "MITHRAS_LIMITS=pixels=1000 $M slide info small.svs",
        "true",
        "MITHRAS_LIMITS=pixels=1e9 $M slide info small.svs",
    ),
    case(
        "rename the file or change the option",
        "cp slides.csv $'my\nlist.csv'; $M slurm --list $'my\nlist.csv' --out s --dry-run",
        "mv $'my\nlist.csv' list.csv",
        "$M slurm --list list.csv --out s --dry-run",
    ),
    // What a table is not (`base::table`'s list of other kinds).
    case(
        "decompress it first (gzip -d)",
        "cp km.csv gz.csv; gzip gz.csv; mv gz.csv.gz gz.csv; $KM gz.csv",
        "mv gz.csv gz.csv.gz; gzip -d gz.csv.gz",
        "$KM gz.csv",
    ),
    case(
        "save the sheet as CSV (UTF-8)",
        "python3 -c \"import zipfile; zipfile.ZipFile('book.csv', 'w').write('km.csv')\"; $KM book.csv",
        "python3 -c \"import zipfile; zipfile.ZipFile('book.csv').extract('km.csv', 'sheets')\"",
        "$KM sheets/km.csv",
    ),
    case(
        "save the table as UTF-8 (Excel",
        "printf 'time,event,place\\n1,1,K\\xf6ln\\n2,0,x\\n3,1,y\\n' >latin.csv; $KM latin.csv",
        "python3 -c \"text = open('latin.csv', 'rb').read().decode('latin-1'); \
         open('latin.csv', 'w', encoding='utf-8').write(text)\"",
        "$KM latin.csv",
    ),
    case(
        "this is UTF-16, and ends within a character; save the table as UTF-8",
        "python3 -c \"open('wide.csv', 'wb').write(open('km.csv').read().encode('utf-16') + b'x')\"; $KM wide.csv",
        "cp km.csv wide.csv",
        "$KM wide.csv",
    ),
    case(
        "fetch the file with `git lfs pull`",
        "printf 'version https://git-lfs.github.com/spec/v1\\n' >lfs.csv; $KM lfs.csv",
        "cp km.csv lfs.csv",
        "$KM lfs.csv",
    ),
    case(
        "download the file again",
        "printf '<!DOCTYPE html><html>' >page.csv; $KM page.csv",
        "cp km.csv page.csv",
        "$KM page.csv",
    ),
    case(
        "an old Excel workbook (.xls); save the sheet as CSV",
        "printf '\\xd0\\xcf\\x11\\xe0\\xa1\\xb1' >old.csv; $KM old.csv",
        "cp km.csv old.csv",
        "$KM old.csv",
    ),
    case(
        "one folder holds the features of one encoder and grid",
        "$EN grid && { for mpp in 0.25 0.5; do $M embed one.tiff --encoder grid --mpp 0.25 --tile-mpp $mpp \
         --engine rten --out features || exit 1; done; }",
        "true",
        "$M embed one.tiff --encoder grid --mpp 0.25 --tile-mpp 0.5 --engine rten --out features2",
    ),
    case(
        "run detection again and resume, which writes the record",
        "$M gather lone",
        "$M detect one.tiff --engine rten --threads 1 -q --model m --out lone --resume",
        "$M gather lone",
    ),
    case(
        "this folder has no run.json; gather the run again, or name the folder of a run",
        "cp -r run ungathered; rm ungathered/run.json; $M report ungathered --out page1",
        "$M gather ungathered",
        "$M report ungathered --out page1 && $M report run --out page2",
    ),
];

pub(crate) fn bash(at: &Path, line: &str) -> Output {
    let m = crate::program();
    let q = "--mpp 0.25 --engine rten --threads 1 -q";
    let km = format!("{m} survival km --time time --event event --table");
    let mut shell = Command::new("timeout");
    let build =
        "corpus build one.tiff --preset tcga-mf-pseudo --no-tumour-filter --cohort BRCA --model m";
    let build = format!("{m} {build} {q} --out");
    shell.args(["60", "bash", "-c", line]).current_dir(at);
    shell.env("M", m).env("Q", q).env("KM", km).env("CB", build);
    for (name, words) in [
        ("EV", "evaluate detections --predictions run --truth"),
        ("EC", "evaluate classification --predictions"),
        ("COX", "survival cox --time time --event event --covariates"),
        (
            "ST",
            "survival study --clinical t.csv --join slide=id --time time --event event --density-column \
             density_per_20_mm2 --replicates 20",
        ),
        ("RG", "corpus import --kind regions --format csv --mpp 0.25 --exhaustive all"),
    ] {
        shell.env(name, format!("{m} {words}"));
    }
    let encoder = "encoders convert --onnx e.onnx --image 32 --mean 0.5,0.5,0.5 --std 0.5,0.5,0.5 --pooling x \
                   --license MIT --name e --out";
    shell.env("EN", format!("{m} {encoder}"));
    let embed = "embed one.tiff --encoder encoder --mpp 0.25 --tile-mpp 0.25 --engine rten --out";
    shell.env("EM", format!("{m} {embed}"));
    shell.env("IM", "--images twin --mpp 0.25 --crop 64 --out").env("COCO", "bash coco.sh");
    shell.output().unwrap()
}

#[test]
fn remedies_in_the_sentence_of_an_error_help() {
    let dir = place();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    write("km.csv", "time,event\n1,1\n2,0\n3,1\n");
    write("boxes.csv", "image,x,y,label\nflat.png,90,90,mf\nflat.png,190,90,imposter\n");
    let boxes = testkit::workspace().join("crates/infer/tests/golden/boxes.onnx");
    fs::copy(boxes, at.join("boxes.onnx")).unwrap();
    for line in [
        "$M corpus import --format csv boxes.csv --images twin --mpp 0.25 --crop 64 --out crops",
        "$M corpus import --kind regions --format csv boxes.csv --images twin --mpp 0.25 --exhaustive all --out sets",
    ] {
        let made = bash(at, line);
        assert!(made.status.success(), "{}", output_text(&made));
    }
    follow(at, CASES);
}

/// Each error, its remedy, and the line that then works.
pub(crate) fn follow(at: &Path, cases: &[Followed]) {
    for Followed { words, fails, remedy, works } in cases {
        let out = bash(at, fails);
        let printed = output_text(&out);
        assert_eq!(out.status.code(), Some(1), "{fails}: {printed}");
        assert!(printed.contains(words), "{fails}: `{words}` is not in: {printed}");
        let out = bash(at, remedy);
        assert!(out.status.success(), "{remedy}: {}", output_text(&out));
        let out = bash(at, works);
        assert!(out.status.success(), "{words} does not help, {works}: {}", output_text(&out));
    }
}

/// The source of a test of a file: its attributes and its body.
fn test_source(root: &Path, [file, test]: [&str; 2]) -> String {
    let text = fs::read_to_string(root.join(file)).unwrap();
    let head = format!("fn {test}(");
    let at = text.find(&head).unwrap_or_else(|| panic!("{file} has no test {test}"));
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[line..at];
    assert!(indent.trim().is_empty(), "{file}, {test}: `{indent}` before `fn`");
    let from = text[..line].rfind("\n\n").map_or(0, |end| end + 2);
    let is_run = text[from..line].contains("#[test]\n") && !text[from..line].contains("#[ignore");
    assert!(is_run, "{file}: {test} is not a test that is run");
    let end = text[at..].find(&format!("\n{indent}}}\n")).expect("a function ends");
    text[from..at + end].to_owned()
}

/// Checks that a test of a file is one that is run, and that its source has both pieces, line breaks aside: one that
/// shows the error, and one that follows the remedy.
pub(crate) fn check_test(root: &Path, of: [&str; 2], pieces: [&str; 2]) {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let source = plain(&test_source(root, of));
    assert_ne!(pieces[0], pieces[1], "{of:?}");
    for piece in pieces {
        let has = piece.len() >= 8 && source.contains(&plain(piece));
        assert!(has, "{of:?}: `{piece}` is not in the test");
    }
}

/// Every text of a source before its tests, without comments.
fn texts(source: &str) -> Vec<String> {
    let own = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut all, mut rest) = (Vec::new(), own);
    while let Some(at) = rest.find(['"', '\'', '/', 'r']) {
        let (before, here) = rest.split_at(at);
        let word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        rest = match here.as_bytes()[0] {
            b'/' if here.starts_with("//") => here.split_once('\n').map_or("", |(_, next)| next),
            b'\'' if here[1..].starts_with('\\') => {
                here[2..].split_once('\'').map_or("", |(_, n)| n)
            }
            b'\'' => {
                // A character, unless it is a lifetime.
                let mut next = here[1..].chars();
                let c = next.next();
                if c.is_some() && next.next() == Some('\'') { next.as_str() } else { &here[1..] }
            }
            b'r' if !word && here[1..].trim_start_matches('#').starts_with('"') => {
                let marks = here[1..].len() - here[1..].trim_start_matches('#').len();
                let body = &here[2 + marks..];
                let end = format!("\"{}", "#".repeat(marks));
                let (text, next) = body.split_once(&end).unwrap_or((body, ""));
                all.push(text.to_owned());
                next
            }
            b'"' => {
                let (text, next) = literal(&here[1..]);
                all.push(text);
                next
            }
            _ => &here[1..],
        };
    }
    all
}

/// A text up to its closing mark, and what follows.
fn literal(rest: &str) -> (String, &str) {
    let (mut text, mut chars) = (String::new(), rest.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('\n') => chars = chars.as_str().trim_start().chars(),
                other => text.extend(other),
            },
            c => text.push(c),
        }
    }
    (text, chars.as_str())
}

/// A remedy that a source has.
#[derive(Debug)]
struct Remedy {
    /// The crate.
    place: String,
    /// From its verb on.
    part: String,
    sentence: String,
}

/// How texts begin that are not remedies, though a verb does.
const OTHERS: &[&str] = &[
    "change `{change}`",
    "change of {key}",
    "detect --list",
    "draw {cohort}",
    "import {} as",
    "keep {} from",
    "map cache",
    "name `{}`",
    "report group",
    "report series",
    "run of detect",
    "train loss",
    "train on",
];

/// Where remedies begin in a sentence: at its begin, where an error puts it behind another, behind a semicolon, a colon
/// or another sentence, and, where none of these does, behind a comma.
fn parts(sentence: &str) -> Vec<&str> {
    let behind = |mark: &'static str, begins: fn(&str, &str) -> bool| {
        let parts = sentence.split(mark).skip(1);
        parts.filter(move |part| begins(part, part.split([' ', ',']).next().unwrap_or_default()))
    };
    let verb: fn(&str, &str) -> bool = |_, word| VERBS.contains(&word);
    // Behind a colon `one` begins an explanation, and behind a comma, where `set` is a noun.
    let explained: fn(&str, &str) -> bool = |_, word| word != "one" && VERBS.contains(&word);
    let listed: fn(&str, &str) -> bool =
        |_, word| word != "set" && word != "one" && VERBS.contains(&word);
    let capital: fn(&str, &str) -> bool =
        |part, word| part.starts_with(char::is_uppercase) && VERBS.contains(&&*word.to_lowercase());
    let is_other = OTHERS.iter().any(|other| sentence.starts_with(other));
    let alone = sentence.split_once(' ').filter(|(word, _)| {
        !["one", "detection"].contains(word) && VERBS.contains(word) && !is_other
    });
    let all = alone.map(|_| sentence).into_iter().chain(behind("; ", verb));
    let all = all.chain(behind(": ", explained)).chain(behind(". ", capital));
    let all: Vec<&str> = all.chain(behind("? ", capital)).collect();
    let sql = sentence.starts_with("SELECT ");
    if all.is_empty() && !sql { behind(", ", listed).take(1).collect() } else { all }
}

/// Every remedy of the sources before their tests.
fn remedies(root: &Path) -> Vec<Remedy> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root.join("crates")).unwrap().map(|f| f.unwrap().path()) {
        let place = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for file in base::walk::files(&folder.join("src"), &|_| true).unwrap() {
            let other = file.extension().is_none_or(|e| e != "rs");
            if other || file.file_name().is_some_and(|f| f == "tests.rs") {
                continue;
            }
            let Ok(source) = fs::read_to_string(&file) else { continue };
            for sentence in texts(&source) {
                found.extend(parts(&sentence).into_iter().map(|part| Remedy {
                    place: place.clone(),
                    part: part.to_owned(),
                    sentence: sentence.clone(),
                }));
            }
        }
    }
    found
}

/// Refuses an entry that is meant by several sentences: what helps against one of them may not help against another.
fn check_one_sentence<'a>(
    (words, place, _): &(&str, &str, How),
    sentences: impl Iterator<Item = &'a str>,
) {
    let sentences: BTreeSet<&str> = sentences.collect();
    assert!(
        sentences.len() == 1,
        "{place}, {words}: each of these sentences needs an entry of its own: {sentences:#?}"
    );
}

/// Checks that every entry with a case has one that counts for no other entry: the one that has most words of it.
fn check_cases(entries: &[&str]) {
    let cases = CASES.iter().chain(built::CASES).chain(colon::CASES).chain(alone::CASES);
    let cases: Vec<&str> = cases.map(|c| c.words).chain(flag_words()).collect();
    // What is filled in is not known.
    let begins: Vec<&str> =
        entries.iter().map(|words| words.split('{').next().unwrap_or_default().trim()).collect();
    let longest = |case: &str| begins.iter().filter(|b| case.contains(**b)).map(|b| b.len()).max();
    for begin in begins.iter().copied().collect::<BTreeSet<&str>>() {
        let own = |case: &&&str| case.contains(begin) && longest(case) == Some(begin.len());
        let (has, wanted) =
            (cases.iter().filter(own).count(), begins.iter().filter(|b| **b == begin).count());
        assert!(
            !begin.is_empty() && has >= wanted,
            "{wanted} entries begin with `{begin}`, and {has} cases are theirs"
        );
    }
}

#[test]
#[should_panic(expected = "each of these sentences needs an entry of its own")]
fn an_entry_that_is_meant_by_two_sentences_is_refused() {
    let sentences =
        ["{}: is there; choose another folder", "{}: holds results; choose another folder"];
    check_one_sentence(&("choose another folder", "review", Case), sentences.into_iter());
}

#[test]
#[should_panic(expected = "2 entries begin with `take off the header`")]
fn two_entries_need_two_cases() {
    check_cases(&["take off the header", "take off the header"]);
}

#[test]
fn every_remedy_in_a_sentence_is_followed_or_states_its_condition() {
    let root = testkit::workspace();
    let found = remedies(&root);
    assert!(found.len() > 150, "{found:?}");
    let all = || PROSE.iter().chain(BUILT).chain(COLONS).chain(ALONE);
    let fits = |r: &Remedy, (words, place, _): &(&str, &str, How)| {
        let is_end = words.contains("; ") || words.contains(": ");
        r.place == *place && (r.part.starts_with(words) || is_end && r.sentence.ends_with(words))
    };
    let longest = |r: &Remedy| all().filter(|p| fits(r, p)).map(|p| p.0.len()).max();
    let lacking: Vec<_> = found.iter().filter(|r| longest(r).is_none()).collect();
    assert!(lacking.is_empty(), "neither followed nor conditional: {lacking:#?}");
    let is = |r: &Remedy, p: &(&str, &str, How)| fits(r, p) && longest(r) == Some(p.0.len());
    // A test of another sentence that begins with the same words follows another remedy.
    let is_shown = |r: &Remedy, p: &(&str, &str, How)| match p.2 {
        Test(_, _, shows, _) => r.sentence.contains(shows),
        Case | MayNot(_) => true,
    };
    let has_own = |r: &&Remedy| all().any(|p| is(r, p) && is_shown(r, p));
    let others: Vec<_> = found.iter().filter(|r| !has_own(r)).collect();
    assert!(others.is_empty(), "followed by the test of another sentence: {others:#?}");
    let with_case = all().filter(|p| matches!(p.2, Case)).map(|p| p.0);
    check_cases(&with_case.collect::<Vec<_>>());
    for prose in all() {
        let (words, place, how) = prose;
        let meant = || found.iter().filter(move |r| is(r, prose));
        assert!(meant().next().is_some(), "no such remedy: {place}, {words}");
        match how {
            // A sentence of its own, and a case of its own.
            Case => check_one_sentence(prose, meant().map(|r| r.sentence.as_str())),
            Test(file, test, shows, follows) => {
                check_one_sentence(prose, meant().map(|r| r.sentence.as_str()));
                let has = meant().any(|r| r.sentence.contains(shows));
                assert!(has, "{place}, {words}: `{shows}` is not in its sentence");
                check_test(&root, [file, test], [shows, follows]);
            }
            MayNot(condition) => {
                let stated = condition.split(' ').any(|word| CONDITIONS.contains(&word));
                assert!(stated, "{place}, {words}: `{condition}` is not a condition");
                let unstated: Vec<_> =
                    meant().filter(|r| !r.sentence.contains(condition)).collect();
                assert!(unstated.is_empty(), "without the condition `{condition}`: {unstated:#?}");
            }
        }
    }
}
