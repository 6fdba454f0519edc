// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Converts system calls of 32-bit programs (i386) to those of 64-bit programs: 64-bit numbers
 * are in two registers, the old socketcall, ipc, mmap and select have their arguments in memory,
 * and clone has them in another order. So one description of a call's arguments is enough
 * (arch/x86/kernel/sys_ia32.c, ipc/syscall.c, net/compat.c).
 */
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "script.h"
#include "builtins.h"
#include "session.h"
#include "syscall_compat.h"

#ifdef CONFIG_COMPAT
enum {
#define SPILE_SYSCALL(number, name) COMPAT_##name = number,
#include "syscalls_i386.h"
#include "syscalls_wrapped.h"
#undef SPILE_SYSCALL
	COMPAT_WORDS = 6,
	/* calls from this number on have 64-bit times */
	FIRST_WIDE_TIME = COMPAT_clock_gettime64,
};

/*
 * Reads arguments from memory; zeros if they cannot be read, in which case the kernel refuses
 * the call.
 */
static void fetch_words(unsigned long address, unsigned long *words, unsigned int count)
{
	u32 found[COMPAT_WORDS] = {};
	unsigned int i;

	if (copy_from_user_nofault(found, (const void __user *)address, count * sizeof(u32)))
		memset(found, 0, sizeof(found));
	for (i = 0; i < count; i++)
		words[i] = found[i];
}

static long unwrap_socketcall(unsigned long *words)
{
	static const struct {
		u16 number;
		u8 count;
	} calls[] = {
		[1] = { COMPAT_socket, 3 }, { COMPAT_bind, 3 },	      { COMPAT_connect, 3 },
		{ COMPAT_listen, 2 },	    { COMPAT_accept, 3 },     { COMPAT_getsockname, 3 },
		{ COMPAT_getpeername, 3 },  { COMPAT_socketpair, 4 }, { COMPAT_send, 4 },
		{ COMPAT_recv, 4 },	    { COMPAT_sendto, 6 },     { COMPAT_recvfrom, 6 },
		{ COMPAT_shutdown, 2 },	    { COMPAT_setsockopt, 5 }, { COMPAT_getsockopt, 5 },
		{ COMPAT_sendmsg, 3 },	    { COMPAT_recvmsg, 3 },    { COMPAT_accept4, 4 },
		{ COMPAT_recvmmsg, 5 },	    { COMPAT_sendmmsg, 4 },
	};
	unsigned long call = words[0];

	if (!call || call >= ARRAY_SIZE(calls))
		return COMPAT_socketcall;
	fetch_words(words[1], words, calls[call].count);
	return calls[call].number;
}

static void extend_sign(unsigned long *word)
{
	*word = (s32)*word;
}

static void set_words(unsigned long *words, unsigned long a, unsigned long b, unsigned long c,
		      unsigned long d, unsigned long e)
{
	words[0] = a;
	words[1] = b;
	words[2] = c;
	words[3] = d;
	words[4] = e;
}

/* The numbers of the calls are those of include/uapi/linux/ipc.h; the version is above them. */
static long unwrap_ipc(unsigned long *words)
{
	unsigned long first = words[1], second = words[2], third = words[3], pointer = words[4],
		      fifth = words[5];
	unsigned long more[2];

	switch (words[0]) {
	case 1:
		set_words(words, first, pointer, second, 0, 0);
		return COMPAT_semop;
	case 2:
		set_words(words, first, second, third, 0, 0);
		return COMPAT_semget;
	case 3:
		fetch_words(pointer, more, 1);
		set_words(words, first, second, third, more[0], 0);
		return COMPAT_semctl;
	case 4:
		set_words(words, first, pointer, second, fifth, 0);
		return COMPAT_semtimedop;
	case 11:
		set_words(words, first, pointer, second, third, 0);
		return COMPAT_msgsnd;
	case 12:
		fetch_words(pointer, more, 2);
		set_words(words, first, more[0], second, more[1], third);
		extend_sign(&words[3]);
		return COMPAT_msgrcv;
	case 0x10000 | 12:
		set_words(words, first, pointer, second, fifth, third);
		extend_sign(&words[3]);
		return COMPAT_msgrcv;
	case 13:
		set_words(words, first, second, 0, 0, 0);
		return COMPAT_msgget;
	case 14:
		set_words(words, first, second, pointer, 0, 0);
		return COMPAT_msgctl;
	case 21:
		set_words(words, first, pointer, second, 0, 0);
		return COMPAT_shmat;
	case 22:
		set_words(words, pointer, 0, 0, 0, 0);
		return COMPAT_shmdt;
	case 23:
		set_words(words, first, second, third, 0, 0);
		return COMPAT_shmget;
	case 24:
		set_words(words, first, second, pointer, 0, 0);
		return COMPAT_shmctl;
	default:
		return COMPAT_ipc;
	}
}

