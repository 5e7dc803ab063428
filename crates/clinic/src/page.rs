//! The page of a case as blocks, which PDF and HTML show alike.

use crate::case::{Case, Slide};
use mithras::export::pictures;
use review::view::Grading;
use mitosis::count::DENSITY_REFERENCE_MM2;
use base::text::Many;

/// Rows of slides that fit on the page; more are counted.
const MOST_SLIDES: usize = 8;
/// Fields of a case that fit.
const MOST_FIELDS: usize = 10;
/// Notes that fit.
const MOST_NOTES: usize = 8;

/// A line on a picture, in shares of its width and height.
pub type Outline = Vec<[f64; 2]>;

/// A part of the page.
pub enum Block {
    /// A heading.
    Heading(String),
    /// The number that counts, large, with what it is.
    Main(String, String),
    /// Name and value.
    Rows(Vec<(String, String)>),
    /// A table: head and rows.
    Table(Vec<String>, Vec<Vec<String>>),
    /// Sentences that a reader must know, each a line.
    Notes(Vec<String>),
    /// A JPEG with outlines on it, its largest height in points, and what it shows.
    Picture {
        /// The JPEG.
        jpeg: Vec<u8>,
        /// Rings on it.
        outlines: Vec<Outline>,
        /// Largest height on paper, points.
        height: f64,
        /// What it shows.
        caption: String,
    },
}

/// A page.
pub struct Page {
    /// Its title.
    pub title: String,
    /// What is on it, in order.
    pub blocks: Vec<Block>,
    /// The last line.
    pub foot: String,
}

/// The page of a case.
#[must_use]
pub fn page(case: &Case, grading: Option<&Grading>) -> Page {
    let mut blocks = Vec::new();
    let count = total(case);
    let short = count.analysed_mm2 < 2.0;
    let at_least = if short { "at least " } else { "" };
    let who = if case.is_reviewed() { "reviewed" } else { "by the network, not reviewed" };
    blocks.push(Block::Main(
        format!("{at_least}{}", count.hotspot),
        format!("mitotic figures in 2 mm\u{b2}, the densest square of any slide ({who})"),
    ));
    blocks.push(Block::Rows(numbers(case, &count, grading)));
    if !case.fields.is_empty() {
        blocks.push(Block::Heading("Case".into()));
        let mut fields: Vec<_> = case.fields.iter().take(MOST_FIELDS).cloned().collect();
        if case.fields.len() > MOST_FIELDS {
            let more = case.fields.len() - MOST_FIELDS;
            fields.push(("...".into(), format!("and {more} more, in cases.csv")));
        }
        blocks.push(Block::Rows(fields));
    }
    blocks.push(Block::Heading(Many(case.slides.len(), "slide").to_string()));
    blocks.push(slides(case));
    let notes = notes(case);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    if let Some(best) = case.best() {
        blocks.extend(pictures_of(best));
    }
    blocks.push(Block::Heading("How it was made".into()));
    blocks.push(Block::Rows(made(case)));
    Page {
        title: format!("Mitotic count: {}", case.name),
        blocks,
        foot: "Research use only: not for diagnosis. Every figure is a proposal until somebody has looked at it.".into(),
    }
}

struct Total {
    figures: usize,
    hotspot: usize,
    analysed_mm2: f64,
}

fn total(case: &Case) -> Total {
    let reviewed = case.is_reviewed();
    let of = |s: &Slide| match (&s.reviewed, reviewed) {
        (Some(r), true) => (r.figures, r.hotspot_count),
        _ => (s.counts.figures, s.counts.hotspot_count),
    };
    Total {
        figures: case.slides.iter().map(|s| of(s).0).sum(),
        hotspot: case.slides.iter().map(|s| of(s).1).max().unwrap_or(0),
        analysed_mm2: case.slides.iter().map(|s| s.counts.analysed_mm2).sum(),
    }
}

