/* The Model Context Protocol for C99 and C++11: servers over anything that moves bytes (stdio, a UART, TCP), and over HTTP.
 *
 * No heap, no threads, no clock, no I/O: the caller lends one block of memory for each connection, moves the bytes, and
 * tells the time. Nothing here is thread-safe; use each server from one thread at a time. Texts are UTF-8.
 *
 *   static uint64_t memory[512];
 *   mcp_server *server;
 *   mcp_problem problem;
 *   if (mcp_open(&config, memory, sizeof memory, &server, &problem) != MCP_OK) ...
 *   for (;;) {
 *       mcp_next next = mcp_run(server);                       // calls handlers
 *       send all of mcp_pending(server, &n), then mcp_sent(server, n);
 *       if (next == MCP_READ) { read at most room bytes to mcp_space(server, &room); mcp_filled(server, n); }
 *   }
 *
 * What a handler gets (`mcp_request *`, and the texts it returns) is valid until the handler returns. */
#ifndef MCP_H
#define MCP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The first member of mcp_config. A library of another ABI refuses it. */
#define MCP_ABI 1u

/* Numbers are never reused. */
typedef enum {
    MCP_OK = 0,
    MCP_ABI_MISMATCH = 1, /* mcp_config.abi is not that of the library */
    MCP_NO_MEMORY = 2,    /* the block is smaller than mcp_memory says, or not aligned to 8 bytes */
    MCP_BAD_CONFIG = 3,   /* mcp_problem says what is wrong */
    MCP_STALE = 4,        /* the request was answered or cancelled, or the token is of another server */
    MCP_FULL = 5,         /* no room in the output now: send what is pending, call again */
    MCP_TOO_LARGE = 6,    /* larger than the whole output, or than the room that was given */
    MCP_WRONG_KIND = 7,   /* the request has another method than this function is for */
    MCP_NOT_FOUND = 8,    /* there is no such argument */
    MCP_WRONG_TYPE = 9,   /* the argument is of another type, or out of range */
    MCP_NOT_ASKED = 10,   /* left out: the client did not ask for it */
    MCP_ANSWERED = 11,    /* the handler has answered before */
    MCP_INVALID = 12,     /* a null pointer, no UTF-8, no JSON; no object where one is needed */
    MCP_BUSY = 13,        /* from within a handler or an event: call it after mcp_run; or too many requests are in flight */
    MCP_NOT_CONNECTED = 14, /* the client is not connected */
    MCP_NOT_OFFERED = 15  /* the server does not offer it, or not in this revision */
} mcp_status;

typedef struct mcp_server mcp_server;   /* one connection; lies in the block */
typedef struct mcp_request mcp_request; /* a request, for its handler */
typedef uint64_t mcp_token;             /* a request that is answered later; never 0 */
typedef struct {
    const char *bytes; /* not terminated */
    size_t len;
} mcp_slice;

/* Answers a request: calls one of the mcp_reply functions, or mcp_later. Without, the client gets an error. */
typedef void (*mcp_handler)(void *state, mcp_request *request);

enum { MCP_READ_ONLY = 1, MCP_DESTRUCTIVE = 2, MCP_IDEMPOTENT = 4, MCP_OPEN_WORLD = 8, MCP_HINTS = 16 };

/* Members that may be null: title, input_schema (no arguments), output_schema. */
typedef struct {
    const char *name;          /* 1 to 128 letters, digits, '_', '-', '.' */
    const char *description;   /* for the model; not empty */
    const char *input_schema;  /* JSON Schema with "type": "object" */
    mcp_handler call;
    const char *title;
    const char *output_schema; /* JSON Schema of mcp_reply_json */
    uint32_t hints;            /* MCP_HINTS | those that are true; 0: says nothing of its behaviour */
    uint32_t reserve;          /* bytes of output that the handler needs free; 0: 512, at most the whole output */
} mcp_tool;

/* A resource; with {braces} in its URI a template of many. May be null: title, description, mime. */
typedef struct {
    const char *uri, *name;
    mcp_handler read;
    const char *title, *description, *mime;
    uint32_t reserve;
    mcp_handler complete;      /* values of variables of a template, by mcp_reply_values; may be null */
} mcp_resource;

typedef struct {
    const char *name, *description; /* description may be null */
    bool required;
} mcp_prompt_argument;

typedef struct {
    const char *name, *description;
    mcp_handler get;
    const mcp_prompt_argument *arguments;
    size_t arguments_len;
    const char *title;
    mcp_handler complete;           /* values of arguments, by mcp_reply_values; may be null */
} mcp_prompt;

