//! Bytes from an address that a caller named. Whoever implements this guards it: no caller may make it
//! reach into the network that it stands in.

use std::fmt;

use async_trait::async_trait;
use tokio::fs::File;

/// What came along with the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// As the server declares it; not to be believed.
    pub content_type: Option<String>,
    pub size_bytes: u64,
}

/// Which hosts may be asked. Addresses that are not public are reached under neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    #[default]
    Public,
    /// These names and, where one begins with `*.`, names below it.
    Listed(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address, or one that it led to, must not be reached.
    #[error("the address may not be reached: {0}")]
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
    #[error("the server sent {0}")]
    ContentType(String),
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
}

impl FetchError {
    /// The word under `details.reason`.
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
    /// Writes what stands at `url` to `out`, at most `bytes_max` of it.
    async fn fetch(
        &self,
        url: &str,
        hosts: &Hosts,
        bytes_max: u64,
        out: &mut File,
    ) -> Result<Fetched, FetchError>;
}

impl Hosts {
    /// Whether the name, in lower case and without a dot at its end, is one of them.
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
