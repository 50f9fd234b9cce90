//! Media of an input, of every origin, with a fetch port that counts.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ir::media::{Base64, MediaSource};
use module::{FileMap, Module, load};
use serde_json::{Map, Value, json};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::{FetchRule, MediaPipeline, MediaSettings, PreparedMedia};
use crate::limits;
use crate::port::{Fetch, FetchError, Fetched, Hosts};

fn module(tier: &str, more: &str) -> Module {
    let manifest = format!(
        "name: m\nversion: 1.0.0\nresponsibility: r\ntier: {tier}\nmodalities:\n  input: [text, image]\n{more}"
    );
    let item = json!({"type": "object", "properties": {"type": {}, "media_type": {}}});
    let schema = json!({
        "input": {"type": "object", "properties": {"images": {"type": "array", "items": item}}},
        "data": {"type": "object"}
    });
    let files: FileMap = [
        ("module.yaml", manifest),
        ("prompt.md", String::from("$MEDIA_INPUTS $INPUT")),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    load(&files).module.unwrap()
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(width, height)
        .write_to(&mut out, image::ImageFormat::Png)
        .unwrap();
    out.into_inner()
}

fn inline(bytes: &[u8]) -> Value {
    json!({"type": "base64", "media_type": "image/png", "data": Base64::from_bytes(bytes).as_str()})
}

async fn prepare(
    pipeline: &MediaPipeline,
    module: &Module,
    items: &[Value],
) -> Result<PreparedMedia, String> {
    let mut input = Map::new();
    input.insert(String::from("images"), Value::from(items));
    match pipeline.prepare(module, &input, |_, _| {}).await {
        Ok(ready) => Ok(ready.unwrap()),
        Err(body) => {
            assert_eq!(
                body.details.as_ref().unwrap().contains_key("path"),
                body.code != "E1011" || items.len() < 20
            );
            let reason = body.details.unwrap().get("reason").cloned().unwrap_or_default();
            Err(format!("{} {}", body.code, reason.as_str().unwrap_or_default()))
        }
    }
}

/// Serves an image for every URL that contains `png`; a large one if it also contains `large`.
#[derive(Debug, Default)]
struct Web(AtomicUsize);

#[async_trait]
impl Fetch for Web {
    async fn fetch(&self, url: &str, _: &Hosts, _: u64, out: &mut File) -> Result<Fetched, FetchError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if !url.contains("png") {
            return Err(FetchError::Blocked(String::from("not a public address")));
        }
        let picture = if url.contains("large") {
            noise()
        } else {
            png(20, 30)
        };
        out.write_all(&picture).await.unwrap();
        out.flush().await.unwrap();
        Ok(Fetched::default())
    }

    async fn check(&self, _: &str, _: &Hosts) -> Result<(), FetchError> {
        Ok(())
    }
}

#[tokio::test]
async fn every_origin_becomes_a_request_part() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), png(20, 30)).unwrap();
    let settings = MediaSettings {
        roots: vec![folder.path().to_path_buf()],
        ..MediaSettings::default()
    };
    let web = Arc::new(Web::default());
    let pipeline = MediaPipeline::new(settings, Some(web.clone()));
    let data_url = format!(
        "data:image/png;base64,{}",
        Base64::from_bytes(&png(20, 30)).as_str()
    );
    let items = [
        inline(&png(20, 30)),
        json!({"type": "file", "path": "a.png"}),
        json!({"type": "url", "url": "https://example.com/a.png?token=secret"}),
        json!({"type": "url", "url": data_url}),
    ];
    let ready = prepare(&pipeline, &module("decision", ""), &items).await.unwrap();
    assert_eq!(web.0.load(Ordering::SeqCst), 1);
    assert_eq!(ready.media.len(), 4);
    for media in &ready.media {
        let MediaSource::Inline(data) = &media.source else {
            panic!("{media:?}")
        };
        assert_eq!(data.decode().unwrap(), png(20, 30));
        assert_eq!((media.facts.width, media.facts.height), (Some(20), Some(30)));
    }
    let validation = ready.validation();
    assert_eq!(validation["input_count"], 4);
    assert_eq!(
        validation["validated"][3]["dimensions"],
        json!({"width": 20, "height": 30})
    );
    // The input in a prompt contains neither bytes nor URLs nor paths.
    let mut shown = Map::new();
    shown.insert(String::from("images"), Value::from(&items[..]));
    ready.insert_into(&mut shown);
    let shown = Value::Object(shown).to_string();
    assert!(
        !shown.contains("iVBOR") && !shown.contains("secret") && !shown.contains("a.png"),
        "{shown}"
    );
}

