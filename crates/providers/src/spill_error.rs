//! Why media of an answer could not be kept, in words. A full depot and a broken disk are this machine's fault
//! and not the back-end's: nobody else is asked for them, and what the disk says is for whoever runs the server.

use std::io;

use engine::limits::MEDIA_STORE_RETRY_MS;
use ir::{Error, ErrorKind, Phase};

pub(crate) fn unkept(error: &io::Error) -> Error {
    let own = |message: &str| {
        let error = Error::new(ErrorKind::Internal, Phase::MidStream, message);
        error.with_provider_code(Some(String::from("E4000")))
    };
    match error.kind() {
        io::ErrorKind::StorageFull => {
            let mut full = own("there is no room for the media of more answers");
            full.retry_after_ms = Some(MEDIA_STORE_RETRY_MS);
            full
        }
        // What is wrong with the bytes themselves.
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::invalid_response(Phase::MidStream, format!("the answer is broken: {error}"))
        }
        _ => {
            tracing::error!(%error, "media of an answer could not be kept");
            own("the media of the answer could not be kept")
        }
    }
}
