//! Tables as CSV and LaTeX.

use super::table::{Cell, Table};
use base::table::Writer;

/// A row per row and column of the table.
pub(super) fn csv(table: &Table) -> Vec<u8> {
    let head = table.head.iter().map(|h| h.to_lowercase());
    let mut names: Vec<String> = vec!["row".into()];
    names.extend(head);
    let more =
        ["column", "mean", "sd", "low", "high", "folds", "items", "paper", "paper_sd", "paper_low"];
    names.extend(more.map(str::to_owned));
    names.extend(["paper_high", "difference", "missing"].map(str::to_owned));
    let mut out = Writer::new(names);
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| format!("{v}"));
    let count = |v: Option<u64>| v.map_or_else(String::new, |v| v.to_string());
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            let (o, p) = (cell.ours, cell.paper);
            let mut cells = vec![row.id.clone()];
            cells.extend(row.lead.iter().cloned());
            cells.push(column.title.clone());
            cells.extend([
                number(o.filter(|v| !v.range).map(|v| v.estimate)),
                number(o.and_then(|v| v.sd)),
                number(o.and_then(|v| v.ends).map(|e| e[0])),
                number(o.and_then(|v| v.ends).map(|e| e[1])),
                count(o.and_then(|v| v.folds)),
                count(cell.items),
                number(p.filter(|v| !v.range).map(|v| v.estimate)),
                number(p.and_then(|v| v.sd)),
                number(p.and_then(|v| v.ends).map(|e| e[0])),
                number(p.and_then(|v| v.ends).map(|e| e[1])),
                number(cell.difference),
                cell.missing.clone().unwrap_or_default(),
            ]);
            out.push(cells);
        }
    }
    out.into_bytes()
}

/// A table environment in the paper's form: ours, and the paper's below it in small type.
pub(super) fn latex(table: &Table) -> String {
    let columns = format!("{}{}", "l".repeat(table.head.len()), "c".repeat(table.columns.len()));
    let titles = table.head.iter().chain(table.columns.iter().map(|c| &c.title));
    let titles: Vec<String> = titles.map(|t| escaped(t)).collect();
    let mut out = format!(
        "% Needs booktabs. The paper's numbers in small type below ours.\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{} \\\\\n\\midrule\n",
        escaped(&table.title),
        titles.join(" & ")
    );
    let mut group: Option<&String> = None;
    for row in &table.rows {
        if row.group.is_some() && row.group.as_ref() != group {
            group = row.group.as_ref();
            let title = escaped(group.map_or("", |g| g.as_str()));
            let width = table.head.len() + table.columns.len();
            out.push_str(&format!("\\multicolumn{{{width}}}{{l}}{{\\textit{{{title}}}}} \\\\\n"));
        }
        let lead = row.lead.iter().map(|l| escaped(l));
        let cells =
            row.cells.iter().zip(&table.columns).map(|(c, column)| latex_cell(c, column.digits));
        out.push_str(&format!("{} \\\\\n", lead.chain(cells).collect::<Vec<_>>().join(" & ")));
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    out
}

fn latex_cell(cell: &Cell, digits: usize) -> String {
    let math = |t: String| t.replace('±', "$\\pm$").replace('-', "--");
    let ours = cell.ours.map_or_else(|| "--".to_owned(), |v| math(v.text(digits)));
    match cell.paper {
        Some(p) => format!("\\shortstack{{{ours}\\\\{{\\scriptsize {}}}}}", math(p.text(digits))),
        None => ours,
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(escaped("COLON_DX & 5 %"), "COLON\\_DX \\& 5 \\%");
    }
}
