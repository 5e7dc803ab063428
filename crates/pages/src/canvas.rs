//! A small drawing surface: kuva's primitives, SVG and PNG, with this project's own layout.

use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};

/// Colours that survive colour blindness and print (Okabe and Ito).
pub const PALETTE: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// Text and axes.
pub const INK: &str = "#222222";
/// Secondary lines.
pub const GREY: &str = "#9a9a9a";
/// Lines behind the data.
pub const GRID: &str = "#e8e8e8";

/// A picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PictureError(String);

/// Where a text is relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A picture under way.
pub struct Canvas {
    scene: Scene,
}

impl Canvas {
    /// An empty picture.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        let mut scene = Scene::new(width, height);
        scene.font_family = Some("DejaVu Sans, Helvetica, Arial, sans-serif".into());
        Self { scene }
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.dashed(from, to, colour, width, None);
    }

    /// A line with dashes, as SVG has them.
    pub fn dashed(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        colour: &str,
        width: f64,
        dash: Option<&str>,
    ) {
        self.scene.elements.push(Primitive::Line {
            x1: from.0,
            y1: from.1,
            x2: to.0,
            y2: to.1,
            stroke: Color::from(colour),
            stroke_width: width,
            stroke_dasharray: dash.map(str::to_owned),
        });
    }

    /// A line through points.
    pub fn polyline(&mut self, points: Vec<(f64, f64)>, colour: &str, width: f64) {
        self.scene.elements.push(Primitive::PolyLine {
            points,
            stroke: Color::from(colour),
            stroke_width: width,
            stroke_dasharray: None,
        });
    }

    /// A filled area.
    pub fn polygon(&mut self, points: &[(f64, f64)], colour: &str, opacity: f64) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            d += &format!("{}{x:.2} {y:.2} ", if i == 0 { "M" } else { "L" });
        }
        d.push('Z');
        self.scene.elements.push(Primitive::Path(Box::new(PathData {
            d,
            fill: Some(Color::from(colour)),
            stroke: Color::None,
            stroke_width: 0.0,
            opacity: Some(opacity),
            stroke_dasharray: None,
        })));
    }

    /// A filled rectangle.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, opacity: f64) {
        self.scene.elements.push(Primitive::Rect {
            x: at.0,
            y: at.1,
            width: size.0,
            height: size.1,
            fill: Color::from(fill),
            stroke: None,
            stroke_width: None,
            opacity: Some(opacity),
        });
    }

    /// The outline of a rectangle.
    pub fn frame(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, width: f64) {
        let (x, y) = at;
        let (w, h) = size;
        let corners = vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)];
        self.polyline(corners, colour, width);
    }

    /// A disc.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, fill: &str, opacity: f64) {
        self.scene.elements.push(Primitive::Circle {
            cx: at.0,
            cy: at.1,
            r: radius,
            fill: Color::from(fill),
            fill_opacity: Some(opacity),
            stroke: None,
            stroke_width: None,
        });
    }

    /// Plain text.
    pub fn text(&mut self, at: (f64, f64), content: &str, size: u32, anchor: Anchor) {
        self.styled(at, content, size, anchor, INK, false, None);
    }

    /// Text with all its looks.
    #[expect(clippy::too_many_arguments, reason = "one call writes one text with all its looks")]
    pub fn styled(
        &mut self,
        at: (f64, f64),
        content: &str,
        size: u32,
        anchor: Anchor,
        colour: &str,
        bold: bool,
        rotate: Option<f64>,
    ) {
        self.scene.elements.push(Primitive::Text {
            x: at.0,
            y: at.1,
            content: content.to_owned(),
            size,
            anchor: match anchor {
                Anchor::Start => TextAnchor::Start,
                Anchor::Middle => TextAnchor::Middle,
                Anchor::End => TextAnchor::End,
            },
            rotate,
            bold,
            color: Some(Color::from(colour)),
        });
    }

    /// What the picture is, at its top.
    pub fn title(&mut self, content: &str) {
        self.styled((14.0, 22.0), content, 15, Anchor::Start, INK, true, None);
    }

    /// The picture as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        base::text::plain_page(SvgBackend::new().render_scene(&self.scene))
    }

    /// The picture as PNG, three pixels per unit.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn png(&self) -> Result<Vec<u8>, PictureError> {
        let backend = PngBackend::new().with_scale(3.0);
        backend.render_scene(&self.scene).map_err(|e| PictureError(e.to_string()))
    }
}

