//! The graph of steps: families unfolded, references followed, in an order that can be run.

use crate::dataset::{self, DataSet};
use crate::error::{ExperimentError, Result};
use crate::spec::{
    self, Dim, EncoderRow, Entry, Env, Experiment, FigureKind, Reference, ShrinkSpec, ShrinkWords,
    Source, StepSpec, When, Word, expand, references,
};
use std::collections::{BTreeMap, BTreeSet};

/// Between the words of a property that is several words.
const BETWEEN: char = '\u{1f}';

/// A command of this program, or something done by hand, that makes files in a folder of its own.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name; its folder is `steps/NAME`.
    pub name: String,
    /// One line.
    pub about: String,
    /// Words after `mithras`, with references.
    pub words: Vec<String>,
    /// What somebody does by hand instead.
    pub outside: Option<String>,
    /// What it makes, in its folder.
    pub makes: Vec<String>,
    /// File for what it prints.
    pub stdout: Option<String>,
    /// Steps with a common word never run at the same time.
    pub lock: Vec<String>,
    /// Whether a killed command continues.
    pub resumes: bool,
    /// Whether it asks for the device.
    pub gpu: bool,
    /// Memory that it needs, GiB; steps that run at the same time share the limit.
    pub memory: f64,
    /// 10^9 multiply-accumulates of its networks, for the estimate of hours; 0 where it has none.
    pub gmacs: f64,
    /// Steps that come first.
    pub needs: BTreeSet<String>,
    /// Pieces of data sets.
    pub data: BTreeSet<(String, String)>,
    /// File names of the presets that it reads.
    pub presets: BTreeSet<String>,
    /// Files of the experiment.
    pub files: BTreeSet<String>,
    /// File names of the encoders' weights that it reads.
    pub weights: BTreeSet<String>,
}

/// Steps in an order in which each comes after what it needs.
#[derive(Clone, Debug)]
pub struct Graph {
    steps: Vec<Step>,
}

/// Lists by name, each entry with its properties.
pub(crate) type Dims = BTreeMap<String, Vec<BTreeMap<String, String>>>;

struct Builder {
    sets: Vec<DataSet>,
    shrink: Option<ShrinkWords>,
    made: BTreeMap<String, Step>,
}

impl Graph {
    /// The steps of experiments, and of what they include the steps that they need.
    ///
    /// # Errors
    /// A file that does not follow its form, a reference to nothing, a circle.
    pub fn build(experiments: &[Experiment], shrink: bool) -> Result<Self> {
        let sets = dataset::all()?;
        let shrink = if shrink { Some(spec::shrink_words()?) } else { None };
        let mut b = Builder { sets, shrink, made: BTreeMap::new() };
        // Tables fill row by row: what they read comes first, in their order.
        let mut wanted = vec![];
        for e in experiments {
            let dims = b.dims(&e.dims, &e.shrink)?;
            wanted.extend(targets(e, &dims)?);
            for step in &e.steps {
                wanted.extend(b.unfold(step, &dims)?);
            }
            for file in &e.include {
                let chain = spec::chain(file)?;
                let dims = b.dims(&chain.dims, &chain.shrink)?;
                for step in &chain.steps {
                    b.unfold(step, &dims)?;
                }
            }
        }
        b.imports(&wanted)?;
        Ok(Self { steps: order(&b.made, &wanted)? })
    }

    /// In order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step of this name.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|s| s.name == name)
    }

    /// Names of all data sets that are used.
    #[must_use]
    pub fn data_sets(&self) -> BTreeSet<String> {
        self.steps.iter().flat_map(|s| s.data.iter().map(|d| d.0.clone())).collect()
    }

    /// The named steps (or, where no step has the name, those whose names begin with it and a slash) and what
    /// they need.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`] for a word that fits no step.
    pub fn only(&self, words: &[String]) -> Result<Self> {
        let mut wanted = vec![];
        for word in words {
            let one = self.step(word).is_some();
            let fits =
                |s: &&Step| s.name == *word || !one && s.name.starts_with(&format!("{word}/"));
            let found: Vec<String> =
                self.steps.iter().filter(fits).map(|s| s.name.clone()).collect();
            if found.is_empty() {
                let known =
                    self.steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(ExperimentError::Unknown { what: "step", name: word.clone(), known });
            }
            wanted.extend(found);
        }
        let made = self.steps.iter().map(|s| (s.name.clone(), s.clone())).collect();
        Ok(Self { steps: order(&made, &wanted)? })
    }
}

