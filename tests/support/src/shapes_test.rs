//! Compares every table of members and methods with the official schemas.

use crate::methods::{Kind, METHODS};
use crate::revision::Revision;
use crate::schema::{Schemas, spec_dir};
use crate::shape::{Inner, Shape};
use crate::shapes;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Members of the schemas that the tables leave out, because the project sends no tasks.
const TASKS: [&str; 3] = ["task", "tasks", "execution"];

type Definitions = Map<String, Value>;

#[test]
fn members_are_those_of_the_schemas() {
    let Some(schemas) = Schemas::open(&spec_dir()) else { return };
    let mut shapes = BTreeMap::new();
    METHODS.iter().for_each(|m| {
        collect(m.params, &mut shapes);
        collect(m.result, &mut shapes);
    });
    collect(&shapes::INPUT_REQUIRED, &mut shapes);
    let named: Vec<_> = shapes.values().filter(|s| s.name.starts_with(char::is_uppercase)).collect();
    assert!(named.len() > 35, "only {} shapes found", named.len());
    for revision in Revision::ALL {
        let definitions = schemas.definitions(revision);
        for shape in &named {
            let present: Vec<_> = shape.name.split('|').filter_map(|name| definitions.get(name)).collect();
            if !present.is_empty() {
                let mut official: BTreeSet<_> = present.iter().flat_map(|d| properties(d, definitions)).collect();
                // Hosts of apps declare them one revision before the schema has them.
                if revision.name() == "2025-11-25" && shape.name.ends_with("Capabilities") {
                    official.insert("extensions");
                }
                assert_eq!(official, known(shape, revision), "{} in {}", shape.name, revision.name());
            }
        }
    }
}

#[test]
fn methods_and_their_parameters_are_those_of_the_schemas() {
    let Some(schemas) = Schemas::open(&spec_dir()) else { return };
    for revision in Revision::ALL {
        let definitions = schemas.definitions(revision);
        for method in METHODS {
            let Some(definition) = definitions.values().find(|d| d["properties"]["method"]["const"] == method.name)
            else {
                assert!(!sent(method, revision), "{} is not in {}", method.name, revision.name());
                continue;
            };
            assert!(sent(method, revision) || method.kind == Kind::Input, "{} in {}", method.name, revision.name());
            let mut official = properties(&definition["properties"]["params"], definitions);
            let mut ours = known(method.params, revision);
            // Every `params` may have `_meta`; older schemas say so in a base definition only.
            official.insert("_meta");
            ours.insert("_meta");
            assert_eq!(official, ours, "params of {} in {}", method.name, revision.name());
        }
    }
}

#[test]
fn senders_are_those_of_the_schemas() {
    use crate::methods::Side::{Client, Server};
    let Some(schemas) = Schemas::open(&spec_dir()) else { return };
    for revision in Revision::ALL {
        for (side, names) in
            [(Client, ["ClientRequest", "ClientNotification"]), (Server, ["ServerRequest", "ServerNotification"])]
        {
            let unions = names.iter().filter_map(|name| schemas.definitions(revision).get(*name));
            let official: BTreeSet<_> = unions.flat_map(|u| union_methods(u, schemas.definitions(revision))).collect();
            let ours = METHODS.iter().filter(|m| m.sent_by(side, revision)).map(|m| m.name).collect();
            assert_eq!(official, ours, "{side:?} in {}", revision.name());
        }
    }
}

fn sent(method: &crate::methods::Method, revision: Revision) -> bool {
    use crate::methods::Side::{Client, Server};
    method.sent_by(Client, revision) || method.sent_by(Server, revision)
}

fn union_methods<'d>(union: &'d Value, definitions: &'d Definitions) -> Vec<&'d str> {
    let alternatives = union["anyOf"].as_array().map_or(std::slice::from_ref(union), Vec::as_slice);
    let methods = alternatives.iter().map(|a| resolve(a, definitions)["properties"]["method"]["const"].as_str());
    methods.map(|m| m.expect("a method")).filter(|m| !m.contains("tasks/")).collect()
}

/// Collects a shape and the shapes inside it, by their addresses.
fn collect(shape: &'static Shape, into: &mut BTreeMap<usize, &'static Shape>) {
    if into.insert(std::ptr::from_ref(shape) as usize, shape).is_some() {
        return;
    }
    for member in shape.members {
        match member.inner() {
            Inner::Object(inner) | Inner::List(inner) | Inner::Map(inner) => collect(inner, into),
            Inner::Content(blocks) => blocks.iter().for_each(|block| collect(block.2, into)),
            Inner::Free | Inner::InputRequests | Inner::InputResponses => {}
        }
    }
}

fn known(shape: &Shape, revision: Revision) -> BTreeSet<&'static str> {
    shape.members.iter().filter(|m| m.known_in(revision)).map(|m| m.name).collect()
}

/// Returns the properties of a definition and of its alternatives.
fn properties<'d>(definition: &'d Value, definitions: &'d Definitions) -> BTreeSet<&'d str> {
    let definition = resolve(definition, definitions);
    let own = definition["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let alternatives = definition["anyOf"].as_array().into_iter().flatten();
    let theirs = alternatives.flat_map(|a| properties(a, definitions));
    own.chain(theirs).filter(|name| !TASKS.contains(name)).collect()
}

fn resolve<'d>(definition: &'d Value, definitions: &'d Definitions) -> &'d Value {
    match definition["$ref"].as_str() {
        Some(target) => &definitions[target.rsplit('/').next().expect("a name")],
        None => definition,
    }
}
