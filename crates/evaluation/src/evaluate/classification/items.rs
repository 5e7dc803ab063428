//! From tables of predictions and labels to coded items.

use super::super::label::{is_figure, plain, subtype};
use super::plan::{ClassificationError, ClassificationPlan, LargestF1, Result};
use base::remedy::Setting;
use base::table::{Unmatched, bare, yes_no};
use outcome::Table;
use stats::metrics::f1_threshold;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

const TRUTH: &[&str] =
    &["truth", "label", "target", "true_class", "y_true", "true", "majority_atypical"];
const PREDICTED: &[&str] = &["class", "predicted", "prediction", "pred", "y_pred"];
/// Words for the positive class before those for a mitotic figure and for yes; in plain letters.
const POSITIVE: [&str; 5] =
    ["atypical", "atypicalmitoticfigure", "atypicalmitosis", "amf", "positive"];
const KEYS: &[&str] = &["file", "path", "image", "filename", "name", "id", "dataset_uid"];

/// Items coded by class.
pub(super) struct Items {
    pub classes: Vec<String>,
    pub truth: Vec<usize>,
    pub predicted: Vec<usize>,
    /// Row-major items x classes.
    pub scores: Option<Vec<f64>>,
    pub positive: Option<usize>,
}

pub(super) fn wrong(
    table: &Table,
    row: usize,
    column: usize,
    reason: impl Into<String>,
) -> ClassificationError {
    ClassificationError::Cell { place: table.place(row, column), reason: reason.into() }
}

fn content(path: &Path, setting: Setting, reason: impl Into<String>) -> ClassificationError {
    let (path, reason) = (path.to_owned(), reason.into());
    ClassificationError::Content { path, reason, setting: Some(setting) }
}

/// The text that names each row, and by which column.
struct Keys {
    cells: Vec<String>,
    column: usize,
}

impl Keys {
    /// The stated column, or the first usual one; AMi-Br's own table names a crop by `dataset` and
    /// `uid`.
    fn find(table: &Table, stated: Option<&str>) -> Result<Self> {
        let column = match stated {
            Some(name) => Some(table.column(name)?),
            None => table.first_column(KEYS),
        };
        if let Some(column) = column {
            let cells = (0..table.len()).map(|row| table.raw(row, column).to_owned()).collect();
            return Ok(Self { cells, column });
        }
        let (Some(dataset), Some(uid)) =
            (table.first_column(&["dataset"]), table.first_column(&["uid"]))
        else {
            let reason = format!("no column that names the items ({})", KEYS.join(", "));
            return Err(content(table.path(), Setting::Key, reason));
        };
        let cell = |row| format!("{}_{}.png", table.raw(row, dataset), table.raw(row, uid));
        Ok(Self { cells: (0..table.len()).map(cell).collect(), column: uid })
    }
}

/// What the rows are called; nothing where no column names them.
pub(super) fn names(plan: &ClassificationPlan, table: &Table) -> Result<Vec<String>> {
    let named = plan.key.is_some() || table.first_column(KEYS).is_some();
    let pair = ["dataset", "uid"].iter().all(|c| table.first_column(&[c]).is_some());
    if !named && !pair {
        return Ok(Vec::new());
    }
    Ok(Keys::find(table, plan.key.as_deref())?.cells)
}

/// Rows by key: by the whole text, else by the file name alone where only one row has it.
struct Index<'a> {
    whole: HashMap<&'a str, usize>,
    names: HashMap<&'a str, Option<usize>>,
}

fn last_part(text: &str) -> &str {
    text.rsplit(['/', '\\']).next().unwrap_or(text)
}

impl<'a> Index<'a> {
    fn build(table: &Table, keys: &'a Keys) -> Result<Self> {
        let (mut whole, mut names) = (HashMap::new(), HashMap::new());
        for (row, cell) in keys.cells.iter().enumerate() {
            if whole.insert(cell.as_str(), row).is_some() {
                return Err(wrong(table, row, keys.column, format!("'{cell}' occurs twice")));
            }
            names.entry(last_part(cell)).and_modify(|r| *r = None).or_insert(Some(row));
        }
        Ok(Self { whole, names })
    }

