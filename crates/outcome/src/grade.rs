//! Counts against the thresholds of a grading scheme.

use crate::counts::check_counts;
use crate::error::{Error, Result};
use crate::status::Statuses;
use crate::table::Table;
use base::file::WriteError;
use base::remedy::Setting;
use base::table::Writer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::Path;

/// Which scheme grades which columns of counts.
#[derive(Clone, Debug)]
pub struct GradePlan {
    /// nottingham, fnclcc, gist, who-net, or a TOML file of the same form.
    pub scheme: String,
    /// Field diameter in mm, where the scheme depends on it.
    pub field_diameter: Option<f64>,
    /// Column that names the slide.
    pub slide_column: String,
    /// Column of counts in the hotspot.
    pub hotspot_column: String,
    /// Area that the counts refer to, mm2.
    pub area_mm2: f64,
}

impl Default for GradePlan {
    fn default() -> Self {
        Self {
            scheme: "nottingham".into(),
            field_diameter: None,
            slide_column: "slide".into(),
            hotspot_column: "hotspot_count".into(),
            area_mm2: 2.0,
        }
    }
}

/// The grades of a table of counts.
#[derive(Clone, Debug, Serialize)]
pub struct Grades {
    /// Name of the scheme.
    pub scheme: String,
    /// What it grades.
    pub title: String,
    /// Where its thresholds come from.
    pub source: String,
    /// The area that its thresholds refer to.
    pub scheme_area_mm2: f64,
    /// The area that the counts refer to.
    pub counted_area_mm2: f64,
    /// Slides per grade.
    pub grades: BTreeMap<String, usize>,
    /// One per slide with a count.
    pub slides: Vec<Graded>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
}

impl Grades {
    /// Writes one row per slide as CSV: slide, count, count_in_scheme_area, grade.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_csv(&self, path: &Path) -> std::result::Result<(), WriteError> {
        let mut table = Writer::new(["slide", "count", "count_in_scheme_area", "grade"]);
        for g in &self.slides {
            let (count, scaled) = (g.count.to_string(), g.count_in_scheme_area.to_string());
            table.push([&g.slide, &count, &scaled, &g.grade]);
        }
        table.write(path)
    }
}

/// A slide's count, and the grade that the scheme gives it.
#[derive(Clone, Debug, Serialize)]
pub struct Graded {
    /// Name of the slide.
    pub slide: String,
    /// Figures in the area that was counted.
    pub count: f64,
    /// The count in the scheme's area.
    pub count_in_scheme_area: f64,
    /// In the scheme's own words.
    pub grade: String,
}

const BUILT_IN: [(&str, &str); 4] = [
    ("nottingham", include_str!("../../../presets/grading/nottingham.toml")),
    ("fnclcc", include_str!("../../../presets/grading/fnclcc.toml")),
    ("gist", include_str!("../../../presets/grading/gist.toml")),
    ("who-net", include_str!("../../../presets/grading/who-net.toml")),
];

/// A grading scheme's thresholds with their source.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Its name.
    pub name: String,
    /// What it grades.
    pub title: String,
    /// Where its thresholds come from.
    pub source: String,
    /// What it gives, in its own words: a mitotic score as a rule, which is a part of a grade and none by itself.
    #[serde(default = "mitotic_score")]
    pub gives: String,
    area_mm2: Option<f64>,
    default_field_diameter_mm: Option<f64>,
    #[serde(default)]
    grade: Vec<Grade>,
    #[serde(default)]
    field: Vec<Field>,
}

