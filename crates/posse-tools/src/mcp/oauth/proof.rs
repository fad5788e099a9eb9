//! Random texts, and the proof that who ends a sign-in is who has begun it (PKCE).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Returns a text of 43 letters that nobody can guess.
pub(super) fn secret_text() -> String {
    let mut hash = Sha256::new();
    // 366 random bits.
    for _ in 0..3 {
        hash.update(Uuid::new_v4().as_bytes());
    }
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// Returns what is shown of a verifier at the beginning.
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // Appendix B of RFC 7636.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        let (a, b) = (secret_text(), secret_text());
        assert!(a != b && a.len() == 43 && b.len() == 43);
    }
}
