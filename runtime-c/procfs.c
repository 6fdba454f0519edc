// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * procfs probes: files below /proc/systemtap/MODULE. MODULE is the name that the module
 * was loaded as, because one script may be loaded more than once. Handlers run in the
 * context of the reading or writing process; only they access the text while they run,
 * through the CPU's context. Handlers allocate nothing.
 *
 * A file's text is generated at the first read after open, so that a reader gets one
 * consistent state even in several reads.
 */
#include <linux/cpu.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/namei.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "family.h"
#include "features.h"
#include "owner.h"
#include "session.h"
#include "site.h"
#include "user_copy.h"

#define PROC_TOP "systemtap"

enum {
	PROC_PATH_MAX = 320,
	/* bytes of all open files of others, and of those who may use the device: charge() */
	OPEN_BYTES_MAX = 16 << 20,
	COPY_PATIENCE_MS = 2000,
	COPY_LOOK_MS = 20,
	REMOVAL_PATIENCE_MS = 500,
};

/* The text of one open file; for handlers as spile_cpu.procfs. */
struct spile_procfs {
	struct mutex lock;
	const struct spile_site *first;	/* of the sites with its path */
	char *text;
	unsigned int length;
	unsigned int most;	/* maximum size that handlers may produce */
	bool made;
	long charged;		/* its bytes; charge() */
	kuid_t user;		/* who has opened it */
	bool permitted;		/* who may use the device */
	struct list_head open;	/* in open_files; under open_lock */
	/* in `copies` while bytes are copied to or from `task`; under copies_lock */
	struct list_head copying;
	struct task_struct *task;
	bool killed;
};

static DEFINE_SPINLOCK(open_lock);
static LIST_HEAD(open_files);

static DEFINE_SPINLOCK(copies_lock);
static LIST_HEAD(copies);
static bool copies_end;		/* no new copy may begin; under copies_lock */

/* A directory below /proc/systemtap/MODULE. */
struct made_directory {
	struct list_head link;
	char path[];
};

/* Under spile_session.calls or, when armed, spile_session.lock; last set by the work item `removing`. */
static struct proc_dir_entry *own_directory;
static LIST_HEAD(made_directories);

static bool is_same_file(const struct spile_site *one, const struct spile_site *other)
{
	return other->probe->kind == SPILE_PROBE_PROCFS &&
	       !strcmp(one->probe->procfs.path, other->probe->procfs.path);
}

/* The largest size that a handler of the file asks for; the default is MAXSTRINGLEN. */
static unsigned int most_of(const struct spile_site *first)
{
	unsigned int most = 0, i;

	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_procfs_file *procfs = &spile_sites[i].probe->procfs;

		if (is_same_file(first, &spile_sites[i]) && !procfs->writes)
			most = max(most, procfs->most ?: spile_script.string_bytes);
	}
	return most;
}

/* Runs the handlers of the file that read or that write. Process context. */
static void run_handlers(struct spile_procfs *file, bool writes)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++) {
		struct spile_site *site = &spile_sites[i];
		unsigned long flags;

		if (!is_same_file(file->first, site) || site->probe->procfs.writes != writes)
			continue;
		raw_local_irq_save(flags);
		spile_this_cpu()->procfs = file;
		spile_context_run(site, SPILE_STATE_RUNNING, NULL);
		spile_this_cpu()->procfs = NULL;
		raw_local_irq_restore(flags);
		cond_resched();
	}
}

/*
 * Enters an open file in the list, unless there are too many. What others have open refuses
 * nobody who may use the device. Of the rest no user gets more than is still left, so one user
 * cannot take all from the next. A file that is larger than the limit is allowed alone.
 */
static bool charge(struct spile_procfs *file)
{
	long all = 0, own = 0;
	struct spile_procfs *other;
	bool enough;

	file->user = current_euid();
	file->permitted = spile_owner_permits();
	spin_lock(&open_lock);
	list_for_each_entry(other, &open_files, open) {
		if (other->permitted != file->permitted)
			continue;
		all += other->charged;
		if (!file->permitted && uid_eq(other->user, file->user))
			own += other->charged;
	}
	enough = !all || all + own + file->charged <= OPEN_BYTES_MAX;
	if (enough)
		list_add(&file->open, &open_files);
	spin_unlock(&open_lock);
	return enough;
}

static void uncharge(struct spile_procfs *file)
{
	spin_lock(&open_lock);
	list_del(&file->open);
	spin_unlock(&open_lock);
}

