// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask converse`: a conversation with a language server from a script, for tests. A line is a step:
//!
//! | step | |
//! |---|---|
//! | `start OPTIONS JSON` | starts `$SPILE --language-server` with the options (words, or none), and initializes it with these options of the client |
//! | `open NAME` | a document; its text are the following lines that begin with a bar and a blank |
//! | `change NAME OLD => NEW` | the first OLD in the text becomes NEW (`\n` is a new line), as an incremental change |
//! | `at METHOD NAME TEXT` | a request at the place of `^` in TEXT, which is somewhere in the document |
//! | `request METHOD JSON`, `notify METHOD JSON`, `raw TEXT` | as they are |
//! | `cancelled METHOD NAME TEXT` | as `at`, but taken back at once, before it can be answered |
//! | `expect REGEX`, `absent REGEX` | matches the last answer, or does not |
//! | `diagnostics REGEX` | waits for the diagnostics of the text that was sent last, and matches them |
//! | `cost PERCENT` | since the last step that sent something the server has used at most this part of the CPU time that it had used before |
//! | `exit STATUS` | `shutdown` and `exit`; `quit STATUS`: only `exit`; `close STATUS`: the end of its input |
//!
//! `$NAME` in JSON and options is a variable of the environment.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use regex::Regex;
use serde_json::{Value, json};

/// Longest wait for an answer, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// The arguments of `cargo xtask converse`.
#[derive(clap::Args)]
pub struct Options {
    /// The conversation
    script: PathBuf,
}

/// Runs the conversation; the exit code is 0 if all answers are as expected.
pub fn run(options: &Options) -> Result<ExitCode> {
    let text =
        std::fs::read_to_string(&options.script).with_context(|| format!("reading {}", options.script.display()))?;
    let mut conversation = Conversation::default();
    let mut lines = text.lines().enumerate().peekable();
    let mut steps = 0;
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut body = String::new();
        while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with('|')) {
            body.push_str(more.trim_start_matches('|').strip_prefix(' ').unwrap_or_default());
            body.push('\n');
        }
        conversation
            .step(line, body)
            .with_context(|| format!("{}:{}: {line}", options.script.display(), number + 1))?;
        steps += 1;
    }
    println!("steps: {steps}");
    Ok(ExitCode::SUCCESS)
}

/// What diagnostics have cost ([`diagnostics_costs`]).
pub struct Costs {
    /// From the start of the server to those of the first text.
    pub first: Duration,
    /// From each change to its diagnostics.
    pub changes: Vec<Duration>,
    /// CPU time of the server for all changes.
    pub processor: Duration,
}

/// Opens a script in the language server of `program`, and times its diagnostics after each of `rounds` changes: a word in it is replaced
/// by another, which is a mistake, and back.
pub fn diagnostics_costs(program: &Path, release: &str, text: &str, words: [&str; 2], rounds: usize) -> Result<Costs> {
    let mut conversation = Conversation { program: Some(program.into()), ..Conversation::default() };
    let begun = Instant::now();
    conversation.start(&json!({ "release": release }).to_string())?;
    conversation.open("large.stp", text.to_string())?;
    conversation.diagnostics(r"^\[\]$")?;
    let first = begun.elapsed();
    let before = conversation.processor_time()?;
    let [right, wrong] = words;
    let mut changes = Vec::new();
    for round in 0..rounds {
        let (change, expected) = match round % 2 {
            0 => (format!("large.stp {right} => {wrong}"), "code"),
            _ => (format!("large.stp {wrong} => {right}"), r"^\[\]$"),
        };
        let begun = Instant::now();
        conversation.change(&change)?;
        conversation.diagnostics(expected)?;
        changes.push(begun.elapsed());
    }
    let processor = Duration::from_millis(conversation.processor_time()?.saturating_sub(before));
    conversation.step("exit 0", String::new())?;
    Ok(Costs { first, changes, processor })
}

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
}

#[derive(Default)]
struct Conversation {
    /// The compiler; `None`: $SPILE.
    program: Option<PathBuf>,
    server: Option<Server>,
    documents: Vec<(String, String, i32)>,
    last: Value,
    id: i32,
    /// CPU time of the server before the last message, in milliseconds.
    before: u64,
}

fn expanded(text: &str) -> String {
    let pattern = Regex::new(r"\$([A-Z_]+)").expect("a regular expression");
    pattern.replace_all(text, |found: &regex::Captures| std::env::var(&found[1]).unwrap_or_default()).into_owned()
}

