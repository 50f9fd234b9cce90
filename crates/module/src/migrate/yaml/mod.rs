//! Edits of YAML text that change no other byte. A lossless parser yields the byte ranges of keys and values;
//! the text is then spliced at these offsets, which preserves comments, order and spacing. An edit without
//! a safe position (an alias, a tag, a merged key) is refused.

mod render;

use std::ops::Range;

use serde_json::Value;
use yaml_edit::{Mapping, MappingEntry, Sequence, YamlFile, YamlNode};

use super::edit::{Edit, InsertAt, Path};
use super::text::{line_end, line_start, splice};
use render::flow;

/// Applies the edit to a text. `None` if its position is not found or not safe.
pub(super) fn apply(text: &str, edit: &Edit) -> Option<String> {
    let root = root(text)?;
    match edit {
        Edit::Insert {
            at,
            key,
            value,
            place,
            comment,
        } => {
            let mapping = find(&root, at)?;
            let depth = Depth::of(at);
            if mapping.is_flow_style() {
                return insert_flow(
                    text,
                    &mapping,
                    &format!("{}: {}", render::key(key), flow(value)),
                    place,
                );
            }
            let indent = indent(text, &mapping)?;
            let mut lines = String::new();
            if let Some(comment) = comment {
                lines.push_str(&format!("{indent}# {comment}\n"));
            }
            lines.push_str(&render::block(key, value, &indent));
            insert_block(text, &mapping, &lines, place, depth)
        }
        Edit::Rename { at, key, to } => {
            let entry = find(&root, at)?.find_entry_by_key(key.as_str())?;
            Some(splice(text, range(&entry.key_node()?), &render::key(to)))
        }
        Edit::Set { at, key, value } => {
            let entry = find(&root, at)?.find_entry_by_key(key.as_str())?;
            set(text, &entry, &flow(value))
        }
        Edit::Remove { at, key } => remove(text, &find(&root, at)?, key),
        Edit::Push { at, value } => {
            let (last, parents) = at.split_last()?;
            let entry = find(&root, parents)?.find_entry_by_key(last.as_str())?;
            push(text, entry.value_node()?.as_sequence()?, &flow(value))
        }
    }
}

/// The offset of a key, for line numbers.
pub(super) fn offset(text: &str, at: &[String]) -> Option<usize> {
    let (last, parents) = at.split_last()?;
    let entry = find(&root(text)?, parents)?.find_entry_by_key(last.as_str())?;
    Some(range(&entry.key_node()?).start)
}

/// A key and its value as lines of a new document.
pub(crate) fn block(key: &str, value: &Value) -> String {
    render::block(key, value, "")
}

/// A blank line between sections belongs at the top level only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Root,
    Nested,
}

impl Depth {
    fn of(at: &Path) -> Self {
        if at.is_empty() { Self::Root } else { Self::Nested }
    }
}

fn root(text: &str) -> Option<Mapping> {
    let parsed = YamlFile::parse(text);
    if parsed.has_errors() {
        return None;
    }
    parsed.tree().document()?.as_mapping()
}

fn find(root: &Mapping, at: &[String]) -> Option<Mapping> {
    let mut mapping = root.clone();
    for key in at {
        let value = mapping.find_entry_by_key(key.as_str())?.value_node()?;
        mapping = value.as_mapping()?.clone();
    }
    Some(mapping)
}

fn range(node: &YamlNode) -> Range<usize> {
    let range = node.byte_range();
    range.start as usize..range.end as usize
}

/// The end of a node's text, without trailing blank lines and comments that the parser may include.
fn end(text: &str, node: &YamlNode) -> usize {
    let inner = match node {
        YamlNode::Mapping(mapping) if !mapping.is_flow_style() => {
            mapping.entries().last().and_then(|entry| entry_end(text, &entry))
        }
        YamlNode::Sequence(sequence) if !sequence.is_flow_style() => {
            sequence.values().last().map(|item| end(text, &item))
        }
        YamlNode::Scalar(scalar) if scalar.is_block() && keeps_blank_lines(text, node) => {
            Some(range(node).end)
        }
        _ => None,
    };
    inner.unwrap_or_else(|| trimmed_end(text, range(node)))
}

/// `|+` and `>+`: trailing blank lines are part of the value.
fn keeps_blank_lines(text: &str, node: &YamlNode) -> bool {
    let header = text.get(range(node)).and_then(|text| text.lines().next());
    header.is_some_and(|header| header.contains('+'))
}

fn entry_end(text: &str, entry: &MappingEntry) -> Option<usize> {
    let key = trimmed_end(text, range(&entry.key_node()?));
    let colon = colon(text, key)?;
    match entry.value_node() {
        Some(value) => Some(end(text, &value).max(colon)),
        None => Some(colon),
    }
}

/// The offset after the colon of a key that ends at `at`.
fn colon(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    rest.get(spaces..)?.starts_with(':').then_some(at + spaces + 1)
}

fn trimmed_end(text: &str, range: Range<usize>) -> usize {
    let own = text.get(range.clone()).unwrap_or_default();
    range.start + own.trim_end().len()
}

/// The spaces in front of a block mapping's first key.
fn indent(text: &str, mapping: &Mapping) -> Option<String> {
    let first = range(&mapping.entries().next()?.key_node()?).start;
    let lead = text.get(line_start(text, first)..first)?;
    lead.chars().all(|c| c == ' ').then(|| String::from(lead))
}

