//! Downloads a file and resumes interrupted downloads. Only HTTPS is allowed, except for loopback addresses.
//! The caller verifies the digest.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};

use super::limits;
use super::progress::Progress;
use crate::wiring::current_thread_runtime;

/// Downloads `url` to `path`. An existing file is continued.
pub(crate) fn download(
    url: &str,
    path: &Path,
    bytes_max: u64,
    what: &str,
    progress: &Progress,
) -> Result<()> {
    let url = Url::parse(url).with_context(|| format!("`{url}` is not a valid URL"))?;
    if !is_private_or_here(&url) {
        bail!("only https:// URLs are allowed, not {url}");
    }
    let client = client()?;
    current_thread_runtime()?.block_on(async {
        let mut file = open(path)?;
        let mut tries = 0;
        loop {
            let before = file.stream_position()?;
            match transfer(&client, &url, &mut file, bytes_max, what, progress).await {
                Ok(()) => return Ok(()),
                Err(DownloadError::Final(error)) => return Err(error),
                Err(DownloadError::Interrupted(error)) => {
                    // Progress resets the number of retries.
                    tries = if file.stream_position()? > before {
                        0
                    } else {
                        tries + 1
                    };
                    if file.stream_position()? == 0 {
                        return Err(error);
                    }
                    if tries >= limits::RESUMES_MAX {
                        return Err(error.context(Resumable));
                    }
                }
            }
        }
    })
}

/// Marks an error after which a later call continues the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumable;

impl fmt::Display for Resumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the download was interrupted")
    }
}

enum DownloadError {
    /// A retry can resume.
    Interrupted(anyhow::Error),
    Final(anyhow::Error),
}

fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    let mut file = opened.with_context(|| format!("cannot write {}", path.display()))?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

fn client() -> Result<Client> {
    let policy = Policy::custom(|attempt| {
        if attempt.previous().len() > limits::REDIRECTS_MAX {
            attempt.error("too many redirects")
        } else if is_private_or_here(attempt.url()) {
            attempt.follow()
        } else {
            attempt.error("redirected away from HTTPS")
        }
    });
    let built = Client::builder()
        .connect_timeout(limits::CONNECT_TIMEOUT)
        .read_timeout(limits::IDLE_TIMEOUT)
        .redirect(policy)
        .user_agent(concat!("cogn/", env!("CARGO_PKG_VERSION")))
        .build();
    built.context("cannot set up HTTPS")
}

/// Whether the URL is HTTPS, or HTTP on a loopback address.
fn is_private_or_here(url: &Url) -> bool {
    let here = || {
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    url.scheme() == "https" || (url.scheme() == "http" && here())
}

async fn transfer(
    client: &Client,
    url: &Url,
    file: &mut File,
    bytes_max: u64,
    what: &str,
    progress: &Progress,
) -> Result<(), DownloadError> {
    let here = file.stream_position().map_err(final_error)?;
    let mut request = client.get(url.clone());
    if here > 0 {
        request = request.header(RANGE, format!("bytes={here}-"));
    }
    let shown = || format!("cannot fetch {url}");
    let mut response = request
        .send()
        .await
        .map_err(|error| DownloadError::Interrupted(anyhow::Error::new(error).context(shown())))?;
    let start = match response.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&response, here) => here,
        // The file is complete or invalid: the digest check decides.
        StatusCode::RANGE_NOT_SATISFIABLE if here > 0 => return Ok(()),
        StatusCode::OK => {
            file.set_len(0).map_err(final_error)?;
            file.seek(SeekFrom::Start(0)).map_err(final_error)?;
            0
        }
        status => {
            return Err(DownloadError::Final(anyhow::anyhow!(
                "{}: the server answered {status}",
                shown()
            )));
        }
    };
    let total = response.content_length().map(|length| start + length);
    if total.is_some_and(|total| total > bytes_max) {
        return Err(DownloadError::Final(anyhow::anyhow!(
            "{}: larger than {bytes_max} bytes",
            shown()
        )));
    }
    progress.start(what, total);
    let mut done = start;
    progress.at(done);
    loop {
        let chunk = response
            .chunk()
            .await
            .map_err(|error| DownloadError::Interrupted(anyhow::Error::new(error).context(shown())))?;
        let Some(chunk) = chunk else { break };
        done += chunk.len() as u64;
        if done > bytes_max {
            return Err(DownloadError::Final(anyhow::anyhow!(
                "{}: larger than {bytes_max} bytes",
                shown()
            )));
        }
        file.write_all(&chunk).map_err(final_error)?;
        progress.at(done);
    }
    match total {
        Some(total) if done < total => Err(DownloadError::Interrupted(anyhow::anyhow!(
            "{}: interrupted at {done} of {total} bytes",
            shown()
        ))),
        _ => Ok(()),
    }
}

/// Whether the response starts at the requested offset; other responses must not be appended.
fn starts_at(response: &Response, here: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok()).unwrap_or_default();
    range.starts_with(&format!("bytes {here}-"))
}

fn final_error(error: std::io::Error) -> DownloadError {
    DownloadError::Final(anyhow::Error::new(error).context("cannot write the download"))
}
