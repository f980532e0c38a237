use std::io::Read;
use std::time::Instant;

use reqwest::blocking::{Client, Response};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url, redirect};
use sandbox_core::with_causes;

use super::{PlainHttp, PullOptions, token};
use crate::{Digest, ImageError, Limits, Reference, Version};

/// One registry, for one image.
pub(super) struct Registry<'a> {
    pub(super) options: &'a PullOptions,
    reference: &'a Reference,
    scheme: &'static str,
    client: Client,
    token: Option<String>,
    /// When patience ends.
    deadline: Instant,
}

/// Why something was not answered as it should be.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may go better another time.
    Passing(String),
    /// It will not.
    Lasting(ImageError),
}

/// Both families of documents.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// From the registry to where it keeps things, and perhaps once more.
const MOST_REDIRECTS: usize = 5;
/// Whoever mistyped a registry's name wants to know soon.
const TRIES_FOR_DOCUMENTS: u32 = 3;

impl<'a> Registry<'a> {
    pub(super) fn new(
        reference: &'a Reference,
        options: &'a PullOptions,
    ) -> Result<Self, ImageError> {
        // Somebody else in this process may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let local = reference.is_on_loopback();
        let plain = match options.plain_http {
            PlainHttp::Everywhere => true,
            PlainHttp::Loopback => local,
            PlainHttp::Never => false,
        };
        let everywhere = options.plain_http == PlainHttp::Everywhere;
        let mut client = Client::builder()
            .timeout(options.stall)
            .redirect(redirect::Policy::custom(move |attempt| {
                if attempt.previous().len() > MOST_REDIRECTS {
                    attempt.error("it sends us from one place to the next")
                } else if is_permitted(attempt.url(), plain, everywhere) {
                    attempt.follow()
                } else {
                    attempt.error("it sends us to a place without TLS")
                }
            }))
            .user_agent(concat!("sandbox-run/", env!("CARGO_PKG_VERSION")));
        if local {
            // No proxy is nearer than this machine.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| ImageError::Registry {
            registry: reference.registry().to_owned(),
            reason: format!("cannot be spoken to: {}", with_causes(&error)),
        })?;
        let scheme = if plain { "http" } else { "https" };
        let deadline = Instant::now() + options.patience;
        Ok(Self { options, reference, scheme, client, token: None, deadline })
    }

    /// A manifest or an index, which is what it was asked for as.
    pub(super) fn manifest(
        &mut self,
        version: &Version,
        limits: &Limits,
    ) -> Result<Vec<u8>, ImageError> {
        let name = match version {
            Version::Tag(tag) => tag.clone(),
            Version::Digest(digest) => digest.to_string(),
        };
        let bytes = self.again_and_again(|registry| {
            let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(MANIFESTS))]);
            let response = registry.get(&format!("manifests/{name}"), &accept)?;
            bounded(response, limits.document_bytes, "the size of its manifest in bytes")
        })?;
        let found = Digest::of(&bytes);
        match version {
            Version::Digest(wanted) if *wanted != found => Err(ImageError::WrongDigest {
                what: "its manifest".to_owned(),
                wanted: wanted.clone(),
                found,
            }),
            _ => Ok(bytes),
        }
    }

    fn again_and_again<T>(
        &mut self,
        mut step: impl FnMut(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, ImageError> {
        let mut tries = 0;
        loop {
            match step(self) {
                Ok(done) => return Ok(done),
                Err(trouble) => {
                    let most = self.options.tries.min(TRIES_FOR_DOCUMENTS);
                    self.bear(trouble, &mut tries, most)?;
                }
            }
        }
    }

    /// Waits before the next try and says what went wrong, or gives up.
    pub(super) fn bear(
        &self,
        trouble: Trouble,
        tries: &mut u32,
        most: u32,
    ) -> Result<String, ImageError> {
        let reason = match trouble {
            Trouble::Lasting(error) => return Err(error),
            Trouble::Passing(reason) => reason,
        };
        *tries += 1;
        let pause = self.options.pause * 2_u32.saturating_pow(*tries - 1).min(64);
        if *tries >= most || Instant::now() + pause > self.deadline {
            return Err(self.complaint(reason));
        }
        std::thread::sleep(pause);
        Ok(reason)
    }

    pub(super) fn complaint(&self, reason: impl Into<String>) -> ImageError {
        ImageError::Registry {
            registry: self.reference.registry().to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn check_patience(&self) -> Result<(), Trouble> {
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let patience = self.options.patience.as_secs();
        Err(Trouble::Lasting(self.complaint(format!("took longer than {patience} seconds"))))
    }

    /// Asks for something of the image. The token that it takes is got on the way.
    pub(super) fn get(&mut self, what: &str, headers: &HeaderMap) -> Result<Response, Trouble> {
        let first = self.ask(what, headers)?;
        if first.status() != StatusCode::UNAUTHORIZED {
            return self.judge(first);
        }
        let challenge = first.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.and_then(token::Challenge::parse);
        let challenge = challenge.ok_or_else(|| Trouble::Lasting(self.wants_login()))?;
        let place = Url::parse(&challenge.realm).ok().filter(|place| {
            is_permitted(
                place,
                self.scheme == "http",
                self.options.plain_http == PlainHttp::Everywhere,
            )
        });
        let place = place.ok_or_else(|| {
            Trouble::Lasting(self.complaint("wants us to get a token from a place without TLS"))
        })?;
        self.token = None;
        let scope = format!("repository:{}:pull", self.reference.name());
        let response = self.client.get(challenge.url(place, &scope)).send();
        let response = response.map_err(|error| self.unreachable(error))?;
        let response = self.judge(response)?;
        let bytes = bounded(response, token::LONGEST, "the size of its token in bytes")?;
        let token = token::parse(&bytes);
        let wrong = || Trouble::Lasting(self.complaint("gave us no token"));
        self.token = Some(token.ok_or_else(wrong)?);
        let second = self.ask(what, headers)?;
        self.judge(second)
    }

    fn ask(&self, what: &str, headers: &HeaderMap) -> Result<Response, Trouble> {
        self.check_patience()?;
        let (scheme, address, name) =
            (self.scheme, self.reference.address(), self.reference.name());
        let url = format!("{scheme}://{address}/v2/{name}/{what}");
        let mut request = self.client.get(url).headers(headers.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.send().map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: reqwest::Error) -> Trouble {
        // Addresses that it sends us to may have keys in them.
        let (is_redirect, error) = (error.is_redirect(), error.without_url());
        let reason = format!("cannot be reached: {}", with_causes(&error));
        if is_redirect {
            Trouble::Lasting(self.complaint(reason))
        } else {
            Trouble::Passing(reason)
        }
    }

    fn judge(&self, response: Response) -> Result<Response, Trouble> {
        let status = response.status();
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
            StatusCode::TOO_MANY_REQUESTS => Err(Trouble::Passing(
                "gets too many requests from here, and says to wait".to_owned(),
            )),
            _ if status.is_server_error() => {
                Err(Trouble::Passing(format!("answered with {status}")))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(Trouble::Lasting(self.wants_login()))
            }
            StatusCode::NOT_FOUND => Err(Trouble::Lasting(self.complaint("does not have it"))),
            _ => Err(Trouble::Lasting(self.complaint(format!("answered with {status}")))),
        }
    }

    fn wants_login(&self) -> ImageError {
        self.complaint(
            "has no such image, or does not give it to everybody: logins are not supported",
        )
    }
}

/// Where we may be sent. Only who is spoken to without TLS may send us elsewhere without it, and unless that was
/// permitted for all, no farther than this machine.
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

/// The body of an answer, if it is no longer than this.
fn bounded(response: Response, most: u64, what: &str) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let read = response.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| Trouble::Passing(format!("broke off: {}", with_causes(&error))))?;
    if bytes.len() as u64 > most {
        return Err(Trouble::Lasting(ImageError::TooMuch { what: what.to_owned(), most }));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_a_place_without_tls_unless_that_was_permitted() {
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
