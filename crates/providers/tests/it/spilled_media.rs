//! Media outside of memory, over real sockets in every dialect: the received body equals the body with inline
//! media, on every attempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::media::{Base64, MediaHandle};
use ir::{ChatRequest, Feature, Media, MediaSource, Message, Part, Request, Role};
use providers::{Client, ClientOptions, HttpOptions, HttpUpstream, anthropic, gemini, ollama, openai};
use testkit::http::{MockServer, ScriptedResponse};

fn request(media: &[u8], held: bool) -> Arc<Request> {
    let source = if held {
        let held = MediaHandle::from_bytes(media.to_vec()).unwrap();
        MediaSource::Handle(held)
    } else {
        MediaSource::Inline(Base64::from_bytes(media))
    };
    let mut message = Message::text(Role::User, "What is it?");
    let picture = Media::new(source, Some(String::from("image/png")));
    message.parts.push(Part::from(picture.clone()));
    message.parts.push(Part::text("And again:"));
    message.parts.push(Part::from(picture));
    Arc::new(Request::chat("r", ChatRequest::new("m", vec![message])))
}

fn picture() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend((0..1_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]));
    bytes
}

#[tokio::test]
async fn every_vendor_receives_the_same_bytes_with_content_length() {
    type Make = fn(Client, HttpOptions) -> HttpUpstream;
    let kinds: [(&str, Make); 4] = [
        ("openai", openai),
        ("anthropic", anthropic),
        ("gemini", gemini),
        ("ollama", ollama),
    ];
    for (kind, make) in kinds {
        let server =
            MockServer::with_responses(ScriptedResponse::response("503 Service Unavailable", &[], "{}"));
        let options = HttpOptions {
            name: String::from("tested"),
            base_url: server.url(""),
            features: BTreeSet::from([Feature::ImageInput, Feature::SystemRole]),
            ..HttpOptions::default()
        };
        let back_end = make(Client::new(&ClientOptions::default()).unwrap(), options);
        let picture = picture();
        let shared = request(&picture, true);
        // The same request repeatedly, as retries, hedges and mirrors send it.
        for request in [shared.clone(), shared.clone(), request(&picture, false)] {
            back_end.stream(request).collect::<Vec<_>>().await;
        }
        let asked = server.received();
        assert_eq!(asked.len(), 3, "{kind}");
        for one in &asked {
            assert!(one.body == asked[2].body, "{kind}");
            let length = one.header("content-length").map(String::from);
            assert_eq!(length, Some(asked[2].body.len().to_string()), "{kind}");
            assert_eq!(one.header("transfer-encoding"), None, "{kind}");
        }
        let calls = tokio::join!(
            back_end.stream(shared.clone()).collect::<Vec<_>>(),
            back_end.stream(shared).collect::<Vec<_>>()
        );
        drop(calls);
        let asked = server.received();
        assert!(asked.len() == 5 && asked[3].body == asked[2].body && asked[4].body == asked[2].body);
    }
}
