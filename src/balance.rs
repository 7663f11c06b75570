//! The rule for the results of tools in a conversation for sampling, on both sides of the protocol.

/// The most tools that a model may want at once in a conversation that is taken for balanced.
pub(crate) const TOOL_USES: usize = 64;

/// What of a content counts for the rule; an id that is missing breaks it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<I> {
    Use(Option<I>),
    Result(Option<I>),
    Other,
}

/// The wishes of the message before, as far as they are without a result.
///
/// The rule (2025-11-25, page "Sampling", section "Message Content Constraints"): every message of the model's with
/// `tool_use` is followed by one of the user's that has exactly one `tool_result` for each of them, in any order, and nothing
/// else; there are no others. A conversation keeps it if each message does and nothing is open at its end.
pub(crate) struct Wishes<I> {
    ids: [Option<I>; TOOL_USES],
}

impl<I: Copy + PartialEq> Wishes<I> {
    pub(crate) const NONE: Self = Wishes { ids: [None; TOOL_USES] };

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.iter().all(Option::is_none)
    }

    /// Goes on by one message; whether it keeps the rule.
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
