//! Parameters and local variables: which are in scope at an address, and where they are.

use gimli::AttributeValue;

use super::functions::FunctionId;
use super::location::{Location, Place};
use super::units::DieRef;
use super::{Address, DebugInfo, Error, TypeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub type_id: TypeId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVariable {
    pub type_id: TypeId,
    pub location: Location,
}

/// Why a variable has no value at an address. An answer, not a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No variable of that name is in scope.
    Unknown,
    /// In scope and optimised out there; where it has a value, in words.
    OptimizedOut { available: Vec<String> },
    /// It has a value, of a kind that is not supported.
    Unsupported(String),
}

/// Deepest nesting of lexical blocks.
const MAX_DEPTH: usize = 200;

impl DebugInfo {
    /// Named parameters, in order.
    pub fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error> {
        let die = self.function_die(id)?;
        self.named(self.children(die)?.into_iter().filter(|(tag, _)| *tag == gimli::DW_TAG_formal_parameter).map(|(_, die)| die))
    }

    /// Local variables whose block contains the address, outermost first.
    pub fn locals(&self, id: FunctionId, at: Address) -> Result<Vec<Variable>, Error> {
        let Some(scope) = self.scope(id, at)? else { return Ok(Vec::new()) };
        let variables = self.in_scope(scope, self.elf.linear(at))?;
        self.named(variables.into_iter().filter(|(tag, _)| *tag == gimli::DW_TAG_variable).map(|(_, die)| die))
    }

    fn named(&self, dies: impl Iterator<Item = DieRef>) -> Result<Vec<Variable>, Error> {
        let mut variables: Vec<Variable> = Vec::new();
        for die in dies {
            if let (Some(name), Some(type_die)) = (self.name(die)?, self.type_of(die)?) {
                if variables.iter().all(|other| other.name != name) {
                    variables.push(Variable { name, type_id: self.type_id(type_die) });
                }
            }
        }
        Ok(variables)
    }

    /// The DIE of the body or inlined instance that the address is the entry of, or lies in.
    fn scope(&self, id: FunctionId, at: Address) -> Result<Option<DieRef>, Error> {
        let die = self.function_die(id)?;
        let pc = self.elf.linear(at);
        let within = |ranges: &[(u64, u64)]| ranges.iter().any(|&(start, end)| (start..end).contains(&pc));
        for (body, ranges) in self.concrete(die)? {
            if within(&ranges) {
                return Ok(Some(body));
            }
        }
        for instance in self.inlined_instances(die)? {
            if within(&self.ranges(instance)?) {
                return Ok(Some(instance));
            }
        }
        Ok(None)
    }

