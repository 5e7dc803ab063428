//! The page of a case as blocks, which PDF and HTML show alike.

use crate::case::{Case, Headline, Placed, Slide};
use crate::picture::{self, Picture, Spot};
use base::text::Many;
use mithras::export::CountsFile;
use mitosis::count::density_per_20_mm2;
use mitosis::{Mm2, Point};
use review::view::{Grading, SearchedArea, TOGETHER};

/// Rows of slides that fit on the page; more are counted.
const MOST_SLIDES: usize = 8;
/// Rows of regions that fit on the page; more are counted.
const MOST_REGIONS: usize = 6;
/// Fields of a case that fit.
const MOST_FIELDS: usize = 10;
/// Notes that fit.
const MOST_NOTES: usize = 8;

/// The rule of the paper, as the program counts.
const DENSEST: &str = "densest 2 mm\u{b2} square (Chebyshev distance)";

/// Letters that are shown of the digest of weights.
const WEIGHT_LETTERS: usize = 12;
/// Areas of a hotspot that differ by less are the same, mm2.
const SAME_MM2: f64 = 1e-5;
/// Letters of a value or a note; more are cut.
const LONGEST: usize = 240;
/// Largest height of the pictures of a slide, points.
const OVERVIEW_PT: f64 = 200.0;
/// Largest height of a row of figures, points.
const FIGURE_PT: f64 = 62.0;

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
    /// Pictures side by side, and their largest height on paper, points.
    Pictures(Vec<Picture>, f64),
}

/// The content of a page, before it becomes HTML or PDF.
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
    blocks.push(head(case, count.figures));
    let notes = notes(case);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    if !case.slides.is_empty() {
        blocks.push(Block::Rows(numbers(case, &count, grading)));
    }
    if !case.fields.is_empty() {
        blocks.push(Block::Heading("Case".into()));
        let short = |(name, value): &(String, String)| (cut(name), cut(value));
        let mut fields: Vec<_> = case.fields.iter().take(MOST_FIELDS).map(short).collect();
        if case.fields.len() > MOST_FIELDS {
            let more = case.fields.len() - MOST_FIELDS;
            fields.push(("...".into(), format!("and {more} more, in cases.csv")));
        }
        blocks.push(Block::Rows(fields));
    }
    blocks.push(Block::Heading(Many(case.slides.len(), "slide").to_string()));
    blocks.push(slides(case));
    blocks.extend(regions(case));
    if let Some(shown) = case.shown() {
        let reviewed = case.shows_review(shown);
        let mut unread = Vec::new();
        let overview = picture::overview(shown, reviewed, &mut unread);
        if !overview.is_empty() {
            blocks.push(Block::Pictures(overview, OVERVIEW_PT));
        }
        if let Some((figures, rows)) = picture::gallery(shown, reviewed, &mut unread) {
            blocks.push(Block::Pictures(vec![figures], FIGURE_PT * rows as f64));
        }
        if !unread.is_empty() {
            blocks.push(Block::Notes(unread.iter().map(|why| cut(why)).collect()));
        }
    }
    blocks.push(Block::Heading("How it was made".into()));
    blocks.push(Block::Rows(made(case)));
    Page {
        title: format!("Mitotic count: {}", case.name),
        blocks,
        foot: "Research use only: not for diagnosis. Every figure is a proposal until somebody has looked at it.".into(),
    }
}

