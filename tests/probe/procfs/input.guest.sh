# Shows: standard input of the loader reaches input.char and input.line.
# script: input input.stp
# stdout: ^key b$
# stdout: ^line abc$
# stdout: ^line 2 words$
# stdout: ^line end$
# stdout: ^ended 0$

status=0
{ sleep 1; printf 'abc\n2 words\n'; sleep 1; printf 'end\n'; sleep 2; } | timeout 20 spilerun input.ko || status=$?
echo "ended $status"
gone input
