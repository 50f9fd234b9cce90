//! Media of canonical requests: small media inline, large media in the store, refusals before any request is
//! sent.

use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use ir::media::{Base64, MediaSource};
use ir::{ErrorKind, Payload, Request};
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::media::{FetchRule, MediaPipeline, MediaSettings};
use crate::port::{Fetch, FetchError, Fetched, Hosts};

/// A WAV file with `bytes` of silence.
fn wav(bytes: u32) -> Vec<u8> {
    let mut file = Vec::from(*b"RIFF");
    file.extend_from_slice(&(36 + bytes).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data");
    file.extend_from_slice(&bytes.to_le_bytes());
    file.resize(file.len() + bytes as usize, 0);
    file
}

fn inline(mime: &str, bytes: &[u8]) -> Value {
    json!({"kind": "inline_base64", "mime": mime, "data": Base64::from_bytes(bytes).as_str()})
}

fn heard(audio: &Value) -> Arc<Request> {
    let request = json!({"operation": "speech_to_text", "payload": {"audio": audio}});
    Arc::new(serde_json::from_value(request).unwrap())
}

fn audio(brought: &Request) -> &ir::Media {
    match &brought.payload {
        Payload::Transcription(asked) => &asked.audio,
        other => panic!("{other:?}"),
    }
}

#[derive(Debug)]
struct Web(Vec<u8>);

#[async_trait]
impl Fetch for Web {
    async fn fetch(&self, _: &str, _: &Hosts, _: u64, out: &mut File) -> Result<Fetched, FetchError> {
        out.write_all(&self.0).await.unwrap();
        out.flush().await.unwrap();
        Ok(Fetched::default())
    }

    async fn check(&self, _: &str, _: &Hosts) -> Result<(), FetchError> {
        Ok(())
    }
}

#[tokio::test]
async fn small_media_stays_inline_and_large_media_is_stored() {
    let pipeline = MediaPipeline::default();
    let small = wav(1_000);
    let brought = pipeline
        .prepare_request(heard(&inline("audio/wav", &small)))
        .await
        .unwrap();
    let MediaSource::Inline(data) = &audio(&brought).source else {
        panic!("{brought:?}")
    };
    assert_eq!(data.decode().unwrap(), small);
    assert_eq!(audio(&brought).mime.as_deref(), Some("audio/wav"));

    let large = wav(200_000);
    let brought = pipeline
        .prepare_request(heard(&inline("audio/x-wav", &large)))
        .await
        .unwrap();
    let MediaSource::Handle(held) = &audio(&brought).source else {
        panic!("{brought:?}")
    };
    assert_eq!(held.to_base64().unwrap().decode().unwrap(), large);
    assert_eq!(pipeline.store().used_bytes(), large.len() as u64);
    drop(brought);
    assert_eq!(pipeline.store().used_bytes(), 0, "the request was dropped");
}

/// Media in the spill store is inspected like any other.
#[tokio::test]
async fn stored_media_is_inspected_in_place() {
    let pipeline = MediaPipeline::default();
    for (bytes, good) in [(wav(200_000), true), (vec![7; 200_000], false)] {
        let mut writer = pipeline.store().run_spill().writer();
        writer.write_all(&bytes).unwrap();
        assert_eq!(writer.size_bytes(), bytes.len() as u64);
        let mut request = Request::clone(&heard(&inline("audio/wav", b"")));
        let Payload::Transcription(asked) = &mut request.payload else {
            panic!("{request:?}")
        };
        asked.audio = ir::Media::new(writer.finish().unwrap(), None);
        let brought = pipeline.prepare_request(Arc::new(request)).await;
        assert_eq!(brought.is_ok(), good, "{brought:?}");
        if let Ok(brought) = brought {
            assert_eq!(audio(&brought).mime.as_deref(), Some("audio/wav"));
        }
    }
    assert_eq!(pipeline.store().used_bytes(), 0);
}

#[tokio::test]
async fn full_store_refuses_with_retry_after() {
    let settings = MediaSettings {
        store_bytes_max: 100_000,
        ..MediaSettings::default()
    };
    let pipeline = MediaPipeline::new(settings, None);
    let error = pipeline
        .prepare_request(heard(&inline("audio/wav", &wav(200_000))))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!(error.provider_code.as_deref(), Some("E4000"));
    assert!(error.retry_after_ms.is_some(), "{error:?}");
    assert_eq!(pipeline.store().used_bytes(), 0);
}

#[tokio::test]
async fn url_is_fetched_when_allowed() {
    let sound = wav(2_000);
    let web: Arc<dyn Fetch> = Arc::new(Web(sound.clone()));
    let there = heard(&json!({"kind": "http_url", "url": "https://example.org/a.wav", "mime": "audio/wav"}));
    let pipeline = MediaPipeline::new(MediaSettings::default(), Some(web.clone()));
    let brought = pipeline.prepare_request(there.clone()).await.unwrap();
    let MediaSource::Inline(data) = &audio(&brought).source else {
        panic!("{brought:?}")
    };
    assert_eq!(data.decode().unwrap(), sound);
    let settings = MediaSettings {
        fetch: FetchRule::Off,
        ..MediaSettings::default()
    };
    let error = MediaPipeline::new(settings, Some(web))
        .prepare_request(there)
        .await;
    assert_eq!(error.unwrap_err().provider_code.as_deref(), Some("E1012"));
}

#[tokio::test]
async fn refusals_have_error_codes() {
    let pipeline = MediaPipeline::default();
    let cases = [
        (inline("audio/wav", b"hello"), "E1014"),
        (json!({"kind": "inline_base64", "data": "aGVsbG8="}), "E1010"),
        (inline("image/png", b"\x89PNG\r\n\x1a\n"), "E1010"),
        (inline("audio/mpeg", &wav(1_000)), "E1014"),
        (
            json!({"kind": "inline_base64", "mime": "audio/wav", "data": "no base64!"}),
            "E1013",
        ),
        (
            json!({"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "audio/wav"}),
            "E1019",
        ),
        (
            json!({"kind": "provider_file", "backend": "b", "id": "file-1", "mime": "audio/wav"}),
            "E1019",
        ),
        (inline("audio/wav", &wav(26 * 1024 * 1024)), "E1011"),
    ];
    for (media, code) in cases {
        let error = pipeline.prepare_request(heard(&media)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
        assert_eq!(error.provider_code.as_deref(), Some(code), "{error:?}");
        assert!(error.message.starts_with("/payload/audio: "), "{error:?}");
    }
}

#[tokio::test]
async fn response_image_is_loaded_or_refused() {
    let mut out = std::io::Cursor::new(Vec::new());
    let picture = image::DynamicImage::new_rgb8(300, 300);
    picture.write_to(&mut out, image::ImageFormat::Png).unwrap();
    let there = MediaSource::Remote(String::from("https://example.org/a"));
    let mut media = ir::Media::new(there.clone(), Some(String::from("image/webp")));
    let web = Arc::new(Web(out.into_inner()));
    let pipeline = MediaPipeline::new(MediaSettings::default(), Some(web.clone()));
    pipeline.ingest(&mut media).await.unwrap();
    assert!(matches!(media.source, MediaSource::Inline(_)), "{media:?}");
    assert_eq!(media.mime.as_deref(), Some("image/png"));

    // A large image is stored with the media of requests, or does not fit.
    for (store_bytes_max, fits) in [(u64::MAX, true), (10, false)] {
        let settings = MediaSettings {
            store_threshold: 100,
            store_bytes_max,
            ..MediaSettings::default()
        };
        let pipeline = MediaPipeline::new(settings, Some(web.clone()));
        let mut media = ir::Media::new(there.clone(), None);
        let taken = pipeline.ingest(&mut media).await;
        match fits {
            true => {
                taken.unwrap();
                let held = matches!(media.source, MediaSource::Handle(_));
                assert!(held && pipeline.store().used_bytes() > 100, "{media:?}");
                assert_eq!(media.mime.as_deref(), Some("image/png"));
            }
            false => {
                let error = taken.unwrap_err();
                assert_eq!(error.kind, ErrorKind::Internal, "{error:?}");
            }
        }
        drop(media);
        assert_eq!(pipeline.store().used_bytes(), 0);
    }

    let pipeline = MediaPipeline::new(MediaSettings::default(), Some(Arc::new(Web(wav(100)))));
    let mut media = ir::Media::new(there, None);
    let error = pipeline.ingest(&mut media).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidResponse);
    assert_eq!(error.provider_code.as_deref(), Some("E1010"));
}
