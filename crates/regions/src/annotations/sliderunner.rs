//! SlideRunner SQLite databases, by their schema: `Slides`, `Classes`, `Annotations`,
//! `Annotations_coordinates`, `Annotations_label`, `Persons`.
//!
//! Older databases lack `deleted`, `guid` and the colours; nothing but the columns used here is
//! asked for. `agreedClass` 0 or null means that nobody agreed. Types: 1 spot, 2 area (two
//! corners), 3 polygon, 4 special spot, 5 circle (two corners).

use super::collect::{Category, Collector, Place, Raw};
use super::files::broken;
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions, LabelSource};
use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::Path;

/// A point as stored; `None` where it is not a number.
type Coordinates = (Option<f64>, Option<f64>);

/// Tables that are read.
const TABLES: [&str; 6] =
    ["Slides", "Classes", "Annotations", "Annotations_coordinates", "Annotations_label", "Persons"];
/// Steps of SQLite's machine for one file: some hundred for each of five million rows. A file can ask for
/// work without end, as by an expression of a column.
const MOST_STEPS: u64 = 2_000_000_000;
/// Steps after which they are counted.
const COUNTED: i32 = 100_000;
/// Bytes of one cell, and of one row.
const LONGEST_CELL: i32 = 16 << 20;
/// Rows of one table.
const MOST_ROWS: usize = 20_000_000;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

