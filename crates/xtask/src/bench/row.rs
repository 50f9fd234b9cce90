//! One measured figure and its limit.

/// `measured / baseline`, which must not exceed `limit`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) measured: f64,
    pub(crate) baseline: f64,
    pub(crate) unit: &'static str,
    pub(crate) against: String,
    pub(crate) limit: f64,
}

impl Row {
    pub(crate) fn ratio(&self) -> f64 {
        self.measured / self.baseline
    }

    pub(crate) fn holds(&self) -> bool {
        self.ratio() <= self.limit
    }
}

/// A table for `docs/benchmarks.md`, headed by the machine.
#[expect(clippy::print_stdout, reason = "the table is the result of the command")]
pub(crate) fn print(machine: &str, rows: &[Row]) {
    println!("{machine}\n");
    println!("| what | measured | against | baseline | ratio | limit | |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {:.3} {unit} | {} | {:.3} {unit} | {:.3} | {:.3} | {} |",
            row.name,
            row.measured,
            row.against,
            row.baseline,
            row.ratio(),
            row.limit,
            if row.holds() { "holds" } else { "MISSED" },
            unit = row.unit,
        );
    }
}
