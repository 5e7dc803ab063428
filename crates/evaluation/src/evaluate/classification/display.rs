//! Counts and scores of classes as text.

use super::{ClassFigures, Classification};
use base::text::Many;
use outcome::numbers::columns;
use std::fmt;

fn number(v: Option<f64>) -> String {
    v.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"))
}

impl fmt::Display for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = self;
        let all = &out.all;
        writeln!(f, "{}, {}", Many(all.n, "item"), Many(all.classes.len(), "class"))?;
        if let Some(p) = &all.positive {
            writeln!(f, "positive: {}", p.positive)?;
        }
        let keys = [
            "accuracy",
            "balanced_accuracy",
            "macro_f1",
            "precision",
            "recall",
            "f1",
            "specificity",
            "roc_auc",
            "macro_roc_auc",
            "kappa",
        ];
        let mut rows = Vec::new();
        for key in keys {
            let Some((_, value)) = all.numbers().into_iter().find(|(k, _)| *k == key) else {
                continue;
            };
            let mut row = vec![key.to_owned(), number(value)];
            if let Some(s) = out.over_folds.as_ref().and_then(|f| f.get(key)) {
                row.push(format!("folds: {} +- {}", number(Some(s.mean)), number(s.sd)));
            }
            rows.push(row);
        }
        f.write_str(&columns(&rows))?;
        if let Some(l) = &out.largest_f1 {
            // With all digits: rounded it may call other items.
            let (f1, threshold) = (number(Some(l.f1)), l.threshold);
            writeln!(f, "F1 of these items is largest, {f1}, from {threshold} on")?;
        }
        writeln!(f, "\nconfusion matrix (rows: truth)")?;
        let mut rows = vec![std::iter::once(String::new()).chain(all.classes.clone()).collect()];
        for (class, counts) in all.classes.iter().zip(&all.confusion) {
            let cells = counts.iter().map(ToString::to_string);
            rows.push(std::iter::once(class.clone()).chain(cells).collect::<Vec<_>>());
        }
        f.write_str(&columns(&rows))?;
        for (name, figures) in out.domains.iter().flatten() {
            let shown = |key: &str, c: &ClassFigures| number(c.number(key));
            writeln!(
                f,
                "\n{name}: {}, macro F1 {}, balanced accuracy {}, F1 {}",
                Many(figures.n, "item"),
                shown("macro_f1", figures),
                shown("balanced_accuracy", figures),
                shown("f1", figures)
            )?;
        }
        Ok(())
    }
}