#[tokio::test]
async fn refusals_have_error_codes() {
    let module = module("exec", "");
    let web = Arc::new(Web::default());
    let pipeline = MediaPipeline::new(MediaSettings::default(), Some(web.clone()));
    let declared = |mime: &str| json!({"type": "base64", "media_type": mime, "data": "AAAA"});
    for (item, code) in [
        (declared("image/tiff"), "E1010 "),
        (declared("image/jpeg"), "E1014 "),
        (declared("application/pdf"), "E1010 "),
        (declared("audio/mpeg"), "E1010 "),
        (
            json!({"type": "base64", "media_type": "image/png", "data": "%%%"}),
            "E1013 ",
        ),
        (inline(&png(20, 30)[..40]), "E1013 the file ends too early"),
        (inline(&png(9_000, 10)), "E1015 "),
        (inline(&png(5, 5)), "E1016 "),
        (
            json!({"type": "url", "url": "http://127.0.0.1/"}),
            "E1012 blocked_address",
        ),
        (
            json!({"type": "url", "url": "file:///etc/passwd"}),
            "E1012 blocked_address",
        ),
        (
            json!({"type": "file", "path": "../../etc/passwd"}),
            "E1006 file_not_available",
        ),
        (
            json!({"type": "file", "path": "/etc/passwd"}),
            "E1006 file_not_available",
        ),
        (json!({"type": "upload_ref", "upload_id": "upl_1"}), "E1019 "),
    ] {
        assert_eq!(
            prepare(&pipeline, &module, std::slice::from_ref(&item))
                .await
                .unwrap_err(),
            code,
            "{item}"
        );
    }
    // An unsupported type is not fetched.
    let before = web.0.load(Ordering::SeqCst);
    let tiff = json!({"type": "url", "url": "https://example.com/a.png", "media_type": "image/tiff"});
    assert_eq!(prepare(&pipeline, &module, &[tiff]).await.unwrap_err(), "E1010 ");
    assert_eq!(web.0.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn urls_are_refused_when_fetching_is_disabled() {
    let web = Arc::new(Web::default());
    let off = MediaSettings {
        fetch: FetchRule::Off,
        ..MediaSettings::default()
    };
    let url = json!({"type": "url", "url": "https://example.com/a.png"});
    for pipeline in [
        MediaPipeline::new(off, Some(web.clone())),
        MediaPipeline::default(),
    ] {
        let code = prepare(&pipeline, &module("decision", ""), std::slice::from_ref(&url))
            .await
            .unwrap_err();
        assert_eq!(code, "E1012 fetch_disabled");
    }
    assert_eq!(web.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn files_are_read_from_allowed_folders_only() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside.png"));
    fs::create_dir(&root).unwrap();
    fs::write(&outside, png(20, 30)).unwrap();
    fs::write(root.join("in.png"), png(20, 30)).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("link.png")).unwrap();
    std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status()
        .unwrap();
    let module = module("decision", "");
    let pipeline = |files: Vec<std::path::PathBuf>| {
        let settings = MediaSettings {
            roots: vec![root.clone()],
            files,
            ..MediaSettings::default()
        };
        MediaPipeline::new(settings, None)
    };
    let item = |path: &Path| json!({"type": "file", "path": path});
    let strict = pipeline(Vec::new());
    for path in [
        "link.png",
        "../outside.png",
        "pipe",
        ".",
        "",
        "missing.png",
        "in.png/../../outside.png",
    ] {
        if path.is_empty() {
            continue;
        }
        let code = prepare(&strict, &module, &[item(Path::new(path))])
            .await
            .unwrap_err();
        assert_eq!(code, "E1006 file_not_available", "{path}");
    }
    assert!(
        prepare(&strict, &module, &[item(Path::new("in.png"))])
            .await
            .is_ok()
    );
    assert!(
        prepare(&strict, &module, &[item(&root.join("in.png"))])
            .await
            .is_ok()
    );
    assert!(prepare(&strict, &module, &[item(&outside)]).await.is_err());
    assert!(
        prepare(&pipeline(vec![outside.clone()]), &module, &[item(&outside)])
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn counts_and_sizes_follow_the_manifest() {
    let module = module(
        "decision",
        "  constraints:\n    max_images: 2\n    max_image_size_mb: 0.001\n",
    );
    let pipeline = MediaPipeline::default();
    let small = inline(&png(12, 12));
    assert!(prepare(&pipeline, &module, &vec![small.clone(); 2]).await.is_ok());
    assert_eq!(
        prepare(&pipeline, &module, &vec![small.clone(); 3])
            .await
            .unwrap_err(),
        "E1011 "
    );
    assert_eq!(
        prepare(&pipeline, &module, &vec![small; 40]).await.unwrap_err(),
        "E1011 "
    );
    let mut large = png(12, 12);
    large.extend([0; 2_000]);
    assert_eq!(
        prepare(&pipeline, &module, &[inline(&large)]).await.unwrap_err(),
        "E1011 "
    );
}

#[tokio::test]
async fn large_image_is_scaled_down_except_for_exec_modules() {
    let item = inline(&png(9_000, 20));
    let pipeline = MediaPipeline::default();
    let ready = prepare(&pipeline, &module("decision", ""), std::slice::from_ref(&item))
        .await
        .unwrap();
    assert_eq!(ready.media[0].facts.width, Some(8_192));
    assert_eq!(ready.warnings[0].to_value()["code"], "W1015");
    assert_eq!(ready.processed[0]["adaptations"][0]["action"], "downscaled");
    assert_eq!(
        prepare(&pipeline, &module("exec", ""), &[item])
            .await
            .unwrap_err(),
        "E1015 "
    );
}

#[tokio::test]
async fn large_inline_media_is_accepted_with_a_warning() {
    let pipeline = MediaPipeline::default();
    let large = noise_of(1_400);
    assert!(large.len() as u64 > limits::INLINE_HINT_BYTES);
    let ready = prepare(
        &pipeline,
        &module("decision", ""),
        &[inline(&png(20, 30)), inline(&large)],
    )
    .await
    .unwrap();
    let warnings: Vec<_> = ready.warnings.iter().map(crate::run::Warning::to_value).collect();
    assert!(
        matches!(&warnings[..], [one] if one["code"] == "W1011" && one["index"] == 1),
        "{warnings:?}"
    );
}

/// An image of more than 64 KiB.
fn noise() -> Vec<u8> {
    noise_of(200)
}

/// A square image that does not compress.
fn noise_of(side: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = image::RgbImage::from_fn(side, side, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_be_bytes();
        image::Rgb([red, green, blue])
    });
    let mut out = Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb8(pixels)
        .write_to(&mut out, image::ImageFormat::Png)
        .unwrap();
    out.into_inner()
}

fn in_folder(folder: &Path, store_bytes_max: u64) -> MediaSettings {
    MediaSettings {
        roots: vec![folder.to_path_buf()],
        folder: Some(folder.join("spool")),
        store_bytes_max,
        ..MediaSettings::default()
    }
}

#[tokio::test]
async fn large_media_is_in_an_anonymous_file_until_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let large = noise();
    assert!(large.len() > 64 * 1024);
    fs::write(folder.path().join("large.png"), &large).unwrap();
    let web = Arc::new(Web::default());
    let pipeline = MediaPipeline::new(in_folder(folder.path(), u64::MAX), Some(web.clone()));
    let items = [
        inline(&large),
        inline(&png(20, 30)),
        json!({"type": "file", "path": "large.png"}),
        json!({"type": "url", "url": "https://example.com/large.png"}),
    ];
    let ready = prepare(&pipeline, &module("decision", ""), &items).await.unwrap();
    assert_eq!(pipeline.store().used_bytes(), 3 * large.len() as u64);
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0, "no file has a name");
    let copy = ready.clone();
    drop(ready);
    for (index, media) in copy.media.iter().enumerate() {
        match &media.source {
            MediaSource::Handle(held) => {
                assert_eq!(held.to_base64().unwrap().decode().unwrap(), large, "{index}");
                assert_eq!(media.facts.size_bytes, Some(large.len() as u64));
            }
            MediaSource::Inline(data) => assert_eq!((index, data.decode().unwrap()), (1, png(20, 30))),
            other => panic!("{other:?}"),
        }
    }
    drop(copy);
    assert_eq!(pipeline.store().used_bytes(), 0);
    assert_eq!(web.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn full_store_refuses_until_a_run_ends() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("spool")).unwrap();
    let large = noise();
    let pipeline = MediaPipeline::new(in_folder(folder.path(), 3 * large.len() as u64 / 2), None);
    let module = module("decision", "");
    let first = prepare(&pipeline, &module, &[inline(&large)]).await.unwrap();
    let refused = prepare(&pipeline, &module, &[inline(&large)]).await.unwrap_err();
    assert_eq!(refused, "E4000 media_store_full");
    // Small media needs no space in the store.
    assert!(prepare(&pipeline, &module, &[inline(&png(20, 30))]).await.is_ok());
    drop(first);
    assert_eq!(pipeline.store().used_bytes(), 0, "the refused run left nothing");
    assert!(prepare(&pipeline, &module, &[inline(&large)]).await.is_ok());
}

#[tokio::test]
async fn invalid_base64_of_any_size_is_refused() {
    let pipeline = MediaPipeline::default();
    let mut text = Base64::from_bytes(&noise()).into_string();
    text.insert(70_000, '=');
    // The form of the URL is valid, its data is not.
    let item = json!({"type": "url", "url": format!("data:image/png;base64,{text}")});
    let refused = prepare(&pipeline, &module("decision", ""), &[item])
        .await
        .unwrap_err();
    assert_eq!(refused, "E1013 not base64");
}
