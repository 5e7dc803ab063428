//! Organ sites of TCGA's cohorts.

use super::exclude::parts;
use std::collections::BTreeMap;

/// Cohorts of crop corpora and of test sets.
const SITES: [(&str, &str); 20] = [
    ("BLCA", "bladder"),
    ("BRCA", "breast"),
    ("COAD", "colon"),
    ("DLBC", "lymph node"),
    ("ESCA", "oesophagus"),
    ("GBM", "brain"),
    ("KICH", "kidney"),
    ("KIRC", "kidney"),
    ("KIRP", "kidney"),
    ("LGG", "brain"),
    ("LIHC", "liver"),
    ("LUAD", "lung"),
    ("LUSC", "lung"),
    ("OV", "ovary"),
    ("PAAD", "pancreas"),
    ("PRAD", "prostate"),
    ("SARC", "soft tissue"),
    ("STAD", "stomach"),
    ("THCA", "thyroid"),
    ("UCEC", "uterus"),
];

/// The organ site of a cohort; none for a name that is not TCGA's, or of cohorts of several sites.
fn site(cohort: &str) -> Option<&'static str> {
    let known_site = |c: &String| SITES.iter().find(|(name, _)| name == c).map(|(_, site)| *site);
    let sites = parts(cohort).iter().map(known_site).collect::<Option<Vec<_>>>()?;
    let first = *sites.first()?;
    sites.iter().all(|s| *s == first).then_some(first)
}

/// Numbers of cohorts by organ site; empty where no site is known. Other cohorts keep their names.
pub(super) fn by_site<'a>(
    cohorts: impl Iterator<Item = (&'a String, u64)> + Clone,
) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    if cohorts.clone().all(|(cohort, _)| site(cohort).is_none()) {
        return all;
    }
    for (cohort, n) in cohorts {
        let name = site(cohort).map_or_else(|| cohort.clone(), str::to_owned);
        *all.entry(name).or_default() += n;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_fourteen_cohorts_are_of_eleven_sites() {
        let preset = super::super::Preset::find("tcga-mf-pseudo").unwrap();
        let cohorts: Vec<(String, u64)> = preset.cohorts.into_iter().map(|c| (c, 1)).collect();
        let sites = by_site(cohorts.iter().map(|(c, n)| (c, *n)));
        assert_eq!((cohorts.len(), sites.len()), (14, 11), "{sites:?}");
        assert_eq!((sites["kidney"], sites["lung"]), (3, 2));
        let own = [("TCGA-coad".to_owned(), 2), ("COLON_DX".into(), 3), ("ward".into(), 4)];
        let sites = by_site(own.iter().map(|(c, n)| (c, *n)));
        assert_eq!(sites, [("colon".into(), 5), ("ward".into(), 4)].into());
        assert!(by_site(own[2..].iter().map(|(c, n)| (c, *n))).is_empty());
        assert_eq!((site("GBMLGG"), site("COADREAD")), (Some("brain"), None));
    }
}
