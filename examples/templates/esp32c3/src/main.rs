//! The board: an ESP32-C3 with its own USB serial port. `lib.rs` has the tools.
#![no_std]
#![no_main]

use board::{Board, SERVICE, State, session};
use esp_hal::gpio::{Level, Output, OutputConfig};
use esp_hal::main;
use esp_hal::tsens::{Config, TemperatureSensor};
use esp_hal::usb::usb_serial_jtag::UsbSerialJtag;
use mcp_sansio_embedded::serve;
use panic_halt as _;
use static_cell::StaticCell;

esp_bootloader_esp_idf::esp_app_desc!();

struct Esp32c3 {
    temperature: Option<TemperatureSensor<'static>>,
    led: Output<'static>,
}

impl Board for Esp32c3 {
    fn hundredths(&mut self) -> Option<i32> {
        let measured = self.temperature.as_ref()?.get_temperature();
        // 0.4386 degrees a step, 27.88 a step of the offset, from -20.52 on, as `to_celsius` has it. In integers, to avoid floats.
        Some((i32::from(measured.raw_value) * 4386 - i32::from(measured.offset) * 278_800 - 205_200) / 100)
    }

    fn set_led(&mut self, on: bool) {
        self.led.set_level(if on { Level::High } else { Level::Low });
    }
}

#[main]
fn main() -> ! {
    let p = esp_hal::init(esp_hal::Config::default());
    static BOARD: StaticCell<Esp32c3> = StaticCell::new();
    let mut state = State::new(BOARD.init(Esp32c3 {
        temperature: TemperatureSensor::new(p.TSENS, Config::default()).ok(),
        led: Output::new(p.GPIO8, Level::Low, OutputConfig::default()),
    }));
    let (mut rx, mut tx) = UsbSerialJtag::new(p.USB_DEVICE).split();
    let mut session = session();
    loop {
        // It ends with an error of the port: go on with the next bytes.
        let _ = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session);
    }
}