/* Tables, texts and state must live as long as the server. Set the whole to 0 first: later members may be new. */
typedef struct {
    uint32_t abi;             /* MCP_ABI */
    const char *name, *version;
    const char *instructions; /* for the model; may be null */
    const mcp_tool *tools;
    size_t tools_len;
    void *state;              /* given to each handler */
    void (*cancelled)(void *state, mcp_token token); /* the client no longer wants the answer; may be null */
    size_t requests;          /* requests in flight, 1 or more: answered later, or larger than the output */
    size_t input, output;     /* bytes: a message of the client is at most input, an answer at most output (252 or more) */
    size_t scratch;           /* bytes for texts with escapes, such as URIs and values of completions; 64 will do */
    size_t resources;         /* room for mcp_offer_resources, in entries; 0 without */
    size_t prompts, prompt_arguments; /* the same for mcp_offer_prompts, and the arguments of all of them */
    size_t subscriptions;     /* bytes for URIs that clients subscribe to; 0: they cannot */
    bool reopening;           /* a second `initialize` is a new client: for wires that do not show its end, such as a UART */
    size_t questions;         /* bytes for questions to clients up to 2025-11-25: their requests wait there; 512 for two; 0: none */
    uint64_t ask_timeout;     /* milliseconds that such a question waits; 0: no limit */
    const uint8_t *seal_key;  /* 32 secret random bytes, for the state of mcp_ask, which clients of 2026-07-28 keep; null: no state */
} mcp_config;

/* What is wrong with a configuration. */
typedef struct {
    const char *reason; /* in words */
    size_t index;       /* of the entry in its table */
} mcp_problem;

/* Returns the bytes of memory that mcp_open needs; 0 for another ABI. */
size_t mcp_memory(const mcp_config *config);
/* Makes a server in the block, which is aligned to 8 bytes. `problem` may be null. */
mcp_status mcp_open(const mcp_config *config, void *memory, size_t len, mcp_server **server, mcp_problem *problem);
/* Sets resources and templates; call it once, before the first mcp_run. A program that does not call it is linked without. */
mcp_status mcp_offer_resources(mcp_server *server, const mcp_resource *table, size_t len, mcp_problem *problem);
/* Sets prompts; as mcp_offer_resources. */
mcp_status mcp_offer_prompts(mcp_server *server, const mcp_prompt *table, size_t len, mcp_problem *problem);
/* Declares that the server has log messages, for mcp_log; as mcp_offer_resources. */
mcp_status mcp_offer_logging(mcp_server *server);
/* Returns the version of the library, such as "0.1.0". */
const char *mcp_version(void);

typedef enum { MCP_READ = 0, MCP_WRITE = 1 } mcp_next;
/* Handles the input, calls handlers. MCP_READ: read more. MCP_WRITE: send something first, then run again. */
mcp_next mcp_run(mcp_server *server);
/* Returns where to read to, and sets `room`: not 0 after mcp_run returned MCP_READ. */
uint8_t *mcp_space(mcp_server *server, size_t *room);
/* Takes the first n bytes of the space as input. */
void mcp_filled(mcp_server *server, size_t n);
/* Returns the bytes to send, and sets `len`. */
const uint8_t *mcp_pending(mcp_server *server, size_t *len);
/* Removes the first n bytes: they were sent. */
void mcp_sent(mcp_server *server, size_t n);
/* Ends the input, as at the end of a file: run until mcp_done. */
void mcp_end(mcp_server *server);
/* Returns whether the input has ended and all is answered; the pending bytes are left to send. */
bool mcp_done(mcp_server *server);
/* Sets the time, in milliseconds from any start: for questions that end, and mcp_now. Call it before mcp_run. */
void mcp_set_now(mcp_server *server, uint64_t millis);
/* Drops all of the client: another one is on the wire. Tokens become stale. */
void mcp_new_peer(mcp_server *server);

typedef enum { MCP_TOOLS = 1, MCP_RESOURCES = 2, MCP_PROMPTS = 3 } mcp_list;
/* Tells the client that a list has changed. mcp_run writes it. */
mcp_status mcp_changed(mcp_server *server, mcp_list list);
/* Tells clients that subscribed to this URI that the resource has changed. */
mcp_status mcp_updated(mcp_server *server, const char *uri);

/* --- Within a handler: what the client sent --- */

