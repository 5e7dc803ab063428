//! `cases.csv`: one line per case, where a list names the cases of its slides.

use super::reviewed::{PlacedCount, Reviewed};
use super::slide_line::{SAME_FILE, SlideLine, same_files};
use super::table;
use crate::export::CountsFile;
use base::table::{Writer, bare};
use mitosis::Mm2;
use mitosis::count::density_per_20_mm2;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Columns of a list with the case of a slide; the first that exists is used.
pub const CASE_COLUMNS: [&str; 2] = ["case", "patient"];
/// How the slides' hotspots become one.
pub const HOTSPOT_RULE: &str = "highest of the slides";
/// How the slides' densities become one.
pub const DENSITY_RULE: &str = "pooled: figures of all slides over their analysed tissue";

/// The columns of `cases.csv`; those of a reviewer's hotspot and of a list follow.
pub(super) const COLUMNS: [&str; 21] = [
    "case",
    "slides",
    "not_counted",
    "figures",
    "hotspot_count",
    "hotspot_slide",
    "hotspot_mm2",
    "hotspot_slide_analysed_mm2",
    "hotspot_rule",
    "density_per_20_mm2",
    "density_low",
    "density_high",
    "density_rule",
    "analysed_mm2",
    "reviewed_by",
    "reviewed_figures",
    "reviewed_hotspot_count",
    "reviewed_hotspot_mm2",
    "reviewed_density_per_20_mm2",
    "slide_names",
    "notes",
];

/// The columns that follow if a reviewer's hotspot was asked for.
const PLACED: [&str; 5] =
    ["placed_slide", "placed_by", "placed_rule", "placed_mm2", "placed_figures"];

/// Every column that `counts.csv` and `cases.csv` may have, but that of the case: a list has none of these names.
#[must_use]
pub fn written_columns() -> Vec<&'static str> {
    let counts = [&table::REVIEWED[..], &table::PLACED, &table::REGIONS, &table::SUBTYPES];
    let mut all = [&table::COLUMNS[..], &counts.concat(), &COLUMNS, &PLACED].concat();
    all.retain(|c| !CASE_COLUMNS.contains(c));
    all
}

/// Counts over all slides of one case, as in `cases.csv`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseLine {
    /// Its name in the list.
    pub case: String,
    /// Slides with a result, by name.
    pub slides: Vec<String>,
    /// Slides of it that failed or are not done.
    pub without_result: Vec<String>,
    /// Its count by the network.
    pub model: CaseCount,
    /// Its count with a reviewer's verdicts on top; none unless all its slides with candidates were recounted with the
    /// verdicts of one reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<CaseCount>,
    /// The reviewer of those verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The hotspot that a reviewer placed, where it was asked for: of several the one with most figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedOn>,
    /// Analysed tissue, mm2.
    pub analysed_mm2: f64,
    /// Further columns of the list whose cells agree on all its slides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
    /// What is to be known of the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What was counted on all slides of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseCount {
    /// Accepted figures on all its slides.
    pub figures: usize,
    /// Figures in the densest 2 mm2 of any slide.
    pub hotspot_count: usize,
    /// The slide of that hotspot; none without figures.
    pub hotspot_slide: Option<String>,
    /// The part of that hotspot that was searched, mm2; none without figures, and where that is not known.
    pub hotspot_mm2: Option<f64>,
    /// Analysed tissue of its slide, mm2; none without figures.
    pub hotspot_slide_analysed_mm2: Option<f64>,
    /// Figures per 20 mm2 of analysed tissue; none without any.
    pub density_per_20_mm2: Option<f64>,
    /// The same by the exact 95 % interval of the figures as a Poisson count.
    pub density_95: Option<[f64; 2]>,
}

/// A placed hotspot of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacedOn {
    /// Name of the slide that it is on.
    pub slide: String,
    /// Rule, place and counts of the hotspot.
    #[serde(flatten)]
    pub hotspot: PlacedCount,
}

/// What was counted on one slide of a case.
struct SlideCount<'a> {
    name: &'a str,
    figures: usize,
    hotspot: usize,
    /// The part of the hotspot that was searched.
    hotspot_mm2: Option<f64>,
    analysed_mm2: f64,
}

