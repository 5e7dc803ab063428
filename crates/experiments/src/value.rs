//! Numbers of results and of the paper.

use serde::Serialize;
use serde_json::Value as Json;

/// A number as a table prints it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The number itself; of a range its middle.
    pub estimate: f64,
    /// Sample SD over folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Lower and upper end: of an interval around the number, or of a range alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<[f64; 2]>,
    /// Whether `ends` is a range without a number of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub range: bool,
    /// Folds that it is the mean of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<u64>,
}

impl Value {
    /// A plain number.
    #[must_use]
    pub fn plain(estimate: f64) -> Self {
        Self { estimate, sd: None, ends: None, range: false, folds: None }
    }

    /// A range.
    #[must_use]
    pub fn between(low: f64, high: f64) -> Self {
        let ends = Some([low, high]);
        Self { ends, range: true, ..Self::plain(f64::midpoint(low, high)) }
    }

    /// Mean and sample SD.
    #[must_use]
    pub fn mean_and_sd(numbers: &[f64]) -> Option<Self> {
        let s = stats::metrics::summarize(numbers).ok()?;
        Some(Self { sd: s.sd, folds: Some(s.n as u64), ..Self::plain(s.mean) })
    }

    /// Everything times a factor.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            estimate: self.estimate * by,
            sd: self.sd.map(|s| s * by),
            ends: self.ends.map(|e| e.map(|v| v * by)),
            ..self
        }
    }

    /// A number, an object with `mean` or `estimate`, or a pair.
    #[must_use]
    pub fn of_json(json: &Json) -> Option<Self> {
        match json {
            Json::Number(n) => n.as_f64().map(Self::plain),
            Json::Array(pair) => match pair.as_slice() {
                [low, high] => Some(Self::between(low.as_f64()?, high.as_f64()?)),
                _ => None,
            },
            Json::Object(o) => {
                let number = |keys: &[&str]| keys.iter().find_map(|k| o.get(*k)?.as_f64());
                let estimate = number(&["mean", "estimate", "value", "c"])?;
                // A C-index has its interval over slides in `rows`.
                let inner = o.get("rows").and_then(Json::as_object).unwrap_or(o);
                let end = |keys: &[&str]| keys.iter().find_map(|k| inner.get(*k)?.as_f64());
                let ends = end(&["lower", "low"]).zip(end(&["upper", "high"]));
                Some(Self {
                    sd: number(&["sd"]),
                    ends: ends.map(|(a, b)| [a, b]),
                    folds: o.get("folds").and_then(Json::as_u64),
                    ..Self::plain(estimate)
                })
            }
            _ => None,
        }
    }

    /// A cell of the paper: `0.831±0.003`, `0.437 (0.405, 0.485)`, `0.93-0.97`, `9.17`. Nothing for `-`.
    #[must_use]
    pub fn of_paper(text: &str) -> Option<Self> {
        let number = |t: &str| t.trim().parse::<f64>().ok();
        let text = text.trim();
        if let Some((mean, sd)) = text.split_once('±') {
            return Some(Self { sd: Some(number(sd)?), ..Self::plain(number(mean)?) });
        }
        if let Some((estimate, ends)) = text.split_once('(') {
            let (low, high) = ends.trim_end_matches(')').split_once(',')?;
            let ends = Some([number(low)?, number(high)?]);
            return Some(Self { ends, ..Self::plain(number(estimate)?) });
        }
        match text.split_once('-').filter(|(low, _)| !low.is_empty()) {
            Some((low, high)) => Some(Self::between(number(low)?, number(high)?)),
            None => number(text).map(Self::plain),
        }
    }

    /// As a table prints it.
    #[must_use]
    pub fn text(&self, digits: usize) -> String {
        let n = |v: f64| format!("{v:.digits$}");
        match (self.range, self.ends, self.sd) {
            (true, Some([low, high]), _) if n(low) == n(high) => n(low),
            (true, Some([low, high]), _) => format!("{}-{}", n(low), n(high)),
            (_, Some([low, high]), _) => format!("{} ({}, {})", n(self.estimate), n(low), n(high)),
            (_, None, Some(sd)) => format!("{}±{}", n(self.estimate), n(sd)),
            (_, None, None) => n(self.estimate),
        }
    }

    /// This number less another; of ranges the difference of the ends that are further apart.
    #[must_use]
    pub fn less(&self, other: &Self) -> f64 {
        if !self.range && !other.range {
            return self.estimate - other.estimate;
        }
        let ends = |v: &Self| v.ends.unwrap_or([v.estimate; 2]);
        let ([a, b], [c, d]) = (ends(self), ends(other));
        if (a - c).abs() > (b - d).abs() { a - c } else { b - d }
    }

    /// Whether a number of the paper is what this one rounds to, in all that both state.
    #[must_use]
    pub fn agrees(&self, paper: &Self, digits: usize) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() < 0.5001 * 10_f64.powi(-(digits as i32));
        let ends = |v: &Self| v.ends.unwrap_or([v.estimate; 2]);
        let [a, b] = ends(self);
        let [c, d] = ends(paper);
        let middle = self.range || near(self.estimate, paper.estimate);
        let spread = self.sd.zip(paper.sd).is_none_or(|(a, b)| near(a, b));
        middle && spread && (paper.ends.is_none() && !self.range || near(a, c) && near(b, d))
    }
}

