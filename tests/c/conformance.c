/* The tools, resources and prompts that the official suites prescribe, in C over HTTP: conformance --port N. tests/conformance has
 * them in Rust. */
#define _POSIX_C_SOURCE 200809L
#include "../../examples/c/http_posix.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { CONNECTIONS = 64, WAITING = 8 };

struct suite {
    struct {
        mcp_token token;
        uint64_t at;
    } waiting[WAITING]; /* calls of test_reconnection */
    bool tools_changed, prompts_changed, resource_changed;
};

#define PIXEL "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PIXEL "\",\"mimeType\":\"image/png\"}"
#define SILENCE "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
static const uint8_t PIXEL_BYTES[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9c"
                                     "c\xf8\xcf\xc0\0\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xae" "B`\x82";

static void text(mcp_request *request, const char *text) { mcp_reply_text(request, text, strlen(text)); }
static void result(mcp_request *request, const char *json) { mcp_reply_result(request, json, strlen(json)); }

/* A handler that always answers the same. */
#define ALWAYS(handler, reply, words)                    \
    static void handler(void *state, mcp_request *request) { \
        (void)state;                                     \
        reply(request, words);                           \
    }
#define CONTENT(blocks) "{\"content\":[" blocks "]}"

ALWAYS(simple_text, text, "This is a simple text response for testing.")
ALWAYS(image, result, CONTENT(IMAGE))
ALWAYS(audio, result, CONTENT("{\"type\":\"audio\",\"data\":\"" SILENCE "\",\"mimeType\":\"audio/wav\"}"))
ALWAYS(embedded, result, CONTENT("{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
                                 "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}"))
ALWAYS(several_kinds, result, CONTENT("{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
                                      ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
                                      "\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}"))
ALWAYS(received, text, "Received")
ALWAYS(static_text, text, "This is the content of the static text resource.")
ALWAYS(watched, text, "Watched resource content")
ALWAYS(simple_prompt, text, "This is a simple prompt for testing.")
ALWAYS(prompt_with_image, result,
       "{\"messages\":[{\"role\":\"user\",\"content\":" IMAGE
       "},{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}}]}")

static void fails(void *state, mcp_request *request) {
    (void)state;
    static const char words[] = "This tool intentionally returns an error for testing";
    mcp_reply_error(request, words, strlen(words));
}

static void static_binary(void *state, mcp_request *request) {
    (void)state;
    mcp_reply_blob(request, PIXEL_BYTES, sizeof PIXEL_BYTES - 1);
}

static void logs(void *state, mcp_request *request) {
    (void)state;
    static const char *const words[] = {"Tool execution started", "Tool processing data", "Tool execution completed"};
    for (int i = 0; i < 3; i++) mcp_log(request, MCP_INFO, NULL, words[i], strlen(words[i]));
    text(request, "Tool with logging executed successfully");
}

static void progress(void *state, mcp_request *request) {
    (void)state;
    for (uint64_t done = 0; done <= 100; done += 50) mcp_progress(request, done, 100, NULL);
    text(request, "Tool with progress executed successfully");
}

static void reconnect(void *state, mcp_request *request) {
    struct suite *suite = state;
    for (int i = 0; i < WAITING; i++) {
        if (suite->waiting[i].token) continue;
        mcp_release(request);
        suite->waiting[i].at = mcp_now(request) + 300;
        suite->waiting[i].token = mcp_later(request);
        return;
    }
    text(request, "Too many");
}

ALWAYS(reconnected, text, "Reconnected and answered")

static void tools_change(void *state, mcp_request *request) {
    ((struct suite *)state)->tools_changed = true;
    text(request, "The tools have changed");
}

static void prompts_change(void *state, mcp_request *request) {
    ((struct suite *)state)->prompts_changed = true;
    text(request, "The prompts have changed");
}

static void resource_changes(void *state, mcp_request *request) {
    ((struct suite *)state)->resource_changed = true;
    text(request, "The resource has changed");
}

/* --- Questions --- */

#define ONE(name) "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"

static void ask(mcp_request *request, mcp_question question, const char *state) {
    mcp_ask(request, &question, 1, state, strlen(state));
}

static mcp_question form(const char *key, const char *message, const char *schema) {
    return (mcp_question){.key = key, .kind = MCP_FORM, .message = message, .schema = schema};
}

static mcp_question model(const char *key, const char *message) {
    return (mcp_question){.key = key, .kind = MCP_MODEL, .message = message, .max_tokens = 100};
}

/* Answers with `format` and a text of the answer; returns whether there is one. */
static bool told(mcp_request *request, const char *key, const char *name, const char *format) {
    char value[128], words[256];
    if (mcp_input_text(request, key, name, value, sizeof value, NULL) != MCP_OK) return false;
    snprintf(words, sizeof words, format, value);
    text(request, words);
    return true;
}

static void sampling(void *state, mcp_request *request) {
    (void)state;
    char prompt[256];
    if (told(request, "response", NULL, "LLM response: %s")) return;
    if (mcp_arg_text(request, "prompt", prompt, sizeof prompt, NULL) == MCP_OK) ask(request, model("response", prompt), "");
}

/* Answers with what has come of a form; returns whether it has. */
static bool form_is_over(mcp_request *request, const char *key, const char *what) {
    static const char *const names[] = {"", "accept", "decline", "cancel", "none"};
    mcp_action action;
    mcp_slice json;
    char words[512];
    if (mcp_input(request, key, &action, &json) != MCP_OK) return false;
    snprintf(words, sizeof words, "%s: action=%s, content=%.*s", what, names[action], (int)json.len, json.bytes);
    text(request, words);
    return true;
}

static void elicitation(void *state, mcp_request *request) {
    (void)state;
    char message[256];
    if (form_is_over(request, "user", "User response")) return;
    if (mcp_arg_text(request, "message", message, sizeof message, NULL) != MCP_OK) return;
    ask(request, form("user", message,
                      "{\"type\":\"object\",\"properties\":{\"username\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
                      "\"required\":[\"username\",\"email\"]}"), "");
}

static void defaults(void *state, mcp_request *request) {
    (void)state;
    if (form_is_over(request, "form", "Elicitation completed")) return;
    ask(request, form("form", "Please check the defaults",
                      "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
                      "\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":\"number\",\"default\":95.5},"
                      "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
                      "\"verified\":{\"type\":\"boolean\",\"default\":true}}}"), "");
}

#define TITLED(a, b, c) "[{\"const\":\"value1\",\"title\":\"" a "\"},{\"const\":\"value2\",\"title\":\"" b "\"},{\"const\":\"value3\",\"title\":\"" c "\"}]"

static void enums(void *state, mcp_request *request) {
    (void)state;
    if (form_is_over(request, "form", "Elicitation completed")) return;
    ask(request, form("form", "Please choose",
                      "{\"type\":\"object\",\"properties\":{"
                      "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
                      "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED("First Option", "Second Option", "Third Option") "},"
                      "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
                      "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
                      "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
                      "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED("First Choice", "Second Choice", "Third Choice") "}}}}"), "");
}

