//! Every bound of this crate in one place. What a person may turn stands in [`Bounds`](crate::Bounds);
//! these hold whatever anybody says.

/// How many bytes a look at the beginning of a file takes.
pub const HEAD_BYTES: usize = 64;
/// Largest picture that is read into memory.
pub const IMAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Largest document that is read into memory.
pub const DOCUMENT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Pictures up to this many pixels are decoded to see whether they can be; of larger ones only the
/// structure is looked at.
pub const DECODE_PIXELS_MAX: u64 = 25_000_000;
/// Pictures beyond this are refused even where larger ones are scaled down.
pub const SCALE_PIXELS_MAX: u64 = 100_000_000;
/// Most memory that a decoder may ask for.
pub const DECODE_ALLOC_MAX: u64 = 512 * 1024 * 1024;
/// Most segments, chunks, boxes, pages or elements of one file.
pub const PARTS_MAX: usize = 200_000;
/// Deepest nesting of boxes and elements.
pub const DEPTH_MAX: usize = 12;
/// Largest table or header that a walker reads at once.
pub const TABLE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Most packets that are counted to measure how long something is: five hours of MP3.
pub const PACKETS_MAX: usize = 1_000_000;
/// Most bytes that the compressed tables of a document may unfold to, together.
pub const DOCUMENT_TABLES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Most entries of an EXIF directory that are looked through.
pub const EXIF_ENTRIES_MAX: usize = 1_024;
