//! Choices by their words.

/// Words of an enum's variants: `WORDS` and `FromStr`.
macro_rules! spelled {
    ($type:ident { $($variant:ident = $word:literal $(| $other:literal)*),+ $(,)? }) => {
        impl $type {
            /// Every choice by its word.
            pub const WORDS: &[&str] = &[$($word),+];
        }

        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word $(| $other)* => Ok(Self::$variant),)+
                    _ => Err(format!("`{word}` is not one of {}", Self::WORDS.join(", "))),
                }
            }
        }
    };
}

pub(crate) use spelled;
