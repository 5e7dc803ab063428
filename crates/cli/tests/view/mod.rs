//! `mithras view` and `mithras recount`: what the server answers, what survives, what is counted.

mod audit;
mod back;
mod calibrate;
pub(crate) mod made;
mod page;
mod quality;
mod regions;
mod report;
mod sign_off;
mod start_page;
mod together;

use made::{DOTS, made, score, serve, start};
use mithras::demo::Rect;
use mithras::export::read_detections;
use review::view::{TILE, max_level};
use serde_json::Value;
use std::process::Command;

/// The slides' positions in the list, which is sorted by name.
const DRAWN: usize = 1;
const DOTTED: usize = 0;

#[test]
fn index_and_detail_are_the_runs_own() {
    let made = made();
    let server = serve(&[&made.run]);
    let index = server.get("api/index").json();
    let slides = index["slides"].as_array().unwrap();
    assert_eq!(slides.len(), 2);
    let drawn = &slides[DRAWN];
    assert_eq!((&drawn["name"], &drawn["width"]), (&"drawn".into(), &3000.into()));
    assert_eq!((&drawn["height"], &drawn["tile"]), (&2200.into(), &512.into()));
    assert_eq!(drawn["max_level"], max_level((3000, 2200)));
    assert_eq!(drawn["note"], "12 figures, hotspot 12");
    // Weights that are not bundled: nobody knows what their thresholds promise.
    assert_eq!(index["points"], serde_json::from_str::<Value>("{}").unwrap());

    let detail = server.get(&format!("api/slide/{DRAWN}")).json();
    let rows = read_detections(&made.run.join("drawn/detections.csv")).unwrap();
    assert_eq!(rows.len(), 31);
    let column = |name: &str| detail["columns"][name].as_array().unwrap().clone();
    for (k, row) in rows.iter().enumerate() {
        assert_eq!(column("x")[k].as_f64(), Some(row.x_px));
        assert_eq!(column("y")[k].as_f64(), Some(row.y_px));
        assert_eq!(column("s_seg")[k].as_f64().map(|v| v as f32), Some(row.s_seg));
        assert_eq!(column("s_cls")[k].as_f64().map(|v| v as f32), row.s_cls);
        assert_eq!(column("outside")[k].as_bool(), Some(row.outside_tissue));
        assert_eq!(column("flaw")[k].as_str(), row.flaw.map(detect::Flaw::label));
    }
    assert!(detail["columns"].get("p_atypical").is_none(), "a run without subtypes");
    assert_eq!(detail["point"]["cls"].as_f64().map(|v| v as f32), Some(score(0.7).get()));
    assert_eq!(detail["searched"], true);
    assert_eq!((&detail["mpp"][0], &detail["analysed_mm2"]), (&0.25.into(), &0.25.into()));
    // Outlines are kept from the slide's bounds, shown from its origin.
    assert_eq!(detail["tissue"][0][1], serde_json::from_str::<Value>("[500.0,0.0]").unwrap());
    let [flaw] = &detail["flaws"].as_array().unwrap()[..] else { panic!("{}", detail["flaws"]) };
    assert_eq!((&flaw["name"], &flaw["colour"][2]), (&"Pen".into(), &178.into()));
    assert_eq!(flaw["rings"], detail["tissue"]);
}

/// Mean absolute difference of a JPEG and pixels, moved by so many px to the right.
fn difference(jpeg: &[u8], tile: &mitosis::RgbTile, shift: usize) -> f64 {
    let image = image::load_from_memory(jpeg).unwrap().into_rgb8();
    assert_eq!((image.width() as usize, image.height() as usize), (tile.width, tile.height));
    let (mut sum, mut n) = (0.0, 0.0);
    for y in 0..tile.height {
        for x in 0..tile.width - shift {
            let (a, b) = (image.get_pixel((x + shift) as u32, y as u32).0, tile.pixel(x, y));
            sum += (0..3).map(|c| f64::from(a[c].abs_diff(b[c]))).sum::<f64>();
            n += 3.0;
        }
    }
    sum / n
}