    /// What the keys of two tables do not share, after the reason given; neither side's by name alone.
    fn without(&self, reason: String, sides: (&Path, &Path), ours: &Keys, theirs: &Keys) -> String {
        let alone: BTreeSet<&str> =
            ours.cells.iter().map(String::as_str).filter(|k| self.find(k).is_none()).collect();
        let met: BTreeSet<usize> = ours.cells.iter().filter_map(|k| self.find(k)).collect();
        let idle: BTreeSet<&str> = (0..theirs.cells.len())
            .filter(|row| !met.contains(row))
            .map(|row| theirs.cells[row].as_str())
            .collect();
        let (alone, idle) = (Vec::from_iter(alone), Vec::from_iter(idle));
        let names = (sides.0.display().to_string(), sides.1.display().to_string());
        match Unmatched::from_keys((&names.0, &names.1), &alone, &idle) {
            Some(join) => format!("{reason}; {join}"),
            None => reason,
        }
    }

    fn find(&self, key: &str) -> Option<usize> {
        let by_name = || self.names.get(last_part(key)).copied().flatten();
        self.whole.get(key).copied().or_else(by_name)
    }
}

fn text(table: &Table, row: usize, column: usize) -> Result<String> {
    let cell = table.cell(row, column);
    cell.map(str::to_owned).ok_or_else(|| wrong(table, row, column, "the class is missing"))
}

fn pick(table: &Table, named: Option<&str>, usual: &[&str]) -> Result<Option<usize>> {
    Ok(match named {
        Some(name) => Some(table.column(name)?),
        None => table.first_column(usual),
    })
}

/// The column of true classes: the stated one, or the first usual one.
///
/// # Errors
/// Another usual column has the same classes, but of other rows: nobody knows which is the truth.
fn pick_truth(table: &Table, named: Option<&str>) -> Result<Option<usize>> {
    let Some(column) = pick(table, named, TRUTH)? else { return Ok(None) };
    let cells = |column: usize| {
        (0..table.len()).map(move |row| table.cell(row, column).map(bare).unwrap_or_default())
    };
    let words =
        |column: usize| cells(column).filter(|c| !c.is_empty()).collect::<BTreeSet<String>>();
    let classes = words(column);
    let usual = TRUTH.iter().filter_map(|name| table.first_column(&[name]));
    for other in usual.filter(|&other| named.is_none() && other != column) {
        let differs = cells(column).zip(cells(other)).position(|(a, b)| !b.is_empty() && a != b);
        // A column of one class alone is a truth, too.
        let others = words(other);
        let are_same = others.is_subset(&classes) || classes.is_subset(&others);
        let Some(row) = differs.filter(|_| are_same) else { continue };
        let ([first, second], [a, b]) = (
            [column, other].map(|c| &table.names()[c]),
            [column, other].map(|c| table.cell(row, c).unwrap_or_default()),
        );
        let reason = format!(
            "both '{first}' and '{second}' may have the true classes, and in row {} they are '{a}' and '{b}'; name the \
             columns of true and predicted classes",
            row + 1
        );
        return Err(content(table.path(), Setting::Truth, reason));
    }
    Ok(Some(column))
}

fn probability(table: &Table, row: usize, column: usize) -> Result<f64> {
    let p = table.number(row, column)?;
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    let reason = format!(
        "{p} is not a probability, a number from 0 to 1; divide percentages by 100, and apply \
         softmax to logits"
    );
    Err(wrong(table, row, column, reason))
}

/// Most classes of a table. A column of names that is taken for classes has one for every item.
const MOST_CLASSES: usize = 200;

fn few(path: &Path, classes: &[String]) -> Result<()> {
    if classes.len() <= MOST_CLASSES {
        return Ok(());
    }
    let (n, first) = (classes.len(), &classes[0]);
    Err(ClassificationError::Content {
        path: path.to_owned(),
        reason: format!(
            "{n} classes ('{first}', ...), more than {MOST_CLASSES}: a column of names was taken for one \
             of classes; name the columns of true and predicted classes"
        ),
        setting: Some(Setting::Truth),
    })
}

