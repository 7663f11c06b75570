//! The board: a Raspberry Pi Pico with USB's serial class. `lib.rs` has the tools.
#![no_std]
#![no_main]

use board::{Board, SERVICE, State, session};
use embassy_executor::Spawner;
use embassy_futures::join::join;
use embassy_futures::select::select;
use embassy_rp::adc::{Adc, Blocking, Channel, Config};
use embassy_rp::gpio::{Level, Output};
use embassy_rp::peripherals::USB;
use embassy_rp::{bind_interrupts, usb};
use embassy_usb::class::cdc_acm::{self, CdcAcmClass, ControlChanged};
use mcp_sansio_embedded::asynch::serve;
use mcp_sansio_embedded::packet::{PacketReader, PacketWriter};
use panic_halt as _;
use static_cell::StaticCell;

bind_interrupts!(struct Interrupts {
    USBCTRL_IRQ => usb::InterruptHandler<USB>;
});

/// The size of a full-speed bulk packet in bytes.
const PACKET: usize = 64;

struct Pico {
    adc: Adc<'static, Blocking>,
    temperature: Channel<'static>,
    led: Output<'static>,
}

impl Board for Pico {
    fn hundredths(&mut self) -> Option<i32> {
        let raw = self.adc.blocking_read(&mut self.temperature).ok()?;
        // 27 degrees at 0.706 V, and 1.721 mV less per degree (RP2040 data sheet). In integers, to avoid floats.
        let microvolts = i64::from(raw) * 3_300_000 / 4096;
        Some((2700 - (microvolts - 706_000) * 100 / 1721) as i32)
    }

    fn set_led(&mut self, on: bool) {
        self.led.set_level(on.into());
    }
}

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    let p = embassy_rp::init(Default::default());
    static PICO: StaticCell<Pico> = StaticCell::new();
    let mut state = State::new(PICO.init(Pico {
        adc: Adc::new_blocking(p.ADC, Config::default()),
        temperature: Channel::new_temp_sensor(p.ADC_TEMP_SENSOR),
        led: Output::new(p.PIN_25, Level::Low),
    }));

    // For a product use your own ids: https://pid.codes assigns them for free.
    let mut config = embassy_usb::Config::new(0x1209, 0x0001);
    config.product = Some("MCP board");
    config.serial_number = Some("1");
    static CONFIG: StaticCell<[u8; 128]> = StaticCell::new();
    static BOS: StaticCell<[u8; 32]> = StaticCell::new();
    static CONTROL: StaticCell<[u8; 64]> = StaticCell::new();
    static STATE: StaticCell<cdc_acm::State> = StaticCell::new();
    let mut builder = embassy_usb::Builder::new(
        usb::Driver::new(p.USB, Interrupts),
        config,
        CONFIG.init([0; 128]),
        BOS.init([0; 32]),
        &mut [],
        CONTROL.init([0; 64]),
    );
    let class = CdcAcmClass::new(&mut builder, STATE.init(cdc_acm::State::new()), PACKET as u16);
    let mut device = builder.build();

    let (mut sender, mut receiver, control) = class.split_with_control();
    let mut packet = [0; PACKET];
    let mut rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
        receiver.wait_connection().await;
        receiver.read_packet(place).await
    });
    let mut tx = PacketWriter::new_async(PACKET, async |packet: &[u8]| sender.write_packet(packet).await);
    let mut session = session();
    let clients = async {
        loop {
            // Bytes that arrive while the port is closed belong to the client before.
            select(port_is(&control, true), rx.drain()).await;
            session.new_peer();
            rx.new_peer();
            tx.new_peer();
            // Ends when the client closes the port, also in the middle of a write that it does not read.
            select(port_is(&control, false), serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session)).await;
        }
    };
    join(device.run(), clients).await;
}

/// Waits until a client opens the port (DTR rises), or closes it.
async fn port_is(control: &ControlChanged<'_>, open: bool) {
    while control.dtr() != open {
        control.control_changed().await;
    }
}
