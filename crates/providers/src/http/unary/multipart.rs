//! A form with files, as `multipart/form-data`. Content in memory is sent as is; media handles are read while
//! sending.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use ir::Map;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use spill::{BodySegment, SegmentedBody};

#[derive(Debug, Default)]
pub(super) struct MultipartBody {
    fields: Vec<(String, String)>,
    files: Vec<(&'static str, FilePart)>,
}

#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) content: BodySegment,
}

impl MultipartBody {
    /// Lists are encoded as vendors expect: the same name for each member, followed by `[]`.
    pub(super) fn of(fields: Map) -> Self {
        let mut form = Self::default();
        for (key, value) in fields {
            match value {
                Value::Array(list) => {
                    let each = list.iter().map(|one| (format!("{key}[]"), text(one)));
                    form.fields.extend(each);
                }
                Value::Null => {}
                one => form.fields.push((key, text(&one))),
            }
        }
        form
    }

    pub(super) fn file(&mut self, field: &'static str, file: FilePart) {
        self.files.push((field, file));
    }

    /// The body; sets the content type in `headers`.
    pub(super) fn into_body(self, headers: &mut HeaderMap) -> SegmentedBody {
        let boundary = self.boundary();
        if let Ok(kind) = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}")) {
            headers.insert(CONTENT_TYPE, kind);
        }
        self.into_segments(&boundary).into()
    }

    /// A boundary that does not occur in the fields, because it is their hash. In files it could occur only
    /// by chance.
    fn boundary(&self) -> String {
        let mut hash = Sha256::new();
        for (key, value) in &self.fields {
            hash.update(key.as_bytes());
            hash.update(value.as_bytes());
        }
        for (field, file) in &self.files {
            hash.update(field.as_bytes());
            hash.update(file.content.size_bytes().to_le_bytes());
            if let BodySegment::Bytes(bytes) = &file.content {
                hash.update(bytes);
            }
        }
        let digest = hex::encode(hash.finalize());
        format!("cogn-{}", digest.get(..40).unwrap_or_default())
    }

    fn into_segments(self, boundary: &str) -> Vec<BodySegment> {
        let mut parts = Vec::new();
        let mut head = String::new();
        for (key, value) in &self.fields {
            let name = quoted(key);
            head.push_str(&format!(
                "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            ));
        }
        for (field, file) in self.files {
            let (name, mime) = (quoted(&file.name), quoted(&file.mime));
            head.push_str(&format!(
                "--{boundary}\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
                 content-type: {mime}\r\n\r\n"
            ));
            parts.push(BodySegment::Bytes(Bytes::from(std::mem::take(&mut head))));
            parts.push(file.content);
            head.push_str("\r\n");
        }
        head.push_str(&format!("--{boundary}--\r\n"));
        parts.push(BodySegment::Bytes(Bytes::from(head)));
        parts
    }
}

/// Escapes a text for a quoted header parameter.
fn quoted(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '"' => String::from("%22"),
            letter if letter.is_control() => String::from("_"),
            letter => String::from(letter),
        })
        .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {

    use bytes::Bytes;
    use futures::TryStreamExt;
    use ir::media::MediaHandle;
    use serde_json::json;
    use spill::limits::CHUNK_BYTES;
    use spill::{BodySegment, SegmentedBody};

    use super::{FilePart, MultipartBody};

    async fn written(form: MultipartBody) -> (u64, String) {
        let body = SegmentedBody::from(form.into_segments("b"));
        let length = body.size_bytes();
        let chunks: Vec<Bytes> = body.into_stream().try_collect().await.unwrap();
        (length, String::from_utf8(chunks.concat()).unwrap())
    }

    fn file(content: BodySegment) -> FilePart {
        FilePart {
            name: String::from("a\"\r\nx.wav"),
            mime: String::from("audio/wav"),
            content,
        }
    }

    #[tokio::test]
    async fn encodes_fields_and_files_as_multipart() {
        let fields = json!({"model": "m", "n": 2, "list": ["a", "b"], "none": null});
        let mut form = MultipartBody::of(fields.as_object().unwrap().clone());
        form.file("file", file(BodySegment::Bytes(Bytes::from_static(b"RIFF"))));
        let (length, text) = written(form).await;
        assert_eq!(length, text.len() as u64);
        let part = |name: &str, value: &str| {
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let expected = [
            part("model", "m"),
            part("n", "2"),
            part("list[]", "a"),
            part("list[]", "b"),
            String::from(
                "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a%22__x.wav\"\r\n\
                 content-type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n",
            ),
        ];
        assert_eq!(text, expected.concat());
    }

    #[tokio::test]
    async fn media_handle_is_sent_with_announced_length() {
        let bytes = "x".repeat(3 * CHUNK_BYTES + 7);
        let held = MediaHandle::from_bytes(bytes.clone().into_bytes()).unwrap();
        let mut form = MultipartBody::default();
        form.file("file", file(BodySegment::Raw(held)));
        let (announced, text) = written(form).await;
        assert_eq!(announced, text.len() as u64);
        assert!(text.contains(&bytes));
    }
}
