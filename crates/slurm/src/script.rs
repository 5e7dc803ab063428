//! The job file.

use super::error::SlurmError;
use base::file;
use mithras::batch::read_list;
use mithras::input::Input;
use mithras::report::written_columns;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf, absolute};

/// Folder of job files and logs in that of the run.
pub(super) const FOLDER: &str = ".slurm";
/// Folder of a shard, where each has its own, before its number.
const PART: &str = "part-";

/// What is to run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The list of slides.
    pub list: PathBuf,
    /// Folder of the results, which all nodes see.
    pub out: PathBuf,
    /// Shards, a task of the array each; at most one per slide, unless each has a folder of its own.
    pub shards: u32,
    /// Whether each shard has a folder of its own, `OUT/part-K`, with the tables over all in OUT.
    pub split: bool,
    /// Tasks at once; `None` leaves it to Slurm.
    pub at_once: Option<u32>,
    /// Whether each task has a GPU.
    pub gpu: bool,
    /// Further options of `sbatch`, such as `--partition=long`; they come after the others and win.
    pub options: Vec<String>,
    /// The program, as the nodes find it.
    pub program: PathBuf,
    /// Further words for detection.
    pub detect: Vec<String>,
}

impl Plan {
    pub(super) fn folder(&self) -> PathBuf {
        self.out.join(FOLDER)
    }

    /// The folder with the results of a shard.
    pub(super) fn results(&self, shard: u32) -> PathBuf {
        if self.split { self.out.join(format!("{PART}{shard}")) } else { self.out.clone() }
    }

    /// How many shards a list of so many slides has. With folders of their own the list may grow: a slide stays in its
    /// folder.
    fn count_shards(&self, slides: usize) -> NonZeroU32 {
        let most = if self.split { u32::MAX } else { u32::try_from(slides).unwrap_or(u32::MAX) };
        NonZeroU32::new(self.shards.min(most)).unwrap_or(NonZeroU32::MIN)
    }

    /// The numbers of an array, with how many at once.
    pub(super) fn array(&self, numbers: &str) -> String {
        self.at_once.map_or_else(|| numbers.to_owned(), |n| format!("{numbers}%{n}"))
    }
}

/// Writes the job file, `OUT/.slurm/detect.sbatch`, and gives its path.
///
/// # Errors
/// [`SlurmError`]: a list that cannot be used, words that a job file cannot hold, a disk that refuses.
pub fn write(plan: &Plan) -> Result<PathBuf, SlurmError> {
    Ok(written(plan)?.file)
}

/// What is written down before anything runs.
pub(super) struct Written {
    pub file: PathBuf,
    pub slides: Vec<Input>,
    /// How many there are.
    pub shards: NonZeroU32,
}

pub(super) fn written(plan: &Plan) -> Result<Written, SlurmError> {
    let slides = read_list(&plan.list, None, &written_columns())?.slides;
    let shards = plan.count_shards(slides.len());
    let folder = plan.folder();
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| SlurmError::Io { path, source }
    };
    std::fs::create_dir_all(&folder).map_err(io(&folder))?;
    let (out, list) = (
        absolute(&plan.out).map_err(io(&plan.out))?,
        absolute(&plan.list).map_err(io(&plan.list))?,
    );
    let here = std::env::current_dir().map_err(io(Path::new(".")))?;
    let text = text(plan, &list, &out, &here, shards)?;
    let path = absolute(folder.join("detect.sbatch")).map_err(io(&folder))?;
    file::write(&path, text.as_bytes())?;
    Ok(Written { file: path, slides, shards })
}

