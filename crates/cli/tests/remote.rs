//! Slides on servers on the command line: the tables are those of the files, and no secret is printed.

#![cfg(feature = "remote")]

use crate::common;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use testkit::server::{Faults, Server};

/// What must not be printed: the key's secret, its token, the query of a signed address.
const SECRETS: [&str; 3] = ["husher-schluessel", "hushes-zeichen", "hushe-frage"];

/// Exit code and output of a process with these credentials and no others.
fn mithras(server: &Server, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(crate::program());
    let foreign = std::env::vars().filter(|(n, _)| n.starts_with("AWS_")).map(|(n, _)| n);
    for name in foreign {
        command.env_remove(name);
    }
    let output = command
        .args(args)
        .envs([("HOME", "/dev/null"), ("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")])
        .envs([("AWS_ENDPOINT_URL", server.address()), ("AWS_ACCESS_KEY_ID", "AKID")])
        .envs([("AWS_SECRET_ACCESS_KEY", SECRETS[0]), ("AWS_SESSION_TOKEN", SECRETS[1])])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(SECRETS.iter().all(|s| !text.contains(s)), "{text}");
    (output.status.code().unwrap_or(-1), text)
}

/// `detect` with seeded weights of no meaning.
fn detect(server: &Server, out: &Path, more: &[&str]) -> (i32, String) {
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let (out, model) = (out.to_str().unwrap(), model.to_str().unwrap());
    let args = ["detect", "--out", out, "--model", model, "--engine", "rten", "--threads", "1"];
    mithras(server, &[&args[..], more].concat())
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn tables_are_those_of_the_files_and_no_secret_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let mut bytes = Vec::new();
    for k in 0..3 {
        let path = dir.path().join(format!("case-{k}.tiff"));
        common::draw(&path, 512, 512, k + 1, 1);
        bytes.push(fs::read(path).unwrap());
    }
    let url = server.put("/study/case-0.tiff", bytes[0].clone());
    let _ = server.put("/bucket/study/case-1.tiff", bytes[1].clone());
    let list = |name: &str, rows: [&str; 3]| {
        let path = dir.path().join(name);
        fs::write(&path, format!("slide,patient\n{},A\n{},B\n{},C\n", rows[0], rows[1], rows[2]))
            .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let here = list("here.csv", ["case-0.tiff", "case-1.tiff", "case-2.tiff"]);
    let signed = format!("{url}?X-Amz-Signature={}", SECRETS[2]);
    let there = list("there.csv", [&signed, "s3://bucket/study/case-1.tiff", "case-2.tiff"]);
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let (code, words) = detect(&server, &a, &["--list", &here]);
    assert_eq!((code, server.requests().len()), (0, 0), "{words}");
    server.faults(Faults { busy: 3, cut: 2, ..Faults::default() });
    let (code, words) = detect(&server, &b, &["--list", &there, "--workers", "2"]);
    assert_eq!(code, 0, "{words}");

    let text = |out: &Path, name: &str| fs::read_to_string(out.join(name)).unwrap();
    for file in ["case-0/detections.csv", "case-1/detections.csv", "case-1/counts.json"] {
        assert_eq!(text(&a, file), text(&b, file), "{file}");
    }
    let table = |out: &Path| text(out, "counts.csv");
    assert_eq!(table(&a).lines().count(), 4);
    let timeless = |out: &Path| {
        let (head, rows) =
            table(out).split_once('\n').map(|(h, r)| (h.to_owned(), r.to_owned())).unwrap();
        let at = head.split(',').position(|c| c == "seconds");
        let row = |r: &str| -> Vec<String> {
            r.split(',')
                .enumerate()
                .filter(|(i, _)| Some(*i) != at)
                .map(|(_, c)| c.into())
                .collect()
        };
        rows.lines().map(row).collect::<Vec<_>>()
    };
    assert_eq!(timeless(&a), timeless(&b));
    assert!(text(&b, "case-0/state.json").contains(&url));
    for file in files(&b) {
        let found = fs::read(&file).unwrap();
        for secret in SECRETS {
            let there = found.windows(secret.len()).any(|w| w == secret.as_bytes());
            assert!(!there, "{secret} in {}", file.display());
        }
    }
    let asked = server.requests();
    let of = |part: &str| asked.iter().filter(|r| r.path.contains(part)).collect::<Vec<_>>();
    assert!(
        of("case-1").iter().all(|r| r.headers["authorization"].starts_with("AWS4-HMAC-SHA256"))
    );
    assert!(of("case-0").iter().all(|r| r.path.contains(SECRETS[2])));
    assert!(of("case-0").iter().all(|r| !r.headers.contains_key("authorization")));
    assert!(asked.len() < 40, "{} requests", asked.len());

    // A later run finds the same objects; another object of that name is another slide.
    let (code, words) = detect(&server, &b, &["--list", &there, "--resume"]);
    assert_eq!(code, 0, "{words}");
    let _ = server.put("/bucket/study/case-1.tiff", bytes[2].clone());
    let (code, words) = detect(&server, &b, &["--list", &there, "--resume"]);
    assert!(code == 1 && words.contains("has changed since"), "{code} {words}");
}

#[test]
fn one_address_and_its_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    common::draw(&dir.path().join("x.tiff"), 512, 512, 7, 1);
    let url = server.put("/a/My%20case.tiff", fs::read(dir.path().join("x.tiff")).unwrap());
    let signed = format!("{url}?sig={}", SECRETS[2]);
    let out = dir.path().join("out");
    let (code, words) = detect(&server, &out, &[&signed, "--log", "json"]);
    assert_eq!(code, 0, "{words}");
    let run = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(run.contains(&url) && !run.contains(SECRETS[2]), "{run}");
    assert!(out.join("My case/detections.csv").is_file());

    let info = |verb: &[&str]| mithras(&server, &[&["slide"], verb].concat());
    let (code, words) = info(&["info", &signed]);
    assert!(code == 0 && words.contains(&url) && words.contains("512 x 512"), "{words}");
    let picture = dir.path().join("t.png");
    assert_eq!(info(&["thumbnail", &url, "--out", picture.to_str().unwrap()]).0, 0);
    assert!(picture.is_file());
    assert_eq!(info(&["tissue", &url, "--out", out.to_str().unwrap()]).0, 0);
}

