//! The proxy: from the configuration, otherwise from the conventional environment variables. Those may
//! contain a password, so they are not part of the tree that `cogn config show` prints.

use std::env;

use secrecy::SecretString;

use super::settings::Settings;
use super::{resolve, settings::Network};

/// The proxy settings, or why they cannot be used.
pub(crate) fn proxy(settings: &Settings) -> Result<Option<providers::Proxy>, String> {
    let Network {
        proxy,
        proxy_credential,
        no_proxy,
        ..
    } = &settings.network;
    let secret = |name: &String| -> Result<SecretString, String> {
        let known = settings.credential(name);
        resolve(known.ok_or_else(|| format!("unknown credential `{name}`"))?)
    };
    let mut proxy = match proxy.as_deref() {
        Some("off") => return Ok(None),
        Some(url) => providers::Proxy {
            http: Some(String::from(url)),
            https: Some(String::from(url)),
            ..providers::Proxy::default()
        },
        None => from_environment(),
    };
    proxy.credential = proxy_credential.as_ref().map(secret).transpose()?;
    if !no_proxy.is_empty() {
        proxy.except = no_proxy.join(",");
    }
    Ok((proxy.http.is_some() || proxy.https.is_some()).then_some(proxy))
}

fn from_environment() -> providers::Proxy {
    let first = |names: &[&str]| {
        let mut values = names
            .iter()
            .filter_map(|name| env::var_os(name)?.into_string().ok());
        values.find(|value| !value.trim().is_empty())
    };
    providers::Proxy {
        // Ignored in CGI programs, where the request header `Proxy` sets HTTP_PROXY.
        http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
            .filter(|_| env::var_os("REQUEST_METHOD").is_none()),
        https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
        except: first(&["no_proxy", "NO_PROXY"]).unwrap_or_default(),
        credential: None,
    }
}
