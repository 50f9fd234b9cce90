//! Proxies: which URLs use one, its address and its credentials.

use hyper_util::client::proxy::matcher::Matcher;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::ClientError;

/// Proxy URLs with the schemes `http`, `https`, `socks5` and `socks5h`.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    /// For `http` URLs.
    pub http: Option<String>,
    /// For `https` URLs.
    pub https: Option<String>,
    /// Hosts, domains and addresses that are reached directly, separated by commas.
    pub except: String,
    /// `user:password`.
    pub credential: Option<SecretString>,
}

pub(super) fn matcher(options: Option<&Proxy>) -> Result<Matcher, ClientError> {
    let Some(proxy) = options else {
        return Ok(Matcher::builder().build());
    };
    let url = |url: &Option<String>| match url {
        Some(url) => proxy_url(url, proxy.credential.as_ref()),
        None => Ok(String::new()),
    };
    let builder = Matcher::builder()
        .http(url(&proxy.http)?)
        .https(url(&proxy.https)?);
    Ok(builder.no(proxy.except.as_str()).build())
}

/// A proxy URL with credentials.
fn proxy_url(text: &str, credential: Option<&SecretString>) -> Result<String, ClientError> {
    let unusable = |reason: &dyn std::fmt::Display| ClientError::Proxy(reason.to_string());
    let url = match text.contains("://") {
        true => Url::parse(text),
        false => Url::parse(&format!("http://{text}")),
    };
    let mut url = url.map_err(|error| unusable(&error))?;
    let is_socks = match url.scheme() {
        "http" | "https" => false,
        "socks5" | "socks5h" => true,
        other => return Err(unusable(&format_args!("its scheme is `{other}`"))),
    };
    if !url.has_host() {
        return Err(unusable(&"its URL has no host"));
    }
    // The port that is registered for SOCKS.
    if is_socks && url.port().is_none() {
        url.set_port(Some(1080)).ok();
    }
    if let Some(credential) = credential {
        let (user, password) = credential.expose_secret().split_once(':').unwrap_or_default();
        // These setters do not encode `%`.
        let literal = |text: &str| text.replace('%', "%25");
        url.set_username(&literal(user)).ok();
        url.set_password(Some(&literal(password))).ok();
    }
    Ok(url.into())
}
