//! One request for a range, and what its answer means.

use crate::address::Scheme;
use crate::client::{Client, Miss};
use crate::sign::{self, RequestToSign};
use crate::time::of_http;
use crate::{Address, RemoteError};
use std::io::Read;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, Error};

/// Redirects that are followed.
const REDIRECTS: u32 = 5;
/// Largest file that is taken whole from a server that sends no parts of it: some send small files so.
const SMALL: u64 = 1 << 20;
/// What is read of an answer that is an error.
const ERROR_BYTES: u64 = 4096;

/// An answer with the bytes that were asked for.
pub(crate) struct Answer {
    /// Length of the whole object.
    pub(crate) len: u64,
    pub(crate) etag: Option<String>,
    /// Seconds since 1970.
    pub(crate) modified: Option<u64>,
    /// Bytes of the body before those that were asked for, where the whole file came.
    pub(crate) skip: u64,
    /// Bytes of the body from there on. A server may send fewer than it was asked for.
    pub(crate) given: u64,
    /// What is left to read; `None` of an empty object.
    pub(crate) body: Option<Body>,
}

/// Where a request goes, and what goes with it.
struct Request {
    url: String,
    headers: Vec<(&'static str, String)>,
    /// Whether it stays at the server that was asked.
    stays: bool,
}

impl Client {
    fn agent(&self, secure: bool) -> &Agent {
        self.agents[usize::from(secure)].get_or_init(|| {
            let o = &self.options;
            let mut config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects_will_error(false)
                .user_agent(concat!("mithras/", env!("CARGO_PKG_VERSION")))
                .timeout_connect(Some(o.connect))
                .timeout_recv_response(Some(o.answer))
                .timeout_recv_body(Some(o.body));
            // Also plain addresses may lead to secure ones.
            let certificates = if secure { certificates() } else { Vec::new() };
            config = config.https_only(secure).tls_config(
                TlsConfig::builder()
                    .provider(TlsProvider::Rustls)
                    .root_certs(RootCerts::new_with_certs(&certificates))
                    .build(),
            );
            config.build().into()
        })
    }

    /// Asks for `n` bytes from `from` on; of the content with this ETag, where there is one. `len` is the object's
    /// length, where it is known.
    pub(crate) fn fetch_range(
        &self,
        address: &Address,
        (from, n): (u64, u64),
        etag: Option<&str>,
        len: Option<u64>,
    ) -> Result<Answer, Miss> {
        let range = format!("bytes={from}-{}", from + n - 1);
        let Request { url, mut headers, stays } = self.request(address, &range)?;
        // A weak one does not identify bytes. Servers behind addresses of other kinds often get this wrong;
        // their ETags are compared all the same.
        if let Some(etag) = etag.filter(|e| address.scheme == Scheme::S3 && !e.starts_with("W/")) {
            headers.push(("if-match", etag.to_owned()));
        }
        self.count(1, 0);
        let mut request = self.agent(url.starts_with("https:")).get(&url).header("range", &range);
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        let request = request.header("accept-encoding", "identity");
        let mut answer = request.config().max_redirects(0).build().call().map_err(failed)?;
        if !stays {
            answer = self.follow(url.clone(), &range, answer)?;
        }
        let is_open = answer.status() == 206
            && header(answer.headers(), "content-range").is_some_and(|r| r.ends_with("/*"));
        let len = if is_open && len.is_none() { self.length(&url) } else { len };
        self.check_answer(address, answer, from, len)
    }

    /// The length of an object by its headers alone, for a server whose ranges do not state it.
    fn length(&self, url: &str) -> Option<u64> {
        self.count(1, 0);
        let request = self.agent(url.starts_with("https:")).head(url);
        let request = request.header("accept-encoding", "identity");
        let answer = request.config().max_redirects(0).build().call().ok()?;
        header(answer.headers(), "content-length").filter(|_| answer.status() == 200)?.parse().ok()
    }

