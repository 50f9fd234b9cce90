//! Back-ends against scripted servers, and against a real one.

#[cfg(test)]
mod command;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod http;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod llama_server;
#[cfg(test)]
mod passthrough;
#[cfg(test)]
mod patches;
#[cfg(test)]
mod proxy_and_tls;
#[cfg(test)]
mod rate_limited;
#[cfg(test)]
mod raw_capture;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod response_media;
#[cfg(test)]
mod server;
#[cfg(test)]
mod spilled_media;
#[cfg(test)]
mod unary;
