// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of programs that probes are in: found by path, and compared by build-id with the
 * build that the script was compiled for.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/kdev_t.h>
#include <linux/log2.h>
#include <linux/namei.h>
#include <linux/overflow.h>
#include <linux/path.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "builtins.h"
#include "arming.h"
#include "build_id.h"
#include "context.h"
#include "page_in.h"
#include "session.h"
#include "uprobe.h"
#include "user_maps.h"

enum {
	MOST_SEGMENTS = 64,		/* program headers that are looked at */
	MOST_NOTES = 64 << 10,		/* bytes of one segment of notes */
	SUM_BYTES = 64 << 10,		/* that are read at once */
};

struct program_file {
	struct path path;
	struct inode *inode;		/* that its pages belong to */
	int error;
	bool looked;
	bool served;			/* by a process (FUSE): not read, and has no breakpoints */
	bool refused;			/* reported as such */
	unsigned long beginning;	/* where some process has mapped it; a hint, any context */
};

/* Indexed by program; written under spile_session.calls, before probes are armed. */
static struct program_file *files;

/*
 * Numbers of programs, each plus 1, by their inodes: an event of any process is compared with
 * thousands of programs at once. Entries are only added, with the lock of `files`, and read in any
 * context.
 */
static u32 *by_inode;
static unsigned int by_inode_bits;

/* Not reported while hits are counted (budget.c): this is checked again when the session starts. */
#define tell(...) \
	do { \
		if (spile_session_state != SPILE_STATE_READY) \
			spile_session_emit(SPILE_RECORD_WARN, __VA_ARGS__); \
	} while (0)

/*
 * Whether one of the segments of notes at `headers` has the program's build-id; if not, `found`
 * has the build-id of the file.
 */
static bool has_build_id(struct file *file, const struct spile_program *program,
			 const Elf64_Phdr *headers, unsigned int count, unsigned char *found,
			 unsigned int *found_bytes)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		loff_t at = headers[i].p_offset;
		size_t bytes = min_t(u64, headers[i].p_filesz, MOST_NOTES);
		bool same = false;
		char *notes;
		ssize_t got;

		if (headers[i].p_type != PT_NOTE || !bytes)
			continue;
		notes = kvmalloc(bytes, GFP_KERNEL);
		if (!notes)
			continue;
		got = kernel_read(file, notes, bytes, &at);
		if (got > 0)
			same = spile_build_id_scan(program->build_id, program->build_id_bytes,
						   notes, got, found, found_bytes);
		kvfree(notes);
		if (same)
			return true;
	}
	return false;
}

/* Program headers of a file of either kind, of 32 bits as those of 64; 0: it has none. */
static unsigned int read_headers(struct file *file, Elf64_Phdr *headers)
{
	Elf32_Phdr narrow;
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} header;
	unsigned int count, i;
	loff_t at = 0;

	if (kernel_read(file, &header, sizeof(header), &at) != sizeof(header) ||
	    memcmp(header.ident, ELFMAG, SELFMAG))
		return 0;
	if (header.ident[EI_CLASS] == ELFCLASS64) {
		if (header.wide.e_phentsize != sizeof(*headers))
			return 0;
		count = min_t(unsigned int, header.wide.e_phnum, MOST_SEGMENTS);
		at = header.wide.e_phoff;
		return kernel_read(file, headers, count * sizeof(*headers), &at) ==
				       count * sizeof(*headers) ?
			       count :
			       0;
	}
	if (header.narrow.e_phentsize != sizeof(narrow))
		return 0;
	count = min_t(unsigned int, header.narrow.e_phnum, MOST_SEGMENTS);
	at = header.narrow.e_phoff;
	for (i = 0; i < count; i++) {
		if (kernel_read(file, &narrow, sizeof(narrow), &at) != sizeof(narrow))
			return 0;
		headers[i].p_type = narrow.p_type;
		headers[i].p_flags = narrow.p_flags;
		headers[i].p_offset = narrow.p_offset;
		headers[i].p_filesz = narrow.p_filesz;
	}
	return count;
}

/*
 * A user's part of a set-uid loader is restricted to few files (Landlock), and need not be able to
 * read a program to probe it: then it is read with the kernel's rights.
 */
static struct file *open_for_notes(const struct path *path)
{
	const struct cred *cred, *former;
	struct file *file = dentry_open(path, O_RDONLY | O_LARGEFILE, current_cred());

	if (PTR_ERR_OR_ZERO(file) != -EACCES)
		return file;
	cred = prepare_kernel_cred(&init_task);
	if (!cred)
		return ERR_PTR(-ENOMEM);
	former = override_creds(cred);
	file = dentry_open(path, O_RDONLY | O_LARGEFILE, cred);
	revert_creds(former);
	put_cred(cred);
	return file;
}

