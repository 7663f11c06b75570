//! Log formats for devices (feature `defmt`) where `derive` is not possible: the text of a message as text, a
//! request by its method and its id.

use defmt::{Format, Formatter, write};

use crate::error::RpcError;
use crate::json::{Raw, Text};

macro_rules! formats {
    ($($type:ty: |$value:ident| $($format:expr),+;)*) => { $(
        impl Format for $type {
            fn format(&self, f: Formatter<'_>) {
                let $value = self;
                write!(f, $($format),+);
            }
        }
    )* };
}

formats! {
    // With its escapes.
    Text<'_>: |text| "{=[u8]:a}", text.raw();
    Raw<'_>: |value| "{=[u8]:a}", value.as_bytes();
    RpcError<'_>: |error| "{=str} ({=i32})", error.message, error.code;
}

#[cfg(feature = "server")]
formats! {
    crate::server::IncomingRequest<'_>: |request| "{} (id {})", request.name, request.id;
    crate::service::HandlerError: |error| "{}", error.0.in_short();
}

#[cfg(feature = "client")]
formats! {
    crate::client::InputRequests<'_>: |_requests| "asked";
}

/// The compiler checks that an application can log these types of each layer.
#[cfg(all(test, feature = "client", feature = "server"))]
mod tests {
    use super::Format;

    const fn formats<T: Format>() {}

    const _: () = {
        formats::<crate::FullError>();
        formats::<crate::sink::MessageHead>();
        formats::<crate::memory::records::NoRoomError>();
        formats::<crate::frame::LineStatus<'_>>();
        formats::<crate::json::ParseError>();
        formats::<crate::json::DecodeError>();
        formats::<crate::json::JsonKind>();
        formats::<crate::rpc::MessageShape<'_>>();
        formats::<crate::protocol::Method>();
        formats::<crate::protocol::LoggingLevel>();
        formats::<crate::protocol::ClientCapabilities>();
        formats::<crate::revision::Revision>();
        formats::<crate::server::ServerEvent<'_>>();
        formats::<crate::server::RpcError<'_>>();
        formats::<crate::server::RespondError>();
        formats::<crate::server::SealError>();
        formats::<crate::server::ServerChange<'_>>();
        formats::<crate::server::NotifyStatus>();
        formats::<crate::server::PullStatus>();
        formats::<crate::server::RequestToken>();
        formats::<crate::service::Dispatched>();
        formats::<crate::service::SourceError>();
        #[cfg(feature = "ask")]
        formats::<crate::service::InputError>();
        formats::<crate::service::HandlerError>();
        formats::<crate::line_server::NextStep>();
        formats::<crate::client::ClientEvent<'_>>();
        formats::<crate::client::RequestError<'_>>();
        formats::<crate::client::TransportError>();
        formats::<crate::client::ProtocolViolation>();
        formats::<crate::client::SendError>();
        formats::<crate::client::InitializeResult<'_>>();
        formats::<crate::client::ChangeNotification<'_>>();
        formats::<crate::client::views::ViewError>();
        formats::<crate::client::form::FormError>();
        #[cfg(feature = "serde")]
        {
            formats::<crate::json::DeserializeError>();
            formats::<crate::json::SerializeError>();
        }
    };
}
