//! Generated PNG images of one grey value and any size: stored without compression, so that their length is
//! predictable, or all black, compressed to a few kilobytes.

use ir::media::Base64;
use serde_json::{Value, json};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Most bytes of one stored block.
const BLOCK: usize = 65_535;

/// Bits per grey sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    One = 1,
    Eight = 8,
}

pub(super) fn png(width: u32, height: u32, depth: Depth) -> Vec<u8> {
    let bits = depth as u8;
    let row = usize::try_from(width).unwrap_or(0) * usize::from(bits);
    let row = [vec![0], vec![0x55; row.div_ceil(8)]].concat();
    let rows = row.repeat(usize::try_from(height).unwrap_or(0));
    file(width, height, depth, stored(&rows))
}

/// All black; the file is small for any number of pixels.
pub(super) fn black(width: u32, height: u32) -> Vec<u8> {
    let row = 1 + u64::from(width).div_ceil(8);
    file(width, height, Depth::One, zeros(row * u64::from(height)))
}

fn file(width: u32, height: u32, depth: Depth, data: Vec<u8>) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([depth as u8, 0, 0, 0, 0]);
    let mut file = SIGNATURE.to_vec();
    for (kind, body) in [(b"IHDR", header), (b"IDAT", data), (b"IEND", Vec::new())] {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let named = [kind.as_slice(), &body].concat();
        file.extend(length.to_be_bytes());
        file.extend(&named);
        file.extend(crc(&named).to_be_bytes());
    }
    file
}

/// The bytes as a media item of an input.
pub(super) fn item(media_type: &str, bytes: &[u8]) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": Base64::from_bytes(bytes).as_str()})
}

/// A valid media item.
pub(super) fn good() -> Value {
    item("image/png", &png(32, 24, Depth::Eight))
}

/// A zlib stream of stored blocks.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(adler(bytes).to_be_bytes());
    out
}

/// A zlib stream of `count` zeros: one literal, then matches at distance 1, in the fixed Huffman code
/// ([RFC 1951, 3.2.6](https://www.rfc-editor.org/rfc/rfc1951#section-3.2.6)).
fn zeros(count: u64) -> Vec<u8> {
    const ZERO: u16 = 0b0011_0000;
    const LONGEST: u64 = 258;
    let again = count.saturating_sub(1);
    // The last block, with fixed codes.
    let mut bits = vec![true, true, false];
    let mut code = |code: u16, length: u32| {
        let places = (0..length).rev();
        bits.extend(places.map(|place| code >> place & 1 == 1));
    };
    code(ZERO, 8);
    for _ in 0..again / LONGEST {
        // A match of `LONGEST` bytes at distance 1.
        code(0b1100_0101, 8);
        code(0, 5);
    }
    for _ in 0..again % LONGEST {
        code(ZERO, 8);
    }
    code(0, 7);
    let mut out = vec![0x78, 0x01];
    out.extend(bits.chunks(8).map(|eight| {
        let places = eight.iter().enumerate();
        places.fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place)
    }));
    // For zeros the Adler-32 checksum depends on their count only.
    let sum = u32::try_from(count % 65_521).unwrap_or_default() << 16 | 1;
    out.extend(sum.to_be_bytes());
    out
}

fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                0xEDB8_8320 ^ (crc >> 1)
            } else {
                crc >> 1
            };
        }
    }
    !crc
}
