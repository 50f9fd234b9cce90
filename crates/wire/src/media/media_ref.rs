//! `MediaRef`, the form of canonical documents. It supports everything that IR media contains; this file adds
//! only the mandatory type and the format of ids.

use ir::media::{MimeTrust, StoredRef};
use ir::{Action, Dialect, Fields, Ledger, Map, Media, MediaId, MediaKind, MediaSource};
use serde_json::json;

use crate::media::context::ConversionContext;
use crate::media::error::{ConversionError, RequiredAction};

const OWN: Dialect = Dialect::MediaRef;
/// Note: the source lacked the mandatory type.
const NO_MIME: &str = "$no_mime";
/// Note: the id used another URI scheme.
const URI: &str = "$uri";
/// Note: the source used the issuer's form of the id, an alias.
const ALIAS: &str = "$alias";

pub(super) fn decode(fields: Fields) -> Result<Media, ConversionError> {
    let uri = fields.peek_str("uri").map(String::from);
    let mut media =
        Media::from_reference(fields.rest()).map_err(|reason| ConversionError::malformed("", reason))?;
    if media.mime.is_none() && media.mime_trust != MimeTrust::Inferred {
        media.ext.set(OWN, NO_MIME, true);
    }
    match (&media.source, uri) {
        (MediaSource::Stored(StoredRef::Id(id)), Some(uri)) if id.uri() != uri => {
            media.ext.set(OWN, URI, uri);
        }
        (MediaSource::Stored(StoredRef::Foreign { dialect, .. }), _) if *dialect != OWN => {
            media.ext.set(OWN, ALIAS, true);
        }
        _ => {}
    }
    Ok(media)
}

pub(super) fn encode(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Map, ConversionError> {
    let need = match &media.source {
        MediaSource::LocalFile(_) => Some(RequiredAction::Read),
        MediaSource::Handle(_) => Some(RequiredAction::Put),
        _ => None,
    };
    if let Some(need) = need {
        return Err(ConversionError::needs(OWN, pointer, need));
    }
    let mut map = media.to_reference();
    if let MediaSource::Stored(stored) = &media.source {
        let uri = setting.spell(stored, OWN, |id| noted_uri(media, id));
        if uri.is_none() && media.ext.value(OWN, ALIAS).is_none() {
            return Err(ConversionError::needs(OWN, pointer, RequiredAction::Alias));
        }
        if let Some(uri) = uri {
            map.shift_remove("alias");
            map.insert(String::from("uri"), json!(uri));
        }
    }
    if media.mime.is_none() && media.ext.value(OWN, NO_MIME).is_none() {
        let mime = media.mime_or_sniffed();
        let mime = mime.unwrap_or_else(|| String::from("application/octet-stream"));
        map.insert(String::from("mime_trust"), json!(MimeTrust::Inferred));
        if media.kind != MediaKind::of_mime(&mime) {
            map.insert(String::from("media_kind"), json!(media.kind));
        } else {
            map.shift_remove("media_kind");
        }
        map.insert(String::from("mime"), json!(mime));
        let reason = format!("{OWN} requires a media type and none was declared");
        ledger.note(format!("{pointer}/mime"), Action::Added, reason);
    }
    Ok(map)
}

fn noted_uri(media: &Media, id: MediaId) -> String {
    let noted = media.ext.note(OWN, URI);
    let noted = noted.filter(|text| MediaId::from_uri(text) == Ok(id));
    noted.map_or_else(|| id.uri(), String::from)
}
