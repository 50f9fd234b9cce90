//! A text split into the parts excluded from editing (byte order mark, carriage returns) and the edited body,
//! and joined again without loss. Mixed line endings are left unchanged.

/// A text whose body has `\n` line endings, unless the original mixes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    bom: bool,
    crlf: bool,
    pub(super) body: String,
}

const BOM: char = '\u{feff}';

impl Text {
    pub(super) fn split(whole: &str) -> Self {
        let (bom, rest) = match whole.strip_prefix(BOM) {
            Some(rest) => (true, rest),
            None => (false, whole),
        };
        let returns = rest.matches("\r\n").count();
        let crlf =
            returns > 0 && returns == rest.matches('\n').count() && returns == rest.matches('\r').count();
        let body = if crlf {
            rest.replace("\r\n", "\n")
        } else {
            String::from(rest)
        };
        Self { bom, crlf, body }
    }

    /// A new body with the original byte order mark and line endings.
    pub(super) fn join(&self, body: &str) -> String {
        let body = if self.crlf {
            body.replace('\n', "\r\n")
        } else {
            String::from(body)
        };
        if self.bom { format!("{BOM}{body}") } else { body }
    }
}

/// The line of a byte offset, counted from 1.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.bytes().filter(|&byte| byte == b'\n').count() + 1
}

/// The offset of the end of the line that contains `offset`, without its line break.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |at| offset + at)
}

/// The offset of the start of the line that contains `offset`.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.rfind('\n').map_or(0, |at| at + 1)
}

/// `text` with `range` replaced.
pub(super) fn splice(text: &str, range: std::ops::Range<usize>, with: &str) -> String {
    let head = text.get(..range.start).unwrap_or_default();
    let tail = text.get(range.end..).unwrap_or_default();
    format!("{head}{with}{tail}")
}
