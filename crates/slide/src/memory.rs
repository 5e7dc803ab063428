//! One budget of memory for decoded pixels, shared by every slide that is opened with it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Memory for decoded pixels, counted once for the caches of tiles, images held whole, decoding under
/// way and windows that wait for a network, over all slides opened with clones of it.
///
/// What is kept takes at most half. Decoding may have all that is left but an eighth, and waits where
/// that is too little; one piece of at most half the budget always goes, so nothing waits for ever.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: u64,
    now: Mutex<Now>,
    less: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    kept: u64,
    working: u64,
    slides: u64,
}

impl Memory {
    /// A budget of its own of so many bytes.
    #[must_use]
    pub fn new(total: u64) -> Self {
        Self(Arc::new(Shared { total, now: Mutex::default(), less: Condvar::new() }))
    }

    /// The whole budget, bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.total
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        let now = self.now();
        now.kept + now.working
    }

    /// Takes bytes for as long as the result lives; `None` where what is kept would then be more
    /// than half of the budget, or leave no room for what is being decoded.
    #[must_use]
    pub fn reserve(&self, bytes: u64) -> Option<Kept> {
        let mut now = self.now();
        let kept = now.kept.checked_add(bytes).filter(|kept| *kept <= self.0.total / 2)?;
        if now.working > 0 && kept + now.working > self.decoded() {
            return None;
        }
        now.kept = kept;
        Some(Kept { memory: self.clone(), bytes })
    }

    /// The largest piece that can be decoded, bytes.
    pub(crate) fn most_working(&self) -> u64 {
        self.0.total / 2
    }

    /// Runs `work`, which needs `bytes` while it lasts, when there is room.
    pub(crate) fn work<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        /// Leaves however `work` ends.
        struct Inside<'a>(&'a Memory, u64);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                self.0.now().working -= self.1;
                self.0.0.less.notify_all();
            }
        }
        let mut now = self.now();
        while now.working > 0
            && now.kept.saturating_add(now.working).saturating_add(bytes) > self.decoded()
        {
            now = self.0.less.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.working += bytes;
        drop(now);
        let _inside = Inside(self, bytes);
        work()
    }

    /// Counts one slide more, for as long as the result lives.
    pub(crate) fn slide(&self) -> OpenSlide {
        self.now().slides += 1;
        OpenSlide(self.clone())
    }

    /// What is kept and decoded together; the rest is for pixels that are handed on.
    fn decoded(&self) -> u64 {
        self.0.total / 8 * 7
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two budgets are equal when they are of one size.
impl PartialEq for Memory {
    fn eq(&self, other: &Self) -> bool {
        self.total() == other.total()
    }
}

impl Eq for Memory {}

/// Bytes taken from a [`Memory`], given back when it is dropped.
#[derive(Debug)]
pub struct Kept {
    memory: Memory,
    bytes: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.memory.now().kept -= self.bytes;
        self.memory.0.less.notify_all();
    }
}

/// One of the slides that share a budget.
#[derive(Debug)]
pub(crate) struct OpenSlide(Memory);

impl OpenSlide {
    pub(crate) fn memory(&self) -> &Memory {
        &self.0
    }

    /// What the tiles kept of one slide may come to: its part of a quarter.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.0.total() / 4 / self.0.now().slides.max(1)
    }
}

impl Drop for OpenSlide {
    fn drop(&mut self) {
        self.0.now().slides -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn half_is_kept_at_most_and_given_back() {
        let memory = Memory::new(800);
        let first = memory.reserve(300).unwrap();
        let other = memory.clone();
        assert!(other.reserve(101).is_none() && other.reserve(u64::MAX).is_none());
        let second = other.reserve(100).unwrap();
        assert_eq!(memory.in_use(), 400);
        drop(first);
        drop(second);
        assert_eq!(memory.in_use(), 0);
        // In addition to a piece of half the budget, no more than an eighth short of all.
        memory
            .work(400, || assert!(memory.reserve(301).is_none() && memory.reserve(300).is_some()));
        assert_eq!(memory.in_use(), 0);
    }

    #[test]
    fn slides_share_a_quarter_for_their_tiles() {
        let memory = Memory::new(800);
        let one = memory.slide();
        assert_eq!(one.cache_bytes(), 200);
        let two = memory.slide();
        assert_eq!((one.cache_bytes(), two.cache_bytes()), (100, 100));
        drop(two);
        assert_eq!(one.cache_bytes(), 200);
    }

    #[test]
    fn decoding_waits_for_room_and_one_always_goes() {
        let memory = Memory::new(160);
        let _kept = memory.reserve(40).unwrap();
        let now = AtomicU64::new(0);
        std::thread::scope(|s| {
            for bytes in [60, 60, 40, 1000, 10, 10] {
                let (memory, now) = (&memory, &now);
                s.spawn(move || {
                    memory.work(bytes, || {
                        let n = now.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        assert!(n <= 100 || n == 1000, "{n} at once");
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        now.fetch_sub(bytes, Ordering::SeqCst);
                    });
                });
            }
        });
        assert_eq!(memory.in_use(), 40);
        // What panics gives back what it took.
        let failed = std::panic::catch_unwind(|| memory.work(50, || panic!("on purpose")));
        assert!(failed.is_err() && memory.in_use() == 40);
    }
}
