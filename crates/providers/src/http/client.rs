//! The one HTTP client of a process: connections are kept and shared by all back-ends.

use std::time::Duration;

use reqwest::redirect::Policy;

#[derive(Clone, Debug)]
pub struct Client(pub(super) reqwest::Client);

/// The client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client")]
pub struct ClientError(#[from] reqwest::Error);

impl Client {
    pub fn new(connect_timeout: Duration) -> Result<Self, ClientError> {
        let client = reqwest::Client::builder()
            .connect_timeout(connect_timeout)
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("cogn/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }
}
