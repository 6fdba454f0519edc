/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C halves of builtins. Included by generated C after script.h, and by the
 * runtime; includes nothing itself.
 *
 * Builtin NAME(a, b) is spile_fn_NAME(c, a, b): a long is a spile_long, a string
 * a struct spile_string. One that returns a string takes a last argument `out`
 * of spile_script.string_bytes and returns the length. One that fails sets the
 * context's error and returns 0 or the empty string.
 *
 * Any context, no sleeping, no allocation; bounded by string_bytes unless stated otherwise.
 */
#ifndef SPILE_BUILTINS_H
#define SPILE_BUILTINS_H

/* builtin_context.c: the task that the probe hit, by ids of the initial pid namespace. */
spile_long spile_fn_pid(struct spile_context *c);	/* thread group */
spile_long spile_fn_tid(struct spile_context *c);
spile_long spile_fn_ppid(struct spile_context *c);
spile_long spile_fn_pgrp(struct spile_context *c);
spile_long spile_fn_sid(struct spile_context *c);
spile_long spile_fn_uid(struct spile_context *c);
spile_long spile_fn_euid(struct spile_context *c);
spile_long spile_fn_gid(struct spile_context *c);
spile_long spile_fn_egid(struct spile_context *c);
/* The same four in the initial user namespace. */
spile_long spile_fn_ns_uid(struct spile_context *c);
spile_long spile_fn_ns_euid(struct spile_context *c);
spile_long spile_fn_ns_gid(struct spile_context *c);
spile_long spile_fn_ns_egid(struct spile_context *c);
spile_long spile_fn_cpu(struct spile_context *c);
spile_long spile_fn_target(struct spile_context *c);	/* pid of -x or -c, or 0 */
/* the loader's time zone when the session began: seconds west of Greenwich, and its name */
spile_long spile_fn_tz_gmtoff(struct spile_context *c);
unsigned int spile_fn_tz_name(struct spile_context *c, char *out);
unsigned int spile_fn_execname(struct spile_context *c, char *out);
unsigned int spile_fn_pexecname(struct spile_context *c, char *out);
/* arguments with blanks between; "" where not resident */
unsigned int spile_fn_cmdline_str(struct spile_context *c, char *out);
/* initial environment; bounded: 128 KiB of it */
unsigned int spile_fn_env_var(struct spile_context *c, struct spile_string name, char *out);
spile_long spile_fn_user_mode(struct spile_context *c);
spile_long spile_fn_is_return(struct spile_context *c);
unsigned int spile_fn_pp(struct spile_context *c, char *out);
unsigned int spile_fn_pn(struct spile_context *c, char *out);
unsigned int spile_fn_ppfunc(struct spile_context *c, char *out);
unsigned int spile_fn_probefunc(struct spile_context *c, char *out);
unsigned int spile_fn_probemod(struct spile_context *c, char *out);
unsigned int spile_fn_cmdline_args(struct spile_context *c, spile_long first, spile_long last,
				   struct spile_string delimiter, char *out);
unsigned int spile_fn_probe_type(struct spile_context *c, char *out);
unsigned int spile_fn_module_name(struct spile_context *c, char *out);
spile_long spile_fn_own_process(struct spile_context *c);	/* whether it is one of the owner's */
spile_long spile_fn_stp_pid(struct spile_context *c);	/* of the loader */
spile_long spile_fn_task_current(struct spile_context *c);
/* address of the struct task_struct, or 0 */
spile_long spile_fn_pid2task(struct spile_context *c, spile_long pid);
/* follow.c: of the processes that target() and its descendants are */
spile_long spile_fn_followed(struct spile_context *c, spile_long pid);
spile_long spile_fn_next_followed(struct spile_context *c, spile_long pid);
spile_long spile_fn_randint(struct spile_context *c, spile_long limit);	/* 0 to limit - 1 */

/*
 * builtin_registers.c: registers of the probed code. An error if there are none, except addr and
 * uaddr, which return 0.
 */
