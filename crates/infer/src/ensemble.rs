//! Classifiers of several folds as one.

use crate::card::ClassifierCard;
use crate::onnx::mean;
use crate::package::ModelPackage;
use base::digest::sha256;

/// Why classifiers are not one.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum EnsembleError {
    /// No classifier in a package.
    #[error("{0}: its package has no classifier")]
    None(String),
    /// They are not fed alike, or do not answer alike.
    #[error(
        "{first} and {other} differ in their {what}; a mean needs classifiers that are fed and answer alike"
    )]
    Differ {
        first: String,
        other: String,
        /// Key of the card.
        what: &'static str,
    },
    /// Their files.
    #[error("{0}")]
    Onnx(String),
}

/// The mean of the probabilities of several classifiers, as one network with one card, whose `folds` name the
/// members. It takes as long as all of them together.
///
/// # Errors
/// [`EnsembleError`]: a package without a classifier, crops or classes that differ, files that cannot be joined.
pub fn classifier(members: &[ModelPackage]) -> Result<(ClassifierCard, Vec<u8>), EnsembleError> {
    let mut found = vec![];
    for package in members {
        let (card, onnx) = (package.card.classifier.as_ref(), package.classifier());
        let Some(member) = card.zip(onnx) else {
            return Err(EnsembleError::None(package.card.name.clone()));
        };
        found.push((package.card.name.clone(), member));
    }
    // A mean would ask all members of every crop.
    if let Some(screened) = members.iter().find(|p| members.len() > 1 && p.card.screen.is_some()) {
        let (first, other) = (members[0].card.name.clone(), screened.card.name.clone());
        return Err(EnsembleError::Differ { first, other, what: "screen" });
    }
    let Some((first, (card, _))) = found.first() else {
        return Err(EnsembleError::Onnx("no classifiers".into()));
    };
    for (other, (c, _)) in &found {
        let what = [
            ("mpp", c.mpp == card.mpp),
            ("crop", c.crop == card.crop),
            ("input", c.input == card.input),
            ("interpolation", c.interpolation == card.interpolation),
            ("mean", c.mean == card.mean),
            ("std", c.std == card.std),
            ("classes", c.classes == card.classes),
            ("outputs", c.outputs == card.outputs),
            ("positive class", c.positive == card.positive),
            ("symmetries", c.symmetries == card.symmetries),
            ("symmetries_from", c.symmetries_from == card.symmetries_from),
            ("bf16", c.bf16 == card.bf16),
            // A mean is not scaled as its members are.
            ("scale", c.scale.is_none() && card.scale.is_none()),
        ];
        if let Some((what, _)) = what.into_iter().find(|w| !w.1) {
            let (first, other) = (first.clone(), other.clone());
            return Err(EnsembleError::Differ { first, other, what });
        }
    }
    let files: Vec<&[u8]> = found.iter().map(|f| f.1.1).collect();
    let onnx = mean(&files).map_err(EnsembleError::Onnx)?;
    let mut kinds: Vec<&str> = found.iter().map(|f| f.1.0.architecture.as_str()).collect();
    kinds.dedup();
    let card = ClassifierCard {
        sha256: sha256(&onnx),
        architecture: kinds.join(" + "),
        folds: found.iter().map(|f| f.0.clone()).collect(),
        // Of the members' own none holds for the mean.
        threshold: None,
        ..(*card).clone()
    };
    Ok((card, onnx))
}
