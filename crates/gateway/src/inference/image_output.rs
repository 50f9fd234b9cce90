//! Pictures in the form that was asked for: bytes in base64, or an address. Large ones are not brought into
//! memory for it.

use ir::envelope::ImageResponse;
use ir::{Error, MediaSource};
use wire::holes::Holes;
use wire::openai_images;

use super::holed;
use crate::state::Gateway;

/// Who asks for bytes gets bytes: a picture that stands elsewhere is fetched, as far as this server may. Who asks
/// for an address gets one. What is large is taken out, for whoever writes the answer.
pub(super) async fn in_form(
    gateway: &Gateway,
    response: &mut ImageResponse,
    form: Option<&str>,
) -> Result<Holes, Error> {
    if form == Some("b64_json") {
        for media in &mut response.images {
            if matches!(media.source, MediaSource::Remote(_)) {
                gateway.engine.media().ingest(media).await?;
            }
        }
    }
    let holes = holed::cut(&mut response.images)?;
    openai_images::in_form(response, form);
    Ok(holes)
}