spile_long spile_fn___task_regs(struct spile_context *c);
/* addresses of a struct pt_regs; 0: the hit was not there */
spile_long spile_fn___get_kregs(struct spile_context *c);
spile_long spile_fn___get_uregs(struct spile_context *c);
void spile_fn___set_kregs(struct spile_context *c, spile_long regs);
void spile_fn___set_uregs(struct spile_context *c, spile_long regs);
/* longlong_arg() then has the arguments of the system call with these registers */
void spile_fn___set_syscall_pt_regs(struct spile_context *c, spile_long regs);
/* the register at an offset in struct pt_regs */
spile_long spile_fn__stp_get_register_by_offset(struct spile_context *c, spile_long offset);
/* Of an offset in struct pt_regs; NULL if it is not the offset of a register. */
const char *spile_register_name(unsigned int offset);
spile_long spile_fn_registers_valid(struct spile_context *c);
spile_long spile_fn_addr(struct spile_context *c);
spile_long spile_fn_uaddr(struct spile_context *c);
spile_long spile_fn_returnval(struct spile_context *c);
spile_long spile_fn_probing_32bit_app(struct spile_context *c);
spile_long spile_fn_register(struct spile_context *c, struct spile_string name);
spile_long spile_fn_u_register(struct spile_context *c, struct spile_string name);
/* from 1; of a function just entered */
spile_long spile_fn_longlong_arg(struct spile_context *c, spile_long number);
spile_long spile_fn_long_arg(struct spile_context *c, spile_long number);
spile_long spile_fn_ulong_arg(struct spile_context *c, spile_long number);
void spile_fn_print_regs(struct spile_context *c);
spile_long spile_fn_stack_size(struct spile_context *c);
spile_long spile_fn_stack_used(struct spile_context *c);

/* syscall.c */
unsigned int spile_fn_syscall_name(struct spile_context *c, spile_long number, char *out);
/* of 64-bit programs; -1: none */
spile_long spile_fn_syscall_num(struct spile_context *c, struct spile_string name);
/* syscall_names.c */
unsigned int spile_fn___syscall_named(struct spile_context *c, spile_long kind, spile_long number,
				      char *out);
spile_long spile_fn___in_compat_task(struct spile_context *c);	/* syscall_compat.c */
spile_long spile_fn___syscall_narrow(struct spile_context *c);	/* syscall_compat.c */
spile_long spile_fn___syscall_number(struct spile_context *c);	/* of the call that is probed */

/* at an address in user space up to the first 0; width 4 or 8; at most 65536 */
spile_long spile_fn___user_words(struct spile_context *c, spile_long address, spile_long width);

/* perf.c: the value of a probe's counter on this CPU */
spile_long spile_fn___perf_counter(struct spile_context *c, spile_long probe);
spile_long spile_fn___program_counter(struct spile_context *c, spile_long probe);

/*
 * procfs.c: the text of the file that the handler runs for; those that write return
 * what they are given
 */
unsigned int spile_fn___procfs_value(struct spile_context *c, char *out);
unsigned int spile_fn___procfs_set(struct spile_context *c, struct spile_string text, char *out);
unsigned int spile_fn___procfs_append(struct spile_context *c, struct spile_string text, char *out);

void spile_fn_dump_stack(struct spile_context *c);
void spile_fn_ftrace(struct spile_context *c, struct spile_string text);
unsigned int spile_fn_module_size(struct spile_context *c, char *out);
void spile_fn_panic(struct spile_context *c, struct spile_string text);
void spile_fn_raise(struct spile_context *c, spile_long signal);
void spile_fn_mdelay(struct spile_context *c, spile_long milliseconds);
void spile_fn_udelay(struct spile_context *c, spile_long microseconds);
void spile_fn___set_argument(struct spile_context *c, spile_long number, spile_long value);
spile_long spile_fn___maxstringlen(struct spile_context *c);

