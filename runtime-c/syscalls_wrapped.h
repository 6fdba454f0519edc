/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that 32-bit programs make through socketcall(2) and ipc(2) alone, with numbers of our
 * own, which no kernel gives: syscall_compat.c takes them out of there. The compiler reads this
 * file too (probe/syscall.rs).
 */
SPILE_SYSCALL(500, accept)
SPILE_SYSCALL(501, send)
SPILE_SYSCALL(502, recv)
SPILE_SYSCALL(503, semop)
SPILE_SYSCALL(504, semtimedop)
