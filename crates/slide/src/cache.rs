//! Decoded tiles within the budget of memory, least recently used first out.

use crate::memory::{Kept, OpenSlide};
use lru::LruCache;
use mitosis::RgbTile;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `(level, column, row)`.
pub(crate) type Key = (u32, u32, u32);

const SHARDS: usize = 16;

struct Shard {
    tiles: LruCache<Key, (Arc<RgbTile>, Kept)>,
    bytes: usize,
}

/// A cache shared by threads; neighbouring tiles fall into different shards.
pub(crate) struct TileCache {
    shards: Vec<Mutex<Shard>>,
    /// Tiles larger than a shard's share, within the whole capacity.
    large: Mutex<Shard>,
    /// Large tiles that are being decoded.
    turns: Mutex<HashMap<Key, Arc<Mutex<()>>>>,
    /// Whether any large tile was kept so far.
    seen_large: std::sync::atomic::AtomicBool,
    /// The slide's place among those that share the memory.
    slide: OpenSlide,
    /// What is kept at most, however much memory there is.
    most: u64,
}

impl TileCache {
    pub(crate) fn new(slide: OpenSlide, most: usize) -> Self {
        let shard = || Mutex::new(Shard { tiles: LruCache::unbounded(), bytes: 0 });
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            large: shard(),
            turns: Mutex::default(),
            seen_large: std::sync::atomic::AtomicBool::new(false),
            slide,
            most: most as u64,
        }
    }

    /// Bytes that may be kept now; fewer the more slides are open.
    pub(crate) fn capacity(&self) -> usize {
        self.slide.cache_bytes().min(self.most) as usize
    }

    fn shard(&self, (level, column, row): Key) -> MutexGuard<'_, Shard> {
        // 4 x 4 neighbourhoods spread over all shards, so that a row of windows does not crowd one.
        let i = (column as usize % 4) * 4 + (row as usize + level as usize) % 4;
        self.shards[i].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<RgbTile>> {
        let take = |mut shard: MutexGuard<'_, Shard>| {
            shard.tiles.get(&key).map(|(tile, _)| Arc::clone(tile))
        };
        take(self.shard(key)).or_else(|| if self.has_large() { take(self.large()) } else { None })
    }

    /// Makes a tile that is kept the first to make room.
    pub(crate) fn demote(&self, key: Key) {
        self.shard(key).tiles.demote(&key);
        if self.has_large() {
            self.large().tiles.demote(&key);
        }
    }

    /// Keeps a tile where there is memory for it. One larger than a shard's share is kept with the
    /// others of its size, as long as they fit into the whole capacity.
    pub(crate) fn put(&self, key: Key, tile: &Arc<RgbTile>) {
        let size = tile.data.len();
        let capacity = self.capacity();
        let is_large = size > capacity / SHARDS;
        let (mut shard, most) = match is_large {
            true => (self.large(), capacity),
            false => (self.shard(key), capacity / SHARDS),
        };
        if let Some((old, _)) = shard.tiles.pop(&key) {
            shard.bytes -= old.data.len();
        }
        while shard.bytes + size > most {
            let Some((_, (old, _))) = shard.tiles.pop_lru() else { break };
            shard.bytes -= old.data.len();
        }
        if size > most {
            return;
        }
        // Other tiles of this slide make room where the memory is full.
        let kept = loop {
            match self.slide.memory().reserve(size as u64) {
                Some(kept) => break kept,
                None if !is_large => return,
                None => {
                    let Some((_, (old, _))) = shard.tiles.pop_lru() else { return };
                    shard.bytes -= old.data.len();
                }
            }
        };
        shard.bytes += size;
        shard.tiles.put(key, (Arc::clone(tile), kept));
        if is_large {
            self.seen_large.store(true, std::sync::atomic::Ordering::Release);
        }
    }

    /// The turn of the thread that decodes a tile of such a level, so that several threads that want one large
    /// tile decode it once; `None` for small ones, which cost less than waiting.
    pub(crate) fn turn(&self, key: Key, bytes: u64) -> Option<Arc<Mutex<()>>> {
        if bytes <= (self.capacity() / SHARDS) as u64 {
            return None;
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Turns that nobody holds any more go.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Some(Arc::clone(turns.entry(key).or_default()))
    }

    fn large(&self) -> MutexGuard<'_, Shard> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_large(&self) -> bool {
        self.seen_large.load(std::sync::atomic::Ordering::Acquire)
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let shards = self.shards.iter().chain([&self.large]);
        shards.map(|s| s.lock().unwrap().bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    fn cache(most: usize) -> TileCache {
        TileCache::new(Memory::new(1 << 20).slide(), most)
    }

    fn tile(v: u8) -> Arc<RgbTile> {
        Arc::new(RgbTile::filled(8, 8, [v; 3]))
    }

    #[test]
    fn stays_within_its_budget_and_forgets_the_oldest() {
        let one = 8 * 8 * 3;
        let cache = cache(SHARDS * one * 2);
        for row in 0..100 {
            cache.put((0, 0, row * 4), &tile(row as u8));
        }
        assert_eq!(cache.bytes(), 2 * one);
        assert!(cache.get((0, 0, 0)).is_none());
        assert_eq!(cache.get((0, 0, 99 * 4)).unwrap().data[0], 99);
        cache.get((0, 0, 98 * 4)).unwrap();
        cache.put((0, 0, 400), &tile(1));
        assert!(cache.get((0, 0, 98 * 4)).is_some(), "recently used stays");
        assert!(cache.get((0, 0, 99 * 4)).is_none());
    }

    #[test]
    fn large_tiles_are_kept_within_the_whole_capacity() {
        let cache = cache(3 * 192);
        for column in 0..4 {
            cache.put((0, column, 0), &tile(column as u8));
        }
        assert_eq!(cache.bytes(), 3 * 192);
        assert!(cache.get((0, 0, 0)).is_none());
        assert_eq!(cache.get((0, 3, 0)).unwrap().data[0], 3);
        assert!(cache.turn((0, 0, 0), 192).is_some() && cache.turn((0, 0, 0), 10).is_none());
    }

    #[test]
    fn a_tile_larger_than_the_capacity_is_not_kept() {
        let cache = cache(100);
        cache.put((0, 0, 0), &tile(1));
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn what_is_passed_makes_room_first() {
        // Tiles of one shard, which has room for three.
        let cache = cache(SHARDS * 3 * 192);
        for row in [0, 4, 8] {
            cache.put((0, 0, row), &tile(1));
        }
        cache.demote((0, 0, 8));
        cache.demote((0, 9, 9));
        cache.put((0, 0, 12), &tile(1));
        let kept = [0, 4, 8, 12].map(|row| cache.get((0, 0, row)).is_some());
        assert_eq!(kept, [true, true, false, true]);
    }

    #[test]
    fn putting_twice_counts_once() {
        let cache = cache(1 << 20);
        cache.put((0, 1, 1), &tile(1));
        cache.put((0, 1, 1), &tile(2));
        assert_eq!(cache.bytes(), 8 * 8 * 3);
    }

    #[test]
    fn a_full_memory_keeps_nothing_and_tiles_give_theirs_back() {
        let memory = Memory::new(1 << 20);
        let cache = TileCache::new(memory.slide(), 1 << 20);
        cache.put((0, 0, 0), &tile(1));
        assert_eq!((cache.bytes(), memory.in_use()), (192, 192));
        let all = memory.reserve((1 << 19) - 192).unwrap();
        cache.put((0, 1, 0), &tile(1));
        assert!(cache.get((0, 1, 0)).is_none() && cache.get((0, 0, 0)).is_some());
        drop(all);
        cache.put((0, 1, 0), &tile(1));
        assert!(cache.get((0, 1, 0)).is_some());
        drop(cache);
        assert_eq!(memory.in_use(), 0);
    }
}
