//! From a table to what a survival analysis needs: outcomes, a design matrix, groups.

#[cfg(test)]
#[path = "../frame_fuzz.rs"]
mod fuzz;

mod events;
mod levels;
mod patients;
mod roles;
mod times;

pub use roles::Roles;

use crate::error::{Error, Result};
use crate::result::Summary;
use crate::table::Table;
use base::remedy::Setting;
use base::text::Many;
use events::Events;
use stats::survival::Survival;
use stats::survival::cox::CoxData;
use std::collections::{BTreeMap, BTreeSet};

/// Complete rows of a table, coded.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub survival: Survival,
    /// Times as the table has them: those that differ by rounding are not made equal.
    times: Vec<f64>,
    /// Row-major.
    pub x: Vec<f64>,
    pub names: Vec<String>,
    /// Term (covariate as the user named it) of each column of `x`.
    pub terms: Vec<usize>,
    pub term_names: Vec<String>,
    pub group: Vec<usize>,
    pub group_names: Vec<String>,
    pub strata: Option<Vec<usize>>,
    pub strata_names: Vec<String>,
    pub cluster: Option<Vec<usize>>,
    /// "60 rows of 40 clusters", where clusters have several rows.
    pub repeated: Option<String>,
    pub weights: Option<Vec<f64>>,
    /// Rows of the table that were kept; of the table of patients where each is one row.
    pub rows: Vec<usize>,
    dropped: BTreeMap<String, usize>,
    total: usize,
    /// Complete rows of the table, before each patient became one.
    complete: usize,
    unit: String,
    /// Warnings for the reader.
    pub notes: Vec<String>,
}

/// A term's columns.
enum Coding {
    Numeric,
    Levels(Vec<String>),
}

/// The columns in use, by their part.
struct Columns {
    time: usize,
    event: usize,
    events: Events,
    covariates: Vec<usize>,
    groups: Vec<usize>,
    strata: Vec<usize>,
    cluster: Option<usize>,
    weights: Option<usize>,
    patient: Option<usize>,
}

impl Columns {
    fn find(table: &Table, roles: &Roles, notes: &mut Vec<String>) -> Result<Self> {
        check_names(roles)?;
        if let Some((start, stop)) = roles.time.split_once(',')
            && !table.names().contains(&roles.time)
        {
            let reason = format!(
                "times from entry to exit ('{start}', '{stop}': left truncation, covariates that \
                 change) are not supported; name one column of times since a common origin"
            );
            return Err(Error::Content { path: table.path().to_owned(), reason, setting: None });
        }
        let all = |names: &[String]| -> Result<Vec<usize>> {
            names.iter().map(|n| table.column(n)).collect()
        };
        let optional = |name: &Option<String>| name.as_deref().map(|c| table.column(c)).transpose();
        let (time, event) = (table.column(&roles.time)?, table.column(&roles.event)?);
        let events = Events::read(table, event, roles.event_value.as_deref(), notes)?;
        let covariates = all(&roles.covariates)?;
        let (groups, strata) = (all(&roles.groups)?, all(&roles.strata)?);
        all(&roles.categorical)?;
        let (cluster, weights) = (optional(&roles.cluster)?, optional(&roles.weights)?);
        let patient = optional(&roles.patient)?;
        if patient.is_some() && cluster.is_some() {
            let reason = "one row per patient leaves no clusters, so patients and clusters are not named together";
            return Err(Error::plan(Setting::Patient, reason));
        }
        Ok(Self { time, event, events, covariates, groups, strata, cluster, weights, patient })
    }

    fn used(&self) -> BTreeSet<usize> {
        let several = [&self.covariates, &self.groups, &self.strata].into_iter().flatten().copied();
        let single = [self.cluster, self.weights, self.patient].into_iter().flatten();
        [self.time, self.event].into_iter().chain(several).chain(single).collect()
    }

    /// Whether a cell is as good as missing.
    fn is_gap(&self, table: &Table, row: usize, column: usize) -> bool {
        table.cell(row, column).is_none()
            || (column == self.event && self.events.is_open(table, row))
    }

