//! What the vocabularies share: tensors by name, and what is done to them.

use crate::array::Array;

pub(super) use crate::weights::Arrays as Tensors;

/// Drops the token that represented masked patches in training; other networks' tokens of that name
/// have other shapes and stay.
pub(super) fn without_mask(tensors: &mut Tensors, name: &str) {
    let width = tensors.get("cls_token").and_then(|t| t.dims().last().copied());
    if let (Some(mask), Some(width)) = (tensors.get(name), width)
        && mask.dims() == [1, width]
    {
        tensors.remove(name);
    }
}

const APART: &str = "its class token and position table do not fit each other";

/// Registers come after the position table is added: the class token's position goes into the class
/// token, and the table holds patches alone.
pub(super) fn fold_registers(tensors: &mut Tensors, name: &str) -> Result<(), String> {
    let Some(registers) = tensors.remove(name) else { return Ok(()) };
    tensors.insert("reg_token".into(), registers);
    let (Some(cls), Some(table)) = (tensors.get("cls_token"), tensors.get("pos_embed")) else {
        return Ok(());
    };
    let &[1, rows, width] = table.dims() else { return Err(APART.into()) };
    if rows < 2 || cls.dims() != [1, 1, width] {
        return Err(APART.into());
    }
    let position = table.rows(1, 0, 1).to_f32();
    let sum: Vec<f32> = cls.to_f32().iter().zip(position).map(|(a, b)| a + b).collect();
    let (cls, table) = (Array::from_f32(vec![1, 1, width], &sum), table.rows(1, 1, rows - 1));
    tensors.insert("cls_token".into(), cls);
    tensors.insert("pos_embed".into(), table);
    Ok(())
}

/// A map whose names are distinguished.
pub(super) fn unique(pairs: impl Iterator<Item = (String, Array)>) -> Result<Tensors, String> {
    let mut out = Tensors::new();
    for (name, tensor) in pairs {
        if out.contains_key(&name) {
            return Err(format!("two of its tensors would be `{name}`"));
        }
        out.insert(name, tensor);
    }
    Ok(out)
}
