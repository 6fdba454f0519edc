// SPDX-License-Identifier: GPL-2.0-or-later

//! Builtin variables: `comm`, `arg0`, `retval`.

use spile_source::Span;

use super::super::points::Place;
use super::Handler;
use super::fields::{self, Field};
use super::value::{Kind, Value};

impl Handler<'_> {
    /// The script's expression for a builtin variable of bpftrace (`pid`, `comm`, `arg0`).
    pub fn builtin(&mut self, name: &str, span: Span) -> Value {
        let text = match name {
            "pid" => "pid()",
            "tid" => "tid()",
            "ppid" => "ppid()",
            "uid" => "uid()",
            "gid" => "gid()",
            "cpu" => "cpu()",
            "nsecs" => "ktime_get_ns()",
            "jiffies" => "jiffies()",
            "rand" => "randint(0x100000000)",
            "curtask" => "task_current()",
            "cpid" => "target()",
            "usermode" => "user_mode()",
            "true" => "1",
            "false" => "0",
            "comm" => return Value::string("execname()"),
            "func" => return Value::string("ppfunc()"),
            "probe" => return Value::string("pp()"),
            "kstack" => return Value::of(Kind::KernelStack, "backtrace()"),
            "ustack" => return Value::of(Kind::UserStack, "ubacktrace()"),
            "elapsed" => {
                self.script.elapsed = true;
                return Value::compound("ktime_get_ns() - began");
            }
            "retval" => return self.return_value(span),
            "args" => return self.wrong("`args` is used by its members: args.filename", span),
            _ => return self.numbered(name, span),
        };
        Value::number(text)
    }

    /// `arg0`, `sarg0`, or a name of neither.
    fn numbered(&mut self, name: &str, span: Span) -> Value {
        if let Some(number) = name.strip_prefix("arg").and_then(|digits| digits.parse::<u32>().ok()) {
            let number = number.saturating_add(1);
            return match self.place {
                Place::Entry => Value::number(format!("ulong_arg({number})")),
                Place::Marker => Value::typed(format!("$arg{number}")),
                Place::Return { .. } | Place::Tracepoint | Place::Other => self.no_counterpart(
                    format!("`{name}` here"),
                    span,
                    "parameters have names: args.NAME in the program, $NAME in the script (spile -L POINT lists them)",
                ),
            };
        }
        let constant = self.script.constants.get(name).cloned();
        if let Some(number) = constant.or_else(|| constant_of_headers(name).map(|number| number.to_string())) {
            return Value::number(number);
        }
        let instead = match name {
            "cgroup" => "task_cgroup paths are read by @cast(task_current(), \"struct task_struct\")->cgroups",
            "username" => "uid() is the number; names are not known in the kernel",
            "ctx" => "the parameters of a tracepoint are $NAME in the script",
            "numaid" | "ncpus" => "read it by embedded C, in guru mode",
            _ if name.starts_with("sarg") => "name the parameter: $NAME in the script",
            _ => "if it is a constant of a header, write its number",
        };
        self.no_counterpart(format!("`{name}`"), span, instead)
    }

    fn return_value(&mut self, span: Span) -> Value {
        match self.place {
            Place::Return { typed: true } => Value::typed("$return"),
            Place::Return { typed: false } => Value::number("returnval()"),
            Place::Entry | Place::Tracepoint | Place::Marker | Place::Other => {
                self.wrong("`retval` is known at the return of a function: kretprobe, fexit, uretprobe", span)
            }
        }
    }

    /// `args.NAME`
    pub fn argument(&mut self, name: &str, span: Span) -> Value {
        match self.place {
            Place::Other | Place::Marker => self.wrong("this probe has no `args`", span),
            Place::Return { .. } => Value::typed(format!("@entry(${name})")),
            Place::Tracepoint => self.field_of_record(name, span),
            Place::Entry => Value::typed(format!("${name}")),
        }
    }

    /// `args.NAME` of a tracepoint.
    fn field_of_record(&mut self, name: &str, span: Span) -> Value {
        let mut fields: Vec<Field> = self.points.iter().map(|point| fields::field(point, name)).collect();
        fields.dedup();
        let instead = match fields.as_slice() {
            [Field::Parameter] => return Value::typed(format!("${name}")),
            // Text, and not at an address.
            [Field::Expression(text, None)] if text == fields::CURRENT_NAME => return Value::string(text),
            [Field::Expression(text, helper)] => {
                self.script.members = true;
                self.script.helpers.extend(*helper);
                return Value::typed(text);
            }
            [_] => {
                "the kernel makes the record from parameters, and the one of this name is another value: spile -L POINT lists them"
            }
            _ => "the kernel makes it in another way for each of these points: write a probe for each",
        };
        self.no_counterpart(format!("`args.{name}` of this record"), span, instead)
    }
}

/// Constants that are the same in all kernels (include/linux/socket.h, include/uapi/linux/in.h, include/net/tcp_states.h,
/// include/linux/sched.h).
fn constant_of_headers(name: &str) -> Option<u32> {
    let states = [
        "TCP_ESTABLISHED",
        "TCP_SYN_SENT",
        "TCP_SYN_RECV",
        "TCP_FIN_WAIT1",
        "TCP_FIN_WAIT2",
        "TCP_TIME_WAIT",
        "TCP_CLOSE",
        "TCP_CLOSE_WAIT",
        "TCP_LAST_ACK",
        "TCP_LISTEN",
        "TCP_CLOSING",
        "TCP_NEW_SYN_RECV",
    ];
    match name {
        "AF_UNIX" => Some(1),
        "AF_INET" => Some(2),
        "AF_INET6" => Some(10),
        "AF_NETLINK" => Some(16),
        "AF_PACKET" => Some(17),
        "SOCK_STREAM" => Some(1),
        "SOCK_DGRAM" => Some(2),
        "SOCK_RAW" => Some(3),
        "IPPROTO_ICMP" => Some(1),
        "IPPROTO_TCP" => Some(6),
        "IPPROTO_UDP" => Some(17),
        "TASK_RUNNING" => Some(0),
        "TASK_INTERRUPTIBLE" => Some(1),
        "TASK_UNINTERRUPTIBLE" => Some(2),
        _ => (1..).zip(states).find(|(_, state)| *state == name).map(|(number, _)| number),
    }
}