    /// What becomes of each of them where a patient is one row.
    fn parts(&self, patient: usize) -> patients::Parts<'_> {
        patients::Parts {
            patient,
            time: self.time,
            event: self.event,
            combined: self.covariates.iter().chain(&self.groups).copied().collect(),
            same: self.strata.iter().copied().chain(self.weights).collect(),
            events: &self.events,
        }
    }
}

/// Refuses a column with two parts.
fn check_names(roles: &Roles) -> Result<()> {
    let mut seen = BTreeSet::from([&roles.time, &roles.event]);
    match roles.covariates.iter().chain(&roles.groups).find(|name| !seen.insert(*name)) {
        Some(name) => {
            let reason = format!("column '{name}' is named twice among time, event and covariates");
            Err(Error::plan(Setting::Covariates, reason))
        }
        None => Ok(()),
    }
}

/// Leaves out rows with a gap in one of the columns; adds the gaps of each column in the whole table to `dropped`.
fn drop_incomplete(
    table: &Table,
    rows: &mut Vec<usize>,
    columns: &BTreeSet<usize>,
    gap: impl Fn(usize, usize) -> bool,
    dropped: &mut BTreeMap<String, usize>,
    notes: &mut Vec<String>,
) -> Result<()> {
    for &j in columns {
        notes.extend(missing_words(table, j));
        let gaps = (0..table.len()).filter(|&row| gap(row, j)).count();
        if gaps > 0 {
            dropped.insert(table.names()[j].clone(), gaps);
        }
    }
    rows.retain(|&row| !columns.iter().any(|&j| gap(row, j)));
    if rows.is_empty() {
        let reason = format!("no row is complete; missing cells per column: {}", counts(dropped));
        return Err(Error::Content { path: table.path().to_owned(), reason, setting: None });
    }
    if rows.len() < table.len() {
        notes.push(format!(
            "{} of {} rows dropped for missing values ({})",
            table.len() - rows.len(),
            table.len(),
            counts(dropped)
        ));
    }
    Ok(())
}

/// The independent units of rows.
#[derive(Default)]
struct Clusters {
    codes: Option<Vec<usize>>,
    /// "60 rows of 40 clusters", where clusters have several rows.
    repeated: Option<String>,
}

impl Clusters {
    fn read(table: &Table, rows: &[usize], column: usize) -> Self {
        let (codes, names) = combine(table, rows, &[column]);
        let repeated = (names.len() < rows.len())
            .then(|| format!("{} of {}", Many(rows.len(), "row"), Many(names.len(), "cluster")));
        Self { codes: Some(codes), repeated }
    }
}

/// The numbers of a column, each of which has to be `valid`.
fn numbers(
    table: &Table,
    rows: &[usize],
    column: usize,
    valid: impl Fn(f64) -> bool,
    fault: impl Fn(f64) -> String,
) -> Result<Vec<f64>> {
    let number = |&row: &usize| match table.number(row, column)? {
        v if valid(v) => Ok(v),
        v => Err(table.wrong(row, column, fault(v))),
    };
    rows.iter().map(number).collect()
}

impl Frame {
    /// Picks the complete rows and codes them, for a model of all covariates.
    pub fn new(table: &Table, roles: &Roles) -> Result<Self> {
        let frame = Self::read(table, roles)?;
        frame.allows(table, frame.names.len())?;
        Ok(frame)
    }

    /// Picks the complete rows and codes them, for several models, each of some of the covariates.
    pub fn read(table: &Table, roles: &Roles) -> Result<Self> {
        Self::of_rows(table, roles, false)
    }

