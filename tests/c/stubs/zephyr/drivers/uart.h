/* What the example uses of it, as its documentation has it: to check the C of the example. */
int uart_poll_in(const struct device *device, unsigned char *byte);
void uart_poll_out(const struct device *device, unsigned char byte);
