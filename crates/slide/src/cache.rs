//! Decoded tiles within the budget of memory, least recently used first out.

use crate::memory::{Kept, OpenSlide};
use lru::LruCache;
use mitosis::RgbTile;
use std::sync::{Arc, Mutex, PoisonError};

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
            slide,
            most: most as u64,
        }
    }

    /// Bytes that may be kept now; fewer the more slides are open.
    pub(crate) fn capacity(&self) -> usize {
        self.slide.cache_bytes().min(self.most) as usize
    }

    fn shard(&self, (level, column, row): Key) -> std::sync::MutexGuard<'_, Shard> {
        // 4 x 4 neighbourhoods spread over all shards, so that a row of windows does not crowd one.
        let i = (column as usize % 4) * 4 + (row as usize + level as usize) % 4;
        self.shards[i].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<RgbTile>> {
        self.shard(key).tiles.get(&key).map(|(tile, _)| Arc::clone(tile))
    }

    /// Keeps a tile where there is memory for it; one larger than a shard's share is not kept.
    pub(crate) fn put(&self, key: Key, tile: &Arc<RgbTile>) {
        let size = tile.data.len();
        let per_shard = self.capacity() / SHARDS;
        let mut shard = self.shard(key);
        if let Some((old, _)) = shard.tiles.pop(&key) {
            shard.bytes -= old.data.len();
        }
        while shard.bytes + size > per_shard {
            let Some((_, (old, _))) = shard.tiles.pop_lru() else { break };
            shard.bytes -= old.data.len();
        }
        if size <= per_shard
            && let Some(kept) = self.slide.memory().keep(size as u64)
        {
            shard.bytes += size;
            shard.tiles.put(key, (Arc::clone(tile), kept));
        }
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.shards.iter().map(|s| s.lock().unwrap().bytes).sum()
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
    fn a_tile_larger_than_its_share_is_not_kept() {
        let cache = cache(100);
        cache.put((0, 0, 0), &tile(1));
        assert_eq!(cache.bytes(), 0);
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
        let all = memory.keep((1 << 19) - 192).unwrap();
        cache.put((0, 1, 0), &tile(1));
        assert!(cache.get((0, 1, 0)).is_none() && cache.get((0, 0, 0)).is_some());
        drop(all);
        cache.put((0, 1, 0), &tile(1));
        assert!(cache.get((0, 1, 0)).is_some());
        drop(cache);
        assert_eq!(memory.in_use(), 0);
    }
}
