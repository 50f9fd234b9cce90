//! Output for Graphviz.

use super::CompositionGraph;

pub(crate) fn dot(drawing: &CompositionGraph) -> String {
    let mut text = String::from("digraph composition {\n  node [shape=box];\n");
    for knot in &drawing.modules {
        let label = format!("{}\n{}", knot.name, knot.version);
        text.push_str(&format!("  {} [label={}];\n", quoted(&knot.name), quoted(&label)));
    }
    for knot in &drawing.modules {
        for edge in &knot.links {
            let target = edge.taken.as_deref().unwrap_or(&edge.name);
            if edge.taken.is_none() {
                text.push_str(&format!("  {} [style=dashed, color=red];\n", quoted(target)));
            }
            let notes: Vec<String> = edge.wanted.iter().cloned().chain(edge.notes()).collect();
            let style = if edge.optional { ", style=dashed" } else { "" };
            text.push_str(&format!(
                "  {} -> {} [label={}{style}];\n",
                quoted(&knot.name),
                quoted(target),
                quoted(&notes.join("\n"))
            ));
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}
