//! Questions to the client: the functions of `mcp.h` that ask, and that read the answers.

use core::ffi::{c_char, c_void};

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::server::Server;
use mcp_sansio::service::{ContentBlock, CreateMessage, InputRequest, InputResponse, PromptMessage};
use mcp_sansio_http::seal::HmacSeal;

use crate::Status;
use crate::border::{Block, Slice, elements, optional, put, size_of_part, text};
use crate::config::{Config, NO_ROOM, Refusal, refused};
use crate::request::{RequestPointer, context, put_text, read_value, reply};

/// `mcp_question`
#[repr(C)]
pub(crate) struct Question {
    key: *const c_char,
    kind: u32,
    message: *const c_char,
    schema: *const c_char,
    url: *const c_char,
    id: *const c_char,
    system: *const c_char,
    max_tokens: u32,
}

/// The most questions at a time, as in the core.
const MOST: usize = 8;

impl Question {
    /// Returns the message of the user to a model.
    ///
    /// # Safety
    /// The texts live for `'q`.
    unsafe fn message<'q>(&self) -> Result<PromptMessage<'q>, Status> {
        // SAFETY: the caller's contract.
        Ok(PromptMessage::user(ContentBlock::text(unsafe { optional(self.message) }?.unwrap_or_default())))
    }

    /// Returns the question, with the message that [`message`](Question::message) has made.
    ///
    /// # Safety
    /// The texts live for `'q`.
    unsafe fn request<'q>(&self, message: &'q PromptMessage<'q>) -> Result<InputRequest<'q>, Status> {
        // SAFETY: the caller's contract, here and below.
        let key = unsafe { text(self.key) }?;
        Ok(match self.kind {
            1 => {
                let schema = Raw::parse(unsafe { text(self.schema) }?.as_bytes()).map_err(|_| Status::Invalid)?;
                InputRequest::elicit(key, unsafe { text(self.message) }?, schema)
            }
            2 => unsafe { InputRequest::visit(key, text(self.message)?, text(self.url)?, text(self.id)?) },
            3 => {
                let sampling = CreateMessage::new(core::slice::from_ref(message), self.max_tokens);
                let system = unsafe { optional(self.system) }?;
                InputRequest::sample(key, system.map_or(sampling, |system| sampling.system_prompt(system)))
            }
            4 => InputRequest::roots(key),
            _ => return Err(Status::Invalid),
        })
    }
}

/// Returns the bytes of the memory for questions.
pub(crate) fn size(config: &Config) -> usize {
    size_of_part::<u8>(config.questions) + if config.seal_key.is_null() { 0 } else { size_of_part::<HmacSeal>(1) }
}

/// Lends a server the memory for questions, and the key.
///
/// # Safety
/// The contract of `mcp_open`.
pub(crate) unsafe fn lend(
    config: &Config,
    block: &mut Block,
    mut server: Server<'static>,
) -> Result<Server<'static>, Refusal> {
    if config.questions > 0 {
        server = server.asks(block.bytes(config.questions).map_err(|_| NO_ROOM)?);
    }
    if config.ask_timeout > 0 {
        server = server.ask_timeout(config.ask_timeout);
    }
    // SAFETY: the caller's contract: 32 bytes, or null.
    if let Some(key) = unsafe { config.seal_key.cast::<[u8; 32]>().as_ref() } {
        let seal = block.part(1, |_| Ok::<_, Refusal>(HmacSeal::new(key))).map_err(refused)?;
        let seal: &'static HmacSeal = seal.first().ok_or(NO_ROOM)?;
        server = server.seal(seal);
    }
    Ok(server)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_ask(
    request: RequestPointer<'_, '_, '_>,
    questions: *const Question,
    len: usize,
    state: *const c_void,
    state_len: usize,
) -> Status {
    reply(request, |requested| {
        // SAFETY: `len` questions and `state_len` bytes, whose texts live as long as this call.
        let (questions, state) = unsafe { (elements(questions, len)?, elements(state.cast::<u8>(), state_len)?) };
        let mut messages = [PromptMessage::user(ContentBlock::text("")); MOST];
        for (question, message) in questions.iter().zip(&mut messages) {
            *message = unsafe { question.message() }?;
        }
        let mut requests = [InputRequest::roots(""); MOST];
        for ((question, message), request) in questions.iter().zip(&messages).zip(&mut requests) {
            *request = unsafe { question.request(message) }?;
        }
        let asked = requests.get(..len).ok_or(Status::TooLarge)?;
        Ok(requested.context().ask(asked, state))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mcp_can_ask(request: RequestPointer<'_, '_, '_>, kind: u32) -> bool {
    let capability = match kind {
        1 => ClientCapability::ElicitForm,
        2 => ClientCapability::ElicitUrl,
        3 => ClientCapability::Sampling,
        4 => ClientCapability::Roots,
        _ => return false,
    };
    context(request).is_ok_and(|context| context.client_has(capability))
}

/// Returns the answer to a question of the run before.
///
/// # Safety
/// `key` is null, or a text with a 0 behind it.
unsafe fn answered<'c>(request: RequestPointer<'_, '_, 'c>, key: *const c_char) -> Result<InputResponse<'c>, Status> {
    // SAFETY: the caller's contract.
    context(request)?.answer(unsafe { text(key) }?).ok_or(Status::NotFound)
}

/// Returns a value of a form.
///
/// # Safety
/// `key` and `name` as in [`answered`].
unsafe fn value<'c>(
    request: RequestPointer<'_, '_, 'c>,
    key: *const c_char,
    name: *const c_char,
) -> Result<Raw<'c>, Status> {
    // SAFETY: the caller's contract.
    unsafe { answered(request, key)?.value(text(name)?).ok_or(Status::NotFound) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_input(
    request: RequestPointer<'_, '_, '_>,
    key: *const c_char,
    action: *mut u32,
    json: *mut Slice,
) -> Status {
    // SAFETY: `key` is a text; `action` and `json` point to such, or are null.
    let found = || unsafe {
        let answer = answered(request, key)?;
        let taken = match answer.result {
            _ if answer.declined() => 2,
            _ if answer.dismissed() => 3,
            Ok(_) => 1,
            Err(_) => 4,
        };
        put(action, taken);
        put(json, Slice::from(answer.result.map_or(&[] as &[u8], |result| result.as_bytes())));
        Ok(())
    };
    Status::of(found())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_input_int(
    request: RequestPointer<'_, '_, '_>,
    key: *const c_char,
    name: *const c_char,
    to: *mut i64,
) -> Status {
    // SAFETY: texts, and a place for the number; or null.
    unsafe { read_value(value(request, key, name), |found| found.i64(), to) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_input_bool(
    request: RequestPointer<'_, '_, '_>,
    key: *const c_char,
    name: *const c_char,
    to: *mut bool,
) -> Status {
    // SAFETY: as above.
    unsafe { read_value(value(request, key, name), |found| found.bool(), to) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_input_text(
    request: RequestPointer<'_, '_, '_>,
    key: *const c_char,
    name: *const c_char,
    to: *mut u8,
    room: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: as above; `room` bytes at `to`.
    let found = || unsafe {
        let found = match optional(name)? {
            Some(_) => value(request, key, name)?.text().ok_or(Status::WrongType)?,
            None => answered(request, key)?.text().ok_or(Status::NotFound)?,
        };
        put_text(Ok(found), to, room, len)
    };
    Status::of(found())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_state(request: RequestPointer<'_, '_, '_>, state: *mut Slice) -> Status {
    // SAFETY: `state` points to a slice, or is null.
    Status::of(context(request).map(|context| unsafe { put(state, Slice::from(context.state())) }))
}
