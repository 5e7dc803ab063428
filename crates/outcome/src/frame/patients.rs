//! Patients with several rows: one row each, or a refusal.

use super::events::Events;
use super::{Roles, levels};
use crate::cohort::PatientRule;
use crate::error::{Error, Result};
use crate::table::Table;
use base::remedy::Setting;
use base::table::yes_no;
use base::text::Many;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

/// Words with which the name of a column that identifies patients begins, in small letters and without what parts
/// words.
const PATIENTS: [&str; 9] = [
    "bcrpatient",
    "mithraspatient",
    "patients",
    "patient",
    "pat",
    "case",
    "subject",
    "participant",
    "submitter",
];

/// How such a name ends.
const IDENTIFIERS: [&str; 11] = [
    "id",
    "ids",
    "no",
    "nr",
    "num",
    "number",
    "barcode",
    "uuid",
    "code",
    "identifier",
    "submitterid",
];

fn identifies_patients(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let whole = ["patients", "patient", "case", "subject", "participant", "mithraspatient"];
    let ends = |begin: &&str| plain.strip_prefix(begin).is_some_and(|e| IDENTIFIERS.contains(&e));
    whole.contains(&plain.as_str()) || PATIENTS.iter().any(ends)
}

/// Refuses rows that are not independent where the plan does not know it: a column that identifies patients names
/// one of them twice, and plays no part. Names that are one but for their spelling are noted.
pub(super) fn check_repeats(
    table: &Table,
    roles: &Roles,
    rows: &[usize],
    notes: &mut Vec<String>,
) -> Result<()> {
    if let Some(cluster) = &roles.cluster {
        notes.extend(levels::patients_apart(table, rows, table.column(cluster)?));
        return Ok(());
    }
    let taken = |name: &String| {
        [&roles.covariates, &roles.groups, &roles.strata].iter().any(|part| part.contains(name))
    };
    for (j, name) in table.names().iter().enumerate() {
        if !identifies_patients(name) || taken(name) {
            continue;
        }
        let mut count: HashMap<&str, usize> = HashMap::new();
        for cell in rows.iter().filter_map(|&row| table.cell(row, j)) {
            *count.entry(cell).or_default() += 1;
        }
        // A column `case` of yes and no states who is a case, not which.
        let indicator = |c: &&str| yes_no(c).is_some();
        if name.eq_ignore_ascii_case("case") && count.keys().all(indicator) {
            continue;
        }
        let (named, patients) = (count.values().sum::<usize>(), count.len());
        if named > patients {
            let reason = format!(
                "{}: column '{name}' names {} in {}, and rows of one patient are not independent: p-values, limits and \
                 curves of rows would not be valid",
                table.path().display(),
                Many(patients, "patient"),
                Many(named, "row")
            );
            return Err(Error::plan(Setting::Patient, reason));
        }
        notes.extend(levels::patients_apart(table, rows, j));
    }
    Ok(())
}

/// Fewest different rows of which a column with as many values is a name, and not a measure.
const FEWEST_NAMED: usize = 5;

/// What to know of rows that repeat others in every cell, where a column names the rows: they were put there twice.
/// Without such a column equal rows may be of different patients.
pub(super) fn copies(table: &Table, rows: &[usize]) -> Option<String> {
    let width = table.names().len();
    let cells = |row: usize| (0..width).map(move |j| table.raw(row, j));
    // By a hash: of a large table the cells are not kept twice.
    let by = RandomState::new();
    let hash = |row: usize| by.hash_one(cells(row).collect::<Vec<_>>());
    let mut of: HashMap<u64, Vec<usize>> = HashMap::new();
    let (mut first, mut again): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for &row in rows {
        let like = of.entry(hash(row)).or_default();
        match like.iter().find(|known| cells(**known).eq(cells(row))) {
            Some(&known) => again.push((row, known)),
            None => {
                like.push(row);
                first.push(row);
            }
        }
    }
    let (row, known) = *again.first()?;
    let names = |j: usize| first.iter().map(|r| table.raw(*r, j)).collect::<BTreeSet<_>>().len();
    let named = first.len() >= FEWEST_NAMED && (0..width).any(|j| names(j) == first.len());
    named.then(|| {
        format!(
            "{} repeated in every cell, each counted again; the first is row {}, a copy of row {}",
            Many(again.len(), "row"),
            table.row_in_file(row) + 1,
            table.row_in_file(known) + 1
        )
    })
}

