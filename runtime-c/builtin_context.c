// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builtins about the context of a handler: task, user, CPU.
 */
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pid_namespace.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "family.h"
#include "memory.h"
#include "rcu_here.h"
#include "session.h"
#include "text.h"

enum {
	ENVIRONMENT_MAX = 128 << 10,	/* bytes of the environment that env_var() looks through */
};

spile_long spile_fn_pid(struct spile_context *c)
{
	return task_tgid_nr(current);
}

spile_long spile_fn_tid(struct spile_context *c)
{
	return task_pid_nr(current);
}

spile_long spile_fn_ppid(struct spile_context *c)
{
	spile_long pid;

	rcu_read_lock();	/* keeps the parent */
	pid = task_tgid_nr(rcu_dereference(current->real_parent));
	rcu_read_unlock();
	return pid;
}

spile_long spile_fn_pgrp(struct spile_context *c)
{
	return task_pgrp_nr_ns(current, &init_pid_ns);
}

spile_long spile_fn_sid(struct spile_context *c)
{
	return task_session_nr_ns(current, &init_pid_ns);
}

spile_long spile_fn_uid(struct spile_context *c)
{
	return from_kuid_munged(current_user_ns(), current_uid());
}

spile_long spile_fn_euid(struct spile_context *c)
{
	return from_kuid_munged(current_user_ns(), current_euid());
}

spile_long spile_fn_gid(struct spile_context *c)
{
	return from_kgid_munged(current_user_ns(), current_gid());
}

spile_long spile_fn_egid(struct spile_context *c)
{
	return from_kgid_munged(current_user_ns(), current_egid());
}

spile_long spile_fn_ns_uid(struct spile_context *c)
{
	return from_kuid_munged(&init_user_ns, current_uid());
}

spile_long spile_fn_ns_euid(struct spile_context *c)
{
	return from_kuid_munged(&init_user_ns, current_euid());
}

spile_long spile_fn_ns_gid(struct spile_context *c)
{
	return from_kgid_munged(&init_user_ns, current_gid());
}

spile_long spile_fn_ns_egid(struct spile_context *c)
{
	return from_kgid_munged(&init_user_ns, current_egid());
}

spile_long spile_fn_cpu(struct spile_context *c)
{
	return smp_processor_id();
}

spile_long spile_fn_target(struct spile_context *c)
{
	return spile_session.target;
}

spile_long spile_fn_tz_gmtoff(struct spile_context *c)
{
	return spile_session.west;
}

unsigned int spile_fn_tz_name(struct spile_context *c, char *out)
{
	return spile_string_copy(out, (struct spile_string){
		spile_session.zone, strlen(spile_session.zone)
	});
}

/*
 * Whether a task's name is read as two words. TASK_COMM_LEN is not a macro on every kernel, and
 * the first byte must be the lowest one.
 */
enum { COMM_IS_WORDS = TASK_COMM_LEN == 2 * sizeof(u64) && IS_ENABLED(CONFIG_X86_64) };

/*
 * comm may change at any time, but always ends with a NUL. It is read once, as two
 * words: reading byte by byte would be most of the cost of a map by execname(). A
 * string has room for MAXSTRINGLEN bytes, 16 at least.
 */
static unsigned int copy_comm(const struct task_struct *task, char *out)
{
	static const u64 ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
	u64 first, second, end;

	if (!COMM_IS_WORDS)
		return spile_string_copy(out, (struct spile_string){
			task->comm, strnlen(task->comm, TASK_COMM_LEN - 1)
		});
	memcpy(&first, task->comm, sizeof(first));
	memcpy(&second, task->comm + sizeof(first), sizeof(second));
	second &= ~0ull >> 8;
	memcpy(out, &first, sizeof(first));
	memcpy(out + sizeof(first), &second, sizeof(second));
	/* The lowest set bit belongs to the first NUL; higher ones may be wrong. */
	end = (first - ones) & ~first & tops;
	if (end)
		return __builtin_ctzll(end) / 8;
	end = (second - ones) & ~second & tops;
	return 8 + __builtin_ctzll(end) / 8;
}

unsigned int spile_fn_execname(struct spile_context *c, char *out)
{
	return copy_comm(current, out);
}

typedef void feed_name_fn(struct spile_context *c, const struct spile_map *map, const char *comm,
			  spile_long amount);
typedef void feed_text_fn(struct spile_context *c, const struct spile_map *map,
			  struct spile_string key, spile_long amount);

