/* One character at a time: only the second byte has limits that depend on the first (Unicode, table
 * 3-7); callers that want speed skip ASCII themselves. */
#include "core/base/utf8.h"

size_t utf8_character(const uint8_t *bytes, size_t left, size_t *bad) {
    uint8_t lead = bytes[0];
    *bad = 1;
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < length; i++) {
        *bad = i;
        if (i >= left || bytes[i] < low || bytes[i] > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}
