//! The tables of a C program, and the entries of the core that are made of them.

use core::ffi::{c_char, c_void};

use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{
    self, Call, Complete, DEFAULT_RESERVE, DefinitionError, GetPrompt, HandlerResult, PromptInfo, ReadResource,
    ResourceInfo, ResourceTemplate, ToolAnnotations, ToolInfo,
};

use crate::Status;
use crate::border::{elements, optional, text, texts};
use crate::request::{Handler, answer};

/// `mcp_config`
#[repr(C)]
pub(crate) struct Config {
    pub(crate) abi: u32,
    pub(crate) name: *const c_char,
    pub(crate) version: *const c_char,
    pub(crate) instructions: *const c_char,
    pub(crate) tools: *const Tool,
    pub(crate) tools_len: usize,
    pub(crate) state: *mut c_void,
    pub(crate) cancelled: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub(crate) requests: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) scratch: usize,
    pub(crate) resources: usize,
    pub(crate) prompts: usize,
    pub(crate) prompt_arguments: usize,
    pub(crate) subscriptions: usize,
    pub(crate) reopening: bool,
    pub(crate) questions: usize,
    pub(crate) ask_timeout: u64,
    pub(crate) seal_key: *const u8,
}

/// `mcp_problem`
#[repr(C)]
pub(crate) struct Problem {
    reason: *const c_char,
    index: usize,
}

/// The reason why a configuration is refused, with a 0 behind it, and the index of the entry.
pub(crate) struct Refusal {
    status: Status,
    reason: *const c_char,
    index: usize,
}

impl Refusal {
    /// Returns a refusal that belongs to no entry of a table.
    pub(crate) const fn new(status: Status, reason: &'static core::ffi::CStr) -> Refusal {
        Refusal { status, reason: reason.as_ptr(), index: 0 }
    }

    /// Reports it to the program.
    ///
    /// # Safety
    /// `problem` is null, or points to a [`Problem`].
    pub(crate) unsafe fn report(self, problem: *mut Problem) -> Status {
        // SAFETY: the caller's contract.
        unsafe { crate::border::put(problem, Problem { reason: self.reason, index: self.index }) };
        self.status
    }

    /// Returns the refusal of an entry that has no description, or breaks the `rule` of its kind: so a program is linked only with those of
    /// the kinds that it has.
    fn of_entry(rule: &'static core::ffi::CStr, error: DefinitionError, index: usize) -> Refusal {
        let reason = if error == DefinitionError::Description { c"a description is needed" } else { rule };
        Refusal { index, ..Refusal::new(Status::BadConfig, reason) }
    }

    const fn of_text(index: usize) -> Refusal {
        let reason = c"a text is missing or not UTF-8, or there is no handler";
        Refusal { index, ..Refusal::new(Status::BadConfig, reason) }
    }
}

/// The room for the entries of a table, and the memory of the block, are used up.
pub(crate) const NO_ROOM: Refusal = Refusal::new(Status::NoMemory, c"the block is too small: see mcp_memory");
/// Two entries are the same.
pub(crate) const DUPLICATE: Refusal = Refusal::new(Status::BadConfig, c"two entries have the same name or URI");

/// Returns the refusal of a part of the block that could not be made.
pub(crate) fn refused(error: Result<Refusal, Status>) -> Refusal {
    error.unwrap_or(NO_ROOM)
}

/// The state that handlers of the core get: that of the C program, and its tables.
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    pub(crate) cancelled: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub(crate) tools: &'static [Tool],
    pub(crate) resources: &'static [Resource],
    pub(crate) prompts: &'static [Prompt],
}

/// `mcp_tool`
#[repr(C)]
pub(crate) struct Tool {
    name: *const c_char,
    description: *const c_char,
    input_schema: *const c_char,
    pub(crate) call: Option<Handler>,
    title: *const c_char,
    output_schema: *const c_char,
    hints: u32,
    reserve: u32,
}

/// Returns the bytes that a handler needs.
const fn reserve(bytes: u32) -> usize {
    if bytes == 0 { DEFAULT_RESERVE } else { bytes as usize }
}

impl Tool {
    /// Makes the tool.
    ///
    /// # Safety
    /// The texts live as long as the server.
    pub(crate) unsafe fn entry(&self, index: usize) -> Result<service::Tool<State>, Refusal> {
        let mut read = [None; 5];
        let all = [self.name, self.description, self.title, self.input_schema, self.output_schema];
        // SAFETY: the caller's contract.
        unsafe { texts(&all, &mut read) }.map_err(|_| Refusal::of_text(index))?;
        let [Some(name), Some(description), title, input, output] = read else { return Err(Refusal::of_text(index)) };
        let mut info = ToolInfo::new(name, description);
        info.title = title;
        info.input = input.unwrap_or(info.input);
        info.output = output;
        if self.hints & 16 != 0 {
            let hint = |bit| self.hints & bit != 0;
            info.hints =
                ToolAnnotations::new().read_only(hint(1)).destructive(hint(2)).idempotent(hint(4)).open_world(hint(8));
        }
        info.reserve = reserve(self.reserve);
        self.call.ok_or(Refusal::of_text(index))?;
        service::Tool::checked(info, call_tool).map_err(|error| {
            Refusal::of_entry(
                c"a tool's name has 1 to 128 of A-Z a-z 0-9 _ - .; its schemas are JSON, the input's of type object",
                error,
                index,
            )
        })
    }
}

/// `mcp_resource`
#[repr(C)]
pub(crate) struct Resource {
    uri: *const c_char,
    name: *const c_char,
    pub(crate) read: Option<Handler>,
    title: *const c_char,
    description: *const c_char,
    mime: *const c_char,
    reserve: u32,
    complete: Option<Handler>,
}