/// Refuses classes that are one but for case, blanks or the form of a number: `1` and `1.0`.
fn check_spelling(path: &Path, truth: &[String], predicted: &[String]) -> Result<()> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let count = |class: &str, of: &[String]| of.iter().filter(|c| *c == class).count();
    for class in truth.iter().chain(predicted) {
        let first = *seen.entry(bare(class)).or_insert(class);
        if first != class {
            let sides = |c: &str| {
                format!("'{c}' ({} true, {} predicted)", count(c, truth), count(c, predicted))
            };
            let reason = format!(
                "{} and {} would count as two classes; spell them as one",
                sides(first),
                sides(class)
            );
            return Err(content(path, Setting::Truth, reason));
        }
    }
    Ok(())
}

/// What to know about classes of which none is both true and predicted.
fn disjoint(truth: &[String], predicted: &[String]) -> Option<String> {
    let set = |all: &[String]| all.iter().cloned().collect::<BTreeSet<_>>();
    let (truth, predicted) = (set(truth), set(predicted));
    let keys = || (truth.iter().map(String::as_str), predicted.iter().map(String::as_str));
    let names = ("the true classes", "the predicted ones");
    let join =
        Unmatched::between(names, keys().0, keys().1).filter(|_| truth.is_disjoint(&predicted));
    join.map(|join| {
        format!("no predicted class is a true one, so that every item counts as wrong: {join}")
    })
}

/// What to know about names that occur more than once: each of their rows counts.
fn repeated(names: &[String], truth: &[String]) -> Option<String> {
    let mut classes: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for (name, class) in names.iter().zip(truth) {
        classes.entry(name).or_default().push(class);
    }
    let (first, _) = classes.iter().find(|(_, all)| all.len() > 1)?;
    let n = classes.values().filter(|all| all.len() > 1).count();
    let two = classes.values().filter(|all| all.iter().any(|c| *c != all[0])).count();
    Some(format!(
        "each row counts, though names occur more than once: {n}, the first '{first}'; with more than one true \
         class: {two}"
    ))
}

/// The rows whose probabilities are not those of one class among all.
fn unnormed(scores: &[f64], classes: usize) -> Option<String> {
    let sum = |row: &[f64]| row.iter().sum::<f64>();
    let off = |sum: &f64| (sum - 1.0).abs() > 0.01;
    let all: Vec<f64> = scores.chunks(classes.max(1)).map(sum).filter(off).collect();
    let first = all.first()?;
    Some(format!("probabilities do not sum to 1 in {} rows; in the first to {first:.3}", all.len()))
}

/// The rows whose predicted class is less probable than another one.
fn unlikely(scores: &[f64], predicted: &[usize], classes: usize) -> Option<String> {
    let rows = scores.chunks(classes.max(1)).zip(predicted).enumerate();
    let other: Vec<usize> = rows
        .filter(|(_, (p, class))| p.iter().any(|q| *q > p[**class]))
        .map(|(row, _)| row)
        .collect();
    let first = other.first()? + 1;
    Some(format!(
        "the predicted class is not the most probable one in {} rows, the first is row {first}: other thresholds, \
         or columns that are mixed up",
        other.len()
    ))
}

/// A column of yes and no about one of two classes (`majority_atypical`) as those classes.
fn named_by_column(truth: &mut [String], column: &str, classes: &[String]) {
    let [a, b] = classes else { return };
    let ends =
        |class: &String| column.to_lowercase().ends_with(&format!("_{}", class.to_lowercase()));
    let (yes, no) = match (ends(a), ends(b)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        _ => return,
    };
    let Some(answers) = truth.iter().map(|t| yes_no(t)).collect::<Option<Vec<_>>>() else { return };
    for (t, answer) in truth.iter_mut().zip(answers) {
        *t = if answer { yes.clone() } else { no.clone() };
    }
}

