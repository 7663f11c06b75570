//! A client over HTTP without its sockets.

mod authorization;
pub(crate) mod fetch;
mod options;
mod session;
mod stream;

pub use authorization::{AuthorizationDriver, AuthorizationFlow};
pub use fetch::{FetchFailed, FetchedResponse, Fetcher};
pub use options::{CONNECTIONS, HttpOptions, HttpOrigin, HttpPlace, connect_error};
pub use session::HttpSession;
