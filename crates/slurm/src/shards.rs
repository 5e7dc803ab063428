//! Which shards are done, by the files in the run's folder.

use super::script::{FOLDER, Plan};
use mithras::batch::DetectionState;
use mithras::batch::Shard;
use mithras::batch::state::Status;
use mithras::input::Input;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;

/// A line of a task's log, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    event: String,
    exit_code: Option<u8>,
    kind: Option<String>,
    text: Option<String>,
    reason: Option<String>,
}

/// How the last start of a task ended by its log: its exit code, if it came to one, and why not all was
/// done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub code: Option<u8>,
    pub why: Option<String>,
}

impl Log {
    pub(super) fn read(out: &Path, job: &str, task: u32) -> Self {
        let path = out.join(FOLDER).join(format!("{job}-{task}.log"));
        base::file::read_whole(path)
            .map_or_else(|_| Self::default(), |b| Self::parse(&String::from_utf8_lossy(&b)))
    }

    fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let Ok(line) = serde_json::from_str::<Line>(line) else {
                // The reason of Slurm, or of a library, why the task ended.
                log.why = Some(line.trim().to_owned());
                continue;
            };
            match line.event.as_str() {
                // Begun again: what was before does not count.
                "started" => log = Self::default(),
                "ended" => log.code = line.exit_code,
                "message" | "said" if line.kind.as_deref() == Some("error") => log.why = line.text,
                "slide-ended" => log.why = line.reason.or(log.why),
                _ => {}
            }
        }
        log
    }
}

/// A slide of the list, as far as its shard matters.
pub(super) struct Part {
    pub shard: u32,
    /// How it ended, under whatever configuration; none where it was not begun.
    pub status: Option<Status>,
}

impl Part {
    pub(super) fn all(slides: &[Input], plan: &Plan, of: NonZeroU32) -> Vec<Self> {
        let part = |slide: &Input| {
            let shard = Shard::number(&slide.name, of);
            let state = DetectionState::load(&plan.results(shard).join(&slide.name));
            Self { shard, status: state.map(|s| s.status) }
        };
        slides.iter().map(part).collect()
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.status, Some(Status::Finished | Status::NoTissue))
    }
}

/// The shards of the slides that are not done, one for each such slide.
pub(super) fn left(parts: &[Part]) -> Vec<u32> {
    parts.iter().filter(|p| !p.is_done()).map(|p| p.shard).collect()
}

/// The shards, of those that ran, whose task refused to work: what is done of their slides was done otherwise.
pub(super) fn refused(ran: &[u32], parts: &[Part], log: impl Fn(u32) -> Log) -> BTreeSet<u32> {
    let has_tried =
        |k: u32| parts.iter().filter(|p| p.shard == k).all(|p| p.status == Some(Status::Failed));
    ran.iter().copied().filter(|k| log(*k).code == Some(1) && !has_tried(*k)).collect()
}

/// The shards, of those that ran, that are to run again: with slides that are not done, or refused.
pub(super) fn failed(ran: &[u32], left: &[u32], log: impl Fn(u32) -> Log) -> Vec<u32> {
    let open: BTreeSet<u32> = left.iter().copied().collect();
    ran.iter().copied().filter(|k| open.contains(k) || log(*k).code == Some(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_records_how_its_last_start_ended() {
        let of = |text: &str| {
            let log = Log::parse(text);
            (log.code, log.why.unwrap_or_default())
        };
        let first = "{\"event\":\"started\"}\n{\"event\":\"slide-ended\",\"reason\":\"no room\"}\n";
        assert_eq!(of(first), (None, "no room".into()));
        let ended = format!("{first}{{\"event\":\"ended\",\"exit_code\":3}}\n");
        assert_eq!(of(&ended), (Some(3), "no room".into()));
        let killed =
            format!("{ended}{{\"event\":\"started\"}}\nslurmstepd: error: NODE FAILURE\n{{\"ev");
        assert_eq!(of(&killed), (None, "{\"ev".into()));
        assert_eq!(of(""), (None, String::new()));
    }

    #[test]
    fn a_task_that_failed_on_every_slide_has_not_refused() {
        let part = |shard, status| Part { shard, status };
        let (done, failed) = (Some(Status::Finished), Some(Status::Failed));
        let parts = [part(1, done), part(1, failed), part(2, failed), part(3, None), part(4, done)];
        let log = |k: u32| Log { code: Some(u8::from(k != 4)), why: None };
        assert_eq!(Vec::from_iter(refused(&[1, 2, 3, 4], &parts, log)), [1, 3]);
        assert_eq!(left(&parts), [1, 2, 3]);
    }

    #[test]
    fn shards_run_again_where_slides_are_left_or_they_refused() {
        let log = |k: u32| Log { code: (k == 4).then_some(1), why: None };
        assert_eq!(failed(&[1, 2, 3, 4, 5], &[2, 2], log), [2, 4]);
        assert_eq!(failed(&[1, 3], &[2], log), [0; 0]);
    }
}
