//! The encoders that there are.

use crate::error::FeatureError;
use crate::facts::Listed;
use crate::package::CARD;
use crate::weights::known;
use base::file;
use base::file::ReadError;
use infer::ModelCard;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The encoders that can be used: packages, and rows that need a file of weights.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Version of this format.
    pub schema: &'static str,
    /// Packages of encoders.
    pub packages: Vec<Listed>,
    /// Encoders that a file of weights gives.
    pub known: Vec<Listed>,
    /// Cards that cannot be read.
    pub broken: Vec<String>,
}

impl Listing {
    /// Packages in `folder` and in the folders in it, and what is [`known`]. Digests are not checked.
    ///
    /// # Errors
    /// [`FeatureError::Io`] when the folder cannot be listed.
    pub fn read(folder: &Path) -> Result<Self, FeatureError> {
        let fail = |e: ReadError| FeatureError::Io { path: e.path, source: e.source };
        let mut folders = vec![folder.to_owned()];
        folders.extend(base::walk::entries(folder).map_err(fail)?);
        let (mut packages, mut broken) = (Vec::new(), Vec::new());
        for folder in folders {
            let path = folder.join(CARD);
            let Ok(text) = file::read_string(&path) else { continue };
            match ModelCard::parse(&text) {
                Ok(card) => packages.extend(Listed::from_card(&card, &folder)),
                Err(e) => broken.push(format!("{}: {e}", path.display())),
            }
        }
        Ok(Self { schema: "mithras.encoders/1", packages, known: known(), broken })
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packages.is_empty() {
            writeln!(f, "no package of an encoder here")?;
        }
        self.packages.iter().chain(&self.known).try_for_each(|l| write!(f, "{l}"))?;
        self.broken.iter().try_for_each(|b| writeln!(f, "not read: {b}"))
    }
}