    /// The same of rows each of which may be `independent`: one patient each.
    fn of_rows(table: &Table, roles: &Roles, independent: bool) -> Result<Self> {
        let mut notes = Vec::new();
        let columns = Columns::find(table, roles, &mut notes)?;
        let gap = |row, j| columns.is_gap(table, row, j);
        let (mut rows, mut dropped) = ((0..table.len()).collect(), BTreeMap::new());
        drop_incomplete(table, &mut rows, &columns.used(), gap, &mut dropped, &mut notes)?;
        if let Some(patient) = columns.patient {
            notes.extend(levels::patients_apart(table, &rows, patient));
            let each =
                patients::one_row_each(table, roles, &rows, &columns.parts(patient), &mut notes)?;
            let alone = Roles { patient: None, event_value: None, ..roles.clone() };
            let mut frame = Self::of_rows(&each, &alone, true)?;
            notes.append(&mut frame.notes);
            let unit = format!("patients ({})", roles.patient_rule.name());
            let (total, complete) = (table.len(), rows.len());
            return Ok(Self { notes, dropped, total, complete, unit, ..frame });
        }
        if !independent {
            patients::check_repeats(table, roles, &rows, &mut notes)?;
        }
        notes.extend(patients::copies(table, &rows));
        for &j in columns.groups.iter().chain(&columns.strata) {
            notes.extend(
                levels::spellings(table, &rows, j).map(|all| levels::apart(table, j, &all)),
            );
            notes.extend(levels::doubtful(table, &rows, j));
        }
        let negative = |t| format!("time {t} is negative");
        let times = numbers(table, &rows, columns.time, |t| t >= 0.0, negative)?;
        let happened = rows.iter().map(|&r| columns.events.happened(table, r));
        let happened = happened.collect::<Result<Vec<_>>>()?;
        let survival = outcomes(table, columns.time, &times, &happened, &mut notes)?;
        let design = Design::read(table, &rows, &columns.covariates, roles, &mut notes)?;
        let (group, group_names) = combine(table, &rows, &columns.groups);
        let (strata, strata_names) = combine(table, &rows, &columns.strata);
        let clusters = columns.cluster.map(|j| Clusters::read(table, &rows, j)).unwrap_or_default();
        let not_positive = |w| format!("weight {w} is not > 0");
        let weights = |j| numbers(table, &rows, j, |w| w > 0.0, not_positive);
        Ok(Self {
            survival,
            times,
            x: design.x,
            names: design.names,
            terms: design.terms,
            term_names: roles.covariates.clone(),
            group,
            group_names,
            strata: (!columns.strata.is_empty()).then_some(strata),
            strata_names,
            cluster: clusters.codes,
            repeated: clusters.repeated,
            weights: columns.weights.map(weights).transpose()?,
            complete: rows.len(),
            rows,
            dropped,
            total: table.len(),
            unit: "rows".to_owned(),
            notes,
        })
    }

    /// The rows of this frame of `table` and `roles` that have further covariates, too; these come first. No number is
    /// read again. The notes are those on the covariates and on the rows that are left.
    pub fn with_covariates(
        &self,
        table: &Table,
        roles: &Roles,
        covariates: &[String],
    ) -> Result<Self> {
        let term_names = [covariates, &roles.covariates[..]].concat();
        let roles = &Roles { covariates: term_names.clone(), ..roles.clone() };
        check_names(roles)?;
        let columns = covariates.iter().map(|c| table.column(c)).collect::<Result<Vec<_>>>()?;
        let (mut rows, mut dropped) = (self.rows.clone(), self.dropped.clone());
        let mut notes = Vec::new();
        let gap = |row, j| table.cell(row, j).is_none();
        let used = columns.iter().copied().collect();
        drop_incomplete(table, &mut rows, &used, gap, &mut dropped, &mut notes)?;
        // Both lists of rows ascend.
        let kept: Vec<usize> =
            (0..self.rows.len()).filter(|&i| rows.binary_search(&self.rows[i]).is_ok()).collect();
        let part = self.select(&kept)?;
        patients::check_repeats(table, roles, &rows, &mut notes)?;
        notes.extend(patients::copies(table, &rows));
        let time = table.column(&roles.time)?;
        let survival = outcomes(table, time, &part.times, part.survival.event(), &mut notes)?;
        let added = Design::read(table, &rows, &columns, roles, &mut notes)?;
        for j in 0..part.names.len() {
            let column = table.column(&part.term_names[part.terms[j]])?;
            notes.extend(levels::coded(table, column, &part.values(j)));
        }
        let cluster = roles.cluster.as_deref().map(|c| table.column(c)).transpose()?;
        let clusters = cluster.map(|j| Clusters::read(table, &rows, j)).unwrap_or_default();
        let (p, q) = (added.names.len(), part.names.len());
        let row = |i: usize| [&added.x[i * p..(i + 1) * p], &part.x[i * q..(i + 1) * q]].concat();
        Ok(Self {
            survival,
            x: (0..rows.len()).flat_map(row).collect(),
            names: [added.names, part.names].concat(),
            terms: [added.terms, part.terms.iter().map(|t| covariates.len() + t).collect()]
                .concat(),
            term_names,
            cluster: clusters.codes,
            repeated: clusters.repeated,
            complete: rows.len(),
            rows,
            dropped,
            notes,
            ..part
        })
    }

