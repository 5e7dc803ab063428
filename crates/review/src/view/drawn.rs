//! Regions that reviewers draw: `regions.log`, and made of it `regions/SLIDE.geojson`, as detection and QuPath read it.

use super::logs::{append, lines};
use super::review::ReviewError;
use base::file::{self, WriteError};
use base::json::JsonError;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Schema of a line about a slide's regions.
const REGIONS: &str = "mithras.drawn/1";
/// The log of regions.
const LOG: &str = "regions.log";

/// Regions as the page draws them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnRegion {
    /// Its name; may be empty.
    pub name: String,
    /// Its class; may be empty.
    pub class: String,
    /// Whether it is to be left out.
    pub exclude: bool,
    /// Its corners, level-0 px; the first is not repeated.
    pub ring: Vec<[f64; 2]>,
}

/// Class of regions that are drawn to be left out.
pub const EXCLUDE: &str = "Exclude";

#[derive(Serialize, Deserialize)]
struct DrawnFile {
    r#type: String,
    mithras: Drawn,
    features: Vec<Feature>,
}

/// Who drew the regions of which slide, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Digest of the slide's file.
    pub slide_digest: String,
    /// Who drew them.
    pub reviewer: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
}

/// A line of the log: all regions of a slide as they were after a change, level-0 px.
#[derive(Serialize, Deserialize)]
struct DrawnLine {
    schema: String,
    slide: String,
    #[serde(flatten)]
    by: Drawn,
    regions: Vec<DrawnRegion>,
}

#[derive(Serialize, Deserialize)]
struct Feature {
    r#type: String,
    geometry: Geometry,
    properties: Properties,
}

#[derive(Serialize, Deserialize)]
struct Geometry {
    r#type: String,
    coordinates: Vec<Vec<[f64; 2]>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: String,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classification: Option<Class>,
}

#[derive(Serialize, Deserialize)]
struct Class {
    name: String,
}

/// The file of a slide's drawn regions.
#[must_use]
pub fn drawn_file(folder: &Path, slide: &str) -> PathBuf {
    folder.join("regions").join(format!("{slide}.geojson"))
}

/// Regions drawn on a slide, with who drew them; none where nobody did. `offset` is the corner of the slide's bounds.
///
/// # Errors
/// [`ReviewError`] for a log or a file that is damaged.
pub fn drawn(
    folder: &Path,
    slide: &str,
    offset: [i64; 2],
) -> Result<Option<(Drawn, Vec<DrawnRegion>)>, ReviewError> {
    match last_line(folder, slide)? {
        Some(line) => Ok(Some((line.by, line.regions))),
        None => from_file(folder, slide, offset),
    }
}

fn last_line(folder: &Path, slide: &str) -> Result<Option<DrawnLine>, ReviewError> {
    let all = lines::<DrawnLine>(&folder.join(LOG))?;
    Ok(all.into_iter().rfind(|line| line.slide == slide))
}

