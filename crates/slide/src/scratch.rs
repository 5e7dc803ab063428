//! Images that can only be decoded whole (strips, flat images): decoded once, kept in memory within
//! the budget, in a temporary file beyond it.

use crate::cache::Key;
use crate::limits::{Fault, Limits, check};
use crate::memory::{Kept, Memory};
use mitosis::RgbTile;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Decoded pixels, row by row.
pub(crate) enum Piece {
    Memory(Arc<RgbTile>, #[expect(dead_code, reason = "held for its drop")] Option<Kept>),
    File { file: Arc<File>, at: u64, width: usize, height: usize },
}

impl Piece {
    pub(crate) fn size(&self) -> (usize, usize) {
        match self {
            Self::Memory(tile, _) => (tile.width, tile.height),
            Self::File { width, height, .. } => (*width, *height),
        }
    }

    /// Copies the pixels of row `y` from column `x` on.
    pub(crate) fn copy(&self, x: usize, y: usize, out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Memory(tile, _) => {
                let from = 3 * (y * tile.width + x);
                out.copy_from_slice(&tile.data[from..from + out.len()]);
                Ok(())
            }
            Self::File { file, at, width, .. } => {
                let from = at + 3 * (y as u64 * *width as u64 + x as u64);
                crate::positioned::read_at(file, out, from)
                    .map_err(|e| format!("temporary file: {e}"))
            }
        }
    }
}

type Once = Arc<OnceLock<Result<Arc<Piece>, Fault>>>;

/// The pieces of one slide.
pub(crate) struct Scratch {
    pieces: Mutex<HashMap<Key, Once>>,
    memory: Memory,
    /// Bytes decoded so far.
    decoded: AtomicU64,
    limit: u64,
    /// Made when it is first needed. It has no name: it is gone with the process, however that ends.
    file: OnceLock<Result<Arc<File>, String>>,
    /// Where the next piece goes.
    end: AtomicU64,
}

/// Takes the rows of one piece.
pub(crate) struct Rows {
    store: Store,
    width: usize,
    height: usize,
    done: usize,
}

enum Store {
    Memory(Vec<u8>),
    /// Rows not yet written, and the place of the first of them.
    File {
        file: Arc<File>,
        held: Vec<u8>,
        at: u64,
    },
}

/// Bytes written to the temporary file at once.
const CHUNK: usize = 1 << 20;

impl Store {
    fn flush(&mut self) -> io::Result<()> {
        if let Self::File { file, held, at } = self {
            crate::positioned::write_at(file, held, *at)?;
            *at += held.len() as u64;
            held.clear();
        }
        Ok(())
    }
}

impl Rows {
    pub(crate) fn push(&mut self, row: &[u8]) -> Result<(), String> {
        if row.len() != 3 * self.width || self.done == self.height {
            return Err(format!("row {} of {} bytes is one too many", self.done, row.len()));
        }
        self.done += 1;
        match &mut self.store {
            Store::Memory(data) => data.extend_from_slice(row),
            Store::File { held, .. } => {
                held.extend_from_slice(row);
                if held.len() >= CHUNK {
                    self.store.flush().map_err(|e| format!("temporary file: {e}"))?;
                }
            }
        }
        Ok(())
    }
}

