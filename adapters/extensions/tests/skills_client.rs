//! A host with skills: what it loads, and what it refuses.
#![cfg(feature = "skills-client")]

use mcp_sansio::FullError;
use mcp_sansio::json::{Raw, write};
use mcp_sansio::sink::Sink;
use mcp_sansio_extensions::skills::front_matter::FrontMatterError;
use mcp_sansio_extensions::skills::{
    ActiveSkill, Catalog, Digest, Refreshed, Skill, SkillError, SkillId, SkillLimits, SkillResources, SkillsPage,
};

const LIMITS: SkillLimits = SkillLimits::DEFAULT;
const SKILL_MD: &str =
    "---\nname: forms\ndescription: Fills in forms\nmetadata:\n  author: me\n---\nSee [a](references/A.md).\n";
const FRONTMATTER: &str = r#"{"name":"forms","description":"Fills in forms","metadata":{"author":"me"}}"#;
const URI: &str = "skill://acme/forms/SKILL.md";
const DIRECTORY: &str = "skill://acme/forms";
/// Not UTF-8.
const PICTURE: &[u8] = &[0x89, b'P', 0, 0xff, 0xfe, 1];

fn file(path: &str, bytes: &[u8]) -> String {
    let digest = Digest::of(bytes);
    format!(r#"{{"uri":"{DIRECTORY}/{path}","digest":"{digest}","size":{}}}"#, bytes.len())
}

fn entry_of(frontmatter: &str, resources: &str) -> String {
    format!(r#"{{"uri":"{URI}","frontmatter":{frontmatter},"resources":{resources}}}"#)
}

/// The entry of a skill with these files besides its `SKILL.md`.
fn entry(more: &[String]) -> String {
    let files = [&[file("SKILL.md", SKILL_MD.as_bytes())], more].concat();
    entry_of(FRONTMATTER, &format!("[{}]", files.join(",")))
}

fn read(json: &str) -> Result<Skill, SkillError> {
    Skill::of(raw(json), &LIMITS)
}

fn raw(json: &str) -> Raw<'_> {
    Raw::parse(json.as_bytes()).unwrap()
}

/// A sink without a limit.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

fn written(write: impl FnOnce(&mut Bytes) -> Result<(), FullError>) -> String {
    let mut bytes = Bytes(Vec::new());
    write(&mut bytes).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

fn text_result(uri: &str, text: &str) -> String {
    let quoted = written(|out| write::string(out, text));
    format!(r#"{{"contents":[{{"uri":"{uri}","text":{quoted}}}]}}"#)
}

fn blob_result(uri: &str, bytes: &[u8]) -> String {
    let text = written(|out| write::base64(out, bytes));
    format!(r#"{{"contents":[{{"uri":"{uri}","blob":"{text}"}}]}}"#)
}

fn activate(entry: &str, skill_md: &str) -> Result<ActiveSkill, SkillError> {
    read(entry)?.activate(raw(&text_result(URI, skill_md)), &LIMITS)
}

#[test]
fn a_good_skill_loads_with_its_files() {
    let entry = entry(&[file("references/A.md", b"guide"), file("my%20picture.png", PICTURE)]);
    let skill = read(&entry).unwrap();
    assert_eq!((skill.name(), skill.description(), skill.files().len()), ("forms", "Fills in forms", 3));
    assert_eq!(skill.frontmatter().as_str(), FRONTMATTER);
    let mut active = activate(&entry, SKILL_MD).unwrap();
    assert_eq!((active.skill_md(), active.instructions()), (SKILL_MD, "See [a](references/A.md).\n"));

    let guide = active.resolve("references/A.md").unwrap();
    assert_eq!(guide, "skill://acme/forms/references/A.md");
    assert_eq!(active.file(&guide, raw(&text_result(&guide, "guide"))).unwrap(), b"guide");
    // Text may come as a blob: the bytes count.
    assert_eq!(active.file(&guide, raw(&blob_result(&guide, b"guide"))).unwrap(), b"guide");
    for reference in [
        "my picture.png",
        "./my%20picture.png",
        "references/../my picture.png#top",
        &format!("{DIRECTORY}/my%20picture.png"),
    ] {
        let picture = active.resolve(reference).unwrap();
        assert_eq!(active.skill().path_of(&picture).as_deref(), Some("my picture.png"));
        assert_eq!(active.file(&picture, raw(&blob_result(&picture, PICTURE))).unwrap(), PICTURE);
    }
}

#[test]
fn a_changed_skill_md_is_refused() {
    let entry = entry(&[]);
    let same_length = SKILL_MD.replace("See", "Run");
    assert_eq!(activate(&entry, &same_length), Err(SkillError::Digest(URI.into())));
    let longer = format!("{SKILL_MD}!");
    let (expected, found) = (SKILL_MD.len() as u64, SKILL_MD.len() as u64 + 1);
    assert_eq!(activate(&entry, &longer), Err(SkillError::Size { uri: URI.into(), expected, found }));
    let shorter = &SKILL_MD[..SKILL_MD.len() - 1];
    assert!(matches!(activate(&entry, shorter), Err(SkillError::Size { .. })));
}

#[test]
fn each_field_of_the_front_matter_is_compared() {
    let files = format!("[{}]", file("SKILL.md", SKILL_MD.as_bytes()));
    for (frontmatter, field) in [
        (FRONTMATTER.replace("Fills in", "Throws away"), "description"),
        (FRONTMATTER.replace("me\"}", "you\"}"), "metadata"),
        (FRONTMATTER.replace(r#","metadata":{"author":"me"}"#, ""), "metadata"),
        (FRONTMATTER.replace("}}", r#"},"allowed-tools":"Bash"}"#), "allowed-tools"),
    ] {
        let result = activate(&entry_of(&frontmatter, &files), SKILL_MD);
        assert_eq!(result, Err(SkillError::FrontMatterDiffers(field.into())), "{frontmatter}");
    }
    for (text, error) in [("no front matter", FrontMatterError::Missing), ("---\na: *b\n---\n", FrontMatterError::Yaml)]
    {
        let entry = entry_of(FRONTMATTER, &format!("[{}]", file("SKILL.md", text.as_bytes())));
        assert_eq!(activate(&entry, text), Err(SkillError::FrontMatter(error)));
    }
    let limits = LIMITS.front_matter(10);
    let result = read(&entry(&[])).unwrap().activate(raw(&text_result(URI, SKILL_MD)), &limits);
    assert_eq!(result, Err(FrontMatterError::TooLarge.into()));
}

#[test]
fn only_the_content_of_that_file_counts() {
    let skill = read(&entry(&[])).unwrap();
    let good = text_result(URI, SKILL_MD);
    let content = good.strip_prefix(r#"{"contents":["#).and_then(|rest| rest.strip_suffix("]}")).unwrap();
    for wrong in [
        "{}".to_owned(),
        r#"{"contents":[]}"#.to_owned(),
        format!(r#"{{"contents":[{content},{content}]}}"#),
        text_result("skill://acme/other/SKILL.md", SKILL_MD),
        format!(r#"{{"contents":[{{"uri":"{URI}"}}]}}"#),
        format!(r#"{{"contents":[{{"uri":"{URI}","blob":"?"}}]}}"#),
        good.replacen("\"text\"", "\"blob\":\"\",\"text\"", 1),
        good.replace("See", "\\ud800"),
    ] {
        let result = skill.clone().activate(raw(&wrong), &LIMITS);
        assert_eq!(result, Err(SkillError::Contents(URI.into())), "{wrong}");
    }
}

#[test]
fn unlisted_files_are_refused() {
    let mut active = activate(&entry(&[file("a.md", b"a")]), SKILL_MD).unwrap();
    let unlisted = "skill://acme/forms/b.md".to_owned();
    let error = active.resolve("b.md").unwrap_err();
    assert!(error == SkillError::Unlisted(unlisted.clone()) && error.is_stale());
    // Also if the server sends it all the same.
    assert_eq!(active.file(&unlisted, raw(&text_result(&unlisted, "b"))), Err(SkillError::Unlisted(unlisted.clone())));
    for outside in [
        "../other/SKILL.md",
        "a/../../x",
        "/etc/passwd",
        "https://example.com/x",
        "skill://acme/other/a.md",
        "",
        "#part",
        "a\\b",
        "..",
    ] {
        assert_eq!(active.resolve(outside), Err(SkillError::Reference(outside.into())), "{outside}");
    }
}

#[test]
fn a_stale_entry_is_refreshed() {
    let old = entry(&[file("a.md", b"old")]);
    let new = entry(&[file("a.md", b"new"), file("b.md", b"b")]);
    let mut active = activate(&old, SKILL_MD).unwrap();
    let uri = active.resolve("a.md").unwrap();
    let error = active.file(&uri, raw(&text_result(&uri, "new"))).unwrap_err();
    assert!(error == SkillError::Digest(uri.clone()) && error.is_stale());

    let result = |entry: &str| format!(r#"{{"skill":{entry},"ttlMs":0,"cacheScope":"private"}}"#);
    let approved = active.skill().fingerprint();
    let Refreshed::Changed(skill) = active.clone().refresh(raw(&result(&new))).unwrap() else { panic!() };
    assert_ne!(skill.fingerprint(), approved);
    let mut fresh = skill.activate(raw(&text_result(URI, SKILL_MD)), &LIMITS).unwrap();
    assert_eq!(fresh.file(&uri, raw(&text_result(&uri, "new"))).unwrap(), b"new");
    assert!(fresh.resolve("b.md").is_ok());

    // The server has sent wrong bytes: the entry is current, so the file stays refused.
    let Refreshed::Same(same) = active.clone().refresh(raw(&result(&old))).unwrap() else { panic!() };
    assert_eq!(same, active);
    let other = new.replace("acme/forms", "evil/forms");
    let error = active.clone().refresh(raw(&result(&other))).unwrap_err();
    assert_eq!(error, SkillError::OtherSkill("skill://evil/forms/SKILL.md".into()));
    assert_eq!(active.refresh(raw("{}")), Err(SkillError::Member("skill")));
}

#[test]
fn an_approval_holds_for_these_files() {
    let fingerprint = |more: &[String]| read(&entry(more)).unwrap().fingerprint().unwrap();
    let (a, b) = (file("a", b"1"), file("b", b"2"));
    assert_eq!(fingerprint(&[a.clone(), b.clone()]), fingerprint(&[b.clone(), a.clone()]));
    assert_ne!(fingerprint(&[a.clone(), b.clone()]), fingerprint(std::slice::from_ref(&a)));
    assert_ne!(fingerprint(&[a.clone(), b]), fingerprint(&[file("a", b"2"), file("b", b"1")]));
    assert_eq!(read(&entry_of(FRONTMATTER, "\"dynamic\"")).unwrap().fingerprint(), None);
}

#[test]
fn dynamic_skills() {
    let entry = entry_of(FRONTMATTER, "\"dynamic\"");
    let skill = read(&entry).unwrap();
    assert_eq!((skill.resources(), skill.files().len()), (&SkillResources::Dynamic, 0));
    let result = text_result(URI, SKILL_MD);
    assert_eq!(skill.clone().activate(raw(&result), &LIMITS.dynamic(false)), Err(SkillError::Dynamic));
    // Its front matter is compared all the same.
    let changed = SKILL_MD.replace("Fills", "Burns");
    let error = skill.clone().activate(raw(&text_result(URI, &changed)), &LIMITS).unwrap_err();
    assert_eq!(error, SkillError::FrontMatterDiffers("description".into()));

    let limit = SKILL_MD.len() as u64 + 5;
    let mut active = skill.activate(raw(&result), &LIMITS.total_size(limit)).unwrap();
    let uri = active.resolve("today.md").unwrap();
    assert_eq!(active.file(&uri, raw(&text_result(&uri, "123"))).unwrap(), b"123");
    assert_eq!(active.file(&uri, raw(&text_result(&uri, "123"))), Err(SkillError::TooLarge { limit }));
    assert_eq!(active.file(&uri, raw(&text_result(&uri, "12"))).unwrap(), b"12");
    let outside = "skill://acme/other/x";
    assert_eq!(active.file(outside, raw(&text_result(outside, ""))), Err(SkillError::Outside(outside.into())));
    // No digest says that the files are the same as before.
    let get = format!(r#"{{"skill":{entry}}}"#);
    assert!(matches!(active.refresh(raw(&get)), Ok(Refreshed::Changed(_))));
}

#[test]
fn nested_skills_are_files_of_the_outer_one() {
    let inner = "---\nname: inner\ndescription: x\nallowed-tools: Bash\n---\n";
    let mut active = activate(&entry(&[file("inner/SKILL.md", inner.as_bytes())]), SKILL_MD).unwrap();
    let uri = active.resolve("inner/SKILL.md").unwrap();
    assert_eq!(active.file(&uri, raw(&text_result(&uri, inner))).unwrap(), inner.as_bytes());
    assert_eq!(active.skill().frontmatter().as_str(), FRONTMATTER);
}

#[test]
fn entries_that_break_a_rule() {
    let skill_md = file("SKILL.md", SKILL_MD.as_bytes());
    let listed = |files: &[&str]| entry_of(FRONTMATTER, &format!("[{}]", files.join(",")));
    let good = entry(&[]);
    let named = |name: &str| good.replace("\"name\":\"forms\"", &format!("\"name\":\"{name}\""));
    let described = |text: &str| good.replace("Fills in forms", text);
    let a = file("a", b"a");
    let outside = a.replace("acme/forms/a", "acme/forms2/a");
    let up = a.replace("forms/a", "forms/../a");
    let encoded = a.replace("forms/a", "forms/%61");
    for (json, error) in [
        ("[]".to_owned(), SkillError::Member("uri")),
        (good.replacen(URI, "skill://acme/forms", 1), SkillError::Uri("skill://acme/forms".into())),
        (good.replacen("\"frontmatter\":", "\"frontMatter\":", 1), SkillError::Member("frontmatter")),
        (named("Forms"), SkillError::Name("Forms".into())),
        (named("form"), SkillError::NameInUri(URI.into())),
        (good.replace("\"name\":\"forms\"", "\"name\":7"), SkillError::Member("name")),
        (good.replace("description", "about"), SkillError::Member("description")),
        (described(""), SkillError::Description),
        (described(&"é".repeat(1025)), SkillError::Description),
        (good.replacen("\"resources\":", "\"files\":", 1), SkillError::Member("resources")),
        (entry_of(FRONTMATTER, "\"static\""), SkillError::Member("resources")),
        (entry_of(FRONTMATTER, "null"), SkillError::Member("resources")),
        (listed(&[]), SkillError::NoSkillMd),
        (listed(&[&a]), SkillError::NoSkillMd),
        (listed(&[&skill_md, &outside]), SkillError::Outside("skill://acme/forms2/a".into())),
        (listed(&[&skill_md, &up]), SkillError::Outside("skill://acme/forms/../a".into())),
        (listed(&[&skill_md, &a, &a]), SkillError::ListedTwice("skill://acme/forms/a".into())),
        (listed(&[&skill_md, &a, &encoded]), SkillError::ListedTwice("skill://acme/forms/%61".into())),
        (listed(&[&skill_md, &a.replace("\"size\":1", "\"size\":-1")]), SkillError::Member("size")),
        (listed(&[&skill_md, &a.replace("\"size\":1", "\"size\":1.5")]), SkillError::Member("size")),
        (listed(&[&skill_md, &a.replace(",\"size\":1", "")]), SkillError::Member("size")),
        (listed(&[&skill_md, &a.replace("digest", "hash")]), SkillError::Member("digest")),
        (listed(&[&skill_md, &a.replace("sha256:", "")]), {
            SkillError::DigestFormat(Digest::of(b"a").to_string().replace("sha256:", ""))
        }),
        (listed(&[&skill_md, &a.replace("\"size\":1", "\"size\":16777216")]), SkillError::TooLarge { limit: 16 << 20 }),
    ] {
        assert_eq!(read(&json), Err(error), "{json}");
    }
    assert!(read(&described(&"é".repeat(1024))).is_ok());
}

#[test]
fn limits_are_those_of_the_specification_and_of_the_caller() {
    let files = |n: usize| (0..n).map(|i| file(&format!("{i}"), b"")).collect::<Vec<_>>();
    assert_eq!(read(&entry(&files(511))).unwrap().files().len(), 512);
    assert_eq!(read(&entry(&files(512))), Err(SkillError::TooManyFiles { limit: 512 }));
    let four = entry(&files(3));
    assert!(Skill::of(raw(&four), &LIMITS.files(4)).is_ok());
    assert_eq!(Skill::of(raw(&four), &LIMITS.files(3)), Err(SkillError::TooManyFiles { limit: 3 }));
    let rest = (16 << 20) - SKILL_MD.len();
    let large = |size: usize| entry(&[file("a", b"").replace("\"size\":0", &format!("\"size\":{size}"))]);
    assert!(read(&large(rest)).is_ok() && read(&large(rest + 1)).is_err());
    assert!(Skill::of(raw(&large(rest + 1)), &LIMITS.total_size(17 << 20)).is_ok());
    // The sum cannot overflow.
    let huge = file("a", b"").replace("\"size\":0", "\"size\":18446744073709551615");
    let both = entry(&[huge.clone(), huge.replace("forms/a", "forms/b")]);
    assert_eq!(
        Skill::of(raw(&both), &LIMITS.total_size(u64::MAX - 1)),
        Err(SkillError::TooLarge { limit: u64::MAX - 1 })
    );
}

#[test]
fn a_broken_entry_does_not_hide_the_others() {
    let page = format!(r#"{{"skills":[{},{{}},{}]}}"#, entry(&[]), entry(&[]).replace("acme", "other"));
    let page = SkillsPage::of(raw(&page)).unwrap();
    let skills: Vec<_> = page.skills(&LIMITS).collect();
    assert!(matches!(&skills[..], [Ok(_), Err(SkillError::Member("uri")), Ok(_)]) && page.next_cursor.is_none());
    assert!(SkillsPage::of(raw(r#"{"skills":{}}"#)).is_err());
}

#[test]
fn equal_names_and_equal_uris_stay_apart() {
    let forms = read(&entry(&[])).unwrap();
    let other = read(&entry(&[]).replace("acme", "other")).unwrap();
    let mut catalog = Catalog::new();
    catalog.add("work", forms.clone()).unwrap();
    catalog.add("home", forms.clone()).unwrap();
    assert_eq!(catalog.add("work", forms.clone()), Err(SkillError::ListedTwice(URI.into())));
    let labels = |catalog: &Catalog| catalog.named("forms").map(|(id, _)| catalog.label(id)).collect::<Vec<_>>();
    assert_eq!(labels(&catalog), ["home/forms", "work/forms"]);

    // Two of one server with one name: neither has the short label any more.
    catalog.add("work", other.clone()).unwrap();
    assert_eq!(
        labels(&catalog),
        ["home/forms", "work/skill://acme/forms/SKILL.md", "work/skill://other/forms/SKILL.md"]
    );
    for label in labels(&catalog) {
        assert_eq!(catalog.label(catalog.labelled(&label).unwrap().0), label);
    }
    assert!(catalog.labelled("work/forms").is_none() && catalog.labelled("forms").is_none());

    // A skill of another server is not found by its URI alone.
    assert!(catalog.get(&SkillId::new("home", other.uri())).is_none());
    let changed = read(&entry(&[file("a", b"a")])).unwrap();
    assert_eq!(catalog.refresh("home", changed.clone()), Some(forms.clone()));
    assert_eq!(catalog.get(&SkillId::new("home", URI)), Some(&changed));
    assert_eq!(catalog.get(&SkillId::new("work", URI)), Some(&forms));
    catalog.remove_server("work");
    assert_eq!(labels(&catalog), ["home/forms"]);

    // What was removed does not count for what comes later.
    assert_eq!(catalog.refresh("work", other.clone()), None);
    assert_eq!(labels(&catalog), ["home/forms", "work/forms"]);
    assert_eq!(catalog.labelled("work/forms").map(|(id, _)| id.uri.as_str()), Some(other.uri()));
}

#[test]
fn errors_are_plain_text() {
    let error = SkillError::Unlisted("skill://x/\u{1b}[2J".to_owned() + &"y".repeat(1000));
    let text = error.to_string();
    assert!(text.starts_with(r"skill://x/\u{1b}[2J") && text.len() < 300 && text.is_char_boundary(200), "{text}");
}
