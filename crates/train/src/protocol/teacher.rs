//! Predictions of other models as targets.

use base::table::{Format, Table, Unmatched};
use regions::task::TrainingSet;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::preset::Teaching;
use crate::error::{Result, TrainError};

/// Probabilities of the items of a set by models that were not trained on them.
pub(super) struct Teacher {
    share: f64,
    /// Per item one probability per class.
    predictions: Vec<Vec<f64>>,
    /// What it read, as text.
    pub text: String,
}

impl Teacher {
    /// # Errors
    /// [`TrainError::Table`] and [`TrainError::Run`] with the path: a table of other classes, that rates an item
    /// twice or not at all, or not with probabilities.
    pub fn read(of: &Teaching, set: &TrainingSet) -> Result<Self> {
        let classes = set.classes();
        let mut predictions = vec![vec![0.0; classes.len()]; set.items().len()];
        let mut text = vec![];
        for path in &of.predictions {
            let rows = table(path, classes)?;
            let all = set.items().iter();
            let lacking: Vec<&str> =
                all.map(|i| i.file.as_str()).filter(|f| !rows.contains_key(*f)).collect();
            if !lacking.is_empty() {
                let items: HashSet<&str> = set.items().iter().map(|i| i.file.as_str()).collect();
                let mut idle: Vec<&str> =
                    rows.keys().map(String::as_str).filter(|k| !items.contains(k)).collect();
                idle.sort_unstable();
                let join = Unmatched::from_keys(("the data", "the table"), &lacking, &idle)
                    .map_or_else(String::new, |join| format!(": {join}"));
                let why = format!("does not rate every item; it must be of the same data{join}");
                return Err(TrainError::run(path, why));
            }
            for (sum, item) in predictions.iter_mut().zip(set.items()) {
                let Some(row) = rows.get(&item.file) else { continue };
                sum.iter_mut().zip(row).for_each(|(s, p)| *s += p / of.predictions.len() as f64);
            }
            let (_, sha256) =
                base::digest::sha256_file(path).map_err(|e| TrainError::run(path, e))?;
            text.push(format!("{} ({sha256})", path.display()));
        }
        Ok(Self { share: of.share, predictions, text: text.join(", ") })
    }

    /// A resumed run must use the same tables.
    ///
    /// # Errors
    /// [`TrainError::Run`] where `RUN/run.json` names others.
    pub fn check_same_tables(&self, run: &Path) -> Result<()> {
        let path = run.join("run.json");
        let Ok(text) = base::file::read_string(&path) else { return Ok(()) };
        let found: serde_json::Value =
            base::json::parse(text.as_bytes()).map_err(|e| TrainError::run(&path, e))?;
        if found["about"]["teacher"] == self.text {
            return Ok(());
        }
        let why = "leant on other tables of predictions; give the same ones if you have them, or another folder";
        Err(TrainError::run(&path, why))
    }

    /// `target` of an item, its share of it replaced by the teacher's prediction.
    pub fn lean(&self, item: usize, target: &mut [f32]) {
        mix(target, self.share, &self.predictions[item]);
    }

    /// The same for the groups of a coarser task.
    pub fn lean_groups(&self, item: usize, groups: &[Vec<i64>], target: &mut [f32]) {
        let sum = |g: &Vec<i64>| g.iter().map(|&c| self.predictions[item][c as usize]).sum();
        mix(target, self.share, &groups.iter().map(sum).collect::<Vec<f64>>());
    }
}

fn mix(target: &mut [f32], share: f64, predictions: &[f64]) {
    for (t, s) in target.iter_mut().zip(predictions) {
        *t = ((1.0 - share) * f64::from(*t) + share * s) as f32;
    }
}

/// Probabilities by file, in the order of the classes, summing to one.
fn table(path: &Path, classes: &[String]) -> Result<HashMap<String, Vec<f64>>> {
    let table = Table::read(path, &Format::default())?;
    let file = table.need(&["file"])?;
    let columns = classes.iter().map(|c| table.need(&[&format!("p_{c}")]));
    let columns: Vec<usize> = columns.collect::<std::result::Result<_, _>>()?;
    let mut rows = HashMap::with_capacity(table.len());
    for row in 0..table.len() {
        let p = columns.iter().map(|&c| table.number(row, c));
        let p: Vec<f64> = p.collect::<std::result::Result<_, _>>()?;
        let sum: f64 = p.iter().sum();
        if p.iter().any(|v| !(0.0..=1.0).contains(v)) || (sum - 1.0).abs() > 1e-3 {
            return Err(table
                .wrong(row, columns[0], "is not one of probabilities that sum to one")
                .into());
        }
        let p = p.into_iter().map(|v| v / sum).collect();
        if rows.insert(table.cell(row, file).to_owned(), p).is_some() {
            let why = "rates it twice; give the table of held-out items if this is that of a test";
            return Err(table.wrong(row, file, why).into());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regions::task::Task;

    #[test]
    fn a_table_of_other_items_is_refused_with_both_sides() {
        let dir = tempfile::tempdir().expect("a folder");
        for class in ["a", "b"] {
            let folder = dir.path().join("set").join(class);
            std::fs::create_dir_all(&folder).expect("a folder");
            let image = image::RgbImage::from_pixel(8, 8, image::Rgb([class.as_bytes()[0]; 3]));
            image.save(folder.join("01.png")).expect("an image");
        }
        let set = TrainingSet::open(Task::Folder, &dir.path().join("set")).expect("a set");
        let table = dir.path().join("p.csv");
        let read = |row: &str| {
            let rows = format!("file,p_a,p_b\na/01.png,0.5,0.5\n{row},0.5,0.5\n");
            std::fs::write(&table, rows).expect("a table");
            let of = Teaching { predictions: vec![table.clone()], share: 0.5 };
            Teacher::read(&of, &set).err().map_or_else(String::new, |e| e.to_string())
        };
        assert_eq!(read("b/01.png"), "");
        let refused = read("b/1.png");
        for words in ["'b/01.png'", "'b/1.png'", "would match without leading zeros"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }

    #[test]
    fn a_target_is_mixed_with_the_prediction() {
        let predictions = vec![vec![0.25, 0.5, 0.25]];
        let teacher = Teacher { share: 0.4, predictions, text: String::new() };
        let mut target = [1.0, 0.0, 0.0];
        teacher.lean(0, &mut target);
        for (t, want) in target.iter().zip([0.7, 0.2, 0.1]) {
            assert!((t - want).abs() < 1e-6, "{target:?}");
        }
        let mut groups = [0.0, 1.0];
        teacher.lean_groups(0, &[vec![0, 2], vec![1]], &mut groups);
        assert!((groups[0] - 0.2).abs() < 1e-6 && (groups[1] - 0.8).abs() < 1e-6, "{groups:?}");
    }
}