/*
 * Bytes of the file in a segment with code. A linker may put the ELF header into it, which says
 * where the sections are: that is no code, and differs in a stripped file.
 */
static u64 code_in(const Elf64_Phdr *header, loff_t *at)
{
	u64 passed = header->p_offset < sizeof(Elf64_Ehdr) ?
			     sizeof(Elf64_Ehdr) - header->p_offset :
			     0;

	if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || header->p_filesz <= passed)
		return 0;
	*at = header->p_offset + passed;
	return header->p_filesz - passed;
}

/* Adds words to the sum; a negative error if they cannot be read. */
static int add_words(struct file *file, loff_t at, u64 left, u64 *words, u64 *sum)
{
	ssize_t got;
	size_t some, i;

	while (left) {
		some = min_t(u64, left, SUM_BYTES);
		words[(some - 1) / sizeof(*words)] = 0;
		if (fatal_signal_pending(current) || spile_arming_ended())
			return -EINTR;
		got = kernel_read(file, words, some, &at);
		if (got < 0)
			return got;
		if (got != some)
			return -EKEYREJECTED;
		for (i = 0; i < DIV_ROUND_UP(some, sizeof(*words)); i++)
			*sum = (*sum ^ words[i]) * 0x100000001b3ull;
		left -= some;
		cond_resched();
	}
	return 0;
}

