//! Remedies behind a colon (`...: write all decimals in one way`): entries and cases like those of
//! [`crate::remedies_prose`].

use crate::remedies::place;
use crate::remedies_prose::How::{Case, MayNot, Test};
use crate::remedies_prose::{Followed, How, case, follow};
use std::fs;

const JUDGED: (&str, &str) = (
    "crates/cli/tests/view/calibrate.rs",
    "judged_candidates_set_the_scale_and_the_points_of_a_package",
);
const OF_A_TRAINING: &str = "takes a training";
const OF_DATA: &str = "the data or weights are not here";

/// Every remedy behind a colon, as in [`crate::remedies_prose`].
pub(crate) const COLONS: &[(&str, &str, How)] = &[
    ("write key=value", "base", MayNot(OF_A_TRAINING)),
    ("write all decimals in one way", "base", Case),
    ("write it without, or with a point", "base", Case),
    ("choose another --port", "cli", Case),
    ("name yours with --model", "cli", MayNot("a detector of one's own is not here")),
    ("use --kind regions", "cli", Case),
    ("write NAME=FILE", "cli", MayNot(OF_A_TRAINING)),
    (
        "copy it again, or raise max_unread_share",
        "detect",
        MayNot("the source of the copy may be damaged as well"),
    ),
    ("judge or measure more candidates on both sides", "evaluation", Test(JUDGED.0, JUDGED.1)),
    ("write NAME=DIR", "evaluation", MayNot("takes the measured folds of several trainings")),
    ("give the scores of these networks", "evaluation", MayNot(OF_DATA)),
    ("put its {piece}", "experiments", MayNot(OF_DATA)),
    ("put the file into the folder of encoders", "experiments", MayNot(OF_DATA)),
    ("write to FILE.parquet", "features", MayNot("needs the package of an encoder")),
    (
        "write it without them (",
        "infer",
        MayNot("needs the code that exported the network, which is not here"),
    ),
    ("name patients or clusters", "outcome", MayNot("the program refuses both flags before")),
    ("write it without, or with a point", "outcome", Case),
    ("take one row per patient", "outcome", Case),
    (
        "call it `image`, or list one name a line",
        "regions",
        Test(
            "crates/regions/src/annotations/select.rs",
            "lists_name_images_and_wrong_names_are_refused",
        ),
    ),
    ("write it without, or with a point", "regions", Case),
    ("export pixels", "regions", MayNot("needs QuPath, which wrote the table")),
    (
        "name the folder of the slide's conversion",
        "review",
        MayNot("slides that were converted elsewhere are not here"),
    ),
    (
        "recount the run of that name",
        "review",
        MayNot("the run in which the slide had its former name is not here"),
    ),
    ("run import.groovy", "review", MayNot("no remedy: it is what follows the export")),
    ("open the case again", "review", MayNot("who signed a case decides whether to open it")),
    ("copy the file again, or export it again", "slide", MayNot("it may have been written so")),
    ("start all processes again", "train", MayNot(OF_A_TRAINING)),
    ("use letters, digits", "train", MayNot(OF_A_TRAINING)),
    ("start again with train.precision", "train", MayNot(OF_A_TRAINING)),
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