/// Of an earlier version, which kept the file alone.
fn from_file(
    folder: &Path,
    slide: &str,
    offset: [i64; 2],
) -> Result<Option<(Drawn, Vec<DrawnRegion>)>, ReviewError> {
    let file: DrawnFile = match base::json::read(&drawn_file(folder, slide)) {
        Err(JsonError::Read(e)) if e.source.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let region = |f: Feature| {
        let class = f.properties.classification.map_or_else(String::new, |c| c.name);
        let exclude = class == EXCLUDE;
        let mut ring: Vec<[f64; 2]> = f.geometry.coordinates.into_iter().next().unwrap_or_default();
        ring.pop();
        for p in &mut ring {
            *p = [p[0] + offset[0] as f64, p[1] + offset[1] as f64];
        }
        DrawnRegion {
            name: f.properties.name,
            class: if exclude { String::new() } else { class },
            exclude,
            ring,
        }
    };
    Ok(Some((file.mithras, file.features.into_iter().map(region).collect())))
}

/// Keeps the regions of a slide, in place of earlier ones: a line of the log, and the file as detection and QuPath
/// read it.
///
/// # Errors
/// [`ReviewError`].
pub fn draw(
    folder: &Path,
    slide: &str,
    by: Drawn,
    offset: [i64; 2],
    regions: &[DrawnRegion],
) -> Result<(), ReviewError> {
    let line = |by: Drawn, regions: Vec<DrawnRegion>| DrawnLine {
        schema: REGIONS.into(),
        slide: slide.to_owned(),
        by,
        regions,
    };
    if last_line(folder, slide)?.is_none()
        && let Some((by, earlier)) = from_file(folder, slide, offset)?
    {
        append(&folder.join(LOG), &line(by, earlier))?;
    }
    append(&folder.join(LOG), &line(by.clone(), regions.to_vec()))?;
    Ok(write(folder, slide, by, offset, regions)?)
}

fn write(
    folder: &Path,
    slide: &str,
    by: Drawn,
    offset: [i64; 2],
    regions: &[DrawnRegion],
) -> Result<(), WriteError> {
    let path = drawn_file(folder, slide);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| WriteError { path: folder.to_owned(), source })?;
    }
    let back = |p: &[f64; 2]| [p[0] - offset[0] as f64, p[1] - offset[1] as f64];
    let feature = |r: &DrawnRegion| {
        let class = if r.exclude { EXCLUDE } else { r.class.as_str() };
        Feature {
            r#type: "Feature".into(),
            geometry: Geometry {
                r#type: "Polygon".into(),
                coordinates: vec![r.ring.iter().chain(r.ring.first()).map(back).collect()],
            },
            properties: Properties {
                object_type: "annotation".into(),
                name: r.name.clone(),
                classification: (!class.is_empty()).then(|| Class { name: class.to_owned() }),
            },
        }
    };
    let file = DrawnFile {
        r#type: "FeatureCollection".into(),
        mithras: by,
        features: regions.iter().map(feature).collect(),
    };
    file::write_with(&path, &base::json::pretty(&file), file::Access::Private)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, side: f64) -> DrawnRegion {
        DrawnRegion {
            name: name.into(),
            class: String::new(),
            exclude: false,
            ring: vec![[0.0, 0.0], [side, 0.0], [side, side]],
        }
    }

    #[test]
    fn every_change_of_the_regions_is_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let by = |reviewer: &str, time: f64| Drawn {
            slide_digest: "d".into(),
            reviewer: reviewer.into(),
            time,
        };
        let draw_as = |who: &str, time: f64, regions: &[DrawnRegion]| {
            draw(dir.path(), "s", by(who, time), [30, 40], regions).unwrap();
        };
        // A file of an earlier version, without a log.
        write(dir.path(), "s", by("bert", 1.0), [30, 40], &[region("old", 100.0)]).unwrap();
        assert_eq!(drawn(dir.path(), "s", [30, 40]).unwrap().unwrap().1, [region("old", 100.0)]);
        let all = [region("front", 200.0), region("edge", 300.0)];
        draw_as("anna", 2.0, &all);
        draw_as("anna", 3.0, &all[..1]);
        let (who, now) = drawn(dir.path(), "s", [30, 40]).unwrap().unwrap();
        assert_eq!((who, now), (by("anna", 3.0), all[..1].to_vec()));
        let kept = lines::<DrawnLine>(&dir.path().join(LOG)).unwrap();
        let kept: Vec<_> =
            kept.iter().map(|l| (l.by.reviewer.as_str(), l.by.time, l.regions.len())).collect();
        assert_eq!(kept, [("bert", 1.0, 1), ("anna", 2.0, 2), ("anna", 3.0, 1)]);
        // The file is made of the last line, from the corner of the bounds.
        let (_, in_file) = from_file(dir.path(), "s", [30, 40]).unwrap().unwrap();
        assert_eq!(in_file, all[..1]);
        // A line that was changed is noticed.
        let path = dir.path().join(LOG);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen("edge", "rim", 1)).unwrap();
        assert!(drawn(dir.path(), "s", [30, 40]).unwrap_err().to_string().contains("was changed"));
    }

    /// In the place of regions that cannot be read there are not none.
    #[test]
    fn a_file_of_regions_is_read_or_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(drawn(dir.path(), "s", [0, 0]).unwrap().is_none());
        let path = drawn_file(dir.path(), "s");
        std::fs::create_dir_all(&path).unwrap();
        let error = || drawn(dir.path(), "s", [0, 0]).unwrap_err().to_string();
        assert!(
            error().ends_with("s.geojson: cannot be read: is a folder, not a file"),
            "{}",
            error()
        );
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "{\n}").unwrap();
        assert!(error().contains("s.geojson: missing field"), "{}", error());
        assert_eq!(error().matches("s.geojson").count(), 1, "{}", error());
    }
}
