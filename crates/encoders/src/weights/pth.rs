//! State dicts of PyTorch: the zip format of torch 1.6 and later, and the legacy pickle.
//!
//! What a file states of sizes is not believed before it is compared with what the file holds: a deflated
//! entry of a few kilobytes may become gigabytes, and a stride of 0 makes any tensor of one value.

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Read};

use bytes::Bytes;

use super::Arrays;
use super::pickle::{Reader, TensorRef, Value};
use crate::array::{Array, Kind};

/// Most bytes of the pickle in a zip: names and shapes, some hundred bytes a tensor.
const MOST_PICKLE: u64 = 64 << 20;
/// Weights do not deflate: what a file's tensors take, over the file's own length.
const MOST_GROWTH: u64 = 16;
/// ... and this much more, for small files.
const FREE_GROWTH: u64 = 64 << 20;

/// Where published files keep the weights, when not at the top.
const KEYS: [&str; 7] =
    ["state_dict", "model_state_dict", "model", "teacher", "student", "net", "module"];

type Res<T> = Result<T, String>;

pub(super) fn read_zip(bytes: &Bytes, key: Option<&str>) -> Res<Arrays> {
    let mut zip = zip::ZipArchive::new(Cursor::new(&bytes[..])).map_err(|e| e.to_string())?;
    let index = zip.file_names().find(|n| n.ends_with("/data.pkl") || *n == "data.pkl");
    let index = index.ok_or("a zip without data.pkl: no state dict")?.to_string();
    let folder = index.trim_end_matches("data.pkl").to_string();
    let pickle = entry(&mut zip, &index, MOST_PICKLE + 1)?;
    if pickle.len() as u64 > MOST_PICKLE {
        return Err(format!("{index} is larger than {MOST_PICKLE} bytes, as no state dict's is"));
    }
    let mut reader = Reader::new(&pickle);
    let root = reader.read()?;
    let entries = weights(&root, key)?;
    let extents = extents(&entries, bytes.len())?;
    let mut storages: HashMap<&str, Bytes> = HashMap::new();
    for (key, extent) in extents {
        // What is behind the last value of a tensor is nobody's.
        let data = entry(&mut zip, &format!("{folder}data/{key}"), extent)?;
        storages.insert(key, data.into());
    }
    build(&entries, |k| storages.get(k).cloned())
}

/// The first bytes of an entry, at most so many.
fn entry(zip: &mut zip::ZipArchive<Cursor<&[u8]>>, name: &str, most: u64) -> Res<Vec<u8>> {
    let mut data = Vec::new();
    let entry = zip.by_name(name).map_err(|e| format!("{name}: {e}"))?;
    entry.take(most).read_to_end(&mut data).map_err(|e| format!("{name}: {e}"))?;
    Ok(data)
}

/// Bytes of every storage that tensors reach into, refused where the file cannot hold them.
fn extents(entries: &[Entry], file: usize) -> Res<BTreeMap<&str, u64>> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    let mut made = 0_u64;
    for Entry { name, tensor: t } in entries {
        let size = kind(&t.storage.class)?.size() as u64;
        let impossible = || format!("`{name}`: no tensor can be {:?} by {:?}", t.size, t.stride);
        let (values, reach) = t.values_and_reach().ok_or_else(impossible)?;
        // A value may not be in several places.
        if values > reach {
            return Err(format!("`{name}`: {:?} values of the {reach} that it has", t.size));
        }
        let bytes = reach.checked_mul(size).ok_or_else(impossible)?;
        let extent = all.entry(&t.storage.key).or_default();
        *extent = (*extent).max(bytes);
        made = made.saturating_add(values * size);
    }
    let most = (file as u64).saturating_mul(MOST_GROWTH).saturating_add(FREE_GROWTH);
    let stored = all.values().fold(0_u64, |n, bytes| n.saturating_add(*bytes));
    match made.max(stored) {
        bytes if bytes > most => Err(format!(
            "its tensors take {bytes} bytes, and the file has {file}: that is more than weights deflate"
        )),
        _ => Ok(all),
    }
}

pub(super) fn read_legacy(bytes: &Bytes, key: Option<&str>) -> Res<Arrays> {
    let mut reader = Reader::new(bytes);
    // Magic number (its low 64 bits), protocol version, facts about the writer.
    let magic = reader.read()?;
    if !matches!(magic, Value::Int(m) if m as u64 == 0xa86a_20f9_469c_fc6c) {
        return Err("a pickle that torch.save did not write".into());
    }
    reader.read()?;
    reader.read()?;
    let root = reader.read()?;
    let Value::List(keys) = reader.read()? else { return Err("no list of storages".into()) };
    let classes = storage_classes(&root);
    let mut storages = HashMap::new();
    for k in keys.borrow().iter() {
        let Value::Str(k) = k else { return Err("a storage without a key".into()) };
        let count = reader.take(8)?.try_into().map(u64::from_le_bytes).map_err(|_| "no length")?;
        let class = classes.get(&**k).ok_or("a storage that no tensor uses")?;
        let size = usize::try_from(count)
            .ok()
            .and_then(|n| n.checked_mul(kind(class).ok()?.size()))
            .ok_or("an impossible storage length")?;
        storages.insert(k.to_string(), bytes.slice_ref(reader.take(size)?));
    }
    let entries = weights(&root, key)?;
    extents(&entries, bytes.len())?;
    build(&entries, |k| storages.get(k).cloned())
}

