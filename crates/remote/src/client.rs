//! What all objects share: settings, connections, blocks, credentials, counts; and when to ask again.

use crate::blocks::Blocks;
use crate::credentials::S3;
use crate::traffic::Traffic;
use crate::{Address, RemoteError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest pause between two attempts, whatever the server wishes.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often a request is tried in all.
    pub attempts: u32,
    /// Pause before the second attempt; each further one is twice as long.
    pub pause: Duration,
    /// For a connection to be there.
    pub connect: Duration,
    /// For the answer to begin.
    pub answer: Duration,
    /// For the bytes of one answer.
    pub body: Duration,
    /// Bytes of a block.
    pub block: u64,
    /// Blocks that one request asks for at most, where a reader reads on in order.
    pub ahead: u64,
    /// Bytes of blocks that are kept.
    pub memory: u64,
    /// How S3 servers are asked; `None`: by the environment.
    pub s3: Option<S3>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            attempts: 6,
            pause: Duration::from_millis(250),
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            body: Duration::from_secs(60),
            block: 256 << 10,
            ahead: 16,
            memory: 64 << 20,
            s3: None,
        }
    }
}

/// What all objects of a process share. There is usually one: [`Client::shared`].
#[derive(Debug)]
pub struct Client {
    pub(crate) options: Options,
    pub(crate) blocks: Blocks,
    /// Without and with the certificates of this machine, which take a while to read.
    pub(crate) agents: [OnceLock<ureq::Agent>; 2],
    s3: OnceLock<Result<S3, RemoteError>>,
    /// Regions of buckets as their servers answered.
    pub(crate) regions: Mutex<HashMap<String, String>>,
    /// Objects seen so far, by address and content.
    objects: Mutex<HashMap<(String, String, u64), u64>>,
    next: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocks")
    }
}

/// One attempt that gave nothing.
#[derive(Debug)]
pub(crate) enum Miss {
    /// The next one may; the server may have stated when.
    Again(String, Option<Duration>),
    /// No other will.
    Over(RemoteError),
}

impl From<RemoteError> for Miss {
    fn from(e: RemoteError) -> Self {
        Self::Over(e)
    }
}

impl Client {
    /// A client of its own.
    #[must_use]
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            blocks: Blocks::new(options.memory),
            options,
            agents: [const { OnceLock::new() }; 2],
            s3: OnceLock::new(),
            regions: Mutex::default(),
            objects: Mutex::default(),
            next: AtomicU64::new(1),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// The one that [`crate::Object::open`] asks.
    pub fn shared() -> &'static Arc<Self> {
        static SHARED: OnceLock<Arc<Client>> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(Options::default()))
    }

    /// Requests and bytes so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let value = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Traffic { requests: value(&self.requests), bytes: value(&self.bytes) }
    }

    /// Keeps no more bytes of blocks than this from now on.
    pub fn allow_memory(&self, bytes: u64) {
        self.blocks.allow(bytes);
    }

    pub(crate) fn count(&self, requests: u64, bytes: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn s3(&self) -> Result<&S3, RemoteError> {
        let read = || self.options.s3.clone().map_or_else(S3::from_environment, Ok);
        self.s3.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Whether an object of this address was opened before.
    pub(crate) fn knows(&self, address: &Address) -> bool {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let text = address.to_string();
        objects.keys().any(|(known, ..)| *known == text)
    }

    /// The number under which blocks of this content are kept. Where the server gives no word for the
    /// content, nothing that was kept earlier is trusted.
    pub(crate) fn number(&self, address: &Address, word: Option<&str>, len: u64) -> u64 {
        let fresh = || self.next.fetch_add(1, Ordering::Relaxed);
        let Some(word) = word else { return fresh() };
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        *objects.entry((address.to_string(), word.to_owned(), len)).or_insert_with(fresh)
    }

    /// Tries until it works, cannot, or was tried often enough.
    pub(crate) fn persist<T>(
        &self,
        mut once: impl FnMut() -> Result<T, Miss>,
    ) -> Result<T, RemoteError> {
        let most = self.options.attempts.max(1);
        let mut pause = self.options.pause;
        for attempt in 1.. {
            match once() {
                Ok(done) => return Ok(done),
                Err(Miss::Over(e)) => return Err(e),
                Err(Miss::Again(reason, _)) if attempt == most => {
                    return Err(RemoteError::Unreachable { attempts: attempt, reason });
                }
                Err(Miss::Again(_, wish)) => {
                    // Many readers that failed at once must not come back at once.
                    let spread = pause.mul_f64(0.5 + f64::from(nanos() % 1024) / 1024.0);
                    std::thread::sleep(wish.unwrap_or(spread).min(LONGEST_PAUSE));
                    pause *= 2;
                }
            }
        }
        unreachable!("attempts are counted")
    }
}

fn nanos() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.subsec_nanos())
}
