//! Output as a tree for a terminal. The dependencies of a module are printed once, so that the output is not
//! larger than the graph.

use std::collections::BTreeSet;

use super::{CompositionGraph, Edge};

pub(crate) fn tree(drawing: &CompositionGraph) -> String {
    let mut text = String::new();
    if let Some(root) = drawing.node(&drawing.root) {
        let pattern = match root.links.is_empty() {
            true => "no dependencies",
            false => root.pattern,
        };
        text.push_str(&format!("{} {}  {pattern}\n", root.name, root.version));
    }
    let mut way = vec![drawing.root.as_str()];
    branches(
        drawing,
        &drawing.root,
        "",
        &mut way,
        &mut BTreeSet::new(),
        &mut text,
    );
    for problem in &drawing.errors {
        text.push_str(&format!("{} {}\n", problem.code, problem.message));
    }
    text
}

fn branches<'a>(
    drawing: &'a CompositionGraph,
    name: &str,
    indent: &str,
    way: &mut Vec<&'a str>,
    drawn: &mut BTreeSet<&'a str>,
    text: &mut String,
) {
    let Some(knot) = drawing.node(name) else { return };
    let count = knot.links.len();
    for (number, edge) in (1..).zip(&knot.links) {
        let (branch, next) = match number == count {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        text.push_str(&format!("{indent}{branch}{}", line(edge)));
        let inner = edge.taken.as_deref().and_then(|taken| drawing.node(taken));
        let Some(inner) = inner else {
            text.push('\n');
            continue;
        };
        if way.contains(&inner.name.as_str()) {
            text.push_str("  ↺ cycle\n");
            continue;
        }
        let is_new = drawn.insert(&inner.name);
        if !is_new && !inner.links.is_empty() {
            text.push_str("  (drawn above)\n");
            continue;
        }
        text.push('\n');
        way.push(&inner.name);
        branches(drawing, &inner.name, &format!("{indent}{next}"), way, drawn, text);
        way.pop();
    }
}

fn line(edge: &Edge) -> String {
    let mut line = match (&edge.taken, &edge.version) {
        (Some(taken), Some(version)) if *taken == edge.name => format!("{taken} {version}"),
        (Some(taken), Some(version)) => format!("{} → {taken} {version}", edge.name),
        _ => format!("{} (missing)", edge.name),
    };
    if let Some(wanted) = &edge.wanted {
        line.push_str(&format!(" ({wanted})"));
    }
    let mut notes = edge.notes();
    notes.extend(edge.absent.clone());
    if !notes.is_empty() {
        line.push_str(&format!("  {}", notes.join("; ")));
    }
    line
}
