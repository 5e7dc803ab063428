//! Writes a corpus: shards under temporary names, renamed when whole, the manifest last.
//!
//! A crash leaves the old manifest and at most some nameless temporary files or unlisted shards;
//! the next writer overwrites both. Two writers exclude each other by a lock on `.lock`.

use crate::error::{CorpusError, Result};
use crate::manifest::{Counts, Header, MANIFEST, Manifest, ShardEntry, Tally};
use crate::reader::Corpus;
use crate::schema::{Crop, CropMeta, SCHEMA_VERSION};
use crate::shard::{Columns, ShardWriter};
use base::digest::sha256_file;
use base::file::{self, Lock};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How crops are cut into row groups and shards; the corpus digest does not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Crops per row group.
    pub rows_per_group: usize,
    /// At most; the last shard has fewer.
    pub crops_per_shard: u64,
}

impl Default for Layout {
    fn default() -> Self {
        Self { rows_per_group: 1000, crops_per_shard: 50_000 }
    }
}

/// Writes crops in the order they are pushed.
pub struct CorpusWriter {
    dir: PathBuf,
    header: Header,
    layout: Layout,
    shards: Vec<ShardEntry>,
    tally: Tally,
    names: HashSet<u128>,
    open: Option<(ShardWriter<BufWriter<NamedTempFile>>, u64)>,
    _lock: Lock,
}

impl CorpusWriter {
    /// Starts a corpus in a folder that holds none.
    ///
    /// # Errors
    /// When the folder already holds a corpus (append or choose another), is locked, or cannot
    /// be written.
    pub fn create(dir: &Path, header: Header, layout: Layout) -> Result<Self> {
        if dir.join(MANIFEST).exists() {
            return Err(CorpusError::Invalid(format!(
                "{} already holds a corpus; name another folder",
                dir.display()
            )));
        }
        Self::start(dir, header, layout)
    }

    /// Continues an existing corpus; its shards stay as they are.
    ///
    /// # Errors
    /// When the folder has no corpus, or it cannot be read.
    pub fn append(dir: &Path, layout: Layout) -> Result<Self> {
        let corpus = Corpus::open(dir)?;
        let mut writer = Self::start(dir, corpus.manifest().header.clone(), layout)?;
        for shard in corpus.shards()? {
            for group in 0..shard.groups() {
                let digests = shard.digests(group)?;
                for (crop, digest) in shard.read(group, Columns::Meta)?.iter().zip(&digests) {
                    writer.names.insert(name_key(&crop.meta.path));
                    writer.tally.add(&crop.meta, digest);
                }
            }
        }
        writer.shards.clone_from(&corpus.manifest().shards);
        Ok(writer)
    }

    fn start(dir: &Path, header: Header, layout: Layout) -> Result<Self> {
        let lock = Lock::take(dir)?;
        Ok(Self {
            dir: dir.into(),
            header,
            layout,
            shards: Vec::new(),
            tally: Tally::default(),
            names: HashSet::new(),
            open: None,
            _lock: lock,
        })
    }

    /// The notes, to be completed before [`Self::finish`].
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Adds a crop.
    ///
    /// # Errors
    /// When the crop breaks the schema, repeats a path, or the disk refuses.
    pub fn push(&mut self, meta: CropMeta, image: impl Into<Bytes>) -> Result<()> {
        meta.check()?;
        let crop = Crop { meta, image: image.into() };
        if !self.names.insert(name_key(&crop.meta.path)) {
            let reason = "the corpus already holds a crop of this path".into();
            return Err(CorpusError::Crop { crop: crop.meta.path, reason });
        }
        let digest = crop.digest();
        self.tally.add(&crop.meta, &digest);
        let target = self.dir.clone();
        if self.open.is_none() {
            let tmp = file::new_temporary(&self.dir.join("shard"))?;
            let out = BufWriter::with_capacity(1 << 20, tmp);
            let shard = ShardWriter::new(out, self.layout.rows_per_group.max(1))
                .map_err(CorpusError::shard(&target))?;
            self.open = Some((shard, 0));
        }
        let (shard, n) = self.open.as_mut().expect("opened above");
        shard.push(crop, digest).map_err(CorpusError::shard(&target))?;
        *n += 1;
        if *n >= self.layout.crops_per_shard { self.close_shard() } else { Ok(()) }
    }

    fn close_shard(&mut self) -> Result<()> {
        let Some((shard, crops)) = self.open.take() else { return Ok(()) };
        let name = format!("shard-{:05}.parquet", self.shards.len());
        let path = self.dir.join(&name);
        let buffered = shard.finish().map_err(CorpusError::shard(&path))?;
        let tmp = buffered
            .into_inner()
            .map_err(|e| CorpusError::io(&path)(e.into_error()))
            .and_then(|mut t| {
                t.flush().and_then(|()| t.as_file().sync_all()).map_err(CorpusError::io(&path))?;
                Ok(t)
            })?;
        let (bytes, sha256) =
            sha256_file(tmp.path()).map_err(|e| CorpusError::io(&e.path)(e.source))?;
        file::persist(tmp, &path)?;
        self.shards.push(ShardEntry { file: name, crops, bytes, sha256 });
        Ok(())
    }

    /// Closes the last shard and writes the manifest.
    ///
    /// # Errors
    /// When the disk refuses; the folder then still holds what it held before.
    pub fn finish(mut self) -> Result<Manifest> {
        self.close_shard()?;
        let (digest, counts): (String, Counts) = std::mem::take(&mut self.tally).finish();
        let manifest = Manifest {
            format: "mithras-corpus".into(),
            schema: SCHEMA_VERSION,
            header: self.header.clone(),
            digest,
            counts,
            shards: std::mem::take(&mut self.shards),
        };
        manifest.write(&self.dir)?;
        Ok(manifest)
    }
}

fn name_key(path: &str) -> u128 {
    let h = Sha256::digest(path.as_bytes());
    u128::from_le_bytes(h[..16].try_into().expect("16 of 32 bytes"))
}
