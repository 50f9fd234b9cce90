//! The model list of a server: requested by a back-end check, and once by a back-end without a configured
//! model. If the server has exactly one model, it is used; with several, one must be configured or
//! requested. The lack of a model is a fault of the request and never of the back-end.

use ir::error::Fault;
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
        let mut models = list(instance).await.map_err(|error| unlisted(name, error))?;
        match (models.len(), models.pop()) {
            (1, Some(model)) => Ok(model),
            (0, _) => Err(model_required(&format!("back-end {name} lists none"))),
            (count, last) => {
                models.extend(last);
                let mut shown = models;
                shown.truncate(MODELS_SHOWN_MAX);
                if shown.len() < count {
                    shown.push(String::from("..."));
                }
                let shown = shown.join(", ");
                Err(model_required(&format!("back-end {name} has {count}: {shown}")))
            }
        }
    });
    found.await.map(String::as_str)
}

/// A server whose list cannot be read may still answer requests that name a model. Only a server that does
/// not respond at all has failed.
fn unlisted(name: &str, error: Error) -> Error {
    match error.kind.fault() {
        Fault::BackEnd if error.status.is_some() || error.kind == ErrorKind::InvalidResponse => Error {
            kind: ErrorKind::NotEnabled,
            message: format!(
                "the models of back-end {name} cannot be listed: {}",
                error.message
            ),
            status: None,
            ..error
        },
        Fault::Request => model_required(&format!("back-end {name} lists none: {}", error.message)),
        Fault::BackEnd | Fault::Credential | Fault::None => error,
    }
}

fn model_required(models: &str) -> Error {
    let message = format!(
        "no model was named, and {models}; name one in `model` (`_options.model` for a module), or set `model` \
         of the back-end"
    );
    Error::new(ErrorKind::ModelRequired, Phase::BeforeSend, message)
}
