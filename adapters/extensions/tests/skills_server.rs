//! A server with skills: every file is read and compared with its digest, also through an output smaller than the files.
#![cfg(feature = "skills-client")]

use std::collections::BTreeMap;

use mcp_sansio::client::views::{ListResourcesResult, View};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{Caching, RequestSlot, Server};
use mcp_sansio::service::{Extension, HandlerResult, ReadResource, Resource, ResourceTemplate, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};
use mcp_sansio_extensions::skills::{
    ActiveSkill, Skill, SkillError, SkillLimits, SkillsCapability, SkillsPage, capability,
};

const LIMITS: SkillLimits = SkillLimits::DEFAULT;

/// Every byte, twice: no text, and longer than the smallest output.
static PICTURE: [u8; 512] = {
    let mut bytes = [0; 512];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};
/// 4,000 bytes, with characters of two bytes.
static LONG: [u8; 4000] = {
    let mut bytes = [b'\n'; 4000];
    let mut at = 0;
    while at < 3998 {
        (bytes[at], bytes[at + 1]) = (0xc3, 0xa9);
        at += 2;
    }
    bytes
};

static PUMP_FILES: [SkillFile; 5] = [
    SkillFile::markdown(
        "SKILL.md",
        b"---\nname: pump\ndescription: How to run the \"pump\"\nlicense: MIT\nmetadata: {version: 1.50}\n---\nRead.\n",
    ),
    SkillFile::markdown("references/long.md", &LONG),
    SkillFile::new("references/deep/empty", "text/plain", b""),
    SkillFile::new("picture.png", "image/png", &PICTURE),
    SkillFile::markdown("inner/SKILL.md", b"---\nname: inner\ndescription: A nested skill\n---\n"),
];
static INNER_FILES: [SkillFile; 1] = [SkillFile::markdown("SKILL.md", PUMP_FILES[4].bytes)];
static REPORT_FILES: [SkillFile; 1] =
    [SkillFile::markdown("SKILL.md", b"---\nname: report\ndescription: The report of today\n---\nRead today.md.\n")];

static SKILLS: [ServedSkill; 3] = [
    ServedSkill::new("skill://plant/pump/SKILL.md", "How to run the \"pump\"", &PUMP_FILES)
        .fields(r#"{"license":"MIT","metadata":{"version":1.5}}"#),
    ServedSkill::new("skill://plant/pump/inner/SKILL.md", "A nested skill", &INNER_FILES),
    ServedSkill::new("skill://report/SKILL.md", "The report of today", &REPORT_FILES).dynamic(),
];

struct Plant {
    reports: u32,
}

impl ServeSkills for Plant {
    const SKILLS: &'static [ServedSkill] = &SKILLS;
    const CACHING: Caching = Caching::public(60_000);

    fn read_dynamic(&mut self, skill: &ServedSkill, path: &str, read: &mut ReadResource<'_>) -> HandlerResult {
        if path != "today.md" {
            return read.not_found();
        }
        self.reports += 1;
        read.text(format_args!("{} {}", skill.name(), self.reports))
    }
}

static EXTENSIONS: [Extension<Plant>; 1] = [server::extension()];
static RESOURCES: [Resource<Plant>; 3] =
    [server::resource(&SKILLS[0]), server::resource(&SKILLS[1]), server::resource(&SKILLS[2])];
static TEMPLATES: [ResourceTemplate<Plant>; 1] = [server::template("skill://{+path}")];
const SERVICE: Service<'static, Plant> =
    Service::new("plant", "1.0").extend(&EXTENSIONS).resources(&RESOURCES).templates(&TEMPLATES);

/// Sends one request to a server whose output has `room` bytes. Returns the whole response.
fn ask<S: 'static>(service: &Service<'_, S>, state: &mut S, room: usize, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let (mut input, mut output, mut slots) = ([0; 1024], vec![0; room], [RequestSlot::FREE; 2]);
    let sink = LineSink::new(SliceStorage::new(&mut output));
    let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), sink);
    let line = line + "\n";
    session.space()[..line.len()].copy_from_slice(line.as_bytes());
    session.filled(line.len());
    let mut sent = Vec::new();
    loop {
        let next = session.run(service, state);
        sent.extend_from_slice(session.out.pending());
        session.out.sent(session.out.pending().len());
        if next == NextStep::Read {
            break;
        }
    }
    let text = String::from_utf8(sent).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    text
}

