//! Numbers for people.

/// A number for people: five significant digits.
#[must_use]
pub fn show(v: f64) -> String {
    if v == 0.0 {
        return "0".into();
    }
    if !v.is_finite() {
        return "-".into();
    }
    let digits = 4 - v.abs().log10().floor() as i32;
    if (-3..=9).contains(&digits) {
        format!("{v:.*}", digits.max(0) as usize)
    } else {
        format!("{v:.3e}")
    }
}

/// A p-value for people.
#[must_use]
pub fn show_p(p: f64) -> String {
    if p.is_nan() {
        "-".into()
    } else if p < 1e-4 {
        format!("{p:.1e}")
    } else {
        format!("{p:.4}")
    }
}

/// A p-value as print has it: powers of ten with superscripts, and no place to break it at.
#[must_use]
pub fn plain_p(p: f64) -> String {
    let text = show_p(p);
    let Some((digits, power)) = text.split_once('e') else { return text };
    let power: String = power
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            d => char::from_u32(0x2070 + d.to_digit(10).unwrap_or(0)).unwrap_or(d),
        })
        .collect();
    format!("{digits}\u{a0}\u{d7}\u{a0}10{power}")
}

/// Lines with columns padded to equal width: the first left, the others right.
#[must_use]
pub fn columns(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
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
        text += line.trim_end();
        text.push('\n');
    }
    text
}