/* The low half is in words[at], the high one after it; later arguments move up. */
static void join_halves(unsigned long *words, unsigned int at)
{
	words[at] = (u32)words[at] | words[at + 1] << 32;
	memmove(&words[at + 1], &words[at + 2], (COMPAT_WORDS - 2 - at) * sizeof(*words));
	words[COMPAT_WORDS - 1] = 0;
}

long spile_syscall_unwrap(long number, unsigned long *words)
{
	switch (number) {
	case COMPAT_socketcall:
		return unwrap_socketcall(words);
	case COMPAT_ipc:
		return unwrap_ipc(words);
	case COMPAT_mmap:
		fetch_words(words[0], words, 6);
		words[5] >>= 12;
		return COMPAT_mmap2;
	case COMPAT_select:
		fetch_words(words[0], words, 5);
		return COMPAT__newselect;
	case COMPAT_clone:
		swap(words[3], words[4]);
		break;
	case COMPAT_lookup_dcookie:
		join_halves(words, 0);
		break;
	case COMPAT_truncate64:
	case COMPAT_ftruncate64:
	case COMPAT_fadvise64:
	case COMPAT_readahead:
		join_halves(words, 1);
		break;
	case COMPAT_fadvise64_64:
	case COMPAT_sync_file_range:
		join_halves(words, 1);
		join_halves(words, 2);
		break;
	case COMPAT_fanotify_mark:
		join_halves(words, 2);
		break;
	case COMPAT_fallocate:
		join_halves(words, 2);
		join_halves(words, 3);
		break;
	case COMPAT_pread64:
	case COMPAT_pwrite64:
		join_halves(words, 3);
		break;
	case COMPAT_preadv:
	case COMPAT_pwritev:
	case COMPAT_preadv2:
	case COMPAT_pwritev2:
		/* Both halves are arguments of the 64-bit call too; only the first one is used. */
		words[3] |= words[4] << 32;
		break;
	case COMPAT_msgrcv:
		extend_sign(&words[3]);
		break;
	case COMPAT_lseek:
	case COMPAT_truncate:
	case COMPAT_ftruncate:
		extend_sign(&words[1]);
		break;
	case COMPAT_io_getevents:
		extend_sign(&words[1]);
		extend_sign(&words[2]);
		break;
	}
	return number;
}

/* Whether times in a call's memory have 32 bits each. */
static bool has_narrow_times(unsigned long number)
{
	return number < FIRST_WIDE_TIME || number >= COMPAT_accept;
}
#else
long spile_syscall_unwrap(long number, unsigned long *words)
{
	return number;
}

static bool has_narrow_times(unsigned long number)
{
	return false;
}
#endif

/* Whether the current task runs for a 32-bit program, in whatever kind of probe. */
spile_long spile_fn___in_compat_task(struct spile_context *c)
{
	return current->mm && spile_is_compat_call();
}

/* 0 for a 64-bit program; else 1, or 3 if times in its memory have 32 bits each. */
spile_long spile_fn___syscall_narrow(struct spile_context *c)
{
	if (c->probe->kind != SPILE_PROBE_SYSCALL || !spile_is_compat_call())
		return 0;
	return has_narrow_times(c->regs[SPILE_SYSCALL_NUMBER]) ? 3 : 1;
}
