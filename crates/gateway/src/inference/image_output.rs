//! Images in the requested form: base64 or URL. Large ones are not loaded into memory.

use ir::envelope::ImageResponse;
use ir::{Error, MediaSource};
use wire::holes::Holes;
use wire::openai_images;

use super::holed;
use crate::state::Gateway;

/// Converts images to the requested form: for base64, a remote image is fetched, as far as the server may.
/// Large media is replaced by placeholders.
pub(super) async fn in_form(
    gateway: &Gateway,
    response: &mut ImageResponse,
    form: Option<&str>,
) -> Result<Holes, Error> {
    if form == Some("b64_json") {
        for media in &mut response.images {
            if matches!(media.source, MediaSource::Remote(_)) {
                gateway.engine().media().ingest(media).await?;
            }
        }
    }
    let holes = holed::cut(&mut response.images)?;
    openai_images::in_form(response, form);
    Ok(holes)
}