static __always_inline void feed_execname(struct spile_context *c, const struct spile_map *map,
					  spile_long amount, feed_name_fn *by_name,
					  feed_text_fn *by_text)
{
	char name[TASK_COMM_LEN];

	if (COMM_IS_WORDS)
		by_name(c, map, current->comm, amount);
	else
		by_text(c, map, (struct spile_string){ name, copy_comm(current, name) }, amount);
}

void spile_stats_add_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long value)
{
	feed_execname(c, map, value, spile_stats_add_name, spile_stats_add_text);
}

void spile_map_count_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long delta)
{
	feed_execname(c, map, delta, spile_map_count_name, spile_map_count_text);
}

unsigned int spile_fn_pexecname(struct spile_context *c, char *out)
{
	unsigned int length;

	rcu_read_lock();
	length = copy_comm(rcu_dereference(current->real_parent), out);
	rcu_read_unlock();
	return length;
}

/*
 * Arguments first..last (last < first: all from first on) of the process' argument
 * area, a NUL after each; bounded by 128 KiB. Of an empty one but the first `""` is shown.
 */
unsigned int spile_fn_cmdline_args(struct spile_context *c, spile_long first, spile_long last,
				   struct spile_string delimiter, char *out)
{
	enum { CHUNK = 128 };
	const struct mm_struct *mm = current->mm;
	struct spile_text text = spile_text_in(out, spile_script.string_bytes);
	char chunk[CHUNK];
	spile_long number = 0;
	bool is_empty = true;
	unsigned long at, end;

	if (!mm || first < 0)
		return spile_text_end(&text);
	at = READ_ONCE(mm->arg_start);
	end = READ_ONCE(mm->arg_end);
	end = min(end, at + ENVIRONMENT_MAX);
	while (at < end && (last < first || number <= last) && text.at < text.end) {
		unsigned long bytes = min_t(unsigned long, end - at, CHUNK - (at & (CHUNK - 1)));
		unsigned long i;

		spile_debit(c, CHUNK / 8);
		if (spile_memory_read(chunk, at, bytes, true))
			break;
		for (i = 0; i < bytes; i++) {
			bool taken = number >= first && (last < first || number <= last);

			if (chunk[i] && taken)
				spile_text_byte(&text, chunk[i]);
			if (chunk[i]) {
				is_empty = false;
				continue;
			}
			if (taken && is_empty && number > first)
				spile_text_bytes(&text, "\"\"", 2);
			is_empty = true;
			number++;
			if (taken && at + i + 1 < end && (last < first || number <= last))
				spile_text_bytes(&text, delimiter.text, delimiter.length);
		}
		at += bytes;
	}
	return spile_text_end(&text);
}

unsigned int spile_fn_cmdline_str(struct spile_context *c, char *out)
{
	return spile_fn_cmdline_args(c, 0, -1, (struct spile_string){ " ", 1 }, out);
}

/* Read in pieces, each within a page, as far as there is memory. */
spile_long spile_fn___user_words(struct spile_context *c, spile_long address, spile_long width)
{
	enum { CHUNK = 128, WORDS_MAX = 65536 };
	char chunk[CHUNK] __aligned(8);
	unsigned long at = address;
	unsigned int size = width == 4 ? 4 : 8;
	spile_long words = 0;

	while (at && words < WORDS_MAX) {
		unsigned long bytes = CHUNK - (at & (CHUNK - 1));
		unsigned long i;

		/* If the address is not aligned, the last number may lie in two pieces. */
		if (bytes % size)
			bytes = size;
		if (spile_memory_read(chunk, at, bytes, true))
			break;
		spile_debit(c, bytes / 4);
		for (i = 0; i < bytes; i += size) {
			u64 word = size == 4 ? *(u32 *)(chunk + i) : *(u64 *)(chunk + i);

			if (!word || words == WORDS_MAX)
				return words;
			words++;
		}
		at += bytes;
	}
	return words;
}

