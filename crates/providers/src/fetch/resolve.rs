//! Name resolution, once per hop. A trait, so that tests can substitute a malicious resolver.

use std::fmt;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

#[async_trait]
pub(super) trait Resolve: Send + Sync + fmt::Debug {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system resolver.
#[derive(Debug)]
pub(super) struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|socket| socket.ip()).collect())
    }
}
