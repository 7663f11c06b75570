/* A server on an ESP32 with RISC-V, over UART 0. Not built with ESP-IDF here: its C is checked. */
#include <driver/uart.h>
#include <mcp.h>

struct lamp {
    int32_t level;
};

static void set_level(void *state, mcp_request *request) {
    struct lamp *lamp = state;
    static const char wrong[] = "`level` is a whole number from 0 to 100";
    int64_t level;
    if (mcp_arg_int(request, "level", &level) != MCP_OK || level < 0 || level > 100) {
        mcp_reply_error(request, wrong, sizeof wrong - 1);
        return;
    }
    lamp->level = (int32_t)level;
    mcp_reply_text(request, "done", 4);
}

static const mcp_tool TOOLS[] = {
    {.name = "set_level", .description = "Sets the level in percent", .call = set_level,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"]}"},
};

void app_main(void) {
    static struct lamp lamp;
    static uint64_t memory[3000 / 8];
    static const mcp_config config = {
        .abi = MCP_ABI, .name = "lamp", .version = "1.0", .tools = TOOLS, .tools_len = 1, .state = &lamp,
        .requests = 2, .input = 1024, .output = 512, .reopening = true,
    };
    mcp_server *server;
    uart_driver_install(UART_NUM_0, 1024, 0, 0, NULL, 0);
    if (mcp_open(&config, memory, sizeof memory, &server, NULL) != MCP_OK) return;
    for (;;) {
        mcp_next next = mcp_run(server);
        size_t len, room;
        const uint8_t *pending = mcp_pending(server, &len);
        if (len > 0) uart_write_bytes(UART_NUM_0, pending, len);
        mcp_sent(server, len);
        if (next == MCP_WRITE) continue;
        uint8_t *space = mcp_space(server, &room);
        /* Waits for a byte at most 10 ticks, then for no more. */
        int got = uart_read_bytes(UART_NUM_0, space, 1, 10);
        size_t more = 0;
        if (got == 1) uart_get_buffered_data_len(UART_NUM_0, &more);
        if (more > room - 1) more = room - 1;
        if (more > 0) got += uart_read_bytes(UART_NUM_0, space + 1, (uint32_t)more, 0);
        if (got > 0) mcp_filled(server, (size_t)got);
    }
}
