//! Damaged copies of sound files, for readers that must refuse them.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Damages a sound file by the bytes of `orders`: five bytes per change.
pub fn damaged(sound: &[u8], orders: &[u8]) -> Vec<u8> {
    let mut b = sound.to_vec();
    for order in orders.chunks_exact(5).take(16) {
        if b.is_empty() {
            break;
        }
        let [how, hi, lo, value, length] = [0, 1, 2, 3, 4].map(|k| usize::from(order[k]));
        // Headers are hit as often as all the rest.
        let reach = if how & 0x80 == 0 { b.len().min(256) } else { b.len() };
        let at = (hi << 8 | lo) * reach / 0x1_0000;
        let end = (at + 1 + length % 64).min(b.len());
        match how % 6 {
            0 => b[at] ^= 1 << (value % 8),
            1 => b[at] = value as u8,
            2 => b.truncate(at),
            3 => drop(b.drain(at..end)),
            4 => {
                let again = b[at..end].to_vec();
                b.splice(at..at, again);
            }
            _ => {
                let numbers = [0_u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 1 << 20];
                for (k, v) in numbers[value % 6].to_le_bytes().into_iter().enumerate() {
                    if let Some(byte) = b.get_mut(at + k) {
                        *byte = v;
                    }
                }
            }
        }
    }
    b
}

/// Runs a reader over damaged copies of every seed; each stays at the same path.
pub fn attack(seeds: &[PathBuf], read: impl Fn(&Path) + std::panic::RefUnwindSafe) {
    assert!(!seeds.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let sound: Vec<(PathBuf, Vec<u8>)> = seeds
        .iter()
        .map(|p| (folder.path().join(p.file_name().unwrap()), std::fs::read(p).unwrap()))
        .collect();
    bolero::check!()
        .with_test_time(Duration::from_secs(1))
        .with_shrink_time(Duration::ZERO)
        .for_each(|orders: &[u8]| {
            let pick = orders.first().map_or(0, |&k| usize::from(k) % sound.len());
            let (path, bytes) = &sound[pick];
            std::fs::write(path, damaged(bytes, orders.get(1..).unwrap_or(&[]))).unwrap();
            read(path);
        });
}
