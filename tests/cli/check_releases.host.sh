# Shows: --check from Debian's 6.1 to its 6.12: verdicts that were verified by the symbol tables and sources of both.
# limit: 900
# stdout: ^(verdicts as they should be: [1-9][0-9]*|skipped: .*)$
# stdout: ^(examples: [1-9][0-9]{2,} the same, [1-9][0-9]* not, all as they should be|skipped: .*)$

# The debug information of a 6.12 kernel: installed, or fetched and unpacked once, into target/debug-info: vmlinux and one
# module alone. Unpacking the package takes half a minute.
newer=$(ls -d /usr/lib/debug/lib/modules/6.12.*cloud-amd64 2>/dev/null | tail -n 1)
case $RELEASE in
6.1.*) ;;
*)
  echo "skipped: the release is $RELEASE, verdicts are known from 6.1 on"
  echo "skipped: the examples too"
  exit 0
  ;;
esac
if [ -n "$newer" ]; then
  kernel=${newer##*/}
else
  package=$(apt-cache search --names-only '^linux-image-6\.12\.[0-9].*-cloud-amd64-dbg$' | cut -d ' ' -f 1 | sort -V | tail -n 1)
  kept=$ROOT/target/debug-info/$package
  if [ -z "$package" ] || { [ ! -d "$kept" ] && ! apt-get download "$package" >apt.log 2>&1; }; then
    echo "skipped: no debug package of 6.12 can be had"
    echo "skipped: the examples too"
    exit 0
  fi
  if [ ! -d "$kept" ]; then
    mkdir root
    dpkg --fsys-tarfile "$package"_*.deb | tar -x -C root --wildcards './usr/lib/debug/*vmlinux*' '*/fs/nfs/nfs.ko'
    rm "$package"_*.deb
    # Those of older packages are not needed any more.
    rm -rf "$ROOT/target/debug-info"
    mkdir -p "$ROOT/target/debug-info"
    mv root "$kept"
  fi
  # Its path is in what --check prints.
  ln -s "$kept" root
  kernel=./root
fi

# VERDICT SCRIPT: a probe point or, where there is one in its handler, a variable.
cat >expected <<'EOF'
same kernel.function("vfs_read") { println($file) }
same kernel.function("vfs_read") { println($count) }
same kernel.function("vfs_write").return { println($return) }
same kernel.function("do_sys_openat2") { println($how->flags) }
same kernel.function("generic_fillattr") { println($stat->size) }
gone kernel.function("generic_fillattr") { println($mnt_userns) }
same kernel.function("inode_permission") { println($inode->i_mode) }
gone kernel.function("iput") { println($inode->i_ctime) }
renamed:__kmalloc_noprof kernel.function("__kmalloc")
renamed:kmem_cache_alloc_noprof kernel.function("kmem_cache_alloc")
renamed:vmalloc_noprof kernel.function("vmalloc")
renamed:__alloc_pages_noprof kernel.function("__alloc_pages")
moved kernel.function("kfree")
same kernel.function("tcp_sendmsg") { println($sk->sk_rcvbuf) }
same kernel.function("tcp_v4_connect").call { println($uaddr) }
same kernel.function("ip_rcv") { println($skb->len) }
same kernel.function("ip_rcv") { println($dev->name) }
same kernel.function("__netif_receive_skb_core")
same kernel.function("wake_up_new_task") { println($p->__state) }
same kernel.function("try_to_wake_up") { println($p->comm) }
same kernel.function("do_exit") { println($code) }
same kernel.function("begin_new_exec") { println($bprm->filename) }
same kernel.function("submit_bio") { println($bio->bi_iter->bi_sector) }
same kernel.function("filemap_fault") { println($vmf->address) }
same kernel.function("handle_mm_fault") { println($vma->vm_flags) }
same kernel.function("shrink_folio_list")
gone kernel.function("unlock_page_memcg")
gone kernel.function("account_page_redirty")
same kernel.trace("sched_switch") { println($prev->pid) }
same kernel.trace("sched_switch") { println($next->comm) }
same kernel.trace("block_rq_issue") { println($rq->__data_len) }
same kernel.trace("mm_page_alloc") { println($order) }
moved kernel.statement("vfs_read@fs/read_write.c:461")
same kernel.function("d_lookup@fs/dcache.c") { println($name->name) }
same kernel.function("copy_page_to_iter").return { println($return) }
same kernel.function("nf_hook_slow") { println($state->hook) }
same module("nfs").function("nfs_file_read") { println($iocb->ki_pos) }
EOF
sed 's/^[^ ]* \(.*[^}]\)$/probe \1 { }/; t; s/^[^ ]* /probe /' expected >script.stp
"$SPILE" --check=json script.stp --kernel "$RELEASE" --kernel "$kernel" >answer.json || true

# The last item of each line is compared.
tr '{' '\n' <answer.json | sed -n '
  s/.*"place":"script.stp:\([0-9]*\):.*/\1/p
  s/.*"verdict":"\([a-z_]*\)".*"to":"\([^"]*\)".*/=\1:\2/p
  t
  s/.*"verdict":"\([a-z_]*\)".*/=\1/p' | paste -d ' ' - - | awk '{ last[$1] = $2 } END { for (line in last) print line, substr(last[line], 2) }' | sort -n >verdicts