impl<'a> SlideCount<'a> {
    /// With a reviewer's verdicts on top, or without; a slide without candidates has nothing to judge.
    fn new(slide: &'a SlideLine, c: &CountsFile, with_review: bool) -> Self {
        let (name, analysed_mm2) = (slide.name.as_str(), c.analysed_mm2);
        let (figures, hotspot, hotspot_mm2) = match &slide.reviewed {
            Some(r) if with_review => (r.figures, r.hotspot_count, r.hotspot_mm2),
            _ => (c.figures, c.hotspot_count, c.hotspot_mm2()),
        };
        Self { name, figures, hotspot, hotspot_mm2, analysed_mm2 }
    }
}

impl CaseCount {
    /// Of the slides' figures and hotspots, over so much tissue.
    fn new(slides: &[SlideCount<'_>], analysed_mm2: f64) -> Self {
        let figures = slides.iter().map(|s| s.figures).sum::<usize>();
        let per = |n: f64| density_per_20_mm2(n, Mm2(analysed_mm2));
        // Of equal hotspots the first slide's, by name.
        let best = slides.iter().rev().max_by_key(|s| s.hotspot);
        let best = best.filter(|s| s.hotspot > 0);
        let interval = stats::interval::poisson(figures as u64, 0.95).ok();
        Self {
            figures,
            hotspot_count: best.map_or(0, |s| s.hotspot),
            hotspot_slide: best.map(|s| s.name.to_owned()),
            hotspot_mm2: best.and_then(|s| s.hotspot_mm2),
            hotspot_slide_analysed_mm2: best.map(|s| s.analysed_mm2),
            density_per_20_mm2: per(figures as f64),
            density_95: interval.and_then(|i| Some([per(i.lower)?, per(i.upper)?])),
        }
    }
}

/// The cell of a slide's list that names its case.
#[must_use]
pub fn case_name(columns: &[(String, String)]) -> Option<&str> {
    let cell = |wanted: &str| columns.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let (_, cell) = CASE_COLUMNS.iter().find_map(|c| cell(c))?;
    Some(cell.as_str()).filter(|c| !c.trim().is_empty())
}

/// A slide without a result as yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Name of the slide's folder.
    pub name: String,
    /// Its cells of the list of slides, by column.
    pub columns: Vec<(String, String)>,
}

/// The slides of one case.
#[derive(Default)]
struct Members<'a> {
    slides: Vec<&'a SlideLine>,
    unfinished: Vec<&'a Unfinished>,
}

/// The cases of slides, by name, and the slides that name none; nothing where no slide names one.
#[must_use]
pub fn cases(slides: &[SlideLine], unfinished: &[Unfinished]) -> (Vec<CaseLine>, Vec<String>) {
    let mut of: BTreeMap<&str, Members<'_>> = BTreeMap::new();
    let mut without = Vec::new();
    for slide in slides {
        match case_name(&slide.columns) {
            Some(case) => of.entry(case).or_default().slides.push(slide),
            None => without.push(slide.name.clone()),
        }
    }
    for slide in unfinished {
        if let Some(case) = case_name(&slide.columns) {
            of.entry(case).or_default().unfinished.push(slide);
        }
    }
    if of.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut spelt: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    of.keys().for_each(|case| spelt.entry(bare(case)).or_default().push(case));
    let lines = of.iter().map(|(case, members)| {
        let mut line = line(case, members);
        let alike = spelt.get(&bare(case)).filter(|all| all.len() > 1);
        line.notes.extend(alike.map(|all| {
            let names: Vec<String> = all.iter().map(|name| format!("'{name}'")).collect();
            format!("cases that are one but for their spelling count apart: {}", names.join(", "))
        }));
        line
    });
    (lines.collect(), without)
}

