//! Counts of slides joined with the clinical table, per slide and per patient.

use crate::counts::check_counts;
use crate::error::{Error, Result};
use crate::grade::{MEANINGLESS, NOT_COUNTED};
use crate::status::Statuses;
use crate::table::Table;
use base::remedy::Setting;
use base::table::Unmatched;
use base::text::Many;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Column names that the cohort adds to the clinical ones.
pub(crate) const SLIDE: &str = "mithras_slide";
/// The patient.
pub(crate) const PATIENT: &str = "mithras_patient";
/// Figures in the 2 mm2 hotspot.
pub(crate) const HOTSPOT: &str = "hotspot";
/// Figures per 20 mm2 of analysed tissue.
pub(crate) const DENSITY: &str = "density";

/// How the counts of a patient's slides become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PatientRule {
    /// The largest.
    #[default]
    Max,
    /// The mean.
    Mean,
    /// The sum.
    Sum,
}

impl PatientRule {
    /// All rules.
    pub(crate) const ALL: [Self; 3] = [Self::Max, Self::Mean, Self::Sum];

    /// Every rule by its word.
    pub const WORDS: &[&str] = &["max", "mean", "sum"];

    /// As plans and results write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Sum => "sum",
        }
    }

    /// The combined count.
    #[must_use]
    pub fn combine(self, values: &[f64]) -> f64 {
        let sum: f64 = values.iter().sum();
        match self {
            Self::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => sum / values.len() as f64,
            Self::Sum => sum,
        }
    }
}

impl std::str::FromStr for PatientRule {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|r| r.name() == word);
        found.ok_or_else(|| format!("`{word}` is not one of {}", Self::WORDS.join(", ")))
    }
}

/// Which columns of the two tables belong together.
pub(crate) struct Columns<'a> {
    pub join_counts: &'a str,
    pub join_clinical: &'a str,
    pub patient: Option<&'a str>,
    pub hotspot: Option<&'a str>,
    pub density: Option<&'a str>,
}

/// One slide with its counts and the row of its patient in the clinical table.
#[derive(Debug, Clone)]
pub(crate) struct Slide {
    pub slide: String,
    pub patient: String,
    pub clinical: usize,
    pub hotspot: f64,
    pub density: f64,
    /// Analysed tissue, mm2, where the table has it.
    pub mm2: Option<f64>,
}

/// The slides that have counts and a clinical row.
#[derive(Debug, Clone)]
pub(crate) struct Cohort {
    pub slides: Vec<Slide>,
    pub notes: Vec<String>,
    /// Rows of cases with slides that were not counted: their counts are lower bounds.
    pub incomplete: usize,
    /// Why most slides have no clinical row, where few have one: the reason of an analysis that fails.
    pub apart: Option<String>,
}

/// Slides with a clinical row, below which an analysis fails for want of them.
const FEW: usize = 10;

