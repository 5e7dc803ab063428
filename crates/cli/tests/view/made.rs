//! A run made by hand on a drawn slide and on one of plain dots, and a server of it.

use detect::{Flaw, Flawed, SlideCandidate, SlideResult};
use mithras::batch::DetectionState;
use mithras::batch::state::Status;
use mithras::demo::{Kind, Layout};
use mithras::export::write_all;
use mithras::input::InputDigest;
use mithras::record::{ModelEntry, NamedPoint, SlideEntry, SlideRecord};
use mitosis::{Candidate, Detection, Mm2, Mpp, OperatingPoint, Point, Resolution, Score};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Centres of the dots, level-0 px.
pub const DOTS: [[f64; 2]; 3] = [[700.0, 600.0], [1900.0, 600.0], [1300.0, 1500.0]];

/// A run of two slides: `drawn` with 12 figures and 18 mimickers, `dots` with three figures.
pub struct Made {
    pub folder: TempDir,
    pub run: PathBuf,
}

impl Made {
    pub fn slide(&self, name: &str) -> PathBuf {
        self.folder.path().join("slides").join(name)
    }

    /// Counts a slide of dots again, as weights of this digest find so many of them.
    pub fn count_dots(&self, name: &str, dots: usize, weights: &str) {
        let found: Vec<_> =
            DOTS[..dots].iter().map(|d| (d[0], d[1], 0.9, Some(0.9), false)).collect();
        record(&self.run, &self.slide(name), (2600, 2100), &found, 4.0, weights);
    }
}

pub fn score(p: f32) -> Score {
    Score::new(p).unwrap()
}

/// The run with its drawn slide.
pub fn made() -> Made {
    let made = dotted();
    let drawn = made.slide("drawn.tiff");
    let layout = &crate::common::draw(&drawn, 3000, 2200, 11, 12);
    let found = layout.truth().iter().enumerate().map(|(k, t)| {
        // The first figure is exactly at the threshold, which rounds differently in two precisions.
        let cls = match (t.kind, k) {
            (Kind::Mitotic, k) if first(layout) == k => 0.7,
            (Kind::Mitotic, k) => 0.8 + k as f32 / 1000.0,
            (Kind::Mimicker, _) => 0.2,
        };
        (t.x_px, t.y_px, 0.9, Some(cls), false)
    });
    // Dirt on glass: both scores high, outside the tissue.
    let found: Vec<_> = found.chain([(5.0, 5.0, 0.99, Some(0.99), true)]).collect();
    record(&made.run, &drawn, (3000, 2200), &found, 0.25, "00");
    made
}

/// The run with the slide of dots alone, which takes no time to draw.
pub fn dotted() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let (run, slides) = (folder.path().join("run"), folder.path().join("slides"));
    std::fs::create_dir_all(&slides).unwrap();
    let mut image = image::RgbImage::from_pixel(2600, 2100, image::Rgb([255; 3]));
    for [x, y] in DOTS {
        // Nine px wide around the centre of the place's pixel.
        for (dx, dy) in (0..10).flat_map(|dy| (0..10).map(move |dx| (dx, dy))) {
            let at = (x as u32 - 5 + dx, y as u32 - 5 + dy);
            image.put_pixel(at.0, at.1, image::Rgb([0, 0, 0]));
        }
    }
    let dots = slides.join("dots.png");
    image.save(&dots).unwrap();
    let made = Made { folder, run };
    made.count_dots("dots.png", DOTS.len(), "00");
    made
}

/// Side of the huge slide, px.
const HUGE: u32 = 100_000;

