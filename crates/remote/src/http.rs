//! One request for a range, and what its answer means.

use crate::address::Scheme;
use crate::client::{Client, Miss};
use crate::sign::{self, RequestToSign};
use crate::time::of_http;
use crate::{Address, RemoteError};
use std::io::Read;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, Error};

/// Redirects that are followed.
const REDIRECTS: u32 = 5;
/// What is read of an answer that is an error.
const ERROR_BYTES: u64 = 4096;

/// An answer with the bytes that were asked for.
pub(crate) struct Answer {
    /// Length of the whole object.
    pub(crate) len: u64,
    pub(crate) etag: Option<String>,
    /// Seconds since 1970.
    pub(crate) modified: Option<u64>,
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

    /// Asks for `n` bytes from `from` on; of the content with this ETag, where there is one.
    pub(crate) fn ask(
        &self,
        address: &Address,
        (from, n): (u64, u64),
        etag: Option<&str>,
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
        let redirects = if stays { 0 } else { REDIRECTS };
        let request = request.header("accept-encoding", "identity");
        let answer = request.config().max_redirects(redirects).build().call().map_err(failed)?;
        self.check_answer(address, answer, from)
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
        let request = RequestToSign { host, path: &path, range, region: &region, now };
        let headers = s3.keys.as_ref().map(|k| sign::headers(k, &request)).unwrap_or_default();
        Ok(Request { url: format!("{origin}{path}"), headers, stays: true })
    }

    fn check_answer(
        &self,
        address: &Address,
        mut answer: Response<Body>,
        from: u64,
    ) -> Result<Answer, Miss> {
        let status = answer.status().as_u16();
        let headers = answer.headers();
        let of = |name: &str| header(headers, name);
        let found = |len, body| Answer {
            len,
            etag: of("etag").map(str::to_owned),
            modified: of("last-modified").and_then(of_http),
            body,
        };
        let range = of("content-range").unwrap_or_default();
        let total = range.rsplit('/').next().and_then(|t| t.parse::<u64>().ok());
        let encoded = of("content-encoding").is_some_and(|e| e != "identity");
        match status {
            206 if range.starts_with(&format!("bytes {from}-")) && !encoded => {
                let Some(len) = total else { return Err(RemoteError::NoRanges { status }.into()) };
                let found = found(len, None);
                Ok(Answer { body: Some(answer.into_body()), ..found })
            }
            200 if of("content-length") == Some("0") => Ok(found(0, None)),
            416 if total == Some(0) => Ok(found(0, None)),
            200..=299 => Err(RemoteError::NoRanges { status }.into()),
            412 => Err(RemoteError::Changed { what: "its ETag" }.into()),
            416 => Err(RemoteError::Changed { what: "its length" }.into()),
            408 | 429 | 500 | 502 | 503 | 504 => {
                let wish = of("retry-after").and_then(|s| s.parse().ok()).map(Duration::from_secs);
                Err(Miss::Again(format!("the server answered {status}"), wish))
            }
            _ => {
                let region = of("x-amz-bucket-region").map(str::to_owned);
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
            Scheme::S3 => "the AWS credentials at hand may not read it, or have expired",
            _ if address.query.is_some() => "a signed address may have expired; ask for a new one",
            _ => "an address that needs no login, or a signed one, can be read",
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
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
    let one = |b| if bad(b) { format!("%{b:02X}") } else { char::from(b).to_string() };
    url.bytes().map(one).collect()
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