/// What a path leads to: names between dots, `[3]` for an element, `[key=word]` for the first element of
/// a list whose `key` is that word.
#[must_use]
pub fn select<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    let mut at = json;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, tail) = inside.split_once(']')?;
            at = match inside.split_once('=') {
                Some((key, word)) => {
                    at.as_array()?.iter().find(|e| scalar_text(&e[key]) == Some(word.into()))?
                }
                None => at.get(inside.parse::<usize>().ok()?)?,
            };
            rest = tail;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            at = at.get(&name[..end])?;
            rest = &name[end..];
        }
    }
    Some(at)
}

/// How what a path leads to is to be had: the `remedy` of the innermost part of the path that states one.
#[must_use]
pub fn remedy<'j>(json: &'j Json, path: &str) -> Option<&'j str> {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).rev();
    ends.filter_map(|end| select(json, &path[..end])?.get("remedy")?.as_str()).next()
}

fn scalar_text(json: &Json) -> Option<String> {
    match json {
        Json::String(s) => Some(s.clone()),
        Json::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_the_paper_are_read_and_printed_back() {
        for (text, digits) in [
            ("0.831±0.003", 3),
            ("0.437 (0.405, 0.485)", 3),
            ("0.93-0.97", 2),
            ("9.17", 2),
            ("97540", 0),
        ] {
            assert_eq!(Value::of_paper(text).unwrap().text(digits), text);
        }
        assert_eq!(Value::of_paper("-"), None);
        assert_eq!(Value::of_paper("n/a"), None);
    }

    #[test]
    fn a_number_agrees_with_what_it_rounds_to() {
        let paper = |t| Value::of_paper(t).unwrap();
        assert!(Value::between(0.9333, 0.9667).agrees(&paper("0.93-0.97"), 2));
        assert!(!Value::between(0.9333, 0.9567).agrees(&paper("0.93-0.97"), 2));
        assert!(Value::between(1.0, 1.0).agrees(&paper("1.00"), 2));
        assert!(!Value::between(0.9, 1.0).agrees(&paper("1.00"), 2));
        let ours = Value { sd: Some(0.0031), ..Value::plain(0.8308) };
        assert!(ours.agrees(&paper("0.831±0.003"), 3) && !ours.agrees(&paper("0.831±0.004"), 3));
    }

    #[test]
    fn paths_lead_through_lists() {
        let json: Json =
            serde_json::from_str(r#"{"a": [{"k": "x", "v": [1, 2]}, {"k": 3, "v": {"mean": 0.5, "sd": 0.1, "folds": 3}}]}"#)
                .unwrap();
        let at = |p| select(&json, p).and_then(Value::of_json);
        assert_eq!(at("a[k=x].v[1]"), Some(Value::plain(2.0)));
        assert_eq!(at("a[k=3].v").unwrap().folds, Some(3));
        assert_eq!(at("a[0].v"), Some(Value::between(1.0, 2.0)));
        assert_eq!(at("a[k=y].v"), None);
        let json: Json = serde_json::from_str(
            r#"{"sets": [{"name": "A", "pieces": [], "remedy": "ask the authors"}, {"name": "B"}]}"#,
        )
        .unwrap();
        assert_eq!(remedy(&json, "sets[name=A].pieces[id=x].n"), Some("ask the authors"));
        assert_eq!(remedy(&json, "sets[name=B].pieces[id=x].n"), None);
    }
}