impl Cohort {
    /// Joins counts with clinical rows.
    ///
    /// A slide belongs to the clinical row whose key equals the slide's (as written, or as a file
    /// name without its extensions), or else is its longest prefix that ends at `-`, `_`, `.` or a
    /// space: TCGA slides so find their patient's barcode.
    #[expect(
        clippy::too_many_lines,
        reason = "one pass over two tables; every refusal names its row"
    )]
    pub fn join(table: &Table, clinical: &Table, columns: &Columns) -> Result<Self> {
        let key = table.column(columns.join_counts)?;
        let (mut slides, mut notes) = (Vec::new(), Vec::new());
        let hotspot = pick(table, columns.hotspot, &HOTSPOTS, &mut notes)?;
        let density = pick(table, columns.density, &DENSITIES, &mut notes)?;
        let not_counted = table.first_column(&[NOT_COUNTED]);
        let analysed = table.first_column(&["analysed_mm2"]);
        let on_slide = table.first_column(&["hotspot_mm2"]);
        let right = clinical.column(columns.join_clinical)?;
        let patient = columns.patient.map(|p| clinical.column(p)).transpose()?;
        let mut rows: HashMap<&str, usize> = HashMap::new();
        for row in 0..clinical.len() {
            let Some(k) = clinical.cell(row, right) else { continue };
            if rows.insert(k, row).is_some() {
                let reason = format!("'{k}' occurs twice; the join needs one row each");
                return Err(clinical.wrong(row, right, reason));
            }
        }
        // Slides of one patient may share its key; their own column distinguishes them.
        let own = table.first_column(&["slide"]).unwrap_or(key);
        let mut seen = HashMap::new();
        let noted = table.first_column(&["notes"]);
        let statuses = Statuses::find(table);
        let (mut unmatched, mut uncounted) = (Vec::new(), Vec::new());
        let (mut small, mut cut, mut meaningless, mut incomplete) = (0, 0, 0, 0);
        let mut by_prefix = 0;
        let mut used = HashSet::new();
        let mut taken = Vec::new();
        for row in 0..table.len() {
            let Some(name) = table.cell(row, key) else {
                return Err(table.wrong(row, key, "the slide has no name"));
            };
            let slide = table.cell(row, own).unwrap_or(name);
            if let Some(first) = seen.insert(slide.to_owned(), row) {
                let reason = format!("'{slide}' is already in row {}", first + 1);
                return Err(table.wrong(row, own, reason));
            }
            let analysed_mm2 = table.number_if_any(row, analysed)?;
            let no_tissue = analysed_mm2.is_some_and(|mm2| mm2 <= 0.0);
            if no_tissue || table.cell(row, hotspot).is_none() || table.cell(row, density).is_none()
            {
                uncounted.push(name.to_owned());
                continue;
            }
            if let Some(status) = statuses.uncounted(row) {
                uncounted.push(format!("{name}: {status}"));
                continue;
            }
            check_counts(table, row)?;
            let Some((found, prefix)) = find(name, &rows) else {
                unmatched.push(name.to_owned());
                continue;
            };
            by_prefix += usize::from(prefix);
            used.insert(found);
            taken.push(row);
            small += usize::from(analysed_mm2.is_some_and(|mm2| mm2 < 2.0));
            meaningless += usize::from(
                noted.and_then(|n| table.cell(row, n)).is_some_and(|t| t.contains(MEANINGLESS)),
            );
            cut += usize::from(table.number_if_any(row, on_slide)?.is_some_and(|mm2| mm2 < 2.0));
            let missing = table.number_if_any(row, not_counted)?;
            incomplete += usize::from(missing.is_some_and(|n| n > 0.0));
            let column = patient.unwrap_or(right);
            let id = clinical
                .cell(found, column)
                .ok_or_else(|| clinical.wrong(found, column, "no patient"))?;
            let non_negative = |column: usize| match table.number(row, column)? {
                v if v >= 0.0 => Ok(v),
                v => Err(table.wrong(row, column, format!("{v} is negative"))),
            };
            slides.push(Slide {
                slide: slide.to_owned(),
                patient: id.to_owned(),
                clinical: found,
                hotspot: non_negative(hotspot)?,
                density: non_negative(density)?,
                mm2: analysed_mm2,
            });
        }
        let mut idle: Vec<&str> =
            rows.iter().filter(|(_, row)| !used.contains(*row)).map(|(k, _)| *k).collect();
        idle.sort_unstable();
        let alone: Vec<&str> = unmatched.iter().map(String::as_str).collect();
        let names = (table.path().display().to_string(), clinical.path().display().to_string());
        let sides = (names.0.as_str(), names.1.as_str());
        if slides.is_empty() {
            let join = Unmatched::from_keys(sides, &alone, &idle)
                .map_or_else(String::new, |j| format!(": {j}"));
            let reason = format!(
                "no slide ({}) matches a row of {} ({}){join}",
                columns.join_counts,
                clinical.path().display(),
                columns.join_clinical
            );
            return Err(content(table, reason));
        }
        let some = |names: &[String]| {
            let shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            if names.len() > 3 { format!("{shown}, ...") } else { shown }
        };
        if small > 0 {
            notes.push(format!(
                "less than 2 mm2 of analysed tissue on {}: hotspot counts there are lower bounds, \
                 densities rest on little",
                Many(small, "slide")
            ));
        }
        if meaningless > 0 {
            notes.push(format!(
                "used although their notes state that {MEANINGLESS}: {}",
                Many(meaningless, "slide")
            ));
        }
        if cut > 0 {
            notes.push(format!(
                "hotspots that hang over the edge of the slide (hotspot_mm2) on {}: their counts are lower bounds",
                Many(cut, "slide")
            ));
        }
        notes.extend(counted_otherwise(table, &taken));
        notes.extend(table.misspelt().map(|unread| unread.to_string()));
        if by_prefix > 0 {
            notes
                .push(format!("matched to a clinical row by prefix: {}", Many(by_prefix, "slide")));
        }
        if !unmatched.is_empty() {
            let n = Many(unmatched.len(), "slide");
            let join = Unmatched::from_keys(sides, &alone, &idle)
                .map_or_else(String::new, |j| format!("; {j}"));
            notes
                .push(format!("left out without a clinical row: {n} ({}){join}", some(&unmatched)));
        }
        if !uncounted.is_empty() {
            let n = Many(uncounted.len(), "slide");
            notes.push(format!(
                "left out without analysed tissue or a count: {n} ({})",
                some(&uncounted)
            ));
        }
        let apart = (slides.len() < FEW.min(unmatched.len())).then(|| {
            format!(
                "{} of {} slides ({}) match a row of {} ({}), too few to analyse{}",
                slides.len(),
                slides.len() + unmatched.len(),
                columns.join_counts,
                clinical.path().display(),
                columns.join_clinical,
                Unmatched::from_keys(sides, &alone, &idle)
                    .map_or_else(String::new, |j| format!(": {j}"))
            )
        });
        Ok(Self { slides, notes, incomplete, apart })
    }

    /// A warning about rows of cases with slides that were not counted.
    pub fn incomplete(&self) -> Option<String> {
        (self.incomplete > 0).then(|| {
            format!(
                "{} with slides that were not counted ({NOT_COUNTED}): their counts are lower bounds",
                Many(self.incomplete, "case")
            )
        })
    }

    /// One row per slide: the clinical columns, then [`SLIDE`], [`PATIENT`], [`HOTSPOT`],
    /// [`DENSITY`].
    pub fn per_slide(&self, clinical: &Table) -> Result<Table> {
        let row = |s: &Slide| CountRow {
            clinical: s.clinical,
            slides: s.slide.clone(),
            patient: s.patient.clone(),
            hotspot: s.hotspot,
            density: s.density,
        };
        extended(clinical, &self.slides.iter().map(row).collect::<Vec<_>>())
    }

    /// The slides of each patient, in the order of the patients' names.
    fn by_patient(&self) -> BTreeMap<&str, Vec<&Slide>> {
        let mut patients: BTreeMap<&str, Vec<&Slide>> = BTreeMap::new();
        for s in &self.slides {
            patients.entry(&s.patient).or_default().push(s);
        }
        patients
    }

    /// Only these slides, where a patient has one of them, each with the clinical row that `row` gives its patient.
    pub fn narrowed(&self, kept: &HashSet<usize>, row: &HashMap<String, usize>) -> Self {
        let has: HashSet<&str> = kept.iter().map(|&i| self.slides[i].patient.as_str()).collect();
        let wanted = |(i, s): &(usize, &Slide)| kept.contains(i) || !has.contains(&*s.patient);
        let slides = self.slides.iter().enumerate().filter(wanted).map(|(_, s)| {
            let clinical = row.get(&s.patient).copied().unwrap_or(s.clinical);
            Slide { clinical, ..s.clone() }
        });
        Self { slides: slides.collect(), ..self.clone() }
    }

    /// One row per patient, counts combined by `rule`; clinical columns are those of the patient's
    /// first slide, after [`Self::narrowed`] the same for all of them.
    ///
    /// # Errors
    /// When the rule gives no density.
    pub fn per_patient(&self, clinical: &Table, rule: PatientRule) -> Result<Table> {
        let densities = self
            .densities_of_patients(rule)
            .ok_or_else(|| Error::plan(Setting::PatientRule, NO_SUM.to_owned()))?;
        let counts = self.hotspots_of_patients(rule).into_iter().zip(densities);
        let rows: Vec<CountRow> = self
            .by_patient()
            .into_iter()
            .zip(counts)
            .map(|((patient, slides), (hotspot, density))| CountRow {
                clinical: slides[0].clinical,
                slides: slides.iter().map(|s| s.slide.as_str()).collect::<Vec<_>>().join(" "),
                patient: patient.to_owned(),
                hotspot,
                density,
            })
            .collect();
        extended(clinical, &rows)
    }

    /// Hotspot count of each row of [`Self::per_patient`].
    pub fn hotspots_of_patients(&self, rule: PatientRule) -> Vec<f64> {
        let combined = |slides: &Vec<&Slide>| {
            rule.combine(&slides.iter().map(|s| s.hotspot).collect::<Vec<_>>())
        };
        self.by_patient().values().map(combined).collect()
    }

    /// Density of each row of [`Self::per_patient`]. As a sum it is all figures over all analysed tissue, and `None`
    /// where a patient's slides have no areas.
    pub fn densities_of_patients(&self, rule: PatientRule) -> Option<Vec<f64>> {
        let combined = |slides: &Vec<&Slide>| match (rule, &slides[..]) {
            (PatientRule::Sum, [_, _, ..]) => {
                let areas: f64 = slides.iter().map(|s| s.mm2).sum::<Option<f64>>()?;
                let weighted = slides.iter().map(|s| Some(s.density * s.mm2?));
                Some(weighted.sum::<Option<f64>>()? / areas)
            }
            _ => Some(rule.combine(&slides.iter().map(|s| s.density).collect::<Vec<_>>())),
        };
        self.by_patient().values().map(combined).collect()
    }

    /// Each patient with the number of its slides, in the order of the rows of [`Self::per_patient`].
    #[cfg_attr(not(feature = "report"), expect(dead_code, reason = "the report alone reads it"))]
    pub fn slides_of_patients(&self) -> Vec<(&str, usize)> {
        self.by_patient().into_iter().map(|(patient, slides)| (patient, slides.len())).collect()
    }

    /// How many patients.
    pub fn patients(&self) -> usize {
        self.by_patient().len()
    }
}

