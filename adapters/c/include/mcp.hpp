// mcp.h for C++11: servers that own their memory, over lines and over HTTP, and requests with std::string. No exceptions: what can fail returns
// an mcp_status. Everything that mcp.h has can be called with `server.get()`.
#ifndef MCP_HPP
#define MCP_HPP
#include "mcp.h"
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mcp {

// Questions for `Request::ask`. The texts must live until it returns.
inline mcp_question question(mcp_question_kind kind, const char *key, const char *message) {
    mcp_question made = {};
    made.key = key;
    made.kind = kind;
    made.message = message;
    return made;
}
inline mcp_question form(const char *key, const char *message, const char *schema) {
    mcp_question made = question(MCP_FORM, key, message);
    made.schema = schema;
    return made;
}
inline mcp_question visit(const char *key, const char *message, const char *url, const char *id) {
    mcp_question made = question(MCP_VISIT, key, message);
    made.url = url;
    made.id = id;
    return made;
}
inline mcp_question model(const char *key, const char *message, std::uint32_t max_tokens, const char *system = nullptr) {
    mcp_question made = question(MCP_MODEL, key, message);
    made.max_tokens = max_tokens;
    made.system = system;
    return made;
}
inline mcp_question roots(const char *key) { return question(MCP_ROOTS, key, nullptr); }

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

    // Of a completion: those of the values that begin with what was typed.
    mcp_status values(const std::vector<std::string> &values) {
        std::vector<const char *> texts;
        for (const std::string &value : values) texts.push_back(value.c_str());
        return mcp_reply_values(raw_, texts.data(), texts.size());
    }

    // Questions to the client: see mcp_ask. The answer to one, in the next run of the handler; with a null pointer as `name` the
    // text of a model.
    bool can_ask(mcp_question_kind kind) const { return mcp_can_ask(raw_, kind); }
    mcp_status ask(const std::vector<mcp_question> &questions, const std::string &state = std::string()) {
        return mcp_ask(raw_, questions.data(), questions.size(), state.data(), state.size());
    }
    mcp_status input(const char *key, mcp_action &action) const { return mcp_input(raw_, key, &action, nullptr); }
    mcp_status input(const char *key, const char *name, std::int64_t &value) const { return mcp_input_int(raw_, key, name, &value); }
    mcp_status input(const char *key, const char *name, bool &value) const { return mcp_input_bool(raw_, key, name, &value); }
    mcp_status input(const char *key, const char *name, std::string &text, std::size_t limit = 4096) const {
        std::vector<char> room(limit + 1);
        std::size_t len = 0;
        mcp_status status = mcp_input_text(raw_, key, name, room.data(), room.size(), &len);
        if (status == MCP_OK) text.assign(room.data(), len);
        return status;
    }
    std::string state() const {
        mcp_slice kept;
        return mcp_state(raw_, &kept) == MCP_OK && kept.len > 0 ? std::string(kept.bytes, kept.len) : std::string();
    }

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

// The common part of servers: their memory. `status()` and `problem()` say whether, and why not, it could be opened.
class Opened {
public:
    Opened(const Opened &) = delete;
    Opened &operator=(const Opened &) = delete;

    mcp_status status() const { return status_; }
    const mcp_problem &problem() const { return problem_; }
    mcp_server *get() const { return server_; }
    void end() { mcp_end(server_); }
    bool done() const { return mcp_done(server_); }

    // Answers a request later, with a callable that takes a Request.
    template <typename Answer>
    mcp_status answer(mcp_token token, Answer answer) {
        return mcp_answer(server_, token, call<Answer>, &answer);
    }
    template <typename Answer>
    mcp_status answer_read(mcp_token token, const std::string &uri, Answer answer) {
        return mcp_answer_read(server_, token, uri.c_str(), call<Answer>, &answer);
    }
    template <typename Answer>
    mcp_status answer_prompt(mcp_token token, Answer answer) {
        return mcp_answer_prompt(server_, token, call<Answer>, &answer);
    }
    template <typename Answer>
    mcp_status answer_completion(mcp_token token, const std::string &value, Answer answer) {
        return mcp_answer_completion(server_, token, value.c_str(), call<Answer>, &answer);
    }

protected:
    explicit Opened(std::size_t bytes) : memory_((bytes + 7) / 8), server_(nullptr), problem_(), status_(MCP_OK) {}

    std::vector<std::uint64_t> memory_;
    mcp_server *server_;
    mcp_problem problem_;
    mcp_status status_;

private:
    template <typename Answer>
    static void call(void *answer, mcp_request *request) {
        (*static_cast<Answer *>(answer))(Request(request));
    }
};

// A connection of a server over lines.
class Server : public Opened {
public:
    explicit Server(const mcp_config &config) : Opened(mcp_memory(&config)) {
        status_ = mcp_open(&config, memory_.data(), memory_.size() * 8, &server_, &problem_);
    }

    mcp_next run(std::uint64_t now) {
        mcp_set_now(server_, now);
        return mcp_run(server_);
    }
    std::uint8_t *space(std::size_t &room) { return mcp_space(server_, &room); }
    void filled(std::size_t n) { mcp_filled(server_, n); }
    const std::uint8_t *pending(std::size_t &len) { return mcp_pending(server_, &len); }
    void sent(std::size_t n) { mcp_sent(server_, n); }
};

// A server over HTTP, for many connections: each has a number. The program has the sockets.
class HttpServer : public Opened {
public:
    HttpServer(const mcp_config &config, const mcp_http_config &http) : Opened(mcp_http_memory(&config, &http)) {
        status_ = mcp_http_open(&config, &http, memory_.data(), memory_.size() * 8, &server_, &problem_);
    }

    void set_now(std::uint64_t now) { mcp_set_now(server_, now); }
    std::uint64_t deadline() { return mcp_http_deadline(server_); }
    mcp_http_next run(std::size_t connection) { return mcp_http_run(server_, connection); }
    std::uint8_t *space(std::size_t connection, std::size_t &room) { return mcp_http_space(server_, connection, &room); }
    void filled(std::size_t connection, std::size_t n) { mcp_http_filled(server_, connection, n); }
    const std::uint8_t *pending(std::size_t connection, std::size_t &len) { return mcp_http_pending(server_, connection, &len); }
    void sent(std::size_t connection, std::size_t n) { mcp_http_sent(server_, connection, n); }
    using Opened::end;
    void end(std::size_t connection) { mcp_http_end(server_, connection); }
    void close(std::size_t connection) { mcp_http_close(server_, connection); }
};

} // namespace mcp
#endif