    /// The same of these rows alone, in their order.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let p = self.names.len();
        let pick = |all: &Vec<usize>| rows.iter().map(|&r| all[r]).collect::<Vec<_>>();
        Ok(Self {
            survival: self.survival.select(rows)?,
            times: rows.iter().map(|&r| self.times[r]).collect(),
            x: rows.iter().flat_map(|&r| &self.x[r * p..(r + 1) * p]).copied().collect(),
            group: pick(&self.group),
            strata: self.strata.as_ref().map(pick),
            cluster: self.cluster.as_ref().map(pick),
            weights: self.weights.as_ref().map(|w| rows.iter().map(|&r| w[r]).collect()),
            rows: pick(&self.rows),
            ..self.clone()
        })
    }

    /// Refuses a model of more coefficients than the rows allow.
    pub fn allows(&self, table: &Table, coefficients: usize) -> Result<()> {
        let rows = self.rows.len();
        let most = MOST_COEFFICIENTS.min(rows);
        if coefficients <= most {
            return Ok(());
        }
        let reason = format!(
            "the covariates make {coefficients} coefficients, more than the {most} that {rows} rows allow; take \
             fewer covariates"
        );
        Err(Error::Content { path: table.path().to_owned(), reason, setting: None })
    }

    /// The data of a Cox model on the columns `columns` of `x`, laid out in `buffer`.
    pub fn cox<'a>(&'a self, columns: &[usize], buffer: &'a mut Vec<f64>) -> Result<CoxData<'a>> {
        let p = self.names.len();
        buffer.clear();
        for row in self.x.chunks_exact(p.max(1)) {
            buffer.extend(columns.iter().map(|&j| row[j]));
        }
        let mut data = CoxData::new(&self.survival, buffer, columns.len())?;
        if let Some(w) = &self.weights {
            data = data.with_weights(w)?;
        }
        if let Some(s) = &self.strata {
            data = data.with_strata(s)?;
        }
        if let Some(c) = &self.cluster {
            data = data.with_cluster(c)?;
        }
        Ok(data)
    }

    /// Columns of `x` whose term satisfies `keep`.
    pub fn columns_where(&self, keep: impl Fn(&str) -> bool) -> Vec<usize> {
        (0..self.names.len()).filter(|&j| keep(&self.term_names[self.terms[j]])).collect()
    }

    /// The column of `x` of a numeric covariate.
    pub fn column(&self, term: &str) -> Result<usize> {
        let found = self.columns_where(|t| t == term);
        let none = || Error::plan(Setting::Covariates, format!("'{term}' has no column"));
        found.first().copied().ok_or_else(none)
    }

    /// Column `j` of `x`.
    pub fn values(&self, j: usize) -> Vec<f64> {
        self.x.iter().skip(j).step_by(self.names.len()).copied().collect()
    }

    /// The name of column `j` of `x` for people: a factor's column and level apart.
    pub fn label(&self, j: usize) -> String {
        let term = &self.term_names[self.terms[j]];
        let plain = term.replace(['_', '.'], " ");
        match self.names[j].strip_prefix(term.as_str()) {
            Some(level) if !level.is_empty() => format!("{plain}: {level}"),
            _ => plain,
        }
    }

    /// The share of a result that every analysis reports.
    pub fn summary(&self, command: &'static str) -> Summary {
        Summary {
            command,
            n: self.survival.len(),
            events: self.survival.events(),
            rows_in_table: self.total,
            rows_dropped: self.total - self.complete,
            unit: self.unit.clone(),
            missing: self.dropped.clone(),
        }
    }
}

