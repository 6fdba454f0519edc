# Shows: the test resource is dumped on request; the module itself logs its values.
# modules: ptlrpc
# dmesg: dump at level 7
# dmesg: expect lr_priority=-7
# dmesg: expect lr_last_field=424242

echo 7 >/sys/module/ptlrpc/parameters/dump
