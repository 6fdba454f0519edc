// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * procfs probes: files below /proc/systemtap/MODULE. Handlers run in the context
 * of who reads or writes, and only they touch the text while they run: it hangs
 * at the CPU's context. Nothing is allocated in a handler.
 *
 * A file's text is made when it is first read after it was opened, so that a
 * reader who takes it in pieces gets one state of things.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/namei.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "script.h"
#include "builtins.h"
#include "context.h"
#include "features.h"
#include "session.h"
#include "site.h"

#define PROC_TOP "systemtap"

enum { PROC_PATH_MAX = 320 };

/* The text of one open file; for handlers as spile_cpu.procfs. */
struct spile_procfs {
	struct mutex lock;
	const struct spile_site *first;	/* of the sites with its path */
	char *text;
	unsigned int length;
	unsigned int most;	/* bytes that handlers may make of it */
	bool made;
};

static bool procfs_made;	/* our directory; under spile_session.lock */

static bool is_same_file(const struct spile_site *one, const struct spile_site *other)
{
	return other->probe->kind == SPILE_PROBE_PROCFS && !strcmp(one->probe->event, other->probe->event);
}

/* The largest that a handler of the file asks for; one that does not say has MAXSTRINGLEN. */
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

static int open_file(struct inode *inode, struct file *handle)
{
	const struct spile_site *first = spile_pde_data(inode);
	struct spile_procfs *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	file->first = first;
	file->most = most_of(first);
	file->text = kvzalloc(max(file->most, spile_script.string_bytes), GFP_KERNEL);
	if (!file->text) {
		kfree(file);
		return -ENOMEM;
	}
	handle->private_data = file;
	return 0;
}

static int release_file(struct inode *inode, struct file *handle)
{
	struct spile_procfs *file = handle->private_data;

	kvfree(file->text);
	kfree(file);
	return 0;
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
	done = simple_read_from_buffer(to, bytes, at, file->text, file->length);
	mutex_unlock(&file->lock);
	return done;
}

/* In pieces of MAXSTRINGLEN - 1 bytes. */
static ssize_t write_file(struct file *handle, const char __user *from, size_t bytes, loff_t *at)
{
	struct spile_procfs *file = handle->private_data;
	size_t piece = min_t(size_t, bytes, spile_script.string_bytes - 1);

	if (mutex_lock_interruptible(&file->lock))
		return -EINTR;
	if (copy_from_user(file->text, from, piece)) {
		mutex_unlock(&file->lock);
		return -EFAULT;
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

/* "systemtap/MODULE" and what is behind it, up to `parts` slashes of the path; 0 or an error. */
static int make_directory(const char *path)
{
	char full[PROC_PATH_MAX + 8];
	struct path found;

	scnprintf(full, sizeof(full), "/proc/%s", path);
	if (!kern_path(full, LOOKUP_DIRECTORY, &found)) {
		path_put(&found);
		return 0;
	}
	return proc_mkdir(path, NULL) ? 0 : -ENOMEM;
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
		if (!is_same_file(site, &spile_sites[i]))
			continue;
		if (i < site->index)
			return 0;
		mode |= spile_sites[i].probe->procfs.rights;
	}
	if (scnprintf(path, sizeof(path), PROC_TOP "/%s/%s", spile_script.name, site->probe->event) >= sizeof(path) - 1)
		return -ENAMETOOLONG;
	for (slash = 0; path[slash]; slash++) {
		if (path[slash] != '/')
			continue;
		path[slash] = 0;
		error = make_directory(path);
		path[slash] = '/';
		if (error)
			return error;
		procfs_made = true;
	}
	return proc_create_data(path, mode, NULL, &file_operations, site) ? 0 : -ENOMEM;
}

/*
 * All of them at once: they are in no module. Waits for those that read and write,
 * and closes what they have open. /proc/systemtap stays, for others use it too.
 */
static void disarm_files(struct spile_site *const *sites, unsigned int count)
{
	char path[PROC_PATH_MAX];

	if (!procfs_made)
		return;
	scnprintf(path, sizeof(path), PROC_TOP "/%s", spile_script.name);
	remove_proc_subtree(path, NULL);
	procfs_made = false;
}

const struct spile_family spile_procfs_family = {
	.by = SPILE_BY_FILE,
	.arm = arm_file,
	.disarm = disarm_files,
};

/* $value. */

unsigned int spile_fn___procfs_value(struct spile_context *c, char *out)
{
	const struct spile_procfs *file = spile_cpu_of(c)->procfs;

	return file ? spile_string_copy(out, (struct spile_string){ file->text, min(file->length, spile_script.string_bytes - 1) }) : 0;
}

unsigned int spile_fn___procfs_append(struct spile_context *c, struct spile_string text, char *out)
{
	struct spile_procfs *file = spile_cpu_of(c)->procfs;

	if (file) {
		unsigned int bytes = file->length < file->most ? min(text.length, file->most - file->length) : 0;

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
