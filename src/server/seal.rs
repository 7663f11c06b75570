//! Protection of the handler's state that travels through the client: `requestState` of 2026-07-28. See
//! [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use super::Millis;

/// The request that a sealed state belongs to. A seal must refuse a state that comes back with another one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AssociatedData<'b> {
    /// The method of the request.
    pub method: &'b str,
    /// `params.name` or `params.uri`, as JSON text.
    pub target: &'b [u8],
    /// `params.arguments`, as JSON text.
    pub arguments: &'b [u8],
    /// The user that sent the request, if the transport knows it.
    pub principal: Option<&'b str>,
    /// The time on the caller's clock in milliseconds, for an expiry.
    pub now: Millis,
}

impl<'b> AssociatedData<'b> {
    /// Makes the data of a request without a principal, at time 0.
    #[must_use]
    pub const fn new(method: &'b str, target: &'b [u8], arguments: &'b [u8]) -> Self {
        AssociatedData { method, target, arguments, principal: None, now: 0 }
    }
}

crate::error_enum! {
    /// The reason why a state was not sealed or not opened.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    SealError {
        /// The buffer is too small.
        Room => "the buffer is too small for the state",
        /// The state was not sealed by this seal, or for another request, or it is too old.
        Broken => "the state was not sealed here and now",
    }
}

/// Protects the state of a handler that travels through the client as `requestState`. A client can change it. The
/// core has no cryptography: pass an implementation over a MAC or an AEAD to [`Server::seal`](super::Server::seal).
///
/// A seal does not prevent that a state comes twice: see [Request state](crate::duties::server#request-state).
pub trait Seal {
    /// Writes the protected form of `state` to `sealed` and returns its length in bytes.
    ///
    /// # Errors
    /// [`SealError::Room`] if `sealed` is too small.
    fn seal(&self, bound: &AssociatedData<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError>;

    /// Checks `sealed`, writes the state to `state` and returns its length in bytes.
    ///
    /// # Errors
    /// [`SealError::Broken`] if the check fails, [`SealError::Room`] if `state` is too small.
    fn open(&self, bound: &AssociatedData<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError>;
}

/// Compares two secrets, such as a token with the one that a client gave, in a time that depends on their lengths alone.
#[inline(always)]
#[must_use]
pub fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differences == 0
}
