//! The demand of a resource server: what its challenges say together.

use alloc::string::{String, ToString};

use crate::challenge::{ChallengeError, challenges};
use crate::client::metadata::{is_scope_token, unite};

/// The parameters of the challenges `Bearer` and `DPoP` of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// `resource_metadata`.
    pub(crate) resource_metadata: Option<String>,
    /// `scope`, each one once.
    pub(crate) scope: String,
    /// `error`; that of the `DPoP` challenge if both have one.
    pub(crate) error: String,
    /// There is a challenge `DPoP`, and none `Bearer`.
    pub(crate) only_dpop: bool,
}

impl Demand {
    /// Reads all headers. An error in one of them counts only if there is no challenge to go by.
    pub(crate) fn read(headers: &[&str]) -> Result<Self, ChallengeError> {
        let (mut demand, mut failure) = (Demand::default(), None);
        let (mut has_bearer, mut has_dpop) = (false, false);
        for found in headers.iter().flat_map(|header| challenges(header)) {
            let challenge = match found {
                Ok(challenge) if challenge.is("DPoP") || challenge.is("Bearer") => challenge,
                Ok(_) => continue,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            let is_dpop = challenge.is("DPoP");
            has_dpop |= is_dpop;
            has_bearer |= !is_dpop;
            if let Some(scope) = challenge.parameter("scope") {
                let scope = scope.to_string();
                if !scope.split(' ').filter(|one| !one.is_empty()).all(is_scope_token) {
                    return Err(ChallengeError::Syntax);
                }
                unite(&mut demand.scope, &scope);
            }
            if let Some(url) = challenge.parameter("resource_metadata") {
                demand.resource_metadata.get_or_insert_with(|| url.to_string());
            }
            if let Some(error) = challenge.parameter("error").filter(|_| is_dpop || demand.error.is_empty()) {
                demand.error = error.to_string();
            }
        }
        demand.only_dpop = has_dpop && !has_bearer;
        failure.filter(|_| !has_dpop && !has_bearer).map_or(Ok(demand), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_taken_together() {
        let demand = Demand::read(&[
            "Negotiate, Basic realm=\"x\", dpop algs=\"ES256\", scope=\"a b\"",
            "BEARER error=\"invalid_token\", scope=\"b c\", resource_metadata=\"https://h/m\"",
        ]);
        let demand = demand.unwrap();
        assert_eq!((demand.scope.as_str(), demand.error.as_str(), demand.only_dpop), ("a b c", "invalid_token", false));
        assert_eq!(demand.resource_metadata.as_deref(), Some("https://h/m"));
        assert!(Demand::read(&["DPoP error=\"use_dpop_nonce\""]).unwrap().only_dpop);
        let both = Demand::read(&["DPoP error=\"use_dpop_nonce\", Bearer error=\"invalid_token\""]).unwrap();
        assert_eq!(both.error, "use_dpop_nonce");
        assert_eq!(Demand::read(&[]), Ok(Demand::default()));
        assert_eq!(Demand::read(&["Basic realm=\"x\""]), Ok(Demand::default()));
    }

    #[test]
    fn bad_headers_count_where_nothing_else_is() {
        assert_eq!(Demand::read(&["Bearer scope=\"a"]), Err(ChallengeError::Quote));
        assert_eq!(Demand::read(&["Bearer scope=\"a\\\"b\""]), Err(ChallengeError::Syntax));
        assert!(Demand::read(&["Basic \"", "Bearer scope=a"]).is_ok());
    }
}
