//! Values that results list by name.

/// A value with the name that it has in the results.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: T,
}
