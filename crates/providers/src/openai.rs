//! OpenAI and compatible servers: vLLM, llama.cpp, LM Studio, OpenRouter, DeepSeek and many more. The base
//! URL excludes `/chat/completions` and the paths of the other operations.

use ir::{Dialect, Payload};

use crate::http::{Client, HttpOptions, HttpUpstream, ModelList, VendorSpec};

pub const BASE_URL: &str = "https://api.openai.com/v1";

pub fn openai(client: Client, options: HttpOptions) -> HttpUpstream {
    let vendor = VendorSpec {
        kind: "openai",
        dialect: Dialect::OpenaiChat,
        path: |_| String::from("/chat/completions"),
        whole,
        models: ModelList {
            path: "/models",
            list: "data",
            name: "id",
        },
        key_header: ("authorization", "Bearer "),
        headers: &[],
    };
    HttpUpstream::new(vendor, client, options)
}

fn whole(payload: &Payload, _: &str) -> Option<(Dialect, String)> {
    let (dialect, path) = match payload {
        Payload::Embeddings(_) => (Dialect::OpenaiEmbeddings, "/embeddings"),
        Payload::Image(asked) if asked.image.is_some() => (Dialect::OpenaiImages, "/images/edits"),
        Payload::Image(_) => (Dialect::OpenaiImages, "/images/generations"),
        Payload::Transcription(_) => (Dialect::OpenaiTranscriptions, "/audio/transcriptions"),
        Payload::Speech(_) => (Dialect::OpenaiSpeech, "/audio/speech"),
        Payload::Chat(_) | Payload::Realtime(_) => return None,
    };
    Some((dialect, String::from(path)))
}
