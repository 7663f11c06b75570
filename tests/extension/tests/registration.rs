//! What a table of extensions must not have: each case panics when the service is made, and as a constant does not compile.

use std::panic::catch_unwind;

use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult, Service, Topic};

fn run(_: &mut (), request: &mut CustomRequest<'_>) -> HandlerResult {
    request.decline()
}

const fn topic(member: &'static str) -> Topic<()> {
    Topic::new(member, "notifications/com.example/news", |(), _, _| {})
}

const MAP: Extension<()> = Extension::new("com.example/map");
const PLACE: Extension<()> = Extension::new("com.example/place");

/// Returns the message of the panic with which the service refuses a table; `None` if it takes the table.
fn refusal<const N: usize>(table: &'static [Extension<()>; N]) -> Option<String> {
    let made = catch_unwind(|| drop(Service::new("guide", "1.0").extend(table)));
    made.err().map(|panic| panic.downcast_ref::<&str>().map_or_else(String::new, |text| (*text).to_owned()))
}

#[test]
fn what_is_named_once_and_complete_is_taken() {
    const GET: &[ExtensionMethod<()>] = &[ExtensionMethod::new("com.example/map/get", run)];
    const FIND: &[ExtensionMethod<()>] = &[ExtensionMethod::new("com.example/place/find", run)];
    static BOTH: [Extension<()>; 2] =
        [MAP.needs(&["com.example/place"]).methods(GET).topics(&[topic("maps")]), PLACE.methods(FIND)];
    assert_eq!(refusal(&BOTH), None);
}

#[test]
fn an_extension_twice_is_refused() {
    static TWICE: [Extension<()>; 3] = [MAP, PLACE, MAP];
    assert_eq!(refusal(&TWICE).as_deref(), Some("two extensions have the same identifier"));
    static ONE: [Extension<()>; 1] = [MAP];
    static OTHER: [Extension<()>; 1] = [PLACE];
    let again = catch_unwind(|| drop(Service::new("guide", "1.0").extend(&ONE).extend(&OTHER)));
    assert!(again.is_err(), "the second table would replace the first");
}

#[test]
fn a_method_twice_is_refused() {
    const GET: &[ExtensionMethod<()>] = &[ExtensionMethod::new("com.example/get", run)];
    const TWO: &[ExtensionMethod<()>] =
        &[ExtensionMethod::new("com.example/get", run), ExtensionMethod::new("com.example/get", run)];
    const LIST: &[ExtensionMethod<()>] = &[ExtensionMethod::new("tools/list", run)];
    static IN_ONE: [Extension<()>; 1] = [MAP.methods(TWO)];
    static IN_TWO: [Extension<()>; 2] = [MAP.methods(GET), PLACE.methods(GET)];
    static OF_THE_PROTOCOL: [Extension<()>; 1] = [MAP.methods(LIST)];
    assert_eq!(refusal(&IN_ONE).as_deref(), Some("two extensions have the same method"));
    assert_eq!(refusal(&IN_TWO).as_deref(), Some("two extensions have the same method"));
    assert_eq!(refusal(&OF_THE_PROTOCOL).as_deref(), Some("an extension has a method of the protocol"));
}

#[test]
fn a_topic_twice_is_refused() {
    static IN_ONE: [Extension<()>; 1] = [MAP.topics(&[topic("maps"), topic("maps")])];
    static IN_TWO: [Extension<()>; 2] = [MAP.topics(&[topic("maps")]), PLACE.topics(&[topic("maps")])];
    static OF_THE_PROTOCOL: [Extension<()>; 1] = [MAP.topics(&[topic("resourceSubscriptions")])];
    assert_eq!(refusal(&IN_ONE).as_deref(), Some("two extensions have the same topic"));
    assert_eq!(refusal(&IN_TWO).as_deref(), Some("two extensions have the same topic"));
    assert_eq!(refusal(&OF_THE_PROTOCOL).as_deref(), Some("an extension has a topic of the protocol"));
}

#[test]
fn an_extension_without_what_it_needs_is_refused() {
    static ALONE: [Extension<()>; 1] = [MAP.needs(&["com.example/place"])];
    assert_eq!(refusal(&ALONE).as_deref(), Some("an extension needs another one that is not in the table"));
}