/// The columns in use, by their part.
pub(super) struct Parts<'a> {
    pub patient: usize,
    pub time: usize,
    pub event: usize,
    /// Covariates and groups: numbers are combined by the rule.
    pub combined: Vec<usize>,
    /// Everything else: one value for a patient.
    pub same: Vec<usize>,
    pub events: &'a Events,
}

/// One row per patient of the complete `rows`, in the order of their first rows; events become 1 and 0.
pub(super) fn one_row_each(
    table: &Table,
    roles: &Roles,
    rows: &[usize],
    parts: &Parts<'_>,
    notes: &mut Vec<String>,
) -> Result<Table> {
    if roles.patient_rule == PatientRule::Sum {
        let reason =
            "counts of a patient's rows are summed in a study only, which knows them from an age";
        return Err(Error::plan(Setting::PatientRule, reason));
    }
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for &row in rows {
        let name = table.cell(row, parts.patient).unwrap_or_default();
        let next = order.len();
        let at = *known.entry(name).or_insert(next);
        if at == next {
            order.push(Vec::new());
        }
        order[at].push(row);
    }
    let differs = |row: usize, column: usize, first: usize, more: &str| {
        let patient = table.cell(row, parts.patient).unwrap_or_default();
        table.contradiction(row, column, first, patient, more)
    };
    let mut columns: Vec<Vec<String>> = (0..table.names().len())
        .map(|j| order.iter().map(|of| table.raw(of[0], j).to_owned()).collect())
        .collect();
    for (p, of) in order.iter().enumerate() {
        let time = table.number(of[0], parts.time)?;
        let happened = parts.events.happened(table, of[0])?;
        for &row in &of[1..] {
            if table.number(row, parts.time)? != time {
                return Err(differs(row, parts.time, of[0], ""));
            }
            if parts.events.happened(table, row)? != happened {
                return Err(differs(row, parts.event, of[0], ""));
            }
            let other = |&&j: &&usize| !table.agree(row, of[0], j);
            if let Some(&j) = parts.same.iter().find(other) {
                return Err(differs(row, j, of[0], ""));
            }
        }
        columns[parts.event][p] = u8::from(happened).to_string();
    }
    let mut changed: BTreeMap<usize, usize> = BTreeMap::new();
    for &j in parts.combined.iter().collect::<BTreeSet<_>>() {
        let number = |row: usize| table.cell(row, j).and_then(|c| c.parse::<f64>().ok());
        let numeric = !roles.categorical.contains(&table.names()[j])
            && rows.iter().all(|&row| number(row).is_some_and(f64::is_finite));
        for (p, of) in order.iter().enumerate() {
            let Some(&row) = of.iter().find(|&&row| !table.agree(row, of[0], j)) else {
                continue;
            };
            if !numeric {
                let more = "; only numbers are combined over the rows of a patient";
                return Err(differs(row, j, of[0], more));
            }
            let values: Vec<f64> = of.iter().filter_map(|&row| number(row)).collect();
            columns[j][p] = roles.patient_rule.combine(&values).to_string();
            *changed.entry(j).or_default() += 1;
        }
    }
    if order.len() < rows.len() {
        let (all, one) = (Many(rows.len(), "row"), Many(order.len(), "patient"));
        notes.push(format!("{all} of {one}: each patient is one row"));
    }
    for (j, patients) in changed {
        notes.push(format!(
            "'{}' differs between the rows of {}: the {} counts",
            table.names()[j],
            Many(patients, "patient"),
            roles.patient_rule.name()
        ));
    }
    let origin: Vec<usize> = order.iter().map(|of| of[0]).collect();
    // Only complete rows are in it: a mean that equals a code for missing is a value.
    Ok(table.derived(table.names().to_vec(), columns, Vec::new(), &origin)?.without_codes())
}
