//! All limits of this crate.

/// Maximum length of a key name.
pub const NAME_BYTES_MAX: usize = 200;
/// Maximum number of entries of an allow-list.
pub const ALLOWED_MAX: usize = 1_000;
/// Maximum length of a tenant name.
pub const TENANT_BYTES_MAX: usize = 200;
