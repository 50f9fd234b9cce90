//! `cogn compose`: what a module is made of, followed to the end, as a picture.

use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};
use module::compose::build;

use crate::graph::{self, CompositionGraph};
use crate::exit::Exit;
use crate::modules::{Library, Search};
use crate::output::Output;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct Compose {
    /// The module: a name or the path of a folder.
    module: String,
    /// Draw the graph; this is what the command does anyway.
    #[arg(long)]
    graph: bool,
    /// How it is drawn; --json is short for json.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<GraphFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// Lines for a terminal.
    Tree,
    /// A flowchart for Markdown pages.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// For machines.
    Json,
}

impl Compose {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let found = search.find(&self.module)?;
        let root = Arc::new(wiring::load_module(&found.path)?);
        let library = Library::around(search, &found.path);
        let graph = build(&root, &|name| library.find(name));
        let drawing = CompositionGraph::of(&graph);
        match self
            .format
            .unwrap_or(if output.json { GraphFormat::Json } else { GraphFormat::Tree })
        {
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
