//! stub
use crate::{
    json::Raw,
    revision::Revision,
    sink::{Full, Out},
};
#[derive(Debug)]
pub struct Reply<'r>(Option<Raw<'r>>);
impl Reply<'_> {
    pub fn decline() -> Self {
        Reply(None)
    }
    pub fn accepts(&self) -> bool {
        true
    }
    pub(crate) fn write(&self, out: &mut dyn Out, _: Revision) -> Result<(), Full> {
        out.put(b"{}")
    }
}
pub struct Refusal<'r> {
    pub code: i32,
    pub message: &'r str,
}
pub(crate) fn balanced(_: Raw<'_>) -> bool {
    true
}
