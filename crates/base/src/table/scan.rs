//! Cells of delimited text, strictly: a quotation mark that is never closed is an error, not a
//! reason to take the rest of the file for one cell.

/// A record that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bad {
    /// Where it begins, from 1.
    pub line: u64,
    pub reason: String,
}

/// Where reading has come to.
#[derive(Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Of `at`, from 1.
    line: u64,
    delimiter: u8,
    /// Whether a blank follows a delimiter of the record that was read last.
    spaced: bool,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str, line: u64, delimiter: u8) -> Self {
        Self { text, at: 0, line, delimiter, spaced: false }
    }

    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Whether a blank follows a delimiter, outside of quotation marks, of the record that was read last.
    pub fn is_spaced(&self) -> bool {
        self.spaced
    }

    pub fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Skips the end of a line at `at`; `None` if no line ends there.
    fn line_end(&self, at: usize) -> Option<usize> {
        match (self.byte(at)?, self.byte(at + 1)) {
            (b'\r', Some(b'\n')) => Some(at + 2),
            (b'\r' | b'\n', _) => Some(at + 1),
            _ => None,
        }
    }

    /// The position after blanks. A tab that separates cells does not count as a blank.
    fn behind_blanks(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b @ (b' ' | b'\t')) if b != self.delimiter) {
            at += 1;
        }
        at
    }

    fn ends_cell(&self, at: usize) -> bool {
        self.byte(at).is_none_or(|b| b == self.delimiter || b == b'\n' || b == b'\r')
    }

    /// The next line's text when it begins with `mark`, which is then passed.
    pub fn comment(&mut self, mark: u8) -> Option<&'a str> {
        if self.byte(self.at) != Some(mark) {
            return None;
        }
        let rest = &self.text[self.at..];
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        self.at += length;
        if let Some(next) = self.line_end(self.at) {
            self.at = next;
            self.line += 1;
        }
        Some(&rest[..length])
    }

    /// Passes lines without anything.
    pub fn skip_empty(&mut self) {
        while let Some(next) = self.line_end(self.at) {
            self.at = next;
            self.line += 1;
        }
    }

    /// The next record: hands its cells, without blanks around them, to `cell`, each with whether it is in quotation
    /// marks, and gives the line that it begins on. `None` at the end of the text. Empty lines are passed.
    pub fn record(&mut self, mut cell: impl FnMut(&str, bool)) -> Result<Option<u64>, Bad> {
        self.skip_empty();
        if self.at >= self.text.len() {
            return Ok(None);
        }
        let begin = self.line;
        let first = self.at;
        self.spaced = false;
        loop {
            let start = self.behind_blanks(self.at);
            self.spaced |= self.at > first && start > self.at;
            let quoted = match self.byte(start) {
                Some(b'"') => self.quoted(start)?,
                _ => None,
            };
            if let Some((text, end)) = quoted {
                cell(text.trim(), true);
                self.at = end;
            } else {
                let end = (self.at..).find(|&i| self.ends_cell(i)).unwrap_or(self.text.len());
                cell(self.text[self.at..end].trim(), false);
                self.at = end;
            }
            if self.byte(self.at) == Some(self.delimiter) {
                self.at += 1;
                continue;
            }
            if let Some(next) = self.line_end(self.at) {
                self.at = next;
                self.line += 1;
            }
            return Ok(Some(begin));
        }
    }

    /// A cell whose quotation mark is at `start`, and where it ends. In tab-separated text many
    /// programs write quotation marks as they are: one that is not closed before the next tab is
    /// text there (`None`).
    fn quoted(&mut self, start: usize) -> Result<Option<(String, usize)>, Bad> {
        let tabs = self.delimiter == b'\t';
        let (mut text, mut at, mut lines) = (String::new(), start + 1, 0);
        loop {
            let rest = &self.text[at..];
            let stop = |b: &u8| *b == b'"' || (tabs && *b == b'\t');
            let Some(length) = rest.bytes().position(|b| stop(&b)) else {
                return if tabs { Ok(None) } else { Err(self.unclosed(start)) };
            };
            text += &rest[..length];
            lines += line_ends(&rest.as_bytes()[..length]);
            at += length;
            if self.byte(at) == Some(b'\t') {
                return Ok(None);
            }
            if self.byte(at + 1) == Some(b'"') {
                text.push('"');
                at += 2;
                continue;
            }
            let end = self.behind_blanks(at + 1);
            if self.ends_cell(end) {
                self.line += lines;
                return Ok(Some((text, end)));
            }
            if tabs {
                return Ok(None);
            }
            let found = self.text[end..].chars().next().unwrap_or_default();
            return Err(Bad {
                line: self.line,
                reason: format!(
                    "a cell in quotation marks ends in line {} and `{found}` follows; close the \
                     mark before the `{}`, and write a quotation mark within such a cell twice",
                    self.line + lines,
                    char::from(self.delimiter)
                ),
            });
        }
    }

    fn unclosed(&self, start: usize) -> Bad {
        let cell: String = self.text[start..].chars().take_while(|c| !c.is_control()).collect();
        let short: String = cell.chars().take(30).collect();
        let dots = if short.len() < cell.len() { "..." } else { "" };
        Bad {
            line: self.line,
            reason: format!(
                "the quotation mark of the cell `{short}{dots}` is never closed, so that every row \
                 after it would be lost; close it or remove it"
            ),
        }
    }
}

