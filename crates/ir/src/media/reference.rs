//! The JSON of media in canonical documents: `{"kind": "sms_file", "uri": .., "mime": ..}`. Facts, hints
//! and so on are separate fields; unknown fields round-trip.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::ext::{Ext, Map};
use crate::fields::Fields;
use crate::media::{Base64, Media, MediaKind, MediaSource, MimeTrust, StoredRef, URI_DIALECT};

/// The MIME type of unknown bytes.
const UNKNOWN: &str = "application/octet-stream";

/// The kind of media handles; it is written, for hashes and logs, and never read.
const TEMPORARY: &str = "temporary";

impl Serialize for Media {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_reference().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Media {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_reference(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Media {
    pub fn to_reference(&self) -> Map {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| {
            map.insert(String::from(key), value);
        };
        match &self.source {
            MediaSource::Inline(data) => {
                put("kind", json!("inline_base64"));
                put("data", json!(data.as_str()));
            }
            MediaSource::Stored(stored) => {
                put("kind", json!("sms_file"));
                match stored {
                    StoredRef::Id(id) => put("uri", json!(id.uri())),
                    StoredRef::Foreign { dialect, text } if *dialect == URI_DIALECT => {
                        put("uri", json!(text));
                    }
                    StoredRef::Foreign { dialect, text } => {
                        put("alias", json!({"dialect": dialect, "id": text}));
                    }
                }
            }
            MediaSource::Handle(handle) => {
                put("kind", json!(TEMPORARY));
                put("sha256", json!(handle.checksum().value));
            }
            MediaSource::Remote(url) => {
                put("kind", json!("http_url"));
                put("url", json!(url));
            }
            MediaSource::LocalFile(path) => {
                put("kind", json!("local_file"));
                put("path", json!(path));
            }
            MediaSource::ProviderFile { backend, id } => {
                put("kind", json!("provider_file"));
                put("backend", json!(backend));
                put("id", json!(id));
            }
        }
        match &self.mime {
            Some(mime) => put("mime", json!(mime)),
            // A reference requires a type; this one stands for an unknown type.
            None if self.mime_trust == MimeTrust::Inferred => put("mime", json!(UNKNOWN)),
            None => {}
        }
        self.put_particulars(&mut map);
        map
    }

    fn put_particulars(&self, map: &mut Map) {
        let mut put = |key: &str, value: Value| {
            if has_content(&value) {
                map.insert(String::from(key), value);
            }
        };
        if self.mime_trust != MimeTrust::Declared {
            put("mime_trust", json!(self.mime_trust));
        }
        if self.kind != self.mime.as_deref().map_or(MediaKind::Other, MediaKind::of_mime) {
            put("media_kind", json!(self.kind));
        }
        put("facts", json!(self.facts));
        put("hints", json!(self.hints));
        put("text_fallback", json!(self.text_fallback));
        put("expires_at", json!(self.expires_at));
        put("generation_params", json!(self.generation));
        put("checksum", json!(self.checksum));
        let mut ext = self.ext.clone();
        ext.take(URI_DIALECT);
        put("ext", json!(ext));
        self.ext.restore(URI_DIALECT, map);
    }

    pub fn from_reference(map: Map) -> Result<Self, String> {
        let mut fields = Fields::new(map);
        let mut need = |key: &str| {
            let text = fields.string(key);
            text.ok_or_else(|| format!("a media reference of this kind has no `{key}`"))
        };
        let source = match need("kind")?.as_str() {
            "inline_base64" => MediaSource::Inline(Base64::from_text(need("data")?)),
            "sms_file" => match fields.object("alias") {
                Some(alias) => MediaSource::Stored(alias_of(alias)?),
                None => MediaSource::Stored(StoredRef::from_uri(&need_uri(&mut fields)?)),
            },
            "http_url" => MediaSource::Remote(need("url")?),
            // A path is only valid on the sender's machine, and reading it for a remote caller would expose
            // local files. Only a local runtime accepts paths, in another form.
            "local_file" => return Err(String::from("a media reference must not name a local file")),
            "provider_file" => MediaSource::ProviderFile {
                backend: need("backend")?,
                id: need("id")?,
            },
            TEMPORARY => return Err(String::from("a media reference must not name temporary media")),
            other => return Err(format!("unknown kind of media reference `{other}`")),
        };
        let mut media = Self::new(source, fields.string("mime"));
        // `verified` from outside is not trusted; the field is preserved, the claim is not applied.
        if fields.peek_str("mime_trust") == Some("inferred") {
            fields.take("mime_trust");
            media.mime_trust = MimeTrust::Inferred;
            media.mime = media.mime.filter(|mime| mime != UNKNOWN);
        }
        if fields.peek_str("media_kind") != Some(media.kind.as_str()) {
            take(&mut fields, "media_kind", &mut media.kind);
        }
        take(&mut fields, "facts", &mut media.facts);
        take(&mut fields, "hints", &mut media.hints);
        media.text_fallback = fields.string("text_fallback");
        media.expires_at = fields.string("expires_at");
        if fields.peek("generation_params").is_some_and(has_content) {
            media.generation = fields.take("generation_params");
        }
        take(&mut fields, "checksum", &mut media.checksum);
        let mut ext = Ext::default();
        let own = fields.peek("ext").and_then(|ext| ext.get(URI_DIALECT.as_str()));
        if own.is_none() {
            take(&mut fields, "ext", &mut ext);
        }
        ext.extend(URI_DIALECT, fields.rest());
        media.ext = ext;
        Ok(media)
    }
}

/// Removes a field if it has the known shape and would be encoded identically; otherwise it stays.
fn take<T: for<'a> Deserialize<'a> + Serialize>(fields: &mut Fields, key: &str, slot: &mut T) {
    let Some(value) = fields.peek(key) else { return };
    if let Ok(read) = T::deserialize(value)
        && serde_json::to_value(&read).is_ok_and(|again| again == *value)
        && value.as_object().is_none_or(|map| !map.is_empty())
        && !value.is_null()
    {
        *slot = read;
        fields.take(key);
    }
}

fn has_content(value: &Value) -> bool {
    !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty())
}

fn need_uri(fields: &mut Fields) -> Result<String, String> {
    fields
        .string("uri")
        .ok_or_else(|| String::from("a media reference of this kind has no `uri`"))
}

fn alias_of(mut alias: Fields) -> Result<StoredRef, String> {
    let dialect = alias.string("dialect").and_then(|name| name.parse().ok());
    match (dialect, alias.string("id")) {
        (Some(dialect), Some(text)) if dialect != URI_DIALECT && alias.is_empty() => {
            Ok(StoredRef::Foreign { dialect, text })
        }
        _ => Err(String::from("an alias consists of a foreign dialect and an id")),
    }
}
