# Shows: the process of -x has its probes where its memory is that of its parent, which is not followed (CLONE_VM without a thread).
# script: shared_memory shared_memory.stp
# stdout: ^5 hits, 0 of others$
# absent: ERROR|WARNING
mkfifo ready
abuse sharer >ready &
parent=$!
read -r child <ready
timeout 30 spilerun shared_memory.ko -x $child
kill $child $parent
