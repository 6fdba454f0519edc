/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_HEX_TEXT_H
#define SPILE_HEX_TEXT_H

/* Length of "0x...", without a NUL. */
unsigned int spile_hex_bytes(unsigned long value);
/* Writes this text, without a NUL. Any context. */
void spile_put_hex(char *out, unsigned long value);

#endif