fn line(case: &str, Members { slides, unfinished }: &Members<'_>) -> CaseLine {
    let done: Vec<_> = slides.iter().filter_map(|s| Some((*s, s.counts.as_ref()?))).collect();
    let failed = slides.iter().filter(|s| s.counts.is_none()).map(|s| s.name.clone());
    let without_result: Vec<String> =
        failed.chain(unfinished.iter().map(|s| s.name.clone())).collect();
    // A sum of nothing is -0.
    let analysed = done.iter().fold(0.0, |sum, (_, c)| sum + c.analysed_mm2);
    let analysed_mm2 = (analysed * 1e6).round() / 1e6;
    let count = |with_review: bool| {
        let slides: Vec<_> = done.iter().map(|(s, c)| SlideCount::new(s, c, with_review)).collect();
        CaseCount::new(&slides, analysed_mm2)
    };
    let one = one_reviewer(done.iter().map(|(s, c)| (*c, s.reviewed.as_ref())));
    let mut notes = Vec::new();
    if !without_result.is_empty() {
        notes.push(format!("not counted: {}", without_result.join(", ")));
    }
    for (slide, counts) in &done {
        notes.extend(counts.notes().into_iter().map(|n| format!("{}: {n}", slide.name)));
    }
    for names in same_files(done.iter().map(|(s, _)| *s)) {
        notes.push(format!("{}: {SAME_FILE}", names.join(", ")));
    }
    if one.is_none() && done.iter().any(|(s, _)| s.reviewed.is_some()) {
        notes.push(
            "reviewed in part, or by several reviewers: these are the network's numbers".to_owned(),
        );
    }
    CaseLine {
        case: case.to_owned(),
        slides: done.iter().map(|(s, _)| s.name.clone()).collect(),
        without_result,
        model: count(false),
        reviewer: one.map(str::to_owned),
        placed: placed(&done),
        reviewed: one.map(|_| count(true)),
        analysed_mm2,
        columns: agreed(
            slides.iter().map(|s| &s.columns[..]).chain(unfinished.iter().map(|s| &s.columns[..])),
        ),
        notes,
    }
}

/// The placed hotspot with most figures, of equal ones the first slide's, by name; whether or not the other slides
/// were reviewed.
fn placed(done: &[(&SlideLine, &CountsFile)]) -> Option<PlacedOn> {
    let all = done.iter().filter_map(|(s, _)| Some((*s, s.reviewed.as_ref()?.placed.as_ref()?)));
    let (slide, hotspot) = all.rev().max_by_key(|(_, p)| p.figures)?;
    Some(PlacedOn { slide: slide.name.clone(), hotspot: hotspot.clone() })
}

/// The reviewer whose verdicts count on all these slides but those without candidates, where nothing was to be judged.
#[must_use]
pub fn one_reviewer<'a>(
    slides: impl Iterator<Item = (&'a CountsFile, Option<&'a Reviewed>)>,
) -> Option<&'a str> {
    let judged = slides.filter(|(c, r)| r.is_some() || c.candidates > 0);
    let mut all = judged.map(|(_, r)| r.map(|r| r.reviewer.as_str()));
    let first = all.next()??;
    all.all(|r| r == Some(first)).then_some(first)
}

/// Columns, other than that of the case, whose cells agree on all these slides.
fn agreed<'a>(mut slides: impl Iterator<Item = &'a [(String, String)]>) -> Vec<(String, String)> {
    let mut all = slides.next().unwrap_or_default().to_vec();
    all.retain(|(name, _)| !name.eq_ignore_ascii_case(CASE_COLUMNS[0]));
    slides.for_each(|columns| all.retain(|cell| columns.contains(cell)));
    all
}

