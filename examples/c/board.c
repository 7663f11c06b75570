/* A server on a Cortex-M3 without an operating system, a heap or a C library: QEMU's lm3s6965evb, over its first UART. */
#include <mcp.h>

#define UART_DATA (*(volatile uint32_t *)0x4000C000)
#define UART_FLAGS (*(volatile uint32_t *)0x4000C018)
#define RECEIVE_EMPTY (1u << 4)
#define TRANSMIT_FULL (1u << 5)

struct board {
    int32_t level;
};

#define REPLY(function, request, text) function(request, text, sizeof(text) - 1)

static void set_level(void *state, mcp_request *request) {
    struct board *board = state;
    int64_t level;
    if (mcp_arg_int(request, "level", &level) != MCP_OK || level < 0 || level > 100) {
        REPLY(mcp_reply_error, request, "`level` is a whole number from 0 to 100");
        return;
    }
    board->level = (int32_t)level;
    REPLY(mcp_reply_text, request, "done");
}

static const mcp_tool TOOLS[] = {
    {.name = "set_level", .description = "Sets the level in percent", .call = set_level,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"]}"},
};

int main(void) {
    static struct board board;
    static uint64_t memory[1900 / 8];
    static const mcp_config config = {
        .abi = MCP_ABI, .name = "c-board", .version = "1.0", .tools = TOOLS, .tools_len = 1, .state = &board,
        .requests = 1, .input = 512, .output = 256, .reopening = true,
    };
    mcp_server *server;
    if (mcp_open(&config, memory, sizeof memory, &server, 0) != MCP_OK) for (;;) {}
    for (;;) {
        mcp_next next = mcp_run(server);
        size_t len;
        const uint8_t *pending = mcp_pending(server, &len);
        for (size_t i = 0; i < len; i++) {
            while (UART_FLAGS & TRANSMIT_FULL) {}
            UART_DATA = pending[i];
        }
        mcp_sent(server, len);
        if (next == MCP_WRITE) continue;
        size_t room, n = 0;
        uint8_t *space = mcp_space(server, &room);
        while (UART_FLAGS & RECEIVE_EMPTY) {}
        while (n < room && !(UART_FLAGS & RECEIVE_EMPTY)) space[n++] = (uint8_t)UART_DATA;
        mcp_filled(server, n);
    }
}

extern uint32_t bss_begin, bss_end, stack_end;

void reset(void) {
    for (uint32_t *word = &bss_begin; word < &bss_end; word++) *word = 0;
    main();
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {&stack_end, (void *)(uintptr_t)reset, (void *)(uintptr_t)reset, (void *)(uintptr_t)reset};
