//! Importers: exact counts on published files, and clear refusals of broken ones.

use regions::annotations::{
    BoxOrder, Class, ImageEntry, ImportError, ImportOptions, LabelSource, Mapping, Summary,
    importer,
};
use std::fs;
use std::path::{Path, PathBuf};

fn read(format: &str, file: &Path, o: &ImportOptions) -> Result<Summary, ImportError> {
    (importer(format).unwrap().read)(file, o).map(|a| a.summary())
}

fn text(
    format: &str,
    name: &str,
    content: &str,
    o: &ImportOptions,
) -> Result<Summary, ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    fs::write(&file, content).unwrap();
    read(format, &file, o)
}

fn refused(format: &str, content: &str) -> String {
    let name = if format.ends_with("json") || format == "coco" { "a.json" } else { "a.csv" };
    text(format, name, content, &ImportOptions::default()).unwrap_err().to_string()
}

fn plain() -> ImportOptions {
    ImportOptions::default()
}

fn figures(s: &Summary) -> (usize, usize, usize, usize) {
    (s.images, s.labelled_images, s.figures, s.mimickers)
}

#[test]
fn midog_plus_plus() {
    let Some(file) = testkit::data("annotations/MIDOG++.json") else { return };
    let s = read("midog-json", &file, &plain()).unwrap();
    assert_eq!(figures(&s), (553, 503, 11_937, 14_349));
    assert_eq!(s.clipped, 274);
    assert_eq!((s.duplicates, s.contradictions.len(), s.skipped), (0, 0, 0));
    assert_eq!((s.close_labels, s.unread_columns), (None, None));
    assert_eq!(s.cohorts.len(), 7);
    assert_eq!(s.votes.len(), 3);
    let e = read("coco", &file, &plain()).unwrap_err();
    assert!(matches!(e, ImportError::Boxes { .. }), "{e}");
    assert!(e.to_string().contains("as `midog-json`"), "{e}");
}

/// Of two labels of one cell each counts: both are kept, and named.
#[test]
fn labels_that_may_be_of_one_cell_are_named() {
    let rows = "a,100,100,mf\na,101,100,mitosis\na,100,124,imposter\na,300,100,mf\nb,100,100,mf\n";
    let s = text("csv", "a.csv", &format!("image,x,y,label\n{rows}"), &plain()).unwrap();
    assert_eq!(figures(&s), (2, 2, 4, 1), "nothing is left out");
    let close = s.close_labels.as_ref().unwrap();
    assert_eq!((close.pairs, close.closer_than_um, close.assumed_mpp), (2, 6.25, Some(0.25)));
    assert_eq!(close.first[1].records, ["line 2", "line 4"]);
    let printed = s.to_string();
    let line = "2 pairs of labels are closer than 6.25 um (kept), at 0.25 um/px where none is known: first at \
                a.csv, a: line 2 (`mf`) and line 3 (`mitosis`), 0.25 um apart\n";
    assert!(printed.contains(line), "{printed}");
    let json = serde_json::to_value(&s).unwrap();
    assert_eq!(json["close_labels"]["first"][0]["um"], 0.25, "{json}");
    // By the um/px of the table; what repeats or contradicts another label is counted as that.
    let at = |x: u32, mpp: f64| {
        let table = format!("image,x,y,label,mpp\na,100,100,mf,{mpp}\na,{x},100,mf,{mpp}\n");
        text("csv", "a.csv", &table, &plain()).unwrap().close_labels.map(|c| c.assumed_mpp)
    };
    assert_eq!((at(112, 0.5), at(113, 0.5)), (Some(None), None));
    assert_eq!((at(124, 0.25), at(125, 0.25)), (Some(None), None));
    let exact = "image,x,y,label\na,9,9,mf\na,9,9,mf\na,9,9,imposter\na,90,9,other\na,91,9,other\n";
    let s = text("csv", "a.csv", exact, &plain()).unwrap();
    assert_eq!((s.duplicates, s.contradictions.len(), s.close_labels), (1, 1, None));
}

#[test]
fn columns_that_are_not_read_are_named_once() {
    let columns = |head: &str| {
        let cells = head.split(',').skip(4).map(|_| ",1").collect::<String>();
        let table = format!("{head}\na,100,100,mf{cells}\na,300,100,mf{cells}\n");
        let s = text("csv", "a.csv", &table, &plain()).unwrap();
        let json = serde_json::to_value(&s).unwrap();
        (s.to_string(), json["unread_columns"].clone())
    };
    let (printed, json) = columns("image,x,y,label,grade,mpp_um,Patient No,a,b,c");
    let line = "a.csv: 6 columns are not read: `mpp_um` (is `mpp` meant?), `Patient No` (is `patient` meant?), \
                `grade`, `a`, `b`, ...\n";
    assert!(printed.contains("note: ") && printed.contains(line), "{printed}");
    assert_eq!((&json["count"], &json["columns"][0]["meant"]), (&6.into(), &"mpp".into()));
    for read in [
        "image,x,y,label",
        "image,x,y,label,mpp,patient,scanner,tumor,subtype,id,image_width,deleted,rater,unit",
        // The program's own tables.
        "image,x,y,label,record,clipped,votes,slide_name",
        "slide,x_px,y_px,kind,phase",
    ] {
        assert_eq!(columns(read).1, serde_json::Value::Null, "{read}");
    }
}

#[test]
fn misspelt_columns_of_published_tables_are_named() {
    let midog = "image_id,filename,coordinateX,coordinateY,Tumor,Scanner,Origin,Species,expert1,expert2,expert3,majority";
    let ami = ",slide,dataset,uid,x,y,expert1_label,expert2_label,expert1_atypical,expert2_atypical,\
               expert3_atypical,majority_atypical";
    let rows = [
        "1.png,201.tiff,5047,459,lung,3D,VMU,Canine,NMF,NMF,,NMF",
        "0,002.tiff,MIDOG21,6,4422,216,NMF ring shape,NMF ring shape,False,False,False,False",
    ];
    for (format, head, row) in [("midog25-csv", midog, rows[0]), ("ami-br", ami, rows[1])] {
        let unread = |head: &str| {
            let s = text(format, "a.csv", &format!("{head}\n{row}\n"), &plain()).unwrap();
            let json = serde_json::to_value(&s).unwrap()["unread_columns"].clone();
            (s.to_string(), json)
        };
        assert_eq!(unread(head).1, serde_json::Value::Null, "{format}");
        for (column, written) in [
            ("Tumor", "Tumr"),
            ("expert2", "exprt2"),
            ("majority", "majorty"),
            ("dataset", "datset"),
            ("expert1_label", "expret1_label"),
        ] {
            let misspelt = head.replacen(&format!(",{column},"), &format!(",{written},"), 1);
            let misspelt = match misspelt.strip_suffix(column) {
                Some(start) => format!("{start}{written}"),
                None => misspelt,
            };
            if misspelt == head {
                continue;
            }
            let (printed, json) = unread(&misspelt);
            let line = format!("a.csv: 1 column is not read: `{written}` (is `{column}` meant?)");
            assert!(printed.contains(&line), "{format}, {line}: {printed}");
            assert_eq!(json["columns"][0]["meant"], column, "{format}: {json}");
        }
    }
}

