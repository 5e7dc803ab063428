//! Objects of a server on this machine: what is read, how often it is asked, and which errors it gives.

#![cfg(feature = "client")]

use remote::{Address, Client, Keys, Object, Options, RemoteError, S3};
use std::sync::Arc;
use std::time::Duration;
use testkit::server::{Faults, Server};

fn options() -> Options {
    Options {
        attempts: 4,
        pause: Duration::from_millis(5),
        answer: Duration::from_millis(300),
        block: 1000,
        ahead: 8,
        memory: 200_000,
        ..Options::default()
    }
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn address(text: &str) -> Address {
    Address::parse(text).unwrap().unwrap()
}

fn open(client: &Arc<Client>, text: &str) -> Result<Object, RemoteError> {
    Object::open_with(client, &address(text))
}

fn read(object: &Object, at: u64, n: usize) -> Result<Vec<u8>, RemoteError> {
    let mut buf = vec![0; n];
    object.read_at(&mut buf, at).map(|()| buf)
}

#[test]
fn every_place_is_the_files_and_each_byte_is_asked_for_once() {
    let (server, client) = (Server::start(), Client::new(options()));
    let all = bytes(54_321);
    let object = open(&client, &server.put("/a.svs", all.clone())).unwrap();
    assert_eq!((object.size(), object.etag()), (54_321, Some("\"v1\"")));
    assert_eq!(object.modified(), Some(784_111_777));
    // From several threads, in steps that fit no block.
    std::thread::scope(|s| {
        for thread in 0..4 {
            let (object, all) = (&object, &all);
            s.spawn(move || {
                for at in (thread * 77..all.len() - 777).step_by(777) {
                    assert_eq!(read(object, at as u64, 777).unwrap(), all[at..at + 777]);
                }
            });
        }
    });
    assert_eq!(read(&object, 0, 54_321).unwrap(), all);
    assert!(read(&object, 54_321, 0).unwrap().is_empty());
    let beyond = read(&object, 54_000, 322).unwrap_err();
    assert!(matches!(beyond, RemoteError::Beyond { len: 54_321, .. }), "{beyond}");
    assert_eq!((object.failure(), client.traffic().bytes, server.sent()), (None, 54_321, 54_321));
    // 55 blocks; one after the other, each request asks for twice as much as the one before.
    let asked = server.requests().len();
    assert!(asked <= 30, "{asked} requests");

    let again = open(&client, &format!("{}/a.svs", server.address())).unwrap();
    assert_eq!(read(&again, 0, 54_321).unwrap(), all);
    assert_eq!((server.requests().len(), server.sent()), (1, 1), "it is here already");
}

#[test]
fn one_reader_asks_for_more_and_more() {
    let (server, client) = (Server::start(), Client::new(options()));
    let object = open(&client, &server.put("/a.svs", bytes(40_000))).unwrap();
    for at in (0..40_000).step_by(500) {
        read(&object, at, 500).unwrap();
    }
    let asked = server.requests();
    let asked: Vec<_> = asked.iter().map(|r| r.headers["range"].as_str()).collect();
    let want = ["0-999", "1000-2999", "3000-6999", "7000-14999", "15000-22999"];
    assert_eq!(asked[..5], want.map(|w| format!("bytes={w}")));
    assert_eq!(asked.len(), 8, "{asked:?}");
    // Here and there: no more than what is needed.
    let object = open(&client, &server.put("/b.svs", bytes(40_000))).unwrap();
    for at in [35_500, 3_500, 19_900, 11_100] {
        read(&object, at, 200).unwrap();
    }
    assert_eq!(client.traffic().bytes, 40_000 + 1000 + 5 * 1000);
}

#[test]
fn what_does_not_fit_the_memory_is_asked_for_again() {
    let client = Client::new(Options { memory: 3000, ..options() });
    let server = Server::start();
    let all = bytes(20_000);
    let object = open(&client, &server.put("/a.svs", all.clone())).unwrap();
    for _ in 0..2 {
        assert_eq!(read(&object, 0, 20_000).unwrap(), all);
    }
    assert!(client.traffic().bytes > 36_000, "{:?}", client.traffic());
}

#[test]
fn a_server_that_is_busy_slow_or_breaks_off_is_asked_again() {
    let (server, client) = (Server::start(), Client::new(options()));
    let all = bytes(9_000);
    let url = server.put("/a.svs", all.clone());
    server.faults(Faults { busy: 2, ..Faults::default() });
    let object = open(&client, &url).unwrap();
    server.faults(Faults { cut: 2, busy: 1, ..Faults::default() });
    assert_eq!(read(&object, 0, 4_000).unwrap(), all[..4_000]);
    server.faults(Faults { slow: (2, Duration::from_millis(600)), ..Faults::default() });
    assert_eq!(read(&object, 0, 9_000).unwrap(), all);

    server.faults(Faults { busy: 99, ..Faults::default() });
    let _ = server.requests();
    let e = open(&client, &server.put("/b.svs", all)).unwrap_err();
    let want = RemoteError::Unreachable { attempts: 4, reason: "the server answered 503".into() };
    assert_eq!((e, server.requests().len()), (want, 4));
}

#[test]
fn once_failed_it_fails_at_once() {
    let (server, client) = (Server::start(), Client::new(options()));
    let object = open(&client, &server.put("/a.svs", bytes(9_000))).unwrap();
    server.faults(Faults { busy: 999, ..Faults::default() });
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                assert!(matches!(read(&object, 5_000, 9), Err(RemoteError::Unreachable { .. })))
            });
        }
    });
    // The first request, one run of attempts for all eight, and none once it has failed.
    assert_eq!(server.requests().len(), 1 + 4);
    server.faults(Faults::default());
    assert!(read(&object, 0, 9).is_err() && object.failure().is_some());
}

