//! The paper's timing plot: the score of each encoder against its time, at three scales.

use std::collections::HashMap;
use std::path::Path;

use base::table::{Format, Table, TableError, Unmatched, Writer};
use pages::canvas::{Anchor, Axis, Canvas, GRID, INK, PALETTE, log_ticks, tick_label, ticks};

use super::Benchmark;
use crate::error::TrainError;
use crate::text::write_text;

/// What each encoder reaches on crops, regions and slides, each in [0, 1].
pub type Scores = HashMap<String, [Option<f64>; 3]>;

/// Reads a table with the columns `encoder`, `crop`, `region`, `slide`; empty cells are unknown.
///
/// # Errors
/// A file that is not such a table.
pub fn scores(path: &Path) -> Result<Scores, TableError> {
    let table = Table::read(path, &Format::default())?;
    let name = table.need(&["encoder"])?;
    let columns = [table.need(&["crop"])?, table.need(&["region"])?, table.need(&["slide"])?];
    let mut all = Scores::new();
    for row in 0..table.len() {
        let mut known = [None; 3];
        for (slot, &column) in known.iter_mut().zip(&columns) {
            if table.filled(row, Some(column)).is_none() {
                continue;
            }
            let value = table.number(row, column)?;
            if !(0.0..=1.0).contains(&value) {
                return Err(table.wrong(row, column, format!("{value} is outside 0 to 1")));
            }
            *slot = Some(value);
        }
        all.insert(table.cell(row, name).to_owned(), known);
    }
    Ok(all)
}

impl Benchmark {
    /// The measurements as CSV.
    #[must_use]
    pub fn csv(&self) -> Vec<u8> {
        let mut out = Writer::new([
            "encoder",
            "image_px",
            "crop_s",
            "region_s",
            "regions",
            "slide_s",
            "slides",
            "relative",
            "flop",
            "peak_share",
        ]);
        for l in &self.encoders {
            let known = |v: Option<f64>| v.map(|v| v.to_string()).unwrap_or_default();
            let seconds = [l.crop_s, l.region_s, l.slide_s, l.relative].map(|v| v.to_string());
            let [crop, region, slide, relative] = seconds;
            let count = |n: Option<usize>| n.map(|n| n.to_string()).unwrap_or_default();
            let (regions, slides) = (count(l.regions), count(l.slides));
            let name = l.encoder.to_owned();
            let (image, flop, share) = (l.image.to_string(), known(l.flop), known(l.peak_share));
            out.push([name, image, crop, region, regions, slide, slides, relative, flop, share]);
        }
        out.into_bytes()
    }

    /// Encoders that were timed and have no score, and scores of others; none where all meet.
    #[must_use]
    pub fn unmatched(&self, scores: &Scores) -> Option<Unmatched> {
        let timed = self.encoders.iter().map(|l| l.encoder);
        let names = ("the encoders that were timed", "the table of scores");
        Unmatched::between(names, timed, scores.keys().map(String::as_str))
    }

    /// Writes `encoders.csv`, `encoders.json`, and `encoders.svg` where there are scores.
    ///
    /// # Errors
    /// A folder that cannot be written, or scores of no encoder that was timed.
    pub fn write(&self, out: &Path, scores: Option<&Scores>) -> Result<(), TrainError> {
        let picture = match scores {
            None => None,
            Some(s) => Some(self.figure(s).ok_or_else(|| {
                let join = self.unmatched(s).map_or_else(String::new, |join| format!(": {join}"));
                TrainError::run(
                    out,
                    format!("no encoder that was timed has a score in the table{join}"),
                )
            })?),
        };
        write_text(&out.join("encoders.csv"), &String::from_utf8_lossy(&self.csv()))?;
        base::json::write(&out.join("encoders.json"), self)
            .map_err(|e| TrainError::run(out, e.to_string()))?;
        picture.map_or(Ok(()), |p| write_text(&out.join("encoders.svg"), &p.svg()))
    }