#[expect(clippy::too_many_lines, reason = "one query after the other")]
pub(super) fn read(file: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    check_magic(file)?;
    let sql = |e: rusqlite::Error| broken(file, format!("the database is broken ({e})"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Db { file, db: open(file, flags).map_err(sql)? };
    db.limit().map_err(sql)?;
    db.only_tables()?;
    let verdict: String =
        db.db.query_row("PRAGMA quick_check(1)", [], |r| r.get(0)).map_err(sql)?;
    if verdict != "ok" {
        return Err(broken(file, format!("the database is broken ({verdict})")));
    }
    db.need(&[
        ("Slides", &["uid", "filename"]),
        ("Classes", &["uid", "name"]),
        ("Annotations", &["uid", "slide", "agreedClass"]),
        ("Annotations_coordinates", &["annoId", "coordinateX", "coordinateY"]),
    ])?;

    let mut c = Collector::new("sliderunner", file, options);
    // The viewer notes sizes on the side; published databases hold wrong ones.
    c.distrust_sizes();
    let slides = slides(&db, &mut c)?;
    let mut classes = HashMap::new();
    db.each("SELECT uid, name FROM Classes", |r| {
        if let (Some(id), Some(name)) = (int(&r[0]), text(&r[1]).filter(|n| !n.trim().is_empty())) {
            classes.insert(id, name);
        }
    })?;
    classes.values().for_each(|name: &String| c.category(name));
    let votes = votes(&db, &classes)?;
    let mut points: HashMap<i64, Vec<Coordinates>> = HashMap::new();
    let mut stated: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    let slide = if db.has("Annotations_coordinates", "slide") { "slide" } else { "NULL" };
    let order = if db.has("Annotations_coordinates", "orderIdx") { "orderIdx" } else { "rowid" };
    let query = format!(
        "SELECT annoId, coordinateX, coordinateY, {slide} FROM Annotations_coordinates \
         ORDER BY annoId, {order}"
    );
    db.each(&query, |r| {
        if let Some(id) = int(&r[0]) {
            points.entry(id).or_default().push((real(&r[1]), real(&r[2])));
            if let Some(slide) = int(&r[3]) {
                stated.entry(id).or_default().insert(slide);
            }
        }
    })?;

    let optional = |column, default: &str| {
        if db.has("Annotations", column) { column.to_owned() } else { default.to_owned() }
    };
    let query = format!(
        "SELECT uid, slide, agreedClass, {}, {} FROM Annotations ORDER BY uid",
        optional("type", "NULL"),
        optional("deleted", "0"),
    );
    let mut rows = Vec::new();
    db.each(&query, |r| {
        rows.push((int(&r[0]), int(&r[1]), int(&r[2]), int(&r[3]), int(&r[4])));
    })?;
    for (uid, slide, agreed, kind, deleted) in rows {
        let record = format!("annotation {}", uid.unwrap_or(-1));
        let Some(uid) = uid else {
            c.problem(record, "it has no uid");
            continue;
        };
        if deleted.unwrap_or(0) != 0 {
            c.deleted();
            continue;
        }
        let Some(&image) = slide.and_then(|s| slides.get(&s)) else {
            c.problem(record, format!("its slide {slide:?} is not in `Slides`"));
            continue;
        };
        if let Some(other) = stated.get(&uid).and_then(|s| s.iter().find(|s| Some(**s) != slide)) {
            let own = slide.unwrap_or_default();
            c.problem(
                record,
                format!("it is of slide {own}, but its coordinates are of slide {other}"),
            );
            continue;
        }
        let agreed = agreed.filter(|&a| a != 0);
        if let Some(name) = agreed.and_then(|a| classes.get(&a))
            && c.meaning(name).is_some_and(|m| m.class == Class::Ignored)
        {
            c.ignore(name);
            continue;
        }
        let place = match points.get(&uid).map(|p| shape(kind, p)) {
            Some(Ok(place)) => place,
            Some(Err(reason)) => {
                c.problem(record, reason);
                continue;
            }
            None => {
                c.problem(record, "it has no coordinates");
                continue;
            }
        };
        let votes = votes.get(&uid).cloned().unwrap_or_default();
        let category = match &options.labels {
            LabelSource::Annotator(who) => votes.get(who).cloned().map(Category::Named),
            LabelSource::Agreed => match agreed {
                None => None,
                Some(a) => match classes.get(&a) {
                    Some(name) => Some(Category::Named(name.clone())),
                    None => {
                        c.problem(record, format!("its class {a} has no name in `Classes`"));
                        continue;
                    }
                },
            },
        };
        let category =
            category.unwrap_or_else(|| Category::Fixed(Class::Unresolved, "(no agreement)".into()));
        c.take(Raw { votes, ..Raw::new(image, record, category, place) });
    }
    c.finish()
}

/// Read-only and, unless a writer left its log next to the file, without locks: a database on a
/// read-only disk opens, and nothing is ever written next to it.
fn open(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // A pipe of such a name would be waited for.
    let has_log = |suffix: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        Path::new(&name).is_file()
    };
    match std::path::absolute(file).ok().and_then(|p| p.to_str().map(str::to_owned)) {
        Some(path) if !has_log("-wal") && !has_log("-journal") => {
            let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let uri = format!("file:{path}?immutable=1");
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
        }
        _ => Connection::open_with_flags(file, flags),
    }
}

/// The header contains the length of the file; SQLite itself reads a short last page as zeros.
fn check_magic(file: &Path) -> Result<(), ImportError> {
    let mut head = Vec::new();
    let length = base::file::open_regular(file)
        .and_then(|f| {
            let length = f.metadata()?.len();
            f.take(100).read_to_end(&mut head)?;
            Ok(length)
        })
        .map_err(|reason| ImportError::Io { file: file.into(), reason })?;
    if head.len() < 100 || &head[..16] != MAGIC {
        return Err(broken(file, "not an SQLite database"));
    }
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        n => u64::from(n),
    };
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let pages = if word(24) == word(92) { u64::from(word(28)) } else { 0 };
    if page == 0 || !length.is_multiple_of(page) || length < pages * page {
        let reason = format!(
            "the database is broken ({length} bytes of {pages} pages of {page}: it was cut short)"
        );
        return Err(broken(file, reason));
    }
    Ok(())
}

