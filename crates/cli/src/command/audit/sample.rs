//! `mithras audit sample`.

use base::text::Many;
use crops::audit::{Question, StratumBy};
use mitosis::Mpp;
use review::audit::{SampleRequest, Sampled, sample};
use std::path::PathBuf;

/// Draws a blinded, seeded, stratified sample of a corpus, or of a run of `detect`.
///
/// By default 30 mitotic figures and 20 mimickers per cohort; of a run 30 accepted candidates and 20 rejected ones,
/// with 96 um of tissue around each. For tissue tiles whose subtype is the filter that kept them: `--question tumour
/// --by subtype --per both=25 --per a-only=25 --per b-only=25`.
#[derive(clap::Args)]
pub struct Args {
    /// Corpus folder, or a run of `detect`.
    from: PathBuf,
    /// Writes `package/` for the reviewer and `key.json` for scoring.
    #[arg(long)]
    out: PathBuf,
    /// What the reviewer is asked.
    #[arg(long, default_value = "figure", value_parser = ["figure", "tumour"])]
    question: String,
    /// What makes a stratum of a corpus besides the cohort.
    #[arg(long, default_value = "label", value_parser = ["label", "subtype"])]
    by: String,
    /// Crops per cohort of a stratum: NAME=COUNT. Repeat for several.
    #[arg(long, value_name = "NAME=COUNT")]
    per: Vec<String>,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Takes what there is where a stratum holds too few.
    #[arg(long)]
    allow_short: bool,
    /// Folder of the slides: of a run whose slides were moved; of a corpus, to show its crops with the
    /// tissue around them.
    #[arg(long, value_name = "DIR")]
    slides: Option<PathBuf>,
    /// With --slides, of a corpus: um/px of slides that state none.
    #[arg(long, value_name = "X", value_parser = crate::command::detect::mpp, requires = "slides")]
    mpp: Option<Mpp>,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    let request = SampleRequest {
        question: if a.question == "tumour" { Question::Tumour } else { Question::MitoticFigure },
        by: if a.by == "subtype" { StratumBy::Subtype } else { StratumBy::Label },
        per: &a.per,
        seed: a.seed,
        allow_short: a.allow_short,
        slides: a.slides.as_deref(),
        mpp: a.mpp,
    };
    let Sampled { key, left_out } = sample(&a.from, &a.out, &request)?;
    crate::show::print_messages("note", &left_out);
    key.strata.iter().for_each(|s| outln!("{s}"));
    outln!("{} in {}", Many(key.items.len(), "picture"), a.out.join("package").display());
    outln!("review: mithras audit serve {}", a.out.join("package").display());
    outln!("keep {} from the reviewer", a.out.join("key.json").display());
    Ok(())
}