fn insert_block(
    text: &str,
    mapping: &Mapping,
    lines: &str,
    place: &InsertAt,
    depth: Depth,
) -> Option<String> {
    if *place == InsertAt::First {
        let first = range(&mapping.entries().next()?.key_node()?).start;
        let start = line_start(text, first);
        return Some(splice(text, start..start, lines));
    }
    let after = match place {
        InsertAt::After(key) => mapping.find_entry_by_key(*key),
        _ => None,
    };
    if let Some(entry) = after {
        return Some(insert_lines(text, entry_end(text, &entry)?, lines));
    }
    let last = entry_end(text, &mapping.entries().last()?)?;
    match depth {
        Depth::Nested => Some(insert_lines(text, last, lines)),
        Depth::Root => Some(append(text, last, lines)),
    }
}

/// Inserts lines below the line that contains `at`.
fn insert_lines(text: &str, at: usize, lines: &str) -> String {
    // A block scalar with trailing blank lines (`|+`) ends at the start of the next line.
    if at > 0 && text.as_bytes().get(at - 1) == Some(&b'\n') {
        return splice(text, at..at, lines);
    }
    let end = line_end(text, at);
    if end == text.len() {
        return splice(text, end..end, &format!("\n{}", lines.trim_end_matches('\n')));
    }
    splice(text, end + 1..end + 1, lines)
}

/// Inserts lines at the end of the document, after trailing comments and before a document end marker.
fn append(text: &str, last: usize, lines: &str) -> String {
    // After a block scalar with trailing blank lines (`|+`), a separating blank line would become part of it.
    if last > 0 && text.as_bytes().get(last - 1) == Some(&b'\n') {
        return splice(text, last..last, lines);
    }
    let mut stop = text.len();
    let mut at = line_end(text, last);
    while at < text.len() {
        let start = at + 1;
        let line = text.get(start..line_end(text, start)).unwrap_or_default();
        if line.starts_with("...") || line.starts_with("---") {
            stop = start;
            break;
        }
        at = line_end(text, start);
    }
    let head = text.get(..stop).unwrap_or_default();
    let tail = text.get(stop..).unwrap_or_default();
    let gap = match head {
        head if head.ends_with("\n\n") => "",
        head if head.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{head}{gap}{lines}{tail}")
}

fn insert_flow(text: &str, mapping: &Mapping, entry: &str, place: &InsertAt) -> Option<String> {
    let whole = range(&YamlNode::Mapping(mapping.clone()));
    let entries: Vec<_> = mapping.entries().collect();
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Some(splice(
            text,
            whole.start..trimmed_end(text, whole),
            &format!("{{{entry}}}"),
        ));
    };
    if *place == InsertAt::First {
        let start = range(&first.key_node()?).start;
        return Some(splice(text, start..start, &format!("{entry}, ")));
    }
    let after = match place {
        InsertAt::After(key) => mapping.find_entry_by_key(*key),
        _ => None,
    };
    let at = entry_end(text, after.as_ref().unwrap_or(last))?;
    Some(splice(text, at..at, &format!(", {entry}")))
}

fn set(text: &str, entry: &MappingEntry, value: &str) -> Option<String> {
    let key_end = trimmed_end(text, range(&entry.key_node()?));
    let colon = colon(text, key_end)?;
    let Some(node) = entry.value_node() else {
        return Some(splice(text, colon..colon, &format!(" {value}")));
    };
    let stop = end(text, &node);
    let start = range(&node).start;
    if stop <= start {
        return Some(splice(text, colon..colon, &format!(" {value}")));
    }
    // A value that begins on a later line moves to the line of its key.
    if text.get(colon..start)?.contains('\n') {
        return Some(splice(text, colon..stop, &format!(" {value}")));
    }
    Some(splice(text, start..stop, value))
}

fn remove(text: &str, mapping: &Mapping, key: &str) -> Option<String> {
    let entries: Vec<_> = mapping.entries().collect();
    let index = entries.iter().position(|entry| entry.key_matches(key))?;
    let gone = entries.get(index)?;
    let start = range(&gone.key_node()?).start;
    let stop = entry_end(text, gone)?;
    if mapping.is_flow_style() {
        let before = index.checked_sub(1).and_then(|at| entries.get(at));
        return match (before, entries.get(index + 1)) {
            (_, Some(next)) => Some(splice(text, start..range(&next.key_node()?).start, "")),
            (Some(before), None) => Some(splice(text, entry_end(text, before)?..stop, "")),
            (None, None) => Some(splice(text, start..stop, "")),
        };
    }
    let from = line_start(text, start);
    if !text.get(from..start)?.trim().is_empty() {
        return None;
    }
    let to = line_end(text, stop.max(start));
    Some(splice(text, from..(to + 1).min(text.len()), ""))
}

fn push(text: &str, sequence: &Sequence, item: &str) -> Option<String> {
    let items: Vec<_> = sequence.values().collect();
    let whole = range(&YamlNode::Sequence(sequence.clone()));
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
        return Some(splice(
            text,
            whole.start..trimmed_end(text, whole),
            &format!("[{item}]"),
        ));
    };
    let at = end(text, last);
    if sequence.is_flow_style() {
        return Some(splice(text, at..at, &format!(", {item}")));
    }
    let start = range(first).start;
    let lead = text.get(line_start(text, start)..start)?;
    let dash = lead.rfind('-')?;
    let indent = lead.get(..dash)?;
    if !indent.chars().all(|c| c == ' ') {
        return None;
    }
    Some(insert_lines(text, at, &format!("{indent}- {item}\n")))
}
