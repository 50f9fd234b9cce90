//! The model list of a server: requested by a back-end check, and once by a back-end without a configured
//! model. If the server has exactly one model, it is used; with several, one must be configured or
//! requested.

use ir::{Error, ErrorKind, Phase};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::HttpInner;
use super::body::collect;
use super::transport_error;
use crate::limits::{ERROR_BYTES_MAX, MODELS_BYTES_MAX, MODELS_SHOWN_MAX};

pub(super) async fn list(instance: &HttpInner) -> Result<Vec<String>, Error> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    let url = format!("{}{}", options.base_url.trim_end_matches('/'), vendor.models.path);
    let call = instance.client.get(&url, instance.headers()?);
    let head_timeout = options.timeouts.first_byte.min(options.timeouts.total);
    let deadline = Instant::now() + options.timeouts.total;
    let response = match timeout(head_timeout, call).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            return Err(transport_error::idle_timeout(
                Phase::BeforeFirstByte,
                head_timeout,
            ));
        }
    };
    let status = response.status;
    let good = status == 200;
    let limit = if good { MODELS_BYTES_MAX } else { ERROR_BYTES_MAX };
    let body = collect(response, limit, options.timeouts.idle, deadline).await;
    if !good {
        let body = body.unwrap_or_default();
        return Err(wire::error_body::decode(vendor.dialect, status, None, &body));
    }
    let unreadable = || Error::invalid_response(Phase::BeforeFirstByte, "the list of models cannot be read");
    let answer: Value = serde_json::from_slice(&body?).map_err(|_| unreadable())?;
    let items = answer[vendor.models.list].as_array().ok_or_else(unreadable)?;
    let names = items.iter().filter_map(|item| item[vendor.models.name].as_str());
    let plain = |name: &str| String::from(name.strip_prefix("models/").unwrap_or(name));
    Ok(names.map(plain).collect())
}

/// The model for a request that names none.
pub(super) async fn sole_model(instance: &HttpInner) -> Result<&str, Error> {
    let name = &instance.options.name;
    let found = instance.only_model.get_or_try_init(|| async {
        let mut models = list(instance).await?;
        match (models.len(), models.pop()) {
            (1, Some(model)) => Ok(model),
            (count, last) => {
                models.extend(last);
                let shown: Vec<_> = models.iter().take(MODELS_SHOWN_MAX).map(String::as_str).collect();
                let message = format!(
                    "no model was named, and back-end {name} has {count}: {}",
                    shown.join(", ")
                );
                Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message))
            }
        }
    });
    found.await.map(String::as_str)
}
