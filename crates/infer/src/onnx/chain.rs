//! What the files of one network must be: each takes the one value that the one before gives.

use crate::session::Symbol;
use prost::bytes::Bytes;

use super::{
    DimensionProto, Graph, INPUT, MOST_VALUES, Output, Signature, bounded, dims_of, fixed, gives,
    shared, signature, takes, volume,
};
use proto::Dimension;

/// What one file takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Name of its input.
    pub input: String,
    /// Sides of the input, without the batch.
    pub sides: Vec<usize>,
    /// Symbolic dimensions of the input.
    pub symbols: Vec<Symbol>,
    /// Name of its output.
    pub output: String,
}

/// The files of a checked network.
#[derive(Debug)]
pub(crate) struct Chained {
    /// One for each file.
    pub links: Vec<Link>,
    /// A batch size fixed in the files.
    pub fixed_batch: Option<usize>,
}

/// Checks the files of a network, in the order in which they run: `image` f32 `[N,3,side,side]` goes into
/// the first, and the last gives `name` as [`signature`] has it.
///
/// # Errors
/// The number of a file, and a sentence stating what it lacks.
pub(crate) fn chain(
    files: &[Bytes],
    side: usize,
    output: Output<'_>,
) -> Result<Chained, (usize, String)> {
    let image = |Signature { fixed_batch, symbols }| {
        let link =
            Link { input: INPUT.into(), sides: vec![3, side, side], symbols, output: "".into() };
        (link, fixed_batch)
    };
    if let [whole] = files {
        let checked = signature(whole, side, output).map_err(|e| (0, e))?;
        let (link, fixed_batch) = image(checked);
        return Ok(Chained {
            links: vec![Link { output: output.name.into(), ..link }],
            fixed_batch,
        });
    }
    let mut links: Vec<Link> = Vec::new();
    let mut batch = None;
    let mut handed: Option<Value> = None;
    for (i, bytes) in files.iter().enumerate() {
        let fail = |e| (i, e);
        let (_, graph) = shared(bytes).map_err(fail)?;
        bounded(&graph, bytes.len()).map_err(fail)?;
        let link = match handed.take() {
            None => {
                let (link, fixed) = image(takes(&graph, side).map_err(fail)?);
                batch = fixed;
                link
            }
            Some(value) => value.taken(&graph, batch).map_err(fail)?,
        };
        let output = if i + 1 == files.len() {
            gives(&graph, output).map_err(fail)?;
            output.name.to_owned()
        } else {
            let value = Value::given(&graph).map_err(fail)?;
            handed.insert(value).name.clone()
        };
        links.push(Link { output, ..link });
    }
    Ok(Chained { links, fixed_batch: batch })
}

/// What one file hands on to the next.
struct Value {
    name: String,
    /// Without the batch.
    sides: Vec<usize>,
}

impl Value {
    /// The one output of a file that is not the last.
    fn given(graph: &Graph) -> Result<Self, String> {
        let [only] = &graph.output[..] else {
            return Err(format!("it gives {} values, and one is handed on", graph.output.len()));
        };
        let dims = dims_of(&graph.output, "output", &only.name)?;
        let sides: Option<Vec<i64>> = dims.iter().skip(1).map(stated).collect();
        let sides = sides.filter(|s| !s.is_empty() && volume(s).is_some_and(|n| n <= MOST_VALUES));
        let sides = sides.ok_or_else(|| {
            let name = &only.name;
            format!("output `{name}` is handed on and does not state its sides, [N,T,D]")
        })?;
        let sides = sides.iter().map(|n| *n as usize).collect();
        Ok(Self { name: only.name.clone(), sides })
    }

    /// The file that takes it.
    fn taken(self, graph: &Graph, batch: Option<usize>) -> Result<Link, String> {
        let Self { name, sides } = self;
        let dims = dims_of(&graph.input, "input", &name).map_err(|e| {
            format!("{e}. The file before gives `{name}`: the order is wrong, or it is another network's")
        })?;
        if dims.len() != sides.len() + 1 {
            let n = dims.len();
            return Err(format!(
                "input `{name}` has {n} dimensions, the file before gives [N,{sides:?}]"
            ));
        }
        fixed(&dims[1..], &sides, "input", &name)?;
        if let Some(n) = stated(&dims[0])
            && usize::try_from(n).ok() != batch
        {
            return Err(format!("it takes {n} at once, the first file another number"));
        }
        let sizes = std::iter::once(0).chain(sides.iter().copied());
        let symbol = |(dim, size): (&DimensionProto, usize)| match &dim.value {
            Some(Dimension::Param(name)) if !name.is_empty() => {
                Some(Symbol { name: name.clone(), size })
            }
            _ => None,
        };
        let symbols = dims.iter().zip(sizes).filter_map(symbol).collect();
        Ok(Link { input: name, sides, symbols, output: String::new() })
    }
}

fn stated(dim: &DimensionProto) -> Option<i64> {
    match dim.value {
        Some(Dimension::Value(n)) if n > 0 => Some(n),
        _ => None,
    }
}
