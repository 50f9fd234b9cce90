//! Every bound of this crate, by name.

/// Blocks of one answer. More is a runaway provider, not an answer.
pub const BLOCKS_MAX: usize = 4096;

/// Text, arguments and data of one folded answer together.
pub const FOLD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Digits of an amount of money, sign and point apart.
pub const DECIMAL_DIGITS_MAX: usize = 38;

/// Changes that one request may ask to be made to the body for a back-end.
pub const PATCHES_MAX: usize = 64;

/// All of these together, as JSON.
pub const PATCHES_BYTES_MAX: usize = 64 * 1024;
