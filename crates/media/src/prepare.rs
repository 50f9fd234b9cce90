//! From received media to prepared media: inspected, without metadata, and adapted to the bounds where
//! allowed.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ir::media::MediaKind;

use crate::adapt::{Action, AdaptTarget, Adaptation, redraw};
use crate::bounds::Bounds;
use crate::checksum::{Declared, HashingWriter};
use crate::error::{Error, Limit};
use crate::facts::Facts;
use crate::inspect::{Inspected, inspect};
use crate::source::Source;

/// Facts before and after preparation, and the changes in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub input: Facts,
    /// Of the bytes that were written.
    pub output: Facts,
    pub removed: Vec<&'static str>,
    pub adaptations: Vec<Adaptation>,
}

/// Inspects `source` and writes the prepared media to `out`.
pub fn prepare(
    source: &mut dyn Source,
    declared: &Declared,
    bounds: &Bounds,
    out: &mut dyn Write,
) -> Result<Prepared, Error> {
    let inspected = inspect(source, declared, bounds)?;
    let written = catch_unwind(AssertUnwindSafe(|| write(source, inspected, bounds, out)));
    written.unwrap_or_else(|_| Err(Error::undecodable("the decoder failed unexpectedly")))
}

fn write(
    source: &mut dyn Source,
    inspected: Inspected,
    bounds: &Bounds,
    out: &mut dyn Write,
) -> Result<Prepared, Error> {
    let mut writer = HashingWriter::new(out);
    let mut fit = inspected.facts.clone();
    let mut adaptations = Vec::new();
    if fit.format.kind() == MediaKind::Image {
        let bytes = picture(source, &inspected, bounds, &mut fit, &mut adaptations)?;
        let allowed = bounds.bytes(Some(MediaKind::Image));
        if bytes.len() as u64 > allowed {
            return Err(Error::TooLarge {
                limit: Limit::Size,
                allowed,
                actual: bytes.len() as u64,
            });
        }
        writer.write_all(&bytes)?;
    } else {
        inspected.pieces.write(source, &mut writer)?;
    }
    (fit.size_bytes, fit.sha256) = writer.finish()?;
    Ok(Prepared {
        input: inspected.facts,
        output: fit,
        removed: inspected.removed,
        adaptations,
    })
}

/// The image without metadata, re-encoded only if necessary.
fn picture(
    source: &mut dyn Source,
    inspected: &Inspected,
    bounds: &Bounds,
    fit: &mut Facts,
    adaptations: &mut Vec<Adaptation>,
) -> Result<Vec<u8>, Error> {
    let before = inspected.facts.clone();
    let frames = before.frames.unwrap_or(1);
    let mut clean = Vec::new();
    let pieces = inspected.first.as_ref().unwrap_or(&inspected.pieces);
    pieces.write(source, &mut clean)?;
    let size = before
        .width
        .zip(before.height)
        .and_then(|(width, height)| bounds.scaled(width, height));
    let other = bounds.substitute(before.format);
    // Frames after the first were already left out by copying, except for WebP.
    let animated = frames > 1 && before.format == crate::format::Format::WebP;
    if size.is_some() || other.is_some() || animated {
        let target = AdaptTarget {
            format: other.unwrap_or(before.format),
            size,
            orientation: inspected.orientation,
        };
        clean = redraw(&clean, fit, target)?;
    }
    fit.frames = Some(1);
    let mut record = |action, from: String, to: String| adaptations.push(Adaptation { action, from, to });
    if frames > 1 {
        record(
            Action::FirstFrame,
            format!("{frames} frames"),
            String::from("1 frame"),
        );
    }
    if size.is_some() {
        record(Action::Downscaled, sides(&before), sides(fit));
    }
    if other.is_some() {
        let mime = |facts: &Facts| String::from(facts.format.mime());
        record(Action::Converted, mime(&before), mime(fit));
    }
    Ok(clean)
}

fn sides(facts: &Facts) -> String {
    format!("{}x{}", facts.width.unwrap_or(0), facts.height.unwrap_or(0))
}
