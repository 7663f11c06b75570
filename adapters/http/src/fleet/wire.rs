//! The messages between processes: a byte for the version, one for the kind, then fields. A number has four bytes, the highest
//! first; a text or a message has its length before it. Unknown versions and kinds are ignored: another version of the program
//! may run beside during an update.

use alloc::vec::Vec;

use mcp_sansio::server::{Millis, ServerChange};

/// The version of the format.
const VERSION: u8 = 1;

/// A message to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'m> {
    /// A change, for the clients of each process.
    Change(ServerChange<'m>),
    /// A notification or a response of a client, in a session.
    InSession { session: SessionRef<'m>, message: &'m [u8] },
    /// A request of a client, in a session, that changes what it hears of, and its `id` as JSON. The sender answers it.
    Setting { session: SessionRef<'m>, request: &'m [u8], message: &'m [u8] },
    /// The client has ended the session.
    Ended { session: SessionRef<'m> },
    /// The sender knows of the request with this `id`, or without one of the end of the session.
    Known { session: SessionRef<'m>, request: &'m [u8] },
    /// The content of a POST of 2024-11-05, for the process that has the stream of the session.
    Old { session: SessionRef<'m>, message: &'m [u8] },
    /// A request that the other process answers.
    Relay {
        /// Given by the process that sends it.
        number: u32,
        /// The id of its session; empty without one.
        session: &'m str,
        principal: Option<&'m str>,
        request: &'m [u8],
    },
    /// A message about such a request, back. Empty: the other process has begun, or with `is_last` it will not answer.
    Relayed { number: u32, is_last: bool, message: &'m [u8] },
    /// The client of such a request is gone.
    RelayEnd { number: u32 },
    /// The numbers of requests in flight by principal.
    InFlight(&'m [u8]),
    /// The state of a key of a topic, for listens and as an entry of its log.
    State { member: &'m str, key: &'m str, principal: Option<&'m str>, params: &'m [u8] },
    /// The client reads a stream of the receiver at the sender, since this time, and has the events up to this one.
    Follows { session: SessionRef<'m>, slot: u32, number: u64, event: u32, since: Millis },
    /// The client has opened the stream of the session at the sender, at this time: an older one ends.
    Stream { session: SessionRef<'m>, since: Millis },
}

/// A session: its whole sealed id, and the principal to which it is bound. The receiver opens the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionRef<'m> {
    pub(crate) id: &'m [u8],
    pub(crate) principal: Option<&'m str>,
}

/// An entry of the log of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'m> {
    /// A request that changes what the session hears of.
    Setting(&'m [u8]),
    /// The client has ended the session.
    Ended,
}

const TOOLS: u8 = 1;
const PROMPTS: u8 = 2;
const RESOURCES: u8 = 3;
const RESOURCE: u8 = 4;
const TOPIC: u8 = 5;
const ALL: u8 = 6;
const IN_SESSION: u8 = 16;
const SETTING: u8 = 17;
const ENDED: u8 = 18;
const KNOWN: u8 = 26;
const OLD: u8 = 19;
const RELAY: u8 = 40;
const RELAYED: u8 = 41;
const RELAY_END: u8 = 42;
const STATE: u8 = 43;
const IN_FLIGHT: u8 = 44;
const FOLLOWS: u8 = 24;
const STREAM: u8 = 25;

/// Writes a message.
pub(crate) fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut out = Writer::new();
    match *message {
        Message::Change(change) => match change {
            ServerChange::Tools => out.kind(TOOLS),
            ServerChange::Prompts => out.kind(PROMPTS),
            ServerChange::Resources => out.kind(RESOURCES),
            ServerChange::Resource(uri) => out.kind(RESOURCE).text(uri),
            ServerChange::Topic { member, key } => out.kind(TOPIC).text(member).text(key),
            // All, and a change that this version does not know: to read too much anew does no harm.
            _ => out.kind(ALL),
        },
        Message::InSession { session, message } => out.kind(IN_SESSION).session(session).bytes(message),
        Message::Setting { session, request, message } => {
            out.kind(SETTING).session(session).bytes(request).bytes(message)
        }
        Message::Ended { session } => out.kind(ENDED).session(session),
        Message::Known { session, request } => out.kind(KNOWN).session(session).bytes(request),
        Message::Old { session, message } => out.kind(OLD).session(session).bytes(message),
        Message::Relay { number, session, principal, request } => {
            out.kind(RELAY).number(number).text(session).option(principal).bytes(request)
        }
        Message::Relayed { number, is_last, message } => {
            out.kind(RELAYED).number(number).number(is_last.into()).bytes(message)
        }
        Message::RelayEnd { number } => out.kind(RELAY_END).number(number),
        Message::InFlight(entries) => out.kind(IN_FLIGHT).bytes(entries),
        Message::State { member, key, principal, params } => {
            out.kind(STATE).text(member).text(key).option(principal).bytes(params)
        }
        Message::Follows { session, slot, number, event, since } => {
            out.kind(FOLLOWS).session(session).number(slot).long(number).number(event).long(since)
        }
        Message::Stream { session, since } => out.kind(STREAM).session(session).long(since),
    };
    out.0
}

/// Reads a message. `None` if it is of an unknown version or kind, or damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Message<'_>> {
    let (&[version, kind], rest) = bytes.split_first_chunk()?;
    let mut fields = Fields(rest);
    let message = match kind {
        _ if version != VERSION => return None,
        TOOLS => Message::Change(ServerChange::Tools),
        PROMPTS => Message::Change(ServerChange::Prompts),
        RESOURCES => Message::Change(ServerChange::Resources),
        RESOURCE => Message::Change(ServerChange::Resource(fields.text()?)),
        TOPIC => Message::Change(ServerChange::Topic { member: fields.text()?, key: fields.text()? }),
        ALL => Message::Change(ServerChange::All),
        IN_SESSION => Message::InSession { session: fields.session()?, message: fields.bytes()? },
        SETTING => Message::Setting { session: fields.session()?, request: fields.bytes()?, message: fields.bytes()? },
        ENDED => Message::Ended { session: fields.session()? },
        KNOWN => Message::Known { session: fields.session()?, request: fields.bytes()? },
        OLD => Message::Old { session: fields.session()?, message: fields.bytes()? },
        RELAY => Message::Relay {
            number: fields.number()?,
            session: fields.text()?,
            principal: fields.option()?,
            request: fields.bytes()?,
        },
        RELAYED => Message::Relayed { number: fields.number()?, is_last: fields.flag()?, message: fields.line()? },
        RELAY_END => Message::RelayEnd { number: fields.number()? },
        IN_FLIGHT => Message::InFlight(fields.bytes()?),
        STATE => Message::State {
            member: fields.text()?,
            key: fields.text()?,
            principal: fields.option()?,
            params: fields.line()?,
        },
        FOLLOWS => Message::Follows {
            session: fields.session()?,
            slot: fields.number()?,
            number: fields.long()?,
            event: fields.number()?,
            since: fields.long()?,
        },
        STREAM => Message::Stream { session: fields.session()?, since: fields.long()? },
        _ => return None,
    };
    fields.0.is_empty().then_some(message)
}

/// Writes an entry of the log of a session.
pub(crate) fn encode_entry(entry: &Entry<'_>) -> Vec<u8> {
    let mut out = Writer::new();
    match entry {
        Entry::Setting(setting) => out.kind(SETTING).bytes(setting),
        Entry::Ended => out.kind(ENDED),
    };
    out.0
}

/// Reads an entry of the log of a session. `None` as for [`decode`].
pub(crate) fn decode_entry(bytes: &[u8]) -> Option<Entry<'_>> {
    let (&[version, kind], rest) = bytes.split_first_chunk()?;
    let mut fields = Fields(rest);
    let entry = match kind {
        _ if version != VERSION => return None,
        SETTING => Entry::Setting(fields.bytes()?),
        ENDED => Entry::Ended,
        _ => return None,
    };
    fields.0.is_empty().then_some(entry)
}

/// Writes fields.
struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Writer(Vec::from([VERSION]))
    }

    fn kind(&mut self, kind: u8) -> &mut Self {
        self.0.push(kind);
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn long(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        // Longer ones do not fit into the limits of any message.
        self.number(bytes.len().try_into().unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn session(&mut self, session: SessionRef<'_>) -> &mut Self {
        self.bytes(session.id).option(session.principal)
    }

    fn option(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }
}

/// Returns whether there is no newline in bytes, as in all that this library writes.
pub(crate) fn is_line(bytes: &[u8]) -> bool {
    memchr::memchr2(b'\r', b'\n', bytes).is_none()
}

/// Reads fields.
pub(crate) struct Fields<'m>(pub(crate) &'m [u8]);

impl<'m> Fields<'m> {
    pub(crate) fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn long(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    /// Reads bytes that are sent on as the data of an event. `None` if there is a newline in them, which would end that.
    fn line(&mut self) -> Option<&'m [u8]> {
        self.bytes().filter(|bytes| is_line(bytes))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'m [u8]> {
        let len = self.number()?.try_into().ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'m str> {
        core::str::from_utf8(self.bytes()?).ok()
    }

    fn session(&mut self) -> Option<SessionRef<'m>> {
        Some(SessionRef { id: self.bytes()?, principal: self.option()? })
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn option(&mut self) -> Option<Option<&'m str>> {
        if self.flag()? { self.text().map(Some) } else { Some(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn messages() -> Vec<Message<'static>> {
        vec![
            Message::Change(ServerChange::Tools),
            Message::Change(ServerChange::Prompts),
            Message::Change(ServerChange::Resources),
            Message::Change(ServerChange::Resource("file:///a b")),
            Message::Change(ServerChange::Topic { member: "taskIds", key: "1" }),
            Message::Change(ServerChange::All),
            Message::InSession { session: SessionRef { id: b"abc", principal: None }, message: b"{}" },
            Message::Setting {
                session: SessionRef { id: b"abc", principal: Some("ann") },
                request: b"7",
                message: b"{}",
            },
            Message::Ended { session: SessionRef { id: b"", principal: Some("") } },
            Message::Known { session: SessionRef { id: b"abc", principal: None }, request: b"\"a\"" },
            Message::Old { session: SessionRef { id: b"abc", principal: None }, message: b"" },
            Message::Relay { number: 7, session: "abc", principal: Some("ann"), request: b"{}" },
            Message::Relay { number: 8, session: "", principal: None, request: b"" },
            Message::Relayed { number: 7, is_last: true, message: b"{}" },
            Message::RelayEnd { number: 7 },
            Message::InFlight(b"0123456789abcdef\0\0\0\x01"),
            Message::State { member: "taskIds", key: "1", principal: Some(""), params: b"{}" },
            Message::Follows {
                session: SessionRef { id: b"abc", principal: None },
                slot: 1,
                number: 1 << 40,
                event: 3,
                since: 1 << 41,
            },
            Message::Stream { session: SessionRef { id: b"abc", principal: None }, since: 1 << 42 },
        ]
    }

    #[test]
    fn there_and_back() {
        for message in messages() {
            assert_eq!(decode(&encode(&message)), Some(message));
        }
    }

    #[test]
    fn entries_there_and_back() {
        for entry in [Entry::Setting(b"{}"), Entry::Ended] {
            let bytes = encode_entry(&entry);
            assert_eq!(decode_entry(&bytes), Some(entry));
            assert_eq!((decode_entry(&bytes[..bytes.len() - 1]), decode_entry(b"\x02\x12")), (None, None));
        }
    }

    /// It would end the event in which it is sent.
    #[test]
    fn a_newline_in_what_is_sent_on_is_damage() {
        let text = "{\"a\":\r\n1}";
        for part in [&text[..5], &text[5..], text] {
            let relayed = Message::Relayed { number: 7, is_last: true, message: part.as_bytes() };
            let state = Message::State { member: "taskIds", key: "1", principal: None, params: part.as_bytes() };
            let is_line = !part.contains(['\r', '\n']);
            assert_eq!([relayed, state].map(|message| decode(&encode(&message)).is_some()), [is_line; 2], "{part:?}");
        }
    }

    #[test]
    fn damaged_messages_are_none() {
        for message in messages() {
            let whole = encode(&message);
            for len in 0..whole.len() {
                assert_eq!(decode(&whole[..len]), None, "{message:?}");
            }
            let mut other = whole.clone();
            other.push(0);
            assert_eq!(decode(&other), None);
            other = whole;
            other[0] = 2;
            assert_eq!(decode(&other), None);
            other[..2].copy_from_slice(&[VERSION, 200]);
            assert_eq!(decode(&other), None);
        }
        assert_eq!(decode(&[VERSION, RESOURCE, 0, 0, 0, 1, 0xff]), None);
        assert_eq!(decode(&[VERSION, RESOURCE, 0xff, 0xff, 0xff, 0xff, 0]), None);
    }

    /// Another version of the program may run beside: the format does not change.
    #[test]
    fn the_format_stays() {
        let session = SessionRef { id: b"s", principal: Some("p") };
        let known: [(_, &[u8]); 4] = [
            (Message::Change(ServerChange::Tools), b"\x01\x01"),
            (Message::Change(ServerChange::Resource("a")), b"\x01\x04\0\0\0\x01a"),
            (Message::Stream { session, since: 258 }, b"\x01\x19\0\0\0\x01s\0\0\0\x01\0\0\0\x01p\0\0\0\0\0\0\x01\x02"),
            (
                Message::Relayed { number: 2, is_last: true, message: b"{}" },
                b"\x01\x29\0\0\0\x02\0\0\0\x01\0\0\0\x02{}",
            ),
        ];
        for (message, bytes) in known {
            assert_eq!((encode(&message), decode(bytes)), (bytes.to_vec(), Some(message)));
        }
        // A flag is 0 or 1.
        assert_eq!(decode(b"\x01\x29\0\0\0\x02\0\0\0\x02\0\0\0\x02{}"), None);
        assert_eq!(decode(b"\x01\x12\0\0\0\x01s\0\0\0\x02\0\0\0\x01p"), None);
        let kinds: Vec<u8> = messages().iter().map(|message| encode(message)[1]).collect();
        assert_eq!(kinds, [1, 2, 3, 4, 5, 6, 16, 17, 18, 26, 19, 40, 40, 41, 42, 44, 43, 24, 25]);
        assert_eq!(encode_entry(&Entry::Setting(b"{}")), b"\x01\x11\0\0\0\x02{}");
    }
}
