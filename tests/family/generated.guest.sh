# Shows: the generated modules load with their dependencies, and each of their functions is called once; the second build of a
# module has another build-id.
# family: yes
# modules: fam19
# stdout: ^loaded: fam00 fam01 fam10 fam19$
# stdout: ^calls: 0 800$
# stdout: ^another build$

note() { od -An -tx1 /sys/module/fam19/notes/.note.gnu.build-id; }
run=/sys/module/fam19/parameters/run

echo "loaded: $(cut -d ' ' -f 1 /proc/modules | grep '^fam' | sort | xargs)"
before=$(cat $run)
echo 1 >$run
echo "calls: $before $(cat $run)"
first=$(note)
rmmod fam19
insmod /root/variant/fam19.ko
[ "$(note)" != "$first" ] && echo another build
unload_family
