// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source lines of addresses. A table is
 *
 *   base (u64), counts of symbols, blocks, files and bytes of rows (u32 each);
 *   symbols: hash of the name, where it begins; blocks: where the first row
 *   begins, where its bytes begin; files: where the name begins; rows; names
 *
 * with places counted from base. A row is how much later it begins, then the
 * lines it is further (zigzag) over one bit that says whether another file's
 * number follows: numbers of seven bits a byte. line_table.rs has the same format.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "features.h"
#include "script.h"
#include "lines.h"

enum { LINES_SYMBOLS = 2, LINES_BLOCKS, LINES_FILES, LINES_ROW_BYTES, LINES_HEADER };

static u32 table_word(const struct spile_lines *table, unsigned int index)
{
	u32 value;

	memcpy(&value, table->bytes + index * 4, sizeof(value));
	return le32_to_cpu((__force __le32)value);
}

static u64 table_base(const struct spile_lines *table)
{
	return table_word(table, 0) | (u64)table_word(table, 1) << 32;
}

static u64 packed_number(const u8 **at, const u8 *end)
{
	u64 value = 0;
	unsigned int shift = 0;

	while (*at < end && shift < 64) {
		u8 byte = *(*at)++;

		value |= (u64)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
		shift += 7;
	}
	return value;
}

/*
 * The last of `count` pairs of words from `first` on whose first word is not above
 * `at`; count: there is none.
 */
static unsigned int search_pairs(const struct spile_lines *table, unsigned int first,
				 unsigned int count, u32 at)
{
	unsigned int low = 0, high = count;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (table_word(table, first + middle * 2) <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : count;
}

static bool find_in(const struct spile_lines *table, u32 wanted, struct spile_line *line)
{
	unsigned int blocks = table_word(table, LINES_BLOCKS),
		     files = table_word(table, LINES_FILES);
	unsigned int first_block = LINES_HEADER + table_word(table, LINES_SYMBOLS) * 2,
		     first_file = first_block + blocks * 2;
	const u8 *rows = table->bytes + (first_file + files) * 4;
	unsigned int block = search_pairs(table, first_block, blocks, wanted);
	const u8 *at, *end;
	s64 number_of_line = 0;
	u64 place, file = 0;
	bool found = false;

	if (block == blocks)
		return false;
	place = table_word(table, first_block + block * 2);
	at = rows + table_word(table, first_block + block * 2 + 1);
	end = rows + (block + 1 < blocks ? table_word(table, first_block + block * 2 + 3) :
					   table_word(table, LINES_ROW_BYTES));
	while (at < end) {
		u64 step;

		place += packed_number(&at, end);
		if (place > wanted)
			break;
		step = packed_number(&at, end);
		if (step & 1)
			file = packed_number(&at, end);
		number_of_line += (s64)(step >> 2) ^ -(s64)(step >> 1 & 1);
		found = true;
	}
	if (!found || number_of_line <= 0 || file >= files)
		return false;
	line->file = (const char *)rows + table_word(table, LINES_ROW_BYTES) +
		     table_word(table, first_file + file);
	line->line = number_of_line;
	return true;
}

/* FNV-1a */
static u32 name_hash(const char *name, size_t length)
{
	u32 value = 0x811c9dc5;

	while (length--)
		value = (value ^ (u8)*name++) * 0x01000193;
	return value;
}

bool spile_line_in_module(const char *text, struct spile_line *line)
{
	const char *plus = strchr(text, '+'), *open = strchr(text, '[');
	unsigned int i;

	if (!plus || !open)
		return false;
	for (i = 0; i < spile_script.line_table_count; i++) {
		const struct spile_lines *table = &spile_script.lines[i];
		size_t length = strlen(table->module);
		unsigned int symbols = table_word(table, LINES_SYMBOLS), symbol;
		unsigned long offset = 0;
		const char *digit;
		u32 name;

		if (!length || strncmp(open + 1, table->module, length) ||
		    (open[1 + length] != ']' && open[1 + length] != ' '))
			continue;
		name = name_hash(text, plus - text);
		symbol = search_pairs(table, LINES_HEADER, symbols, name);
		if (symbol == symbols || table_word(table, LINES_HEADER + symbol * 2) != name)
			return false;
		for (digit = plus + 3; isxdigit(*digit); digit++)
			offset = offset << 4 | hex_to_bin(*digit);
		return find_in(table, table_word(table, LINES_HEADER + symbol * 2 + 1) + offset,
			       line);
	}
	return false;
}

bool spile_line_in_kernel(unsigned long address, struct spile_line *line)
{
	unsigned int i;

	for (i = 0; i < spile_script.line_table_count; i++) {
		const struct spile_lines *table = &spile_script.lines[i];
		unsigned long at = address - spile_slide - (unsigned long)table_base(table);

		if (!*table->module && at <= U32_MAX && find_in(table, at, line))
			return true;
	}
	return false;
}
