/* What the example uses of it, as its documentation has it: to check the C of the example. */
#include <stdbool.h>
struct device;
extern const struct device shell_uart;
#define DT_CHOSEN(name) name
#define DEVICE_DT_GET(node) (&shell_uart)
bool device_is_ready(const struct device *device);
