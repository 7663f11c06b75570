//! The place of the task that a request names: here, or at another process.

/// Returns from a handler with the answer, if the task of its request is at another process; else gives its token.
macro_rules! find {
    ($state:expr, $request:expr, $wanted:ident) => {{
        #[cfg(feature = "alloc")]
        let token = match crate::elsewhere::find($state, $request, crate::elsewhere::Wanted::$wanted)? {
            crate::elsewhere::Place::Here(token) => token,
            crate::elsewhere::Place::Elsewhere(done) => return Ok(done),
        };
        #[cfg(not(feature = "alloc"))]
        let token = $state.tasks_mut().named_by($request)?;
        token
    }};
}
pub(crate) use find;