    /// Goes where a server sends its reader. Not from elsewhere to this machine or its network: what
    /// listens there trusts every program that can reach it.
    fn follow(
        &self,
        mut url: String,
        range: &str,
        mut answer: Response<Body>,
    ) -> Result<Response<Body>, Miss> {
        let over = |reason: &str| RemoteError::Unreachable { attempts: 1, reason: reason.into() };
        for _ in 0..REDIRECTS {
            let to = match answer.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => header(answer.headers(), "location"),
                _ => return Ok(answer),
            };
            let next = to.and_then(|to| joined(&url, to));
            let next = next.ok_or_else(|| over("it leads to something that is not an address"))?;
            if url.starts_with("https:") && !next.starts_with("https:") {
                return Err(over("it leads from https:// to http://").into());
            }
            if host(&next) != host(&url) && is_inside(&next) && !is_inside(&url) {
                return Err(over(
                    "it leads to an address of this machine or of its own network; give that address \
                     itself if it is meant",
                )
                .into());
            }
            self.count(1, 0);
            let request = self.agent(next.starts_with("https:")).get(&next);
            let request = request.header("range", range).header("accept-encoding", "identity");
            answer = request.config().max_redirects(0).build().call().map_err(failed)?;
            url = next;
        }
        Err(over("it leads on and on to other addresses").into())
    }

    fn request(&self, address: &Address, range: &str) -> Result<Request, RemoteError> {
        if address.scheme != Scheme::S3 {
            let query = address.query.as_ref().map_or_else(String::new, |q| format!("?{q}"));
            let url = well_formed(&format!("{address}{query}"));
            return Ok(Request { url, headers: Vec::new(), stays: false });
        }
        let s3 = self.s3()?;
        let bucket = &address.host;
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let region = regions.get(bucket).unwrap_or(&s3.region).clone();
        drop(regions);
        let key = sign::encoded(&address.path);
        let (origin, path) = match &s3.endpoint {
            Some(endpoint) => {
                // An endpoint may have a path of its own.
                let (scheme, rest) = endpoint.split_once("://").unwrap_or(("https", endpoint));
                let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
                let slash = if base.is_empty() { "" } else { "/" };
                (format!("{scheme}://{host}"), format!("{slash}{base}/{bucket}{key}"))
            }
            // A dot in a bucket's name would not fit the server's certificate.
            None if bucket.contains('.') => {
                (format!("https://s3.{region}.amazonaws.com"), format!("/{bucket}{key}"))
            }
            None => (format!("https://{bucket}.s3.{region}.amazonaws.com"), key),
        };
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let request =
            RequestToSign { host, path: &path, range, region: &region, now, pays: s3.pays };
        let headers = s3.keys.as_ref().map(|k| sign::headers(k, &request)).unwrap_or_default();
        Ok(Request { url: format!("{origin}{path}"), headers, stays: true })
    }

