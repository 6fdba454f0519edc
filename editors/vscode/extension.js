// SPDX-License-Identifier: GPL-2.0-or-later
// Speaks with `spile --language-server` by itself: the extension needs no packages of npm.
'use strict';

const { spawn } = require('child_process');
const vscode = require('vscode');

const LANGUAGE = { language: 'systemtap' };
// So many failures in a row end the attempts to start the server.
const MAX_STARTS = 3;

/** A server with the requests that wait for its answers. */
class Client {
  constructor(output) {
    this.output = output;
    this.diagnostics = vscode.languages.createDiagnosticCollection('spile');
    this.starts = 0;
    this.reset();
  }

  reset() {
    this.waiting = new Map();
    this.id = 0;
    this.bytes = Buffer.alloc(0);
    this.ready = undefined;
    this.child = undefined;
  }

  settings() {
    const all = vscode.workspace.getConfiguration('spile');
    const settings = {};
    for (const name of ['release', 'index', 'tapset', 'modules', 'guru', 'args']) {
      const value = all.get(name);
      if (value !== null && value !== undefined) settings[name] = value;
    }
    return settings;
  }

  /** Resolves when the server can be asked. */
  start() {
    if (this.ready) return this.ready;
    const path = vscode.workspace.getConfiguration('spile').get('path') || 'spile';
    const folder = vscode.workspace.workspaceFolders && vscode.workspace.workspaceFolders[0];
    const child = spawn(path, ['--language-server'], { stdio: ['pipe', 'pipe', 'pipe'], cwd: folder && folder.uri.fsPath });
    this.child = child;
    child.stdout.on('data', (bytes) => this.read(bytes));
    child.stderr.on('data', (text) => this.output.append(String(text)));
    child.stdin.on('error', () => {});
    child.on('error', (error) => this.ended(child, `${path}: ${error.message}`));
    child.on('exit', (code) => this.ended(child, `the server has ended with status ${code}`));
    this.ready = this.send('initialize', {
      processId: process.pid,
      rootUri: folder ? folder.uri.toString() : null,
      capabilities: {
        general: { positionEncodings: ['utf-16'] },
        textDocument: { completion: { completionItem: { snippetSupport: true } } },
      },
      initializationOptions: this.settings(),
    }).then((result) => {
      this.starts = 0;
      this.notify('initialized', {});
      for (const document of vscode.workspace.textDocuments) this.open(document);
      return result;
    });
    return this.ready;
  }

  ended(child, message) {
    if (child !== this.child) return;
    this.output.appendLine(message);
    const waiting = this.waiting;
    this.reset();
    this.diagnostics.clear();
    for (const { reject } of waiting.values()) reject(new Error(message));
    this.starts += 1;
    if (this.starts < MAX_STARTS) {
      this.start().catch(() => {});
    } else {
      vscode.window.showErrorMessage(`spile: ${message}; the setting spile.path names the program`);
    }
  }

  write(message) {
    if (!this.child || !this.child.stdin.writable) return;
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
    this.child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.child.stdin.write(body);
  }

  send(method, params) {
    const id = ++this.id;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.write({ id, method, params });
    });
  }

  notify(method, params) {
    this.write({ method, params });
  }

  read(bytes) {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    for (;;) {
      const end = this.bytes.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = /content-length: *(\d+)/i.exec(this.bytes.toString('ascii', 0, end));
      const start = end + 4;
      const size = length ? Number(length[1]) : 0;
      if (this.bytes.length < start + size) return;
      const body = this.bytes.toString('utf8', start, start + size);
      this.bytes = this.bytes.subarray(start + size);
      if (size > 0) this.take(JSON.parse(body));
    }
  }

  take(message) {
    if (message.method === undefined) {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (!waiting) return;
      if (message.error) waiting.reject(new Error(message.error.message));
      else waiting.resolve(message.result);
    } else if (message.method === 'textDocument/publishDiagnostics') {
      const uri = vscode.Uri.parse(message.params.uri);
      this.diagnostics.set(uri, message.params.diagnostics.map(diagnostic));
    } else if (message.method === 'window/showMessage') {
      vscode.window.showWarningMessage(message.params.message);
    } else if (message.method === 'window/logMessage') {
      this.output.appendLine(message.params.message);
    } else if (message.id !== undefined) {
      this.write({ id: message.id, error: { code: -32601, message: 'not known here' } });
    }
  }

  /** The answer of the server; undefined where there is none. */
  async ask(method, params, token) {
    try {
      await this.start();
      const id = this.id + 1;
      if (token) token.onCancellationRequested(() => this.notify('$/cancelRequest', { id }));
      return (await this.send(method, params)) || undefined;
    } catch (error) {
      this.output.appendLine(`${method}: ${error.message}`);
      return undefined;
    }
  }

  open(document) {
    if (document.languageId !== 'systemtap' || document.uri.scheme === 'spile') return;
    const textDocument = { uri: document.uri.toString(), languageId: 'systemtap', version: document.version, text: document.getText() };
    this.notify('textDocument/didOpen', { textDocument });
  }

  change(event) {
    const { document, contentChanges } = event;
    if (document.languageId !== 'systemtap' || contentChanges.length === 0) return;
    const changes = contentChanges.map((one) => ({ range: one.range, text: one.text }));
    this.notify('textDocument/didChange', { textDocument: { uri: document.uri.toString(), version: document.version }, contentChanges: changes });
  }

  close(document) {
    if (document.languageId === 'systemtap') this.notify('textDocument/didClose', { textDocument: { uri: document.uri.toString() } });
  }

  async stop() {
    const child = this.child;
    if (!child) return;
    this.child = undefined;
    this.diagnostics.dispose();
    const id = ++this.id;
    const say = (message) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
      child.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
    };
    say({ id, method: 'shutdown' });
    say({ method: 'exit' });
    child.stdin.end();
  }
}