/// Why a patient of several slides has no density as a sum.
pub(crate) const NO_SUM: &str = "the densities of a patient's slides do not add up: as a sum, figures and areas are added, \
                                 and the table of counts lacks the `analysed_mm2` of a slide";

/// Usual names of the columns with hotspot counts; the first is the program's own.
const HOTSPOTS: [&str; 2] = ["hotspot_count", "hotspot"];
/// The same of densities.
const DENSITIES: [&str; 3] = ["density_per_20_mm2", "density_per_20mm2", "density"];

/// What makes the counts of these rows differ besides the slides: thresholds, models, and um/px far apart.
fn counted_otherwise(table: &Table, rows: &[usize]) -> Vec<String> {
    /// A slide at 20x next to one at 40x; scanners of one magnification differ by a tenth.
    const FAR: f64 = 1.5;
    let cells = |name: &str| {
        let column = table.first_column(&[name])?;
        Some(rows.iter().filter_map(|row| table.cell(*row, column)).collect::<BTreeSet<_>>())
    };
    let mut notes = vec![];
    for name in ["model", "operating_point", "threshold_seg", "threshold_cls"] {
        let values: Vec<&str> = cells(name).into_iter().flatten().collect();
        if values.len() > 1 {
            let shown = values.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            let more = if values.len() > 3 { ", ..." } else { "" };
            notes.push(format!(
                "counted with several values of {name} ({shown}{more}): the counts of slides cannot be compared"
            ));
        }
    }
    let mpp = cells("mpp_x").into_iter().flatten().filter_map(|t| t.parse::<f64>().ok());
    let (least, most) = mpp.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    if most > FAR * least {
        notes.push(format!(
            "slides of {least} to {most} um/px: a detector finds other shares of the figures at another resolution"
        ));
    }
    notes
}

