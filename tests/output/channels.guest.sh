# Shows: only the script's output goes to standard output or the file of -o.
# script: hello tests/lifecycle/hello.stp
# stdout: ^two lines$
# stdout: ^in the file$

spilerun hello.ko >out 2>err
printf 'hello\ngoodbye\n' | cmp - out
[ ! -s err ] || { cat err; exit 1; }
echo two lines
spilerun hello.ko -o file >out 2>err
[ ! -s out ]
printf 'hello\ngoodbye\n' | cmp - file
echo in the file
