//! Blocks of objects in memory: the last used ones of all objects, within one budget, each fetched by one
//! thread while the others that need it wait.

use lru::LruCache;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Object and number of the block in it.
type Key = (u64, u64);

pub(crate) struct Blocks {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    kept: LruCache<Key, Arc<[u8]>>,
    bytes: u64,
    most: u64,
    /// On their way.
    flying: HashSet<Key>,
}

/// What became of a question for a block.
pub(crate) enum Lookup {
    /// It is here.
    Block(Arc<[u8]>),
    /// The caller fetches it, and so many blocks in all from it on.
    Mine(u64),
    /// Another thread was to fetch it and did not.
    Failed,
}

impl State {
    fn shrink(&mut self) {
        while self.bytes > self.most {
            let Some((_, block)) = self.kept.pop_lru() else { break };
            self.bytes -= block.len() as u64;
        }
    }
}

impl Blocks {
    pub(crate) fn new(most: u64) -> Self {
        let (kept, flying) = (LruCache::unbounded(), HashSet::new());
        Self { state: Mutex::new(State { kept, bytes: 0, most, flying }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps no more than this from now on.
    pub(crate) fn allow(&self, most: u64) {
        let mut state = self.state();
        state.most = most;
        state.shrink();
    }

    /// Bytes that may be kept.
    pub(crate) fn most(&self) -> u64 {
        self.state().most
    }

    /// Looks for a block, waits for one on its way, or has the caller fetch it with up to `n - 1` blocks
    /// behind it that are not here either.
    pub(crate) fn find(&self, object: u64, block: u64, n: u64) -> Lookup {
        let mut state = self.state();
        let mut waited = false;
        loop {
            if let Some(block) = state.kept.get(&(object, block)) {
                return Lookup::Block(Arc::clone(block));
            }
            if !state.flying.contains(&(object, block)) {
                break;
            }
            waited = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if waited {
            return Lookup::Failed;
        }
        let missing =
            |b: &u64| !state.kept.contains(&(object, *b)) && !state.flying.contains(&(object, *b));
        let mine = (block..block + n).take_while(missing).count() as u64;
        state.flying.extend((block..block + mine).map(|b| (object, b)));
        Lookup::Mine(mine)
    }

    /// A block has come.
    pub(crate) fn put(&self, object: u64, block: u64, data: &Arc<[u8]>) {
        let mut state = self.state();
        state.flying.remove(&(object, block));
        if let Some(old) = state.kept.put((object, block), Arc::clone(data)) {
            state.bytes -= old.len() as u64;
        }
        state.bytes += data.len() as u64;
        state.shrink();
        drop(state);
        self.changed.notify_all();
    }

    /// These will not come.
    pub(crate) fn give_up(&self, object: u64, blocks: std::ops::Range<u64>) {
        let mut state = self.state();
        blocks.for_each(|b| {
            state.flying.remove(&(object, b));
        });
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_stay_within_the_budget() {
        let blocks = Blocks::new(30);
        let data: Arc<[u8]> = Arc::from([1u8; 10]);
        for b in 0..4 {
            assert!(matches!(blocks.find(1, b, 1), Lookup::Mine(1)));
            blocks.put(1, b, &data);
            assert!(matches!(blocks.find(1, 0, 1), Lookup::Block(_)), "0 is used again and again");
        }
        assert!(matches!(blocks.find(1, 1, 1), Lookup::Mine(1)));
        blocks.give_up(1, 1..2);
        assert!(matches!(blocks.find(2, 0, 1), Lookup::Mine(1)), "of another object");
        blocks.allow(0);
        assert!(matches!(blocks.find(1, 0, 9), Lookup::Mine(9)));
        // What was claimed by somebody is not claimed again.
        assert!(matches!(blocks.find(1, 9, 3), Lookup::Mine(3)));
        blocks.give_up(1, 0..9);
        assert!(matches!(blocks.find(1, 7, 9), Lookup::Mine(2)));
    }
}
