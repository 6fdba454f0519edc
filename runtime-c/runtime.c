// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The whole runtime, for what compiles it at once. Kbuild compiles its two units, which takes
 * two CPUs half of the time: the first script on a kernel waits for it. More units would
 * read the kernel's headers more often, 0.7 s each (6.1).
 */
#include "unit_hits.c"
#include "unit_session.c"