    /// Parameters and variables of a scope and of its blocks around the address; the innermost come last.
    fn in_scope(&self, scope: DieRef, pc: u64) -> Result<Vec<(gimli::DwTag, DieRef)>, Error> {
        let mut found = Vec::new();
        let mut open = vec![(scope, 0)];
        while let Some((block, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(Error::Damaged("lexical blocks nest too deep"));
            }
            for (tag, child) in self.children(block)? {
                match tag {
                    gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => found.push((tag, child)),
                    gimli::DW_TAG_lexical_block => {
                        if self.ranges(child)?.iter().any(|&(start, end)| (start..end).contains(&pc)) {
                            open.push((child, depth + 1));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// The parameter or local of that name that is in scope at the address, the innermost first.
    pub fn variable(&self, id: FunctionId, at: Address, name: &str) -> Result<Result<FoundVariable, Unavailable>, Error> {
        let Some(scope) = self.scope(id, at)? else { return Ok(Err(Unavailable::Unknown)) };
        let pc = self.elf.linear(at);
        let mut reason = Unavailable::Unknown;
        for (_, die) in self.in_scope(scope, pc)?.into_iter().rev() {
            if self.name(die)?.as_deref() != Some(name) {
                continue;
            }
            let Some(type_die) = self.type_of(die)? else { continue };
            match self.place_of(scope, die, pc)? {
                Ok(location) => return Ok(Ok(FoundVariable { type_id: self.type_id(type_die), location })),
                Err(why) => reason = why,
            }
        }
        if reason == Unavailable::Unknown && self.is_parameter(id, name)? {
            // A clone whose parameter was removed has no DIE for it.
            reason = Unavailable::OptimizedOut { available: Vec::new() };
        }
        Ok(Err(reason))
    }

    fn is_parameter(&self, id: FunctionId, name: &str) -> Result<bool, Error> {
        Ok(self.parameters(id)?.iter().any(|parameter| parameter.name == name))
    }

    fn place_of(&self, scope: DieRef, die: DieRef, pc: u64) -> Result<Result<Location, Unavailable>, Error> {
        let unit = self.unit(die.unit)?;
        let body = self.enclosing_function(scope)?;
        let ranges = self.ranges(body)?;
        let frame_base = match self.attribute(body, gimli::DW_AT_frame_base)? {
            Some((_, AttributeValue::Exprloc(expression))) => Some(expression),
            _ => None,
        };
        let at_entry = ranges.first().is_some_and(|range| range.0 == pc);
        let place = Place { unit: &unit, pc, at_entry, frame_base };
        let supported = |found: super::location::Found| found.map_err(Unavailable::Unsupported);
        let entry = self.entry(&unit, die.offset)?;
        match entry.attr_value(gimli::DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => Ok(supported(self.locate(expression, &place)?)),
            Some(value) => {
                let mut available = Vec::new();
                if let Some(mut list) = self.dwarf.attr_locations(&unit, value)? {
                    while let Some(entry) = list.next()? {
                        if (entry.range.begin..entry.range.end).contains(&pc) {
                            return Ok(supported(self.locate(entry.data, &place)?));
                        }
                        if available.len() < 100 {
                            available.push((entry.range.begin, entry.range.end));
                        }
                    }
                }
                Ok(Err(Unavailable::OptimizedOut { available: self.lines(&unit, &available)? }))
            }
            None => match entry.attr_value(gimli::DW_AT_const_value) {
                Some(AttributeValue::Sdata(value)) => Ok(Ok(Location::Bytes(value.to_le_bytes().to_vec()))),
                Some(AttributeValue::Block(bytes)) => Ok(Ok(Location::Bytes(bytes.slice().to_vec()))),
                Some(value) => match value.udata_value() {
                    Some(value) => Ok(Ok(Location::Bytes(value.to_le_bytes().to_vec()))),
                    None => Ok(Err(Unavailable::Unsupported("its constant value has no number".into()))),
                },
                None => Ok(Err(Unavailable::OptimizedOut { available: Vec::new() })),
            },
        }
    }

    /// The subprogram DIE around an inlined instance: the last one that begins before it at the top level.
    fn enclosing_function(&self, scope: DieRef) -> Result<DieRef, Error> {
        let unit = self.unit(scope.unit)?;
        if self.entry(&unit, scope.offset)?.tag() == gimli::DW_TAG_subprogram {
            return Ok(scope);
        }
        let mut around = scope;
        let mut tree = unit.entries_tree(None)?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let offset = child.entry().offset().0;
            if offset > scope.offset {
                break;
            }
            if child.entry().tag() == gimli::DW_TAG_subprogram {
                around = DieRef { unit: scope.unit, offset };
            }
        }
        Ok(around)
    }

    /// Source lines of ranges of code, in words: `line 451`, `lines 455-460`.
    fn lines(&self, unit: &super::Unit, ranges: &[(u64, u64)]) -> Result<Vec<String>, Error> {
        let Some(program) = unit.line_program.clone() else { return Ok(Vec::new()) };
        let mut found: Vec<(u64, u64)> = vec![(u64::MAX, 0); ranges.len()];
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            let Some(line) = row.line() else { continue };
            for (&(start, end), lines) in ranges.iter().zip(&mut found) {
                if (start..end).contains(&row.address()) && !row.end_sequence() {
                    *lines = (lines.0.min(line.get()), lines.1.max(line.get()));
                }
            }
        }
        found.retain(|lines| lines.0 <= lines.1);
        found.sort_unstable();
        found.dedup();
        found.truncate(5);
        Ok(found.into_iter().map(|(low, high)| if low == high { format!("line {low}") } else { format!("lines {low}-{high}") }).collect())
    }
}
