//! The work of a parser that this crate does not instrument, measured as the bytes that the thread allocates.
//! Searches without copies are not counted.

/// `work` on inputs of this size and of twice the size: the bytes grow by at most 2.2.
pub(crate) fn assert_linear<T>(size: usize, input: impl Fn(usize) -> T, work: impl Fn(T)) {
    let allocated = |size: usize| {
        let input = input(size);
        allocation_counter::measure(|| work(input)).bytes_total
    };
    let (few, many) = (allocated(size), allocated(2 * size));
    assert!(few > 0, "no allocated bytes are counted");
    assert!(many * 10 <= few * 22, "{few} allocated bytes grow to {many}");
}
