//! A message to the other processes: a letter, and what belongs to it.

use mcp_sansio::server::{Millis, ServerChange};

/// A message of another process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'m> {
    Change(ServerChange<'m>),
    /// A change for the clients of one principal, whose name has at most 255 bytes.
    ChangeTo(&'m str, ServerChange<'m>),
    /// The beginning of the id of a session, and the time until which its id is refused.
    EndSession([u8; 16], Millis),
}

/// The message that all may have changed.
pub(crate) const ALL: &[u8] = b"a";

impl<'m> Message<'m> {
    pub(crate) fn write(&self) -> Vec<u8> {
        match *self {
            Message::Change(ServerChange::Tools) => b"t".into(),
            Message::Change(ServerChange::Prompts) => b"p".into(),
            Message::Change(ServerChange::Resources) => b"r".into(),
            Message::Change(ServerChange::Resource(uri)) => [b"u", uri.as_bytes()].concat(),
            Message::Change(ServerChange::Topic { member, key }) => {
                [b"k", member.as_bytes(), b"\0", key.as_bytes()].concat()
            }
            // Also what this version does not know.
            Message::Change(_) => ALL.into(),
            Message::ChangeTo(principal, change) => {
                let change = Message::Change(change).write();
                [b"o", &[principal.len() as u8][..], principal.as_bytes(), &change].concat()
            }
            Message::EndSession(session, until) => [&b"s"[..], &session, until.to_string().as_bytes()].concat(),
        }
    }

    /// Reads a message; `None` if this version does not know it.
    pub(crate) fn read(bytes: &'m [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let text = |bytes| std::str::from_utf8(bytes).ok();
        Some(match kind {
            b't' => Message::Change(ServerChange::Tools),
            b'p' => Message::Change(ServerChange::Prompts),
            b'r' => Message::Change(ServerChange::Resources),
            b'u' => Message::Change(ServerChange::Resource(text(rest)?)),
            b'k' => {
                let (member, key) = text(rest)?.split_once('\0')?;
                Message::Change(ServerChange::Topic { member, key })
            }
            b'a' => Message::Change(ServerChange::All),
            b'o' => {
                let (len, rest) = rest.split_first()?;
                let (principal, change) = rest.split_at_checked(usize::from(*len))?;
                // No message in a message in a message.
                if change.starts_with(b"o") {
                    return None;
                }
                let Message::Change(change) = Message::read(change)? else { return None };
                Message::ChangeTo(text(principal)?, change)
            }
            b's' => {
                let (session, until) = rest.split_first_chunk()?;
                Message::EndSession(*session, text(until)?.parse().ok()?)
            }
            _ => return None,
        })
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
            let message = Message::Change(change);
            assert_eq!(Message::read(&message.write()), Some(message));
            let message = Message::ChangeTo("ann", change);
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
