//! Anthropic's Messages API. The base URL excludes `/v1/messages`.

use ir::Dialect;

use crate::http::{Client, HttpOptions, HttpUpstream, ModelList, VendorSpec};

pub const BASE_URL: &str = "https://api.anthropic.com";

/// The API version that the dialect in `wire` implements.
const VERSION: &str = "2023-06-01";

pub fn anthropic(client: Client, options: HttpOptions) -> HttpUpstream {
    let vendor = VendorSpec {
        kind: "anthropic",
        dialect: Dialect::Anthropic,
        path: |_| String::from("/v1/messages"),
        whole: |_, _| None,
        models: ModelList {
            path: "/v1/models",
            list: "data",
            name: "id",
        },
        key_header: ("x-api-key", ""),
        headers: &[("anthropic-version", VERSION)],
    };
    HttpUpstream::new(vendor, client, options)
}
