//! Checks of invalid media: each fault has its code, and it is reported before any back-end is called.

use serde_json::{Value, json};

use crate::conformance::server::check::{Capability, Check, Next, PASSED, ask, ensure, skip};
use crate::conformance::server::png::{Depth, black, good, item, png};
use crate::conformance::server::response::ServerResponse;
use crate::conformance::server::test_module::TestModule;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = demanded();
    let more = recommended().into_iter();
    checks.extend(more.map(Check::recommended));
    checks
}

fn demanded() -> Vec<Check> {
    vec![
        Check::new(
            "media.type",
            "a media type that the module does not accept is E1010",
            Capability::Image,
            |at, responses| {
                refused(
                    at,
                    responses,
                    item("image/tiff", b"II*\0\x08\0\0\0\0\0\0\0"),
                    &["E1010"],
                )
            },
        ),
        Check::new(
            "media.size",
            "an image larger than the limit is E1011",
            Capability::Image,
            too_large,
        ),
        Check::new(
            "media.fetch",
            "a URL inside the server's own network is E1012",
            Capability::Image,
            |at, responses| {
                let inside =
                    json!({"type": "url", "url": "http://127.0.0.1:9/a.png", "media_type": "image/png"});
                refused(at, responses, inside, &["E1012"])
            },
        ),
        Check::new(
            "media.decode",
            "data that is not base64 is E1013",
            Capability::Image,
            |at, responses| refused(at, responses, not_base64(), &["E1013"]),
        ),
        Check::new(
            "media.decode-stream",
            "data that is not base64 is E1013 at the end of a stream",
            Capability::Image,
            |at, responses| match responses {
                [] => ask(at
                    .execute_on(&at.with_image(not_base64()), &json!({}))
                    .header("accept", "text/event-stream")),
                [answer, ..] => expect(answer, &["E1013"]),
            },
        ),
    ]
}

fn recommended() -> Vec<Check> {
    vec![
        Check::new(
            "media.form",
            "an item without its type is E1002",
            Capability::Image,
            |at, responses| {
                refused(
                    at,
                    responses,
                    json!({"media_type": "image/png", "data": ""}),
                    &["E1002"],
                )
            },
        ),
        Check::new(
            "media.mismatch",
            "bytes of another type than declared are E1014",
            Capability::Image,
            |at, responses| {
                let png = png(32, 24, Depth::Eight);
                refused(at, responses, item("image/jpeg", &png), &["E1014"])
            },
        ),
        Check::new(
            "media.dimensions",
            "a side of more than 8192 pixels is E1015, or the image is scaled down with a warning",
            Capability::Image,
            |at, responses| too_wide(at, responses, &png(8_200, 12, Depth::One), &["E1015"]),
        ),
        Check::new(
            "media.pixels",
            "more than 67,108,864 pixels are E1017, or E1015 because a side is too long, or the image is scaled down with a warning",
            Capability::Image,
            |at, responses| too_wide(at, responses, &black(8_200, 8_200), &["E1017", "E1015"]),
        ),
        Check::new(
            "media.small",
            "a side of less than 10 pixels is E1016",
            Capability::Image,
            |at, responses| {
                refused(
                    at,
                    responses,
                    item("image/png", &png(4, 4, Depth::Eight)),
                    &["E1016"],
                )
            },
        ),
        Check::new(
            "media.checksum",
            "a checksum that does not match is E1020",
            Capability::Image,
            |at, responses| {
                let mut item = good();
                item["checksum"] = json!({"algorithm": "sha256", "value": "00".repeat(32)});
                refused(at, responses, item, &["E1020"])
            },
        ),
        Check::new(
            "media.upload",
            "an unknown upload is E1019",
            Capability::Image,
            |at, responses| {
                let item =
                    json!({"type": "upload_ref", "upload_id": "upl_nobody", "media_type": "image/png"});
                refused(at, responses, item, &["E1019"])
            },
        ),
    ]
}

fn not_base64() -> Value {
    json!({"type": "base64", "media_type": "image/png", "data": "this is not base64!"})
}

fn refused(at: &TestModule, responses: &[ServerResponse], item: Value, codes: &[&str]) -> Next {
    match responses {
        [] => ask(at
            .execute_on(&at.with_image(item), &json!({}))
            .header("accept", "application/json")),
        [answer, ..] => {
            answer.envelope()?;
            ensure(answer.status >= 400, || {
                format!("the status is {}, expected 4xx or 5xx", answer.status)
            })?;
            expect(answer, codes)
        }
    }
}

fn expect(answer: &ServerResponse, codes: &[&str]) -> Next {
    let code = answer.code().unwrap_or_default();
    ensure(codes.contains(&code.as_str()), || {
        format!("expected {}: {}", codes.join(" or "), answer.summary())
    })?;
    PASSED
}

fn too_large(at: &TestModule, responses: &[ServerResponse]) -> Next {
    let Some(limit) = at.image_bytes() else {
        return skip("the module declares no image size limit, or one too high to exceed in a request");
    };
    // Rows of a thousand bytes, enough to exceed the limit.
    let rows = u32::try_from(limit / 1_000 + 2).unwrap_or(u32::MAX);
    refused(
        at,
        responses,
        item("image/png", &png(1_000, rows.max(10), Depth::Eight)),
        &["E1011"],
    )
}

fn too_wide(at: &TestModule, responses: &[ServerResponse], picture: &[u8], codes: &[&str]) -> Next {
    if let [answer, ..] = responses
        && answer.json().is_some_and(|body| body["ok"] == true)
    {
        let warned = answer.warnings().iter().any(|warning| warning["code"] == "W1015");
        ensure(warned, || {
            String::from("the image was accepted without a warning that it was scaled")
        })?;
        return PASSED;
    }
    refused(at, responses, item("image/png", picture), codes)
}
