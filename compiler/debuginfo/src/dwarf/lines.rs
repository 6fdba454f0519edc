// SPDX-License-Identifier: GPL-2.0-or-later

//! Which source line an address is of, and where the statements of a function begin: `.debug_line`.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Dwarf;
use super::quick::Quick;
use super::store::{Die, EntryError, Store, Unit};
use crate::facts::{FunctionId, Statement};

/// Addresses of one line.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Addresses, the end excluded.
    pub range: Range<u64>,
    /// Number of the file in the unit's line table.
    pub file: u64,
    /// Line number.
    pub line: u32,
    /// The start is a good place for a breakpoint on the line (is_stmt; DWARF 5, 6.2.2).
    pub is_statement: bool,
}

/// For each unit its rows, sorted by address; read when first asked for. Any number of units can have one long table.
pub(super) struct Lines {
    of_units: Vec<OnceLock<Arc<[Row]>>>,
    tables: Mutex<LineTables>,
}

/// Rows by table.
#[derive(Default)]
pub(super) struct LineTables {
    rows: HashMap<TableId, Arc<OnceLock<Arc<[Row]>>>>,
    /// Bytes of their instructions.
    bytes: u64,
}

/// A line table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TableId {
    /// Where its instructions are in memory, and how many bytes they have.
    instructions: (usize, usize),
    /// Where it begins in its section.
    offset: usize,
}

impl TableId {
    /// None: the unit has none.
    pub fn of(unit: &Unit) -> Option<TableId> {
        let header = unit.line_program.as_ref()?.header();
        let instructions = header.raw_program_buf().slice();
        Some(TableId { instructions: (instructions.as_ptr() as usize, instructions.len()), offset: header.offset().0 })
    }
}

impl LineTables {
    /// Whether it was not known before. Not if all have more bytes than twice their sections: they do not overlap.
    pub fn add(&mut self, store: &Store, table: TableId) -> bool {
        if self.rows.contains_key(&table) {
            return false;
        }
        self.bytes = self.bytes.saturating_add(table.instructions.1 as u64);
        let fits = self.bytes <= store.line_bytes().saturating_mul(2);
        if fits {
            self.rows.insert(table, Arc::default());
        }
        fits
    }
}

impl Lines {
    /// Nothing read yet, for this many units.
    pub fn new(units: usize) -> Lines {
        Lines { of_units: (0..units).map(|_| OnceLock::new()).collect(), tables: Mutex::default() }
    }

    /// As much of the unit's line table as can be read.
    pub fn rows(&self, store: &Store, slot: usize) -> Result<&[Row], EntryError> {
        let cell = self.of_units.get(slot).ok_or_else(|| EntryError { die: None, message: "no such unit".into() })?;
        let unit = store.unit(slot)?;
        Ok(cell.get_or_init(|| self.read(store, unit)))
    }

    fn read(&self, store: &Store, unit: &Unit) -> Arc<[Row]> {
        let Some(table) = TableId::of(unit) else { return Arc::default() };
        let rows = {
            let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables.add(store, table);
            tables.rows.get(&table).cloned()
        };
        rows.map(|rows| rows.get_or_init(|| read_rows(unit).into()).clone()).unwrap_or_default()
    }
}

/// The unit's line table, with rows of equal address merged. Damage ends it early.
pub(super) fn read_rows(unit: &Unit) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let Some(program) = unit.line_program.clone() else { return rows };
    let mut program = program.rows();
    let mut open: Option<Row> = None;
    // Damage ends the table: the rows before it are good.
    while let Ok(Some((_, row))) = program.next_row() {
        let at = row.address();
        if let Some(mut before) = open.take() {
            // Empty where several statements begin at one address.
            before.range.end = at.max(before.range.start);
            rows.push(before);
        }
        if !row.end_sequence() {
            let line = row.line().map_or(0, |line| line.get().min(u64::from(u32::MAX)) as u32);
            open = Some(Row { range: at..at, file: row.file_index(), line, is_statement: row.is_stmt() });
        }
    }
    rows.sort_by_key(|row| row.range.start);
    rows
}

/// The rows that begin in the range.
fn rows_in<'r>(rows: &'r [Row], range: &Range<u64>) -> &'r [Row] {
    let [first, end] = [range.start, range.end].map(|at| rows.partition_point(|row| row.range.start < at));
    rows.get(first..end).unwrap_or_default()
}

impl Dwarf {
    /// The statements in all copies of the function and its inlined instances, sorted by address.
    pub(super) fn read_statements(&self, id: FunctionId) -> Result<Vec<Statement>, EntryError> {
        let mut statements = Vec::new();
        for (copy, die) in (0..).zip(self.copies(id)?.into_iter().chain(self.instances_of(id)?)) {
            statements.extend(self.statements_of(die)?.into_iter().map(|statement| Statement { copy, ..statement }));
        }
        if statements.is_empty() {
            statements = self.statements_by_symbol(id)?;
        }
        statements.sort_by_key(|statement| statement.address);
        statements.dedup();
        Ok(statements)
    }