static int open_file(struct inode *inode, struct file *handle)
{
	const struct spile_site *first = spile_pde_data(inode);
	struct spile_procfs *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	unsigned int bytes;

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	file->first = first;
	file->most = most_of(first);
	bytes = max(file->most, spile_script.string_bytes);
	file->charged = sizeof(*file) + max_t(long, bytes, PAGE_SIZE);
	if (!charge(file)) {
		kfree(file);
		return -ENFILE;
	}
	file->text = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!file->text) {
		uncharge(file);
		kfree(file);
		return -ENOMEM;
	}
	handle->private_data = file;
	return 0;
}

static int release_file(struct inode *inode, struct file *handle)
{
	struct spile_procfs *file = handle->private_data;

	uncharge(file);
	kvfree(file->text);
	kfree(file);
	return 0;
}

/*
 * Brackets a copy to or from the task's memory, which may wait for the lock of its mappings for
 * as long as another thread likes. The end of the session does not: end_copies(). False: the
 * session has ended.
 */
static bool begin_copy(struct spile_procfs *file)
{
	bool begins;

	spin_lock(&copies_lock);
	begins = !copies_end;
	if (begins) {
		file->task = current;
		file->killed = false;
		list_add(&file->copying, &copies);
	}
	spin_unlock(&copies_lock);
	return begins;
}

static void end_copy(struct spile_procfs *file)
{
	spin_lock(&copies_lock);
	list_del(&file->copying);
	spin_unlock(&copies_lock);
}

static bool copy_is_running(void)
{
	bool there;

	spin_lock(&copies_lock);
	there = !list_empty(&copies);
	spin_unlock(&copies_lock);
	return there;
}

/*
 * When it returns, every copy has ended or is about to, unless its task gets no CPU time: what one
 * waits for, only a fatal signal interrupts (user_copy.h).
 */
static void end_copies(unsigned int patience_ms)
{
	struct spile_procfs *file;
	unsigned int waited;

	spin_lock(&copies_lock);
	copies_end = true;
	spin_unlock(&copies_lock);
	for (waited = 0; waited < patience_ms && copy_is_running(); waited += COPY_LOOK_MS)
		msleep(COPY_LOOK_MS);
	spin_lock(&copies_lock);
	list_for_each_entry(file, &copies, copying) {
		/*
		 * While the entry is in the list its task is in our code and cannot
		 * exit. One that could run waits for nobody.
		 */
		if (file->killed || READ_ONCE(file->task->on_rq))
			continue;
		file->killed = true;
		spile_session_emit(
			SPILE_RECORD_WARN,
			"process %d was killed: the file of a procfs probe could not be removed, because another thread of it has locked the mappings of its memory",
			task_tgid_nr(file->task));
		send_sig(SIGKILL, file->task, 1);
	}
	spin_unlock(&copies_lock);
}

/* Like simple_read_from_buffer(). */
static ssize_t give_text(const struct spile_procfs *file, char __user *to, size_t bytes, loff_t *at)
{
	size_t done;

	if (*at < 0)
		return -EINVAL;
	if (*at >= file->length || !bytes)
		return 0;
	bytes = min_t(size_t, bytes, file->length - *at);
	done = spile_copy_to_user(to, file->text + *at, bytes);
	*at += done;
	return done ?: -EFAULT;
}

static ssize_t read_file(struct file *handle, char __user *to, size_t bytes, loff_t *at)
{
	struct spile_procfs *file = handle->private_data;
	ssize_t done;

	if (mutex_lock_interruptible(&file->lock))
		return -EINTR;
	if (!file->made || !*at) {
		file->length = 0;
		run_handlers(file, false);
		file->made = true;
	}
	done = -EIO;
	if (begin_copy(file)) {
		done = give_text(file, to, bytes, at);
		end_copy(file);
	}
	mutex_unlock(&file->lock);
	return done;
}

/* In pieces of MAXSTRINGLEN - 1 bytes. */
static ssize_t write_file(struct file *handle, const char __user *from, size_t bytes, loff_t *at)
{
	struct spile_procfs *file = handle->private_data;
	size_t piece = min_t(size_t, bytes, spile_script.string_bytes - 1);
	int error = -EIO;

	if (mutex_lock_interruptible(&file->lock))
		return -EINTR;
	if (begin_copy(file)) {
		error = spile_copy_from_user(file->text, from, piece) < piece ? -EFAULT : 0;
		end_copy(file);
	}
	if (error) {
		mutex_unlock(&file->lock);
		return error;
	}
	file->length = piece;
	run_handlers(file, true);
	file->made = false;
	mutex_unlock(&file->lock);
	*at += piece;
	return piece;
}