/// They may have figures that the user expects to be read.
#[test]
fn files_in_folders_below_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let feature = r#"{"type": "Feature", "geometry": {"type": "Point", "coordinates": [90, 90]},
        "properties": {"classification": {"name": "Mitotic figure"}}}"#;
    let asap = r#"<ASAP_Annotations><Annotations><Annotation Name="a" Type="Dot" PartOfGroup="mitosis">
        <Coordinates><Coordinate Order="0" X="1" Y="2"/></Coordinates></Annotation></Annotations></ASAP_Annotations>"#;
    for (format, name, content) in [("geojson", "a.geojson", feature), ("asap", "a.xml", asap)] {
        let folder = dir.path().join(format);
        let write = |path: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write(name);
        write(".hidden/a.geojson");
        let s = read(format, &folder, &plain()).unwrap();
        assert_eq!((s.figures, s.ignored.len()), (1, 0), "{format}");
        write(&format!("more/{name}"));
        write(&format!("more/deep/{name}"));
        let s = read(format, &folder, &plain()).unwrap();
        assert_eq!((s.figures, s.ignored.get("files in folders below")), (1, Some(&2)));
        assert!(s.to_string().contains("2 `files in folders below` ignored"), "{s}");
    }
    // A slide's results of a run are not such files.
    let results = dir.path().join("geojson/one");
    fs::create_dir(&results).unwrap();
    for name in ["qupath.geojson", "tissue.geojson"] {
        fs::write(results.join(name), feature).unwrap();
    }
    let s = read("geojson", &dir.path().join("geojson"), &plain()).unwrap();
    assert_eq!((s.figures, s.ignored["files in folders below"]), (2, 2));
}

#[test]
fn midog_21_sqlite() {
    let Some(file) = testkit::data("annotations/MIDOG2021.sqlite") else { return };
    let s = read("sliderunner", &file, &plain()).unwrap();
    assert_eq!(figures(&s), (200, 150, 1_721, 2_714));
    let one = ImportOptions { labels: LabelSource::Annotator("expert 1".into()), ..plain() };
    let s = read("sliderunner", &file, &one).unwrap();
    assert_eq!((s.figures, s.mimickers, s.unresolved), (1_764, 2_671, 0));
    let nobody = ImportOptions { labels: LabelSource::Annotator("expert 9".into()), ..plain() };
    let e = read("sliderunner", &file, &nobody).unwrap_err().to_string();
    assert!(e.contains("expert 3") && e.contains("RetinaNet"), "{e}");
}

#[test]
fn atypical_tables() {
    let Some(file) = testkit::data("ami_br/labels.csv") else { return };
    let s = read("ami-br", &file, &plain()).unwrap();
    assert_eq!((s.figures, s.mimickers), (3_720, 0));
    assert_eq!((&s.close_labels, &s.unread_columns), (&None, &None));
    assert_eq!((s.atypical, s.typical), (Some(832), Some(2_888)));
    assert_eq!(s.splits["test"], 1_999);
    assert_eq!(s.cohorts["MIDOG21"]["figures"], 1_721);
    assert_eq!(s.votes["expert1_label"]["NMF ring shape"], 18 + 34);

    let Some(file) = testkit::data("annotations/MIDOG25_Atypical_Classification_Train_Set.csv")
    else {
        return;
    };
    let s = read("midog25-csv", &file, &plain()).unwrap();
    assert_eq!((s.figures, s.typical, s.atypical), (11_937, Some(10_189), Some(1_748)));
    assert_eq!((s.images, &s.unread_columns), (475, &None));
}

#[test]
fn columns_may_be_anywhere() {
    let a =
        "majority;Extra;coordinateY;coordinateX;filename\nNMF;1;20;10;a.tiff\nAMF;2;30;40;b.tiff\n";
    let s = text("midog25-csv", "a.csv", a, &plain()).unwrap();
    assert_eq!((s.images, s.typical, s.atypical), (2, Some(1), Some(1)));
    let b = "filename,coordinateX,coordinateY,expert1,expert2,expert3\na,1,2,AMF,NMF,AMF\na,9,9,AMF,NMF,\n";
    let s = text("midog25-csv", "a.csv", b, &plain()).unwrap();
    assert_eq!((s.atypical, s.typical, s.figures), (Some(1), Some(0), 2));
}

#[test]
fn plain_tables() {
    let s = text(
        "csv",
        "a.csv",
        "slide,cx,cy,label\na,10,20,mitosis\na,30,40,Hard negative\nb,1,2,\n",
        &plain(),
    )
    .unwrap();
    assert_eq!((s.figures, s.mimickers, s.unresolved, s.images), (1, 1, 1, 2));
    let boxes =
        "image\txmin\tymin\txmax\tymax\tclass\na\t0\t0\t50\t50\tMF\na\t0\t0\t50\t50\tnon-mitotic\n";
    let s = text("csv", "a.tsv", boxes, &plain()).unwrap();
    assert_eq!((s.figures, s.mimickers, s.contradictions.len()), (1, 1, 1));
    let unlabelled = "file,cx,cy\na,1,2\n";
    assert!(refused("csv", unlabelled).contains("assumed"));
    let assumed = ImportOptions { assume: Some(Class::MitoticFigure), ..plain() };
    assert_eq!(text("csv", "a.csv", unlabelled, &assumed).unwrap().figures, 1);
    let flag = text("csv", "a.csv", "file,x,y,mitotic\na,1,2,True\na,5,2,0\n", &plain()).unwrap();
    assert_eq!((flag.figures, flag.mimickers), (1, 1));

    let Some(file) = testkit::data("icpr2012/mitoses.csv") else { return };
    let s = read("csv", &file, &assumed).unwrap();
    assert_eq!((s.images, s.figures), (16, 63));
}