    /// The statements of a function whose entry has no code, though a symbol does: gcc has merged it with another one of equal code.
    /// Where it has left nothing of it but the other one's, it is that its own line begins there.
    fn statements_by_symbol(&self, id: FunctionId) -> Result<Vec<Statement>, EntryError> {
        let function = self.read_function(id)?;
        let Some((body, start)) = function.bodies.first().and_then(|body| Some((body, self.elf.flat(body.entry)?)))
        else {
            return Ok(Vec::new());
        };
        let slot = self.store.slot_of(id.die())?;
        let unit = self.store.unit(slot)?;
        let rows = rows_in(self.lines.rows(&self.store, slot)?, &(start..start.saturating_add(body.size)));
        let mut statements = Vec::new();
        for row in rows.iter().filter(|row| row.line > 0 && row.is_statement) {
            let Some(address) = self.elf.address(row.range.start) else { continue };
            let file = self.store.file_name(unit, row.file).unwrap_or_default();
            statements.push(Statement { address, file, line: row.line, copy: 0 });
        }
        let is_own = |statement: &Statement| statement.file == function.file && statement.line >= function.line;
        if !statements.iter().any(|statement| statement.address == body.entry && is_own(statement)) {
            statements.retain(|statement| statement.address != body.entry);
            let (address, file, line) = (body.entry, function.file.clone(), function.line);
            statements.push(Statement { address, file, line, copy: 0 });
        }
        Ok(statements)
    }

    /// The lines of that file on which statements of the function begin, each once, sorted.
    pub(super) fn lines_within(&self, id: FunctionId, file: &str) -> Result<Vec<u32>, EntryError> {
        let mut lines = Vec::new();
        let mut own: HashMap<(usize, u64), bool, Quick> = HashMap::default();
        for die in self.copies(id)?.into_iter().chain(self.instances_of(id)?) {
            let slot = self.store.slot_of(die)?;
            let (unit, entry) = self.store.entry(die)?;
            let rows = self.lines.rows(&self.store, slot)?;
            let mut before = None;
            for range in self.code_ranges(unit, &entry)? {
                // That a statement begins there or not does not matter: a line without one is listed too.
                for row in rows_in(rows, &range).iter().filter(|row| row.line > 0) {
                    if before == Some((row.file, row.line)) || self.elf.address(row.range.start).is_none() {
                        continue;
                    }
                    before = Some((row.file, row.line));
                    let is_own = || self.store.is_file(unit, row.file, file);
                    if *own.entry((slot, row.file)).or_insert_with(is_own) {
                        lines.push(row.line);
                    }
                }
            }
        }
        if lines.is_empty() {
            let by_symbol = self.statements_by_symbol(id)?.into_iter().filter(|statement| statement.file == file);
            lines.extend(by_symbol.map(|statement| statement.line));
        }
        lines.sort_unstable();
        lines.dedup();
        Ok(lines)
    }

    /// The same for one body or inlined copy, in the order of its parts; the copy is not numbered.
    pub(super) fn statements_of(&self, die: Die) -> Result<Vec<Statement>, EntryError> {
        let unit = self.store.entry(die)?.0;
        let mut files: HashMap<u64, String> = HashMap::new();
        let mut statements = Vec::new();
        for row in self.rows_within(die)? {
            let Some(address) = self.elf.address(row.range.start) else { continue };
            let file =
                files.entry(row.file).or_insert_with(|| self.store.file_name(unit, row.file).unwrap_or_default());
            statements.push(Statement { address, file: file.clone(), line: row.line, copy: 0 });
        }
        Ok(statements)
    }

    /// The rows of one body or inlined copy at which statements begin.
    fn rows_within(&self, die: Die) -> Result<Vec<&Row>, EntryError> {
        let (unit, entry) = self.store.entry(die)?;
        let mut found: Vec<&Row> = Vec::new();
        let rows = self.lines.rows(&self.store, self.store.slot_of(die)?)?;
        for range in self.code_ranges(unit, &entry)? {
            let inside = rows_in(rows, &range);
            found.reserve(inside.len());
            found.extend(inside.iter().filter(|row| row.line > 0));
        }
        if found.iter().all(|row| row.is_statement) {
            return Ok(found);
        }
        // A line without a row that begins a statement still has code, and debuggers and SystemTap can name it.
        let begun: HashSet<(u64, u32), Quick> =
            found.iter().filter(|row| row.is_statement).map(|row| (row.file, row.line)).collect();
        found.retain(|row| row.is_statement || !begun.contains(&(row.file, row.line)));
        Ok(found)
    }
}
