//! Importers rest on the schema: layouts that tools of this field write, and near misses of them.

use regions::annotations::{
    Annotations, BoxOrder, ImportOptions, LabelSource, Mapping, Summary, importer,
};
use std::fs;
use std::io::Write;
use std::path::Path;

fn import(format: &str, file: &Path, o: &ImportOptions) -> Result<Annotations, String> {
    (importer(format).unwrap().read)(file, o).map_err(|e| e.to_string())
}

fn bytes(format: &str, name: &str, content: &[u8], o: &ImportOptions) -> Result<Summary, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    fs::write(&file, content).unwrap();
    import(format, &file, o).map(|a| a.summary())
}

fn text(format: &str, content: &str) -> Result<Summary, String> {
    stated(format, content, &plain())
}

fn stated(format: &str, content: &str, o: &ImportOptions) -> Result<Summary, String> {
    let name = match format {
        "asap" => "case.xml",
        "geojson" => "case.geojson",
        "coco" | "midog-json" => "a.json",
        _ => "a.csv",
    };
    bytes(format, name, content.as_bytes(), o)
}

fn plain() -> ImportOptions {
    ImportOptions::default()
}

fn kinds(s: &Summary) -> (usize, usize, usize, usize) {
    (s.figures, s.mimickers, s.other, s.unresolved)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(content).unwrap();
    gz.finish().unwrap()
}

/// MIDOG 2021 numbers its categories one way, exports of SlideRunner databases another; images
/// carry tumour types or none, identifiers are numbers or text.
#[test]
fn midog_in_its_variants() {
    let file = |categories: &str, annotations: &str| {
        format!(
            r#"{{"info":{{"description":"x"}},"licenses":[],
            "images":[{{"id":1,"file_name":"001.tiff","width":7215,"height":5412,"tumor_type":"canine lymphoma"}},
                      {{"id":2,"file_name":"002.tiff","width":7215,"height":5412}}],
            "categories":{categories},"annotations":{annotations}}}"#
        )
    };
    let midog22 = file(
        r#"[{"id":2,"name":"not mitotic figure"},{"id":1,"name":"mitotic figure"}]"#,
        r#"[{"id":1,"image_id":1,"category_id":1,"bbox":[4336,346,4386,396]},
            {"id":2,"image_id":1,"category_id":2,"bbox":[-20,2391,30,2441]},
            {"id":3,"image_id":2,"category_id":2.0,"bbox":[10.5,20.5,60.5,70.5]}]"#,
    );
    let s = text("midog-json", &midog22).unwrap();
    assert_eq!((kinds(&s), s.images, s.labelled_images, s.clipped), ((1, 2, 0, 0), 2, 2, 1));
    assert_eq!(s.cohorts["canine lymphoma"]["figures"], 1);

    // A SlideRunner database as JSON: class 0 is "nobody agreed", other cells are kept.
    let ccmct = file(
        r#"[{"id":1,"name":"Granulocyte"},{"id":2,"name":"Mitotic figure"},{"id":3,"name":"Tumor cell"},
            {"id":7,"name":"Mitotic figure look-alike"}]"#,
        r#"[{"id":1,"image_id":1,"category_id":2,"bbox":[4336,346,4386,396]},
            {"id":2,"image_id":1,"category_id":7,"bbox":[4436,346,4486,396]},
            {"id":3,"image_id":1,"category_id":1,"bbox":[4536,346,4586,396]},
            {"id":4,"image_id":1,"category_id":3,"bbox":[4636,346,4686,396]},
            {"id":5,"image_id":1,"category_id":0,"bbox":[4736,346,4786,396]},
            {"id":6,"image_id":1,"category_id":null,"bbox":[4836,346,4886,396]}]"#,
    );
    assert_eq!(kinds(&text("midog-json", &ccmct).unwrap()), (1, 1, 2, 2));
    let e =
        text("midog-json", &ccmct.replace("\"category_id\":7", "\"category_id\":8")).unwrap_err();
    assert!(e.contains("annotation 2") && e.contains("category_id 8"), "{e}");
    let packed = bytes("midog-json", "a.json.gz", &gzip(ccmct.as_bytes()), &plain()).unwrap();
    assert_eq!(kinds(&packed), (1, 1, 2, 2));
    let marked = bytes("midog-json", "a.json", format!("\u{feff}{ccmct}").as_bytes(), &plain());
    assert_eq!(kinds(&marked.unwrap()), (1, 1, 2, 2));

    // Python writes NaN; the record is named, and left out on demand.
    let nan = midog22.replace("[10.5,", "[NaN,").replace("[-20,", "[-Infinity,");
    let e = text("midog-json", &nan).unwrap_err();
    assert!(e.contains("annotation 3") && e.contains("annotation 2") && e.contains("NaN"), "{e}");
    let lenient = ImportOptions { lenient: true, ..plain() };
    let s = stated("midog-json", &nan, &lenient).unwrap();
    assert_eq!((s.figures, s.skipped), (1, 2));
    let named = midog22.replace("001.tiff", "NaN\\\"NaN.tiff");
    assert_eq!(kinds(&text("midog-json", &named).unwrap()), (1, 2, 0, 0), "NaN inside a name");
    let e = bytes("midog-json", "a.json", b"PK\x03\x04rest", &plain()).unwrap_err();
    assert!(e.contains("ZIP archive"), "{e}");
    let e = bytes("midog-json", "a.json", &gzip(ccmct.as_bytes())[..60], &plain()).unwrap_err();
    assert!(e.contains("gzip"), "{e}");
}