/// The stated column, or the first usual one, with a note on the others.
fn pick(
    table: &Table,
    stated: Option<&str>,
    usual: &[&str],
    notes: &mut Vec<String>,
) -> Result<usize> {
    if let Some(name) = stated {
        return table.column(name);
    }
    let there: Vec<&str> =
        usual.iter().copied().filter(|name| table.first_column(&[name]).is_some()).collect();
    let Some((first, others)) = there.split_first() else {
        return Err(content(table, format!("none of the columns {}", usual.join(", "))));
    };
    if !others.is_empty() {
        notes.push(format!(
            "counts are those of the column '{first}', not of '{}'",
            others.join("', '")
        ));
    }
    table.column(first)
}

fn content(table: &Table, reason: String) -> Error {
    Error::Content { path: table.path().to_owned(), reason, setting: None }
}

/// Counts of a slide, or of a patient's slides.
struct CountRow {
    /// Row of the clinical table.
    clinical: usize,
    slides: String,
    patient: String,
    hotspot: f64,
    density: f64,
}

fn extended(clinical: &Table, rows: &[CountRow]) -> Result<Table> {
    let mut names = clinical.names().to_vec();
    let added = [SLIDE, PATIENT, HOTSPOT, DENSITY];
    if let Some(name) = names.iter().find(|n| added.contains(&n.as_str())) {
        let reason = format!("column '{name}' must be renamed, the study adds one of that name");
        return Err(content(clinical, reason));
    }
    let mut columns: Vec<Vec<String>> = (0..names.len())
        .map(|j| rows.iter().map(|r| clinical.raw(r.clinical, j).to_owned()).collect())
        .collect();
    names.extend(added.map(str::to_owned));
    columns.push(rows.iter().map(|r| r.slides.clone()).collect());
    columns.push(rows.iter().map(|r| r.patient.clone()).collect());
    let counts: [fn(&CountRow) -> f64; 2] = [|r| r.hotspot, |r| r.density];
    let computed = counts.map(|count| rows.iter().map(count).collect());
    let origin: Vec<usize> = rows.iter().map(|r| r.clinical).collect();
    clinical.derived(names, columns, computed.into(), &origin)
}

