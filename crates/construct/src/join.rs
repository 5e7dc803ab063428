//! From the slides' parts to one corpus.

use super::Plan;
use super::error::ConstructError;
use super::funnel::Funnel;
use super::report::{Joined, Line, Status};
use super::task::PART;
use base::digest::sha256_file;
use base::preset::Preset as _;
use crops::manifest::{MANIFEST, ShardEntry};
use crops::{Columns, Corpus, CorpusWriter, Header, Layout};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A slide without crops, as the manifest names it.
#[derive(Serialize)]
struct Without<'a> {
    slide: &'a str,
    reason: Option<&'a str>,
}

/// Joins the parts in the order of slide names and moves the result into place.
pub(super) fn join(
    plan: &Plan,
    config: serde_json::Value,
    lines: &[Line],
    parts: &Path,
) -> Result<Joined, ConstructError> {
    let listed = |status| {
        let of = lines.iter().filter(|s| s.status == status);
        let all: Vec<_> =
            of.map(|s| Without { slide: &s.slide, reason: s.reason.as_deref() }).collect();
        serde_json::to_value(all)
    };
    let mut funnel = Funnel::default();
    lines.iter().for_each(|s| funnel.add(&s.funnel));
    let mut header = Header {
        name: plan.preset.name.clone(),
        builder: mithras::program(),
        preset: Some(plan.preset.digest()),
        ..Header::default()
    };
    header.notes.insert("build".into(), config);
    header.notes.insert("funnel".into(), serde_json::to_value(funnel)?);
    header.notes.insert("excluded".into(), listed(Status::Excluded)?);
    header.notes.insert("failed".into(), listed(Status::Failed)?);
    let fresh = parts.join("joined");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|e| ConstructError::io(&fresh, e))?;
    }
    let mut writer = CorpusWriter::create(&fresh, header, Layout::default())?;
    let mut resolutions = BTreeMap::new();
    for s in lines.iter().filter(|s| s.status == Status::Done) {
        for crop in Corpus::open(parts.join(&s.slide).join(PART))?.crops(Columns::All)? {
            let crop = crop?;
            *resolutions.entry(crop.meta.mpp.get().to_string()).or_default() += 1;
            writer.push(crop.meta, crop.image)?;
        }
    }
    let manifest = writer.finish()?;
    let out = &plan.out;
    let is_stored = |shard: &ShardEntry| {
        sha256_file(&out.join(&shard.file)).is_ok_and(|(_, digest)| digest == shard.sha256)
    };
    let same = Corpus::open(out).is_ok_and(|old| *old.manifest() == manifest)
        && manifest.shards.iter().all(is_stored);
    if !same {
        let files: Vec<&str> = manifest.shards.iter().map(|s| s.file.as_str()).collect();
        replace(out, &fresh, &files).map_err(|e| ConstructError::io(out, e))?;
    }
    fs::remove_dir_all(&fresh).map_err(|e| ConstructError::io(&fresh, e))?;
    Ok(Joined { digest: manifest.digest, resolutions })
}

/// Moves the shards and the manifest from `fresh` to `out`, in place of those already there.
fn replace(out: &Path, fresh: &Path, shards: &[&str]) -> std::io::Result<()> {
    // Without a manifest the folder is not a corpus; if this is interrupted, the next run repairs it.
    let manifest = out.join(MANIFEST);
    if manifest.exists() {
        fs::remove_file(&manifest)?;
    }
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("shard-") && name.ends_with(".parquet") {
            fs::remove_file(path)?;
        }
    }
    for file in shards {
        fs::rename(fresh.join(file), out.join(file))?;
    }
    fs::rename(fresh.join(MANIFEST), manifest)
}
