//! As much of HTTP/1.1 as pages on this machine need: one request per connection, each bounded in
//! size and in time, so that a stalled one holds up nobody. Only this machine is answered.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest request line and headers, bytes.
const HEAD: usize = 16 << 10;
/// Longest body, bytes.
const BODY: usize = 64 << 10;
/// A request is here after this time, or never; an answer is taken in this time, or never.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections served at once.
const MOST: usize = 128;
/// Those of one other machine: a browser opens six. Where it has all, the rest is for others.
const MOST_OF_ONE: usize = MOST / 4;
/// Those of this machine where others are served, too: people who come through a tunnel share its address.
const MOST_OF_OWN: usize = MOST - MOST_OF_ONE;
/// Where all places are taken, a connection that has not sent the token keeps its own for this time.
const CHANCE: Duration = Duration::from_millis(100);

/// What browsers ask every server for, outside of any page: no secret, and so without the token.
const ICON: (&str, &[u8]) = ("/favicon.ico", include_bytes!("icon.svg"));

/// A whole request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Path and query, below the token of the server's address; begins with `/`.
    pub path: String,
    headers: Vec<(String, String)>,
    /// At most 64 KiB.
    pub body: Vec<u8>,
}

/// What is sent back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub kind: &'static str,
    /// Content.
    pub body: Vec<u8>,
}

impl Answer {
    /// Plain text.
    #[must_use]
    pub fn text(status: u16, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
    }
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
}

impl Answer {
    /// JSON with the error.
    #[must_use]
    pub fn refusal(status: u16, error: &str) -> Self {
        Self::json(status, &Refusal { error })
    }

    /// JSON.
    #[must_use]
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self { status, kind: "application/json", body },
            Err(e) => Self::text(500, &e.to_string()),
        }
    }
}

impl Request {
    /// The same request for another path.
    #[must_use]
    pub fn at(&self, path: String) -> Self {
        Self { path, ..self.clone() }
    }

    /// The body as JSON, or the answer with its error.
    ///
    /// # Errors
    /// An answer with status 415 or 400.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Answer> {
        if !self.header("Content-Type").is_some_and(|v| v.starts_with("application/json")) {
            return Err(Answer::refusal(415, "JSON only"));
        }
        serde_json::from_slice(&self.body).map_err(|e| Answer::refusal(400, &e.to_string()))
    }

    /// The value of a header; a repeated header has none.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let first = all.next().map(|(_, v)| v.as_str());
        first.filter(|_| all.next().is_none())
    }

    /// The name in the request must be this machine's, so that no foreign page can reach the server
    /// through a name of its own. The port may be another one: that of a tunnel.
    /// `anywhere`: of a server that other machines may reach, by whatever name it has there. Pages of
    /// another origin are refused in either case.
    fn is_own(&self, anywhere: bool) -> bool {
        let Some(host) = self.header("Host") else { return false };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let local = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
        let port = port.is_none_or(|p| p.parse::<u16>().is_ok());
        let origins = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case("Origin"));
        let own = origins.into_iter().all(|(_, o)| o.strip_prefix("http://") == Some(host));
        (local || anywhere) && port && own
    }
}

/// A server of one page. Every path below the token of its address is answered, none without it.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    token: String,
}

