use std::io::Read;
use std::time::Instant;

use reqwest::blocking::{Client, Response};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url, redirect};
use sandbox_core::with_causes;

use super::{PlainHttp, PullOptions, token};
use crate::{Digest, ImageError, Limits, Reference, Version};

/// A connection to a registry, to pull one image.
pub(super) struct Registry<'a> {
    pub(super) options: &'a PullOptions,
    reference: &'a Reference,
    scheme: &'static str,
    client: Client,
    token: Option<String>,
    deadline: Instant,
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum RequestError {
    /// A retry may succeed.
    Transient(String),
    /// A retry would fail too.
    Permanent(ImageError),
}

/// The media types of OCI and of Docker.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// Registries redirect to their blob storage, usually once.
const MAX_REDIRECTS: usize = 5;
/// Fewer than for blobs, so that a mistyped registry name is reported soon.
const MAX_DOCUMENT_ATTEMPTS: u32 = 3;

impl<'a> Registry<'a> {
    pub(super) fn new(
        reference: &'a Reference,
        options: &'a PullOptions,
    ) -> Result<Self, ImageError> {
        // It fails if the process has installed a provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let local = reference.is_on_loopback();
        let plain = match options.plain_http {
            PlainHttp::Everywhere => true,
            PlainHttp::Loopback => local,
            PlainHttp::Never => false,
        };
        let everywhere = options.plain_http == PlainHttp::Everywhere;
        let mut client = Client::builder()
            .timeout(options.read_timeout)
            .redirect(redirect::Policy::custom(move |attempt| {
                if attempt.previous().len() > MAX_REDIRECTS {
                    attempt.error("too many redirects")
                } else if is_permitted(attempt.url(), plain, everywhere) {
                    attempt.follow()
                } else {
                    attempt.error("redirect to a URL without TLS")
                }
            }))
            .user_agent(concat!("sandbox-run/", env!("CARGO_PKG_VERSION")));
        if local {
            // A proxy cannot reach the loopback of this host.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| ImageError::Registry {
            registry: reference.registry().to_owned(),
            reason: format!("cannot be reached: {}", with_causes(&error)),
        })?;
        let scheme = if plain { "http" } else { "https" };
        let deadline = Instant::now() + options.timeout;
        Ok(Self { options, reference, scheme, client, token: None, deadline })
    }

    /// Downloads a manifest or an index, and verifies its digest.
    pub(super) fn manifest(
        &mut self,
        version: &Version,
        limits: &Limits,
    ) -> Result<Vec<u8>, ImageError> {
        let name = match version {
            Version::Tag(tag) => tag.clone(),
            Version::Digest(digest) => digest.to_string(),
        };
        let bytes = self.with_retries(|registry| {
            let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(MANIFEST_TYPES))]);
            let response = registry.get(&format!("manifests/{name}"), &accept)?;
            bounded(response, limits.document_bytes, "the size of the manifest in bytes")
        })?;
        let found = Digest::of(&bytes);
        match version {
            Version::Digest(expected) if *expected != found => Err(ImageError::DigestMismatch {
                what: "the manifest".to_owned(),
                expected: expected.clone(),
                found,
            }),
            _ => Ok(bytes),
        }
    }

    fn with_retries<T>(
        &mut self,
        mut request: impl FnMut(&mut Self) -> Result<T, RequestError>,
    ) -> Result<T, ImageError> {
        let mut attempts = 0;
        loop {
            match request(self) {
                Ok(response) => return Ok(response),
                Err(error) => {
                    let max_attempts = self.options.max_attempts.min(MAX_DOCUMENT_ATTEMPTS);
                    self.wait_for_retry(error, &mut attempts, max_attempts)?;
                }
            }
        }
    }

    /// Waits before the next attempt and returns the reason of the failure. Returns an error if no attempt is left.
    pub(super) fn wait_for_retry(
        &self,
        error: RequestError,
        attempts: &mut u32,
        max_attempts: u32,
    ) -> Result<String, ImageError> {
        let reason = match error {
            RequestError::Permanent(error) => return Err(error),
            RequestError::Transient(reason) => reason,
        };
        *attempts += 1;
        let delay = self.options.retry_delay * 2_u32.saturating_pow(*attempts - 1).min(64);
        if *attempts >= max_attempts || Instant::now() + delay > self.deadline {
            return Err(self.error(reason));
        }
        std::thread::sleep(delay);
        Ok(reason)
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> ImageError {
        ImageError::Registry {
            registry: self.reference.registry().to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn check_deadline(&self) -> Result<(), RequestError> {
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let timeout = self.options.timeout.as_secs();
        let reason = format!("did not deliver the image within {timeout} seconds");
        Err(RequestError::Permanent(self.error(reason)))
    }

    /// Requests a part of the image. Gets a token first if the registry requires one.
    pub(super) fn get(
        &mut self,
        what: &str,
        headers: &HeaderMap,
    ) -> Result<Response, RequestError> {
        let first = self.send(what, headers)?;
        if first.status() != StatusCode::UNAUTHORIZED {
            return self.check_status(first);
        }
        let challenge = first.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.and_then(token::Challenge::parse);
        let challenge = challenge.ok_or_else(|| RequestError::Permanent(self.login_required()))?;
        let url = Url::parse(&challenge.realm).ok().filter(|url| {
            is_permitted(
                url,
                self.scheme == "http",
                self.options.plain_http == PlainHttp::Everywhere,
            )
        });
        let url = url.ok_or_else(|| {
            RequestError::Permanent(self.error("refers to a token server without TLS"))
        })?;
        self.token = None;
        let scope = format!("repository:{}:pull", self.reference.name());
        let response = self.client.get(challenge.url(url, &scope)).send();
        let response = response.map_err(|error| self.unreachable(error))?;
        let response = self.check_status(response)?;
        let bytes = bounded(response, token::MAX_BYTES, "the size of the token in bytes")?;
        let token = token::parse(&bytes);
        let missing = || RequestError::Permanent(self.error("did not return a token"));
        self.token = Some(token.ok_or_else(missing)?);
        let second = self.send(what, headers)?;
        self.check_status(second)
    }

    fn send(&self, what: &str, headers: &HeaderMap) -> Result<Response, RequestError> {
        self.check_deadline()?;
        let (scheme, address, name) =
            (self.scheme, self.reference.address(), self.reference.name());
        let url = format!("{scheme}://{address}/v2/{name}/{what}");
        let mut request = self.client.get(url).headers(headers.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.send().map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: reqwest::Error) -> RequestError {
        // URLs of redirects may contain secrets.
        let (is_redirect, error) = (error.is_redirect(), error.without_url());
        let reason = format!("cannot be reached: {}", with_causes(&error));
        if is_redirect {
            RequestError::Permanent(self.error(reason))
        } else {
            RequestError::Transient(reason)
        }
    }

    fn check_status(&self, response: Response) -> Result<Response, RequestError> {
        let status = response.status();
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
            StatusCode::TOO_MANY_REQUESTS => {
                Err(RequestError::Transient("rejects requests over its rate limit".to_owned()))
            }
            _ if status.is_server_error() => {
                Err(RequestError::Transient(format!("responded with {status}")))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(RequestError::Permanent(self.login_required()))
            }
            StatusCode::NOT_FOUND => {
                Err(RequestError::Permanent(self.error("does not have the image")))
            }
            _ => Err(RequestError::Permanent(self.error(format!("responded with {status}")))),
        }
    }

    fn login_required(&self) -> ImageError {
        self.error("does not have the image or requires a login: logins are not supported")
    }
}

/// Whether to follow a redirect or a reference to a token server. Only a registry without TLS may refer to another URL
/// without TLS, and unless that is permitted everywhere, only on this host.
fn is_permitted(url: &Url, plain: bool, everywhere: bool) -> bool {
    let local = || match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    };
    match url.scheme() {
        "https" => true,
        "http" => everywhere || plain && local(),
        _ => false,
    }
}

/// Reads the body of a response, within a size limit.
fn bounded(response: Response, limit: u64, what: &str) -> Result<Vec<u8>, RequestError> {
    let mut bytes = Vec::new();
    let read = response.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        RequestError::Transient(format!("interrupted the transfer: {}", with_causes(&error)))
    })?;
    if bytes.len() as u64 > limit {
        let what = what.to_owned();
        return Err(RequestError::Permanent(ImageError::LimitExceeded { what, limit }));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_without_tls_are_only_permitted_on_request() {
        let permitted = |url: &str, plain, everywhere| {
            is_permitted(&Url::parse(url).unwrap(), plain, everywhere)
        };
        assert!(permitted("https://example.org/x", false, false));
        for url in
            ["http://example.org/x", "http://127.0.0.1/x", "http://[::1]/", "file:///etc/passwd"]
        {
            assert!(!permitted(url, false, false), "{url}");
        }
        assert!(permitted("http://127.0.0.1:5000/x", true, false));
        assert!(permitted("http://[::1]:5000/x", true, false));
        assert!(!permitted("http://example.org/x", true, false));
        assert!(permitted("http://example.org/x", true, true));
        assert!(!permitted("ftp://example.org/x", true, true));
    }
}
