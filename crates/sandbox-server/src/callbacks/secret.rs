//! The secret that signs the callbacks of a client.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The prefix, by which people and secret scanners recognize the secret.
const PREFIX: &str = "whsec_";

/// Signs the callbacks of one client, according to Standard Webhooks.
pub(crate) struct CallbackSecret([u8; 32]);

/// Where the secrets of clients come from.
pub(crate) trait CallbackSecrets: Send + Sync {
    /// The secret of the client with this key, or of all clients without a key.
    fn secret(&self, key: Option<&str>) -> CallbackSecret;
}

impl CallbackSecret {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The text to hand over.
    pub(crate) fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0))
    }

    /// The value of the header `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        sign(&self.0, id, timestamp, body)
    }
}

impl fmt::Debug for CallbackSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackSecret(hidden)")
    }
}

fn sign(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret);
    let mut mac = mac.expect("this construction takes secrets of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signature that the scheme's own libraries are tested with.
    #[test]
    fn the_signature_is_the_published_one() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn it_is_hidden_unless_asked_for() {
        let secret = CallbackSecret::new([7; 32]);
        assert_eq!(format!("{secret:?}"), "CallbackSecret(hidden)");
        assert!(secret.reveal().starts_with("whsec_BwcH"));
    }
}
