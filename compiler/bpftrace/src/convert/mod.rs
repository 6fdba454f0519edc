// SPDX-License-Identifier: GPL-2.0-or-later

//! The syntax tree to the text of a script.
//!
//! A map's kind is known when the whole program has been read, and needed wherever the map is printed. So the program
//! is translated twice: the first time to collect the values that are assigned to maps.

mod builtin;
mod call;
mod expression;
mod fields;
mod format;
mod maps;
mod statement;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use super::ast::Probe;
use super::error::Problem;
use super::points::{self, Place};
use maps::Map;
use value::{Kind, Pointee, Value};

/// Names that a script's variables cannot have: keywords, and the variables of our own loops.
const RESERVED: [&str; 21] = [
    "probe", "global", "private", "function", "if", "else", "for", "foreach", "in", "limit", "return", "delete",
    "while", "break", "continue", "next", "string", "long", "try", "catch", "began",
];

/// The name of the global variable for `@`, which has none.
const ANONYMOUS: &str = "map";

/// The script for a program.
///
/// # Errors
///
/// What has no counterpart, in the order of the text.
pub fn script(
    probes: &[Probe],
    constants: BTreeMap<String, String>,
    library: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<Problem>> {
    let mut script = Script { constants, ..Script::default() };
    // Kinds of maps may depend on those of other maps that come later.
    for _ in 0..2 {
        script.problems.clear();
        script.text.clear();
        for probe in probes {
            script.probe(probe, library);
        }
    }
    match script.problems.is_empty() {
        true => Ok(script.finish()),
        false => Err(script.problems),
    }
}

/// Functions that a script declares if it uses them.
const HELPERS: [(&str, &str); 10] = [
    (
        "text_at",
        "# Text at an address of the kernel, or of the current process; empty if it cannot be read.\n\
         function text_at:string (address:long, length:long) {\n\
         \treturn address < 0 ? substr(kernel_string(address, \"\"), 0, length) : user_string_n(address, length, \"\")\n}\n",
    ),
    (
        "byte_shown",
        "# A byte as bpftrace shows those of a buffer.\n\
         function byte_shown:string (byte:long) {\n\
         \treturn byte >= 32 && byte < 127 ? sprintf(\"%c\", byte) : sprintf(\"\\\\x%02x\", byte)\n}\n",
    ),
    (
        "bytes_at",
        "# Bytes at an address of the kernel, or of the current process; 64 at the most, as in bpftrace.\n\
         function bytes_at:string (address:long, length:long) {\n\
         \tshown_bytes = \"\"\n\
         \tfor (byte_index = 0; byte_index < length && byte_index < 64; byte_index++) shown_bytes .= byte_shown(number_at(address + byte_index, 1))\n\
         \treturn shown_bytes\n}\n",
    ),
    (
        "bytes_of",
        "# The same of a text; behind its end there are bytes that are 0.\n\
         function bytes_of:string (bytes:string, length:long) {\n\
         \tshown_bytes = \"\"\n\
         \tfor (byte_index = 0; byte_index < length && byte_index < 64; byte_index++) shown_bytes .= byte_shown(byte_index < strlen(bytes) ? stringat(bytes, byte_index) : 0)\n\
         \treturn shown_bytes\n}\n",
    ),
    (
        "number_at",
        "# An unsigned number of 1, 2, 4 or 8 bytes at an address of the kernel, or of the current process; 0 if it cannot be read.\n\
         function number_at:long (address:long, size:long) {\n\
         \ttry {\n\
         \t\tif (size == 1) return (address < 0 ? kernel_char(address) : user_char(address)) & 0xff\n\
         \t\tif (size == 2) return (address < 0 ? kernel_short(address) : user_short(address)) & 0xffff\n\
         \t\tif (size == 4) return (address < 0 ? kernel_int(address) : user_int(address)) & 0xffffffff\n\
         \t\treturn address < 0 ? kernel_long(address) : user_long(address)\n\
         \t} catch {\n\t\treturn 0\n\t}\n}\n",
    ),
    (
        "joined",
        "# The strings of an array of pointers that ends with a null pointer.\n\
         function joined:string (array:long, between:string) {\n\
         \tjoined_text = \"\"\n\
         \tfor (joined_index = 0; joined_index < 16; joined_index++) {\n\
         \t\tjoined_pointer = user_long(array + 8 * joined_index)\n\
         \t\tif (!joined_pointer) break\n\
         \t\tjoined_text .= (joined_index ? between : \"\") . user_string(joined_pointer, \"\")\n\
         \t}\n\
         \treturn joined_text\n}\n",
    ),
    (
        "quotient",
        "# As bpftrace divides: by 0 it is 0.\n\
         function quotient:long (number:long, divisor:long) {\n\treturn divisor ? number / divisor : 0\n}\n",
    ),
    (
        "remainder",
        "# As bpftrace divides: by 0 the number is what remains.\n\
         function remainder:long (number:long, divisor:long) {\n\treturn divisor ? number % divisor : number\n}\n",
    ),
    (
        "switched_state",
        "# The state of a process that is switched from, as its tracepoint's record has it: the highest bit that is reported.\n\
         function switched_state:long (preempted:long, state:long, exit_state:long) {\n\
         \tif (preempted) return 0x100\n\
         \t# A wait for a lock of real-time kernels, and a frozen process, are reported as uninterruptible.\n\
         \tif (state & 0x9000) return 2\n\
         \t# Idle.\n\
         \tif ((state & 0x402) == 0x402) return 0x80\n\
         \tfor (reported_bit = 0x40; reported_bit; reported_bit >>= 1) if ((state | exit_state) & reported_bit) return reported_bit\n\
         \treturn 0\n}\n",
    ),
    (
        "block_error",
        "# The negative number of an error for a status of the block layer (blk_status_t).\n\
         function block_error:long (status:long) {\n\
         \t# Before kernel 5.16 it is that number already.\n\
         \tif (status <= 0) return status\n\
         \tif (status == 1) return -95 # EOPNOTSUPP\n\
         \tif (status == 2) return -110 # ETIMEDOUT\n\
         \tif (status == 3) return -28 # ENOSPC\n\
         \tif (status == 4) return -67 # ENOLINK\n\
         \tif (status == 5) return -121 # EREMOTEIO\n\
         \tif (status == 6) return -52 # EBADE\n\
         \tif (status == 7) return -61 # ENODATA\n\
         \tif (status == 8) return -84 # EILSEQ\n\
         \tif (status == 9) return -12 # ENOMEM\n\
         \tif (status == 11) return -78 # EREMCHG\n\
         \tif (status == 12) return -11 # EAGAIN\n\
         \tif (status == 13) return -16 # EBUSY\n\
         \tif (status == 15) return -109 # ETOOMANYREFS\n\
         \tif (status == 16) return -75 # EOVERFLOW\n\
         \tif (status == 17) return -19 # ENODEV\n\
         \treturn -5 # EIO\n}\n",
    ),
];

/// The script under construction.
#[derive(Default)]
struct Script {
    /// In the order of their first use.
    maps: Vec<Map>,
    /// Arrays for copies of maps that change in their own loop.
    copies: BTreeSet<String>,
    /// Names of `HELPERS`.
    helpers: BTreeSet<&'static str>,
    /// `elapsed` is used.
    elapsed: bool,
    /// A member of a struct is read, which a wrong pointer makes an error.
    members: bool,
    /// `#define`s of the program.
    constants: BTreeMap<String, String>,
    problems: Vec<Problem>,
    /// The probes.
    text: String,
}

impl Script {
    fn probe(&mut self, probe: &Probe, library: &dyn Fn(&str) -> Option<String>) {
        let mut translated = Vec::new();
        for point in &probe.points {
            match points::translate(point, library) {
                Ok(point) => translated.push(point),
                Err(problem) => self.problems.push(problem),
            }
        }
        let Some(first) = translated.first() else { return };
        let place = first.place;
        // bpftrace continues without points that the kernel does not have, if there are others.
        let optional = |text: &str| if translated.len() > 1 || text.contains('*') { "?" } else { "" };
        let points: Vec<String> =
            translated.iter().map(|point| format!("{}{}", point.text, optional(&point.text))).collect();
        let mut handler = Handler {
            script: self,
            place,
            points: translated.iter().map(|point| point.text.clone()).collect(),
            locals: BTreeMap::new(),
            before: Vec::new(),
            loops: 0,
            blocks: 0,
            filtered: probe.filter.is_some(),
        };
        let mut lines = Vec::new();
        if let Some(filter) = &probe.filter {
            let condition = handler.value(filter);
            lines.append(&mut handler.before);
            lines.push(format!("if (!{}) next", condition.operand()));
        }
        lines.extend(handler.block(&probe.body));
        let body: String = lines.iter().map(|line| format!("\t{line}\n")).collect();
        self.text.push_str(&format!("\nprobe {} {{\n{body}}}\n", points.join(",\n      ")));
    }

    /// The map of this name.
    fn map(&mut self, name: &str) -> &mut Map {
        let at = self.maps.iter().position(|map| map.name == name).unwrap_or_else(|| {
            let global = match name {
                "" => ANONYMOUS.to_string(),
                _ if RESERVED.contains(&name) || name == ANONYMOUS => format!("{name}_"),
                _ => name.to_string(),
            };
            self.maps.push(Map {
                name: name.to_string(),
                global,
                keys: Vec::new(),
                collects: None,
                is_cleared: false,
                may_be_absent: false,
            });
            self.maps.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the position of an element")]
        &mut self.maps[at]
    }

    /// The whole text.
    fn finish(self) -> String {
        let mut text = String::from("# Translated by spile --from-bpftrace.\n");
        if self.members {
            text.push_str("# A member that cannot be read ends the script; in bpftrace it is 0. --suppress-handler-errors only ends the handler.\n");
        }
        if self.elapsed {
            text.push_str("\nglobal began\nprobe begin(-1000) { began = ktime_get_ns() }\n");
        }
        if !self.maps.is_empty() {
            let names = self.maps.iter().map(|map| &map.global).chain(&self.copies);
            let names: Vec<&str> = names.map(String::as_str).collect();
            text.push_str(&format!("\nglobal {}\n", names.join(", ")));
        }
        for (name, helper) in HELPERS {
            if self.helpers.contains(name) {
                text.push_str(&format!("\n{helper}"));
            }
        }
        text.push_str(&self.text);
        let printed: Vec<&Map> =
            self.maps.iter().filter(|map| map.collects.is_some() && !(map.is_cleared && map.keys.is_empty())).collect();
        if !printed.is_empty() {
            text.push_str("\n# As bpftrace does at the end.\nprobe end {\n");
            for line in printed.iter().flat_map(|map| map.print(None, None, 0)) {
                text.push_str(&format!("\t{line}\n"));
            }
            text.push_str("}\n");
        }
        text
    }
}

/// A local variable.
#[derive(Clone, Debug, Default)]
struct Local {
    kind: Option<Kind>,
    pointee: Option<Pointee>,
    /// It was assigned a context variable or a member: the compiler knows what it points to.
    typed: bool,
    /// The variable of a loop over a map: the keys, and the value.
    entry: Option<(Vec<Value>, Value)>,
}

/// A handler under construction.
struct Handler<'a> {
    script: &'a mut Script,
    place: Place,
    /// The probe's points.
    points: Vec<String>,
    locals: BTreeMap<String, Local>,
    /// Statements that have to precede the current one.
    before: Vec<String>,
    /// The number of loops around the current statement.
    loops: usize,
    /// The number of blocks around it, those of loops included.
    blocks: usize,
    /// The probe has a filter.
    filtered: bool,
}
