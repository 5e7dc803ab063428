use super::*;
use crate::regions::{Classes, Regions, SlideFrame};

fn read(name: &str, bytes: &[u8], mpp: Option<f64>) -> Result<DrawnFile, RegionError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    DrawnFile::read(&path, mpp)
}

fn refused(name: &str, bytes: &[u8]) -> String {
    read(name, bytes, None).unwrap_err().to_string()
}

const SQUARE: &str =
    r#"{"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}"#;

#[test]
fn qupath_annotations_count_and_its_other_objects_do_not() {
    let feature = |more: &str| {
        format!(r#"{{"type": "Feature", "geometry": {SQUARE}, "properties": {{{more}}}}}"#)
    };
    let all = [
        feature(r#""objectType": "annotation", "name": "front", "classification": {"name": "Tumor", "color": [1, 2, 3]}"#),
        feature(r#""object_type": "annotation", "classification": {"names": ["Tumor", "Positive"]}"#),
        feature(r#""objectType": "detection""#),
        feature(r#""objectType": "cell""#),
        feature(r#""object_type": "tile""#),
        feature(r#""objectType": "tmaCore", "name": "A-1", "isMissing": false"#),
        feature(r#""objectType": "tmaCore", "name": "A-2", "isMissing": true"#),
        r#"{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {}}"#.to_owned(),
    ];
    let text = format!(r#"{{"type": "FeatureCollection", "features": [{}]}}"#, all.join(","));
    let file = read("a.geojson", text.as_bytes(), None).unwrap();
    let named: Vec<_> = file.regions.iter().map(|r| (r.name.as_str(), r.class.as_str())).collect();
    assert_eq!(named, [("front", "Tumor"), ("", "Tumor: Positive"), ("A-1", "")]);
    let passed: Vec<_> = file.passed_over.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    assert_eq!(
        passed,
        [("cells", 1), ("detections", 1), ("missing cores", 1), ("points", 1), ("tiles", 1)]
    );
    assert_eq!(file.frame, Frame::Bounds);
}

#[test]
fn asap_and_imagescope_are_distinguished_by_their_root() {
    let asap = r#"<?xml version="1.0"?><ASAP_Annotations><Annotations>
        <Annotation Name="1" Type="Polygon" PartOfGroup="Tumor"><Coordinates>
        <Coordinate Order="0" X="0" Y="0,0"/><Coordinate Order="1" X="10.5" Y="0"/><Coordinate Order="2" X="10,5" Y="10"/>
        </Coordinates></Annotation>
        <Annotation Name="2" Type="Dot" PartOfGroup="None"><Coordinates><Coordinate Order="0" X="1" Y="1"/></Coordinates></Annotation>
        </Annotations></ASAP_Annotations>"#;
    let file = read("a.xml", asap.as_bytes(), None).unwrap();
    assert_eq!((file.format, file.regions.len(), file.passed_over["points"]), ("asap", 1, 1));
    assert!((file.regions[0].area.px2() - 52.5).abs() < 1e-9);

    // The corners of a square in another order than they are numbered.
    let square = r#"<ASAP_Annotations><Annotation Name="1" Type="Polygon"><Coordinates>
        <Coordinate Order="0" X="0" Y="0"/><Coordinate Order="2" X="10" Y="10"/>
        <Coordinate Order="1" X="10" Y="0"/><Coordinate Order="3" X="0" Y="10"/>
        </Coordinates></Annotation></ASAP_Annotations>"#;
    let file = read("a.xml", square.as_bytes(), None).unwrap();
    assert!((file.regions[0].area.px2() - 100.0).abs() < 1e-9);

    let vertices = |points: &[(f64, f64)]| -> String {
        points.iter().map(|(x, y)| format!(r#"<Vertex X="{x}" Y="{y}" Z="0"/>"#)).collect()
    };
    let region = |kind: &str, negative: &str, points: &[(f64, f64)]| {
        let v = vertices(points);
        format!(
            r#"<Region Type="{kind}" NegativeROA="{negative}" Text="r"><Vertices>{v}</Vertices></Region>"#
        )
    };
    let square = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)];
    let text = format!(
        r#"<Annotations MicronsPerPixel="0.5"><Annotation Id="1" Name=""><Attributes><Attribute Name="Description" Value="Tumour"/></Attributes>
        <Regions>{}{}{}{}{}</Regions></Annotation></Annotations>"#,
        region("0", "0", &square),
        region("1", "0", &[(0.0, 0.0), (4.0, 5.0)]),
        region("2", "0", &[(0.0, 0.0), (4.0, 2.0)]),
        region("0", "1", &square),
        region("3", "0", &[(0.0, 0.0), (4.0, 2.0)]),
    );
    let file = read("a.xml", text.as_bytes(), None).unwrap();
    let sizes: Vec<f64> =
        file.regions.iter().map(|r| (r.area.px2() * 1000.0).round() / 1000.0).collect();
    let ellipse = (std::f64::consts::TAU * 1000.0).round() / 1000.0;
    assert_eq!(sizes, [100.0, 20.0, ellipse, 100.0]);
    assert_eq!(
        file.regions.iter().map(|r| r.negative).collect::<Vec<_>>(),
        [false, false, false, true]
    );
    assert!(file.mpp == Some(0.5) && file.regions.iter().all(|r| r.class == "Tumour"));
    assert!(refused("a.xml", b"<svg/>").contains("its root is <svg>"));
    assert!(
        refused("a.xml", asap.replace("10.5", "wide").as_bytes())
            .contains("corner 2: `wide` is not a number")
    );
}

fn png(width: u32, values: &[u8]) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let height = values.len() as u32 / width;
    image::write_buffer_with_format(
        &mut out,
        values,
        width,
        height,
        image::ExtendedColorType::L8,
        image::ImageFormat::Png,
    )
    .unwrap();
    out.into_inner()
}

#[test]
fn a_mask_has_a_region_per_value_and_covers_the_slide() {
    #[rustfmt::skip]
    let bytes = png(5, &[
        0, 1, 1, 0, 2,
        0, 1, 0, 0, 2,
        1, 1, 1, 1, 1,
        0, 0, 0, 0, 0,
    ]);
    assert!(matches!(read("a.png", &bytes, None), Err(RegionError::NoMpp { .. })));
    let file = read("a.png", &bytes, Some(8.0)).unwrap();
    let sizes: Vec<_> =
        file.regions.iter().map(|r| (r.class.as_str(), r.area.px2().round())).collect();
    assert_eq!(sizes, [("1", 8.0), ("2", 2.0)]);
    let slide = SlideFrame {
        name: "a".into(),
        width: 158,
        height: 128,
        bounds_offset: [9, 9],
        mpp: [0.25, 0.25],
        digest: String::new(),
    };
    let on = Regions::for_slide(&file, &Classes::default(), &slide).unwrap();
    // A pixel of the mask is 32 x 32 px of the slide, whose last two columns it hangs over.
    assert_eq!(on.all.px2().round(), 10.0 * 1024.0 - 3.0 * 2.0 * 32.0);
    let colour = image::RgbImage::from_pixel(4, 4, image::Rgb([9, 0, 0]));
    let mut out = std::io::Cursor::new(Vec::new());
    colour.write_to(&mut out, image::ImageFormat::Png).unwrap();
    assert!(
        read("a.png", &out.into_inner(), Some(8.0))
            .unwrap_err()
            .to_string()
            .contains("it has colours")
    );
}

#[test]
fn a_mask_that_states_two_resolutions_is_refused() {
    let plain = png(2, &[0, 1, 1, 0]);
    let with = |chunks: &[(&[u8; 4], &[u8])]| {
        let crc = |parts: [&[u8]; 2]| {
            let step = |c: u32, b: &u8| {
                (0..8).fold(c ^ u32::from(*b), |c, _| {
                    c >> 1 ^ if c & 1 == 1 { 0xEDB8_8320 } else { 0 }
                })
            };
            !parts.concat().iter().fold(!0, step)
        };
        let chunk = |(kind, body): &(&[u8; 4], &[u8])| {
            let (length, sum) = ((body.len() as u32).to_be_bytes(), crc([&kind[..], body]));
            [&length[..], &kind[..], body, &sum.to_be_bytes()].concat()
        };
        [&plain[..33], &chunks.iter().flat_map(chunk).collect::<Vec<u8>>(), &plain[33..]].concat()
    };
    let density = [125_000_u32.to_be_bytes(), 125_000_u32.to_be_bytes()].concat();
    let density = [&density[..], &[1]].concat();
    let masks = |scale: &[u8]| with(&[(b"pHYs", &density), (b"sCAL", scale)]);
    let file = read("a.png", &masks(b"\x018e-6\x008e-6"), None).unwrap();
    assert_eq!(file.frame, Frame::Mask { width: 2, height: 2, mpp: 8.0 });
    let refused = refused("a.png", &masks(b"\x014e-6\x004e-6"));
    assert!(refused.contains("states 8 um/px (png.pHYs) and 4 um/px (png.sCAL)"), "{refused}");
}

#[test]
fn regions_in_utf_16_are_refused_with_the_remedy() {
    for (name, text) in [("a.geojson", "[]"), ("a.xml", "<ASAP_Annotations/>")] {
        let wide: Vec<u8> =
            format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let refused = refused(name, &wide);
        assert!(
            refused.ends_with(&format!("{name}: is UTF-16 text; save it as UTF-8")),
            "{refused}"
        );
    }
}

#[test]
fn an_object_with_a_key_twice_is_not_read() {
    let text =
        br#"{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [], "coordinates":
        [[[0, 0], [9, 0], [9, 9]]]}, "properties": {}}"#;
    let refused = refused("a.geojson", text);
    assert!(
        refused.contains("a.geojson") && refused.contains("the key `coordinates` twice"),
        "{refused}"
    );
}

/// A grey TIFF of pages: side in px, and whether the page states that it is a shrunk copy. All of it is class 1.
fn pages(all: &[(u16, bool)]) -> Vec<u8> {
    let mut b = b"II*\0\x08\0\0\0".to_vec();
    for (i, (side, shrunk)) in all.iter().enumerate() {
        let (at, bytes) = (b.len() as u32, u32::from(*side) * u32::from(*side));
        let pixels = at + 2 + 9 * 12 + 4;
        let side = u32::from(*side);
        let fields = [
            (254, u32::from(*shrunk)),
            (256, side),
            (257, side),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, pixels),
            (278, side),
            (279, bytes),
        ];
        b.extend(9u16.to_le_bytes());
        for (tag, value) in fields {
            b.extend([u16::to_le_bytes(tag), 4u16.to_le_bytes()].concat());
            b.extend([1u32.to_le_bytes(), value.to_le_bytes()].concat());
        }
        let next = if i + 1 < all.len() { pixels + bytes } else { 0 };
        b.extend(next.to_le_bytes());
        b.resize(b.len() + bytes as usize, 1);
    }
    b
}

/// As of slides: another picture like the first is refused, shrunk copies of it are not other pictures.
#[test]
fn a_mask_is_one_picture() {
    for one in [&[(8, false)][..], &[(8, false), (4, true)], &[(8, false), (4, false), (2, false)]]
    {
        let file = read("a.tif", &pages(one), Some(8.0)).unwrap();
        assert_eq!(file.regions[0].area.px2().round(), 64.0, "{one:?}");
    }
    for several in [&[(8, false), (8, false)][..], &[(4, false), (8, false)]] {
        let refused = read("a.tif", &pages(several), Some(8.0)).unwrap_err().to_string();
        assert!(refused.contains("several pages"), "{several:?}: {refused}");
        assert!(refused.contains("a file of its own"), "{several:?}: {refused}");
    }
}

#[test]
fn what_is_not_a_file_of_regions_is_refused() {
    assert!(refused("a.csv", b"x,y\n").contains("not a file of regions"));
    assert!(refused("a.geojson", b"{").contains("not valid JSON"));
    assert!(refused("a.json", b"{\"a\": 1}").contains("is not GeoJSON"));
    assert!(
        refused("a.geojson", br#"{"type": "FeatureCollection", "features": []}"#)
            .contains("contains no area, only nothing")
    );
    let bad = br#"{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[[0, "x"]]]}, "properties": {}}"#;
    assert!(refused("a.geojson", bad).contains("feature 1: [0,\"x\"] is not a pair of numbers"));
    let far = String::from_utf8_lossy(bad).replace("[0, \"x\"]", "[0, 0], [1e308, 0], [0, 1e308]");
    let farther = refused("a.geojson", far.as_bytes());
    assert!(farther.contains("0] is farther away than any slide is wide"), "{farther}");
    let near = far.replace("1e308", "1e10");
    assert_eq!(read("a.geojson", near.as_bytes(), None).unwrap().regions.len(), 1);
    let parts = far.replace("1e308", "1");
    assert!(refused("a.geojson", parts.as_bytes()).contains("in parts of the image, not in px"));
    assert!(refused("a.png", b"no picture").contains("um/px"));
    assert!(
        read("a.png", b"no picture", Some(8.0)).unwrap_err().to_string().contains("is not a mask")
    );
}

/// A mask of the slide's size that is stored turned would land elsewhere, and a value that is not seen may be no class.
#[test]
fn a_turned_or_transparent_mask_is_refused() {
    let upright = png(2, &[1, 0, 0, 0]);
    let exif = |orientation: u8| {
        let head = b"\0\0\0\x1AeXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
        [&upright[..33], head, &[orientation, 0, 0, 0], &[0; 8], &upright[33..]].concat()
    };
    let refused = read("a.png", &exif(3), Some(8.0)).unwrap_err().to_string();
    assert!(refused.contains("orientation 3") && refused.contains("upright"), "{refused}");
    let clear = |value| {
        let mut out = std::io::Cursor::new(Vec::new());
        let pixel = |x, _| image::LumaA(if x == 0 { [1, 255] } else { [value, 0] });
        image::GrayAlphaImage::from_fn(2, 1, pixel)
            .write_to(&mut out, image::ImageFormat::Png)
            .unwrap();
        read("a.png", &out.into_inner(), Some(8.0)).map_err(|e| e.to_string())
    };
    assert_eq!(clear(0).unwrap().regions.len(), 1);
    assert!(clear(2).unwrap_err().contains("transparent"));
}

/// Children of QuPath's objects are areas like every other, and can be left out.
#[test]
fn children_of_qupath_objects_are_areas() {
    let feature = |class: &str, side: u32, more: &str| {
        let ring = format!("[[0,0],[{side},0],[{side},{side}],[0,{side}],[0,0]]");
        format!(
            r#"{{"type": "Feature", "geometry": {{"type": "Polygon", "coordinates": [{ring}]}},
            "properties": {{"classification": {{"name": "{class}"}}, {more}}}}}"#
        )
    };
    let necrosis = feature("Necrosis", 4, r#""type": "annotation""#);
    let tumor = feature("Tumor", 10, &format!(r#""childObjects": [{necrosis}]"#));
    let cell = feature("Tumor", 2, r#""type": "cell""#);
    let root = format!(
        r#"{{"type": "Feature", "geometry": null, "properties": {{"objectType": "root", "childObjects": [{tumor}, {cell}]}}}}"#
    );
    let file = read("a.geojson", format!("[{root}]").as_bytes(), None).unwrap();
    let classes: Vec<_> = file.regions.iter().map(|r| r.class.as_str()).collect();
    assert_eq!((classes, file.passed_over["cells"]), (vec!["Tumor", "Necrosis"], 1));
    let slide = SlideFrame {
        name: "a".into(),
        width: 100,
        height: 100,
        bounds_offset: [0, 0],
        mpp: [0.25, 0.25],
        digest: String::new(),
    };
    let without = Classes { exclude: vec!["Necrosis".into()], ..Classes::default() };
    let all = Regions::for_slide(&file, &without, &slide).unwrap().all;
    assert_eq!(all.px2().round(), 100.0 - 16.0);
    let wrong = r#"[{"type": "Feature", "geometry": null, "properties": {"childObjects": 3}}]"#;
    assert!(refused("a.geojson", wrong.as_bytes()).contains("feature 1: its `childObjects` is 3"));
    // A name that contains a type is a name.
    let named =
        feature("Tumor", 10, r#""locked": false"#).replacen('{', r#"{"id": "root canal", "#, 1);
    assert_eq!(read("a.geojson", named.as_bytes(), None).unwrap().regions.len(), 1);
}

#[test]
fn what_has_no_name_is_named_by_its_number() {
    let asap = |name: &str| {
        format!(
            r#"<ASAP_Annotations><Annotations><Annotation Name="{name}" Type="Polygon" PartOfGroup="None"><Coordinates>
            <Coordinate Order="0" X="?" Y="0"/></Coordinates></Annotation></Annotations></ASAP_Annotations>"#
        )
    };
    let text = refused("a.xml", asap("").as_bytes());
    assert!(text.contains("annotation 1, corner 1: `?`"), "{text}");
    assert!(refused("a.xml", asap("front").as_bytes()).contains("annotation 1 `front`, corner 1"));
    // An image without a name is not another slide.
    let ring = "[[0,0],[10,0],[10,10],[0,10],[0,0]]";
    let drawn = format!(
        r#"[{{"type": "Feature", "geometry": {{"type": "Polygon", "coordinates": [{ring}]}}, "properties": {{"image": ""}}}}]"#
    );
    assert_eq!(read("a.geojson", drawn.as_bytes(), None).unwrap().regions[0].image, None);
}