const range = (one) => new vscode.Range(one.start.line, one.start.character, one.end.line, one.end.character);
const location = (one) => new vscode.Location(vscode.Uri.parse(one.uri), range(one.range));
const markdown = (text) => new vscode.MarkdownString(text);

function diagnostic(one) {
  const shown = new vscode.Diagnostic(range(one.range), one.message, one.severity - 1);
  shown.code = one.code;
  shown.source = one.source;
  shown.relatedInformation = (one.relatedInformation || []).map(
    (related) => new vscode.DiagnosticRelatedInformation(location(related.location), related.message),
  );
  return shown;
}

function edits(workspaceEdit) {
  const all = new vscode.WorkspaceEdit();
  for (const [uri, changes] of Object.entries((workspaceEdit && workspaceEdit.changes) || {})) {
    for (const change of changes) all.replace(vscode.Uri.parse(uri), range(change.range), change.newText);
  }
  return all;
}

const at = (document, position) => ({ textDocument: { uri: document.uri.toString() }, position });
const whole = (document) => ({ textDocument: { uri: document.uri.toString() } });

/** What the editor asks for, each by a request. */
function providers(client) {
  const { languages } = vscode;
  const legend = new vscode.SemanticTokensLegend(
    ['keyword', 'function', 'variable', 'parameter', 'property', 'macro', 'string', 'number', 'comment', 'operator', 'event'],
    ['declaration', 'static', 'defaultLibrary'],
  );
  return [
    languages.registerCompletionItemProvider(LANGUAGE, {
      async provideCompletionItems(document, position, token) {
        const list = await client.ask('textDocument/completion', at(document, position), token);
        const items = ((list && list.items) || []).map((one) => {
          const item = new vscode.CompletionItem(one.label, one.kind - 1);
          item.detail = one.detail;
          item.documentation = one.documentation && markdown(one.documentation.value);
          item.sortText = one.sortText;
          item.filterText = one.filterText;
          item.range = range(one.textEdit.range);
          const text = one.textEdit.newText;
          item.insertText = one.insertTextFormat === 2 ? new vscode.SnippetString(text) : text;
          return item;
        });
        return new vscode.CompletionList(items, Boolean(list && list.isIncomplete));
      },
    }, '.', '"', '$', '@', '>', ':', '/'),
    languages.registerHoverProvider(LANGUAGE, {
      async provideHover(document, position, token) {
        const found = await client.ask('textDocument/hover', at(document, position), token);
        return found && new vscode.Hover(markdown(found.contents.value), found.range && range(found.range));
      },
    }),
    languages.registerSignatureHelpProvider(LANGUAGE, {
      async provideSignatureHelp(document, position, token) {
        const found = await client.ask('textDocument/signatureHelp', at(document, position), token);
        if (!found) return undefined;
        const help = new vscode.SignatureHelp();
        help.signatures = found.signatures.map((one) => {
          const signature = new vscode.SignatureInformation(one.label, one.documentation && markdown(one.documentation.value));
          signature.parameters = (one.parameters || []).map((parameter) => new vscode.ParameterInformation(parameter.label));
          return signature;
        });
        help.activeSignature = found.activeSignature || 0;
        help.activeParameter = found.activeParameter || 0;
        return help;
      },
    }, '(', ','),
    languages.registerDefinitionProvider(LANGUAGE, {
      async provideDefinition(document, position, token) {
        return ((await client.ask('textDocument/definition', at(document, position), token)) || []).map(location);
      },
    }),
    languages.registerReferenceProvider(LANGUAGE, {
      async provideReferences(document, position, context, token) {
        const found = await client.ask('textDocument/references', { ...at(document, position), context }, token);
        return (found || []).map(location);
      },
    }),
    languages.registerDocumentHighlightProvider(LANGUAGE, {
      async provideDocumentHighlights(document, position, token) {
        const found = await client.ask('textDocument/documentHighlight', at(document, position), token);
        return (found || []).map((one) => new vscode.DocumentHighlight(range(one.range)));
      },
    }),
    languages.registerRenameProvider(LANGUAGE, {
      async prepareRename(document, position) {
        await client.start();
        const found = await client.send('textDocument/prepareRename', at(document, position));
        return found && { range: range(found.range), placeholder: found.placeholder };
      },
      async provideRenameEdits(document, position, newName) {
        await client.start();
        return edits(await client.send('textDocument/rename', { ...at(document, position), newName }));
      },
    }),
    languages.registerDocumentSymbolProvider(LANGUAGE, {
      async provideDocumentSymbols(document, token) {
        const found = await client.ask('textDocument/documentSymbol', whole(document), token);
        return (found || []).map((one) => new vscode.DocumentSymbol(one.name, '', one.kind - 1, range(one.range), range(one.selectionRange)));
      },
    }),
    languages.registerFoldingRangeProvider(LANGUAGE, {
      async provideFoldingRanges(document, context, token) {
        const found = await client.ask('textDocument/foldingRange', whole(document), token);
        const kind = (one) => (one.kind === 'comment' ? vscode.FoldingRangeKind.Comment : undefined);
        return (found || []).map((one) => new vscode.FoldingRange(one.startLine, one.endLine, kind(one)));
      },
    }),
    languages.registerDocumentSemanticTokensProvider(LANGUAGE, {
      async provideDocumentSemanticTokens(document, token) {
        const found = await client.ask('textDocument/semanticTokens/full', whole(document), token);
        return found && new vscode.SemanticTokens(new Uint32Array(found.data));
      },
    }, legend),
    languages.registerDocumentFormattingEditProvider(LANGUAGE, {
      async provideDocumentFormattingEdits(document, options, token) {
        const found = await client.ask('textDocument/formatting', { ...whole(document), options }, token);
        return (found || []).map((one) => vscode.TextEdit.replace(range(one.range), one.newText));
      },
    }),
    languages.registerInlayHintsProvider(LANGUAGE, {
      async provideInlayHints(document, visible, token) {
        const found = await client.ask('textDocument/inlayHint', { ...whole(document), range: visible }, token);
        return (found || []).map((one) => new vscode.InlayHint(new vscode.Position(one.position.line, one.position.character), one.label, one.kind));
      },
    }),
    languages.registerCodeActionsProvider(LANGUAGE, {
      async provideCodeActions(document, selected, context, token) {
        const found = await client.ask('textDocument/codeAction', { ...whole(document), range: selected, context: { diagnostics: [] } }, token);
        return (found || []).map((one) => {
          const action = new vscode.CodeAction(one.title, vscode.CodeActionKind.QuickFix);
          action.edit = edits(one.edit);
          action.isPreferred = one.isPreferred;
          return action;
        });
      },
    }),
    // Library files that are part of the program.
    vscode.workspace.registerTextDocumentContentProvider('spile', {
      provideTextDocumentContent: (uri) => client.ask('spile/text', { uri: uri.toString() }),
    }),
  ];
}

let client;

function activate(context) {
  const output = vscode.window.createOutputChannel('spile');
  client = new Client(output);
  const { workspace } = vscode;
  context.subscriptions.push(
    output,
    ...providers(client),
    workspace.onDidOpenTextDocument((document) => client.open(document)),
    workspace.onDidChangeTextDocument((event) => client.change(event)),
    workspace.onDidCloseTextDocument((document) => client.close(document)),
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('spile')) client.notify('workspace/didChangeConfiguration', { settings: { spile: client.settings() } });
    }),
  );
  client.start().catch((error) => output.appendLine(error.message));
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
