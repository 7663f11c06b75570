/* What the example uses of it, as its documentation has it: to check the C of the example. */
#include <stddef.h>
#include <stdint.h>
enum { UART_NUM_0 = 0 };
int uart_driver_install(int port, int receive, int send, int queue, void *handle, int flags);
int uart_write_bytes(int port, const void *bytes, size_t len);
int uart_read_bytes(int port, void *bytes, uint32_t len, uint32_t ticks);
int uart_get_buffered_data_len(int port, size_t *len);
