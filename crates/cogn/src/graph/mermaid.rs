//! Output as a Mermaid flowchart for Markdown pages.

use super::{CompositionGraph, Edge};

pub(crate) fn mermaid(drawing: &CompositionGraph) -> String {
    let mut text = String::from("flowchart TD\n");
    for knot in &drawing.modules {
        text.push_str(&format!(
            "  {}[\"{} {}\"]\n",
            id(&knot.name),
            knot.name,
            knot.version
        ));
    }
    for knot in &drawing.modules {
        for edge in &knot.links {
            let target = edge.taken.as_deref().unwrap_or(&edge.name);
            if edge.taken.is_none() {
                text.push_str(&format!("  {}[\"{} (missing)\"]\n", id(target), edge.name));
            }
            let arrow = if edge.optional { "-.->" } else { "-->" };
            let label = label(edge);
            let label = if label.is_empty() {
                label
            } else {
                format!("|\"{label}\"|")
            };
            text.push_str(&format!("  {} {arrow}{label} {}\n", id(&knot.name), id(target)));
        }
    }
    text
}

/// Replaces hyphens, which Mermaid would parse as arrows.
fn id(name: &str) -> String {
    name.replace('-', "_")
}

fn label(edge: &Edge) -> String {
    let notes = edge.wanted.iter().cloned().chain(edge.notes());
    let label = notes.collect::<Vec<_>>().join("; ");
    label
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
}