/// The file's text; nothing in it depends on the machine but the paths.
fn text(
    plan: &Plan,
    list: &Path,
    out: &Path,
    here: &Path,
    shards: NonZeroU32,
) -> Result<String, SlurmError> {
    let log = out.join(FOLDER).to_string_lossy().replace('%', "%%") + "/%A-%a.log";
    let own = [
        "--job-name=mithras".into(),
        format!("--array={}", plan.array(&format!("1-{shards}"))),
        format!("--chdir={}", here.display()),
        format!("--output={log}"),
        "--open-mode=append".into(),
        "--requeue".into(),
        "--signal=B:TERM@60".into(),
        "--cpus-per-task=4".into(),
        "--mem=8G".into(),
    ];
    let gpu = plan.gpu.then(|| "--gres=gpu:1".to_owned());
    let mut text = String::from(
        "#!/bin/bash\n# Detection on the shards of a list, one array task each; by `mithras slurm`.\n",
    );
    for option in own.into_iter().chain(gpu).chain(plan.options.iter().cloned()) {
        if option.contains(['"', '\'', '\\', '#']) || option.chars().any(char::is_control) {
            return Err(SlurmError::Words(option));
        }
        let quote = if option.contains(char::is_whitespace) { "\"" } else { "" };
        let _ = writeln!(text, "#SBATCH {quote}{option}{quote}");
    }
    let part = if plan.split { format!("/{PART}\"$SLURM_ARRAY_TASK_ID\"") } else { String::new() };
    text += "\n# A restarted task keeps what is done and continues with the rest.\nexec ";
    let words = [
        word(&plan.program)?,
        "detect --list".into(),
        word(list)?,
        "--out".into(),
        word(out)? + &part,
        format!("--shard \"$SLURM_ARRAY_TASK_ID/{shards}\" --resume --log json"),
        "--threads \"${SLURM_CPUS_PER_TASK:-1}\"".into(),
    ];
    let detect = plan.detect.iter().map(|w| word(Path::new(w))).collect::<Result<Vec<_>, _>>()?;
    // The log is for events and for what Slurm adds; tables are in the folder.
    text += &[&words[..], &detect[..]].concat().join(" ");
    text += " >/dev/null\n";
    Ok(text)
}

/// A word as the shell reads it.
fn word(word: &Path) -> Result<String, SlurmError> {
    let text = word.to_str().filter(|t| !t.chars().any(char::is_control));
    let text = text.ok_or_else(|| SlurmError::Words(word.display().to_string()))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:%+@".contains(c);
    let bare = !text.is_empty() && text.chars().all(plain);
    Ok(if bare { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(gpu: bool) -> Plan {
        let detect: &[&str] =
            if gpu { &["--engine", "onnxruntime", "--provider", "cuda"] } else { &[] };
        Plan {
            list: "/study/slides.csv".into(),
            out: "/study/results".into(),
            shards: 16,
            split: false,
            at_once: Some(8),
            gpu,
            options: vec!["--time=08:00:00".into()],
            program: "mithras".into(),
            detect: detect.iter().map(ToString::to_string).collect(),
        }
    }

    fn script_for(plan: &Plan) -> Result<String, SlurmError> {
        let shards = NonZeroU32::new(plan.shards).unwrap();
        text(plan, &plan.list, &plan.out, Path::new("/study"), shards)
    }

    #[test]
    fn the_files_of_deploy_are_what_is_written() {
        for (gpu, name) in [(false, "detect.sbatch"), (true, "detect-gpu.sbatch")] {
            let path = testkit::workspace().join("deploy/slurm").join(name);
            let there = std::fs::read_to_string(&path).unwrap();
            assert_eq!(script_for(&plan(gpu)).unwrap(), there, "{}", path.display());
        }
    }

    #[test]
    fn a_list_that_grows_leaves_slides_in_their_folders() {
        let shards = |split, slides| Plan { split, ..plan(false) }.count_shards(slides).get();
        assert_eq!([shards(true, 2), shards(true, 5)], [16, 16]);
        assert_eq!([shards(false, 2), shards(false, 5), shards(false, 20)], [2, 5, 16]);
    }

    #[test]
    fn words_reach_the_shell_whole_and_paths_slurm() {
        let mut odd = plan(false);
        odd.list = "/a b/it's $HOME.csv".into();
        odd.out = "/a b/100%".into();
        let text = script_for(&odd).unwrap();
        assert!(text.contains(r"--list '/a b/it'\''s $HOME.csv' --out '/a b/100%'"), "{text}");
        assert!(text.contains("#SBATCH \"--output=/a b/100%%/.slurm/%A-%a.log\"\n"), "{text}");
        odd.split = true;
        let text = script_for(&odd).unwrap();
        let part =
            r#"--out '/a b/100%'/part-"$SLURM_ARRAY_TASK_ID" --shard "$SLURM_ARRAY_TASK_ID/16""#;
        assert!(text.contains(part), "{text}");
        for bad in ["--a\nrm -rf", "--comment=\"x\""] {
            odd.options = vec![bad.into()];
            assert!(matches!(script_for(&odd), Err(SlurmError::Words(_))), "{bad}");
        }
        odd.options.clear();
        odd.detect = vec!["a\nb".into()];
        assert!(script_for(&odd).is_err());
    }
}
