//! The ways to a server.

use std::time::Duration;

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::client::ClientInfo;
use mcp_sansio_smol::client::{
    Child, ChildOptions, ClientOptions, Http, HttpClientConfig, HttpOptions, Stderr, StreamTransport, Transport,
};

use crate::Shared;
use crate::arguments::Arguments;
use crate::login::with_login;

/// The time for a child process to end by itself after its stdin was closed, and the time after SIGTERM. With [`GRACE`](crate::GRACE)
/// they are less than the two seconds after which hosts kill the bridge: a bridge that is killed leaves its child.
const CLOSE_TIME: Duration = Duration::from_millis(500);
const TERMINATE_TIME: Duration = Duration::from_millis(400);

/// Opens a way to the server. The client connects over it then.
pub(crate) async fn open(
    shared: &Shared,
    arguments: &Arguments,
    at: usize,
    info: &'static ClientInfo<'static>,
) -> Result<Box<dyn Transport>, String> {
    // The host has the time limits, and cancels.
    let options = ClientOptions::DEFAULT.timeout(std::time::Duration::MAX).message(arguments.limits.message);
    let server = &arguments.targets[at];
    let target = &*server.place;
    if let Some(program) = &server.program {
        let mut command = std::process::Command::new(target);
        command.args(program).envs(server.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &server.folder {
            command.current_dir(folder);
        }
        let times = ChildOptions::new().close_time(CLOSE_TIME).terminate_time(TERMINATE_TIME);
        let options = times.options(options).stderr(Stderr::Inherit);
        return Ok(Child::spawn_with(command, info, options).map_err(|error| error.to_string())?.into());
    }
    if let Some(address) = target.strip_prefix("tcp:") {
        let addresses = blocking::unblock({
            let address = address.to_owned();
            move || std::net::ToSocketAddrs::to_socket_addrs(&*address).map(Vec::from_iter)
        });
        let mut why = "no such address".to_owned();
        for address in addresses.await.map_err(|error| error.to_string())? {
            match async_io::Async::<std::net::TcpStream>::connect(address).await {
                Ok(socket) => {
                    let _ = socket.get_ref().set_nodelay(true);
                    return Ok(over(socket, info, &options));
                }
                Err(error) => why = error.to_string(),
            }
        }
        return Err(why);
    }
    #[cfg(unix)]
    if let Some(path) = match target.strip_prefix("usb:") {
        Some(numbers) => Some(usb(numbers, "/sys/class/tty".as_ref()).ok_or("no such device is plugged in")?),
        None => target.strip_prefix("serial:").map(str::to_owned),
    } {
        let line = serial(&path, arguments.baud).map_err(|error| format!("{path}: {error}"))?;
        return Ok(over(line, info, &options));
    }
    let silence = arguments.limits.check.saturating_mul(2);
    let http = HttpOptions::new().options(options).config(HttpClientConfig::DEFAULT.silence(silence));
    let http = server.headers.iter().fold(http, |http, (name, value)| http.header(name, value));
    let http = Http::with(target, info, http).map_err(|error| error.to_string())?;
    Ok(with_login(http, shared, at, server)?.into())
}

/// Returns the client's end of a stream of lines.
fn over<T: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: T,
    info: &'static ClientInfo<'static>,
    options: &ClientOptions,
) -> Box<dyn Transport> {
    let (reader, writer) = futures_lite::io::split(stream);
    StreamTransport::with(reader, writer, info, options).into()
}

/// Returns the path of the serial line of a USB device, by vendor, product and serial number.
#[cfg(unix)]
fn usb(numbers: &str, lines: &std::path::Path) -> Option<String> {
    let wanted: Vec<_> = numbers.splitn(3, ':').collect();
    let is_wanted = |line: &std::path::Path| {
        let device = line.join("device").canonicalize().ok()?;
        // The interface lies in the device, the device in its hub.
        let device = device.ancestors().find(|folder| folder.join("idVendor").exists())?;
        let names = ["idVendor", "idProduct", "serial"];
        let is = |(name, wanted): (&str, &&str)| {
            std::fs::read_to_string(device.join(name)).is_ok_and(|own| own.trim().eq_ignore_ascii_case(wanted))
        };
        (wanted.len() >= 2 && names.into_iter().zip(&wanted).all(is)).then_some(())
    };
    let found = std::fs::read_dir(lines).ok()?.flatten().find(|line| is_wanted(&line.path()).is_some())?;
    Some(format!("/dev/{}", found.file_name().to_str()?))
}

/// Opens a serial line of `baud` bits per second, without flow control and the terminal's own ways with bytes.
#[cfg(unix)]
fn serial(path: &str, baud: u32) -> std::io::Result<async_io::Async<std::fs::File>> {
    use rustix::fs::{Mode, OFlags};
    use rustix::termios::{self, ControlModes};
    use std::io::Write;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let line = rustix::fs::open(path, flags, Mode::empty())?;
    if termios::isatty(&line) {
        let mut settings = termios::tcgetattr(&line)?;
        settings.make_raw();
        settings.set_speed(baud)?;
        // A board of three wires has no modem's lines.
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        settings.control_modes -= ControlModes::CRTSCTS;
        termios::tcsetattr(&line, termios::OptionalActions::Now, &settings)?;
    }
    let mut line = std::fs::File::from(line);
    // Ends the half line of a client before.
    line.write_all(b"\n")?;
    async_io::Async::new(line)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn serial_lines_of_usb_devices() {
        let root = std::env::temp_dir().join(format!("mcp-bridge-usb-{}", std::process::id()));
        let device = root.join("hub/board");
        fs::create_dir_all(device.join("interface")).unwrap();
        fs::create_dir_all(root.join("tty/ttyACM7")).unwrap();
        for (name, text) in [
            ("hub/idVendor", "1d6b\n"),
            ("hub/board/idVendor", "2e8a\n"),
            ("hub/board/idProduct", "000a\n"),
            ("hub/board/serial", "E66:1\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        std::os::unix::fs::symlink(device.join("interface"), root.join("tty/ttyACM7/device")).unwrap();
        let of = |numbers: &str| usb(numbers, &root.join("tty"));
        let found = ["2E8A:000a", "2e8a:000a:E66:1", "1d6b:000a", "2e8a:000b", "2e8a:000a:2", "2e8a"].map(of);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.map(|path| path.is_some()), [true, true, false, false, false, false]);
    }
}
