//! A server with skills: their files are in the program. Run it as `skills` or `skills http PORT`.
use mcp_sansio::service::{Extension, Resource, ResourceTemplate, Service};
use mcp_sansio_blocking::{http::HttpServer, serve_stdio};
use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};

struct Plant;

static PUMP: [SkillFile; 3] = [
    SkillFile::markdown("SKILL.md", include_bytes!("files/pump/SKILL.md")),
    SkillFile::markdown("references/errors.md", include_bytes!("files/pump/references/errors.md")),
    SkillFile::new("assets/valve.png", "image/png", include_bytes!("files/pump/assets/valve.png")),
];
static REFUNDS: [SkillFile; 1] = [SkillFile::markdown("SKILL.md", include_bytes!("files/acme/refunds/SKILL.md"))];

static SKILLS: [ServedSkill; 2] = [
    ServedSkill::new("skill://pump/SKILL.md", "How to run the \"pump\", and what to do when it stops", &PUMP).fields(
        r#"{"license":"MIT","allowed-tools":"run stop","metadata":{"version":"1.50","reviewed":"2026-11-01"},"x-valves":["inlet",7,1.5,true,null]}"#,
    ),
    ServedSkill::new("skill://acme/refunds/SKILL.md", "How to refund an order: who may, and how much", &REFUNDS),
];

impl ServeSkills for Plant {
    const SKILLS: &'static [ServedSkill] = &SKILLS;
    // Small, so that clients have to ask for a second page.
    const PAGE: usize = 1;
}

static EXTENSIONS: [Extension<Plant>; 1] = [server::extension()];
static RESOURCES: [Resource<Plant>; 2] = [server::resource(&SKILLS[0]), server::resource(&SKILLS[1])];
static TEMPLATES: [ResourceTemplate<Plant>; 1] = [server::template("skill://{+path}")];

fn main() -> std::io::Result<()> {
    let service = Service::new("plant", env!("CARGO_PKG_VERSION"))
        .extend(&EXTENSIONS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES);
    match std::env::args().nth(2) {
        Some(port) => HttpServer::bind(format!("127.0.0.1:{port}"))?.serve(&service, &mut Plant),
        None => serve_stdio(&service, &mut Plant),
    }
}

#[cfg(test)]
mod tests {
    /// The table says the same as the front matter of the files.
    #[test]
    fn a_client_accepts_the_table() {
        for skill in &super::SKILLS {
            assert_eq!(skill.check(), Ok(()), "{}", skill.uri);
        }
    }
}
