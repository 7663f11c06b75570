//! Status codes.

/// A status code.
///
/// ```
/// use mcp_sansio_http::http1::Status;
/// assert_eq!(Status::NOT_FOUND.reason(), "Not Found");
/// assert_eq!(Status(404), Status::NOT_FOUND);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct Status(pub u16);

macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal;)*) => {
        impl Status {
            $(#[doc = concat!($code, " ", $reason)]
            pub const $name: Status = Status($code);)*

            /// Returns its reason phrase; empty for a code without one here.
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }

            /// Returns the status line of an answer and [`LENGTH`](Status::LENGTH); `None` for a code without a reason here.
            pub(crate) const fn start(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nContent-Length: ")),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    OK 200 "OK";
    ACCEPTED 202 "Accepted";
    NO_CONTENT 204 "No Content";
    NOT_MODIFIED 304 "Not Modified";
    BAD_REQUEST 400 "Bad Request";
    UNAUTHORIZED 401 "Unauthorized";
    FORBIDDEN 403 "Forbidden";
    NOT_FOUND 404 "Not Found";
    METHOD_NOT_ALLOWED 405 "Method Not Allowed";
    NOT_ACCEPTABLE 406 "Not Acceptable";
    REQUEST_TIMEOUT 408 "Request Timeout";
    CONFLICT 409 "Conflict";
    CONTENT_TOO_LARGE 413 "Content Too Large";
    URI_TOO_LONG 414 "URI Too Long";
    UNSUPPORTED_MEDIA_TYPE 415 "Unsupported Media Type";
    EXPECTATION_FAILED 417 "Expectation Failed";
    TOO_MANY_REQUESTS 429 "Too Many Requests";
    HEADER_TOO_LARGE 431 "Request Header Fields Too Large";
    INTERNAL_SERVER_ERROR 500 "Internal Server Error";
    NOT_IMPLEMENTED 501 "Not Implemented";
    UNAVAILABLE 503 "Service Unavailable";
    VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported";
}

impl Status {
    /// Returns `true` if an answer with this status never has a body.
    #[must_use]
    pub(crate) const fn is_bodiless(self) -> bool {
        self.0 < 200 || self.0 == 204 || self.0 == 304
    }

    /// The start of the line of a length, with the end of the status line.
    pub(crate) const LENGTH: &[u8] = b"\r\nContent-Length: ";

    /// The start of an answer whose code has no reason here.
    pub(crate) const UNNAMED: [u8; 31] = *b"HTTP/1.1 000 \r\nContent-Length: ";

    /// Writes the code into [`UNNAMED`](Status::UNNAMED), and returns it.
    pub(crate) fn unnamed_start(self, start: &mut [u8; 31]) -> &[u8] {
        let code = if self.0 < 1000 { self.0 } else { 500 };
        let digit = |value: u16| b'0' + (value % 10) as u8;
        let [_, _, _, _, _, _, _, _, _, hundreds, tens, ones, ..] = start;
        (*hundreds, *tens, *ones) = (digit(code / 100), digit(code / 10), digit(code));
        start
    }
}
