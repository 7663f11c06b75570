//! The board: a Nucleo-F411RE, whose debugger shows USART2 as a serial port. `lib.rs` has the tools.
#![no_std]
#![no_main]

use board::{Board, SERVICE, State, session};
use embassy_executor::Spawner;
use embassy_stm32::adc::{Adc, AdcChannel, AnyAdcChannel, SampleTime};
use embassy_stm32::bind_interrupts;
use embassy_stm32::gpio::{Level, Output, Speed};
use embassy_stm32::peripherals::{ADC1, USART2};
use embassy_stm32::usart::{self, BufferedUart};
use mcp_sansio_embedded::asynch::serve;
use panic_halt as _;
use static_cell::StaticCell;

bind_interrupts!(struct Interrupts {
    USART2 => usart::BufferedInterruptHandler<USART2>;
});

struct Stm32f411 {
    adc: Adc<'static, ADC1>,
    temperature: AnyAdcChannel<'static, ADC1>,
    led: Output<'static>,
}

impl Board for Stm32f411 {
    fn hundredths(&mut self) -> Option<i32> {
        let raw = self.adc.blocking_read(&mut self.temperature, SampleTime::CYCLES480);
        // 25 degrees at 0.76 V, and 2.5 mV more per degree (data sheet).
        Some(2500 + (i32::from(raw) * 3300 * 125 / 512 - 760_000) / 25)
    }

    fn set_led(&mut self, on: bool) {
        self.led.set_level(on.into());
    }
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let p = embassy_stm32::init(Default::default());
    let adc = Adc::new(p.ADC1);
    let temperature = adc.enable_temperature().degrade_adc();
    static BOARD: StaticCell<Stm32f411> = StaticCell::new();
    let led = Output::new(p.PA5, Level::Low, Speed::Low);
    let mut state = State::new(BOARD.init(Stm32f411 { adc, temperature, led }));
    static RX: StaticCell<[u8; 512]> = StaticCell::new();
    static TX: StaticCell<[u8; 64]> = StaticCell::new();
    let (tx, rx) = (TX.init([0; 64]), RX.init([0; 512]));
    // 115,200 baud.
    let Ok(uart) = BufferedUart::new(p.USART2, p.PA3, p.PA2, tx, rx, Interrupts, Default::default()) else { return };
    let (mut tx, mut rx) = uart.split();
    let mut session = session();
    loop {
        // It ends with an error of the port: go on with the next bytes.
        let _ = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).await;
    }
}
