//! Back-ends over real sockets that die in the middle of a stream, and clients that do not notice.

use ir::Dialect;
use testkit::fault::{events, stream_of};
use testkit::http::{Answer, HttpUpstream};

use crate::stage::{REPLY, Stage, assemble, data, input};

async fn read(request: reqwest::RequestBuilder) -> String {
    let request = request.header("accept", "application/x-ndjson");
    request.send().await.unwrap().text().await.unwrap()
}

/// Each kind of back-end over real sockets, cut at places all over its stream.
#[tokio::test]
async fn an_http_back_end_that_dies_at_any_byte_is_not_noticed_in_the_data() {
    for (kind, dialect) in [
        ("openai", Dialect::OpenaiChat),
        ("anthropic", Dialect::Anthropic),
        ("gemini", Dialect::Gemini),
        ("ollama", Dialect::Ollama),
    ] {
        let whole = stream_of(dialect, &events(REPLY));
        let places: Vec<usize> = (0..whole.len()).step_by(1 + whole.len() / 25).collect();
        let cuts = places.clone();
        let content_type = match dialect {
            Dialect::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let upstream = HttpUpstream::answering(move |call, _| {
            let cut = cuts[call % cuts.len()];
            Answer::good(content_type, whole.get(..cut).unwrap())
        });
        let stage = Stage::new();
        let talker = stage.talker(0);
        let script = talker.strip_prefix("scripted:").unwrap();
        let config = stage.config(&format!(
            "[routing]\npolicy = \"priority\"\nretry = {{share = 1.0, reserve = 1000, same_max = 0}}\n\
             breaker = {{failures = 1000, failure_share = 1.0, open_ms = 1, open_max_ms = 1}}\n\
             [[backends]]\nname = \"dying\"\nkind = \"{kind}\"\nmodel = \"m\"\nbase_url = \"{}\"\npriority = 1\n\
             [[backends]]\nname = \"good\"\nkind = \"scripted\"\nscript = {script:?}\n",
            upstream.url("")
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        for cut in &places {
            let text = read(server.execute("counter", &input())).await;
            let envelope = assemble(&text).envelope;
            assert_eq!(envelope["data"], data(), "{kind} cut at {cut}: {text}");
        }
        assert!(upstream.asked().len() >= places.len(), "{kind} was not asked");
    }
}
