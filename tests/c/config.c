/* Configurations that are wrong: each is refused with its status and its reason, and nothing is made. And requests that are null. */
#include <mcp.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void handler(void *state, mcp_request *request) {
    (void)state;
    mcp_reply_text(request, "", 0);
}

static uint64_t memory[1024];

static mcp_config good(const mcp_tool *tools, size_t len) {
    mcp_config config;
    memset(&config, 0, sizeof config);
    config.abi = MCP_ABI;
    config.name = "test";
    config.version = "1";
    config.tools = tools;
    config.tools_len = len;
    config.requests = 1;
    config.input = config.output = 512;
    return config;
}

static void expect(const char *what, mcp_status found, mcp_status expected, const mcp_problem *problem, size_t index) {
    printf("%s: %d, entry %zu: %s\n", what, (int)found, problem->index, problem->reason);
    if (found != expected || problem->index != index || strlen(problem->reason) < 10) exit(1);
}

static void refused(const char *what, mcp_tool tool) {
    mcp_tool tools[2];
    mcp_server *server = NULL;
    mcp_problem problem = {"", 99};
    memset(tools, 0, sizeof tools);
    tools[0].name = "first", tools[0].description = "The first", tools[0].call = handler;
    tools[1] = tool;
    mcp_config config = good(tools, 2);
    expect(what, mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_BAD_CONFIG, &problem, 1);
    if (server) exit(1);
}

static mcp_tool tool(const char *name, const char *description, const char *schema) {
    mcp_tool made;
    memset(&made, 0, sizeof made);
    made.name = name, made.description = description, made.input_schema = schema, made.call = handler;
    return made;
}

/* Each function that takes a request says so if it is null. */
static void no_request(void) {
    int64_t number = 7;
    bool is = true;
    char text[8] = "";
    mcp_slice slice;
    mcp_question question = {"k", MCP_ROOTS, NULL, NULL, NULL, NULL, NULL, 0};
    const char *value = "v";
    const mcp_status found[] = {
        mcp_arg_int(NULL, "a", &number), mcp_arg_bool(NULL, "a", &is), mcp_arg_text(NULL, "a", text, sizeof text, NULL),
        mcp_arg_json(NULL, NULL, &slice), mcp_name(NULL, &slice), mcp_reply_text(NULL, "a", 1), mcp_reply_error(NULL, "a", 1),
        mcp_reply_json(NULL, "{}", 2), mcp_reply_blob(NULL, (const uint8_t *)"a", 1), mcp_reply_result(NULL, "{}", 2),
        mcp_reply_fail(NULL, 1, "a", 1), mcp_reply_values(NULL, &value, 1), mcp_reply_not_found(NULL),
        mcp_progress(NULL, 1, 2, NULL), mcp_log(NULL, MCP_INFO, NULL, "a", 1), mcp_ask(NULL, &question, 1, NULL, 0),
        mcp_input(NULL, "k", NULL, NULL), mcp_input_int(NULL, "k", "n", &number), mcp_input_bool(NULL, "k", "n", &is),
        mcp_input_text(NULL, "k", NULL, text, sizeof text, NULL), mcp_state(NULL, &slice),
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) assert(found[i] == MCP_INVALID);
    assert(mcp_now(NULL) == 0 && mcp_later(NULL) == 0 && !mcp_can_ask(NULL, MCP_ROOTS) && number == 7 && is);
    mcp_release(NULL);
}

/* A result is an object. After what is none the handler can still answer. */
static void no_object(void *state, mcp_request *request) {
    *(bool *)state = mcp_reply_result(request, "[]", 2) == MCP_INVALID && mcp_reply_result(request, "{}", 2) == MCP_OK;
}

