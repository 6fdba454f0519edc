/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For programs under ThreadSanitizer; included by the file with main(). */
#ifndef SPILE_TESTS_VOLATILE_H
#define SPILE_TESTS_VOLATILE_H

/* Single loads and stores of numbers (spile_single) are no races: called for volatile accesses. */
#define VOLATILE_ACCESSES(bytes) \
	void __tsan_volatile_read##bytes(void *at) { (void)at; } \
	void __tsan_volatile_write##bytes(void *at) { (void)at; } \
	void __tsan_unaligned_volatile_read##bytes(void *at) { (void)at; } \
	void __tsan_unaligned_volatile_write##bytes(void *at) { (void)at; }
VOLATILE_ACCESSES(1)
VOLATILE_ACCESSES(2)
VOLATILE_ACCESSES(4)
VOLATILE_ACCESSES(8)
VOLATILE_ACCESSES(16)

#endif
