// SPDX-License-Identifier: GPL-2.0-or-later

//! Calls of functions whose value is used.

use spile_source::Span;

use super::super::ast::{Expr, ExprKind};
use super::Handler;
use super::format;
use super::value::{Kind, Pointee, Value};

/// Where str() ends if nothing says so (BPFTRACE_MAX_STRLEN).
pub const TEXT_LENGTH: &str = "64";

/// Seconds since 1970.
pub const NOW: &str = "gettimeofday_s()";

impl Handler<'_> {
    /// The script's expression for a call of a function.
    pub fn call(&mut self, name: &str, arguments: &[Expr], span: Span) -> Value {
        if let Some(value) = self.of_stack(name, arguments) {
            return value;
        }
        match (name, arguments) {
            ("str", [Expr { kind: ExprKind::Parameter(number), .. }, ..]) => Value::string(format!("@{number}")),
            ("str", [pointer, rest @ ..]) => {
                let length = rest.first().map_or(TEXT_LENGTH.to_string(), |length| self.value(length).text);
                let pointer = self.value(pointer);
                // An array of char that is text already.
                if pointer.kind == Kind::Text {
                    return pointer;
                }
                self.script.helpers.insert("text_at");
                Value::string(format!("text_at({}, {length})", pointer.text))
            }
            ("buf", [pointer, length]) => {
                let (pointer, length) = (self.value(pointer), self.value(length));
                let helper = if pointer.kind == Kind::Text { "bytes_of" } else { "bytes_at" };
                self.script.helpers.extend([helper, "byte_shown", "number_at"]);
                Value::string(format!("{helper}({}, {})", pointer.text, length.text))
            }
            ("join", [array, rest @ ..]) => {
                let between = rest.first().map_or("\" \"".to_string(), |between| self.value(between).text);
                let array = self.value(array);
                self.script.helpers.insert("joined");
                Value::string(format!("joined({}, {between})", array.text))
            }
            ("kptr" | "uptr" | "int64" | "uint64", [pointer]) => self.value(pointer),
            ("nsecs", [Expr { kind: ExprKind::Name(clock), .. }]) if matches!(clock.as_str(), "monotonic" | "boot") => {
                Value::number("ktime_get_ns()")
            }
            ("strncmp", [first, second, length]) => {
                let (first, second, length) = (self.value(first), self.value(second), self.value(length));
                // 0 where they are equal, as in C.
                let part = |value: &Value| format!("substr({}, 0, {})", value.text, length.text);
                Value::compound(format!("{} != {}", part(&first), part(&second)))
            }
            ("strcontains", [text, part]) => self.simple("isinstr", &[text, part], Kind::Number),
            ("strerror", [number]) => self.simple("errno_str", &[number], Kind::Text),
            ("ksym", [address]) => self.simple("symname", &[address], Kind::Text),
            ("usym", [address]) => self.simple("usymname", &[address], Kind::Text),
            ("path", [path]) => self.simple("fullpath_struct_path", &[path], Kind::Text),
            ("reg", [name]) => self.simple("u_register", &[name], Kind::Number),
            ("ntop", [address]) => self.simple("ip_ntop", &[address], Kind::Text),
            ("ntop", [family, address]) => {
                let (family, address) = (self.value(family), self.value(address));
                Value::string(format!("format_ipaddr({}, {})", address.text, family.text))
            }
            ("bswap", [number]) => self.byte_swapped(number, span),
            ("strftime", [Expr { kind: ExprKind::Text(text), .. }, time]) => {
                let seconds = self.seconds_at(time);
                self.time(text, &seconds, span)
            }
            ("has_key", [Expr { kind: ExprKind::Map { name, .. }, .. }, key]) => {
                let keys = self.keys(name, &key.clone().into_keys());
                let map = self.script.map(name);
                Value::compound(format!("[{}] in {}", keys.join(", "), map.global))
            }
            ("len", [Expr { kind: ExprKind::Map { name, .. }, .. }]) => self.length(name, span),
            ("kaddr", [Expr { kind: ExprKind::Text(text), .. }]) => {
                Value { pointee: Some(Pointee::Number("uint64".into())), ..Value::number(format!("&@var({text})")) }
            }
            _ => self.no_counterpart(format!("`{name}`"), span, instead(name)),
        }
    }

    /// `kstack(5)`, `ustack(perf, 5)`.
    fn of_stack(&mut self, name: &str, arguments: &[Expr]) -> Option<Value> {
        let (whole, first, kind) = match name {
            "kstack" => ("backtrace()", "callers", Kind::KernelStack),
            "ustack" => ("ubacktrace()", "ucallers", Kind::UserStack),
            _ => return None,
        };
        let depth = arguments.iter().find(|argument| !matches!(argument.kind, ExprKind::Name(_)));
        Some(match depth {
            Some(depth) => {
                let depth = self.value(depth);
                Value::of(kind, format!("{first}({})", depth.text))
            }
            None => Value::of(kind, whole),
        })
    }

    /// A call of the script's function with the same arguments.
    fn simple(&mut self, name: &str, arguments: &[&Expr], kind: Kind) -> Value {
        let arguments: Vec<String> = arguments.iter().map(|argument| self.value(argument).text).collect();
        Value::of(kind, format!("{name}({})", arguments.join(", ")))
    }

    /// bswap() of a number whose size its cast says.
    fn byte_swapped(&mut self, number: &Expr, span: Span) -> Value {
        match &number.kind {
            ExprKind::Cast { to, operand } if to.name.contains("16") => self.simple("ntohs", &[operand], Kind::Number),
            ExprKind::Cast { to, operand } if to.name.contains("32") => self.simple("ntohl", &[operand], Kind::Number),
            // The size is not known here; what programs swap without a cast are ports, of 16 bits.
            ExprKind::Variable(name) | ExprKind::Member { name, .. } if name.ends_with("port") => {
                self.simple("ntohs", &[number], Kind::Number)
            }
            _ => self.no_counterpart(
                "`bswap` of a number of unknown size",
                span,
                "cast it: bswap((uint16)x), or write ntohs(x) in the script",
            ),
        }
    }

    /// The seconds since 1970 at a time of `nsecs`.
    fn seconds_at(&mut self, time: &Expr) -> String {
        match &time.kind {
            ExprKind::Name(name) if name == "nsecs" => NOW.to_string(),
            _ => {
                let time = self.value(time);
                format!("{NOW} - (ktime_get_ns() - {}) / 1000000000", time.operand())
            }
        }
    }

    /// The time in this format; `seconds`: since 1970.
    pub fn time(&mut self, text: &str, seconds: &str, span: Span) -> Value {
        match format::time(text, seconds) {
            Some(expression) => Value { compound: true, ..Value::string(expression) },
            None => self.no_counterpart(
                "this time format",
                span,
                "%H %M %S %T %R %d %b %a %Y %c have one; ctime(gettimeofday_s()) is the whole date",
            ),
        }
    }

    /// The number of elements: counted before the statement.
    fn length(&mut self, name: &str, span: Span) -> Value {
        if self.loops > 0 {
            return self.no_counterpart("`len` in a loop", span, "count in a variable of your own");
        }
        let map = self.script.map(name);
        let (global, keys) = (map.global.clone(), map.key_names(0));
        let keys = if keys.len() == 1 { keys.concat() } else { format!("[{}]", keys.join(", ")) };
        let count = format!("length_of_{global}");
        self.before.push(format!("{count} = 0"));
        self.before.push(format!("foreach ({keys} in {global}) {count}++"));
        Value::number(count)
    }
}

/// What to do without the function.
fn instead(name: &str) -> &'static str {
    match name {
        "count" | "sum" | "avg" | "min" | "max" | "stats" | "hist" | "lhist" => {
            "it is assigned to a map, with its usual arguments: @name[key] = hist(value), in buckets of powers of two"
        }
        "nsecs" => "nsecs is the monotonic clock",
        "override" => "in guru mode a return probe writes $return, or an entry probe a parameter",
        "signal" => "raise(NUMBER) in a script, in guru mode",
        "cgroupid" | "cgroup_path" => "compare paths of cgroups in the loader: spilerun --only cgroup=PATH",
        "uaddr" => "@var(\"NAME\", \"PATH\") reads a variable of a program",
        "macaddr" => "print the bytes: sprintf(\"%02x\", ...)",
        "skboutput" | "skb_output" => "nothing writes packets to a file",
        "delete" | "clear" | "zero" | "print" | "printf" | "exit" | "time" | "cat" | "system" | "errorf" => {
            "it is a statement of its own"
        }
        _ => "spile --dump-functions lists the functions that scripts have",
    }
}
