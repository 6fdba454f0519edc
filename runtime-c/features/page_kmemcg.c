// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/mm.h>

int probe_page_kmemcg(struct page *page);
int probe_page_kmemcg(struct page *page)
{
	return PageKmemcg(page);
}
