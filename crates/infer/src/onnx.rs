//! The few fields of an ONNX file that are checked before an engine sees it.
//!
//! Message numbers follow `onnx.proto` (ONNX IR); fields not named here are skipped unread.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    r#type: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
struct Type {
    #[prost(message, optional, tag = "1")]
    tensor: Option<Tensor>,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(oneof = "Size", tags = "1, 2")]
    size: Option<Size>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Size {
    #[prost(int64, tag = "1")]
    Value(i64),
    #[prost(string, tag = "2")]
    Param(String),
}

const FLOAT: i32 = 1;

/// Input of every network.
pub(crate) const INPUT: &str = "image";
/// Output of every network.
pub(crate) const OUTPUT: &str = "probability";

/// What a checked network leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// A batch size fixed in the file.
    pub fixed_batch: Option<usize>,
    /// Symbolic input dimensions with the size they take; index 0 (the batch) has size 0 here.
    pub symbols: Vec<(String, usize)>,
}

/// Checks input `image` f32 `[N,3,side,side]` and output `probability` f32 whose trailing
/// dimensions are `output`, where the file fixes them.
///
/// # Errors
/// A sentence saying what differs.
pub(crate) fn signature(onnx: &[u8], side: usize, output: &[usize]) -> Result<Signature, String> {
    let model = Model::decode(onnx).map_err(|e| format!("not an ONNX file: {e}"))?;
    let graph = model.graph.ok_or("not an ONNX file: it holds no graph")?;
    let dims = dims_of(&graph.input, "input", INPUT)?;
    if dims.len() != 4 {
        return Err(format!("input `{INPUT}` has {} dimensions, not [N,3,H,W]", dims.len()));
    }
    fixed(&dims[1..], &[3, side, side], "input", INPUT)?;
    let out = dims_of(&graph.output, "output", OUTPUT)?;
    if out.len() != output.len() + 1 {
        return Err(format!(
            "output `{OUTPUT}` has {} dimensions, the card wants [N,{output:?}]",
            out.len()
        ));
    }
    fixed(&out[1..], output, "output", OUTPUT)?;

    let mut signature = Signature::default();
    for (dim, want) in dims.iter().zip([0, 3, side, side]) {
        match &dim.size {
            Some(Size::Param(name)) if !name.is_empty() => {
                signature.symbols.push((name.clone(), want));
            }
            Some(Size::Value(n)) if want == 0 => {
                signature.fixed_batch = usize::try_from(*n).ok().filter(|n| *n > 0);
            }
            _ => {}
        }
    }
    Ok(signature)
}

fn dims_of<'a>(values: &'a [ValueInfo], kind: &str, name: &str) -> Result<&'a [Dimension], String> {
    let value = values.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|v| v.name.as_str()).collect();
        format!("no {kind} named `{name}`; there is {names:?}")
    })?;
    let tensor = value
        .r#type
        .as_ref()
        .and_then(|t| t.tensor.as_ref())
        .ok_or_else(|| format!("{kind} `{name}` is no tensor"))?;
    if tensor.elem_type != FLOAT {
        return Err(format!("{kind} `{name}` is not f32 (ONNX type {})", tensor.elem_type));
    }
    Ok(tensor.shape.as_ref().map_or(&[], |s| s.dim.as_slice()))
}

fn fixed(dims: &[Dimension], want: &[usize], kind: &str, name: &str) -> Result<(), String> {
    for (dim, want) in dims.iter().zip(want) {
        if let Some(Size::Value(n)) = dim.size
            && usize::try_from(n) != Ok(*want)
        {
            return Err(format!("{kind} `{name}` has a side of {n}, the card says {want}"));
        }
    }
    Ok(())
}
