//! Reading labelled crops from disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::table::{Format, Table};
use mitosis::RgbTile;
use rayon::prelude::*;
use serde::Deserialize;

use super::item::LabelledCrop;
use super::labels::Part;
use super::{ATYPIA, Coarse, Crops, Item, MORPHOLOGY, Result, Task, TaskError};
use crate::scene::read_rgb;
use base::digest::hex;
use crops::schema::pixel_hash;

/// The path and class of an image, before it is read.
struct Entry {
    file: String,
    class: usize,
    votes: Vec<usize>,
    coarse: Option<Coarse>,
    slide: String,
    domain: String,
}

/// Reads a part of a task; the folders of classes are among `known`, where these are given.
pub(super) fn open(task: Task, dir: &Path, part: Part, known: Option<&[String]>) -> Result<Crops> {
    let Listing { root, classes, entries, size } = match task {
        Task::Crops => {
            let (found, digest) = super::shards::open(dir, part)?;
            if found.is_empty() {
                return Err(TaskError::file(dir, "no labelled crop of this part"));
            }
            one_size(dir, None, &found)?;
            let classes = super::LABELS.map(str::to_owned).to_vec();
            let made = Crops::new(task, classes, found)?;
            return Ok(Crops { dataset: Some(digest), ..made });
        }
        Task::AmiBr | Task::AmiBrBenchmark | Task::AmiMorph => ami(task, dir, part)?,
        Task::Folder => folder(dir, part, known)?,
    };
    if entries.is_empty() {
        return Err(TaskError::file(&root, "no image of this task"));
    }
    let found = entries
        .into_par_iter()
        .map(|e| {
            let path = root.join(&e.file);
            let image = read_rgb(&path).map_err(|e| match e {
                crate::scene::CropError::Read { path, reason } => TaskError::File { path, reason },
            })?;
            let hash = hex(&pixel_hash(&image));
            let Entry { file, class, votes, coarse, slide, domain } = e;
            let source = slide.clone();
            let item =
                Item { file, class, votes, coarse, source, patient: None, slide, domain, hash };
            Ok(LabelledCrop { item, image })
        })
        .collect::<Result<Vec<_>>>()?;
    one_size(&root, size, &found)?;
    Crops::new(task, classes, found)
}

/// Every image has the wanted size, or else that of the first.
fn one_size(root: &Path, stated: Option<(usize, usize)>, found: &[LabelledCrop]) -> Result<()> {
    let wanted = stated.unwrap_or_else(|| size(&found[0].image));
    match found.iter().find(|c| size(&c.image) != wanted) {
        Some(LabelledCrop { item, image }) => Err(TaskError::file(
            &root.join(&item.file),
            format!(
                "is {}x{} px, the images of this set have {}x{}",
                image.width, image.height, wanted.0, wanted.1
            ),
        )),
        None => Ok(()),
    }
}

fn size(image: &RgbTile) -> (usize, usize) {
    (image.width, image.height)
}

/// The images of a part of a task.
struct Listing {
    root: PathBuf,
    classes: Vec<String>,
    entries: Vec<Entry>,
    /// Width and height of every image, px, where the task has them.
    size: Option<(usize, usize)>,
}

#[derive(Deserialize)]
struct Row {
    slide: String,
    dataset: String,
    uid: u64,
    expert1_label: String,
    #[serde(default)]
    expert2_label: String,
    #[serde(default)]
    expert1_atypical: String,
    #[serde(default)]
    expert2_atypical: String,
    #[serde(default)]
    expert3_atypical: String,
    majority_atypical: String,
}

impl Row {
    /// The label that counts for a task.
    fn label(&self, task: Task) -> &str {
        if task == Task::AmiMorph { &self.expert1_label } else { &self.majority_atypical }
    }

    /// What the experts wrote; two of them named morphologies. A table without their columns has none.
    fn votes(&self, task: Task) -> impl Iterator<Item = &str> {
        let labels = match task {
            Task::AmiMorph => vec![&self.expert1_label, &self.expert2_label],
            _ => vec![&self.expert1_atypical, &self.expert2_atypical, &self.expert3_atypical],
        };
        labels.into_iter().map(String::as_str).filter(|l| !l.is_empty())
    }
}

/// The classes of a task on AMi-Br's patches.
fn names(task: Task) -> &'static [&'static str] {
    if task == Task::AmiMorph { &MORPHOLOGY } else { &ATYPIA }
}

/// The class of a label, or nothing for one that the task does not know.
fn class_index(task: Task, label: &str) -> Option<usize> {
    if task != Task::AmiMorph {
        return ["False", "True"].iter().position(|l| *l == label);
    }
    let name = match label {
        "NMF prometaphase" => "prometaphase",
        "NMF metaphase" => "metaphase",
        "NMF ring shape" => "ring_shape",
        "NMF anaphase-telophase" => "anaphase_telophase",
        "AMF bipolar assymetric" => "bipolar_asymmetric",
        "AMF multipolar" => "multipolar",
        "AMF segregation" => "segregation",
        "AMF other" => "other",
        _ => "",
    };
    MORPHOLOGY.iter().position(|m| *m == name)
}

/// MIDOG21 by scanner (cases 1-50, 51-100, 101-150), TUPAC16 by centre (the first 23 cases come
/// from another one than the rest).
fn domain_name(row: &Row) -> String {
    let digits: String = row.slide.chars().take_while(char::is_ascii_digit).collect();
    let case: u32 = digits.parse().unwrap_or(0);
    match (row.dataset.as_str(), case) {
        ("MIDOG21", 1..=50) => "Hamamatsu XR".into(),
        ("MIDOG21", 51..=100) => "Hamamatsu S360".into(),
        ("MIDOG21", 101..=150) => "Aperio CS2".into(),
        ("TUPAC16", 1..=23) => "TUPAC16 01-23".into(),
        ("TUPAC16", 24..=73) => "TUPAC16 24-73".into(),
        (other, _) => other.into(),
    }
}

