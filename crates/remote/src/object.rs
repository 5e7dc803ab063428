//! [`Object`]: an opened object, read at any place by several threads.

use crate::blocks::Lookup;
use crate::client::{Client, Miss};
use crate::http::Answer;
use crate::traffic::Traffic;
use crate::{Address, RemoteError};
use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Places at which readers of one object continue.
const STREAMS: usize = 64;

/// Requests and bytes of this process so far.
#[must_use]
pub fn traffic() -> Traffic {
    Client::shared().traffic()
}

/// Blocks of all objects of this process together take no more memory than this from now on.
pub fn allow_memory(bytes: u64) {
    Client::shared().allow_memory(bytes);
}

/// An opened object: what it was when it was opened, it must stay. `Send + Sync`; reads from several
/// threads run at once. Once a read has failed for good, all do: a slide is not made of what half an
/// object still gives.
#[derive(Debug)]
pub struct Object {
    client: Arc<Client>,
    address: Address,
    len: u64,
    etag: Option<String>,
    modified: Option<u64>,
    /// Its name among the blocks.
    number: u64,
    /// Ends of runs of blocks that were fetched lately, with their lengths.
    streams: Mutex<VecDeque<(u64, u64)>>,
    failed: OnceLock<RemoteError>,
}

impl Object {
    /// Asks for its first bytes.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn open(address: &Address) -> Result<Self, RemoteError> {
        Self::open_with(Client::shared(), address)
    }

    /// The same by a client of one's own.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn open_with(client: &Arc<Client>, address: &Address) -> Result<Self, RemoteError> {
        // What was opened before is likely to be here still: then one byte shows whether it is the same.
        let block = client.options.block;
        let n = if client.knows(address) { 1 } else { block };
        client.persist(|| {
            let Answer { len, etag, modified, body, given, .. } =
                client.fetch_range(address, (0, n), None, None)?;
            let word = etag.clone().or_else(|| modified.map(|m| m.to_string()));
            let number = client.number(address, word.as_deref(), len);
            if let Some(mut body) = body {
                let first = some(client, &mut body.as_reader(), n.min(len).min(given))?;
                if first.len() as u64 == block.min(len) {
                    client.blocks.put(number, 0, &first);
                }
            }
            Ok(Self {
                client: Arc::clone(client),
                address: address.clone(),
                len,
                etag,
                modified,
                number,
                streams: Mutex::new(VecDeque::from([(1, 1)])),
                failed: OnceLock::new(),
            })
        })
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.len
    }

    /// The server's word for its content.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// Seconds since 1970 of the last change, as the server states.
    #[must_use]
    pub fn modified(&self) -> Option<u64> {
        self.modified
    }

    /// Why reading failed for good; `None` as long as it has not.
    #[must_use]
    pub fn failure(&self) -> Option<RemoteError> {
        self.failed.get().cloned()
    }

    /// Reads exactly `buf.len()` bytes at `offset`.
    ///
    /// # Errors
    /// [`RemoteError`]; [`RemoteError::Beyond`] spoils nothing, any other is there for good.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), RemoteError> {
        let wanted = buf.len() as u64;
        let end = offset.checked_add(wanted).filter(|end| *end <= self.len);
        let Some(end) = end else {
            return Err(RemoteError::Beyond { offset, wanted, len: self.len });
        };
        let size = self.client.options.block;
        let mut at = offset;
        while at < end {
            let number = at / size;
            let block = self.block(number, (end - 1) / size)?;
            let from = (at - number * size) as usize;
            let n = ((end - at) as usize).min(block.len() - from);
            let to = (at - offset) as usize;
            buf[to..to + n].copy_from_slice(&block[from..from + n]);
            at += n as u64;
        }
        Ok(())
    }

    /// One block, of a read that goes up to block `last`.
    fn block(&self, block: u64, last: u64) -> Result<Arc<[u8]>, RemoteError> {
        loop {
            if let Some(e) = self.failed.get() {
                return Err(e.clone());
            }
            let run = self.run(block, last - block + 1);
            match self.client.blocks.find(self.number, block, run) {
                Lookup::Block(data) => return Ok(data),
                Lookup::Failed => {}
                Lookup::Mine(n) => {
                    self.note_run(block, n);
                    let mut come = 0;
                    let fetched = self.fetch(block, n, &mut come);
                    // Those who wait look at the failure when they are woken without data.
                    if let Err(e) = &fetched {
                        let _ = self.failed.set(e.clone());
                    }
                    self.client.blocks.give_up(self.number, block + come..block + n);
                    return fetched;
                }
            }
        }
    }

    /// How many blocks to ask for: those that are needed, or twice as many as the last time where a
    /// reader continues from there.
    fn run(&self, block: u64, needed: u64) -> u64 {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let before = streams.iter().find(|(end, _)| *end == block).map_or(0, |(_, n)| *n);
        let (size, options) = (self.client.options.block, &self.client.options);
        // One run must not drive out what others need.
        let most = options.ahead.min(self.client.blocks.most() / 8 / size).max(1);
        (2 * before).min(most).max(needed.min(options.ahead)).min(self.len.div_ceil(size) - block)
    }

    /// Notes a run, before it has come: another thread may ask for what follows already.
    fn note_run(&self, block: u64, n: u64) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|(end, _)| *end != block);
        if streams.len() == STREAMS {
            streams.pop_front();
        }
        streams.push_back((block + n, n));
    }

    /// Fetches `n` blocks, hands each on as it comes, and gives the first.
    fn fetch(&self, block: u64, n: u64, come: &mut u64) -> Result<Arc<[u8]>, RemoteError> {
        let size = self.client.options.block;
        let end = ((block + n) * size).min(self.len);
        let mut first = None;
        // What has come of a block that is not whole yet.
        let mut part: Vec<u8> = Vec::new();
        self.client.persist(|| {
            // A server may send fewer bytes than it is asked for; the rest is asked for again.
            while *come < n {
                let from = (block + *come) * size + part.len() as u64;
                let mut answer = self.client.fetch_range(
                    &self.address,
                    (from, end - from),
                    self.etag.as_deref(),
                    Some(self.len),
                )?;
                self.unchanged(&answer)?;
                let Some(body) = &mut answer.body else {
                    return Err(RemoteError::Changed { what: "its length" }.into());
                };
                let mut body = body.as_reader();
                pass_over(&mut body, answer.skip)?;
                let mut given = answer.given.min(end - from);
                while given > 0 {
                    let at = (block + *come) * size;
                    let owed = size.min(end - at) - part.len() as u64;
                    let data = some(&self.client, &mut body, owed.min(given))?;
                    given -= data.len() as u64;
                    part.extend_from_slice(&data);
                    if (data.len() as u64) < owed {
                        continue;
                    }
                    let data: Arc<[u8]> = std::mem::take(&mut part).into();
                    self.client.blocks.put(self.number, block + *come, &data);
                    first.get_or_insert(data);
                    *come += 1;
                }
            }
            Ok(())
        })?;
        first.ok_or_else(|| unreachable!("a run has a block"))
    }

    /// Whether an answer is of the object that was opened.
    fn unchanged(&self, answer: &Answer) -> Result<(), RemoteError> {
        let changed = |what| Err(RemoteError::Changed { what });
        if answer.len != self.len {
            changed("its length")
        } else if answer.etag != self.etag {
            changed("its ETag")
        } else if answer.modified != self.modified && self.etag.is_none() {
            changed("its time of change")
        } else {
            Ok(())
        }
    }
}

/// So many bytes of a body, or another attempt.
fn some(client: &Client, body: &mut impl Read, n: u64) -> Result<Arc<[u8]>, Miss> {
    let mut data = vec![0; n as usize];
    body.read_exact(&mut data).map_err(|e| broken_off(&e))?;
    client.count(0, n);
    Ok(data.into())
}

/// Reads over bytes that were not asked for.
fn pass_over(body: &mut impl Read, n: u64) -> Result<(), Miss> {
    let passed = std::io::copy(&mut body.take(n), &mut std::io::sink());
    match passed {
        Ok(passed) if passed == n => Ok(()),
        Ok(_) => Err(broken_off(&std::io::ErrorKind::UnexpectedEof.into())),
        Err(e) => Err(broken_off(&e)),
    }
}

fn broken_off(e: &std::io::Error) -> Miss {
    let slow = e.kind() == std::io::ErrorKind::TimedOut;
    let reason = if slow { "the answer did not come in time" } else { "the answer was cut short" };
    Miss::Again(reason.to_owned(), None)
}
