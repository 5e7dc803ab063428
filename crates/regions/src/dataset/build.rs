//! Making a dataset: image files are looked at, entries gathered, the manifest written last.

use super::manifest::{self, FORMAT, Head, SCHEMA};
use super::{
    ClassInfo, Dataset, Image, Kind, MppSource, RegionsError, Resolution, Result, pixel_digest,
};
use base::digest::sha256_file;
use base::table::{Format, Table, TableError, Unmatched};
use mitosis::Mpp;
use slide::{OpenOptions, Slide, SlideError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// um/px that the files do not state. The table comes before the value for all; what a file states
/// itself must agree with either.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// For every image without an entry in the table.
    pub all: Option<Mpp>,
    /// By image name, file name, slide or scanner.
    pub table: HashMap<String, Mpp>,
    /// What has been looked up.
    pub asked: ResolutionAnswers,
}

/// The images whose um/px was looked up, with the key of the table that answered. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct ResolutionAnswers(Arc<Mutex<BTreeMap<String, Option<String>>>>);

/// What was asked does not change what was given.
impl PartialEq for ResolutionAnswers {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ResolutionAnswers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A um/px that was given for an image.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenMpp {
    /// The um/px.
    pub mpp: Mpp,
    /// Who gave it.
    pub source: MppSource,
}

impl Given {
    /// The value for an image, by the first of its names that the table has.
    #[must_use]
    pub fn lookup(&self, names: &[&str]) -> Option<GivenMpp> {
        let stem = |n: &str| Path::new(n).file_stem().map(|s| s.to_string_lossy().into_owned());
        let known = |n: String| self.table.contains_key(&n).then_some(n);
        let key = names.iter().find_map(|n| known((*n).to_owned()).or_else(|| known(stem(n)?)));
        if let (false, Some(first)) = (self.table.is_empty(), names.first()) {
            self.asked.all().insert((*first).to_owned(), key.clone());
        }
        key.map(|key| GivenMpp { mpp: self.table[&key], source: MppSource::Table })
            .or_else(|| self.all.map(|mpp| GivenMpp { mpp, source: MppSource::User }))
    }

    /// The keys of the table that answered for no image so far, with the images that no key answered for;
    /// `None` where every key did.
    #[must_use]
    pub fn unmatched(&self) -> Option<Unmatched> {
        let asked = self.asked.all();
        let used: BTreeSet<&String> = asked.values().flatten().collect();
        let mut alone: Vec<&str> =
            self.table.keys().filter(|k| !used.contains(k)).map(String::as_str).collect();
        alone.sort_unstable();
        let idle = asked.iter().filter(|(_, key)| key.is_none());
        let idle: Vec<&str> = idle.map(|(image, _)| image.as_str()).collect();
        let join = Unmatched::from_keys(("the table of um/px", "the images"), &alone, &idle);
        join.filter(|_| !alone.is_empty())
    }

    /// Reads a table with the columns `image` (or `slide`, `scanner`, `name`) and `mpp`.
    ///
    /// # Errors
    /// [`RegionsError`]: unreadable, without these columns, a value that is not a resolution, or two values
    /// for one name.
    pub fn read_table(path: &Path) -> Result<HashMap<String, Mpp>> {
        let fail = |e: TableError| RegionsError::file(path, e);
        let rows = Table::read(path, &Format::default()).map_err(fail)?;
        let key = rows.need(&["image", "slide", "scanner", "name", "file"]).map_err(fail)?;
        let value = rows.need(crate::units::MPP).map_err(fail)?;
        let mut table = HashMap::new();
        for row in 0..rows.len() {
            let wrong = |reason: String| fail(rows.wrong(row, value, reason));
            let mpp = Mpp::new(rows.number(row, value).map_err(fail)?);
            let mpp = mpp.map_err(|e| wrong(e.to_string()))?;
            let name = rows.cell(row, key);
            if table.insert(name.to_owned(), mpp).is_some_and(|old| old != mpp) {
                return Err(wrong(format!("`{name}` has two values")));
            }
        }
        Ok(table)
    }
}

/// The metadata of an image file.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The file, absolute.
    pub file: PathBuf,
    /// Of the file's bytes, hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Level-0 width and height.
    pub size: (u32, u32),
    /// Upper left corner of the slide's bounds, level-0 px; 0, 0 without.
    pub bounds_offset: [i64; 2],
    /// um/px.
    pub mpp: Resolution,
    /// Coding of the pixels, if known.
    pub coding: Option<String>,
    /// Digest of its pixels, as in [`Image::pixels`].
    pub pixels: Option<String>,
}