fn counts(dropped: &BTreeMap<String, usize>) -> String {
    dropped.iter().map(|(k, v)| format!("{k}: {v}")).collect::<Vec<_>>().join(", ")
}

/// A note that lists the texts of a column that were read as missing values.
fn missing_words(table: &Table, j: usize) -> Option<String> {
    let words = table.missing_words(j);
    let listed: Vec<String> = words.iter().map(|(word, n)| format!("'{word}' ({n})")).collect();
    let name = &table.names()[j];
    (!words.is_empty()).then(|| format!("missing values in '{name}': {}", listed.join(", ")))
}

fn outcomes(
    table: &Table,
    time: usize,
    times: &[f64],
    happened: &[bool],
    notes: &mut Vec<String>,
) -> Result<Survival> {
    notes.extend(levels::coded(table, time, times));
    notes.extend(times::dates(table, time, times));
    notes.extend(times::units(table, time));
    notes.extend(times::sources(table, time));
    let zero = times.iter().filter(|&&t| t == 0.0).count();
    if zero > 0 {
        notes.push(format!("time 0 in {}, which are kept", Many(zero, "row")));
    }
    let survival = Survival::new(times, happened)?;
    if survival.merged() > 0 {
        notes.push(format!(
            "{} times differ from another only by rounding and were made equal to it",
            survival.merged()
        ));
    }
    Ok(survival)
}

/// Most coefficients of a model: fitting takes the cube of their number, and no cohort of slides has so many
/// events.
const MOST_COEFFICIENTS: usize = 200;

/// A design matrix.
struct Design {
    /// Row-major.
    x: Vec<f64>,
    names: Vec<String>,
    /// Covariate of each column.
    terms: Vec<usize>,
}

impl Design {
    fn read(
        table: &Table,
        rows: &[usize],
        covariates: &[usize],
        roles: &Roles,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let (mut names, mut terms) = (Vec::new(), Vec::new());
        for (term, &j) in covariates.iter().enumerate() {
            let name = &table.names()[j];
            match coding(table, rows, j, roles.categorical.contains(name))? {
                Coding::Numeric => {
                    let numbers: Vec<f64> =
                        rows.iter().map(|&r| table.number(r, j)).collect::<Result<_>>()?;
                    notes.extend(levels::coded(table, j, &numbers));
                    columns.push(numbers);
                    names.push(name.clone());
                    terms.push(term);
                }
                Coding::Levels(levels) => {
                    if levels.len() == 1 {
                        // Kept as a constant column: the fit then reports that it was left out.
                        columns.push(vec![1.0; rows.len()]);
                        names.push(format!("{name}{}", levels[0]));
                        terms.push(term);
                    } else {
                        notes.push(format!("'{name}' is categorical; reference '{}'", levels[0]));
                    }
                    match levels::spellings(table, rows, j) {
                        Some(all) if roles.categorical.contains(name) => {
                            notes.push(levels::apart(table, j, &all));
                        }
                        Some(all) => return Err(levels::several(table, j, &all)),
                        None => {}
                    }
                    notes.extend(levels::doubtful(table, rows, j));
                    for level in &levels[1..] {
                        let is = |&r: &usize| f64::from(u8::from(table.cell(r, j) == Some(level)));
                        columns.push(rows.iter().map(is).collect());
                        names.push(format!("{name}{level}"));
                        terms.push(term);
                    }
                }
            }
        }
        let x = (0..rows.len()).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        Ok(Self { x, names, terms })
    }
}

/// Different numbers that a column of texts may hold besides: codes of a category.
const MOST_CODES: usize = 5;

