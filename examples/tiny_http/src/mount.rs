//! The mount: a thread for each request blocks on its response, and on the events of its stream.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;

use http_body::{Body as _, Frame};
use mcp_sansio_tower::{Body, Mcp};
use smol::block_on;
use tiny_http::{HTTPVersion, Header, Request, Response};
use tower_service::Service as _;

/// Number of requests at once, open streams included: each has a thread.
const THREADS: usize = 256;

/// Serves a request in a thread of its own.
pub(crate) fn serve<S: Send + 'static>(mcp: &Mcp<S>, threads: &Arc<()>, request: Request) {
    let (mcp, counted) = (mcp.clone(), Arc::clone(threads));
    if Arc::strong_count(threads) > THREADS {
        let _ = request.respond(Response::empty(503));
        return;
    }
    thread::spawn(move || {
        // An error means that the client is gone; the body was dropped, and the mount notices.
        let _ = answer(mcp, request);
        drop(counted);
    });
}

fn answer<S: Send>(mut mcp: Mcp<S>, request: Request) -> io::Result<()> {
    let mut asked = http::Request::builder().method(request.method().as_str()).uri(request.url());
    for header in request.headers() {
        asked = asked.header(header.field.as_str().as_str(), header.value.as_str());
    }
    let is_old = *request.http_version() < HTTPVersion(1, 1); // it knows no chunks
    let request = Arc::new(Mutex::new(request));
    let response = match asked.body(Incoming(Arc::clone(&request))) {
        Ok(asked) if !is_old => block_on(mcp.call(asked)).unwrap_or_else(|never| match never {}),
        _ => http::Response::builder().status(400).body(Body::default()).unwrap_or_default(),
    };
    // The future is gone, and with it the body of the request.
    let Some(request) = Arc::into_inner(request).and_then(|request| request.into_inner().ok()) else { return Ok(()) };

    let (head, mut body) = response.into_parts();
    let mut next =
        || block_on(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).and_then(|frame| frame.ok()?.into_data().ok());
    if head.headers.get("content-type").is_none_or(|kind| kind != "text/event-stream") {
        let headers =
            head.headers.iter().filter_map(|(name, value)| Header::from_bytes(name.as_str(), value.as_bytes()).ok());
        let body = next().unwrap_or_default();
        let response = Response::from_data(body).with_status_code(head.status.as_u16());
        return request.respond(headers.fold(response, Response::with_header));
    }
    // `respond` would send the events when 8 KiB of them have come together. The writer is there only when the request was
    // read, as it is here.
    let mut out = io::BufWriter::new(request.into_writer());
    write!(out, "HTTP/1.1 {}\r\nTransfer-Encoding: chunked\r\n", head.status)?;
    for (name, value) in &head.headers {
        write!(out, "{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()))?;
    }
    out.write_all(b"\r\n")?;
    out.flush()?;
    while let Some(events) = next() {
        write!(out, "{:x}\r\n", events.len())?;
        out.write_all(&events)?;
        out.write_all(b"\r\n")?;
        out.flush()?;
    }
    out.write_all(b"0\r\n\r\n")?;
    out.flush()
}

/// The body of a request. It is read when the mount asks for it, after the head was judged.
struct Incoming(Arc<Mutex<Request>>);

impl http_body::Body for Incoming {
    type Data = VecDeque<u8>;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<VecDeque<u8>>>>> {
        let mut bytes = vec![0; 16 * 1024];
        let mut request = self.0.lock().expect("nothing panics with it");
        Poll::Ready(match request.as_reader().read(&mut bytes) {
            Ok(0) => None,
            Ok(len) => {
                bytes.truncate(len);
                Some(Ok(Frame::data(bytes.into())))
            }
            Err(error) => Some(Err(error)),
        })
    }
}
