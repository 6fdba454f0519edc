/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_USER_COPY_H
#define SPILE_USER_COPY_H

#include <linux/types.h>

/*
 * Like copy_to_user() and copy_from_user(), in the current process, but they return how many
 * bytes were copied, and do not wait for memory that a user could withhold (page_in.h). All that
 * they may wait for without end is the lock of the process's mappings; SIGKILL ends that.
 */
size_t __must_check spile_copy_to_user(void __user *to, const char *text, size_t bytes);
size_t __must_check spile_copy_from_user(char *text, const void __user *from, size_t bytes);

#endif