/// A pyramid as a TIFF of 100,000 x 100,000 px at 0.25 um/px that takes 3 MB: every tile of every level is the same.
pub fn huge_tiff() -> Vec<u8> {
    const TILE: u32 = 1024;
    let pixel = |i: u32| [200 + (i % 7) as u8 * 4, 150 + (i / TILE % 5) as u8 * 8, 190];
    let tile: Vec<u8> = (0..TILE * TILE).flat_map(pixel).collect();
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let data = bytes.len() as u32;
    bytes.extend(&tile);
    let put = |bytes: &mut Vec<u8>, numbers: &[u32]| {
        let at = bytes.len() as u32;
        bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        at
    };
    let mut link = 4;
    for side in [HUGE, HUGE / 4, HUGE / 16, HUGE / 64] {
        let across = side.div_ceil(TILE);
        let n = across * across;
        let (offsets, counts) = match n {
            1 => (data, tile.len() as u32),
            _ => (
                put(&mut bytes, &vec![data; n as usize]),
                put(&mut bytes, &vec![tile.len() as u32; n as usize]),
            ),
        };
        let bits = put(&mut bytes, &[8 | 8 << 16, 8]);
        let per_cm = put(&mut bytes, &[40_000 / (HUGE / side), 1]);
        // Tag, type (SHORT 3, LONG 4, RATIONAL 5), count, value or its place.
        let entries = [
            (254, 4, 1, u32::from(side != HUGE)),
            (256, 4, 1, side),
            (257, 4, 1, side),
            (258, 3, 3, bits),
            (259, 3, 1, 1),
            (262, 3, 1, 2),
            (277, 3, 1, 3),
            (282, 5, 1, per_cm),
            (283, 5, 1, per_cm),
            (284, 3, 1, 1),
            (296, 3, 1, 3),
            (322, 4, 1, TILE),
            (323, 4, 1, TILE),
            (324, 4, n, offsets),
            (325, 4, n, counts),
        ];
        let at = bytes.len() as u32;
        bytes[link..link + 4].copy_from_slice(&at.to_le_bytes());
        bytes.extend((entries.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in entries {
            bytes.extend([tag as u16, kind as u16].iter().flat_map(|n| n.to_le_bytes()));
            bytes.extend([count, value].iter().flat_map(|n| n.to_le_bytes()));
        }
        link = bytes.len();
        bytes.extend([0; 4]);
    }
    bytes
}

/// A run of one huge slide with 100,000 candidates on a grid, every other one a figure.
pub fn huge() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir_all(folder.path().join("slides")).unwrap();
    let made = Made { folder, run };
    let file = made.slide("huge.tiff");
    std::fs::write(&file, huge_tiff()).unwrap();
    let found: Vec<Found> = (0..100_000_u32)
        .map(|k| {
            let [x, y] = [k % 316, k / 316].map(|i| f64::from(i) * 315.0 + 100.0);
            (x, y, 0.9, Some(if k % 2 == 0 { 0.9 } else { 0.2 }), false)
        })
        .collect();
    record(&made.run, &file, (HUGE.into(), HUGE.into()), &found, 600.0, "00");
    made
}

fn first(layout: &Layout) -> usize {
    layout.truth().iter().position(|t| t.kind == Kind::Mitotic).unwrap()
}

type Found = (f64, f64, f32, Option<f32>, bool);

fn record(
    run: &Path,
    file: &Path,
    (width, height): (u64, u64),
    found: &[Found],
    area: f64,
    weights: &str,
) {
    let candidate = |(k, &(x, y, seg, cls, outside_tissue)): (usize, &Found)| SlideCandidate {
        detection: Detection {
            candidate: Candidate { centroid: Point::new(x, y), s_seg: score(seg) },
            s_cls: cls.map(score),
        },
        outside_tissue,
        flaw: (k == 1).then_some(Flaw::Pen),
    };
    let result = SlideResult {
        candidates: found.iter().enumerate().map(candidate).collect(),
        flawed: Flawed::default(),
        unclassified: Vec::new(),
        unread: Vec::new(),
        analysed: Mm2(area),
        unread_area: Mm2(0.0),
        windows: 4,
        resumed_windows: 0,
        stages: Vec::new(),
        wall: Duration::from_secs(1),
    };
    let input = InputDigest::from_file(file).unwrap();
    let name = mithras::input::stem(file);
    let slide = SlideEntry {
        name: name.clone(),
        file: file.file_name().unwrap().to_string_lossy().into_owned(),
        vendor: "made".into(),
        width,
        height,
        bounds_offset: [30, 40],
        digest: input.sha256.clone(),
    };
    let model = ModelEntry {
        name: "made".into(),
        segmenter_sha256: weights.into(),
        classifier_sha256: Some("11".into()),
        classifier_scale: None,
        classifier_symmetries_from: None,
        screen: None,
        networks_sha256: None,
        license: "none".into(),
    };
    let point = OperatingPoint { seg: score(0.5), cls: score(0.7), provenance: "a test".into() };
    let resolution = Resolution::user(Mpp::PAPER);
    let record = SlideRecord::new(
        slide,
        resolution,
        model,
        NamedPoint { name: "made".into(), point },
        Mm2(area),
        &result,
    );
    let folder = run.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    write_all(&record, &folder).unwrap();
    let ring = "[[-30,-40],[470,-40],[470,460],[-30,-40]]";
    let tissue = format!(r#"{{"features":[{{"geometry":{{"coordinates":[{ring}]}}}}]}}"#);
    std::fs::write(folder.join("tissue.geojson"), tissue).unwrap();
    let pen = r#"{"classification":{"name":"Pen","color":[0,114,178]}}"#;
    let geometry = format!(r#"{{"coordinates":[{ring}]}}"#);
    let flaws = format!(r#"{{"features":[{{"properties":{pen},"geometry":{geometry}}}]}}"#);
    std::fs::write(folder.join("flaws.geojson"), flaws).unwrap();
    let mut state = DetectionState::running("made", input);
    state.status = Status::Finished;
    state.save(&folder).unwrap();
}

/// A running `mithras view`; ended by SIGKILL.
pub struct Server {
    child: Child,
    /// With the token, and `/` at the end.
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn serve(args: &[&Path]) -> Server {
    let mut command = Command::new(crate::program());
    command.arg("view").args(args).args(["--port", "0", "--no-browser"]);
    start(&mut command).expect("an address")
}

/// Starts a server whose first line is its address.
pub fn start(command: &mut Command) -> Option<Server> {
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).unwrap();
    let server = Server { child, url: line.trim().to_owned() };
    server.url.starts_with("http://").then_some(server)
}

/// An answer: status and body.
pub struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Server {
    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }

    pub fn token(&self) -> &str {
        self.url.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    /// Sends a whole request; `HOST` is replaced by the server's own.
    pub fn raw(&self, request: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(request.replace("HOST", self.address()).as_bytes()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let head = all.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer");
        let status = std::str::from_utf8(&all[9..12]).unwrap().parse().unwrap();
        Reply { status, body: all.split_off(head + 4) }
    }

    /// A path below the token.
    pub fn get(&self, path: &str) -> Reply {
        self.raw(&format!("GET /{}/{path} HTTP/1.1\r\nHost: HOST\r\n\r\n", self.token()))
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.raw(&format!(
            "POST /{}/{path} HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token(),
            body.len()
        ))
    }

    /// Sends a verdict on a place; `verdict` as JSON.
    pub fn review(
        &self,
        who: &str,
        slide: usize,
        at: [f64; 2],
        verdict: &str,
        added: bool,
    ) -> Reply {
        let [x, y] = at;
        let plus = if added { "+" } else { "" };
        let body = format!(
            r#"{{"reviewer":"{who}","slide":{slide},"key":"{plus}{x:.2},{y:.2}","x":{x},"y":{y},"verdict":{verdict},"added":{added}}}"#
        );
        self.post("api/review", &body)
    }

    /// The current verdicts, as `(key, verdict)`.
    pub fn verdicts(&self, who: &str, slide: usize) -> Vec<(String, String)> {
        let all = self.get(&format!("api/reviews/{slide}?reviewer={who}")).json();
        let entries = all["entries"].as_array().unwrap().iter();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        entries.map(|e| (text(&e["key"]), text(&e["verdict"]))).collect()
    }
}

/// A program in the path.
pub fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|d| names.iter().map(move |n| d.join(n)).collect::<Vec<_>>())
        .find(|p| p.is_file())
}
