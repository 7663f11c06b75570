/* The loop of a server over HTTP, with the sockets of POSIX: to copy. */
#include <mcp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Called in each turn: answers late requests, tells of changes. Returns the time of its next call, UINT64_MAX for none. */
typedef uint64_t (*http_turn)(mcp_server *server, void *state, uint64_t now);

static uint64_t http_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* mcp_http_config.random: of the system. */
static void http_random(void *state, uint8_t *bytes, size_t len) {
    (void)state;
    int random = open("/dev/urandom", O_RDONLY);
    while (len > 0) {
        ssize_t got = read(random, bytes, len);
        if (got <= 0) abort();
        bytes += got, len -= (size_t)got;
    }
    close(random);
}

/* Listens on a port of this machine. Returns -1 if that fails. */
static int http_listen(uint16_t port) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 128) < 0) return -1;
    fcntl(listener, F_SETFL, O_NONBLOCK);
    return listener;
}

struct http_socket {
    int fd; /* -1: the connection is free */
    bool is_shut;
};

static void http_drop(mcp_server *server, struct http_socket *sockets, size_t i) {
    close(sockets[i].fd);
    sockets[i].fd = -1;
    mcp_http_close(server, i);
}

/* Serves a connection and sends. Returns the events to wait for. */
static short http_serve_one(mcp_server *server, struct http_socket *sockets, size_t i, bool *again) {
    size_t len, room;
    mcp_http_next next = mcp_http_run(server, i);
    const uint8_t *pending = mcp_http_pending(server, i, &len);
    if (len > 0) {
        ssize_t sent = send(sockets[i].fd, pending, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            http_drop(server, sockets, i);
            return 0;
        }
        if (sent > 0) mcp_http_sent(server, i, (size_t)sent);
        mcp_http_pending(server, i, &len);
    }
    if (len == 0 && next == MCP_HTTP_CLOSE) {
        http_drop(server, sockets, i);
        return 0;
    }
    if (len == 0 && next == MCP_HTTP_SHUT && !sockets[i].is_shut) {
        shutdown(sockets[i].fd, SHUT_WR);
        sockets[i].is_shut = true;
    }
    if (len == 0 && next == MCP_HTTP_WRITE) *again = true;
    mcp_http_space(server, i, &room);
    return (short)((len > 0 ? POLLOUT : 0) | (room > 0 && next != MCP_HTTP_WRITE && next != MCP_HTTP_CLOSE ? POLLIN : 0));
}

static void http_read(mcp_server *server, struct http_socket *sockets, size_t i) {
    size_t room;
    uint8_t *space = mcp_http_space(server, i, &room);
    ssize_t got = room > 0 ? read(sockets[i].fd, space, room) : -1;
    if (got > 0) mcp_http_filled(server, i, (size_t)got);
    else if (got == 0) mcp_http_end(server, i);
    else if (room > 0 && errno != EAGAIN && errno != EINTR) http_drop(server, sockets, i);
}

/* Serves until *stop, and then until all is answered, for at most two seconds. Returns 0, or 1 if that cannot be. */
static int http_serve(mcp_server *server, size_t connections, int listener, http_turn turn, void *state, volatile bool *stop) {
    struct http_socket *sockets = calloc(connections, sizeof *sockets);
    struct pollfd *events = calloc(connections + 1, sizeof *events);
    if (!sockets || !events) return 1;
    for (size_t i = 0; i < connections; i++) sockets[i].fd = -1;
    uint64_t end = UINT64_MAX;
    for (;;) {
        uint64_t now = http_now();
        mcp_set_now(server, now);
        uint64_t wake = turn ? turn(server, state, now) : UINT64_MAX;
        if (*stop && end == UINT64_MAX) {
            mcp_end(server);
            end = now + 2000;
        }
        bool again = false;
        size_t vacant = connections;
        for (size_t i = 0; i < connections; i++) {
            short wanted = sockets[i].fd < 0 ? 0 : http_serve_one(server, sockets, i, &again);
            if (sockets[i].fd < 0) vacant = i;
            events[i] = (struct pollfd){.fd = sockets[i].fd, .events = wanted};
        }
        if (*stop && (now >= end || mcp_done(server))) break;
        events[connections] = (struct pollfd){.fd = vacant < connections && !*stop ? listener : -1, .events = POLLIN};

        uint64_t deadline = mcp_http_deadline(server);
        if (wake < deadline) deadline = wake;
        if (end < deadline) deadline = end;
        uint64_t left = deadline > now ? deadline - now : 0;
        int wait = again ? 0 : left > 500 ? 500 : (int)left; /* a signal may come just before */
        if (poll(events, (nfds_t)connections + 1, wait) <= 0) continue;
        for (size_t i = 0; i < connections; i++) {
            if (events[i].revents & (POLLERR | POLLNVAL)) http_drop(server, sockets, i);
            else if (events[i].revents & (POLLIN | POLLHUP)) http_read(server, sockets, i);
        }
        if (events[connections].revents & POLLIN) {
            int fd = accept(listener, NULL, NULL);
            if (fd < 0) continue;
            fcntl(fd, F_SETFL, O_NONBLOCK);
            sockets[vacant] = (struct http_socket){.fd = fd};
        }
    }
    free(sockets), free(events);
    return 0;
}
