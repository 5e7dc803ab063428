//! Remedies behind a colon (`...: write all decimals in one way`): entries and cases like those of
//! [`crate::remedies_prose`].

use crate::remedies::place;
use crate::remedies_prose::How::{Case, MayNot, Test};
use crate::remedies_prose::{Followed, How, case, follow};
use std::fs;

/// Every remedy behind a colon, as in [`crate::remedies_prose`].
pub(crate) const COLONS: &[(&str, &str, How)] = &[
    (
        "draw fewer",
        "draw",
        Test(
            "crates/draw/tests/draw.rs",
            "what_cannot_be_drawn_is_refused",
            "draw fewer, or a larger slide",
            "Spec::new(512, 512, 1, 1)",
        ),
    ),
    (
        "draw less",
        "draw",
        Test(
            "crates/draw/tests/draw.rs",
            "tissue_that_does_not_fit_is_refused",
            "draw less, or a larger slide",
            "Spec::new(6000, 6000, 1, 2)",
        ),
    ),
    (
        "correct it or remove it",
        "regions",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_table_whose_px_and_um_are_two_places_is_refused",
            "one pair of columns is of another file",
            "for corrected in",
        ),
    ),
    ("measure more tissue", "evaluation", MayNot("if you have it")),
    ("pip install torch", "mithras", MayNot("if you have its source")),
    ("correct the folder in the labels", "regions", MayNot("if it is the same")),
    ("set AWS_REQUEST_PAYER", "remote", MayNot("if it does")),
    (
        "write key=value",
        "base",
        Test(
            "crates/base/src/preset.rs",
            "changes_go_through_the_same_checks_as_the_file",
            "write key=value",
            "parse(&[\"train.steps=8\"])",
        ),
    ),
    ("write all decimals in one way", "base", Case),
    ("write it without, or with a point", "base", Case),
    ("choose another --port", "cli", Case),
    ("of this machine: choose another --port", "cli", Case),
    ("choose another --port, or none", "cli", Case),
    ("name it with --model", "cli", MayNot("if you have it")),
    ("use --kind regions", "cli", Case),
    ("copy it again if its source is whole", "detect", MayNot("if its source is whole")),
    (
        "judge or measure more candidates on both sides",
        "evaluation",
        Test(
            "crates/cli/tests/view/calibrate.rs",
            "judged_candidates_set_the_scale_and_the_points_of_a_package",
            "judge or measure more candidates",
            "judge(\"anna\", before.len())",
        ),
    ),
    ("give the scores of these networks", "evaluation", MayNot("if you have them")),
    ("put its {piece}", "experiments", MayNot("if you have it")),
    ("put the file into the folder of encoders", "experiments", MayNot("if you have it")),
    (
        "write to FILE.parquet",
        "features",
        Test(
            "crates/cli/tests/embed_cli.rs",
            "crops_go_to_parquet_and_what_does_not_fit_is_reported",
            "write to FILE.parquet, or slide tiles to FILE.h5",
            "\"h.parquet\"",
        ),
    ),
    (
        "write it without them",
        "infer",
        MayNot("if `onnx.inliner.inline_local_functions` (Python package onnx) can"),
    ),
    ("write it without, or with a point", "outcome", Case),
    ("take one row per patient", "outcome", Case),
    (
        "call it `image`, or list one name a line",
        "regions",
        Test(
            "crates/regions/src/annotations/select.rs",
            "lists_name_images_and_wrong_names_are_refused",
            "call it `image`, or list one name a line",
            "run(\"image,b",
        ),
    ),
    ("write it without, or with a point", "regions", Case),
    (
        "export pixels",
        "regions",
        Test(
            "crates/regions/tests/layouts.rs",
            "tables_as_spreadsheets_write_them",
            "export pixels",
            "text(\"csv\", qupath)",
        ),
    ),
    ("name the folder of the slide's conversion", "review", MayNot("if it was converted")),
    ("recount the run of that name", "review", MayNot("if you have it")),
    (
        "open the case again",
        "review",
        Test(
            "crates/cli/tests/view/together.rs",
            "a_signed_case_stays_frozen_under_other_weights",
            "open the case again",
            "\"reopen\": \"other weights\"",
        ),
    ),
    (
        "start all processes again",
        "train",
        Test(
            "crates/train/tests/pretrain_ranks.rs",
            "after_the_first_is_killed_all_end_and_continue_from_the_last_stored_state",
            "steps are whole",
            "ranks::start(me, &Task::new(run.clone(), MANY, more), 2)",
        ),
    ),
    ("start again with train.precision", "train", MayNot("if time matters")),
];

