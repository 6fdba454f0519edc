# SPDX-License-Identifier: GPL-2.0-or-later
# Run by gdb: the numbers that variables have where a program first comes to each of a few statements, of those chosen by a seed.
# Addresses are not randomised. A line `at ADDRESS` for each statement, in hex, then `NAME BYTES VALUE` for each variable, VALUE in hex or `?`. Of inlined code
# the variables of the functions around it follow.
import os, random, re
import gdb

CANDIDATES = 10000

def statements():
    found = set()
    for line in gdb.execute("maint info line-table", to_string=True).splitlines():
        # Index, line, address, in newer versions an unrelocated address, and whether a statement begins.
        row = re.match(r"\d+\s+(\d+)\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+\s+)?.*\bY\b", line)
        if row and row.group(1) != "0":
            found.add(int(row.group(2), 16))
    return found

def number(value):
    kind = value.type.strip_typedefs()
    if kind.code not in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM,
                         gdb.TYPE_CODE_PTR):
        return None
    if kind.sizeof > 8:
        return None
    try:
        return kind.sizeof, hex(int(value) & (1 << 8 * kind.sizeof) - 1)
    except gdb.error:
        return kind.sizeof, "?"

def variables(frame):
    block = frame.block()
    while block is not None:
        for symbol in block:
            if not symbol.is_argument and not symbol.is_variable:
                continue
            try:
                found = number(symbol.value(frame))
            except gdb.error:
                found = None
            if found:
                print(symbol.name, *found, file=out)
        if block.function is not None:
            break
        block = block.superblock

def whole(frame):
    while True:
        variables(frame)
        if frame.type() != gdb.INLINE_FRAME:
            return
        frame = frame.older()

for setting in ("pagination off", "debuginfod enabled off", "confirm off", "disable-randomization on", "print inferior-events off"):
    gdb.execute("set " + setting)
gdb.execute("maint expand-symtabs")
known = sorted(statements())
random.seed(int(os.environ["SEED"]))
chosen = random.sample(known, min(len(known), CANDIDATES))
lowest = int(re.search(r"0x[0-9a-f]+", gdb.execute("info files", to_string=True).split("Entry point:")[1]).group(0), 16)
gdb.execute("starti >/dev/null", to_string=True)
moved = int(re.search(r"0x[0-9a-f]+", gdb.execute("info files", to_string=True).split("Entry point:")[1]).group(0), 16) - lowest
for address in chosen:
    # Not an internal one: at the first instruction of inlined code gdb would show only the functions around that.
    gdb.Breakpoint("*%d" % (address + moved), temporary=True)
with open(os.environ["OUT"], "w") as out:
    gdb.execute("continue", to_string=True)
    while gdb.selected_inferior().pid:
        frame = gdb.newest_frame()
        print("at", hex(frame.pc() - moved), file=out)
        try:
            whole(frame)
        except (gdb.error, RuntimeError):
            pass
        gdb.execute("continue", to_string=True)