/// A response: its result, or the code of its error.
fn outcome(response: &str) -> Result<Raw<'_>, i64> {
    let response = Raw::parse(response.as_bytes()).unwrap();
    response.get("result").ok_or_else(|| response.get("error").unwrap().get("code").unwrap().i64().unwrap())
}

fn plant(room: usize, method: &str, params: &str) -> String {
    ask(&SERVICE, &mut Plant { reports: 0 }, room, method, params)
}

fn uri(uri: &str) -> String {
    format!(r#""uri":"{uri}""#)
}

/// The smallest output that has room for every entry.
fn least_room() -> usize {
    SKILLS.iter().map(|skill| skill.room).max().unwrap()
}

fn all_skills(room: usize) -> Vec<Skill> {
    let (mut skills, mut cursor) = (Vec::new(), String::new());
    for _ in 0..5 {
        let response = plant(room, capability::LIST, &cursor);
        let result = outcome(&response).unwrap();
        assert_eq!(
            (result.get("ttlMs").unwrap().u64(), result.get("resultType").unwrap().as_str()),
            (Some(60_000), "\"complete\"")
        );
        assert!(result.get("cacheScope").unwrap().text().unwrap().eq_str("public"));
        let page = SkillsPage::of(result).unwrap();
        skills.extend(page.skills(&LIMITS).map(Result::unwrap));
        match page.next_cursor {
            Some(next) => cursor = format!(r#""cursor":"{next}""#),
            None => return skills,
        }
    }
    panic!("the list has no end");
}

fn activate(skill: Skill, room: usize) -> ActiveSkill {
    let response = plant(room, "resources/read", &uri(skill.uri()));
    skill.activate(outcome(&response).unwrap(), &LIMITS).unwrap()
}

#[test]
fn a_client_verifies_every_file() {
    for room in [least_room(), 3000, 1 << 16] {
        let skills = all_skills(room);
        assert_eq!(skills.iter().map(Skill::name).collect::<Vec<_>>(), ["pump", "inner", "report"]);
        for (skill, served) in skills.into_iter().zip(&SKILLS) {
            served.check().unwrap();
            let mut active = activate(skill, room);
            assert!(active.skill().is_dynamic() || active.skill().files().len() == served.files.len());
            for (file, entry) in served.files.iter().zip(active.skill().files().to_vec()) {
                assert_eq!(active.skill().path_of(&entry.uri).as_deref(), Some(file.path));
                let response = plant(room, "resources/read", &uri(&entry.uri));
                let bytes = active.file(&entry.uri, outcome(&response).unwrap()).unwrap();
                assert_eq!(bytes, file.bytes, "{}", file.path);
            }
        }
    }
}

#[test]
fn lists_and_entries_say_the_same() {
    for skill in all_skills(1 << 16) {
        let response = plant(1 << 16, capability::GET, &uri(skill.uri()));
        let result = outcome(&response).unwrap();
        assert_eq!(Skill::of_get(result, skill.uri(), &LIMITS), Ok(skill));
        assert!(result.get("nextCursor").is_none() && result.get("ttlMs").is_some());
    }
    // Pages are cut where the output is full; an entry stays whole.
    let response = plant(least_room(), capability::LIST, "");
    assert!(SkillsPage::of(outcome(&response).unwrap()).unwrap().next_cursor.is_some());
    for (method, params) in [
        (capability::GET, uri("skill://plant/other/SKILL.md")),
        (capability::GET, uri("skill://plant/pump")),
        (capability::GET, String::new()),
        (capability::LIST, r#""cursor":"9""#.to_owned()),
        (capability::LIST, r#""cursor":"-1""#.to_owned()),
        (capability::LIST, r#""cursor":1"#.to_owned()),
        ("resources/read", uri("skill://plant/pump/other.md")),
        ("resources/read", uri("skill://plant/pump/../report/SKILL.md")),
        ("resources/read", uri("skill://plant/pump")),
    ] {
        assert_eq!(outcome(&plant(1 << 16, method, &params)).unwrap_err(), -32602, "{method} {params}");
    }
}

#[test]
fn directories() {
    let children = |directory: &str, cursor: &str, room| {
        let response = plant(room, capability::READ_DIRECTORY, &(uri(directory) + cursor));
        // The TypeScript SDK demands caching hints.
        assert!(
            outcome(&response).is_err() || response.contains(r#""ttlMs":60000,"cacheScope":"public""#),
            "{response}"
        );
        let list = outcome(&response).map(|result| ListResourcesResult::of(result).unwrap());
        list.map(|list| {
            let mime = |mime: Option<mcp_sansio::json::Text<'_>>| mime.unwrap().to_string();
            let found = list.iter().map(Result::unwrap).map(|child| {
                (child.uri().to_string().replace("skill://plant/", ""), child.name().to_string(), mime(child.mime()))
            });
            (found.collect::<Vec<_>>(), list.next_cursor.map(|cursor| cursor.to_string()))
        })
    };
    let child = |uri: &str, name: &str, mime: &str| (uri.to_owned(), name.to_owned(), mime.to_owned());
    let root = [
        child("pump/SKILL.md", "pump", "text/markdown"),
        child("pump/references", "references", "inode/directory"),
        child("pump/picture.png", "picture.png", "image/png"),
        child("pump/inner", "inner", "inode/directory"),
    ];
    assert_eq!(children("skill://plant/pump", "", 1 << 16), Ok((root.to_vec(), None)));
    let references = [
        child("pump/references/long.md", "long.md", "text/markdown"),
        child("pump/references/deep", "deep", "inode/directory"),
    ];
    assert_eq!(children("skill://plant/pump/references", "", 1 << 16), Ok((references.to_vec(), None)));
    let inner = [child("pump/inner/SKILL.md", "SKILL.md", "text/markdown")];
    assert_eq!(children("skill://plant/pump/inner", "", 1 << 16), Ok((inner.to_vec(), None)));
    // Pages of what fits, without gaps.
    let (mut all, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let (found, next) = children("skill://plant/pump", &cursor, 400).unwrap();
        all.extend(found);
        pages += 1;
        match next {
            Some(next) => cursor = format!(r#","cursor":"{next}""#),
            None => break,
        }
    }
    assert!(all == root && pages > 1, "{pages} {all:?}");
    for wrong in [
        "skill://plant/pump/SKILL.md",
        "skill://plant/pump/",
        "skill://plant",
        "skill://plant/pump/ref",
        "skill://none",
    ] {
        assert_eq!(children(wrong, "", 1 << 16).unwrap_err(), -32602, "{wrong}");
    }
    assert_eq!(children("skill://plant/pump", r#","cursor":"2x""#, 1 << 16).unwrap_err(), -32602);
}

#[test]
fn dynamic_files_are_made_when_they_are_read() {
    let mut state = Plant { reports: 6 };
    let skill = all_skills(1 << 16).pop().unwrap();
    let mut active = activate(skill, 1 << 16);
    let today = active.resolve("today.md").unwrap();
    let response = ask(&SERVICE, &mut state, 1 << 16, "resources/read", &uri(&today));
    assert_eq!(active.file(&today, outcome(&response).unwrap()).unwrap(), b"report 7");
    assert_eq!(outcome(&plant(1 << 16, "resources/read", &uri("skill://report/x"))).unwrap_err(), -32602);
}

#[test]
fn the_extension_is_declared_with_resources() {
    let response = plant(1 << 16, "server/discover", "");
    let capabilities = outcome(&response).unwrap().get("capabilities").unwrap();
    assert!(SkillsCapability::of(capabilities).unwrap().directory_read && capabilities.get("resources").is_some());
    let response = plant(1 << 16, "resources/list", "");
    let list = ListResourcesResult::of(outcome(&response).unwrap()).unwrap();
    let listed: BTreeMap<String, String> = list
        .iter()
        .map(Result::unwrap)
        .map(|resource| (resource.uri().to_string(), resource.description().unwrap().to_string()))
        .collect();
    assert_eq!(listed.get("skill://plant/pump/SKILL.md").unwrap(), "How to run the \"pump\"");
}

#[test]
fn a_table_that_a_client_would_refuse_is_found() {
    let other = ServedSkill::new("skill://pump/SKILL.md", "Something else", &PUMP_FILES);
    assert_eq!(other.check(), Err(SkillError::FrontMatterDiffers("description".into())));
    let fewer = ServedSkill::new("skill://pump/SKILL.md", "How to run the \"pump\"", &PUMP_FILES);
    assert_eq!(fewer.check(), Err(SkillError::FrontMatterDiffers("license".into())));
    let name = ServedSkill::new("skill://other/SKILL.md", "A nested skill", &INNER_FILES);
    assert_eq!(name.check(), Err(SkillError::FrontMatterDiffers("name".into())));
}
