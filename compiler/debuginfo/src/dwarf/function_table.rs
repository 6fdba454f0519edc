// SPDX-License-Identifier: GPL-2.0-or-later

//! All functions of an object, in tables in the cache: enough for a listing of the whole kernel, without reading an
//! entry of its debug information.

use std::sync::OnceLock;

use super::store::Die;
use crate::facts::{Body, Function, FunctionId, InlinedInstance, TypeId};
use crate::object::Elf;
use crate::stored;
use crate::tables::{TableBytes, Tables, Writer, halves};
use spile_base::cache::Cache;

/// Entry, name, file, line, external, return type + 1, first body, first inlined instance; sorted by entry. The last row
/// stands for no function and holds the ends.
const FUNCTIONS: usize = 0;
/// Address and size (two columns each), symbol's name + 1, first part; the last row likewise.
const BODIES: usize = 1;
/// Address and size.
const PARTS: usize = 2;
/// Address.
const INLINED: usize = 3;
const COLUMNS: [usize; 4] = [8, 6, 4, 2];

const WHAT: &str = "functions";

/// In place of an entry, of the row that stands for no function.
const NONE: u32 = u32::MAX;

/// All functions of an object, as rows in the cache.
pub(super) struct FunctionTable {
    tables: Tables,
    /// File, name and entry of each function, sorted: made when files are first asked for.
    by_file: OnceLock<Vec<[u32; 3]>>,
}

impl FunctionTable {
    fn of(tables: Tables) -> FunctionTable {
        FunctionTable { tables, by_file: OnceLock::new() }
    }

    /// The tables from the cache, or None.
    pub fn find(elf: &Elf, cache: Option<&Cache>) -> Option<FunctionTable> {
        Tables::open(stored::find(elf, cache, WHAT)?, &COLUMNS).map(FunctionTable::of)
    }

    /// Makes the tables and stores them; `ids` are those of the functions, sorted. None: an address is in no section.
    pub fn make(elf: &Elf, cache: Option<&Cache>, ids: &[FunctionId], functions: &[Function]) -> Option<FunctionTable> {
        let bytes = written(elf, ids, functions)?;
        stored::keep(elf, cache, WHAT, &bytes);
        Tables::open(TableBytes::Made(bytes), &COLUMNS).map(FunctionTable::of)
    }

    fn row(&self, die: Die) -> Option<usize> {
        let row = self.tables.first(FUNCTIONS, |row| self.tables.get(FUNCTIONS, row, 0) < die.0);
        (self.tables.get(FUNCTIONS, row, 0) == die.0 && row + 1 < self.tables.rows(FUNCTIONS)).then_some(row)
    }

    /// The functions that files whose paths fit declare, sorted by name, then entry.
    pub fn in_files(&self, fits: impl Fn(&str) -> bool) -> Vec<Die> {
        // Equal paths are one string.
        let by_file = self.by_file.get_or_init(|| {
            let rows = self.tables.all(FUNCTIONS).map(|[entry, name, file, ..]: [u32; 8]| [file, name, entry]);
            let mut rows: Vec<[u32; 3]> = rows.filter(|[.., entry]| *entry != NONE).collect();
            rows.sort_unstable();
            rows
        });
        let mut found = Vec::new();
        for of_file in by_file.chunk_by(|[file, ..], [next, ..]| file == next) {
            let path = of_file.first().and_then(|[file, ..]| std::str::from_utf8(self.tables.text(*file)).ok());
            if path.is_some_and(&fits) {
                found.extend(of_file.iter().map(|[_, name, entry]| (self.tables.text(*name), Die(*entry))));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, die)| die).collect()
    }

    /// Path of the file that declares the function.
    pub fn file(&self, die: Die) -> Option<&str> {
        std::str::from_utf8(self.tables.text(self.tables.get(FUNCTIONS, self.row(die)?, 2))).ok()
    }

    /// The function; None: it is not in the table.
    pub fn function(&self, elf: &Elf, id: FunctionId) -> Option<Function> {
        let row = self.row(id.die())?;
        let cell = |column| self.tables.get(FUNCTIONS, row, column);
        let ends = |column| cell(column) as usize..self.tables.get(FUNCTIONS, row + 1, column) as usize;
        let text = |at| String::from_utf8_lossy(self.tables.text(at)).into_owned();
        let bodies = ends(6).map(|body| self.body(elf, body)).collect::<Option<Vec<Body>>>()?;
        let instance = |row| Some(InlinedInstance { address: elf.address(self.tables.get_wide(INLINED, row, 0))? });
        let inlined = ends(7).map(instance).collect::<Option<Vec<InlinedInstance>>>()?;
        Some(Function {
            name: text(cell(1)),
            file: text(cell(2)),
            line: cell(3),
            external: cell(4) != 0,
            return_type: cell(5).checked_sub(1).map(|die| TypeId::of(Die(die))),
            bodies,
            inlined,
        })
    }

    fn body(&self, elf: &Elf, row: usize) -> Option<Body> {
        let part = |row| Some((elf.address(self.tables.get_wide(PARTS, row, 0))?, self.tables.get_wide(PARTS, row, 2)));
        let parts = self.tables.get(BODIES, row, 5) as usize..self.tables.get(BODIES, row + 1, 5) as usize;
        Some(Body {
            entry: elf.address(self.tables.get_wide(BODIES, row, 0))?,
            size: self.tables.get_wide(BODIES, row, 2),
            symbol: self
                .tables
                .get(BODIES, row, 4)
                .checked_sub(1)
                .map(|at| String::from_utf8_lossy(self.tables.text(at)).into_owned()),
            other_parts: parts.map(part).collect::<Option<Vec<_>>>()?,
        })
    }
}

fn written(elf: &Elf, ids: &[FunctionId], functions: &[Function]) -> Option<Vec<u8>> {
    let mut writer = Writer::new(&COLUMNS);
    for (id, function) in ids.iter().zip(functions) {
        let (name, file) = (writer.text(function.name.as_bytes()), writer.text(function.file.as_bytes()));
        let returns = function.return_type.map_or(0, |id| id.die().0.saturating_add(1));
        let (body, inlined) = (writer.rows(BODIES), writer.rows(INLINED));
        let external = u32::from(function.external);
        writer.row(FUNCTIONS, &[id.0, name, file, function.line, external, returns, body, inlined]);
        for body in &function.bodies {
            let symbol = body.symbol.as_ref().map_or(0, |symbol| writer.text(symbol.as_bytes()) + 1);
            let ([at, high], [size, large]) = (halves(elf.flat(body.entry)?), halves(body.size));
            let part = writer.rows(PARTS);
            writer.row(BODIES, &[at, high, size, large, symbol, part]);
            for (address, size) in &body.other_parts {
                let ([at, high], [size, large]) = (halves(elf.flat(*address)?), halves(*size));
                writer.row(PARTS, &[at, high, size, large]);
            }
        }
        for instance in &function.inlined {
            writer.row(INLINED, &halves(elf.flat(instance.address)?));
        }
    }
    let (body, part, inlined) = (writer.rows(BODIES), writer.rows(PARTS), writer.rows(INLINED));
    writer.row(FUNCTIONS, &[NONE, 0, 0, 0, 0, 0, body, inlined]);
    writer.row(BODIES, &[0, 0, 0, 0, 0, part]);
    Some(writer.finish())
}