/// Cache of an image of which a few parts are read.
const CACHE_BYTES: usize = 16 << 20;

/// Looks at an image file: digests, extent, coding, and its um/px, stated or `given`.
///
/// # Errors
/// [`RegionsError`]: unreadable, no um/px stated or given, or another one stated than given.
pub fn probe(path: &Path, given: Option<GivenMpp>) -> Result<Probe> {
    let file = path.canonicalize().map_err(RegionsError::io(path))?;
    let options = OpenOptions { cache_bytes: CACHE_BYTES, ..OpenOptions::default() };
    let slide = Slide::open_with(&file, &options)?;
    let (stated, mpp) = (slide.resolution().cloned(), given);
    let mpp = match (stated, mpp) {
        (Ok(r), None) => {
            Resolution { x: r.x, y: r.y, source: MppSource::File(r.source.to_string()) }
        }
        (Ok(r), Some(GivenMpp { mpp: given, .. })) => {
            let off = (r.x.get() - given.get()).abs().max((r.y.get() - given.get()).abs());
            if off > slide::CONTRADICTION * given.get() {
                return Err(RegionsError::ContradictingMpp {
                    path: path.to_path_buf(),
                    stated: format!("{} ({})", r.x, r.source),
                    given: given.get(),
                });
            }
            Resolution { x: r.x, y: r.y, source: MppSource::File(r.source.to_string()) }
        }
        (Err(_), Some(GivenMpp { mpp: given, source })) => {
            Resolution { x: given, y: given, source }
        }
        (Err(SlideError::MissingResolution { .. }), None) => {
            return Err(RegionsError::MissingMpp { path: path.to_path_buf(), others: 0 });
        }
        (Err(e), None) => return Err(e.into()),
    };
    let side = |n: u64| {
        u32::try_from(n).map_err(|_| RegionsError::file(path, "more than 2^32 pixels wide"))
    };
    let (w, h) = slide.dimensions();
    let size = (side(w)?, side(h)?);
    let (bytes, sha256) = sha256_file(&file).map_err(|e| RegionsError::file(path, e))?;
    let coding = coding(&file, &slide);
    let bounds_offset = slide.bounds().map_or([0, 0], |b| [b.x, b.y]);
    let pixels = pixel_digest(&slide);
    Ok(Probe { file, sha256, bytes, size, bounds_offset, mpp, coding, pixels })
}

/// `png`, `jpeg 4:2:0`, or the slide's own word.
fn coding(file: &Path, slide: &Slide) -> Option<String> {
    match slide.format() {
        "png" => Some("png".into()),
        "jpeg" => {
            let mut head = vec![];
            base::file::open_regular(file).ok()?.take(1 << 18).read_to_end(&mut head).ok()?;
            Some(format!("jpeg {}", subsampling(&head)?))
        }
        _ => None,
    }
}

/// Chroma subsampling from a JPEG's frame header.
fn subsampling(bytes: &[u8]) -> Option<&'static str> {
    let mut i = 2;
    while i + 4 <= bytes.len() {
        if bytes[i] != 0xFF {
            return None;
        }
        let (marker, length) =
            (bytes[i + 1], usize::from(bytes[i + 2]) << 8 | usize::from(bytes[i + 3]));
        // Frame headers are C0 to CF but for the Huffman, arithmetic (CC) and JPG markers.
        if (0xC0..=0xCF).contains(&marker) && ![0xC4, 0xC8, 0xCC].contains(&marker) {
            let parts = *bytes.get(i + 9)?;
            let sampling = |k: usize| bytes.get(i + 11 + 3 * k).copied();
            return match (parts, sampling(0)?, (parts == 3).then(|| sampling(1)).flatten()) {
                (1, ..) => Some("grey"),
                (_, 0x11, Some(0x11)) => Some("4:4:4"),
                (_, 0x21, Some(0x11)) => Some("4:2:2"),
                (_, 0x22, Some(0x11)) => Some("4:2:0"),
                _ => Some("other subsampling"),
            };
        }
        i += 2 + length;
    }
    None
}

