//! `cargo x`: the few commands that build, check and measure this repository.

#[cfg(test)]
mod tidy;

fn main() {}
