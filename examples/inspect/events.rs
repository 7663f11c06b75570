//! The commands for events: lists the event types, and prints what happens.

use mcp_sansio::client::Request;
use mcp_sansio::json::Raw;
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent, are_offered};

use crate::arguments::build;
use crate::commands::{Done, Run, Trouble, from_stdin, items, named};
use crate::json::{Members, quote};
use crate::page::{Spans, Style};
use crate::schema::Schema;
use crate::show;
use crate::terminal;
use crate::text::one_line;

impl Run<'_, '_> {
    /// Lists the event types; with a name prints the occurrences of that type, from now on.
    pub(crate) fn events(&mut self, name: Option<&str>, args: &[String]) -> Done {
        let hello = self.session.client().server();
        let are_offered = are_offered(hello.and_then(|hello| hello.capabilities()));
        let pages = if are_offered { self.session.list(Request::raw("events/list", None))? } else { Vec::new() };
        let all = items(&pages, "events");
        let Some(name) = name else {
            if self.options.json {
                return self.print_lists(&[("events", &pages)]);
            }
            let mut page = self.page();
            // An event type has the members of a tool that are shown here.
            show::tools(&mut page, &all, false, false);
            return self.nothing_if_empty(page, all.is_empty(), "events");
        };
        let event_type = named(&all, "event", name)?;
        let schema = Schema::new(event_type.get("inputSchema").unwrap_or(Raw::constant("{}")));
        let arguments = build(&from_stdin(args)?, Some(&schema)).map_err(Trouble::Usage)?;
        let arguments = Raw::parse(arguments.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
        let (look, json, around) = (self.look, self.options.json, self.around);
        let is_shown = !self.options.only_trace;
        let mut follower = EventFollower::new(name).arguments(arguments);
        let mut modes = event_type.get("delivery").into_iter().flat_map(|modes| modes.items());
        if !modes.any(|mode| mode.text().is_some_and(|mode| mode.eq_str("push"))) {
            follower = follower.poll_only();
        }
        self.session.follow_events(follower, |event| {
            around.live.borrow_mut().clear();
            match event {
                FollowedEvent::Occurred(event) if is_shown && json => {
                    let mut line = Members::default();
                    let texts = [("eventId", &event.event_id), ("name", &event.name), ("timestamp", &event.timestamp)];
                    texts.iter().for_each(|(key, text)| line.add(key, &quote(text)));
                    line.add("data", event.data.as_str());
                    terminal::print(format!("{}\n", line.finish()).as_bytes())
                }
                FollowedEvent::Occurred(event) if is_shown => {
                    let mut page = crate::page::Page::new(look);
                    let data = one_line(event.data.as_str());
                    page.spans(
                        0,
                        &Spans::of(Style::Dim, one_line(event.timestamp)).and(Style::Plain, format_args!("  {data}")),
                    );
                    terminal::print(page.finish().as_bytes())
                }
                FollowedEvent::Occurred(_) => Ok(()),
                FollowedEvent::Failed(error) => {
                    let words =
                        format!("The server could not get an event: {} {}", error.code, one_line(error.message));
                    around.live.borrow_mut().note(Style::Warn, &words);
                    Ok(())
                }
                _ => {
                    let words = "There is a gap: the server has left occurrences out.";
                    around.live.borrow_mut().note(Style::Warn, words);
                    Ok(())
                }
            }
        })
    }
}
