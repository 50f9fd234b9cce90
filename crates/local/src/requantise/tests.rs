use std::fs;

use proptest::prelude::*;

use super::{half, q4, requantise};

/// A GGUF file with one F32 tensor, one Q4_1 tensor with these blocks, and another F32 tensor.
fn file(blocks: &[[u8; 20]]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    let string = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    bytes.extend(3_u64.to_le_bytes());
    bytes.extend(3_u64.to_le_bytes());
    string(&mut bytes, "general.file_type");
    bytes.extend([4_u32, 3].into_iter().flat_map(u32::to_le_bytes));
    string(&mut bytes, "tokens");
    bytes.extend([9_u32, 8].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(1_u64.to_le_bytes());
    string(&mut bytes, "word");
    string(&mut bytes, "scores");
    bytes.extend([9_u32, 6].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(1.5_f32.to_le_bytes());
    let middle = blocks.len() as u64 * 20;
    let last = 32 + middle.next_multiple_of(32);
    let entries = [
        ("a", 4, 0, 0),
        ("b", blocks.len() as u64 * 32, 3, 32),
        ("c", 1, 0, last),
    ];
    for (name, elements, kind, offset) in entries {
        string(&mut bytes, name);
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(elements.to_le_bytes());
        bytes.extend(u32::to_le_bytes(kind));
        bytes.extend(u64::to_le_bytes(offset));
    }
    let align = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(32), 0);
    align(&mut bytes);
    bytes.extend([1.0_f32, 2.0, 3.0, 4.0].into_iter().flat_map(f32::to_le_bytes));
    align(&mut bytes);
    bytes.extend(blocks.concat());
    align(&mut bytes);
    bytes.extend(7.0_f32.to_le_bytes());
    bytes
}

fn converted(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::write(&from, bytes).unwrap();
    match requantise(&from, &to) {
        Ok(true) => Ok(Some(fs::read(&to).unwrap())),
        Ok(false) => {
            assert!(!to.try_exists().unwrap());
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

fn block(scale: f32, minimum: f32, nibbles: [u8; 16]) -> [u8; 20] {
    let mut block = [0; 20];
    block[..2].copy_from_slice(&half::from_f32(scale).to_le_bytes());
    block[2..4].copy_from_slice(&half::from_f32(minimum).to_le_bytes());
    block[4..].copy_from_slice(&nibbles);
    block
}

fn weights_of_q4_0(block: &[u8]) -> Vec<f32> {
    let scale = half::to_f32(u16::from_le_bytes([block[0], block[1]]));
    let nibbles = q4::unpack(block[2..].try_into().unwrap());
    nibbles
        .iter()
        .map(|nibble| scale * (f32::from(*nibble) - 8.0))
        .collect()
}

#[test]
fn replaces_q4_1_tensors_and_copies_the_others() {
    let blocks = [
        block(0.5, -4.0, *b"0123456789abcdef"),
        block(0.25, 0.0, [0x5a; 16]),
    ];
    let result = converted(&file(&blocks)).unwrap().unwrap();
    let file_type = result
        .windows(17)
        .position(|bytes| bytes == b"general.file_type")
        .unwrap();
    assert_eq!(result[file_type + 21], 2);
    // The first two tensors fill 32 and 64 bytes of data, and the last is not padded in the source.
    let data = result.len() - 128;
    assert_eq!(
        result[data..data + 16],
        [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat()
    );
    // A minimum of -8 scales is what Q4_0 stores, so nothing is lost.
    assert_eq!(result[data + 32..data + 34], half::from_f32(0.5).to_le_bytes());
    assert_eq!(result[data + 34..data + 50], *b"0123456789abcdef");
    assert_eq!(result[data + 96..data + 100], 7.0_f32.to_le_bytes());
    // The result has nothing to convert.
    assert_eq!(converted(&result), Ok(None));
}

#[test]
fn refuses_every_truncation() {
    let whole = file(&[block(1.0, 0.0, [0x12; 16])]);
    for length in (8..whole.len() - 4).step_by(3) {
        let result = converted(&whole[..length]);
        let error = result.expect_err(&length.to_string());
        assert!(error.contains("damaged"), "{length}: {error}");
    }
}

#[test]
fn refuses_a_tensor_that_is_larger_than_its_data() {
    let mut bytes = file(&[block(1.0, 0.0, [0x12; 16])]);
    let at = bytes
        .windows(9)
        .position(|bytes| bytes == b"\x01\0\0\0\0\0\0\0b")
        .unwrap()
        + 13;
    for elements in [64_u64, 33, u64::MAX, u64::MAX - 31] {
        bytes[at..at + 8].copy_from_slice(&elements.to_le_bytes());
        let error = converted(&bytes).unwrap_err();
        assert!(error.contains("does not match"), "{elements}: {error}");
    }
}

#[test]
fn half_precision_is_exact() {
    for bits in 0..=u16::MAX {
        let value = half::to_f32(bits);
        match value.is_nan() {
            true => assert!(half::to_f32(half::from_f32(value)).is_nan()),
            false => assert_eq!(half::from_f32(value), bits, "{value}"),
        }
    }
    // Ties go to the even neighbour.
    for (value, rounded) in [
        (1.0 + 1.0 / 2048.0, 1.0),
        (1.0 + 3.0 / 2048.0, 1.0 + 2.0 / 1024.0),
        (65519.0, 65504.0),
    ] {
        assert_eq!(half::to_f32(half::from_f32(value)), rounded, "{value}");
    }
    assert_eq!(half::to_f32(half::from_f32(-65520.0)), f32::NEG_INFINITY);
}

proptest! {
    /// Never worse than the scale that maps the largest weight to -8.
    #[test]
    fn error_is_at_most_that_of_the_plain_scale(scale in 0.001_f32..0.1, minimum in -1.0_f32..0.1, nibbles: [u8; 16]) {
        let block = block(scale, minimum, nibbles);
        let (scale, minimum) = (
            half::to_f32(u16::from_le_bytes([block[0], block[1]])),
            half::to_f32(u16::from_le_bytes([block[2], block[3]])),
        );
        let weights: Vec<f32> = q4::unpack(&nibbles).iter().map(|nibble| scale * f32::from(*nibble) + minimum).collect();
        let largest = weights.iter().copied().fold(0.0_f32, |a, b| if b.abs() > a.abs() { b } else { a });
        let step = half::to_f32(half::from_f32(largest / -8.0));
        let plain: f32 = weights.iter().map(|weight| {
            let nearest = (weight / step).round().clamp(-8.0, 7.0) * step;
            (nearest - weight).powi(2)
        }).sum();
        let result = weights_of_q4_0(&q4::requantise(&block));
        let error: f32 = weights.iter().zip(&result).map(|(a, b)| (a - b).powi(2)).sum();
        prop_assert!(error <= plain * 1.001 + 1e-9, "{error} > {plain}");
    }

    #[test]
    fn accepts_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let with_magic = [b"GGUF\x03\0\0\0".as_slice(), &bytes].concat();
        // Either outcome is correct; it must not panic or allocate without bound.
        converted(&with_magic).ok();
        let block: Vec<u8> = bytes.iter().copied().cycle().take(20).collect();
        if let Ok(block) = block.as_slice().try_into() {
            q4::requantise(block);
        }
    }
}
