//! Figures in the paper's form, drawn from the tables alone.

use super::table::Table;
use super::{Results, StepOutputs};
use crate::error::{ExperimentError, Result};
use crate::spec::{Experiment, FigureKind, ScatterSeries, ScatterSpec};
use pages::canvas::{
    Anchor, Axis, Canvas, GREY, GRID, INK, PALETTE, log_ticks, tick_labels, ticks,
};
use std::path::Path;

/// A figure of the report.
pub(super) struct Drawn {
    pub(super) title: String,
    /// Files next to the page.
    pub(super) files: Vec<String>,
    /// Why it is missing.
    pub(super) missing: Option<String>,
}

impl Drawn {
    /// Files that the page shows, side by side: every SVG, or the first file where none is.
    pub(super) fn shown(&self) -> Vec<&str> {
        let svg = |f: &&str| Path::new(f).extension().is_some_and(|e| e == "svg");
        let all = || self.files.iter().map(String::as_str);
        match all().any(|f| svg(&f)) {
            true => all().filter(svg).collect(),
            false => all().take(1).collect(),
        }
    }
}

pub(super) fn write(
    experiment: &Experiment,
    results: &Results,
    found: &StepOutputs<'_>,
    folder: &Path,
) -> Result<Vec<Drawn>> {
    let mut all = vec![];
    for figure in &experiment.figures {
        let canvas = match &figure.kind {
            FigureKind::Copy { step, files } => {
                all.push(copy(&figure.title, step, files, found, folder)?);
                continue;
            }
            FigureKind::Bars { table, column } => {
                bars(&figure.title, find_table(results, table)?, *column)
            }
            FigureKind::Scatter(spec) => scatter(&figure.title, spec, results)?,
            FigureKind::Bubble { table, size, domains } => {
                bubble(&figure.title, find_table(results, table)?, *size, *domains)
            }
        };
        let names = [format!("{}.svg", figure.id), format!("{}.png", figure.id)];
        match canvas {
            Some(canvas) => {
                let png =
                    canvas.png().map_err(|e| ExperimentError::path(folder.join(&names[1]), e))?;
                base::file::write(&folder.join(&names[0]), canvas.svg().as_bytes())?;
                base::file::write(&folder.join(&names[1]), &png)?;
                all.push(Drawn { title: figure.title.clone(), files: names.into(), missing: None });
            }
            None => {
                let missing = Some("no value is there yet".to_owned());
                all.push(Drawn { title: figure.title.clone(), files: vec![], missing });
            }
        }
    }
    Ok(all)
}

fn find_table<'r>(results: &'r Results, table: &str) -> Result<&'r Table> {
    results
        .tables
        .iter()
        .find(|t| t.id == table)
        .ok_or_else(|| ExperimentError::form(&results.experiment, format!("no table `{table}`")))
}

fn copy(
    title: &str,
    step: &str,
    files: &[String],
    found: &StepOutputs<'_>,
    folder: &Path,
) -> Result<Drawn> {
    let mut drawn = Drawn { title: title.to_owned(), files: vec![], missing: None };
    match found.folder(step) {
        Err(reason) => drawn.missing = Some(reason),
        Ok(from) => {
            for file in files {
                let name = Path::new(file)
                    .file_name()
                    .map_or(file.clone(), |n| n.to_string_lossy().into());
                match base::file::read_whole(from.join(file)) {
                    Ok(bytes) => {
                        base::file::write(&folder.join(&name), &bytes)?;
                        drawn.files.push(name);
                    }
                    Err(e) => drawn.missing = Some(format!("{file} of step {step}: {e}")),
                }
            }
        }
    }
    Ok(drawn)
}

