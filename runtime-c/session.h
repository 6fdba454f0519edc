/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session: from SPILE_SETUP to SPILE_STOP (abi.h, enum spile_state).
 */
#ifndef SPILE_SESSION_H
#define SPILE_SESSION_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/gfp.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#include "script.h"
#include "abi/abi.h"

struct spile_cpu;

/*
 * Written under spile_session.calls, except for the steps from STARTING to RUNNING, and to
 * STOPPING, which are taken with cmpxchg. Read by every hit.
 */
extern int spile_session_state;

struct spile_session {
	/* calls that set up, begin and end the session: for a moment; before `lock` */
	struct mutex calls;
	/* all that arms and disarms: for as long as the kernel needs; by no process of the owner */
	struct mutex lock;
	atomic_t errors;
	atomic_t suppressed;	/* errors that only ended their handlers */
	atomic_t skipped;	/* for MAXSKIPPED: low_stack */
	atomic_t skips_reported;	/* MAXSKIPPED is exceeded */
	bool cancelled;		/* the session is ending, arm nothing; set without the lock */
	bool arming;		/* sites are being armed or disarmed; under lock, read without */
	u32 armed;		/* sites that are armed, for SPILE_INFO; under lock, read without */
	u32 disarmed;		/* of these, by the call of disarm() under way; the same */
	bool measuring;		/* hits are counted for SPILE_MEASURE; under lock, read without */
	bool at_work;		/* a work item is arming or about to; read without lock */
	bool ran;		/* was RUNNING: handlers of armed probes may have run */
	bool quiet;		/* no handler runs any more; under calls */
	bool disarms_later;	/* quiet, not all is disarmed yet; read without lock */
	bool attended;		/* the device is open; set without the lock */
	bool failed;		/* ended by errors: error probes run, not end probes */
	s32 target;		/* target() */
	s32 loader;		/* stp_pid() */
	s32 west;		/* tz_gmtoff() */
	char zone[SPILE_ZONE_BYTES];	/* tz_name() */
	bool unarmed;		/* its loader was killed while it armed the probes */
	bool kept;		/* continues when the device is closed; under calls */
	bool overwrite;		/* closed: full rings drop the oldest records; under calls */
	u64 memory_bytes;	/* allocated or reserved, without the rings; written at load and by SPILE_SETUP */
	u64 parts_bytes;	/* of arrays, as they use it (map_init.c) */
};
extern struct spile_session spile_session;

int spile_session_setup(const struct spile_setup *setup);
/*
 * Returns when the probes are armed or arming is cancelled; -ERESTARTSYS: a signal came
 * before.
 */
int spile_session_start(void);
/* Wakes up the callers of spile_session_start() that wait. */
void spile_session_start_returns(void);
void spile_session_quiet(void);
int spile_session_stop(void);
int spile_session_set(const struct spile_set *set);
int spile_session_keep(const struct spile_keep *keep);

/*
 * Runs it in a worker of the kernel's and waits for that. So is done whatever others wait for,
 * as all that is under spile_session.lock and takes locks of the kernel: a process of the
 * session's user gets as little CPU time as this user likes, also in the kernel. Process
 * context, under spile_session.calls, which keeps a user from having many workers.
 */
void spile_session_in_worker(void (*run)(void *argument), void *argument);
/*
 * The same for callers without that lock: one worker serves all of a session, one after the
 * other, so `run` may not wait for spile_session.lock. -EINTR: the caller was killed first.
 */
int __must_check spile_session_ask_worker(void (*run)(void *argument), void *argument);
/* The same under spile_session.lock, for which the caller waits. -EINTR: a signal came first. */
int __must_check spile_session_ask_locked(void (*run)(void *argument), void *argument);

/*
 * Called when the device is opened: there may be a reader; and when it is closed: the session
 * ends, or continues without one. Process context.
 */
void spile_session_attached(void);
void spile_session_detached(void);

/*
 * When the reader is woken: a session that a handler has ended, and that has no loader, is
 * disarmed. Any context.
 */
void spile_session_look_after(void);

/* At unload: disarms what the end of the session has left. Process context. */
void spile_session_disarm_rest(void);
/* The same, when nobody can call spile_session_look_after() any more. */
void spile_session_exit(void);

/*
 * The module is being removed while the device is open: reports that to the loader.
 * Process context.
 */
void spile_session_removed(void);

/* Ends the session from within a handler; the loader then calls SPILE_STOP. */
void spile_session_ask_stop(struct spile_cpu *cpu);

/* A WARN or NOTICE record of the session itself. Process context. */
__printf(2, 3) void spile_session_emit(enum spile_record_kind kind, const char *format, ...);

/*
 * Whether the machine has enough memory for `what`: `shared` bytes, and `for_each_cpu` for each of
 * `cpus` CPUs; if not, the kernel's log says so. This is checked before the allocation, because the
 * kernel would first reclaim memory everywhere and kill processes. Process context.
 */
bool __must_check spile_session_fits(const char *what, size_t shared, size_t for_each_cpu,
				     unsigned int cpus);
/* The same, and whether the session's user may take so much more. */
bool __must_check spile_session_affords(const char *what, size_t shared, size_t for_each_cpu,
					unsigned int cpus);

static inline void spile_session_charge(size_t bytes)
{
	spile_session.memory_bytes += bytes;
}

/*
 * For memory of a size that the script or the user chooses: on the account of the calling
 * process' cgroup. What that, or the machine, does not have is refused; no process is
 * ended for it.
 */
#define SPILE_SESSION_MEMORY \
	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static inline char *spile_session_memory(unsigned long bytes)
{
	return __vmalloc(bytes, SPILE_SESSION_MEMORY);
}

#endif
