//! Images that can only be decoded whole (strips, flat images): decoded once, kept in memory within
//! a share of the budget, in a temporary file beyond it.

use crate::cache::Key;
use crate::limits::{Fault, Limits, check};
use mitosis::RgbTile;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// Decoded pixels, row by row.
pub(crate) enum Piece {
    Memory(Arc<RgbTile>),
    File { file: Arc<File>, at: u64, width: usize, height: usize },
}

impl Piece {
    pub(crate) fn size(&self) -> (usize, usize) {
        match self {
            Self::Memory(tile) => (tile.width, tile.height),
            Self::File { width, height, .. } => (*width, *height),
        }
    }

    /// Copies the pixels of row `y` from column `x` on.
    pub(crate) fn copy(&self, x: usize, y: usize, out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Memory(tile) => {
                let from = 3 * (y * tile.width + x);
                out.copy_from_slice(&tile.data[from..from + out.len()]);
                Ok(())
            }
            Self::File { file, at, width, .. } => {
                let from = at + 3 * (y as u64 * *width as u64 + x as u64);
                crate::tiff::read_at(file, out, from).map_err(|e| format!("temporary file: {e}"))
            }
        }
    }
}

type Once = Arc<OnceLock<Result<Arc<Piece>, Fault>>>;

/// The pieces of one slide.
pub(crate) struct Scratch {
    pieces: Mutex<HashMap<Key, Once>>,
    /// Memory still to be had, bytes.
    memory: AtomicU64,
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
            crate::tiff::write_at(file, held, *at)?;
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
            memory: AtomicU64::new(limits.share()),
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
        let take = |left: u64| left.checked_sub(bytes);
        let fits = self.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if fits {
            // A file that lies about its size gets memory for what it holds.
            let store = Store::Memory(Vec::with_capacity(bytes.min(CHUNK as u64) as usize));
            let mut rows = Rows { store, width, height, done: 0 };
            let filled = fill(&mut rows).and_then(|()| whole(&rows));
            let Store::Memory(data) = rows.store else { unreachable!("rows in memory stay there") };
            if let Err(e) = filled {
                self.memory.fetch_add(bytes, Ordering::Relaxed);
                return Err(e);
            }
            return Ok(Arc::new(Piece::Memory(Arc::new(RgbTile { width, height, data }))));
        }
        let told = |e: String| {
            Fault::Damaged(format!(
                "{bytes} bytes of pixels do not fit into the memory allowed, and a temporary file in \
                 {} cannot take them: {e}",
                std::env::temp_dir().display()
            ))
        };
        let make = || tempfile::tempfile().map(Arc::new).map_err(|e| e.to_string());
        let file = self.file.get_or_init(make).clone().map_err(told)?;
        let at = self.end.fetch_add(bytes, Ordering::Relaxed);
        let store = Store::File { file: Arc::clone(&file), held: Vec::new(), at };
        let mut rows = Rows { store, width, height, done: 0 };
        fill(&mut rows)?;
        whole(&rows)?;
        rows.store.flush().map_err(|e| told(e.to_string()))?;
        Ok(Arc::new(Piece::File { file, at, width, height }))
    }
}

fn whole(rows: &Rows) -> Result<(), Fault> {
    if rows.done == rows.height {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{} of {} rows", rows.done, rows.height)))
}

/// Lets so many bytes be decoded at once, and always one piece.
pub(crate) struct Gate {
    most: u64,
    now: Mutex<u64>,
    left: Condvar,
}

impl Gate {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, now: Mutex::new(0), left: Condvar::new() }
    }

    /// Runs `work`, which needs `bytes`, when there is room.
    pub(crate) fn pass<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        /// Leaves however `work` ends.
        struct Inside<'a>(&'a Gate, u64);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                *self.0.now.lock().unwrap_or_else(PoisonError::into_inner) -= self.1;
                self.0.left.notify_all();
            }
        }
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        while *now > 0 && *now + bytes > self.most {
            now = self.left.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        *now += bytes;
        drop(now);
        let _inside = Inside(self, bytes);
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn scratch(memory: u64, decoded: u64) -> Scratch {
        Scratch::new(&Limits { memory, decoded, ..Limits::default() })
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
        // A quarter of the budget holds the first piece, not the second.
        let s = scratch(4 * 300, 1 << 20);
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

    #[test]
    fn the_gate_lets_one_in_and_no_more_than_fit() {
        let gate = Gate::new(100);
        let now = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for bytes in [60, 60, 40, 1000, 10, 10] {
                let (gate, now) = (&gate, &now);
                s.spawn(move || {
                    gate.pass(bytes, || {
                        let n = now.fetch_add(bytes as usize, Ordering::SeqCst) + bytes as usize;
                        assert!(n <= 100 || n == 1000, "{n} at once");
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        now.fetch_sub(bytes as usize, Ordering::SeqCst);
                    });
                });
            }
        });
    }
}