/* An argument: an integer, also one written as 2.0; true or false; text, decoded, with a 0 behind it. */
mcp_status mcp_arg_int(const mcp_request *request, const char *name, int64_t *value);
mcp_status mcp_arg_bool(const mcp_request *request, const char *name, bool *value);
/* `room` bytes for the text and its 0; `len`, which may be null, gets the length without it. Also variables of
 * templates; in a completion what was typed so far, and the other arguments. The text is left alone if there is no such argument; it is empty or cut after MCP_TOO_LARGE. */
mcp_status mcp_arg_text(const mcp_request *request, const char *name, char *text, size_t room, size_t *len);
/* The argument, or all of them (name: null), as JSON, as it came. */
mcp_status mcp_arg_json(const mcp_request *request, const char *name, mcp_slice *json);
/* The name of the tool or prompt, the URI that is read, or the argument that is completed. */
mcp_status mcp_name(const mcp_request *request, mcp_slice *name);
/* The time that mcp_set_now has set. */
uint64_t mcp_now(const mcp_request *request);

/* --- Within a handler: the answer, once --- */

/* Text: of a tool, of a resource, or of a prompt's message of the user. */
mcp_status mcp_reply_text(mcp_request *request, const char *text, size_t len);
/* An error that the model can read and mend (isError); of a tool alone. */
mcp_status mcp_reply_error(mcp_request *request, const char *text, size_t len);
/* JSON: structuredContent of a tool, with its text. */
mcp_status mcp_reply_json(mcp_request *request, const char *json, size_t len);
/* Bytes of a resource, written as base64. */
mcp_status mcp_reply_blob(mcp_request *request, const uint8_t *bytes, size_t len);
/* The whole result, a JSON object (else MCP_INVALID): for content of other types, and several messages. */
mcp_status mcp_reply_result(mcp_request *request, const char *json, size_t len);
/* An error of JSON-RPC, with its code. */
mcp_status mcp_reply_fail(mcp_request *request, int32_t code, const char *text, size_t len);
/* Of a completion: those of the values that begin with what was typed. At most 100 are sent. */
mcp_status mcp_reply_values(mcp_request *request, const char *const *values, size_t len);
/* A resource that does not exist. */
mcp_status mcp_reply_not_found(mcp_request *request);
/* No answer yet: returns the token for mcp_answer; 0 if the handler has answered. */
mcp_token mcp_later(mcp_request *request);

/* Progress, if the client asked for it. total 0: unknown; message: may be null. */
mcp_status mcp_progress(mcp_request *request, uint64_t done, uint64_t total, const char *message);
typedef enum {
    MCP_DEBUG = 1, MCP_INFO, MCP_NOTICE, MCP_WARNING, MCP_ERROR, MCP_CRITICAL, MCP_ALERT, MCP_EMERGENCY
} mcp_level;
/* A message of the log, if the client wants this level. logger: may be null. */
mcp_status mcp_log(mcp_request *request, mcp_level level, const char *logger, const char *text, size_t len);

/* Over HTTP: lets the connection go, the client comes back for the answer. */
void mcp_release(mcp_request *request);

/* --- Within a handler: questions to the client. A library for a host has them; for bare metal they are a feature: see build.sh --- */

typedef enum { MCP_FORM = 1, MCP_VISIT = 2, MCP_MODEL = 3, MCP_ROOTS = 4 } mcp_question_kind;
typedef struct {
    const char *key;          /* names the answer */
    mcp_question_kind kind;
    const char *message;      /* to the user, or to the model */
    const char *schema;       /* MCP_FORM: requestedSchema */
    const char *url, *id;     /* MCP_VISIT: the page, and elicitationId */
    const char *system;       /* MCP_MODEL: the system prompt; may be null */
    uint32_t max_tokens;      /* MCP_MODEL */
} mcp_question;

/* Asks up to 8 questions in place of an answer. When the answers are in, the handler runs again from its beginning: ask before any
 * effect. `state`, which may be null, comes back then. A client that cannot be asked gets an error. */
