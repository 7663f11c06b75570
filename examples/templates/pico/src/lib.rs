//! The tools of the board, apart from its chip: so they can be tested on a computer.
#![no_std]

use mcp_sansio::json::Decimal;
use mcp_sansio::service::{Call, HandlerResult, Service, tool};

/// A board, as far as the tools need it.
pub trait Board {
    /// The voltage of the chip's sensor of temperature, in microvolts; `None` if the converter failed.
    fn microvolts(&mut self) -> Option<u32>;
    fn set_led(&mut self, on: bool);
}

/// The state of the handlers.
pub type State = &'static mut dyn Board;

/// Measures the chip's temperature, in degrees Celsius
#[tool(read_only, open_world = false)]
fn read_temperature(board: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let Some(microvolts) = board.microvolts() else { return call.error("The converter failed") };
    // 27 degrees at 0.706 V, and 1.721 mV less per degree (RP2040 data sheet). In hundredths, to avoid floats.
    let hundredths = 2700 - (i64::from(microvolts) - 706_000) * 100 / 1721;
    call.text(&[Decimal::new(hundredths, 2).into(), " degrees Celsius".into()])
}

/// Turns the LED on or off
#[tool(idempotent, open_world = false)]
fn set_led(board: &mut State, call: &mut Call<'_>, #[arguments] on: bool) -> HandlerResult {
    board.set_led(on);
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

pub const SERVICE: Service<'static, State> =
    Service::new("board", env!("CARGO_PKG_VERSION")).tools(&[READ_TEMPERATURE, SET_LED]);

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
        fn microvolts(&mut self) -> Option<u32> {
            self.led.then_some(688_790)
        }

        fn set_led(&mut self, on: bool) {
            self.led = on;
        }
    }

    #[test]
    fn tools_in_all_revisions() {
        for revision in Revision::ALL {
            let board: State = Box::leak(Box::new(Simulated { led: false }));
            let mut conversation = Conversation::new(const { &SERVICE }, board);
            conversation.open(revision);
            assert!(conversation.call("read_temperature", &()).is_error());
            assert_eq!(conversation.call("set_led", &json!({ "on": true })).text(), "The LED is on");
            assert_eq!(conversation.call("read_temperature", &()).text(), "37.00 degrees Celsius");
            assert!(conversation.call("set_led", &json!({ "on": 1 })).is_error());
        }
    }
}
