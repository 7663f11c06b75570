//! What becomes of an exchange: answers, failures, streams that are resumed.

use mcp_sansio::frame::sse::Item;
use mcp_sansio::protocol::code;
use mcp_sansio::rpc::Envelope;

use super::config::Transport;
use super::event::Why;
use super::reply::{Content, Reply};
use super::site::{Old, Site};
use super::slot::{After, Answer, Class, Gone, Link, Part, Phase, Ready, Slot, Task, Topic, Wait, What, class};
use super::{Blame, Listening};

impl Slot<'_> {
    /// Sends the request, or fails where it does not fit.
    pub(crate) fn launch(&mut self, at: usize, site: &mut Site<'_>) {
        if self.start(at, site).is_err() {
            self.kept = 0;
            self.give_way(at, site, Why::NoRoom);
        }
    }

    /// Goes through what has come, up to the next event.
    pub(crate) fn step(&mut self, at: usize, site: &mut Site<'_>) {
        while self.ready.is_none() {
            let goes_on = match self.phase {
                Phase::Head => self.step_head(at, site),
                Phase::Body(_) | Phase::Drain => self.step_body(at, site),
                _ => false,
            };
            if !goes_on {
                break;
            }
        }
    }

    fn step_head(&mut self, at: usize, site: &mut Site<'_>) -> bool {
        match self.input.head(site.config.head) {
            Ok(Some(reply)) => self.on_head(at, &reply, site),
            Ok(None) => {
                let Some(gone) = self.gone.take() else { return false };
                let cut = self.heard || !self.input.is_empty();
                let why = if gone == Gone::Refused {
                    Why::Refused
                } else if cut {
                    Why::Broken
                } else {
                    Why::Reset
                };
                self.lose(at, site, why);
            }
            Err(why) => self.lose(at, site, why),
        }
        true
    }

    /// The connection was lost, or is of no use, before the answer.
    fn lose(&mut self, at: usize, site: &mut Site<'_>, why: Why) {
        self.hang_up();
        let again = !self.is_all_sent() || self.task.idempotent || !self.task.posts();
        if why == Why::Reset && self.used && !self.task.retried && again {
            self.task.retried = true;
            return self.launch(at, site);
        }
        self.kept = 0;
        match self.task.what {
            What::Request if self.task.resume && why.blame() == Blame::Network => self.resume_later(at, site, why),
            What::Request | What::Tell => self.fail(why),
            What::Listen => self.resume_later(at, site, why),
            What::OldStream => self.old_stream_ends(at, site, why),
            What::Delete => self.deleted(site),
        }
    }

    /// Ends with a failure; the connection is closed.
    pub(crate) fn fail(&mut self, why: Why) {
        self.hang_up();
        self.fail_kept(why);
    }

    /// Ends with a failure behind the event that is being told.
    pub(crate) fn fail_next(&mut self, why: Why) {
        if self.ready.is_none() {
            self.kept = 0;
            self.fail(why);
        } else if matches!(self.after, After::Continue | After::Hold) {
            self.after = After::Fail(why);
        }
    }

    fn old_stream_ends(&mut self, at: usize, site: &mut Site<'_>, why: Why) {
        site.news.old_failed = Some(why);
        self.hang_up();
        self.release(at, site);
    }

    fn deleted(&mut self, site: &mut Site<'_>) {
        site.end_session();
        self.ended();
    }

    pub(crate) fn ended(&mut self) {
        (self.ready, self.after, self.phase) = (Some(Ready::Ended), After::Release, Phase::Over);
        self.deadline = None;
    }

    /// Waits, then resumes the stream; or gives up.
    fn resume_later(&mut self, at: usize, site: &mut Site<'_>, why: Why) {
        self.hang_up();
        // One that was there for a while was not opened in vain, though nothing may have come.
        if self.task.opened.take().is_some_and(|at| site.now.saturating_sub(at) >= site.config.retry_most) {
            self.task.tries = 0;
        }
        let listens = self.task.what == What::Listen;
        let can = listens || (!self.task.modern && !self.message.last_id().is_empty());
        if !can || self.task.tries >= site.config.tries {
            if listens {
                site.listening = Listening::No;
                return self.release(at, site);
            }
            self.kept = 0;
            return self.fail(why);
        }
        let first = self.message.retry().map_or(site.config.retry_time, u64::from);
        let factor = 1u64.checked_shl(u32::from(self.task.tries)).unwrap_or(u64::MAX);
        let wait = first.saturating_mul(factor).min(site.config.retry_most.max(first));
        self.task.tries = self.task.tries.saturating_add(1);
        self.task.resume = true;
        self.task.retried = false;
        if listens {
            site.listening = Listening::Opening;
        }
        self.phase = Phase::Wait(Wait::Later);
        self.deadline = Some(site.now.saturating_add(wait));
    }

    fn on_head(&mut self, at: usize, reply: &Reply, site: &mut Site<'_>) {
        self.heard = true;
        let status = reply.status;
        // An answer that is to follow has only the time that it had.
        if status == 101 || status >= 200 {
            self.deadline = None;
        }
        self.reply = Answer { status, keep: reply.keep, retry_after: reply.retry_after };
        let deletes = self.task.what == What::Delete;
        match status {
            101 => self.fail(Why::NotHttp),
            100..=199 => {}
            401 | 403 if !deletes && (status == 401 || reply.challenge.is_some()) => {
                self.keep_text(reply.challenge.clone().unwrap_or(0..0));
                self.hang_up();
                self.task.challenges = self.task.challenges.saturating_add(1);
                (self.ready, self.after, self.phase) = (Some(Ready::Challenge(status)), After::Hold, Phase::Over);
            }
            300..=399 if !deletes => self.on_redirect(at, reply, site),
            404 if self.loses_session(site) => {
                site.news.lost = true;
                self.kept = 0;
                self.fail(Why::SessionLost);
            }
            _ => self.on_answer(at, reply, site),
        }
    }

    /// Whether a 404 means that the session is lost. Some servers answer it to any GET, so that at the first one it means that
    /// there is no stream: if the session is lost as well, the next POST tells. Where there was a stream, it means the
    /// session.
    fn loses_session(&self, site: &Site<'_>) -> bool {
        let asks = matches!(self.task.what, What::Request | What::Tell);
        let listens = self.task.what == What::Listen && self.task.was_open;
        (asks || listens) && self.task.in_session() && site.session().is_some()
    }

    fn on_redirect(&mut self, at: usize, reply: &Reply, site: &mut Site<'_>) {
        self.keep_text(reply.location.clone());
        let follows = matches!(reply.status, 307 | 308) && self.task.redirects < site.config.redirects;
        let posts = self.task.posts();
        let location = self.input.text(reply.location.clone());
        if follows && site.redirect(at, location, posts) {
            self.task.redirects += 1;
            self.hang_up();
            return self.launch(at, site);
        }
        self.give_way(at, site, Why::Redirect(reply.status));
    }

    /// Fails as its task requires; what is to be told is kept.
    fn give_way(&mut self, at: usize, site: &mut Site<'_>, why: Why) {
        match self.task.what {
            What::Request | What::Tell => self.fail(why),
            What::Listen => {
                site.listening = Listening::No;
                self.hang_up();
                self.release(at, site);
            }
            What::OldStream => self.old_stream_ends(at, site, why),
            What::Delete => {
                self.hang_up();
                self.deleted(site);
            }
        }
    }

    fn on_answer(&mut self, at: usize, reply: &Reply, site: &mut Site<'_>) {
        let good = (200..300).contains(&reply.status);
        let streams = good && reply.content == Content::Stream && reply.status != 204;
        self.kept = 0;
        self.task.challenges = 0;
        self.phase = match self.task.what {
            What::Request if good && self.task.topic == Topic::Initialize && !self.task.old => {
                let session = self.input.text(reply.session.clone());
                site.set_session(session);
                self.request_body(reply, streams)
            }
            What::Request if self.task.resume && !streams => {
                let why = Why::Broken;
                return if reply.status >= 500 { self.resume_later(at, site, why) } else { self.fail(why) };
            }
            What::Request if good => self.request_body(reply, streams),
            What::Request => {
                self.deadline = Some(site.now.saturating_add(site.config.reply_time));
                Phase::Body(Part::Error)
            }
            What::Tell | What::Delete => {
                self.deadline = Some(site.now.saturating_add(site.config.reply_time));
                Phase::Body(if good || self.task.what == What::Delete { Part::Skip } else { Part::Error })
            }
            What::Listen if streams => {
                site.listening = Listening::Open;
                Phase::Body(Part::Stream)
            }
            What::Listen if reply.status >= 500 => return self.resume_later(at, site, Why::Broken),
            What::OldStream if streams => {
                self.deadline = Some(site.now.saturating_add(site.config.reply_time));
                Phase::Body(Part::Stream)
            }
            What::Listen | What::OldStream => {
                let code = reply.status;
                return self.give_way(at, site, Why::Status { code, retry_after: reply.retry_after });
            }
        };
        if streams {
            (self.task.was_open, self.task.opened) = (true, Some(site.now));
            if self.task.resume { self.message.restart() } else { self.message.reset() }
        }
        if self.phase == Phase::Over {
            self.hang_up();
        }
    }

    /// What the body of a success is to a request.
    fn request_body(&mut self, reply: &Reply, streams: bool) -> Phase {
        let empty = reply.framing == super::reply::Framing::None;
        if self.task.old {
            Phase::Body(Part::Skip)
        } else if streams {
            Phase::Body(Part::Stream)
        } else if empty || matches!(reply.status, 202 | 204 | 205) {
            self.fail_kept(Why::Unanswered);
            Phase::Over
        } else if matches!(reply.content, Content::Json | Content::Unknown) {
            Phase::Body(Part::Json)
        } else {
            self.fail_kept(Why::ContentType);
            Phase::Over
        }
    }

    fn step_body(&mut self, at: usize, site: &mut Site<'_>) -> bool {
        let bytes = match self.input.body(site.config.head) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.cut(at, site, why);
                return true;
            }
        };
        if !bytes.is_empty() {
            let n = match self.phase {
                Phase::Body(Part::Stream) => self.message.read(bytes),
                Phase::Body(Part::Json | Part::Error) => append(self.message.store(), &mut self.kept, bytes),
                _ => bytes.len(),
            };
            let all = n == bytes.len();
            self.input.take(n);
            match self.phase {
                Phase::Body(Part::Stream) => self.on_item(site),
                Phase::Body(Part::Json) if !all => {
                    self.kept = 0;
                    self.fail(Why::TooLarge);
                }
                // What does not fit of an error's body is not needed.
                Phase::Body(Part::Error) if !all => self.input.take(usize::MAX),
                _ => {}
            }
            return true;
        }
        if self.input.is_over() || (self.gone == Some(Gone::Clean) && self.input.ends_with_connection()) {
            self.end_body(at, site);
            return true;
        }
        if self.gone.is_some() {
            self.cut(at, site, Why::Broken);
            return true;
        }
        false
    }

    /// The body was cut off.
    fn cut(&mut self, at: usize, site: &mut Site<'_>, why: Why) {
        let part = self.phase;
        self.hang_up();
        match (part, self.task.what) {
            (Phase::Body(Part::Stream), What::Request | What::Listen) => self.resume_later(at, site, why),
            (Phase::Body(Part::Stream), What::OldStream) => self.old_stream_ends(at, site, why),
            // The head has said all there is to say.
            (Phase::Body(Part::Error | Part::Skip), _) => self.end_body(at, site),
            (Phase::Body(_), _) => {
                self.kept = 0;
                self.fail(why);
            }
            _ => self.release(at, site),
        }
    }

    /// The body has come to its end.
    fn end_body(&mut self, at: usize, site: &mut Site<'_>) {
        let reusable = self.reply.keep && self.is_all_sent() && self.input.is_empty() && self.link == Link::Up;
        if !reusable {
            self.hang_up();
        }
        self.gone = None;
        match self.phase {
            Phase::Body(Part::Json) => self.on_json(site),
            Phase::Body(Part::Error) => self.on_error(site),
            Phase::Body(Part::Stream) => match self.task.what {
                What::OldStream => self.old_stream_ends(at, site, Why::Unanswered),
                _ => self.resume_later(at, site, Why::Unanswered),
            },
            Phase::Body(Part::Skip) if self.task.what == What::Delete => self.deleted(site),
            // The stream that was to bring the answer is gone.
            Phase::Body(Part::Skip) if self.task.what == What::Request && site.old != Old::Known => {
                self.fail_kept(Why::SessionLost);
            }
            Phase::Body(Part::Skip) if self.task.what == What::Request => {
                self.phase = Phase::Wait(Wait::Answer);
                self.deadline = Some(site.now.saturating_add(site.config.idle_time));
            }
            _ => {
                site.news.initialized |= self.task.topic == Topic::Initialized;
                self.release(at, site);
            }
        }
    }

    /// The answer to a request came as JSON.
    fn on_json(&mut self, site: &mut Site<'_>) {
        let (task, kept) = (self.task, self.kept);
        let body = self.message.store().bytes().get(..kept).unwrap_or(&[]);
        match class(body, task.request, site.takes_batches(&task)) {
            Class::Response(Some(id), _) if Some(id) == task.request => {
                learn(&task, body, site);
                self.answered();
            }
            Class::Response(None, true) => self.answered(),
            _ => {
                self.kept = 0;
                self.fail_kept(Why::Garbage);
            }
        }
    }

    /// The body is the answer.
    fn answered(&mut self) {
        (self.ready, self.after, self.phase) = (Some(Ready::Body), After::Release, Phase::Over);
        self.deadline = None;
    }

    /// The body of an error status has come.
    fn on_error(&mut self, site: &mut Site<'_>) {
        let (task, kept) = (self.task, self.kept);
        let body = self.message.store().bytes().get(..kept).unwrap_or(&[]);
        let is_error = match class(body, task.request, false) {
            Class::Response(id, true) => id.is_none() || id == task.request,
            _ => false,
        };
        let tries_old = task.topic == Topic::Initialize
            && !task.old
            && site.config.transport == Transport::Detect
            && matches!(self.reply.status, 400 | 404 | 405)
            && !(is_error && is_modern_error(body));
        if tries_old {
            self.phase = Phase::Wait(Wait::Fallback);
            self.deadline = None;
            if site.old == Old::No {
                site.old = Old::Wanted;
            }
            return;
        }
        self.tell_error();
    }

    /// Tells what the body of an error status says.
    pub(crate) fn tell_error(&mut self) {
        let (task, kept) = (self.task, self.kept);
        let body = self.message.store().bytes().get(..kept).unwrap_or(&[]);
        match class(body, task.request, false) {
            Class::Response(id, true) if task.what == What::Request && (id.is_none() || id == task.request) => {
                self.answered();
            }
            _ => {
                let Answer { status: code, retry_after, .. } = self.reply;
                self.fail_kept(Why::Status { code, retry_after });
            }
        }
    }

    /// Something may have been found in a stream.
    fn on_item(&mut self, site: &mut Site<'_>) {
        let task = self.task;
        let Some(item) = self.message.item() else { return };
        let event = match item {
            Item::Event(event) => event,
            _ if task.what == What::Request => {
                self.kept = 0;
                return self.fail(Why::TooLarge);
            }
            _ => return self.skip(Why::TooLarge),
        };
        self.task.tries = 0;
        if task.what == What::OldStream && event.name == "endpoint" {
            let endpoint = core::str::from_utf8(event.data).map_err(|_| Why::Endpoint);
            let known = endpoint.and_then(|endpoint| site.set_endpoint(endpoint));
            self.message.consume();
            self.deadline = None;
            if let Err(why) = known {
                site.news.old_failed = Some(why);
                self.hang_up();
                self.phase = Phase::Drain;
                self.deadline = Some(site.now);
            }
            return;
        }
        if !matches!(event.name, "" | "message") || event.data.is_empty() {
            return self.message.consume();
        }
        match class(event.data, task.request, site.takes_batches(&task)) {
            Class::NotJson => self.skip(Why::Garbage),
            Class::Response(id, error) => {
                let own = task.what == What::Request && (id == task.request || (id.is_none() && error));
                if own && id.is_some() {
                    learn(&task, event.data, site);
                }
                let answers = if own { task.request } else { id };
                self.ready = Some(Ready::Item { request: task.request, answers });
                self.after = if own { After::Drain } else { After::Continue };
            }
            Class::Other => {
                self.ready = Some(Ready::Item { request: task.request, answers: None });
                self.after = After::Continue;
            }
        }
    }

    fn skip(&mut self, why: Why) {
        (self.ready, self.after) = (Some(Ready::Skipped(why)), After::Continue);
    }

    /// The event that was ready has been told.
    pub(crate) fn consume(&mut self, at: usize, site: &mut Site<'_>) {
        match self.ready.take() {
            None => return,
            Some(Ready::Item { .. } | Ready::Skipped(_)) => self.message.consume(),
            Some(_) => {}
        }
        match core::mem::replace(&mut self.after, After::Continue) {
            After::Continue => {}
            After::Release => self.release(at, site),
            After::Hold => {
                self.phase = Phase::Wait(Wait::Caller);
                self.deadline = None;
            }
            After::Drain => {
                self.phase = Phase::Drain;
                self.deadline = Some(site.now.saturating_add(site.config.drain_time));
            }
            After::Fail(why) => {
                self.kept = 0;
                self.fail(why);
            }
        }
    }

    /// The exchange is over; the connection stays, if it can be used again.
    pub(crate) fn release(&mut self, at: usize, site: &mut Site<'_>) {
        if site.has_redirect(at) {
            site.forget_redirect(at);
        }
        (self.phase, self.ready, self.after, self.task) = (Phase::Free, None, After::Continue, Task::NONE);
        self.kept = 0;
        self.clear_output();
        self.message.reset();
        let idle = site.now.saturating_add(site.config.idle_time);
        self.deadline = if self.link == Link::Up { Some(idle) } else { None };
    }

    /// Whatever is under way, it is no more.
    pub(crate) fn abandon(&mut self, site: &mut Site<'_>, at: usize) {
        let rests = matches!(self.phase, Phase::Free | Phase::Wait(_));
        if !rests || self.link != Link::Up {
            self.hang_up();
        }
        self.release(at, site);
    }

    pub(crate) fn retry(&mut self, at: usize, site: &mut Site<'_>) {
        self.settle_challenge(at, site);
        if self.phase == Phase::Wait(Wait::Caller) {
            self.launch(at, site);
        }
    }

    pub(crate) fn give_up(&mut self, at: usize, site: &mut Site<'_>) {
        self.settle_challenge(at, site);
        if self.phase == Phase::Wait(Wait::Caller) {
            self.kept = 0;
            self.give_way(at, site, Why::GivenUp);
        }
    }

    /// The challenge has been told, though nothing was asked for since.
    fn settle_challenge(&mut self, at: usize, site: &mut Site<'_>) {
        if matches!(self.ready, Some(Ready::Challenge(_))) {
            self.consume(at, site);
        }
    }

    pub(crate) fn expire(&mut self, at: usize, site: &mut Site<'_>) {
        if self.deadline.is_none_or(|deadline| deadline > site.now) {
            return;
        }
        self.deadline = None;
        match self.phase {
            Phase::Free | Phase::Wait(Wait::Answer | Wait::Caller) => self.hang_up(),
            Phase::Wait(Wait::Later) => self.launch(at, site),
            Phase::Drain => {
                self.hang_up();
                self.release(at, site);
            }
            // What has come before the time was over counts.
            Phase::Head if self.input.is_empty() => self.lose(at, site, Why::TimedOut),
            Phase::Head | Phase::Body(_) => {
                self.step(at, site);
                if self.ready.is_none() && self.phase == Phase::Head {
                    self.lose(at, site, Why::TimedOut);
                } else if self.ready.is_none() && matches!(self.phase, Phase::Body(Part::Skip | Part::Error)) {
                    self.cut(at, site, Why::TimedOut);
                } else if self.ready.is_none() && self.is(What::OldStream) && site.old == Old::Opening {
                    self.old_stream_ends(at, site, Why::TimedOut);
                }
            }
            Phase::Writing | Phase::Over | Phase::Wait(Wait::Endpoint | Wait::Fallback | Wait::Greeting) => {}
        }
    }
}