    fn check_answer(
        &self,
        address: &Address,
        mut answer: Response<Body>,
        from: u64,
        len: Option<u64>,
    ) -> Result<Answer, Miss> {
        let status = answer.status().as_u16();
        let headers = answer.headers();
        let field = |name: &str| header(headers, name);
        let found = |len, body, skip, given| Answer {
            len,
            etag: field("etag").map(str::to_owned),
            modified: field("last-modified").and_then(of_http),
            skip,
            given,
            body,
        };
        let range = field("content-range").unwrap_or_default();
        let total = range.rsplit('/').next().and_then(|t| t.parse::<u64>().ok());
        let length = field("content-length").and_then(|n| n.parse::<u64>().ok());
        let encoded = field("content-encoding").is_some_and(|e| e != "identity");
        if encoded && (200..300).contains(&status) {
            let encoding = field("content-encoding").unwrap_or_default().to_owned();
            return Err(RemoteError::Packed { encoding }.into());
        }
        match status {
            206 if range.starts_with(&format!("bytes {from}-")) => {
                let Some(len) = total.or(len.filter(|_| range.ends_with("/*"))) else {
                    return Err(RemoteError::NoRanges { status }.into());
                };
                let last = range.split(['-', '/']).nth(1).and_then(|n| n.parse::<u64>().ok());
                let last = last.filter(|last| (from..len).contains(last));
                let Some(last) = last else {
                    return Err(Miss::Again("the answer states another range".into(), None));
                };
                let found = found(len, None, 0, last + 1 - from);
                Ok(Answer { body: Some(answer.into_body()), ..found })
            }
            200 if length == Some(0) => Ok(found(0, None, 0, 0)),
            416 if total == Some(0) => Ok(found(0, None, 0, 0)),
            // A small file comes whole from some servers, whatever was asked for.
            200 if length.is_some_and(|n| n <= SMALL && from < n) => {
                let len = length.unwrap_or(0);
                let found = found(len, None, from, len - from);
                Ok(Answer { body: Some(answer.into_body()), ..found })
            }
            200..=299 => Err(RemoteError::NoRanges { status }.into()),
            412 => Err(RemoteError::Changed { what: "its ETag" }.into()),
            416 => Err(RemoteError::Changed { what: "its length" }.into()),
            408 | 429 | 500 | 502 | 503 | 504 => {
                let wish =
                    field("retry-after").and_then(|s| s.parse().ok()).map(Duration::from_secs);
                Err(Miss::Again(format!("the server answered {status}"), wish))
            }
            _ => {
                let region = field("x-amz-bucket-region").map(str::to_owned);
                if let Some(region) = region.filter(|_| address.scheme == Scheme::S3)
                    && self.moves(address, region)
                {
                    let reason = format!("the bucket is in another region ({status})");
                    return Err(Miss::Again(reason, Some(Duration::ZERO)));
                }
                let code = code(&mut answer);
                Err(Miss::Over(match status {
                    404 | 410 => RemoteError::NotFound { code },
                    401 | 403 => RemoteError::Denied { status, code, remedy: self.remedy(address) },
                    _ => RemoteError::Status { status, code },
                }))
            }
        }
    }

    /// Notes a bucket's region; whether that is news.
    fn moves(&self, address: &Address, region: String) -> bool {
        let plain = region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let signed_for = regions.get(&address.host).cloned();
        let signed_for = signed_for.or_else(|| Some(self.s3().ok()?.region.clone()));
        if !plain || signed_for.as_ref() == Some(&region) {
            return false;
        }
        regions.insert(address.host.clone(), region);
        true
    }

    fn remedy(&self, address: &Address) -> &'static str {
        match address.scheme {
            Scheme::S3 if self.s3().is_ok_and(|s| s.keys.is_none()) => {
                "no AWS credentials were found (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
                 ~/.aws/credentials), so it was asked for without"
            }
            Scheme::S3 if self.s3().is_ok_and(|s| !s.pays) => {
                "the AWS credentials found may not read it, or have expired; or the bucket lets its \
                 reader pay (requester pays): set AWS_REQUEST_PAYER=requester if it does, and the requests \
                 are charged to you"
            }
            Scheme::S3 => "the AWS credentials found may not read it, or have expired",
            _ if address.query.is_some() => {
                "a signed address may have expired; ask for a new one if it has"
            }
            _ => "an address that needs no login, or a signed one, can be read",
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Scheme, and host with port, of an address.
fn host(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    Some((scheme, host.rsplit('@').next()?))
}

/// Where a `Location` leads from an address.
fn joined(url: &str, to: &str) -> Option<String> {
    let (scheme, authority) = host(url)?;
    let to = to.split('#').next()?;
    if to.starts_with("http://") || to.starts_with("https://") {
        return Some(well_formed(to));
    }
    if to.contains("://") || to.is_empty() {
        return None;
    }
    if to.starts_with("//") {
        return Some(well_formed(&format!("{scheme}:{to}")));
    }
    if to.starts_with('/') {
        return Some(well_formed(&format!("{scheme}://{authority}{to}")));
    }
    let whole = url.split(['?', '#']).next()?;
    let path = &whole[scheme.len() + 3..];
    let folder = path.rfind('/').map_or(authority, |at| &path[..at]);
    Some(well_formed(&format!("{scheme}://{folder}/{to}")))
}

/// Whether an address is one of this machine or of a private network. A name that cannot be looked up
/// here (behind a proxy) is not.
fn is_inside(url: &str) -> bool {
    let Some((scheme, authority)) = host(url) else { return false };
    let port = if scheme == "https" { 443 } else { 80 };
    let has_port = authority.rsplit(':').next().is_some_and(|p| p.parse::<u16>().is_ok());
    let named = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let own = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(a) => {
            a.is_loopback() || a.is_link_local() || a.is_private() || a.is_unspecified()
        }
        IpAddr::V6(a) => {
            a.is_loopback()
                || a.is_unspecified()
                || a.is_unicast_link_local()
                || a.is_unique_local()
        }
    };
    named.to_socket_addrs().is_ok_and(|mut all| all.any(|a| own(a.ip())))
}

