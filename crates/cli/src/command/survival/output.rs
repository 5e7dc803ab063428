//! Terminal tables that several commands share.

use outcome::Test;
pub use outcome::words::{show, show_p};

/// Prints lines with columns padded to equal width: the first left, the others right.
pub fn print_columns(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width: Vec<usize> = (0..columns)
        .map(|j| rows.iter().filter_map(|r| r.get(j)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (j, cell) in row.iter().enumerate() {
            let pad = " ".repeat(width[j] - cell.chars().count());
            if j == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        println!("{}", line.trim_end());
    }
}

/// A number or a dash.
pub fn show_option(v: Option<f64>) -> String {
    v.map_or_else(|| "-".into(), show)
}

/// "chi2 on df, p".
pub fn show_test(name: &str, t: &Test) -> Vec<String> {
    vec![
        name.into(),
        format!("chi2 = {}", show(t.chi2)),
        format!("df = {}", t.df),
        format!("p = {}", show_p(t.p)),
    ]
}

/// Notes and warnings on stderr, so that JSON on stdout stays clean.
pub fn say(kind: &str, lines: &[String]) {
    for line in lines {
        eprintln!("{kind}: {line}");
    }
}

/// Prints a result as JSON.
pub fn print_json(result: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(result)?);
    Ok(())
}