#[test]
fn a_place_in_several_columns_is_compared_and_never_chosen() {
    let good = [
        "image,cx,cy,x,y,w,h,label\na,125,225,100,200,50,50,mf\n",
        "image,x_px,y_px,x,y,label\na,10.4,20,10,20.4,mf\n",
        "image,xmin,ymin,xmax,ymax,x,y,label\na,100,200,150,250,125,225,mf\nb,100,200,150,250,,,mf\n",
        "image,xmin,ymin,xmax,ymax,width,height,label\na,100,200,150,250,50,51,mf\n",
        "image,xmin,ymin,xmax,ymax,w,h,label\na,100,200,149.5,250,50,50,mf\n",
        // Rows and columns may be those of a grid.
        "image,x,y,row,column,label\na,100,200,3,4,mf\n",
        // TensorFlow's tables have the sides of images.
        "filename,width,height,class,xmin,ymin,xmax,ymax\na,640,480,mf,100,200,150,250\na,640,480,mf,620,200,650,250\n",
    ];
    for content in good {
        let s = text("csv", "a.csv", content, &plain());
        assert!(s.as_ref().is_ok_and(|s| s.figures >= 1), "{content}: {s:?}");
    }
    for (content, words) in [
        (
            "image,cx,cy,x,y,label\na,125,225,100,200,mf\n",
            "the centre is 125, 225 px, and the columns `x` and `y` have 100, 200",
        ),
        ("image,cx,cy,x,y,w,h,label\na,125,225,10,200,50,50,mf\n", "`x` and `y` have 10, 200"),
        (
            "image,xmin,ymin,xmax,ymax,x,y,label\na,100,200,150,250,125,225,mf\na,100,200,150,250,225,125,mf\n",
            "line 3: the box reaches from 100, 200 to 150, 250 px, and the columns `x` and `y` have 225, 125",
        ),
        (
            "image,xmin,ymin,xmax,ymax,w,h,label\na,100,200,150,250,80,50,mf\n",
            "the box is 50 x 50 px by its corners and 80 x 50 px",
        ),
        (
            "image,image_width,image_height,x,y,label\na,640,480,1,2,mf\na,800,480,9,9,mf\n",
            "a width of 640 px in an earlier record and of 800 px here",
        ),
        (
            "image,scanner,x,y,label\na,A,1,2,mf\na,B,9,9,mf\n",
            "of the scanner `A` in an earlier record and of `B` here",
        ),
        (
            "image,cohort,x,y,label\na,A,1,2,mf\na,B,9,9,mf\n",
            "of the cohort `A` in an earlier record and of `B` here",
        ),
        (
            "image,mpp,x,y,label\na,0.25,1,2,mf\na,0.5,9,9,mf\n",
            "row 2 (line 3): 0.5 x 0.5 um/px, but 0.25 x 0.25",
        ),
    ] {
        let e = refused("csv", content);
        assert!(e.contains("a.csv") && e.contains(words), "{words}: {e}");
    }
    // Corrected by one of the two, or by the other, each is read.
    for (content, wrong, right) in [
        ("image,cx,cy,x,y,label\na,125,225,100,200,mf\n", "100,200", "125,225"),
        ("image,cx,cy,x,y,label\na,125,225,100,200,mf\n", "125,225", "100,200"),
        ("image,xmin,ymin,xmax,ymax,w,h,label\na,100,200,150,250,80,50,mf\n", "80,50", "50,50"),
        (
            "image,image_width,image_height,x,y,label\na,640,480,1,2,mf\na,800,480,9,9,mf\n",
            "800",
            "640",
        ),
        ("image,scanner,x,y,label\na,A,1,2,mf\na,B,9,9,mf\n", "a,B", "a,A"),
        ("image,x,y,label,class\na,1,2,mf,mimicker\n", "mf,mimicker", "mf,mf"),
    ] {
        let e = refused("csv", content);
        assert!(e.contains("correct one of them"), "{content}: {e}");
        let read = text("csv", "a.csv", &content.replace(wrong, right), &plain());
        assert!(read.as_ref().is_ok_and(|s| s.figures >= 1), "{content}: {read:?}");
    }
    // Of the sides of images and those of the image file one check is left.
    let sizes = text("csv", "a.csv", good[6], &plain()).unwrap();
    assert_eq!(sizes.clipped, 1);
    for (format, label) in [("midog25-csv", "majority"), ("ami-br", "majority")] {
        let e = refused(format, &format!("filename,x,y,cx,cy,{label}\na,100,200,125,225,NMF\n"));
        assert!(e.contains("`cx` and `cy` have 125, 225"), "{format}: {e}");
    }
    let own = ImportOptions { cohort: Some("mine".into()), ..plain() };
    let s = text("csv", "a.csv", "image,cohort,x,y,label\na,,1,2,mf\na,B,99,9,mf\n", &own).unwrap();
    assert_eq!(s.cohorts.keys().collect::<Vec<_>>(), ["B"], "the file's word comes first");
}

#[test]
fn places_in_parts_of_an_image_are_refused_in_every_format() {
    let points = r#"{"type": "Feature", "geometry": {"type": "MultiPoint", "coordinates": [[0.1, 0.2], [0.5, 1]]},
        "properties": {"classification": {"name": "Mitotic figure"}}}"#;
    for (format, name, content) in [
        ("csv", "a.csv", "image,x,y,label\na,0.1,0.2,mf\na,0.5,0.9,mf\n"),
        ("midog25-csv", "a.csv", "filename,x,y,majority\na,0.1,0.2,NMF\na,0.5,0.9,AMF\n"),
        ("tupac-csv", "a.csv", "0.1,0.2\n0.5,0.9\n"),
        ("geojson", "a.geojson", points),
    ] {
        let e = text(format, name, content, &plain()).unwrap_err().to_string();
        assert!(
            e.contains(name) && e.contains("every position is between 0 and 1"),
            "{format}: {e}"
        );
    }
}

/// Tables with a row for each person have each cell several times.
#[test]
fn rows_of_several_people_and_rows_that_are_left_out_are_not_figures() {
    let head = "image,x,y,label,annotator\na,100,200,mf,A\n";
    let apart = text(
        "csv",
        "a.csv",
        &format!("{head}a,300,200,mf,B\nb,100,200,mf,B\na,110,200,mf,A\n"),
        &plain(),
    );
    assert_eq!(apart.unwrap().figures, 4, "each has labelled a place alone");
    let e = refused("csv", &format!("{head}a,90,215,mimicker,B\n"));
    assert!(e.contains("line 3: `B` has labelled the same place as `A` in line 2"), "{e}");
    let s = text(
        "csv",
        "a.csv",
        "image,x,y,label,deleted\na,1,2,mf,1\na,90,9,mf,0\na,9,90,mf,\n",
        &plain(),
    );
    let s = s.unwrap();
    assert_eq!((s.figures, s.ignored["(marked as deleted)"]), (2, 1));
    for (column, cells, mark) in [
        ("exclude", ["yes", "no", ""], "exclude"),
        ("Is Rejected", ["true", "false", ""], "Is Rejected"),
        ("valid", ["no", "yes", ""], "not valid"),
        ("status", ["Rejected", "accepted", ""], "Rejected"),
    ] {
        let [a, b, c] = cells;
        let rows =
            format!("image,x,y,label,{column}\na,1,2,mf,{a}\na,90,9,mf,{b}\na,9,90,mf,{c}\n");
        let s = text("csv", "a.csv", &rows, &plain()).unwrap();
        assert_eq!((s.figures, s.ignored.get(&format!("(marked as {mark})"))), (2, Some(&1)));
    }
}

#[test]
fn objects_that_contradict_themselves_or_are_several_are_refused() {
    let feature = |kind: &str, coordinates: &str, more: &str| {
        format!(
            r#"{{"type": "Feature", "geometry": {{"type": "{kind}", "coordinates": {coordinates}}},
            "properties": {{"classification": {{"name": "Mitotic figure"}}{more}}}}}"#
        )
    };
    let square = |x: u32, side: u32| {
        let (a, b) = (x + side, 9 + side);
        format!("[[[{x}, 9], [{a}, 9], [{a}, {b}], [{x}, {b}], [{x}, 9]]]")
    };
    let two = |x: u32| format!("[{}, {}]", square(10, 40), square(x, 40));
    let read = |content: &str| {
        text("geojson", "a.geojson", content, &plain())
            .map(|s| s.figures)
            .map_err(|e| e.to_string())
    };
    // The two plates of an anaphase are one figure.
    assert_eq!(read(&feature("MultiPolygon", &two(90), "")), Ok(1));
    assert_eq!(read(&feature("Polygon", &square(9, 1000), "")), Ok(1));
    for (content, words) in [
        (feature("MultiPolygon", &two(900), ""), "its parts are too far from each other"),
        (feature("Polygon", &square(9, 1100), ""), "is 1100 px long, larger than any cell"),
        (
            feature("Point", "[9, 9]", r#", "name": "Non-mitotic figure""#),
            "`Mitotic figure` and `Non-mitotic figure`",
        ),
    ] {
        let e = read(&content).unwrap_err();
        assert!(e.contains("a.geojson") && e.contains(words), "{words}: {e}");
    }
    let asap = r#"<ASAP_Annotations><Annotations><Annotation Name="non-mitotic" Type="Dot" PartOfGroup="mitosis">
        <Coordinates><Coordinate Order="0" X="1" Y="2"/></Coordinates></Annotation></Annotations></ASAP_Annotations>"#;
    let e = text("asap", "a.xml", asap, &plain()).unwrap_err().to_string();
    assert!(e.contains("`non-mitotic` in the group `mitosis`; correct one of them"), "{e}");
    let corrected = asap.replace("non-mitotic", "mitosis");
    assert_eq!(text("asap", "a.xml", &corrected, &plain()).unwrap().figures, 1);
    let midog = r#"{"images": [{"id": 1, "file_name": "a", "width": 400, "height": 500}], "categories": [{"id": 1, "name": "mf"}], "annotations":
        [{"id": 7, "image_id": 1, "category_id": 1, "bbox": [300, 400, 350, 450], "labels": [1, 0, null, 9]}]}"#;
    let e = refused("midog-json", midog);
    assert!(e.contains("annotation 7: its labels hold 9"), "{e}");
    let coco = |x: u32| {
        format!(
            r#"{{"images": [{{"id": 1, "file_name": "a"}}], "categories": [{{"id": 1, "name": "mf"}}],
            "annotations": [{{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 40, 60],
            "segmentation": [[{x}, 20, 50, 20, 50, 80]]}}]}}"#
        )
    };
    assert_eq!(text("coco", "a.json", &coco(10), &plain()).unwrap().figures, 1);
    let e = refused("coco", &coco(400).replace("50, 20, 50, 80", "450, 20, 450, 80"));
    assert!(e.contains("its segmentation reaches from 400, 20 to 450, 80"), "{e}");
}

