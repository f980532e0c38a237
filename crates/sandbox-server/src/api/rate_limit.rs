use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::config::Config;

/// Removes full buckets each time this many requests have come.
const SWEEP_INTERVAL: u32 = 1024;

/// The unit of rate limiting: requests of one client share a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// A client with this key.
    Key(String),
    /// A client without a valid key at this address.
    Address(IpAddr),
    /// A user of this machine, without a limit.
    Local,
}

/// A token bucket for each client; each request takes one token.
pub(super) struct Limiter {
    /// `None` without a limit.
    buckets: Option<Buckets>,
    requests: AtomicU32,
}

type Buckets =
    RateLimiter<Client, DashMapStateStore<Client>, DefaultClock, StateInformationMiddleware>;

/// The bucket of a client after a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    limit: u32,
    remaining: u32,
    /// Time until the bucket is full.
    reset: Duration,
    /// Time until the next token, if the bucket had none for this request.
    pub(super) retry_after: Option<Duration>,
}

impl Client {
    /// The client at an address. An IPv6 /64 is one client: a host can use every address of its network.
    pub(super) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) => {
                let network = v6.to_bits() & (u128::MAX << 64);
                Self::Address(IpAddr::V6(Ipv6Addr::from_bits(network)))
            }
            v4 @ IpAddr::V4(_) => Self::Address(v4),
        }
    }
}

impl Limiter {
    /// Creates the limiter of this configuration; 0 requests per minute means no limit.
    pub(super) fn new(config: &Config) -> Self {
        let quota = NonZeroU32::new(config.requests_per_minute).map(|each_minute| {
            let burst = NonZeroU32::new(config.burst).unwrap_or(NonZeroU32::MIN);
            Quota::per_minute(each_minute).allow_burst(burst)
        });
        let buckets = quota.map(|quota| RateLimiter::keyed(quota).with_middleware());
        Self { buckets, requests: AtomicU32::new(0) }
    }

    /// Takes a token for a request of this client. `None` if the client has no limit.
    pub(super) fn take(&self, client: &Client) -> Option<Rate> {
        let buckets = self.buckets.as_ref().filter(|_| *client != Client::Local)?;
        if self.requests.fetch_add(1, Ordering::Relaxed) % SWEEP_INTERVAL == SWEEP_INTERVAL - 1 {
            buckets.retain_recent();
        }
        let (quota, remaining, retry_after) = match buckets.check_key(client) {
            Ok(snapshot) => (snapshot.quota(), snapshot.remaining_burst_capacity(), None),
            Err(not_until) => {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                (not_until.quota(), 0, Some(wait))
            }
        };
        let limit = quota.burst_size().get();
        let reset = quota.replenish_interval() * limit.saturating_sub(remaining);
        Some(Rate { limit, remaining, reset, retry_after })
    }
}

impl Rate {
    /// Writes the `RateLimit` headers of the response.
    pub(super) fn write_headers(&self, headers: &mut HeaderMap) {
        let reset = self.reset.as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
        let reset = reset as u64;
        headers.insert(HeaderName::from_static("ratelimit-limit"), HeaderValue::from(self.limit));
        let remaining = HeaderValue::from(self.remaining);
        headers.insert(HeaderName::from_static("ratelimit-remaining"), remaining);
        headers.insert(HeaderName::from_static("ratelimit-reset"), HeaderValue::from(reset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let at = |address: &str| Client::at(address.parse().unwrap());
        assert_eq!(at("2001:db8:1:2::3"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::3"), at("2001:db8:1:3::3"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
