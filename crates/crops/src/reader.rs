//! Opens, verifies and streams a corpus.

use crate::error::{CorpusError, Result};
use crate::manifest::{Counts, Manifest, Tally};
use crate::schema::Crop;
use crate::shard::{Columns, Shard};
use base::digest::sha256_file;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// An immutable corpus on disk.
#[derive(Clone, Debug)]
pub struct Corpus {
    dir: PathBuf,
    manifest: Manifest,
}

impl Corpus {
    /// Reads the manifest and checks that every shard is there with its recorded size.
    /// [`Self::verify`] reads everything.
    ///
    /// # Errors
    /// When the manifest is unusable, or a shard is missing or was cut short.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let manifest = Manifest::read(dir)?;
        for s in &manifest.shards {
            let path = dir.join(&s.file);
            let found = std::fs::metadata(&path).map_err(CorpusError::io(&path))?.len();
            if found != s.bytes {
                return Err(CorpusError::Mismatch {
                    path,
                    what: "size",
                    found: format!("{found} bytes"),
                    expected: format!("{} bytes", s.bytes),
                });
            }
        }
        Ok(Self { dir: dir.into(), manifest })
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// As it was read when the corpus was opened.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Number of crops.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.manifest.counts.crops
    }

    /// Whether it holds no crop.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens every shard, in order.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn shards(&self) -> Result<Vec<Shard>> {
        self.manifest.shards.iter().map(|s| Shard::open(&self.dir.join(&s.file))).collect()
    }

    /// All crops in corpus order.
    ///
    /// # Errors
    /// When a shard cannot be opened; each item carries its own reading error.
    pub fn crops(&self, columns: Columns) -> Result<impl Iterator<Item = Result<Crop>>> {
        let shards = self.shards()?;
        let groups: Vec<(usize, usize)> = shards
            .iter()
            .enumerate()
            .flat_map(|(s, shard)| (0..shard.groups()).map(move |g| (s, g)))
            .collect();
        Ok(groups.into_iter().flat_map(move |(s, g)| match shards[s].read(g, columns) {
            Ok(crops) => crops.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(e) => vec![Err(e)],
        }))
    }

    /// Reads every byte: file checksums, every crop's digest, the corpus digest and all counts.
    ///
    /// # Errors
    /// The first difference, with its file.
    pub fn verify(&self) -> Result<()> {
        let mut tally = Tally::default();
        for entry in &self.manifest.shards {
            let path = self.dir.join(&entry.file);
            let differ = |what, found: String, expected: String| {
                let path = path.clone();
                if found == expected {
                    Ok(())
                } else {
                    Err(CorpusError::Mismatch { path, what, found, expected })
                }
            };
            let (_, sha256) = sha256_file(&path).map_err(|e| CorpusError::io(&e.path)(e.source))?;
            differ("SHA-256", sha256, entry.sha256.clone())?;
            let shard = Shard::open(&path)?;
            differ("crop count", shard.rows().to_string(), entry.crops.to_string())?;
            for group in 0..shard.groups() {
                let digests = shard.digests(group)?;
                for (crop, digest) in shard.read(group, Columns::All)?.iter().zip(&digests) {
                    if crop.digest() != *digest {
                        return Err(CorpusError::Crop {
                            crop: crop.meta.path.clone(),
                            reason: format!(
                                "its digest differs from the record in {}",
                                path.display()
                            ),
                        });
                    }
                    tally.add(&crop.meta, digest);
                }
            }
        }
        let names = tally.slide_names();
        let (digest, counts) = tally.finish();
        let path = self.dir.join(crate::manifest::MANIFEST);
        if digest != self.manifest.digest {
            let expected = self.manifest.digest.clone();
            return Err(CorpusError::Mismatch {
                path,
                what: "corpus digest",
                found: digest,
                expected,
            });
        }
        let earlier = Counts { slides: names, ..counts.clone() };
        if ![&counts, &earlier].contains(&&self.manifest.counts) {
            let json = |c| serde_json::to_string(c).unwrap_or_default();
            let (found, expected) = (json(&counts), json(&self.manifest.counts));
            return Err(CorpusError::Mismatch { path, what: "count table", found, expected });
        }
        Ok(())
    }

    /// A shuffled stream for training.
    ///
    /// # Errors
    /// When a shard cannot be opened.
    pub fn stream(&self, options: StreamOptions) -> Result<Stream> {
        Stream::new(self.shards()?, options)
    }
}

/// How a stream is shuffled and shared.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// Seed of the run.
    pub seed: u64,
    /// Epoch; each has its own order.
    pub epoch: u64,
    /// Crops held back for mixing; 0 keeps the order inside a row group, 1 row group is not mixed
    /// with others.
    pub buffer: usize,
    /// Whether row groups are visited in random order.
    pub shuffle: bool,
    /// This reader's number among `parts`.
    pub part: usize,
    /// Readers that share the corpus; each row group goes to exactly one.
    pub parts: usize,
    /// Columns to read.
    pub columns: Columns,
}

impl StreamOptions {
    /// A shuffled stream over the whole corpus with a buffer of 8,192 crops.
    #[must_use]
    pub const fn shuffled(seed: u64, epoch: u64) -> Self {
        Self { seed, epoch, buffer: 8192, shuffle: true, part: 0, parts: 1, columns: Columns::All }
    }
}

/// Crops in an order fixed by seed and epoch: row groups in random order, then a shuffle buffer.
pub struct Stream {
    shards: Vec<Shard>,
    groups: VecDeque<(usize, usize)>,
    buffer: Vec<Crop>,
    ready: VecDeque<Crop>,
    rng: ChaCha8Rng,
    options: StreamOptions,
}

impl Stream {
    fn new(shards: Vec<Shard>, options: StreamOptions) -> Result<Self> {
        if options.parts == 0 || options.part >= options.parts {
            return Err(CorpusError::Invalid(format!(
                "reader {} of {} does not exist",
                options.part, options.parts
            )));
        }
        let mut groups: Vec<(usize, usize)> = shards
            .iter()
            .enumerate()
            .flat_map(|(s, shard)| (0..shard.groups()).map(move |g| (s, g)))
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        rng.set_stream(options.epoch);
        if options.shuffle {
            groups.shuffle(&mut rng);
        }
        let groups =
            groups.into_iter().skip(options.part).step_by(options.parts).collect::<VecDeque<_>>();
        rng.set_stream(options.epoch ^ ((options.part as u64 + 1) << 40));
        Ok(Self { shards, groups, buffer: Vec::new(), ready: VecDeque::new(), rng, options })
    }

    fn load(&mut self) -> Option<Result<()>> {
        let (s, g) = self.groups.pop_front()?;
        Some(self.shards[s].read(g, self.options.columns).map(|crops| self.ready.extend(crops)))
    }
}

impl Iterator for Stream {
    type Item = Result<Crop>;

    fn next(&mut self) -> Option<Self::Item> {
        let size = if self.options.shuffle { self.options.buffer } else { 0 };
        loop {
            if self.ready.is_empty()
                && let Some(Err(e)) = self.load()
            {
                return Some(Err(e));
            }
            let Some(crop) = self.ready.pop_front() else {
                let n = self.buffer.len();
                return (n > 0).then(|| Ok(self.buffer.swap_remove(self.rng.random_range(0..n))));
            };
            if size == 0 {
                return Some(Ok(crop));
            }
            if self.buffer.len() < size {
                self.buffer.push(crop);
                continue;
            }
            let i = self.rng.random_range(0..size);
            return Some(Ok(std::mem::replace(&mut self.buffer[i], crop)));
        }
    }
}