impl Server {
    /// Listens on one of this machine's addresses; others may reach it unless it is loopback. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the port is taken, or the address is not one of this machine.
    pub fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((address, port)))?;
        Ok(Self { listener, token: uuid::Uuid::new_v4().simple().to_string() })
    }

    /// The address of the page. Its path is secret: other users of this machine do not know it.
    ///
    /// # Errors
    /// When the listener has no address.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}/{}/", self.listener.local_addr()?, self.token))
    }

    /// Answers requests until the process ends, each on a thread of its own. `answer` sees paths below the token.
    ///
    /// # Errors
    /// When the listener itself fails.
    pub fn serve(
        self,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> io::Result<()> {
        let anywhere = !self.listener.local_addr()?.ip().is_loopback();
        let door = Arc::new(Door { token: self.token, anywhere, places: Mutex::default() });
        let answer = Arc::new(answer);
        for stream in self.listener.incoming() {
            let stream = match stream {
                Ok(stream) => Arc::new(stream),
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Err(e),
                // A client that is gone again, or no file handle left for the moment.
                Err(_) => {
                    door.make_room();
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            while !door.has_room() {
                std::thread::sleep(Duration::from_millis(5));
            }
            // A client that is gone has no address.
            let Ok(from) = stream.peer_addr() else { continue };
            let answer = Arc::clone(&answer);
            // Without a place the connection is closed.
            let Some(place) = Door::enter(&door, &stream, client(from.ip())) else { continue };
            let spawned = std::thread::Builder::new().spawn(move || {
                // A closed browser must not stop the server.
                let _ = serve_connection(&stream, &place, &*answer);
            });
            // Without a thread its closure is dropped, and the connection with it.
            drop(spawned);
        }
        Ok(())
    }
}

/// Who may enter, and who is inside.
#[derive(Debug)]
struct Door {
    token: String,
    /// Other machines may name this one as they like.
    anywhere: bool,
    places: Mutex<Vec<Arc<Held>>>,
}

/// A connection that is served.
#[derive(Debug)]
struct Held {
    stream: Arc<TcpStream>,
    client: IpAddr,
    since: Instant,
    /// It sent the token.
    known: AtomicBool,
}

impl Door {
    fn places(&self) -> MutexGuard<'_, Vec<Arc<Held>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.places().len() < MOST || self.make_room()
    }

    /// Closes the connection that has waited longest without sending the token, once it had its chance.
    fn make_room(&self) -> bool {
        Self::close_one(&mut self.places(), |_| true)
    }

    /// The same of some connections.
    fn close_one(places: &mut Vec<Arc<Held>>, is_one: impl Fn(&Held) -> bool) -> bool {
        let unknown = |h: &Arc<Held>| is_one(h) && !h.known.load(Ordering::SeqCst);
        // In the order in which they came.
        let Some(at) = places.iter().position(unknown) else { return false };
        if places[at].since.elapsed() < CHANCE {
            return false;
        }
        let _ = places.remove(at).stream.shutdown(Shutdown::Both);
        true
    }

    /// How many places a client may have.
    fn share(&self, client: IpAddr) -> usize {
        match (self.anywhere, client.is_loopback()) {
            (false, _) => MOST,
            (true, true) => MOST_OF_OWN,
            (true, false) => MOST_OF_ONE,
        }
    }

    /// A place for a connection; none where its client has its share, and no other one of it can be closed.
    fn enter(door: &Arc<Self>, stream: &Arc<TcpStream>, client: IpAddr) -> Option<Place> {
        let mut places = door.places();
        let of_client = |h: &Held| h.client == client;
        let held = places.iter().filter(|h| of_client(h)).count();
        if held >= door.share(client) && !Self::close_one(&mut places, of_client) {
            return None;
        }
        let held = Arc::new(Held {
            stream: Arc::clone(stream),
            client,
            since: Instant::now(),
            known: AtomicBool::new(false),
        });
        places.push(Arc::clone(&held));
        drop(places);
        Some(Place { door: Arc::clone(door), held })
    }
}

/// Whose connection one from an address is: in IPv6 a machine has all addresses of its network's first half.
fn client(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
        other => other,
    }
}

/// The place of one connection; free again when it is dropped.
struct Place {
    door: Arc<Door>,
    held: Arc<Held>,
}

impl Place {
    /// The path below the token, if the request may be answered.
    fn admit(&self, request: &Request) -> Result<String, Answer> {
        if !request.is_own(self.door.anywhere) {
            return Err(Answer::text(403, "only from this machine"));
        }
        if request.path == ICON.0 {
            return Err(Answer { status: 200, kind: "image/svg+xml", body: ICON.1.to_vec() });
        }
        let below = below_token(&request.path, &self.door.token)
            .ok_or_else(|| Answer::refusal(403, "the address is not whole"))?;
        self.held.known.store(true, Ordering::SeqCst);
        Ok(below.to_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.door.places().retain(|h| !Arc::ptr_eq(h, &self.held));
    }
}

/// What follows `/TOKEN` in a path. How long a comparison takes depends on no byte of the token.
fn below_token<'a>(path: &'a str, token: &str) -> Option<&'a str> {
    let (sent, below) = path.strip_prefix('/')?.split_at_checked(token.len())?;
    let differ = sent.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    (differ == 0 && below.starts_with('/')).then_some(below)
}

fn serve_connection(
    stream: &TcpStream,
    place: &Place,
    answer: &impl Fn(&Request) -> Answer,
) -> io::Result<()> {
    let answer = match request(stream, place, Instant::now() + PATIENCE) {
        Ok(request) => answer(&request),
        Err(Refused::Gone) => return Ok(()),
        Err(Refused::With(answer)) => answer,
    };
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut out = stream;
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'self'; \
         style-src 'self' 'unsafe-inline'; frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
        answer.status,
        phrase(answer.status),
        answer.kind,
        answer.body.len()
    );
    out.write_all(head.as_bytes())?;
    out.write_all(&answer.body)?;
    out.flush()?;
    stream.shutdown(Shutdown::Write)
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

enum Refused {
    With(Answer),
    Gone,
}

