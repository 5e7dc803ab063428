//! Parts of a list that several processes do, each its own.

use crate::digest::{Digest, Sha256};
use std::str::FromStr;

/// Part `k` of `n`, 1 <= k <= n. The parts are disjoint and cover everything; which part an
/// item belongs to depends on its name and on `n` alone, not on other items or their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    k: u64,
    n: u64,
}

/// The most parts.
const MOST: u64 = 1_000_000;

/// Text that is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a part such as 2/16: K/N with 1 <= K <= N <= {MOST}")]
pub struct ShardError(String);

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let wrong = || ShardError(text.to_owned());
        let (k, n) = text.split_once('/').ok_or_else(wrong)?;
        let number = |s: &str| s.trim().parse::<u64>().map_err(|_| wrong());
        let (k, n) = (number(k)?, number(n)?);
        if (1..=n).contains(&k) && n <= MOST { Ok(Self { k, n }) } else { Err(wrong()) }
    }
}

impl Shard {
    /// Which of `n` parts the item of this name belongs to, 1 to `n`.
    #[must_use]
    pub fn number(name: &str, n: std::num::NonZeroU32) -> u32 {
        // Less than `n`, so it fits.
        (remainder(name, n.get().into()) + 1) as u32
    }

    /// Whether the item of this name belongs to it.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        remainder(name, self.n) == self.k - 1
    }
}

/// What a name's digest leaves when divided by `n`.
fn remainder(name: &str, n: u64) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first) % n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_cover_everything() {
        for n in [1, 2, 3, 7, 16] {
            let parts: Vec<Shard> = (1..=n).map(|k| format!("{k}/{n}").parse().unwrap()).collect();
            let mut sizes = vec![0; n];
            for slide in 0..1000 {
                let name = format!("TCGA-{slide:04}");
                let holding: Vec<usize> = (0..n).filter(|&k| parts[k].holds(&name)).collect();
                assert_eq!(holding.len(), 1, "{name} in {holding:?} of {n}");
                sizes[holding[0]] += 1;
            }
            let fair = 1000 / n;
            assert!(sizes.iter().all(|s| s * 10 > fair * 6 && s * 10 < fair * 14), "{sizes:?}");
        }
    }

    #[test]
    fn a_slide_stays_in_its_part() {
        // By hashlib.sha256 of Python: int(digest[:16], 16) % 5 + 1.
        let part = |name: &str| {
            (1..=5).find(|k| format!("{k}/5").parse::<Shard>().unwrap().holds(name)).unwrap()
        };
        let names = ["a", "b", "case-1", "ü"];
        assert_eq!(names.map(part), [1, 2, 2, 4]);
        let five = std::num::NonZeroU32::new(5).unwrap();
        assert_eq!(names.map(|n| Shard::number(n, five)), [1, 2, 2, 4]);
    }

    #[test]
    fn what_is_not_a_part_is_refused() {
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2", "1/1000001"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert!(" 2 / 3 ".parse::<Shard>().is_ok());
    }
}
