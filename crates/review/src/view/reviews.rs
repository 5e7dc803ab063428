//! Logs of reviewers whose verdicts count together, and what they come to on a slide.

use super::content::SlideFile;
use super::decisions::{PlacedHotspot, hotspots_file};
use super::logs::lines;
use super::places::{Joined, Nearby, join};
use super::review::{
    Entry, ReviewError, SlideKey, SlideVerdicts, Verdict, VerdictLog, Verdicts, entries_on,
};
use super::settle::{PlaceKey, Settled, TOGETHER, differing, holding, settled};
use crate::agreement::{Agreement, agreements};
use base::digest::sha256;
use base::text::Many;
use mithras::record::ModelEntry;
use stats::StatsError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reviewers, their logs, and the decisions where they differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Reviews {
    /// By reviewer; of several together also those that the decisions name.
    logs: BTreeMap<String, Verdicts>,
    /// Whose verdicts count.
    chosen: Vec<String>,
    /// None for one reviewer alone.
    decisions: BTreeMap<PlaceKey, Settled>,
}

impl Reviews {
    /// The reviewers named `anna`, or `anna+bert`, in a folder of logs. None where one of them has neither a log nor a
    /// placed hotspot.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub(super) fn read(folder: &Path, names: &str) -> Result<Option<Self>, ReviewError> {
        let chosen: Vec<String> = names.split(TOGETHER).map(str::to_owned).collect();
        let mut logs = BTreeMap::new();
        for name in &chosen {
            let log = VerdictLog::path(folder, name)?;
            match log.is_file() {
                true => logs.insert(name.clone(), VerdictLog::read(&log)?),
                false if has_hotspot(folder, name)? => logs.insert(name.clone(), Verdicts::new()),
                false => return Ok(None),
            };
        }
        if chosen.len() == 1 {
            return Ok(Some(Self { logs, chosen, decisions: BTreeMap::new() }));
        }
        logs.extend(VerdictLog::read_all(folder)?);
        Ok(Some(Self { logs, chosen, decisions: settled(folder)? }))
    }

    /// Every reviewer with a log in a folder, or one of them alone; empty where nobody has a log.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub(super) fn all(folder: &Path, reviewer: Option<&str>) -> Result<Self, ReviewError> {
        let mut logs = VerdictLog::read_all(folder)?;
        logs.retain(|name, _| reviewer.is_none_or(|r| r == name));
        let chosen: Vec<String> = logs.keys().cloned().collect();
        let decisions = match chosen.len() {
            0 | 1 => BTreeMap::new(),
            _ => settled(folder)?,
        };
        Ok(Self { logs, chosen, decisions })
    }

    /// One log from anywhere.
    pub(super) fn single(name: &str, log: Verdicts) -> Self {
        let logs = BTreeMap::from([(name.to_owned(), log)]);
        Self { logs, chosen: vec![name.to_owned()], decisions: BTreeMap::new() }
    }

    /// Whose verdicts count.
    pub(super) fn reviewers(&self) -> &[String] {
        &self.chosen
    }

    /// Whether decisions count where the reviewers differ.
    pub(super) fn is_several(&self) -> bool {
        self.chosen.len() > 1
    }

    /// The reviewers on whose verdicts the numbers depend: those whose verdicts count, and whom the decisions name.
    pub(super) fn needed_reviewers(&self) -> BTreeSet<&str> {
        let named = self.decisions.values().flat_map(|s| s.verdicts.keys());
        self.chosen.iter().chain(named).map(String::as_str).collect()
    }

    /// The slides that the verdicts are about, with them.
    pub(super) fn slides(&self) -> impl Iterator<Item = (&SlideKey, &SlideVerdicts)> {
        self.chosen.iter().filter_map(|name| self.logs.get(name)).flatten()
    }

    /// The verdicts on a slide; added figures near each other or near one of these candidates are one place. Those that
    /// are not to be kept are left out before.
    pub(super) fn slide_reviews(
        &self,
        slide: SlideFile<'_>,
        candidates: Option<&Nearby>,
        keep: impl Fn(&Entry) -> bool,
    ) -> SlideReviews {
        let own = |log| {
            let all = entries_on(log, slide.name, slide.digest).into_iter().map(|(_, e)| e);
            all.filter(|e| keep(e)).cloned().collect::<Vec<_>>()
        };
        let all: BTreeMap<String, Vec<Entry>> =
            self.logs.iter().map(|(name, log)| (name.clone(), own(log))).collect();
        let mut chosen = all.clone();
        chosen.retain(|name, _| self.chosen.contains(name));
        let joined = join(&chosen, candidates);
        let mut decisions = BTreeMap::new();
        if !self.decisions.is_empty() {
            let all = join(&all, candidates);
            let holds = holding(&self.decisions, slide, &all);
            for (key, place) in &joined.keys {
                if let Some(decision) = all.keys.get(key).and_then(|key| holds.get(key)) {
                    decisions.insert(place.clone(), decision.clone());
                }
            }
        }
        SlideReviews { joined, decisions }
    }

    /// Verdicts that do not count on a slide: those about other files of its name, and those that are not to be kept.
    pub(super) fn left_out(
        &self,
        slide: SlideFile<'_>,
        keep: impl Fn(&Entry) -> bool,
    ) -> (usize, usize) {
        let others = self
            .slides()
            .filter(|(of, _)| of.slide == slide.name && of.slide_digest != slide.digest);
        let logs = self.chosen.iter().filter_map(|name| self.logs.get(name));
        let own = logs.flat_map(|log| entries_on(log, slide.name, slide.digest));
        let others = others.map(|(_, own)| own.entries.len()).sum();
        (others, own.filter(|(_, e)| !keep(e)).count())
    }

    /// How many of the verdicts on candidates of a slide were given on those of other weights than its own.
    pub(super) fn of_other_models(
        &self,
        slide: SlideFile<'_>,
        model: &ModelEntry,
        is_candidate: impl Fn(&str) -> bool,
    ) -> usize {
        let model_digest = model_digest(model);
        let logs = self.chosen.iter().filter_map(|name| self.logs.get(name));
        let all = logs.flat_map(|log| entries_on(log, slide.name, slide.digest));
        // A slide without a run has no model.
        let other = |of: &SlideKey| !of.model_digest.is_empty() && of.model_digest != model_digest;
        all.filter(|(of, e)| !e.added && other(of) && is_candidate(&e.key)).count()
    }

    /// A note on them, where there are any.
    pub(super) fn model_note(
        &self,
        slide: SlideFile<'_>,
        model: &ModelEntry,
        is_candidate: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let n = self.of_other_models(slide, model, is_candidate);
        (n > 0)
            .then(|| format!("{} about the same candidates of other weights", Many(n, "verdict")))
    }

    /// How far every two of the reviewers agree, over all places of all slides; `joined` has the places of slides
    /// whose candidates are known, by name and digest.
    ///
    /// # Errors
    /// [`StatsError`].
    pub(super) fn agreement(
        &self,
        mut joined: BTreeMap<(String, String), Joined>,
    ) -> Result<Vec<Agreement>, StatsError> {
        for (of, _) in self.slides() {
            let slide = SlideFile { name: &of.slide, digest: &of.slide_digest };
            let key = (of.slide.clone(), of.slide_digest.clone());
            joined.entry(key).or_insert_with(|| self.slide_reviews(slide, None, |_| true).joined);
        }
        let mut words: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
        for (slide, joined) in &joined {
            for (name, own) in &joined.by {
                let all = own.iter().filter_map(|(key, e)| Some(((slide, key), e.verdict?.into())));
                words.entry(name.clone()).or_default().extend(all);
            }
        }
        agreements(&words)
    }
}

