//! `cogn compose`: the composition of a module, with all its dependencies, as a graph.

use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};
use module::compose::build;

use crate::exit::Exit;
use crate::graph::{self, CompositionGraph};
use crate::modules::{Library, Search};
use crate::output::Output;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Compose {
    /// The module: a name or a folder.
    module: String,
    /// Draw the graph (default).
    #[arg(long)]
    graph: bool,
    /// The output format; --json is the same as --format json.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<GraphFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// A tree for a terminal.
    Tree,
    /// A flowchart for Markdown pages.
    Mermaid,
    /// A graph for Graphviz.
    Dot,
    /// JSON.
    Json,
}

impl Compose {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let found = search.find(&self.module)?;
        let root = Arc::new(wiring::load_module(&found.path)?);
        let library = Library::around(search, &found.path);
        let graph = build(&root, &|name| library.find(name));
        let drawing = CompositionGraph::of(&graph);
        match self.format.unwrap_or(if output.json {
            GraphFormat::Json
        } else {
            GraphFormat::Tree
        }) {
            GraphFormat::Tree => output.line(graph::tree(&drawing).trim_end())?,
            GraphFormat::Mermaid => output.line(graph::mermaid(&drawing).trim_end())?,
            GraphFormat::Dot => output.line(graph::dot(&drawing).trim_end())?,
            GraphFormat::Json => output.json(&drawing)?,
        }
        Ok(if drawing.errors.is_empty() {
            Exit::Success
        } else {
            Exit::Failure
        })
    }
}
