/* A server over HTTP, for several clients: http_server [PORT], at http://127.0.0.1:8937/mcp. examples/c/Makefile builds it. */
#define _POSIX_C_SOURCE 200809L
#include "http_posix.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { CONNECTIONS = 16, FADING = 4 };

struct lamp {
    int64_t level;
    struct {
        mcp_token token; /* a call that is answered when the lamp has faded; 0: none */
        uint64_t at;
    } fading[FADING];
    bool changed; /* the level, since its subscribers were told */
};

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
    mcp_reply_text(request, "done", 4);
}

static void fade(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    static const char busy[] = "the lamp is fading for too many clients";
    for (size_t i = 0; i < FADING; i++) {
        if (lamp->fading[i].token) continue;
        lamp->fading[i].at = mcp_now(request) + 300;
        lamp->fading[i].token = mcp_later(request);
        return;
    }
    mcp_reply_error(request, busy, strlen(busy));
}

static void faded(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    lamp->level = 0;
    lamp->changed = true;
    mcp_reply_text(request, "faded", 5);
}

static void cancelled(void *state, mcp_token token) {
    struct lamp *lamp = state;
    for (size_t i = 0; i < FADING; i++) {
        if (lamp->fading[i].token == token) lamp->fading[i].token = 0;
    }
}

static void read_level(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    char text[8];
    int len = snprintf(text, sizeof text, "%d", (int)lamp->level);
    mcp_reply_text(request, text, (size_t)len);
}

static const mcp_tool TOOLS[] = {
    {.name = "set_level", .description = "Sets the level of the lamp in percent", .call = set_level,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100}},"
                     "\"required\":[\"level\"]}",
     .hints = MCP_HINTS | MCP_IDEMPOTENT},
    {.name = "fade", .description = "Fades the lamp out, and answers when it is dark", .call = fade},
};
static const mcp_resource RESOURCES[] = {
    {.uri = "lamp://level", .name = "level", .read = read_level, .mime = "text/plain"},
};

/* Answers what is due, and tells subscribers. */
static uint64_t turn(mcp_server *server, void *state, uint64_t now) {
    struct lamp *lamp = state;
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < FADING; i++) {
        if (!lamp->fading[i].token) continue;
        if (now >= lamp->fading[i].at && mcp_answer(server, lamp->fading[i].token, faded, lamp) != MCP_FULL) lamp->fading[i].token = 0;
        else if (lamp->fading[i].at < next) next = now < lamp->fading[i].at ? lamp->fading[i].at : now + 10;
    }
    if (lamp->changed) mcp_updated(server, "lamp://level");
    lamp->changed = false;
    return next;
}

static volatile bool stop;

static void on_signal(int number) {
    (void)number;
    stop = true;
}

int main(int argc, char **argv) {
    static struct lamp lamp;
    static uint64_t memory[32768];
    mcp_config config = {.abi = MCP_ABI, .name = "lamp", .version = "1.0", .state = &lamp, .cancelled = cancelled};
    config.tools = TOOLS;
    config.tools_len = sizeof TOOLS / sizeof *TOOLS;
    config.requests = 16;
    config.input = 4096;
    config.output = 4096;
    config.scratch = 64;
    config.resources = 1;
    config.subscriptions = 2048;
    mcp_http_config http = {.connections = CONNECTIONS, .sessions = 16, .streams = 8, .random = http_random};

    mcp_server *server;
    mcp_problem problem;
    if (mcp_http_open(&config, &http, memory, sizeof memory, &server, &problem) != MCP_OK ||
        mcp_offer_resources(server, RESOURCES, 1, &problem) != MCP_OK) {
        fprintf(stderr, "entry %zu: %s\n", problem.index, problem.reason);
        return 1;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int listener = http_listen(argc > 1 ? (uint16_t)atoi(argv[1]) : 8937);
    if (listener < 0) {
        perror("listen");
        return 1;
    }
    return http_serve(server, CONNECTIONS, listener, turn, &lamp, &stop);
}