fn true_classes(
    plan: &ClassificationPlan,
    table: &Table,
    classes: &[String],
) -> Result<Vec<String>> {
    let named = plan.truth.as_deref();
    let Some(path) = &plan.labels else {
        let column = pick_truth(table, named)?.ok_or_else(|| {
            let reason = format!("no column of true classes ({})", TRUTH.join(", "));
            content(&plan.predictions, Setting::Truth, reason)
        })?;
        return (0..table.len()).map(|row| text(table, row, column)).collect();
    };
    let labels = Table::read(path, &[])?;
    let column =
        pick_truth(&labels, named)?.or(labels.first_column(&["class"])).ok_or_else(|| {
            content(path, Setting::Truth, format!("none of the columns {}", TRUTH.join(", ")))
        })?;
    let ours = Keys::find(table, plan.key.as_deref())?;
    let stated = plan.key.as_deref().filter(|k| labels.first_column(&[k]).is_some());
    let theirs = Keys::find(&labels, stated)?;
    let index = Index::build(&labels, &theirs)?;
    let mut truth = ours
        .cells
        .iter()
        .enumerate()
        .map(|(row, key)| {
            let at = index.find(key).ok_or_else(|| {
                let reason = format!("'{key}' has no label in {}", path.display());
                let reason = index.without(reason, (&plan.predictions, path), &ours, &theirs);
                wrong(table, row, ours.column, reason)
            })?;
            text(&labels, at, column)
        })
        .collect::<Result<Vec<_>>>()?;
    named_by_column(&mut truth, &labels.names()[column], classes);
    Ok(truth)
}

/// The positive one of two classes: that with a word for it, or else the second, with a note.
fn usual_positive(classes: &[String], notes: &mut Vec<String>) -> Option<usize> {
    let [first, second] = classes else { return None };
    let at = |is: &dyn Fn(&String) -> bool| classes.iter().position(is);
    // Of two kinds of figures neither is the positive one for being a figure.
    let one_figure = is_figure(first) != is_figure(second);
    let known = at(&|c| POSITIVE.contains(&plain(c).as_str()))
        .or_else(|| at(&|c| subtype(c) == Some("atypical")))
        .or_else(|| at(&|c| is_figure(c)).filter(|_| one_figure))
        .or_else(|| at(&|c| yes_no(c) == Some(true)));
    if known.is_none() {
        notes.push(format!(
            "positive class: {second}, the second in the alphabet; neither '{first}' nor '{second}' is a known word for it"
        ));
    }
    known.or(Some(1))
}

pub(super) fn read(
    plan: &ClassificationPlan,
    table: &Table,
    notes: &mut Vec<String>,
) -> Result<Items> {
    let rows = 0..table.len();
    let probabilities: Vec<(String, usize)> = table
        .names()
        .iter()
        .enumerate()
        .filter_map(|(j, n)| n.strip_prefix("p_").map(|class| (class.to_owned(), j)))
        .collect();
    let known: Vec<String> = probabilities.iter().map(|(class, _)| class.clone()).collect();
    let truth = true_classes(plan, table, &known)?;
    let predicted: Vec<String> = match pick(table, plan.predicted.as_deref(), PREDICTED)? {
        Some(column) => rows.clone().map(|row| text(table, row, column)).collect::<Result<_>>()?,
        None if probabilities.len() > 1 => rows
            .clone()
            .map(|row| {
                let p = probabilities.iter().map(|(_, j)| probability(table, row, *j));
                let p = p.collect::<Result<Vec<_>>>()?;
                Ok(probabilities[mitosis::likeliest(&p)].0.clone())
            })
            .collect::<Result<_>>()?,
        None => {
            let reason = format!(
                "no column of predicted classes ({}) and no p_<class> columns",
                PREDICTED.join(", ")
            );
            return Err(content(&plan.predictions, Setting::Predicted, reason));
        }
    };
    check_spelling(&plan.predictions, &truth, &predicted)?;
    notes.extend(disjoint(&truth, &predicted));
    notes.extend(repeated(&names(plan, table)?, &truth));
    let mut set: BTreeSet<String> = truth.iter().chain(&predicted).cloned().collect();
    set.extend(known);
    let classes: Vec<String> = set.into_iter().collect();
    few(table.path(), &classes)?;
    let code = |values: &[String]| -> Vec<usize> {
        values.iter().map(|v| classes.partition_point(|c| c < v)).collect()
    };
    let scores = match probabilities.len() {
        k if k == classes.len() => {
            let columns: HashMap<&str, usize> =
                probabilities.iter().map(|(c, j)| (c.as_str(), *j)).collect();
            let all = rows.flat_map(|row| classes.iter().map(move |c| (row, c)));
            let cell =
                |(row, class): (usize, &String)| probability(table, row, columns[class.as_str()]);
            Some(all.map(cell).collect::<Result<Vec<f64>>>()?)
        }
        1 if classes.len() == 2 => {
            let (class, j) = &probabilities[0];
            let mut all = Vec::new();
            for row in rows {
                let p = probability(table, row, *j)?;
                all.extend(classes.iter().map(|c| if c == class { p } else { 1.0 - p }));
            }
            Some(all)
        }
        0 => None,
        k => {
            notes.push(format!("{k} p_<class> columns for {} classes: no ROC-AUC", classes.len()));
            None
        }
    };
    notes.extend(scores.as_ref().and_then(|p| unnormed(p, classes.len())));
    let positive = match &plan.positive {
        Some(name) => Some(classes.iter().position(|c| c == name).ok_or_else(|| {
            let reason = format!("no class '{name}'; the classes are {}", classes.join(", "));
            ClassificationError::Plan { setting: Setting::Positive, reason }
        })?),
        None => usual_positive(&classes, notes),
    };
    let (truth, predicted) = (code(&truth), code(&predicted));
    notes.extend(scores.as_ref().and_then(|p| unlikely(p, &predicted, classes.len())));
    Ok(Items { classes, truth, predicted, scores, positive })
}

