//! What every page of the program shares: one style sheet, one frame around its content, the pictures
//! in it ([`canvas`], [`charts`]), and a server for pages of this machine ([`server`]).
//!
//! A page is one file: its style, and unless it is served its script, are in it, and nothing is
//! loaded from elsewhere.

#![forbid(unsafe_code)]

pub mod canvas;
pub mod charts;
pub mod server;

/// Colours, type, buttons, tables, light and dark, print.
pub const STYLE: &str = include_str!("style.css");
/// `common.js`: what the scripts of served pages share.
pub const COMMON: &str = include_str!("common.js");

/// What runs on a page.
#[derive(Clone, Copy, Debug)]
pub enum Script<'a> {
    /// Nothing.
    None,
    /// A module in the page itself.
    Inline(&'a str),
    /// Files served with the page, in this order: scripts, then modules.
    Files {
        /// Plain scripts.
        plain: &'a [&'a str],
        /// Modules.
        modules: &'a [&'a str],
    },
}

/// A page: the frame is the same for all.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Plain text.
    pub title: &'a str,
    /// Rules of this page alone, after [`STYLE`].
    pub style: &'a str,
    /// HTML of the body.
    pub body: &'a str,
    /// What runs on it.
    pub script: Script<'a>,
}

impl Page<'_> {
    /// The whole page.
    #[must_use]
    pub fn html(&self) -> String {
        let (mut head, mut foot) = (String::new(), String::new());
        match self.script {
            Script::None => {}
            Script::Inline(code) => foot = format!("<script type=\"module\">\n{code}</script>\n"),
            Script::Files { plain, modules } => {
                head.extend(plain.iter().map(|f| format!("<script src=\"{f}\" defer></script>\n")));
                let module = |f| format!("<script type=\"module\" src=\"{f}\"></script>\n");
                head.extend(modules.iter().map(module));
            }
        }
        base::text::plain_page(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"mithras {version}\">\n<title>{title}</title>\n\
             <style>\n{STYLE}{style}</style>\n{head}</head>\n<body>\n{body}{foot}</body>\n</html>\n",
            version = env!("CARGO_PKG_VERSION"),
            title = escape(self.title),
            style = self.style,
            body = self.body,
        ))
    }
}

/// Text for HTML, in content and in attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_file_with_the_common_style() {
        let page = Page { title: "a <b>", style: "p{}", body: "<p>c</p>\n", script: Script::None };
        let html = page.html();
        assert!(html.contains("<title>a &lt;b&gt;</title>") && html.contains(STYLE));
        assert!(!html.contains("<script") && !html.contains("<link"));
        let script = Script::Files { plain: &["a.js"], modules: &["b.js"] };
        let html = Page { script, ..page }.html();
        assert!(html.contains("src=\"a.js\" defer") && html.contains("module\" src=\"b.js\""));
    }

    /// HTML and XML have no control characters: readers stop at them, or show them as other text.
    #[test]
    fn a_name_with_control_characters_is_shown_as_text() {
        let (title, body) = ("a\u{1b}[2J", "<p>\u{202e}b\tc</p>\n");
        let html = Page { title, style: "", body, script: Script::None }.html();
        assert!(html.contains("<title>a\\u{1b}[2J</title>"), "{html}");
        assert!(html.contains("<p>\\u{202e}b\tc</p>\n"), "{html}");
    }

    /// A page that prints its dark colours wastes ink and cannot be read.
    #[test]
    fn dark_colours_are_for_screens_alone() {
        for (at, _) in STYLE.match_indices("prefers-color-scheme: dark") {
            assert!(STYLE[..at].ends_with("@media screen and ("));
        }
        assert!(STYLE.contains("@media print"));
    }
}