fn coding(table: &Table, rows: &[usize], j: usize, forced: bool) -> Result<Coding> {
    let name = &table.names()[j];
    let cells = || rows.iter().filter_map(|&r| table.cell(r, j));
    if !forced {
        rows.iter().try_for_each(|&r| table.check_point(r, j))?;
    }
    let numbers = cells().filter(|c| c.parse::<f64>().is_ok()).count();
    if !forced && (table.is_computed(j) || numbers == rows.len()) {
        return Ok(Coding::Numeric);
    }
    if !forced
        && let Some(row) = rows.iter().copied().find(|&r| {
            table
                .cell(r, j)
                .is_some_and(|c| c.contains(',') && c.replacen(',', ".", 1).parse::<f64>().is_ok())
        })
    {
        let reason = format!(
            "'{}' is a number with a comma, which may part thousands or be a decimal point: write it \
             without, or with a point",
            table.cell(row, j).unwrap_or_default()
        );
        return Err(table.wrong(row, j, reason));
    }
    let distinct: BTreeSet<&str> = cells().filter(|c| c.parse::<f64>().is_ok()).collect();
    // A number that is missing in most rows has many values, a coded category few.
    if !forced && (2 * numbers > rows.len() || distinct.len() > MOST_CODES) {
        let row = rows
            .iter()
            .copied()
            .find(|&r| table.cell(r, j).is_some_and(|c| c.parse::<f64>().is_err()))
            .unwrap_or_default();
        return Err(Error::Cell {
            place: table.place(row, j),
            reason: format!(
                "'{}' is not a number, though {numbers} of {} cells are; name the codes that mean \
                 missing, or take '{name}' as categorical",
                table.cell(row, j).unwrap_or_default(),
                rows.len()
            ),
            setting: Some(Setting::Coding),
        });
    }
    let mut levels: Vec<String> =
        cells().collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect();
    sort_levels(&mut levels);
    if !forced && levels.len() > 2.max(rows.len() / 2).min(50) {
        return Err(Error::Content {
            path: table.path().to_owned(),
            reason: format!(
                "column '{name}' has {} different texts in {} rows, more like an identifier than a \
                 covariate; taken as categorical, it is used all the same",
                levels.len(),
                rows.len()
            ),
            setting: Some(Setting::Categorical),
        });
    }
    Ok(Coding::Levels(levels))
}

/// Numbers by value, everything else by its bytes.
pub(crate) fn sort_levels(levels: &mut [String]) {
    let numbers: Option<Vec<f64>> = levels.iter().map(|l| l.parse().ok()).collect();
    if numbers.is_some() {
        let value = |l: &String| l.parse::<f64>().unwrap_or(f64::NAN);
        levels.sort_by(|a, b| value(a).total_cmp(&value(b)));
    }
}

/// Codes the combinations of columns that occur, the first column slowest.
fn combine(table: &Table, rows: &[usize], columns: &[usize]) -> (Vec<usize>, Vec<String>) {
    let ranks: Vec<BTreeMap<&str, usize>> = columns
        .iter()
        .map(|&j| {
            let mut levels: Vec<String> = rows
                .iter()
                .filter_map(|&r| table.cell(r, j))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(str::to_owned)
                .collect();
            sort_levels(&mut levels);
            let rank: BTreeMap<String, usize> =
                levels.into_iter().enumerate().map(|(i, l)| (l, i)).collect();
            rows.iter().filter_map(|&r| table.cell(r, j)).map(|c| (c, rank[c])).collect()
        })
        .collect();
    let key = |r: usize| -> Vec<usize> {
        columns
            .iter()
            .zip(&ranks)
            .map(|(&j, rank)| table.cell(r, j).map_or(usize::MAX, |c| rank[c]))
            .collect()
    };
    let keys: Vec<Vec<usize>> = rows.iter().map(|&r| key(r)).collect();
    let distinct: Vec<&Vec<usize>> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
    let codes: Vec<usize> = keys.iter().map(|k| distinct.partition_point(|d| *d < k)).collect();
    let mut names = vec![String::new(); distinct.len()];
    for (&row, &code) in rows.iter().zip(&codes) {
        if names[code].is_empty() {
            let part = |&j: &usize| {
                format!("{}={}", table.names()[j], table.cell(row, j).unwrap_or_default())
            };
            names[code] = columns.iter().map(part).collect::<Vec<_>>().join(", ");
        }
    }
    (codes, names)
}
