//! The rule for results of tools in a conversation for sampling. The client and the server check it.

/// The most tools that one message of a model may call in a conversation that passes the check.
pub(crate) const TOOL_USES: usize = 64;

/// One content as the rule sees it. A missing id breaks the rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<I> {
    Use(Option<I>),
    Result(Option<I>),
    Other,
}

/// The `tool_use` contents of the previous message that have no result yet.
///
/// The rule ([sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling), "Message
/// Content Constraints"): after each message of the model with `tool_use` comes one message of the user that
/// has exactly one `tool_result` for each of them, in any order, and nothing else. There are no other
/// `tool_result`. A conversation keeps the rule if each message does and no `tool_use` is open at its end.
pub(crate) struct Wishes<I> {
    ids: [Option<I>; TOOL_USES],
}

impl<I: Copy + PartialEq> Wishes<I> {
    pub(crate) const NONE: Self = Wishes { ids: [None; TOOL_USES] };

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.iter().all(Option::is_none)
    }

    /// Takes the next message. Returns whether it keeps the rule.
    pub(crate) fn take(
        &mut self,
        by_user: bool,
        by_model: bool,
        pieces: impl Iterator<Item = Piece<I>> + Clone,
    ) -> bool {
        let mut all = pieces.clone();
        if !self.is_empty() || all.any(|piece| matches!(piece, Piece::Result(_))) {
            let mut all = pieces;
            return by_user && all.all(|piece| self.close(piece)) && self.is_empty();
        }
        let mut wishes = pieces.filter_map(|piece| match piece {
            Piece::Use(id) => Some(id),
            _ => None,
        });
        wishes.all(|id| by_model && id.is_some_and(|id| self.add(id)))
    }

    fn add(&mut self, id: I) -> bool {
        if self.ids.contains(&Some(id)) {
            return false;
        }
        let place = self.ids.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(id)).is_some()
    }

    fn close(&mut self, piece: Piece<I>) -> bool {
        let Piece::Result(Some(id)) = piece else { return false };
        let place = self.ids.iter_mut().find(|place| **place == Some(id));
        place.map(|place| *place = None).is_some()
    }
}
