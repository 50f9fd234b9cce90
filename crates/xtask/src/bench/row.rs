//! One measured figure and its limit.

/// `measured / baseline`, which must not exceed `limit`; a figure that is only recorded has an infinite limit.
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
        let (limit, verdict) = match row.limit.is_finite() {
            true if row.holds() => (format!("{:.3}", row.limit), "holds"),
            true => (format!("{:.3}", row.limit), "MISSED"),
            false => (String::from("none"), "recorded"),
        };
        println!(
            "| {} | {:.3} {unit} | {} | {:.3} {unit} | {:.3} | {limit} | {verdict} |",
            row.name,
            row.measured,
            row.against,
            row.baseline,
            row.ratio(),
            unit = row.unit,
        );
    }
}
