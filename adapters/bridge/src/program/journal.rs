//! The journal: one line of JSON for each request.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::json::Object;
use mcp_sansio::sink::{LineSink, MessageHead, whole};
use mcp_sansio_bridge::CallRecord;

/// Opens a file to add to; the lines have `arguments` if that is asked. A line that cannot be written is left out.
pub(crate) fn open(
    path: &str,
    server: String,
    arguments: bool,
) -> io::Result<impl FnMut(&CallRecord<'_>) + Send + 'static> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(move |record: &CallRecord<'_>| {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        let mut out = LineSink::new(Vec::new());
        let written = whole(&mut out, MessageHead::Notification, |out| {
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
        if written.is_ok() {
            let _ = file.write_all(out.pending());
        }
    })
}