fn uri(name: &str) -> String {
    if name.contains(':') { name.to_string() } else { format!("file:///scripts/{name}") }
}

impl Conversation {
    fn step(&mut self, line: &str, body: String) -> Result<()> {
        let (step, rest) = line.split_once(' ').unwrap_or((line, ""));
        match step {
            "start" => self.start(&expanded(rest)),
            "open" => self.open(rest, body),
            "change" => self.change(rest),
            "at" => {
                let (method, params) = self.placed(rest)?;
                self.request(&method, params)?;
                self.answer()
            }
            "cancelled" => {
                let (method, params) = self.placed(rest)?;
                let cancel =
                    framed(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": self.id + 1 } }));
                let request =
                    framed(&json!({ "jsonrpc": "2.0", "id": self.id + 1, "method": method, "params": params }));
                self.id += 1;
                // One piece, so that both are there when the first is looked at, and some work before them.
                self.write(&[request, cancel].concat())?;
                self.answer()
            }
            "request" => {
                let (method, params) = rest.split_once(' ').unwrap_or((rest, "null"));
                self.request(method, serde_json::from_str(&expanded(params))?)?;
                self.answer()
            }
            "notify" => {
                let (method, params) = rest.split_once(' ').unwrap_or((rest, "null"));
                self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": serde_json::from_str::<Value>(&expanded(params))? }))
            }
            "raw" => {
                self.write(format!("Content-Length: {}\r\n\r\n{rest}", rest.len()).as_bytes())?;
                self.last = self.next()?;
                Ok(())
            }
            "expect" | "absent" => {
                let text = self.last.to_string();
                let found = Regex::new(rest)?.is_match(&text);
                ensure!(found == (step == "expect"), "the answer is {}", &text[..text.len().min(2000)]);
                Ok(())
            }
            "diagnostics" => self.diagnostics(rest),
            "cost" => {
                let cost = self.processor_time()?.saturating_sub(self.before);
                let percent: u64 = rest.parse()?;
                println!("{cost} ms");
                ensure!(
                    cost * 100 <= percent * self.before,
                    "it took {cost} ms of CPU time, after {} ms for everything before",
                    self.before
                );
                Ok(())
            }
            "exit" => {
                self.request("shutdown", Value::Null)?;
                self.answer()?;
                self.send(&json!({ "jsonrpc": "2.0", "method": "exit" }))?;
                self.ended(rest)
            }
            "quit" => {
                self.send(&json!({ "jsonrpc": "2.0", "method": "exit" }))?;
                self.ended(rest)
            }
            "close" => self.ended(rest),
            other => bail!("there is no step {other}"),
        }
    }

    fn server(&mut self) -> Result<&mut Server> {
        self.server.as_mut().context("no server has been started")
    }

    fn start(&mut self, rest: &str) -> Result<()> {
        let (words, options) =
            rest.split_once('{').map_or((rest, "null".to_string()), |(words, json)| (words, format!("{{{json}")));
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::var_os("SPILE").context("$SPILE")?.into(),
        };
        let mut command = Command::new(program);
        command.arg("--language-server").args(words.split_whitespace());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting it")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let (sender, receiver) = channel();
        std::thread::spawn(move || read_all(output, |message| sender.send(message).is_ok()));
        let input = child.stdin.take();
        (self.server, self.documents) = (Some(Server { child, input, output: receiver }), Vec::new());
        let options: Value = serde_json::from_str(&options)?;
        if options["raw"] == json!(true) {
            return Ok(());
        }
        let snippets = json!({ "textDocument": { "completion": { "completionItem": { "snippetSupport": true } } } });
        self.request("initialize", json!({ "processId": null, "rootUri": "file:///scripts", "capabilities": snippets, "initializationOptions": options }))?;
        self.answer()?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))
    }

    fn open(&mut self, name: &str, text: String) -> Result<()> {
        let text = text.strip_suffix('\n').map(str::to_string).unwrap_or(text);
        self.documents.retain(|(known, ..)| known != name);
        self.documents.push((name.into(), text.clone(), 1));
        let document = json!({ "uri": uri(name), "languageId": "systemtap", "version": 1, "text": text });
        self.send(
            &json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }),
        )
    }

    fn document(&mut self, name: &str) -> Result<&mut (String, String, i32)> {
        self.documents.iter_mut().find(|(known, ..)| known == name).ok_or_else(|| anyhow!("{name} is not open"))
    }

    fn change(&mut self, rest: &str) -> Result<()> {
        let (name, change) = rest.split_once(' ').context("NAME OLD => NEW")?;
        let (old, new) = change.split_once(" => ").context("OLD => NEW")?;
        let (old, new) = (old.replace("\\n", "\n"), new.replace("\\n", "\n"));
        let document = self.document(name)?;
        let start = document.1.find(&old).with_context(|| format!("the text has no {old}"))?;
        let range = json!({ "start": position(&document.1, start), "end": position(&document.1, start + old.len()) });
        document.1.replace_range(start..start + old.len(), &new);
        document.2 += 1;
        let changed = json!({ "uri": uri(name), "version": document.2 });
        let changes = json!([{ "range": range, "text": new }]);
        self.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": { "textDocument": changed, "contentChanges": changes } }))
    }

    /// Method and parameters of a request at a place.
    fn placed(&mut self, rest: &str) -> Result<(String, Value)> {
        let mut words = rest.splitn(3, ' ');
        let (method, name, text) =
            (words.next().context("METHOD")?, words.next().context("NAME")?, words.next().unwrap_or("^"));
        let (text, more) = text.split_once(" {").map_or((text, None), |(text, json)| (text, Some(format!("{{{json}"))));
        let at = text.find('^').context("TEXT has no ^")?;
        let document = self.document(name)?;
        let start =
            document.1.find(&text.replacen('^', "", 1)).with_context(|| format!("the document has no {text}"))?;
        let place = position(&document.1, start + at);
        let mut params = json!({ "textDocument": { "uri": uri(name) }, "position": place, "range": { "start": place, "end": place } });
        if let Some(more) = more {
            let more: Value = serde_json::from_str(&more)?;
            params.as_object_mut().context("an object")?.extend(more.as_object().cloned().unwrap_or_default());
        }
        Ok((method.to_string(), params))
    }

    fn request(&mut self, method: &str, params: Value) -> Result<()> {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        self.write(&framed(message))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.before = self.processor_time()?;
        let input = self.server()?.input.as_mut().context("its input is closed")?;
        input.write_all(bytes)?;
        Ok(input.flush()?)
    }

    fn next(&mut self) -> Result<Value> {
        self.server()?.output.recv_timeout(PATIENCE).context("waiting for the server")
    }

    /// Waits for the answer to the last request.
    fn answer(&mut self) -> Result<()> {
        loop {
            let message = self.next()?;
            if message["id"] == json!(self.id) && message.get("method").is_none() {
                self.last = message;
                return Ok(());
            }
        }
    }

    fn diagnostics(&mut self, pattern: &str) -> Result<()> {
        let (name, _, version) = self.documents.last().context("nothing is open")?.clone();
        loop {
            let message = self.next()?;
            let params = &message["params"];
            let is_it = message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == json!(uri(&name))
                && params["version"] == json!(version);
            if is_it {
                self.last = params["diagnostics"].clone();
                let text = self.last.to_string();
                ensure!(Regex::new(pattern)?.is_match(&text), "wrong with it is {}", &text[..text.len().min(2000)]);
                return Ok(());
            }
        }
    }

    /// From proc(5): user and system time in ticks of 10 ms.
    fn processor_time(&mut self) -> Result<u64> {
        let id = self.server()?.child.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let tick = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
        Ok((tick(11) + tick(12)) * 10)
    }

    fn ended(&mut self, status: &str) -> Result<()> {
        let server = self.server()?;
        if status.starts_with("closed ") || status.is_empty() {
            bail!("a status");
        }
        drop(server.input.take());
        let found = server.child.wait()?.code();
        ensure!(found == status.parse().ok(), "its status is {found:?}");
        self.server = None;
        Ok(())
    }
}

fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Line and column, in units of UTF-16.
fn position(text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    json!({ "line": line, "character": column })
}

fn read_all(mut output: impl BufRead, mut take: impl FnMut(Value) -> bool) {
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).is_ok_and(|read| read > 0) {
                let line = line.trim();
                if line.is_empty() {
                    break;
                }
                length = line.strip_prefix("Content-Length: ").and_then(|text| text.parse().ok()).unwrap_or(length);
            } else {
                return;
            }
        }
        let mut body = vec![0; length];
        if output.read_exact(&mut body).is_err() || !serde_json::from_slice(&body).is_ok_and(&mut take) {
            return;
        }
    }
}