impl Resource {
    /// Returns whether it is a template.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn is_template(&self) -> bool {
        // SAFETY: the caller's contract.
        unsafe { text(self.uri) }.is_ok_and(|uri| uri.as_bytes().contains(&b'{'))
    }

    /// # Safety
    /// As for [`Tool::entry`].
    unsafe fn info(&self, index: usize) -> Result<ResourceInfo<'static>, Refusal> {
        let mut read = [None; 5];
        // SAFETY: the caller's contract.
        unsafe { texts(&[self.uri, self.name, self.title, self.description, self.mime], &mut read) }
            .map_err(|_| Refusal::of_text(index))?;
        let [Some(uri), Some(name), title, description, mime] = read else { return Err(Refusal::of_text(index)) };
        let mut info = ResourceInfo::new(uri, name);
        (info.title, info.description, info.mime) = (title, description, mime);
        info.reserve = reserve(self.reserve);
        self.read.map(|_| info).ok_or(Refusal::of_text(index))
    }

    /// Makes the resource.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn entry(&self, index: usize) -> Result<service::Resource<State>, Refusal> {
        // SAFETY: the caller's contract.
        let info = unsafe { self.info(index) }?;
        service::Resource::checked(info, read)
            .map_err(|error| Refusal::of_entry(c"a URI has a scheme, and % before what RFC 3986 escapes", error, index))
    }

    /// Makes the template.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn template(&self, index: usize) -> Result<ResourceTemplate<State>, Refusal> {
        // SAFETY: the caller's contract.
        let info = unsafe { self.info(index) }?;
        ResourceTemplate::checked(info, read).map(|made| made.complete(complete)).map_err(|error| {
            Refusal::of_entry(
                c"a URI template has a scheme, and braces that are balanced and name variables",
                error,
                index,
            )
        })
    }
}

/// `mcp_prompt_argument`
#[repr(C)]
pub(crate) struct PromptArgument {
    name: *const c_char,
    description: *const c_char,
    required: bool,
}

impl PromptArgument {
    /// Makes the argument.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn entry(&self) -> Result<service::PromptArgument<'static>, Status> {
        // SAFETY: the caller's contract, here and below.
        let mut argument = service::PromptArgument::optional(unsafe { text(self.name) }?);
        argument.description = unsafe { optional(self.description) }?;
        argument.required = self.required;
        Ok(argument)
    }
}

/// `mcp_prompt`
#[repr(C)]
pub(crate) struct Prompt {
    name: *const c_char,
    description: *const c_char,
    pub(crate) get: Option<Handler>,
    arguments: *const PromptArgument,
    arguments_len: usize,
    title: *const c_char,
    complete: Option<Handler>,
}

impl Prompt {
    /// Returns the arguments.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn arguments(&self, index: usize) -> Result<&'static [PromptArgument], Refusal> {
        // SAFETY: the caller's contract.
        unsafe { elements(self.arguments, self.arguments_len) }.map_err(|_| Refusal::of_text(index))
    }

    /// Makes the prompt.
    ///
    /// # Safety
    /// As for [`Tool::entry`].
    pub(crate) unsafe fn entry(
        &self,
        arguments: &'static [service::PromptArgument<'static>],
        index: usize,
    ) -> Result<service::Prompt<State>, Refusal> {
        let mut read = [None; 3];
        // SAFETY: the caller's contract.
        unsafe { texts(&[self.name, self.description, self.title], &mut read) }.map_err(|_| Refusal::of_text(index))?;
        let [Some(name), Some(description), title] = read else { return Err(Refusal::of_text(index)) };
        let mut info = PromptInfo::new(name, description);
        (info.title, info.arguments) = (title, arguments);
        self.get.ok_or(Refusal::of_text(index))?;
        service::Prompt::checked(info, get_prompt)
            .map(|made| made.complete(complete))
            .map_err(|error| Refusal::of_entry(c"a prompt needs a name", error, index))
    }
}

/// Notifies the program that a client has cancelled a request.
pub(crate) fn cancelled(state: &mut State, token: RequestToken) {
    if let Some(cancelled) = state.cancelled {
        // SAFETY: the program's own function, with its own state.
        unsafe { cancelled(state.state, token.to_bits()) };
    }
}

/// Runs the tool of a C program.
pub(crate) fn call_tool(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let handler = state.tools.get(call.index()).and_then(|tool| tool.call);
    answer(state.state, handler, call)
}

/// Reads the resource of a C program.
pub(crate) fn read(state: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    let handler = state.resources.get(read.index()).and_then(|resource| resource.read);
    answer(state.state, handler, read)
}

/// Makes the messages of the prompt of a C program.
pub(crate) fn get_prompt(state: &mut State, get: &mut GetPrompt<'_>) -> HandlerResult {
    let handler = state.prompts.get(get.index()).and_then(|prompt| prompt.get);
    answer(state.state, handler, get)
}

/// Completes an argument of the prompt, or a variable of the template, that `ref` names. Without a function there are no values.
fn complete(state: &mut State, complete: &mut Complete<'_>) -> HandlerResult {
    let reference = complete.params().and_then(|params| params.get("ref"));
    let is = |member: &str, name: *const c_char| {
        let found = reference.and_then(|reference| reference.get(member)?.text());
        // SAFETY: a text of the tables, which live as long as the server.
        found.zip(unsafe { text(name) }.ok()).is_some_and(|(found, name)| found.eq_str(name))
    };
    let of_prompt = || state.prompts.iter().find(|prompt| is("name", prompt.name))?.complete;
    let of_template = || state.resources.iter().find(|resource| is("uri", resource.uri))?.complete;
    match of_prompt().or_else(of_template) {
        Some(handler) => answer(state.state, Some(handler), complete),
        None => complete.offer::<&str>([]),
    }
}
