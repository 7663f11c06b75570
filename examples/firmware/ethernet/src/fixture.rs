//! The service that the official conformance suites expect, the same as on the host.

use board::{Adc, Button, Led, Static};
use mcp_sansio::server::Millis;
pub(crate) use mcp_sansio_conformance_fixture::SERVICE;
use mcp_sansio_conformance_fixture::{Fixture, RandomBytes};
use mcp_sansio_extensions::tasks::{TaskSlot, Tasks};

use crate::random::Random;
use crate::{App, Endpoint};

pub(crate) type State = Fixture;

/// The most tasks, with the finished ones that are kept for their clients.
const TASKS: usize = 16;
/// The results of tasks, and the questions to their clients.
const RESULTS: usize = 3 * 1024;
/// The time for which a finished task is kept, in milliseconds.
const KEEP: Millis = 2_500;

static TASK_SLOTS: Static<[TaskSlot; TASKS]> = Static::new([TaskSlot::FREE; TASKS]);
static RESULT_BYTES: Static<[u8; RESULTS]> = Static::new([0; RESULTS]);
static RANDOM: Static<Option<Random>> = Static::new(None);

/// Returns the state at the start.
pub(crate) fn state(_: Led, _: Button, _: Adc, _: Millis, random: &mut Random) -> Option<State> {
    let tasks = Tasks::new(TASK_SLOTS.take()?, RESULT_BYTES.take()?);
    Some(Fixture::new(tasks, KEEP, RANDOM.take()?.insert(random.fork())))
}

impl RandomBytes for Random {
    fn fill(&mut self, bytes: &mut [u8]) {
        Random::fill(self, bytes);
    }
}

/// Does the work that is due between two turns of the network.
pub(crate) fn go_on(app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) {
    let _ = mcp_sansio_conformance_fixture::go_on(app, endpoint, now);
}
