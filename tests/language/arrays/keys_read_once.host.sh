# Shows: a handler that uses several elements of an array by keys from memory reads each key once, before it takes their locks:
# if memory changes meanwhile, it still uses the elements whose locks it has.
# stdout: ^reads: 1$
# stdout: ^held: 2$
"$SPILE" -r "$RELEASE" -p3 -e 'global a
probe kernel.function("vfs_read") { a[$file->f_flags] = a[$file->f_flags + 1] + 1 }' >read.c
# Those in braces run if the key could not be read before, and then end the handler.
echo "reads: $(grep -c '^	t[0-9]* = spile_read(' read.c)"
echo "held: $(grep -o 'spile_map_hold_several(c, &global_a, &c->held\[0\], 2' read.c | tail -c 2)"