/// Averages the probabilities with those of the other tables and calls the likeliest class.
pub(super) fn join(plan: &ClassificationPlan, table: &Table, items: &mut Items) -> Result<()> {
    if plan.mean_with.is_empty() {
        return Ok(());
    }
    let ours = Keys::find(table, plan.key.as_deref())?;
    let k = items.classes.len();
    let none =
        |path: &PathBuf| content(path, Setting::Predicted, "no p_<class> column for each class");
    let mut sums = items.scores.take().ok_or_else(|| none(&plan.predictions))?;
    for path in &plan.mean_with {
        let other = Table::read(path, &[])?;
        let named = ClassificationPlan { predictions: path.clone(), ..plan.clone() };
        let theirs = read(&named, &other, &mut Vec::new())?;
        let refuse = |reason: String| {
            Err(ClassificationError::Content { path: path.clone(), reason, setting: None })
        };
        if theirs.classes != items.classes {
            let (a, b) = (theirs.classes.join(", "), items.classes.join(", "));
            return refuse(format!("its classes are {a}, those of the first table {b}"));
        }
        let scores = theirs.scores.ok_or_else(|| none(path))?;
        let keys = Keys::find(&other, plan.key.as_deref())?;
        let index = Index::build(&other, &keys)?;
        if other.len() != table.len() {
            return refuse(format!("{} items, the first table has {}", other.len(), table.len()));
        }
        for (row, sum) in sums.chunks_exact_mut(k).enumerate() {
            let at = index.find(&ours.cells[row]).ok_or_else(|| {
                let reason = format!("'{}' is not in {}", ours.cells[row], path.display());
                let reason = index.without(reason, (&plan.predictions, path), &ours, &keys);
                wrong(table, row, ours.column, reason)
            })?;
            if theirs.truth[at] != items.truth[row] {
                let reason = format!("has another true class in {}", path.display());
                return Err(wrong(table, row, ours.column, reason));
            }
            sum.iter_mut().zip(&scores[at * k..(at + 1) * k]).for_each(|(s, p)| *s += p);
        }
    }
    let n = (1 + plan.mean_with.len()) as f64;
    sums.iter_mut().for_each(|s| *s /= n);
    items.predicted = sums.chunks_exact(k).map(mitosis::likeliest).collect();
    items.scores = Some(sums);
    Ok(())
}

/// Calls the positive class from the threshold on.
pub(super) fn call(threshold: Option<f64>, items: &mut Items) -> Result<()> {
    let Some(threshold) = threshold else { return Ok(()) };
    let (Some(scores), Some(positive), 2) = (&items.scores, items.positive, items.classes.len())
    else {
        let reason = "a threshold needs two classes and their p_<class> columns".into();
        return Err(ClassificationError::Plan { setting: Setting::Threshold, reason });
    };
    for (called, p) in items.predicted.iter_mut().zip(scores.chunks_exact(2)) {
        *called = if p[positive] >= threshold { positive } else { 1 - positive };
    }
    Ok(())
}

