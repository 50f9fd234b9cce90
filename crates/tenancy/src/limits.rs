//! Every bound of this crate in one place.

/// Longest name of a key.
pub const NAME_BYTES_MAX: usize = 200;
/// Most entries of an allow-list.
pub const ALLOWED_MAX: usize = 1_000;
/// Longest name of a tenant.
pub const TENANT_BYTES_MAX: usize = 200;
