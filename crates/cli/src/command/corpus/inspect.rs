//! `mithras corpus inspect`.

use corpus::Corpus;
use corpus::contradiction::{SameImage, repeated_images};
use corpus::cut::Encoding;
use corpus::inspect::{BINS, Histograms, histograms, montage};
use corpus::regions::{Class, Counts, Dataset, Image};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Counts of a dataset; of crops, score histograms, repeated images and a montage, too.
#[derive(clap::Args)]
pub struct Args {
    /// Dataset of crops or regions.
    corpus: PathBuf,
    /// Prints JSON.
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Writes one HTML page with the montage inside.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes the montage as PNG.
    #[arg(long, value_name = "FILE")]
    montage: Option<PathBuf>,
    /// Crops per label in the montage.
    #[arg(long, default_value_t = 12)]
    samples: usize,
    /// Seed of the montage.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What the page and the JSON show.
#[derive(serde::Serialize)]
pub struct Report<'a> {
    /// The manifest.
    pub manifest: &'a corpus::Manifest,
    /// Score histograms, 20 bins over [0, 1].
    pub histograms: &'a Histograms,
    /// Images that occur more than once.
    pub repeated_images: &'a [SameImage],
    /// Those of them whose labels differ.
    pub contradicting_images: usize,
}

/// Runs `corpus inspect`.
pub fn run(a: &Args) -> anyhow::Result<ExitCode> {
    if Dataset::is_at(&a.corpus) {
        return regions(a);
    }
    let corpus = Corpus::open(&a.corpus)?;
    let histograms = histograms(&corpus)?;
    let repeated = repeated_images(&corpus)?;
    let report = Report {
        manifest: corpus.manifest(),
        histograms: &histograms,
        repeated_images: &repeated,
        contradicting_images: repeated.iter().filter(|r| r.contradicts).count(),
    };
    let picture = |cell| -> anyhow::Result<Vec<u8>> {
        let tile = montage(&corpus, a.samples, cell, a.seed)?;
        Encoding::Png.encode(&tile).map_err(anyhow::Error::msg)
    };
    if let Some(path) = &a.montage {
        artifact::file::write(path, &picture(128)?)?;
    }
    if let Some(path) = &a.html {
        let png = if corpus.is_empty() { Vec::new() } else { picture(96)? };
        let html = super::page::corpus_page(&report, &png);
        artifact::file::write(path, html.as_bytes())?;
        println!("{}", path.display());
    } else if a.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// A regions dataset: counts in all and per source.
fn regions(a: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        a.html.is_none() && a.montage.is_none(),
        "--html and --montage show crops; this is a dataset of regions"
    );
    let set = Dataset::open(&a.corpus)?;
    let mut sources: BTreeMap<&str, Vec<&Image>> = BTreeMap::new();
    for image in set.images() {
        sources.entry(&image.source).or_default().push(image);
    }
    let sources: BTreeMap<&str, Counts> =
        sources.into_iter().map(|(name, i)| (name, Counts::of(i))).collect();
    if a.json {
        let report = RegionsReport {
            name: set.name(),
            digest: set.digest(),
            builder: set.builder(),
            classes: set.classes(),
            notes: set.notes(),
            counts: set.counts(),
            training: set.training().counts(),
            test: set.test().counts(),
            sources,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    super::import_regions::print(&set);
    for (name, c) in &sources {
        let classes: Vec<String> = c.classes.iter().map(|(k, n)| format!("{n} {k}")).collect();
        println!("{name}: {} images of {} slides; {}", c.images, c.slides, classes.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the JSON of a regions dataset shows.
#[derive(serde::Serialize)]
struct RegionsReport<'a> {
    name: &'a str,
    digest: &'a str,
    builder: &'a str,
    classes: &'a [Class],
    notes: &'a BTreeMap<String, String>,
    counts: Counts,
    training: Counts,
    test: Counts,
    sources: BTreeMap<&'a str, Counts>,
}

fn print(r: &Report<'_>) {
    let (m, c) = (r.manifest, &r.manifest.counts);
    println!("{}, built by {}", m.header.name, m.header.builder);
    println!("digest {}", m.digest);
    println!(
        "{} crops of {} slides, {} patients, in {} shards",
        c.crops,
        c.slides,
        c.patients,
        m.shards.len()
    );
    println!(
        "\n{:<28}{:>15}{:>12}{:>12}{:>10}",
        "cohort", "mitotic_figure", "mimicker", "unlabeled", "all"
    );
    for (cohort, row) in &c.cohorts {
        let n = |l: &str| row.get(l).copied().unwrap_or(0);
        let all: u64 = row.values().sum();
        println!(
            "{cohort:<28}{:>15}{:>12}{:>12}{all:>10}",
            n("mitotic_figure"),
            n("mimicker"),
            n("unlabeled")
        );
    }
    for (title, table) in [("subtypes", &c.subtypes), ("splits", &c.splits)] {
        if !table.is_empty() {
            let row: Vec<String> = table.iter().map(|(k, n)| format!("{k} {n}")).collect();
            println!("{title}: {}", row.join(", "));
        }
    }
    for (score, table) in [("s_seg", &r.histograms.s_seg), ("s_cls", &r.histograms.s_cls)] {
        for (label, bins) in table {
            println!("{score} of {label:<15} 0 {} 1", spark(bins));
        }
    }
    if !r.repeated_images.is_empty() {
        println!(
            "\n{} images occur more than once, {} of them with different labels",
            r.repeated_images.len(),
            r.contradicting_images
        );
        for image in r.repeated_images.iter().filter(|i| i.contradicts).take(10) {
            let rows: Vec<String> = image
                .crops
                .iter()
                .map(|(p, l, s)| {
                    format!("{p} {l}{}", s.as_ref().map(|s| format!(" ({s})")).unwrap_or_default())
                })
                .collect();
            println!("  {}", rows.join(" | "));
        }
    }
}

fn spark(bins: &[u64; BINS]) -> String {
    const MARKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = bins.iter().copied().max().unwrap_or(0).max(1);
    bins.iter().map(|&n| MARKS[usize::try_from((n * 8).div_ceil(top)).unwrap_or(8)]).collect()
}