pub(super) fn largest_f1(items: &Items) -> Result<Option<LargestF1>> {
    let (Some(scores), Some(positive), 2) = (&items.scores, items.positive, items.classes.len())
    else {
        return Ok(None);
    };
    let scores: Vec<f64> = scores.chunks_exact(2).map(|p| p[positive]).collect();
    let truth: Vec<bool> = items.truth.iter().map(|&t| t == positive).collect();
    let found = f1_threshold(&scores, &truth)?;
    Ok(found.map(|(threshold, f1)| LargestF1 { threshold, f1 }))
}

#[cfg(test)]
mod tests {
    use super::super::{ClassificationPlan, classification};
    use super::MOST_CLASSES;
    use std::path::{Path, PathBuf};

    fn put(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    const PREDICTIONS: &str = "file,class,p_atypical,p_typical\n\
        crops/Atypical/MIDOG21_1.png,atypical,0.9,0.1\n\
        crops/Normal/MIDOG21_2.png,typical,0.2,0.8\n\
        crops/Normal/TUPAC16_2.png,atypical,0.7,0.3\n";

    #[test]
    fn names_that_repeat_and_probabilities_that_do_not_sum_to_one_are_noted() {
        let dir = tempfile::tempdir().unwrap();
        let notes = |rows: &str| {
            let text = format!("file,truth,class,p_a,p_b\n{rows}");
            let predictions = put(dir.path(), "p.csv", &text);
            let plan = ClassificationPlan { predictions, ..ClassificationPlan::default() };
            classification(&plan).unwrap().notes.join("; ")
        };
        let sound = notes("1,a,a,0.9,0.1\n2,b,b,0.105,0.9\n");
        assert!(!sound.contains("sum to 1") && !sound.contains("occur"), "{sound}");
        let odd = notes("1,a,a,0.9,0.9\n2,b,b,0.1,0.9\n");
        assert!(odd.contains("do not sum to 1 in 1 rows; in the first to 1.800"), "{odd}");
        let mixed = notes("1,a,a,0.9,0.1\n2,b,b,0.6,0.4\n3,a,b,0.5,0.5\n");
        assert!(
            mixed.contains("not the most probable one in 1 rows, the first is row 2"),
            "{mixed}"
        );
        assert!(!sound.contains("most probable"), "{sound}");
        let twice = notes("1,a,a,0.9,0.1\n1,b,b,0.1,0.9\n2,b,b,0.1,0.9\n2,b,b,0.1,0.9\n");
        let words = "occur more than once: 2, the first '1'; with more than one true class: 1";
        assert!(twice.contains(words), "{twice}");
    }

    #[test]
    fn two_columns_of_true_classes_that_differ_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str, truth: Option<&str>| {
            let predictions = put(dir.path(), "p.csv", text);
            let truth = truth.map(str::to_owned);
            classification(&ClassificationPlan {
                predictions,
                truth,
                ..ClassificationPlan::default()
            })
        };
        let differ = "file,truth,label,class\n1,mf,mf,mf\n2,mf,mimicker,mf\n3,mimicker,mf,mf\n";
        let refused = read(differ, None).unwrap_err().to_string();
        assert!(refused.contains("'truth' and 'label'") && refused.contains("row 2"), "{refused}");
        let one_class = "file,truth,label,class\n1,mimicker,mimicker,mf\n2,mimicker,mf,mf\n";
        let refused = read(one_class, None).unwrap_err().to_string();
        assert!(refused.contains("'truth' and 'label'") && refused.contains("row 2"), "{refused}");
        assert_eq!(read(differ, Some("label")).unwrap().all.confusion, [[2, 0], [1, 0]]);
        for same in [
            "file,truth,label,class\n1,mf,MF,mf\n2,mimicker,,mf\n",
            "file,truth,target,class\n1,mf,lung,mf\n2,mimicker,skin,mf\n",
        ] {
            assert!(read(same, None).is_ok(), "{same}");
        }
    }

