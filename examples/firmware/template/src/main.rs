//! The service and the loops of the templates for boards on UART0, in QEMU: that of `esp32c3`, and with the feature
//! `embassy` that of `nrf52840` and `stm32f411`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use board::Led;
#[cfg(feature = "embassy")]
use embassy_executor::Spawner;
use mcp_sansio_embedded::IoError;
#[cfg(feature = "embassy")]
use mcp_sansio_embedded::asynch::serve;
#[cfg(not(feature = "embassy"))]
use mcp_sansio_embedded::serve;
use static_cell::StaticCell;
use template::{Board, SERVICE, State, session};

/// A board whose sensor works while the LED is on.
struct Simulated {
    led: Led,
}

impl Board for Simulated {
    fn hundredths(&mut self) -> Option<i32> {
        self.led.is_on().then_some(3_700)
    }

    fn set_led(&mut self, on: bool) {
        self.led.set(on);
    }
}

board::entry!(main);

fn state(led: Led) -> State {
    static BOARD: StaticCell<Simulated> = StaticCell::new();
    State::new(BOARD.init(Simulated { led }))
}

// After an error of the port both go on with the next bytes. At the end of the input the program ends.

#[cfg(not(feature = "embassy"))]
fn main() -> ! {
    let board = board::start();
    let (mut rx, mut tx) = board.uart.split();
    let (mut state, mut session) = (state(board.led), session());
    while let Err(IoError::Read(_)) = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session) {}
    tx.drain();
    board::exit()
}

#[cfg(feature = "embassy")]
fn main() -> ! {
    board::run(|spawner: Spawner| match serving() {
        Ok(serving) => spawner.spawn(serving),
        Err(_) => board::exit(),
    })
}

#[cfg(feature = "embassy")]
#[embassy_executor::task]
async fn serving() {
    let board = board::start();
    let (mut rx, mut tx) = board.uart.split();
    let (mut state, mut session) = (state(board.led), session());
    while let Err(IoError::Read(_)) = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).await {}
    tx.drain();
    board::exit()
}
