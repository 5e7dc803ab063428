//! `mithras slide`: what a file is, a picture of it, where its tissue lies.

use anyhow::{Context, Result};
use artifact::file::write;
use clap::Subcommand;
use mitosis::Mpp;
use mitosis::text::{Shown, plain};
use serde_json::json;
use slide::{MppRule, OpenOptions, Slide, TissueMask, TissueOptions};
use std::collections::BTreeMap;
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
}

#[derive(clap::Args)]
struct Input {
    /// The slide.
    file: PathBuf,
    /// Micrometres per pixel of level 0, for a file that states none.
    #[arg(long, value_parser = parse_mpp, allow_negative_numbers = true)]
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

fn parse_mpp(text: &str) -> Result<Mpp, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    Mpp::new(value).map_err(|e| e.to_string())
}

/// Runs `mithras slide`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.verb {
        Verb::Info(a) => info(&a),
        Verb::Thumbnail(a) => thumbnail(&a),
        Verb::Tissue(a) => tissue(&a),
    }?;
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

fn info(args: &Info) -> Result<()> {
    let slide = open(&args.input)?;
    let (width, height) = slide.dimensions();
    if args.json {
        let resolution = match slide.resolution() {
            Ok(r) => json!({ "x_um": r.x, "y_um": r.y, "source": r.source.to_string() }),
            Err(e) => json!({ "error": e.to_string() }),
        };
        let report = json!({
            "file": slide.path(),
            "reader": slide.format(),
            "vendor": slide.vendor(),
            "width": width,
            "height": height,
            "resolution": resolution,
            "levels": slide.levels(),
            "bounds": slide.bounds(),
            "associated_images": slide.associated_images(),
            "properties": public(&slide),
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    println!("file        {}", Shown(slide.path()));
    println!("reader      {} (vendor {})", slide.format(), slide.vendor());
    println!("size        {width} x {height} px");
    match slide.resolution() {
        Ok(r) => {
            let mm = |n: u64, mpp: Mpp| n as f64 * mpp.get() / 1000.0;
            println!("resolution  {} x {} um/px ({})", r.x.get(), r.y.get(), r.source);
            println!("            {:.3} x {:.3} mm", mm(width, r.x), mm(height, r.y));
        }
        Err(e) => println!("resolution  {e}"),
    }
    for (i, l) in slide.levels().iter().enumerate() {
        println!(
            "level {i:<5} {} x {} px, 1/{:.4}, tiles {} x {}",
            l.width, l.height, l.downsample_x, l.tile_width, l.tile_height
        );
    }
    if let Some(b) = slide.bounds() {
        println!("bounds      {} x {} px at ({}, {})", b.width, b.height, b.x, b.y);
    }
    for a in slide.associated_images() {
        println!("image       {} {} x {} px", plain(&a.name), a.width, a.height);
    }
    for (key, value) in public(&slide) {
        let line = plain(&value);
        let short: String = line.chars().take(120).collect();
        println!(
            "            {} = {short}{}",
            plain(&key),
            if short.len() < line.len() { " ..." } else { "" }
        );
    }
    Ok(())
}

/// The properties of a slide without those that say who the patient is.
fn public(slide: &Slide) -> BTreeMap<String, String> {
    let properties = slide.properties().iter();
    properties
        .map(|(key, value)| {
            let shown = if mithras::privacy::names_patient(key) { "(not shown)" } else { value };
            (key.clone(), shown.to_owned())
        })
        .collect()
}

fn thumbnail(args: &Thumbnail) -> Result<()> {
    let slide = open(&args.input)?;
    let tile = match &args.associated {
        Some(name) => slide.associated_image(name)?,
        None => slide.thumbnail(args.size as usize)?,
    };
    let mut png = std::io::Cursor::new(Vec::new());
    image::write_buffer_with_format(
        &mut png,
        &tile.data,
        u32::try_from(tile.width)?,
        u32::try_from(tile.height)?,
        image::ExtendedColorType::Rgb8,
        image::ImageFormat::Png,
    )?;
    write(&args.out, png.get_ref())?;
    println!("{} ({} x {} px)", Shown(&args.out), tile.width, tile.height);
    Ok(())
}

fn tissue(args: &Tissue) -> Result<()> {
    let slide = open(&args.input)?;
    let options = TissueOptions::default();
    let mask = TissueMask::find_with(&slide, &options)?;
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", Shown(&args.out)))?;
    let (png, geojson) = (args.out.join("tissue.png"), args.out.join("tissue.geojson"));
    write(&png, &mask.png()?)?;
    let offset = slide.bounds().map_or((0, 0), |b| (b.x, b.y));
    write(&geojson, &serde_json::to_vec_pretty(&mask.geojson(offset))?)?;
    if args.json {
        let report = json!({
            "file": slide.path(),
            "area_mm2": mask.area_mm2(),
            "empty": mask.is_empty(),
            "rule": mask.rule,
            "otsu_threshold": mask.threshold,
            "mask_um_per_px": mask.mpp,
            "mask_width": mask.width,
            "mask_height": mask.height,
            "level0_offset": [offset.0, offset.1],
            "parameters": options,
            "mask": png,
            "geojson": geojson,
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    if mask.is_empty() {
        println!("{}: no tissue found", Shown(slide.path()));
    } else {
        println!("{}: {:.3} mm2 of tissue", Shown(slide.path()), mask.area_mm2());
    }
    let threshold = mask.threshold.map_or("none".into(), |t| t.to_string());
    println!("rule {:?}, Otsu threshold {threshold}, at {}", mask.rule, mask.mpp);
    println!("{}\n{}", Shown(&png), Shown(&geojson));
    Ok(())
}
