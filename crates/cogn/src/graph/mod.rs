//! The composition of a module as a graph, and one file per output format. Modules are neither searched nor
//! validated here.

mod dot;
mod mermaid;
mod model;
mod tree;

pub(crate) use dot::dot;
pub(crate) use mermaid::mermaid;
pub(crate) use model::{CompositionGraph, Edge};
pub(crate) use tree::tree;