/* builtin_floating.c: the bits of a binary64 in a spile_long */
spile_long spile_fn_fp_add(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_sub(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_mul(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_div(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_rem(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_sqrt(struct spile_context *c, spile_long x);
spile_long spile_fn_fp_eq(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_le(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_fp_lt(struct spile_context *c, spile_long x, spile_long y);
spile_long spile_fn_long_to_fp(struct spile_context *c, spile_long number);
spile_long spile_fn_fp32_to_fp64(struct spile_context *c, spile_long bits);
spile_long spile_fn_fp_to_long(struct spile_context *c, spile_long x, spile_long rounding,
			       spile_long exact);
unsigned int spile_fn_fp_to_string(struct spile_context *c, spile_long x, spile_long precision,
				   char *out);
spile_long spile_fn_string_to_fp(struct spile_context *c, struct spile_string text);

/* builtin_stack.c */
unsigned int spile_fn_hit_function(struct spile_context *c, char *out);
unsigned int spile_fn_hit_module(struct spile_context *c, char *out);
unsigned int spile_fn_symname(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_symdata(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_modname(struct spile_context *c, spile_long address, char *out);
spile_long spile_fn___stack_at(struct spile_context *c, spile_long depth);
spile_long spile_fn___value_unknown_at_caller(struct spile_context *c);
unsigned int spile_fn___stack_addresses(struct spile_context *c, spile_long first, spile_long most,
					char *out);
unsigned int spile_fn_task_backtrace(struct spile_context *c, spile_long task, char *out);
void spile_fn___print_stack(struct spile_context *c, spile_long full);
void spile_fn___print_stack_lines(struct spile_context *c);
unsigned int spile_fn___symbol_line(struct spile_context *c, spile_long address, spile_long part,
				    char *out);
unsigned int spile_fn___sprint_stack(struct spile_context *c, char *out);
void spile_fn___print_addresses(struct spile_context *c, struct spile_string addresses);
unsigned int spile_fn___sprint_addresses(struct spile_context *c, struct spile_string addresses,
					 char *out);

/* builtin_user_stack.c; flags: enum spile_stack_flag */
spile_long spile_fn___user_stack_at(struct spile_context *c, spile_long depth);
unsigned int spile_fn___user_stack_addresses(struct spile_context *c, spile_long first,
					     spile_long most, char *out);
void spile_fn___print_user_stack(struct spile_context *c, spile_long flags);
void spile_fn___print_user_stack_from(struct spile_context *c, spile_long pc, spile_long sp,
				      spile_long fp, spile_long flags);
unsigned int spile_fn___sprint_user_stack(struct spile_context *c, char *out);
void spile_fn___print_user_addresses(struct spile_context *c, struct spile_string addresses);
unsigned int spile_fn___sprint_user_addresses(struct spile_context *c,
					      struct spile_string addresses, char *out);
unsigned int spile_fn_fold_ustack(struct spile_context *c, struct spile_string addresses,
				  char *out);
unsigned int spile_fn_usymname(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_usymdata(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_usymfile(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_usymline(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_usymfileline(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_umodname(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_umodbuildid(struct spile_context *c, spile_long address, char *out);
spile_long spile_fn_umodaddr(struct spile_context *c, spile_long address);

/* builtin_time.c */
spile_long spile_fn_gettimeofday_s(struct spile_context *c);
spile_long spile_fn_gettimeofday_ms(struct spile_context *c);
spile_long spile_fn_gettimeofday_us(struct spile_context *c);
spile_long spile_fn_gettimeofday_ns(struct spile_context *c);
spile_long spile_fn_ktime_get_ns(struct spile_context *c);	/* CLOCK_MONOTONIC */
spile_long spile_fn_get_cycles(struct spile_context *c);
spile_long spile_fn_jiffies(struct spile_context *c);
spile_long spile_fn_HZ(struct spile_context *c);
/* this CPU's clock, whatever the argument */
spile_long spile_fn_cpu_clock_ns(struct spile_context *c, spile_long cpu);
spile_long spile_fn_cpu_clock_us(struct spile_context *c, spile_long cpu);
spile_long spile_fn_cpu_clock_ms(struct spile_context *c, spile_long cpu);
spile_long spile_fn_cpu_clock_s(struct spile_context *c, spile_long cpu);
spile_long spile_fn_local_clock_ns(struct spile_context *c);
spile_long spile_fn_local_clock_us(struct spile_context *c);
spile_long spile_fn_local_clock_ms(struct spile_context *c);
spile_long spile_fn_local_clock_s(struct spile_context *c);

/* "Wed Jun 30 21:49:08 1993", UTC */
unsigned int spile_fn_ctime(struct spile_context *c, spile_long seconds, char *out);

/*
 * builtin_memory.c. An unreadable address is an error; 2: the default instead; warn: a
 * WARN record and "".
 */
unsigned int spile_fn___gfp_flag_str(struct spile_context *c, spile_long flags, char *out);
unsigned int spile_fn_kernel_string(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_kernel_string2(struct spile_context *c, spile_long address,
				     struct spile_string fallback, char *out);
unsigned int spile_fn_kernel_string_n(struct spile_context *c, spile_long address, spile_long most,
				      char *out);
/* NULL: "NULL"; unreadable: its address */
unsigned int spile_fn_kernel_string_quoted(struct spile_context *c, spile_long address, char *out);
spile_long spile_fn_kernel_char(struct spile_context *c, spile_long address);
spile_long spile_fn_kernel_short(struct spile_context *c, spile_long address);
spile_long spile_fn_kernel_int(struct spile_context *c, spile_long address);
/* of the bitmap's first 2^20 bits at most */
spile_long spile_fn_bits_set(struct spile_context *c, spile_long address, spile_long bits);
spile_long spile_fn_kernel_long(struct spile_context *c, spile_long address);
spile_long spile_fn_kernel_pointer(struct spile_context *c, spile_long address);
spile_long spile_fn___process_event(struct spile_context *c, spile_long asked, spile_long first,
				    spile_long last, spile_long process);
spile_long spile_fn___kernel_readable(struct spile_context *c, spile_long address,
				      spile_long bytes);
spile_long spile_fn___thread_pointer(struct spile_context *c);
spile_long spile_fn___vector_register(struct spile_context *c, spile_long number);
spile_long spile_fn___loaded_address(struct spile_context *c, spile_long program, spile_long base,
				     spile_long address);
spile_long spile_fn___original_return(struct spile_context *c, spile_long at, spile_long found);
spile_long spile_fn___program_address(struct spile_context *c, spile_long address);
unsigned int spile_fn_user_string(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_user_string2(struct spile_context *c, spile_long address,
				   struct spile_string fallback, char *out);
unsigned int spile_fn_user_string_n(struct spile_context *c, spile_long address, spile_long most,
				    char *out);
unsigned int spile_fn_user_string_n2(struct spile_context *c, spile_long address, spile_long most,
				     struct spile_string fallback, char *out);
unsigned int spile_fn_user_string_n_warn2(struct spile_context *c, spile_long address,
					  spile_long most, struct spile_string fallback, char *out);
unsigned int spile_fn_user_string_quoted(struct spile_context *c, spile_long address, char *out);
unsigned int spile_fn_user_string_n_quoted2(struct spile_context *c, spile_long address,
					    spile_long in, spile_long out_bytes, char *out);
unsigned int spile_fn_kernel_or_user_string_quoted(struct spile_context *c, spile_long address,
						   char *out);
/*
 * Exactly `in` bytes; at most out_bytes of text with its NUL. Unreadable: the address;
 * _error: an error.
 */
unsigned int spile_fn_kernel_buffer_quoted(struct spile_context *c, spile_long address,
					   spile_long in, spile_long out_bytes, char *out);
unsigned int spile_fn_kernel_buffer_quoted_error(struct spile_context *c, spile_long address,
						 spile_long in, spile_long out_bytes, char *out);
unsigned int spile_fn_user_buffer_quoted(struct spile_context *c, spile_long address, spile_long in,
					 spile_long out_bytes, char *out);
unsigned int spile_fn_user_buffer_quoted_error(struct spile_context *c, spile_long address,
					       spile_long in, spile_long out_bytes, char *out);
/* Writes to the current process; an error if the address cannot be written. */
void spile_fn_set_user_char(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_user_short(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_user_int(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_user_long(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_user_pointer(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_user_string(struct spile_context *c, spile_long address,
			      struct spile_string value);
void spile_fn_set_user_string_n(struct spile_context *c, spile_long address, spile_long most,
				struct spile_string value);
/* a warning instead */
void spile_fn_set_user_string_arg(struct spile_context *c, spile_long address,
				  struct spile_string value);
/* Unreadable: 0; _error: an error; _warn: a WARN record and 0. */
#define SPILE_USER_NUMBER(name) \
	spile_long spile_fn_user_##name(struct spile_context *c, spile_long address); \
	spile_long spile_fn_user_##name##_error(struct spile_context *c, spile_long address); \
	spile_long spile_fn_user_##name##_warn(struct spile_context *c, spile_long address)
SPILE_USER_NUMBER(char);
SPILE_USER_NUMBER(short);
SPILE_USER_NUMBER(ushort);
SPILE_USER_NUMBER(int);
SPILE_USER_NUMBER(uint);
SPILE_USER_NUMBER(uint8);
SPILE_USER_NUMBER(int64);
SPILE_USER_NUMBER(long);
SPILE_USER_NUMBER(ulong);
/* Guru mode only. */
void spile_fn_set_kernel_char(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_kernel_short(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_kernel_int(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_kernel_long(struct spile_context *c, spile_long address, spile_long value);
void spile_fn_set_kernel_pointer(struct spile_context *c, spile_long address, spile_long value);
/* with its NUL */
void spile_fn_set_kernel_string(struct spile_context *c, spile_long address,
				struct spile_string value);
/* at most `most` bytes, no NUL if truncated */
void spile_fn_set_kernel_string_n(struct spile_context *c, spile_long address, spile_long most,
				  struct spile_string value);

/* builtin_log.c */
void spile_fn_log(struct spile_context *c, struct spile_string text);	/* with a newline */
void spile_fn_warn(struct spile_context *c, struct spile_string text);
void spile_fn_error(struct spile_context *c, struct spile_string text);
void spile_fn_exit(struct spile_context *c);
void spile_fn_abort(struct spile_context *c);
/* guru; level 0 to 7 */
void spile_fn_printk(struct spile_context *c, spile_long level, struct spile_string text);
void spile_fn_system(struct spile_context *c, struct spile_string command);

/* builtin_string.c. Positions count from 0. */
static inline spile_long spile_fn_strlen(struct spile_context *c, struct spile_string text)
{
	(void)c;
	return text.length;
}
static inline spile_long spile_fn_isdigit(struct spile_context *c, struct spile_string text)
{
	(void)c;
	return text.length && text.text[0] >= '0' && text.text[0] <= '9';
}
unsigned int spile_fn_substr(struct spile_context *c, struct spile_string s, spile_long start,
			     spile_long length, char *out);
spile_long spile_fn_isinstr(struct spile_context *c, struct spile_string s,
			    struct spile_string part);
/* -1: not there */
spile_long spile_fn_strpos(struct spile_context *c, struct spile_string s,
			   struct spile_string part);
/* 0 after the text; error where no string reaches */
spile_long spile_fn_stringat(struct spile_context *c, struct spile_string s, spile_long position);
/* base 0 and 2..36, else 0; wraps around */
spile_long spile_fn_strtol(struct spile_context *c, struct spile_string s, spile_long base);
unsigned int spile_fn_str_replace(struct spile_context *c, struct spile_string s,
				  struct spile_string old, struct spile_string new_text, char *out);
unsigned int spile_fn_string_quoted(struct spile_context *c, struct spile_string s, char *out);
unsigned int spile_fn_text_str(struct spile_context *c, struct spile_string s, char *out);
/* At most `most` bytes; 0: as long as a string can be. */
unsigned int spile_fn_text_strn(struct spile_context *c, struct spile_string s, spile_long most,
				spile_long quoted, char *out);
/*
 * tokenize(s, delimiters) begins, tokenize("", delimiters) continues: the text is kept per
 * CPU within one handler run.
 */
unsigned int spile_fn_tokenize(struct spile_context *c, struct spile_string s,
			       struct spile_string delimiters, char *out);
unsigned int spile_fn_tokenize_next(struct spile_context *c, struct spile_string delimiters,
				    char *out);

/* The low 2, 4 or 8 bytes in big-endian or little-endian order, zero-extended. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SPILE_BIG_ENDIAN(bits, x) __builtin_bswap##bits(x)
#define SPILE_LITTLE_ENDIAN(bits, x) (x)
#else
#define SPILE_BIG_ENDIAN(bits, x) (x)
#define SPILE_LITTLE_ENDIAN(bits, x) __builtin_bswap##bits(x)
#endif
static inline spile_long spile_fn_big_endian2(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_BIG_ENDIAN(16, (unsigned short)(x & 0xffff));
}
static inline spile_long spile_fn_big_endian4(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_BIG_ENDIAN(32, (unsigned int)(x & 0xffffffff));
}
static inline spile_long spile_fn_big_endian8(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_BIG_ENDIAN(64, (spile_ulong)x);
}
static inline spile_long spile_fn_little_endian2(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_LITTLE_ENDIAN(16, (unsigned short)(x & 0xffff));
}
static inline spile_long spile_fn_little_endian4(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_LITTLE_ENDIAN(32, (unsigned int)(x & 0xffffffff));
}
static inline spile_long spile_fn_little_endian8(struct spile_context *c, spile_long x)
{
	(void)c;
	return SPILE_LITTLE_ENDIAN(64, (spile_ulong)x);
}

/*
 * builtin_regex.c: the text that the last =~ or !~ of this handler run matched. Error if there
 * was none, if it failed, and for a group that its pattern does not have.
 */
/* "" for a group that did not take part */
unsigned int spile_fn_matched(struct spile_context *c, spile_long n, char *out);
unsigned int spile_fn_matched_str(struct spile_context *c, char *out);
spile_long spile_fn_ngroups(struct spile_context *c);	/* with the whole */

/* builtin_errno.c */
/* "ENOENT" for 2 and -2; "" for 0; else decimal */
unsigned int spile_fn_errno_str(struct spile_context *c, spile_long error, char *out);

#endif
