/* A server over standard input and output: examples/c/Makefile builds it. */
#define _POSIX_C_SOURCE 200809L
#include <mcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct lamp {
    int64_t level;
    mcp_token fading; /* a call that is answered when the lamp has faded */
    uint64_t faded_at;
    bool changed; /* the level, since its subscribers were told */
};

static uint64_t now_in_millis(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void reply(mcp_request *request, const char *text) {
    mcp_reply_text(request, text, strlen(text));
}

static void set_level(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    static const char wrong[] = "`level` is a whole number from 0 to 100";
    int64_t level;
    if (mcp_arg_int(request, "level", &level) != MCP_OK || level < 0 || level > 100) {
        mcp_reply_error(request, wrong, strlen(wrong));
        return;
    }
    lamp->level = level;
    lamp->changed = true;
    reply(request, "done");
}

static void status(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    char json[48];
    int len = snprintf(json, sizeof json, "{\"level\":%d}", (int)lamp->level);
    mcp_reply_json(request, json, (size_t)len);
}

/* Asks the user first. It runs twice: the second time, from its beginning, there is an answer. */
static void reset(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    static const mcp_question sure = {
        .key = "sure", .kind = MCP_FORM, .message = "Switch the lamp off?",
        .schema = "{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\"}},\"required\":[\"sure\"]}"};
    mcp_action action;
    bool agreed = false;
    if (mcp_input(request, "sure", &action, NULL) == MCP_NOT_FOUND) {
        mcp_ask(request, &sure, 1, NULL, 0);
        return;
    }
    if (action == MCP_ACCEPTED) mcp_input_bool(request, "sure", "sure", &agreed);
    if (agreed) {
        lamp->level = 0;
        lamp->changed = true;
    }
    reply(request, agreed ? "off" : "the user does not want it");
}

/* Answered later, with progress. */
static void fade(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    if (lamp->fading) {
        static const char busy[] = "the lamp is fading already";
        mcp_reply_error(request, busy, strlen(busy));
        return;
    }
    lamp->fading = mcp_later(request);
    lamp->faded_at = mcp_now(request) + 300;
}

static void faded(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    lamp->level = 0;
    lamp->changed = true;
    reply(request, "faded");
}

/* The client no longer wants the answer. */
static void cancelled(void *state, mcp_token token) {
    struct lamp *lamp = state;
    if (lamp->fading == token) lamp->fading = 0;
}

static void read_level(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    char text[8];
    snprintf(text, sizeof text, "%d", (int)lamp->level);
    reply(request, text);
}

static void manual(void *state, mcp_request *request) {
    (void)state;
    reply(request, "The level goes from 0 to 100.");
}

static void scene(void *state, mcp_request *request) {
    (void)state;
    char name[32], text[64];
    if (mcp_arg_text(request, "name", name, sizeof name, NULL) != MCP_OK) {
        mcp_reply_not_found(request);
        return;
    }
    snprintf(text, sizeof text, "The scene \"%s\"", name);
    reply(request, text);
}

static void cosy(void *state, mcp_request *request) {
    (void)state;
    char room[32] = "living room", text[80];
    mcp_arg_text(request, "room", room, sizeof room, NULL);
    snprintf(text, sizeof text, "Make the light in the %s cosy.", room);
    reply(request, text);
}

static void rooms(void *state, mcp_request *request) {
    (void)state;
    static const char *const values[] = {"kitchen", "kids' room", "living room"};
    mcp_reply_values(request, values, sizeof values / sizeof *values);
}

static const mcp_tool TOOLS[] = {
    {.name = "set_level", .description = "Sets the level of the lamp in percent", .call = set_level,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100}},"
                     "\"required\":[\"level\"]}",
     .hints = MCP_HINTS | MCP_IDEMPOTENT},
    {.name = "status", .description = "Returns the level of the lamp", .call = status,
     .output_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"]}",
     .hints = MCP_HINTS | MCP_READ_ONLY},
    {.name = "fade", .description = "Fades the lamp out, and answers when it is dark", .call = fade},
    {.name = "reset", .description = "Switches the lamp off, if the user agrees", .call = reset},
};
static const mcp_resource RESOURCES[] = {
    {.uri = "lamp://manual", .name = "manual", .read = manual, .mime = "text/plain"},
    {.uri = "lamp://level", .name = "level", .read = read_level, .mime = "text/plain"},
    {.uri = "lamp://scenes/{name}", .name = "scene", .read = scene, .mime = "text/plain"},
};
static const mcp_prompt_argument COSY[] = {{.name = "room", .description = "The room"}};
static const mcp_prompt PROMPTS[] = {
    {.name = "cosy", .description = "Asks for cosy light", .get = cosy, .arguments = COSY, .arguments_len = 1,
     .complete = rooms},
};

static int fail(const char *what, const mcp_problem *problem) {
    fprintf(stderr, "%s: entry %zu: %s\n", what, problem->index, problem->reason);
    return 1;
}

int main(void) {
    static struct lamp lamp;
    static uint64_t memory[2048];
    mcp_config config = {.abi = MCP_ABI, .name = "lamp", .version = "1.0", .state = &lamp, .cancelled = cancelled};
    config.tools = TOOLS;
    config.tools_len = sizeof TOOLS / sizeof *TOOLS;
    config.requests = 4;
    config.input = 4096;
    config.output = 4096;
    config.scratch = 64;
    config.resources = 3;
    config.prompts = 1;
    config.prompt_arguments = 1;
    config.subscriptions = 512;
    config.questions = 1024;

    mcp_server *server;
    mcp_problem problem;
    if (mcp_open(&config, memory, sizeof memory, &server, &problem) != MCP_OK) return fail("tools", &problem);
    if (mcp_offer_resources(server, RESOURCES, 3, &problem) != MCP_OK) return fail("resources", &problem);
    if (mcp_offer_prompts(server, PROMPTS, 1, &problem) != MCP_OK) return fail("prompts", &problem);

    for (;;) {
        uint64_t now = now_in_millis();
        mcp_set_now(server, now);
        if (lamp.fading && now >= lamp.faded_at && mcp_answer(server, lamp.fading, faded, &lamp) != MCP_FULL) lamp.fading = 0;
        if (lamp.changed) mcp_updated(server, "lamp://level");
        lamp.changed = false;
        mcp_next next = mcp_run(server);

        size_t len;
        const uint8_t *pending = mcp_pending(server, &len);
        if (len > 0) {
            ssize_t sent = write(STDOUT_FILENO, pending, len);
            if (sent < 0) return 1;
            mcp_sent(server, (size_t)sent);
            continue;
        }
        if (mcp_done(server)) return 0;
        if (next == MCP_WRITE) continue;

        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        int wait = lamp.fading ? (int)(lamp.faded_at > now ? lamp.faded_at - now : 0) : -1;
        if (poll(&input, 1, wait) <= 0) continue;
        size_t room;
        uint8_t *space = mcp_space(server, &room);
        ssize_t got = read(STDIN_FILENO, space, room);
        if (got > 0) mcp_filled(server, (size_t)got);
        else mcp_end(server);
    }
}