    /// Scores over seconds, one dashed line per encoder: a circle for a crop, a triangle for a region,
    /// a square for a slide. None when no timed encoder has a score.
    #[must_use]
    pub fn figure(&self, scores: &Scores) -> Option<Canvas> {
        type Known = Vec<(usize, f64, f64)>;
        let rows: Vec<(&str, Known)> = self
            .encoders
            .iter()
            .filter_map(|l| {
                let seconds = [l.crop_s, l.region_s, l.slide_s];
                let known = scores.get(l.encoder)?.iter().zip(seconds).enumerate();
                let known: Known = known.filter_map(|(k, (s, t))| Some((k, t, (*s)?))).collect();
                (!known.is_empty()).then_some((l.encoder, known))
            })
            .collect();
        let all = || rows.iter().flat_map(|r| &r.1);
        let span = |of: fn(&(usize, f64, f64)) -> f64| {
            all().map(of).fold((f64::INFINITY, 0.0_f64), |m, v| (m.0.min(v), m.1.max(v)))
        };
        if rows.is_empty() {
            return None;
        }
        let ((fast, slow), (worst, best)) = (span(|p| p.1), span(|p| p.2));
        let (left, right, top, bottom) = (70.0, 570.0, 46.0, 346.0);
        // A line for each name, and none below the picture.
        let names = top + 10.0 + 18.0 * rows.len() as f64;
        let mut c = Canvas::new(800.0, names.max(bottom + 60.0));
        c.title("Scores and seconds per crop, region and slide");
        let x = Axis { low: fast / 1.5, high: slow * 1.5, from: left, to: right, log: true };
        let room = 0.05 * (best - worst).max(0.1);
        let (low, high) = ((worst - room).max(0.0), (best + room).min(1.0));
        let y = Axis { low, high, from: bottom, to: top, log: false };
        for v in log_ticks(x.low, x.high) {
            c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
            c.text((x.at(v), bottom + 18.0), &tick_label(v), 12, Anchor::Middle);
        }
        for v in ticks(low, high, 5) {
            c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
            c.text((left - 8.0, y.at(v) + 4.0), &tick_label(v), 12, Anchor::End);
        }
        for (k, ((name, points), colour)) in rows.iter().zip(PALETTE.iter().cycle()).enumerate() {
            let places: Vec<(f64, f64)> = points.iter().map(|p| (x.at(p.1), y.at(p.2))).collect();
            for pair in places.windows(2) {
                c.dashed(pair[0], pair[1], colour, 1.2, Some("4 4"));
            }
            for (&(scale, ..), &at) in points.iter().zip(&places) {
                mark(&mut c, scale, at, colour);
            }
            let line = top + 10.0 + 18.0 * k as f64;
            c.dot((right + 18.0, line - 4.0), 5.0, colour, 1.0);
            c.text((right + 30.0, line), name, 12, Anchor::Start);
        }
        for (k, word) in ["crop", "region", "slide"].into_iter().enumerate() {
            let at = left + 14.0 + 80.0 * k as f64;
            mark(&mut c, k, (at, top - 8.0), INK);
            c.text((at + 10.0, top - 4.0), word, 12, Anchor::Start);
        }
        c.line((left, bottom), (right, bottom), INK, 1.2);
        c.line((left, top), (left, bottom), INK, 1.2);
        c.text(((left + right) / 2.0, bottom + 42.0), "seconds", 13, Anchor::Middle);
        let middle = (left - 50.0, (top + bottom) / 2.0);
        c.styled(middle, "score", 13, Anchor::Middle, INK, false, Some(-90.0));
        Some(c)
    }
}

/// Circle, triangle or square.
fn mark(c: &mut Canvas, scale: usize, (x, y): (f64, f64), colour: &str) {
    match scale {
        0 => c.dot((x, y), 4.5, colour, 1.0),
        1 => c.polygon(&[(x, y - 5.5), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)], colour, 1.0),
        _ => c.rect((x - 4.2, y - 4.2), (8.4, 8.4), colour, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Line, REFERENCE};
    use super::*;

    #[test]
    fn every_encoder_that_was_timed_is_named_within_the_picture() {
        let line = |(k, entry): (usize, &net::encoder::EncoderEntry)| Line {
            encoder: entry.name,
            image: 224,
            crop_s: 0.01 * (k + 1) as f64,
            region_s: 0.42 * (k + 1) as f64,
            regions: None,
            slides: None,
            slide_s: 23.0 * (k + 1) as f64,
            relative: 1.0,
            flop: None,
            peak_share: None,
        };
        let bench = Benchmark {
            schema: "",
            device: String::new(),
            threads: 1,
            precision: "f32",
            batch: 1,
            runs: 1,
            reference: REFERENCE,
            peak_flops: 1.0,
            candidates: [42, 2305],
            encoders: net::encoder::ENCODERS.iter().enumerate().map(line).collect(),
        };
        let known =
            |e: &net::encoder::EncoderEntry| (e.name.to_owned(), [Some(0.8), None, Some(0.5)]);
        let scores: Scores = net::encoder::ENCODERS.iter().map(known).collect();
        assert!(bench.unmatched(&scores).is_none());
        let mut other = scores.clone();
        let name = bench.encoders[0].encoder;
        let score = other.remove(name).expect("a score");
        other.insert(name.to_uppercase(), score);
        let join = bench.unmatched(&other).expect("names that do not meet").to_string();
        let both = [format!("'{name}'"), format!("'{}'", name.to_uppercase())];
        assert!(both.iter().all(|n| join.contains(n)), "{join}");
        assert!(join.contains("would match ignoring upper and lower case"), "{join}");
        let svg = bench.figure(&scores).expect("scores").svg();
        let number = |text: &str, key: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {key}=\"")).expect(key);
            rest.split_once('"').and_then(|(n, _)| n.parse().ok()).expect(key)
        };
        let height = number(&svg, "height");
        for entry in net::encoder::ENCODERS {
            let (before, _) = svg.split_once(&format!(">{}<", entry.name)).expect(entry.name);
            let text = &before[before.rfind("<text").expect("a text")..];
            assert!(number(text, "y") < height, "{} is below {height}", entry.name);
        }
    }
}