/// A bar for each row, from 0; the paper's value is a cross.
fn bars(title: &str, table: &Table, column: usize) -> Option<Canvas> {
    let rows: Vec<_> = table.rows.iter().map(|r| (r, &r.cells[column])).collect();
    let numbers = rows.iter().flat_map(|(_, c)| [c.ours, c.paper]).flatten();
    let most = numbers.map(|v| v.ends.map_or(v.estimate, |e| e[1])).fold(f64::NAN, f64::max);
    if most.is_nan() {
        return None;
    }
    let (left, right, top, step) = (250.0, 690.0, 44.0, 22.0);
    let bottom = top + step * rows.len() as f64;
    let mut c = Canvas::new(770.0, bottom + 62.0);
    c.title(title);
    let x = Axis { low: 0.0, high: most.max(f64::MIN_POSITIVE), from: left, to: right, log: false };
    let marks = ticks(0.0, x.high, 5);
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
        c.text((x.at(v), bottom + 16.0), &label, 12, Anchor::Middle);
    }
    let digits = table.columns[column].digits;
    for (k, (row, cell)) in rows.iter().enumerate() {
        let y = top + step * (k as f64 + 0.5);
        let name = row.lead.first().unwrap_or(&row.id);
        c.text((left - 8.0, y + 4.0), name, 12, Anchor::End);
        if let Some(v) = cell.ours {
            let low = v.ends.filter(|_| v.range).map_or(v.estimate, |e| e[0]);
            c.rect((left, y - 7.0), (x.at(low) - left, 14.0), PALETTE[0], 0.85);
            let ends = v.ends.or_else(|| v.sd.map(|s| [v.estimate - s, v.estimate + s]));
            if let Some([a, b]) = ends {
                c.line((x.at(a), y), (x.at(b), y), INK, 1.4);
            }
            c.text((right + 6.0, y + 4.0), &v.text(digits), 11, Anchor::Start);
        }
        if let Some(v) = cell.paper {
            let at = x.at(v.ends.filter(|_| v.range).map_or(v.estimate, |e| e[0]));
            c.line((at - 4.0, y - 4.0), (at + 4.0, y + 4.0), PALETTE[1], 1.8);
            c.line((at - 4.0, y + 4.0), (at + 4.0, y - 4.0), PALETTE[1], 1.8);
        }
    }
    c.line((left, top), (left, bottom), INK, 1.2);
    c.text((left, bottom + 40.0), "bar: here; line: SD or range; cross: paper", 12, Anchor::Start);
    Some(c)
}

/// A model at its time, and at what it reaches.
struct Spot {
    id: String,
    x: f64,
    y: f64,
}

fn points(series: &ScatterSeries, results: &Results) -> Result<Vec<Spot>> {
    let (xs, ys) = (find_table(results, &series.x.0)?, find_table(results, &series.y.0)?);
    let value = |t: &Table, id: &str, column: usize| {
        t.rows.iter().find(|r| r.id == id)?.cells[column].ours.map(|v| v.estimate)
    };
    let point = |id: &String| {
        let at = (value(xs, id, series.x.1)?, value(ys, id, series.y.1)?);
        (at.0 > 0.0).then(|| Spot { id: id.clone(), x: at.0, y: at.1 })
    };
    Ok(xs.rows.iter().filter_map(|r| point(&r.id)).collect())
}

/// Points of one or several series on a logarithmic axis of time; dashed lines join those of a model.
fn scatter(title: &str, spec: &ScatterSpec, results: &Results) -> Result<Option<Canvas>> {
    let series = &spec.series;
    let all: Vec<Vec<Spot>> = series.iter().map(|s| points(s, results)).collect::<Result<_>>()?;
    let Some(panel) = Panel::around(&all, [70.0, 690.0]) else { return Ok(None) };
    let enlarged = all.get(..spec.inset).unwrap_or(&all);
    let inset = Panel::around(enlarged, [760.0, 1180.0]).filter(|_| spec.inset > 0);
    let mut c = Canvas::new(if inset.is_some() { 1240.0 } else { 720.0 }, 484.0);
    c.title(title);
    panel.draw(&mut c, &all);
    for (k, spec) in series.iter().enumerate() {
        let at = 230.0 * k as f64 + panel.x.from;
        mark(&mut c, (at, 44.0), k, PALETTE[k % PALETTE.len()]);
        c.text((at + 10.0, 48.0), &spec.name, 12, Anchor::Start);
    }
    let (x, y) = (&panel.x, &panel.y);
    let (across, up) = ((x.from + x.to) / 2.0, (y.from + y.to) / 2.0);
    c.text((across, y.from + 42.0), &spec.x_label, 13, Anchor::Middle);
    c.styled((18.0, up), &spec.y_label, 13, Anchor::Middle, INK, false, Some(-90.0));
    if let Some(inset) = inset {
        inset.draw(&mut c, enlarged);
        let names: Vec<&str> = series.iter().take(spec.inset).map(|s| s.name.as_str()).collect();
        let at = ((inset.x.from + inset.x.to) / 2.0, inset.y.from + 42.0);
        c.text(at, &format!("enlarged: {}", names.join(", ")), 12, Anchor::Middle);
    }
    Ok(Some(c))
}

/// The axes of a part of a scatter plot.
struct Panel {
    x: Axis,
    y: Axis,
}

impl Panel {
    /// Between two edges, px, with room around all points; none without points.
    fn around(all: &[Vec<Spot>], edges: [f64; 2]) -> Option<Self> {
        let end =
            |f: fn(f64, f64) -> f64, k: fn(&Spot) -> f64| all.iter().flatten().map(k).reduce(f);
        let (low, high) = (end(f64::min, |p| p.x)? / 1.6, end(f64::max, |p| p.x)? * 1.6);
        let (floor, ceiling) = (end(f64::min, |p| p.y)?, end(f64::max, |p| p.y)?);
        let pad = ((ceiling - floor) * 0.1).max(0.01);
        let [left, right] = edges;
        Some(Self {
            x: Axis { low, high, from: left, to: right, log: true },
            y: Axis { low: floor - pad, high: ceiling + pad, from: 424.0, to: 64.0, log: false },
        })
    }

