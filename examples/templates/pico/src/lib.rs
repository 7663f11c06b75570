//! The tools and the memory of the board, apart from its chip: so they can be tested on a computer.
#![no_std]

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Decimal;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, tool};
use mcp_sansio::sink::{LineSink, SliceStorage};
use static_cell::StaticCell;

/// A board, as far as the tools need it.
pub trait Board {
    /// The temperature of the chip in hundredths of a degree Celsius; `None` if the converter failed.
    fn hundredths(&mut self) -> Option<i32>;
    fn set_led(&mut self, on: bool);
}

/// The most bytes of a note.
const NOTE: usize = 64;

/// The state of the handlers.
pub struct State {
    board: &'static mut dyn Board,
    is_led_on: bool,
    note: [u8; NOTE],
    len: usize,
}

impl State {
    pub const fn new(board: &'static mut dyn Board) -> State {
        State { board, is_led_on: false, note: [0; NOTE], len: 0 }
    }
}

/// Measures the chip's temperature, in degrees Celsius
#[tool(read_only, open_world = false)]
fn read_temperature(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    match state.board.hundredths() {
        Some(hundredths) => call.text(&[Decimal::new(hundredths.into(), 2).into(), " degrees Celsius".into()]),
        None => call.error("The converter failed"),
    }
}

/// Turns the LED on or off
#[tool(idempotent, open_world = false)]
fn set_led(state: &mut State, call: &mut Call<'_>, #[arguments] on: bool) -> HandlerResult {
    state.board.set_led(on);
    state.is_led_on = on;
    read_led(state, call)
}

/// Returns whether the LED is on
#[tool(read_only, open_world = false)]
fn read_led(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text(if state.is_led_on { "The LED is on" } else { "The LED is off" })
}

/// Keeps a note of at most 64 bytes, until the board is switched off
#[tool(idempotent, open_world = false)]
fn write_note(state: &mut State, call: &mut Call<'_>, #[arguments] text: &str) -> HandlerResult {
    let Some(place) = state.note.get_mut(..text.len()) else { return call.error("A note has at most 64 bytes") };
    place.copy_from_slice(text.as_bytes());
    state.len = text.len();
    call.text("Noted")
}

/// Returns the note
#[tool(read_only, open_world = false)]
fn read_note(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let note = state.note.get(..state.len).unwrap_or_default();
    call.text(core::str::from_utf8(note).unwrap_or_default())
}

pub const SERVICE: Service<'static, State> = Service::new("board", env!("CARGO_PKG_VERSION")).tools(&[
    READ_TEMPERATURE,
    SET_LED,
    READ_LED,
    WRITE_NOTE,
    READ_NOTE,
]);

/// The connection of a client.
pub type Session = LineServer<'static, LineSink<SliceStorage<'static>>>;

/// Makes the connection; call it once. Not inlined: otherwise a copy would stay in the frame of `main`.
#[inline(never)]
pub fn session() -> Session {
    static INPUT: StaticCell<[u8; 1024]> = StaticCell::new();
    static OUTPUT: StaticCell<[u8; 512]> = StaticCell::new();
    static SLOTS: StaticCell<[RequestSlot; 2]> = StaticCell::new();
    // Some ports do not tell that a client has gone: its next `initialize` starts a new connection.
    let server = Server::new(SLOTS.init([RequestSlot::FREE; 2])).reopening();
    LineServer::new(
        LineBuffer::new(INPUT.init([0; 1024])),
        server,
        LineSink::new(SliceStorage::new(OUTPUT.init([0; 512]))),
    )
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::boxed::Box;

    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::testing::Conversation;
    use serde_json::json;

    use super::*;

    /// A board whose sensor works while the LED is on.
    struct Simulated {
        led: bool,
    }

    impl Board for Simulated {
        fn hundredths(&mut self) -> Option<i32> {
            self.led.then_some(3_700)
        }

        fn set_led(&mut self, on: bool) {
            self.led = on;
        }
    }

    #[test]
    fn tools_in_all_revisions() {
        for revision in Revision::ALL {
            let state = State::new(Box::leak(Box::new(Simulated { led: false })));
            let mut conversation = Conversation::new(const { &SERVICE }, state);
            conversation.open(revision);
            assert!(conversation.call("read_temperature", &()).is_error());
            assert_eq!(conversation.call("set_led", &json!({ "on": true })).text(), "The LED is on");
            assert_eq!(conversation.call("read_led", &()).text(), "The LED is on");
            assert_eq!(conversation.call("read_temperature", &()).text(), "37.00 degrees Celsius");
            assert!(conversation.call("set_led", &json!({ "on": 1 })).is_error());
            assert_eq!(conversation.call("write_note", &json!({ "text": "buy \"tea\"" })).text(), "Noted");
            assert!(conversation.call("write_note", &json!({ "text": "x".repeat(65) })).is_error());
            assert_eq!(conversation.call("read_note", &()).text(), "buy \"tea\"");
        }
    }
}