    #[test]
    fn of_two_classes_the_mitotic_figure_is_positive_whatever_its_word() {
        let dir = tempfile::tempdir().unwrap();
        let scored = |[yes, no]: [&str; 2]| {
            let text = format!(
                "file,truth,class\n1,{yes},{yes}\n2,{yes},{yes}\n3,{no},{yes}\n4,{no},{no}\n"
            );
            let predictions = put(dir.path(), "p.csv", &text);
            let plan = ClassificationPlan { predictions, ..ClassificationPlan::default() };
            classification(&plan).unwrap()
        };
        for words in [
            ["mitosis", "non_mitosis"],
            ["mitotic_figure", "other"],
            ["mf", "mimicker"],
            ["figure", "mimicker"],
            ["mitotic figure", "non-mitotic figure"],
            ["Mitotic Figure", "Hard negative"],
            ["mitotic", "tumour"],
            ["AMF", "NMF"],
            ["atypical mitotic figures", "Normal mitotic figures"],
            ["Atypical", "Typical"],
            ["positive", "zero"],
            ["1", "0"],
        ] {
            let found = scored(words);
            let positive = found.all.positive.as_ref().unwrap();
            assert_eq!((positive.positive.as_str(), positive.recall), (words[0], 1.0), "{words:?}");
            let line = format!("\npositive: {}\n", words[0]);
            assert!(found.to_string().contains(&line), "{found}");
            assert!(!found.notes.join(" ").contains("positive class"), "{:?}", found.notes);
        }
        let unknown = scored(["b", "a"]);
        let note = "positive class: b, the second in the alphabet; neither 'a' nor 'b'";
        assert!(unknown.notes.iter().any(|n| n.starts_with(note)), "{:?}", unknown.notes);
    }

    #[test]
    fn a_printed_threshold_calls_the_same_items_as_the_exact_one() {
        let dir = tempfile::tempdir().unwrap();
        for scores in [
            [0.999_999_99, 0.999_999_98, 0.999_999_97],
            [0.9, 0.5, 0.2],
            [1e-7, 1.1e-7 - 2e-8, 1e-9],
            [1.0, 1.0, 0.999_999_9],
        ] {
            let text = format!(
                "file,truth,p_mf,p_other\n1,mf,{},0\n2,mf,{},0\n3,other,{},0\n",
                scores[0], scores[1], scores[2]
            );
            let predictions = put(dir.path(), "p.csv", &text);
            let plan = ClassificationPlan { predictions, ..ClassificationPlan::default() };
            let found = classification(&plan).unwrap().to_string();
            let printed = found.split(", from ").nth(1).unwrap().split(' ').next().unwrap();
            let at = classification(&ClassificationPlan {
                threshold: Some(printed.parse().unwrap()),
                ..plan
            });
            assert_eq!(at.unwrap().all.positive.unwrap().f1, 1.0, "{printed} of {scores:?}");
        }
    }

    #[test]
    fn paths_join_with_names() {
        let dir = tempfile::tempdir().unwrap();
        let labels = "file,label\nTUPAC16_2.png,typical\nMIDOG21_2.png,typical\n\
                      elsewhere/MIDOG21_1.png,atypical\n";
        let plan = ClassificationPlan {
            predictions: put(dir.path(), "p.csv", PREDICTIONS),
            labels: Some(put(dir.path(), "l.csv", labels)),
            ..ClassificationPlan::default()
        };
        let found = classification(&plan).unwrap();
        assert_eq!(found.all.confusion, [[1, 0], [1, 1]]);
        assert_eq!(found.all.positive.unwrap().positive, "atypical");
        // A name that is in two folders is ambiguous.
        let labels = "file,label\na/MIDOG21_1.png,typical\nb/MIDOG21_1.png,atypical\n";
        let plan = ClassificationPlan { labels: Some(put(dir.path(), "two.csv", labels)), ..plan };
        let error = classification(&plan).unwrap_err().to_string();
        assert!(error.contains("MIDOG21_1.png' has no label"), "{error}");
        // Both sides and the rule that would join them.
        let labels = "file,label\nmidog21_1.PNG,typical\n";
        let plan = ClassificationPlan { labels: Some(put(dir.path(), "no.csv", labels)), ..plan };
        let error = classification(&plan).unwrap_err().to_string();
        assert!(error.contains("'midog21_1.PNG'") && error.contains("would match"), "{error}");
    }