impl Scratch {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            pieces: Mutex::default(),
            memory: limits.memory.clone(),
            decoded: AtomicU64::new(0),
            limit: limits.decoded,
            file: OnceLock::new(),
            end: AtomicU64::new(0),
        }
    }

    /// The piece of `key`, `width x height` pixels, decoded by `fill` when it is first asked for.
    pub(crate) fn piece(
        &self,
        key: Key,
        (width, height): (usize, usize),
        fill: impl FnOnce(&mut Rows) -> Result<(), Fault>,
    ) -> Result<Arc<Piece>, Fault> {
        let once = {
            let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(pieces.entry(key).or_default())
        };
        once.get_or_init(|| self.decode((width, height), fill)).clone()
    }

    fn decode(
        &self,
        (width, height): (usize, usize),
        fill: impl FnOnce(&mut Rows) -> Result<(), Fault>,
    ) -> Result<Arc<Piece>, Fault> {
        let bytes = 3 * width as u64 * height as u64;
        let all = self.decoded.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        check("decoded", self.limit, all.into(), || {
            "strips and flat images that are decoded whole".into()
        })?;
        if let Some(kept) = self.memory.reserve(bytes) {
            // A file that is about its size gets memory for what it holds.
            let store = Store::Memory(Vec::with_capacity(bytes.min(CHUNK as u64) as usize));
            let mut rows = Rows { store, width, height, done: 0 };
            fill(&mut rows)?;
            whole(&rows)?;
            let Store::Memory(data) = rows.store else { unreachable!("rows in memory stay there") };
            let tile = Arc::new(RgbTile { width, height, data });
            return Ok(Arc::new(Piece::Memory(tile, Some(kept))));
        }
        let failure = |e: String| {
            Fault::Damaged(format!(
                "{bytes} bytes of pixels do not fit into the memory allowed, and a temporary file in \
                 {} cannot take them: {e}",
                std::env::temp_dir().display()
            ))
        };
        let make = || tempfile::tempfile().map(Arc::new).map_err(|e| e.to_string());
        let file = self.file.get_or_init(make).clone().map_err(failure)?;
        let at = self.end.fetch_add(bytes, Ordering::Relaxed);
        let store = Store::File { file: Arc::clone(&file), held: Vec::new(), at };
        let mut rows = Rows { store, width, height, done: 0 };
        fill(&mut rows)?;
        whole(&rows)?;
        rows.store.flush().map_err(|e| failure(e.to_string()))?;
        Ok(Arc::new(Piece::File { file, at, width, height }))
    }
}

fn whole(rows: &Rows) -> Result<(), Fault> {
    if rows.done == rows.height {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{} of {} rows", rows.done, rows.height)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn scratch(memory: u64, decoded: u64) -> Scratch {
        Scratch::new(&Limits { memory: Memory::new(memory), decoded, ..Limits::default() })
    }

    fn rows(value: u8, width: usize, height: usize) -> impl Fn(&mut Rows) -> Result<(), Fault> {
        move |out| {
            (0..height)
                .try_for_each(|y| out.push(&vec![value + y as u8; 3 * width]))
                .map_err(Fault::from)
        }
    }

    #[test]
    fn decoded_once_in_memory_or_in_a_file() {
        // Half of the budget holds the first piece, not the second.
        let s = scratch(3 * 300, 1 << 20);
        let calls = AtomicUsize::new(0);
        for _ in 0..3 {
            for (k, value) in [(0u32, 10u8), (1, 50)] {
                let piece = s
                    .piece((0, k, 0), (10, 10), |out| {
                        calls.fetch_add(1, Ordering::Relaxed);
                        rows(value, 10, 10)(out)
                    })
                    .unwrap();
                assert_eq!(matches!(*piece, Piece::File { .. }), k == 1);
                let mut out = [0; 9];
                piece.copy(7, 9, &mut out).unwrap();
                assert_eq!((out, piece.size()), ([value + 9; 9], (10, 10)));
            }
        }
        assert_eq!(calls.into_inner(), 2);
    }

    #[test]
    fn limits_and_short_pieces_are_errors() {
        let s = scratch(1 << 20, 500);
        s.piece((0, 0, 0), (10, 10), rows(1, 10, 10)).unwrap();
        let Err(Fault::Limit(b)) = s.piece((0, 1, 0), (10, 10), rows(1, 10, 10)) else { panic!() };
        assert_eq!((b.name, b.needed, b.allowed), ("decoded", 600, 500));
        let s = scratch(1 << 20, 1 << 20);
        for (w, h) in [(10, 9), (9, 10), (10, 11)] {
            assert!(s.piece((0, 0, w as u32 + 20 * h as u32), (10, 10), rows(1, w, h)).is_err());
        }
    }
}
