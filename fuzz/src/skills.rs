//! Skills from a server that may send anything: entries, front matter, files and references.

use mcp_sansio::json::Raw;
use mcp_sansio_extensions::skills::digest::Digest;
use mcp_sansio_extensions::skills::front_matter::{FrontMatter, split};
use mcp_sansio_extensions::skills::uri::SkillUri;
use mcp_sansio_extensions::skills::{ActiveSkill, Catalog, Refreshed, Skill, SkillId, SkillLimits, SkillsPage};

use crate::arguments::base64;

const LIMITS: SkillLimits = SkillLimits::DEFAULT;
const URI: &str = "skill://a/SKILL.md";
/// A second file, with bytes.
const FILE: &str = "skill://a/b/c.bin";

/// Reads the bytes as an entry and as a page. An accepted entry has a name, and its files are within its directory.
fn entries(data: &[u8]) {
    let Ok(json) = Raw::parse(data) else { return };
    let page = SkillsPage::of(json);
    let mut catalog = Catalog::new();
    for skill in page.iter().flat_map(|page| page.skills(&LIMITS)) {
        match skill {
            // The second server has a label that looks like a part of a path.
            Ok(skill) => {
                let known = catalog.get(&SkillId::new("a", skill.uri())).is_some();
                assert_eq!(catalog.add("a", skill.clone()).is_err(), known);
                assert_eq!(catalog.refresh("a/skill:", skill).is_some(), known);
            }
            Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
        }
    }
    let labels: Vec<_> = catalog.iter().map(|(id, _)| (id, catalog.label(id))).collect();
    for (id, label) in &labels {
        // One label, one skill; a label that two have finds none.
        let is_alone = labels.iter().filter(|(_, other)| other == label).count() == 1;
        assert_eq!(catalog.labelled(label).map(|(found, _)| found), is_alone.then_some(*id), "{label}");
    }
    for skill in page.iter().flat_map(|page| page.skills(&LIMITS)).chain([Skill::of(json, &LIMITS)]).flatten() {
        let place = SkillUri::of(skill.uri()).expect("the URI of a SKILL.md");
        assert_eq!(place.name(), skill.name());
        assert!(!skill.description().is_empty());
        assert!(skill.is_dynamic() || skill.files().iter().any(|file| file.uri == skill.uri()));
        for file in skill.files() {
            let path = skill.path_of(&file.uri).expect("a file of the skill");
            assert!(path.split('/').all(|segment| !matches!(segment, "" | "." | "..")), "{path}");
        }
    }
}

