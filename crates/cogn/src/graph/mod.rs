//! A composition as a picture: the facts about it, and one file for each way of drawing them. Nothing here
//! finds or judges modules.

mod dot;
mod model;
mod mermaid;
mod tree;

pub(crate) use dot::dot;
pub(crate) use model::{CompositionGraph, Edge};
pub(crate) use mermaid::mermaid;
pub(crate) use tree::tree;
