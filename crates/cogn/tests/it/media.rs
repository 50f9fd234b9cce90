//! Media of a run, tested with the binary: what reaches a back-end is sanitised and in the vendor's form;
//! refused media is not sent.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ir::media::Base64;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::http::{MockServer, ScriptedResponse};
use testkit::tools;

use crate::examples::root;
use crate::harness::binary;

const REPLY: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"a test card"},"data":{"rationale":"colours","analysis":{"description":"a test card"}}}"#;

/// A mock vendor that answers every chat with [`REPLY`].
fn vendor() -> MockServer {
    let piece = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": REPLY}, "finish_reason": null}
    ]});
    let end = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [
        {"index": 0, "delta": {}, "finish_reason": "stop"}
    ]});
    let body = format!("data: {piece}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    MockServer::with_responses(ScriptedResponse::good("text/event-stream", body))
}

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// Back-ends of these kinds at these addresses, in order of priority.
    fn new(backends: &[(&str, &MockServer, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = String::new();
        for (place, (kind, upstream, features)) in backends.iter().enumerate() {
            let url = upstream.url(if *kind == "openai" { "/v1" } else { "" });
            config += &format!(
                "[[backends]]\nname = \"b{place}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m\"\n\
                 features = [{features}]\npriority = {}\n",
                10 - place
            );
        }
        fs::write(folder.path().join("cogn.toml"), config).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        String::from(self.folder.path().join(name).to_str().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(binary())
            .current_dir(self.folder.path())
            .arg("--modules")
            .arg(root().join("examples/modules"))
            .args(["run", "image-analyzer", "--json", "--config", "cogn.toml"])
            .args(arguments)
            .env_remove("OPENAI_API_KEY")
            .output()
            .unwrap()
    }

    fn input(&self, item: &Value) -> String {
        let path = self.path("input.json");
        fs::write(&path, json!({"prompt": "what?", "images": [item]}).to_string()).unwrap();
        path
    }

    /// A photo with metadata: location, author and orientation.
    fn photo(&self) -> String {
        tools::require(&[("ffmpeg", "ffmpeg"), ("exiftool", "libimage-exiftool-perl")]);
        let path = self.path("photo.jpg");
        let source = "testsrc2=size=64x48:rate=1:duration=1";
        tools::run(
            "ffmpeg",
            &[
                "-v",
                "error",
                "-y",
                "-f",
                "lavfi",
                "-i",
                source,
                "-frames:v",
                "1",
                &path,
            ],
        );
        let tags = [
            "-q",
            "-overwrite_original",
            "-n",
            "-Orientation=6",
            "-Artist=Jane Roe",
        ];
        let place = ["-GPSLatitude=48.8584", "-GPSLatitudeRef=N"];
        tools::run("exiftool", &[tags.as_slice(), &place, &[path.as_str()]].concat());
        path
    }
}

fn envelope(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn code(output: &Output) -> String {
    String::from(envelope(output)["error"]["code"].as_str().unwrap_or_default())
}

const SEES: &str = "\"supports_stream\", \"supports_image_input\"";

fn tells_of_its_maker(bytes: &[u8], at: &Path) -> bool {
    fs::write(at, bytes).unwrap();
    let metadata = tools::run("exiftool", &["-GPSLatitude", "-Artist", at.to_str().unwrap()]);
    !metadata.trim().is_empty()
}

#[test]
fn sanitised_image_is_sent_in_vendor_form() {
    for kind in ["openai", "anthropic"] {
        let vendor = vendor();
        let desk = Desk::new(&[(kind, &vendor, SEES)]);
        let photo = desk.photo();
        assert!(tells_of_its_maker(
            &fs::read(&photo).unwrap(),
            &desk.folder.path().join("before.jpg")
        ));
        desk.run(&["--set", "prompt=what?", "--image", &photo]);
        let asked = vendor.received();
        assert_eq!(asked.len(), 1, "{kind}");
        let body = asked[0].json();
        let messages = body["messages"].as_array().unwrap();
        let parts = &messages.last().unwrap()["content"];
        let parts = parts.as_array().unwrap_or_else(|| panic!("{kind} {parts}"));
        let (place, data) = parts
            .iter()
            .enumerate()
            .find_map(|(place, part)| {
                let data = match kind {
                    "openai" => part["image_url"]["url"]
                        .as_str()?
                        .strip_prefix("data:image/jpeg;base64,")?,
                    _ => part["source"]["data"].as_str()?,
                };
                Some((place, String::from(data)))
            })
            .unwrap_or_else(|| panic!("{body}"));
        // At the placeholder of the prompt: after its first words, before its last.
        assert!(place > 0 && place + 1 < parts.len(), "{body}");
        assert!(!asked[0].text().contains("MEDIA_INPUTS") && !asked[0].text().contains("photo.jpg"));
        let bytes = Base64::from_text(data).decode().unwrap();
        let sent = desk.folder.path().join("sent.jpg");
        assert!(!tells_of_its_maker(&bytes, &sent), "{kind}");
        let upright = tools::run("exiftool", &["-n", "-s3", "-Orientation", sent.to_str().unwrap()]);
        assert_eq!(upright.trim(), "6");
    }
}

#[test]
fn envelope_reports_inspected_media() {
    let vendor = vendor();
    let desk = Desk::new(&[("openai", &vendor, SEES)]);
    let output = desk.run(&["--set", "prompt=what?", "--image", &desk.photo()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let meta = &envelope(&output)["meta"];
    assert_eq!(meta["media_validation"]["input_count"], 1);
    let seen = &meta["media_validation"]["validated"][0];
    assert_eq!(
        (&seen["media_type"], &seen["valid"]),
        (&json!("image/jpeg"), &json!(true))
    );
    assert_eq!(seen["dimensions"], json!({"width": 48, "height": 64}));
    assert!(
        meta["media_processed"][0]["removed"]
            .as_array()
            .unwrap()
            .contains(&json!("exif"))
    );
    // In a stream, media progress precedes the progress of the first call.
    let output = desk.run(&["--stream", "--set", "prompt=what?", "--image", &desk.photo()]);
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines[0].get("session_id").is_some(), "{lines:?}");
    let stages: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["progress"]["stage"].as_str())
        .collect();
    assert_eq!(stages.first(), Some(&"media"), "{lines:?}");
    assert!(stages.contains(&"attempt"), "{stages:?}");
    assert_eq!(
        lines.last().unwrap()["meta"]["media_validation"]["input_count"],
        1
    );
}

/// The second back-end gets the same bytes as the first: nothing is read or fetched again.
#[test]
fn failover_sends_the_same_bytes() {
    let broken =
        MockServer::with_responses(ScriptedResponse::response("500 Internal Server Error", &[], "no"));
    let good = vendor();
    let desk = Desk::new(&[("openai", &broken, SEES), ("openai", &good, SEES)]);
    let output = desk.run(&["--set", "prompt=what?", "--image", &desk.photo()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let messages = |upstream: &MockServer| upstream.received()[0].json()["messages"].clone();
    assert_eq!(messages(&broken), messages(&good));
    assert!(messages(&good).to_string().contains("data:image/jpeg;base64,"));
}

#[test]
fn media_unsupported_by_all_backends_is_not_sent() {
    let vendor = vendor();
    let desk = Desk::new(&[("openai", &vendor, "\"supports_stream\"")]);
    let output = desk.run(&["--set", "prompt=what?", "--image", &desk.photo()]);
    assert_eq!(
        (code(&output).as_str(), output.status.code()),
        ("E4011", Some(1)),
        "{output:?}"
    );
    assert!(vendor.received().is_empty());
}

#[test]
fn forbidden_paths_and_urls_are_not_read() {
    let vendor = vendor();
    let desk = Desk::new(&[("openai", &vendor, SEES)]);
    let here = vendor.url("/secret.png");
    for (item, expected) in [
        (
            json!({"type": "base64", "media_type": "image/tiff", "data": "SUkqAA=="}),
            "E1010",
        ),
        (
            json!({"type": "base64", "media_type": "image/png", "data": "SUkqAA=="}),
            "E1014",
        ),
        (json!({"type": "url", "url": here}), "E1012"),
        (
            json!({"type": "url", "url": "http://169.254.169.254/latest/meta-data"}),
            "E1012",
        ),
        (json!({"type": "url", "url": "http://localhost/"}), "E1012"),
        (
            json!({"type": "file", "path": "../../../../../../etc/passwd"}),
            "E1006",
        ),
        (json!({"type": "file", "path": "/etc/hostname"}), "E1006"),
        (json!({"type": "upload_ref", "upload_id": "upl_1"}), "E1019"),
    ] {
        let output = desk.run(&[&desk.input(&item)]);
        assert_eq!(
            (code(&output).as_str(), output.status.code()),
            (expected, Some(1)),
            "{item}: {output:?}"
        );
    }
    assert!(vendor.received().is_empty());
    // A file of the module and one of the working folder are read.
    for path in ["assets/sunset.png", "photo.jpg"] {
        desk.photo();
        let output = desk.run(&[&desk.input(&json!({"type": "file", "path": path}))]);
        assert_eq!(output.status.code(), Some(0), "{path}: {output:?}");
    }
}

#[test]
fn fetching_can_be_disabled() {
    let vendor = vendor();
    let desk = Desk::new(&[("openai", &vendor, SEES)]);
    let config = desk.path("cogn.toml");
    let text = format!(
        "{}[media]\nfetch = \"off\"\n",
        fs::read_to_string(&config).unwrap()
    );
    fs::write(&config, text).unwrap();
    let output = desk.run(&[&desk.input(&json!({"type": "url", "url": "https://example.com/a.png"}))]);
    assert_eq!(envelope(&output)["error"]["details"]["reason"], "fetch_disabled");
}

/// An image on a private host that the configuration allows: fetched once, for any number of back-ends and
/// attempts.
#[test]
fn image_is_fetched_once_for_all_backends() {
    let picture = fs::read(root().join("examples/modules/image-analyzer/assets/sunset.png")).unwrap();
    let web = MockServer::with_responder(move |_, asked| match asked.path() {
        "/sunset.png?token=1" => ScriptedResponse::good("image/png", &picture),
        _ => ScriptedResponse::response("404 Not Found", &[], ""),
    });
    let broken =
        MockServer::with_responses(ScriptedResponse::response("500 Internal Server Error", &[], "{}"));
    let good = vendor();
    let desk = Desk::new(&[("openai", &broken, SEES), ("openai", &good, SEES)]);
    let item = json!({"type": "url", "url": web.url("/sunset.png?token=1")});
    let input = desk.input(&item);
    let closed = desk.run(&[&input]);
    assert_eq!(code(&closed), "E1012", "{closed:?}");
    assert_eq!(web.received().len(), 0);

    let config = desk.path("cogn.toml");
    let opened = format!(
        "{}\n[media]\nprivate_hosts = [\"{}\"]\n",
        fs::read_to_string(&config).unwrap(),
        web.address
    );
    fs::write(&config, opened).unwrap();
    let output = desk.run(&[&input]);
    assert_eq!(web.received().len(), 1, "{output:?}");
    assert!(
        !broken.received().is_empty() && !good.received().is_empty(),
        "both were called"
    );
    for asked in [&broken.received()[0], &good.received()[0]] {
        let body = asked.text();
        assert!(
            !body.contains("token=1") && !body.contains("sunset.png"),
            "the address stays here"
        );
    }
    let validation = &envelope(&output)["meta"]["media_validation"];
    assert_eq!(
        validation["validated"][0]["media_type"], "image/png",
        "{validation}"
    );
    let missing = desk.input(&json!({"type": "url", "url": web.url("/missing.png")}));
    let missing = envelope(&desk.run(&[&missing]));
    assert_eq!(missing["error"]["details"]["status"], 404, "{missing}");
}