/// Makes the entry of a file.
fn listed(uri: &str, bytes: &[u8]) -> String {
    let digest = Digest::of(bytes);
    assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    format!(r#"{{"uri":"{uri}","size":{},"digest":"{digest}"}}"#, bytes.len())
}

/// Makes an entry with `frontmatter` for these bytes of a `SKILL.md`, and a file with those of `reference`. If they are loaded, other
/// bytes are not, and references lead to no file that is not listed. Returns whether they are loaded.
fn activation(frontmatter: &str, skill_md: &str, reference: &str) -> bool {
    let files = [listed(URI, skill_md.as_bytes()), listed(FILE, reference.as_bytes())].join(",");
    let text = format!(r#"{{"uri":"{URI}","frontmatter":{frontmatter},"resources":[{files}]}}"#);
    let Ok(entry) = Raw::parse(text.as_bytes()) else { return false };
    let Ok(skill) = Skill::of(entry, &LIMITS) else { return false };
    let result = |text: &str| {
        let text = serde_json::to_string(text).expect("a string");
        format!(r#"{{"contents":[{{"uri":"{URI}","text":{text}}}]}}"#)
    };
    let other = result(&format!("{skill_md} "));
    assert!(skill.clone().activate(Raw::parse(other.as_bytes()).expect("JSON"), &LIMITS).is_err());
    let same = result(skill_md);
    let Ok(mut active) = skill.activate(Raw::parse(same.as_bytes()).expect("JSON"), &LIMITS) else { return false };
    assert_eq!(active.skill_md(), skill_md);
    assert!(skill_md.ends_with(active.instructions()));
    let (yaml, _) = split(skill_md.as_bytes()).expect("it was split before");
    let read = FrontMatter::read(yaml).expect("it was read before");
    assert_eq!(read.difference(active.skill().frontmatter()), None);
    assert_eq!(read.text("name"), Some(active.skill().name()));
    if let Ok(uri) = active.resolve(reference) {
        assert!([URI, FILE].contains(&&*uri), "{uri}");
    }
    file(&mut active, reference.as_bytes());
    generated(&text, Raw::parse(same.as_bytes()).expect("JSON"));
    refreshed(active, &text, reference);
    true
}

/// Reads the second file: it is taken if and only if it has these bytes.
fn file(active: &mut ActiveSkill, bytes: &[u8]) {
    let mut read = |uri: &str, bytes: &[u8]| {
        let result = format!(r#"{{"contents":[{{"uri":"{uri}","blob":"{}"}}]}}"#, base64(bytes));
        active.file(uri, Raw::parse(result.as_bytes()).expect("JSON"))
    };
    assert_eq!(read(FILE, bytes).as_deref(), Ok(bytes));
    let mut other = bytes.to_vec();
    other.push(b'x');
    assert!(read(FILE, &other).is_err() && read("skill://a/other", bytes).is_err());
    other.truncate(bytes.len());
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
        assert!(read(FILE, &other).is_err());
    }
    let several = format!(r#"{{"contents":[{{"uri":"{FILE}","blob":""}},{{"uri":"{FILE}","blob":""}}]}}"#);
    assert!(active.file(FILE, Raw::parse(several.as_bytes()).expect("JSON")).is_err());
}

/// Reads the entry again, and another one: only the same one leaves the skill as it is.
fn refreshed(active: ActiveSkill, entry: &str, other: &str) {
    let is_same = |active: ActiveSkill, entry: &str| {
        let result = format!(r#"{{"skill":{entry}}}"#);
        let refreshed = active.refresh(Raw::parse(result.as_bytes()).ok()?).ok()?;
        Some(matches!(refreshed, Refreshed::Same(_)))
    };
    let digest = active.skill().fingerprint().expect("its files are listed");
    assert_eq!(is_same(active.clone(), entry), Some(true));
    // Without the second file.
    let (start, _) = entry.rsplit_once(",{").expect("two files");
    let shorter = format!("{start}]}}");
    assert_eq!(is_same(active.clone(), &shorter), Some(false));
    let shorter = Skill::of(Raw::parse(shorter.as_bytes()).expect("JSON"), &LIMITS).expect("an entry");
    assert_ne!(shorter.fingerprint(), Some(digest));
    let _ = is_same(active, other);
}

/// The same skill with generated files: it is loaded only where these are accepted, and only files in its directory are.
fn generated(entry: &str, skill_md: Raw<'_>) {
    let entry =
        format!(r#"{},"resources":"dynamic"}}"#, entry.rsplit_once(r#","resources":"#).expect("it has files").0);
    let skill = Skill::of(Raw::parse(entry.as_bytes()).expect("JSON"), &LIMITS).expect("an entry");
    assert!(skill.is_dynamic() && skill.fingerprint().is_none());
    assert!(skill.clone().activate(skill_md, &LIMITS.dynamic(false)).is_err());
    let mut active = skill.activate(skill_md, &LIMITS.dynamic(true)).expect("it was loaded before");
    let result = |uri: &str| format!(r#"{{"contents":[{{"uri":"{uri}","blob":"AAAA"}}]}}"#);
    for (uri, is_within) in [(FILE, true), ("skill://a/../b", false), ("skill://b/c", false)] {
        let read = active.file(uri, Raw::parse(result(uri).as_bytes()).expect("JSON"));
        assert_eq!(read.ok(), is_within.then(|| vec![0; 3]), "{uri}");
    }
}

/// The bytes are an entry; and a front matter in JSON, a `SKILL.md` and a reference, each ended by a zero. Returns whether
/// the `SKILL.md` is loaded.
pub(crate) fn run(data: &[u8]) -> bool {
    entries(data);
    if let Ok((yaml, body)) = split(data) {
        assert!(data.ends_with(body.as_bytes()));
        let _ = FrontMatter::read(yaml);
    }
    let Ok(text) = core::str::from_utf8(data) else { return false };
    let _ = (SkillUri::of(text), Digest::parse(text), FrontMatter::read(text));
    let mut parts = text.splitn(3, '\0');
    let [frontmatter, skill_md, reference] = [(); 3].map(|()| parts.next().unwrap_or_default());
    activation(frontmatter, skill_md, reference)
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_reach_what_they_are_for() {
        assert!(super::run(include_bytes!("../corpus/skills/loads")));
        assert!(super::run(include_bytes!("../corpus/skills/leads_out")));
        assert!(!super::run(include_bytes!("../corpus/skills/another_front_matter")));
    }
}