/// The number that counts, or why it is missing.
fn head(case: &Case, figures: usize) -> Block {
    let outside = case.slides.iter().find(|s| s.counts.is_outside_range());
    if let Some(slide) = outside {
        return Block::Main(
            "not valid".into(),
            format!(
                "the resolution of {} is outside the model's range: what was found ({}) means nothing",
                cut(&slide.name),
                Many(figures, "figure")
            ),
        );
    }
    if case.slides.is_empty() {
        return Block::Main("not counted".into(), "no slide of this case has a result".into());
    }
    if case.slides.iter().all(|s| !s.counts.has_tissue) {
        return Block::Main("no tissue".into(), "nothing was found to count on".into());
    }
    let headline = case.headline();
    // The hotspot is on one slide: its tissue is what the count is of.
    let short = headline
        .as_ref()
        .is_some_and(|h| h.slide.counts.analysed_mm2 < h.whole_mm2 || h.mm2 < h.whole_mm2);
    let at_least = if short || is_undercounted(case) { "at least " } else { "" };
    let reviewed = match case.slides.iter().any(|s| !s.changed_logs.is_empty()) {
        true => "reviewed; the reviews were changed after the recount",
        false => "reviewed",
    };
    let who = if case.is_reviewed() { reviewed } else { "by the network, not reviewed" };
    let what = match headline.as_ref().and_then(|h| h.placed) {
        Some(p) => format!(
            "mitotic figures in {}, the hotspot that {} placed ({}), {reviewed}",
            headline.as_ref().map_or_else(String::new, on_slide),
            p.reviewer,
            p.rule.named(&p.preset)
        ),
        None => {
            let area = headline.as_ref().map_or_else(String::new, on_slide);
            format!("mitotic figures in {area}, the densest square of any slide ({who})")
        }
    };
    Block::Main(format!("{at_least}{}", headline.map_or(0, |h| h.figures)), what)
}

/// Whether a denser place may have been missed: on a slide on which figures are missed, or on one without a result. A
/// place that a reviewer chose is what it is, on a slide on which figures are found.
fn is_undercounted(case: &Case) -> bool {
    let missed = |s: &Slide| s.counts.misses_figures();
    match case.headline() {
        Some(h) if h.placed.is_some() => missed(h.slide),
        _ => !case.missing.is_empty() || case.slides.iter().any(missed),
    }
}

/// What the scheme gives for a case, or why it gives nothing.
fn score(case: &Case, g: &Grading, h: &Headline<'_>) -> String {
    if case.slides.iter().any(|s| s.counts.is_outside_range()) {
        return "not given: a slide's resolution is outside the model's range".to_owned();
    }
    if !h.slide.counts.has_tissue {
        return "not given: no tissue was found".to_owned();
    }
    let score = g.score(h.figures, h.mm2, &h.slide.counts);
    let bound = is_undercounted(case) && !score.starts_with("at least ");
    format!("{}{score} ({})", if bound { "at least " } else { "" }, g.title)
}

/// The area of a hotspot, and how much of it was not looked at.
fn on_slide(h: &Headline<'_>) -> String {
    let Headline { mm2, whole_mm2, .. } = h;
    let rest = match h.slide.counts.regions.is_some() {
        true => "the rest is off the slide or was not searched",
        false => "the rest is off the slide",
    };
    match mm2 < whole_mm2 {
        true => format!("{mm2:.3} of {whole_mm2} mm\u{b2} ({rest})"),
        false => format!("{mm2} mm\u{b2}"),
    }
}

/// A text that begins with a capital letter.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// So many letters of a text at most.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}\u{2026}", &text[..at]),
        None => text.to_owned(),
    }
}

struct Total {
    figures: usize,
    analysed_mm2: f64,
}

fn total(case: &Case) -> Total {
    let reviewed = case.is_reviewed();
    let figures = |s: &Slide| match (&s.reviewed, reviewed) {
        (Some(r), true) => r.figures,
        _ => s.counts.figures,
    };
    Total {
        figures: case.slides.iter().map(figures).sum(),
        analysed_mm2: case.slides.iter().map(|s| s.counts.analysed_mm2).sum(),
    }
}

fn interval(figures: usize, analysed_mm2: f64) -> String {
    let Ok(i) = stats::interval::poisson(figures as u64, 0.95) else { return String::new() };
    let per = |n| density_per_20_mm2(n, Mm2(analysed_mm2));
    let Some((lower, upper)) = per(i.lower).zip(per(i.upper)) else { return String::new() };
    format!(" (95 %: {lower:.1} \u{2013} {upper:.1})")
}

/// What a Poisson variable's mean may be, given the count of the densest square. The square was chosen for its count,
/// which the interval cannot know; nor does it know of figures that were missed or mistaken.
fn count_interval(count: usize, by_hand: bool) -> String {
    let chosen = match by_hand {
        true => "the place was chosen by hand",
        false => "the densest square was chosen",
    };
    format!(
        "{} figures: exact Poisson interval (Garwood 1936) of the count alone. It leaves out that {chosen}, and \
         figures missed or mistaken",
        bounds(count)
    )
}

