/* The service of adapters/c/examples/twin.rs in C, over stdin and stdout: transcripts.py compares the bytes of both. */
#include <mcp.h>
#include <stdio.h>
#include <string.h>

enum { WAITING = 8 };

struct world {
    int effects, waiting;
    bool changed;
    mcp_token later[WAITING];
};

static void text(mcp_request *request, const char *words) { mcp_reply_text(request, words, strlen(words)); }
static void error(mcp_request *request, const char *words) { mcp_reply_error(request, words, strlen(words)); }

static void echo(void *state, mcp_request *request) {
    (void)state;
    char words[512];
    if (mcp_arg_text(request, "text", words, sizeof words, NULL) == MCP_OK) text(request, words);
    else error(request, "no text");
}

static void add(void *state, mcp_request *request) {
    (void)state;
    int64_t a, b;
    char words[32];
    if (mcp_arg_int(request, "a", &a) != MCP_OK || mcp_arg_int(request, "b", &b) != MCP_OK) {
        error(request, "no numbers");
        return;
    }
    snprintf(words, sizeof words, "%lld", (long long)((uint64_t)a + (uint64_t)b));
    text(request, words);
}

static void fail(void *state, mcp_request *request) {
    (void)state;
    error(request, "it did not work");
}

static void breaks(void *state, mcp_request *request) {
    (void)state;
    mcp_reply_fail(request, 7, "broken", 6);
}

static void count(void *state, mcp_request *request) {
    struct world *world = state;
    char words[16];
    world->changed = true;
    snprintf(words, sizeof words, "%d", ++world->effects);
    text(request, words);
}

static void chatty(void *state, mcp_request *request) {
    (void)state;
    static const uint64_t done[] = {1, 2, 2, 1, 3};
    for (int i = 0; i < 5; i++) mcp_progress(request, done[i], 3, "working");
    mcp_log(request, MCP_DEBUG, NULL, "a detail", 8);
    mcp_log(request, MCP_WARNING, "chatty", "nearly \"there\"", 14);
    text(request, "done");
}

static void weather(void *state, mcp_request *request) {
    (void)state;
    static const char json[] = "{\"celsius\":21.5}";
    mcp_reply_json(request, json, sizeof json - 1);
}

static void raw(void *state, mcp_request *request) {
    (void)state;
    static const char json[] = "{\"content\":[{\"type\":\"text\",\"text\":\"raw\"}],\"_meta\":{\"example.com/x\":1}}";
    mcp_reply_result(request, json, sizeof json - 1);
}

static void later(void *state, mcp_request *request) {
    struct world *world = state;
    if (world->waiting < WAITING) world->later[world->waiting++] = mcp_later(request);
}

static void late(void *state, mcp_request *request) {
    (void)state;
    text(request, "late");
}

static void twice(void *state, mcp_request *request) {
    (void)state;
    text(request, "first");
    text(request, "second");
}

static void confirm(void *state, mcp_request *request) {
    (void)state;
    static const char *const names[] = {"", "accepted", "declined", "dismissed", "unanswered"};
    mcp_question sure = {.key = "sure", .kind = MCP_FORM, .message = "Sure?", .schema = "{\"type\":\"object\",\"properties\":{}}"};
    mcp_action action;
    if (mcp_input(request, "sure", &action, NULL) == MCP_OK) text(request, names[action]);
    else mcp_ask(request, &sure, 1, NULL, 0);
}

static void read_text(void *state, mcp_request *request) {
    (void)state;
    text(request, "hello");
}

static void read_blob(void *state, mcp_request *request) {
    (void)state;
    mcp_reply_blob(request, (const uint8_t *)"\0\xff", 2);
}

static void read_secret(void *state, mcp_request *request) {
    (void)state;
    mcp_reply_not_found(request);
}

static void read_item(void *state, mcp_request *request) {
    (void)state;
    char id[512];
    if (mcp_arg_text(request, "id", id, sizeof id, NULL) == MCP_OK) text(request, id);
    else mcp_reply_not_found(request);
}

static void complete(void *state, mcp_request *request) {
    (void)state;
    static const char *const values[] = {"Ada", "Alan", "a1", "a2"};
    mcp_reply_values(request, values, 4);
}

static void greet(void *state, mcp_request *request) {
    (void)state;
    char name[512];
    text(request, mcp_arg_text(request, "name", name, sizeof name, NULL) == MCP_OK ? name : "nobody");
}