mcp_status mcp_ask(mcp_request *request, const mcp_question *questions, size_t len, const void *state, size_t state_len);
/* Whether the client has declared that it can be asked this. */
bool mcp_can_ask(mcp_request *request, mcp_question_kind kind);
typedef enum { MCP_ACCEPTED = 1, MCP_DECLINED = 2, MCP_DISMISSED = 3, MCP_UNANSWERED = 4 } mcp_action;
/* The answer to a question of the run before; MCP_NOT_FOUND: there is none. `json`: the result as it came. Either may be null. */
mcp_status mcp_input(mcp_request *request, const char *key, mcp_action *action, mcp_slice *json);
/* A value of a form, as mcp_arg_int and its like. mcp_input_text with name null: the text of a model. */
mcp_status mcp_input_int(mcp_request *request, const char *key, const char *name, int64_t *value);
mcp_status mcp_input_bool(mcp_request *request, const char *key, const char *name, bool *value);
mcp_status mcp_input_text(mcp_request *request, const char *key, const char *name, char *text, size_t room, size_t *len);
/* The state of the run before; empty in the first run. */
mcp_status mcp_state(mcp_request *request, mcp_slice *state);

/* --- Later: from outside of handlers, with a token --- */

/* Calls `answer` with `state` and the request, which must answer it. Nothing has changed after MCP_FULL and MCP_TOO_LARGE. */
mcp_status mcp_answer(mcp_server *server, mcp_token token, mcp_handler answer, void *state);
/* The same for a read of this URI, for a prompt, and for a completion of what was typed, `value`. */
mcp_status mcp_answer_read(mcp_server *server, mcp_token token, const char *uri, mcp_handler answer, void *state);
mcp_status mcp_answer_prompt(mcp_server *server, mcp_token token, mcp_handler answer, void *state);
mcp_status mcp_answer_completion(mcp_server *server, mcp_token token, const char *value, mcp_handler answer, void *state);
/* Progress of a request that is answered later. */
mcp_status mcp_progress_of(mcp_server *server, mcp_token token, uint64_t done, uint64_t total, const char *message);

/* ====== Servers over HTTP: connections in place of lines ======
 *
 * A library for a host has it; for bare metal it is a feature: see build.sh. All functions above that take a server, but those that
 * move its bytes, are for a server over HTTP as well. mcp_end ends all connections after their answers; then run until mcp_done.
 *
 *   for (;;) {
 *       mcp_set_now(server, the time);
 *       give a new socket the number of a free connection;
 *       for each connection:
 *           mcp_http_next next = mcp_http_run(server, i);       // calls handlers
 *           send what the socket takes of mcp_http_pending, then mcp_http_sent; if the socket took all of it:
 *               if (next == MCP_HTTP_SHUT) end the sending side of the socket, once;
 *               if (next == MCP_HTTP_CLOSE) close the socket, mcp_http_close(server, i);
 *       wait until mcp_http_deadline, for a new client, for sockets that take bytes if some are pending, and for input if there is room;
 *       read it to mcp_http_space, then mcp_http_filled; at its end mcp_http_end; if the socket is broken mcp_http_close;
 *   } */

/* Set the whole to 0 first. */
typedef struct {
    size_t connections;   /* 1 or more at a time; each takes input + output + head + 512 bytes */
    size_t sessions;      /* clients of revisions up to 2025-11-25 at a time; 0: none */
    size_t streams;       /* event streams at a time, 1 or more; each takes output + 512 bytes */
    size_t head;          /* bytes: the head of a request; 0: 2048 */
    const char *path;     /* null: "/mcp" */
    const char *const *hosts; /* names that Host and Origin may have besides localhost: others get 403 */
    size_t hosts_len;
    bool ip_hosts;        /* Host may be any address: for a device that does not know its own */
    bool any_host;        /* no check, behind a proxy that checks */
    bool prefer_streams;  /* answers as events for clients that prefer them */
    void (*random)(void *state, uint8_t *bytes, size_t len); /* fills in secure random bytes: for ids of sessions */
    bool (*allow)(void *state, mcp_slice token); /* whether the bearer of this token may use the server: else 401; null: all may */
} mcp_http_config;

typedef enum {
    MCP_HTTP_READ = 0,  /* read more; there may be bytes to send */
    MCP_HTTP_WRITE = 1, /* there is no room: send something first */
    MCP_HTTP_SHUT = 2,  /* send the rest, end the sending side, and read until MCP_HTTP_CLOSE */
    MCP_HTTP_CLOSE = 3  /* send the rest, and close */
} mcp_http_next;

/* Returns the bytes of memory that mcp_http_open needs; 0 for another ABI. */
size_t mcp_http_memory(const mcp_config *config, const mcp_http_config *http);
/* Makes a server for many connections in the block, as mcp_open. config.requests is at least 2. */
mcp_status mcp_http_open(const mcp_config *config, const mcp_http_config *http, void *memory, size_t len, mcp_server **server,
                         mcp_problem *problem);
