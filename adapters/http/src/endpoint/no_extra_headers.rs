//! In place of headers that an application adds, without the feature `resource-server`: none.

/// No scopes, and no headers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct GrantParts;

impl GrantParts {
    pub(crate) const NONE: GrantParts = GrantParts;

    #[allow(clippy::unused_self, reason = "the same as with the feature")]
    pub(crate) const fn scopes(&self) -> u64 {
        0
    }
}

/// No headers.
#[derive(Clone, Debug)]
pub struct ExtraHeaders<const N: usize>;

pub(crate) const REFUSAL_HEADERS: usize = 0;

#[allow(clippy::unused_self, reason = "the same as with the feature")]
impl<const N: usize> ExtraHeaders<N> {
    pub(crate) const EMPTY: Self = ExtraHeaders;

    pub(crate) const fn is_empty(&self) -> bool {
        true
    }

    pub(crate) const fn each<'s>(&'s self, _: &mut dyn FnMut(&'s str, &'s str)) {}
}
