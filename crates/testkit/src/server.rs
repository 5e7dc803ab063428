//! A server of files on this machine, over HTTP with ranges, that can be reported to fail.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong from now on.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// So many answers of 503.
    pub busy: usize,
    /// So many answers that end in their middle.
    pub cut: usize,
    /// So many answers that come this late.
    pub slow: (usize, Duration),
    /// Ranges are not known: every answer is the whole file.
    pub no_ranges: bool,
    /// This status always, with a body as S3 has it.
    pub status: Option<u16>,
    /// So many answers that are given; 403 to all after them, as when a signed address expires.
    pub expires_after: Option<usize>,
    /// Files that no request may leave without the header `Authorization`.
    pub needs_key: bool,
    /// At most so many bytes in one answer, whose range states that.
    pub most: Option<usize>,
    /// `content-encoding` of answers, whose bytes stay as they are.
    pub encoding: Option<&'static str>,
    /// No ETag in answers.
    pub no_etag: bool,
    /// Where to go instead: status and the value of `Location`.
    pub redirect: Option<(u16, String)>,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path with its query.
    pub path: String,
    /// Names in small letters.
    pub headers: HashMap<String, String>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<String, (Arc<Vec<u8>>, u32)>,
    faults: Faults,
    requests: Vec<Request>,
    /// Bytes of bodies that were sent in full.
    sent: u64,
}

/// The server; it listens until the process ends.
#[derive(Clone, Debug)]
pub struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    /// Listens on a free port.
    ///
    /// # Panics
    /// Without a free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Self { address, state: Arc::default() };
        let inside = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = inside.clone();
                std::thread::spawn(move || server.talk(&stream));
            }
        });
        server
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a file at a path that begins with `/`, in place of another; its address.
    #[must_use]
    pub fn put(&self, path: &str, bytes: Vec<u8>) -> String {
        let mut state = self.state();
        let version = state.files.get(path).map_or(1, |(_, v)| v + 1);
        state.files.insert(path.to_owned(), (Arc::new(bytes), version));
        format!("{}{path}", self.address)
    }

    /// Its address without a slash at the end.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What goes wrong from now on.
    pub fn faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Requests since the last call.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().requests)
    }

    /// Bytes of bodies since the last call.
    #[must_use]
    pub fn sent(&self) -> u64 {
        std::mem::take(&mut self.state().sent)
    }

    fn talk(&self, stream: &TcpStream) {
        let mut lines = BufReader::new(stream);
        while let Some(request) = read(&mut lines) {
            if !self.answer(stream, &request) {
                return;
            }
        }
    }

    /// Whether the connection continues.
    fn answer(&self, mut stream: &TcpStream, request: &Request) -> bool {
        let mut state = self.state();
        state.requests.push(request.clone());
        let faults = state.faults.clone();
        let path = request.path.split('?').next().unwrap_or_default();
        let file = state.files.get(path).cloned();
        let count = |n: &mut usize| n.checked_sub(1).map(|left| *n = left).is_some();
        let busy = count(&mut state.faults.busy);
        let late = !busy && count(&mut state.faults.slow.0);
        let cut = !busy && !late && count(&mut state.faults.cut);
        let expired = state.faults.expires_after.as_mut().is_some_and(|n| !count(n));
        drop(state);
        let mut send = |status: u16, headers: &str, body: &[u8], n: usize| {
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            let sent =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..n]));
            sent.is_ok() && n == body.len()
        };
        let error = b"<Error><Code>TestCode</Code><Message>hush</Message></Error>";
        let mut fail = |status, headers: &str| send(status, headers, error, error.len());
        if late {
            std::thread::sleep(faults.slow.1);
        }
        if let Some((status, to)) = &faults.redirect {
            return fail(*status, &format!("location: {to}\r\n"));
        }
        if busy {
            return fail(503, "retry-after: 0\r\n");
        }
        if let Some(status) = faults.status {
            return fail(status, "");
        }
        if expired {
            return fail(403, "");
        }
        if faults.needs_key && !request.headers.contains_key("authorization") {
            return fail(403, "");
        }
        let Some((bytes, version)) = file else { return fail(404, "") };
        let tag = format!("\"v{version}\"");
        if request.headers.get("if-match").is_some_and(|t| *t != tag) {
            return fail(412, "");
        }
        let mut etag = if faults.no_etag { String::new() } else { format!("etag: {tag}\r\n") };
        if let Some(encoding) = faults.encoding {
            etag += &format!("content-encoding: {encoding}\r\n");
        }
        let range = request.headers.get("range").and_then(|r| {
            let (from, to) = r.strip_prefix("bytes=")?.split_once('-')?;
            Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()?))
        });
        let Some((from, to)) = range.filter(|_| !faults.no_ranges) else {
            return send(200, &etag, &bytes, bytes.len());
        };
        if from >= bytes.len() {
            return fail(416, &format!("content-range: bytes */{}\r\n", bytes.len()));
        }
        let to = (to + 1).min(from + faults.most.unwrap_or(usize::MAX - from));
        let body = &bytes[from..bytes.len().min(to)];
        let at = format!("bytes {from}-{}/{}", from + body.len() - 1, bytes.len());
        let modified = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";
        let n = if cut { body.len() / 2 } else { body.len() };
        self.state().sent += n as u64;
        send(206, &format!("content-range: {at}\r\n{modified}\r\n{etag}"), body, n)
    }
}

fn read(lines: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Some(Request { path, headers });
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}
