//! A reader for the pickles that `torch.save` writes. It runs no code: a pickle's calls become
//! tensors, dictionaries or opaque objects, nothing else.

use std::cell::RefCell;
use std::rc::Rc;

/// What a pickle can hold here.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool,
    Int(i64),
    Float,
    Str(Rc<str>),
    List(Rc<RefCell<Vec<Value>>>),
    Dict(Rc<RefCell<Vec<(Value, Value)>>>),
    Tuple(Rc<Vec<Value>>),
    /// `module name`.
    Global(Rc<str>),
    Storage(Rc<Storage>),
    Tensor(Rc<TensorRef>),
    /// An object of a class that is not looked into.
    Opaque,
}

/// A block of memory, stored elsewhere in the file.
#[derive(Debug)]
pub(super) struct Storage {
    /// `FloatStorage` and the like.
    pub class: String,
    pub key: String,
}

/// A view of a storage.
#[derive(Debug)]
pub(super) struct TensorRef {
    pub storage: Rc<Storage>,
    pub offset: i64,
    pub size: Vec<i64>,
    pub stride: Vec<i64>,
}

/// Most operations of a pickle, and so most values: each pushes one.
const LIMIT: usize = 5_000_000;
/// Longest name of a tensor, a class or a storage: they are copied, and a file may point at one often.
const LONGEST: usize = 4096;
/// Most sides of a tensor, as torch has it.
const MOST_SIDES: usize = 64;

impl TensorRef {
    /// How many values it has, and how far into its storage they reach; `None` where no machine could
    /// count them.
    pub(super) fn values_and_reach(&self) -> Option<(u64, u64)> {
        let count = |n: i64| u64::try_from(n).ok();
        if self.size.len() != self.stride.len() {
            return None;
        }
        let sides = self.size.iter().map(|n| count(*n));
        let values = sides.clone().try_fold(1_u64, |all, n| all.checked_mul(n?))?;
        if values == 0 {
            return Some((0, 0));
        }
        let strides = self.stride.iter().map(|n| count(*n));
        let last = sides.zip(strides).try_fold(count(self.offset)?, |at, (side, stride)| {
            at.checked_add((side? - 1).checked_mul(stride?)?)
        })?;
        Some((values, last.checked_add(1).filter(|n| i64::try_from(*n).is_ok())?))
    }
}

/// Reads pickles, and owns what they hold: a value must not outlive it.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Where the next pickle starts.
    pub at: usize,
    /// Every container, in the order of their making.
    made: Vec<Value>,
}

/// Containers may be in each other as deep as the file is long, and freeing one after the other from
/// within would need as much of the stack. Emptied first, then from the newest on, each is alone.
impl Drop for Reader<'_> {
    fn drop(&mut self) {
        for value in &self.made {
            match value {
                Value::List(l) => drop(std::mem::take(&mut *l.borrow_mut())),
                Value::Dict(d) => drop(std::mem::take(&mut *d.borrow_mut())),
                _ => {}
            }
        }
        while self.made.pop().is_some() {}
    }
}