static void user_name(void *state, mcp_request *request) {
    (void)state;
    if (!told(request, "user_name", "name", "Hello, %s!")) ask(request, form("user_name", "What is your name?", ONE("name")), "");
}

static void capital(void *state, mcp_request *request) {
    (void)state;
    if (!told(request, "capital_question", NULL, "The model says: %s"))
        ask(request, model("capital_question", "What is the capital of France?"), "");
}

static void roots(void *state, mcp_request *request) {
    (void)state;
    mcp_slice json;
    if (mcp_input(request, "client_roots", NULL, &json) == MCP_OK) text(request, "The client has roots");
    else ask(request, (mcp_question){.key = "client_roots", .kind = MCP_ROOTS}, "");
}

static bool state_is(mcp_request *request, const char *expected) {
    mcp_slice state;
    return mcp_state(request, &state) == MCP_OK && state.len == strlen(expected) && memcmp(state.bytes, expected, state.len) == 0;
}

static void keeps_state(void *state, mcp_request *request) {
    (void)state;
    mcp_action action;
    bool answered = mcp_input(request, "confirm", &action, NULL) == MCP_OK && state_is(request, "confirming");
    if (answered && action == MCP_ACCEPTED) text(request, "state-ok");
    else if (answered && action != MCP_UNANSWERED) text(request, "not confirmed");
    else ask(request, form("confirm", "Is that all right?", "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},\"required\":[\"ok\"]}"), "confirming");
}

