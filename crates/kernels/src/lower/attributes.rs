//! A node's settings.

use proto::AttributeProto;

#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a>(pub &'a [AttributeProto]);

impl<'a> Attributes<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a AttributeProto> {
        self.0.iter().find(|a| a.name == name)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.get(name).map_or(default, |a| a.i)
    }

    pub(crate) fn float(&self, name: &str, default: f32) -> f32 {
        self.get(name).map_or(default, |a| a.f)
    }

    pub(crate) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.get(name).map(|a| &*a.ints)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|a| std::str::from_utf8(&a.s).ok())
    }
}
