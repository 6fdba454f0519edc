// SPDX-License-Identifier: GPL-2.0-or-later

//! The answers to requests about documents. One about a document that is not open is answered as if nothing were there.

use std::collections::HashMap;
use std::ops::Range;

use lsp_server::{ErrorCode, Request};
use lsp_types::{
    CodeActionParams, CodeActionProviderCapability, CompletionOptions, CompletionParams, DocumentFormattingParams,
    DocumentHighlight, DocumentHighlightKind, DocumentHighlightParams, DocumentSymbolParams, FoldingRangeParams,
    FoldingRangeProviderCapability, GotoDefinitionParams, Hover, HoverContents, HoverParams, HoverProviderCapability,
    InitializeResult, InlayHintParams, Location, MarkupContent, MarkupKind, OneOf, Position, PositionEncodingKind,
    ReferenceParams, RenameOptions, RenameParams, SemanticTokens, SemanticTokensFullOptions, SemanticTokensOptions,
    SemanticTokensParams, SemanticTokensServerCapabilities, ServerCapabilities, ServerInfo, SignatureHelpOptions,
    SignatureHelpParams, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextEdit, Uri, WorkDoneProgressOptions, WorkspaceEdit,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spile_syntax::layout;

use super::{Document, Server};
use crate::diagnostics::{CheckedScript, library_place};
use crate::navigate::Place;
use crate::text::Encoding;
use crate::{complete, hover, navigate, place, semantic, signature, structure};

/// A result, or the code and the text of an error.
type Answer = Result<Value, (ErrorCode, String)>;

/// What the server can do.
pub fn capabilities(encoding: Encoding) -> InitializeResult {
    let none = WorkDoneProgressOptions::default();
    let triggers = |letters: &[&str]| Some(letters.iter().map(ToString::to_string).collect());
    InitializeResult {
        server_info: Some(ServerInfo { name: "spile".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        capabilities: ServerCapabilities {
            position_encoding: Some(match encoding {
                Encoding::Utf16 => PositionEncodingKind::UTF16,
                Encoding::Utf8 => PositionEncodingKind::UTF8,
            }),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                ..TextDocumentSyncOptions::default()
            })),
            completion_provider: Some(CompletionOptions {
                trigger_characters: triggers(&[".", "\"", "$", "@", ">", ":", "/"]),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            signature_help_provider: Some(SignatureHelpOptions {
                trigger_characters: triggers(&["(", ","]),
                ..SignatureHelpOptions::default()
            }),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            document_highlight_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            code_action_provider: Some(CodeActionProviderCapability::Simple(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: none,
            })),
            folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
            semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(
                SemanticTokensOptions {
                    legend: semantic::legend(),
                    full: Some(SemanticTokensFullOptions::Bool(true)),
                    range: None,
                    ..SemanticTokensOptions::default()
                },
            )),
            inlay_hint_provider: Some(OneOf::Left(true)),
            ..ServerCapabilities::default()
        },
    }
}

