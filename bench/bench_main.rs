//! The entry point of the ratio benchmarks. Run as a test, a benchmark is one test, which test runners list
//! before they run it. Bench targets include this file by its path.

/// Measures, unless a test runner only asks for the list of tests.
#[expect(clippy::print_stdout, reason = "the list is the result of this program")]
pub(crate) fn main(name: &str, measure: impl FnOnce()) {
    let requested = |flag: &str| std::env::args().any(|argument| argument == flag);
    match (requested("--list"), requested("--ignored")) {
        (true, true) => {}
        (true, false) => println!("{name}: test"),
        (false, _) => measure(),
    }
}
