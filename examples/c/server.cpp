// A server in C++11 over standard input and output.
#include <mcp.hpp>
#include <cstdio>
#include <unistd.h>

struct Lamp {
    std::int64_t level = 0;
};

static void set_level(Lamp &lamp, mcp::Request request) {
    std::int64_t level = 0;
    if (request.arg("level", level) != MCP_OK || level < 0 || level > 100) {
        request.error("`level` is a whole number from 0 to 100");
        return;
    }
    lamp.level = level;
    request.text("done");
}

static void status(Lamp &lamp, mcp::Request request) { request.json("{\"level\":" + std::to_string(lamp.level) + "}"); }

int main() {
    mcp_tool tools[2] = {};
    tools[0].name = "set_level";
    tools[0].description = "Sets the level of the lamp in percent";
    tools[0].input_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"]}";
    tools[0].call = mcp::handler<Lamp, set_level>;
    tools[1].name = "status";
    tools[1].description = "Returns the level of the lamp";
    tools[1].call = mcp::handler<Lamp, status>;

    Lamp lamp;
    mcp_config config = {};
    config.abi = MCP_ABI;
    config.name = "lamp";
    config.version = "1.0";
    config.tools = tools;
    config.tools_len = 2;
    config.state = &lamp;
    config.requests = 4;
    config.input = config.output = 4096;
    mcp::Server server(config);
    if (server.status() != MCP_OK) {
        std::fprintf(stderr, "entry %zu: %s\n", server.problem().index, server.problem().reason);
        return 1;
    }
    for (;;) {
        mcp_next next = server.run(0);
        std::size_t len = 0;
        const std::uint8_t *pending = server.pending(len);
        if (len > 0) {
            ssize_t sent = write(STDOUT_FILENO, pending, len);
            if (sent < 0) return 1;
            server.sent(static_cast<std::size_t>(sent));
            continue;
        }
        if (server.done()) return 0;
        if (next == MCP_WRITE) continue;
        std::size_t room = 0;
        std::uint8_t *space = server.space(room);
        ssize_t got = read(STDIN_FILENO, space, room);
        if (got > 0) server.filled(static_cast<std::size_t>(got));
        else server.end();
    }
}
