//! An access token that is bound to a key: each request takes a proof along that the client has the key.

use mcp_sansio_auth::UnixSeconds;
use mcp_sansio_auth::dpop::Proof;
use mcp_sansio_auth::jose::Signer;
use mcp_sansio_http::client::{ChallengeAnswer, ChallengedRequest, HeaderWriter, HttpHooks, OutgoingRequest};
use sha2::{Digest, Sha256};

use crate::web::URL;

/// The access token, with its scheme. A real board gets one from an authorization server, or has it from production.
const AUTHORIZATION: &str = "DPoP the-token-of-this-board.0123456789";

/// The time of the first request. A real board has a clock, or asks for the time (SNTP).
const START: UnixSeconds = 1_700_000_000;

/// The token and its key.
pub struct BoundToken<'k> {
    key: &'k dyn Signer,
    /// The number of proofs. It is the clock here: a second passes with each.
    proofs: u32,
}

impl<'k> BoundToken<'k> {
    /// Takes the key that the token is bound to.
    pub const fn new(key: &'k dyn Signer) -> Self {
        BoundToken { key, proofs: 0 }
    }

    /// Returns bytes that are new for each proof. A real board takes them from its generator of random numbers.
    fn random(&self) -> [u8; 16] {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(b"the seed of this board")
            .chain_update(self.proofs.to_le_bytes())
            .finalize()
            .into();
        *digest.first_chunk().unwrap_or(&[0; 16])
    }
}

impl HttpHooks for BoundToken<'_> {
    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        let (now, random) = (START + u64::from(self.proofs), self.random());
        self.proofs += 1;
        let token = AUTHORIZATION.trim_start_matches("DPoP ");
        let mut proof = Proof::new(request.method, URL, now, &random).access_token(token);
        if !request.dpop_nonce.is_empty() {
            proof = proof.nonce(request.dpop_nonce);
        }
        // Without a proof the server refuses the request, which is then given up.
        if let Ok(proof) = proof.sign(self.key, &mut [0; 768]) {
            let _ = headers.set("Authorization", AUTHORIZATION);
            let _ = headers.set("DPoP", proof);
        }
        1
    }

    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        // The server wants its nonce in the proof. It sent one, which `sending` finds in the request.
        let again = challenge.www_authenticate.contains("use_dpop_nonce");
        if again { ChallengeAnswer::Retry } else { ChallengeAnswer::GiveUp }
    }
}
