//! The YAML block between two `---` lines at the top of a Markdown file.

use std::ops::Range;

/// Byte ranges into the file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatter {
    pub yaml: Range<usize>,
    pub body: Range<usize>,
}

/// Splits a text. `None` if it does not begin with `---` or the block is not closed.
pub fn split_front_matter(text: &str) -> Option<FrontMatter> {
    let mut lines = lines(text);
    let (_, first_end) = lines.next().filter(|(line, _)| is_fence(line))?;
    let mut start = first_end;
    for (line, end) in lines {
        if is_fence(line) {
            return Some(FrontMatter {
                yaml: first_end..start,
                body: end..text.len(),
            });
        }
        start = end;
    }
    None
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Lines with the offset of their end, line break included.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut end = 0;
    text.split_inclusive('\n').map(move |line| {
        end += line.len();
        (line, end)
    })
}
