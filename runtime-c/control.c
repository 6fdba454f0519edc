// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The misc device spile-NAME: ioctl, mmap and poll for one loader at a time. And the
 * file /proc/spile-NAME for read-only queries, by any number of processes. An open
 * /proc file holds no reference to the module: proc_remove() waits for calls in
 * progress, and later calls on a file that is still open fail.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "arming.h"
#include "budget.h"
#include "condition.h"
#include "control.h"
#include "gate.h"
#include "optional.h"
#include "owner.h"
#include "ring.h"
#include "session.h"
#include "site.h"
#include "symbol.h"
#include "user_files.h"

static atomic_t opened = ATOMIC_INIT(0);

static int control_open(struct inode *inode, struct file *file)
{
	if (!spile_owner_permits())
		return -EPERM;
	/* Read-only users have the file in /proc (query_operations). */
	if (!(file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (atomic_cmpxchg(&opened, 0, 1))
		return -EBUSY;
	spile_owner_opened();
	spile_session_attached();
	return 0;
}

/* The loader is gone, with its mappings. If it was killed, the session was not stopped. */
static int control_release(struct inode *inode, struct file *file)
{
	spile_session_detached();
	spile_owner_closed();
	/* Release: the session's state; pairs with the cmpxchg in control_open(). */
	atomic_set_release(&opened, 0);
	return 0;
}

static long get_info(void __user *argument)
{
	struct spile_info info = {
		.abi = SPILE_ABI_VERSION,
		.state = READ_ONCE(spile_session_state),
		.cpus = nr_cpu_ids,
		.header_bytes = SPILE_RING_HEADER_BYTES,
		.ring_bytes = spile_ring_bytes,
		.probes = spile_script.probe_count,
		.errors = atomic_read(&spile_session.errors) +
			  atomic_read(&spile_session.suppressed),
		.memory_bytes = spile_session.memory_bytes + READ_ONCE(spile_session.parts_bytes) +
				spile_ring_memory(),
		.armed = spile_sites_armed(),
		.flags = (READ_ONCE(spile_session.kept) ? SPILE_INFO_KEPT : 0) |
			 (READ_ONCE(spile_session.overwrite) ? SPILE_INFO_OVERWRITE : 0) |
			 (atomic_read(&opened) ? SPILE_INFO_OPENED : 0) |
			 (spile_script.user_stacks ? SPILE_INFO_USER_STACKS : 0) |
			 (spile_script.suppress_errors ? SPILE_INFO_SUPPRESSED : 0) |
			 (READ_ONCE(spile_session.unarmed) ? SPILE_INFO_UNARMED : 0),
	};

	info.skipped = spile_sites_skipped();
	return copy_to_user(argument, &info, sizeof(info)) ? -EFAULT : 0;
}

static long get_arming(void __user *argument)
{
	struct spile_arming arming = {};

	spile_call_if_there(spile_arming_state, &arming);
	return copy_to_user(argument, &arming, sizeof(arming)) ? -EFAULT : 0;
}

static long get_owner(void __user *argument)
{
	struct spile_owner owner;

	spile_owner_state(&owner);
	return copy_to_user(argument, &owner, sizeof(owner)) ? -EFAULT : 0;
}

static long set_up(const void __user *argument)
{
	struct spile_setup setup;

	if (copy_from_user(&setup, argument, sizeof(setup)))
		return -EFAULT;
	return spile_session_setup(&setup);
}

static long set_global(const void __user *argument)
{
	struct spile_set *set = memdup_user(argument, sizeof(*set));
	int error;

	if (IS_ERR(set))
		return PTR_ERR(set);
	error = spile_session_set(set);
	kfree(set);
	return error;
}

static long set_keep(const void __user *argument)
{
	struct spile_keep keep;

	if (copy_from_user(&keep, argument, sizeof(keep)))
		return -EFAULT;
	return spile_session_keep(&keep);
}

static long set_gate(const void __user *argument)
{
	struct spile_gate gate;

	if (copy_from_user(&gate, argument, sizeof(gate)))
		return -EFAULT;
	return spile_gate_set(&gate);
}

static long get_gate(void __user *argument)
{
	struct spile_gate_state state;

	spile_gate_state(&state);
	return copy_to_user(argument, &state, sizeof(state)) ? -EFAULT : 0;
}

static long switch_probe(const void __user *argument)
{
	struct spile_switch request;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	return spile_call_or(-EOPNOTSUPP, spile_condition_switch, &request);
}

/* Of a module without probes that are armed. */
static int measure_nothing(struct spile_measure *measure)
{
	measure->nanoseconds = (u64)measure->milliseconds * NSEC_PER_MSEC;
	measure->cpus = num_online_cpus();
	measure->picoseconds = 0;
	return 0;
}

static long measure(void __user *argument)
{
	struct spile_measure measure;
	int error;

	if (copy_from_user(&measure, argument, sizeof(measure)))
		return -EFAULT;
	error = spile_call_or(measure_nothing(&measure), spile_budget_measure, &measure);
	if (error)
		return error;
	return copy_to_user(argument, &measure, sizeof(measure)) ? -EFAULT : 0;
}

struct sampling {
	struct spile_sampling sample;
	int error;
};

static void sample_in_worker(void *argument)
{
	struct sampling *sampling = argument;

	sampling->error = spile_call_or(0, spile_budget_sample, &sampling->sample);
}

static long set_sample(const void __user *argument)
{
	struct sampling sampling = {};

	if (copy_from_user(&sampling.sample, argument, sizeof(sampling.sample)))
		return -EFAULT;
	return spile_session_ask_locked(sample_in_worker, &sampling) ?: sampling.error;
}

struct naming {
	struct spile_symbol *symbol;
	int error;
};

/* With a lock for which modules that are loaded wait (past_code.c). */
static void name_in_worker(void *argument)
{
	struct naming *naming = argument;

	naming->error = spile_call_or(-EOPNOTSUPP, spile_symbol_find, naming->symbol);
}

static long name_symbol(void __user *argument)
{
	struct naming naming = { .symbol = memdup_user(argument, sizeof(*naming.symbol)) };

	if (IS_ERR(naming.symbol))
		return PTR_ERR(naming.symbol);
	if (spile_session_ask_worker(name_in_worker, &naming))
		naming.error = -EINTR;
	if (!naming.error && copy_to_user(argument, naming.symbol, sizeof(*naming.symbol)))
		naming.error = -EFAULT;
	kfree(naming.symbol);
	return naming.error;
}

static long find_file(void __user *argument, int (*find)(struct spile_file *file))
{
	struct spile_file *file;
	int error;

	if (!find)
		return -ENOENT;
	file = memdup_user(argument, sizeof(*file));
	if (IS_ERR(file))
		return PTR_ERR(file);
	error = find(file);
	if (!error && copy_to_user(argument, file, sizeof(*file)))
		error = -EFAULT;
	kfree(file);
	return error;
}

static long take_unwind(void __user *argument)
{
	struct spile_unwind unwind;
	int error;

	if (copy_from_user(&unwind, argument, sizeof(unwind)))
		return -EFAULT;
	error = spile_call_or(-EINVAL, spile_user_files_unwind, &unwind);
	/* The file's number is returned in any case. */
	return copy_to_user(argument, &unwind, sizeof(unwind)) ? -EFAULT : error;
}

struct reading {
	struct spile_counters *counters;
	unsigned int first;
	unsigned int count;
	bool done;
};

static void read_sites(const struct reading *reading, bool settled)
{
	unsigned int i;

	for (i = 0; i < reading->count; i++)
		spile_site_counters(&spile_sites[reading->first + i], &reading->counters[i],
				    settled);
}

/*
 * The lock keeps sites from being armed or disarmed meanwhile. Arming many takes long;
 * meanwhile the counts that only the kernel has are left out.
 */
static void read_in_worker(void *argument)
{
	struct reading *reading = argument;

	if (mutex_trylock(&spile_session.lock)) {
		read_sites(reading, true);
		mutex_unlock(&spile_session.lock);
		reading->done = true;
	} else if (READ_ONCE(spile_session.arming)) {
		read_sites(reading, false);
		reading->done = true;
	}
}

/* Reads the counters of `count` probe sites. */
static int read_counters(struct spile_counters *counters, unsigned int first, unsigned int count)
{
	struct reading reading = { .counters = counters, .first = first, .count = count };

	for (;;) {
		if (spile_session_ask_worker(read_in_worker, &reading))
			return -EINTR;
		if (reading.done)
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		usleep_range(500, 1000);
	}
}

static long get_counters(void __user *argument)
{
	struct spile_counters counters;
	int error;

	if (copy_from_user(&counters, argument, sizeof(counters)))
		return -EFAULT;
	if (counters.probe >= spile_script.probe_count)
		return -ENOENT;
	error = read_counters(&counters, counters.probe, 1);
	if (error)
		return error;
	return copy_to_user(argument, &counters, sizeof(counters)) ? -EFAULT : 0;
}

static long get_counters_list(void __user *argument)
{
	struct spile_counters_list *list = memdup_user(argument, sizeof(*list));
	int error;

	if (IS_ERR(list))
		return PTR_ERR(list);
	list->count = spile_script.probe_count - min(list->first, spile_script.probe_count);
	list->count = min_t(u32, list->count, SPILE_COUNTERS_LISTED);
	error = read_counters(list->counters, list->first, list->count);
	if (!error && copy_to_user(argument, list, sizeof(*list)))
		error = -EFAULT;
	kfree(list);
	return error;
}

/* The requests that need no exclusive access to the device. */
static long query_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	/*
	 * Checked at each call: a descriptor may be passed on, and a process may change
	 * its user.
	 */
	if (!spile_owner_permits())
		return -EPERM;
	switch (command) {
	case SPILE_OWNER:
		return get_owner((void __user *)argument);
	case SPILE_INFO:
		return get_info((void __user *)argument);
	case SPILE_ARMING:
		return get_arming((void __user *)argument);
	case SPILE_COUNTERS:
		return get_counters((void __user *)argument);
	case SPILE_COUNTERS_LIST:
		return get_counters_list((void __user *)argument);
	case SPILE_GATE:
		return set_gate((const void __user *)argument);
	case SPILE_GATE_STATE:
		return get_gate((void __user *)argument);
	case SPILE_SWITCH:
		return switch_probe((const void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static long control_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	/* As in query_ioctl(). */
	if (!spile_owner_permits())
		return -EPERM;
	switch (command) {
	case SPILE_SETUP:
		return set_up((const void __user *)argument);
	case SPILE_START:
		return spile_session_start();
	case SPILE_CANCEL:
		spile_arming_cancel();
		return 0;
	case SPILE_QUIET:
		spile_session_quiet();
		return 0;
	case SPILE_STOP:
		return spile_session_stop();
	case SPILE_SET:
		return set_global((const void __user *)argument);
	case SPILE_MEASURE:
		return measure((void __user *)argument);
	case SPILE_SAMPLE:
		return set_sample((const void __user *)argument);
	case SPILE_KEEP:
		return set_keep((const void __user *)argument);
	case SPILE_SYMBOL:
		return name_symbol((void __user *)argument);
	case SPILE_FILE:
		return find_file((void __user *)argument, spile_optional(spile_user_files_find));
	case SPILE_WANTED:
		return find_file((void __user *)argument,
				 spile_optional(spile_user_files_next_wanted));
	case SPILE_UNWIND:
		return take_unwind((void __user *)argument);
	default:
		return query_ioctl(file, command, argument);
	}
}

/* Returns the metadata, for a loader that does not have the module's file. */
static ssize_t control_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	if (!spile_owner_permits())
		return -EPERM;
	return simple_read_from_buffer(to, bytes, at, spile_script.meta, spile_script.meta_bytes);
}

static int control_mmap(struct file *file, struct vm_area_struct *area)
{
	if (!spile_owner_permits())
		return -EPERM;
	/*
	 * The descriptor may have been passed on: the process that reads the rings is the
	 * loader.
	 */
	spile_owner_opened();
	return spile_ring_mmap(file, area);
}

static __poll_t control_poll(struct file *file, struct poll_table_struct *table)
{
	__poll_t events = spile_ring_poll(file, table);

	return spile_call_or(false, spile_user_files_wanted) ? events | EPOLLRDBAND : events;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = control_release,
	.read = control_read,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = control_mmap,
	.poll = control_poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.fops = &operations,
	.mode = 0600,
};

static const struct proc_ops query_operations = {
	.proc_read = control_read,
	.proc_lseek = default_llseek,
	.proc_ioctl = query_ioctl,
#ifdef CONFIG_COMPAT
	.proc_compat_ioctl = compat_ptr_ioctl,
#endif
};

static struct proc_dir_entry *query_file;

int spile_control_init(void)
{
	int error;

	/* The module's name: a loader may have given it a name other than the script's. */
	device.name = kasprintf(GFP_KERNEL, SPILE_DEVICE_PREFIX "%s", THIS_MODULE->name);
	if (!device.name)
		return -ENOMEM;
	error = misc_register(&device);
	if (error)
		goto err_device;
	/* Module names are unique, and so is the prefix. */
	query_file = proc_create(device.name, 0600, NULL, &query_operations);
	if (query_file)
		return 0;
	error = -ENOMEM;
	misc_deregister(&device);
err_device:
	kfree(device.name);
	return error;
}

void spile_control_exit(void)
{
	proc_remove(query_file);
	misc_deregister(&device);
	kfree(device.name);
}