/// Whether a reviewer placed a hotspot on any slide.
fn has_hotspot(folder: &Path, name: &str) -> Result<bool, ReviewError> {
    let all = lines::<PlacedHotspot>(&hotspots_file(folder))?;
    Ok(all.iter().any(|h| h.reviewer == name && !h.centres_px.is_empty()))
}

/// Digest of the weights that gave candidates, as [`SlideKey`] has it.
pub(super) fn model_digest(m: &ModelEntry) -> String {
    let second = m.classifier_sha256.as_deref().unwrap_or_default();
    let screen = m.screen.as_ref().map(|s| format!(" {}", s.sha256)).unwrap_or_default();
    sha256(format!("{} {second}{screen}", m.segmenter_sha256))
}

/// The verdicts of reviewers on one slide.
#[derive(Clone, Debug, Default)]
pub(super) struct SlideReviews {
    /// By reviewer and place.
    pub joined: Joined,
    /// The decisions that hold, by place; none for one reviewer alone.
    pub decisions: BTreeMap<String, Settled>,
}

impl SlideReviews {
    /// The verdict on each place, by key: the decision about it, else that of the reviewers who judged it where they
    /// agree, else none.
    pub(super) fn verdicts(&self) -> BTreeMap<String, Entry> {
        let differ: BTreeSet<String> =
            differing(&self.joined, &self.decisions).into_iter().map(|d| d.key).collect();
        let mut all = BTreeMap::new();
        for (key, entries) in self.joined.places() {
            let Some(first) = entries.into_values().next() else { continue };
            let entry = match self.decisions.get(key) {
                Some(s) => Entry { verdict: s.verdict, morphology: None, ..first.clone() },
                None if differ.contains(key) => continue,
                None => first.clone(),
            };
            all.insert(key.to_owned(), entry);
        }
        all
    }

