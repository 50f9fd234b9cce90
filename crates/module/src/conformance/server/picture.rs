//! Pictures made on the spot: PNG files of one grey, of any size. Stored without compression, so that a
//! few lines make them and their length is known.

use ir::media::Base64;
use serde_json::{Value, json};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Most bytes of one stored block.
const BLOCK: usize = 65_535;

/// Bits of one grey.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    One = 1,
    Eight = 8,
}

pub(super) fn png(width: u32, height: u32, depth: Depth) -> Vec<u8> {
    let bits = depth as u8;
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([bits, 0, 0, 0, 0]);
    let row = usize::try_from(width).unwrap_or(0) * usize::from(bits);
    let row = [vec![0], vec![0x55; row.div_ceil(8)]].concat();
    let rows = row.repeat(usize::try_from(height).unwrap_or(0));
    let mut file = SIGNATURE.to_vec();
    for (kind, body) in [(b"IHDR", header), (b"IDAT", stored(&rows)), (b"IEND", Vec::new())] {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let named = [kind.as_slice(), &body].concat();
        file.extend(length.to_be_bytes());
        file.extend(&named);
        file.extend(crc(&named).to_be_bytes());
    }
    file
}

/// As an item of an input.
pub(super) fn item(media_type: &str, bytes: &[u8]) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": Base64::from_bytes(bytes).as_str()})
}

/// One that nothing is wrong with.
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