fn mitotic_score() -> String {
    "mitotic score".to_owned()
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Grade {
    name: String,
    from: Option<f64>,
    above: Option<f64>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Field {
    diameter_mm: f64,
    one: u32,
    two: u32,
}

/// Thresholds for one area.
#[derive(Debug)]
pub struct Rule {
    /// The area that the thresholds refer to, mm2.
    pub area_mm2: f64,
    /// Names with the test of each, ascending.
    grades: Vec<Grade>,
}

impl Scheme {
    /// A built-in scheme by name, or a file.
    ///
    /// # Errors
    /// When the scheme is unknown, or the file is not a scheme.
    pub fn load(name: &str) -> Result<Self> {
        let text = match BUILT_IN.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => (*text).to_owned(),
            None if Path::new(name).is_file() => base::file::read_text(name.as_ref(), 1 << 20)?,
            None => {
                let reason = format!(
                    "no grading scheme '{name}'; there are {}, or give a TOML file",
                    BUILT_IN.map(|(n, _)| n).join(", ")
                );
                return Err(Error::plan(Setting::Scheme, reason));
            }
        };
        let mut scheme: Self = toml::from_str(&text)
            .map_err(|source| Error::Scheme { name: name.to_owned(), source })?;
        if scheme.gives.trim().is_empty() {
            scheme.gives = mitotic_score();
        }
        scheme.rule(None)?;
        Ok(scheme)
    }

    fn wrong(&self, reason: &str) -> Error {
        Error::plan(Setting::Scheme, format!("{}: not a grading scheme: {reason}", self.name))
    }

    /// The thresholds, for a field diameter in mm where the scheme depends on it.
    ///
    /// # Errors
    /// When the diameter does not fit the scheme, or the scheme lacks a threshold.
    pub fn rule(&self, diameter: Option<f64>) -> Result<Rule> {
        if self.field.is_empty() {
            if let Some(d) = diameter {
                let reason = format!(
                    "a field diameter of {d} mm was given, but {} does not depend on the field",
                    self.name
                );
                return Err(Error::plan(Setting::FieldDiameter, reason));
            }
            let area = self.area_mm2.filter(|a| *a > 0.0);
            let area_mm2 = area.ok_or_else(|| self.wrong("area_mm2 must be > 0"))?;
            if self.grade.is_empty()
                || self.grade.iter().any(|g| g.from.is_some() == g.above.is_some())
            {
                return Err(self.wrong("every [[grade]] needs exactly one of `from` and `above`"));
            }
            let grades = self
                .grade
                .iter()
                .map(|g| Grade { name: g.name.clone(), from: g.from, above: g.above })
                .collect();
            return Ok(Rule { area_mm2, grades });
        }
        let d = diameter
            .or(self.default_field_diameter_mm)
            .ok_or_else(|| self.wrong("default_field_diameter_mm is missing"))?;
        let field = self.field.iter().find(|f| (f.diameter_mm - d).abs() < 0.005);
        let field = field.ok_or_else(|| {
            let all = self.field.iter().map(|f| f.diameter_mm);
            let (low, high) = (all.clone().fold(9.0, f64::min), all.fold(0.0, f64::max));
            let reason = format!(
                "{}: no thresholds for a field of {d} mm; it has {low} to {high} mm",
                self.name
            );
            Error::plan(Setting::FieldDiameter, reason)
        })?;
        let grade = |name: &str, above| Grade { name: name.into(), from: None, above };
        let grades = vec![
            Grade { name: "1".into(), from: Some(0.0), above: None },
            grade("2", Some(f64::from(field.one))),
            grade("3", Some(f64::from(field.two))),
        ];
        Ok(Rule { area_mm2: 10.0 * PI / 4.0 * field.diameter_mm.powi(2), grades })
    }
}

impl Rule {
    /// The count in this rule's area (rounded to whole figures where it had to be rescaled) and
    /// its grade.
    #[must_use]
    pub fn apply(&self, count: f64, area_mm2: f64) -> (f64, &str) {
        let same = (area_mm2 - self.area_mm2).abs() < 1e-9;
        let scaled = if same { count } else { (count * self.area_mm2 / area_mm2).round() };
        let reached = |g: &&Grade| match (g.from, g.above) {
            (Some(from), _) => scaled >= from,
            (_, Some(above)) => scaled > above,
            _ => false,
        };
        let name = self.grades.iter().rev().find(reached).map_or("", |g| g.name.as_str());
        (scaled, name)
    }
}

/// Words in the notes of `counts.csv` on a slide whose resolution is outside the model's range.
pub(crate) const MEANINGLESS: &str = "the counts mean nothing";

/// Words in the notes on a slide that is coarse, or out of focus.
const MISSED: [&str; 2] = ["the model misses figures", "where figures are missed"];

/// Column of `cases.csv` with the slides of a case that have no count.
pub(crate) const NOT_COUNTED: &str = "not_counted";

/// The area of the program's own hotspot, mm2.
const DENSEST_MM2: f64 = 2.0;

/// What a table of counts has besides slides with a grade.
#[derive(Default)]
struct Seen {
    /// Rows without a count or without tissue.
    missing: usize,
    /// Slides with a count whose status is that of a slide without one, with it.
    uncounted: Vec<(String, String)>,
    /// Rows whose notes state that the counts mean nothing.
    meaningless: usize,
    /// Rows with less analysed tissue than the counted area.
    small: usize,
    /// Rows whose hotspot hangs over the slide's edge.
    cut: usize,
    /// Rows whose notes state that figures are missed.
    missed: usize,
    /// Rows of cases with slides that were not counted.
    incomplete: usize,
    /// How many rows a slide has.
    rows_of: BTreeMap<String, usize>,
}

impl Seen {
    /// In sentences; `area` is the counted one, mm2.
    fn notes(&self, rows: usize, area: f64) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |n: usize, what: String| {
            if n > 0 {
                notes.push(format!("{n} of {rows} slides {what}"));
            }
        };
        note(self.missing, "have no count, or no tissue to count on, and no grade".into());
        note(self.meaningless, format!("have no grade: their notes state that {MEANINGLESS}"));
        let small = "mm2 of analysed tissue: their grades are lower bounds";
        note(self.small, format!("have less than {area} {small}"));
        let cut = "have a hotspot that hangs over the edge of the slide (hotspot_mm2): their grades are lower bounds";
        note(self.cut, cut.into());
        let missed = "have notes that figures are missed: their grades are lower bounds";
        note(self.missed, missed.into());
        let incomplete =
            "have slides that were not counted (not_counted): their grades are lower bounds";
        note(self.incomplete, incomplete.into());
        if let Some((slide, status)) = self.uncounted.first() {
            let n = self.uncounted.len();
            notes.push(format!(
                "{n} of {rows} slides have no grade: their status is not that of a slide that is done, the first is \
                 '{slide}' ({status})"
            ));
        }
        let twice: Vec<&String> = self.rows_of.iter().filter(|r| *r.1 > 1).map(|r| r.0).collect();
        if let Some(first) = twice.first() {
            let n = twice.len();
            notes.push(format!(
                "{n} slides have more than one row, the first '{first}'; each row is graded"
            ));
        }
        notes
    }
}