    /// What is to be known of the places.
    pub(super) fn notes(&self) -> Vec<String> {
        let differ = differing(&self.joined, &self.decisions);
        let decided = differ.iter().filter(|d| d.settled.is_some()).count();
        let open = differ.len() - decided;
        let mut notes = Vec::new();
        if open > 0 {
            notes.push(format!(
                "the reviewers differ on {}, not settled: the network's verdict counts there",
                Many(open, "place")
            ));
        }
        if decided > 0 {
            notes.push(format!("{} on which they differ settled", Many(decided, "place")));
        }
        let places = self.joined.places();
        let otherwise = self.decisions.iter().filter(|(key, s)| {
            let counts = |v: Option<Verdict>| v.map(Verdict::counts);
            let own = places.get(key.as_str());
            own.is_some_and(|own| own.values().all(|e| counts(e.verdict) != counts(s.verdict)))
                && differ.iter().all(|d| d.key != **key)
        });
        match otherwise.count() {
            0 => {}
            n => notes.push(format!(
                "{} on which they agree settled otherwise with other reviewers",
                Many(n, "place")
            )),
        }
        if self.joined.joined > 0 {
            let n = Many(self.joined.joined, "added figure");
            let what =
                "within 7.5 um of a candidate or of another added figure: each place counts once";
            notes.push(format!("{n} {what}"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::settle::{Disagreement, settle};
    use super::*;

    const SLIDE: SlideFile<'_> = SlideFile { name: "s", digest: "d" };

    fn of(model: &str) -> SlideKey {
        SlideKey { slide: "s".into(), slide_digest: "d".into(), model_digest: model.into() }
    }

    fn entry(at: [f64; 2], added: bool, verdict: Verdict) -> Entry {
        let [x, y] = at;
        let key = format!("{}{}", if added { "+" } else { "" }, Entry::place_key(x, y));
        let (morphology, comment) = (None, None);
        Entry { key, x, y, verdict: Some(verdict), added, morphology, comment }
    }

    fn judge(folder: &Path, who: &str, model: &str, entry: Entry) {
        VerdictLog::open(folder, who).unwrap().record(&of(model), entry).unwrap();
    }

    /// Candidates at 0.25 um/px.
    fn near() -> Nearby {
        Nearby::new(vec![[100.0, 100.0], [200.0, 100.0], [900.0, 100.0]], [0.25; 2])
    }

    fn slide(folder: &Path, names: &str) -> SlideReviews {
        Reviews::read(folder, names).unwrap().unwrap().slide_reviews(SLIDE, Some(&near()), |_| true)
    }

    fn counted(folder: &Path, names: &str) -> BTreeMap<String, Verdict> {
        let all = slide(folder, names).verdicts();
        all.into_iter().map(|(key, e)| (key, e.verdict.unwrap())).collect()
    }

    /// Places on which all reviewers of a folder differ.
    fn differ(folder: &Path) -> Vec<Disagreement> {
        let all = Reviews::all(folder, None).unwrap().slide_reviews(SLIDE, Some(&near()), |_| true);
        differing(&all.joined, &all.decisions)
    }

    #[test]
    fn a_decision_holds_until_a_verdict_that_it_names_changes() {
        let dir = tempfile::tempdir().unwrap();
        let f = dir.path();
        let places = [[100.0, 100.0], [200.0, 100.0], [900.0, 100.0], [50.0, 900.0]];
        let (a, b, c, alone) = ("100.00,100.00", "200.00,100.00", "900.00,100.00", "50.00,900.00");
        use Verdict::{Atypical, Figure, Mimicker, Removed, Unsure};
        for (at, anna, bert) in [
            (places[0], Figure, Atypical),
            (places[1], Figure, Mimicker),
            (places[2], Removed, Unsure),
        ] {
            judge(f, "anna", "m", entry(at, false, anna));
            judge(f, "bert", "m", entry(at, false, bert));
        }
        judge(f, "anna", "m", entry(places[3], false, Figure));
        let open = |names: &str| slide(f, names).notes().join("; ");
        let network = "the reviewers differ on 2 places, not settled";
        assert!(open("anna+bert").contains(network), "{}", open("anna+bert"));
        assert_eq!(counted(f, "anna+bert").into_keys().collect::<Vec<_>>(), [a, alone]);
        // A third judges, the chief settles what all three differ on.
        judge(f, "cleo", "m", entry(places[0], false, Mimicker));
        judge(f, "cleo", "m", entry(places[1], false, Mimicker));
        let keys: Vec<String> = differ(f).into_iter().map(|d| d.key).collect();
        assert_eq!(keys, [a, b, c]);
        settle(f, "chief", &of("m"), &differ(f)[0], Some(Mimicker)).unwrap();
        settle(f, "chief", &of("m"), &differ(f)[1], Some(Mimicker)).unwrap();
        for names in ["anna+bert", "bert+anna", "anna+bert+cleo"] {
            let all = counted(f, names);
            assert_eq!((all[a], all[b], all.get(c)), (Mimicker, Mimicker, None), "{names}");
        }
        let notes = open("anna+bert");
        assert!(notes.contains("1 place on which they differ settled"), "{notes}");
        assert!(notes.contains("1 place on which they agree settled otherwise"), "{notes}");
        assert_eq!(counted(f, "anna")[a], Figure, "one reviewer's own");
        // Another reviewer, later, changes none of the verdicts that were looked at.
        judge(f, "dora", "m", entry(places[1], false, Figure));
        assert_eq!(counted(f, "anna+dora")[b], Mimicker);
        // What is named and changes opens it, and closes it as it was.
        judge(f, "cleo", "m", entry(places[1], false, Figure));
        assert!(!counted(f, "anna+bert").contains_key(b));
        judge(f, "cleo", "m", entry(places[1], false, Mimicker));
        assert_eq!(counted(f, "anna+bert")[b], Mimicker);
        let about = differ(f).into_iter().find(|d| d.key == b).unwrap();
        settle(f, "chief", &of("m"), &about, None).unwrap();
        assert!(!counted(f, "anna+bert").contains_key(b), "taken back");
        assert!(Reviews::read(f, "anna+nobody").unwrap().is_none());
        assert!(Reviews::read(f, "anna+../x").is_err());
    }

    #[test]
    fn added_figures_of_one_cell_are_one_place_in_any_order() {
        use Verdict::{Figure, Mimicker, Removed, Unsure};
        let dir = tempfile::tempdir().unwrap();
        let f = dir.path();
        let add = |who: &str, at, verdict| judge(f, who, "m", entry(at, true, verdict));
        // 0.8 um apart; the same reviewer twice, who deleted one; 10 um apart.
        add("bert", [503.2, 500.0], Figure);
        add("anna", [500.0, 500.0], Figure);
        add("anna", [600.0, 500.0], Figure);
        add("anna", [602.0, 500.0], Figure);
        add("anna", [601.0, 500.0], Removed);
        add("anna", [700.0, 500.0], Figure);
        add("bert", [740.0, 500.0], Figure);
        let keys = |names: &str| counted(f, names).into_keys().collect::<Vec<_>>();
        let all = ["+500.00,500.00", "+600.00,500.00", "+700.00,500.00", "+740.00,500.00"];
        assert_eq!(keys("anna+bert"), all);
        assert_eq!(keys("bert+anna"), all);
        let notes = slide(f, "anna+bert").notes();
        assert!(notes.iter().any(|n| n.starts_with("2 added figures within 7.5 um")), "{notes:?}");
        let agree = Reviews::all(f, None).unwrap();
        let joined = agree.slide_reviews(SLIDE, Some(&near()), |_| true).joined;
        let slides = BTreeMap::from([(("s".to_owned(), "d".to_owned()), joined)]);
        assert_eq!(agree.agreement(slides).unwrap()[0].both, 1);
        // On a candidate: a verdict on it, unless its reviewer decided about the candidate.
        add("cleo", [101.0, 100.0], Figure);
        add("cleo", [201.0, 100.0], Removed);
        add("cleo", [903.0, 100.0], Figure);
        judge(f, "cleo", "m", entry([900.0, 100.0], false, Figure));
        let all = counted(f, "cleo");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["100.00,100.00", "900.00,100.00"]);
        judge(f, "cleo", "m", entry([900.0, 100.0], false, Unsure));
        assert_eq!(counted(f, "cleo")["900.00,100.00"], Figure);
        // Who rejects a candidate and adds a figure next to it means two cells.
        judge(f, "cleo", "m", entry([900.0, 100.0], false, Mimicker));
        let all = counted(f, "cleo");
        assert_eq!((all["900.00,100.00"], all["+903.00,100.00"]), (Mimicker, Figure));
        // Three in a row are not one, because the ends are two cells.
        for x in [1000.0, 1020.0, 1040.0] {
            add("dora", [x, 500.0], Figure);
        }
        assert_eq!(keys("dora"), ["+1000.00,500.00", "+1040.00,500.00"]);
    }

    #[test]
    fn the_later_verdict_holds_whichever_model_found_the_candidate() {
        use Verdict::{Figure, Mimicker};
        let dir = tempfile::tempdir().unwrap();
        let f = dir.path();
        let (at, key) = ([100.0, 100.0], "100.00,100.00");
        // The older line names the model that comes last in the alphabet.
        judge(f, "anna", "z", entry(at, false, Figure));
        judge(f, "anna", "a", entry(at, false, Mimicker));
        assert_eq!(counted(f, "anna")[key], Mimicker);
        // Taken back, the earlier one holds again; withdrawn, none does.
        VerdictLog::open(f, "anna").unwrap().undo(&of("a")).unwrap();
        assert_eq!(counted(f, "anna")[key], Figure);
        let none = Entry { verdict: None, ..entry(at, false, Figure) };
        judge(f, "anna", "a", none);
        assert!(counted(f, "anna").is_empty());
        judge(f, "anna", "a", entry(at, false, Figure));
        judge(f, "bert", "z", entry(at, false, Mimicker));
        assert_eq!(differ(f).len(), 1, "compared whatever the model");
        let all = Reviews::read(f, "anna+bert").unwrap().unwrap();
        let model = ModelEntry {
            name: "a-model".into(),
            segmenter_sha256: "00".into(),
            classifier_sha256: None,
            classifier_scale: None,
            classifier_symmetries_from: None,
            screen: None,
            networks_sha256: None,
            license: "none".into(),
        };
        let note = all.model_note(SLIDE, &model, |k| k == key);
        assert_eq!(note.unwrap(), "2 verdicts about the same candidates of other weights");
    }
}
