//! Names of columns on the command line.

use std::str::FromStr;

/// Names separated by commas. A name that contains a comma is put in quotation marks, as in a CSV file:
/// `'"Age, years",sex'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<String>);

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut names, mut rest) = (Vec::new(), text);
        loop {
            let trimmed = rest.trim_start();
            let (name, behind) = if let Some(mut inner) = trimmed.strip_prefix('"') {
                let mut name = String::new();
                loop {
                    let end = inner.find('"').ok_or("a quotation mark is not closed")?;
                    name.push_str(&inner[..end]);
                    inner = &inner[end + 1..];
                    let Some(more) = inner.strip_prefix('"') else { break };
                    name.push('"');
                    inner = more;
                }
                (name, inner.trim_start())
            } else {
                let end = trimmed.find(',').unwrap_or(trimmed.len());
                (trimmed[..end].trim_end().to_owned(), &trimmed[end..])
            };
            names.push(name);
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None if behind.is_empty() => return Ok(Self(names)),
                None => return Err(format!("`{behind}` follows a closing quotation mark")),
            }
        }
    }
}

/// All names of an option that may be given several times.
pub fn all(columns: &[Columns]) -> Vec<String> {
    columns.iter().flat_map(|c| c.0.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_in_marks() {
        let of = |text: &str| text.parse::<Columns>().map(|c| c.0);
        assert_eq!(of("age,sex").unwrap(), ["age", "sex"]);
        assert_eq!(of("\"Age, years\", sex").unwrap(), ["Age, years", "sex"]);
        assert_eq!(
            of("Mitoses (n/2mm\u{b2}),\"a \"\"b\"\"\"").unwrap(),
            ["Mitoses (n/2mm\u{b2})", "a \"b\""]
        );
        assert!(of("\"Age").is_err() && of("\"a\"b").is_err());
    }
}