type Res<T> = Result<T, String>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, made: Vec::new() }
    }

    pub(super) fn take(&mut self, n: usize) -> Res<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|e| *e <= self.bytes.len());
        let end =
            end.ok_or_else(|| format!("the file ends early, at byte {}", self.bytes.len()))?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    fn byte(&mut self) -> Res<usize> {
        Ok(self.take(1)?[0].into())
    }

    /// Little-endian unsigned of up to eight bytes.
    fn unsigned(&mut self, n: usize) -> Res<u64> {
        Ok(self.take(n)?.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
    }

    fn length(&mut self, n: usize) -> Res<usize> {
        usize::try_from(self.unsigned(n)?).map_err(|_| "an impossible length".to_string())
    }

    /// Little-endian two's complement of any length; beyond 64 bits the low part.
    fn signed(&mut self, n: usize) -> Res<i64> {
        let part = self.take(n)?;
        let fill = if part.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
        let mut whole = [fill; 8];
        let used = n.min(8);
        whole[..used].copy_from_slice(&part[..used]);
        Ok(i64::from_le_bytes(whole))
    }

    fn text(&mut self, n: usize) -> Res<Value> {
        Ok(Value::Str(String::from_utf8_lossy(self.take(n)?).into()))
    }

    fn line(&mut self) -> Res<String> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| *b == b'\n').ok_or("an unfinished line")?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    /// Reads one pickle, up to and including its STOP.
    #[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
    pub(super) fn read(&mut self) -> Res<Value> {
        let mut m = Machine::default();
        for step in 0..LIMIT {
            let op = self.take(1)?[0];
            match op {
                b'.' => return m.pop(),
                0x80 => _ = self.byte()?,
                0x95 => _ = self.take(8)?,
                b'(' => m.marks.push(m.stack.len()),
                b'0' => _ = m.pop()?,
                b'1' => _ = m.pop_mark()?,
                b'2' => {
                    let top = m.top()?.clone();
                    m.stack.push(top);
                }
                b'N' => m.stack.push(Value::None),
                0x88 | 0x89 => m.stack.push(Value::Bool),
                b'K' | b'M' => {
                    let v = self.unsigned(if op == b'K' { 1 } else { 2 })?;
                    m.stack.push(Value::Int(v as i64));
                }
                b'J' => m.stack.push(Value::Int(self.signed(4)?)),
                0x8a => {
                    let n = self.byte()?;
                    m.stack.push(Value::Int(self.signed(n)?));
                }
                0x8b => {
                    let n = self.length(4)?;
                    m.stack.push(Value::Int(self.signed(n)?));
                }
                b'I' | b'L' => {
                    let line = self.line()?;
                    let digits = line.trim_end_matches('L');
                    m.stack.push(digits.parse().map_or(Value::Opaque, Value::Int));
                }
                b'G' => {
                    self.take(8)?;
                    m.stack.push(Value::Float);
                }
                b'X' | b'T' | b'B' => {
                    let n = self.length(4)?;
                    m.stack.push(self.text(n)?);
                }
                0x8c | b'U' | b'C' => {
                    let n = self.byte()?;
                    m.stack.push(self.text(n)?);
                }
                0x8d | 0x8e => {
                    let n = self.length(8)?;
                    m.stack.push(self.text(n)?);
                }
                b'}' => m.stack.push(self.owned(Value::Dict(Rc::default()))),
                b']' | 0x8f => m.stack.push(self.owned(Value::List(Rc::default()))),
                b')' => m.stack.push(Value::Tuple(Rc::default())),
                b't' => {
                    let items = m.pop_mark()?;
                    m.stack.push(self.owned(Value::Tuple(Rc::new(items))));
                }
                b'l' => {
                    let items = m.pop_mark()?;
                    m.stack.push(self.owned(Value::List(Rc::new(RefCell::new(items)))));
                }
                b'd' => {
                    let items = m.pop_mark()?;
                    m.stack.push(self.owned(Value::Dict(Rc::default())));
                    m.set(items)?;
                }
                0x85..=0x87 => {
                    let n = usize::from(op - 0x84);
                    let from = m.stack.len().checked_sub(n).ok_or("too few values")?;
                    let items = m.stack.split_off(from);
                    m.stack.push(self.owned(Value::Tuple(Rc::new(items))));
                }
                b's' => {
                    let (value, key) = (m.pop()?, m.pop()?);
                    m.set(vec![key, value])?;
                }
                b'u' => {
                    let items = m.pop_mark()?;
                    m.set(items)?;
                }
                b'a' => {
                    let item = m.pop()?;
                    m.append(vec![item])?;
                }
                b'e' | 0x90 => {
                    let items = m.pop_mark()?;
                    m.append(items)?;
                }
                b'q' | b'r' => {
                    let slot = self.length(if op == b'q' { 1 } else { 4 })?;
                    m.memoize(slot, step)?;
                }
                0x94 => m.memoize(m.memo.len(), step)?,
                b'h' | b'j' => {
                    let slot = self.length(if op == b'h' { 1 } else { 4 })?;
                    let value = m.memo.get(slot).and_then(Option::clone);
                    m.stack.push(value.ok_or("an unknown memo slot")?);
                }
                b'c' => {
                    let name = format!("{} {}", self.line()?, self.line()?);
                    m.stack.push(Value::Global(name.into()));
                }
                0x93 => {
                    let (name, module) = (m.pop()?, m.pop()?);
                    let global = match (module, name) {
                        (Value::Str(m), Value::Str(n)) if m.len().max(n.len()) <= LONGEST => {
                            Value::Global(format!("{m} {n}").into())
                        }
                        _ => return Err("a class without a name".into()),
                    };
                    m.stack.push(global);
                }
                b'R' | 0x81 => {
                    let (args, callable) = (m.pop()?, m.pop()?);
                    let made = call(&callable, &args)?;
                    m.stack.push(self.owned(made));
                }
                // The state of an object: none of what is kept here has one that matters.
                b'b' => _ = m.pop()?,
                b'Q' => {
                    let id = m.pop()?;
                    m.stack.push(storage(&id)?);
                }
                other => return Err(format!("pickle operation {other:#04x} is not supported")),
            }
        }
        Err(format!("it has more than {LIMIT} values, as no state dict has"))
    }

    /// Notes a container that was made.
    fn owned(&mut self, value: Value) -> Value {
        if matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_)) {
            self.made.push(value.clone());
        }
        value
    }
}

