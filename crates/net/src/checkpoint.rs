//! Checkpoints: safetensors with timm's names and a description that must match.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use safetensors::{Dtype, tensor::TensorView};
use serde::{Deserialize, Serialize};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::error::{NetError, Result};
use crate::tensors;
use encoders::foreign::{Matched, match_names};
use encoders::weights::{Safe, metadata, read_safetensors};

pub use encoders::foreign::LoadReport;

/// Version of the description below.
pub const SCHEMA: u32 = 1;

const KEY: &str = "mithras";

/// What a checkpoint is for. Loading compares the fields that change results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// [`SCHEMA`].
    pub schema: u32,
    /// E.g. `efficient-unet-b0`, `vit_tiny_patch16_224`.
    pub architecture: String,
    /// The network's config struct as JSON.
    pub config: serde_json::Value,
    /// Side of the input the network was trained on, pixels.
    pub input: u32,
    /// Resolution, um/px.
    pub mpp: f64,
    /// Subtracted from channels in [0, 1].
    pub mean: [f32; 3],
    /// Divides after that.
    pub std: [f32; 3],
    /// Class names in output order; empty for segmentation and pretraining.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Hash of the resolved preset.
    #[serde(default)]
    pub preset_hash: String,
    /// Digest of the corpus.
    #[serde(default)]
    pub corpus_digest: String,
    /// Anything else worth keeping: epoch, metrics, data, licences.
    #[serde(default)]
    pub notes: serde_json::Value,
    /// Slides and patients that these weights, or the weights they started from, were trained on.
    /// `None` where no list was kept: checkpoints of older versions and files of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_on: Option<TrainedOn>,
    /// Slides and patients whose images, without labels, these weights, or those they started from, were
    /// pretrained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained_on: Option<TrainedOn>,
}

/// Names of slides and patients, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedOn {
    /// Slides, by the names that the datasets give them.
    pub slides: BTreeSet<String>,
    /// Patients, where the datasets name them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub patients: BTreeSet<String>,
}

impl TrainedOn {
    /// Adds what other weights were trained on, from which these started.
    pub fn extend(&mut self, other: &Self) {
        self.slides.extend(other.slides.iter().cloned());
        self.patients.extend(other.patients.iter().cloned());
    }
}

impl Spec {
    /// ImageNet normalisation at 0.25 um/px.
    ///
    /// # Errors
    /// [`NetError::Encoder`] when the config struct is not representable as JSON.
    pub fn new(architecture: &str, config: &impl Serialize, input: u32) -> Result<Self> {
        Ok(Self {
            schema: SCHEMA,
            architecture: architecture.into(),
            config: serde_json::to_value(config)
                .map_err(|e| NetError::config("config", e.to_string()))?,
            input,
            mpp: 0.25,
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
            classes: Vec::new(),
            preset_hash: String::new(),
            corpus_digest: String::new(),
            notes: serde_json::Value::Null,
            trained_on: None,
            pretrained_on: None,
        })
    }

    /// Differences that make weights unusable in place of `self`, as text.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        let mut compare = |what: &str, have: String, want: String| {
            if have != want {
                out.push(format!("{what} is {have}, expected {want}"));
            }
        };
        compare("schema", other.schema.to_string(), self.schema.to_string());
        compare("architecture", other.architecture.clone(), self.architecture.clone());
        compare("input", other.input.to_string(), self.input.to_string());
        compare("um/px", other.mpp.to_string(), self.mpp.to_string());
        compare("mean", format!("{:?}", other.mean), format!("{:?}", self.mean));
        compare("std", format!("{:?}", other.std), format!("{:?}", self.std));
        compare("classes", other.classes.join(","), self.classes.join(","));
        let (have, want) = (structure(&other.config), structure(&self.config));
        for key in have.keys().chain(want.keys()).collect::<BTreeSet<_>>() {
            let text =
                |v: Option<&&serde_json::Value>| v.map_or("absent".into(), |v| v.to_string());
            compare(&format!("config.{key}"), text(have.get(key)), text(want.get(key)));
        }
        out
    }
}

/// Settings that act on training alone and may differ between a checkpoint and its use.
const TRAINING_ONLY: [&str; 4] = ["drop_path", "dropout", "head_bias", "mask_ratio"];

/// The settings that decide what the weights mean.
fn structure(config: &serde_json::Value) -> BTreeMap<&str, &serde_json::Value> {
    let entries = config.as_object().into_iter().flatten();
    entries.map(|(k, v)| (k.as_str(), v)).filter(|(k, _)| !TRAINING_ONLY.contains(k)).collect()
}

/// Tensors by name and the file's description.
#[derive(Debug)]
pub struct Tensors {
    /// On the CPU.
    pub tensors: BTreeMap<String, Tensor>,
    /// The JSON description, when the file is ours.
    pub spec: Option<Spec>,
    /// All text metadata of the file.
    pub metadata: BTreeMap<String, String>,
}