/// Reads a whole request before `end`.
fn request(stream: &TcpStream, place: &Place, end: Instant) -> Result<Request, Refused> {
    let refused = |status, why| Refused::With(Answer::text(status, why));
    let bad = |why| refused(400, why);
    let mut held = Vec::new();
    let head = loop {
        if let Some(at) = held.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if held.len() > HEAD {
            return Err(refused(431, "the headers are too long"));
        }
        more(stream, end, &mut held)?;
    };
    let text = std::str::from_utf8(&held[..head]).map_err(|_| bad("headers that are not text"))?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("no HTTP request"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let headers = lines
        .map(|l| l.split_once(':').map(|(n, v)| (n.to_owned(), v.trim().to_owned())))
        .collect::<Option<Vec<_>>>()
        .ok_or(bad("a header without a colon"))?;
    let request = Request { method, path, headers, body: Vec::new() };
    if request.header("Transfer-Encoding").is_some() {
        return Err(refused(411, "the length of the body is missing"));
    }
    let length = match request.header("Content-Length") {
        None => 0,
        Some(n) => n.parse::<usize>().map_err(|_| bad("a body of no length"))?,
    };
    if length > BODY {
        return Err(refused(413, "the body is too long"));
    }
    // Once the token is here the connection is safe; the rest of another one's request is read, too, since a
    // client that still sends would not see the answer.
    let admitted = place.admit(&request);
    let mut body = held.split_off(head + 4);
    while body.len() < length {
        more(stream, end, &mut body)?;
    }
    body.truncate(length);
    let path = admitted.map_err(Refused::With)?;
    Ok(Request { path, body, ..request })
}

/// Some more bytes, if they come before `end`.
fn more(mut stream: &TcpStream, end: Instant, held: &mut Vec<u8>) -> Result<(), Refused> {
    let late = Refused::With(Answer::text(408, "the request took too long"));
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
        return Err(late);
    }
    let mut part = [0; 4096];
    match stream.read(&mut part) {
        Ok(0) => Err(Refused::Gone),
        Ok(n) => {
            held.extend_from_slice(&part[..n]);
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(late)
        }
        Err(_) => Err(Refused::Gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_token_are_answered() {
        assert_eq!(below_token("/secret/", "secret"), Some("/"));
        assert_eq!(below_token("/secret/a/b?c", "secret"), Some("/a/b?c"));
        for path in ["", "/", "/secret", "/secreT/", "//secret/", "secret/", "/secretx/", "/sécré/"]
        {
            assert_eq!(below_token(path, "secret"), None, "{path}");
        }
    }

    /// A console full of errors about an icon hides the errors that matter.
    #[test]
    fn the_icon_is_given_without_the_token_and_nothing_else_is() {
        let server = Server::bind(IpAddr::from([127, 0, 0, 1]), 0).unwrap();
        let address = server.listener.local_addr().unwrap();
        std::thread::spawn(move || server.serve(|_| Answer::text(200, "secret")));
        let ask = |path: &str, host: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let icon = ask("/favicon.ico", "localhost");
        assert!(icon.starts_with("HTTP/1.1 200 OK"), "{icon}");
        assert!(icon.contains("Content-Type: image/svg+xml") && icon.contains("<svg"), "{icon}");
        assert!(!icon.contains("secret"), "{icon}");
        for (path, host) in
            [("/", "localhost"), ("/favicon.ico/", "localhost"), ("/favicon.ico", "evil.example")]
        {
            assert!(ask(path, host).starts_with("HTTP/1.1 403"), "{path} of {host}");
        }
    }

    /// A client that keeps connections open without a word, or with half a request, has its own share of the places.
    #[test]
    fn one_client_leaves_places_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let idle = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let [one, other, own] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|a| a.parse().unwrap());
        for (known, anywhere) in [(true, true), (false, true), (true, false)] {
            let token = "secret".to_owned();
            let door = Arc::new(Door { token, anywhere, places: Mutex::default() });
            let enter = |client| {
                let place = Door::enter(&door, &idle, client);
                place.inspect(|p| p.held.known.store(known, Ordering::SeqCst))
            };
            let places: Vec<Place> = (0..MOST).map_while(|_| enter(one)).collect();
            assert_eq!(places.len(), if anywhere { MOST_OF_ONE } else { MOST });
            if !anywhere {
                continue;
            }
            assert!(door.has_room() && enter(other).is_some() && enter(own).is_some());
            std::thread::sleep(CHANCE);
            // One that has not sent the token makes room for the next of the same client.
            assert_eq!(enter(one).is_some(), !known);
            let owned: Vec<Place> = (0..MOST).map_while(|_| enter(own)).collect();
            assert_eq!(owned.len(), MOST_OF_OWN);
        }
        let [a, b, c] = ["2001:db8::1", "2001:db8::2", "2001:db8:1::1"].map(|a| a.parse().unwrap());
        assert!(client(a) == client(b) && client(a) != client(c));
        assert_eq!(client("::ffff:127.0.0.1".parse().unwrap()), own);
    }

    fn from(headers: &[(&str, &str)]) -> bool {
        let headers = headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let request = Request { method: "GET".into(), path: "/".into(), headers, body: Vec::new() };
        request.is_own(false)
    }

    #[test]
    fn only_this_machines_names_are_answered() {
        for host in [
            "localhost:8377",
            "127.0.0.1:8377",
            "localhost",
            "127.0.0.1",
            "[::1]:80",
            "localhost:9000",
        ] {
            assert!(from(&[("Host", host)]), "{host}");
            assert!(from(&[("host", host), ("Origin", &format!("http://{host}"))]), "{host}");
            assert!(!from(&[("Host", host), ("Origin", "http://evil.example")]), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:80", "localhost:x", "", "localhost:1:2"]
        {
            assert!(!from(&[("Host", host)]), "{host}");
        }
        assert!(!from(&[]));
        assert!(!from(&[("Host", "localhost"), ("Host", "evil.example")]));
        assert!(!from(&[("Host", "localhost:80"), ("Origin", "http://localhost:81")]));
    }
}