#[test]
fn areas_and_ids_of_coco_that_contradict_are_refused() {
    let file = |box_and_more: &str, images: &str, second: &str| {
        format!(
            r#"{{"images": [{{"id": 1, "file_name": "a"}}{images}], "categories": [{{"id": 1, "name": "mf"}}],
            "annotations": [{{"id": 1, "image_id": 1, "category_id": 1, "bbox": {box_and_more}}}{second}]}}"#
        )
    };
    let triangle = r#""segmentation": [[10, 20, 50, 20, 50, 80]]"#;
    let boxed = |more: &str| file(&format!("[10, 20, 40, 60]{more}"), "", "");
    // That of the outline, of its mask, of the box, one that is not known, and of rings that may be holes.
    for more in [
        format!(r#", "area": 1200, {triangle}"#),
        format!(r#", "area": 1287.0, {triangle}"#),
        format!(r#", "area": 2400, {triangle}"#),
        format!(r#", "area": 0, {triangle}"#),
        format!(r#", "area": null, {triangle}"#),
        r#", "area": 600, "segmentation": [[10, 20, 50, 20, 50, 80], [10, 20, 50, 20, 50, 50]]"#
            .into(),
        r#", "area": 600, "segmentation": []"#.into(),
        r#", "area": 2501"#.into(),
    ] {
        let s = text("coco", "a.json", &boxed(&more), &plain());
        assert!(s.as_ref().is_ok_and(|s| s.figures == 1), "{more}: {s:?}");
    }
    for (more, words) in [
        (r#", "area": 2600"#.to_owned(), "its area is 2600 px2, but its box is 40 x 60 px"),
        (r#", "area": -1"#.to_owned(), "its area is -1 px2"),
        (
            format!(r#", "area": 600, {triangle}"#),
            "its area is 600 px2, but that of its segmentation is 1200.0 px2",
        ),
    ] {
        let e = refused("coco", &boxed(&more));
        assert!(e.contains("annotation 1: ") && e.contains(words), "{words}: {e}");
    }
    let alone = boxed(&format!(r#", "area": 600, {triangle}"#)).replace("[10, 20, 40, 60]", "[]");
    assert!(refused("coco", &alone).contains("its segmentation is 1200.0 px2"));

    let other = |id: &str| {
        format!(r#", {{{id} "image_id": 1, "category_id": 1, "bbox": [90, 90, 40, 40]}}"#)
    };
    let two =
        |id: &str| text("coco", "a.json", &file("[10, 20, 40, 60]", "", &other(id)), &plain());
    assert_eq!((two(r#""id": 2,"#).unwrap().figures, two("").unwrap().figures), (2, 2));
    let e = two(r#""id": "1","#).unwrap_err().to_string();
    let words = "the id 1: annotations[0] with the bbox [10,20,40,60] and annotations[1] with [90,90,40,40]";
    assert!(e.contains("a.json") && e.contains(words), "{e}");
    let e = refused("coco", &file("[10, 20, 40, 60]", r#", {"id": 1.0, "file_name": "b"}"#, ""));
    assert!(e.contains("two images have the id 1: `a` and `b`"), "{e}");
}

/// What a program found is not the truth; some programs give every label a score of 1.
#[test]
fn predictions_in_coco_are_not_labels() {
    let file = |scores: [&str; 2]| {
        let of = |i: usize| {
            format!(
                r#"{{"id": {i}, "image_id": 1, "category_id": 1, "bbox": [{i}00, 9, 40, 40]{}}}"#,
                scores[i - 1]
            )
        };
        format!(
            r#"{{"images": [{{"id": 1, "file_name": "a"}}], "categories": [{{"id": 1, "name": "mf"}}],
            "annotations": [{}, {}]}}"#,
            of(1),
            of(2)
        )
    };
    for scores in [["", ""], [r#", "score": 1"#, r#", "score": 1.0"#], [r#", "score": null"#, ""]] {
        assert_eq!(text("coco", "a.json", &file(scores), &plain()).unwrap().figures, 2);
    }
    let e = refused("coco", &file([r#", "score": 1"#, r#", "score": 0.25"#]));
    assert!(e.contains("annotations[1] has a score of 0.25, as predictions have"), "{e}");
}

/// What an error names is never blank.
#[test]
fn blank_names_are_no_names() {
    let coco = |image: &str, category: &str| {
        format!(
            r#"{{"images": [{{"id": 1, "file_name": "{image}"}}], "categories": [{{"id": 1, "name": "{category}"}}],
            "annotations": [{{"id": 1, "image_id": 1, "category_id": 1, "bbox": [5, 5, 50, 50]}}]}}"#
        )
    };
    for (image, category, words) in
        [("", "mf", "images[0]: it has no `file_name`"), ("a", " ", "categories[0] has no `name`")]
    {
        let e = refused("coco", &coco(image, category));
        assert!(e.contains(words), "{e}");
    }
    let feature = r#"[{"type": "Feature", "id": "", "geometry": {"type": "Point", "coordinates": [9, 9]},
        "properties": {"image": "", "classification": {"name": "mf"}}}]"#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("case.geojson");
    fs::write(&path, feature).unwrap();
    let all = (importer("geojson").unwrap().read)(&path, &plain()).unwrap();
    assert_eq!((all.images[0].name.as_str(), &*all.annotations[0].record), ("case", "feature 0"));
}

#[test]
fn objects_with_a_key_twice_are_refused_by_every_reader_of_json() {
    let list = |name: &str| format!("\"{name}\": []");
    let lists = ["images", "categories"].map(list).join(", ");
    for (format, content) in [
        (
            "coco",
            format!(
                "{{{lists}, \"annotations\": [{{\"bbox\": [1, 2, 3, 4], \"bbox\": [9, 9, 3, 4]}}]}}"
            ),
        ),
        ("midog-json", format!("{{{lists}, \"annotations\": [], \"images\": []}}")),
        (
            "coco",
            format!("{{{lists}, \"annotations\": [{{\"area\": NaN, \"id\": 1, \"id\": 2}}]}}"),
        ),
        ("geojson", r#"{"type": "FeatureCollection", "features": [], "features": [1]}"#.into()),
    ] {
        let e = text(format, "a.json", &content, &plain()).unwrap_err().to_string();
        assert!(e.contains("a.json") && e.contains("an object has the key `"), "{format}: {e}");
    }
}

#[test]
fn unknown_categories_are_named_and_can_be_mapped() {
    let json = r#"{"images":[{"id":1,"file_name":"a.tiff","width":1000,"height":1000}],
        "categories":[{"id":1,"name":"mitotic figure"},{"id":2,"name":"apoptotic body"},{"id":3,"name":"unused"}],
        "annotations":[{"id":1,"image_id":1,"category_id":1,"bbox":[600,600,650,650]},
                       {"id":2,"image_id":1,"category_id":2,"bbox":[700,700,750,750]}]}"#;
    let e = refused("midog-json", json);
    assert!(e.contains("`apoptotic body` (1 annotations)") && !e.contains("unused"), "{e}");
    for (pair, figures, mimickers, ignored) in [
        ("apoptotic body=mimicker", 1, 1, 0),
        ("Apoptotic Body=mf", 2, 0, 0),
        ("apoptotic body=ignore", 1, 0, 1),
    ] {
        let o = ImportOptions { mapping: Mapping::parse([pair]).unwrap(), ..plain() };
        let s = text("midog-json", "a.json", json, &o).unwrap();
        assert_eq!((s.figures, s.mimickers), (figures, mimickers));
        assert_eq!(s.ignored.values().sum::<u64>(), ignored);
    }
}

#[test]
fn coco_and_midog_are_not_confused() {
    let file = |b: &str| {
        format!(
            r#"{{"images":[{{"id":"i","file_name":"a","width":7215,"height":5412}}],
            "categories":[{{"id":1,"name":"MF"}}],
            "annotations":[{{"image_id":"i","category_id":1,"bbox":{b}}}]}}"#
        )
    };
    let coco = file("[4336,346,50,50]");
    assert!(refused("midog-json", &coco).contains("import it as `coco`"));
    assert_eq!(text("coco", "a.json", &coco, &plain()).unwrap().figures, 1);
    let midog = file("[4336,346,4386,396]");
    assert!(refused("coco", &midog).contains("import it as `midog-json`"));
    assert_eq!(text("midog-json", "a.json", &midog, &plain()).unwrap().figures, 1);
    let ambiguous = file("[100,100,150,150]");
    let e = refused("midog-json", &ambiguous);
    assert!(e.contains("ambiguous") && e.contains("state the order"), "{e}");
    let stated = ImportOptions { boxes: Some(BoxOrder::Xyxy), ..plain() };
    assert_eq!(text("midog-json", "a.json", &ambiguous, &stated).unwrap().figures, 1);
}

#[test]
fn patients_slides_and_sizes_are_read_as_numbers_or_text_and_refused_as_anything_else() {
    let file = |stated: &str| {
        format!(
            r#"{{"images":[{{"id":1,"file_name":"a",{stated}}}],
            "categories":[{{"id":1,"name":"MF"}}],
            "annotations":[{{"image_id":1,"category_id":1,"bbox":[700,20,50,50]}}]}}"#
        )
    };
    let run = |stated: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, file(stated)).unwrap();
        let all = (importer("coco").unwrap().read)(&path, &plain()).map_err(|e| e.to_string())?;
        Ok::<_, String>(all.images[0].clone())
    };
    for (stated, patient) in [("0", "0"), ("7.0", "7"), ("\"007\"", "007")] {
        let image = run(&format!(r#""patient_id":{stated},"slide_id":{stated},"scanner":2"#));
        let image = image.unwrap();
        let own = (image.patient.as_deref(), image.slide.as_deref(), image.scanner.as_deref());
        assert_eq!(own, (Some(patient), Some(patient), Some("2")));
    }
    let absent = run(r#""patient_id":null,"case_id":"","width":0,"height":null"#).unwrap();
    assert_eq!((absent.patient, absent.width, absent.height), (None, None, None));
    for (stated, why) in [
        (r#""patient_id":true"#, "`patient_id` is true, not text or a number"),
        (r#""slide":["s"]"#, "`slide` is [\"s\"], not text or a number"),
        (r#""width":"wide""#, "`width` is `wide`, not a whole number of pixels above 0"),
        (r#""height":-3"#, "`height` is `-3`, not a whole number"),
        (r#""width":600,"height":600.0"#, "outside the image (600 x 600 px)"),
        (r#""width":"600","height":"600""#, "outside the image (600 x 600 px)"),
    ] {
        let refused = run(stated).unwrap_err();
        assert!(refused.contains(why), "{stated}: {refused}");
    }
    let table =
        |size: &str| format!("image,cx,cy,label,image_width,image_height\na,700,20,mf,{size}\n");
    for (size, why) in [
        ("600.0,600.0", "outside the image (600 x 600 px)"),
        ("600.5,600", "the image's size is `600.5`, not a whole number of pixels above 0"),
        ("800,x", "the image's size is `x`"),
    ] {
        let refused = refused("csv", &table(size));
        assert!(refused.contains(why), "{size}: {refused}");
    }
    assert_eq!(text("csv", "a.csv", &table("800.0,600"), &plain()).unwrap().figures, 1);
}

#[test]
fn every_bad_record_is_listed_and_lenient_counts_them() {
    let csv = "image,x,y,label\na,-60,20,mf\na,NaN,20,mf\na,10,,mf\na,ten,2,mf\na,10,inf,mf\na,10,20,mf\n,1,2,mf\n";
    let e = refused("csv", csv);
    for part in [
        "line 2",
        "negative",
        "line 3",
        "NaN",
        "line 4",
        "empty",
        "line 5",
        "`ten`",
        "line 6",
        "inf",
        "no image name",
        "6 of the records",
    ] {
        assert!(e.contains(part), "`{part}` is not in {e}");
    }
    let lenient = ImportOptions { lenient: true, ..plain() };
    let s = text("csv", "a.csv", csv, &lenient).unwrap();
    assert_eq!((s.figures, s.skipped, s.skipped_records.len()), (1, 6, 6));

    let json = |b: &str| {
        format!(
            r#"{{"images":[{{"id":1,"file_name":"a","width":1000,"height":800}}],
            "categories":[{{"id":1,"name":"MF"}}],
            "annotations":[{{"id":7,"image_id":1,"category_id":1,"bbox":{b}}},
                           {{"id":8,"image_id":1,"category_id":1,"bbox":[600,700,650,750]}}]}}"#
        )
    };
    for (b, part) in [
        ("[1100,10,1150,60]", "outside the image (1000 x 800 px)"),
        ("[-90,10,-40,60]", "negative"),
        ("[10,10,20]", "not four numbers"),
        ("[10,10,null,60]", "not four numbers"),
        ("\"10,10,60,60\"", "not four numbers"),
    ] {
        let e = refused("midog-json", &json(b));
        assert!(e.contains(part) && e.contains('7'), "{b}: {e}");
        assert_eq!(text("midog-json", "a.json", &json(b), &lenient).unwrap().skipped, 1);
    }
    assert!(refused("midog-json", &json("[NaN,1,2,3]")).contains("not four numbers"));
    assert!(refused("midog-json", &json("[,1,2,3]")).contains("not valid JSON"));
}

#[test]
fn missing_columns_and_lists_are_named() {
    for (format, content, parts) in [
        ("csv", "a,b\n1,2\n", &["the image", "a, b"][..]),
        ("csv", "image,label\na,mf\n", &["the horizontal position"]),
        ("csv", "", &["empty"]),
        ("midog25-csv", "filename,coordinateX\na,1\n", &["the vertical position"]),
        ("midog25-csv", "filename,x,y\na,1,2\n", &["the verdict"]),
        ("ami-br", "slide,x,y,dataset\na,1,2,M\n", &["the verdict"]),
        ("midog-json", r#"{"images":[],"annotations":[]}"#, &["`categories`"]),
        ("midog-json", "[]", &["`images`"]),
        ("midog-json", "{", &["not valid JSON"]),
        ("coco", r#"{"images":[{"id":1}],"annotations":[],"categories":[]}"#, &["file_name"]),
        ("geojson", r#"{"type":"Polygon"}"#, &["no GeoJSON features"]),
        ("asap", "<html/>", &["the root is <html>"]),
        ("asap", "<ASAP_Annotations>", &["not valid XML"]),
        ("sliderunner", "not a database at all", &["not an SQLite database"]),
        ("sliderunner", "", &["not an SQLite database"]),
        ("tupac-csv", "1,2\nx,3\n", &["line 2", "row,column"]),
    ] {
        let e = refused(format, content);
        assert!(parts.iter().all(|p| e.contains(p)), "{format}: {e}");
        assert!(e.contains("a.csv") || e.contains("a.json"), "no file in {e}");
    }
    let gone = read("csv", Path::new("/nowhere/a.csv"), &plain()).unwrap_err();
    assert!(matches!(gone, ImportError::Io { .. }));
}

fn database(dir: &Path, sql: &str) -> PathBuf {
    let file = dir.join("a.sqlite");
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch(sql).unwrap();
    file
}

/// The schema as old SlideRunner versions wrote it: no `deleted`, no colours, no guid.
const OLD: &str = "
    CREATE TABLE Slides (uid INTEGER PRIMARY KEY, filename TEXT, width INTEGER, height INTEGER, directory TEXT);
    CREATE TABLE Classes (uid INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE Persons (uid INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE Annotations (uid INTEGER PRIMARY KEY, slide INTEGER, type INTEGER, agreedClass INTEGER);
    CREATE TABLE Annotations_coordinates (uid INTEGER PRIMARY KEY, coordinateX INTEGER, coordinateY INTEGER, slide INTEGER, annoId INTEGER, orderIdx INTEGER);
    CREATE TABLE Annotations_label (uid INTEGER PRIMARY KEY, person INTEGER, class INTEGER, annoId INTEGER);
    INSERT INTO Slides VALUES (1,'01.tif',100,100,'/data/01'),(2,'01.tif',100,100,'C:\\data\\02'),(3,'02.tif',NULL,NULL,'');
    INSERT INTO Classes VALUES (1,'Eosinophile'),(2,'Mitose'),(7,'Mitosis-like'),(9,'Tumorzone');
    INSERT INTO Persons VALUES (1,'A'),(2,'B');
    INSERT INTO Annotations VALUES (1,1,1,2),(2,2,1,7),(3,2,1,1),(4,2,1,0),(5,2,3,9),(6,2,5,2);
    INSERT INTO Annotations_coordinates VALUES (1,50,60,1,1,1),(2,10,20,2,2,1),(3,30,20,2,3,1),(4,40,20,2,4,1),
        (5,0,0,2,5,1),(6,90,0,2,5,2),(7,90,90,2,5,3),(8,10,10,2,6,1),(9,40,30,2,6,2);
    INSERT INTO Annotations_label VALUES (1,1,2,1),(2,2,7,1),(3,1,7,2);";

#[test]
fn old_databases_and_repeated_file_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = database(dir.path(), OLD);
    let a = (importer("sliderunner").unwrap().read)(&file, &plain()).unwrap();
    let s = a.summary();
    assert_eq!(figures(&s), (3, 2, 2, 1));
    assert_eq!((s.other, s.unresolved, s.ignored["Tumorzone"]), (1, 1, 1));
    let names: Vec<&str> = a.images.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["01/01.tif", "02/01.tif", "02.tif"]);
    let circle = a.annotations.last().unwrap();
    assert_eq!(circle.bbox, Some([10.0, 10.0, 40.0, 30.0]));
    assert_eq!((circle.centre.x, circle.centre.y), (25.0, 20.0));
    assert_eq!(a.annotations[0].votes["B"], "Mitosis-like");

    // Sizes that the viewer noted flag an annotation, and refuse none.
    let other = tempfile::tempdir().unwrap();
    let far = OLD.replace("(1,50,60,1,1,1)", "(1,500,60,1,1,1)");
    let s = read("sliderunner", &database(other.path(), &far), &plain()).unwrap();
    assert_eq!((s.figures, s.clipped), (2, 4));
}

/// An area without an agreed class that was drawn around cells is not a place to ignore, whatever its type.
#[test]
fn areas_of_a_database_without_a_class_hide_no_figure() {
    let dir = tempfile::tempdir().unwrap();
    let areas = "INSERT INTO Annotations VALUES (7,1,2,0),(8,1,3,NULL);
        INSERT INTO Annotations_coordinates VALUES (10,20,20,1,7,1),(11,80,90,1,7,2),
            (12,0,0,1,8,1),(13,8000,0,1,8,2),(14,8000,8000,1,8,3);";
    let s = read("sliderunner", &database(dir.path(), &format!("{OLD}{areas}")), &plain()).unwrap();
    assert_eq!((s.figures, s.unresolved), (2, 1));
    assert_eq!(s.ignored["(unclassified outline)"], 2);
}

/// Views and virtual tables compute their rows, and columns what they hold; none may run without end.
#[test]
fn databases_that_compute_are_refused() {
    let endless = "CREATE VIEW {} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT i AS uid, 'x' AS filename, 'A' AS name, 1 AS annoId, 1 AS class, 1 AS person FROM n;";
    let fail = |sql: &str| {
        let d = tempfile::tempdir().unwrap();
        read("sliderunner", &database(d.path(), sql), &plain()).unwrap_err().to_string()
    };
    for table in ["Slides", "Classes", "Persons", "Annotations_label"] {
        let sql = format!("{OLD} DROP TABLE {table}; {}", endless.replace("{}", table));
        let e = fail(&sql);
        assert!(e.contains(&format!("`{table}` is a view")), "{e}");
    }
    let e = fail(&format!(
        "{OLD} DROP TABLE Persons; CREATE VIRTUAL TABLE Persons USING fts5(uid, name);"
    ));
    assert!(e.contains("a virtual table"), "{e}");
}

#[test]
fn broken_databases() {
    let dir = tempfile::tempdir().unwrap();
    let fail = |sql: &str| {
        let d = tempfile::tempdir().unwrap();
        read("sliderunner", &database(d.path(), sql), &plain()).unwrap_err().to_string()
    };
    assert!(fail("CREATE TABLE x (y)").contains("`Annotations_coordinates`"));
    let renamed = OLD.replace("agreedClass", "consensus");
    assert!(fail(&renamed).contains("`Annotations.agreedClass`"));
    let e = fail(&format!("{OLD} INSERT INTO Annotations VALUES (20,99,1,2),(21,1,1,55),(22,1,1,2),(23,1,1,2);
        INSERT INTO Annotations_coordinates VALUES (20,1,1,1,20,1),(21,1,1,1,21,1),(23,NULL,'x',1,23,1);"));
    for part in [
        "annotation 20",
        "`Slides`",
        "annotation 21",
        "class 55",
        "annotation 22",
        "no coordinates",
        "annotation 23",
        "not a number",
    ] {
        assert!(e.contains(part), "`{part}` is not in {e}");
    }
    let e = fail(&OLD.replace("(1,50,60,1,1,1)", "(1,50,60,2,1,1)"));
    assert!(e.contains("of slide 1") && e.contains("of slide 2"), "{e}");
    let file = database(dir.path(), OLD);
    let bytes = fs::read(&file).unwrap();
    for cut in [16, 100, 4096, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..cut]).unwrap();
        let e = read("sliderunner", &file, &plain()).unwrap_err();
        assert!(e.to_string().contains("a.sqlite"), "{e}");
    }
    let mut garbage = bytes.clone();
    garbage[4096..].fill(0xAB);
    fs::write(&file, &garbage).unwrap();
    assert!(read("sliderunner", &file, &plain()).is_err());
}

#[test]
fn tupac_folders() {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("mitoses_ground_truth/01/01.csv", "10,20\n30,40\n"),
        ("mitoses_ground_truth/01/02.csv", ""),
        ("nonmitoses_ground_truth/01/01.csv", "5,6\n"),
        ("nonmitoses_ground_truth/02/01.csv", "7,8\n\n"),
    ] {
        let file = dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let a = (importer("tupac-csv").unwrap().read)(dir.path(), &plain()).unwrap();
    let s = a.summary();
    assert_eq!(figures(&s), (3, 2, 2, 2));
    assert_eq!(s.splits["test"], 4);
    assert_eq!((a.annotations[0].centre.x, a.annotations[0].centre.y), (20.0, 10.0));
    assert_eq!(a.images[0].patient.as_deref(), Some("01"));
}

#[test]
fn qupath_and_asap() {
    let q = r#"{"type":"FeatureCollection","features":[
        {"type":"Feature","id":"u1","geometry":{"type":"Point","coordinates":[10,20]},
         "properties":{"objectType":"annotation","classification":{"name":"Mitosis","color":[1,2,3]}}},
        {"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0],[40,0],[40,30],[0,0]]]},
         "properties":{"objectType":"annotation","classification":{"names":["Non-mitotic"]}}},
        {"type":"Feature","geometry":{"type":"MultiPoint","coordinates":[[1,2],[3,4]]},"properties":{}}]}"#;
    let s = text("geojson", "case.geojson", q, &plain()).unwrap();
    assert_eq!((s.images, s.figures, s.mimickers, s.unresolved), (1, 1, 1, 2));
    let list = r#"[{"type":"Feature","geometry":{"type":"Point","coordinates":["a",20]},"properties":{}}]"#;
    assert!(refused("geojson", list).contains("feature 0"));

    let x = r#"<?xml version="1.0"?><ASAP_Annotations><Annotations>
        <Annotation Name="0" Type="Dot" PartOfGroup="mitotic figure" Color="\#F4FA58"><Coordinates><Coordinate Order="0" X="10,5" Y="20"/></Coordinates></Annotation>
        <Annotation Name="1" Type="Rectangle" PartOfGroup="hard negative"><Coordinates><Coordinate X="0" Y="0"/><Coordinate X="40" Y="0"/><Coordinate X="40" Y="30"/><Coordinate X="0" Y="30"/></Coordinates></Annotation>
        <Annotation Name="2" Type="PointSet" PartOfGroup="None"><Coordinates><Coordinate X="5" Y="5"/><Coordinate X="6" Y="5"/></Coordinates></Annotation>
        </Annotations><AnnotationGroups/></ASAP_Annotations>"#;
    let s = text("asap", "case.xml", x, &plain()).unwrap();
    assert_eq!((s.figures, s.mimickers, s.unresolved), (1, 1, 2));
    let bad = x.replace("X=\"10,5\"", "X=\"?\"");
    let e = text("asap", "case.xml", &bad, &plain()).unwrap_err().to_string();
    assert!(e.contains("annotation 0") && e.contains("X is `?`"), "{e}");
}

#[test]
fn what_detect_writes_is_read_back_under_the_slides_name() {
    let dir = tempfile::tempdir().unwrap();
    let feature = |name: &str, kind: &str| {
        format!(
            r#"{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[[[10,10],[40,10],[40,40]]]}},
               "properties":{{"objectType":"{kind}","measurements":{{"s_seg":0.9}},"classification":{{"name":"{name}"}}}}}}"#
        )
    };
    let collection =
        |f: &[String]| format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, f.join(","));
    for slide in ["case-1", "case-2"] {
        let folder = dir.path().join(slide);
        fs::create_dir(&folder).unwrap();
        let found = [feature("Mitotic figure", "detection"), feature("Hotspot", "annotation")];
        fs::write(folder.join("qupath.geojson"), collection(&found)).unwrap();
        let tissue = collection(&[feature("Tissue", "annotation")]);
        fs::write(folder.join("tissue.geojson"), tissue).unwrap();
        fs::write(folder.join("counts.json"), r#"{"schema":"mithras.counts/1"}"#).unwrap();
    }
    fs::write(dir.path().join("run.json"), r#"{"schema":"mithras.run/1"}"#).unwrap();
    let own = ImportOptions { own_detections: true, ..plain() };
    let read = |path: &Path| (importer("geojson").unwrap().read)(path, &own);
    // What a program found is not a label.
    let e = (importer("geojson").unwrap().read)(dir.path(), &plain()).unwrap_err().to_string();
    assert!(e.contains("case-2, feature 0: a program found it"), "{e}");
    for path in ["case-1/qupath.geojson", "case-1"] {
        let one = read(&dir.path().join(path)).unwrap();
        assert_eq!(one.images[0].name, "case-1", "{path}");
        assert_eq!(figures(&one.summary()), (1, 1, 1, 0), "{path}");
    }
    let all = read(dir.path()).unwrap();
    let names: Vec<&str> = all.images.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["case-1", "case-2"]);
    assert_eq!(all.ignored["run.json (no GeoJSON)"], 1);
    // A broken file is not taken for another kind of file.
    fs::write(dir.path().join("more.json"), "{").unwrap();
    assert!(read(dir.path()).unwrap_err().to_string().contains("more.json"));
    fs::remove_file(dir.path().join("more.json")).unwrap();
    for slide in ["case-1", "case-2"] {
        fs::remove_dir_all(dir.path().join(slide)).unwrap();
    }
    let e = read(dir.path()).unwrap_err().to_string();
    assert!(e.contains("holds no GeoJSON features"), "{e}");
}

/// Annotations are a person's, detections and cells a program's, whatever release wrote their type.
#[test]
fn detections_of_qupath_are_not_labels() {
    let feature = |more: &str, class: &str| {
        let class = match class {
            "" => String::new(),
            name => format!(r#", "classification": {{"name": "{name}"}}"#),
        };
        format!(
            r#"{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [90, 90]}}, {more}{class}}}}}"#
        )
    };
    let drawn = feature(r#""properties": {"objectType": "annotation""#, "Mitotic figure");
    let import = |feature: &str, options: &ImportOptions| {
        text("geojson", "case.geojson", &format!("[{drawn}, {feature}]"), options)
    };
    let lenient = ImportOptions { lenient: true, ..plain() };
    for more in [
        r#""properties": {"objectType": "detection""#,
        r#""properties": {"objectType": "cell""#,
        r#""properties": {"object_type": "detection""#,
        r#""id": "PathDetectionObject", "properties": {"a": 1"#,
        // Candidates of this program are looked at where they are reviewed.
        r#""properties": {"objectType": "detection", "measurements": {"s_seg": 0.9}"#,
    ] {
        for class in ["Mitotic figure", "Non-mitotic figure"] {
            let found = feature(more, class);
            let e = import(&found, &plain()).unwrap_err().to_string();
            let words =
                ["case.geojson: 1 of the records", "a program found it", "make it an annotation"];
            assert!(words.iter().all(|w| e.contains(w)), "{found}: {e}");
            let s = import(&found, &lenient).unwrap();
            assert_eq!((s.figures, s.mimickers, s.skipped), (1, 0, 1), "{found}");
        }
        // Neither are those that are not called a figure, whose classes need no meaning.
        for class in ["", "Positive"] {
            let s = import(&feature(more, class), &plain()).unwrap();
            assert_eq!((s.annotations, s.ignored.values().sum::<u64>()), (1, 1), "{more} {class}");
        }
    }
    // The remedy.
    let made = feature(r#""properties": {"objectType": "annotation""#, "Non-mitotic figure");
    assert_eq!(import(&made, &plain()).unwrap().mimickers, 1);
}

#[test]
fn a_slide_called_tissue_is_read_where_no_run_wrote_its_outlines() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"[{"type":"Feature","geometry":{"type":"Point","coordinates":[10,10]},
        "properties":{"objectType":"annotation","classification":{"name":"Mitotic figure"}}}]"#;
    for name in ["a.geojson", "tissue.geojson"] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let read = || (importer("geojson").unwrap().read)(dir.path(), &plain()).unwrap();
    let names: Vec<String> = read().images.into_iter().map(|i| i.name).collect();
    assert_eq!(names, ["a", "tissue"]);
    fs::write(dir.path().join("counts.json"), "{}").unwrap();
    assert_eq!(read().images.len(), 1);
}

#[test]
fn a_folder_is_read_by_its_table_or_the_table_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let table = "slide,x,y,dataset,uid,majority_atypical\na.tiff,64,64,MIDOG21,1,True\n";
    fs::write(dir.path().join("labels.csv"), table).unwrap();
    let of_folder = read("ami-br", dir.path(), &plain()).unwrap();
    let of_table = read("ami-br", &dir.path().join("labels.csv"), &plain()).unwrap();
    assert_eq!(figures(&of_folder), figures(&of_table));
    assert_eq!(of_folder.figures, 1);
    let error = read("midog25-csv", dir.path(), &plain()).unwrap_err().to_string();
    assert!(error.contains("name the table in it") && error.contains("labels.csv"), "{error}");
}

#[test]
fn a_column_of_slides_is_read_next_to_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.csv");
    let slides = |format: &str, text: &str| {
        fs::write(&file, text).unwrap();
        let all = (importer(format).unwrap().read)(&file, &plain()).map_err(|e| e.to_string())?;
        let table = String::from_utf8(all.table()).unwrap();
        let names = |i: &ImageEntry| (i.name.clone(), i.slide_name().to_owned());
        Ok::<_, String>((all.images.iter().map(names).collect::<Vec<_>>(), table))
    };
    let one = vec![("a.png".to_owned(), "S1".to_owned())];
    // A later line may state what an earlier one leaves open.
    for header in [
        "file,xmin,ymin,xmax,ymax,label,slide",
        "image,x1,y1,x2,y2,label,Slide_ID",
        "filename,left,top,right,bottom,class,slide name",
    ] {
        let text = format!("{header}\na.png,10,20,60,70,mf,\na.png,30,40,80,90,mf,S1\n");
        let (found, table) = slides("csv", &text).unwrap();
        assert_eq!(found, one, "{header}");
        // What is written is read back with its slide.
        assert_eq!(slides("csv", &table).unwrap().0, one, "{table}");
    }
    let midog = "filename,slide,x,y,majority\na.png,S1,10,20,NMF\n";
    assert_eq!(slides("midog25-csv", midog).unwrap().0, one);
    let suffix = "file,x,y,label,slide\na.png,1,2,mf,S1\na.png,9,9,mf,S1.svs\n";
    assert_eq!(slides("csv", suffix).unwrap().0, one);
    // Without another column the slide is the image.
    let (alone, table) = slides("csv", "slide,x,y,label\na.png,10,20,mf\n").unwrap();
    assert_eq!(alone, [("a.png".to_owned(), "a.png".to_owned())]);
    assert!(!table.contains("slide_name"), "{table}");
    for (column, format, label) in [
        ("slide", "csv", "label"),
        ("patient", "csv", "label"),
        ("slide", "midog25-csv", "majority"),
    ] {
        let text = format!("filename,{column},x,y,{label}\na.png,S1,1,2,AMF\na.png,S2,9,9,AMF\n");
        let e = slides(format, &text).unwrap_err();
        assert!(e.contains("a.csv") && e.contains("`S1`") && e.contains("`S2`"), "{e}");
        assert!(e.contains("line 3") && e.contains(column), "{e}");
    }
}

#[test]
fn meanings_of_categories_that_the_file_lacks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let import = |format: &str, name: &str, content: &str, map: &[&str]| {
        let file = dir.path().join(name);
        fs::write(&file, content).unwrap();
        let o = ImportOptions { mapping: Mapping::parse(map).unwrap(), ..plain() };
        importer(format).unwrap().annotations(&file, &o).map_err(|e| e.to_string())
    };
    let csv = "image,x,y,label\na,10,20,mitosis\na,30,40,hard negative\n";
    let e = import("csv", "a.csv", csv, &["Hard negatives=ignore"]).unwrap_err();
    assert!(e.contains("`hard negatives`") && e.contains("`hard negative`, `mitosis`"), "{e}");
    import("csv", "a.csv", csv, &["Hard Negative =ignore"]).unwrap();
    // One mapping for many files, of which one lacks a category.
    import("csv", "a.csv", csv, &["Apoptosis=other", "mitosis=mf"]).unwrap();
    for typed in ["mitoses=mf", "mitoiss=mf", "mitotsis=mf", "hard-negatives=ignore"] {
        assert!(import("csv", "a.csv", csv, &[typed]).is_err(), "{typed}");
    }
    import("csv", "a.csv", &csv.replace("mitosis", "atypical mf"), &["typical mf=mf"]).unwrap();
    // A category that the file lists and no annotation has.
    let json = r#"{"images":[{"id":1,"file_name":"a","width":900,"height":900}],
        "categories":[{"id":1,"name":"MF"},{"id":2,"name":"odd"}],
        "annotations":[{"id":1,"image_id":1,"category_id":1,"bbox":[600,600,50,50]}]}"#;
    import("coco", "a.json", json, &["odd=ignore"]).unwrap();
    assert!(import("coco", "a.json", json, &["odds=ignore"]).unwrap_err().contains("`MF`, `odd`"));
    let asap = r#"<ASAP_Annotations><Annotations><Annotation Name="0" Type="Dot" PartOfGroup="mf">
        <Coordinates><Coordinate X="10" Y="20"/></Coordinates></Annotation></Annotations>
        <AnnotationGroups><Group Name="odd" PartOfGroup="None"/></AnnotationGroups></ASAP_Annotations>"#;
    import("asap", "a.xml", asap, &["odd=mf"]).unwrap();
    assert!(import("asap", "a.xml", asap, &["odds=mf"]).is_err());
    let fixed = "filename,x,y,majority\na,1,2,NMF\n";
    let e = import("midog25-csv", "a.csv", fixed, &["NMF=mimicker"]).unwrap_err();
    assert!(e.contains("`nmf`") && e.contains("fixes the classes"), "{e}");
    let old = database(dir.path(), OLD);
    let o = |map| ImportOptions { mapping: Mapping::parse([map]).unwrap(), ..plain() };
    let read = |map| importer("sliderunner").unwrap().annotations(&old, &o(map));
    assert!(read("Tumorzone=ignore").is_ok() && read("Tumorzones=ignore").is_err());
}

#[test]
fn a_class_is_assumed_for_tables_without_labels_alone() {
    let assumed = ImportOptions { assume: Some(Class::Mimicker), ..plain() };
    for (format, content, part) in [
        ("csv", "image,x,y,label\na,10,20,mitosis\n", "the column `label`"),
        ("csv", "image,x,y,is_mitosis\na,10,20,1\n", "the column `is_mitosis`"),
        ("midog25-csv", "filename,x,y,majority\na,1,2,NMF\n", "the format `midog25-csv`"),
    ] {
        let e = text(format, "a.csv", content, &assumed).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("a.csv"), "{e}");
    }
    // A column without any label states none.
    let open = "image,x,y,label\na,10,20,\na,30,40,\n";
    assert_eq!(text("csv", "a.csv", open, &assumed).unwrap().mimickers, 2);
    // The words of one annotator are labels.
    let experts = "image,x,y,expert1\na,10,20,mf\n";
    let labels = LabelSource::Annotator("expert1".into());
    let one = ImportOptions { labels: labels.clone(), ..plain() };
    assert_eq!(text("csv", "a.csv", experts, &one).unwrap().figures, 1);
    assert!(text("csv", "a.csv", experts, &ImportOptions { labels, ..assumed }).is_err());
}