static void three(void *state, mcp_request *request) {
    (void)state;
    char name[64], greeting[128], words[256];
    if (mcp_input_text(request, "user_name", "name", name, sizeof name, NULL) == MCP_OK &&
        mcp_input_text(request, "greeting", NULL, greeting, sizeof greeting, NULL) == MCP_OK &&
        mcp_input(request, "client_roots", NULL, NULL) == MCP_OK) {
        snprintf(words, sizeof words, "%s %s, you have roots", greeting, name);
        text(request, words);
        return;
    }
    mcp_question questions[] = {form("user_name", "What is your name?", ONE("name")), model("greeting", "Say a greeting in one sentence."),
                                {.key = "client_roots", .kind = MCP_ROOTS}};
    mcp_ask(request, questions, 3, "all three", 9);
}

/* The name of the first round travels in the state. */
static void rounds(void *state, mcp_request *request) {
    (void)state;
    char name[64], color[64], words[200];
    mcp_slice kept;
    mcp_state(request, &kept);
    bool named = mcp_input_text(request, "step1", "name", name, sizeof name, NULL) == MCP_OK;
    bool colored = mcp_input_text(request, "step2", "color", color, sizeof color, NULL) == MCP_OK;
    if (kept.len == 0 || (state_is(request, "step1") && !named)) {
        ask(request, form("step1", "What is your name?", ONE("name")), "step1");
        return;
    }
    if (!named) snprintf(name, sizeof name, "%.*s", (int)kept.len, kept.bytes);
    if (colored) {
        snprintf(words, sizeof words, "%s likes %s", name, color);
        text(request, words);
    } else {
        ask(request, form("step2", "What is your favourite color?", ONE("color")), name);
    }
}

static void possible(void *state, mcp_request *request) {
    (void)state;
    mcp_question questions[2];
    size_t len = 0;
    if (mcp_input(request, "name", NULL, NULL) == MCP_OK || mcp_input(request, "model", NULL, NULL) == MCP_OK) {
        text(request, "Thank you");
        return;
    }
    if (mcp_can_ask(request, MCP_FORM)) questions[len++] = form("name", "What is your name?", ONE("name"));
    if (mcp_can_ask(request, MCP_MODEL)) questions[len++] = model("model", "What is the capital of France?");
    if (len > 0) mcp_ask(request, questions, len, NULL, 0);
    else text(request, "This client cannot be asked anything");
}

static void context(void *state, mcp_request *request) {
    (void)state;
    if (!told(request, "user_context", "context", "Use this context: %s"))
        ask(request, form("user_context", "What is the context?", ONE("context")), "");
}

/* --- Resources and prompts --- */

