/* Printable Latin-1 characters stand for their own byte; the other 68 bytes are U+0100 and up, in
 * order. */
#include "tokenizer/byte_level.h"

static bool is_printable(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

void byte_level_init(struct byte_level *alphabet) {
    for (int i = 0; i < BYTE_LEVEL_ALPHABET; i++)
        alphabet->byte_of[i] = -1;
    int next = 0x100;
    for (int byte = 0; byte < 256; byte++)
        alphabet->byte_of[is_printable(byte) ? byte : next++] = (int16_t)byte;
}

bool byte_level_decode(const struct byte_level *alphabet, struct view stored, char *out,
                       size_t *length) {
    size_t count = 0;
    for (size_t i = 0; i < stored.length; i++) {
        unsigned code_point = (unsigned char)stored.bytes[i];
        if (code_point >= 0x80) {
            unsigned low = i + 1 < stored.length ? (unsigned char)stored.bytes[i + 1] : 0;
            if (code_point < 0xC2 || code_point > 0xC5 || (low & 0xC0) != 0x80)
                return false;
            code_point = (code_point & 0x1Fu) << 6 | (low & 0x3Fu);
            i++;
        }
        if (code_point >= BYTE_LEVEL_ALPHABET || alphabet->byte_of[code_point] < 0)
            return false;
        out[count++] = (char)alphabet->byte_of[code_point];
    }
    *length = count;
    return true;
}
