//! `mithras audit`: the paper's own counts, the review page in a browser, scoring.

use crops::Encoding;
use crops::{CorpusWriter, CropMeta, Header, Label, Layout};
use mitosis::{Mpp, RgbTile, Score};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::tempdir;

fn mithras(args: &[&str]) -> (bool, String, String) {
    let out = Command::new(crate::program()).args(args).output().unwrap();
    (
        out.status.success(),
        String::from_utf8_lossy(&out.stdout).into_owned(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

fn json(args: &[&str]) -> Value {
    let (ok, out, err) = mithras(args);
    assert!(ok, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn near(v: &Value, expected: f64, digits: i32) {
    let got = v.as_f64().unwrap();
    assert!((got - expected).abs() < 0.5001 * 10f64.powi(-digits), "{got} is not {expected}");
}

/// Presets and TCGA call colon COAD, the paper's tables COLON_DX.
#[test]
fn a_cohort_is_the_same_by_each_of_its_names() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/audit_paper.csv");
    let text = std::fs::read_to_string(&golden).unwrap();
    let dir = tempdir().unwrap();
    let counts = dir.path().join("counts.csv");
    let score =
        |file: &Path| json(&["audit", "score", "--counts", file.to_str().unwrap(), "--json"]);
    for (name, other) in
        [("COLON_DX", "COAD"), ("COLON_DX", "TCGA-COAD"), ("BRCA", "TCGA-BRCA"), ("KIRP", "KIRP")]
    {
        std::fs::write(&counts, text.replace(name, other)).unwrap();
        assert_eq!(score(&counts), score(&golden), "{other}");
    }
    // Two rows of one stratum are refused by either name.
    std::fs::write(&counts, format!("{text}COAD,both,,24,1,0,,,,,,\n")).unwrap();
    let (ok, _, err) = mithras(&["audit", "score", "--counts", counts.to_str().unwrap()]);
    assert!(!ok && err.contains("has a row above"), "{err}");
}

/// Every figure of the paper's two review tables and of its text, from counts.
#[test]
fn the_papers_tables_come_out_of_their_counts() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/audit_paper.csv");
    let scored = json(&["audit", "score", "--counts", golden.to_str().unwrap(), "--json"]);
    let part = |name: &str| {
        scored["strata"].as_array().unwrap().iter().find(|p| p["stratum"] == name).unwrap()
    };
    let figures = part("mitotic_figure");
    // cohort, low, high, worst-case interval: Table tab:mf-review.
    for (cohort, lo, hi, ci) in [
        ("BRCA", 1.00, 1.00, [0.89, 1.00]),
        ("KIRP", 1.00, 1.00, [0.89, 1.00]),
        ("OV", 1.00, 1.00, [0.89, 1.00]),
        ("UCEC", 1.00, 1.00, [0.89, 1.00]),
        ("ESCA", 0.97, 0.97, [0.83, 0.99]),
        ("COLON_DX", 0.93, 0.97, [0.79, 0.98]),
        ("LUSC", 0.93, 0.97, [0.79, 0.98]),
        ("PAAD", 0.93, 0.97, [0.79, 0.98]),
        ("LIHC", 0.90, 1.00, [0.74, 0.97]),
        ("BLCA", 0.90, 0.97, [0.74, 0.97]),
        ("LUAD", 0.90, 0.97, [0.74, 0.97]),
        ("PRAD", 0.90, 0.97, [0.74, 0.97]),
        ("KIRC", 0.83, 0.97, [0.66, 0.93]),
        ("KICH", 0.80, 0.87, [0.63, 0.90]),
    ] {
        let rows = figures["cohorts"].as_array().unwrap();
        let row = rows.iter().find(|r| r["cohort"] == cohort).unwrap();
        near(&row["range"][0], lo, 2);
        near(&row["range"][1], hi, 2);
        near(&row["wilson_unsure_wrong"][0], ci[0], 2);
        near(&row["wilson_unsure_wrong"][1], ci[1], 2);
    }
    assert_eq!(figures["pool_weighted"]["pool"], 660_831);
    near(&figures["pool_weighted"]["range"][0], 0.949, 3);
    near(&figures["pool_weighted"]["range"][1], 0.981, 3);
    near(&figures["pooled"]["range"][0], 0.929, 3);
    near(&figures["pooled"]["range"][1], 0.971, 3);
    // Table tab:tumor-review, pooled over 350 patches.
    for (stratum, lo, hi) in
        [("both", 0.983, 0.989), ("conch-only", 0.877, 0.929), ("impash-only", 0.877, 0.954)]
    {
        assert_eq!(part(stratum)["pooled"]["reviewed"], 350);
        near(&part(stratum)["pooled"]["range"][0], lo, 3);
        near(&part(stratum)["pooled"]["range"][1], hi, 3);
    }
    // 8 of 199 crops hold another figure; 55 of 280 pseudo-mimickers are figures.
    let mimickers = part("mimicker");
    near(&mimickers["elsewhere"]["share"], 0.0402, 4);
    near(&mimickers["elsewhere"]["wilson"][0], 0.0205, 4);
    near(&mimickers["elsewhere"]["wilson"][1], 0.0773, 4);
    near(&mimickers["pooled"]["range"][0], 0.196, 3);
    near(&mimickers["pooled"]["wilson_unsure_wrong"][0], 0.154, 3);
    near(&mimickers["pooled"]["wilson_unsure_wrong"][1], 0.247, 3);
    let boxes = &scored["boxes"];
    assert_eq!(boxes["confirmed"], 445);
    for (k, share) in [0.031, 0.784, 0.142, 0.043].into_iter().enumerate() {
        near(&boxes["shares"][k], share, 3);
    }
    assert_eq!(boxes["within_50"]["count"], 363);
    near(&boxes["within_50"]["share"], 0.816, 3);
}

#[test]
fn bad_count_tables_are_refused() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("c.csv");
    for (text, part) in [
        ("cohort,stratum,confirmed,unsure\na,b,1,0\n", "not_confirmed"),
        ("cohort,stratum,confirmed,not_confirmed,unsure\na,b,1,x,0\n", "line 2"),
        ("cohort,stratum,confirmed,not_confirmed,unsure\na,b,-1,0,0\n", "not a count"),
        ("cohort,stratum,confirmed,not_confirmed,unsure\n", "no rows"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (ok, _, err) = mithras(&["audit", "score", "--counts", file.to_str().unwrap()]);
        assert!(!ok && err.contains(part), "{err}");
    }
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("c.csv");
    for (further, rows, parts) in [
        ("", "A,mf,,9,1\n", &["'confirmed', row 1 (line 2)", "is empty"][..]),
        ("", "A,mf,3,9,\n", &["'unsure'", "is empty"]),
        ("", ",mf,3,9,0\n", &["names no cohort"]),
        ("", "A,mf,3,9,0\nB,mf,3,9,0\nA, mf,1,1,0\n", &["row 3 (line 4)", "row 1 (line 2)"]),
        (",pool", "A,mf,20,5,5,10\n", &["'pool'", "a pool of 10 crops, but 30"]),
        (",reviewed", "A,mf,40,0,0,30\n", &["30 crops reviewed", "are 40"]),
        (",elsewhere,elsewhere_asked", "A,mf,3,9,1,3,2\n", &["'elsewhere'", "3 crops, but 2"]),
        (",elsewhere,elsewhere_asked", "A,mf,3,1,1,3,9\n", &["9 crops asked about, but 2"]),
        (",elsewhere", "A,mf,3,9,1,3\n", &["'elsewhere_asked'"]),
        (
            ",box25,box50,box75,box_larger",
            "A,mf,20,5,5,10,10,10,10\nB,mf,30,0,0,0,0,0,0\n",
            &["'box25', row 1", "boxes of 40 figures, but 20 confirmed"],
        ),
        (
            ",box25,box50,box75,box_larger",
            "A,mf,20,5,5,10,10,10,10\nB,mf,19,0,0,,,,\n",
            &["boxes of 40 figures, but 39 confirmed"],
        ),
        (",box25,box50,box75,box_larger", "A,mf,20,5,5,1,,1,1\n", &["'box50'", "is empty"]),
        ("", "A,mf,18446744073709551615,1,1\n", &["is more than"]),
    ] {
        let text = format!("cohort,stratum,confirmed,not_confirmed,unsure{further}\n{rows}");
        std::fs::write(&file, &text).unwrap();
        let (ok, _, err) = mithras(&["audit", "score", "--counts", file.to_str().unwrap()]);
        assert!(!ok && parts.iter().all(|part| err.contains(part)), "{text}{err}");
    }
}

#[test]
fn cohorts_without_verdicts_are_listed_and_leave_no_weighted_mean() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("c.csv");
    let args = ["audit", "score", "--counts", file.to_str().unwrap()];
    let score = |rows: &str| {
        let head = "cohort,stratum,confirmed,not_confirmed,unsure,pool\n";
        std::fs::write(&file, format!("{head}{rows}")).unwrap();
        let part = json(&[&args[..], &["--json"]].concat())["strata"][0].clone();
        let (ok, text, err) = mithras(&args);
        assert!(ok, "{err}");
        (part, text)
    };
    let (part, text) = score("A,mf,20,5,5,1000\nB,mf,10,15,5,3000\nC,mf,0,0,0,96000\n");
    assert_eq!(
        part["cohorts"][2],
        serde_json::json!({"cohort": "C", "pool": 96000, "reviewed": 0})
    );
    assert_eq!(part.get("pool_weighted"), None);
    let reason = serde_json::json!({"without_verdict": ["C"], "without_pool": [], "covered": 0.04});
    assert_eq!(part["not_weighted"], reason);
    assert!(text.contains("no verdict on C; the others are 4.0 % of the pools"), "{text}");
    // A pool that is not known; and an empty one, which has no weight.
    let (part, text) = score("A,mf,20,5,5,1000\nB,mf,10,15,5,\n");
    assert_eq!(
        (part.get("pool_weighted"), &part["not_weighted"]["without_pool"][0]),
        (None, &"B".into())
    );
    assert!(text.contains("unknown pool of B"), "{text}");
    let (part, _) = score("A,mf,20,5,5,1000\nB,mf,0,0,0,0\n");
    assert_eq!((&part["pool_weighted"]["pool"], part.get("not_weighted")), (&1000.into(), None));
    // Nothing was reviewed yet.
    let (part, _) = score("A,mf,0,0,0,1000\n");
    assert_eq!(
        (&part["pooled"], part.get("pool_weighted")),
        (&serde_json::json!({"reviewed": 0}), None)
    );
}

/// Sixty drawn crops in two cohorts; names carry a word that must never reach the browser.
pub(crate) fn corpus(dir: &Path) {
    let header = Header { name: "drawn".into(), builder: "test".into(), ..Header::default() };
    let mut w = CorpusWriter::create(dir, header, Layout::default()).unwrap();
    for i in 0..60u8 {
        let mut tile = RgbTile::filled(128, 128, [236, 214, 228]);
        for y in 0..128usize {
            for x in 0..128usize {
                let d =
                    (x as f64 - 64.0).hypot((y as f64 - 64.0) * if i % 3 == 0 { 2.0 } else { 1.0 });
                if d < 14.0 {
                    let k = 3 * (128 * y + x);
                    tile.data[k..k + 3].copy_from_slice(&[60 + i, 40, 110]);
                }
            }
        }
        let meta = CropMeta {
            s_seg: Some(Score::new(0.6).unwrap()),
            s_cls: Some(Score::new(0.7).unwrap()),
            cohort: ["SECRET-A", "SECRET-B"][usize::from(i / 30)].into(),
            source: "test".into(),
            ..CropMeta::new(
                format!("SECRET/{i}.png"),
                if i % 2 == 0 { Label::MitoticFigure } else { Label::Mimicker },
                "SECRET-slide",
                Mpp::PAPER,
                (128, 128),
            )
        };
        w.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
    }
    w.finish().unwrap();
}

struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(package: &Path) -> Server {
    let mut verb = Command::new(crate::program());
    served(verb.args(["audit", "serve", package.to_str().unwrap(), "--port", "0"]))
}

fn served(verb: &mut Command) -> Server {
    let mut child = verb.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Server { child, url: line.trim().to_owned() }
}

/// Host and port of an address.
fn address(url: &str) -> &str {
    url.trim_start_matches("http://").split('/').next().unwrap()
}

/// The token of an address, between slashes.
fn base(url: &str) -> String {
    format!("/{}", url.trim_start_matches("http://").split_once('/').unwrap().1)
}

fn raw(url: &str, request: &str) -> String {
    let address = address(url);
    let mut s = TcpStream::connect(address).unwrap();
    s.write_all(request.replace("HOST", address).as_bytes()).unwrap();
    let mut out = Vec::new();
    s.read_to_end(&mut out).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

fn post(url: &str, path: &str, body: &str) -> String {
    raw(
        url,
        &format!(
            "POST {}{} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            base(url),
            path.trim_start_matches('/'),
            body.len()
        ),
    )
}

fn draw(dir: &Path) -> PathBuf {
    corpus(&dir.join("corpus"));
    let out = dir.join("audit");
    let (ok, text, err) = mithras(&[
        "audit",
        "sample",
        dir.join("corpus").to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--per",
        "mitotic_figure=3",
        "--per",
        "mimicker=2",
        "--seed",
        "5",
    ]);
    assert!(ok && text.contains("10 pictures"), "{text}{err}");
    out
}

#[test]
#[cfg(unix)]
fn a_sample_keeps_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    corpus(&dir.path().join("corpus"));
    let words = "audit sample corpus --out audit --per mitotic_figure=3 --per mimicker=2 --seed 5";
    let line = format!("umask 077; exec {} {words}", crate::program());
    let out = Command::new("sh").current_dir(dir.path()).args(["-c", &line]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut open = vec![dir.path().join("audit")];
    let mut files = 0;
    while let Some(path) = open.pop() {
        let about = std::fs::metadata(&path).unwrap();
        let mode = about.permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        if about.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else {
            files += 1;
        }
    }
    assert!(files > 10, "{files} files");
}

#[test]
fn the_server_is_for_this_machine_and_reveals_nothing() {
    let dir = tempdir().unwrap();
    let out = draw(dir.path());
    let score = ["audit", "score", out.to_str().unwrap()];
    let (ok, _, err) = mithras(&score);
    assert!(!ok && err.contains("see mithras audit serve"), "{err}");
    let server = serve(&out.join("package"));
    let get = |path: &str, host: &str| {
        raw(
            &server.url,
            &format!(
                "GET {}{} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
                base(&server.url),
                path.trim_start_matches('/')
            ),
        )
    };
    assert!(get("/", "HOST").starts_with("HTTP/1.1 200"));
    assert!(get("/", "evil.example").starts_with("HTTP/1.1 403"));
    for path in
        ["/key.json", "/../key.json", "/image/../../../key.png", "/audit.json", "/image/0.png"]
    {
        assert!(get(path, "HOST").starts_with("HTTP/1.1 404"), "{path}");
    }
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    assert!(state.starts_with("HTTP/1.1 200"), "{state}");
    for secret in ["SECRET", "mimicker", "s_cls", "cohort"] {
        assert!(!state.contains(secret), "{secret} in {state}");
    }
    let body: Value = serde_json::from_str(state.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["items"][0]["mpp"], 0.25);
    let item = body["items"][0]["id"].as_str().unwrap();
    for (path, body, status) in [
        ("/open", r#"{"reviewer":"../x"}"#.to_owned(), "400"),
        ("/open", "{".to_owned(), "400"),
        ("/set", r#"{"reviewer":"anna","item":"nope","entry":null}"#.to_owned(), "404"),
        (
            "/set",
            format!(r#"{{"reviewer":"anna","item":"{item}","entry":{{"verdict":"maybe"}}}}"#),
            "400",
        ),
        (
            "/set",
            format!(r#"{{"reviewer":"anna","item":"{item}","entry":{{"verdict":"unsure"}}}}"#),
            "200",
        ),
    ] {
        let answer = post(&server.url, path, &body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{body}: {answer}");
    }
    let saved = std::fs::read_to_string(out.join("package/reviews/anna.jsonl")).unwrap();
    assert_eq!(saved.lines().count(), 1);
    // One of ten pictures: the other strata are listed, and the pools give no mean.
    let (ok, text, err) = mithras(&score);
    assert!(ok && text.contains("- (no verdict on "), "{text}{err}");
    let scored = json(&[&score[..], &["--json"]].concat());
    let strata = scored["reviewers"][0]["strata"].as_array().unwrap();
    let cohorts: Vec<&Value> =
        strata.iter().flat_map(|s| s["cohorts"].as_array().unwrap()).collect();
    let open = cohorts.iter().filter(|c| c["reviewed"] == 0 && c.get("range").is_none());
    assert_eq!((cohorts.len(), open.count()), (4, 3));
    assert!(strata.iter().all(|s| s.get("pool_weighted").is_none()), "{scored}");
    assert!(get("/log/anna.jsonl", "HOST").ends_with(&saved));
    for path in ["/log/bert.jsonl", "/log/../audit.jsonl", "/log/..%2f..%2fkey.jsonl"] {
        assert!(get(path, "HOST").starts_with("HTTP/1.1 404"), "{path}");
    }
    // The error names the reason why initials are refused.
    for (name, part) in [("", "nothing was entered"), ("a b", "a space cannot be used")] {
        let answer = post(&server.url, "/open", &format!(r#"{{"reviewer":"{name}"}}"#));
        assert!(answer.contains(part), "{answer}");
    }
}

/// More reviewers than there are file handles.
#[cfg(unix)]
#[test]
fn many_reviewers_need_few_file_handles() {
    let dir = tempdir().unwrap();
    let package = draw(dir.path()).join("package");
    let few = "ulimit -n 48; exec \"$0\" \"$@\"";
    let mut serve = Command::new("bash");
    serve.args(["-c", few, crate::program(), "audit", "serve"]).arg(&package);
    let server = served(serve.args(["--port", "0"]));
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    let body: Value = serde_json::from_str(state.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let item = body["items"][0]["id"].as_str().unwrap();
    for k in 0..60 {
        let word =
            format!(r#"{{"reviewer":"r{k}","item":"{item}","entry":{{"verdict":"unsure"}}}}"#);
        let answer = post(&server.url, "/set", &word);
        assert!(answer.starts_with("HTTP/1.1 200"), "{k}: {answer}");
    }
    let kept = |k: usize| package.join(format!("reviews/r{k}.jsonl")).is_file();
    assert!((0..60).all(kept));

    // The viewer, with a word on the run of the former release, and then its tiles.
    let run = crate::upgrading::former();
    let mut view = Command::new("bash");
    view.args(["-c", few, crate::program(), "view", "run", "--no-browser"]);
    let server = served(view.current_dir(run.path()).args(["--port", "0"]));
    for k in 0..60 {
        let word = format!(
            r#"{{"reviewer":"r{k}","slide":0,"key":"+5.00,5.00","x":5,"y":5,"verdict":"figure","added":true}}"#
        );
        let answer = post(&server.url, "/api/review", &word);
        assert!(answer.starts_with("HTTP/1.1 200"), "{k}: {answer}");
    }
    let get = |path: &str| {
        let asked = format!("GET {}{path} HTTP/1.1", base(&server.url));
        raw(&server.url, &format!("{asked}\r\nHost: HOST\r\nConnection: close\r\n\r\n"))
    };
    let voices = get("api/voices/0");
    assert!(voices.starts_with("HTTP/1.1 200") && voices.contains("r59"), "{voices}");
    for place in ["0/0_0", "1/0_0", "1/1_0", "1/1_1"] {
        let tile = get(&format!("tile/0/{place}.jpg"));
        let is_picture = tile.contains("image/jpeg") && tile.len() > 1000;
        assert!(tile.starts_with("HTTP/1.1 200") && is_picture, "{place}: {tile}");
    }
}

/// Another user of the machine reaches the port, but does not know the address.
#[test]
fn without_the_address_nothing_is_seen_or_saved() {
    let dir = tempdir().unwrap();
    let package = draw(dir.path()).join("package");
    let server = serve(&package);
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    let state: Value = serde_json::from_str(state.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let item = state["items"][0]["id"].as_str().unwrap();
    let verdict =
        format!(r#"{{"reviewer":"anna","item":"{item}","entry":{{"verdict":"confirmed"}}}}"#);
    assert!(post(&server.url, "/set", &verdict).starts_with("HTTP/1.1 200"));
    let log = package.join("reviews/anna.jsonl");
    let saved = std::fs::read(&log).unwrap();
    let stranger = format!("http://{}/{}/", address(&server.url), "0".repeat(32));
    let bare = format!("http://{}/", address(&server.url));
    for url in [stranger, bare] {
        let base = base(&url);
        for path in ["", "log/anna.jsonl", "page.js", &format!("image/{item}.png")] {
            let asked = format!("GET {base}{path} HTTP/1.1\r\nHost: HOST\r\n\r\n");
            let answer = raw(&url, &asked);
            assert!(answer.starts_with("HTTP/1.1 403"), "{base}{path}: {answer}");
            assert!(!answer.contains("verdict"), "{answer}");
        }
        for path in ["/open", "/set", "/undo"] {
            let answer = post(&url, path, &verdict.replace("confirmed", "unsure"));
            assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        }
    }
    assert_eq!(std::fs::read(&log).unwrap(), saved);
    assert_eq!(std::fs::read_dir(package.join("reviews")).unwrap().count(), 1);
}

/// Two hundred clients that never finish a request, and come back as soon as they are turned away.
#[test]
fn clients_that_never_finish_do_not_lock_out_who_has_the_address() {
    let dir = tempdir().unwrap();
    let package = draw(dir.path()).join("package");
    let server = serve(&package);
    let ended = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..200)
        .map(|_| {
            let (address, ended) = (address(&server.url).to_owned(), Arc::clone(&ended));
            std::thread::spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    let Ok(mut s) = TcpStream::connect(&address) else { continue };
                    let _ = s.set_read_timeout(Some(Duration::from_millis(500)));
                    let _ = s.write_all(b"GET /");
                    while !ended.load(Ordering::SeqCst) {
                        match s.read(&mut [0; 9]) {
                            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                            _ => break,
                        }
                    }
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let asked = format!("GET {} HTTP/1.1\r\nHost: HOST\r\n\r\n", base(&server.url));
    for _ in 0..8 {
        let start = Instant::now();
        let answer = raw(&server.url, &asked);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    ended.store(true, Ordering::SeqCst);
    hogs.into_iter().for_each(|h| h.join().unwrap());
}

#[test]
fn crops_on_which_a_square_does_not_fit_are_refused() {
    let dir = tempdir().unwrap();
    let header = Header { name: "small".into(), builder: "test".into(), ..Header::default() };
    let mut w = CorpusWriter::create(&dir.path().join("c"), header, Layout::default()).unwrap();
    let meta = CropMeta::new("a.png", Label::MitoticFigure, "s", Mpp::PAPER, (64, 64));
    w.push(meta, Encoding::Png.encode(&RgbTile::filled(64, 64, [200; 3])).unwrap()).unwrap();
    w.finish().unwrap();
    let (crops, out) = (dir.path().join("c"), dir.path().join("a"));
    let args = ["audit", "sample", crops.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let per = ["--per", "mitotic_figure=1"];
    let (ok, _, err) = mithras(&[&args[..], &per].concat());
    assert!(!ok && err.contains("64 px is too small") && err.contains("--slides"), "{err}");
    assert!(!out.join("package").exists() && !out.join("key.json").exists());
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "nothing is left");
    // A question without squares takes any size.
    let (ok, _, err) = mithras(&[&args[..], &per, &["--question", "tumour"]].concat());
    assert!(ok, "{err}");
}

#[test]
fn stalled_requests_hold_up_no_other() {
    let dir = tempdir().unwrap();
    let out = draw(dir.path());
    let server = serve(&out.join("package"));
    let address = address(&server.url).to_owned();
    let base = base(&server.url);
    // Half a head, half a body, nothing at all: all stay open.
    let half_head = "GET / HTTP/1.1\r\nHost: ";
    let half_body = format!(
        "POST {base}set HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: 500\r\n\r\n{{"
    );
    let stalled: Vec<TcpStream> = (0..30)
        .map(|i| {
            let mut s = TcpStream::connect(&address).unwrap();
            s.write_all([half_head, &half_body, ""][i % 3].as_bytes()).unwrap();
            s
        })
        .collect();
    let started = Instant::now();
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    assert!(state.starts_with("HTTP/1.1 200"), "{state}");
    assert!(started.elapsed().as_secs() < 8, "{:?}", started.elapsed());
    // They are given up in time, and too much is refused at once.
    let mut text = String::new();
    (&stalled[1]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    let long =
        raw(&server.url, "POST /set HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9999999\r\n\r\n");
    assert!(long.starts_with("HTTP/1.1 413"), "{long}");
    let tunnel = raw(&server.url, &format!("GET {base} HTTP/1.1\r\nHost: localhost:9000\r\n\r\n"));
    assert!(tunnel.starts_with("HTTP/1.1 200"), "{tunnel}");
}

#[test]
fn a_full_disk_saves_no_verdict() {
    let dir = tempdir().unwrap();
    let package = draw(dir.path()).join("package");
    let reviews = package.join("reviews");
    std::fs::create_dir_all(&reviews).unwrap();
    // A disk of a few pages in a name space of its own.
    let script = r#"mount -t tmpfs -o size=8k none "$1" || exit 77
        exec "$2" audit serve "$3" --port 0"#;
    let mut child = match Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(&reviews)
        .arg(crate::program())
        .arg(&package)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    {
        Ok(child) => child,
        Err(_) => return eprintln!("SKIPPED: no unshare here"),
    };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let server = Server { child, url: line.trim().to_owned() };
    if !server.url.starts_with("http") {
        return eprintln!("SKIPPED: no small disk can be made here");
    }
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    let state: Value = serde_json::from_str(state.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let items: Vec<&str> =
        state["items"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    let words = ["confirmed", "not_confirmed", "unsure"];
    let mut saved = std::collections::BTreeMap::new();
    let mut refused = 0;
    for k in 0..120 {
        let (item, word) = (items[k % items.len()], words[k % words.len()]);
        let body =
            format!(r#"{{"reviewer":"anna","item":"{item}","entry":{{"verdict":"{word}"}}}}"#);
        match post(&server.url, "/set", &body) {
            a if a.starts_with("HTTP/1.1 200") => drop(saved.insert(item.to_owned(), word)),
            a => {
                assert!(a.starts_with("HTTP/1.1 500") && a.contains("nothing was saved"), "{a}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10 && !saved.is_empty(), "{refused} refused");
    // The log holds what was acknowledged, and nothing else.
    let state = post(&server.url, "/open", r#"{"reviewer":"anna"}"#);
    let state: Value = serde_json::from_str(state.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let entries = state["entries"].as_object().unwrap();
    assert_eq!(entries.len(), saved.len());
    for (item, word) in saved {
        assert_eq!(entries[&item]["verdict"], word);
    }
}
