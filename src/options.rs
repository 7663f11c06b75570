//! Options: each is a field, its default, and a function that sets it.

/// Defines options. Those `by hand` have no function here.
#[doc(hidden)]
#[macro_export]
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)*
        }
        $(by hand {
            $($(#[$more:meta])* $other:ident: $kind:ty = $initial:expr,)*
        })?
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub struct $name $(<$life>)? {
            $($(#[$doc])* pub $field: $type,)*
            $($($(#[$more])* pub $other: $kind,)*)?
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The defaults.
            pub const DEFAULT: Self = $name { $($field: $default,)* $($($other: $initial,)*)? };

            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub const fn $field(self, $field: $type) -> Self {
                    $name { $field, ..self }
                }
            )*
        }

        impl $(<$life>)? Default for $name $(<$life>)? {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
}

/// Defines functions of a builder, each of which sets fields and returns `Self`: `title(text: &'t str) => title = Some(text);`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$about:meta])* $name:ident($($value:ident: $type:ty),*) => $($($field:ident).+ = $set:expr),+;)*) => {
        $(
            $(#[$about])*
            pub fn $name(mut self, $($value: $type),*) -> Self {
                $(self.$($field).+ = $set;)+
                self
            }
        )*
    };
}

/// Defines the same functions for constants.
#[doc(hidden)]
#[macro_export]
macro_rules! const_setters {
    ($($(#[$about:meta])* $name:ident($($value:ident: $type:ty),*) => $($($field:ident).+ = $set:expr),+;)*) => {
        $(
            $(#[$about])*
            pub const fn $name(mut self, $($value: $type),*) -> Self {
                $(self.$($field).+ = $set;)+
                self
            }
        )*
    };
}
