// SPDX-License-Identifier: GPL-2.0-or-later

//! What routines refer to by number: formats and locations for the loader, bytecode for the module, embedded C.

use std::collections::HashMap;
use std::sync::Arc;

use super::code::{FormatId, Item, ItemsId, LocationId, Part, TableId, Value};
use super::writes;
use crate::program::{EmbeddedC, TargetId, Type};
use spile_abi::format::{self, Directive, Flags, Piece, Pretty, Size};
use spile_source::{FileId, SourceMap, Span};

/// `%s` and nothing else.
pub(super) fn plain_string() -> Directive {
    Directive { conversion: b's', flags: Flags::default(), width: Size::None, precision: Size::None }
}

/// An expression `%{ %}` in a script: a function of the embedded unit.
#[derive(Debug)]
pub struct EmbeddedExpression {
    /// Name in C.
    pub symbol: String,
    /// The C, as written.
    pub code: EmbeddedC,
    /// Arguments of the enclosing function that it uses: name and type.
    pub parameters: Vec<(String, Type)>,
    /// Type of its value; None: it is a statement.
    pub ty: Option<Type>,
}

/// A symbol of a module that locates its variables when the module is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleSymbol {
    /// None: no probe needs the module, so it is never found.
    pub target: Option<TargetId>,
    /// As in the module's symbol table.
    pub name: String,
}

/// A line of a source file, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    file: FileId,
    number: usize,
}

/// Characters of a script's line that comments show.
const SHOWN: usize = 100;

/// The description of an object.
#[derive(Clone, Copy)]
pub(super) struct Described {
    /// For the module.
    pub(super) table: TableId,
    /// Bytes of a record that the object takes at most.
    pub(super) most: u32,
}

/// Descriptions of whole objects, to which formats refer by number: each once.
#[derive(Default)]
struct Descriptions {
    /// By their numbers.
    bytes: Vec<Vec<u8>>,
    by_content: HashMap<Vec<u8>, u32>,
    /// By the address of the description, which is kept for that.
    by_address: HashMap<*const Pretty, (Arc<Pretty>, u32)>,
}

impl Descriptions {
    fn number(&mut self, description: &Arc<Pretty>) -> u32 {
        if let Some((_, number)) = self.by_address.get(&Arc::as_ptr(description)) {
            return *number;
        }
        let bytes = description.encode();
        let next = self.bytes.len() as u32;
        let number = *self.by_content.entry(bytes.clone()).or_insert(next);
        if number == next {
            self.bytes.push(bytes);
        }
        self.by_address.insert(Arc::as_ptr(description), (Arc::clone(description), number));
        number
    }
}

pub(super) struct Tables<'s> {
    sources: &'s SourceMap,
    /// For each file used so far: where its lines begin.
    line_starts: HashMap<FileId, Vec<usize>>,
    pub(super) module_symbols: Vec<ModuleSymbol>,
    pub(super) formats: Vec<Vec<u8>>,
    /// By format: the names of its values.
    pub(super) value_names: Vec<Vec<String>>,
    format_ids: HashMap<(Vec<u8>, Vec<String>), FormatId>,
    /// Of objects that the loader prints.
    loader_descriptions: Descriptions,
    /// Of objects that the module formats.
    module_descriptions: Descriptions,
    /// Objects that were described before, by the address of their description, which is kept for that.
    described: HashMap<*const Pretty, (Arc<Pretty>, Described)>,
    pub(super) tables: Vec<Vec<u8>>,
    table_ids: HashMap<Vec<u8>, TableId>,
    pub(super) items: Vec<Vec<Item>>,
    items_ids: HashMap<Vec<Item>, ItemsId>,
    pub(super) locations: Vec<String>,
    location_ids: HashMap<Span, LocationId>,
    pub(super) expressions: Vec<EmbeddedExpression>,
    /// Records hold addresses that the loader has named.
    pub(super) defers_names: bool,
    /// Stacks of user space are taken, or its addresses named.
    pub(super) user_stacks: bool,
    /// Largest payload that is formatted in the module.
    pub(super) scratch_bytes: u32,
    /// Largest payload of a record.
    pub(super) record_bytes: u32,
    string_bytes: u32,
}