    /// Grid, points and what joins them.
    fn draw(&self, c: &mut Canvas, all: &[Vec<Spot>]) {
        let (x, y) = (&self.x, &self.y);
        let (left, right, top, bottom) = (x.from, x.to, y.to, y.from);
        for v in log_ticks(x.low, x.high) {
            c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
            c.text((x.at(v), bottom + 18.0), &pages::canvas::tick_label(v), 12, Anchor::Middle);
        }
        let marks = ticks(y.low, y.high, 6);
        for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
            c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
            c.text((left - 8.0, y.at(v) + 4.0), &label, 12, Anchor::End);
        }
        let place = |p: &Spot| (x.at(p.x), y.at(p.y));
        for Spot { id, .. } in all.first().into_iter().flatten() {
            let path: Vec<_> =
                all.iter().filter_map(|s| s.iter().find(|p| p.id == *id)).map(place).collect();
            for pair in path.windows(2) {
                c.dashed(pair[0], pair[1], GREY, 1.0, Some("4 3"));
            }
        }
        for (k, points) in all.iter().enumerate() {
            for p in points {
                let (px, py) = place(p);
                mark(c, (px, py), k, PALETTE[k % PALETTE.len()]);
                c.text((px + 7.0, py - 5.0), &p.id, 10, Anchor::Start);
            }
        }
        c.line((left, bottom), (right, bottom), INK, 1.2);
        c.line((left, top), (left, bottom), INK, 1.2);
    }
}

/// Circle, triangle, square.
fn mark(c: &mut Canvas, at: (f64, f64), kind: usize, colour: &str) {
    let (x, y) = at;
    match kind % 3 {
        0 => c.dot(at, 5.0, colour, 0.9),
        1 => c.polygon(&[(x, y - 6.0), (x + 5.5, y + 4.0), (x - 5.5, y + 4.0)], colour, 0.9),
        _ => c.rect((x - 4.5, y - 4.5), (9.0, 9.0), colour, 0.9),
    }
}

/// A circle for each row: area by its number, domains across, the number itself up.
fn bubble(title: &str, table: &Table, size: usize, domains: usize) -> Option<Canvas> {
    let number = |row: &super::Row, k: usize| {
        let cell = &row.cells[k];
        let here = cell.ours.filter(|v| v.estimate > 0.0);
        here.map(|v| (v.estimate, true)).or_else(|| cell.paper.map(|v| (v.estimate, false)))
    };
    let rows: Vec<_> = table
        .rows
        .iter()
        .filter_map(|r| Some((r, number(r, size)?, number(r, domains)?.0)))
        .collect();
    let most = rows.iter().map(|(_, n, _)| n.0).reduce(f64::max)?;
    let least = rows.iter().map(|(_, n, _)| n.0).reduce(f64::min)?;
    let widest = rows.iter().map(|(.., d)| *d).reduce(f64::max)?;
    let (left, right, top, bottom) = (80.0, 690.0, 50.0, 420.0);
    let mut c = Canvas::new(720.0, 500.0);
    c.title(title);
    let x = Axis { low: 0.0, high: widest * 1.15, from: left, to: right, log: false };
    let y = Axis { low: least / 3.0, high: most * 4.0, from: bottom, to: top, log: true };
    for v in ticks(0.0, x.high, 7) {
        c.text((x.at(v), bottom + 18.0), &pages::canvas::tick_label(v), 12, Anchor::Middle);
    }
    for v in log_ticks(y.low, y.high) {
        c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
        c.text((left - 8.0, y.at(v) + 4.0), &format!("{v:.0}"), 12, Anchor::End);
    }
    for (k, (row, (n, here), d)) in rows.iter().enumerate() {
        let radius = (44.0 * (n / most).sqrt()).max(4.0);
        let colour = PALETTE[k % PALETTE.len()];
        let at = (x.at(*d), y.at(*n));
        c.dot(at, radius, colour, if *here { 0.75 } else { 0.3 });
        let name = row.lead.first().unwrap_or(&row.id);
        c.text(
            (at.0 + radius + 4.0, at.1 + 4.0),
            &format!("{name}: {n:.0} ({d:.0})"),
            11,
            Anchor::Start,
        );
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    c.line((left, top), (left, bottom), INK, 1.2);
    c.text(((left + right) / 2.0, bottom + 40.0), "domains", 13, Anchor::Middle);
    c.text(
        (left, bottom + 62.0),
        "full colour: counted here; pale: as the paper states",
        12,
        Anchor::Start,
    );
    c.styled(
        (18.0, (top + bottom) / 2.0),
        "labelled cells",
        13,
        Anchor::Middle,
        INK,
        false,
        Some(-90.0),
    );
    Some(c)
}