/* -EKEYREJECTED: the file's code is not that of the program, by its sum (script.h). */
static int check_code(struct file *file, const struct spile_program *program,
		      const Elf64_Phdr *headers, unsigned int count)
{
	u64 sum = 0xcbf29ce484222325ull, bytes = 0, *words;
	unsigned int i;
	int error = 0;
	loff_t at = 0;

	/* First, since a file of any size may be there. The program's is limited (code_sum.rs). */
	for (i = 0; i < count; i++)
		if (check_add_overflow(bytes, code_in(&headers[i], &at), &bytes))
			return -EKEYREJECTED;
	if (bytes != program->code_bytes)
		return -EKEYREJECTED;
	words = kvmalloc(SUM_BYTES, GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	for (i = 0; i < count && !error; i++) {
		bytes = code_in(&headers[i], &at);
		error = add_words(file, at, bytes, words, &sum);
	}
	kvfree(words);
	return error ?: sum == program->code_sum ? 0 : -EKEYREJECTED;
}

/* What follows if the file cannot be probed. */
static const char *consequence(const struct spile_program *program)
{
	return program->unwinds_only ?
		       "an exception that passes through a function whose return is probed ends a program that uses it" :
		       "its probes are not armed";
}

static void report_other_build(const struct spile_program *program, const unsigned char *found,
			       unsigned int found_bytes)
{
	char expected[SPILE_BUILD_ID_TEXT], there[SPILE_BUILD_ID_TEXT];

	if (!program->build_id_bytes)
		tell("%s is not the file that the script was compiled for (that has no build-id, and other code): %s; compile the script again",
		     program->path, consequence(program));
	else
		tell("Build-id mismatch [man warning::buildid]: %s is not the file that the script was compiled for (build-id %s, expected %s): %s; compile the script again",
		     program->path, spile_build_id_text(there, found, found_bytes),
		     spile_build_id_text(expected, program->build_id, program->build_id_bytes),
		     consequence(program));
}

/* The same fields as the kernel's own loader reads (fs/binfmt_elf.c). */
static int check_program(const struct spile_program *program, const struct path *path)
{
	unsigned char found[SPILE_BUILD_ID_MAX];
	unsigned int found_bytes = 0, count;
	Elf64_Phdr *headers;
	struct file *file;
	int error = -ENOMEM;

	if (!program->build_id_bytes && !program->code_bytes)
		return 0;
	file = open_for_notes(path);
	if (IS_ERR(file)) {
		error = PTR_ERR(file);
		goto unread;
	}
	headers = kcalloc(MOST_SEGMENTS, sizeof(*headers), GFP_KERNEL);
	if (headers) {
		count = read_headers(file, headers);
		if (!program->build_id_bytes)
			error = check_code(file, program, headers, count);
		else
			error = has_build_id(file, program, headers, count, found, &found_bytes) ?
					0 :
					-EKEYREJECTED;
	}
	kfree(headers);
	filp_close(file, NULL);
	if (error == -EKEYREJECTED) {
		report_other_build(program, found, found_bytes);
		return error;
	}
unread:
	if (error && error != -EINTR)
		tell("%s cannot be read (rc %d): %s", program->path, error, consequence(program));
	return error;
}

static int open_program(struct program_file *file, const struct spile_program *program)
{
	int error = kern_path(program->path, LOOKUP_FOLLOW, &file->path);

	if (error) {
		/* No process that begins now uses a library that is not there. */
		if (!program->unwinds_only || error != -ENOENT)
			tell("%s is not there (rc %d): %s", program->path, error,
			     consequence(program));
		return error;
	}
	file->inode = d_real_inode(file->path.dentry);
	/* A server that does not answer would keep the session from beginning, and from ending. */
	file->served = spile_is_served_by_process(file->inode->i_sb);
	if (!S_ISREG(file->inode->i_mode)) {
		tell("%s is no regular file: %s", program->path, consequence(program));
		error = -EINVAL;
	} else if (!file->served) {
		error = check_program(program, &file->path);
	}
	if (error)
		path_put(&file->path);
	return error;
}

static void add_inode(const struct inode *inode, unsigned int program)
{
	unsigned int mask = (1u << by_inode_bits) - 1, at = hash_ptr(inode, by_inode_bits);

	/* It has room for two entries of each program, and as many that are empty. */
	while (by_inode[at] && by_inode[at] != program + 1)
		at = (at + 1) & mask;
	/* The reader finds the file's fields. */
	smp_store_release(&by_inode[at], program + 1);
}

static int make_files(void)
{
	unsigned int count = spile_script.program_count;

	if (files)
		return 0;
	by_inode_bits = ilog2(roundup_pow_of_two(4 * count));
	by_inode = kvcalloc(1u << by_inode_bits, sizeof(*by_inode), GFP_KERNEL);
	files = by_inode ? kvcalloc(count, sizeof(*files), GFP_KERNEL) : NULL;
	if (files)
		return 0;
	kvfree(by_inode);
	by_inode = NULL;
	return -ENOMEM;
}

static struct inode *opened_inode(unsigned int program)
{
	struct program_file *file;

	if (program >= spile_script.program_count)
		return ERR_PTR(-EINVAL);
	if (make_files())
		return ERR_PTR(-ENOMEM);
	file = &files[program];
	/* Not as a kernel thread sees it: without memory, spile_programs_open() has left it out. */
	if (!file->looked && current->flags & PF_KTHREAD)
		return ERR_PTR(-ENOMEM);
	if (!file->looked)
		file->error = open_program(file, &spile_script.programs[program]);
	if (!file->looked && !file->error) {
		file->looked = true;
		add_inode(file->inode, program);
		add_inode(d_inode(file->path.dentry), program);
	}
	file->looked = true;
	return file->error ? ERR_PTR(file->error) : file->inode;
}

/*
 * The kernel reads the page with the probed instruction while no process of the machine can fork
 * (register_for_each_vma() in kernel/events/uprobes.c), and FUSE's server need not answer.
 */
struct inode *spile_program_inode(unsigned int program)
{
	struct inode *inode = opened_inode(program);

	if (IS_ERR(inode) || !files[program].served)
		return inode;
	if (!files[program].refused)
		tell("%s is on a file system that a process serves (FUSE), and no process could fork while the kernel waits for it: %s; probe a copy on another file system",
		     spile_script.programs[program].path,
		     consequence(&spile_script.programs[program]));
	files[program].refused = spile_session_state != SPILE_STATE_READY;
	return ERR_PTR(-EOPNOTSUPP);
}

void spile_programs_open(void)
{
	unsigned int i;

	for (i = 0; i < spile_script.program_count; i++) {
		/* Not reported before. */
		if (files && files[i].error)
			files[i].looked = false;
		if (PTR_ERR_OR_ZERO(opened_inode(i)) == -ENOMEM)
			return;
	}
}

bool spile_program_of_mm(spile_long program, const struct mm_struct *mm)
{
	struct file *exe;
	bool same = false;

	if (program < 0)
		return true;
	if (!files || program >= spile_script.program_count || !mm ||
	    !files[program].looked || files[program].error)
		return false;
	rcu_read_lock();
	exe = rcu_dereference(mm->exe_file);
	if (exe)
		same = file_inode(exe) == files[program].inode ||
		       file_inode(exe) == d_inode(files[program].path.dentry);
	rcu_read_unlock();
	return same;
}

/* Whether the current process runs a program with one of these numbers; any if they are negative. */
static bool runs_one_of(spile_long first, spile_long last)
{
	unsigned int mask, at;
	const struct inode *inode;
	u32 entry;

	if (first < 0)
		return true;
	inode = spile_current_program();
	if (!inode || !by_inode)
		return false;
	mask = (1u << by_inode_bits) - 1;
	for (at = hash_ptr(inode, by_inode_bits);; at = (at + 1) & mask) {
		const struct program_file *file;

		/* Acquire: the program is complete; pairs with the release in add_inode(). */
		entry = smp_load_acquire(&by_inode[at]);
		if (!entry)
			return false;
		file = &files[entry - 1];
		/* A file can have several names. */
		if (entry - 1 >= first && entry - 1 <= last &&
		    (inode == file->inode || inode == d_inode(file->path.dentry)))
			return true;
	}
}

const struct inode *spile_current_program(void)
{
	const struct inode *inode = NULL;
	struct file *exe;

	rcu_read_lock();
	exe = current->mm ? rcu_dereference(current->mm->exe_file) : NULL;
	if (exe)
		inode = file_inode(exe);
	rcu_read_unlock();
	return inode;
}

/* Mappings of a process that are looked at. */
enum {
	MOST_MAPPINGS = 4096,
	MAPPING_STEPS = 16,	/* charged for each */
};

static bool inode_has_key(const struct inode *inode, const struct spile_file_key *key)
{
	return inode->i_ino == key->inode && inode->i_generation == key->generation &&
	       new_encode_dev(inode->i_sb->s_dev) == key->device;
}

/* Whether the beginning of the program's file is mapped there. */
static bool is_beginning(const struct program_file *file, const struct spile_mapping *mapping)
{
	return mapping->kind == SPILE_MAPPING_FILE && !mapping->offset &&
	       (inode_has_key(file->inode, &mapping->key) ||
		inode_has_key(d_inode(file->path.dentry), &mapping->key));
}

/* Where the current process has mapped the beginning of the file; 0: nowhere. */
static unsigned long find_beginning(struct spile_context *c, struct program_file *file)
{
	unsigned long at = READ_ONCE(file->beginning);
	struct spile_mapping mapping;
	unsigned int i;

	/* Most processes of a program have it at one place, or one process is probed. */
	if (at && spile_mapping_find(at, &mapping) && is_beginning(file, &mapping))
		return mapping.start;
	at = 0;
	for (i = 0; i < MOST_MAPPINGS && spile_mapping_next(at, &mapping); i++) {
		if (!spile_charge_steps(c, MAPPING_STEPS))
			return 0;
		if (is_beginning(file, &mapping)) {
			WRITE_ONCE(file->beginning, mapping.start);
			return mapping.start;
		}
		at = mapping.end;
	}
	return 0;
}

/* Where it is not mapped, the result cannot be read. */
spile_long spile_fn___loaded_address(struct spile_context *c, spile_long program, spile_long base,
				     spile_long address)
{
	unsigned long at;

	/* Of one that was not read it is not known whether variables have these addresses. */
	if (!files || (u64)program >= spile_script.program_count || !files[program].looked ||
	    files[program].error || files[program].served || !current->mm)
		return 0;
	at = find_beginning(c, &files[program]);
	return at ? address - base + at : 0;
}

/* The event of a probe of a process; probe/process/event.rs has the same numbers. */
enum {
	ASKED_PROCESS,
	ASKED_FORKED,
	ASKED_THREAD,
	ASKED_LAST,
	ASKED_OTHER_THREAD,
	ASKED_BEGUN,
	ASKED_THREAD_BEGUN,
};

/* Whether fork or clone returns to the new process or thread. */
static bool in_child(const struct spile_context *c)
{
	return c->probe->kind == SPILE_PROBE_SYSCALL && !(long)c->regs[SPILE_SYSCALL_RESULT];
}

spile_long spile_fn___process_event(struct spile_context *c, spile_long asked, spile_long first,
				    spile_long last, spile_long process)
{
	bool is_first = thread_group_leader(current);
	bool happened = true;

	switch (asked) {
	case ASKED_FORKED:
		happened = is_first && in_child(c) && !spile_began_before();
		break;
	case ASKED_THREAD:
		happened = !is_first && in_child(c) && !spile_thread_began_before();
		break;
	case ASKED_LAST:
		happened = !atomic_read(&current->signal->live);
		break;
	case ASKED_OTHER_THREAD:
		happened = !is_first;
		break;
	case ASKED_BEGUN:
		happened = spile_begun_is_new();
		break;
	case ASKED_THREAD_BEGUN:
		happened = spile_thread_begun_is_new();
		break;
	}
	return happened && spile_follows_current(process) &&
	       runs_one_of(first, last);
}

void spile_programs_exit(void)
{
	unsigned int i;

	for (i = 0; files && i < spile_script.program_count; i++)
		if (files[i].looked && !files[i].error)
			path_put(&files[i].path);
	kvfree(files);
	files = NULL;
	kvfree(by_inode);
	by_inode = NULL;
}

bool spile_program_is_refused(const struct spile_site *site)
{
	unsigned int program;

	switch (site->probe->kind) {
	case SPILE_PROBE_UPROBE:
	case SPILE_PROBE_URETPROBE:
		program = site->probe->uprobe.program;
		break;
	case SPILE_PROBE_USER_WATCH:
		program = site->probe->user_watch.program;
		break;
	case SPILE_PROBE_PROGRAM_COUNTER:
		program = site->probe->program_counter.program;
		break;
	default:
		return false;
	}
	return files && program < spile_script.program_count &&
	       (files[program].error || files[program].served);
}
