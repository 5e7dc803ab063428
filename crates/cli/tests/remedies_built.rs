//! Remedies in sentences that are put together (`format!("...; do this")`): entries and cases like those of
//! [`crate::remedies_prose`].

use crate::remedies::place;
use crate::remedies_prose::How::{Case, MayNot, Test};
use crate::remedies_prose::{Followed, How, bash, case, follow};
use std::fs;

/// Every remedy of a sentence that is put together, as in [`crate::remedies_prose`].
pub(crate) const BUILT: &[(&str, &str, How)] = &[
    ("remove it", "base", Case),
    ("save it as a file first", "base", Case),
    ("give its name the ending .parquet", "base", Case),
    ("save the sheet as CSV (UTF-8)", "base", Case),
    ("decompress it first (gzip -d)", "base", Case),
    ("decompress it first (zstd -d)", "base", Case),
    ("decompress it first (bzip2 -d)", "base", Case),
    ("decompress it first (xz -d)", "base", Case),
    ("fetch the file with `git lfs pull`", "base", Case),
    ("download the file again", "base", Case),
    ("save the table as UTF-8", "base", Case),
    ("save the table as UTF-8 (Excel", "base", Case),
    ("take the # off the header", "base", Case),
    ("close the mark before the `", "base", Case),
    ("close it or remove it", "base", Case),
    ("name them", "mithras", Case),
    (
        "this slide is not in run.json; gather the run again",
        "clinic",
        Test(
            "crates/cli/tests/upgrading.rs",
            "a_slide_that_the_run_does_not_list_is_refused_by_the_report",
            "this slide is not in run.json",
            "[\"gather\", \"run\", \"--into\", \"all\"]",
        ),
    ),
    ("other counts than run.json; gather the run again", "clinic", Case),
    (
        "another recount ({}) than run.json ({}); gather the run again",
        "clinic",
        Test(
            "crates/clinic/src/case.rs",
            "a_recount_that_was_changed_by_hand_is_refused",
            "its folder has another recount (",
            "gather(std::slice::from_ref(&run), None).unwrap();",
        ),
    ),
    (
        "take it out before training",
        "crops",
        Test(
            "crates/crops/src/pairs.rs",
            "refuses_test_crops_missing_labels_and_boxes",
            "take it out before training",
            "corpus(taken_out.path()",
        ),
    ),
    (
        "lower the batch",
        "crops",
        Test(
            "crates/crops/src/pairs.rs",
            "refuses_test_crops_missing_labels_and_boxes",
            "lower the batch",
            "(48, 16), 1, 5, 1).is_ok()",
        ),
    ),
    ("name another folder", "crops", Case),
    ("one pair is not the centre in level-0 px: correct it or remove it", "evaluation", Case),
    ("rename one, or evaluate them separately", "evaluation", Case),
    (
        "of a box that ends at {own}; write its centre as {place}, and remove {own}",
        "evaluation",
        Case,
    ),
    ("or its centre; write its centre as {place}, and remove {own}", "evaluation", Case),
    ("multiply them by the image's width and height", "evaluation", Case),
    ("keep one of the two", "review", Case),
    ("write 0 where nothing was counted", "review", Case),
    ("write such words and rename the column to `label`", "evaluation", Case),
    ("rename the column of labels to `label`", "evaluation", Case),
    ("as a figure or as none; remove one of the two", "evaluation", Case),
    ("has this place already in a row above; remove one of the two", "evaluation", Case),
    ("divide percentages by 100", "evaluation", Case),
    (
        "may have the true classes, and in row {} they are '{a}' and '{b}'; name the columns of true and predicted classes",
        "evaluation",
        Case,
    ),
    (
        "was taken for one of classes; name the columns of true and predicted classes",
        "evaluation",
        Case,
    ),
    ("spell them as one", "evaluation", Case),
    ("choose another folder", "experiments", MayNot("if this run is meant")),
    ("put {made} into {}", "experiments", MayNot("once it has")),
    ("use `mithras detect` for slides", "features", Case),
    ("take the engine onnxruntime", "infer", MayNot("if its library is installed")),
    ("take the precision f32", "infer", Case),
    ("take the precision f32, which may run it", "infer", MayNot("which may run it")),
    (
        "name one of {:?}",
        "infer",
        Test(
            "crates/infer/src/onnx/adapt.rs",
            "what_is_not_an_encoder_is_refused",
            "several outputs; name one of",
            "adapt(&two, &named)",
        ),
    ),
    ("export the network with its loops unrolled", "infer", MayNot("if they are short")),
    ("export them into this one", "infer", MayNot("if they are below 2 GB")),
    ("give it another name", "mithras", Case),
    ("rename one or put it into another list", "mithras", Case),
    (
        "leave the table out",
        "net",
        Test(
            "crates/train/tests/protocol.rs",
            "morphologies_are_also_classified_as_typical_or_atypical",
            "has no attention to adapt; leave the table out",
            "assert_eq!(set(&[]), Ok(()))",
        ),
    ),
    (
        "start every rank by one launcher",
        "net",
        Test(
            "crates/net/src/dist/mod.rs",
            "launchers_are_understood",
            "start every rank by one launcher",
            "launch(&ranked).unwrap().rank",
        ),
    ),
    (
        "name the host of rank 0",
        "net",
        Test(
            "crates/net/src/dist/mod.rs",
            "launchers_are_understood",
            "name the host of rank 0",
            "launch(&ranked).unwrap().host",
        ),
    ),
    ("use another engine", "net", MayNot("which may have it")),
    ("give its model.safetensors", "net", MayNot("if you have it")),
    ("use a Cox model and its score test", "outcome", Case),
    ("keep the columns and rows of the analysis", "outcome", MayNot("if there are others")),
    ("name the value that means the event", "outcome", Case),
    ("make them one; taken as categorical, they count apart", "outcome", Case),
    (
        "the event value '{value}' is spelt in several ways in this column ({}); make them one",
        "outcome",
        Case,
    ),
    ("but it would be censored; make them one", "outcome", Case),
    (
        "the training value '{value}' is spelt in several ways in this column ('{}', '{value}'); make them one",
        "outcome",
        Case,
    ),
    ("name one column of times since a common origin", "outcome", Case),
    ("take fewer covariates", "outcome", Case),
    ("name the codes that mean missing, or take '{name}' as categorical", "outcome", Case),
    ("rename one", "outcome", Case),
    (
        "write e.g. rand-m9-mstd0.5-inc1",
        "pixels",
        Test(
            "crates/pixels/src/rand_augment/tests.rs",
            "the_policy_is_read_as_timm_writes_it",
            "write e.g. ",
            "read(example).is_ok()",
        ),
    ),
    ("put the folder in front of it, or leave one out", "regions", Case),
    ("copy the file again", "slide", Case),
    ("evaluate larger ones as they are", "regions", MayNot("if memory allows")),
    ("export them from datasets of their own", "regions", Case),
    ("separate them, or state the order", "regions", Case),
    (
        "state the order",
        "regions",
        Test(
            "crates/regions/tests/import.rs",
            "coco_and_midog_are_not_confused",
            "state the order",
            "boxes: Some(BoxOrder::Xyxy)",
        ),
    ),
    ("unpack it and name the file inside", "regions", Case),
    ("export boxes", "regions", Case),
    ("write the whole name", "regions", Case),
    ("name the table of the labels", "regions", Case),
    ("name the table in it", "regions", Case),
    ("divide the database", "regions", MayNot("if it is meant to be so large")),
    ("state that they are xywh if it is the corner", "regions", Case),
    ("multiply them by the image's width and height", "regions", Case),
    ("swap their names", "regions", Case),
    ("name another file", "regions", Case),
    ("name another folder, or remove it first", "regions", Case),
    ("leave one of them out", "regions", Case),
    (
        "hand its keys on in the environment",
        "remote",
        MayNot("if `aws configure export-credentials` prints them"),
    ),
    ("give that address itself if it is meant", "remote", MayNot("if it is meant")),
    ("ask for a new one", "remote", MayNot("if it has")),
    ("use a folder with one file per slide", "roi", Case),
    ("it has colours; save it as grey, 0 outside and a number per class", "roi", Case),
    ("that are transparent; save it as grey, 0 outside and a number per class", "roi", Case),
    (
        "train it in one process",
        "train",
        Test(
            "crates/train/src/ranks.rs",
            "a_network_that_normalises_over_the_batch_is_trained_in_one_process",
            "train it in one process, or take a vision transformer",
            "fit(\"efficientnet_b0\", &Group::single())",
        ),
    ),
    (
        "or began with other weights; give the same ones, or another folder",
        "train",
        Test(
            "crates/train/tests/protocol.rs",
            "the_folds_of_a_run_begin_with_one_file_of_weights_or_each_with_its_own",
            "began with other weights",
            "start(\"run\", &first, 1, fresh(1)).unwrap()",
        ),
    ),
    ("give the same ones if you have them, or another folder", "train", MayNot("if you have them")),
    (
        "other data or other weights; give the same ones, or another folder",
        "train",
        Test(
            "crates/train/tests/frozen.rs",
            "probes_share_features_that_are_computed_once",
            "other weights; give the same ones, or another folder",
            "resume: true, ..from(out.clone(), &init)",
        ),
    ),
    (
        "leave the key out",
        "train",
        Test(
            "crates/train/tests/protocol.rs",
            "morphologies_are_also_classified_as_typical_or_atypical",
            "no coarser one; leave the key out",
            "CropsPreset::load(&file, &[])",
        ),
    ),
    ("give the table of held-out items", "train", MayNot("if this is that of a test")),
    ("use a probe of kind `logistic`", "train", MayNot("which may learn more")),
    (
        "call it `[probes.linear]`",
        "train",
        Test(
            "crates/train/tests/frozen.rs",
            "probes_that_cannot_be_are_named",
            "call it `[probes.linear]`",
            "ProbePreset::load(&path",
        ),
    ),
    (
        "start from a package",
        "training",
        Test(
            "crates/training/tests/detector_chain.rs",
            "a_drawn_dataset_becomes_a_package_and_a_killed_run_continues",
            "start from a package, whose point is kept",
            "without(Some(",
        ),
    ),
];