static const struct proc_ops file_operations = {
	.proc_open = open_file,
	.proc_release = release_file,
	.proc_read = read_file,
	.proc_write = write_file,
	.proc_lseek = default_llseek,
};

/*
 * 1 if the path exists in /proc, 0 if not, or an error. Creating a duplicate entry
 * makes the kernel warn, so nothing is created where /proc cannot be inspected.
 */
static int is_in_proc(const char *path)
{
	char full[PROC_PATH_MAX + 8];
	struct path found;
	bool is_proc;
	int error;

	/* With subset=pid only processes are shown, and this path does not exist either. */
	if (kern_path("/proc/version", 0, &found))
		return -ENOENT;
	is_proc = found.dentry->d_sb->s_magic == PROC_SUPER_MAGIC;
	path_put(&found);
	if (!is_proc)
		return -ENOENT;
	scnprintf(full, sizeof(full), "/proc/%s", path);
	error = kern_path(full, 0, &found);
	if (error)
		return error == -ENOENT ? 0 : error;
	path_put(&found);
	return 1;
}

/*
 * /proc/systemtap, which stays: others use it too. Two modules that create it at once would
 * make the kernel warn. They share nothing of their own, so they take turns by a lock of the
 * kernel that every machine has and that is seldom held.
 */
static int make_top(void)
{
	struct device *first = get_cpu_device(0);
	int there;

	if (first)
		device_lock(first);
	there = is_in_proc(PROC_TOP);
	if (there > 0)
		there = 0;
	else if (!there && !proc_mkdir(PROC_TOP, NULL))
		there = -ENOMEM;
	if (first)
		device_unlock(first);
	return there;
}

static int make_own_directory(void)
{
	char path[PROC_PATH_MAX];
	int error;

	if (own_directory)
		return 0;
	/* Made at load; not here, where the session's user could keep others waiting for make_top()'s lock. */
	error = is_in_proc(PROC_TOP);
	if (error <= 0)
		return error ?: -ENOENT;
	scnprintf(path, sizeof(path), PROC_TOP "/%s", THIS_MODULE->name);
	error = is_in_proc(path);
	if (error)
		return error < 0 ? error : -EEXIST;
	own_directory = proc_mkdir(path, NULL);
	return own_directory ? 0 : -ENOMEM;
}

static DECLARE_WAIT_QUEUE_HEAD(removal);

/* Closes open files. */
static void remove_files(struct work_struct *unused)
{
	struct made_directory *made, *next;

	if (!own_directory)
		return;
	proc_remove(own_directory);
	list_for_each_entry_safe(made, next, &made_directories, link)
		kfree(made);
	INIT_LIST_HEAD(&made_directories);
	/* After the list: pairs with files_are_there(). */
	smp_store_release(&own_directory, NULL);
	wake_up_all(&removal);
}

static DECLARE_WORK(removing, remove_files);
static int directory_error;

/* Kernel threads, which arm the probes, may have another root than the machine's (7.0). */
static void prepare_directory(void)
{
	/* It has removed the files of an earlier measurement: their sites were armed until then. */
	flush_work(&removing);
	directory_error = make_own_directory();
}

