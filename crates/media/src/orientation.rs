//! The orientation of an image, the only EXIF field that is retained. It is read from any EXIF and written
//! to a new EXIF structure without other fields.

use crate::limits;

/// EXIF orientation, 1 to 8; 1 is upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

const TAG: u16 = 0x0112;

impl Orientation {
    /// Reads a TIFF structure; an unreadable orientation counts as upright.
    pub(crate) fn of_exif(tiff: &[u8]) -> Option<Self> {
        let big = match tiff.get(..4)? {
            b"MM\0*" => true,
            b"II*\0" => false,
            _ => return None,
        };
        let short = |at: usize| {
            let bytes: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
            Some(if big {
                u16::from_be_bytes(bytes)
            } else {
                u16::from_le_bytes(bytes)
            })
        };
        let high_first = usize::from(big);
        let directory =
            usize::from(short(4 + 2 * (1 - high_first))?) << 16 | usize::from(short(4 + 2 * high_first)?);
        let count = usize::from(short(directory)?).min(limits::EXIF_ENTRIES_MAX);
        let mut entries = (0..count).map(|index| directory + 2 + index * 12);
        let entry = entries.find(|&at| short(at) == Some(TAG))?;
        let value = u8::try_from(short(entry.checked_add(8)?)?).ok()?;
        (2..=8).contains(&value).then_some(Self(value))
    }

    /// A TIFF structure with this entry only.
    pub(crate) fn to_exif(self) -> Vec<u8> {
        let mut tiff = Vec::from(*b"MM\0*\0\0\0\x08\0\x01");
        tiff.extend(TAG.to_be_bytes());
        tiff.extend(*b"\0\x03\0\0\0\x01\0");
        tiff.push(self.0);
        tiff.extend([0; 6]);
        tiff
    }

    /// Whether width and height are swapped.
    pub(crate) const fn turns(self) -> bool {
        self.0 >= 5
    }

    pub(crate) fn apply(self, picture: &mut ::image::DynamicImage) {
        if let Some(orientation) = ::image::metadata::Orientation::from_exif(self.0) {
            picture.apply_orientation(orientation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Orientation;

    #[test]
    fn orientation_round_trips() {
        for value in 2..=8 {
            let orientation = Orientation(value);
            assert_eq!(Orientation::of_exif(&orientation.to_exif()), Some(orientation));
        }
    }

    #[test]
    fn both_byte_orders_are_read() {
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(Orientation::of_exif(little), Some(Orientation(6)));
    }
}
