//! The media that runs may read and fetch: as configured, and for a command also the working folder and the
//! files of its flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use engine::port::Hosts;
use engine::{FetchRule, MediaPipeline, MediaSettings};
use module::Module;
use module::manifest::Modality;
use providers::GuardedFetch;

use crate::config::{Media, MediaFetch, MediaOversize, Settings, Sources};

/// For one command: the folder of the module, the working folder, the configured folders, and the given
/// files. The configuration is not read for a module without media inputs.
pub(crate) fn for_command(
    module: &Module,
    folder: &Path,
    files: Vec<PathBuf>,
    config: Option<&Path>,
) -> Result<MediaPipeline> {
    let takes = &module.manifest.modalities.input;
    if takes.iter().all(|modality| *modality == Modality::Text) {
        return Ok(MediaPipeline::default());
    }
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    let private_hosts = settings.media.private_hosts.clone();
    let mut settings = settings_of(&settings.media);
    let mut roots = vec![folder.to_path_buf()];
    roots.extend(std::env::current_dir());
    roots.append(&mut settings.roots);
    settings.roots = roots;
    settings.files = files;
    Ok(pipeline(settings, private_hosts))
}

/// For a test of a module: only the folder of the module, independent of the configuration.
pub(crate) fn for_test(folder: &Path) -> MediaPipeline {
    let settings = MediaSettings {
        roots: vec![folder.to_path_buf()],
        ..MediaSettings::default()
    };
    pipeline(settings, Vec::new())
}

/// For a server: only the configured folders.
pub(crate) fn for_server(settings: &Settings) -> MediaPipeline {
    pipeline(settings_of(&settings.media), settings.media.private_hosts.clone())
}

fn pipeline(settings: MediaSettings, inside: Vec<String>) -> MediaPipeline {
    MediaPipeline::new(settings, Some(Arc::new(GuardedFetch::new(inside))))
}

fn settings_of(media: &Media) -> MediaSettings {
    MediaSettings {
        fetch: match media.fetch {
            MediaFetch::Public => FetchRule::Hosts(Hosts::Public),
            MediaFetch::Allowlist => FetchRule::Hosts(Hosts::Listed(media.allow.clone())),
            MediaFetch::Off => FetchRule::Off,
        },
        roots: media.roots.clone(),
        files: Vec::new(),
        oversize: media.oversize.map(|oversize| match oversize {
            MediaOversize::Refuse => ::media::Oversize::Refuse,
            MediaOversize::Downscale => ::media::Oversize::Downscale,
        }),
        normalise: media.normalise,
        inline_accept_max: media.inline_accept_max,
        store_threshold: media.store_threshold,
        store_bytes_max: media.store_max,
        folder: media.folder.clone(),
    }
}