impl<'s> Tables<'s> {
    pub(super) fn new(sources: &'s SourceMap, string_bytes: u32) -> Tables<'s> {
        Tables {
            sources,
            line_starts: HashMap::new(),
            module_symbols: Vec::new(),
            formats: Vec::new(),
            value_names: Vec::new(),
            format_ids: HashMap::new(),
            loader_descriptions: Descriptions::default(),
            module_descriptions: Descriptions::default(),
            described: HashMap::new(),
            tables: Vec::new(),
            table_ids: HashMap::new(),
            items: Vec::new(),
            items_ids: HashMap::new(),
            locations: Vec::new(),
            location_ids: HashMap::new(),
            expressions: Vec::new(),
            defers_names: false,
            user_stacks: false,
            scratch_bytes: 0,
            record_bytes: 0,
            string_bytes,
        }
    }

    /// The number of a format that the loader interprets; `names`: of its values.
    pub(super) fn format(&mut self, pieces: &[Piece], mut names: Vec<String>) -> FormatId {
        let bytes = format::encode(pieces, |description| self.loader_descriptions.number(description));
        let named = names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        names.truncate(named);
        let next = FormatId(self.formats.len() as u32);
        let id = *self.format_ids.entry((bytes.clone(), names.clone())).or_insert(next);
        if id == next {
            self.formats.push(bytes);
            self.value_names.push(names);
        }
        id
    }

    /// The number of a format that the module interprets itself.
    pub(super) fn format_table(&mut self, pieces: &[Piece]) -> TableId {
        self.scratch_bytes = self.scratch_bytes.max(format::max_payload(pieces, self.string_bytes));
        let bytes = format::encode(pieces, |description| self.module_descriptions.number(description));
        self.table(bytes)
    }

    /// There is a record of these parts.
    pub(super) fn record(&mut self, parts: &[Part], objects: &Value) {
        let bytes = writes::of_record(parts, objects, self.string_bytes);
        self.record_bytes = self.record_bytes.max(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// For the metadata.
    pub(super) fn take_loader_descriptions(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.loader_descriptions).bytes
    }

    /// For the module.
    pub(super) fn take_module_descriptions(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.module_descriptions).bytes
    }

    /// Where the description of an object is. It is encoded once, however many records have such an object.
    pub(super) fn described(&mut self, description: &Arc<Pretty>) -> Described {
        if let Some((_, described)) = self.described.get(&Arc::as_ptr(description)) {
            return *described;
        }
        let most = description.max_payload(self.string_bytes);
        let described = Described { table: self.table(description.copied().encode()), most };
        self.described.insert(Arc::as_ptr(description), (Arc::clone(description), described));
        described
    }

    /// The number of a module's symbol.
    pub(super) fn module_symbol(&mut self, target: Option<TargetId>, name: &str) -> u32 {
        let symbol = ModuleSymbol { target, name: name.to_string() };
        let known = self.module_symbols.iter().position(|known| *known == symbol);
        let index = known.unwrap_or_else(|| {
            self.module_symbols.push(symbol);
            self.module_symbols.len() - 1
        });
        index as u32
    }

    /// The number of a table of parts.
    pub(super) fn items(&mut self, items: Vec<Item>) -> ItemsId {
        let next = ItemsId(self.items.len() as u32);
        let id = *self.items_ids.entry(items.clone()).or_insert(next);
        if id == next {
            self.items.push(items);
        }
        id
    }

    fn table(&mut self, bytes: Vec<u8>) -> TableId {
        let next = TableId(self.tables.len() as u32);
        let id = *self.table_ids.entry(bytes.clone()).or_insert(next);
        if id == next {
            self.tables.push(bytes);
        }
        id
    }

    /// The number of the line on which the span begins.
    pub(super) fn line(&mut self, span: Span) -> Line {
        let starts = self.line_starts.entry(span.file).or_insert_with(|| {
            let text = &self.sources.file(span.file).text;
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        });
        Line {
            file: span.file,
            number: starts.partition_point(|&start| start <= span.start as usize).saturating_sub(1),
        }
    }

    /// `FILE:LINE: TEXT`, for readers of the C text: the file without its directories, a long line truncated.
    pub(super) fn line_text(&self, line: Line) -> String {
        let file = self.sources.file(line.file);
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        let starts = self.line_starts.get(&line.file).and_then(|starts| starts.get(line.number)).copied();
        let rest = file.text.get(starts.unwrap_or(0)..).unwrap_or("");
        let text = rest.lines().next().unwrap_or("").trim();
        let shown: String = text.chars().take(SHOWN).collect();
        let more = if shown.len() < text.len() { " ..." } else { "" };
        format!("{name}:{}: {shown}{more}", line.number + 1)
    }

    /// `operator '/' at FILE:LINE:COLUMN`.
    pub(super) fn location(&mut self, span: Span) -> LocationId {
        if let Some(&id) = self.location_ids.get(&span) {
            return id;
        }
        let text = self.sources.text(span);
        let word: String = text.chars().take_while(|c| c.is_alphanumeric() || "_$@".contains(*c)).collect();
        let (kind, token) = if word.is_empty() {
            ("operator", text.chars().take_while(|c| !c.is_whitespace() && !c.is_alphanumeric()).take(3).collect())
        } else if word.starts_with('@') {
            ("operator", word)
        } else if matches!(
            word.as_str(),
            "if" | "for" | "while" | "foreach" | "return" | "next" | "try" | "delete" | "function" | "probe"
        ) {
            ("keyword", word)
        } else {
            ("identifier", word)
        };
        let id = LocationId(self.locations.len() as u32);
        self.locations.push(format!("{kind} '{token}' at {}", self.sources.place(span)));
        self.location_ids.insert(span, id);
        id
    }

    /// The function that an embedded expression becomes.
    pub(super) fn embedded_expression(
        &mut self,
        code: &EmbeddedC,
        parameters: Vec<(String, Type)>,
        ty: Option<Type>,
    ) -> String {
        let symbol = format!("embedded_expression_{}", self.expressions.len());
        self.expressions.push(EmbeddedExpression { symbol: symbol.clone(), code: code.clone(), parameters, ty });
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::format::PrettyOp;

    /// A script that keeps `$$vars$$` of all functions of a module until they return: 27 MB of descriptions.
    #[test]
    fn formats_of_the_module_share_descriptions() {
        let sources = SourceMap::new();
        let mut tables = Tables::new(&sources, 512);
        let object = || Pretty { size: 8, ops: vec![PrettyOp::Literal(vec![b'x'; 10_000])], ..Pretty::default() };
        for function in 0..1000 {
            let name = format!("argument_{function}=").into_bytes();
            tables.format_table(&[Piece::Literal(name), Piece::Pretty(Arc::new(object()))]);
        }
        assert_eq!(tables.tables.len(), 1000);
        assert!(tables.tables.iter().all(|table| table.len() < 32));
        assert_eq!(tables.take_module_descriptions(), [object().encode()]);
        assert!(tables.take_loader_descriptions().is_empty());
    }
}
