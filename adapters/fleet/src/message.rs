//! A change as an entry of a Redis stream.

use mcp_sansio::server::{OwnedServerChange, ServerChange};

/// The fields of an entry: the process that made it and its number there, the kind of change, and two texts.
pub(crate) const FROM: &str = "from";
pub(crate) const NUMBER: &str = "n";
pub(crate) const KIND: &str = "kind";
pub(crate) const FIRST: &str = "a";
pub(crate) const SECOND: &str = "b";

/// Returns the kind of a change and its texts.
pub(crate) fn fields<'c>(change: &ServerChange<'c>) -> (&'static str, &'c str, &'c str) {
    match *change {
        ServerChange::Tools => ("tools", "", ""),
        ServerChange::Prompts => ("prompts", "", ""),
        ServerChange::Resources => ("resources", "", ""),
        ServerChange::Resource(uri) => ("resource", uri, ""),
        ServerChange::Topic { member, key } => ("topic", member, key),
        // All, and a change that this version does not know: to read too much anew does no harm.
        _ => ("all", "", ""),
    }
}

/// Returns the change of an entry. An unknown kind is of a newer version, and may be anything.
pub(crate) fn change(kind: &str, first: &str, second: &str) -> OwnedServerChange {
    let change = match kind {
        "tools" => ServerChange::Tools,
        "prompts" => ServerChange::Prompts,
        "resources" => ServerChange::Resources,
        "resource" => ServerChange::Resource(first),
        "topic" => ServerChange::Topic { member: first, key: second },
        _ => ServerChange::All,
    };
    change.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for sent in [
            ServerChange::Tools,
            ServerChange::Prompts,
            ServerChange::Resources,
            ServerChange::Resource("file:///a b"),
            ServerChange::Topic { member: "taskIds", key: "1" },
            ServerChange::All,
        ] {
            let (kind, first, second) = fields(&sent);
            assert_eq!(change(kind, first, second).as_change(), sent);
        }
        assert_eq!(change("weather", "rain", "").as_change(), ServerChange::All);
    }
}
