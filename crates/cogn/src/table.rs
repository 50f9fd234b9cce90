//! A table for people: a line of headings and aligned columns. Programs use `--json`.

use std::io;

use owo_colors::OwoColorize;

use crate::output::Output;

/// Between two columns.
const GAP: &str = "  ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    /// For numbers.
    Right,
}

#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Cells in the order of the columns.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn print(&self, output: &Output) -> io::Result<()> {
        let mut lines = self.lines().into_iter();
        if let Some(headings) = lines.next() {
            output.line(headings.bold().to_string())?;
        }
        lines.try_for_each(|line| output.line(line))
    }

    fn lines(&self) -> Vec<String> {
        let headings: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        let rows = self
            .rows
            .iter()
            .map(|row| row.iter().map(String::as_str).collect());
        let lines: Vec<Vec<&str>> = std::iter::once(headings).chain(rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let padded = |line: &Vec<&str>| {
            let cells = line.iter().zip(&widths).zip(&self.columns);
            let cells = cells.map(|((cell, width), (_, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            String::from(cells.collect::<Vec<_>>().join(GAP).trim_end())
        };
        lines.iter().map(padded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Align, Table};

    #[test]
    fn columns_are_aligned_to_the_widest_cell() {
        let mut table = Table::new([("NAME", Align::Left), ("RUNS", Align::Right)]);
        table.push(vec![String::from("größer"), String::from("7")]);
        table.push(vec![String::new(), String::from("12345")]);
        let lines = ["NAME     RUNS", "größer      7", "        12345"];
        assert_eq!(table.lines(), lines);
    }
}
