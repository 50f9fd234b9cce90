//! Counts the steps of parsers, for the tests that their work grows with the size of the input and not faster.
//! A step is a byte that is read or copied, or an entry that is visited. Compiles to nothing outside of tests.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline]
pub(crate) fn count_steps(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
    #[cfg(not(test))]
    let _ = steps;
}

/// Runs `work` on inputs of this size and of twice the size. The steps grow by at most 2.2, and there are at
/// least as many as `size`: a parser whose steps are not counted would pass.
#[cfg(test)]
pub(crate) fn assert_linear(size: usize, work: impl Fn(usize)) {
    let during = |size: usize| {
        STEPS.set(0);
        work(size);
        STEPS.get()
    };
    let (few, many) = (during(size), during(2 * size));
    assert!(few >= size, "{few} steps are counted for an input of size {size}");
    assert!(many * 10 <= few * 22, "{few} steps grow to {many}");
}