impl Probe {
    /// An entry of this file without labels, in the training part, its figures not all labelled.
    #[must_use]
    pub fn image(self, name: impl Into<String>, slide: impl Into<String>, source: &str) -> Image {
        Image {
            name: name.into(),
            file: self.file,
            sha256: self.sha256,
            bytes: self.bytes,
            width: self.size.0,
            height: self.size.1,
            mpp: self.mpp,
            slide: slide.into(),
            patient: None,
            scanner: None,
            source: source.into(),
            coding: self.coding,
            pixels: self.pixels,
            part: super::Part::Train,
            exhaustive: false,
            ignore: vec![],
            labels: vec![],
        }
    }
}

/// Gathers images and writes a dataset.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) head: Head,
    pub(super) images: Vec<Image>,
}

impl Builder {
    /// Word of the positive class unless the source has another.
    pub const FIGURE: &str = "mitotic_figure";
    /// Word of look-alikes unless the source has another.
    pub const MIMICKER: &str = "mimicker";

    /// A dataset of this name with the classes `mitotic_figure` and `mimicker`, written by
    /// `program`.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<String>) -> Self {
        let class = |name: &str, kind| ClassInfo { name: name.into(), kind };
        let classes =
            vec![class(Self::FIGURE, Kind::Figure), class(Self::MIMICKER, Kind::Mimicker)];
        Self::with_classes(name, program, classes)
    }

    /// A dataset with other classes.
    #[must_use]
    pub fn with_classes(
        name: impl Into<String>,
        program: impl Into<String>,
        classes: Vec<ClassInfo>,
    ) -> Self {
        let head = Head {
            format: FORMAT.into(),
            schema: SCHEMA,
            name: name.into(),
            builder: program.into(),
            notes: BTreeMap::new(),
            classes,
            digest: String::new(),
        };
        Self { head, images: vec![] }
    }

    /// Adds a class unless it is there.
    ///
    /// # Errors
    /// [`RegionsError::Invalid`] when it is there with another meaning.
    pub fn class(&mut self, name: &str, kind: Kind) -> Result<()> {
        match self.head.classes.iter().find(|c| c.name == name) {
            Some(c) if c.kind == kind => Ok(()),
            Some(c) => Err(RegionsError::Invalid(format!(
                "class `{name}` is {:?} in one place and {kind:?} in another",
                c.kind
            ))),
            None => {
                self.head.classes.push(ClassInfo { name: name.into(), kind });
                Ok(())
            }
        }
    }

    /// Adds a note about how the data came to be.
    pub fn note(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.head.notes.insert(key.into(), value.into());
    }

    /// Adds an image; everything is checked when the dataset is written.
    pub fn push(&mut self, image: Image) {
        self.images.push(image);
    }

    /// The images so far.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Writes the manifest into a folder that holds none. Files below the folder are named relative
    /// to it, so that the folder can move with them.
    ///
    /// # Errors
    /// [`RegionsError`] naming the image that cannot be taken, or the disk's refusal.
    pub fn write(mut self, folder: &Path) -> Result<Dataset> {
        std::fs::create_dir_all(folder).map_err(RegionsError::io(folder))?;
        let root = folder.canonicalize().map_err(RegionsError::io(folder))?;
        for image in &mut self.images {
            if let Ok(below) = image.file.strip_prefix(&root) {
                image.file = below.to_path_buf();
            }
        }
        manifest::write(folder, self.head, self.images)
    }
}
