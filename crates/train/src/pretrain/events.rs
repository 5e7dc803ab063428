//! TensorBoard event files: scalars only.
//!
//! A file is a chain of records (length, its masked CRC-32C, payload, its masked CRC-32C), each
//! payload a protobuf `Event`. The messages are written by hand: three fields each.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Result, TrainError};

/// An open event file.
#[derive(Debug)]
pub(super) struct Events {
    file: File,
    path: std::path::PathBuf,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// CRC-32C (Castagnoli), bit by bit: a record is some hundred bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, b| {
        (0..8)
            .fold(crc ^ u32::from(*b), |c, _| (c >> 1) ^ (0x82F6_3B78 & 0_u32.wrapping_sub(c & 1)))
    })
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes()
}

fn record(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), payload, &masked(payload)].concat()
}

fn varint(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// A length-delimited field.
fn field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn event(time: f64, step: usize, tail: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![1 << 3 | 1];
    out.extend(time.to_le_bytes());
    out.push(2 << 3);
    varint(step as u64, &mut out);
    tail(&mut out);
    out
}

/// A value of one step.
pub struct Scalar<'a> {
    /// Path that it has in the viewer, such as `loss/total`.
    pub tag: &'a str,
    /// As the viewer draws it.
    pub value: f64,
}

impl Events {
    /// Starts a new file in the run directory.
    pub fn create(dir: &Path) -> Result<Self> {
        let time = now();
        let name = format!("events.out.tfevents.{:.0}.{}", time, std::process::id());
        let path = dir.join(name);
        let file = File::create(&path).map_err(|e| TrainError::run(&path, e))?;
        let mut events = Self { file, path };
        events.write(&event(time, 0, |out| field(3, b"brain.Event:2", out)))?;
        Ok(events)
    }

    fn write(&mut self, payload: &[u8]) -> Result<()> {
        self.file.write_all(&record(payload)).map_err(|e| TrainError::run(&self.path, e))
    }

    /// Adds scalars of one step.
    pub fn scalars(&mut self, step: usize, values: &[Scalar<'_>]) -> Result<()> {
        let mut summary = vec![];
        for Scalar { tag, value } in values {
            let mut v = vec![];
            field(1, tag.as_bytes(), &mut v);
            v.push(2 << 3 | 5);
            v.extend((*value as f32).to_le_bytes());
            field(1, &v, &mut summary);
        }
        self.write(&event(now(), step, |out| field(5, &summary, out)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_castagnolis() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn a_step_is_one_record() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = Events::create(dir.path()).unwrap();
        events
            .scalars(
                300,
                &[Scalar { tag: "loss/mim", value: 0.5 }, Scalar { tag: "rate", value: 1e-3 }],
            )
            .unwrap();
        let bytes = std::fs::read(&events.path).unwrap();
        let mut at = 0;
        let mut payloads = vec![];
        while at < bytes.len() {
            let n = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            assert_eq!(bytes[at + 8..at + 12], masked(&bytes[at..at + 8]));
            let payload = &bytes[at + 12..at + 12 + n];
            assert_eq!(bytes[at + 12 + n..at + 16 + n], masked(payload));
            payloads.push(payload.to_vec());
            at += 16 + n;
        }
        assert_eq!(payloads.len(), 2);
        // Field 2 (step): 300 as a varint; the tag is in the text.
        assert_eq!(payloads[1][9..12], [2 << 3, 0xAC, 0x02]);
        assert!(payloads[1].windows(8).any(|w| w == b"loss/mim"));
    }
}
