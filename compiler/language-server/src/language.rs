// SPDX-License-Identifier: GPL-2.0-or-later

//! The words of the language itself: keywords, print functions, `@` operators and `$$` variables, each with how it is
//! written and a line about it.

use std::ops::Range;

use include_dir::{Dir, include_dir};

/// A word of the language.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The word in scripts, with its `@` or `$$`.
    pub word: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! entries {
    ($($word:literal $usage:literal $doc:literal)*) => { &[$(Entry { word: $word, usage: $usage, doc: $doc }),*] };
}

/// Keywords of the top level.
pub const TOP: &[Entry] = entries! {
    "probe" "probe POINT, POINT { STATEMENTS }" "Runs the statements when a point is hit. `probe NAME = POINT { }` defines an alias."
    "function" "function NAME (PARAMETER, PARAMETER) { STATEMENTS }" "Declares a function. Types follow a colon: `function f:string (a:long)`."
    "global" "global NAME, NAME[SIZE], NAME = VALUE" "Declares variables that all probes and functions share; one that is indexed is an array."
    "private" "private function NAME () { }" "What follows is seen in this file alone."
    "@define" "@define NAME(PARAMETER) %( TEXT %)" "Defines a macro: `@NAME(x)` stands for the text, with `@PARAMETER` replaced."
};

/// Keywords of statements.
pub const STATEMENTS: &[Entry] = entries! {
    "if" "if (CONDITION) STATEMENT else STATEMENT" "Runs the first statement where the condition is not 0."
    "else" "if (CONDITION) STATEMENT else STATEMENT" "Runs where the condition is 0."
    "for" "for (INIT; CONDITION; STEP) STATEMENT" "A loop, as in C."
    "foreach" "foreach ([KEY, KEY] in ARRAY+ limit N) STATEMENT" "Runs for each element of an array; `+` and `-` sort by a key or by the value, `VALUE = [KEY] in ARRAY` names the value."
    "in" "[KEY] in ARRAY" "Whether an array has an element."
    "limit" "foreach (KEY in ARRAY limit N)" "At most this many elements."
    "while" "while (CONDITION) STATEMENT" "A loop, as in C."
    "break" "break" "Leaves the loop."
    "continue" "continue" "Goes on with the next round of the loop."
    "next" "next" "Leaves the handler; in a function, the next overload is tried."
    "return" "return VALUE" "Leaves the function."
    "delete" "delete ARRAY[KEY]" "Removes an element, all elements, or sets a variable back."
    "try" "try { STATEMENTS } catch (MESSAGE) { STATEMENTS }" "Where a statement fails, the second block runs."
    "catch" "try { STATEMENTS } catch (MESSAGE) { STATEMENTS }" "Runs where a statement of the block before has failed."
    "string" "NAME:string" "The type of strings."
    "long" "NAME:long" "The type of numbers, of 64 bits with a sign."
};

/// Functions that print.
pub const PRINT: &[Entry] = entries! {
    "print" "print(VALUE)" "Prints a value."
    "println" "println(VALUE)" "Prints a value and a newline."
    "printf" "printf(FORMAT, VALUE, VALUE)" "Prints as the format says: %d %s %x %p %c %b %m and widths as in C."
    "printd" "printd(DELIMITER, VALUE, VALUE)" "Prints values with the text between them."
    "printdln" "printdln(DELIMITER, VALUE, VALUE)" "Prints values with the text between them, and a newline."
    "print_char" "print_char(NUMBER)" "Prints the character of that number."
    "sprint" "sprint(VALUE)" "The text that print would print."
    "sprintln" "sprintln(VALUE)" "The text that println would print."
    "sprintf" "sprintf(FORMAT, VALUE, VALUE)" "The text that printf would print."
    "sprintd" "sprintd(DELIMITER, VALUE, VALUE)" "The text that printd would print."
    "sprintdln" "sprintdln(DELIMITER, VALUE, VALUE)" "The text that printdln would print."
};