/// An encoder of features, whose weights mean nothing.
fn encoder(server: &Server, out: String) -> String {
    let onnx = testkit::workspace().join("crates/features/tests/golden/tiny.onnx");
    let answer =
        ["--name", "tiny", "--image", "32", "--mean", "0.7,0.5,0.7", "--std", "0.2,0.2,0.2"];
    let more = ["--mpp", "0.5", "--pooling", "mean", "--license", "none", "--out", &out];
    let convert = ["encoders", "convert", "--onnx", onnx.to_str().unwrap()];
    let (code, words) = mithras(server, &[&convert[..], &answer, &more].concat());
    assert_eq!(code, 0, "{words}");
    out
}

/// Whichever of its reads is refused: the slide ends with that error in every verb that reads slides, nothing of it
/// counts, and the other slide is done as ever.
#[test]
fn a_read_that_fails_midway_ends_the_slide_in_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (large, here) = (at("large.tiff"), at("small.tiff"));
    common::draw(large.as_ref(), 1400, 1100, 101, 8);
    common::draw(here.as_ref(), 800, 700, 5, 2);
    let url = server.put("/study/large.tiff", fs::read(&large).unwrap());
    let encoder = encoder(&server, at("tiny"));
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let model = model.to_str().unwrap();
    let quiet = ["--engine", "rten", "--threads", "1", "-q"];
    let build = ["--preset", "tcga-mf-pseudo", "--cohort", "BRCA", "--no-tumour-filter"];
    let verbs: [(&str, Vec<&str>, &str); 4] = [
        ("detect", [&["--model", model, "--subtypes"][..], &quiet].concat(), "SLIDE"),
        ("quality", vec!["-q"], "quality.csv"),
        ("embed", [&["--encoder", &encoder][..], &quiet].concat(), "SLIDE.h5"),
        ("corpus build", [&["--model", model][..], &build, &quiet].concat(), ""),
    ];
    for (verb, more, result) in verbs {
        let run = |out: &str| {
            let words = [&[&*url, &here, "--out", out][..], &more].concat();
            mithras(&server, &[verb.split(' ').collect(), words].concat())
        };
        let _ = server.requests();
        server.faults(Faults::default());
        let whole = at(&format!("{}-whole", verb.replace(' ', "-")));
        let (code, words) = run(&whole);
        let asked = server.requests().len();
        assert!(code == 0 && asked > 1, "{verb}: {code}, {asked} requests: {words}");
        for after in std::collections::BTreeSet::from([asked / 2, asked - 1]) {
            server.faults(Faults { expires_after: Some(after), ..Faults::default() });
            let out = format!("{}-{after}", whole.trim_end_matches("-whole"));
            let (code, words) = run(&out);
            let named = code == 3 && words.contains("403");
            assert!(named, "{verb}, {after}: {code} {words}");
            let there = |slide: &str| {
                let file = Path::new(&out).join(result.replace("SLIDE", slide));
                match verb {
                    "detect" => mithras::report::results(&file).is_ok(),
                    "quality" => {
                        let table = fs::read_to_string(file).unwrap();
                        let row = table.lines().find(|l| l.contains(slide)).unwrap();
                        !row.contains("403")
                    }
                    "corpus build" => {
                        let corpus = crops::Corpus::open(&out).unwrap();
                        let mut crops = corpus.crops(crops::Columns::All).unwrap();
                        crops.any(|c| c.unwrap().meta.slide == slide)
                    }
                    _ => file.exists(),
                }
            };
            assert!(!there("large"), "{verb}, {after}: half a slide gives no result");
            assert!(there("small"), "{verb}, {after}: {words}");
        }
    }
}

