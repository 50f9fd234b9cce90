//! Errors of storing response media. A full spill store and a disk error are local failures and not the
//! back-end's: they cause no failover, and the details of a disk error are only logged.

use std::io;

use ir::{Error, ErrorKind, Phase};
use spill::limits::FULL_RETRY_MS;

pub(crate) fn unkept(error: &io::Error) -> Error {
    let own = |message: &str| {
        let error = Error::new(ErrorKind::Internal, Phase::MidStream, message);
        error.with_provider_code(Some(String::from("E4000")))
    };
    match error.kind() {
        io::ErrorKind::StorageFull => {
            let mut full = own("the spill store is full");
            full.retry_after_ms = Some(FULL_RETRY_MS);
            full
        }
        // Errors of the received bytes.
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::invalid_response(Phase::MidStream, format!("the answer is broken: {error}"))
        }
        io::ErrorKind::FileTooLarge => {
            let message = format!("the answer is too large: {error}");
            Error::new(ErrorKind::AnswerTooLarge, Phase::MidStream, message)
        }
        _ => {
            tracing::error!(%error, "storing response media failed");
            own("the media of the answer could not be stored")
        }
    }
}