unsigned int spile_fn_env_var(struct spile_context *c, struct spile_string name, char *out)
{
	enum { CHUNK = 128 };
	const struct mm_struct *mm = current->mm;
	char chunk[CHUNK];
	unsigned int most = spile_script.string_bytes - 1;
	unsigned int matched = 0;	/* bytes of "NAME=" so far */
	unsigned int length = 0;
	enum { MATCHING, COPYING, SKIPPING } phase = MATCHING;
	unsigned long at, end;

	out[0] = 0;
	if (!mm || !name.length)
		return 0;
	at = READ_ONCE(mm->env_start);
	end = READ_ONCE(mm->env_end);
	if (end < at)
		return 0;
	end = min(end, at + ENVIRONMENT_MAX);

	while (at < end) {
		unsigned long bytes = min_t(unsigned long, end - at, CHUNK - (at & (CHUNK - 1)));
		unsigned long i;

		if (spile_memory_read(chunk, at, bytes, true))
			break;
		spile_debit(c, bytes / 4);
		for (i = 0; i < bytes; i++) {
			char byte = chunk[i];

			if (phase == COPYING) {
				if (!byte || length == most)
					goto found;
				out[length++] = byte;
			} else if (!byte) {
				phase = MATCHING;
				matched = 0;
			} else if (phase == MATCHING) {
				if (matched == name.length)
					phase = byte == '=' ? COPYING : SKIPPING;
				else if (byte == name.text[matched])
					matched++;
				else
					phase = SKIPPING;
			}
		}
		at += bytes;
	}
found:
	out[length] = 0;
	return length;
}

spile_long spile_fn_user_mode(struct spile_context *c)
{
	return spile_registers(c) && user_mode(spile_registers(c));
}

spile_long spile_fn_is_return(struct spile_context *c)
{
	return c->probe->kind == SPILE_PROBE_KRETPROBE || c->probe->kind == SPILE_PROBE_URETPROBE ||
	       (c->probe->kind == SPILE_PROBE_SYSCALL && c->probe->syscall.returning);
}

static unsigned int copy_text(char *out, const char *text)
{
	return spile_string_copy(out, (struct spile_string){
		text, strnlen(text, spile_script.string_bytes - 1)
	});
}

unsigned int spile_fn_pp(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->point);
}

unsigned int spile_fn_pn(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->script_point);
}

unsigned int spile_fn_ppfunc(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->function);
}

unsigned int spile_fn_probefunc(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->function);
}

unsigned int spile_fn_probemod(struct spile_context *c, char *out)
{
	return copy_text(out, c->probe->module);
}

unsigned int spile_fn_probe_type(struct spile_context *c, char *out)
{
	const struct spile_family *family;

	switch (c->probe->kind) {
	case SPILE_PROBE_BEGIN:
		return copy_text(out, "begin");
	case SPILE_PROBE_END:
		return copy_text(out, "end");
	case SPILE_PROBE_ERROR:
		return copy_text(out, "error");
	case SPILE_PROBE_NEVER:
		return copy_text(out, "never");
	default:
		family = spile_family_of(c->probe->kind);
		return copy_text(out, family ? family->type : "");
	}
}

unsigned int spile_fn_module_name(struct spile_context *c, char *out)
{
	return copy_text(out, THIS_MODULE->name);
}

unsigned int spile_fn_module_size(struct spile_context *c, char *out)
{
	size_t text, rodata, data;

	spile_module_sizes(THIS_MODULE, &text, &rodata, &data);
	return scnprintf(out, spile_script.string_bytes,
			 "%zu text, %zu rodata, %zu data, %zu total", text, rodata, data,
			 text + rodata + data);
}

spile_long spile_fn_own_process(struct spile_context *c)
{
	return spile_owner_sees_current();
}

spile_long spile_fn_stp_pid(struct spile_context *c)
{
	return spile_session.loader;
}

spile_long spile_fn_task_current(struct spile_context *c)
{
	return (unsigned long)current;
}

spile_long spile_fn_pid2task(struct spile_context *c, spile_long pid)
{
	struct task_struct *task = NULL;

	if (!spile_rcu_waits_for_us())
		return 0;
	rcu_read_lock();	/* the lookup takes no lock: any context */
	if (pid > 0 && pid <= PID_MAX_LIMIT)
		task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	rcu_read_unlock();
	return (unsigned long)task;
}

/*
 * One generator for each CPU (xorshift64, Marsaglia), seeded by the clock: not suitable for
 * secrets.
 */
spile_long spile_fn_randint(struct spile_context *c, spile_long limit)
{
	u64 *state = &spile_cpu_of(c)->random_state;
	u64 x = *state;

	if (limit <= 0)
		return 0;
	if (!x)
		x = ktime_get_mono_fast_ns() | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	/* The high half is the better one. */
	return (x >> 32) % limit;
}

spile_long spile_fn___maxstringlen(struct spile_context *c)
{
	return spile_script.string_bytes;
}