/// `@` operators.
pub const OPERATORS: &[Entry] = entries! {
    "@cast" "@cast(VALUE, \"TYPE\", \"MODULE\")" "The value as a pointer to the type, for `->`."
    "@defined" "@defined($VARIABLE)" "1 where the variable or member is there, else 0; decided when the script is compiled."
    "@entry" "@entry(EXPRESSION)" "In a return probe: the value that the expression had when the function was entered."
    "@var" "@var(\"NAME@FILE\", \"MODULE\")" "A global variable of the kernel or of a module."
    "@perf" "@perf(\"COUNTER\")" "The value of a hardware counter that a perf probe has named."
    "@const" "@const(\"C EXPRESSION\")" "The value of a C constant; guru mode."
    "@enum" "@enum(\"NAME\")" "The value of an enumerator."
    "@enumname" "@enumname(VALUE, \"TYPE\", \"MODULE\")" "The name that an enumeration has for the value."
    "@probewrite" "@probewrite(NAME)" "Whether the handler that uses the alias writes the variable."
    "@kregister" "@kregister(NUMBER)" "A register of the kernel, by its DWARF number."
    "@uregister" "@uregister(NUMBER)" "A register of the process, by its DWARF number."
    "@kderef" "@kderef(SIZE, ADDRESS)" "So many bytes of the kernel's memory."
    "@uderef" "@uderef(SIZE, ADDRESS)" "So many bytes of the process's memory."
    "@hist_log" "@hist_log(AGGREGATE)" "A histogram with buckets of powers of two."
    "@hist_linear" "@hist_linear(AGGREGATE, LOW, HIGH, WIDTH)" "A histogram with buckets of one width."
    "@count" "@count(AGGREGATE)" "How many values the aggregate was given."
    "@sum" "@sum(AGGREGATE)" "Their sum."
    "@min" "@min(AGGREGATE)" "The smallest of them."
    "@max" "@max(AGGREGATE)" "The largest of them."
    "@avg" "@avg(AGGREGATE)" "Their average, rounded to a number."
    "@variance" "@variance(AGGREGATE, SHIFT)" "Their variance, with this many bits of precision."
};

/// Variables with two dollars.
pub const DOLLARS: &[Entry] = entries! {
    "$$vars" "$$vars" "All parameters and local variables as text: `a=0x1 b=0x2`."
    "$$parms" "$$parms" "All parameters as text."
    "$$locals" "$$locals" "All local variables as text."
    "$$return" "$$return" "The return value as text: `return=0x1`."
    "$$name" "$$name" "Name of the tracepoint."
    "$$system" "$$system" "System of the tracepoint."
};

fn all() -> impl Iterator<Item = &'static Entry> {
    TOP.iter().chain(STATEMENTS).chain(PRINT).chain(OPERATORS).chain(DOLLARS)
}

/// The entry of a word.
pub fn find(word: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.word == word)
}

/// A call as it is shown: its text, and the places of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// `substr:string (text:string, start:long)`
    pub label: String,
    /// Bytes of each parameter in the label.
    pub parameters: Vec<Range<usize>>,
    /// What it does.
    pub doc: String,
}

impl Signature {
    /// The parameters are the strings between the commas of the first parentheses.
    pub fn new(label: &str, doc: &str) -> Signature {
        let mut parameters = Vec::new();
        if let Some(open) = label.find('(')
            && let Some(close) = label.rfind(')').filter(|close| *close > open)
        {
            let mut start = open + 1;
            for part in label.get(start..close).unwrap_or_default().split(',') {
                let blank = part.len() - part.trim_start().len();
                if !part.trim().is_empty() {
                    parameters.push(start + blank..start + part.trim_end().len());
                }
                start += part.len() + 1;
            }
        }
        Signature { label: label.into(), parameters, doc: doc.into() }
    }
}

static EXAMPLES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../docs/reference/examples");

/// The shortest example of the manual that calls the function or uses the macro, without its first line.
pub fn example(name: &str) -> Option<&'static str> {
    let call = if name.starts_with('@') { name.to_string() } else { format!("{name}(") };
    let scripts = EXAMPLES.files().filter_map(|file| file.contents_utf8()?.split_once('\n').map(|(_, body)| body));
    let calls = |body: &&str| {
        body.match_indices(&call).any(|(at, _)| {
            let before = body.get(..at).and_then(|before| before.chars().next_back());
            let after = body.get(at + call.len()..).and_then(|after| after.chars().next());
            let whole = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
            whole(before) && (call.ends_with('(') || whole(after))
        })
    };
    scripts.filter(calls).min_by_key(|body| body.len()).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_syntax::words::{at_operators, keywords};

    #[test]
    fn every_word_of_the_language_is_here() {
        let missing = keywords().filter(|word| find(word).is_none()).collect::<Vec<_>>();
        assert_eq!(missing, [""; 0]);
        let missing = at_operators().filter(|word| find(&format!("@{word}")).is_none()).collect::<Vec<_>>();
        assert_eq!(missing, [""; 0]);
        let missing = spile_syntax::print_words().filter(|word| find(word).is_none()).collect::<Vec<_>>();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn parameters_of_a_label() {
        let found = Signature::new("substr:string (text:string, start:long)", "");
        let texts: Vec<&str> = found.parameters.iter().map(|range| &found.label[range.clone()]).collect();
        assert_eq!(texts, ["text:string", "start:long"]);
        assert!(Signature::new("pid:long ()", "").parameters.is_empty());
        assert!(Signature::new("break", "").parameters.is_empty());
    }

    #[test]
    fn examples_of_the_manual() {
        assert!(example("printf").is_some_and(|body| body.contains("printf(")));
        assert_eq!(example("no_such_function"), None);
    }
}
