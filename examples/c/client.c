/* Starts a server, lists its tools, calls one: client PROGRAM [TOOL [ARGUMENTS]] */
#define _POSIX_C_SOURCE 200809L
#include <mcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Set by events, and looked at after mcp_client_run. */
struct session {
    bool connected, listed, over;
    int status;
    mcp_id call;
};

static uint64_t now_in_millis(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void print(const char *what, mcp_slice slice) {
    printf("%s: %.*s\n", what, (int)slice.len, slice.bytes);
}

static void on_event(void *state, const mcp_event *event) {
    struct session *session = state;
    switch (event->kind) {
    case MCP_CONNECTED:
        print("connected", event->json);
        session->connected = true;
        break;
    case MCP_RESULT:
        if (event->ok) {
            print(event->id == session->call ? "result" : "tools", event->json);
        } else {
            fprintf(stderr, "error %d: %.*s\n", (int)event->code, (int)event->text.len, event->text.bytes);
            session->status = 1;
        }
        session->over = event->id == session->call || !event->ok;
        session->listed = true;
        break;
    case MCP_PROGRESS:
        print("progress", event->json);
        break;
    case MCP_NOT_CONNECTED_EVENT:
        fprintf(stderr, "not connected: %.*s\n", (int)event->text.len, event->text.bytes);
        session->status = 1;
        session->over = true;
        break;
    default:
        break;
    }
}

static int start(const char *program, int *to, int *from) {
    int in[2], out[2];
    if (pipe(in) < 0 || pipe(out) < 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    *to = in[1], *from = out[0];
    return child;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: client PROGRAM [TOOL [ARGUMENTS]]\n");
        return 2;
    }
    static uint64_t memory[9000];
    struct session session = {0};
    mcp_client_config config = {.abi = MCP_ABI, .name = "c-client", .version = "1.0", .event = on_event, .state = &session};
    config.requests = 4;
    config.input = 65536;
    config.output = 4096;
    config.timeout = 10000;
    mcp_client *client;
    if (mcp_client_open(&config, memory, sizeof memory, &client) != MCP_OK) return 2;

    int to, from;
    int child = start(argv[1], &to, &from);
    if (child < 0) return 2;
    bool asked = false, called = false;
    for (;;) {
        uint64_t now = now_in_millis();
        mcp_client_run(client, now);
        if (session.over) break;
        if (session.connected && !asked) {
            asked = true;
            if (mcp_client_list_tools(client, NULL, NULL) != MCP_OK) break;
        }
        if (session.listed && !called) {
            called = true;
            if (argc < 3) break;
            mcp_status sent = mcp_client_call(client, argv[2], argc > 3 ? argv[3] : NULL, true, &session.call);
            if (sent != MCP_OK) {
                fprintf(stderr, "the call was not sent: status %d\n", (int)sent);
                session.status = 2;
                break;
            }
        }
        size_t len;
        const uint8_t *pending = mcp_client_pending(client, &len);
        struct pollfd ends[2] = {{.fd = from, .events = POLLIN}, {.fd = len > 0 ? to : -1, .events = POLLOUT}};
        uint64_t deadline = mcp_client_deadline(client);
        int wait = deadline == UINT64_MAX ? -1 : deadline > now ? (int)(deadline - now) : 0;
        if (poll(ends, 2, wait) <= 0) continue;
        if (ends[1].revents) {
            ssize_t sent = write(to, pending, len);
            if (sent < 0) mcp_client_end(client);
            else mcp_client_sent(client, (size_t)sent);
        }
        if (ends[0].revents) {
            size_t room;
            uint8_t *space = mcp_client_space(client, &room);
            ssize_t got = read(from, space, room);
            if (got > 0) mcp_client_filled(client, (size_t)got);
            else mcp_client_end(client);
        }
    }
    close(to);
    close(from);
    waitpid(child, NULL, 0);
    return session.status;
}
