//! A stream that fails reports the usage that its server had sent, after the output that the usage includes.

use ir::{Dialect, Event};
use wire::Decoder;

/// Streams with output and usage in one frame, or usage in the frame of the error, and an end without success.
const STREAMS: &[(Dialect, &str)] = &[
    (
        Dialect::OpenaiChat,
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one two\"}}],\
         \"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n",
    ),
    (
        Dialect::OpenaiChat,
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n\
         data: {\"error\":{\"message\":\"overloaded\"},\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n",
    ),
    (
        Dialect::OpenaiResponses,
        "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n\
         data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"one\"}\n\n\
         data: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\
         \"error\":{\"code\":\"server_error\",\"message\":\"broke\"},\"usage\":{\"input_tokens\":5,\"output_tokens\":7}}}\n\n",
    ),
    (
        Dialect::Gemini,
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"one\"}]}}],\
         \"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":7}}\n\n",
    ),
    (
        Dialect::Gemini,
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"one\"}]}}]}\n\n\
         data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"},\
         \"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":7}}\n\n",
    ),
    (
        Dialect::Anthropic,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"one\"}}\n\n\
         event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":7}}\n\n",
    ),
];

#[test]
fn usage_of_failed_streams_follows_their_output() {
    for (dialect, bytes) in STREAMS {
        let mut decoder = Decoder::new(*dialect).expect("the dialect streams");
        let mut events = Vec::new();
        decoder.push(bytes.as_bytes(), &mut events);
        if !matches!(events.last(), Some(Event::Error { .. })) {
            decoder.finish(&mut events);
        }
        let last = |wanted: fn(&Event) -> bool| events.iter().rposition(wanted);
        let output = last(|event| matches!(event, Event::BlockDelta { .. }));
        let usage = last(|event| matches!(event, Event::Usage { .. }));
        let error = last(|event| matches!(event, Event::Error { .. }));
        assert!(
            output.is_some() && output < usage && usage < error,
            "{dialect}: {events:?}"
        );
        let reported = events.iter().rev().find_map(|event| match event {
            Event::Usage { usage } => Some((usage.input_tokens, usage.output_tokens)),
            _ => None,
        });
        assert_eq!(reported, Some((Some(5), Some(7))), "{dialect}: {events:?}");
    }
}
