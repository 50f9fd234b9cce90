//! Fetches bytes from a URL of a caller. Implementations must not let a caller reach the network that the
//! server is in.

use std::fmt;

use async_trait::async_trait;
use tokio::fs::File;

/// Metadata of the fetched bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// As the server declares it; untrusted.
    pub content_type: Option<String>,
    pub size_bytes: u64,
}

/// Which hosts may be fetched from. Neither variant permits addresses that are not public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    #[default]
    Public,
    /// These names and, for an entry with the prefix `*.`, names below it.
    Listed(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address, or the target of a redirect, is not allowed.
    #[error("the address is not allowed: {0}")]
    Blocked(String),
    #[error("the server answered {0}")]
    Status(u16),
    #[error("the server took longer than {0} ms")]
    Timeout(u64),
    #[error("more than {0} redirects")]
    TooManyRedirects(usize),
    /// More bytes than allowed.
    #[error("more than {allowed} bytes")]
    TooLarge { allowed: u64, actual: u64 },
    /// A page where media was expected.
    #[error("unexpected content type {0}")]
    ContentType(String),
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
}

impl FetchError {
    /// The value of `details.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Blocked(_) => "blocked_address",
            Self::Status(_) => "status",
            Self::Timeout(_) => "timeout",
            Self::TooManyRedirects(_) => "too_many_redirects",
            Self::TooLarge { .. } => "too_large",
            Self::ContentType(_) => "content_type",
            Self::Unreachable(_) => "unreachable",
        }
    }
}

#[async_trait]
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Writes the content of `url` to `out`, at most `bytes_max` bytes.
    async fn fetch(
        &self,
        url: &str,
        hosts: &Hosts,
        bytes_max: u64,
        out: &mut File,
    ) -> Result<Fetched, FetchError>;

    /// Whether `url` may be fetched by another process on behalf of the caller, such as a back-end in this network. A
    /// name that cannot be resolved here may be reachable there, so only a refusal is an error.
    async fn check(&self, url: &str, hosts: &Hosts) -> Result<(), FetchError>;
}

impl Hosts {
    /// Whether `host`, in lower case and without a trailing dot, is allowed.
    pub fn allow(&self, host: &str) -> bool {
        let Self::Listed(list) = self else { return true };
        list.iter().any(|entry| {
            let entry = entry.to_ascii_lowercase();
            match entry.strip_prefix("*.") {
                Some(parent) => host
                    .strip_suffix(parent)
                    .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                None => host == entry,
            }
        })
    }
}
