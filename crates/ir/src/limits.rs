//! All limits of this crate.

/// Blocks of one answer.
pub const BLOCKS_MAX: usize = 4096;

/// Bytes of text, arguments and data of one folded answer.
pub const FOLD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Digits of an amount of money, without sign and decimal point.
pub const DECIMAL_DIGITS_MAX: usize = 38;

/// Patches of one request.
pub const PATCHES_MAX: usize = 64;

/// Bytes of all patches of one request, as JSON.
pub const PATCHES_BYTES_MAX: usize = 64 * 1024;

/// JSON values in one request body, message, or text that contains JSON; each takes up to 500 bytes of memory.
pub const JSON_VALUES_MAX: usize = 500_000;

/// Top-level fields of a request body that is forwarded byte for byte; a body with more is encoded again.
pub const BODY_FIELDS_MAX: usize = 256;