/// What divides AMi-Br into its parts.
enum Split {
    /// MIDOG21 trains, TUPAC16 tests.
    Collection,
    /// The slides of the published benchmark's training part; all others test.
    Benchmark(BTreeSet<(String, String)>),
}

/// A row of the benchmark's training part.
#[derive(Deserialize)]
struct Listed {
    slide: String,
    dataset: String,
}

impl Split {
    fn read(task: Task, root: &Path) -> Result<Self> {
        if task != Task::AmiBrBenchmark {
            return Ok(Self::Collection);
        }
        let path = root.join("benchmark_split.csv");
        let slides = rows::<Listed>(&path)?.into_iter().map(|r| (r.dataset, r.slide));
        Ok(Self::Benchmark(slides.collect()))
    }

    fn part(&self, row: &Row) -> Option<Part> {
        match self {
            Self::Collection => match row.dataset.as_str() {
                "MIDOG21" => Some(Part::Training),
                "TUPAC16" => Some(Part::Test),
                _ => None,
            },
            Self::Benchmark(slides) => {
                let listed = slides.contains(&(row.dataset.clone(), row.slide.clone()));
                Some(if listed { Part::Training } else { Part::Test })
            }
        }
    }
}

/// The rows of a table.
fn rows<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let table = Table::read(path, &Format::default()).and_then(|t| t.rows());
    table.map_err(|e| TaskError::file(path, e))
}

fn ami(task: Task, dir: &Path, part: Part) -> Result<Listing> {
    let root = if dir.join("labels.csv").is_file() { dir.into() } else { dir.join("ami_br") };
    let table = root.join("labels.csv");
    let rows = rows::<Row>(&table)?;
    let split = Split::read(task, &root)?;
    let mut entries = vec![];
    for row in rows {
        if split.part(&row) != Some(part) {
            continue;
        }
        let folder = if row.majority_atypical == "True" { "Atypical" } else { "Normal" };
        let file = format!("{folder}/{}_{}.png", row.dataset, row.uid);
        let known = |task: Task, label: &str| {
            class_index(task, label).ok_or_else(|| TaskError::UnknownLabel {
                path: table.clone(),
                image: file.clone(),
                label: label.to_string(),
                known: names(task).join(", "),
            })
        };
        let label = |task: Task| {
            let class = known(task, row.label(task))?;
            let votes: Vec<usize> =
                row.votes(task).map(|l| known(task, l)).collect::<Result<_>>()?;
            let votes = if votes.is_empty() { vec![class] } else { votes };
            Ok::<_, TaskError>((class, votes))
        };
        let (class, votes) = label(task)?;
        let coarse = task.coarser().map(|c| label(c.task)).transpose()?;
        let coarse = coarse.map(|(class, votes)| Coarse { class, votes });
        let slide = format!("{}/{}", row.dataset, row.slide);
        entries.push(Entry { file, class, votes, coarse, slide, domain: domain_name(&row) });
    }
    let classes = names(task).iter().map(|n| (*n).to_string()).collect();
    Ok(Listing { root, classes, entries, size: Some((128, 128)) })
}

/// `DIR/<class>/<image>` or `DIR/<class>/<source>/<image>`; without a source every image is one.
fn folder(dir: &Path, part: Part, known: Option<&[String]>) -> Result<Listing> {
    let root = match part {
        Part::Training if dir.join("train").is_dir() => dir.join("train"),
        Part::Training => dir.to_path_buf(),
        Part::Test => dir.join("test"),
    };
    let there: Vec<String> = children(&root)?
        .into_iter()
        .filter(|n| root.join(n).is_dir() && !(root == dir && n == "test"))
        .collect();
    let classes = known.map_or_else(|| there.clone(), <[String]>::to_vec);
    if classes.len() < 2 {
        let found = classes.len();
        let reason = format!("{found} folders of classes found, two or more are needed");
        return Err(TaskError::file(&root, reason));
    }
    let mut entries = vec![];
    for name in &there {
        let Some(class) = classes.iter().position(|c| c == name) else {
            let known = classes.join(", ");
            let reason = format!("the folder `{name}` is not one of the classes {known}");
            return Err(TaskError::file(&root, reason));
        };
        let mut put = |file: String, slide: String| {
            let (votes, domain) = (vec![class], "all".into());
            entries.push(Entry { file, class, votes, coarse: None, slide, domain });
        };
        for child in children(&root.join(name))? {
            let below = root.join(name).join(&child);
            if below.is_dir() {
                let images = children(&below)?.into_iter().filter(|n| is_image(n));
                images.for_each(|n| put(format!("{name}/{child}/{n}"), child.clone()));
            } else if is_image(&child) {
                put(format!("{name}/{child}"), format!("{name}/{child}"));
            }
        }
    }
    Ok(Listing { root, classes, entries, size: None })
}

fn is_image(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"].iter().any(|s| lower.ends_with(s))
}

fn children(dir: &Path) -> Result<Vec<String>> {
    let list = std::fs::read_dir(dir).map_err(|e| TaskError::file(dir, e))?;
    let mut names: Vec<String> =
        list.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.retain(|n| !n.starts_with('.'));
    names.sort();
    Ok(names)
}
