//! Clients of both adapters, as a test uses them.

use std::io;
use std::sync::{Arc, Mutex};

use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::revision::Revision;
use mcp_sansio_blocking::client as blocking;
use mcp_sansio_smol::client as smol_client;

use crate::World;

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1.0");

/// An adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// `mcp-sansio-blocking`.
    Blocking,
    /// `mcp-sansio-smol`.
    Smol,
}

/// A client of 2026-07-28 of one adapter.
pub enum AnyClient {
    /// Of `mcp-sansio-blocking`.
    Blocking(Box<blocking::Client<'static, blocking::Http<'static>, blocking::Ignore>>),
    /// Of `mcp-sansio-smol`; an executor of its own drives it.
    Smol(smol_client::Client),
}

impl Adapter {
    /// Both.
    pub const ALL: [Adapter; 2] = [Adapter::Blocking, Adapter::Smol];

    /// Makes a client, which sends nothing yet.
    pub fn client(self, world: &World, options: blocking::AuthorizationOptions) -> AnyClient {
        self.client_with(world, blocking::HttpOptions::new(), options)
    }

    /// Makes a client with options of HTTP.
    pub fn client_with(
        self,
        world: &World,
        http: blocking::HttpOptions,
        options: blocking::AuthorizationOptions,
    ) -> AnyClient {
        match self {
            Adapter::Blocking => {
                let http = blocking::Http::with(&world.url(), &PROFILE, http).unwrap();
                let http = http.authorization(options).unwrap();
                let mut client = blocking::Client::new(http, blocking::Ignore);
                client.connect_as(Revision::V2026_07_28).unwrap();
                AnyClient::Blocking(Box::new(client))
            }
            Adapter::Smol => {
                let http = smol_client::Http::with(&world.url(), &PROFILE, http).unwrap();
                let http = http.authorization(options).unwrap();
                let (client, driver) = smol_client::Client::new(http, smol_client::Ignore);
                smol::spawn(driver).detach();
                smol::block_on(client.connect_as(Revision::V2026_07_28)).unwrap();
                AnyClient::Smol(client)
            }
        }
    }
}

impl AnyClient {
    /// Sends `tools/list` and waits for the result. An error is the text that the application shows.
    pub fn list(&mut self) -> Result<(), String> {
        self.request(Request::list_tools())
    }

    /// Sends a request and waits for the result.
    pub fn request(&mut self, request: Request<'_>) -> Result<(), String> {
        let done = match self {
            AnyClient::Blocking(client) => client.request(&request),
            AnyClient::Smol(client) => smol::block_on(client.request(request)),
        };
        done.map(drop).map_err(|error| error.to_string())
    }
}

/// A place for tokens that a test can look into.
#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<Option<String>>>);

impl blocking::TokenStore for Kept {
    fn load(&mut self) -> io::Result<Option<String>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn save(&mut self, text: &str) -> io::Result<()> {
        *self.0.lock().unwrap() = Some(text.to_owned());
        Ok(())
    }
}
