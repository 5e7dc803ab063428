//! The page as PDF: A4, fonts inside, the same bytes every time.

use crate::page::{Block, Page};
use crate::picture::{Outline, Picture};
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

/// Smallest share of their size that letters are set in.
const SMALLEST: f32 = 0.6;
/// Between pictures, points.
const GAP: f32 = 8.0;
/// A picture that would be lower than this is left out, points.
const LOWEST: f32 = 40.0;

/// Why a page does not become a file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PdfError(String);

impl From<&str> for PdfError {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl From<String> for PdfError {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// A font with the widths of its letters.
struct Face {
    font: Font,
    face: ttf_parser::Face<'static>,
}

impl Face {
    fn new(bytes: &'static [u8]) -> Result<Self, PdfError> {
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

/// A page under way, or, without a surface, one that is measured.
struct Sheet<'a, 'b> {
    surface: Option<&'a mut Surface<'b>>,
    faces: &'a [Face; 2],
    /// Share of their size that letters are set in.
    scale: f32,
    /// Share of their largest height that pictures are drawn in; none are drawn without room for them.
    pictures: f32,
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
    fn face(&self, bold: bool) -> &Face {
        &self.faces[usize::from(bold)]
    }

    fn line(&mut self, x: f32, size: f32, bold: bool, text: &str) {
        let (font, at) = (self.face(bold).font.clone(), Point::from_xy(x, self.y));
        if let Some(surface) = &mut self.surface {
            surface.draw_text(at, font, size, text, false, TextDirection::Auto);
        }
    }

    /// A text in lines; leaves the pen below it.
    fn paragraph(&mut self, x: f32, size: f32, bold: bool, text: &str) {
        for line in self.face(bold).lines(text, size, WIDTH - MARGIN - x) {
            self.y += size * 1.35;
            self.line(x, size, bold, &line);
        }
    }

    /// Everything above the foot.
    fn page(&mut self, page: &Page) -> Result<(), PdfError> {
        self.paragraph(MARGIN, 15.0 * self.scale, true, &page.title);
        page.blocks.iter().try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> Result<(), PdfError> {
        let s = self.scale;
        match block {
            Block::Heading(text) => {
                self.y += 6.0 * s;
                self.paragraph(MARGIN, 11.0 * s, true, text);
            }
            Block::Main(number, what) => self.number(number, what),
            Block::Rows(rows) => {
                for (name, value) in rows {
                    let top = self.y;
                    for part in self.face(true).lines(name, 9.0 * s, NAMES - 6.0) {
                        self.y += 9.0 * 1.35 * s;
                        self.line(MARGIN, 9.0 * s, true, &part);
                    }
                    let named = std::mem::replace(&mut self.y, top);
                    self.paragraph(MARGIN + NAMES, 9.0 * s, false, value);
                    self.y = self.y.max(named);
                }
            }
            Block::Table(head, rows) => self.table(head, rows),
            Block::Notes(notes) => {
                for note in notes {
                    self.y += s;
                    self.paragraph(MARGIN, 8.5 * s, false, &format!("\u{26a0} {note}"));
                }
            }
            Block::Pictures(pictures, height) => self.pictures(pictures, *height as f32)?,
        }
        Ok(())
    }

    fn number(&mut self, number: &str, what: &str) {
        let (large, small) = (30.0 * self.scale, 10.0 * self.scale);
        self.y += large * 1.15;
        self.line(MARGIN, large, true, number);
        let x = MARGIN + self.face(true).width(number, large) + 10.0;
        let lines = self.face(false).lines(what, small, WIDTH - MARGIN - x);
        let bottom = self.y;
        self.y -= 1.3 * small * (lines.len() as f32 - 1.0);
        for line in lines {
            self.line(x, small, false, &line);
            self.y += 1.3 * small;
        }
        self.y = bottom;
    }

    fn table(&mut self, head: &[String], rows: &[Vec<String>]) {
        let (room, size) = (WIDTH - 2.0 * MARGIN, 8.0 * self.scale);
        // Every column as wide as its widest cell, the first and the last cut where that is too much.
        let mut widths: Vec<f32> = (0..head.len())
            .map(|c| {
                let cells = rows.iter().map(|r| self.face(false).width(&r[c], size));
                cells.fold(self.face(true).width(&head[c], size), f32::max) + 8.0
            })
            .collect();
        let last = widths.len() - 1;
        for c in [0, last] {
            let over = widths.iter().sum::<f32>() - room;
            if over > 0.0 {
                widths[c] = (widths[c] - over).max(90.0);
            }
        }
        let mut line = |cells: &[String], bold: bool| {
            self.y += size * 1.4;
            let mut x = MARGIN;
            for (cell, width) in cells.iter().zip(&widths) {
                let mut lines = self.face(bold).lines(cell, size, width - 4.0);
                let mut text = lines.swap_remove(0);
                if !lines.is_empty() {
                    text = self.face(bold).lines(cell, size, width - 4.0 - size).swap_remove(0);
                    text.push('\u{2026}');
                }
                self.line(x, size, bold, &text);
                x += width;
            }
        };
        line(head, true);
        rows.iter().for_each(|row| line(row, false));
    }

    /// Pictures of one height side by side, each with what it shows below it.
    fn pictures(&mut self, pictures: &[Picture], most: f32) -> Result<(), PdfError> {
        if self.pictures == 0.0 {
            return Ok(());
        }
        let images: Vec<Image> = pictures
            .iter()
            .map(|p| Image::from_jpeg(p.jpeg.clone().into(), true))
            .collect::<Result<_, _>>()?;
        let shapes = images.iter().map(|i| i.size().0 as f32 / i.size().1.max(1) as f32);
        let shapes: Vec<f32> = shapes.collect();
        let room = WIDTH - 2.0 * MARGIN - GAP * (shapes.len() as f32 - 1.0);
        let height = (most * self.pictures).min(room / shapes.iter().sum::<f32>());
        self.y += 6.0;
        let (top, size, mut x, mut bottom) = (self.y, 8.0 * self.scale, MARGIN, self.y);
        for ((picture, image), shape) in pictures.iter().zip(images).zip(shapes) {
            let width = height * shape;
            self.draw(image, [x, top, width, height], &picture.outlines)?;
            self.y = top + height;
            // The last one may use what is left of the line.
            let wide = if pictures.len() == 1 { room } else { width.max(110.0) };
            for line in self.face(false).lines(&picture.caption, size, wide) {
                self.y += size * 1.35;
                self.line(x, size, false, &line);
            }
            bottom = self.y.max(bottom);
            x += wide.max(width) + GAP;
        }
        self.y = bottom;
        Ok(())
    }

    fn draw(&mut self, image: Image, at: [f32; 4], outlines: &[Outline]) -> Result<(), PdfError> {
        let [x, y, w, h] = at;
        let size = Size::from_wh(w, h).ok_or("an empty picture")?;
        let Some(surface) = &mut self.surface else { return Ok(()) };
        surface.push_transform(&Transform::from_translate(x, y));
        let mut frame = PathBuilder::new();
        frame.push_rect(Rect::from_xywh(0.0, 0.0, w, h).ok_or("an empty picture")?);
        let frame = frame.finish().ok_or("an empty picture")?;
        surface.push_clip_path(&frame, &krilla::paint::FillRule::default());
        surface.draw_image(image, size);
        surface.set_fill(None);
        for (colour, width) in [([255, 255, 255], 2.2), ([29, 78, 216], 1.0)] {
            let [r, g, b] = colour;
            surface.set_stroke(Some(Stroke {
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
                    surface.draw_path(&path);
                }
            }
        }
        surface.set_stroke(None);
        surface.set_fill(Some(fill(20, 20, 20)));
        surface.pop();
        surface.pop();
        Ok(())
    }
}

/// The largest letters, and then the largest pictures, with which everything is on one page.
fn fitting(page: &Page, faces: &[Face; 2]) -> Result<(f32, f32), PdfError> {
    let bottom = HEIGHT - MARGIN - 12.0;
    let end = |scale: f32, pictures: f32| {
        let mut sheet = Sheet { surface: None, faces, scale, pictures, y: MARGIN - 12.0 };
        sheet.page(page).map(|()| sheet.y)
    };
    // Pictures at least so high that one sees something, before letters of full size.
    let highest = page.blocks.iter().filter_map(|b| match b {
        Block::Pictures(_, height) => Some(*height as f32),
        _ => None,
    });
    let least = LOWEST / highest.fold(LOWEST, f32::max);
    let mut scale = 1.0;
    while scale >= SMALLEST {
        if end(scale, least)? <= bottom {
            let mut pictures = 1.0;
            while pictures > least && end(scale, pictures)? > bottom {
                pictures -= 0.02;
            }
            return Ok((scale, pictures.max(least)));
        }
        scale -= 0.05;
    }
    match end(SMALLEST, 0.0)? <= bottom {
        true => Ok((SMALLEST, 0.0)),
        false => Err("the text is longer than a page".into()),
    }
}

/// How much smaller than usual letters and pictures have to be for everything to be on one page: 1 where it fits as
/// it is.
///
/// # Errors
/// When the page holds more than fits.
pub fn fit(page: &Page) -> Result<(f32, f32), PdfError> {
    fitting(page, &[Face::new(dejavu::sans::regular())?, Face::new(dejavu::sans::bold())?])
}

/// Bytes of the PDF file: one sheet of A4.
///
/// # Errors
/// When a picture is not a JPEG, or the PDF cannot be made.
pub fn bytes(page: &Page) -> Result<Vec<u8>, PdfError> {
    let faces = [Face::new(dejavu::sans::regular())?, Face::new(dejavu::sans::bold())?];
    let (scale, pictures) = fitting(page, &faces)?;
    let mut document = Document::new();
    let program = mithras::program();
    document.set_metadata(
        Metadata::new().title(page.title.clone()).creator(program).language("en".into()),
    );
    let settings = PageSettings::from_wh(WIDTH, HEIGHT).ok_or("a page without size")?;
    let mut sheet_page = document.start_page_with(settings);
    let mut surface = sheet_page.surface();
    surface.set_fill(Some(fill(20, 20, 20)));
    let mut sheet =
        Sheet { surface: Some(&mut surface), faces: &faces, scale, pictures, y: MARGIN - 12.0 };
    sheet.page(page)?;
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
    document.finish().map_err(|e| PdfError(format!("{e:?}")))
}