wrong=0
while read -r line verdict; do
  wanted=$(sed -n "${line}s/ .*//p" expected)
  case $verdict in
  "$wanted" | "$wanted":*) ;;
  *)
    echo "line $line: $verdict, not $wanted: $(sed -n "${line}p" expected)"
    wrong=$((wrong + 1))
    ;;
  esac
done <verdicts
[ "$wrong" -eq 0 ] && echo "verdicts as they should be: $(wc -l <verdicts)"

# All examples. Verdicts other than "same" were checked by hand: `pahole -C file_lock` (6.9 has moved all but fl_start,
# fl_end, fl_ops and fl_lmops into struct file_lock_core), `nm | grep fdget_pos` (inlined in 6.1, a function of fs/file.c in
# 6.12), `nm | grep __tracepoint_writeback_dirty` (the page is a folio since 5.18), `nm | grep new_sync_read` (inlined in
# both), `ldd /bin/bash` (readline is part of it), no -c (`process` alone is its program), `nm | grep __sock_sendmsg` (a function in 6.1, inlined in 6.12), `grep sock_ available_events` X
cat >differences <<'EOF'
cachestat.stp gone kernel.trace("writeback_dirty_page")
callees.stp gone kernel.function("new_sync_read").call
callees.stp gone kernel.function("new_sync_read").return
commands.stp gone process("bash").library("libreadline*").function("readline").return
inlined.stp moved kernel.function("fdget_pos")
ldlm_resource_dump.stp gone module("ptlrpc").function("ldlm_resource_dump")
libcalls.stp unknown process.plt.return
lu_5642.stp gone module("lustre").function("ll_xattr_cache_refill").return
slabs.stp gone $s
slabs.stp gone @cast(cache, "struct kmem_cache", "kernel")->name
slabs.stp gone @cast(cache, "struct kmem_cache", "kernel")->size
slabs.stp new kernel.function("kmem_cache_alloc_noprof").call
slabs.stp renamed kernel.function("kmem_cache_alloc").call
socktop.stp inlined socket.send
socktop.stp moved socket.receive
EOF
for example in "$ROOT"/examples/*.stp "$ROOT"/examples/*/*.stp; do
  "$SPILE" -g --check=json "$example" --kernel "$RELEASE" --kernel "$kernel" >answer.json || true
  sed 's/{"kind"/\n&/g' answer.json | sed -n 's/^{"kind":"[a-z]*","text":"\(.*\)","place":.*"verdict":"\([a-z_]*\)".*/\2 \1/p' |
    sed "s/\\\\//g; s|^|${example##*/} |"
done | sort -u >found
grep -v '^[^ ]* same ' found >others || true
diff differences others && echo "examples: $(($(wc -l <found) - $(wc -l <others))) the same, $(wc -l <others) not, all as they should be"
