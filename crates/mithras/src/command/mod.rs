//! One module per verb.
