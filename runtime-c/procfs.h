/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of procfs probes. */
#ifndef SPILE_PROCFS_H
#define SPILE_PROCFS_H

/* Makes the directory that all modules with such files share. */
void spile_procfs_init(void);

#endif
