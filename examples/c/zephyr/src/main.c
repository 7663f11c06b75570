/* A server on Zephyr, over the port that the devicetree calls `zephyr,shell-uart`. Not built with Zephyr here: its C is checked. */
#include <mcp.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

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

int main(void) {
    static struct lamp lamp;
    static uint64_t memory[3000 / 8];
    static const mcp_config config = {
        .abi = MCP_ABI, .name = "lamp", .version = "1.0", .tools = TOOLS, .tools_len = 1, .state = &lamp,
        .requests = 2, .input = 1024, .output = 512, .reopening = true,
    };
    mcp_server *server;
    const struct device *uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_shell_uart));
    if (!device_is_ready(uart) || mcp_open(&config, memory, sizeof memory, &server, NULL) != MCP_OK) return 1;
    for (;;) {
        mcp_next next = mcp_run(server);
        size_t len, room, n = 0;
        const uint8_t *pending = mcp_pending(server, &len);
        for (size_t i = 0; i < len; i++) uart_poll_out(uart, pending[i]);
        mcp_sent(server, len);
        if (next == MCP_WRITE) continue;
        uint8_t *space = mcp_space(server, &room);
        while (n < room && uart_poll_in(uart, &space[n]) == 0) n++;
        mcp_filled(server, n);
        if (n == 0) k_msleep(1);
    }
}
