//! The members of each object of the protocol in each revision. The schemas are open and accept any further member;
//! the engine sends none that the revision of its peer does not have.

use crate::methods::{self, Kind};
use crate::revision::Revision::{self, A, E};
use crate::shapes;
use serde_json::{Map, Value};

/// An object of the protocol. `name` is that of its definition in the official schemas. Alternatives with the
/// same shape are joined by `|`; a name in lower case has no definition.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Unknown members are allowed too (`_meta`).
    pub(crate) open: bool,
    pub(crate) members: &'static [Member],
}

pub(crate) struct Member {
    pub(crate) name: &'static str,
    first: Revision,
    last: Revision,
    inner: Inner,
}

/// The content of a member.
#[derive(Clone, Copy)]
pub(crate) enum Inner {
    /// Anything: scalars, and JSON that belongs to the application.
    Free,
    Object(&'static Shape),
    List(&'static Shape),
    /// An object whose values have the shape.
    Map(&'static Shape),
    /// One content block or an array of them; `type` shows the kind.
    Content(&'static [Block]),
    /// `{key: {method, params}}`
    InputRequests,
    /// `{key: bare result}`
    InputResponses,
}

/// A kind of content: the value of `type`, its first revision, its shape.
pub(crate) type Block = (&'static str, Revision, &'static Shape);

/// Makes a member that all revisions have.
pub(crate) const fn member(name: &'static str) -> Member {
    Member { name, first: A, last: E, inner: Inner::Free }
}

impl Shape {
    pub(crate) const fn new(name: &'static str, members: &'static [Member]) -> Shape {
        Shape { name, open: false, members }
    }
}

impl Member {
    pub(crate) const fn since(mut self, first: Revision) -> Member {
        self.first = first;
        self
    }

    pub(crate) const fn only(self, first: Revision) -> Member {
        self.since(first).until(first)
    }

    pub(crate) const fn until(mut self, last: Revision) -> Member {
        self.last = last;
        self
    }

    pub(crate) const fn inside(mut self, inner: Inner) -> Member {
        self.inner = inner;
        self
    }

    pub(crate) const fn object(self, shape: &'static Shape) -> Member {
        self.inside(Inner::Object(shape))
    }

    pub(crate) const fn list(self, shape: &'static Shape) -> Member {
        self.inside(Inner::List(shape))
    }

    pub(crate) fn known_in(&self, revision: Revision) -> bool {
        self.first <= revision && revision <= self.last
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> Inner {
        self.inner
    }
}

/// Walks a message along its shape and records every member in a wrong place. A value of a wrong type is skipped: the
/// schema and the types report it better.
pub(crate) struct Walk<'f> {
    pub(crate) revision: Revision,
    /// Accept members of no revision.
    pub(crate) unknown_members: bool,
    pub(crate) found: &'f mut Vec<String>,
}

impl Walk<'_> {
    pub(crate) fn object(&mut self, shape: &Shape, value: &Value) {
        for (key, inner) in value.as_object().into_iter().flatten() {
            match shape.members.iter().find(|m| m.name == key) {
                Some(member) if member.known_in(self.revision) => self.inside(member.inner, inner),
                Some(_) => self.found.push(format!("{}.{key} is not known in {}", shape.name, self.revision.name())),
                None if shape.open || self.unknown_members => {}
                None => self.found.push(format!("{}.{key} is not known in any revision", shape.name)),
            }
        }
    }

    fn inside(&mut self, inner: Inner, value: &Value) {
        match inner {
            Inner::Free => {}
            Inner::Object(shape) => self.object(shape, value),
            Inner::List(shape) => items(value).for_each(|v| self.object(shape, v)),
            Inner::Map(shape) => values(value).for_each(|v| self.object(shape, v)),
            Inner::Content(blocks) if value.is_array() => items(value).for_each(|v| self.content(blocks, v)),
            Inner::Content(blocks) => self.content(blocks, value),
            Inner::InputRequests => values(value).for_each(|v| self.input_request(v)),
            Inner::InputResponses => values(value).for_each(|v| self.object(input_response(v), v)),
        }
    }

    fn content(&mut self, blocks: &[Block], value: &Value) {
        let kind = value["type"].as_str().unwrap_or("(none)");
        match blocks.iter().find(|b| b.0 == kind && b.1 <= self.revision) {
            Some((_, _, shape)) => self.object(shape, value),
            None => self.found.push(format!("content of type {kind} is not known here in {}", self.revision.name())),
        }
    }

    fn input_request(&mut self, value: &Value) {
        self.object(&shapes::INPUT_REQUEST, value);
        let method = value["method"].as_str().unwrap_or("(none)");
        match methods::find(method).filter(|m| m.kind == Kind::Input) {
            Some(known) => self.object(known.params, &value["params"]),
            None => self.found.push(format!("inputRequests may not hold {method:?}")),
        }
    }
}

/// Finds the shape of a bare result by its required members, because it does not name its method.
fn input_response(value: &Value) -> &'static Shape {
    let has = |key: &str| value.get(key).is_some();
    match () {
        () if has("roots") => &shapes::LIST_ROOTS_RESULT,
        () if has("action") => &shapes::ELICIT_RESULT,
        () => &shapes::CREATE_MESSAGE_RESULT,
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn values(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(Map::values)
}
