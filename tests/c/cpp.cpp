// Questions, completions and HTTP by mcp.hpp, without sockets: the bytes go from one buffer to the other.
#include <mcp.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

struct House {
    mcp_token asked = 0;
    std::string typed;
};

static void erase(House &, mcp::Request request) {
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\"}}}";
    mcp_action action;
    bool sure = false;
    if (!request.can_ask(MCP_FORM)) request.error("nobody to ask");
    else if (request.input("sure", action) != MCP_OK) request.ask({mcp::form("sure", "Erase all?", schema)});
    else if (action == MCP_ACCEPTED && request.input("sure", "sure", sure) == MCP_OK && sure) request.text("erased");
    else request.error("kept");
}

static void greet(House &, mcp::Request request) { request.text("Make it cosy"); }

static void rooms(House &house, mcp::Request request) {
    if (request.arg("room", house.typed) == MCP_OK && house.typed == "l") house.asked = request.later();
    else request.values({"kitchen", "kids' room", "living room"});
}

static void check(const std::string &said, const char *wanted) {
    if (said.find(wanted) != std::string::npos) return;
    std::fprintf(stderr, "cpp.cpp: no %s in %s\n", wanted, said.c_str());
    std::exit(1);
}

static std::string say(mcp::Server &server, const std::string &line) {
    std::size_t room = 0, len = 0;
    std::uint8_t *space = server.space(room);
    std::copy(line.begin(), line.end(), space);
    server.filled(line.size());
    while (server.run(0) == MCP_WRITE) {}
    const std::uint8_t *pending = server.pending(len);
    std::string said(reinterpret_cast<const char *>(pending), len);
    server.sent(len);
    return said;
}

static void over_lines(const mcp_config &config, const mcp_prompt &prompt, House &house) {
    mcp::Server server(config);
    check(std::to_string(server.status()), "0");
    mcp_offer_prompts(server.get(), &prompt, 1, nullptr);
    check(say(server, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
                      "\"capabilities\":{\"elicitation\":{}},\"clientInfo\":{\"name\":\"t\",\"version\":\"0\"}}}\n"), "\"completions\":{}");
    const std::string erase = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"erase\"}}\n";
    check(say(server, erase), "\"id\":1,\"method\":\"elicitation/create\"");
    check(say(server, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"accept\",\"content\":{\"sure\":true}}}\n"), "\"text\":\"erased\"");
    check(say(server, erase), "\"id\":2,\"method\":\"elicitation/create\"");
    check(say(server, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"action\":\"decline\"}}\n"), "\"text\":\"kept\"");
    auto complete = [&](const char *typed) {
        return say(server, std::string("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"completion/complete\",\"params\":{\"ref\":{\"type\":"
                                       "\"ref/prompt\",\"name\":\"cosy\"},\"argument\":{\"name\":\"room\",\"value\":\"") + typed + "\"}}}\n");
    };
    check(complete("ki"), "\"values\":[\"kitchen\",\"kids' room\"]");
    check("[" + complete("l") + "]", "[]");
    auto late = [](mcp::Request request) { request.values({"living room", "hall"}); };
    if (server.answer(house.asked, late) != MCP_WRONG_KIND) check("answered a completion as a tool", "!");
    if (server.answer_completion(house.asked, house.typed, late) != MCP_OK) check("not answered", "!");
    std::size_t len = 0;
    const std::uint8_t *pending = server.pending(len);
    check(std::string(reinterpret_cast<const char *>(pending), len), "\"id\":3,\"result\":{\"completion\":{\"values\":[\"living room\"]");
}

static void over_http(const mcp_config &config) {
    mcp_http_config http = {};
    http.connections = 2;
    http.streams = 1;
    http.random = [](void *, std::uint8_t *bytes, std::size_t len) { std::fill(bytes, bytes + len, std::uint8_t(7)); };
    mcp::HttpServer server(config, http);
    check(std::to_string(server.status()), "0");
    const std::string body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                             "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    const std::string text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                             "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    std::string said;
    std::size_t at = 0;
    for (int turn = 0; turn < 100; turn++) {
        server.set_now(1);
        server.run(1);
        std::size_t len = 0, room = 0;
        const std::uint8_t *pending = server.pending(1, len);
        said.append(reinterpret_cast<const char *>(pending), len);
        server.sent(1, len);
        std::uint8_t *space = server.space(1, room);
        std::size_t some = std::min(room, text.size() - at);
        std::copy(text.begin() + long(at), text.begin() + long(at + some), space);
        server.filled(1, some);
        at += some;
    }
    check(said, "HTTP/1.1 200");
    check(said, "\"name\":\"erase\"");
    server.end(1);
    server.close(1);
    server.end();
    check(server.done() ? "done" : "not", "done");
}

int main() {
    House house;
    mcp_tool tool = {};
    tool.name = "erase";
    tool.description = "Erases all";
    tool.call = mcp::handler<House, erase>;
    tool.reserve = 1024;
    mcp_prompt_argument argument = {};
    argument.name = "room";
    mcp_prompt prompt = {};
    prompt.name = "cosy";
    prompt.description = "Asks for cosy light";
    prompt.get = mcp::handler<House, greet>;
    prompt.complete = mcp::handler<House, rooms>;
    prompt.arguments = &argument;
    prompt.arguments_len = 1;
    mcp_config config = {};
    config.abi = MCP_ABI;
    config.name = "house";
    config.version = "1.0";
    config.tools = &tool;
    config.tools_len = 1;
    config.state = &house;
    config.requests = 4;
    config.input = config.output = 4096;
    config.questions = 1024;
    config.prompts = config.prompt_arguments = 1;
    over_lines(config, prompt, house);
    over_http(config);
    std::puts("cpp.cpp: all passed");
}