/// What is to be known of the thresholds.
fn notes(scheme: &Scheme, rule: &Rule, plan: &GradePlan) -> Vec<String> {
    let area = plan.area_mm2;
    let mut notes = Vec::new();
    if (rule.area_mm2 - area).abs() > 1e-9 {
        let bound = if rule.area_mm2 > area {
            "; an upper bound, since the densest part was counted"
        } else {
            ""
        };
        notes.push(format!(
            "counts in {area} mm2 are rescaled to the scheme's {:.3} mm2 and rounded{bound}",
            rule.area_mm2
        ));
    }
    if let Some(d) = scheme.default_field_diameter_mm.filter(|_| plan.field_diameter.is_none()) {
        notes.push(format!("the field diameter is the scheme's default, {d:.2} mm"));
    }
    notes.push(format!("the mitotic part alone is not the tumour's grade; {}", scheme.title));
    notes
}

/// Grades every slide of a table of counts.
///
/// # Errors
/// When the scheme, the plan or a cell is wrong.
pub fn grade(table: &Table, plan: &GradePlan) -> Result<Grades> {
    let area = plan.area_mm2;
    if !(area.is_finite() && area > 0.0) {
        return Err(Error::plan(Setting::Area, format!("{area} is not an area in mm2")));
    }
    let scheme = Scheme::load(&plan.scheme)?;
    let rule = scheme.rule(plan.field_diameter)?;
    let slide = table.column(&plan.slide_column)?;
    let hotspot = table.column(&plan.hotspot_column)?;
    let mut notes = notes(&scheme, &rule, plan);
    let mut slides = Vec::new();
    let mut grades = BTreeMap::new();
    let mut seen = Seen::default();
    let statuses = Statuses::find(table);
    let noted = table.first_column(&["notes"]);
    let analysed = table.first_column(&["analysed_mm2"]);
    let on_slide = table.first_column(&["hotspot_mm2"]);
    let not_counted = table.first_column(&[NOT_COUNTED]);
    // Other columns are of other areas.
    let of_hotspot = plan.hotspot_column.ends_with("hotspot_count");
    for row in 0..table.len() {
        let name = table.cell(row, slide).unwrap_or("(unnamed)").to_owned();
        let analysed_mm2 = table.number_if_any(row, analysed)?;
        if analysed_mm2.is_some_and(|a| a <= 0.0) || table.cell(row, hotspot).is_none() {
            seen.missing += 1;
            continue;
        }
        if let Some(status) = statuses.uncounted(row) {
            seen.uncounted.push((name, status.to_owned()));
            continue;
        }
        let notes_of_row = noted.and_then(|n| table.cell(row, n));
        if notes_of_row.is_some_and(|text| text.contains(MEANINGLESS)) {
            seen.meaningless += 1;
            continue;
        }
        check_counts(table, row)?;
        *seen.rows_of.entry(name.clone()).or_insert(0) += 1;
        let count = table.number(row, hotspot)?;
        if count < 0.0 {
            return Err(table.wrong(row, hotspot, format!("count {count} is negative")));
        }
        let is_missed = |text: &str| MISSED.iter().any(|words| text.contains(words));
        seen.missed += usize::from(notes_of_row.is_some_and(is_missed));
        seen.small += usize::from(analysed_mm2.is_some_and(|a| a < area));
        let whole = area.min(DENSEST_MM2) - 1e-9;
        let mm2 = table.number_if_any(row, on_slide)?;
        if let (true, Some(column), Some(mm2)) =
            (of_hotspot, on_slide, mm2.filter(|m| *m > area + 1e-6))
        {
            let reason = format!("a hotspot of {mm2} mm2, but the counts are to be of {area} mm2");
            return Err(table.wrong(row, column, reason));
        }
        seen.cut += usize::from(mm2.is_some_and(|mm2| mm2 < whole));
        seen.incomplete +=
            usize::from(table.number_if_any(row, not_counted)?.is_some_and(|n| n > 0.0));
        let (count_in_scheme_area, grade) = rule.apply(count, area);
        *grades.entry(grade.to_owned()).or_insert(0) += 1;
        let grade = grade.to_owned();
        slides.push(Graded { slide: name, count, count_in_scheme_area, grade });
    }
    notes.extend(seen.notes(table.len(), area));
    notes.extend(table.misspelt().map(|unread| unread.to_string()));
    Ok(Grades {
        scheme: scheme.name,
        title: scheme.title,
        source: scheme.source.trim().to_owned(),
        scheme_area_mm2: rule.area_mm2,
        counted_area_mm2: area,
        grades,
        slides,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Highest counts of scores 1 and 2 for fields of 0.40, 0.41, ... 0.69 mm.
    const NOTTINGHAM: [(u32, u32); 30] = [
        (4, 9),
        (4, 9),
        (5, 10),
        (5, 10),
        (5, 11),
        (5, 11),
        (6, 12),
        (6, 12),
        (6, 13),
        (6, 13),
        (7, 14),
        (7, 14),
        (7, 15),
        (8, 16),
        (8, 16),
        (8, 17),
        (8, 17),
        (9, 18),
        (9, 19),
        (9, 19),
        (10, 20),
        (10, 21),
        (11, 22),
        (11, 22),
        (11, 23),
        (12, 24),
        (12, 24),
        (12, 25),
        (13, 26),
        (13, 27),
    ];

    #[test]
    fn nottingham_at_every_field_diameter() {
        let scheme = Scheme::load("nottingham").unwrap();
        assert_eq!(scheme.field.len(), NOTTINGHAM.len());
        for (k, (one, two)) in NOTTINGHAM.into_iter().enumerate() {
            let d = 0.40 + 0.01 * k as f64;
            let rule = scheme.rule(Some(d)).unwrap();
            assert!((rule.area_mm2 - 10.0 * PI / 4.0 * d * d).abs() < 1e-9);
            for (count, want) in [(0, "1"), (one, "1"), (one + 1, "2"), (two, "2"), (two + 1, "3")]
            {
                let got = rule.apply(f64::from(count), rule.area_mm2).1;
                assert_eq!(got, want, "{count} figures in fields of {d:.2} mm");
            }
            // The limits follow the area: 9.5 and 19.5 figures in ten fields of 0.59 mm.
            let share = (d / 0.59).powi(2);
            assert!((f64::from(one) + 0.5 - 9.5 * share).abs() < 1.1, "{d:.2} mm: {one}");
            assert!((f64::from(two) + 0.5 - 19.5 * share).abs() < 1.1, "{d:.2} mm: {two}");
        }
        // Without a diameter: ten fields of 0.50 mm, 1.96 mm2.
        let rule = scheme.rule(None).unwrap();
        assert_eq!(rule.apply(7.0, 2.0).1, "1");
        assert_eq!(rule.apply(8.0, 2.0).1, "2");
    }

    #[test]
    fn lower_bounds_of_cases_and_the_default_field_are_noted() {
        let text = "case,hotspot_count,not_counted,analysed_mm2,hotspot_mm2\na,5,0,9,2\nb,7,2,9,2\nc,9,,9,1.2\n";
        let table = Table::parse(Path::new("cases.csv"), text.as_bytes()).unwrap();
        let plan = GradePlan { slide_column: "case".into(), ..GradePlan::default() };
        let notes = grade(&table, &plan).unwrap().notes.join("; ");
        for words in [
            "1 of 3 slides have slides that were not counted (not_counted): their grades are lower bounds",
            "1 of 3 slides have a hotspot that hangs over the edge",
            "the field diameter is the scheme's default, 0.50 mm",
        ] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        let stated = GradePlan { field_diameter: Some(0.5), ..plan };
        assert!(!grade(&table, &stated).unwrap().notes.join("; ").contains("default"));
        // A column that is misspelt is not passed over, those of others are.
        assert!(!notes.contains("not read"), "{notes}");
        let misspelt = "case,age,stage,hotspot_count,Not Counted,analyzed_mm2\na,60,T2,5,0,9\n";
        let table = Table::parse(Path::new("cases.csv"), misspelt.as_bytes()).unwrap();
        let notes = grade(&table, &stated).unwrap().notes.join("; ");
        let line = "cases.csv: 2 columns are not read: `Not Counted` (is `not_counted` meant?), `analyzed_mm2` (is \
                    `analysed_mm2` meant?)";
        assert!(notes.contains(line), "{notes}");
    }

    #[test]
    fn an_area_that_contradicts_the_hotspots_of_the_table_is_refused() {
        let text = "slide,hotspot_count,figures,hotspot_mm2\na,5,9,2\nb,7,9,1.5\n";
        let table = Table::parse(Path::new("counts.csv"), text.as_bytes()).unwrap();
        let plan = GradePlan { area_mm2: 1.5, ..GradePlan::default() };
        let refused = grade(&table, &plan).unwrap_err().to_string();
        let words = "column 'hotspot_mm2', row 1 (line 2): a hotspot of 2 mm2, but the counts are to be of 1.5 mm2";
        assert!(refused.contains(words), "{refused}");
        assert_eq!(grade(&table, &GradePlan::default()).unwrap().slides.len(), 2);
        let all = GradePlan { hotspot_column: "figures".into(), ..plan };
        assert_eq!(grade(&table, &all).unwrap().slides.len(), 2, "not of the hotspot");
    }

    #[test]
    fn counts_of_a_row_that_contradict_each_other_are_refused() {
        let graded = |row: &str| {
            let head = "slide,figures,hotspot_count,density_per_20_mm2,analysed_mm2";
            let head = format!("{head},reviewed_figures,reviewed_hotspot_count");
            let text = format!("{head}\n{row}\n");
            let table = Table::parse(Path::new("counts.csv"), text.as_bytes()).unwrap();
            grade(&table, &GradePlan::default()).map(|g| g.slides.len()).map_err(|e| e.to_string())
        };
        for sound in ["a,9,7,45,4,8,7", "a,9,7,45.02,4.0,,", "a,9,7,,,9,", "a,0,0,0,4,0,0"] {
            assert_eq!(graded(sound), Ok(1), "{sound}");
        }
        for (row, words) in [
            (
                "a,9,10,45,4,,",
                "'hotspot_count', row 1 (line 2): 10 figures in the hotspot, but 9 on",
            ),
            (
                "a,9,7,90,4,,",
                "'density_per_20_mm2', row 1 (line 2): 90, but 9 figures on 4 mm2 are 45",
            ),
            (
                "a,9,7,45,4,3,7",
                "'reviewed_hotspot_count', row 1 (line 2): 7 figures in the hotspot, but 3",
            ),
        ] {
            let refused = graded(row).unwrap_err();
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }

    #[test]
    fn a_count_of_a_slide_that_is_not_done_gives_no_grade() {
        let text = "slide,status,hotspot_count\na,finished,5\nb,failed,0\nc,running,30\nd,no-tissue,0\ne,failed,\n";
        let table = Table::parse(Path::new("counts.csv"), text.as_bytes()).unwrap();
        let graded = grade(&table, &GradePlan::default()).unwrap();
        let names: Vec<&str> = graded.slides.iter().map(|g| g.slide.as_str()).collect();
        assert_eq!(names, ["a"]);
        let notes = graded.notes.join("; ");
        for words in ["3 of 5 slides have no grade", "'b' (failed)", "1 of 5 slides have no count"]
        {
            assert!(notes.contains(words), "{words}: {notes}");
        }
    }

    #[test]
    fn thresholds_as_published() {
        let grade = |scheme: &str, d: Option<f64>, count: f64, area: f64| {
            Scheme::load(scheme).unwrap().rule(d).unwrap().apply(count, area).1.to_owned()
        };
        for (count, want) in [(0.0, "G1"), (1.0, "G1"), (2.0, "G2"), (20.0, "G2"), (21.0, "G3")] {
            assert_eq!(grade("who-net", None, count, 2.0), want);
        }
        for (count, want) in [(0.0, "low"), (5.0, "low"), (6.0, "high")] {
            assert_eq!(grade("gist", None, count, 5.0), want);
        }
        assert_eq!(grade("gist", None, 3.0, 2.0), "high"); // 7.5 -> 8 per 5 mm2
        for (count, want) in [(0.0, "1"), (9.0, "1"), (10.0, "2"), (19.0, "2"), (20.0, "3")] {
            assert_eq!(grade("fnclcc", None, count, 1.734), want);
        }
        let scheme = Scheme::load("nottingham").unwrap();
        assert!(scheme.rule(Some(1.2)).unwrap_err().to_string().contains("0.4 to 0.69"));
        assert!(Scheme::load("gleason").unwrap_err().to_string().contains("who-net"));
    }
}