fn raw_tensor(t: &Tensor) -> Result<(Dtype, Vec<usize>, Vec<u8>)> {
    let dtype = match t.kind() {
        Kind::Float => Dtype::F32,
        Kind::Double => Dtype::F64,
        Kind::Half => Dtype::F16,
        Kind::BFloat16 => Dtype::BF16,
        Kind::Int64 => Dtype::I64,
        Kind::Int => Dtype::I32,
        Kind::Uint8 => Dtype::U8,
        Kind::Bool => Dtype::BOOL,
        other => {
            return Err(NetError::config("dtype", format!("{other:?} cannot be saved")));
        }
    };
    let t = t.detach().to_device(Device::Cpu).contiguous();
    let shape = t.size().iter().map(|&d| d as usize).collect();
    let mut data = vec![0u8; t.numel() * t.kind().elt_size_in_bytes()];
    t.f_copy_data_u8(&mut data, t.numel())?;
    Ok((dtype, shape, data))
}

/// Writes tensors and text metadata, to a temporary name and then in place.
///
/// # Errors
/// The file system's, with the path.
pub fn save_tensors(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
) -> Result<()> {
    let raw = tensors
        .iter()
        .map(|(name, t)| Ok((name.clone(), raw_tensor(t)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let views = raw
        .iter()
        .map(|(name, (dtype, shape, data))| {
            TensorView::new(*dtype, shape.clone(), data)
                .map(|v| (name.as_str(), v))
                .map_err(|e| NetError::file(path, e.to_string(), "report it if it happens again"))
        })
        .collect::<Result<Vec<_>>>()?;
    let bytes = safetensors::serialize(views, Some(metadata.into_iter().collect()))
        .map_err(|e| NetError::file(path, e.to_string(), "report it if it happens again"))?;
    write_whole(path, &bytes)
}

/// Writes to a temporary file next to `path`, flushes it to disk, renames; the umask decides who may read it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    base::file::write(path, bytes).map_err(|e| NetError::io(path, e.source))
}

/// Reads a safetensors file whole.
///
/// # Errors
/// [`NetError::Encoder`] or [`NetError::Encoder`] when it is unreadable or no safetensors.
pub fn read_tensors(path: &Path) -> Result<Tensors> {
    let Safe { tensors, metadata } = read_safetensors(path)?;
    let spec = match metadata.get(KEY) {
        Some(text) => Some(serde_json::from_str(text).map_err(|e| {
            NetError::file(
                path,
                format!("its description is unreadable ({e})"),
                "export it again if its source is whole",
            )
        })?),
        None => None,
    };
    Ok(Tensors { tensors: tensors::from_arrays(tensors)?, spec, metadata })
}

/// Saves a model with its description.
///
/// # Errors
/// The file system's, with the path.
pub fn save(path: &Path, vs: &VarStore, spec: &Spec) -> Result<()> {
    let tensors: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
    save_described(path, &tensors, spec)
}

/// Saves any tensors (model, optimiser, EMA under prefixes of your choice) with a description, as
/// for resuming.
///
/// # Errors
/// The file system's, with the path.
pub fn save_described(path: &Path, tensors: &BTreeMap<String, Tensor>, spec: &Spec) -> Result<()> {
    let json = serde_json::to_string(spec).map_err(|e| NetError::config("spec", e.to_string()))?;
    save_tensors(path, tensors, BTreeMap::from([(KEY.to_string(), json)]))
}

/// The description of a checkpoint of ours.
///
/// # Errors
/// [`NetError::Encoder`] when the file has none.
pub fn read_spec(path: &Path) -> Result<Spec> {
    read_tensors(path)?.spec.ok_or_else(|| {
        NetError::file(path, "it carries no description", "load it as foreign weights")
    })
}

/// The description of a checkpoint of ours; reads only the file's header. `None` for files of other programs.
///
/// # Errors
/// [`NetError::Encoder`] of a file that cannot be read, and for a description of ours that cannot.
pub fn description(path: &Path) -> Result<Option<Spec>> {
    let Some(text) = metadata(path, KEY)? else { return Ok(None) };
    let unreadable = |e| {
        NetError::file(
            path,
            format!("its description is unreadable ({e})"),
            "export it again if its source is whole",
        )
    };
    serde_json::from_str(&text).map(Some).map_err(unreadable)
}

/// What the weights in a file were trained on, if the file records it; reads only its header. `None`
/// for files of other programs and of older versions.
///
/// # Errors
/// As [`description`].
pub fn read_trained_on(path: &Path) -> Result<Option<TrainedOn>> {
    Ok(description(path)?.and_then(|spec| spec.trained_on))
}

/// Loads a checkpoint of ours, exactly: same description, same names, same shapes.
///
/// # Errors
/// [`NetError::Encoder`] with every difference.
pub fn load(path: &Path, vs: &VarStore, expected: &Spec) -> Result<Spec> {
    let file = read_tensors(path)?;
    let Some(spec) = file.spec else {
        return Err(NetError::file(
            path,
            "it carries no description",
            "load it as foreign weights",
        ));
    };
    let differences = expected.differences(&spec);
    if !differences.is_empty() {
        return Err(NetError::file(
            path,
            differences.join("; "),
            "use the preset it was made with if you have it",
        ));
    }
    let plan = plan(&file.tensors, vs, |n| Some(n.to_string()));
    if !plan.report.is_exact() {
        return Err(NetError::file(
            path,
            plan.report.to_string(),
            "use the preset it was made with if you have it",
        ));
    }
    plan.apply();
    Ok(spec)
}

/// Loads checkpoints of one description, each as [`load`] takes it, and leaves in `vs` the mean of their
/// weights: one network where an ensemble would be as many. Their trainings must have begun with the same
/// weights (Wortsman et al. 2022, model soups). Statistics of batch norms are averaged, too. Sums in f64.
///
/// # Errors
/// As [`load`], with the file; `vs` then holds the weights of the one before.
pub fn load_mean(
    first: &Path,
    others: &[impl AsRef<Path>],
    vs: &VarStore,
    expected: &Spec,
) -> Result<Spec> {
    let spec = load(first, vs, expected)?;
    if others.is_empty() {
        return Ok(spec);
    }
    let double = |t: Tensor| t.detach().to_kind(Kind::Double).copy();
    let mut sums: Vec<(String, Tensor)> =
        vs.variables().into_iter().map(|(name, t)| (name, double(t))).collect();
    for path in others {
        load(path.as_ref(), vs, expected)?;
        let now = vs.variables();
        for (name, sum) in &mut sums {
            *sum += &now[name].detach();
        }
    }
    let n = (1 + others.len()) as f64;
    tch::no_grad(|| {
        let mut variables = vs.variables();
        for (name, sum) in sums {
            if let Some(t) = variables.get_mut(&name) {
                t.copy_(&(sum / n));
            }
        }
    });
    Ok(spec)
}

/// Loads whatever fits and reports the rest; [`crate::foreign::load`] is the one that refuses a part.
/// `rename` maps a name of the file to one of the model,
/// or to `None` to pass it over; `|n| Some(format!("encoder.{n}"))` puts a timm encoder into a
/// U-Net. `num_batches_tracked` is always passed over.
#[must_use]
pub fn load_matching(
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    rename: impl Fn(&str) -> Option<String>,
) -> LoadReport {
    plan(tensors, vs, rename).apply()
}

pub(crate) struct Plan {
    report: LoadReport,
    copies: Vec<(Tensor, Tensor)>,
}

impl Plan {
    pub(crate) fn apply(self) -> LoadReport {
        tch::no_grad(|| {
            for (mut to, from) in self.copies {
                to.copy_(&from);
            }
        });
        self.report
    }
}

pub(crate) fn plan(
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    rename: impl Fn(&str) -> Option<String>,
) -> Plan {
    let model = vs.variables();
    let file: Vec<(&str, Vec<i64>)> = tensors.iter().map(|(n, t)| (n.as_str(), t.size())).collect();
    let dims = file.iter().map(|(name, dims)| (*name, &dims[..]));
    let Matched { report, pairs } = match_names(dims, &tensors::outline(vs), rename);
    let copy =
        |(to, from): &(String, String)| (model[to].shallow_clone(), tensors[from].shallow_clone());
    Plan { copies: pairs.iter().map(copy).collect(), report }
}

#[cfg(test)]
mod tests {
    /// Where the process that the test starts again writes its checkpoint.
    #[cfg(unix)]
    const INSIDE: &str = "MITHRAS_TEST_UMASK";

    /// The umask is the process's: another process has it.
    #[test]
    #[cfg(unix)]
    fn a_checkpoint_keeps_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        if let Some(path) = std::env::var_os(INSIDE) {
            super::write_whole(path.as_ref(), b"weights").unwrap();
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        for (umask, mode) in [("077", 0o600), ("027", 0o640), ("022", 0o644)] {
            let path = dir.path().join(umask);
            let line = format!("umask {umask}; exec \"$0\" --exact \"$1\"");
            let me = std::env::current_exe().unwrap();
            let name = "checkpoint::tests::a_checkpoint_keeps_the_umask";
            let out = std::process::Command::new("sh")
                .args(["-c", &line])
                .arg(me)
                .arg(name)
                .env(INSIDE, &path)
                .output()
                .unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
            let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{umask}: {found:o}");
        }
    }
}
