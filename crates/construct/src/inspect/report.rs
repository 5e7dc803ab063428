//! What a dataset holds, in numbers.

use crate::organ::by_site;
use base::text::Many;
use crops::contradiction::{SameImage, repeated_images};
use crops::inspect::{BINS, Histograms, histograms};
use crops::{Columns, Corpus, CorpusError};
use regions::{ClassInfo, Counts, Dataset, Image};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What a dataset of crops holds.
#[derive(Clone, Debug, Serialize)]
pub struct CropsReport {
    /// The manifest.
    pub manifest: crops::Manifest,
    /// Score histograms, 20 bins over [0, 1].
    pub histograms: Histograms,
    /// Crops by um/px.
    pub resolutions: BTreeMap<String, u64>,
    /// Crops by organ site; empty where no cohort is one of TCGA's.
    pub organ_sites: BTreeMap<String, u64>,
    /// Images that occur more than once.
    pub repeated_images: Vec<SameImage>,
    /// Those of them whose labels differ.
    pub contradicting_images: usize,
}

impl CropsReport {
    /// Reads every crop.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn from_corpus(corpus: &Corpus) -> Result<Self, CorpusError> {
        let repeated_images = repeated_images(corpus)?;
        let mut resolutions = BTreeMap::new();
        for crop in corpus.crops(Columns::Meta)? {
            *resolutions.entry(crop?.meta.mpp.get().to_string()).or_default() += 1;
        }
        let cohorts = corpus.manifest().counts.cohorts.iter();
        Ok(Self {
            resolutions,
            organ_sites: by_site(cohorts.map(|(c, row)| (c, row.values().sum()))),
            manifest: corpus.manifest().clone(),
            histograms: histograms(corpus)?,
            contradicting_images: repeated_images.iter().filter(|r| r.contradicts).count(),
            repeated_images,
        })
    }
}

impl fmt::Display for CropsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, c) = (&self.manifest, &self.manifest.counts);
        writeln!(f, "{}, built by {}", m.header.name, m.header.builder)?;
        writeln!(f, "digest {}", m.digest)?;
        writeln!(
            f,
            "{} of {}, {}, in {}",
            Many(c.crops, "crop"),
            Many(c.slides, "slide"),
            Many(c.patients, "patient"),
            Many(m.shards.len(), "shard")
        )?;
        writeln!(
            f,
            "\n{:<28}{:>15}{:>12}{:>12}{:>10}",
            "cohort", "mitotic_figure", "mimicker", "unlabeled", "all"
        )?;
        for (cohort, row) in &c.cohorts {
            let n = |l: &str| row.get(l).copied().unwrap_or(0);
            let all: u64 = row.values().sum();
            writeln!(
                f,
                "{cohort:<28}{:>15}{:>12}{:>12}{all:>10}",
                n("mitotic_figure"),
                n("mimicker"),
                n("unlabeled")
            )?;
        }
        for (title, table) in [
            ("um/px", &self.resolutions),
            ("organ sites", &self.organ_sites),
            ("subtypes", &c.subtypes),
            ("splits", &c.splits),
        ] {
            if !table.is_empty() {
                let row: Vec<String> = table.iter().map(|(k, n)| format!("{k} {n}")).collect();
                writeln!(f, "{title}: {}", row.join(", "))?;
            }
        }
        for (score, table) in [("s_seg", &self.histograms.s_seg), ("s_cls", &self.histograms.s_cls)]
        {
            for (label, bins) in table {
                writeln!(f, "{score} of {label:<15} 0 {} 1", spark(bins))?;
            }
        }
        if !self.repeated_images.is_empty() {
            writeln!(
                f,
                "\nmore than once: {}, {} with different labels",
                Many(self.repeated_images.len(), "image"),
                self.contradicting_images
            )?;
            for image in self.repeated_images.iter().filter(|i| i.contradicts).take(10) {
                let rows: Vec<String> = image
                    .crops
                    .iter()
                    .map(|crop| {
                        let (path, label) = (&crop.path, crop.label);
                        format!(
                            "{path} {label}{}",
                            crop.subtype.as_ref().map(|s| format!(" ({s})")).unwrap_or_default()
                        )
                    })
                    .collect();
                writeln!(f, "  {}", rows.join(" | "))?;
            }
        }
        Ok(())
    }
}

fn spark(bins: &[u64; BINS]) -> String {
    const MARKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = bins.iter().copied().max().unwrap_or(0).max(1);
    bins.iter().map(|&n| MARKS[usize::try_from((n * 8).div_ceil(top)).unwrap_or(8)]).collect()
}

/// Counts per source of regions.
type SourceCounts = BTreeMap<String, Counts>;

/// What a dataset of regions holds.
#[derive(Clone, Debug, Serialize)]
pub struct RegionsReport<'a> {
    #[serde(skip)]
    set: &'a Dataset,
    name: &'a str,
    digest: &'a str,
    builder: &'a str,
    classes: &'a [ClassInfo],
    notes: &'a BTreeMap<String, String>,
    counts: Counts,
    training: Counts,
    test: Counts,
    sources: SourceCounts,
}

impl<'a> RegionsReport<'a> {
    /// Counts in all, per part and per source.
    #[must_use]
    pub fn from_dataset(set: &'a Dataset) -> Self {
        let mut sources: BTreeMap<&str, Vec<&Image>> = BTreeMap::new();
        for image in set.images() {
            sources.entry(&image.source).or_default().push(image);
        }
        Self {
            set,
            name: set.name(),
            digest: set.digest(),
            builder: set.builder(),
            classes: set.classes(),
            notes: set.notes(),
            counts: set.counts(),
            training: set.training().counts(),
            test: set.test().counts(),
            sources: sources.into_iter().map(|(n, i)| (n.to_owned(), Counts::count(i))).collect(),
        }
    }
}

impl fmt::Display for RegionsReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.set)?;
        for (name, c) in &self.sources {
            let classes: Vec<String> = c.classes.iter().map(|(k, n)| format!("{n} {k}")).collect();
            let (images, slides) = (Many(c.images, "image"), Many(c.slides, "slide"));
            writeln!(f, "{name}: {images} of {slides}; {}", classes.join(", "))?;
        }
        Ok(())
    }
}
