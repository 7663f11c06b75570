//! A request: its head as the endpoint sees it, and its body.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Buf;
use http::request::Parts;
use http::uri::Authority;
use http::{StatusCode, Version, header};
use http_body::Body;
use mcp_sansio_http::endpoint::{RequestHead, RequestHeaders};

use crate::shared::Shared;

/// The head of a request. If its target is absolute, the authority there replaces `Host`, as in HTTP/2.
pub(crate) struct RequestParts {
    pub(crate) head: Parts,
    path: String,
}

impl RequestParts {
    /// Makes a head whose path begins with `prefix`, which a router has taken away.
    pub(crate) fn new(parts: Parts, prefix: &str) -> Self {
        let path = [prefix, parts.uri.path()].concat();
        RequestParts { head: parts, path }
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        RequestHead::new(self.head.method.as_str(), &self.path, self.head.uri.query(), self)
    }

    /// Returns whether the request names its host once: HTTP/1.1 needs one name, and no version allows two.
    pub(crate) fn has_valid_host(&self) -> bool {
        let hosts = self.head.headers.get_all(header::HOST).iter().count();
        let needed = self.head.version == Version::HTTP_11 && self.authority().is_none();
        hosts <= 1 && (hosts == 1 || !needed)
    }

    fn authority(&self) -> Option<&Authority> {
        self.head.uri.authority()
    }
}

impl RequestHeaders for RequestParts {
    fn all<'s>(&'s self, tell: &mut dyn FnMut(&'s [u8], &'s [u8])) {
        let authority = self.authority();
        if let Some(authority) = authority {
            tell(b"host", authority.as_str().as_bytes());
        }
        let headers = self.head.headers.iter().filter(|(name, _)| authority.is_none() || *name != header::HOST);
        headers.for_each(|(name, value)| tell(name.as_str().as_bytes(), value.as_bytes()));
    }
}

/// The bytes of a body, counted as long as they are there.
pub(crate) struct Received<'s, S: 'static> {
    shared: &'s Shared<S>,
    bytes: Vec<u8>,
}

impl<S> Received<'_, S> {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds the bytes of a frame.
    fn take(&mut self, mut data: impl Buf) -> Result<(), StatusCode> {
        let more = data.remaining();
        if self.bytes.len().saturating_add(more) > self.shared.options.limits.message {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let before = self.shared.reading.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.shared.options.input_total {
            self.shared.reading.fetch_sub(more, Ordering::Relaxed);
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            let len = chunk.len();
            self.bytes.extend_from_slice(chunk);
            data.advance(len);
        }
        Ok(())
    }
}

impl<S> Drop for Received<'_, S> {
    fn drop(&mut self) {
        self.shared.reading.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// Reads a body, at most as much as the limits allow.
///
/// # Errors
/// The status of the answer: 413 if the body is too long, 503 if there is no room for it now, 408 if it is too slow, 400 if it
/// breaks off.
pub(crate) async fn read<S, B: Body>(shared: &Shared<S>, body: B) -> Result<Received<'_, S>, StatusCode> {
    let mut received = Received { shared, bytes: Vec::new() };
    if body.size_hint().lower() > shared.options.limits.message as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut body = pin!(body);
    let body_time = Duration::from_millis(shared.options.wire_limits.body_time);
    let mut late = None;
    loop {
        let frame = poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            let late = late.get_or_insert_with(|| (shared.timer)(body_time));
            late.as_mut().poll(cx).map(|()| Err(StatusCode::REQUEST_TIMEOUT))
        });
        match frame.await? {
            None => return Ok(received),
            Some(Err(_)) => return Err(StatusCode::BAD_REQUEST),
            Some(Ok(frame)) => {
                // Trailers say nothing to the endpoint.
                if let Ok(data) = frame.into_data() {
                    received.take(data)?;
                }
            }
        }
    }
}
