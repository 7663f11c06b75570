//! Log formats for devices (feature `defmt`), where they cannot be derived: text of a message as text, a request by its
//! method and its id.

use defmt::{Format, Formatter, write};

use crate::json::{Raw, Text};
use crate::server::{Failure, Request};
use crate::service::Refusal;

/// As it stands between its quotes.
impl Format for Text<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=[u8]:a}", self.raw());
    }
}

/// As it stands.
impl Format for Raw<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=[u8]:a}", self.as_bytes());
    }
}

impl Format for Request<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{} (id {})", self.method_name(), self.id());
    }
}

impl Format for Failure<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=str} ({=i32})", self.message, self.code);
    }
}

impl Format for Refusal {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{}", self.0.in_short());
    }
}

impl Format for crate::client::Asked<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "asked");
    }
}

/// By its name.
impl Format for crate::client::form::Field<'_> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "field {}", self.name());
    }
}

/// What an application may want to log, of every layer. Checked by the compiler.
const _: () = {
    const fn formats<T: Format>() {}
    formats::<crate::Full>();
    formats::<crate::sink::Kind>();
    formats::<crate::records::NoRoom>();
    formats::<crate::frame::Line<'_>>();
    formats::<crate::frame::sse::Event<'_>>();
    formats::<crate::frame::sse::Item<'_>>();
    formats::<crate::json::Fault>();
    formats::<crate::json::DecodeError>();
    formats::<crate::json::JsonKind>();
    formats::<crate::rpc::Shape<'_>>();
    formats::<crate::protocol::Method>();
    formats::<crate::protocol::Level>();
    formats::<crate::protocol::ClientFeatures>();
    formats::<crate::revision::Revision>();
    formats::<crate::server::Event<'_>>();
    formats::<crate::server::Failure<'_>>();
    formats::<crate::server::SendError>();
    formats::<crate::server::SealError>();
    formats::<crate::server::Change<'_>>();
    formats::<crate::server::Told>();
    formats::<crate::server::Pull>();
    formats::<crate::server::Token>();
    formats::<crate::service::Step>();
    formats::<crate::service::Pump>();
    formats::<crate::service::Broken>();
    formats::<crate::service::NoAnswer>();
    formats::<crate::service::Refusal>();
    formats::<crate::session::Next>();
    formats::<crate::client::Event<'_>>();
    formats::<crate::client::Failure<'_>>();
    formats::<crate::client::Lost>();
    formats::<crate::client::Oddity>();
    formats::<crate::client::SendError>();
    formats::<crate::client::Connected<'_>>();
    formats::<crate::client::Unconnected<'_>>();
    formats::<crate::client::Changed<'_>>();
    formats::<crate::client::views::Flaw>();
    formats::<crate::client::views::BlobError>();
    formats::<crate::client::form::FormError>();
    formats::<crate::client::form::Misfit<'_>>();
};

#[cfg(feature = "serde")]
const _: () = {
    const fn formats<T: Format>() {}
    formats::<crate::json::Refused>();
    formats::<crate::json::SerError>();
};
