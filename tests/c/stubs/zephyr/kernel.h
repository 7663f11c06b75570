/* What the example uses of it, as its documentation has it: to check the C of the example. */
#include <stdint.h>
int32_t k_msleep(int32_t millis);
