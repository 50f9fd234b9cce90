//! All fixed limits of this crate. Configurable bounds are in [`Bounds`](crate::Bounds); these apply in
//! addition.

/// Bytes read from the start of a file for type detection.
pub const HEAD_BYTES: usize = 64;
/// Maximum size of an image that is read into memory.
pub const IMAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum size of a document that is read into memory.
pub const DOCUMENT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Images up to this many pixels are decoded for validation; for larger ones only the container is scanned.
pub const DECODE_PIXELS_MAX: u64 = 25_000_000;
/// Images with more pixels are refused even if downscaling is enabled.
pub const SCALE_PIXELS_MAX: u64 = 100_000_000;
/// Maximum memory of an image decoder.
pub const DECODE_ALLOC_MAX: u64 = 512 * 1024 * 1024;
/// Maximum number of segments, chunks, boxes, pages or elements of one file.
pub const PARTS_MAX: usize = 200_000;
/// Maximum nesting depth of boxes and elements.
pub const DEPTH_MAX: usize = 12;
/// Maximum size of a table or header that is read at once.
pub const TABLE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum number of packets that are counted to measure a duration: five hours of MP3.
pub const PACKETS_MAX: usize = 1_000_000;
/// Maximum decompressed size of all compressed tables of a document.
pub const DOCUMENT_TABLES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Maximum number of entries read from an EXIF directory.
pub const EXIF_ENTRIES_MAX: usize = 1_024;
