# Shows: a session that is left running (-L) may have a target: the process of -x, or the command of -c, which runs on. Its end does not
# end the session.
# script: targets targets.stp
# limit: 60
# stdout: ^process of -x, after its end$
# stdout: ^command of -c, which ran on$
# stdout: ^bulk 0$

sleep 1000 &
other=$!
spilerun -L targets.ko -x $other 2>/dev/null
kill $other
wait $other || true
sleep 0.3
loaded targets
spilerun -A targets -T 0.5 >out
[ "$(head -n 1 out)" = "target $other" ]
gone targets
echo process of -x, after its end

spilerun -L targets.ko -c 'echo $$ >pid; sleep 0.5; touch ran' 2>/dev/null
loaded targets
for tenth in $(seq $((100 * PATIENCE))); do
	[ ! -e ran ] || break
	pause 0.1
done
[ -e ran ]
sleep 0.3
loaded targets
spilerun -A targets -T 0.5 >out
[ "$(head -n 1 out)" = "target $(cat pid)" ]
gone targets
echo command of -c, which ran on

spilerun -L targets.ko -x $$ -b 2 -o log 2>/dev/null
loaded targets
spilerun -d targets
echo bulk $?
