//! The body of a response: one JSON text, or an event stream.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use mcp_sansio_http::endpoint::StreamId;

/// The most bytes of one JSON text, or of a page, that a poll gives. The server around the mount polls again when it has room: what
/// is left stays here, and is not copied into a buffer of its own.
const PIECE: usize = 64 << 10;

/// The body of a response. It also takes texts and bytes of your own, for pages beside the mount.
///
/// A JSON text is given in pieces of at most 64 KiB, and counted until its last piece is dropped, see
/// [`output_total`](crate::HttpServerOptions::output_total).
///
/// An event stream is pulled only while the body is polled, at most
/// [`EndpointConfig::turn`](mcp_sansio_http::endpoint::EndpointConfig::turn) bytes at once: what a slow client does not take
/// stays in the endpoint, where it is counted. If the body is dropped before its end, the endpoint notes that the client is
/// gone.
#[derive(Default)]
pub struct Body(Content);

enum Content {
    Full(Bytes),
    Stream(EventStream),
}

impl Default for Content {
    fn default() -> Self {
        Content::Full(Bytes::new())
    }
}

/// A stream of an endpoint, without the type of its state.
pub(crate) trait Mount: Send + Sync {
    /// Pulls a stream for its body. Returns bytes, and whether they are the last ones.
    fn poll_stream(&self, id: StreamId, cx: &mut Context<'_>) -> Poll<(Bytes, bool)>;

    /// Reports that the body of a stream was dropped before its end.
    fn leave(&self, id: StreamId);
}

/// A JSON text, counted as long as it or a piece of it is there.
struct Unsent {
    text: Vec<u8>,
    total: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.total.fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

struct EventStream {
    mount: Arc<dyn Mount>,
    id: StreamId,
    over: bool,
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if !self.over {
            self.mount.leave(self.id);
        }
    }
}

impl Body {
    /// Makes the body of a JSON text, and adds its length to the total until it is sent.
    pub(crate) fn counted(text: Vec<u8>, total: &Arc<AtomicUsize>) -> Self {
        total.fetch_add(text.len(), Ordering::Relaxed);
        Body(Content::Full(Bytes::from_owner(Unsent { text, total: Arc::clone(total) })))
    }

    pub(crate) fn stream(mount: Arc<dyn Mount>, id: StreamId) -> Self {
        Body(Content::Stream(EventStream { mount, id, over: false }))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Content::Full(bytes) => bytes.split_to(bytes.len().min(PIECE)),
            Content::Stream(stream) if stream.over => Bytes::new(),
            Content::Stream(stream) => {
                let (bytes, over) = ready!(stream.mount.poll_stream(stream.id, cx));
                stream.over = over;
                bytes
            }
        };
        Poll::Ready(if bytes.is_empty() { None } else { Some(Ok(Frame::data(bytes))) })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(stream) => stream.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(stream) if stream.over => SizeHint::with_exact(0),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body(Content::Full(bytes))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Body::from(Bytes::from(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::from(Bytes::from(text))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Body::from(Bytes::from_static(text.as_bytes()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Content::Full(bytes) => f.debug_tuple("Full").field(bytes).finish(),
            Content::Stream(stream) => f.debug_tuple("Stream").field(&stream.id).finish(),
        }
    }
}