/// Slide uid to image number; file names that repeat get their folder in front.
fn slides(db: &Db<'_>, c: &mut Collector<'_>) -> Result<HashMap<i64, usize>, ImportError> {
    let optional = |column| if db.has("Slides", column) { column } else { "NULL" };
    let query = format!(
        "SELECT uid, filename, {}, {}, {} FROM Slides ORDER BY uid",
        optional("width"),
        optional("height"),
        optional("directory"),
    );
    let mut rows = Vec::new();
    db.each(&query, |r| rows.push(r.to_vec()))?;
    let names = |with_folder: bool| -> Vec<String> {
        rows.iter()
            .map(|r| {
                let name = text(&r[1]).unwrap_or_default();
                let folder = text(&r[4]).unwrap_or_default();
                let folder = folder.rsplit(['/', '\\']).find(|p| !p.is_empty()).unwrap_or_default();
                if with_folder && !folder.is_empty() { format!("{folder}/{name}") } else { name }
            })
            .collect()
    };
    let distinct = |n: &[String]| n.iter().collect::<BTreeSet<_>>().len() == n.len();
    let mut unique = names(false);
    if !distinct(&unique) {
        unique = names(true);
    }
    let repeats = !distinct(&unique);
    let mut out = HashMap::new();
    for (r, name) in rows.iter().zip(unique) {
        let Some(uid) = int(&r[0]) else { continue };
        let px = |v: &Value| int(v).and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
        let name = if name.is_empty() || repeats { format!("{name}#{uid}") } else { name };
        let entry =
            ImageEntry { name, width: px(&r[2]), height: px(&r[3]), ..ImageEntry::default() };
        out.insert(uid, c.image(entry));
    }
    Ok(out)
}

/// Every annotator's class name per annotation; several labels of one person: the last.
fn votes(
    db: &Db<'_>,
    classes: &HashMap<i64, String>,
) -> Result<HashMap<i64, BTreeMap<String, String>>, ImportError> {
    let mut out: HashMap<i64, BTreeMap<String, String>> = HashMap::new();
    let complete = ["annoId", "class", "person"].iter().all(|c| db.has("Annotations_label", c));
    if !complete {
        return Ok(out);
    }
    let mut people = HashMap::new();
    if db.has("Persons", "uid") && db.has("Persons", "name") {
        db.each("SELECT uid, name FROM Persons", |r| {
            if let (Some(id), Some(name)) = (int(&r[0]), text(&r[1])) {
                people.insert(id, name);
            }
        })?;
    }
    db.each("SELECT annoId, person, class FROM Annotations_label ORDER BY rowid", |r| {
        let (Some(anno), Some(class)) = (int(&r[0]), int(&r[2])) else { return };
        let Some(class) = classes.get(&class) else { return };
        let person = int(&r[1]).unwrap_or(-1);
        let person = people.get(&person).cloned().unwrap_or_else(|| format!("person {person}"));
        out.entry(anno).or_default().insert(person, class.clone());
    })?;
    Ok(out)
}

/// A spot is a point; everything drawn with more points is its enclosing box.
fn shape(kind: Option<i64>, points: &[Coordinates]) -> Result<Place, String> {
    let complete: Option<Vec<(f64, f64)>> = points.iter().map(|&(x, y)| x.zip(y)).collect();
    let points = complete.ok_or("a coordinate is not a number")?;
    match (kind, points.as_slice()) {
        (_, []) => Err("it has no coordinates".into()),
        (_, &[(x, y)]) => Ok(Place::Point(x, y)),
        (Some(1 | 4), more) => Err(format!("a spot with {} coordinates", more.len())),
        (_, more) => {
            let fold = |f: fn(f64, f64) -> f64, pick: fn(&(f64, f64)) -> f64, from| {
                more.iter().map(pick).fold(from, f)
            };
            Ok(Place::Box([
                fold(f64::min, |p| p.0, f64::INFINITY),
                fold(f64::min, |p| p.1, f64::INFINITY),
                fold(f64::max, |p| p.0, f64::NEG_INFINITY),
                fold(f64::max, |p| p.1, f64::NEG_INFINITY),
            ]))
        }
    }
}

struct Db<'a> {
    file: &'a Path,
    db: Connection,
}