/* A directory below /proc/systemtap/MODULE whose parent exists. */
static int make_directory(const char *path)
{
	struct made_directory *made;

	list_for_each_entry(made, &made_directories, link)
		if (!strcmp(made->path, path))
			return 0;
	made = kmalloc(struct_size(made, path, strlen(path) + 1), GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	memcpy(made->path, path, strlen(path) + 1);
	if (!proc_mkdir(path, own_directory)) {
		kfree(made);
		return -ENOMEM;
	}
	list_add(&made->link, &made_directories);
	return 0;
}

/* Whether the first path is below a directory with the other path. */
static bool is_below(const char *path, const char *other)
{
	size_t length = strlen(other);

	return !strncmp(path, other, length) && path[length] == '/';
}

static int arm_file(struct spile_site *site)
{
	char path[PROC_PATH_MAX];
	umode_t mode = 0;
	size_t slash;
	unsigned int i;
	int error;

	/* The first site of a path makes the file for all. */
	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_probe *probe = spile_sites[i].probe;

		if (probe->kind == SPILE_PROBE_PROCFS &&
		    is_below(site->probe->procfs.path, probe->procfs.path))
			return -ENOTDIR;
		if (!is_same_file(site, &spile_sites[i]))
			continue;
		if (i < site->index)
			return 0;
		mode |= probe->procfs.rights;
	}
	if (strscpy(path, site->probe->procfs.path, sizeof(path)) < 0)
		return -ENAMETOOLONG;
	if (!own_directory)
		return directory_error ?: -ENOENT;
	spin_lock(&copies_lock);
	copies_end = false;
	spin_unlock(&copies_lock);
	for (slash = 0; path[slash]; slash++) {
		if (path[slash] != '/')
			continue;
		path[slash] = 0;
		error = make_directory(path);
		path[slash] = '/';
		if (error)
			return error;
	}
	/* proc_create_data() makes a file without any rights readable by all. */
	if (!mode)
		mode = S_ISVTX;
	return proc_create_data(path, mode, own_directory, &file_operations, site) ? 0 : -ENOMEM;
}

static bool files_are_there(void)
{
	/* Pairs with remove_files(): what it has freed is not used any more. */
	return smp_load_acquire(&own_directory);
}

/* Whether all files are removed, or are within that time. */
static bool files_are_gone(unsigned int patience_ms)
{
	return wait_event_timeout(removal, !files_are_there(), msecs_to_jiffies(patience_ms));
}

/*
 * All files are removed together, with the first site, since none belongs to a module. The kernel
 * waits for calls in progress, for as long as their processes are kept from running (SCHED_IDLE
 * beside busy ones): a work item does, and the sites stay armed meanwhile.
 */
static bool detach_file(struct spile_site *site)
{
	static bool is_late;

	if (!files_are_there())
		return true;
	end_copies(is_late ? 0 : COPY_PATIENCE_MS);
	queue_work(spile_unbound_queue(), &removing);
	is_late = !files_are_gone(is_late ? 0 : REMOVAL_PATIENCE_MS);
	return !is_late;
}

/* detach_file() has removed the files, and no handler runs that was called by one. */
static void disarm_files(struct spile_site *const *sites, unsigned int count)
{
}

/* The directory is there also where no file could be made. */
static void remove_all_files(void)
{
	if (files_are_there()) {
		end_copies(COPY_PATIENCE_MS);
		queue_work(spile_unbound_queue(), &removing);
	}
	flush_work(&removing);
}

/*
 * Two modules must not create /proc/systemtap at the same time. Loaders load one module
 * after the other, so it is created at load. If that fails, arming reports it.
 */
static int make_top_early(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.probe_count; i++) {
		if (spile_script.probes[i].kind == SPILE_PROBE_PROCFS) {
			(void)make_top();
			break;
		}
	}
	return 0;
}

const struct spile_family spile_procfs_family = {
	.kind = SPILE_PROBE_PROCFS,
	.type = "procfs",
	.init = make_top_early,
	/* The directory is removed even if no file could be created. */
	.exit = remove_all_files,
	.by = SPILE_BY_FILE,
	.prepare = prepare_directory,
	.arm = arm_file,
	.detach = detach_file,
	.disarm = disarm_files,
};

/* $value. */

unsigned int spile_fn___procfs_value(struct spile_context *c, char *out)
{
	const struct spile_procfs *file = spile_cpu_of(c)->procfs;
	unsigned int most;

	if (!file)
		return 0;
	/* What is written may have NULs in it; a string ends at the first one. */
	most = min(file->length, spile_script.string_bytes - 1);
	return spile_string_copy(out, (struct spile_string){ file->text,
							     strnlen(file->text, most) });
}

unsigned int spile_fn___procfs_append(struct spile_context *c, struct spile_string text, char *out)
{
	struct spile_procfs *file = spile_cpu_of(c)->procfs;

	if (file) {
		unsigned int bytes =
			file->length < file->most ? min(text.length, file->most - file->length) : 0;

		memcpy(file->text + file->length, text.text, bytes);
		file->length += bytes;
	}
	return spile_string_copy(out, text);
}

unsigned int spile_fn___procfs_set(struct spile_context *c, struct spile_string text, char *out)
{
	struct spile_procfs *file = spile_cpu_of(c)->procfs;

	if (file)
		file->length = 0;
	return spile_fn___procfs_append(c, text, out);
}
