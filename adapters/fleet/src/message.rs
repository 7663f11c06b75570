//! A message to the other processes: a letter, and what belongs to it.

use mcp_sansio::server::{Millis, ServerChange};

/// A message of another process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'m> {
    /// A change for all clients, or for those of one principal, whose name has at most 255 bytes.
    Change(Option<&'m str>, ServerChange<'m>),
    /// The beginning of the id of a session, and the time until which its id is refused.
    EndSession([u8; 16], Millis),
}

/// The message that all may have changed.
pub(crate) const ALL: &[u8] = b"a";

impl<'m> Message<'m> {
    pub(crate) fn write(&self) -> Vec<u8> {
        let change = match *self {
            Message::Change(Some(principal), change) => {
                let change = Message::Change(None, change).write();
                return [b"o", &[principal.len() as u8][..], principal.as_bytes(), &change].concat();
            }
            Message::Change(None, change) => change,
            Message::EndSession(session, until) => {
                return [&b"s"[..], &session, until.to_string().as_bytes()].concat();
            }
        };
        match change {
            ServerChange::Tools => b"t".into(),
            ServerChange::Prompts => b"p".into(),
            ServerChange::Resources => b"r".into(),
            ServerChange::Resource(uri) => [b"u", uri.as_bytes()].concat(),
            ServerChange::Topic { member, key } => [b"k", member.as_bytes(), b"\0", key.as_bytes()].concat(),
            // Also what this version does not know.
            _ => ALL.into(),
        }
    }

    /// Reads a message; `None` if this version does not know it.
    pub(crate) fn read(bytes: &'m [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let change = match kind {
            b't' => ServerChange::Tools,
            b'p' => ServerChange::Prompts,
            b'r' => ServerChange::Resources,
            b'u' => ServerChange::Resource(text(rest)?),
            b'k' => {
                let (member, key) = text(rest)?.split_once('\0')?;
                ServerChange::Topic { member, key }
            }
            b'a' => ServerChange::All,
            b'o' => {
                let (len, rest) = rest.split_first()?;
                let (principal, change) = rest.split_at_checked(usize::from(*len))?;
                // No message in a message in a message.
                if change.starts_with(b"o") {
                    return None;
                }
                let Message::Change(_, change) = Message::read(change)? else { return None };
                return Some(Message::Change(Some(text(principal)?), change));
            }
            b's' => {
                let (session, until) = rest.split_first_chunk()?;
                return Some(Message::EndSession(*session, text(until)?.parse().ok()?));
            }
            _ => return None,
        };
        Some(Message::Change(None, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for change in [
            ServerChange::Tools,
            ServerChange::Prompts,
            ServerChange::Resources,
            ServerChange::Resource("notes://1"),
            ServerChange::Topic { member: "taskIds", key: "7" },
            ServerChange::Topic { member: "all", key: "" },
            ServerChange::All,
        ] {
            let message = Message::Change(None, change);
            assert_eq!(Message::read(&message.write()), Some(message));
            let message = Message::Change(Some("ann"), change);
            assert_eq!(Message::read(&message.write()), Some(message));
        }
        let message = Message::EndSession(*b"0123456789abcdef", 1_790_000_000_000);
        assert_eq!(Message::read(&message.write()), Some(message));
    }

    #[test]
    fn what_is_unknown_is_no_message() {
        for wrong in [
            &b""[..],
            b"x",
            b"u\xff",
            b"o",
            b"o\x02ann",
            b"o\x03ann",
            b"o\x01ao\x01at",
            b"o\x03anns0123456789abcdef1",
            b"ktaskIds",
            b"s0123456789abcde",
            b"s0123456789abcdef",
            b"s0123456789abcdef-1",
        ] {
            assert_eq!(Message::read(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