fn interval(figures: usize, analysed_mm2: f64) -> String {
    let Ok(i) = stats::interval::poisson(figures as u64, 0.95) else { return String::new() };
    let per = DENSITY_REFERENCE_MM2 / analysed_mm2;
    format!(" (95 %: {:.1} \u{2013} {:.1})", i.lower * per, i.upper * per)
}

fn numbers(case: &Case, count: &Total, grading: Option<&Grading>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut say = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(best) = case.best() {
        let centre = match (&best.reviewed, case.is_reviewed()) {
            (Some(r), true) => r.hotspot_px,
            _ => best.counts.hotspot.map(|h| h.centre_px),
        };
        if let Some([x, y]) = centre {
            say("Hotspot", format!("{}, centred on x {x:.0}, y {y:.0} px", best.name));
        }
        if let Some(p) = &best.placed {
            say(
                "Placed by hand",
                format!(
                    "{} of {:.3} mm\u{b2} by {}, {}",
                    p.preset,
                    p.rule.area_mm2(),
                    p.reviewer,
                    date(p.time)
                ),
            );
        }
    }
    if let Some(g) = grading {
        let meaningless = case.slides.iter().any(|s| s.counts.is_outside_range());
        let value = match meaningless {
            true => "not given: a slide's resolution is outside the model's range".to_owned(),
            false => format!("{} ({})", g.score(count.hotspot, count.analysed_mm2), g.title),
        };
        let mut name = g.gives.clone();
        name[..1].make_ascii_uppercase();
        say(&name, value);
    }
    if count.analysed_mm2 > 0.0 {
        let density = count.figures as f64 / count.analysed_mm2 * DENSITY_REFERENCE_MM2;
        say(
            "Density",
            format!("{density:.1} per 20 mm\u{b2}{}", interval(count.figures, count.analysed_mm2)),
        );
    }
    say(
        "Figures",
        format!("{} on {:.2} mm\u{b2} of analysed tissue", count.figures, count.analysed_mm2),
    );
    rows
}

fn slides(case: &Case) -> Block {
    let head =
        ["Slide", "\u{b5}m/px", "Scanner", "Regions", "mm\u{b2}", "Figures", "Hotspot", "Reviewed"];
    let row = |s: &Slide| {
        let c = &s.counts;
        let reviewed = s.reviewed.as_ref().map_or_else(String::new, |r| {
            format!("{}, hotspot {} ({})", r.figures, r.hotspot_count, r.reviewer)
        });
        vec![
            s.name.clone(),
            format!("{:.3}", c.resolution.x),
            c.slide.vendor.clone(),
            c.regions.as_ref().map_or_else(
                || "whole slide".into(),
                |r| format!("{}, {:.2} mm\u{b2}", r.list.len(), r.area_mm2),
            ),
            format!("{:.2}", c.analysed_mm2),
            c.figures.to_string(),
            c.hotspot_count.to_string(),
            reviewed,
        ]
    };
    let mut rows: Vec<Vec<String>> = case.slides.iter().take(MOST_SLIDES).map(row).collect();
    if case.slides.len() > MOST_SLIDES {
        let more = format!("and {} more", case.slides.len() - MOST_SLIDES);
        rows.push(std::iter::once(more).chain((1..head.len()).map(|_| String::new())).collect());
    }
    Block::Table(head.map(str::to_owned).to_vec(), rows)
}

fn notes(case: &Case) -> Vec<String> {
    let of = |s: &Slide| {
        s.counts.notes().into_iter().map(|n| format!("{}: {n}", s.name)).collect::<Vec<_>>()
    };
    let mut notes: Vec<String> = case.slides.iter().flat_map(of).collect();
    notes.extend(case.missing.iter().map(|(slide, why)| format!("{slide} is not counted: {why}")));
    if !case.is_reviewed() && case.slides.iter().any(|s| s.reviewed.is_some()) {
        notes.push(
            "reviewed in part, or by several reviewers: the network's numbers are shown".into(),
        );
    }
    if notes.len() > MOST_NOTES {
        let more = notes.len() - MOST_NOTES;
        notes.truncate(MOST_NOTES);
        notes.push(format!("and {more} more, in counts.csv"));
    }
    notes
}