#[test]
fn coco_with_crowds_outlines_and_text_ids() {
    let file = |annotation: &str| {
        format!(
            r#"{{"images":[{{"id":"7","file_name":"a.png","width":1000,"height":1000}},
                          {{"id":8,"file_name":"b.png"}}],
            "categories":[{{"id":3,"name":"hard negative"}},{{"id":"1","name":"mitosis","supercategory":"cell"}}],
            "annotations":[{{"id":1,"image_id":7,"category_id":1,"bbox":[600,700,50,50],"area":2500}},{annotation}]}}"#
        )
    };
    let s =
        text("coco", &file(r#"{"id":2,"image_id":"7","category_id":"3","bbox":[900,20,40,40]}"#));
    let s = s.unwrap();
    assert_eq!((kinds(&s), s.images, s.labelled_images), ((1, 1, 0, 0), 2, 1));
    let outline =
        r#"{"id":2,"image_id":7,"category_id":3,"iscrowd":0,"segmentation":[[10,10,60,10,60,40]]}"#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("o.json");
    fs::write(&path, file(outline)).unwrap();
    let a = import("coco", &path, &plain()).unwrap();
    assert_eq!(a.annotations[1].bbox, Some([10.0, 10.0, 60.0, 40.0]));
    let crowd = r#"{"id":2,"image_id":7,"category_id":3,"iscrowd":1,"segmentation":{"counts":[1,2],"size":[3,1]}}"#;
    let s = text("coco", &file(crowd)).unwrap();
    assert_eq!((kinds(&s), s.ignored["hard negative (iscrowd)"]), ((1, 0, 0, 0), 1));
    let ignored = crowd.replace("iscrowd\":1", "ignore\":true");
    let s = text("coco", &file(&ignored)).unwrap();
    assert_eq!((kinds(&s), s.ignored["hard negative (ignore)"]), ((1, 0, 0, 0), 1));
    for (bad, part) in [
        (crowd.replace("\"iscrowd\":1", "\"iscrowd\":0"), "run-length"),
        (r#"{"id":2,"image_id":7,"category_id":3}"#.into(), "not four numbers"),
        (r#"{"id":2,"image_id":9,"category_id":3,"bbox":[1,2,3,4]}"#.into(), "image_id 9"),
        (r#"{"id":2,"image_id":7,"category_id":3,"bbox":[1,2,3,4,30]}"#.into(), "not four numbers"),
        (r#"{"id":2,"image_id":7,"category_id":3,"bbox":[1,2,-3,4]}"#.into(), "empty"),
    ] {
        let e = text("coco", &file(&bad)).unwrap_err();
        assert!(e.contains("annotation 2") && e.contains(part), "{e}");
    }
}

#[test]
fn qupath_exports() {
    let feature = |geometry: &str, properties: &str| {
        format!(r#"{{"type":"Feature","geometry":{geometry},"properties":{properties}}}"#)
    };
    let square = r#"{"type":"Polygon","coordinates":[[[0,0],[40,0],[40,30],[0,30],[0,0]]]}"#;
    let list = [
        feature(
            square,
            r#"{"objectType":"annotation","classification":{"name":"Mitotic figure: Atypical","colorRGB":-1},"isLocked":false,"measurements":{"Area":12.5}}"#,
        ),
        feature(
            r#"{"type":"MultiPolygon","coordinates":[[[[5,5],[9,5],[9,9],[5,5]]],[[[20,20],[25,20],[25,25],[20,20]]]]}"#,
            r#"{"objectType":"annotation","classification":{"names":["Hard negative"]},"measurements":[{"name":"a","value":1}]}"#,
        ),
        feature(r#"{"type":"Point","coordinates":[7.5,8.5,0]}"#, r#"{"classification":"Mitosis"}"#),
        feature(square, r#"{"objectType":"annotation","name":"Hotspot 2 mm²"}"#),
        feature(square, r#"{"objectType":"annotation","name":"imposter"}"#),
        feature(square, r#"{"objectType":"annotation","name":"look here"}"#),
        feature(square, r#"{"objectType":"annotation","classification":{"name":"Region*"}}"#),
        feature("null", r#"{"objectType":"root"}"#),
        feature(square, r#"{"objectType":"tile"}"#),
    ];
    let all = list.join(",");
    let array = format!("[{all}]");
    let collection = format!(r#"{{"type":"FeatureCollection","features":[{all}]}}"#);
    for content in [&array, &collection] {
        let s = text("geojson", content).unwrap();
        assert_eq!(kinds(&s), (2, 2, 0, 0));
        assert_eq!((s.atypical, s.ignored.values().sum::<u64>()), (Some(1), 5));
    }
    let one = text("geojson", &list[2]).unwrap();
    assert_eq!(kinds(&one), (1, 0, 0, 0));

    // A folder of packed exports, one image each; of a cell, the nucleus counts.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("b.svs.geojson.gz"), gzip(array.as_bytes())).unwrap();
    let cell = r#"[{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0],[90,0],[90,90],[0,0]]]},
        "nucleusGeometry":{"type":"Polygon","coordinates":[[[10,10],[30,10],[30,20],[10,10]]]},
        "properties":{"objectType":"annotation","classification":{"name":"MF"}}}]"#;
    fs::write(dir.path().join("a.geojson"), cell).unwrap();
    let a = import("geojson", dir.path(), &plain()).unwrap();
    let names: Vec<&str> = a.images.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["a", "b.svs"]);
    assert_eq!(a.annotations[0].bbox, Some([10.0, 10.0, 30.0, 20.0]));

    for (geometry, part) in [
        (r#"{"type":"GeometryCollection","coordinates":[[1,2]]}"#, "GeometryCollection"),
        ("null", "no geometry"),
        (r#"{"type":"Point","coordinates":[]}"#, "empty"),
        (r#"{"type":"Point","coordinates":[NaN,2]}"#, "not finite numbers"),
        (r#"{"type":"Point","coordinates":[-400,2]}"#, "negative"),
    ] {
        let e = text("geojson", &format!("[{}]", feature(geometry, "{}"))).unwrap_err();
        assert!(e.contains("feature 0") && e.contains(part), "{geometry}: {e}");
    }
}

#[test]
fn asap_groups_inside_groups() {
    let annotation = |group: &str, kind: &str| {
        format!(
            r#"<Annotation Name="Annotation 0" Type="{kind}" PartOfGroup="{group}" Color="black"><Coordinates>
            <Coordinate Order="0" X="10" Y="20"/><Coordinate Order="1" X="30" Y="20"/>
            <Coordinate Order="2" X="30" Y="60"/></Coordinates></Annotation>"#
        )
    };
    let all = [
        annotation("mitosis", "Polygon"),
        annotation("reader 1", "Spline"),
        annotation("Hard negative", "Rectangle"),
        annotation("None", "Polygon"),
    ]
    .concat();
    let file = |groups: &str| {
        format!(
            "\u{feff}<?xml version=\"1.0\"?>\n<ASAP_Annotations><Annotations>{all}</Annotations>\
             <AnnotationGroups>{groups}</AnnotationGroups></ASAP_Annotations>"
        )
    };
    let nested = file(
        r#"<Group Name="mitosis" PartOfGroup="None" Color="red"><Attributes/></Group>
        <Group Name="reader 1" PartOfGroup="second look"/><Group Name="second look" PartOfGroup="mitosis"/>"#,
    );
    let s = text("asap", &nested).unwrap();
    assert_eq!((kinds(&s), s.categories["mitosis"]), ((2, 1, 0, 1), 2));
    // Groups that run in a circle lead nowhere, and end.
    let circle =
        file(r#"<Group Name="reader 1" PartOfGroup="x"/><Group Name="x" PartOfGroup="reader 1"/>"#);
    let e = text("asap", &circle).unwrap_err();
    assert!(e.contains("`reader 1` (1 annotations)") && e.contains("state what they mean"), "{e}");
    let o = ImportOptions { mapping: Mapping::parse(["reader 1=mimicker"]).unwrap(), ..plain() };
    assert_eq!(kinds(&stated("asap", &circle, &o).unwrap()), (1, 2, 0, 1));
    let e = text("asap", "<!DOCTYPE a [<!ENTITY b \"c\">]><ASAP_Annotations/>").unwrap_err();
    assert!(e.contains("not valid XML"), "{e}");
}

#[test]
fn tables_as_spreadsheets_write_them() {
    // Semicolons, decimal commas, a byte-order mark, quoted names, a QuPath table.
    let german = "\u{feff}Bild;file;x;y;Klasse;class\n1;\"a; b.svs\";12,5;1000,25;?;Mitose\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    fs::write(&path, german).unwrap();
    let a = import("csv", &path, &plain()).unwrap();
    assert_eq!((a.annotations[0].centre.x, a.annotations[0].centre.y), (12.5, 1000.25));
    assert_eq!(a.images[0].name, "a; b.svs");
    let qupath = "Image\tClass\tCentroid X px\tCentroid Y px\na.svs\tMitotic figure\t10\t20\n";
    assert_eq!(kinds(&text("csv", qupath).unwrap()), (1, 0, 0, 0));
    let e = text("csv", &qupath.replace("px", "µm")).unwrap_err();
    assert!(e.contains("export pixels") && e.contains("Centroid X µm"), "{e}");
    assert_eq!(kinds(&text("csv", qupath).unwrap()), (1, 0, 0, 0));

    // x, y with width, height: corner or centre?
    let sized = "image,x,y,width,height,label\na,100,200,40,60,mf\nb,10,20,40,60,mf\n";
    let e = text("csv", sized).unwrap_err();
    assert!(e.contains("xywh") && e.contains("cx, cy"), "{e}");
    let corner = ImportOptions { boxes: Some(BoxOrder::Xywh), ..plain() };
    fs::write(&path, sized).unwrap();
    let a = import("csv", &path, &corner).unwrap();
    assert_eq!(a.annotations[0].bbox, Some([100.0, 200.0, 140.0, 260.0]));
    fs::write(&path, sized.replace("x,y", "left,top")).unwrap();
    assert_eq!(import("csv", &path, &plain()).unwrap().annotations, a.annotations);
    fs::write(&path, sized.replace("x,y", "cx,cy")).unwrap();
    let a = import("csv", &path, &plain()).unwrap();
    assert_eq!((a.annotations[0].centre.x, a.annotations[0].bbox), (100.0, None));

    for (content, part) in [
        ("image,x,y,label\na,0.25,0.5,mf\nb,0.75,1,mf\n", "between 0 and 1"),
        ("image,x,X,y,label\na,1,2,3,mf\n", "two columns are called 'X'"),
        ("image,x,y,label\na,b.svs,1,2,mf\n", "line 2: 5 cells, where the header has 4"),
        ("image,x,y,label\na,\"1,5\",2,mf\n", "`1,5`; its comma may part thousands"),
        ("image;x;y;label\na;3,5;2;mf\nb;1.200;2;mf\n", "x is `3.5`, which is in a column whose"),
        (
            "image;x;y;label\na;860;2;mf\nb;1.058;2;mf\nc;1.774;2;mf\n",
            "x is `1.058` (1058 or 1.058), which is",
        ),
        (
            "image,x,y,label,class\na,1,2,mf,mimicker\n",
            "column `label` has `mf` and column `class`",
        ),
        ("image,x,y,label,is_mitotic\na,1,2,mimicker,1\n", "column `is_mitotic` has `1`"),
        ("image,xmin,ymin,xmax,ymax,label\na,0.1,0.1,0.2,0.2,mf\na,1,1,9,9,mf\n", "than a pixel"),
        ("image,x,y,label\na,1e999,2,mf\n", "x is inf"),
    ] {
        let e = text("csv", content).unwrap_err();
        assert!(e.contains(part), "`{part}` is not in {e}");
    }
    let e = bytes("csv", "a.csv", b"image,x,y,label\na,1,2,M\xfcller\n", &plain()).unwrap_err();
    assert!(e.contains("save the table as UTF-8"), "{e}");

    let voted = "image,x,y,label,expert1\na,5,2,mf,imposter\n";
    let one = |who: &str| ImportOptions { labels: LabelSource::Annotator(who.into()), ..plain() };
    assert_eq!(kinds(&stated("csv", voted, &one("expert1")).unwrap()), (0, 1, 0, 0));
    let e = stated("csv", voted, &one("expert2")).unwrap_err();
    assert!(e.contains("`expert2`") && e.contains("expert1"), "{e}");
    let tupac = ImportOptions { cohort: Some("TUPAC16".into()), ..plain() };
    assert_eq!(stated("csv", voted, &tupac).unwrap().splits["test"], 1);
}

/// The database of a lab with votes that differ, regions without points, deleted rows, an answer
/// that changed, and a path that a URI would misread.
#[test]
fn sliderunner_with_several_annotators() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("50% of #1?");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("a.sqlite");
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
        CREATE TABLE `Slides` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, `filename` TEXT, `width` INTEGER, `height` INTEGER, `directory` TEXT, uuid TEXT, exactImageID INTEGER);
        CREATE TABLE `Classes` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, `name` TEXT, `color` TEXT);
        CREATE TABLE `Persons` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, `name` TEXT);
        CREATE TABLE `Annotations` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT, deleted INTEGER DEFAULT 0, `slide` INTEGER, `type` INTEGER, `agreedClass` INTEGER, lastModified REAL, description TEXT);
        CREATE TABLE `Annotations_coordinates` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, `coordinateX` REAL, `coordinateY` REAL, `slide` INTEGER, `annoId` INTEGER, `orderIdx` INTEGER);
        CREATE TABLE `Annotations_label` (`uid` INTEGER PRIMARY KEY AUTOINCREMENT, `person` INTEGER, `class` INTEGER, `annoId` INTEGER, exact_id INTEGER);
        INSERT INTO Slides VALUES (1,'a.svs',80000,60000,'/x',NULL,NULL);
        INSERT INTO Classes VALUES (1,'Eosinophilic granulocyte','#fff'),(2,'Mitotic figure','#000'),(3,'Neoplastic mast cell','#0f0'),(7,'Mitotic figure look-alike','#f00'),(8,'Tumor region','#00f');
        INSERT INTO Persons VALUES (1,'A'),(2,'B');
        INSERT INTO Annotations VALUES (1,'g',0,1,1,2,0,''),(2,'g',0,1,1,7,0,''),(3,'g',0,1,1,NULL,0,''),(4,'g',1,1,1,2,0,''),
            (5,'g',0,1,3,8,0,''),(6,'g',0,1,2,1,0,''),(7,'g',0,1,4,3,0,'');
        INSERT INTO Annotations_coordinates VALUES (1,500.5,600,1,1,1),(2,700,800,1,2,1),(3,900,800,1,3,1),
            (8,30,40,1,6,2),(7,10,20,1,6,1),(9,70,70,1,7,1);
        INSERT INTO Annotations_label VALUES (1,1,7,1,0),(2,1,2,1,0),(3,2,2,1,0),(4,1,2,3,0),(5,2,7,3,0);",
    )
    .unwrap();
    // The log is still next to the file.
    let all = import("sliderunner", &file, &plain()).unwrap();
    drop(db);
    let closed = import("sliderunner", &file, &plain()).unwrap();
    assert_eq!(all.annotations, closed.annotations);
    let s = closed.summary();
    assert_eq!((kinds(&s), s.deleted, s.ignored["Tumor region"]), ((1, 1, 2, 1), 1, 1));
    assert_eq!(closed.annotations[0].votes["A"], "Mitotic figure", "the last word counts");
    assert_eq!(closed.annotations[3].bbox, Some([10.0, 20.0, 30.0, 40.0]));
    let of = |who: &str| ImportOptions { labels: LabelSource::Annotator(who.into()), ..plain() };
    assert_eq!(kinds(&import("sliderunner", &file, &of("B")).unwrap().summary()), (1, 1, 0, 3));
    assert!(import("sliderunner", &file, &of("C")).unwrap_err().contains("A, B"));
    let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    assert_eq!(left.len(), 1, "something was written next to the database");
}