/// The 95 % interval of a count.
fn bounds(count: usize) -> String {
    stats::interval::poisson(count as u64, 0.95)
        .map_or_else(|e| e.to_string(), |i| format!("{:.1} \u{2013} {:.1}", i.lower, i.upper))
}

fn numbers(case: &Case, count: &Total, grading: Option<&Grading>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| rows.push((name.to_owned(), value));
    let valid = case.slides.iter().all(|s| !s.counts.is_outside_range());
    let headline = case.headline();
    if let Some(h) = headline.as_ref().filter(|h| valid && h.slide.counts.has_tissue) {
        add("Count, 95 %", count_interval(h.figures, h.placed.is_some()));
    }
    if let Some(h) = headline.as_ref().filter(|h| h.placed.is_none()) {
        let centre = match (&h.slide.reviewed, case.is_reviewed()) {
            (Some(r), true) => r.hotspot_px,
            _ => h.slide.counts.hotspot.map(|h| h.centre_px),
        };
        if let Some([x, y]) = centre {
            let name = cut(&h.slide.name);
            let cut = match h.mm2 < h.whole_mm2 {
                true => format!(", {:.3} mm\u{b2} of it on the slide", h.mm2),
                false => String::new(),
            };
            add("Hotspot", format!("{name}, {DENSEST}, centred on x {x:.0}, y {y:.0} px{cut}"));
        }
    }
    if let Some(shown) = case.shown()
        && let Some(text) = placed(shown, case.shows_review(shown))
    {
        add("Placed by hand", text);
    }
    if let Some((g, h)) = grading.zip(headline.as_ref()) {
        add(&capitalised(&g.gives), score(case, g, h));
    }
    let mark = if valid { "" } else { "not valid: " };
    if let Some(density) = density_per_20_mm2(count.figures as f64, Mm2(count.analysed_mm2)) {
        let interval = interval(count.figures, count.analysed_mm2);
        add("Density", format!("{mark}{density:.1} per 20 mm\u{b2}{interval}"));
    }
    let (figures, mm2) = (count.figures, count.analysed_mm2);
    add("Figures", format!("{mark}{figures} on {mm2:.2} mm\u{b2} of analysed tissue"));
    rows
}

/// The part of a placed hotspot that was searched, mm2, or why it has none.
fn searched_mm2(slide: &Slide, p: &Placed) -> Result<f64, String> {
    let centres: Vec<_> = p.centres_px.iter().map(|[x, y]| Point::new(*x, *y)).collect();
    let searched = SearchedArea::read(&slide.folder, &slide.counts).map_err(|e| e.to_string())?;
    let resolution = slide.counts.resolution().map_err(|e| e.to_string())?;
    searched.hotspot_mm2(&p.rule, &centres, &resolution).map_err(|outside| {
        let at = centres.first().map(|c| format!(" at x {:.0}, y {:.0} px", c.x, c.y));
        let (name, at) = (cut(&slide.name), at.unwrap_or_default());
        format!("the hotspot that {} placed on {name}{at} is {outside}", p.reviewer)
    })
}