fn pictures_of(slide: &Slide) -> Vec<Block> {
    let c = &slide.counts;
    let (w, h) = (c.slide.width as f64, c.slide.height as f64);
    let mut blocks = Vec::new();
    let read = |file: &str| std::fs::read(slide.folder.join(file)).ok();
    if let Some(jpeg) = read(pictures::THUMBNAIL) {
        let mut outlines = Vec::new();
        if let Some(s) = c.hotspot {
            let ([x0, y0], [x1, y1]) = (s.min_px, s.max_px);
            let on = |x: f64, y: f64| [(x / w).clamp(0.0, 1.0), (y / h).clamp(0.0, 1.0)];
            outlines.push(vec![on(x0, y0), on(x1, y0), on(x1, y1), on(x0, y1)]);
        }
        let regions =
            mithras::regions::outlines(&slide.folder, c.slide.bounds_offset).unwrap_or_default();
        let share = |ring: Vec<[f64; 2]>| {
            ring.into_iter().map(|[x, y]| [x / w, y / h]).collect::<Outline>()
        };
        outlines.extend(regions.iter().flat_map(|(_, area)| area.closed()).flatten().map(share));
        let what = if regions.is_empty() { "hotspot" } else { "hotspot and regions" };
        blocks.push(Block::Picture {
            jpeg,
            outlines,
            height: 190.0,
            caption: format!("{}: {what}", slide.name),
        });
    }
    let figures = pictures::top(&slide.rows).len();
    if let Some(jpeg) = read(pictures::FIGURES).filter(|_| figures > 0) {
        let caption = format!(
            "{} by score, 24 \u{b5}m wide each, of {}",
            Many(figures, "counted figure"),
            slide.name
        );
        let rows = figures.div_ceil(pictures::COLUMNS) as f64;
        blocks.push(Block::Picture { jpeg, outlines: Vec::new(), height: 58.0 * rows, caption });
    }
    blocks
}

fn made(case: &Case) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut say = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(s) = case.slides.first() {
        let c = &s.counts;
        say("Model", format!("{} ({})", c.model.name, c.model.license));
        say(
            "Operating point",
            format!(
                "{}: s_seg \u{2265} {:.3}, s_cls \u{2265} {:.3}",
                c.operating_point,
                c.thresholds.seg.get(),
                c.thresholds.cls.get()
            ),
        );
        if let Some(t) = s.searched {
            say("Searched", date(t as f64));
        }
    }
    let reviewer = case.slides.iter().find_map(|s| s.reviewed.as_ref()).map(|r| r.reviewer.clone());
    say("Reviewer", reviewer.unwrap_or_else(|| "nobody".into()));
    let all = !case.slides.is_empty() && case.slides.iter().all(|s| s.signed.is_some());
    match case.slides.iter().find_map(|s| s.signed.as_ref()).filter(|_| all) {
        Some(s) => {
            say("Signed", format!("{}, {}, version {}", s.reviewer, date(s.time), s.version))
        }
        None => say("Signed", "not signed".into()),
    }
    say(
        "Program",
        format!(
            "mithras {}, configuration {}",
            case.version,
            &case.config[..case.config.len().min(16)]
        ),
    );
    rows
}

/// Day and minute, UTC, of seconds since 1970.
fn date(seconds: f64) -> String {
    let minutes = (seconds / 60.0) as i64;
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Civil date from days: H. Hinnant, "chrono-compatible low-level date algorithms".
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0.0, "1970-01-01 00:00 UTC"),
            (951_782_400.0, "2000-02-29 00:00 UTC"),
            (1_795_689_000.0, "2026-11-26 10:30 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
