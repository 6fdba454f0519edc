//! Who and where: the current task, the probe, the registers.

use super::{Builtin, builtin};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("uid" "uid" () -> Long [pure] "user id of the current task, in its user namespace"),
    builtin!("euid" "euid" () -> Long [pure] "effective user id of the current task"),
    builtin!("gid" "gid" () -> Long [pure] "group id of the current task"),
    builtin!("egid" "egid" () -> Long [pure] "effective group id of the current task"),
    builtin!("pid" "pid" () -> Long [pure] "process id (thread group) of the current task"),
    builtin!("tid" "tid" () -> Long [pure] "thread id of the current task"),
    builtin!("ppid" "ppid" () -> Long [pure] "process id of the current task's parent"),
    builtin!("pgrp" "pgrp" () -> Long [pure] "process group of the current task"),
    builtin!("sid" "sid" () -> Long [pure] "session of the current task"),
    builtin!("cpu" "cpu" () -> Long [pure] "number of the CPU that the handler runs on"),
    builtin!("execname" "execname" () -> String [pure] "name of the current task (comm, up to 15 bytes)"),
    builtin!("pexecname" "pexecname" () -> String [pure] "name of the current task's parent"),
    builtin!("target" "target" () -> Long [pure] "process id given by -x, or that of the command given by -c; 0 without"),
    builtin!("pp" "pp" () -> String [pure] "the probe point that fired, resolved"),
    builtin!("pn" "pn" () -> String [pure] "the probe point that fired, as the script writes it"),
    builtin!("ppfunc" "ppfunc" () -> String [pure] "name of the probed function"),
    builtin!("probefunc" "probefunc" () -> String [pure] "name of the probed function"),
    builtin!("probemod" "probemod" () -> String [pure] "name of the probed module, or kernel"),
    builtin!("env_var" "env_var" ("name": String) -> String [pure] "value of an environment variable of the current process; empty if it is not set"),
    builtin!("user_mode" "user_mode" () -> Long [pure] "1 if the probe hit user code"),
    builtin!("is_return" "is_return" () -> Long [pure] "1 in a return probe"),
    builtin!("cmdline_str" "cmdline_str" () -> String [pure] "command line of the current process, arguments separated by spaces"),
];
