//! URLs in chats. A back-end may fetch them itself, from a network that the caller must not reach, so they pass the
//! same guard as the URLs in the input of a module.

use std::collections::BTreeSet;
use std::time::Duration;

use ::media::{Error as MediaFault, Limit};
use ir::chat::{Part, PartBody};
use ir::media::MediaSource;
use ir::{Error, Payload, Request};
use serde_json::Value;

use super::to_error;
use crate::limits;
use crate::media::errors::{MediaError, fetch_disabled, fetching, refused};
use crate::media::{FetchRule, MediaPipeline};
use crate::port::FetchError;

impl MediaPipeline {
    /// Refuses a chat with a URL that may not be fetched.
    pub(crate) async fn check_urls(&self, request: &Request) -> Result<(), Error> {
        let Payload::Chat(chat) = &request.payload else {
            return Ok(());
        };
        let mut urls = BTreeSet::new();
        for message in &chat.messages {
            gather(&message.parts, &mut urls);
        }
        let Some(first) = urls.first() else {
            return Ok(());
        };
        let limit = Duration::from_millis(limits::CHAT_URLS_MS);
        let checked = tokio::time::timeout(limit, self.check_all(&urls)).await;
        let too_slow = || Err(fetching(&FetchError::Timeout(limits::CHAT_URLS_MS), first));
        checked
            .unwrap_or_else(|_| too_slow())
            .map_err(|body| to_error(body, ""))
    }

    async fn check_all(&self, urls: &BTreeSet<&str>) -> Result<(), MediaError> {
        if urls.len() > limits::CHAT_URLS_MAX {
            return Err(refused(&MediaFault::TooLarge {
                limit: Limit::Count,
                allowed: limits::CHAT_URLS_MAX as u64,
                actual: urls.len() as u64,
            }));
        }
        for url in urls {
            let (FetchRule::Hosts(hosts), Some(fetch)) = (&self.settings.fetch, &self.fetch) else {
                return Err(fetch_disabled(url));
            };
            let checked = fetch.check(url, hosts).await;
            checked.map_err(|error| fetching(&error, url))?;
        }
        Ok(())
    }
}

fn gather<'a>(parts: &'a [Part], urls: &mut BTreeSet<&'a str>) {
    for part in parts {
        match &part.body {
            PartBody::Media(media) => {
                if let MediaSource::Remote(url) = &media.source {
                    keep(url, urls);
                }
            }
            PartBody::ToolResult(result) => gather(&result.content, urls),
            PartBody::Unknown { raw, .. } => gather_unknown(raw, "", urls),
            PartBody::Text(_) | PartBody::Reasoning(_) | PartBody::ToolCall(_) | PartBody::Refusal(_) => {}
        }
    }
}

/// The URLs of a part that only its dialect defines, by the names of its fields: `{"video_url": {"url": ..}}`.
fn gather_unknown<'a>(value: &'a Value, name: &str, urls: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) if names_address(name) => keep(text, urls),
        Value::Array(items) => items.iter().for_each(|item| gather_unknown(item, name, urls)),
        Value::Object(fields) => {
            for (name, field) in fields {
                gather_unknown(field, name, urls);
            }
        }
        _ => {}
    }
}

fn names_address(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    field.ends_with("url") || field.ends_with("uri")
}

/// A `data:` URL contains its bytes, so nothing is fetched.
fn keep<'a>(url: &'a str, urls: &mut BTreeSet<&'a str>) {
    let is_data = url
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        urls.insert(url);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use ir::Request;
    use serde_json::{Value, json};
    use tokio::fs::File;

    use crate::limits;
    use crate::media::{FetchRule, MediaPipeline, MediaSettings};
    use crate::port::{Fetch, FetchError, Fetched, Hosts};

    /// Only `https://public/` may be fetched.
    #[derive(Debug)]
    struct Guard;

    #[async_trait]
    impl Fetch for Guard {
        async fn fetch(&self, _: &str, _: &Hosts, _: u64, _: &mut File) -> Result<Fetched, FetchError> {
            Err(FetchError::Status(500))
        }

        async fn check(&self, url: &str, _: &Hosts) -> Result<(), FetchError> {
            match url.strip_prefix("https://public/") {
                Some(_) => Ok(()),
                None => Err(FetchError::Blocked(String::from("not public"))),
            }
        }
    }

    fn chat(parts: &Value) -> Request {
        let request = json!({"operation": "chat_completions",
            "payload": {"messages": [{"role": "user", "content": parts}]}});
        serde_json::from_value(request).unwrap()
    }

    fn image(url: &str) -> Value {
        json!({"type": "image", "image": {"kind": "http_url", "url": url, "mime": "image/png"}})
    }

    async fn code(pipeline: &MediaPipeline, parts: &Value) -> Option<String> {
        let checked = pipeline.check_urls(&chat(parts)).await;
        checked.err().and_then(|error| error.provider_code)
    }

    #[tokio::test]
    async fn urls_of_chats_pass_the_guard_of_modules() {
        let pipeline = MediaPipeline::new(MediaSettings::default(), Some(Arc::new(Guard)));
        let private = "http://169.254.169.254/latest";
        let unknown = |url: &str| {
            json!([{"type": "unknown", "dialect": "openai-chat",
            "raw": {"type": "video_url", "video_url": {"url": url}}}])
        };
        let result = |url: &str| json!([{"type": "tool_result", "call_id": "c", "content": [image(url)]}]);
        for parts in [json!([image(private)]), unknown(private), result(private)] {
            assert_eq!(code(&pipeline, &parts).await.as_deref(), Some("E1012"), "{parts}");
        }
        let public = "https://public/a.png";
        for parts in [
            json!([image(public)]),
            unknown(public),
            result(public),
            json!([{"type": "text", "text": private}]),
        ] {
            assert_eq!(code(&pipeline, &parts).await, None, "{parts}");
        }
        let many: Vec<_> = (0..=limits::CHAT_URLS_MAX)
            .map(|number| image(&format!("https://public/{number}")))
            .collect();
        assert_eq!(code(&pipeline, &json!(many)).await.as_deref(), Some("E1011"));
        let off = MediaSettings {
            fetch: FetchRule::Off,
            ..MediaSettings::default()
        };
        let off = MediaPipeline::new(off, Some(Arc::new(Guard)));
        assert_eq!(
            code(&off, &json!([image(public)])).await.as_deref(),
            Some("E1012")
        );
    }
}