#[test]
fn features_and_crops_of_an_address_are_those_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let file = dir.path().join("case.tiff");
    common::draw(&file, 1400, 1100, 101, 8);
    let url = server.put("/study/case.tiff", fs::read(&file).unwrap());
    let signed = format!("{url}?sig={}", SECRETS[2]);
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let encoder = encoder(&server, at("tiny"));
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    for (slide, name) in [(file.to_str().unwrap(), "here"), (&*signed, "there")] {
        if name == "there" {
            assert_eq!(server.requests().len(), 0, "a file asks no server");
            server.faults(Faults { busy: 2, cut: 1, ..Faults::default() });
        }
        let how = ["--engine", "rten", "--threads", "1", "--quiet"];
        let out = at(&format!("features-{name}"));
        let embed = ["embed", slide, "--encoder", &encoder, "--out", &out];
        let (code, words) = mithras(&server, &[&embed[..], &how].concat());
        assert_eq!(code, 0, "{words}");
        let out = at(&format!("corpus-{name}"));
        let build = ["corpus", "build", slide, "--out", &out, "--preset", "tcga-mf-pseudo"];
        let from = ["--cohort", "BRCA", "--no-tumour-filter", "--model", model.to_str().unwrap()];
        let (code, words) = mithras(&server, &[&build[..], &from, &how].concat());
        assert_eq!(code, 0, "{words}");
    }
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("features-there/case.h5") == bytes("features-here/case.h5"));
    let corpora = ["corpus-here", "corpus-there"].map(|c| {
        let corpus = crops::Corpus::open(dir.path().join(c)).unwrap();
        let crops = corpus.crops(crops::Columns::All).unwrap();
        crops.map(|c| c.unwrap().image).collect::<Vec<_>>()
    });
    assert!(!corpora[0].is_empty() && corpora[0] == corpora[1], "{} crops", corpora[0].len());
    let asked = server.requests();
    assert!(!asked.is_empty() && asked.iter().all(|r| r.path.contains(SECRETS[2])), "{asked:?}");
    for file in files(dir.path()).iter().filter(|f| !f.ends_with("case.tiff")) {
        let found = fs::read(file).unwrap();
        let secret = SECRETS[2].as_bytes();
        assert!(!found.windows(secret.len()).any(|w| w == secret), "{}", file.display());
    }
}