/// Errors whose sentence has such a remedy, and the input that it helps.
pub(crate) const CASES: &[Followed] = &[
    case(
        "or be a decimal point: write it without, or with a point",
        "printf 'slide,x,y,label\none,\"9,922\",3,mf\n' >comma.csv; $EV comma.csv",
        "printf 'slide,x,y,label\none,375,335,mf\n' >comma.csv",
        "$EV comma.csv",
    ),
    case(
        "is a number with a comma, which may part thousands or be a decimal point: write it without, or with a point",
        "{ echo time,event,v; for i in 1 2 3 4; do echo $i,1,1$i; echo $i,0,\"\\\"9,92$i\\\"\"; done; } >v.csv; \
         $COX v --table v.csv",
        "sed -i 's/\"9,/\"9/' v.csv",
        "$COX v --table v.csv",
    ),
    case(
        "x is `9,9`; its comma may part thousands or be a decimal point: write it without, or with a point",
        "printf 'image,x,y,label\nflat.png,\"9,9\",90,mf\n' >place.csv; \
         $M corpus import --format csv place.csv",
        "sed -i 's/9,9/99/' place.csv",
        "$M corpus import --format csv place.csv",
    ),
    case(
        "of this machine: choose another --port",
        "$M audit sample run --out au --per rejected=1 >made || exit; { python3 -c \"import socket, time; s = socket.socket(); \
         s.bind(('127.0.0.1', 0)); s.listen(); open('port1', 'w').write(str(s.getsockname()[1])); time.sleep(5)\" & }; \
         sleep 1; $M audit serve au/package --port $(cat port1)",
        "true",
        "timeout 3 $M audit serve au/package --port 0; test $? = 124",
    ),
    case(
        "choose another --port, or none",
        "python3 -c \"import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); \
         open('port2', 'w').write(str(s.getsockname()[1])); time.sleep(5)\" & sleep 1; \
         $M start --no-browser --model m --port $(cat port2)",
        "true",
        "timeout 3 $M start --no-browser --model m; test $? = 124",
    ),
    case(
        "choose another --port",
        "python3 -c \"import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); \
         open('port', 'w').write(str(s.getsockname()[1])); time.sleep(5)\" & sleep 1; \
         $M view run --no-browser --port $(cat port)",
        "true",
        "timeout 3 $M view run --no-browser --port 0; test $? = 124",
    ),
    case(
        "makes regions only: use --kind regions",
        "$M corpus import --kind crops --format he-folder twin --mpp 0.25 --images twin --out he",
        "true",
        "$M corpus import --kind regions --format he-folder twin --mpp 0.25 --out he",
    ),
    case(
        "the log-rank test knows no clusters: take one row per patient",
        "{ echo time,event,id,g; for i in 1 2 3 4; do echo $i,1,a$i,x; echo $i,0,b$i,y; done; } >id.csv; \
         $M survival logrank --time time --event event --group g --table id.csv --cluster id",
        "true",
        "$M survival logrank --time time --event event --group g --table id.csv --patient id",
    ),
];

#[test]
fn remedies_behind_a_colon_help() {
    let dir = place();
    let at = dir.path();
    fs::write(at.join("km.csv"), "time,event\n1,1\n2,0\n3,1\n").unwrap();
    follow(at, CASES);
}
