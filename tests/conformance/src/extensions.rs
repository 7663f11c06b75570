//! The scenario `server-legacy-extensions`: the server names extensions at 2025-11-25, and a tool repeats those of the client. A layer
//! notes them, since they come with `initialize` alone.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mcp_sansio::json::Raw;
use mcp_sansio::service::{
    Call, Caller, DynamicList, HandlerError, HandlerResult, Layer, LayerRequest, Receipt, Service, Tool, ToolInfo,
};
use mcp_sansio_conformance_fixture::Fixture;

/// The service of the suites with this tool.
pub(crate) const SERVICE: Service<'static, Fixture> = mcp_sansio_conformance_fixture::SERVICE
    .extensions(Raw::constant(
        r#"{"io.modelcontextprotocol/ui":{},"com.example/conformance":{"nested":{"enabled":true,"limit":3},"values":[null,"b",4]},"com.example/empty":{}}"#,
    ))
    .dynamic_tools(&Report)
    .layers(&[&Note]);

const REPORT: &str = "test_legacy_extension_capabilities";

/// The sessions that are remembered. Beyond them the oldest is forgotten.
const SESSIONS: usize = 64;

/// The extensions of the client of each session.
static NOTED: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

struct Note;

impl Layer<Fixture> for Note {
    fn request(&self, _: &mut Fixture, request: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
        let declared = request.params().filter(|_| request.method.eq_str("initialize"));
        if let Some(extensions) = declared.and_then(|params| params.get("capabilities")?.get("extensions")) {
            let mut noted = NOTED.lock().expect("no thread panics");
            noted.insert(request.scope().0.into(), extensions.to_string());
            if noted.len() > SESSIONS {
                noted.pop_first();
            }
        }
        Ok(None)
    }
}

struct Report;

impl DynamicList<Tool<Fixture>> for Report {
    fn list(&self, _: &Fixture, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        if from == 0 {
            with(&ToolInfo::new(REPORT, "Repeats the extensions of the client"));
        }
    }

    fn run(&self, _: usize, _: &mut Fixture, call: &mut Call<'_>) -> HandlerResult {
        let noted = NOTED.lock().expect("no thread panics");
        let extensions = noted.get(&call.scope().0.into()).map_or("null", String::as_str);
        call.text(format_args!("{{\"extensions\":{extensions}}}"))
    }
}
