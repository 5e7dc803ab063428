//! Decoded tiles within a byte budget, least recently used first out.

use lru::LruCache;
use mitosis::RgbTile;
use std::sync::{Arc, Mutex, PoisonError};

/// `(level, column, row)`.
pub(crate) type Key = (u32, u32, u32);

const SHARDS: usize = 16;

struct Shard {
    tiles: LruCache<Key, Arc<RgbTile>>,
    bytes: usize,
}

/// A cache shared by threads; neighbouring tiles fall into different shards.
pub(crate) struct TileCache {
    shards: Vec<Mutex<Shard>>,
    per_shard: usize,
}

impl TileCache {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        let shard = || Mutex::new(Shard { tiles: LruCache::unbounded(), bytes: 0 });
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            per_shard: budget_bytes / SHARDS,
        }
    }

    fn shard(&self, (level, column, row): Key) -> std::sync::MutexGuard<'_, Shard> {
        // 4 x 4 neighbourhoods spread over all shards, so that a row of windows does not crowd one.
        let i = (column as usize % 4) * 4 + (row as usize + level as usize) % 4;
        self.shards[i].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<RgbTile>> {
        self.shard(key).tiles.get(&key).cloned()
    }

    /// Keeps a tile; one larger than a shard's share is not kept.
    pub(crate) fn put(&self, key: Key, tile: &Arc<RgbTile>) {
        let size = tile.data.len();
        if size > self.per_shard {
            return;
        }
        let mut shard = self.shard(key);
        if let Some(old) = shard.tiles.put(key, Arc::clone(tile)) {
            shard.bytes -= old.data.len();
        }
        shard.bytes += size;
        while shard.bytes > self.per_shard {
            let Some((_, old)) = shard.tiles.pop_lru() else { break };
            shard.bytes -= old.data.len();
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

    fn tile(v: u8) -> Arc<RgbTile> {
        Arc::new(RgbTile::filled(8, 8, [v; 3]))
    }

    #[test]
    fn stays_within_its_budget_and_forgets_the_oldest() {
        let one = 8 * 8 * 3;
        let cache = TileCache::new(SHARDS * one * 2);
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
        let cache = TileCache::new(100);
        cache.put((0, 0, 0), &tile(1));
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn putting_twice_counts_once() {
        let cache = TileCache::new(1 << 20);
        cache.put((0, 1, 1), &tile(1));
        cache.put((0, 1, 1), &tile(2));
        assert_eq!(cache.bytes(), 8 * 8 * 3);
    }
}
