//! Lists from the state of the program: tools, resources, templates and prompts, and a page size. No row of the table:
//! `tests/bare_metal/run.sh` checks that nothing in it can panic.

#![no_std]
#![no_main]

use footprint::Device;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::service::{
    Call, Caller, Complete, DynamicList, GetPrompt, HandlerResult, Prompt, PromptInfo, ReadResource, Resource,
    ResourceInfo, ResourceTemplate, Service, Tool, ToolInfo,
};

/// As many entries of each list as there are names, while the LED is on one more.
struct Lists;

const NAMES: [&str; 3] = ["one", "two", "three"];
const URIS: [&str; 3] = ["led://one", "led://two", "led://three"];
const TEMPLATES: [&str; 2] = ["led://{a}/state", "led://{a}/{b}"];

fn names(device: &Device, from: usize) -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().take(if device.led { 3 } else { 2 }).skip(from)
}

impl DynamicList<Tool<Device>> for Lists {
    fn list(&self, device: &Device, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let _ = names(device, from).all(|name| with(&ToolInfo::new(name, "Switches the LED")));
    }

    fn run(&self, key: usize, device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
        device.led = key > 0;
        call.text("done")
    }
}

impl DynamicList<Resource<Device>> for Lists {
    fn list(&self, _: &Device, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let _ = URIS.iter().zip(NAMES).skip(from).all(|(uri, name)| with(&ResourceInfo::new(uri, name)));
    }

    fn run(&self, key: usize, _: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
        read.text(NAMES.get(key).copied().unwrap_or_default())
    }
}

impl DynamicList<ResourceTemplate<Device>> for Lists {
    fn list(&self, _: &Device, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let _ = TEMPLATES.iter().skip(from).all(|template| with(&ResourceInfo::new(template, "a LED")));
    }

    fn run(&self, key: usize, _: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
        let template = TEMPLATES.get(key).copied().unwrap_or_default();
        match read.var_of(template, "a") {
            Some(led) => read.text(led),
            None => read.not_found(),
        }
    }

    fn complete(&self, _: usize, _: &mut Device, complete: &mut Complete<'_>) -> HandlerResult {
        complete.matching(NAMES)
    }
}

impl DynamicList<Prompt<Device>> for Lists {
    fn list(&self, device: &Device, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&PromptInfo<'_>) -> bool) {
        let _ = names(device, from).all(|name| with(&PromptInfo::new(name, "About a LED")));
    }

    fn run(&self, key: usize, _: &mut Device, get: &mut GetPrompt<'_>) -> HandlerResult {
        get.user(NAMES.get(key).copied().unwrap_or_default())
    }
}

const SERVICE: Service<'static, Device> = footprint::tools::RAW
    .dynamic_tools(&Lists)
    .dynamic_resources(&Lists)
    .dynamic_templates(&Lists)
    .dynamic_prompts(&Lists)
    .page_size(2)
    .feature(ServerCapability::Completions);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