#[test]
fn a_tile_holds_the_slides_pixels() {
    let made = made();
    let server = serve(&[&made.run]);
    let slide = slide::Slide::open(made.slide("drawn.tiff")).unwrap();
    let top = max_level((3000, 2200));
    assert_eq!(top, 3);
    // Level 0 of the file; its last column, cut to the slide; half of it; an eighth, all in one tile.
    for (level, x, y, w, h) in [
        (top, 2, 1, 512, 512),
        (top, 5, 2, 440, 512),
        (top - 1, 2, 1, 476, 512),
        (0, 0, 0, 375, 275),
    ] {
        let answer = server.get(&format!("tile/{DRAWN}/{level}/{x}_{y}.jpg"));
        assert_eq!(answer.status, 200);
        let factor = f64::from(1 << (top - level));
        let at = |k: i64| k * TILE as i64;
        let (exact, _) = slide.read_reduced(factor, Rect::new(at(x), at(y), w, h)).unwrap();
        let (same, moved) =
            (difference(&answer.body, &exact, 0), difference(&answer.body, &exact, 1));
        assert!(same < 2.5 && moved > 1.3 * same, "level {level}: {same}, moved by one {moved}");
    }
    // What is read at half size is the mean of four pixels of the file.
    let fine = slide.read_region(0, Rect::new(1024, 512, 512, 512)).unwrap();
    let (half, unread) = slide.read_reduced(2.0, Rect::new(512, 256, 256, 256)).unwrap();
    assert!(unread.is_empty());
    for (x, y) in [(0, 0), (17, 200), (255, 255)] {
        let four = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(i, j)| fine.pixel(2 * x + i, 2 * y + j));
        for c in 0..3 {
            let mean = four.iter().map(|p| f64::from(p[c])).sum::<f64>() / 4.0;
            assert!((mean - f64::from(half.pixel(x, y)[c])).abs() <= 1.0, "{x}, {y}");
        }
    }
    let crop = server.get(&format!("crop/{DRAWN}/1500_1100.jpg"));
    let exact = slide.read_region(0, Rect::new(1500 - 64, 1100 - 64, 128, 128)).unwrap();
    assert!(difference(&crop.body, &exact, 0) < 2.5);
}

