//! What the vocabularies share: tensors by name, and what is done to them.

use std::collections::BTreeMap;

use tch::{Kind, Tensor};

/// Tensors by name.
pub(super) type Tensors = BTreeMap<String, Tensor>;

/// Drops the token that represented masked patches in training; other networks' tokens of that name
/// have other shapes and stay.
pub(super) fn without_mask(tensors: &mut Tensors, name: &str) {
    let width = tensors.get("cls_token").and_then(|t| t.size().last().copied());
    if let (Some(mask), Some(width)) = (tensors.get(name), width)
        && mask.size() == [1, width]
    {
        tensors.remove(name);
    }
}

/// Registers come after the position table is added: the class token's position goes into the class
/// token, and the table holds patches alone.
pub(super) fn fold_registers(tensors: &mut Tensors, name: &str) -> Result<(), String> {
    let Some(registers) = tensors.remove(name) else { return Ok(()) };
    tensors.insert("reg_token".into(), registers);
    let (Some(cls), Some(table)) = (tensors.get("cls_token"), tensors.get("pos_embed")) else {
        return Ok(());
    };
    if table.dim() != 3 || table.size()[1] < 2 || cls.size() != [1, 1, table.size()[2]] {
        return Err("its class token and position table do not fit each other".into());
    }
    let cls = cls.to_kind(Kind::Float) + table.narrow(1, 0, 1).to_kind(Kind::Float);
    let table = table.slice(1, 1, None, 1);
    tensors.insert("cls_token".into(), cls);
    tensors.insert("pos_embed".into(), table);
    Ok(())
}

/// A map whose names are distinguished.
pub(super) fn unique(pairs: impl Iterator<Item = (String, Tensor)>) -> Result<Tensors, String> {
    let mut out = Tensors::new();
    for (name, tensor) in pairs {
        if out.contains_key(&name) {
            return Err(format!("two of its tensors would be `{name}`"));
        }
        out.insert(name, tensor);
    }
    Ok(out)
}
