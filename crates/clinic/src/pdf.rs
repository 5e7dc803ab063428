//! The page as PDF: A4, fonts inside, the same bytes every time.

use crate::page::{Block, Page};
use krilla::Document;
use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect, Size, Transform};
use krilla::image::Image;
use krilla::metadata::Metadata;
use krilla::num::NormalizedF32;
use krilla::page::PageSettings;
use krilla::paint::{Fill, Stroke};
use krilla::surface::Surface;
use krilla::text::{Font, TextDirection};

/// A4, points.
const WIDTH: f32 = 595.0;
const HEIGHT: f32 = 842.0;
/// Free on every side.
const MARGIN: f32 = 42.0;
/// Column of names.
const NAMES: f32 = 92.0;

/// A font with the widths of its letters.
struct Face {
    font: Font,
    face: ttf_parser::Face<'static>,
}

impl Face {
    fn new(bytes: &'static [u8]) -> Result<Self, String> {
        let font = Font::new(bytes.into(), 0).ok_or("the font cannot be read")?;
        let face = ttf_parser::Face::parse(bytes, 0).map_err(|e| e.to_string())?;
        Ok(Self { font, face })
    }

    /// Width of a text, points.
    fn width(&self, text: &str, size: f32) -> f32 {
        let advance = |c: char| {
            let glyph = self.face.glyph_index(c).unwrap_or_default();
            f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0))
        };
        text.chars().map(advance).sum::<f32>() * size / f32::from(self.face.units_per_em())
    }

    /// The text with letters that the font lacks as `?`, and without what acts on a terminal.
    fn known(&self, text: &str) -> String {
        let known = |c: char| match c {
            c if c.is_control() => ' ',
            c if self.face.glyph_index(c).is_none() => '?',
            c => c,
        };
        text.chars().map(known).collect()
    }

    /// Lines of at most so many points; a word that is wider is cut.
    fn lines(&self, text: &str, size: f32, room: f32) -> Vec<String> {
        let mut lines = vec![String::new()];
        for word in self.known(text).split(' ') {
            let mut rest = word.to_owned();
            loop {
                let last = lines.last_mut().expect("one line at least");
                let joined = if last.is_empty() { rest.clone() } else { format!("{last} {rest}") };
                if self.width(&joined, size) <= room {
                    *last = joined;
                    break;
                }
                if !last.is_empty() {
                    lines.push(String::new());
                    continue;
                }
                let mut head = String::new();
                let mut tail = rest.chars().peekable();
                while let Some(c) = tail.peek() {
                    if !head.is_empty() && self.width(&format!("{head}{c}"), size) > room {
                        break;
                    }
                    head.push(*c);
                    tail.next();
                }
                rest = tail.collect();
                *lines.last_mut().expect("one line at least") = head;
                if rest.is_empty() {
                    break;
                }
                lines.push(String::new());
            }
        }
        lines
    }
}

/// A page under way.
struct Sheet<'a, 'b> {
    surface: &'a mut Surface<'b>,
    regular: Face,
    bold: Face,
    y: f32,
}

fn fill(r: u8, g: u8, b: u8) -> Fill {
    Fill {
        paint: rgb::Color::new(r, g, b).into(),
        opacity: NormalizedF32::ONE,
        rule: krilla::paint::FillRule::default(),
    }
}

impl Sheet<'_, '_> {
    fn line(&mut self, x: f32, size: f32, bold: bool, text: &str) {
        let font = if bold { &self.bold } else { &self.regular }.font.clone();
        let at = Point::from_xy(x, self.y);
        self.surface.draw_text(at, font, size, text, false, TextDirection::Auto);
    }

    /// A text in lines; leaves the pen below it.
    fn paragraph(&mut self, x: f32, size: f32, bold: bool, text: &str) {
        let face = if bold { &self.bold } else { &self.regular };
        for line in face.lines(text, size, WIDTH - MARGIN - x) {
            self.y += size * 1.35;
            self.line(x, size, bold, &line);
        }
    }

    /// Points that are left above the foot.
    fn room(&self) -> f32 {
        HEIGHT - MARGIN - 16.0 - self.y
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        match block {
            Block::Heading(text) => {
                self.y += 6.0;
                self.paragraph(MARGIN, 11.0, true, text);
            }
            Block::Main(number, what) => {
                self.y += 34.0;
                self.line(MARGIN, 30.0, true, number);
                let x = MARGIN + self.bold.width(number, 30.0) + 10.0;
                let lines = self.regular.lines(what, 10.0, WIDTH - MARGIN - x);
                let bottom = self.y;
                self.y -= 13.0 * (lines.len() as f32 - 1.0);
                for line in lines {
                    self.line(x, 10.0, false, &line);
                    self.y += 13.0;
                }
                self.y = bottom;
            }
            Block::Rows(rows) => {
                for (name, value) in rows {
                    let top = self.y;
                    let name = self.regular.lines(name, 9.0, NAMES - 6.0).swap_remove(0);
                    self.y += 9.0 * 1.35;
                    self.line(MARGIN, 9.0, true, &name);
                    self.y = top;
                    self.paragraph(MARGIN + NAMES, 9.0, false, value);
                }
            }
            Block::Table(head, rows) => self.table(head, rows),
            Block::Notes(notes) => {
                for note in notes {
                    self.y += 1.0;
                    self.paragraph(MARGIN, 8.5, false, &format!("\u{26a0} {note}"));
                }
            }
            Block::Picture { jpeg, outlines, height, caption } => {
                self.picture(jpeg, outlines, *height as f32, caption)?;
            }
        }
        Ok(())
    }