static void data(void *state, mcp_request *request) {
    (void)state;
    char id[64], words[256];
    if (mcp_arg_text(request, "id", id, sizeof id, NULL) != MCP_OK) {
        mcp_reply_not_found(request);
        return;
    }
    snprintf(words, sizeof words, "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id, id);
    text(request, words);
}

static void with_arguments(void *state, mcp_request *request) {
    (void)state;
    char first[64], second[64], words[256];
    if (mcp_arg_text(request, "arg1", first, sizeof first, NULL) != MCP_OK ||
        mcp_arg_text(request, "arg2", second, sizeof second, NULL) != MCP_OK) {
        mcp_reply_fail(request, -32602, "an argument is missing", 22);
        return;
    }
    snprintf(words, sizeof words, "Prompt with arguments: arg1='%s', arg2='%s'", first, second);
    text(request, words);
}

static void with_resource(void *state, mcp_request *request) {
    (void)state;
    mcp_slice uri;
    char words[512];
    if (mcp_arg_json(request, "resourceUri", &uri) != MCP_OK) {
        mcp_reply_fail(request, -32602, "an argument is missing", 22);
        return;
    }
    snprintf(words, sizeof words,
             "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\",\"resource\":{\"uri\":%.*s,\"mimeType\":\"text/plain\","
             "\"text\":\"Embedded resource content for testing.\"}}},{\"role\":\"user\",\"content\":{\"type\":\"text\","
             "\"text\":\"Please process the embedded resource above.\"}}]}", (int)uri.len, uri.bytes);
    result(request, words);
}

static void complete(void *state, mcp_request *request) {
    (void)state;
    static const char *const values[] = {"testing", "tested", "paris", "party"};
    mcp_reply_values(request, values, 4);
}

#define SCHEMA_2020_12                                                                                                              \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":{\"address\":{"                      \
    "\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}}," \
    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"                                      \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},"                         \
    "\"email\":{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"               \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"                             \
    "\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

#define TOOL(tool, does, handler) {.name = tool, .description = does, .call = handler}
/* The first one succeeds without arguments: a scenario calls it that way. */
static const mcp_tool TOOLS[] = {
    TOOL("test_simple_text", "Answers with text", simple_text),
    TOOL("test_image_content", "Answers with an image", image),
    TOOL("test_audio_content", "Answers with a sound", audio),
    TOOL("test_embedded_resource", "Answers with a resource", embedded),
    TOOL("test_multiple_content_types", "Answers with text, an image and a resource", several_kinds),
    TOOL("test_error_handling", "Fails", fails),
    TOOL("test_tool_with_logging", "Logs while it works", logs),
    TOOL("test_tool_with_progress", "Tells how far it is", progress),
    TOOL("test_reconnection", "Takes so long that its client may hang up", reconnect),
    {.name = "test_sampling", .description = "Asks the client's model", .call = sampling, .input_schema = ONE("prompt")},
    {.name = "test_elicitation", .description = "Asks the user", .call = elicitation, .input_schema = ONE("message")},
    TOOL("test_elicitation_sep1034_defaults", "Asks the user, with defaults", defaults),
    TOOL("test_elicitation_sep1330_enums", "Lets the user choose", enums),
    {.name = "json_schema_2020_12_tool", .description = "Has a schema with everything", .call = received, .input_schema = SCHEMA_2020_12},
    {.name = "test_custom_header", .description = "Has an argument that is repeated in a header", .call = received,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"value\":{\"type\":\"string\",\"x-mcp-header\":\"Value\"}},\"required\":[\"value\"]}"},
    TOOL("test_missing_capability", "Needs a client that samples", capital),
    TOOL("test_streaming_elicitation", "Asks the user for a name", user_name),
    TOOL("test_logging_tool", "Logs, if its client wants that", logs),
    TOOL("test_trigger_tool_change", "Says that the tools have changed", tools_change),
    TOOL("test_trigger_prompt_change", "Says that the prompts have changed", prompts_change),
    TOOL("test_trigger_resource_change", "Says that the watched resource has changed", resource_changes),
    TOOL("test_input_required_result_elicitation", "Asks the user for a name", user_name),
    TOOL("test_input_required_result_sampling", "Asks the client's model", capital),
    TOOL("test_input_required_result_list_roots", "Asks for the client's roots", roots),
    TOOL("test_input_required_result_request_state", "Asks, and keeps state", keeps_state),
    TOOL("test_input_required_result_multiple_inputs", "Asks three things at once", three),
    TOOL("test_input_required_result_multi_round", "Asks twice", rounds),
    TOOL("test_input_required_result_tampered_state", "Asks, and keeps state", keeps_state),
    TOOL("test_input_required_result_capabilities", "Asks what can be asked", possible),
};
static const mcp_resource RESOURCES[] = {
    {.uri = "test://static-text", .name = "Static text", .read = static_text, .description = "A text that never changes", .mime = "text/plain"},
    {.uri = "test://static-binary", .name = "Static binary", .read = static_binary, .description = "An image of one pixel", .mime = "image/png"},
    {.uri = "test://watched-resource", .name = "Watched resource", .read = watched, .description = "A resource to subscribe to", .mime = "text/plain"},
    {.uri = "test://template/{id}/data", .name = "Data by id", .read = data, .description = "Data for any id", .mime = "application/json"},
};
static const mcp_prompt_argument TWO[] = {{"arg1", "The first argument", true}, {"arg2", "The second argument", true}};
static const mcp_prompt_argument URI[] = {{"resourceUri", "The URI of the resource", true}};
static const mcp_prompt PROMPTS[] = {
    {.name = "test_simple_prompt", .description = "A prompt without arguments", .get = simple_prompt},
    {.name = "test_prompt_with_arguments", .description = "A prompt with two arguments", .get = with_arguments, .arguments = TWO,
     .arguments_len = 2, .complete = complete},
    {.name = "test_prompt_with_embedded_resource", .description = "A prompt with a resource in it", .get = with_resource, .arguments = URI,
     .arguments_len = 1},
    {.name = "test_prompt_with_image", .description = "A prompt with an image in it", .get = prompt_with_image},
    {.name = "test_input_required_result_prompt", .description = "A prompt that asks the user first", .get = context},
};
#define LEN(table) (sizeof table / sizeof *table)

static uint64_t turn(mcp_server *server, void *state, uint64_t now) {
    struct suite *suite = state;
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < WAITING; i++) {
        if (!suite->waiting[i].token) continue;
        if (now < suite->waiting[i].at) next = suite->waiting[i].at < next ? suite->waiting[i].at : next;
        else if (mcp_answer(server, suite->waiting[i].token, reconnected, NULL) == MCP_FULL) next = now + 10;
        else suite->waiting[i].token = 0;
    }
    if (suite->tools_changed) mcp_changed(server, MCP_TOOLS);
    if (suite->prompts_changed) mcp_changed(server, MCP_PROMPTS);
    if (suite->resource_changed) mcp_updated(server, "test://watched-resource");
    suite->tools_changed = suite->prompts_changed = suite->resource_changed = false;
    return next;
}

