// SPDX-License-Identifier: GPL-2.0-or-later

//! Processes messages in order, and checks scripts when no message is waiting.
//!
//! Before `initialize` and after `shutdown` requests are refused. `exit` ends the process, with success after
//! `shutdown`. A request that the client has cancelled before its turn is answered as cancelled.

mod answers;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, bounded};
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, PublishDiagnosticsParams, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::check::{Checked, check};
use crate::diagnostics::CheckedScript;
use crate::inbox::Inbox;
use crate::place;
use crate::scan::Scan;
use crate::settings::Settings;
use crate::text::{Encoding, Text};
use crate::transport::{self, Incoming};
use crate::workspace::Workspace;

/// Messages to a client that does not read them, besides what the pipe takes: the next answer waits.
const MOST_UNREAD: usize = 64;
/// Bytes of all open documents.
const MOST_OPEN: usize = 128 << 20;
/// A longer text is no script that can be compiled, and its words are not looked at.
const MAX_SCANNED: usize = spile_base::read::MAX_TEXT as usize;

/// A message to the client.
enum Outgoing {
    Message(Message),
    /// A response to a message that was not a request.
    Error(ErrorCode, String),
    /// The end of the output.
    End,
}

/// Serves standard input and output until the client ends it; true: as the protocol asks it to.
pub fn serve(settings: Settings) -> bool {
    serve_streams(settings, BufReader::new(std::io::stdin()), std::io::stdout())
}

