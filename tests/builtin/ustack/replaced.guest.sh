# Shows: frames of code that is unmapped, and replaced by another file's at the same address, are those of the file that is there
# at the moment, though all else of the stack is as in the hit before.
# script: chains tests/builtin/ustack/chains.stp
# guest: 6.1 6.12
# stdout: ^20 turns of first.so and second.so$
# absent: another address
cp /usr/lib/stacks/libstacks.so first.so
cp first.so second.so
# The tables are made when the files are first found in a stack.
spilerun chains.ko -c "sh -c 'stacks replaced 1 ./first.so ./second.so; sleep $PATIENCE; stacks replaced 20 ./first.so ./second.so'" >out
# Of the second run.
sed -n 's/^ 0x[0-9a-f]* : library_outer+.*\/\(first.so\|second.so\).*/\1/p' out | tail -n 40 >files
yes 'first.so
second.so' | head -n 40 | cmp - files && echo 20 turns of first.so and second.so || cat out
