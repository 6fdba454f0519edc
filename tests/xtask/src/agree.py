# SPDX-License-Identifier: GPL-2.0-or-later
# Run by gdb: the numbers that variables have where a program first comes to each of a few statements, of those chosen by a seed.
# Addresses are not randomised. A line `at ADDRESS` for each statement, in hex, then `PATH BYTES VALUE` for each number, VALUE in hex or `?`.
# PATH is a variable, or a member, an element or what a pointer points to, as scripts write it: `list->next->size`, `table[2]`. Of inlined code
# the variables of the functions around it follow, without parts.
import os, random, re, struct
import gdb

CANDIDATES = int(os.environ["CANDIDATES"])
# Members of a struct, levels of them, and parts of a variable.
WIDTH, DEPTH, PARTS = 12, 3, 20

NUMBERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_PTR)
RECORDS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
NAME = re.compile(r"[A-Za-z_]\w*$")

def statements():
    found = set()
    for line in gdb.execute("maint info line-table", to_string=True).splitlines():
        # Index, line, address, in newer versions an unrelocated address, and whether a statement begins.
        row = re.match(r"\d+\s+(\d+)\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+\s+)?.*\bY\b", line)
        if row and row.group(1) != "0":
            found.add(int(row.group(2), 16))
    return found

def number(value):
    """Bytes and value in hex, or `?` if it cannot be read; nothing where it is no number that scripts have."""
    kind = value.type.strip_typedefs()
    if kind.code in REFERENCES:
        try:
            # Its address, as scripts have it.
            return 8, hex(int(value.referenced_value().address))
        except (gdb.error, TypeError):
            return 8, "?"
    if kind.sizeof > 8 or kind.code not in NUMBERS + (gdb.TYPE_CODE_FLT,):
        return None
    try:
        if kind.code == gdb.TYPE_CODE_FLT:
            # Its raw bits.
            return kind.sizeof, "0x" + struct.pack(">f" if kind.sizeof == 4 else ">d", float(value)).hex()
        return kind.sizeof, hex(int(value) & (1 << 8 * kind.sizeof) - 1)
    except (gdb.error, OverflowError):
        return kind.sizeof, "?"

def parts(path, value):
    """The parts of a value, each with its path."""
    kind = value.type.strip_typedefs()
    if kind.code in REFERENCES:
        value = value.referenced_value()
        kind = value.type.strip_typedefs()
        if kind.code not in RECORDS + (gdb.TYPE_CODE_ARRAY,):
            return
    if kind.code == gdb.TYPE_CODE_PTR:
        target = kind.target().strip_typedefs()
        if target.code in RECORDS and target.sizeof and int(value):
            yield from members(path, value.dereference())
        elif target.code in NUMBERS and target.sizeof <= 8 and int(value):
            yield path + "[0]", value.dereference()
    elif kind.code in RECORDS:
        yield from members(path, value)
    elif kind.code == gdb.TYPE_CODE_ARRAY:
        low, high = kind.range()
        for index in sorted({0, 1, high} & set(range(low, high + 1))):
            yield "%s[%d]" % (path, index), value[index]

def members(path, value):
    for field in value.type.strip_typedefs().fields()[:WIDTH]:
        if not hasattr(field, "bitpos"):
            continue
        if field.is_base_class or not field.name:
            yield from members(path, value[field])
        elif NAME.match(field.name):
            yield path + "->" + field.name, value[field]

def print_parts(path, value):
    waiting = [(path, value, 0)]
    for path, value, depth in waiting:
        if depth:
            found = number(value)
            if found:
                print(path, *found, file=out)
        if depth == DEPTH or len(waiting) > PARTS:
            continue
        try:
            for part, inner in parts(path, value):
                waiting.append((part, inner, depth + 1))
        except (gdb.error, RuntimeError, TypeError):
            pass

def variables(frame, whole):
    block = frame.block()
    while block is not None:
        for symbol in block:
            if not symbol.is_argument and not symbol.is_variable or not NAME.match(symbol.name):
                continue
            try:
                value = symbol.value(frame)
            except gdb.error:
                continue
            found = number(value)
            if found:
                print(symbol.name, *found, file=out)
            # Of several variables of one name the innermost is meant.
            if whole and symbol.name not in seen:
                print_parts(symbol.name, value)
            seen.add(symbol.name)
        if block.function is not None:
            break
        block = block.superblock

def whole(frame):
    inner = True
    while True:
        variables(frame, inner)
        if frame.type() != gdb.INLINE_FRAME:
            return
        frame = frame.older()
        inner = False

for setting in ("pagination off", "debuginfod enabled off", "confirm off", "disable-randomization on", "print inferior-events off"):
    gdb.execute("set " + setting)
gdb.execute("maint expand-symtabs")
known = sorted(statements())
random.seed(int(os.environ["SEED"]))
chosen = random.sample(known, min(len(known), CANDIDATES))
lowest = int(re.search(r"0x[0-9a-f]+", gdb.execute("info files", to_string=True).split("Entry point:")[1]).group(0), 16)
gdb.execute("starti %s >/dev/null" % os.environ["ARGUMENTS"], to_string=True)
moved = int(re.search(r"0x[0-9a-f]+", gdb.execute("info files", to_string=True).split("Entry point:")[1]).group(0), 16) - lowest
for address in chosen:
    # Not an internal one: at the first instruction of inlined code gdb would show only the functions around that.
    gdb.Breakpoint("*%d" % (address + moved), temporary=True)
with open(os.environ["OUT"], "w") as out:
    gdb.execute("continue", to_string=True)
    while gdb.selected_inferior().pid:
        frame = gdb.newest_frame()
        print("at", hex(frame.pc() - moved), file=out)
        seen = set()
        try:
            whole(frame)
        except (gdb.error, RuntimeError, TypeError):
            pass
        gdb.execute("continue", to_string=True)