/// Cases of these; `$IM` are the options of an import, `$T` the columns of a survival table.
pub(crate) const CASES: &[Followed] = &[
    case(
        ".lock is not a regular file; remove it",
        "mkdir -p cbf/.build; mkfifo cbf/.build/.lock; $CB cbf",
        "rm cbf/.build/.lock",
        "$CB cbf",
    ),
    case(
        "give its name the ending .parquet",
        "cp survival.parquet packed.csv; $M survival km --time t --event e --table packed.csv",
        "mv packed.csv packed.parquet",
        "$M survival km --time t --event e --table packed.parquet",
    ),
    case(
        "decompress it first (bzip2 -d)",
        "python3 -c \"import bz2; bz2.open('bz.csv', 'w').write(open('km.csv', 'rb').read())\"; $KM bz.csv",
        "python3 -c \"import bz2; open('unbz.csv', 'wb').write(bz2.open('bz.csv').read())\"",
        "$KM unbz.csv",
    ),
    case(
        "decompress it first (xz -d)",
        "python3 -c \"import lzma; lzma.open('x.csv', 'w').write(open('km.csv', 'rb').read())\"; $KM x.csv",
        "python3 -c \"import lzma; open('unx.csv', 'wb').write(lzma.open('x.csv').read())\"",
        "$KM unx.csv",
    ),
    // The beginning of such a file; its program need not be here.
    case(
        "decompress it first (zstd -d)",
        "printf '\\x28\\xb5\\x2f\\xfd' >zstd.csv; $KM zstd.csv",
        "cp km.csv zstd.csv",
        "$KM zstd.csv",
    ),
    // A note, not an error.
    case(
        "1 hidden file (hid/.a.png); name them",
        "mkdir hid; cp flat.png hid/.a.png; cp flat.png hid/b.png; $M detect hid --model m --mpp 0.25 \
         --engine rten --threads 1 --out hid1; exit 1",
        "true",
        "$M detect hid/.a.png hid/b.png $Q --model m --out hid2 && test -d hid2/_a",
    ),
    case(
        "already holds a corpus; name another folder",
        "$M corpus import --format csv boxes.csv $IM crops",
        "true",
        "$M corpus import --format csv boxes.csv $IM crops2",
    ),
    case(
        "rename one, or evaluate them separately",
        "printf 'slide,x,y,label\\none.tiff,375,335,mf\\none.svs,10,10,mf\\n' >two.csv; $EV two.csv",
        "sed -i s/one.svs,10/one.tiff,10/ two.csv",
        "$EV two.csv",
    ),
    case(
        "with another label, as a figure or as none; remove one of the two",
        "printf 'slide,x,y,label\\none,375,335,mf\\none,375,335,mimicker\\n' >two.csv; $EV two.csv",
        "sed -i '$d' two.csv",
        "$EV two.csv",
    ),
    case(
        "the slide has this place already in a row above; remove one of the two",
        "printf 'slide,x,y,label\\none,375,335,mf\\none,375,335,mf\\n' >again.csv; $EV again.csv",
        "sed -i '$d' again.csv",
        "$EV again.csv",
    ),
    case(
        "keep one of the two",
        "printf 'cohort,stratum,confirmed,not_confirmed,unsure\\na,b,1,1,0\\na,b,2,1,0\\n' >ct.csv; \
         $M audit score --counts ct.csv",
        "sed -i '$d' ct.csv",
        "$M audit score --counts ct.csv",
    ),
    case(
        "write 0 where nothing was counted",
        "printf 'cohort,stratum,confirmed,not_confirmed,unsure\\na,b,1,1,\\n' >ct.csv; $M audit score --counts ct.csv",
        "sed -i 's/,$/,0/' ct.csv",
        "$M audit score --counts ct.csv",
    ),
    case(
        "multiply them by the image's width and height",
        "printf 'slide,x,y\\none,0.5,0.5\\none,0.25,0.75\\n' >parts.csv; $EV parts.csv",
        "printf 'slide,x,y\\none,375,335\\none,188,500\\n' >parts.csv",
        "$EV parts.csv",
    ),
    case(
        "are the corner of a box that ends at 'xmax', 'ymax'; write its centre as 'x', 'y', and remove 'xmax', 'ymax'",
        "printf 'slide,x,y,xmax,ymax\\none,350,310,400,360\\n' >ends.csv; $EV ends.csv",
        "printf 'slide,x,y\\none,375,335\\n' >ends.csv",
        "$EV ends.csv",
    ),
    case(
        "or its centre; write its centre as",
        "printf 'slide,x,y,width,height\\none,350,310,50,50\\n' >corner.csv; $EV corner.csv",
        "printf 'slide,x,y\\none,375,335\\n' >corner.csv",
        "$EV corner.csv",
    ),
    case(
        "write such words and rename the column to `label`",
        "printf 'slide,x,y,class\\none,375,335,1\\none,10,10,2\\n' >codes.csv; $EV codes.csv",
        "sed -i 's/class/label/; s/,1$/,mf/; s/,2$/,mimicker/' codes.csv",
        "$EV codes.csv",
    ),
    case(
        "rename the column of labels to `label`",
        "printf 'slide,x,y,class,type\\none,375,335,mf,mf\\none,10,10,mimicker,mf\\n' >pick.csv; $EV pick.csv",
        "sed -i s/class/label/ pick.csv",
        "$EV pick.csv",
    ),
    case(
        "divide percentages by 100",
        "printf 'file,truth,p_a,p_b\\n1,a,90,10\\n2,b,40,60\\n' >pc.csv; $EC pc.csv",
        "printf 'file,truth,p_a,p_b\\n1,a,0.90,0.10\\n2,b,0.40,0.60\\n' >pc.csv",
        "$EC pc.csv",
    ),
    case(
        "both 'truth' and 'label' may have the true classes, and in row 2 they are 'a' and 'b'; name the columns of true",
        "printf 'who,truth,label,class\\n1,a,a,a\\n2,a,b,b\\n3,b,b,b\\n' >both.csv; $EC both.csv",
        "true",
        "$EC both.csv --truth label --predicted class",
    ),
    case(
        "a column of names was taken for one of classes; name the columns of true and predicted classes",
        "{ echo id,truth,class,seen,guess; for i in {1..300}; do echo $i,n$i,n$i,a,b; done; echo 0,n0,n0,b,b; } \
         >many.csv; $EC many.csv",
        "true",
        "$EC many.csv --truth seen --predicted guess",
    ),
    case(
        "spell them as one",
        "printf 'who,truth,class\\n1,Mitosis,mitosis\\n2,b,b\\n' >sp.csv; $EC sp.csv",
        "sed -i s/Mitosis/mitosis/ sp.csv",
        "$EC sp.csv",
    ),
    case(
        "use `mithras detect` for slides",
        "$M classify large.png --model m --mpp 0.25 --engine rten --out cl",
        "true",
        "$M detect large.png $Q --model m --out cl2",
    ),
    case(
        "take the precision f32",
        "$M detect flat.png $Q --model m --precision bf16 --out bf",
        "true",
        "$M detect flat.png $Q --model m --precision f32 --out bf",
    ),
    case(
        "as one of counts.csv or cases.csv; give it another name",
        "printf 'slide,status\\nflat.png,x\\n' >status.csv; $M detect --list status.csv $Q --model m --out status",
        "sed -i s/status/state/ status.csv",
        "$M detect --list status.csv $Q --model m --out status",
    ),
    case(
        "rename one or put it into another list",
        "mkdir other2; cp one.tiff other2/flat.tiff; printf 'slide\\ntwin/flat.png\\nother2/flat.tiff\\n' >tw.csv; \
         $M detect --list tw.csv $Q --model m --out tw",
        "sed -i '$d' tw.csv; printf 'slide\\nother2/flat.tiff\\n' >tw2.csv",
        "$M detect --list tw.csv $Q --model m --out tw && $M detect --list tw2.csv $Q --model m --out tw2",
    ),
    case(
        "name the value that means the event",
        "printf 'time,event\\n1,who\\n2,x\\n3,who\\n' >who.csv; $KM who.csv",
        "true",
        "$KM who.csv --event-value who",
    ),
    case(
        "'deceased' means the event as the event value 'dead' does, but it would be censored; make them one",
        "printf 'time,event\\n1,dead\\n2,alive\\n3,deceased\\n' >words.csv; $KM words.csv --event-value dead",
        "sed -i s/deceased/dead/ words.csv",
        "$KM words.csv --event-value dead",
    ),
    case(
        "name one column of times since a common origin",
        "$M survival km --time start,stop --event event --table km.csv",
        "true",
        "$KM km.csv",
    ),
    case(
        "take fewer covariates",
        "printf 'time,event,a,b,c,d\\n1,1,2,3,4,1\\n2,0,3,5,1,1\\n3,1,9,1,2,7\\n' >few.csv; \
         $COX a,b,c,d --table few.csv",
        "true",
        "$COX a --table few.csv",
    ),
    case(
        "name the codes that mean missing, or take 'x' as categorical",
        "{ echo time,event,x; for i in {1..9}; do echo $i,1,$((i * 7 % 3)); done; echo 5,1,lost; echo 4,0,lost; } \
         >codes.csv; $COX x --table codes.csv",
        "true",
        "$COX x --table codes.csv --missing lost && $COX x --table codes.csv --categorical x",
    ),
    case(
        "two methods are called 'a'; rename one",
        "printf 'slide,hotspot_count,density_per_20_mm2\\n' >n.csv; { echo id,time,event; for i in {1..12}; do \
         echo S$i,$i,$((i % 2)); echo S$i,$((i * 3 % 7)),$((i * 5 % 11)) >>n.csv; done; } >t.csv; \
         $ST --counts n.csv --out st --method a=n.csv --method a=n.csv",
        "true",
        "$ST --counts n.csv --out st --method a=n.csv --method b=n.csv",
    ),
    case(
        "the training value 'train' is spelt in several ways in this column ('Train', 'train'); make them one",
        "{ echo id,time,event,part; for i in {1..12}; do echo S$i,$i,$((i % 2)),$([ $i = 3 ] && echo Train || \
         { [ $i -gt 6 ] && echo held || echo train; }); done; } >parts.csv; \
         ${ST/t.csv/parts.csv} --counts n.csv --out spelt --train part=train",
        "sed -i s/Train/train/ parts.csv",
        "${ST/t.csv/parts.csv} --counts n.csv --out spelt --train part=train",
    ),
    case(
        "put the folder in front of it, or leave one out",
        "mkdir -p both/a both/b; cp flat.png both/a; cp small.svs both/b/flat.png; \
         printf 'image,x,y,label\\nflat.png,20,30,mf\\n' >which.csv; \
         $M corpus import --format csv which.csv --images both --mpp 0.25 --crop 64 --out which",
        "sed -i s/flat/a.flat/ which.csv; sed -i s:a.flat:a/flat: which.csv",
        "$M corpus import --format csv which.csv --images both --mpp 0.25 --crop 64 --out which",
    ),
    case(
        "copy the file again",
        "head -c $(($(stat -c %s tissue.jpg) / 2)) tissue.jpg >half.jpg; \
         $M classify half.jpg --model m --mpp 0.25 --engine rten --out half",
        "cp tissue.jpg half.jpg",
        "$M classify half.jpg --model m --mpp 0.25 --engine rten --out half2",
    ),
    case(
        "regions of a sheet are of one size; export them from datasets of their own",
        "mkdir sizes own; cp flat.png one.tiff sizes; cp flat.png own; \
         printf 'image,x,y,label\\nflat.png,20,30,mf\\none.tiff,20,30,mf\\n' >sizes.csv; $RG sizes.csv --images \
         sizes --out sizes1; $M corpus export sizes1 --format sheets --out sheets1",
        "grep -v tiff sizes.csv >own.csv; $RG own.csv --images own --out own1",
        "$M corpus export own1 --format sheets --out sheets2",
    ),
    case(
        "separate them, or state the order",
        "$COCO 90,80,50,50 310,220,360,270 >mix.json; \
         $M corpus import --format coco mix.json $IM mix",
        "$COCO 90,80,50,50 >mix1.json; $COCO 310,220,360,270 >mix2.json",
        "$M corpus import --format coco mix1.json $IM mix1 && \
         $M corpus import --format midog-json mix2.json --map mf=mf $IM mix2",
    ),
    case(
        "column `label` has `mf` and column `class` has `mimicker`; correct one of them",
        "printf 'image,x,y,label,class\nflat.png,90,90,mf,mimicker\n' >odds.csv; \
         $M corpus import --format csv odds.csv $IM odds",
        "sed -i s/mimicker/mf/ odds.csv",
        "$M corpus import --format csv odds.csv $IM odds",
    ),
    case(
        "it is called `Mitotic figure` and `Non-mitotic figure`; correct one of them",
        "echo '{\"type\": \"Feature\", \"geometry\": {\"type\": \"Point\", \"coordinates\": [90, 90]}, \
         \"properties\": {\"classification\": {\"name\": \"Mitotic figure\"}, \"name\": \"Non-mitotic figure\"}}' \
         >flat.geojson; $M corpus import --format geojson flat.geojson $IM called",
        "sed -i 's/Non-mitotic/Mitotic/' flat.geojson",
        "$M corpus import --format geojson flat.geojson $IM called",
    ),
    case(
        "it is called `non-mitotic` in the group `mitosis`; correct one of them",
        "echo '<ASAP_Annotations><Annotations><Annotation Name=\"non-mitotic\" Type=\"Dot\" PartOfGroup=\"mitosis\">\
         <Coordinates><Coordinate Order=\"0\" X=\"90\" Y=\"90\"/></Coordinates></Annotation></Annotations>\
         </ASAP_Annotations>' >flat.xml; $M corpus import --format asap flat.xml $IM grouped",
        "sed -i s/non-mitotic/mitosis/ flat.xml",
        "$M corpus import --format asap flat.xml $IM grouped",
    ),
    case(
        "its bbox is [90,80,50,50], but its segmentation reaches from 290, 80 to 340, 130; correct one of them",
        "$COCO 90,80,50,50 | sed 's/50]}/50], \"segmentation\": [[290,80,340,80,340,130]]}/' >ring.json; \
         $M corpus import --format coco ring.json $IM ring",
        "sed -i 's/290,80,340,80,340,130/90,80,140,80,140,130/' ring.json",
        "$M corpus import --format coco ring.json $IM ring",
    ),
    case(
        "its area is 9000 px2, but its box is 50 x 50 px; correct one of them",
        "$COCO 90,80,50,50 | sed 's/50]}/50], \"area\": 9000}/' >area.json; \
         $M corpus import --format coco area.json $IM area",
        "sed -i s/9000/2500/ area.json",
        "$M corpus import --format coco area.json $IM area",
    ),
    case(
        "its area is 2000 px2, but that of its segmentation is 1250.0 px2; correct one of them",
        "$COCO 90,80,50,50 | sed 's/50]}/50], \"area\": 2000, \
         \"segmentation\": [[90,80,140,80,140,130]]}/' >parts.json; $M corpus import --format coco parts.json $IM parts",
        "sed -i s/2000/1250/ parts.json",
        "$M corpus import --format coco parts.json $IM parts",
    ),
    case(
        "save it as UTF-8",
        "printf '<?xml version=\"1.0\"?><ASAP_Annotations><Annotations><Annotation Name=\"k\\xf6\" Type=\"Dot\" \
         PartOfGroup=\"mf\"><Coordinates><Coordinate Order=\"0\" X=\"90\" Y=\"90\"/></Coordinates></Annotation>\
         </Annotations></ASAP_Annotations>' >flat.xml; $M corpus import --format asap flat.xml $IM xml",
        "sed -i 's/k\\xf6/k\\xc3\\xb6/' flat.xml",
        "$M corpus import --format asap flat.xml $IM xml",
    ),
    case(
        "wide.json: is UTF-16 text; save it as UTF-8",
        "$COCO 10,20,50,50 >wide.json; \
         python3 -c \"t = open('wide.json').read(); open('wide.json', 'w', encoding='utf-16').write(t)\"; \
         $M corpus import --format coco wide.json $IM wide",
        "python3 -c \"t = open('wide.json', encoding='utf-16').read(); open('wide.json', 'w').write(t)\"",
        "$M corpus import --format coco wide.json $IM wide",
    ),
    case(
        "wide.geojson: is UTF-16 text; save it as UTF-8",
        "python3 -c \"t = open('r.geojson').read(); open('wide.geojson', 'w', encoding='utf-16').write(t)\"; \
         $M detect flat.png $Q --model m --out wide --regions wide.geojson",
        "python3 -c \"t = open('wide.geojson', encoding='utf-16').read(); open('wide.geojson', 'w').write(t)\"",
        "$M detect flat.png $Q --model m --out wide --regions wide.geojson",
    ),
    case(
        "a ZIP archive; unpack it and name the file inside",
        "$COCO 10,20,50,50 >in.json; python3 -c \"import zipfile; \
         zipfile.ZipFile('z.json', 'w').write('in.json')\"; $M corpus import --format coco z.json $IM zip",
        "python3 -c \"import zipfile; zipfile.ZipFile('z.json').extract('in.json', 'unpacked')\"",
        "$M corpus import --format coco unpacked/in.json $IM zip",
    ),
    case(
        "a run-length mask is not read; export boxes",
        "$COCO 10,20,50,50 | sed 's/\"bbox\": [^]]*]/\"segmentation\": {\"counts\": \"ab\"}/' >rle.json; \
         $M corpus import --format coco rle.json $IM rle",
        "$COCO 10,20,50,50 >rle.json",
        "$M corpus import --format coco rle.json $IM rle",
    ),
    case(
        "write the whole name",
        "mkdir part; cp flat.png part/a.png; cp one.tiff part/a.tiff; \
         printf 'image,x,y,label\\na.png,90,90,mf\\na.tiff,90,90,mf\\n' >part.csv; printf 'image\\na\\n' >sel.csv; \
         $RG part.csv --images part --only-images sel.csv --out part1",
        "printf 'image\\na.png\\n' >sel.csv",
        "$RG part.csv --images part --only-images sel.csv --out part1",
    ),
    case(
        "this is a folder without a table; name the table of the labels",
        "$M corpus import --format csv twin $IM folder",
        "true",
        "$M corpus import --format csv boxes.csv $IM folder",
    ),
    case(
        "this is a folder; name the table in it: lab/boxes.csv",
        "mkdir lab; cp boxes.csv lab; $M corpus import --format csv lab $IM lab1",
        "true",
        "$M corpus import --format csv lab/boxes.csv $IM lab1",
    ),
    case(
        "state that they are xywh if it is the corner, or rename x, y to cx, cy if it is the centre",
        "printf 'image,x,y,width,height,label\\nflat.png,20,30,50,50,mf\\nflat.png,60,50,50,50,mf\\n' >bx.csv; \
         $M corpus import --format csv bx.csv $IM bx",
        "sed 's/x,y/cx,cy/' bx.csv >centre.csv",
        "$M corpus import --format csv bx.csv --boxes xywh $IM bx && $M corpus import --format csv centre.csv $IM bx2",
    ),
    case(
        "multiply them by the image's width and height",
        "printf 'image,x,y,label\\nflat.png,0.2,0.3,mf\\nflat.png,0.6,0.5,mf\\n' >part01.csv; \
         $M corpus import --format csv part01.csv $IM part01",
        "printf 'image,x,y,label\\nflat.png,80,90,mf\\nflat.png,240,150,mf\\n' >part01.csv",
        "$M corpus import --format csv part01.csv $IM part01",
    ),
    case(
        "swap their names",
        "printf 'image,xmin,ymin,xmax,ymax,label\\nflat.png,70,80,20,30,mf\\nflat.png,110,100,60,50,mf\\n' >sw.csv; \
         $M corpus import --format csv sw.csv $IM sw",
        "sed -i 1s/.*/image,xmax,ymax,xmin,ymin,label/ sw.csv",
        "$M corpus import --format csv sw.csv $IM sw",
    ),
    case(
        "name another file",
        "mkdir six; { echo image,x,y,label; for i in {1..6}; do cp flat.png six/f$i.png; echo $i >>six/f$i.png; \
         echo f$i.png,90,90,mf; done; } >six.csv; $RG six.csv --images six --out six1; \
         $M corpus split six1 --folds 3 --out folds.json; $M corpus split six1 --folds 2 --out folds.json",
        "true",
        "$M corpus split six1 --folds 2 --out folds2.json",
    ),
    case(
        "is a dataset already; name another folder, or remove it first",
        "$RG boxes.csv --images twin --out sets",
        "cp -r sets removed; rm -r removed",
        "$RG boxes.csv --images twin --out sets3 && $RG boxes.csv --images twin --out removed",
    ),
    case(
        "leave one of them out",
        "cp -r sets same; $M corpus merge sets same --out merged",
        "true",
        "$M corpus merge sets six1 --out merged",
    ),
    case(
        "use a folder with one file per slide",
        "$M detect flat.png small.svs $Q --model m --out each --regions r.geojson",
        "mkdir each-r; cp r.geojson each-r/flat.geojson; sed 's/390/170/g; s/290/120/g' r.geojson >each-r/small.geojson",
        "$M detect flat.png small.svs $Q --model m --out each --regions each-r --force-mpp",
    ),
    case(
        "it has values that are transparent; save it as grey, 0 outside and a number per class",
        "$M detect flat.png $Q --model m --out seen --regions hidden.png --regions-mpp 2.5",
        "true",
        "$M detect flat.png $Q --model m --out seen --regions mask.png --regions-mpp 2.5",
    ),
    case(
        "it has colours; save it as grey, 0 outside and a number per class",
        "$M detect flat.png $Q --model m --out grey --regions coloured.png --regions-mpp 2.5",
        "true",
        "$M detect flat.png $Q --model m --out grey --regions mask.png --regions-mpp 2.5",
    ),
    case(
        "one pair is not the centre in level-0 px: correct it or remove it",
        "printf 'slide,x,y,cx,cy\\none,375,335,10,10\\n' >pairs.csv; $EV pairs.csv",
        "printf 'slide,x,y,cx,cy\\none,375,335,375,335\\n' >right.csv; printf 'slide,x,y\\none,375,335\\n' >removed.csv",
        "$EV right.csv && $EV removed.csv",
    ),
];

