# Shows: the kernel does not disable the interrupts of the serial ports, as with PREEMPT_RT it does after much output.
# stdout: ^Y$

cat /sys/module/spurious/parameters/noirqdebug