int main(void) {
    mcp_problem problem = {"", 99};
    mcp_server *server = NULL;
    mcp_tool one = tool("one", "One", NULL);

    refused("a name with a space", tool("a b", "B", NULL));
    refused("no name", tool(NULL, "B", NULL));
    refused("no description", tool("b", "", NULL));
    refused("a name that is not UTF-8", tool("\xff", "B", NULL));
    refused("a description that is not UTF-8", tool("b", "\xc3\x28", NULL));
    refused("a schema that is no JSON", tool("b", "B", "{\"type\":\"object\""));
    refused("a schema of another type", tool("b", "B", "{\"type\":\"string\"}"));
    mcp_tool broken = tool("b", "B", NULL);
    broken.output_schema = "[]";
    refused("an output schema that is no object", broken);
    broken = tool("b", "B", NULL);
    broken.call = NULL;
    refused("no handler", broken);

    mcp_config config = good(&one, 1);
    config.abi = MCP_ABI + 1;
    assert(mcp_memory(&config) == 0);
    expect("another ABI", mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_ABI_MISMATCH, &problem, 0);

    mcp_tool twice[2];
    twice[0] = twice[1] = one;
    config = good(twice, 2);
    expect("one name twice", mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_BAD_CONFIG, &problem, 0);

    config = good(&one, 1);
    config.version = NULL;
    expect("no version", mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_BAD_CONFIG, &problem, 0);
    config = good(&one, 1);
    config.output = 100;
    expect("a small output", mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_BAD_CONFIG, &problem, 0);
    config = good(NULL, 1);
    expect("no table", mcp_open(&config, memory, sizeof memory, &server, &problem), MCP_INVALID, &problem, 0);
    expect("no config", mcp_open(NULL, memory, sizeof memory, &server, &problem), MCP_INVALID, &problem, 0);

    config = good(&one, 1);
    size_t size = mcp_memory(&config);
    expect("one byte less", mcp_open(&config, memory, size - 1, &server, &problem), MCP_NO_MEMORY, &problem, 0);
    expect("a block at 1", mcp_open(&config, (char *)memory + 1, size, &server, &problem), MCP_NO_MEMORY, &problem, 0);
    expect("no block", mcp_open(&config, NULL, size, &server, &problem), MCP_NO_MEMORY, &problem, 0);
    config.requests = SIZE_MAX / 8;
    assert(mcp_memory(&config) == SIZE_MAX);
    expect("no such memory", mcp_open(&config, memory, sizeof memory, &server, NULL), MCP_NO_MEMORY, &problem, 0);
    assert(server == NULL);

    /* A block from the heap of exactly the size: the sanitizer sees a byte too much. */
    config = good(&one, 1);
    config.resources = 2, config.prompts = 1, config.prompt_arguments = 1, config.subscriptions = 64;
    size = mcp_memory(&config);
    void *block = malloc(size);
    assert(mcp_open(&config, block, size, &server, &problem) == MCP_OK);
    mcp_resource resources[3];
    memset(resources, 0, sizeof resources);
    for (int i = 0; i < 3; i++) resources[i].name = "r", resources[i].read = handler;
    resources[0].uri = "a://{x}", resources[1].uri = "a://b";
    expect("a template first", mcp_offer_resources(server, resources, 2, &problem), MCP_BAD_CONFIG, &problem, 0);
    resources[0].uri = "no scheme";
    expect("no URI", mcp_offer_resources(server, resources, 1, &problem), MCP_BAD_CONFIG, &problem, 0);
    free(block);

    block = malloc(size);
    assert(mcp_open(&config, block, size, &server, &problem) == MCP_OK);
    resources[0].uri = "a://b", resources[1].uri = "a://{x}", resources[2].uri = "a://{x}/y";
    assert(mcp_offer_resources(server, resources, 2, &problem) == MCP_OK);
    mcp_prompt_argument argument = {"x", NULL, true};
    mcp_prompt prompt;
    memset(&prompt, 0, sizeof prompt);
    prompt.name = "p", prompt.description = "P", prompt.get = handler, prompt.arguments = &argument, prompt.arguments_len = 1;
    assert(mcp_offer_prompts(server, &prompt, 1, &problem) == MCP_OK);
    expect("more than was said", mcp_offer_resources(server, resources, 3, &problem), MCP_NO_MEMORY, &problem, 0);
    assert(mcp_run(server) == MCP_READ);
    assert(mcp_answer(server, 77, handler, NULL) == MCP_STALE);
    assert(mcp_progress_of(server, 77, 1, 2, "\xff") == MCP_INVALID);
    assert(mcp_changed(server, (mcp_list)9) == MCP_INVALID);
    free(block);

    no_request();
    bool is_right = false;
    one.call = no_object;
    config = good(&one, 1);
    config.state = &is_right;
    assert(mcp_open(&config, memory, sizeof memory, &server, &problem) == MCP_OK);
    static const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"one\",\"_meta\":{"
                               "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                               "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n";
    size_t room;
    memcpy(mcp_space(server, &room), call, sizeof call - 1);
    mcp_filled(server, sizeof call - 1);
    assert(room >= sizeof call && mcp_run(server) == MCP_READ && is_right);
    puts("config: all as expected");
    return 0;
}
