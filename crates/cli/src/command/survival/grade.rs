//! `mithras survival grade`: counts against the thresholds of a grading scheme.

use super::output::{print_columns, say, show};
use super::table::Table;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// Mitotic scores of a grading scheme
#[derive(clap::Args)]
pub struct Args {
    /// counts.csv of a detection run, or any table of counts
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
    /// nottingham, fnclcc, gist, who-net, or a TOML file of the same form
    #[arg(long, value_name = "SCHEME")]
    scheme: String,
    /// Field diameter in mm (Nottingham)
    #[arg(long, value_name = "MM")]
    field_diameter: Option<f64>,
    /// Column that names the slide
    #[arg(long, value_name = "COLUMN", default_value = "slide")]
    slide_column: String,
    /// Column of counts in the hotspot
    #[arg(long, value_name = "COLUMN", default_value = "hotspot_count")]
    hotspot_column: String,
    /// Area the counts refer to, mm2
    #[arg(long, value_name = "MM2", default_value_t = 2.0)]
    area: f64,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

const BUILT_IN: [(&str, &str); 4] = [
    ("nottingham", include_str!("../../../../../presets/grading/nottingham.toml")),
    ("fnclcc", include_str!("../../../../../presets/grading/fnclcc.toml")),
    ("gist", include_str!("../../../../../presets/grading/gist.toml")),
    ("who-net", include_str!("../../../../../presets/grading/who-net.toml")),
];

/// A grading scheme's thresholds with their source.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    pub name: String,
    pub title: String,
    pub source: String,
    area_mm2: Option<f64>,
    default_field_diameter_mm: Option<f64>,
    #[serde(default)]
    grade: Vec<Grade>,
    #[serde(default)]
    field: Vec<Field>,
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
    pub fn load(name: &str) -> Result<Self> {
        let text = match BUILT_IN.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => (*text).to_owned(),
            None if Path::new(name).is_file() => {
                std::fs::read_to_string(name).with_context(|| format!("{name}: cannot be read"))?
            }
            None => bail!(
                "no grading scheme '{name}'; there are {}, or give a TOML file",
                BUILT_IN.map(|(n, _)| n).join(", ")
            ),
        };
        let scheme: Self =
            toml::from_str(&text).with_context(|| format!("{name}: not a grading scheme"))?;
        scheme.rule(None).with_context(|| format!("{name}: not a grading scheme"))?;
        Ok(scheme)
    }

    /// The thresholds, for a field diameter where the scheme depends on it.
    pub fn rule(&self, diameter: Option<f64>) -> Result<Rule> {
        if self.field.is_empty() {
            if let Some(d) = diameter {
                bail!("--field-diameter {d}: {} does not depend on the field", self.name);
            }
            let area_mm2 = self.area_mm2.filter(|a| *a > 0.0).context("area_mm2 must be > 0")?;
            if self.grade.is_empty()
                || self.grade.iter().any(|g| g.from.is_some() == g.above.is_some())
            {
                bail!("every [[grade]] needs exactly one of `from` and `above`");
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
            .context("default_field_diameter_mm is missing")?;
        let field =
            self.field.iter().find(|f| (f.diameter_mm - d).abs() < 0.005).with_context(|| {
                let all = self.field.iter().map(|f| f.diameter_mm);
                let (low, high) = (all.clone().fold(9.0, f64::min), all.fold(0.0, f64::max));
                format!(
                    "{}: no thresholds for a field of {d} mm; it has {low} to {high} mm",
                    self.name
                )
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

pub fn run(args: &Args) -> Result<()> {
    if !(args.area.is_finite() && args.area > 0.0) {
        bail!("--area {} is not an area in mm2", args.area);
    }
    let scheme = Scheme::load(&args.scheme)?;
    let rule = scheme.rule(args.field_diameter)?;
    let table = Table::read(&args.counts, &[])?;
    let slide = table.column(&args.slide_column)?;
    let hotspot = table.column(&args.hotspot_column)?;
    let mut notes = Vec::new();
    if (rule.area_mm2 - args.area).abs() > 1e-9 {
        let bound = if rule.area_mm2 > args.area {
            "; an upper bound, since the densest part was counted"
        } else {
            ""
        };
        notes.push(format!(
            "counts in {} mm2 are rescaled to the scheme's {:.3} mm2 and rounded{bound}",
            args.area, rule.area_mm2
        ));
    }
    notes.push(format!("the mitotic part alone is not the tumour's grade; {}", scheme.title));
    let mut rows = Vec::new();
    let (mut missing, mut small) = (0, 0);
    let analysed = table.first_of(&["analysed_mm2"]);
    for row in 0..table.len() {
        let name = table.cell(row, slide).unwrap_or("(unnamed)").to_owned();
        if table.cell(row, hotspot).is_none() {
            missing += 1;
            continue;
        }
        let count = table.number(row, hotspot)?;
        if count < 0.0 {
            bail!("{}: count {count} is negative", table.place(row, hotspot));
        }
        if let Some(a) = analysed
            && table.cell(row, a).is_some()
        {
            small += usize::from(table.number(row, a)? < args.area);
        }
        let (scaled, grade) = rule.apply(count, args.area);
        rows.push((name, count, scaled, grade.to_owned()));
    }
    if missing > 0 {
        notes.push(format!("{missing} of {} slides have no count and no grade", table.len()));
    }
    if small > 0 {
        notes.push(format!(
            "{small} of {} slides have less than {} mm2 of analysed tissue: their grades are lower \
             bounds",
            table.len(),
            args.area
        ));
    }
    say("note", &notes);
    if let Some(out) = &args.out {
        let header = ["slide", "count", "count_in_scheme_area", "grade"];
        let lines =
            rows.iter().map(|(s, c, k, g)| [s.clone(), c.to_string(), k.to_string(), g.clone()]);
        let mut table = artifact::table::Writer::new(header);
        lines.for_each(|line| table.push(line));
        table.write(out)?;
    }
    let mut tally = BTreeMap::new();
    for (.., grade) in &rows {
        *tally.entry(grade.clone()).or_insert(0) += 1;
    }
    if args.json {
        let slides: Vec<_> = rows
            .iter()
            .map(|(s, c, k, g)| json!({ "slide": s, "count": c, "count_in_scheme_area": k, "grade": g }))
            .collect();
        let value = json!({ "scheme": scheme.name, "title": scheme.title,
            "source": scheme.source.trim(), "scheme_area_mm2": rule.area_mm2,
            "counted_area_mm2": args.area, "grades": tally, "slides": slides, "notes": notes });
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    let mut lines =
        vec![["slide", "count", "in scheme's area", "grade"].map(String::from).to_vec()];
    lines.extend(rows.iter().map(|(s, c, k, g)| vec![s.clone(), show(*c), show(*k), g.clone()]));
    print_columns(&lines);
    println!("\n{}", scheme.source.trim());
    Ok(())
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
