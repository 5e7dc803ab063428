//! `mithras slide`: what a file is, a picture of it, where its tissue lies.

use super::detect::mpp;
use crate::show;
use anyhow::Result;
use artifact::file::write;
use clap::Subcommand;
use corpus::cut::Encoding;
use mithras::slide_info::{SlideInfo, write_tissue};
use mitosis::Mpp;
use mitosis::text::Shown;
use slide::{MppRule, OpenOptions, Slide};
use std::path::PathBuf;

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
}

#[derive(clap::Args)]
struct Input {
    /// The slide.
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
}

#[derive(clap::Args)]
struct Thumbnail {
    #[command(flatten)]
    input: Input,
    /// PNG to write.
    #[arg(long)]
    out: PathBuf,
    /// Longer side in pixels.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16384))]
    size: u32,
    /// Write this associated image (label, macro, ...) instead.
    #[arg(long)]
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

/// Runs `mithras slide`.
pub fn run(args: Args) -> Result<()> {
    match args.verb {
        Verb::Info(a) => show::result(a.json, &SlideInfo::of(&open(&a.input)?)),
        Verb::Thumbnail(a) => thumbnail(&a),
        Verb::Tissue(a) => show::result(a.json, &write_tissue(&open(&a.input)?, &a.out)?),
    }
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

fn thumbnail(args: &Thumbnail) -> Result<()> {
    let slide = open(&args.input)?;
    let tile = match &args.associated {
        Some(name) => slide.associated_image(name)?,
        None => slide.thumbnail(args.size as usize)?,
    };
    write(&args.out, &Encoding::Png.encode(&tile)?)?;
    println!("{} ({} x {} px)", Shown(&args.out), tile.width, tile.height);
    Ok(())
}