#define TEXT "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"

static const mcp_tool TOOLS[] = {
    {.name = "echo", .description = "Gives a text back", .call = echo, .input_schema = TEXT},
    {.name = "add", .description = "Adds two integers", .call = add},
    {.name = "fail", .description = "Fails as a tool", .call = fail},
    {.name = "break", .description = "Fails as a request", .call = breaks},
    {.name = "count", .description = "Counts its calls", .call = count},
    {.name = "chatty", .description = "Tells of its progress", .call = chatty},
    {.name = "weather", .description = "Structured output", .call = weather, .title = "Weather",
     .output_schema = "{\"type\":\"object\"}", .hints = MCP_HINTS | MCP_READ_ONLY | MCP_OPEN_WORLD},
    {.name = "raw", .description = "A result of its own making", .call = raw, .reserve = 1024},
    {.name = "later", .description = "Answers later", .call = later},
    {.name = "twice", .description = "Answers twice", .call = twice},
    {.name = "confirm", .description = "Asks the user", .call = confirm, .reserve = 1024},
};
static const mcp_resource RESOURCES[] = {
    {.uri = "test://text", .name = "text", .read = read_text, .title = "A text", .description = "Some text", .mime = "text/plain"},
    {.uri = "test://blob", .name = "blob", .read = read_blob},
    {.uri = "test://secret", .name = "secret", .read = read_secret},
    {.uri = "test://items/{id}", .name = "item", .read = read_item, .complete = complete},
    {.uri = "file:///{+path}", .name = "file", .read = read_item},
};
static const mcp_prompt_argument GREET[] = {
    {.name = "name", .description = "Who is greeted", .required = true},
    {.name = "style"},
};
static const mcp_prompt PROMPTS[] = {
    {.name = "plain", .description = "No arguments", .get = read_text},
    {.name = "greet", .description = "Greets", .get = greet, .arguments = GREET, .arguments_len = 2, .title = "Greeting",
     .complete = complete},
};

static void flush(mcp_server *server) {
    size_t len;
    const uint8_t *pending = mcp_pending(server, &len);
    fwrite(pending, 1, len, stdout);
    mcp_sent(server, len);
}

/* Answers the requests that were put off, and publishes changes; returns whether there were any. */
static bool act(struct world *world, mcp_server *server) {
    bool acted = world->waiting > 0 || world->changed;
    for (int i = 0; i < world->waiting; i++) {
        mcp_answer(server, world->later[i], late, NULL);
        flush(server);
    }
    if (world->changed) {
        mcp_changed(server, MCP_TOOLS);
        mcp_updated(server, "test://text");
    }
    world->waiting = 0;
    world->changed = false;
    return acted;
}

int main(void) {
    static struct world world;
    static uint64_t memory[16384];
    mcp_config config = {.abi = MCP_ABI, .name = "twin", .version = "1.0", .instructions = "Try \"everything\".", .state = &world};
    config.tools = TOOLS;
    config.tools_len = sizeof TOOLS / sizeof *TOOLS;
    config.requests = 8;
    config.input = config.output = 16384;
    config.scratch = config.subscriptions = config.questions = 4096;
    config.resources = 5;
    config.prompts = config.prompt_arguments = 2;

    mcp_server *server;
    mcp_problem problem;
    if (mcp_open(&config, memory, sizeof memory, &server, &problem) != MCP_OK ||
        mcp_offer_resources(server, RESOURCES, 5, &problem) != MCP_OK || mcp_offer_prompts(server, PROMPTS, 2, &problem) != MCP_OK) {
        fprintf(stderr, "entry %zu: %s\n", problem.index, problem.reason);
        return 1;
    }
    mcp_offer_logging(server);
    for (;;) {
        mcp_next next;
        do {
            next = mcp_run(server);
            flush(server);
        } while (act(&world, server) || next == MCP_WRITE);
        if (mcp_done(server)) return 0;
        /* One line at a time: so late answers and changes come at the same place in both programs. */
        size_t room, len = 0;
        uint8_t *space = mcp_space(server, &room);
        int byte = 0;
        while (len < room && byte != '\n' && (byte = getchar()) != EOF) space[len++] = (uint8_t)byte;
        if (len > 0) mcp_filled(server, len);
        else mcp_end(server);
    }
}