/// Steps that tables, figures and comparisons read: of tables those of the first row, then of the second.
fn targets(e: &Experiment, dims: &Dims) -> Result<Vec<String>> {
    let mut found = vec![];
    for t in &e.tables {
        for row in envs(&[&t.rows], dims)? {
            let row_has = |c: &&Source| has_row(c, &row[&t.rows], dims);
            for c in t.columns.iter().filter_map(|c| c.from.as_ref()).filter(row_has) {
                let over: Vec<&str> = c.over.as_deref().into_iter().collect();
                for more in envs(&over, dims)? {
                    let env = row.clone().into_iter().chain(more).collect();
                    found.push(expand(&c.step, &env)?);
                }
            }
        }
    }
    let mut templates: Vec<(&str, Vec<&str>)> = vec![];
    for c in &e.compares {
        templates.push((&c.step, vec![&c.rows]));
    }
    for f in &e.figures {
        if let FigureKind::Copy { step, .. } = &f.kind {
            templates.push((step, vec![]));
        }
    }
    for (step, over) in templates {
        for env in envs(&over, dims)? {
            found.push(expand(step, &env)?);
        }
    }
    Ok(found)
}

/// Whether a column's number exists for a row of its table.
pub(crate) fn has_row(source: &Source, id: &str, dims: &Dims) -> bool {
    let is_in = |list: &String| dims.get(list).is_some_and(|l| l.iter().any(|e| e["id"] == id));
    source.rows.as_ref().is_none_or(is_in)
}

/// Every combination of the entries of some lists.
pub(crate) fn envs(lists: &[&str], dims: &Dims) -> Result<Vec<Env>> {
    let mut all = vec![Env::new()];
    for list in lists {
        let entries = dims
            .get(*list)
            .ok_or_else(|| ExperimentError::form("experiment", format!("no list `{list}`")))?;
        all = all
            .iter()
            .flat_map(|env| {
                entries.iter().map(move |entry| {
                    let mut env = env.clone();
                    for (key, value) in entry {
                        let name =
                            if key == "id" { (*list).to_owned() } else { format!("{list}.{key}") };
                        env.insert(name, value.clone());
                    }
                    env
                })
            })
            .collect();
    }
    Ok(all)
}