#[test]
fn an_object_that_changes_is_given_up() {
    for (no_etag, length) in [(false, 9_000), (true, 9_001)] {
        let (server, client) = (Server::start(), Client::new(options()));
        server.faults(Faults { no_etag, ..Faults::default() });
        let url = server.put("/a.svs", bytes(9_000));
        let object = open(&client, &url).unwrap();
        read(&object, 0, 3_000).unwrap();
        let _ = server.put("/a.svs", bytes(length));
        let e = read(&object, 6_000, 10).unwrap_err();
        let what = if no_etag { "its length" } else { "its ETag" };
        assert_eq!(e, RemoteError::Changed { what });
        assert!(e.to_string().contains("run it again once it is written whole"), "{e}");
        // Opened again it is the new one, from its first byte on.
        let object = open(&client, &url).unwrap();
        assert_eq!(read(&object, 0, length).unwrap(), bytes(length));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let (server, client) = (Server::start(), Client::new(options()));
    let url = server.put("/a.svs", bytes(9_000));
    let missing = open(&client, &format!("{}/b.svs", server.address())).unwrap_err();
    assert_eq!(missing, RemoteError::NotFound { code: "TestCode".into() });
    server.faults(Faults { no_ranges: true, ..Faults::default() });
    let large = server.put("/large.svs", bytes(2_000_000));
    let whole = open(&client, &large).unwrap_err();
    assert!(whole.to_string().contains("download the slide first"), "{whole}");
    // A small file, one in parts, and one whole.
    for (no_ranges, url) in [(false, &url), (true, &url), (true, &large)] {
        server.faults(Faults { no_ranges, encoding: Some("br"), ..Faults::default() });
        let packed = open(&client, url).unwrap_err();
        assert_eq!(packed, RemoteError::Packed { encoding: "br".into() }, "{packed}");
    }
    for (status, word) in [(403, "refuses access (403 TestCode)"), (418, "418"), (404, "404")] {
        server.faults(Faults { status: Some(status), ..Faults::default() });
        let e = open(&client, &format!("{url}?token=hush")).unwrap_err().to_string();
        assert!(e.contains(word) && !e.contains("hush"), "{e}");
    }
    server.faults(Faults::default());
    let asked = server.requests();
    assert!(asked.iter().any(|r| r.path == "/a.svs?token=hush"), "the query was sent");
    let empty = server.put("/empty.svs", Vec::new());
    assert_eq!(open(&client, &empty).unwrap().size(), 0);
    let nobody = open(&client, "http://127.0.0.1:1/a.svs").unwrap_err();
    assert!(matches!(nobody, RemoteError::Unreachable { attempts: 4, .. }), "{nobody}");
}

#[test]
fn a_small_file_that_comes_whole_and_answers_that_are_short_are_read() {
    let (server, client) = (Server::start(), Client::new(options()));
    let all = bytes(9_000);
    for (path, faults) in [
        ("/whole.svs", Faults { no_ranges: true, ..Faults::default() }),
        ("/short.svs", Faults { most: Some(700), ..Faults::default() }),
        ("/long.svs", Faults { most: Some(1_900), ..Faults::default() }),
    ] {
        server.faults(faults);
        let object = open(&client, &server.put(path, all.clone())).unwrap();
        assert_eq!(object.size(), 9_000, "{path}");
        assert_eq!(read(&object, 4_321, 1_234).unwrap(), all[4_321..5_555], "{path}");
        assert_eq!(read(&object, 0, 9_000).unwrap(), all, "{path}");
    }
    // One that breaks off in between is asked for what is missing.
    let object = open(&client, &server.put("/both.svs", all.clone())).unwrap();
    server.faults(Faults { most: Some(700), cut: 3, ..Faults::default() });
    assert_eq!(read(&object, 0, 9_000).unwrap(), all);
}

#[test]
fn redirects_lead_on_but_not_in_circles() {
    let (server, client) = (Server::start(), Client::new(options()));
    let other = Server::start();
    let target = other.put("/x", bytes(100));
    server.faults(Faults { redirect: Some((302, target)), ..Faults::default() });
    let url = server.put("/a.svs", Vec::new());
    assert_eq!(read(&open(&client, &url).unwrap(), 0, 100).unwrap(), bytes(100));
    server.faults(Faults { redirect: Some((302, url.clone())), ..Faults::default() });
    assert!(open(&client, &url).is_err());
    assert!(server.requests().len() < 20);
}

#[test]
fn s3_is_asked_with_a_signature_and_never_shows_the_secret() {
    let server = Server::start();
    let keys = Keys { id: "AKID".into(), secret: "hush".into(), token: Some("zeichen".into()) };
    let s3 = |keys| S3 {
        keys,
        region: "eu-1".into(),
        endpoint: Some(server.address().into()),
        pays: false,
    };
    let by = |keys| Client::new(Options { s3: Some(s3(keys)), ..options() });
    server.faults(Faults { needs_key: true, ..Faults::default() });
    let all = bytes(5_000);
    let _ = server.put("/bucket/a%20b/c.svs", all.clone());
    let object = open(&by(Some(keys.clone())), "s3://bucket/a b/c.svs").unwrap();
    assert_eq!(read(&object, 0, 5_000).unwrap(), all);
    for request in server.requests() {
        let signed = &request.headers["authorization"];
        assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"), "{signed}");
        assert!(signed.contains("/eu-1/s3/aws4_request,") && !signed.contains("hush"));
        assert_eq!(request.headers["x-amz-security-token"], "zeichen");
    }
    let e = open(&by(None), "s3://bucket/a b/c.svs").unwrap_err().to_string();
    assert!(e.contains("no AWS credentials were found"), "{e}");
    assert!(!server.requests()[0].headers.contains_key("authorization"));

    server.faults(Faults { status: Some(403), ..Faults::default() });
    let client = by(Some(keys));
    let e = open(&client, "s3://bucket/a b/c.svs").unwrap_err();
    let text = format!("{e} {e:?} {client:?} {:?}", client.traffic());
    assert!(text.contains("may not read it"), "{text}");
    assert!(text.contains("requester pays") && text.contains("AWS_REQUEST_PAYER"), "{text}");
    assert!(!text.contains("hush") && !text.contains("zeichen"), "{text}");
}

#[test]
fn a_bucket_whose_reader_pays_is_asked_so() {
    let (server, keys) =
        (Server::start(), Keys { id: "AKID".into(), secret: "s".into(), token: None });
    let s3 = S3 {
        keys: Some(keys),
        region: "eu-1".into(),
        endpoint: Some(server.address().into()),
        pays: true,
    };
    let client = Client::new(Options { s3: Some(s3), ..options() });
    let _ = server.put("/bucket/c.svs", bytes(5_000));
    open(&client, "s3://bucket/c.svs").unwrap();
    let asked = server.requests().remove(0);
    assert_eq!(asked.headers["x-amz-request-payer"], "requester");
    assert!(asked.headers["authorization"].contains("x-amz-date;x-amz-request-payer,"));
    server.faults(Faults { status: Some(403), ..Faults::default() });
    let e = open(&client, "s3://bucket/c.svs").unwrap_err().to_string();
    assert!(e.contains("may not read it") && !e.contains("requester pays"), "{e}");
}

/// A server may leave the whole length out of its ranges (RFC 9110, 14.4): then its headers alone state it.
#[test]
fn ranges_without_the_whole_length_are_read() {
    use std::io::{BufRead, BufReader, Write};
    for states_length in [true, false] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.svs", listener.local_addr().unwrap());
        let all = bytes(5000);
        let served = all.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|l| !l.is_empty()).collect();
                let range = head.iter().find_map(|l| l.strip_prefix("range: bytes="));
                let answer = match range.and_then(|r| r.split_once('-')) {
                    Some((from, to)) => {
                        let [from, to] = [from, to].map(|n| n.parse::<usize>().unwrap());
                        let to = to.min(served.len() - 1);
                        let length = format!("content-length: {}", to + 1 - from);
                        let head =
                            format!("206 X\r\n{length}\r\ncontent-range: bytes {from}-{to}/*");
                        (head, &served[from..=to])
                    }
                    None if states_length => {
                        (format!("200 X\r\ncontent-length: {}", served.len()), &[][..])
                    }
                    None => ("404 X".to_owned(), &[][..]),
                };
                let head = format!("HTTP/1.1 {}\r\nconnection: close\r\n\r\n", answer.0);
                let _ = (&stream).write_all(&[head.as_bytes(), answer.1].concat());
            }
        });
        let client = Client::new(options());
        match open(&client, &url) {
            Ok(object) => {
                assert!(states_length && object.size() == 5000);
                assert_eq!(read(&object, 0, 5000).unwrap(), all);
            }
            Err(e) => assert!(!states_length && matches!(e, RemoteError::NoRanges { .. }), "{e}"),
        }
    }
}
