// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The chart of a histogram, as SystemTap draws it: a row for each bucket from two before the
 * first that has values to two after the last, with a bar of at most 50 columns; gaps of more
 * than four empty rows are replaced by one with `~`. The script may have other numbers (-D
 * HIST_WIDTH, HIST_ELISION). Values outside the range of a linear histogram have a row only if
 * there are any. The twin of loader/src/records/histogram.rs. Any context; bounded by the buckets.
 */
#include "histogram.h"
#include "script.h"

enum {
	COLUMNS = 50,		/* of the longest bar */
	KEPT = 2,		/* empty rows next to a non-empty one */
	KEPT_ALL = 255,
	MARGIN = 2,		/* empty rows before the first and after the last */
	LOG_ZERO = 64,		/* the bucket of 0 */
};

struct chart {
	const char *bytes;	/* u64 for each bucket */
	__u32 count;		/* of the bytes */
	bool linear;
	__u64 low;
	__u64 width;
	unsigned int buckets;
	unsigned int columns;
	unsigned int kept;
};

static __u64 value_of(const struct chart *chart, unsigned int bucket)
{
	return (bucket + 1) * 8 <= chart->count ? spile_get_u64(chart->bytes + bucket * 8) : 0;
}

static unsigned int digits(__u64 value)
{
	unsigned int count = 1;

	for (; value >= 10; value /= 10)
		count++;
	return count;
}

/*
 * The least value of a bucket; *prefix is < or > for the outer ones of a linear histogram, else 0.
 */
static __s64 label(const struct chart *chart, unsigned int bucket, char *prefix)
{
	*prefix = 0;
	if (!chart->linear) {
		if (bucket == LOG_ZERO)
			return 0;
		if (bucket > LOG_ZERO)
			return (__s64)(1ull << (bucket - LOG_ZERO - 1));
		return (__s64)(0 - (1ull << (LOG_ZERO - 1 - bucket)));
	}
	if (bucket == 0) {
		*prefix = '<';
		return chart->low;
	}
	if (bucket == chart->buckets - 1) {
		*prefix = '>';
		return chart->low + (bucket - 2) * chart->width;
	}
	return chart->low + (bucket - 1) * chart->width;
}

static unsigned int label_width(const struct chart *chart, unsigned int bucket)
{
	char prefix;
	__s64 value = label(chart, bucket, &prefix);

	return (prefix != 0) + (value < 0) + digits(value < 0 ? 0 - (__u64)value : (__u64)value);
}

static void write_row(struct spile_text *text, const struct chart *chart, unsigned int bucket,
		      unsigned int label_columns, unsigned int count_columns, __u64 scale)
{
	__u64 count = value_of(chart, bucket);
	__u64 bar = count / scale;
	char prefix;
	__s64 value = label(chart, bucket, &prefix);

	spile_text_repeat(text, ' ', label_columns - label_width(chart, bucket));
	if (prefix)
		spile_text_byte(text, prefix);
	if (value < 0)
		spile_text_byte(text, '-');
	spile_text_number(text, value < 0 ? 0 - (__u64)value : (__u64)value, 10);
	spile_text_literal(text, " |");
	spile_text_repeat(text, '@', bar);
	spile_text_repeat(text, ' ', chart->columns - bar + 1 + count_columns - digits(count));
	spile_text_number(text, count, 10);
	spile_text_byte(text, '\n');
}

/* Neither the bucket nor those beside it have values. */
static bool is_in_gap(const struct chart *chart, unsigned int bucket, unsigned int last)
{
	unsigned int from = bucket > chart->kept ? bucket - chart->kept : 0;
	unsigned int to = bucket + chart->kept < last ? bucket + chart->kept : last;

	if (chart->kept == KEPT_ALL)
		return false;
	for (; from <= to; from++)
		if (value_of(chart, from))
			return false;
	return true;
}

static void draw(struct spile_text *text, const struct chart *chart)
{
	unsigned int first = chart->buckets, last = 0, i, columns = 5;
	__u64 most = 0, scale;
	bool gap = false;

	for (i = 0; i < chart->buckets; i++) {
		__u64 count = value_of(chart, i);

		if (!count)
			continue;
		if (i < first)
			first = i;
		last = i;
		if (count > most)
			most = count;
	}
	if (!most)
		return;
	for (i = 0; i < MARGIN; i++) {
		/* Without negative values there are no negative rows. */
		if (first > 0 && (chart->linear || first != LOG_ZERO))
			first--;
		if (last < chart->buckets - 1)
			last++;
	}
	if (chart->linear && first == 0 && !value_of(chart, first))
		first++;
	if (chart->linear && last == chart->buckets - 1 && !value_of(chart, last))
		last--;
	scale = most / chart->columns + (most % chart->columns != 0);
	for (i = first; i <= last; i++)
		if (label_width(chart, i) > columns)
			columns = label_width(chart, i);

	spile_text_repeat(text, ' ', columns - 5);
	spile_text_literal(text, "value |");
	spile_text_repeat(text, '-', chart->columns);
	spile_text_literal(text, " count\n");
	for (i = first; i <= last; i++) {
		if (is_in_gap(chart, i, last)) {
			gap = true;
			continue;
		}
		if (gap) {
			spile_text_repeat(text, ' ', columns + 1);
			spile_text_literal(text, "~\n");
			gap = false;
		}
		write_row(text, chart, i, columns, digits(most), scale);
	}
	spile_text_byte(text, '\n');
}

bool spile_histogram_render(struct spile_text *text, const unsigned char *code,
			    const unsigned char *layout, struct spile_payload *payload)
{
	struct chart chart = {
		.linear = code[0] == SPILE_HISTOGRAM_LINEAR,
		.columns = layout ? layout[0] : COLUMNS,
		.kept = layout ? layout[1] : KEPT,
	};
	__s64 high;

	chart.low = spile_get_u64((const char *)code + 1);
	high = spile_get_u64((const char *)code + 9);
	chart.width = spile_get_u64((const char *)code + 17);
	chart.buckets = SPILE_MAX_BUCKETS;
	if (!chart.columns)
		return false;
	if (chart.linear) {
		__u64 inner;

		if ((__s64)chart.width <= 0 || high < (__s64)chart.low)
			return false;
		inner = ((__u64)high - chart.low) / chart.width;
		if (inner < SPILE_MAX_BUCKETS - 3)
			chart.buckets = inner + 3;
	} else if (code[0] != SPILE_HISTOGRAM_LOG) {
		return false;
	}
	if (!spile_payload_bytes(payload, &chart.bytes, &chart.count))
		return false;
	if (chart.count != SPILE_FAULT)
		draw(text, &chart);
	return true;
}