#[test]
fn only_who_has_the_whole_address_is_answered() {
    let made = made();
    let secret = made.folder.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    let server = serve(&[&made.run]);
    assert!(server.token().len() >= 32, "{}", server.token());
    let token = server.token().to_owned();
    assert_eq!(server.get("").status, 200);
    assert_eq!(server.get("openseadragon.js").status, 200);
    let ask = |path: &str, more: &str| {
        server.raw(&format!("GET {path} HTTP/1.1\r\nHost: HOST\r\n{more}\r\n")).status
    };
    for path in ["/", "/api/index", "/view.js", "/0/api/index", "//api/index", &format!("/{token}")]
    {
        assert_eq!(ask(path, ""), 403, "{path}");
    }
    let wrong = format!("/{}0/api/index", &token[..token.len() - 1]);
    assert!(token.ends_with('0') || ask(&wrong, "") == 403);
    let foreign = format!("GET /{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(server.raw(&foreign).status, 403);
    let tunnel = format!("GET /{token}/ HTTP/1.1\r\nHost: localhost:9000\r\n\r\n");
    assert_eq!(server.raw(&tunnel).status, 200);
    assert_eq!(ask(&format!("/{token}/"), "Origin: http://evil.example\r\n"), 403);
    for path in [
        "../../secret.txt",
        "..%2f..%2fsecret.txt",
        "tile/0/../../secret.jpg",
        "tile/0/0/0_1.jpg",
        "tile/0/99/0_0.jpg",
        "tile/0/0/-1_0.jpg",
        "tile/0/0/999999999_999999999.jpg",
        "tile/0/0/99999999999999999999_0.jpg",
        "tile/7/0/0_0.jpg",
        "crop/0/9999999_0.jpg",
        "crop/0/1_2",
        "api/slide/2",
        "api/slide/",
        "api/reviews/0",
        "state.json",
        "reviews/anna.jsonl",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.windows(6).any(|w| w == b"secret"));
    }
    for (who, at, verdict, added, status) in [
        ("../anna", DOTS[0], "\"figure\"", false, 400),
        ("", DOTS[0], "\"figure\"", false, 400),
        ("anna", DOTS[0], "\"perhaps\"", false, 400),
        ("anna", [1.0, 2.0], "\"figure\"", false, 404),
        ("anna", [-1.0, 2.0], "\"figure\"", true, 400),
        ("anna", [1.0, 1e9], "\"figure\"", true, 400),
    ] {
        assert_eq!(server.review(who, DOTTED, at, verdict, added).status, status, "{who} {at:?}");
    }
    assert!(!made.run.join("anna.jsonl").exists());
    let long =
        format!("POST /{token}/api/review HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999\r\n\r\n");
    assert_eq!(server.raw(&long).status, 413);
    let other = format!(
        "POST /{token}/api/undo HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert_eq!(server.raw(&other).status, 403);
    assert!(!made.run.join("reviews/anna.jsonl").exists(), "no verdict was sent");
}

#[test]
fn a_word_that_was_acknowledged_survives_a_kill() {
    let made = made();
    let server = serve(&[&made.run]);
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"mimicker\"", false).status, 200);
    assert_eq!(server.review("anna", DOTTED, DOTS[1], "\"atypical\"", false).status, 200);
    assert_eq!(server.review("bert", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    // A second viewer may look, and is not let at a log that this one holds.
    let second = serve(&[&made.run]);
    let answer = second.review("anna", DOTTED, DOTS[2], "\"unsure\"", false);
    assert!(
        answer.status == 400 && String::from_utf8_lossy(&answer.body).contains("another process")
    );
    drop((second, server));
    // A kill in the middle of the next line.
    let log = made.run.join("reviews/anna.jsonl");
    let mut text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 2);
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for (field, value) in
        [("schema", "mithras.review/1"), ("slide", "dots"), ("key", "700.00,600.00")]
    {
        assert_eq!(line[field], value);
    }
    assert!(
        line["time"].as_f64().unwrap() > 1.7e9
            && line["slide_digest"].as_str().unwrap().len() == 64
    );
    assert_eq!(line["model_digest"].as_str().unwrap().len(), 64);
    text.push_str(r#"{"schema":"mithras.rev"#);
    std::fs::write(&log, &text).unwrap();

    let server = serve(&[&made.run]);
    let key = |k: usize| format!("{:.2},{:.2}", DOTS[k][0], DOTS[k][1]);
    let both = [(key(1), "atypical".to_owned()), (key(0), "mimicker".to_owned())];
    assert_eq!(server.verdicts("anna", DOTTED), both);
    assert_eq!(server.verdicts("bert", DOTTED), [(key(0), "figure".to_owned())]);
    assert_eq!(server.verdicts("anna", DRAWN), []);
    // The last verdict on a key counts; after an undo the one before it, of an earlier session, too.
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    assert_eq!(server.verdicts("anna", DOTTED)[1].1, "figure");
    let undo =
        || server.post("api/undo", &format!(r#"{{"reviewer":"anna","slide":{DOTTED}}}"#)).json();
    assert_eq!(undo()["entry"]["verdict"], "mimicker");
    assert_eq!(server.verdicts("anna", DOTTED), both);
    assert_eq!(undo()["entry"]["verdict"], Value::Null);
    assert_eq!(server.verdicts("anna", DOTTED), both[1..]);
    undo();
    assert_eq!(undo()["entry"], Value::Null, "nothing is left to take back");
    assert_eq!(server.verdicts("anna", DOTTED), []);
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 6, "nothing is ever rewritten");
    assert!(text.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()), "{text}");
}

/// A server that is blinded for everybody sends places, and nothing that anybody thinks of them.
#[test]
fn a_blinded_server_sends_no_opinion() {
    let made = made();
    let open = serve(&[&made.run]);
    assert_eq!(open.review("bert", DRAWN, [1500.0, 1100.0], "\"figure\"", true).status, 200);
    let hotspot = format!(
        r#"{{"reviewer":"bert","slide":{DRAWN},"preset":"melanoma","shape":"circle","fields":1,"field_mm2":1.0,"apart":false,"centres_px":[[1500.0,1100.0]]}}"#
    );
    assert_eq!(open.post("api/hotspot", &hotspot).status, 200);
    assert_eq!(open.get(&format!("api/desk/{DRAWN}")).json()["hotspot"]["reviewer"], "bert");
    drop(open);

    let server = serve(&[&made.run, "--blinded".as_ref()]);
    let index = server.get("api/index").json();
    assert_eq!((&index["blinded"], &index["points"]), (&true.into(), &serde_json::json!({})));
    for slide in index["slides"].as_array().unwrap() {
        assert_eq!(slide["note"], "", "{slide}");
        assert!(
            slide["caveats"].as_array().unwrap().iter().all(|c| c["of_figures"] == false),
            "{slide}"
        );
    }
    let detail = server.get(&format!("api/slide/{DRAWN}")).json();
    assert_eq!(detail["point"], serde_json::json!({"seg": 0.0, "cls": 0.0}));
    let column = |name: &str| {
        let cells = detail["columns"][name].as_array().unwrap().iter();
        cells.map(|v| v.as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert!(column("s_seg").iter().chain(&column("s_cls")).all(|s| *s == 0.0));
    // Accepted and rejected alike; what is outside the tissue is not among them.
    assert_eq!(column("x").len(), 30);
    assert!(column("y").is_sorted(), "in an order that knows places alone");
    let voices = server.get(&format!("api/voices/{DRAWN}")).json();
    assert_eq!(voices, serde_json::json!({"voices": {}, "agreement": [], "disagreements": []}));
    assert_eq!(server.get(&format!("api/desk/{DRAWN}")).json()["hotspot"], Value::Null);
    let settle = format!(
        r#"{{"reviewer":"anna","slide":{DRAWN},"key":"+1500.00,1100.00","verdict":"figure"}}"#
    );
    assert_eq!(server.post("api/settle", &settle).status, 400);
    // A reviewer reads her own words alone.
    assert_eq!(server.verdicts("anna", DRAWN), []);
    assert_eq!(server.review("anna", DRAWN, [900.0, 900.0], "\"figure\"", true).status, 200);
    assert_eq!(
        server.verdicts("anna", DRAWN),
        [("+900.00,900.00".to_owned(), "figure".to_owned())]
    );
}

/// Nothing is on disk before the first verdict: not by looking, nor by taking back what was never given.
#[test]
fn a_look_and_an_undo_of_a_new_reviewer_write_nothing() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    assert_eq!(server.verdicts("anna", DOTTED), []);
    let undo = server.post("api/undo", &format!(r#"{{"reviewer":"anna","slide":{DOTTED}}}"#));
    assert_eq!(undo.json()["entry"], Value::Null);
    let bad = server.post("api/undo", &format!(r#"{{"reviewer":"../a","slide":{DOTTED}}}"#));
    assert_eq!(bad.status, 400);
    // A name that cannot be a file's is refused by the letter that was typed.
    let refused = server.get(&format!("api/reviews/{DOTTED}?reviewer=Dr.%20Wei%C3%9F"));
    let words = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(refused.status == 400 && words.contains("a space and `ß` cannot be used"), "{words}");
    assert!(!made.run.join("reviews").exists());
}

/// Blinded, names are not checked: another reviewer's name shows that reviewer's verdicts. A folder of one's own holds
/// none.
#[test]
fn a_blinded_reviewer_with_a_folder_of_her_own_reads_no_other() {
    let made = made::dotted();
    let open = serve(&[&made.run]);
    assert_eq!(open.review("bert", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    drop(open);
    let blinded = serve(&[&made.run, "--blinded".as_ref()]);
    assert_eq!(blinded.verdicts("bert", DOTTED).len(), 1);
    drop(blinded);
    let own = made.folder.path().join("of-anna");
    let blinded = serve(&[&made.run, "--blinded".as_ref(), "--reviews".as_ref(), &own]);
    assert_eq!(blinded.verdicts("bert", DOTTED), []);
    assert_eq!(blinded.review("anna", DOTTED, DOTS[0], "\"mimicker\"", false).status, 200);
    assert!(own.join("anna.jsonl").is_file() && !made.run.join("reviews/anna.jsonl").exists());
    let keep = format!(r#"{{"slide":{DOTTED},"point":"0.5,0.5"}}"#);
    let kept = blinded.post("api/keep", &keep);
    assert!(kept.status == 400 && String::from_utf8_lossy(&kept.body).contains("blinded"));
}

/// What was signed cannot be changed but by opening it again, and a log that is not the signed one is noticed.
#[test]
fn a_signature_freezes_what_it_signs() {
    let made = made::dotted();
    let server = serve(&[&made.run]);
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"mimicker\"", false).status, 200);
    assert_eq!(server.review("bert", DOTTED, DOTS[1], "\"mimicker\"", false).status, 200);
    let sign = |more: &str| {
        server.post("api/sign", &format!(r#"{{"reviewer":"anna","slide":{DOTTED}{more}}}"#))
    };
    assert_eq!(sign("").status, 200);
    let who = format!(r#""reviewer":"bert","slide":{DOTTED}"#);
    let hotspot = r#""preset":"own","shape":"square","fields":1,"field_mm2":1.0,"apart":false,"centres_px":[[9.0,9.0]]"#;
    let changes = [
        ("api/undo", String::new()),
        ("api/hotspot", format!(",{hotspot}")),
        (
            "api/regions",
            r#","regions":[{"name":"","class":"","exclude":false,"ring":[[0,0],[9,0],[9,9]]}]"#
                .to_owned(),
        ),
        (
            "api/settle",
            format!(r#","key":"{:.2},{:.2}","verdict":"figure""#, DOTS[0][0], DOTS[0][1]),
        ),
    ];
    for (path, more) in &changes {
        let answer = server.post(path, &format!("{{{who}{more}}}"));
        assert_eq!(answer.status, 409, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(server.review("bert", DOTTED, DOTS[2], "\"mimicker\"", false).status, 409);
    let log = made.run.join("reviews/anna.jsonl");
    let signed = std::fs::read_to_string(&log).unwrap();
    let names = |dir: &str| std::fs::read_dir(made.run.join(dir)).unwrap().count();
    assert_eq!(names("reviews"), 3, "two logs and the signature");
    // Another's numbers are not what was signed.
    let other = recount(&made, "bert").unwrap();
    assert!(
        other["slides"][DOTTED]["notes"].to_string().contains("signed by anna (version 1), whose"),
        "{other}"
    );
    assert!(!recount(&made, "anna").unwrap().to_string().contains("signed by anna"));
    // A log that was rewritten, without a fault in itself, is not the one that was signed.
    let other_log = signed.replacen("mimicker", "figure", 1);
    assert_ne!(other_log, signed);
    std::fs::write(&log, &other_log).unwrap();
    let refused = recount(&made, "anna").unwrap_err();
    assert!(
        refused.contains("anna.jsonl") && refused.contains("signed for dots (version 1)"),
        "{refused}"
    );
    assert_eq!(server.get(&format!("api/desk/{DOTTED}")).status, 500);
    std::fs::write(&log, &signed).unwrap();
    // Opened again with a reason, changed, and signed as version 2: both are kept with who and when.
    assert_eq!(sign(r#","reopen":" ""#).status, 400, "a reason is asked for");
    assert_eq!(sign(r#","reopen":"one more look""#).status, 200);
    assert_eq!(server.review("anna", DOTTED, DOTS[0], "\"figure\"", false).status, 200);
    assert_eq!(sign("").status, 200);
    let desk = server.get(&format!("api/desk/{DOTTED}")).json();
    let all: Vec<_> = desk["signatures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["version"].as_u64(), s["signed"].as_bool()))
        .collect();
    assert_eq!(all, [(Some(1), Some(true)), (Some(1), Some(false)), (Some(2), Some(true))]);
    assert!(
        desk["signatures"].as_array().unwrap().iter().all(|s| s["time"].as_f64().unwrap() > 1.7e9)
    );
}

#[test]
fn a_full_disk_saves_no_word() {
    let made = made();
    let reviews = made.run.join("reviews");
    std::fs::create_dir_all(&reviews).unwrap();
    // A disk of a few pages in a name space of its own.
    let script = r#"mount -t tmpfs -o size=8k none "$1" || exit 77
        exec "$2" view "$3" --port 0"#;
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]);
    command.arg(&reviews).arg(crate::program()).arg(&made.run);
    let Some(server) = start(&mut command) else {
        return eprintln!("SKIPPED: no small disk can be made here");
    };
    let mut last = None;
    let mut refused = 0;
    for k in 0..60 {
        let word = ["figure", "mimicker", "unsure"][k % 3];
        let answer = server.review("anna", DOTTED, DOTS[0], &format!("\"{word}\""), false);
        match answer.status {
            200 => last = Some(word),
            _ => {
                assert!(String::from_utf8_lossy(&answer.body).contains("nothing was saved"));
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused} refused");
    assert_eq!(server.verdicts("anna", DOTTED)[0].1, last.unwrap());
}

#[test]
fn slides_that_are_gone_or_changed_are_reported_and_the_rest_works() {
    let made = made();
    let elsewhere = made.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(made.slide("drawn.tiff"), elsewhere.join("drawn.tiff")).unwrap();
    let lines = |server: &made::Server| server.get("api/index").json()["slides"].clone();
    let server = serve(&[&made.run]);
    let all = lines(&server);
    assert_eq!(all[DRAWN]["width"], 0);
    assert!(all[DRAWN]["note"].as_str().unwrap().contains("its file is not at"), "{all}");
    assert_eq!(server.get(&format!("tile/{DRAWN}/0/0_0.jpg")).status, 404);
    assert_eq!(server.get(&format!("tile/{DOTTED}/0/0_0.jpg")).status, 200);
    let found = serve(&[&made.run, "--slides".as_ref(), &elsewhere]);
    assert_eq!(lines(&found)[DRAWN]["width"], 3000);
    // Another picture of the same name and size is not the one that was searched.
    image::RgbImage::from_pixel(2600, 2100, image::Rgb([9; 3]))
        .save(made.slide("dots.png"))
        .unwrap();
    let changed = serve(&[&made.run]);
    let line = &lines(&changed)[DOTTED];
    assert!(
        line["width"] == 0 && line["note"].as_str().unwrap().contains("not the one of the run")
    );
    // Without a run it is a slide like any other, and has no place for words unless one is given.
    let bare = serve(&[&made.slide("dots.png")]);
    assert_eq!(lines(&bare)[0]["width"], 2600);
    let detail = bare.get("api/slide/0").json();
    assert!(detail["searched"] == false && detail["mpp"] == Value::Null);
    assert_eq!(bare.review("anna", 0, DOTS[0], "\"figure\"", true).status, 400);
    let words = made.folder.path().join("words");
    let bare = serve(&[&made.slide("dots.png"), "--reviews".as_ref(), &words]);
    assert_eq!(bare.review("anna", 0, DOTS[0], "\"figure\"", true).status, 200);
    assert!(words.join("anna.jsonl").is_file());
}

fn recount(made: &made::Made, reviews: &str) -> Result<Value, String> {
    recount_with(made, reviews, &[])
}

fn recount_with(made: &made::Made, reviews: &str, more: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(crate::program());
    command.arg("recount").arg(&made.run).args(["--reviews", reviews, "--json"]).args(more);
    let out = command.output().unwrap();
    match out.status.success() {
        true => Ok(serde_json::from_slice(&out.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_recount_is_what_a_hand_counts() {
    let made = made();
    assert!(recount(&made, "anna").unwrap_err().contains("anna.jsonl"));
    let rows = read_detections(&made.run.join("drawn/detections.csv")).unwrap();
    let place = |accepted: bool, k: usize| {
        let row = rows.iter().filter(|r| r.accepted == accepted).nth(k).unwrap();
        [row.x_px, row.y_px]
    };
    let server = serve(&[&made.run]);
    let review = |at, word: &str, added| {
        assert_eq!(server.review("anna", DRAWN, at, &format!("\"{word}\""), added).status, 200);
    };
    // 12 figures: three out (one by removal), one in, one added, one added and taken back, one unsure.
    review(place(true, 0), "mimicker", false);
    review(place(true, 1), "mimicker", false);
    review(place(true, 2), "removed", false);
    review(place(true, 3), "unsure", false);
    review(place(true, 4), "atypical", false);
    review(place(false, 0), "figure", false);
    review([1500.25, 1100.5], "figure", true);
    review([1600.0, 1100.0], "figure", true);
    server.post("api/undo", &format!(r#"{{"reviewer":"anna","slide":{DRAWN}}}"#)).json();
    // The server still holds the log; a recount only reads.
    let answer = recount(&made, "anna").unwrap();
    let s = &answer["slides"][DRAWN];
    for (field, n) in [("said", 7), ("taken_out", 3), ("taken_in", 1), ("added", 1), ("unsure", 1)]
    {
        assert_eq!(s[field], n, "{field}");
    }
    let near = |v: &Value, expected: f64| {
        let got = v.as_f64().unwrap();
        assert!((got - expected).abs() < 1e-5, "{got} is not {expected}");
    };
    assert_eq!((&s["model"]["figures"], &s["reviewed"]["figures"]), (&12.into(), &11.into()));
    // The whole slide is 750 um wide: one square holds all.
    assert_eq!(
        (&s["model"]["hotspot_count"], &s["reviewed"]["hotspot_count"]),
        (&12.into(), &11.into())
    );
    // 20 mm2 / 0.25 mm2 = 80. R: poisson.test(12)$conf.int, poisson.test(11)$conf.int.
    near(&s["model"]["density_per_20_mm2"], 960.0);
    near(&s["reviewed"]["density_per_20_mm2"], 880.0);
    near(&s["model"]["figures_95"][0], 6.200575);
    near(&s["model"]["figures_95"][1], 20.961585);
    near(&s["reviewed"]["figures_95"][0], 5.491160);
    near(&s["reviewed"]["figures_95"][1], 19.682039);
    assert!(s["notes"][0].as_str().unwrap().contains("less than the 2 mm2"), "{s}");
    let dots = &answer["slides"][DOTTED];
    assert_eq!(dots["model"], dots["reviewed"]);
    let notes = dots["notes"].as_array().unwrap();
    assert_eq!((&dots["said"], notes.len()), (&0.into(), 2), "{dots}");
    // 2600 x 2100 px of 0.25 um.
    assert!(notes[0].as_str().unwrap().starts_with("0.341 of the 2 mm2 of the hotspot"), "{dots}");
    assert!(notes[1].as_str().unwrap().contains("under pen"), "{dots}");

    let mut table = csv::Reader::from_path(made.run.join("recount.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let cell = |row: &csv::StringRecord, name: &str| {
        row[header.iter().position(|h| h == name).unwrap()].to_owned()
    };
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    let expected = [
        ("slide", "drawn"),
        ("reviewer", "anna"),
        ("figures", "12"),
        ("reviewed_figures", "11"),
        ("reviewed_hotspot_count", "11"),
        ("density_per_20_mm2", "960"),
        ("reviewed_density_per_20_mm2", "880"),
    ];
    for (name, value) in expected {
        assert_eq!(cell(&rows[DRAWN], name), value, "{name}");
    }
    // Fewer than ten windows of tissue; no grade was asked for.
    assert!(
        s["model"]["density_resampled_95"].is_null() && s["model"]["mitotic_score"].is_null(),
        "{s}"
    );
    // 11 and 12 on less tissue than ten fields of 0.55 mm (2.376 mm2) are as many at least: 9 to 16 score 2.
    let field = ["--grade", "nottingham", "--field-diameter", "0.55"];
    let graded = recount_with(&made, "anna", &field).unwrap();
    let s = &graded["slides"][DRAWN];
    assert_eq!(
        (&s["model"]["mitotic_score"], &s["reviewed"]["mitotic_score"]),
        (&"at least 2".into(), &"at least 2".into())
    );
    near(&graded["grading"]["area_mm2"], 2.375829);
    let unknown = recount_with(&made, "anna", &["--grade", "elston"]).unwrap_err();
    assert!(unknown.contains("nottingham, fnclcc"), "{unknown}");
    // Words about another file of that name are left out, with a note.
    let log = made.run.join("reviews/anna.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    // A line that was changed afterwards is noticed by the next one.
    let changed = made.folder.path().join("changed.jsonl");
    std::fs::write(&changed, text.replacen("mimicker", "figure", 1)).unwrap();
    let answer = recount(&made, changed.to_str().unwrap()).unwrap_err();
    assert!(answer.contains("line 2") && answer.contains("the log was changed"), "{answer}");
    // Logs of earlier versions name no line before.
    let text: String =
        text.lines().map(|l| l.split(",\"previous\"").next().unwrap().to_owned() + "}\n").collect();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let other = made.folder.path().join("other.jsonl");
    let digest = line["slide_digest"].as_str().unwrap();
    std::fs::write(&other, text.replace(digest, &"0".repeat(64))).unwrap();
    let answer = recount(&made, other.to_str().unwrap()).unwrap();
    let s = &answer["slides"][DRAWN];
    assert_eq!(s["reviewed"]["figures"], 12);
    assert!(s["notes"][0].as_str().unwrap().contains("about another file"), "{s}");
    std::fs::write(&other, text.replace("mithras.review/1", "mithras.review/9")).unwrap();
    assert!(recount(&made, other.to_str().unwrap()).unwrap_err().contains("mithras.review/9"));
}

#[test]
fn what_is_not_there_is_not_shown() {
    let out = Command::new(crate::program()).args(["view", "no-such-run"]).output();
    let out = out.unwrap();
    let printed = String::from_utf8_lossy(&out.stderr);
    assert!(
        !out.status.success() && printed.contains("no-such-run: no such file or folder"),
        "{printed}"
    );
}
