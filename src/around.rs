//! The way of messages out through layers, of servers and of clients: piece by piece, as they are written.

use crate::memory::FixedText;
use crate::protocol::code;
use crate::rpc::head;
use crate::sink::{FullError, Mark, MessageHead, Out, Sink};

/// The layers around the messages of an [`AroundOut`], and what they get.
pub(crate) trait Passage {
    type Layer: ?Sized;

    /// The layers, from the outermost one to that next to the program.
    fn layers(&self) -> &[&Self::Layer];

    /// Hears that a message begins; with `None`, that it was taken back. Returns whether the layers get it.
    fn begins(&self, head: Option<MessageHead<'_>>) -> bool;

    /// Gives a layer a piece of the value.
    fn writes(&self, layer: &Self::Layer, passing: &Passing, piece: &[u8], out: &mut dyn Sink)
    -> Result<(), FullError>;

    /// Says to a layer that the value is whole. Returns `false` if the message must not go out.
    fn sends(&self, layer: &Self::Layer, passing: &Passing, out: &mut dyn Sink) -> bool;
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Passing {
    /// The mark before it.
    before: Mark,
    pub(crate) head: MessageHead<'static>,
    /// Its bytes before the value.
    beginning: FixedText<BEGINNING>,
    /// The place of the key of the value in them, once it is found.
    key: Option<usize>,
    /// Its last byte is a brace that is not written yet: the last one of all ends the message, not the value.
    brace: bool,
}

/// The most bytes before a value: with an `id` of 130 bytes, the longest, they are 162.
const BEGINNING: usize = 168;

/// The keys of the values. No text within a message can have these bytes: they would be escaped.
const KEYS: [&[u8]; 3] = [PARAMS, br#","result":"#, br#","error":"#];
const PARAMS: &[u8] = br#","params":"#;

/// The end of a response that a layer has refused.
const REFUSED: &[u8] = br#","error":{"code":-32603,"message":"A layer has refused the answer"}}"#;

impl Passing {
    /// Returns the method of a notification.
    pub(crate) fn method(&self) -> &str {
        let behind = self.beginning.as_str().get(BEFORE_METHOD.len()..).filter(|_| self.head.is_unasked());
        behind.and_then(|behind| behind.split('"').next()).unwrap_or("")
    }
}

/// The bytes before the `method` of a notification, as `rpc::begin_notification` writes them.
const BEFORE_METHOD: &[u8] = head!(r#""method":""#);

/// A sink with layers around the values of its messages: `params`, `result` and `error`.
pub(crate) struct AroundOut<'o, P> {
    out: &'o mut dyn Out,
    passage: P,
    passing: Option<Passing>,
}

impl<'o, P: Passage> AroundOut<'o, P> {
    pub(crate) fn new(out: &'o mut dyn Out, passage: P) -> Self {
        AroundOut { out, passage, passing: None }
    }

    /// Writes bytes of a message, those of the value through the layers.
    fn forward(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let Some(passing) = &mut self.passing else { return self.out.put(bytes) };
        let mut value = bytes;
        if passing.key.is_none() {
            let before = passing.beginning.as_bytes().len();
            passing.beginning.push(bytes);
            let all = passing.beginning.as_bytes();
            let find = |key: &&[u8]| all.windows(key.len()).position(|bytes| bytes == *key).map(|at| (at, key.len()));
            let Some((at, len)) = KEYS.iter().find_map(find) else { return self.out.put(bytes) };
            let (beginning, rest) = bytes.split_at_checked((at + len).saturating_sub(before)).unwrap_or((bytes, &[]));
            self.out.put(beginning)?;
            passing.key = Some(at);
            value = rest;
            Chain::of(&self.passage, passing, &mut *self.out).begin()?;
        }
        Chain::of(&self.passage, passing, &mut *self.out).put(value)
    }

    /// Takes a message back. A response becomes an error.
    fn take_back(&mut self, passing: &Passing) {
        self.out.roll_back(passing.before);
        self.passage.begins(None);
        let refused = MessageHead::Error(code::INTERNAL);
        let key = passing.key.filter(|_| !passing.head.is_unasked());
        let Some(beginning) = key.and_then(|key| passing.beginning.as_bytes().get(..key)) else { return };
        let written =
            self.out.begin(refused).and_then(|()| self.out.put(beginning)).and_then(|()| self.out.put(REFUSED));
        match written {
            Ok(()) => {
                self.passage.begins(Some(refused));
                self.out.end();
            }
            Err(_) => self.out.roll_back(passing.before),
        }
    }
}

impl<P: Passage> Sink for AroundOut<'_, P> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let Some(passing) = &mut self.passing else { return self.out.put(bytes) };
        let had = core::mem::take(&mut passing.brace);
        let rest = bytes.strip_suffix(b"}");
        passing.brace = rest.is_some() || (had && bytes.is_empty());
        if had && !bytes.is_empty() {
            self.forward(b"}")?;
        }
        self.forward(rest.unwrap_or(bytes))?;
        // The room for the brace.
        if rest.is_some() && self.out.room() == 0 { Err(FullError::Now) } else { Ok(()) }
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

impl<P: Passage> Out for AroundOut<'_, P> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        let before = self.out.mark();
        self.out.begin(head)?;
        let known = match head {
            MessageHead::Result => Some(MessageHead::Result),
            MessageHead::ToolError => Some(MessageHead::ToolError),
            MessageHead::Error(code) | MessageHead::Refusal(code) => Some(MessageHead::Error(code)),
            MessageHead::Notification => Some(MessageHead::Notification),
            MessageHead::Initialized => Some(MessageHead::Initialized),
            _ => None,
        };
        let shown = known.filter(|_| self.passage.begins(Some(head)));
        self.passing = shown.map(|head| Passing { before, head, beginning: FixedText::EMPTY, key: None, brace: false });
        Ok(())
    }

    fn end(&mut self) {
        let Some(passing) = self.passing.take() else { return self.out.end() };
        if passing.key.is_some() || passing.beginning.is_whole() {
            let mut rest = Rest { out: &mut *self.out, has_value: passing.key.is_some(), full: false };
            let mut chain = Chain::of(&self.passage, &passing, &mut rest);
            let begun = if passing.key.is_some() { Ok(()) } else { chain.begin() };
            if begun.is_err() || !chain.end() || rest.full {
                return self.take_back(&passing);
            }
        }
        // `put` and `Rest` have left room for it.
        let _ = self.out.put(if passing.brace { b"}" } else { b"" });
        self.out.end();
    }

    fn mark(&self) -> Mark {
        self.out.mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.passage.begins(None);
        self.passing = None;
        self.out.roll_back(mark);
    }

    fn hold(&mut self, on: bool) {
        self.out.hold(on);
    }

    fn held(&self) -> bool {
        self.out.held()
    }

    fn capacity(&self) -> usize {
        self.out.capacity()
    }
}

/// The layers that a piece has to pass yet, and the sink behind them.
struct Chain<'c, P: Passage> {
    passage: &'c P,
    passing: &'c Passing,
    layers: &'c [&'c P::Layer],
    out: &'c mut dyn Sink,
}

