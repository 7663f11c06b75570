// mcp.h for C++11: servers and clients that own their memory, and requests with std::string. No exceptions: what can fail returns
// an mcp_status. Everything that mcp.h has can be called with `server.get()`.
#ifndef MCP_HPP
#define MCP_HPP
#include "mcp.h"
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mcp {

// A request, within its handler. It must not be kept: take `later()` for an answer that comes later.
class Request {
public:
    explicit Request(mcp_request *raw) : raw_(raw) {}
    mcp_request *get() const { return raw_; }

    // Arguments. `text` needs room for at most `limit` bytes.
    mcp_status arg(const char *name, std::int64_t &value) const { return mcp_arg_int(raw_, name, &value); }
    mcp_status arg(const char *name, bool &value) const { return mcp_arg_bool(raw_, name, &value); }
    mcp_status arg(const char *name, std::string &text, std::size_t limit = 4096) const {
        std::vector<char> room(limit + 1);
        std::size_t len = 0;
        mcp_status status = mcp_arg_text(raw_, name, room.data(), room.size(), &len);
        if (status == MCP_OK) text.assign(room.data(), len);
        return status;
    }
    // The argument, or with a null pointer all of them, as JSON.
    mcp_status json(const char *name, std::string &json) const {
        mcp_slice found;
        mcp_status status = mcp_arg_json(raw_, name, &found);
        if (status == MCP_OK) json.assign(found.bytes, found.len);
        return status;
    }
    std::string name() const {
        mcp_slice found;
        return mcp_name(raw_, &found) == MCP_OK ? std::string(found.bytes, found.len) : std::string();
    }

    // The answer, once.
    mcp_status text(const std::string &text) { return mcp_reply_text(raw_, text.data(), text.size()); }
    mcp_status error(const std::string &text) { return mcp_reply_error(raw_, text.data(), text.size()); }
    mcp_status json(const std::string &json) { return mcp_reply_json(raw_, json.data(), json.size()); }
    mcp_status result(const std::string &json) { return mcp_reply_result(raw_, json.data(), json.size()); }
    mcp_status fail(std::int32_t code, const std::string &text) { return mcp_reply_fail(raw_, code, text.data(), text.size()); }
    mcp_token later() { return mcp_later(raw_); }

    mcp_status progress(std::uint64_t done, std::uint64_t total = 0, const char *message = nullptr) {
        return mcp_progress(raw_, done, total, message);
    }
    mcp_status log(mcp_level level, const std::string &text, const char *logger = nullptr) {
        return mcp_log(raw_, level, logger, text.data(), text.size());
    }

private:
    mcp_request *raw_;
};

// Makes an mcp_handler of a function of C++: mcp::handler<Lamp, set_level>, with void set_level(Lamp &, mcp::Request).
template <typename State, void (*Function)(State &, Request)>
void handler(void *state, mcp_request *request) {
    Function(*static_cast<State *>(state), Request(request));
}

// A connection of a server. `status()` and `problem()` say whether, and why not, it could be opened.
class Server {
public:
    explicit Server(const mcp_config &config) : memory_((mcp_memory(&config) + 7) / 8), server_(nullptr), problem_() {
        status_ = mcp_open(&config, memory_.data(), memory_.size() * 8, &server_, &problem_);
    }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    mcp_status status() const { return status_; }
    const mcp_problem &problem() const { return problem_; }
    mcp_server *get() const { return server_; }

    mcp_next run(std::uint64_t now) {
        mcp_set_now(server_, now);
        return mcp_run(server_);
    }
    std::uint8_t *space(std::size_t &room) { return mcp_space(server_, &room); }
    void filled(std::size_t n) { mcp_filled(server_, n); }
    const std::uint8_t *pending(std::size_t &len) { return mcp_pending(server_, &len); }
    void sent(std::size_t n) { mcp_sent(server_, n); }
    void end() { mcp_end(server_); }
    bool done() const { return mcp_done(server_); }

    // Answers a request later, with a callable that takes a Request.
    template <typename Answer>
    mcp_status answer(mcp_token token, Answer answer) {
        return mcp_answer(server_, token, [](void *state, mcp_request *request) { (*static_cast<Answer *>(state))(Request(request)); }, &answer);
    }

private:
    std::vector<std::uint64_t> memory_;
    mcp_server *server_;
    mcp_problem problem_;
    mcp_status status_;
};

} // namespace mcp
#endif
