//! Pages of an earlier report of the same run: those of cases that are gone, or have another name now, are taken
//! away, so that nobody reads them as the run's. Only files that this program wrote and nobody changed since.

use base::digest::{sha256, sha256_file};
use base::json::JsonError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The list of what was written, in the folder of the pages.
pub(crate) const FILE: &str = "reports.json";
const SCHEMA: &str = "mithras.reports/1";

/// Pages that reports wrote into a folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pages {
    schema: String,
    /// Per run, by its folder, the SHA-256 of each file by name: a folder may hold the pages of several runs.
    runs: BTreeMap<String, BTreeMap<String, String>>,
}

/// What became of earlier pages.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Names of the files that are gone.
    pub(crate) removed: Vec<String>,
    /// Names of those that are left, each with the reason.
    pub(crate) left: Vec<String>,
}

impl Pages {
    /// Those of a folder; none where no list is in it.
    pub(crate) fn read(folder: &Path) -> Result<Self, JsonError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self { schema: SCHEMA.to_owned(), runs: BTreeMap::new() });
        }
        base::json::read_schema(&path, SCHEMA)
    }

    /// Takes away what a run's earlier report wrote and `written`, the files of this one with their bytes, lacks, and
    /// keeps the list of what is there now.
    pub(crate) fn replace(
        mut self,
        folder: &Path,
        run: &Path,
        written: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Removed, base::file::WriteError> {
        // Another name for the same folder must not make it another run.
        let whole = run.canonicalize().unwrap_or_else(|_| run.to_owned());
        let run = whole.to_string_lossy().into_owned();
        let (mut done, mut kept) = (Removed::default(), BTreeMap::new());
        let earlier = self.runs.remove(&run).unwrap_or_default();
        let is_another_runs =
            |name: &String| self.runs.values().any(|files| files.contains_key(name));
        for (name, digest) in earlier {
            // A name with a folder in it was not written here.
            let own = Path::new(&name).file_name().is_some_and(|n| n == name.as_str());
            if written.contains_key(&name) || is_another_runs(&name) || !own {
                continue;
            }
            let path = folder.join(&name);
            let reason = match sha256_file(&path) {
                Err(_) if !path.exists() => continue,
                Ok((_, now)) if now == digest => match std::fs::remove_file(&path) {
                    Ok(()) => {
                        done.removed.push(name);
                        continue;
                    }
                    Err(e) => format!("cannot be removed: {e}"),
                },
                Ok(_) => "was changed after it was written".to_owned(),
                Err(e) => e.to_string(),
            };
            // It stays in the list, and is named until somebody takes it away.
            done.left.push(format!("{name}: {reason}"));
            kept.insert(name, digest);
        }
        // A page that two runs write belongs to the last one.
        for files in self.runs.values_mut() {
            files.retain(|name, _| !written.contains_key(name));
        }
        self.runs.retain(|_, files| !files.is_empty());
        let digests = written.iter().map(|(name, bytes)| (name.clone(), sha256(bytes)));
        kept.extend(digests);
        self.runs.insert(run, kept);
        base::json::write(&folder.join(FILE), &self)?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes pages as a report of a run does.
    fn report(folder: &Path, run: &str, pages: &[(&str, &str)]) -> Removed {
        let run = folder.join(run);
        std::fs::create_dir_all(&run).unwrap();
        let earlier = Pages::read(folder).unwrap();
        let of = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().to_vec());
        let written: BTreeMap<String, Vec<u8>> = pages.iter().map(of).collect();
        written.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
        earlier.replace(folder, &run, &written).unwrap()
    }

    #[test]
    fn pages_of_cases_that_are_gone_go_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        std::fs::write(at.join("letter.pdf"), "of somebody else").unwrap();
        report(at, "a", &[("K1.pdf", "1"), ("K2.pdf", "2"), ("K3.pdf", "3"), ("K4.pdf", "4")]);
        report(at, "b", &[("K9.pdf", "9"), ("K3.pdf", "3 of b")]);
        std::fs::write(at.join("K2.pdf"), "2, with a remark by hand").unwrap();
        std::fs::remove_file(at.join("K4.pdf")).unwrap();
        let done = report(at, "a", &[("K1b.pdf", "1")]);
        assert_eq!(done.removed, ["K1.pdf"]);
        assert_eq!(done.left, ["K2.pdf: was changed after it was written"]);
        let mut there: Vec<String> = base::walk::entries(at)
            .unwrap()
            .iter()
            .filter(|p| p.is_file())
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        there.sort();
        let wanted = ["K1b.pdf", "K2.pdf", "K3.pdf", "K9.pdf", "letter.pdf", "reports.json"];
        assert_eq!(there, wanted);
        // The same again changes nothing, and still names what is left; a damaged list is named.
        let again = report(at, "a", &[("K1b.pdf", "1")]);
        assert_eq!((again.removed.len(), again.left), (0, done.left));
        std::fs::write(at.join(FILE), "{").unwrap();
        assert!(Pages::read(at).unwrap_err().to_string().contains("reports.json"));
        // A list that somebody made up takes nothing outside of the folder away.
        let outside = dir.path().join("a/kept.pdf");
        std::fs::write(&outside, "x").unwrap();
        let run = at.join("b").canonicalize().unwrap();
        let list = Pages {
            schema: SCHEMA.into(),
            runs: [(run.display().to_string(), [("a/kept.pdf".into(), sha256("x"))].into())].into(),
        };
        base::json::write(&at.join(FILE), &list).unwrap();
        assert!(report(at, "b", &[]).removed.is_empty() && outside.exists());
    }
}