/// Appends as much as fits; how much that was.
fn append(store: &mut mcp_sansio::store::Store<'_>, used: &mut usize, bytes: &[u8]) -> usize {
    let wanted = used.saturating_add(bytes.len());
    if !store.reach(wanted) {
        store.reach(store.limit());
    }
    let place = store.bytes_mut().get_mut(*used..).unwrap_or(&mut []);
    let n = place.len().min(bytes.len());
    for (to, from) in place.iter_mut().zip(bytes) {
        *to = *from;
    }
    *used += n;
    n
}

/// What results mean for later requests.
fn learn(task: &Task, bytes: &[u8], site: &mut Site<'_>) {
    if !matches!(task.topic, Topic::Initialize | Topic::Tools(_)) {
        return;
    }
    let Some(result) = Envelope::parse(bytes).ok().and_then(|envelope| envelope.result) else { return };
    match task.topic {
        Topic::Initialize => site.learn_version(result),
        Topic::Tools(fresh) if task.modern => site.tools.learn(result, fresh),
        _ => {}
    }
}

/// Whether an error's code is one that only servers of 2026-07-28 use, or one that means a method is unknown.
fn is_modern_error(body: &[u8]) -> bool {
    let error = Envelope::parse(body).ok().and_then(|envelope| envelope.error);
    let code = error.and_then(|error| error.get("code")).and_then(|code| code.i64());
    let modern = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION, code::METHOD_NOT_FOUND];
    code.is_some_and(|code| modern.iter().any(|known| i64::from(*known) == code))
}