impl<'c, P: Passage> Chain<'c, P> {
    fn of(passage: &'c P, passing: &'c Passing, out: &'c mut dyn Sink) -> Self {
        Chain { passage, passing, layers: passage.layers(), out }
    }

    /// Calls a function with each layer, from the innermost one on, and with the chain behind it, until it returns `false`.
    fn each(&mut self, tell: &mut dyn FnMut(&P::Layer, &mut Chain<'_, P>) -> bool) -> bool {
        let mut layers = self.layers;
        while let Some((layer, outer)) = layers.split_last() {
            layers = outer;
            let mut rest = Chain { layers, out: &mut *self.out, passage: self.passage, passing: self.passing };
            if !tell(layer, &mut rest) {
                return false;
            }
        }
        true
    }

    fn begin(&mut self) -> Result<(), FullError> {
        let (passage, passing, mut begun) = (self.passage, self.passing, Ok(()));
        self.each(&mut |layer, rest| {
            begun = passage.writes(layer, passing, &[], rest);
            begun.is_ok()
        });
        begun
    }

    fn end(&mut self) -> bool {
        let (passage, passing) = (self.passage, self.passing);
        self.each(&mut |layer, rest| passage.sends(layer, passing, rest))
    }
}

impl<P: Passage> Sink for Chain<'_, P> {
    fn put(&mut self, piece: &[u8]) -> Result<(), FullError> {
        match self.layers.split_last() {
            // Only the first piece of a layer is empty.
            _ if piece.is_empty() => Ok(()),
            None => self.out.put(piece),
            Some((layer, layers)) => {
                let mut rest = Chain { layers, out: &mut *self.out, passage: self.passage, passing: self.passing };
                self.passage.writes(layer, self.passing, piece, &mut rest)
            }
        }
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

/// The end of a message: leaves room for its last brace, and begins the `params` of one that has none.
struct Rest<'r> {
    out: &'r mut dyn Out,
    has_value: bool,
    full: bool,
}

impl Sink for Rest<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let key: &[u8] = if core::mem::replace(&mut self.has_value, true) { &[] } else { PARAMS };
        self.full |= self.out.room() <= key.len() + bytes.len();
        if self.full { Err(FullError::Now) } else { self.out.put(key).and_then(|()| self.out.put(bytes)) }
    }

    fn room(&self) -> usize {
        self.out.room().saturating_sub(1)
    }
}
