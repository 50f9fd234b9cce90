//! OpenAI, and everything that speaks its chat completions: vLLM, llama.cpp, LM Studio, OpenRouter, DeepSeek
//! and many more. The base URL is what stands before `/chat/completions`.

use ir::Dialect;

use crate::http::{Client, Http, HttpOptions, ModelList, Vendor};

pub const BASE_URL: &str = "https://api.openai.com/v1";

pub fn openai(client: Client, options: HttpOptions) -> Http {
    let vendor = Vendor {
        kind: "openai",
        dialect: Dialect::OpenaiChat,
        path: |_| String::from("/chat/completions"),
        models: ModelList {
            path: "/models",
            list: "data",
            name: "id",
        },
        key_header: ("authorization", "Bearer "),
        headers: &[],
    };
    Http::new(vendor, client, options)
}