#[test]
fn remedies_in_sentences_that_are_put_together_help() {
    let dir = place();
    let at = dir.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
    write("km.csv", "time,event\n1,1\n2,0\n3,1\n");
    write("boxes.csv", "image,x,y,label\nflat.png,90,90,mf\nflat.png,190,90,imposter\n");
    let white = image::Rgb([244, 243, 244]);
    image::RgbImage::from_pixel(9000, 300, white).save(at.join("large.png")).unwrap();
    let tissue = image::RgbImage::from_fn(400, 300, |x, y| image::Rgb([(x * 7 + y * 3) as u8; 3]));
    tissue.save(at.join("tissue.jpg")).unwrap();
    let red = image::RgbImage::from_pixel(40, 30, image::Rgb([255, 9, 9]));
    red.save(at.join("coloured.png")).unwrap();
    let hidden = image::GrayAlphaImage::from_pixel(40, 30, image::LumaA([255, 9]));
    hidden.save(at.join("hidden.png")).unwrap();
    crate::survival_tables::parquet_table(&at.join("survival.parquet"));
    write(
        "coco.sh",
        r#"i=0; echo '{"images": [{"id": 1, "file_name": "flat.png", "width": 400, "height": 300}],'
        echo '"categories": [{"id": 1, "name": "mf"}], "annotations": ['
        for box in "$@"; do [ $i = 0 ] || echo ,; i=$((i + 1))
        echo "{\"id\": $i, \"image_id\": 1, \"category_id\": 1, \"bbox\": [$box]}"; done; echo ]}"#,
    );
    for line in [
        "$M corpus import --format csv boxes.csv $IM crops",
        "$RG boxes.csv --images twin --out sets",
    ] {
        let made = bash(at, line);
        assert!(made.status.success(), "{}", crate::upgrading::output_text(&made));
    }
    follow(at, CASES);
}
