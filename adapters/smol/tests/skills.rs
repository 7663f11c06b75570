//! A host that loads skills with the client: a process serves them, and each file is verified.
#![cfg(all(feature = "client", unix))]

use std::process::Command;
use std::time::Duration;

use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::service::{Extension, Resource, ResourceTemplate, Service};
use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};
use mcp_sansio_extensions::skills::{Skill, SkillError, SkillLimits, SkillsCapability, SkillsPage, capability};
use mcp_sansio_smol::Serve;
use mcp_sansio_smol::client::{Child, Client, Ignore, OwnedResult};
use smol::{Timer, future};

const LIMITS: SkillLimits = SkillLimits::DEFAULT;
static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

struct Plant;

/// No text.
static PICTURE: [u8; 4] = [0xff, 0, 0xfe, b'"'];
static PUMP: [SkillFile; 3] = [
    SkillFile::markdown(
        "SKILL.md",
        b"---\nname: pump\ndescription: How to run the pump\n---\nSee [errors](errors/list.md).\n",
    ),
    SkillFile::markdown("errors/list.md", "E1: no \u{1f4a7}\n".as_bytes()),
    SkillFile::new("valve.png", "image/png", &PICTURE),
];
static REFUNDS: [SkillFile; 1] =
    [SkillFile::markdown("SKILL.md", b"---\nname: refunds\ndescription: How to refund an order\n---\nAsk first.\n")];
static SKILLS: [ServedSkill; 2] = [
    ServedSkill::new("skill://pump/SKILL.md", "How to run the pump", &PUMP),
    ServedSkill::new("skill://refunds/SKILL.md", "How to refund an order", &REFUNDS),
];

impl ServeSkills for Plant {
    const SKILLS: &'static [ServedSkill] = &SKILLS;
    const PAGE: usize = 1;
}

static EXTENSIONS: [Extension<Plant>; 1] = [server::extension()];
static RESOURCES: [Resource<Plant>; 2] = [server::resource(&SKILLS[0]), server::resource(&SKILLS[1])];
static TEMPLATES: [ResourceTemplate<Plant>; 1] = [server::template("skill://{+path}")];

/// A server: this program runs it when [`child`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    let service = Service::new("plant", "1").extend(&EXTENSIONS).resources(&RESOURCES).templates(&TEMPLATES);
    smol::block_on(Serve::new(&service).stdio(&mut Plant)).unwrap();
}

fn child() -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    Child::spawn(command, &PROFILE).unwrap()
}

async fn read(client: &Client, uri: &str) -> OwnedResult {
    client.request(Request::read(uri)).await.unwrap()
}

/// Returns the skills of all pages, and the number of pages.
async fn listed(client: &Client) -> (Vec<Skill>, usize) {
    let (mut skills, mut count) = (Vec::new(), 0);
    let mut pages = client.pages(Request::raw(capability::LIST, None));
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        skills.extend(SkillsPage::of(page.raw()).unwrap().skills(&LIMITS).map(Result::unwrap));
        count += 1;
    }
    (skills, count)
}

async fn load_all(client: Client) {
    let hello = client.connect().await.unwrap();
    assert!(hello.capabilities().and_then(SkillsCapability::of).is_some());
    let (skills, pages) = listed(&client).await;
    assert_eq!(pages, 2);
    assert_eq!(skills.iter().map(Skill::name).collect::<Vec<_>>(), ["pump", "refunds"]);

    for (skill, files) in skills.into_iter().zip([PUMP.as_slice(), &REFUNDS]) {
        let uri = skill.uri().to_owned();
        let params = format!("{{\"uri\":\"{uri}\"}}");
        let params = Raw::parse(params.as_bytes()).unwrap();
        let got = client.request(Request::raw(capability::GET, Some(params))).await.unwrap();
        assert_eq!(Skill::of_get(got.raw(), &uri, &LIMITS).unwrap().fingerprint(), skill.fingerprint());

        let mut active = skill.activate(read(&client, &uri).await.raw(), &LIMITS).unwrap();
        assert_eq!(active.skill_md().as_bytes(), files[0].bytes);
        assert_eq!(active.skill().files().len(), files.len());
        for file in &files[1..] {
            let uri = active.resolve(file.path).unwrap();
            let bytes = active.file(&uri, read(&client, &uri).await.raw()).unwrap();
            assert_eq!(bytes, file.bytes, "{uri}");
        }
    }
    client.close().await;
}

/// The entry decides which bytes are taken.
async fn refuse(client: Client) {
    client.connect().await.unwrap();
    let (skills, _) = listed(&client).await;
    let [pump, refunds] = <[Skill; 2]>::try_from(skills).unwrap();
    let other = read(&client, refunds.uri()).await;
    assert!(pump.clone().activate(other.raw(), &LIMITS).is_err());

    let own = read(&client, pump.uri()).await;
    let mut active = pump.activate(own.raw(), &LIMITS).unwrap();
    let picture = active.resolve("valve.png").unwrap();
    assert!(active.file(&picture, own.raw()).is_err());
    assert!(matches!(active.resolve("more.md"), Err(SkillError::Unlisted(_))));
    assert!(client.request(Request::read("skill://pump/more.md")).await.is_err());
    client.close().await;
}

/// Runs a test beside the driver. A test that hangs fails.
fn run<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Client) -> F) {
    let (client, driver) = Client::new(child(), Ignore);
    smol::block_on(future::or(
        async {
            let driver = smol::spawn(driver);
            // The future of a test can be moved to another thread.
            smol::spawn(test(client)).await;
            driver.await;
        },
        async {
            Timer::after(Duration::from_secs(60)).await;
            panic!("it hangs")
        },
    ));
}

#[test]
fn all_skills_are_loaded() {
    run(load_all);
}

#[test]
fn only_listed_files_are_taken() {
    run(refuse);
}