/// The hotspot that a reviewer placed on a slide, with its figures.
fn placed(slide: &Slide, reviewed: bool) -> Option<String> {
    let p = slide.placed.as_ref()?;
    let mm2 = match searched_mm2(slide, p) {
        Ok(mm2) => mm2,
        Err(why) => return Some(format!("not counted: {why}")),
    };
    let (n, by_reviewer) = match slide.reviewed.as_ref().and_then(|r| r.placed.as_ref()) {
        Some(counted) => (counted.figures, true),
        None => {
            let spot = Spot::find(slide, reviewed)?;
            let (places, by_reviewer) = picture::figures(slide, reviewed);
            let n = spot.rule.count(&places, &spot.centres, &slide.counts.resolution().ok()?);
            (n, by_reviewer)
        }
    };
    let [x, y] = p.centres_px.first()?;
    Some(format!(
        "{} (95 %: {}){} in {:.3} mm\u{b2} ({}) on {}, centred on x {x:.0}, y {y:.0} px, by {}, {}",
        Many(n, "figure"),
        bounds(n),
        if by_reviewer { "" } else { " of the network" },
        mm2,
        p.rule.named(&p.preset),
        cut(&slide.name),
        p.reviewer,
        date(p.time)
    ))
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
            c.scanner.clone().unwrap_or_else(|| "not stated".into()),
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

/// The regions that were searched, each with its count; nothing where slides were searched whole.
fn regions(case: &Case) -> Option<Block> {
    let mut rows = Vec::new();
    for s in &case.slides {
        let Some(searched) = &s.counts.regions else { continue };
        let outlines = mithras::regions::outlines(&s.folder, s.counts.slide.bounds_offset);
        let outlines = outlines.unwrap_or_default();
        for (k, r) in searched.list.iter().enumerate() {
            let reviewed =
                s.reviewed_places.as_ref().zip(outlines.get(k)).map(|(places, outline)| {
                    let inside = outline.area.index();
                    places.iter().filter(|p| inside.contains(**p)).count().to_string()
                });
            let per = r.density_per_20_mm2.map_or_else(String::new, |d| format!("{d:.1}"));
            let class = if r.class.is_empty() { String::new() } else { format!(" ({})", r.class) };
            rows.push(vec![
                cut(&format!("{}{class}", r.name)),
                s.name.clone(),
                format!("{:.2}", r.area_mm2),
                format!("{:.2}", r.analysed_mm2),
                r.figures.to_string(),
                r.hotspot_count.to_string(),
                per,
                reviewed.unwrap_or_default(),
            ]);
        }
    }
    let head = [
        "Region",
        "Slide",
        "mm\u{b2}",
        "Analysed mm\u{b2}",
        "Figures",
        "Hotspot",
        "per 20 mm\u{b2}",
        "Reviewed",
    ];
    if rows.len() > MOST_REGIONS {
        let more = format!("and {} more, in regions.csv", rows.len() - MOST_REGIONS);
        rows.truncate(MOST_REGIONS);
        rows.push(std::iter::once(more).chain((1..head.len()).map(|_| String::new())).collect());
    }
    (!rows.is_empty()).then(|| Block::Table(head.map(str::to_owned).to_vec(), rows))
}

pub(crate) fn notes(case: &Case) -> Vec<String> {
    let slide_notes = |s: &Slide| {
        s.counts.notes().into_iter().map(|n| format!("{}: {n}", s.name)).collect::<Vec<_>>()
    };
    // First, so that they are never among those that are only counted.
    let changed = case.slides.iter().filter(|s| !s.changed_logs.is_empty()).map(|s| {
        let (name, logs) = (&s.name, s.changed_logs.join(", "));
        format!(
            "{name}: {logs}: changed after the recount, whose numbers these are; recount the run"
        )
    });
    let mut notes: Vec<String> = changed.chain(case.slides.iter().flat_map(slide_notes)).collect();
    notes.extend(case.missing.iter().map(|(slide, why)| format!("{slide} is not counted: {why}")));
    if !case.is_reviewed() && case.slides.iter().any(|s| s.reviewed.is_some()) {
        notes.push(
            "reviewed in part, or by several reviewers: the network's numbers are shown".into(),
        );
    }
    notes.extend(case.slides.iter().filter_map(|s| {
        let signature = s.signed.as_ref().filter(|signature| !signature.changed.is_empty())?;
        let (who, changed) = (&signature.line.reviewer, signature.changed.join(", "));
        Some(format!("{}: changed since {who} signed it: {changed}", s.name))
    }));
    notes.extend(case.slides.iter().filter_map(stale_hotspot));
    let changed = |s: &&Slide| {
        s.reviewed.is_some() && s.reviewed_places.is_none() && s.changed_logs.is_empty()
    };
    notes.extend(case.slides.iter().filter(changed).map(|s| {
        format!(
            "{}: the log of {} is not in this run, or was changed after the recount",
            s.name,
            s.reviewed.as_ref().map_or("", |r| r.reviewer.as_str())
        )
    }));
    let mut notes: Vec<String> = notes.iter().map(|n| cut(n)).collect();
    if notes.len() > MOST_NOTES {
        let more = notes.len() - MOST_NOTES;
        notes.truncate(MOST_NOTES);
        notes.push(format!("and {more} more, in counts.csv"));
    }
    notes
}

/// That a recount by an earlier version took more of a placed hotspot into account than was searched.
fn stale_hotspot(s: &Slide) -> Option<String> {
    let p = s.reviewed.as_ref()?.placed.as_ref()?;
    let why = match searched_mm2(s, s.placed.as_ref()?) {
        Ok(mm2) if p.area_mm2 - mm2 <= SAME_MM2 => return None,
        Ok(mm2) => format!("of it {mm2:.3} mm\u{b2} were searched"),
        Err(why) => why,
    };
    let mm2 = p.area_mm2;
    Some(format!(
        "{}: the hotspot was counted in {mm2:.3} mm\u{b2}, but {why}: recount the run",
        s.name
    ))
}

/// The weights by the first letters of their SHA-256.
fn weights(counts: &CountsFile) -> String {
    let short = |digest: &str| digest.chars().take(WEIGHT_LETTERS).collect::<String>();
    let first = format!("SHA-256 {}", short(&counts.model.segmenter_sha256));
    match &counts.model.classifier_sha256 {
        Some(second) => format!("{first} (first stage), {} (second stage)", short(second)),
        None => first,
    }
}

fn made(case: &Case) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(s) = case.slides.first() {
        let c = &s.counts;
        add("Model", format!("{} ({})", c.model.name, c.model.license));
        add("Weights", weights(c));
        add(
            "Operating point",
            format!(
                "{}: s_seg \u{2265} {:.3}, s_cls \u{2265} {:.3}",
                c.operating_point,
                c.thresholds.seg.get(),
                c.thresholds.cls.get()
            ),
        );
        if let Some(t) = s.searched {
            add("Searched", date(t as f64));
        }
    }
    let reviewer = case.slides.iter().find_map(|s| s.reviewed.as_ref()).map(|r| r.reviewer.clone());
    let others = |signer: &str| {
        let names_signer = |r: &String| r.split(TOGETHER).any(|name| name == signer);
        reviewer.as_ref().is_some_and(|r| !names_signer(r))
    };
    let by =
        |signer: &str| if others(signer) { "; the numbers are not this reviewer's" } else { "" };
    let mut changed = case.slides.iter().filter_map(|s| s.signed.as_ref());
    let changed = changed.find(|s| !s.changed.is_empty()).map(|s| &s.line);
    add("Reviewer", reviewer.clone().unwrap_or_else(|| "nobody".into()));
    let all = !case.slides.is_empty() && case.slides.iter().all(|s| s.signed.is_some());
    match (changed, case.slides.iter().find_map(|s| s.signed.as_ref()).filter(|_| all)) {
        (Some(s), _) => {
            add("Signed", format!("no: changed since {} signed version {}", s.reviewer, s.version))
        }
        (None, Some(s)) => {
            let (s, end) = (&s.line, by(&s.line.reviewer));
            let (who, when) = (&s.reviewer, date(s.time));
            add("Signed", format!("{who}, {when}, version {}{end}", s.version))
        }
        (None, None) => add("Signed", "not signed".into()),
    }
    add(
        "Program",
        format!(
            "mithras {}, configuration {}",
            case.version,
            case.config.get(..16).unwrap_or(&case.config)
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
    use super::{Block, count_interval, date, page};
    use crate::case::{Case, Placed, Slide};
    use mithras::export::{CountsFile, HotspotEntry};
    use mithras::report::{PlacedCount, Reviewed};
    use mitosis::hotspots::{HotspotRule, Shape};
    use review::view::Grading;

    /// A slide with so much analysed tissue and so many figures in its densest square.
    fn slide(name: &str, analysed_mm2: f64, hotspot_count: usize) -> Slide {
        let text = include_str!("../../cli/tests/golden/release-0.1.0/run/one/counts.json");
        let mut counts = CountsFile::parse(text).unwrap();
        (counts.analysed_mm2, counts.hotspot_count) = (analysed_mm2, hotspot_count);
        (counts.figures, counts.has_tissue) = (hotspot_count, true);
        (counts.slide.width, counts.slide.height) = (40_000, 40_000);
        counts.hotspot = Some(HotspotEntry {
            centre_px: [10_000.0, 20_000.0],
            centre_um: [2500.0, 5000.0],
            min_px: [7171.57, 17_171.57],
            max_px: [12_828.43, 22_828.43],
            side_um: 1414.214,
            on_slide_mm2: None,
        });
        counts.resolution_note = None;
        Slide {
            name: name.into(),
            folder: name.into(),
            counts,
            file: None,
            rows: Vec::new(),
            reviewed: None,
            reviewed_places: None,
            changed_logs: Vec::new(),
            placed: None,
            signed: None,
            searched: None,
        }
    }

    fn case(slides: Vec<Slide>) -> Case {
        let name = "one".to_owned();
        let (version, config) = ("1".to_owned(), "0123".to_owned());
        Case { name, fields: Vec::new(), slides, missing: Vec::new(), version, config }
    }

    /// The large number with its words, and the rows by name.
    fn shown(case: &Case) -> (String, String, Vec<(String, String)>) {
        let grading = Grading::load("who-net", None).unwrap();
        let (mut main, mut all) = (Default::default(), Vec::new());
        for block in page(case, Some(&grading)).blocks {
            match block {
                Block::Main(number, what) => main = (number, what),
                Block::Rows(rows) => all.extend(rows),
                _ => {}
            }
        }
        (main.0, main.1, all)
    }

    fn value<'a>(rows: &'a [(String, String)], name: &str) -> &'a str {
        let row = rows.iter().find(|(n, _)| n == name);
        row.map_or("", |(_, value)| value.as_str())
    }

    /// The hotspot is on one slide, so that its tissue, not that of all slides, is what the count is of.
    #[test]
    fn two_slides_with_little_tissue_are_at_least_twice() {
        let little = case(vec![slide("a", 1.5, 3), slide("b", 1.5, 4)]);
        let (number, _, rows) = shown(&little);
        let score = rows.iter().find(|(_, v)| v.starts_with("at least"));
        assert_eq!(number, "at least 4");
        assert!(score.is_some(), "{rows:?}");
        assert!(value(&rows, "Hotspot").starts_with("b, densest 2 mm\u{b2} square (Chebyshev"));
        assert!(value(&rows, "Figures").contains("3.00 mm"), "{rows:?}");
        let enough = case(vec![slide("a", 1.5, 3), slide("b", 2.5, 4)]);
        let (number, _, rows) = shown(&enough);
        assert_eq!(number, "4");
        assert!(!rows.iter().any(|(_, v)| v.starts_with("at least")), "{rows:?}");
    }

    /// Half of the square is off the slide: the count is of what was looked at, and no score takes it up to the whole.
    #[test]
    fn a_hotspot_over_the_edge_is_at_least_so_many_in_what_is_on_the_slide() {
        let mut cut = slide("a", 3.0, 25);
        cut.counts.hotspot.as_mut().unwrap().centre_px = [0.0, 20_000.0];
        let (number, what, rows) = shown(&case(vec![cut]));
        assert_eq!(number, "at least 25");
        assert!(
            what.starts_with("mitotic figures in 1.000 of 2 mm\u{b2} (the rest is off"),
            "{what}"
        );
        assert!(
            value(&rows, "Hotspot").ends_with(", 1.000 mm\u{b2} of it on the slide"),
            "{rows:?}"
        );
        // 25 in 1 mm2 are G3 in the 2 mm2 of the scheme as they are; 50 would be as well, 15 would be G2 and not 30.
        assert!(rows.iter().any(|(_, v)| v.starts_with("at least G3 (")), "{rows:?}");
        let mut fewer = slide("a", 3.0, 15);
        fewer.counts.hotspot.as_mut().unwrap().centre_px = [0.0, 20_000.0];
        let (_, _, rows) = shown(&case(vec![fewer]));
        assert!(rows.iter().any(|(_, v)| v.starts_with("at least G2 (")), "{rows:?}");
    }

    /// A number that leaves out figures or slides is a lower bound, and so is its score.
    #[test]
    fn a_count_that_misses_figures_or_slides_is_at_least_so_many() {
        let score = |rows: &[(String, String)]| value(rows, "Grade by mitoses alone").to_owned();
        let (number, _, rows) = shown(&case(vec![slide("a", 3.0, 5), slide("b", 3.0, 4)]));
        assert_eq!((number.as_str(), score(&rows).starts_with("G2 (")), ("5", true), "{rows:?}");
        let mut coarse = slide("a", 3.0, 5);
        coarse.counts.resolution_note = Some("0.45 um/px is coarser than 0.36 um/px".into());
        let mut blurred = slide("a", 3.0, 5);
        blurred.counts.out_of_focus_mm2 = 1.0;
        let mut lost = case(vec![slide("a", 3.0, 5)]);
        lost.missing.push(("b".into(), "cannot be read".into()));
        for case in [case(vec![coarse]), case(vec![blurred]), lost] {
            let (number, _, rows) = shown(&case);
            assert_eq!(number, "at least 5");
            assert!(score(&rows).starts_with("at least G2 ("), "{rows:?}");
        }
        let mut empty = slide("a", 0.0, 0);
        (empty.counts.has_tissue, empty.counts.hotspot) = (false, None);
        let (number, _, rows) = shown(&case(vec![empty]));
        assert_eq!(
            (number.as_str(), score(&rows).as_str()),
            ("no tissue", "not given: no tissue was found")
        );
        let mut far = slide("a", 3.0, 5);
        far.counts.resolution_note = Some("2 um/px: the counts mean nothing".into());
        let (number, _, rows) = shown(&case(vec![far]));
        assert_eq!(number, "not valid");
        for name in ["Density", "Figures"] {
            assert!(value(&rows, name).starts_with("not valid: "), "{rows:?}");
        }
    }

    /// What a scheme of the user's gives is any text.
    #[test]
    fn a_score_has_the_name_that_its_scheme_gives_it_in_any_language_or_the_usual_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("own.toml");
        let one = case(vec![slide("a", 3.0, 5)]);
        for (gives, name) in
            [("\u{fc}bersicht", "\u{dc}bersicht"), ("", "Mitotic score"), ("\u{2074}", "\u{2074}")]
        {
            let text = format!(
                "name = 'own'\ntitle = 'own'\nsource = 'us'\ngives = '{gives}'\narea_mm2 = 2.0\n\
                 [[grade]]\nname = '1'\nfrom = 0.0\n"
            );
            std::fs::write(&file, text).unwrap();
            let grading = Grading::load(&file.display().to_string(), None).unwrap();
            let rows = page(&one, Some(&grading)).blocks.into_iter().filter_map(|b| match b {
                Block::Rows(rows) => Some(rows),
                _ => None,
            });
            let rows: Vec<(String, String)> = rows.flatten().collect();
            assert!(value(&rows, name).starts_with("1 ("), "{name}: {rows:?}");
        }
    }

    /// A circle of 1 mm2 with 11 figures.
    fn placed_circle(centre: [f64; 2], area_mm2: f64) -> PlacedCount {
        let rule = HotspotRule { shape: Shape::Circle, fields: 1, field_mm2: 1.0, apart: false };
        PlacedCount {
            reviewer: "anna".into(),
            time: 0.0,
            preset: "melanoma".into(),
            rule,
            area_mm2,
            centres_px: vec![centre],
            figures: 11,
            model_figures: 1,
        }
    }

    fn reviewed(placed: PlacedCount) -> Reviewed {
        Reviewed {
            reviewer: "anna".into(),
            figures: 12,
            hotspot_count: 12,
            hotspot_px: Some([1.0, 2.0]),
            hotspot_mm2: None,
            density_per_20_mm2: None,
            scheme: None,
            gives: None,
            model_mitotic_score: None,
            mitotic_score: None,
            placed: Some(placed),
            logs: None,
        }
    }

    #[test]
    fn a_placed_hotspot_gives_the_case_its_number_and_its_slide() {
        let placed = placed_circle([700.0, 600.0], 1.0);
        // Placed on the slide with fewer figures, the other one not reviewed.
        let mut a = slide("a", 3.0, 12);
        a.placed = Some(Placed::from(placed.clone()));
        a.reviewed = Some(reviewed(placed));
        let placed = case(vec![a, slide("b", 3.0, 19)]);
        let (number, what, rows) = shown(&placed);
        assert_eq!(number, "11");
        assert!(
            what.contains("in 1 mm\u{b2}") && what.contains("anna placed (melanoma)"),
            "{what}"
        );
        assert!(value(&rows, "Placed by hand").contains("11 figures"), "{rows:?}");
        assert!(value(&rows, "Placed by hand").contains("on a, centred on x 700"), "{rows:?}");
        assert!(value(&rows, "Count, 95 %").contains("chosen by hand"), "{rows:?}");
        assert_eq!(value(&rows, "Hotspot"), "");
        // 11 in 1 mm2 that was chosen by hand are 11 at least in the 2 mm2 of the scheme, not 22.
        assert!(rows.iter().any(|(_, v)| v.starts_with("at least G2 (")), "{rows:?}");
        assert_eq!(placed.shown().map(|s| s.name.as_str()), Some("a"));
    }

    /// What a recount by an earlier version counted where nothing was searched is named, and not shown as a count of 0.
    #[test]
    fn only_the_searched_part_of_a_placed_hotspot_is_shown() {
        const REGIONS: &str = r#"{"regions": {"source": {"file": "r", "format": "geojson", "sha256": ""},
            "area_mm2": 25, "excluded_mm2": 0, "list": [{"name": "left", "class": "", "area_mm2": 25,
            "tissue_mm2": 3, "analysed_mm2": 3, "unread_mm2": 0, "figures": 3, "hotspot_count": 3,
            "hotspot": null, "density_per_20_mm2": null}]},"#;
        let dir = tempfile::tempdir().unwrap();
        let outline = r#"{"features": [{"geometry": {"coordinates":
            [[[[0, 0], [10000, 0], [10000, 40000], [0, 40000], [0, 0]]]]}, "properties": {"name": "left"}}]}"#;
        std::fs::write(dir.path().join("regions.geojson"), outline).unwrap();
        let text = include_str!("../../cli/tests/golden/release-0.1.0/run/one/counts.json");
        let regions = CountsFile::parse(&text.replacen('{', REGIONS, 1)).unwrap().regions;
        let shown_at = |x: f64, area_mm2: f64| {
            let placed = placed_circle([x, 20_000.0], area_mm2);
            let mut a = slide("a", 3.0, 3);
            (a.folder, a.counts.regions) = (dir.path().into(), regions.clone());
            a.placed = Some(Placed::from(placed.clone()));
            a.reviewed = Some(reviewed(placed));
            let case = case(vec![a]);
            (shown(&case), super::notes(&case).join("; "))
        };
        let ((number, what, rows), notes) = shown_at(10_000.0, 0.5);
        assert_eq!(number, "at least 11");
        assert!(
            what.contains("0.500 of 1 mm\u{b2} (the rest is off the slide or was not"),
            "{what}"
        );
        assert!(value(&rows, "Placed by hand").contains(" in 0.500 mm\u{b2}"), "{rows:?}");
        assert!(!notes.contains("recount the run"), "{notes}");
        let (_, notes) = shown_at(10_000.0, 1.0);
        assert!(notes.contains("in 1.000 mm\u{b2}, but of it 0.500 mm\u{b2} were"), "{notes}");
        let ((_, _, rows), notes) = shown_at(20_000.0, 1.0);
        let outside = "at x 20000, y 20000 px is outside the regions that were searched";
        assert!(notes.contains(outside), "{notes}");
        assert!(value(&rows, "Placed by hand").starts_with("not counted: "), "{rows:?}");
    }

    /// P(X <= k) of a Poisson variable, summed term by term.
    fn at_most(k: usize, mean: f64) -> f64 {
        let (mut term, mut sum) = ((-mean).exp(), 0.0);
        for n in 0..=k {
            sum += term;
            term *= mean / (n + 1) as f64;
        }
        sum
    }

    /// Each bound, to its last digit, is where the tail beyond the count is 2.5 %.
    #[test]
    fn the_interval_of_a_count_is_garwoods() {
        for count in [0_usize, 1, 4, 10, 37, 120] {
            let text = count_interval(count, false);
            let bounds = text.split(" figures").next().unwrap();
            let (lower, upper) = bounds.split_once(" \u{2013} ").unwrap();
            let (lower, upper): (f64, f64) = (lower.parse().unwrap(), upper.parse().unwrap());
            let inside = |tail: [f64; 2]| tail[0] <= 0.025 && 0.025 <= tail[1];
            // The tail above grows with the mean, the one below falls.
            assert!(inside([0.06, -0.06].map(|d| at_most(count, upper + d))), "{count}: {text}");
            match count {
                0 => assert_eq!(lower, 0.0),
                _ => assert!(
                    inside([-0.06, 0.06].map(|d| 1.0 - at_most(count - 1, lower + d))),
                    "{count}: {text}"
                ),
            }
            assert!(
                text.contains("Garwood") && text.contains("densest square was chosen"),
                "{text}"
            );
        }
    }

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