fn params<P: DeserializeOwned>(request: &Request) -> Result<P, (ErrorCode, String)> {
    serde_json::from_value(request.params.clone()).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn value(result: impl Serialize) -> Answer {
    serde_json::to_value(result).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

fn failed(message: String) -> (ErrorCode, String) {
    (ErrorCode::RequestFailed, message)
}

impl Server {
    /// Answers a request.
    pub(super) fn reply(&mut self, request: &Request) -> Answer {
        match request.method.as_str() {
            "textDocument/completion" => self.completion(params(request)?),
            "textDocument/hover" => self.hover(params(request)?),
            "textDocument/signatureHelp" => self.signature_help(params(request)?),
            "textDocument/definition" => self.definition(params(request)?),
            "textDocument/references" => self.references(params(request)?),
            "textDocument/documentHighlight" => self.highlights(params(request)?),
            "textDocument/prepareRename" => self.prepare_rename(params(request)?),
            "textDocument/rename" => self.rename(params(request)?),
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = params(request)?;
                self.of_document(&params.text_document.uri, |document| {
                    structure::symbols(document.scan(), &document.text)
                })
            }
            "textDocument/foldingRange" => {
                let params: FoldingRangeParams = params(request)?;
                self.of_document(&params.text_document.uri, |document| {
                    structure::folding(document.scan(), &document.text)
                })
            }
            "textDocument/semanticTokens/full" => {
                let params: SemanticTokensParams = params(request)?;
                self.of_document(&params.text_document.uri, |document| SemanticTokens {
                    result_id: None,
                    data: semantic::tokens(document.scan(), &document.text),
                })
            }
            "textDocument/formatting" => self.formatting(params(request)?),
            "textDocument/inlayHint" => self.inlay_hints(params(request)?),
            "textDocument/codeAction" => self.code_actions(params(request)?),
            "spile/text" => self.library_text(request),
            other => Err((ErrorCode::MethodNotFound, format!("there is no request {other}"))),
        }
    }

    fn of_document<R: Serialize>(&self, uri: &Uri, answer: impl FnOnce(&Document) -> R) -> Answer {
        self.documents.get(uri.as_str()).map_or(Ok(Value::Null), |document| value(answer(document)))
    }

    /// Opens the workspace, and gives the document with the offset that a request is about.
    fn at(&mut self, place: &TextDocumentPositionParams) -> Option<(&Server, &Document, usize)> {
        self.workspace();
        let server = &*self;
        let document = server.documents.get(place.text_document.uri.as_str())?;
        Some((server, document, document.text.offset(place.position)))
    }

    fn completion(&mut self, params: CompletionParams) -> Answer {
        let snippets = self.snippets;
        let Some((server, document, offset)) = self.at(&params.text_document_position) else { return Ok(Value::Null) };
        let Some(workspace) = &server.workspace else { return Ok(Value::Null) };
        let request = complete::Request { workspace, scan: document.scan(), text: &document.text, snippets };
        value(complete::complete(&request, offset))
    }

    fn hover(&mut self, params: HoverParams) -> Answer {
        let place = params.text_document_position_params;
        self.checked(place.text_document.uri.as_str());
        let Some((server, document, offset)) = self.at(&place) else { return Ok(Value::Null) };
        let Some(workspace) = &server.workspace else { return Ok(Value::Null) };
        let query = hover::Query { workspace, scan: document.scan(), checked: document.checked.as_ref() };
        value(hover::hover(&query, offset).map(|(text, range)| Hover {
            contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text }),
            range: Some(document.text.range(&range)),
        }))
    }

    fn signature_help(&mut self, params: SignatureHelpParams) -> Answer {
        let Some((server, document, offset)) = self.at(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        value(server.workspace.as_ref().and_then(|workspace| signature::help(workspace, document.scan(), offset)))
    }

    fn definition(&mut self, params: GotoDefinitionParams) -> Answer {
        let Some((server, document, offset)) = self.at(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        let Some(workspace) = &server.workspace else { return Ok(Value::Null) };
        let shown = |found: Place| match found {
            Place::Here(range) => Some(Location::new(document.uri.clone(), document.text.range(&range))),
            Place::Library(span) => library_place(&workspace.parsed().sources, span, server.encoding),
            Place::Source(path, line) => {
                let start = Position::new(line.saturating_sub(1), 0);
                Some(Location::new(place::uri_of(&path)?, lsp_types::Range::new(start, start)))
            }
        };
        let places = navigate::definition(workspace, document.scan(), offset);
        value(places.into_iter().filter_map(shown).collect::<Vec<_>>())
    }

    fn references(&mut self, params: ReferenceParams) -> Answer {
        let declaration = params.context.include_declaration;
        let Some((_, document, offset)) = self.at(&params.text_document_position) else { return Ok(Value::Null) };
        let found = navigate::references(document.scan(), offset, declaration);
        let location = |range: &Range<usize>| Location::new(document.uri.clone(), document.text.range(range));
        value(found.iter().map(location).collect::<Vec<_>>())
    }

    fn highlights(&mut self, params: DocumentHighlightParams) -> Answer {
        let Some((_, document, offset)) = self.at(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        let found = navigate::references(document.scan(), offset, true);
        let shown = |range: &Range<usize>| DocumentHighlight {
            range: document.text.range(range),
            kind: Some(DocumentHighlightKind::TEXT),
        };
        value(found.iter().map(shown).collect::<Vec<_>>())
    }

    fn prepare_rename(&mut self, params: TextDocumentPositionParams) -> Answer {
        let Some((server, document, offset)) = self.at(&params) else { return Ok(Value::Null) };
        let Some(workspace) = &server.workspace else { return Ok(Value::Null) };
        let range = navigate::can_rename(workspace, document.scan(), offset).map_err(failed)?;
        let placeholder = document.text.slice(range.clone());
        value(json!({ "range": document.text.range(&range), "placeholder": placeholder }))
    }

    #[expect(clippy::mutable_key_type, reason = "the protocol's type of a map of edits")]
    fn rename(&mut self, params: RenameParams) -> Answer {
        let Some((server, document, offset)) = self.at(&params.text_document_position) else { return Ok(Value::Null) };
        let Some(workspace) = &server.workspace else { return Ok(Value::Null) };
        let found = navigate::rename(workspace, document.scan(), offset, &params.new_name).map_err(failed)?;
        let name = params.new_name.trim_start_matches('@').to_string();
        let edit = |range: &Range<usize>| TextEdit { range: document.text.range(range), new_text: name.clone() };
        let changes = HashMap::from([(document.uri.clone(), found.iter().map(edit).collect())]);
        value(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    fn formatting(&mut self, params: DocumentFormattingParams) -> Answer {
        let uri = params.text_document.uri;
        self.checked(uri.as_str());
        let Some(document) = self.documents.get(uri.as_str()) else { return Ok(Value::Null) };
        // As with --fmt, a script that does not parse is not formatted, because its structure is not known.
        if !document.checked.as_ref().is_some_and(|checked| checked.parses) {
            return Err(failed("the script has mistakes of syntax, and is not formatted".into()));
        }
        let formatted = layout::layout(document.text.as_str().as_bytes());
        let formatted = String::from_utf8(formatted).map_err(|error| failed(error.to_string()))?;
        value(structure::formatting(&document.text, &formatted))
    }

    fn inlay_hints(&mut self, params: InlayHintParams) -> Answer {
        let uri = params.text_document.uri;
        self.checked(uri.as_str());
        let Some(document) = self.documents.get(uri.as_str()) else { return Ok(Value::Null) };
        let hints = document
            .checked
            .as_ref()
            .map(|checked| structure::hints(document.scan(), &document.text, checked, params.range));
        value(hints)
    }

    fn code_actions(&mut self, params: CodeActionParams) -> Answer {
        let uri = params.text_document.uri;
        self.checked(uri.as_str());
        let Some(document) = self.documents.get(uri.as_str()) else { return Ok(Value::Null) };
        let fixes = document.checked.as_ref().map(|checked| {
            CheckedScript { uri: &document.uri, text: &document.text, checked, encoding: self.encoding }
                .fixes(params.range)
        });
        value(fixes)
    }

    /// `spile/text`: the text of a library file that is part of the program.
    fn library_text(&mut self, request: &Request) -> Answer {
        let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let name = place::library_file(uri)
            .ok_or_else(|| (ErrorCode::InvalidParams, "the parameter is { \"uri\": \"spile:/...\" }".to_string()))?;
        let whole = self.workspace().parsed();
        let file = whole.sources.files().find(|file| file.name == name);
        let file = file.ok_or_else(|| failed(format!("the library has no file {name}")))?;
        Ok(Value::String(file.text.clone()))
    }
}