#[derive(Default)]
struct Machine {
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
}

impl Machine {
    fn pop(&mut self) -> Res<Value> {
        self.stack.pop().ok_or_else(|| "too few values".to_string())
    }

    fn top(&self) -> Res<&Value> {
        self.stack.last().ok_or_else(|| "too few values".to_string())
    }

    fn pop_mark(&mut self) -> Res<Vec<Value>> {
        let mark = self.marks.pop().filter(|m| *m <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or("no mark")?))
    }

    /// Slots are numbered as they are filled, one an operation.
    fn memoize(&mut self, slot: usize, step: usize) -> Res<()> {
        if slot > step {
            return Err("an impossible memo slot".into());
        }
        if self.memo.len() <= slot {
            self.memo.resize(slot + 1, None);
        }
        self.memo[slot] = Some(self.top()?.clone());
        Ok(())
    }

    fn set(&mut self, items: Vec<Value>) -> Res<()> {
        if let Value::Dict(d) = self.top()? {
            let mut d = d.borrow_mut();
            let mut items = items.into_iter();
            while let (Some(k), Some(v)) = (items.next(), items.next()) {
                if matches!(&k, Value::Str(name) if name.len() > LONGEST) {
                    return Err("a name without an end".into());
                }
                d.push((k, v));
            }
        }
        Ok(())
    }

    fn append(&mut self, items: Vec<Value>) -> Res<()> {
        if let Value::List(l) = self.top()? {
            l.borrow_mut().extend(items);
        }
        Ok(())
    }
}

fn storage(id: &Value) -> Res<Value> {
    let bad = || "a storage without class and key".to_string();
    let Value::Tuple(parts) = id else { return Err(bad()) };
    match parts.as_slice() {
        [Value::Str(kind), Value::Global(class), Value::Str(key), ..]
            if &**kind == "storage" && class.len().max(key.len()) <= 2 * LONGEST + 1 =>
        {
            let class = class.rsplit(' ').next().unwrap_or_default().to_string();
            Ok(Value::Storage(Rc::new(Storage { class, key: key.to_string() })))
        }
        _ => Err(bad()),
    }
}

fn integers(v: &Value) -> Res<Vec<i64>> {
    let Value::Tuple(items) = v else { return Err("a shape that is not a tuple".into()) };
    if items.len() > MOST_SIDES {
        return Err(format!("a shape of {} sides", items.len()));
    }
    items
        .iter()
        .map(|i| match i {
            Value::Int(n) if *n >= 0 => Ok(*n),
            _ => Err("a shape that is not made of counts".to_string()),
        })
        .collect()
}

fn call(callable: &Value, args: &Value) -> Res<Value> {
    let (Value::Global(name), Value::Tuple(args)) = (callable, args) else {
        return Ok(Value::Opaque);
    };
    // Nothing is ever run; a file that asks for this is not a file of weights.
    const CODE: [&str; 9] =
        ["os", "posix", "nt", "sys", "subprocess", "builtins", "__builtin__", "importlib", "runpy"];
    const HARMLESS: [&str; 9] =
        ["set", "frozenset", "list", "dict", "tuple", "slice", "bytearray", "complex", "object"];
    let (module, what) = name.split_once(' ').unwrap_or((name, ""));
    let root = module.split('.').next().unwrap_or_default();
    if CODE.contains(&root) && !(module.contains("builtin") && HARMLESS.contains(&what)) {
        return Err(format!("asks to run `{module}.{what}`, which weights never need"));
    }
    match (&**name, args.as_slice()) {
        ("collections OrderedDict", _) => Ok(Value::Dict(Rc::default())),
        (
            "torch._utils _rebuild_tensor_v2" | "torch._utils _rebuild_tensor",
            [Value::Storage(storage), Value::Int(offset), size, stride, ..],
        ) => Ok(Value::Tensor(Rc::new(TensorRef {
            storage: Rc::clone(storage),
            offset: *offset,
            size: integers(size)?,
            stride: integers(stride)?,
        }))),
        ("torch._utils _rebuild_parameter", [tensor, ..]) => Ok(tensor.clone()),
        _ => Ok(Value::Opaque),
    }
}
