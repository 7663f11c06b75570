//! The board: an nRF52840 DK, whose debugger shows UARTE0 as a serial port. `lib.rs` has the tools.
#![no_std]
#![no_main]

use board::{Board, SERVICE, State, session};
use embassy_executor::Spawner;
use embassy_futures::block_on;
use embassy_nrf::buffered_uarte::{self, BufferedUarte};
use embassy_nrf::gpio::{Level, Output, OutputDrive};
use embassy_nrf::peripherals::UARTE0;
use embassy_nrf::temp::{self, Temp};
use embassy_nrf::{bind_interrupts, uarte};
use mcp_sansio_embedded::asynch::serve;
use panic_halt as _;
use static_cell::StaticCell;

bind_interrupts!(struct Interrupts {
    UARTE0 => buffered_uarte::InterruptHandler<UARTE0>;
    TEMP => temp::InterruptHandler;
});

struct Nrf52840 {
    temperature: Temp<'static>,
    led: Output<'static>,
}

impl Board for Nrf52840 {
    fn hundredths(&mut self) -> Option<i32> {
        // In quarters of a degree, after some 36 microseconds.
        Some(block_on(self.temperature.read()).to_bits() * 25)
    }

    fn set_led(&mut self, on: bool) {
        // The LED is between the pin and the supply.
        self.led.set_level((!on).into());
    }
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let p = embassy_nrf::init(Default::default());
    static BOARD: StaticCell<Nrf52840> = StaticCell::new();
    let mut state = State::new(BOARD.init(Nrf52840 {
        temperature: Temp::new(p.TEMP, Interrupts),
        led: Output::new(p.P0_13, Level::High, OutputDrive::Standard),
    }));
    static RX: StaticCell<[u8; 512]> = StaticCell::new();
    static TX: StaticCell<[u8; 64]> = StaticCell::new();
    // 115,200 baud.
    let uart = BufferedUarte::new(
        p.UARTE0,
        p.TIMER1,
        p.PPI_CH0,
        p.PPI_CH1,
        p.PPI_GROUP0,
        p.P0_08,
        p.P0_06,
        Interrupts,
        uarte::Config::default(),
        RX.init([0; 512]),
        TX.init([0; 64]),
    );
    let (mut rx, mut tx) = uart.split();
    let mut session = session();
    loop {
        // It ends with an error of the port: go on with the next bytes.
        let _ = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).await;
    }
}