/// The same over other streams.
pub fn serve_streams(
    settings: Settings,
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> bool {
    let inbox = Arc::new(Inbox::default());
    let (outgoing, to_client) = bounded(MOST_UNREAD);
    let (errors, to_server) = (outgoing.clone(), Arc::clone(&inbox));
    // This thread may be waiting for input when the server ends, so it is not joined.
    thread::spawn(move || {
        loop {
            match transport::read(&mut input) {
                Ok(Some((message, bytes))) => {
                    if !to_server.put(message, bytes) {
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = errors.send(Outgoing::Error(ErrorCode::ParseError, error.to_string()));
                    break;
                }
            }
        }
        to_server.close();
    });
    let writer = thread::spawn(move || {
        for message in to_client {
            let written = match message {
                Outgoing::Message(message) => transport::write(&mut output, &message),
                Outgoing::Error(code, message) => transport::write_error(&mut output, code, &message),
                Outgoing::End => return,
            };
            // The client is gone.
            if written.is_err() {
                return;
            }
        }
    });
    let well = Server::new(settings, Arc::clone(&inbox), outgoing.clone()).run();
    inbox.close();
    // The responses are written; an error means that the client has closed its end.
    let _ = outgoing.send(Outgoing::End);
    let _ = writer.join();
    well
}

/// The state of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`.
    Down,
    /// After `exit`.
    Ended,
}

/// An open document.
struct Document {
    uri: Uri,
    version: i32,
    text: Text,
    /// Made when it is first asked for: several changes may come at once.
    scan: OnceCell<Scan>,
    checked: Option<Checked>,
    /// The diagnostics of this text have not been sent to the client.
    is_new: bool,
}

impl Document {
    fn scan(&self) -> &Scan {
        let text = Some(self.text.as_str()).filter(|text| text.len() <= MAX_SCANNED);
        self.scan.get_or_init(|| text.map(Scan::new).unwrap_or_default())
    }

    fn refresh(&mut self) {
        self.scan = OnceCell::new();
        self.checked = None;
        self.is_new = true;
    }
}

struct Server {
    inbox: Arc<Inbox>,
    outgoing: Sender<Outgoing>,
    state: State,
    /// Settings of the command line.
    usual: Settings,
    /// Settings that the client gave in `initialize`.
    given: Value,
    root: Option<PathBuf>,
    /// Opened when it is first needed.
    workspace: Option<Workspace>,
    /// By their URIs.
    documents: HashMap<String, Document>,
    encoding: Encoding,
    snippets: bool,
    /// The client answers `workspace/configuration`.
    asks_configuration: bool,
    /// Number of the last request to the client.
    asked: i32,
}

impl Server {
    fn new(usual: Settings, inbox: Arc<Inbox>, outgoing: Sender<Outgoing>) -> Server {
        Server {
            inbox,
            outgoing,
            state: State::New,
            usual,
            given: Value::Null,
            root: None,
            workspace: None,
            documents: HashMap::new(),
            encoding: Encoding::default(),
            snippets: false,
            asks_configuration: false,
            asked: 0,
        }
    }

    /// True: the client has ended it as the protocol says.
    fn run(&mut self) -> bool {
        loop {
            let message = match self.inbox.take() {
                Some(message) => message,
                None if self.check_one() => continue,
                None => match self.inbox.wait() {
                    Some(message) => message,
                    None => return false,
                },
            };
            let was_down = self.state == State::Down;
            self.take(message);
            if self.state == State::Ended {
                return was_down;
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that is gone has closed its end, which ends the loop.
        let _ = self.outgoing.send(Outgoing::Message(message.into()));
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(Notification { method: method.into(), params });
    }

    fn take(&mut self, message: Incoming) {
        match message {
            Incoming::Broken { id: Some(id), code, message } => self.send(Response::new_err(id, code as i32, message)),
            Incoming::Broken { id: None, code, message } => {
                let _ = self.outgoing.send(Outgoing::Error(code, message));
            }
            Incoming::Message(Message::Request(request)) => self.answer(request),
            Incoming::Message(Message::Notification(notification)) => {
                let method = notification.method.clone();
                // A panic loses a message, not the session.
                if catch_unwind(AssertUnwindSafe(|| self.note(notification))).is_err() {
                    let message = format!("spile: {method} failed: please report it with the script");
                    self.notify("window/logMessage", json!({ "type": 1, "message": message }));
                }
            }
            Incoming::Message(Message::Response(response)) => self.configured(response),
        }
    }

    fn answer(&mut self, request: Request) {
        let id = request.id.clone();
        let refuse = |code: ErrorCode, message: &str| Response::new_err(id.clone(), code as i32, message.to_string());
        let response = match (self.state, request.method.as_str()) {
            (State::New, "initialize") => match self.initialize(&request.params) {
                Ok(result) => {
                    self.state = State::Running;
                    Response::new_ok(request.id, result)
                }
                Err(error) => refuse(ErrorCode::InvalidParams, &error),
            },
            (State::New, _) => refuse(ErrorCode::ServerNotInitialized, "the first request has to be initialize"),
            (State::Running, "initialize") => refuse(ErrorCode::InvalidRequest, "initialize comes once"),
            (State::Running, "shutdown") => {
                self.state = State::Down;
                Response::new_ok(request.id, Value::Null)
            }
            (State::Running, _) if self.inbox.is_cancelled(&request.id) => {
                refuse(ErrorCode::RequestCanceled, "cancelled")
            }
            (State::Running, _) => {
                // A panic loses an answer, not the session.
                let answered = catch_unwind(AssertUnwindSafe(|| self.reply(&request)));
                match answered {
                    Ok(Ok(result)) => Response::new_ok(request.id, result),
                    Ok(Err((code, message))) => refuse(code, &message),
                    Err(_) => {
                        refuse(ErrorCode::InternalError, "this is a bug in spile: please report it with the script")
                    }
                }
            }
            (State::Down | State::Ended, _) => refuse(ErrorCode::InvalidRequest, "the server has been shut down"),
        };
        self.send(response);
    }

    fn initialize(&mut self, params: &Value) -> Result<Value, String> {
        let params: lsp_types::InitializeParams =
            serde_json::from_value(params.clone()).map_err(|error| error.to_string())?;
        let capabilities = &params.capabilities;
        let encodings = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_deref());
        if encodings.unwrap_or_default().contains(&lsp_types::PositionEncodingKind::UTF8) {
            self.encoding = Encoding::Utf8;
        }
        let completion = capabilities.text_document.as_ref().and_then(|document| document.completion.as_ref());
        let item = completion.and_then(|completion| completion.completion_item.as_ref());
        self.snippets = item.and_then(|item| item.snippet_support).unwrap_or_default();
        self.asks_configuration =
            capabilities.workspace.as_ref().and_then(|workspace| workspace.configuration).unwrap_or_default();
        let folder = params.workspace_folders.as_deref().and_then(<[_]>::first).map(|folder| folder.uri.as_str());
        #[expect(deprecated, reason = "older clients have only this")]
        let root = folder.or(params.root_uri.as_ref().map(|uri| uri.as_str()));
        self.root = root.and_then(place::path_of);
        self.given = params.initialization_options.unwrap_or_default();
        serde_json::to_value(answers::capabilities(self.encoding)).map_err(|error| error.to_string())
    }

    /// The kernel and the library, opened when they are first needed.
    fn workspace(&mut self) -> &Workspace {
        if self.workspace.is_none() {
            let (settings, mut problems) = self.usual.with(&self.given, self.root.as_deref());
            let workspace = Workspace::open(settings);
            problems.extend(workspace.problems.iter().cloned());
            for problem in problems {
                self.notify("window/showMessage", json!({ "type": 2, "message": format!("spile: {problem}") }));
            }
            let about = match &workspace.kernel {
                Some(kernel) => format!("scripts are checked against kernel {}", kernel.release()),
                None => format!(
                    "kernel {} is not installed here: probe points of kernels are not checked; the setting `release` or `index` names one",
                    workspace.release
                ),
            };
            self.notify("window/logMessage", json!({ "type": 3, "message": format!("spile: {about}") }));
            self.workspace = Some(workspace);
        }
        self.workspace.get_or_insert_with(|| Workspace::open(self.usual.clone()))
    }

    fn note(&mut self, notification: Notification) {
        if notification.method == "exit" {
            self.state = State::Ended;
            return;
        }
        if self.state != State::Running {
            return;
        }
        let method = notification.method.as_str();
        let result = match method {
            "initialized" => {
                self.ask_configuration();
                Ok(())
            }
            "textDocument/didOpen" => with(notification.params, |params| self.open(params)),
            "textDocument/didChange" => with(notification.params, |params| self.change(params)),
            "textDocument/didClose" => with(notification.params, |params| self.close(params)),
            "workspace/didChangeConfiguration" => {
                self.reconfigure(notification.params.get("settings").cloned().unwrap_or_default());
                Ok(())
            }
            // Notifications about saved or watched files change nothing here; optional ones begin with $/.
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.notify("window/logMessage", json!({ "type": 1, "message": format!("spile: {method}: {error}") }));
        }
    }

    fn ask_configuration(&mut self) {
        if self.asks_configuration {
            self.asked += 1;
            let params = json!({ "items": [{ "section": "spile" }] });
            self.send(Request { id: self.asked.into(), method: "workspace/configuration".into(), params });
        }
    }

    /// The answer to the last question for the configuration.
    fn configured(&mut self, response: Response) {
        let Some(given) = response.result.filter(|_| response.id == self.asked.into()) else { return };
        if let Some(settings) = given.get(0).filter(|settings| settings.is_object()) {
            self.apply(settings.clone());
        }
    }

    fn reconfigure(&mut self, settings: Value) {
        if settings.is_object() {
            self.apply(settings);
        } else {
            self.ask_configuration();
        }
    }

    /// New settings override earlier ones.
    fn apply(&mut self, settings: Value) {
        let settings = settings.get("spile").unwrap_or(&settings).clone();
        let mut given = self.given.get("spile").unwrap_or(&self.given).clone();
        match (given.as_object_mut(), settings.as_object()) {
            (Some(given), Some(settings)) => {
                given.extend(settings.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => given = settings,
        }
        if given == self.given {
            return;
        }
        self.given = given;
        self.workspace = None;
        self.documents.values_mut().for_each(Document::refresh);
    }

    fn open(&mut self, params: DidOpenTextDocumentParams) {
        let opened = params.text_document;
        let text = Text::new(opened.text, self.encoding);
        let key = opened.uri.as_str().to_string();
        let opened_key = key.clone();
        let document = Document {
            uri: opened.uri,
            version: opened.version,
            text,
            scan: OnceCell::new(),
            checked: None,
            is_new: true,
        };
        self.documents.insert(key, document);
        self.keep_to_limit(&opened_key);
    }

    /// Forgets the document if all together are too large.
    fn keep_to_limit(&mut self, key: &str) {
        let bytes = self.documents.values().map(|document| document.text.as_str().len()).sum::<usize>();
        if bytes > MOST_OPEN && self.documents.remove(key).is_some() {
            let message = format!("spile: {key} is left out: open documents have more than {} MiB", MOST_OPEN >> 20);
            self.notify("window/showMessage", json!({ "type": 2, "message": message }));
        }
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) {
        let Some(document) = self.documents.get_mut(params.text_document.uri.as_str()) else { return };
        document.version = params.text_document.version;
        for change in params.content_changes {
            document.text.change(change);
            if document.text.as_str().len() > MOST_OPEN {
                break;
            }
        }
        document.refresh();
        self.keep_to_limit(params.text_document.uri.as_str());
    }

    fn close(&mut self, params: DidCloseTextDocumentParams) {
        if let Some(document) = self.documents.remove(params.text_document.uri.as_str()) {
            self.publish(document.uri, Vec::new(), None);
        }
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>, version: Option<i32>) {
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        self.notify("textDocument/publishDiagnostics", serde_json::to_value(params).unwrap_or_default());
    }

    /// Checks a script that has changed, and tells the client; false: none has.
    fn check_one(&mut self) -> bool {
        let Some(key) = self.documents.iter().find(|(_, document)| document.is_new).map(|(key, _)| key.clone()) else {
            return false;
        };
        self.checked(&key);
        let Some(document) = self.documents.get_mut(&key) else { return true };
        document.is_new = false;
        let Some(document) = self.documents.get(&key) else { return true };
        let found = document.checked.as_ref().map(|checked| {
            CheckedScript { uri: &document.uri, text: &document.text, checked, encoding: self.encoding }.all()
        });
        self.publish(document.uri.clone(), found.unwrap_or_default(), Some(document.version));
        true
    }

    /// Checks the document if it has changed since.
    fn checked(&mut self, key: &str) {
        let Some(document) = self.documents.get(key).filter(|document| document.checked.is_none()) else { return };
        let (name, text) = (place::name_of(key), document.text.as_str().to_string());
        let workspace = self.workspace();
        let checked = catch_unwind(AssertUnwindSafe(|| check(workspace, &name, &text))).ok();
        if checked.is_none() {
            let message = "spile: checking this script failed: please report it with the script";
            self.notify("window/logMessage", json!({ "type": 1, "message": message }));
        }
        if let Some(document) = self.documents.get_mut(key) {
            document.checked = checked;
        }
    }
}

/// Calls `act` with the parameters, if they are valid.
fn with<P: DeserializeOwned>(params: Value, act: impl FnOnce(P)) -> Result<(), serde_json::Error> {
    serde_json::from_value(params).map(act)
}
