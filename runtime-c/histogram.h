/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drawing histograms. Compiles in user space too.
 */
#ifndef SPILE_HISTOGRAM_H
#define SPILE_HISTOGRAM_H

#include "payload.h"
#include "text.h"

enum {
	/* bytes of a SPILE_FORMAT_HISTOGRAM after its op */
	SPILE_HISTOGRAM_CODE = 1 + 3 * 8,
	/* of a SPILE_FORMAT_CHART before that */
	SPILE_CHART_CODE = 2,
};

/*
 * Writes the chart that the format's code describes, with counts from the payload. `layout`: the
 * SPILE_CHART_CODE bytes, or null. False: there is none left, or no such histogram.
 */
bool spile_histogram_render(struct spile_text *text, const unsigned char *code,
			    const unsigned char *layout, struct spile_payload *payload);

#endif
