//! Clients of all revisions of an example whose tool `count` tells its progress.

use std::net::SocketAddr;

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{Client, Http};

const PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

/// Calls `count` as a client of each revision, and looks at its answer and its steps.
pub(crate) fn are_served(address: SocketAddr) {
    for revision in Revision::ALL {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut steps = 0;
        let handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            steps += i32::from(matches!(event, ClientEvent::Progress { .. }));
        };
        let mut client = Client::new(Http::new(&format!("http://{address}/mcp"), &info).unwrap(), handler);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let answer = client.request(&Request::call("count").with_progress()).unwrap();
        assert!(answer.as_str().contains("three"), "{answer:?}");
        client.close();
        assert_eq!(steps, 3, "{revision:?}");
    }
}
