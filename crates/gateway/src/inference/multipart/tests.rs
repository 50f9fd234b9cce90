//! Hostile forms, in pieces of one byte and of many.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use futures::stream;
use spill::SpillStore;

use super::MultipartForm;
use crate::allocated_bytes::assert_linear;
use crate::limits;
use crate::response::ApiError;

/// Reads a form in pieces of this size. Returns also how many pieces were taken.
fn read(form: &[u8], piece: usize) -> (Result<MultipartForm, ApiError>, usize) {
    let taken = Arc::new(AtomicUsize::new(0));
    let pieces: Vec<Bytes> = form.chunks(piece).map(Bytes::copy_from_slice).collect();
    let counter = Arc::clone(&taken);
    let pieces = stream::iter(pieces.into_iter().map(move |piece| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(piece)
    }));
    let spill = SpillStore::default().run_spill();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let form = runtime.block_on(MultipartForm::parse(pieces, String::from("X"), &["file"], &spill));
    (form, taken.load(Ordering::Relaxed))
}

fn part(name: &str, content: &str) -> String {
    format!("--X\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
}

#[test]
fn forms_are_read_in_linear_time() {
    let forms: [fn(usize) -> String; 5] = [
        |size| part("text", &"a".repeat(size)) + "--X--",
        |size| part("file", &"\r\n--".repeat(size / 4)) + "--X--",
        |size| part("text", &"\r".repeat(size)) + "--X--",
        |size| part("list[]", "a").repeat(size / 1_024) + "--X--",
        |size| part(&"a".repeat(size / 8), "a") + "--X--",
    ];
    for form in forms {
        for piece in [1, 1_000] {
            assert!(read(form(32 * 1024).as_bytes(), piece).0.is_ok());
            assert_linear(16 * 1024, form, |form| drop(read(form.as_bytes(), piece)));
        }
    }
}

/// The parser searches all of them again after each piece.
#[test]
fn headers_of_parts_and_bytes_before_the_first_are_bounded() {
    let long = "a".repeat(4 * limits::PART_HEADER_BYTES_MAX);
    for form in [part(&long, "a") + "--X--", long + &part("a", "a") + "--X--"] {
        let (read, taken) = read(form.as_bytes(), 1);
        assert_eq!(read.unwrap_err().into_body().code, "E1005");
        assert!(
            taken <= limits::PART_HEADER_BYTES_MAX + 1,
            "{taken} bytes were taken"
        );
    }
    let allowed = part(
        &"a".repeat(limits::PART_HEADER_BYTES_MAX / 2),
        &"b".repeat(500_000),
    );
    for piece in [1_000, 100_000, 1_000_000] {
        let (read, _) = read((allowed.clone() + &part("n", "1") + "--X--").as_bytes(), piece);
        assert_eq!(read.unwrap().fields.len(), 2);
    }
}