/// S3's word for an error: letters only, so that nothing else of the answer is shown.
fn code(answer: &mut Response<Body>) -> String {
    let mut text = Vec::new();
    let _ = answer.body_mut().as_reader().take(ERROR_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let word = text.split_once("<Code>").and_then(|(_, rest)| Some(rest.split_once("</Code>")?.0));
    let word = word.unwrap_or_default();
    let plain = word.len() <= 64 && word.chars().all(|c| c.is_ascii_alphanumeric());
    if plain { word.to_owned() } else { String::new() }
}

/// Encodes what a request must not contain. What is encoded already stays.
fn well_formed(url: &str) -> String {
    let bad = |b: u8| !b.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&b);
    let escaped = |b| if bad(b) { format!("%{b:02X}") } else { char::from(b).to_string() };
    url.bytes().map(escaped).collect()
}

/// Why no answer came. No message of the client's own: some hold the address.
fn failed(error: Error) -> Miss {
    let over = |reason: String| Miss::Over(RemoteError::Unreachable { attempts: 1, reason });
    let again = |reason: &str| Miss::Again(reason.to_owned(), None);
    match error {
        Error::Timeout(_) => again("no answer in time"),
        Error::HostNotFound => again("the host's name is not known"),
        // A certificate that is not trusted now will not be at the next attempt.
        Error::Io(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            over(format!("no secure connection: {e}"))
        }
        Error::Io(e) => again(&e.to_string()),
        Error::Rustls(e) => over(format!("no secure connection: {e}")),
        Error::Tls(e) => over(format!("no secure connection: {e}")),
        Error::Protocol(_) => again("an answer that is not HTTP"),
        Error::TooManyRedirects => over("it leads on and on to other addresses".into()),
        Error::InvalidProxyUrl => over("the proxy of the environment is not an address".into()),
        Error::BadUri(_) | Error::Http(_) => over("the address is not well-formed".into()),
        Error::RequireHttpsOnly(_) => over("it leads from https:// to http://".into()),
        _ => again("the connection failed"),
    }
}

/// Those that this machine trusts, with `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn certificates() -> Vec<Certificate<'static>> {
    // Another crate of the process may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().map(|c| Certificate::from_der(c).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_to_their_address() {
        for (to, want) in [
            ("https://b/x", Some("https://b/x")),
            ("//b/x", Some("http://b/x")),
            ("/x?y", Some("http://a:8/x?y")),
            ("x", Some("http://a:8/p/x")),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(joined("http://a:8/p/q?r=/s", to).as_deref(), want, "{to}");
        }
        assert_eq!(joined("http://a", "x").as_deref(), Some("http://a/x"));
    }

    #[test]
    fn what_is_inside() {
        for inside in [
            "http://127.0.0.1/x",
            "http://127.9.9.9:80/x",
            "http://169.254.169.254/latest/meta-data",
            "http://10.1.2.3/",
            "http://192.168.0.1",
            "http://[::1]:80/x",
            "http://[fe80::1]/x",
            "http://[::ffff:127.0.0.1]/x",
            "http://0.0.0.0/",
            "https://user@127.0.0.1/",
        ] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["http://93.184.216.34/x", "http://[2606:2800:220:1::1]/x"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }
}