/// `cases.csv`.
pub(super) fn text(cases: &[CaseLine]) -> Vec<u8> {
    let further = table::further(cases.iter().map(|c| &c.columns));
    let by_hand = cases.iter().any(|c| c.placed.is_some());
    let placed: &[&str] = if by_hand { &PLACED } else { &[] };
    let mut table = Writer::new([&COLUMNS[..], placed, &further].concat());
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    for c in cases {
        let (m, r) = (&c.model, c.reviewed.as_ref());
        // Of no slide is not the count 0.
        let count = |n: usize| if c.slides.is_empty() { String::new() } else { n.to_string() };
        let mut cells = vec![
            c.case.clone(),
            c.slides.len().to_string(),
            c.without_result.len().to_string(),
            count(m.figures),
            count(m.hotspot_count),
            m.hotspot_slide.clone().unwrap_or_default(),
            number(m.hotspot_mm2),
            number(m.hotspot_slide_analysed_mm2),
            HOTSPOT_RULE.to_owned(),
            number(m.density_per_20_mm2),
            number(m.density_95.map(|d| d[0])),
            number(m.density_95.map(|d| d[1])),
            DENSITY_RULE.to_owned(),
            c.analysed_mm2.to_string(),
            c.reviewer.clone().unwrap_or_default(),
            r.map_or_else(String::new, |r| r.figures.to_string()),
            r.map_or_else(String::new, |r| r.hotspot_count.to_string()),
            number(r.and_then(|r| r.hotspot_mm2)),
            number(r.and_then(|r| r.density_per_20_mm2)),
            c.slides.join("; "),
            c.notes.join("; "),
        ];
        let hotspot = c.placed.as_ref().map_or_else(Default::default, |p| {
            let h = &p.hotspot;
            let (mm2, figures) = (h.area_mm2.to_string(), h.figures.to_string());
            [p.slide.clone(), h.reviewer.clone(), h.preset.clone(), mm2, figures]
        });
        cells.extend(hotspot.into_iter().take(placed.len()));
        cells.extend(further.iter().map(|name| {
            let found = c.columns.iter().find(|(n, _)| n == name);
            found.map_or_else(String::new, |(_, cell)| cell.clone())
        }));
        table.push(cells);
    }
    table.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_hotspot_and_the_pooled_density_are_the_cases() {
        let slide = |name, figures, hotspot| {
            let (hotspot_mm2, analysed_mm2) = (Some(1.5), 40.0);
            SlideCount { name, figures, hotspot, hotspot_mm2, analysed_mm2 }
        };
        let slides = [slide("a", 3, 3), slide("b", 9, 5), slide("c", 8, 5)];
        let count = CaseCount::new(&slides, 40.0);
        assert_eq!(
            (count.figures, count.hotspot_count, count.hotspot_slide.as_deref()),
            (20, 5, Some("b"))
        );
        // 20 figures over 40 mm2; R: poisson.test(20)$conf.int / 2.
        assert_eq!(count.density_per_20_mm2, Some(10.0));
        let [low, high] = count.density_95.unwrap();
        assert!((low - 6.108_26).abs() < 1e-5 && (high - 15.444_19).abs() < 1e-4, "{low} {high}");
        assert_eq!((count.hotspot_mm2, count.hotspot_slide_analysed_mm2), (Some(1.5), Some(40.0)));
        let none = CaseCount::new(&[slide("a", 0, 0)], 0.0);
        assert_eq!(
            (none.hotspot_slide, none.density_per_20_mm2, none.density_95),
            (None, None, None)
        );
    }

    #[test]
    fn a_slide_without_candidates_does_not_keep_a_case_from_being_reviewed() {
        let text = include_str!("../../../cli/tests/golden/release-0.1.0/run/one/counts.json");
        let full = CountsFile::parse(text).unwrap();
        let empty = CountsFile { candidates: 0, ..full.clone() };
        let review = |who: &str| -> Reviewed {
            let text = format!(r#"{{"reviewer":"{who}","figures":1,"hotspot_count":1}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let (anna, bert) = (review("anna"), review("bert"));
        let by = |slides: &[(&CountsFile, Option<&Reviewed>)]| {
            one_reviewer(slides.iter().copied()).map(str::to_owned)
        };
        assert_eq!(by(&[(&empty, None), (&full, Some(&anna))]).as_deref(), Some("anna"));
        assert_eq!(by(&[(&full, None), (&full, Some(&anna))]), None);
        assert_eq!(by(&[(&empty, Some(&bert)), (&full, Some(&anna))]), None);
        assert_eq!(by(&[(&empty, None)]), None);
    }

    #[test]
    fn cases_that_are_one_but_for_their_spelling_are_noted() {
        let slide = |name: &str, case: &str| Unfinished {
            name: name.to_owned(),
            columns: vec![("case".to_owned(), case.to_owned())],
        };
        let all = [slide("a", "P1"), slide("b", "p1"), slide("c", "P1\u{200B}"), slide("d", "P2")];
        let (lines, _) = cases(&[], &all);
        let is_noted =
            |line: &CaseLine| line.notes.iter().any(|n| n.contains("count apart: 'P1', "));
        assert_eq!(lines.iter().map(is_noted).collect::<Vec<_>>(), [true, true, false, true]);
    }

    #[test]
    fn the_column_case_comes_before_patient() {
        let of = |cells: &[(&str, &str)]| -> Vec<(String, String)> {
            cells.iter().map(|(n, c)| ((*n).to_owned(), (*c).to_owned())).collect()
        };
        assert_eq!(case_name(&of(&[("patient", "p"), ("Case", "c")])), Some("c"));
        assert_eq!(case_name(&of(&[("Patient", "p")])), Some("p"));
        assert_eq!(case_name(&of(&[("patient", " ")])), None);
        assert_eq!(case_name(&of(&[("age", "3")])), None);
    }
}
