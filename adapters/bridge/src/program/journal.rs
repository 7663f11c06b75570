//! The journal: one line of JSON for each request.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::json::Object;
use mcp_sansio::sink::to_vec;
use mcp_sansio_bridge::CallRecord;

use crate::system::private;

/// Opens a file to add to; the lines have `arguments` if that is asked. A line that cannot be written is left out.
pub(crate) fn open(
    path: &str,
    server: String,
    arguments: bool,
) -> io::Result<impl FnMut(&CallRecord<'_>) + Send + 'static> {
    let (mut file, mut is_whole) = (private(OpenOptions::new().create(true).append(true)).open(path)?, true);
    Ok(move |record: &CallRecord<'_>| {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        let line = to_vec(|out| {
            let mut line = Object::open(out);
            line.number("at", at);
            line.text_if("host", Some(record.host).filter(|host| !host.is_empty()));
            line.text_if("server", Some(&*server).filter(|server| !server.is_empty()));
            line.text("method", record.method);
            line.text_if("target", Some(record.target).filter(|target| !target.is_empty()));
            line.number("millis", record.millis);
            line.text("outcome", record.outcome);
            line.raw_if("arguments", record.arguments.filter(|_| arguments));
            line.close()
        });
        if let Ok(line) = line {
            append(&mut file, &mut is_whole, &line);
        }
    })
}

/// Adds a line to a file. After one that broke off, as on a full disk, it begins anew.
fn append(file: &mut impl Write, is_whole: &mut bool, line: &[u8]) {
    let end: &[u8] = if *is_whole { b"" } else { b"\n" };
    *is_whole = file.write_all(&[end, line, b"\n"].concat()).is_ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes no more than some bytes.
    struct Disk(usize, Vec<u8>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.0);
            self.0 -= n;
            self.1.extend(&bytes[..n]);
            if n > 0 { Ok(n) } else { Err(io::ErrorKind::StorageFull.into()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Once the first line after a full disk was the end of the one that broke off.
    #[test]
    fn a_full_disk_costs_the_lines_that_do_not_fit() {
        let (mut disk, mut is_whole) = (Disk(13, Vec::new()), true);
        for number in 1..=5 {
            if number == 4 {
                disk.0 = 100;
            }
            append(&mut disk, &mut is_whole, format!("{{\"at\":{number}}}").as_bytes());
        }
        assert_eq!(String::from_utf8(disk.1).unwrap(), "{\"at\":1}\n{\"at\n{\"at\":4}\n{\"at\":5}\n");
    }
}