    #[test]
    fn classes_of_one_name_and_numbers_that_are_not_probabilities_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run = |text: &str| {
            let predictions = put(dir.path(), "p.csv", text);
            let plan = ClassificationPlan { predictions, ..ClassificationPlan::default() };
            classification(&plan).map(|_| ()).unwrap_err().to_string()
        };
        for (text, words) in [
            ("truth,class\nMitosis,mitosis\nother,other\n", "'Mitosis' (1 true, 0 predicted)"),
            ("truth,class\n1,1.0\n0,0\n", "'1.0' (0 true, 1 predicted)"),
            ("truth,p_a,p_b\na,0.9,0.1\nb,12,88\n", "12 is not a probability"),
            ("truth,p_a,p_b\na,0.9,0.1\nb,2.0,0.1\n", "2 is not a probability"),
            ("truth,p_a,p_b\na,0.9,0.1\nb,0.5,-0.5\n", "-0.5 is not a probability"),
            ("truth,p_a,p_b\na,1.0000001,0.1\nb,0.5,0.5\n", "1.0000001 is not a probability"),
        ] {
            let error = run(text);
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn classes_of_two_codings_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let notes = |text: &str| {
            let predictions = put(dir.path(), "p.csv", text);
            let plan = ClassificationPlan { predictions, ..ClassificationPlan::default() };
            classification(&plan).unwrap().notes.join("; ")
        };
        let two = notes("truth,class\nmitosis,1\nother,0\n");
        assert!(two.contains("every item counts as wrong") && two.contains("'mitosis'"), "{two}");
        assert!(!notes("truth,class\na,b\nb,b\n").contains("wrong"));
    }

    #[test]
    fn names_that_are_taken_for_classes_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.csv");
        let rows =
            |n: usize| (0..n).map(|k| format!("{k},c{k},c{}\n", k * 7 % n)).collect::<String>();
        for (n, refused) in [(MOST_CLASSES, false), (MOST_CLASSES + 1, true), (10_000, true)] {
            std::fs::write(&path, format!("file,truth,class\n{}", rows(n))).unwrap();
            let plan =
                ClassificationPlan { predictions: path.clone(), ..ClassificationPlan::default() };
            let found = classification(&plan);
            assert_eq!(found.as_ref().err().is_some(), refused, "{n}");
            let error = found.err().map_or_else(String::new, |e| e.to_string());
            assert!(!refused || error.contains(&format!("{n} classes")), "{error}");
        }
    }

    #[test]
    fn ami_br_s_own_table_is_a_truth() {
        let dir = tempfile::tempdir().unwrap();
        for [yes, no] in [["True", "False"], ["Yes", "NO"], ["1", "0"], ["Checked", "Unchecked"]] {
            let labels = format!(
                ",slide,dataset,uid,majority_atypical\n0,002.tiff,MIDOG21,1,{yes}\n\
                 1,002.tiff,MIDOG21,2,{no}\n2,a,TUPAC16,2,{no}\n"
            );
            let plan = ClassificationPlan {
                predictions: put(dir.path(), "p.csv", PREDICTIONS),
                labels: Some(put(dir.path(), "labels.csv", &labels)),
                ..ClassificationPlan::default()
            };
            let found = classification(&plan).unwrap();
            assert_eq!(found.all.classes, ["atypical", "typical"], "{yes}");
            assert_eq!(found.all.confusion, [[1, 0], [1, 1]], "{yes}");
            assert_eq!(found.all.positive.unwrap().recall, 1.0);
        }
    }

    #[test]
    fn the_real_table_of_ami_br_names_every_crop() {
        let Some(data) = testkit::data("ami_br") else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut text = "file,class,p_atypical,p_typical\n".to_owned();
        let mut n = 0;
        for (folder, class, p) in [("Atypical", "atypical", 0.9), ("Normal", "typical", 0.1)] {
            for entry in std::fs::read_dir(data.join(folder)).unwrap().take(50) {
                let path = entry.unwrap().path();
                text += &format!("{},{class},{p},{}\n", path.display(), 1.0 - p);
                n += 1;
            }
        }
        let plan = ClassificationPlan {
            predictions: put(dir.path(), "p.csv", &text),
            labels: Some(data.join("labels.csv")),
            ..ClassificationPlan::default()
        };
        let found = classification(&plan).unwrap();
        assert_eq!((found.all.n, found.all.accuracy), (n, 1.0));
    }
}