    fn table(&mut self, head: &[String], rows: &[Vec<String>]) {
        let room = WIDTH - 2.0 * MARGIN;
        // Every column as wide as its widest cell, the first and the last cut where that is too much.
        let mut widths: Vec<f32> = (0..head.len())
            .map(|c| {
                let cells = rows.iter().map(|r| self.regular.width(&r[c], 8.0));
                cells.fold(self.bold.width(&head[c], 8.0), f32::max) + 8.0
            })
            .collect();
        let over = widths.iter().sum::<f32>() - room;
        if over > 0.0 {
            let share = over / 2.0;
            let last = widths.len() - 1;
            for c in [0, last] {
                widths[c] = (widths[c] - share).max(50.0);
            }
        }
        let line = |sheet: &mut Self, cells: &[String], bold: bool| {
            sheet.y += 8.0 * 1.4;
            let mut x = MARGIN;
            for (cell, width) in cells.iter().zip(&widths) {
                let face = if bold { &sheet.bold } else { &sheet.regular };
                let text = face.lines(cell, 8.0, width - 4.0).swap_remove(0);
                sheet.line(x, 8.0, bold, &text);
                x += width;
            }
        };
        line(self, head, true);
        rows.iter().for_each(|row| line(self, row, false));
    }

    fn picture(
        &mut self,
        jpeg: &[u8],
        outlines: &[Vec<[f64; 2]>],
        most: f32,
        caption: &str,
    ) -> Result<(), String> {
        let room = (self.room() - 14.0).min(most);
        if room < 40.0 {
            // What does not fit is in the HTML; the page stays one.
            return Ok(());
        }
        let image = Image::from_jpeg(jpeg.to_vec().into(), true)?;
        let (w, h) = image.size();
        let scale = (room / h as f32).min((WIDTH - 2.0 * MARGIN) / w as f32);
        let (w, h) = (w as f32 * scale, h as f32 * scale);
        self.y += 6.0;
        let size = Size::from_wh(w, h).ok_or("an empty picture")?;
        self.surface.push_transform(&Transform::from_translate(MARGIN, self.y));
        self.surface.draw_image(image, size);
        self.surface.set_fill(None);
        for (colour, width) in [([255, 255, 255], 2.4), ([29, 78, 216], 1.2)] {
            let [r, g, b] = colour;
            self.surface.set_stroke(Some(Stroke {
                paint: rgb::Color::new(r, g, b).into(),
                width,
                ..Stroke::default()
            }));
            for ring in outlines {
                let mut path = PathBuilder::new();
                for (k, [x, y]) in ring.iter().enumerate() {
                    let (x, y) = (*x as f32 * w, *y as f32 * h);
                    if k == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                path.close();
                if let Some(path) = path.finish() {
                    self.surface.draw_path(&path);
                }
            }
        }
        self.surface.set_stroke(None);
        self.surface.set_fill(Some(fill(20, 20, 20)));
        self.surface.pop();
        self.y += h;
        self.paragraph(MARGIN, 8.0, false, caption);
        Ok(())
    }
}

/// The file.
///
/// # Errors
/// When a picture is not a JPEG, or the PDF cannot be made.
pub fn bytes(page: &Page) -> Result<Vec<u8>, String> {
    let mut document = Document::new();
    let program = mithras::program();
    document.set_metadata(
        Metadata::new().title(page.title.clone()).creator(program).language("en".into()),
    );
    let settings = PageSettings::from_wh(WIDTH, HEIGHT).ok_or("a page without size")?;
    let mut sheet_page = document.start_page_with(settings);
    let mut surface = sheet_page.surface();
    surface.set_fill(Some(fill(20, 20, 20)));
    let (regular, bold) = (Face::new(dejavu::sans::regular())?, Face::new(dejavu::sans::bold())?);
    let mut sheet = Sheet { surface: &mut surface, regular, bold, y: MARGIN - 12.0 };
    sheet.paragraph(MARGIN, 15.0, true, &page.title);
    for block in &page.blocks {
        sheet.block(block)?;
    }
    if sheet.y > HEIGHT - MARGIN {
        return Err("there is more to say than a page holds".into());
    }
    sheet.y = HEIGHT - MARGIN + 8.0;
    sheet.line(MARGIN, 8.0, false, &page.foot);
    let rule = Rect::from_xywh(MARGIN, HEIGHT - MARGIN - 4.0, WIDTH - 2.0 * MARGIN, 0.5)
        .ok_or("no line")?;
    let mut path = PathBuilder::new();
    path.push_rect(rule);
    if let Some(path) = path.finish() {
        surface.draw_path(&path);
    }
    surface.finish();
    sheet_page.finish();
    document.finish().map_err(|e| format!("{e:?}"))
}
