//! AWS Signature Version 4 of a GET request for a range.

use crate::credentials::Keys;
use crate::time::to_aws;
use base::digest::{hex, sha256};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// SHA-256 of nothing: a GET has no body.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What is signed.
pub(crate) struct RequestToSign<'a> {
    /// As the header `Host` has it.
    pub(crate) host: &'a str,
    /// Encoded path, from its slash on.
    pub(crate) path: &'a str,
    /// The header `Range`.
    pub(crate) range: &'a str,
    pub(crate) region: &'a str,
    /// Seconds since 1970.
    pub(crate) now: u64,
    /// Whether the reader pays.
    pub(crate) pays: bool,
}

/// The headers that sign a request.
pub(crate) fn headers(keys: &Keys, request: &RequestToSign<'_>) -> Vec<(&'static str, String)> {
    let RequestToSign { host, path, range, region, now, pays } = request;
    let time = to_aws(*now);
    let scope = format!("{}/{region}/s3/aws4_request", &time[..8]);
    let mut signed = vec![("host", (*host).to_owned()), ("range", (*range).to_owned())];
    signed.push(("x-amz-content-sha256", EMPTY.to_owned()));
    signed.push(("x-amz-date", time.clone()));
    // Names in their order.
    signed.extend(pays.then(|| ("x-amz-request-payer", "requester".to_owned())));
    signed.extend(keys.token.iter().map(|t| ("x-amz-security-token", t.clone())));
    let lines: String = signed.iter().map(|(n, v)| format!("{n}:{v}\n")).collect();
    let names = signed.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(";");
    let request = format!("GET\n{path}\n\n{lines}\n{names}\n{EMPTY}");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(&request));
    let secret = format!("AWS4{}", keys.secret);
    let key = [&time[..8], region, "s3", "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| hmac(&key, part));
    let signature = hex(&hmac(&key, &text));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
        keys.id
    );
    // The client writes these two itself.
    signed.retain(|(n, _)| !matches!(*n, "host" | "range"));
    signed.push(("authorization", authorization));
    signed
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A key as a path of a request: everything but letters, digits, `-._~` and `/` is encoded.
pub(crate) fn encoded(key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    let escaped = |b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    key.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Amazon's own example: "Signature Calculations for the Authorization Header", GET Object.
    #[test]
    fn the_published_example() {
        let keys = Keys {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
        };
        let request = RequestToSign {
            host: "examplebucket.s3.amazonaws.com",
            path: "/test.txt",
            range: "bytes=0-9",
            region: "us-east-1",
            now: 1_369_353_600,
            pays: false,
        };
        let headers = headers(&keys, &request);
        let (_, authorization) = headers.last().unwrap();
        assert_eq!(
            authorization,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn keys_are_encoded_as_the_signature_wants() {
        assert_eq!(encoded("/a b/ü+(1).svs"), "/a%20b/%C3%BC%2B%281%29.svs");
    }
}
