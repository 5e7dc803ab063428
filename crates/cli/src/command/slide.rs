//! `mithras slide`: properties of a file, a picture of it, its tissue.

use super::detect::mpp;
use crate::show;
use anyhow::Result;
use base::file::write;
use base::text::Shown;
use clap::Subcommand;
use crops::Encoding;
use mitosis::Mpp;
use slide::deidentify::deidentify;
use slide::info::{Deidentified, SlideInfo, write_tissue};
use slide::{MppRule, OpenOptions, Slide};
use std::path::PathBuf;
use std::process::ExitCode;

/// Look at a slide: format, resolution, thumbnail, tissue.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print format, size, resolution with its source, levels, associated images and properties.
    Info(Info),
    /// Write a thumbnail, or an associated image, as PNG.
    Thumbnail(Thumbnail),
    /// Write the tissue mask as PNG and GeoJSON and print its area.
    Tissue(Tissue),
    /// Write a copy without names, dates, label and macro photograph; the pixels stay as stored.
    Deidentify(Deidentify),
}

#[derive(clap::Args)]
struct Input {
    /// Path or address of the slide.
    file: PathBuf,
    /// Micrometres per pixel of level 0, for a file that states none.
    #[arg(long, value_parser = mpp, allow_negative_numbers = true)]
    mpp: Option<Mpp>,
    /// Take --mpp even where the file states another resolution.
    #[arg(long, alias = "override-mpp", requires = "mpp")]
    force_mpp: bool,
    #[command(flatten)]
    limits: super::limits::LimitArgs,
    /// Read through OpenSlide even what mithras reads itself.
    #[arg(long)]
    openslide: bool,
}

#[derive(clap::Args)]
struct Info {
    #[command(flatten)]
    input: Input,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Name instead what identifies a person, a time or a place; exit code 1 where anything does.
    #[arg(long)]
    deidentified_check: bool,
}

#[derive(clap::Args)]
struct Thumbnail {
    #[command(flatten)]
    input: Input,
    /// Picture to write, .png or .jpg.
    #[arg(long)]
    out: PathBuf,
    /// Longer side in pixels.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16384))]
    size: u32,
    /// Write this associated image (label, macro, ...) instead, in its own size.
    #[arg(long, conflicts_with = "size")]
    associated: Option<String>,
}

#[derive(clap::Args)]
struct Tissue {
    #[command(flatten)]
    input: Input,
    /// Folder for `tissue.png` and `tissue.geojson`; made if missing.
    #[arg(long)]
    out: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Deidentify {
    /// The slide: SVS, TIFF, OME-TIFF, PNG, JPEG, or a file of a DICOM slide.
    input: PathBuf,
    /// The copy: a new file, of a DICOM slide a new folder.
    output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: super::limits::LimitArgs,
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.verb {
        Verb::Info(a) => return info(&a),
        Verb::Thumbnail(a) => thumbnail(&a)?,
        Verb::Tissue(a) => show::result(a.json, &write_tissue(&open(&a.input)?, &a.out)?)?,
        Verb::Deidentify(a) => {
            let options = OpenOptions { limits: a.limits.limits()?, ..OpenOptions::default() };
            show::result(a.json, &deidentify(&a.input, &a.output, &options)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open(input: &Input) -> Result<Slide> {
    let options = OpenOptions {
        mpp: input.mpp,
        mpp_rule: if input.force_mpp { MppRule::Force } else { MppRule::Fill },
        limits: input.limits.limits()?,
        force_openslide: input.openslide,
        ..OpenOptions::default()
    };
    Ok(Slide::open_with(&input.file, &options)?)
}

fn info(args: &Info) -> Result<ExitCode> {
    let slide = open(&args.input)?;
    if args.deidentified_check {
        let checked = Deidentified::check(&slide)?;
        show::result(args.json, &checked)?;
        let found = checked.inventory.findings.len();
        return Ok(super::exit(found, found));
    }
    show::result(args.json, &SlideInfo::read(&slide))?;
    Ok(ExitCode::SUCCESS)
}

fn thumbnail(args: &Thumbnail) -> Result<()> {
    let encoding = Encoding::of_name(&args.out)?;
    let slide = open(&args.input)?;
    let tile = match &args.associated {
        Some(name) => slide.associated_image(name)?,
        None => slide.thumbnail(args.size as usize)?,
    };
    write(&args.out, &encoding.encode(&tile)?)?;
    outln!("{} ({} x {} px)", Shown(&args.out), tile.width, tile.height);
    show::print_messages("note", &slide.level_notes());
    Ok(())
}
