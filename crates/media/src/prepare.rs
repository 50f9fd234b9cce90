//! From what was sent to what goes on: looked at, without metadata, and made to fit where that is allowed.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ir::media::MediaKind;

use crate::adapt::{Action, Adaptation, AdaptTarget, redraw};
use crate::bounds::Bounds;
use crate::checksum::{Declared, HashingWriter};
use crate::facts::Facts;
use crate::error::{Error, Limit};
use crate::inspect::{Inspected, inspect};
use crate::source::Source;

/// What was sent, what goes on, and what lies between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub input: Facts,
    /// Of the bytes that were written.
    pub output: Facts,
    pub removed: Vec<&'static str>,
    pub adaptations: Vec<Adaptation>,
}

/// Looks at `source` and writes what goes on to `out`.
pub fn prepare(
    source: &mut dyn Source,
    declared: &Declared,
    bounds: &Bounds,
    out: &mut dyn Write,
) -> Result<Prepared, Error> {
    let inspected = inspect(source, declared, bounds)?;
    let written = catch_unwind(AssertUnwindSafe(|| write(source, inspected, bounds, out)));
    written.unwrap_or_else(|_| Err(Error::undecodable("it is broken in a way that nobody foresaw")))
}

fn write(
    source: &mut dyn Source,
    inspected: Inspected,
    bounds: &Bounds,
    out: &mut dyn Write,
) -> Result<Prepared, Error> {
    let mut sealed = HashingWriter::new(out);
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
        sealed.write_all(&bytes)?;
    } else {
        inspected.pieces.write(source, &mut sealed)?;
    }
    (fit.size_bytes, fit.sha256) = sealed.finish()?;
    Ok(Prepared {
        input: inspected.facts,
        output: fit,
        removed: inspected.removed,
        adaptations,
    })
}

/// The clean picture, redrawn only where nothing less will do.
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
    // Of these formats the other frames are left out by copying; of others they are still there.
    let animated = frames > 1 && before.format == crate::format::Format::WebP;
    if size.is_some() || other.is_some() || animated {
        let wish = AdaptTarget {
            format: other.unwrap_or(before.format),
            size,
            orientation: inspected.orientation,
        };
        clean = redraw(&clean, fit, wish)?;
    }
    fit.frames = Some(1);
    let mut say = |action, from: String, to: String| adaptations.push(Adaptation { action, from, to });
    if frames > 1 {
        say(
            Action::FirstFrame,
            format!("{frames} frames"),
            String::from("1 frame"),
        );
    }
    if size.is_some() {
        say(Action::Downscaled, sides(&before), sides(fit));
    }
    if other.is_some() {
        let mime = |facts: &Facts| String::from(facts.format.mime());
        say(Action::Converted, mime(&before), mime(fit));
    }
    Ok(clean)
}

fn sides(facts: &Facts) -> String {
    format!("{}x{}", facts.width.unwrap_or(0), facts.height.unwrap_or(0))
}