/// Class of every storage by key, wherever in the object it is.
fn storage_classes(root: &Value) -> HashMap<String, String> {
    let mut out = HashMap::new();
    let mut todo = vec![root.clone()];
    // Shared and even cyclic containers are legal; a visit per container is enough.
    let mut seen = std::collections::HashSet::new();
    while let Some(v) = todo.pop() {
        match v {
            Value::Tensor(t) => {
                out.insert(t.storage.key.clone(), t.storage.class.clone());
            }
            Value::Storage(s) => {
                out.insert(s.key.clone(), s.class.clone());
            }
            Value::Dict(d) if seen.insert(std::rc::Rc::as_ptr(&d) as usize) => {
                todo.extend(d.borrow().iter().flat_map(|(k, v)| [k.clone(), v.clone()]));
            }
            Value::List(l) if seen.insert(std::rc::Rc::as_ptr(&l) as usize) => {
                todo.extend(l.borrow().iter().cloned());
            }
            Value::Tuple(t) if seen.insert(std::rc::Rc::as_ptr(&t) as usize) => {
                todo.extend(t.iter().cloned());
            }
            _ => {}
        }
    }
    out
}

/// A tensor of the state dict.
struct Entry {
    name: String,
    tensor: std::rc::Rc<TensorRef>,
}

/// The tensors of the state dict.
fn weights(root: &Value, key: Option<&str>) -> Res<Vec<Entry>> {
    let Value::Dict(top) = root else { return Err("no dictionary at the top".into()) };
    let top = top.borrow();
    let below = |wanted: &str| {
        top.iter().find_map(|(k, v)| match (k, v) {
            (Value::Str(k), Value::Dict(d)) if &**k == wanted => Some(tensors(&d.borrow())),
            _ => None,
        })
    };
    let found = match key {
        Some(key) => below(key).ok_or_else(|| format!("no dictionary below `{key}`"))?,
        None => {
            let here = tensors(&top);
            if here.is_empty() { KEYS.iter().find_map(|k| below(k)).unwrap_or(here) } else { here }
        }
    };
    if found.is_empty() {
        let keys: Vec<String> = top
            .iter()
            .filter_map(|(k, _)| match k {
                Value::Str(k) => Some(k.to_string()),
                _ => None,
            })
            .take(12)
            .collect();
        return Err(format!("no tensors found; the top holds {}", keys.join(", ")));
    }
    Ok(found)
}

fn tensors(dict: &[(Value, Value)]) -> Vec<Entry> {
    let mut out: Vec<Entry> = dict
        .iter()
        .filter_map(|(k, v)| match (k, v) {
            (Value::Str(k), Value::Tensor(t)) => {
                Some(Entry { name: k.to_string(), tensor: std::rc::Rc::clone(t) })
            }
            _ => None,
        })
        .collect();
    if !out.is_empty() && out.iter().all(|e| e.name.starts_with("module.")) {
        for entry in &mut out {
            entry.name.replace_range(..7, "");
        }
    }
    out
}

fn kind(class: &str) -> Res<Kind> {
    Ok(match class {
        "FloatStorage" => Kind::Float,
        "DoubleStorage" => Kind::Double,
        "HalfStorage" => Kind::Half,
        "BFloat16Storage" => Kind::BFloat16,
        "LongStorage" => Kind::Int64,
        "IntStorage" => Kind::Int,
        "ShortStorage" => Kind::Int16,
        "CharStorage" => Kind::Int8,
        "ByteStorage" => Kind::Uint8,
        "BoolStorage" => Kind::Bool,
        other => return Err(format!("a tensor of `{other}`, which is not supported")),
    })
}

fn build(entries: &[Entry], storage: impl Fn(&str) -> Option<Bytes>) -> Res<Arrays> {
    let mut flat: HashMap<&str, Array> = HashMap::new();
    let mut out = Arrays::new();
    for Entry { name, tensor: t } in entries {
        let key = t.storage.key.as_str();
        if !flat.contains_key(key) {
            let kind = kind(&t.storage.class)?;
            let data = storage(key).ok_or_else(|| format!("`{name}`: its values are missing"))?;
            let count = data.len() / kind.size();
            let values = Array::new(vec![count as i64], kind, data.slice(..count * kind.size()));
            flat.insert(key, values.ok_or_else(|| format!("`{name}`: its values are cut"))?);
        }
        let view = flat[key].strided(t.size.clone(), &t.stride, t.offset);
        let tensor = view.ok_or_else(|| format!("`{name}` does not fit its storage"))?;
        out.insert(name.clone(), tensor);
    }
    Ok(out)
}
