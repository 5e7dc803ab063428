//! Crops per second of CPU time of one reader: shuffled, with and without decoding, and
//! of the JPEG decoder alone.
//!
//! usage: read_speed CORPUS [--make N]   (--make draws a corpus of N noisy 128 px JPEG crops)

#![expect(clippy::print_stdout, reason = "prints times")]

use crops::Encoding;
use crops::{Corpus, CorpusWriter, CropMeta, Header, Label, Layout, Split, StreamOptions};
use mitosis::{Mpp, Point, RgbTile, Score};
use rand::{RngCore, SeedableRng};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(args.first().ok_or("read_speed CORPUS [--make N]")?);
    if args.get(1).is_some_and(|a| a == "--make") {
        make(dir, args.get(2).ok_or("--make N")?.parse()?)?;
    }
    let corpus = Corpus::open(dir)?;
    let crops = |epoch| corpus.stream(StreamOptions::shuffled(1, epoch));
    // One byte of every memory page: the picture is there, as far as the operating system goes.
    rate("shuffled, not decoded", 3, |epoch| {
        crops(epoch)?.try_fold(0, |n, crop| {
            crop?.image.chunks(4096).for_each(|page| {
                black_box(page[0]);
            });
            Ok(n + 1)
        })
    })?;
    rate("shuffled, every byte summed", 3, |epoch| {
        crops(epoch)?.try_fold(0, |n, crop| {
            black_box(crop?.image.iter().map(|&b| u64::from(b)).sum::<u64>());
            Ok(n + 1)
        })
    })?;
    rate("shuffled and decoded", 1, |epoch| {
        crops(epoch)?.try_fold(0, |n, crop| {
            black_box(crop?.decode()?);
            Ok(n + 1)
        })
    })?;
    let held: Vec<_> = crops(0)?.take(2000).collect::<Result<_, _>>()?;
    rate("zune-jpeg alone, crops in memory", 3, |_| {
        held.iter().try_fold(0, |n, crop| {
            black_box(JpegDecoder::new(ZCursor::new(&crop.image[..])).decode()?);
            Ok(n + 1)
        })
    })?;
    Ok(())
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Prints crops per second over some epochs.
fn rate(what: &str, epochs: u64, work: impl Fn(u64) -> Outcome<u64>) -> Outcome<()> {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let crops = (0..epochs).map(work).sum::<Outcome<u64>>()?;
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = |seconds: f64| crops as f64 / seconds;
    println!(
        "{what}: {:.0} crops/s of CPU time, {:.0} crops/s of wall time",
        rate(cpu),
        rate(wall)
    );
    Ok(())
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn make(dir: &Path, n: u64) -> Outcome<()> {
    let header = Header { name: "drawn".into(), builder: "read_speed".into(), ..Header::default() };
    let mut w = CorpusWriter::create(dir, header, Layout::default())?;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    // A few hundred pictures, repeated under new names: encoding is not what is measured.
    let mut pictures = Vec::new();
    for _ in 0..256 {
        let mut coarse = vec![0u8; 3 * 32 * 32];
        rng.fill_bytes(&mut coarse);
        let mut tile = RgbTile::filled(128, 128, [0; 3]);
        for (i, v) in tile.data.iter_mut().enumerate() {
            let (p, c) = (i / 3, i % 3);
            *v = 150 + coarse[3 * (p / 128 / 4 * 32 + p % 128 / 4) + c] / 3;
        }
        pictures.push(Encoding::Jpeg(90).encode(&tile)?);
    }
    for i in 0..n {
        let label = if i % 3 == 0 { Label::MitoticFigure } else { Label::Mimicker };
        #[expect(clippy::cast_precision_loss, reason = "a drawn place")]
        let place = Point::new(i as f64, 7.5);
        let meta = CropMeta {
            s_seg: Some(Score::ONE),
            s_cls: Some(Score::ZERO),
            bbox: Some(crops::CropBox::centred(128, 50)),
            centroid: Some(place),
            patient: Some(format!("patient{}", i / 3000)),
            cohort: "drawn".into(),
            source: "drawn".into(),
            split: Split::Train,
            ..CropMeta::new(
                format!("slide{}/{i}.jpg", i / 1000),
                label,
                format!("slide{}", i / 1000),
                Mpp::PAPER,
                (128, 128),
            )
        };
        w.push(meta, pictures[usize::try_from(i % 256)?].clone())?;
    }
    w.finish()?;
    Ok(())
}
