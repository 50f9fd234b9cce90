//! OpenAI's image generation. Edits are sent as a multipart form with files, which the transport builds;
//! here an image to edit is in the body as a data URL or a URL.
//! <https://platform.openai.com/docs/api-reference/images>

use ir::envelope::{ImageRequest, ImageResponse};
use ir::media::Base64;
use ir::{Dialect, Error, Ext, Fields, Ledger, Map, Media, MediaKind, MediaSource, Phase};
use serde_json::{Value, json};

use crate::openai_chat::usage;
use crate::{error_body, media_losses};

const OWN: Dialect = Dialect::OpenaiImages;
const WORDS: usage::UsageFields = usage::UsageFields {
    dialect: OWN,
    input: "input_tokens",
    output: "output_tokens",
};

pub fn decode_request(body: Value) -> Result<ImageRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let prompt = fields
        .string("prompt")
        .ok_or_else(|| Error::invalid_request("`prompt` is missing"))?;
    let mut picture = |key: &str| {
        fields
            .string(key)
            .map(|url| Media::from_url(&url).with_kind(MediaKind::Image))
    };
    let (image, mask) = (picture("image"), picture("mask"));
    Ok(ImageRequest {
        model: fields.string("model"),
        prompt,
        image,
        mask,
        n: fields.u32("n"),
        size: fields.string("size"),
        quality: fields.string("quality"),
        style: fields.string("style"),
        seed: fields.number("seed"),
        response_format: fields.string("response_format"),
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

pub fn encode_request(request: &ImageRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("model", json!(request.model));
    put("prompt", json!(request.prompt));
    for (key, media) in [("image", &request.image), ("mask", &request.mask)] {
        if let Some(media) = media {
            let pointer = format!("/payload/{key}");
            let url = media
                .to_url()
                .ok_or_else(|| media_losses::unresolved(media, &pointer, OWN))?;
            media_losses::book(media, &pointer, OWN, &[], ledger);
            put(key, json!(url));
        }
    }
    put("n", json!(request.n));
    put("size", json!(request.size));
    put("quality", json!(request.quality));
    put("style", json!(request.style));
    put("seed", json!(request.seed));
    put("response_format", json!(request.response_format));
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Ok(Value::Object(map))
}

/// Converts inline images to data URLs if the client requested URLs, because it then reads no other field.
/// Images that are not inline are not changed.
pub fn in_form(response: &mut ImageResponse, form: Option<&str>) {
    if form != Some("url") {
        return;
    }
    for media in &mut response.images {
        if let (MediaSource::Inline(_), Some(url)) = (&media.source, media.to_url()) {
            media.source = MediaSource::Remote(url);
        }
    }
}

pub fn decode_response(body: Value) -> Result<ImageResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let data = fields.array("data").ok_or_else(|| bad("has no data"))?;
    let format = fields
        .peek_str("output_format")
        .map(|word| format!("image/{word}"));
    let mut images = Vec::with_capacity(data.len());
    for item in data {
        let mut item = Fields::of(item).ok_or_else(|| bad("has an image that is not an object"))?;
        let source = if let Some(data) = item.string("b64_json") {
            MediaSource::Inline(Base64::from_text(data))
        } else {
            MediaSource::Remote(
                item.string("url")
                    .ok_or_else(|| bad("has an image without data or URL"))?,
            )
        };
        let mut media = Media::new(source, format.clone()).with_kind(MediaKind::Image);
        media.ext.extend(OWN, item.rest());
        images.push(media);
    }
    let created = fields.u64("created");
    let usage = fields
        .object("usage")
        .map(|usage| usage::decode(&Value::Object(usage.rest()), OWN));
    Ok(ImageResponse {
        images,
        created,
        usage,
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

pub fn encode_response(response: &ImageResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut data = Vec::with_capacity(response.images.len());
    for (at, media) in response.images.iter().enumerate() {
        let pointer = format!("/result/payload/images/{at}");
        let mut item = Map::new();
        match &media.source {
            MediaSource::Inline(bytes) => item.insert(String::from("b64_json"), json!(bytes.as_str())),
            MediaSource::Remote(url) => item.insert(String::from("url"), json!(url)),
            _ => return Err(media_losses::unresolved(media, &pointer, OWN)),
        };
        media.ext.restore(OWN, &mut item);
        media_losses::book(media, &pointer, OWN, &[], ledger);
        data.push(Value::Object(item));
    }
    let mut map = Map::new();
    if let Some(created) = response.created {
        map.insert(String::from("created"), json!(created));
    }
    map.insert(String::from("data"), Value::Array(data));
    if let Some(counts) = &response.usage {
        map.insert(String::from("usage"), usage::encode(counts, &WORDS));
    }
    response.ext.restore(OWN, &mut map);
    ledger.foreign("/result/payload", &response.ext, OWN);
    Ok(Value::Object(map))
}
