//! `Debug` for types of which not all can be shown.

/// Implements `Debug` with some of the fields, or with none: the others are large, secret, or cannot be shown.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_fields {
    (impl $(<$($generic:ident $(: $bound:path)?),*>)? for $name:ident $(<$($argument:tt),*>)? { $($field:ident),* }) => {
        impl $(<$($generic $(: $bound)?),*>)? ::core::fmt::Debug for $name $(<$($argument),*>)? {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    };
}