/// Ends of lines within text.
fn line_ends(text: &[u8]) -> u64 {
    let mut ends = 0;
    for (i, b) in text.iter().enumerate() {
        ends += u64::from(*b == b'\n' || (*b == b'\r' && text.get(i + 1) != Some(&b'\n')));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, delimiter: u8) -> Result<Vec<(u64, Vec<String>)>, Bad> {
        let mut scanner = Scanner::new(text, 1, delimiter);
        let mut rows = Vec::new();
        loop {
            let mut row = Vec::new();
            match scanner.record(|c, _| row.push(c.to_owned()))? {
                Some(line) => rows.push((line, row)),
                None => return Ok(rows),
            }
        }
    }

    fn rows(text: &str, delimiter: u8) -> Vec<String> {
        let all = all(text, delimiter).unwrap();
        all.into_iter().map(|(line, row)| format!("{line}:{}", row.join("|"))).collect()
    }

    #[test]
    fn lines_are_counted_whatever_ends_them() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("a,b{end}{end}1,\"x{end}y\"{end} 2 ,\"\"{end}");
            let [a, b, c] = &all(&text, b',').unwrap()[..] else { panic!("{text:?}") };
            assert_eq!((a.0, b.0, c.0), (1, 3, 5), "{text:?}");
            assert_eq!(b.1, ["1".to_owned(), format!("x{end}y")]);
            assert_eq!(c.1, ["2", ""]);
        }
        assert_eq!(rows("a,b,", b','), ["1:a|b|"]);
    }

    #[test]
    fn quotation_marks() {
        assert_eq!(
            rows("\"a \"\"b\"\", c\" , \"d\"\n5' 10\",x", b','),
            ["1:a \"b\", c|d", "2:5' 10\"|x"]
        );
        let open = all("a,b\n1,\"x\n2,y\n", b',').unwrap_err();
        assert_eq!(open.line, 2);
        assert!(open.reason.contains("`\"x`") && open.reason.contains("never closed"), "{open:?}");
        let after = all("a,b\n1,\"near\n2,x,\"ok\"\n", b',').unwrap_err();
        assert!(after.reason.contains("ends in line 3 and `o` follows"), "{after:?}");
    }

    #[test]
    fn tabs_leave_open_marks_as_text() {
        let text = "1\t\"near edge\n2\tok\n\"3\"\t\"a\nb\"\n4\t\"x\" y\n5\t\"near\tz";
        let expected = ["1:1|\"near edge", "2:2|ok", "3:3|a\nb", "5:4|\"x\" y", "6:5|\"near|z"];
        assert_eq!(rows(text, b'\t'), expected);
    }
}