static volatile bool stop;

static void on_signal(int number) {
    (void)number;
    stop = true;
}

int main(int argc, char **argv) {
    static struct suite suite;
    static uint8_t key[32];
    mcp_config config = {.abi = MCP_ABI, .name = "conformance-c", .version = "1.0", .state = &suite, .tools = TOOLS, .tools_len = LEN(TOOLS)};
    config.requests = 64, config.input = 16384, config.output = 32768, config.scratch = 1024;
    config.resources = LEN(RESOURCES), config.prompts = LEN(PROMPTS), config.prompt_arguments = 3, config.subscriptions = 16384;
    config.questions = 32768, config.ask_timeout = 60000, config.seal_key = key;
    mcp_http_config http = {.connections = CONNECTIONS, .sessions = 256, .streams = 64, .head = 8192, .prefer_streams = true, .random = http_random};
    http_random(NULL, key, sizeof key);
    size_t size = mcp_http_memory(&config, &http);
    void *memory = malloc(size);
    mcp_server *server;
    mcp_problem problem = {"", 0};
    int listener = argc == 3 ? http_listen((uint16_t)atoi(argv[2])) : -1;
    if (listener < 0 || mcp_http_open(&config, &http, memory, size, &server, &problem) != MCP_OK ||
        mcp_offer_resources(server, RESOURCES, LEN(RESOURCES), &problem) != MCP_OK ||
        mcp_offer_prompts(server, PROMPTS, LEN(PROMPTS), &problem) != MCP_OK || mcp_offer_logging(server) != MCP_OK) {
        fprintf(stderr, "conformance --port N; or entry %zu: %s\n", problem.index, problem.reason);
        return 1;
    }
    signal(SIGTERM, on_signal);
    int end = http_serve(server, CONNECTIONS, listener, turn, &suite, &stop);
    free(memory);
    return end;
}
