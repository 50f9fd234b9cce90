//! Ollama's native chat API. The base URL excludes `/api/chat`. A key is needed only behind a proxy that
//! requires one.

use ir::{Dialect, Payload};

use crate::http::{Client, HttpOptions, HttpUpstream, ModelList, VendorSpec};

pub const BASE_URL: &str = "http://127.0.0.1:11434";

pub fn ollama(client: Client, options: HttpOptions) -> HttpUpstream {
    let vendor = VendorSpec {
        kind: "ollama",
        dialect: Dialect::Ollama,
        path: |_| String::from("/api/chat"),
        whole: |payload, _| match payload {
            Payload::Embeddings(_) => Some((Dialect::Ollama, String::from("/api/embed"))),
            _ => None,
        },
        models: ModelList {
            path: "/api/tags",
            list: "models",
            name: "name",
        },
        key_header: ("authorization", "Bearer "),
        headers: &[],
    };
    HttpUpstream::new(vendor, client, options)
}