impl Db<'_> {
    /// Lets a file ask for no more work and memory than a database of that size needs.
    fn limit(&mut self) -> rusqlite::Result<()> {
        self.db.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_CELL)?;
        self.db.execute_batch("PRAGMA trusted_schema = OFF")?;
        let mut steps = 0;
        let counted = move || {
            steps += COUNTED as u64;
            steps > MOST_STEPS
        };
        self.db.progress_handler(COUNTED, Some(counted))
    }

    /// What is read must be rows of the file: a view or a virtual table computes its rows, if need be
    /// without end.
    fn only_tables(&self) -> Result<(), ImportError> {
        let mut computed = None;
        self.each("SELECT type, name, sql FROM sqlite_master", |r| {
            let [kind, name, sql] = [0, 1, 2].map(|i| text(&r[i]).unwrap_or_default());
            let own = TABLES.iter().any(|t| t.eq_ignore_ascii_case(&name));
            let made = sql.trim_start().to_ascii_uppercase();
            if own && matches!(&*kind, "view" | "table") {
                if kind == "view" {
                    computed = Some((name, "a view"));
                } else if made.starts_with("CREATE VIRTUAL") {
                    computed = Some((name, "a virtual table"));
                }
            }
        })?;
        match computed {
            None => Ok(()),
            Some((name, what)) => Err(broken(
                self.file,
                format!("`{name}` is {what}, not a table, as SlideRunner writes it"),
            )),
        }
    }

    fn columns(&self, table: &str) -> Vec<String> {
        let mut out = Vec::new();
        let _ = self.each(&format!("PRAGMA table_info(`{table}`)"), |r| {
            out.extend(text(&r[1]));
        });
        out
    }

    fn has(&self, table: &str, column: &str) -> bool {
        self.columns(table).iter().any(|c| c.eq_ignore_ascii_case(column))
    }

    fn need(&self, tables: &[(&str, &[&str])]) -> Result<(), ImportError> {
        let mut missing = Vec::new();
        for (table, columns) in tables {
            let found = self.columns(table);
            if found.is_empty() {
                missing.push(format!("the table `{table}`"));
                continue;
            }
            for want in *columns {
                if !found.iter().any(|f| f.eq_ignore_ascii_case(want)) {
                    missing.push(format!("the column `{table}.{want}`"));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        self.each("SELECT name FROM sqlite_master WHERE type = 'table'", |r| {
            found.extend(text(&r[0]));
        })?;
        Err(ImportError::Missing { file: self.file.into(), missing, found })
    }

    /// Runs a query and hands every row out as values of whatever type is stored.
    fn each(&self, query: &str, mut row: impl FnMut(&[Value])) -> Result<(), ImportError> {
        let run = || -> rusqlite::Result<()> {
            let mut statement = self.db.prepare(query)?;
            let n = statement.column_count();
            let mut rows = statement.query([])?;
            let mut count = 0;
            while let Some(r) = rows.next()? {
                count += 1;
                if count > MOST_ROWS {
                    return Err(rusqlite::Error::QueryReturnedMoreThanOneRow);
                }
                let cells: Vec<Value> = (0..n).map(|i| lossy(r, i)).collect::<Result<_, _>>()?;
                row(&cells);
            }
            Ok(())
        };
        let mut run = run;
        run().map_err(|e| match e {
            rusqlite::Error::QueryReturnedMoreThanOneRow => {
                let most = format!("a table has more than {MOST_ROWS} rows");
                broken(
                    self.file,
                    format!("{most}; divide the database if it is meant to be so large"),
                )
            }
            e if e.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                broken(
                    self.file,
                    "reading it takes more steps than a database of annotations needs",
                )
            }
            e => broken(self.file, format!("the database is broken ({e})")),
        })
    }
}

/// A cell. Text that is not UTF-8 is repaired: old Windows databases contain it.
fn lossy(row: &rusqlite::Row<'_>, i: usize) -> rusqlite::Result<Value> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(i)? {
        ValueRef::Text(t) => Value::Text(String::from_utf8_lossy(t).into_owned()),
        other => other.try_into().unwrap_or(Value::Null),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers only")]
fn int(v: &Value) -> Option<i64> {
    match v {
        Value::Integer(i) => Some(*i),
        Value::Real(r) if r.fract() == 0.0 && r.abs() < 1e15 => Some(*r as i64),
        Value::Text(t) => t.trim().parse().ok(),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "pixel coordinates")]
fn real(v: &Value) -> Option<f64> {
    match v {
        Value::Integer(i) => Some(*i as f64),
        Value::Real(r) => Some(*r),
        Value::Text(t) => t.trim().parse().ok(),
        _ => None,
    }
}

fn text(v: &Value) -> Option<String> {
    match v {
        Value::Text(t) => Some(t.clone()),
        Value::Integer(i) => Some(i.to_string()),
        _ => None,
    }
}
