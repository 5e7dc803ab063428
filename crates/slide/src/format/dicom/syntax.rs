//! Transfer syntaxes: how a file is written, by its identifier.

/// Without compression, kinds of values not written.
pub(super) const IMPLICIT: &str = "1.2.840.10008.1.2";
/// Without compression.
pub(super) const EXPLICIT: &str = "1.2.840.10008.1.2.1";
pub(super) const DEFLATED: &str = "1.2.840.10008.1.2.1.99";
pub(super) const BIG_ENDIAN: &str = "1.2.840.10008.1.2.2";
pub(super) const RLE: &str = "1.2.840.10008.1.2.5";
pub(super) const JPEG: &str = "1.2.840.10008.1.2.4.50";
pub(super) const JPEG_2000_LOSSLESS: &str = "1.2.840.10008.1.2.4.90";
pub(super) const JPEG_2000: &str = "1.2.840.10008.1.2.4.91";

/// What a transfer syntax is called.
pub(super) fn name(uid: &str) -> &'static str {
    match uid.strip_prefix("1.2.840.10008.1.2.").unwrap_or_default() {
        "1.99" => "deflated",
        "2" => "big endian",
        "4.51" => "JPEG extended",
        "4.57" | "4.70" => "lossless JPEG",
        "4.80" | "4.81" => "JPEG-LS",
        "4.92" | "4.93" => "JPEG 2000 in several components",
        "4.100" | "4.101" => "MPEG-2",
        "4.102" | "4.103" | "4.104" | "4.105" | "4.106" => "MPEG-4",
        "4.107" | "4.108" => "HEVC",
        "4.110" | "4.111" | "4.112" => "JPEG XL",
        "4.201" | "4.202" | "4.203" => "high-throughput JPEG 2000",
        _ => "unknown here",
    }
}
