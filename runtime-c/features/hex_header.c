// SPDX-License-Identifier: GPL-2.0-or-later
/* An include that fails would end the run that asks for all features. */
#if __has_include(<linux/hex.h>)
#include <linux/hex.h>
#else
#error there is no linux/hex.h
#endif