/// Lists that a name runs over, in order.
fn dimensions_named(name: &str, dims: &Dims) -> Vec<String> {
    let mut found: Vec<(usize, String)> = dims
        .keys()
        .filter_map(|d| {
            let at = name.find(&format!("{{{d}}}")).or_else(|| name.find(&format!("{{{d}.")))?;
            Some((at, d.clone()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, d)| d).collect()
}

pub(crate) fn read_dims(
    dims: &BTreeMap<String, Dim>,
    cut: &ShrinkSpec,
    shrink: Option<&ShrinkWords>,
) -> Result<Dims> {
    let table = spec::encoders()?;
    let mut out = Dims::new();
    for (name, dim) in dims {
        let mut entries = match dim {
            Dim::List(list) => list.iter().map(entry).collect::<Result<Vec<_>>>()?,
            Dim::Lists { .. } => continue,
            Dim::Encoders { encoders } => encoders
                .iter()
                .map(|id| {
                    let row = table.iter().find(|r| r.id == *id);
                    let row = row.ok_or_else(|| {
                        ExperimentError::form(
                            "experiments/tables/encoders.toml",
                            format!("no row `{id}`"),
                        )
                    })?;
                    Ok(properties(row, shrink))
                })
                .collect::<Result<Vec<_>>>()?,
        };
        if let (Some(_), Some(kept)) = (shrink, cut.dims.get(name)) {
            entries.retain(|e| kept.contains(&e["id"]));
        }
        out.insert(name.clone(), entries);
    }
    for (name, dim) in dims {
        let Dim::Lists { lists } = dim else { continue };
        let list = |l: &String| {
            let missing = || ExperimentError::form("experiment", format!("no list `{l}`"));
            out.get(l).cloned().ok_or_else(missing)
        };
        let joined = lists.iter().map(list).collect::<Result<Vec<_>>>()?.concat();
        out.insert(name.clone(), joined);
    }
    Ok(out)
}

fn entry(entry: &Entry) -> Result<BTreeMap<String, String>> {
    match entry {
        Entry::Word(word) => Ok(BTreeMap::from([("id".into(), word.clone())])),
        Entry::Table(table) if table.contains_key("id") => Ok(table.clone()),
        Entry::Table(_) => {
            Err(ExperimentError::form("experiment", "an entry of a list has no `id`"))
        }
    }
}

/// The properties of an encoder in templates.
fn properties(row: &EncoderRow, shrink: Option<&ShrinkWords>) -> BTreeMap<String, String> {
    let (encoder, image) = match shrink {
        Some(s) => (s.encoder.as_str(), s.image),
        None => (row.encoder.as_str(), row.image),
    };
    let weights = match (&row.step, &row.weights, shrink) {
        (Some(step), ..) => Some(format!("{{step:{step}}}/encoder.safetensors")),
        (None, Some(_), Some(s)) => Some(format!("{{step:{}}}/encoder.safetensors", s.weights)),
        (None, Some(file), None) => Some(format!("{{encoders:{file}}}")),
        (None, None, _) => None,
    };
    let join = |words: &[&str]| words.join(&BETWEEN.to_string());
    let init = match &weights {
        Some(w) => join(&["--init", w]),
        None => join(&["--set", "init=\"scratch\""]),
    };
    let (name, side) = (format!("model.name=\"{encoder}\""), format!("model.image={image}"));
    let pool = row.pool.as_ref().map(|pool| format!("model.pool=\"{pool}\""));
    let own = [Some(&name), Some(&side), pool.as_ref()];
    let network: Vec<&str> = own.into_iter().flatten().flat_map(|key| ["--set", key]).collect();
    let keys: Vec<&str> = row.set.iter().flat_map(|key| ["--set", key]).collect();
    let second_stage = second_stage(own.into_iter().flatten().chain(&row.set), weights.as_deref());
    [
        ("id", row.id.clone()),
        ("name", row.name.clone()),
        ("network", row.network.clone()),
        ("group", row.group.clone()),
        ("encoder", encoder.to_owned()),
        ("image", image.to_string()),
        ("gmacs", row.gmacs.to_string()),
        ("weights", weights.unwrap_or_default()),
        ("init", init),
        ("model", join(&network)),
        ("set", join(&keys)),
        ("second_stage", second_stage),
        ("page", row.page.clone()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v))
    .collect()
}

/// Words of `train detector` for an encoder as its second stage.
fn second_stage<'a>(keys: impl Iterator<Item = &'a String>, weights: Option<&str>) -> String {
    let mut words: Vec<String> =
        keys.flat_map(|key| ["--set".into(), format!("crops.{key}")]).collect();
    words.extend(match weights {
        Some(file) => ["--finetune-init".into(), file.into()],
        None => ["--set".into(), "crops.init=\"scratch\"".into()],
    });
    words.join(&BETWEEN.to_string())
}

impl Builder {
    fn dims(&self, dims: &BTreeMap<String, Dim>, cut: &ShrinkSpec) -> Result<Dims> {
        read_dims(dims, cut, self.shrink.as_ref())
    }

    /// The steps of a family, by their names.
    fn unfold(&mut self, spec: &StepSpec, dims: &Dims) -> Result<Vec<String>> {
        let left_out = match spec.when {
            When::Always => false,
            When::Shrink => self.shrink.is_none(),
            When::Full => self.shrink.is_some(),
        };
        if left_out {
            return Ok(vec![]);
        }
        let lists = dimensions_named(&spec.name, dims);
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        let mut names = vec![];
        for env in envs(&lists, dims)? {
            let step = self.step(spec, &env, dims)?;
            names.push(step.name.clone());
            self.made.insert(step.name.clone(), step);
        }
        Ok(names)
    }

    fn step(&self, spec: &StepSpec, env: &Env, dims: &Dims) -> Result<Step> {
        let expanded = |text: &String| expand(text, env);
        let mut words = vec![];
        for word in &spec.run {
            match word {
                Word::One(word) => words.push(expanded(word)?),
                Word::Each { each, words: repeated } => {
                    for more in envs(&[each], dims)? {
                        let env = env.clone().into_iter().chain(more).collect();
                        for word in repeated {
                            words.push(expand(word, &env)?);
                        }
                    }
                }
            }
        }
        let mut words: Vec<String> = words
            .iter()
            .flat_map(|w| w.split(BETWEEN))
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect();
        if let Some(shrink) = &self.shrink {
            let with = |preset: &String| words.contains(&format!("{{preset:{preset}}}"));
            let verb = shrink
                .words
                .iter()
                .filter(|v| words.starts_with(&v.verb) && v.preset.as_ref().is_none_or(with))
                .max_by_key(|v| (v.verb.len(), v.preset.is_some()));
            let add = verb.into_iter().flat_map(|v| &v.add);
            words.extend(add.cloned());
        }
        let property = |key: &str| -> Option<f64> {
            env.iter().find(|(k, _)| k.ends_with(key)).and_then(|(_, v)| v.parse().ok())
        };
        let gmacs = property(".passes").unwrap_or(spec.passes) * property(".gmacs").unwrap_or(17.6);
        let mut step = Step {
            name: expanded(&spec.name)?,
            about: expanded(&spec.about)?,
            words,
            outside: spec.outside.as_ref().map(expanded).transpose()?,
            makes: spec.makes.iter().map(expanded).collect::<Result<_>>()?,
            stdout: spec.stdout.clone(),
            lock: spec.lock.iter().map(expanded).collect::<Result<_>>()?,
            resumes: spec.resumes,
            gpu: spec.gpu,
            memory: spec.memory,
            gmacs: if self.shrink.is_some() { 0.0 } else { gmacs },
            needs: BTreeSet::new(),
            data: BTreeSet::new(),
            presets: BTreeSet::new(),
            files: BTreeSet::new(),
            weights: BTreeSet::new(),
        };
        refer(&mut step)?;
        Ok(step)
    }

    /// The step that writes the labels of some tumour types of a collection.
    fn part(&self, set: &DataSet) -> Result<Step> {
        let labels = format!("{{data:{}.labels}}", set.name);
        let words = ["data", "part", &set.name, "--labels", &labels, "--out", "{out}/labels.json"];
        let spec = StepSpec {
            name: format!("data/{}/labels", set.name),
            about: format!("labels of {} out of their collection", set.name),
            run: words.iter().map(|w| Word::One((*w).to_owned())).collect(),
            ..StepSpec::import(vec!["labels.json".into()])
        };
        self.step(&spec, &Env::new(), &Dims::new())
    }

    /// Makes the import steps that somebody needs.
    fn imports(&mut self, wanted: &[String]) -> Result<()> {
        let needed: BTreeSet<String> = self
            .made
            .values()
            .flat_map(|s| s.needs.iter().cloned())
            .chain(wanted.iter().cloned())
            .filter(|n| n.starts_with("data/") && !self.made.contains_key(n))
            .collect();
        for name in needed {
            let unknown = || ExperimentError::form(&name, "no such import of a data set");
            let (set, what) = name["data/".len()..].split_once('/').ok_or_else(unknown)?;
            let set = self.sets.iter().find(|s| s.name == set).cloned().ok_or_else(unknown)?;
            let set = &set;
            let words = set.import.get(what).ok_or_else(unknown)?;
            let mut env: Env = set
                .pieces
                .iter()
                .map(|p| (p.id.clone(), format!("{{data:{}.{}}}", set.name, p.id)))
                .collect();
            if !set.types().is_empty() {
                let part = self.part(set)?;
                env.insert("labels".into(), format!("{{step:{}}}/labels.json", part.name));
                self.made.insert(part.name.clone(), part);
            }
            let made = if what == "crops" { "manifest.json" } else { "regions.json" };
            let spec = StepSpec {
                name: name.clone(),
                about: format!("import {} as {what}", set.name),
                run: words.iter().cloned().map(Word::One).collect(),
                ..StepSpec::import(vec![made.into()])
            };
            let step = self.step(&spec, &env, &Dims::new())?;
            self.made.insert(name, step);
        }
        Ok(())
    }
}

/// Notes what the words of a step refer to.
fn refer(step: &mut Step) -> Result<()> {
    for word in step.words.clone() {
        references(&word, |r| {
            match r {
                Reference::Step(name) => drop(step.needs.insert(name)),
                Reference::Data(set, piece) => drop(step.data.insert((set, piece))),
                Reference::Preset(file) => drop(step.presets.insert(file)),
                Reference::File(file) => drop(step.files.insert(file)),
                Reference::Encoder(file) => drop(step.weights.insert(file)),
                Reference::Setting(_) => {}
            }
            Ok(String::new())
        })?;
    }
    Ok(())
}

/// The wanted steps in their order, each after what it needs.
fn order(made: &BTreeMap<String, Step>, wanted: &[String]) -> Result<Vec<Step>> {
    #[derive(PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    fn visit(
        name: &str,
        made: &BTreeMap<String, Step>,
        marks: &mut BTreeMap<String, Mark>,
        out: &mut Vec<Step>,
    ) -> Result<()> {
        match marks.get(name) {
            Some(Mark::Done) => return Ok(()),
            Some(Mark::Open) => {
                return Err(ExperimentError::form(
                    "experiment",
                    format!("step `{name}` needs itself"),
                ));
            }
            None => {}
        }
        let step = made
            .get(name)
            .ok_or_else(|| ExperimentError::form("experiment", format!("no step `{name}`")))?;
        marks.insert(name.to_owned(), Mark::Open);
        for need in &step.needs {
            visit(need, made, marks, out)?;
        }
        marks.insert(name.to_owned(), Mark::Done);
        out.push(step.clone());
        Ok(())
    }
    let (mut marks, mut out) = (BTreeMap::new(), vec![]);
    for name in wanted {
        visit(name, made, &mut marks, &mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step whose name others begin with is meant by its name.
    #[test]
    fn a_name_is_the_step_and_a_beginning_is_the_family() {
        let mut graph = Graph::build(&[spec::find("ablation-public").unwrap()], false).unwrap();
        let names = |graph: &Graph, word: &str| -> Vec<String> {
            let only = graph.only(&[word.to_owned()]).unwrap();
            only.steps.into_iter().map(|s| s.name).collect()
        };
        let family = names(&graph, "public/ablation/probe/mithras");
        let seeds = family.iter().filter(|n| n.starts_with("public/ablation/probe/mithras/"));
        assert_eq!(seeds.count(), 3);
        let again = Step {
            name: "public/folds/again".into(),
            ..graph.step("public/folds").unwrap().clone()
        };
        graph.steps.push(again);
        assert_eq!(names(&graph, "public/folds"), ["data/AMi-Br/figures", "public/folds"]);
    }
}
