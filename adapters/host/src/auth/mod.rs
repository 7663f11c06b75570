//! Authorization of a client over HTTP: OAuth with a browser, and files for tokens.

mod authorizer;
mod loopback;
mod token_store;

pub use authorizer::AuthorizationOptions;
pub(crate) use authorizer::Authorizer;
pub(crate) use token_store::NoTokens;
pub use token_store::{TokenFile, TokenStore};
