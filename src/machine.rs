//! State machines: how a state changes.

/// Implements `name` and `enter` for the states of a machine. `enter` is the one way to change the state. In debug builds it
/// checks from, to and cause against the table.
#[doc(hidden)]
#[macro_export]
macro_rules! machine {
    ($state:ident, $table:ident: $($name:ident)*) => {
        impl $state {
            /// Returns the name of the state in the table.
            const fn name(&self) -> &'static str {
                match self {
                    $($state::$name { .. } => stringify!($name),)*
                }
            }

            /// Enters another state.
            #[inline]
            pub(crate) fn enter(&mut self, cause: &str, next: $state) {
                let (from, to) = (self.name(), next.name());
                debug_assert!($table.contains(&(from, to, cause)), "no transition from {from} to {to}: {cause}");
                *self = next;
            }
        }
    };
}