fn find(name: &str, rows: &HashMap<&str, usize>) -> Option<(usize, bool)> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    for exact in [name, file] {
        if let Some(&row) = rows.get(exact) {
            return Some((row, false));
        }
    }
    let ends: Vec<usize> = file.match_indices(['-', '_', '.', ' ']).map(|(i, _)| i).collect();
    ends.into_iter()
        .rev()
        .find_map(|end| rows.get(&file[..end]).map(|&row| (row, !file[end..].starts_with('.'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: Columns<'_> = Columns {
        join_counts: "slide",
        join_clinical: "id",
        patient: None,
        hotspot: None,
        density: None,
    };

    fn parse(name: &str, text: &str) -> Table {
        Table::parse(std::path::Path::new(name), text.as_bytes()).unwrap()
    }

    #[test]
    fn what_does_not_meet_is_named_on_both_sides_with_the_rule_that_would_join_it() {
        let counts = "slide,hotspot,density\n0001,1,2\n0002,3,4\n7,1,1\n";
        let counts = parse("counts.csv", counts);
        let clinical = parse("clinical.csv", "id,t\n1,5\n2,6\n7,1\n");
        let joined = Cohort::join(&counts, &clinical, &COLUMNS).unwrap();
        let note = joined.notes.iter().find(|n| n.contains("without a clinical row")).unwrap();
        for words in ["'0001'", "'1'", "2 would match without leading zeros", "clinical.csv"] {
            assert!(note.contains(words), "{words}: {note}");
        }
        let clinical = parse("clinical.csv", "id,t\n1,5\n2,6\n");
        let refused = Cohort::join(&counts, &clinical, &COLUMNS).err().unwrap().to_string();
        assert!(refused.contains("'0002'") && refused.contains("leading zeros"), "{refused}");
    }

    fn joined(counts: &str) -> Cohort {
        Cohort::join(&parse("counts.csv", counts), &parse("c.csv", "id\np\nq\n"), &COLUMNS).unwrap()
    }

    #[test]
    fn a_count_of_a_slide_that_is_not_done_is_left_out_and_named() {
        let head = "slide,status,hotspot_count,density\n";
        let cohort = joined(&format!("{head}p,finished,4,38\nq,failed,0,0\n"));
        let slides: Vec<&str> = cohort.slides.iter().map(|s| s.slide.as_str()).collect();
        assert_eq!(slides, ["p"]);
        assert!(cohort.notes.join("; ").contains("1 slide (q: failed)"), "{:?}", cohort.notes);
    }

    #[test]
    fn densities_of_a_patient_add_up_as_figures_over_areas() {
        let head = "slide,hotspot_count,density_per_20_mm2,analysed_mm2\n";
        // 19 figures on 10 mm2 each: together 38 on 20 mm2, not 76 per 20 mm2.
        let same = joined(&format!("{head}p-1,4,38,10\np-2,6,38,10\nq-1,3,7,2.5\n"));
        assert_eq!(same.densities_of_patients(PatientRule::Sum), Some(vec![38.0, 7.0]));
        assert_eq!(same.hotspots_of_patients(PatientRule::Sum), [10.0, 3.0]);
        // 30 on 60 mm2 and 10 on 20 mm2 and none on 20 mm2.
        let many = joined(&format!("{head}p-1,4,10,60\np-2,6,10,20\np-3,0,0,20\n"));
        assert_eq!(many.densities_of_patients(PatientRule::Sum), Some(vec![8.0]));
        let largest = many.densities_of_patients(PatientRule::Max);
        assert_eq!(largest, Some(vec![10.0]));
        // Without areas only one slide has a sum.
        let head = "slide,hotspot_count,density\n";
        let bare = joined(&format!("{head}p-1,4,38\np-2,6,38\n"));
        assert_eq!(bare.densities_of_patients(PatientRule::Sum), None);
        assert_eq!(bare.densities_of_patients(PatientRule::Mean), Some(vec![38.0]));
        let alone = joined(&format!("{head}p-1,4,38\nq-1,6,8\n"));
        assert_eq!(alone.densities_of_patients(PatientRule::Sum), Some(vec![38.0, 8.0]));
    }

    #[test]
    fn of_several_usual_columns_the_programs_own_is_taken_with_a_note() {
        let both = joined(
            "slide,hotspot,hotspot_count,density_per_20mm2,density_per_20_mm2\np-1,1,2,3,4\n",
        );
        assert_eq!((both.slides[0].hotspot, both.slides[0].density), (2.0, 4.0));
        for words in [
            "'hotspot_count', not of 'hotspot'",
            "'density_per_20_mm2', not of 'density_per_20mm2'",
        ] {
            assert!(both.notes.iter().any(|n| n.contains(words)), "{words}: {:?}", both.notes);
        }
        assert!(
            joined("slide,hotspot,density\np-1,1,2\n").notes.iter().all(|n| !n.contains("column"))
        );
    }

    #[test]
    fn counts_of_several_thresholds_or_resolutions_are_noted() {
        let head = "slide,hotspot,density,threshold_seg,threshold_cls,mpp_x\n";
        let notes = |rows: &str| joined(&format!("{head}{rows}")).notes.join("; ");
        let alike = notes("p-1,1,2,0.6,0.5,0.25\nq-1,1,2,0.6,0.5,0.2275\n");
        assert!(!alike.contains("threshold") && !alike.contains("um/px"), "{alike}");
        let other = notes("p-1,1,2,0.6,0.5,0.25\nq-1,1,2,0.3,0.5,0.5\n");
        assert!(other.contains("several values of threshold_seg (0.3, 0.6)"), "{other}");
        assert!(!other.contains("threshold_cls"), "{other}");
        assert!(other.contains("0.25 to 0.5 um/px"), "{other}");
        // A slide without a clinical row counts for nothing.
        let left_out = notes("p-1,1,2,0.6,0.5,0.25\nz-1,1,2,0.3,0.5,0.5\n");
        assert!(!left_out.contains("threshold"), "{left_out}");
    }

    #[test]
    fn slides_find_their_patient() {
        let rows = HashMap::from([("TCGA-4C-A93U", 0), ("TCGA-4C", 1), ("a b", 2), ("s1", 3)]);
        assert_eq!(find("TCGA-4C-A93U-01Z-00-DX1.ABC.svs", &rows), Some((0, true)));
        assert_eq!(find("TCGA-4C-A93", &rows), Some((1, true)));
        assert_eq!(find("run/s1.svs", &rows), Some((3, false)));
        assert_eq!(find("s10.svs", &rows), None);
        assert_eq!(PatientRule::Mean.combine(&[1.0, 2.0]), 1.5);
    }
}