#[test]
fn an_address_that_expires_in_the_middle_fails_its_slide_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let drawn = |name: &str, side, seed| {
        let path = dir.path().join(name);
        common::draw(&path, side, side, seed, 1);
        (fs::read(&path).unwrap(), path.to_str().unwrap().to_owned())
    };
    let ((large, file), (_, here)) = (drawn("large.tiff", 2048, 5), drawn("small.tiff", 512, 6));
    assert!(large.len() > 3 << 18, "{} bytes are few blocks", large.len());
    let url = server.put("/study/large.tiff", large);
    let whole = dir.path().join("whole");
    assert_eq!(detect(&server, &whole, &[&file, &here]).0, 0);
    let out = dir.path().join("out");
    server.faults(Faults { expires_after: Some(2), ..Faults::default() });
    let signed = format!("{url}?sig={}", SECRETS[2]);
    let (code, words) = detect(&server, &out, &[&signed, &here]);
    assert!(code == 3 && words.contains(&url) && words.contains("403"), "{code} {words}");
    assert!(!out.join("large/detections.csv").exists(), "half a slide does not give a result");
    let table = fs::read_to_string(out.join("counts.csv")).unwrap();
    assert!(table.contains("403") && table.contains("small"), "{table}");

    server.faults(Faults::default());
    let again = format!("{url}?sig={}-again", SECRETS[2]);
    let (code, words) = detect(&server, &out, &[&again, &here, "--resume"]);
    assert_eq!(code, 0, "{words}");
    let text = |out: &Path| fs::read_to_string(out.join("large/detections.csv")).unwrap();
    assert_eq!(text(&out), text(&whole));
}

#[test]
fn what_cannot_be_had_fails_by_itself_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    common::draw(&dir.path().join("x.tiff"), 512, 512, 7, 1);
    let here = dir.path().join("x.tiff").to_str().unwrap().to_owned();
    let out = dir.path().join("out");
    let (code, words) = detect(&server, &out, &[&here, "s3://bucket/missing.svs"]);
    assert!(code == 3 && words.contains("no such object"), "{code} {words}");
    for (input, word) in [
        ("s3://bucket/cohort/", "--list"),
        ("ftp://h/a.svs", "https://"),
        ("https://me:hushe-frage@h/a.svs", "take it out"),
    ] {
        let (code, words) = detect(&server, &dir.path().join("none"), &[input]);
        assert!(code == 1 && words.contains(word), "{input}: {code} {words}");
    }
}

/// A proxy that answers for every machine elsewhere, and sends each reader to one address; its own address.
fn leading(to: &str) -> String {
    fn talk(stream: &TcpStream, to: &str) {
        let (mut lines, mut out) = (BufReader::new(stream).lines().map_while(Result::ok), stream);
        while let Some(first) = lines.next() {
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let answer = match first.starts_with("CONNECT ") {
                true => "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
                false => {
                    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
                }
            };
            if out.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let to = to.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let to = to.clone();
            std::thread::spawn(move || talk(&stream, &to));
        }
    });
    address
}

/// What listens on this machine or in its network trusts every program here: no server elsewhere has it asked.
#[test]
fn a_redirect_from_elsewhere_to_this_machine_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let here = Server::start();
    common::draw(&dir.path().join("x.tiff"), 512, 512, 7, 1);
    let own = here.put("/own.tiff", fs::read(dir.path().join("x.tiff")).unwrap());
    let info = |proxy: &str, url: &str| {
        let mut command = Command::new(crate::program());
        for name in ["ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"] {
            command.env(name, proxy);
        }
        command.envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")]);
        let output = command.args(["slide", "info", url]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let far = "http://slides.invalid/a.tiff";
    for inside in [&own, "http://169.254.169.254/latest/meta-data", "http://[::1]:9/a.tiff"] {
        let (code, text) = info(&leading(inside), far);
        assert!(code == Some(1) && text.contains("an address of this machine"), "{inside}: {text}");
    }
    assert!(here.requests().is_empty());
    // Its own servers may lead to each other, and the address itself can be given.
    let (code, text) = info("http://127.0.0.1:9", &format!("{}/a.tiff", leading(&own)));
    assert!(code == Some(0) && !here.requests().is_empty(), "{text}");
}