/// A linear or logarithmic axis between two values and two positions.
#[derive(Clone, Copy)]
pub struct Axis {
    /// Its first value.
    pub low: f64,
    /// Its last value.
    pub high: f64,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Whether it is logarithmic; its values are positive then.
    pub log: bool,
}

impl Axis {
    /// The place of a value; one outside is at the end.
    #[must_use]
    pub fn at(&self, v: f64) -> f64 {
        let f = |v: f64| if self.log { v.ln() } else { v };
        let share = (f(v) - f(self.low)) / (f(self.high) - f(self.low));
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// Round steps covering `low..=high`, about `count` of them.
#[must_use]
pub fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let span = (high - low).max(f64::MIN_POSITIVE);
    let raw = span / count.max(1) as f64;
    let power = 10_f64.powf(raw.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= raw * 0.999);
    let step = step.unwrap_or(raw);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Round numbers on a logarithmic scale within `low..=high`, denser where the range is short.
#[must_use]
pub fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (a, b) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let steps: &[f64] = match high / low {
        span if span > 1e4 => &[1.0],
        span if span > 12.0 => &[1.0, 2.0, 5.0],
        span if span > 4.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        _ => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    };
    (a..=b)
        .flat_map(|e| steps.iter().map(move |m| m * 10_f64.powi(e)))
        .filter(|v| (low * 0.999..=high * 1.001).contains(v))
        .collect()
}

/// Labels of one axis, with as many decimals each as the one that needs most.
#[must_use]
pub fn tick_labels(values: &[f64]) -> Vec<String> {
    let decimals = |v: &f64| tick_label(*v).split_once('.').map_or(0, |(_, d)| d.len());
    let digits = values.iter().map(decimals).max().unwrap_or(0);
    values.iter().map(|v| format!("{:.digits$}", v + 0.0)).collect()
}

/// Text in lines of at most `width` letters, all of it: broken between words, and a word that is longer
/// after a hyphen, an underscore or a slash, or else where it must be.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut lines: Vec<String> = Vec::new();
    let room =
        |lines: &[String]| lines.last().map_or(0, |l| width.saturating_sub(l.chars().count()));
    for word in text.split([' ', '\n', '\t']).filter(|w| !w.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        if rest.len() < room(&lines)
            && let Some(line) = lines.last_mut()
        {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        while rest.len() > width {
            let soft = rest[..width].iter().rposition(|c| "-_/".contains(*c)).map(|k| k + 1);
            let tail = rest.split_off(soft.filter(|k| *k > width / 3).unwrap_or(width));
            lines.push(rest.into_iter().collect());
            rest = tail;
        }
        lines.push(rest.into_iter().collect());
    }
    lines
}

/// A tick's label without needless digits.
#[must_use]
pub fn tick_label(v: f64) -> String {
    let text = format!("{v:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_label_is_whole() {
        assert_eq!(wrap("age at diagnosis", 10), ["age at", "diagnosis"]);
        assert_eq!(wrap("a b c", 10), ["a b c"]);
        let name = "age_at_initial_pathologic_diagnosis per year";
        let lines = wrap(name, 16);
        assert_eq!(lines, ["age_at_initial_", "pathologic_", "diagnosis per", "year"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert!(wrap("", 8).is_empty());
        // A non-breaking space is not a place to break.
        assert_eq!(wrap("p\u{a0}=\u{a0}0.01 x", 8), ["p\u{a0}=\u{a0}0.01", "x"]);
    }

    #[test]
    fn labels_of_an_axis_have_as_many_decimals() {
        assert_eq!(tick_labels(&ticks(0.0, 1.0, 5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }
}