/* Serves a connection, 0 to connections - 1. */
mcp_http_next mcp_http_run(mcp_server *server, size_t connection);
/* As mcp_space, but the room may be 0 at any time. */
uint8_t *mcp_http_space(mcp_server *server, size_t connection, size_t *room);
void mcp_http_filled(mcp_server *server, size_t connection, size_t n);
const uint8_t *mcp_http_pending(mcp_server *server, size_t connection, size_t *len);
void mcp_http_sent(mcp_server *server, size_t connection, size_t n);
/* Ends the input of a connection: its peer sends no more. */
void mcp_http_end(mcp_server *server, size_t connection);
/* Frees a connection whose socket is closed, for the next client. */
void mcp_http_close(mcp_server *server, size_t connection);
/* Returns the time at which to run again at the latest; UINT64_MAX: none. */
uint64_t mcp_http_deadline(mcp_server *server);

/* ====== Clients, over lines ====== */

typedef struct mcp_client mcp_client;
typedef uint32_t mcp_id; /* a request of the client; never 0 */

typedef enum {
    MCP_CONNECTED = 1,     /* json: the result of server/discover or initialize */
    MCP_NOT_CONNECTED_EVENT = 2, /* code, text as for MCP_RESULT */
    MCP_RESULT = 3,        /* id; ok: json is the result. Else code and text of the server's error, json its data;
                              or code 0: there is no answer, text says why */
    MCP_PROGRESS = 4,      /* id; json: the number; text: the message */
    MCP_LOG = 5,           /* json: data; text: the logger; code: an mcp_level, 0 if unknown */
    MCP_CHANGED = 6,       /* code: an mcp_list; or 0, and text is the URI of a resource */
    MCP_NOTIFICATION = 7   /* text: a method that the protocol does not know; json: its params */
} mcp_event_kind;

typedef struct {
    mcp_event_kind kind;
    mcp_id id;
    bool ok;
    int32_t code;
    mcp_slice json; /* as it came; len 0 if there is none */
    mcp_slice text; /* the characters of a JSON string as they came, with their escapes; of the server, so not to be trusted */
} mcp_event;

/* Set the whole to 0 first. */
typedef struct {
    uint32_t abi; /* MCP_ABI */
    const char *name, *version;
    void (*event)(void *state, const mcp_event *event); /* called by mcp_client_run; must not call functions of the client */
    void *state;
    size_t requests;      /* requests in flight at a time, 1 or more */
    size_t input, output; /* bytes: an answer of the server is at most input, a request at most output */
    uint64_t timeout;     /* milliseconds for each request; 0: no limit */
} mcp_client_config;

/* Returns the bytes of memory that mcp_client_open needs; 0 for another ABI. */
size_t mcp_client_memory(const mcp_client_config *config);
/* Makes a client in the block, which is aligned to 8 bytes, and begins to connect. The configuration must live as long. */
mcp_status mcp_client_open(const mcp_client_config *config, void *memory, size_t len, mcp_client **client);
/* Sets the time in milliseconds, takes the input, calls `event`. As mcp_run. */
mcp_next mcp_client_run(mcp_client *client, uint64_t now);
uint8_t *mcp_client_space(mcp_client *client, size_t *room);
void mcp_client_filled(mcp_client *client, size_t n);
const uint8_t *mcp_client_pending(mcp_client *client, size_t *len);
void mcp_client_sent(mcp_client *client, size_t n);
/* Ends the input: all requests end. */
void mcp_client_end(mcp_client *client);
/* Returns the time at which mcp_client_run has to be called at the latest; UINT64_MAX: none. */
uint64_t mcp_client_deadline(const mcp_client *client);

/* Sends a request, and sets `id`, which may be null. */
/* tools/list; cursor: `nextCursor` of the page before, or null. */
mcp_status mcp_client_list_tools(mcp_client *client, const char *cursor, mcp_id *id);
/* tools/call; arguments: a JSON object, or null. With progress: the server may send MCP_PROGRESS. */
mcp_status mcp_client_call(mcp_client *client, const char *tool, const char *arguments, bool progress, mcp_id *id);
/* resources/read. */
mcp_status mcp_client_read(mcp_client *client, const char *uri, mcp_id *id);
/* Any method; params: a JSON object, or null. */
mcp_status mcp_client_request(mcp_client *client, const char *method, const char *params, mcp_id *id);
/* Cancels a request: it has no MCP_RESULT. */
mcp_status mcp_client_cancel(mcp_client *client, mcp_id id);

#ifdef __cplusplus
}
#endif
#endif
