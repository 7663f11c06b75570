//! Topics without the feature `extensions`: they have no size, and no code is behind them.

use core::marker::PhantomData;

pub(crate) const TOPICS: bool = false;

pub(crate) type ListenTopicsRef<'t> = PhantomData<&'t ()>;
pub(crate) type TopicNewsRef<'t> = PhantomData<&'t ()>;
pub(crate) const NO_TOPICS: ListenTopicsRef<'static> = PhantomData;
pub(crate) const NO_NEWS: TopicNewsRef<'static> = PhantomData;
