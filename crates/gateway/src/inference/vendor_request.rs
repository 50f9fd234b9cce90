//! A request of a vendor client before decoding: the model can be replaced and the extensions of this server
//! removed; all other bytes stay unchanged.

use axum::body::Bytes;
use axum::http::HeaderMap;
use ir::event::Warning;
use ir::{ChatRequest, Dialect, Map};
use serde_json::Value;
use wire::field_type;

use super::error::VendorError;
use super::extensions::RequestExtensions;
use super::unsupported_state;

#[derive(Debug)]
pub(super) struct VendorRequest {
    pub(super) dialect: Dialect,
    pub(super) extensions: RequestExtensions,
    /// Warnings for the response.
    pub(super) warnings: Vec<Warning>,
    map: Map,
    bytes: Bytes,
    /// The map differs from the bytes.
    dirty: bool,
}

impl VendorRequest {
    pub(super) fn parse(dialect: Dialect, bytes: Bytes, headers: &HeaderMap) -> Result<Self, VendorError> {
        let map = serde_json::from_slice::<Value>(&bytes)
            .map_err(|error| VendorError::new(400, "E1000", format!("the body is not JSON: {error}")))?;
        let Value::Object(mut map) = map else {
            return Err(VendorError::invalid("the body is not a JSON object"));
        };
        let fields = map.len();
        let extensions = RequestExtensions::take(&mut map, headers)?;
        if let Some(misfit) = field_type::find_mismatch(dialect, &map) {
            return Err(VendorError::invalid_field(misfit));
        }
        let mut warnings = Vec::new();
        if dialect == Dialect::OpenaiResponses {
            unsupported_state::check(&mut map, &mut warnings)?;
        }
        Ok(Self {
            dialect,
            extensions,
            warnings,
            dirty: map.len() != fields,
            map,
            bytes,
        })
    }

    /// The model name as requested.
    pub(super) fn model(&self) -> Option<&str> {
        let model = self.map.get("model").and_then(Value::as_str);
        model.filter(|model| !model.is_empty())
    }

    /// Replaces the model. The bytes keep the requested name, because every adapter that sends them writes
    /// the model of its back-end.
    pub(super) fn rename(&mut self, model: &str) {
        self.map.insert(String::from("model"), Value::from(model));
    }

    pub(super) fn field(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    pub(super) fn streams(&self) -> bool {
        self.map.get("stream") == Some(&Value::Bool(true))
    }

    /// Whether the stream reports usage; only OpenAI chat makes it optional.
    pub(super) fn includes_usage(&self) -> bool {
        let requested = self
            .map
            .get("stream_options")
            .and_then(|options| options.get("include_usage"));
        self.dialect != Dialect::OpenaiChat || requested == Some(&Value::Bool(true))
    }

    /// The bytes and the decoded request. The bytes are the original ones unless a field was changed.
    pub(super) fn into_parts(self) -> Result<(Bytes, ChatRequest), VendorError> {
        let value = Value::Object(self.map);
        let bytes = match self.dirty {
            true => serde_json::to_vec(&value).map_or(self.bytes, Bytes::from),
            false => self.bytes,
        };
        let chat = wire::chat::decode_request(self.dialect, value)?;
        Ok((bytes, chat))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::http::HeaderMap;
    use ir::Dialect;
    use serde_json::{Value, json};

    use super::VendorRequest;
    use crate::inference::extensions::ValidateMode;

    fn parse(body: &Value) -> VendorRequest {
        let bytes = Bytes::from(body.to_string());
        VendorRequest::parse(Dialect::OpenaiChat, bytes, &HeaderMap::new()).unwrap()
    }

    #[test]
    fn keeps_unchanged_request_byte_for_byte() {
        let text = "{ \"model\":\"m\",  \"messages\":[], \"temperature\": 1e0}";
        let bytes = Bytes::from_static(text.as_bytes());
        let mut vendor_request = VendorRequest::parse(Dialect::OpenaiChat, bytes, &HeaderMap::new()).unwrap();
        vendor_request.rename("m");
        assert_eq!(vendor_request.into_parts().unwrap().0, text);
    }

    #[test]
    fn changes_only_extensions_and_model() {
        let body = json!({"model": "alias", "messages": [], "cogn": {"validate": "repair"}, "seed": 7});
        let mut vendor_request = parse(&body);
        assert_eq!(vendor_request.extensions.validate, ValidateMode::Repair);
        vendor_request.rename("real");
        let (bytes, chat) = vendor_request.into_parts().unwrap();
        let sent: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(sent["seed"], 7);
        assert_eq!(sent.get("cogn"), None);
        assert_eq!(chat.model.as_deref(), Some("real"));
    }

    #[test]
    fn empty_or_wrong_model_is_missing() {
        for body in [json!({"messages": []}), json!({"model": ""}), json!({"model": 3})] {
            assert!(parse(&body).model().is_none(), "{body}");
        }
    }
}
