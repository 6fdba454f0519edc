// SPDX-License-Identifier: GPL-2.0-or-later

//! What can be asked about one object's debug information. DWARF, BTF and an exported index each implement this trait.
//!
//! A form that lacks something answers that there is none; only damage is an error. What follows from single types (sizes,
//! members, names) is the same for all forms, and written once, for `dyn Source`.

mod type_name;
mod types;

use std::sync::Arc;

use crate::error::Error;
use crate::facts::{
    Call, Convention, Extent, FoundVariable, Function, FunctionId, FunctionPattern, InlinedCode, Label, Op, OtherLines,
    Passed, Prologue, Statement, Type, TypeId, TypePassing, TypeTag, Unavailable, Variable, VirtualBase,
};
use crate::object::{Address, Elf, Reserved};

/// The forms of debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Dwarf,
    Btf,
    /// An index that was exported from DWARF.
    Portable,
    /// Only a symbol table.
    Symbols,
}

/// A variable with its location, or why it is not available.
pub(crate) type VariableResult = Result<FoundVariable, Unavailable>;

/// Which of several variables outside functions is meant.
#[derive(Clone, Copy)]
pub(crate) struct GlobalPattern<'p> {
    /// The variable's name.
    pub name: &'p str,
    /// A shell pattern for the end of its unit's path.
    pub file: Option<&'p str>,
    /// No static variable.
    pub external: bool,
}

/// One object's debug information. Methods with a default body are those that a form without code cannot answer.
pub(crate) trait Source: Send + Sync {
    fn form(&self) -> Form;

    /// The file that it was read from.
    fn elf(&self) -> &Arc<Elf>;

    /// Bytes of a pointer.
    fn word(&self) -> u8 {
        8
    }

    /// The name of a file with a part of the debug information that was not found.
    fn missing_part(&self) -> Option<String> {
        None
    }

    /// Functions that match, sorted by name.
    fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error>;

    /// Namespaces, types and functions around a function of that name: `ns::Class`, or nothing.
    fn scope(&self, _: FunctionId, _name: &str) -> Result<String, Error> {
        Ok(String::new())
    }

    /// The same of all functions of that name.
    fn scopes(&self, _name: &str) -> Result<Vec<(FunctionId, String)>, Error> {
        Ok(Vec::new())
    }

    /// Names of all functions, sorted, each once.
    fn function_names(&self) -> Result<Vec<String>, Error>;

    fn function(&self, id: FunctionId) -> Result<Function, Error>;

    /// The function whose code has the address.
    fn function_with(&self, address: Address) -> Result<Option<FunctionId>, Error> {
        for id in self.find_functions(&FunctionPattern { name: "*".into(), file: None })? {
            if self.function(id)?.has_code_at(address) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// The function whose call is inlined innermost at an address of another one, if that is known; else that one.
    fn innermost(&self, id: FunctionId, _: Address) -> Result<FunctionId, Error> {
        Ok(id)
    }

    /// Parameters, in order; those without a name are left out.
    fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error>;

    /// The variable of that name at an address of the function.
    fn variable(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error>;

    /// The same of the innermost scope at the address that has one, calls inlined there included.
    fn variable_around(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error> {
        self.variable(id, at, name)
    }

    /// The parameters and then the locals in scope at an address of the function, as [`Source::variable`] finds each; without those
    /// whose entries are damaged.
    fn variables(&self, id: FunctionId, at: Address) -> Result<Vec<(String, VariableResult)>, Error> {
        let names = self.parameters(id)?.into_iter().chain(self.locals(id, at)?).map(|variable| variable.name);
        Ok(names.filter_map(|name| Some((name.clone(), self.variable(id, at, &name).ok()?))).collect())
    }

    fn read_type(&self, id: TypeId, extent: Extent) -> Result<Type, Error>;

    /// The definition of the type with that tag and name.
    fn find_type(&self, tag: TypeTag, name: &str) -> Result<Option<TypeId>, Error>;

    /// The same in the function's unit, if that is known and has one.
    fn type_of_unit(&self, _: FunctionId, _: TypeTag, _name: &str) -> Result<Option<TypeId>, Error> {
        Ok(None)
    }

    /// The value of the enumerator of that name, in whichever enumeration it is.
    fn enumerator(&self, name: &str) -> Result<Option<i64>, Error>;

    /// The same, of the function's unit first.
    fn enumerator_for(&self, _: FunctionId, name: &str) -> Result<Option<i64>, Error> {
        self.enumerator(name)
    }

    /// The virtual bases of a class of C++, which has neither typedefs nor qualifiers.
    fn virtual_bases(&self, _: TypeId) -> Result<Vec<VirtualBase>, Error> {
        Ok(Vec::new())
    }

    /// Whether a type, which has neither typedefs nor qualifiers, is a reference of C++: [`Type::Pointer`] otherwise.
    fn is_reference(&self, _: TypeId) -> Result<bool, Error> {
        Ok(false)
    }

    /// Of a pointer to a member: the name of the class, and the type of what it points to.
    fn pointer_to_member(&self, _: TypeId) -> Result<Option<(String, Option<TypeId>)>, Error> {
        Ok(None)
    }

    /// The static member of that name of a class of C++.
    fn static_member(&self, _: TypeId, _: &str) -> Result<VariableResult, Error> {
        Ok(Err(Unavailable::Unknown))
    }

    /// Local variables in scope at the address, outermost first.
    fn locals(&self, _: FunctionId, _: Address) -> Result<Vec<Variable>, Error> {
        Ok(Vec::new())
    }

    /// Where the variable has a value in the body or inlined copy that the address is in.
    fn other_lines(&self, _: FunctionId, _: Address, _name: &str) -> Result<OtherLines, Error> {
        Ok(OtherLines::default())
    }

    /// A variable outside functions.
    fn global(&self, _: GlobalPattern) -> Result<VariableResult, Error> {
        Ok(Err(Unavailable::Unknown))
    }

    /// The variable outside functions that code of the function means by that name.
    fn global_for(&self, _: FunctionId, _name: &str) -> Result<VariableResult, Error> {
        Ok(Err(Unavailable::Unknown))
    }

    /// Paths of the units that have a static variable of that name, if no external one has it.
    fn units_of_static(&self, _name: &str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// The calls in the function's bodies and inlined copies.
    fn calls(&self, _: FunctionId) -> Result<Vec<Call>, Error> {
        Ok(Vec::new())
    }

    /// Only the calls in the function's own bodies.
    fn calls_of_bodies(&self, _: FunctionId) -> Result<Vec<Call>, Error> {
        Ok(Vec::new())
    }

    /// The calls in one inlined copy.
    fn calls_of_copy(&self, _: InlinedCode) -> Result<Vec<Call>, Error> {
        Ok(Vec::new())
    }

    /// Return addresses of calls whose callee is not known.
    fn returns_of_unknown_calls(&self, _: FunctionId) -> Result<Vec<Address>, Error> {
        Ok(Vec::new())
    }

    /// Address of the word on the stack that holds the return address of the frame that `at` is in.
    fn return_address(&self, _at: Address) -> Result<Option<Vec<Op>>, Error> {
        Ok(None)
    }

    /// The directory in which the function's file was compiled: the path of its file may begin there.
    fn compiled_in(&self, _: FunctionId) -> Option<String> {
        None
    }

    /// The labels in the function's bodies and inlined copies.
    fn labels(&self, _: FunctionId) -> Result<Vec<Label>, Error> {
        Ok(Vec::new())
    }

    /// The beginnings of statements in the function's bodies.
    fn statements(&self, _: FunctionId) -> Result<Vec<Statement>, Error> {
        Ok(Vec::new())
    }

    /// File and line of every address, as `runtime-c/lines.c` reads them.
    fn line_table(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    /// What is passed to the body of the function that begins at the address, in order, parameters without a name included.
    /// None: that is not known.
    fn passed(&self, _: FunctionId, _: Address) -> Result<Option<Vec<Passed>>, Error> {
        Ok(None)
    }

    /// How the function is called.
    fn convention(&self, _: FunctionId) -> Result<Convention, Error> {
        Ok(Convention::C)
    }

    /// How objects of a type, which has neither typedefs nor qualifiers, are passed.
    fn type_passing(&self, _: TypeId) -> Result<TypePassing, Error> {
        Ok(TypePassing::default())
    }

    /// Why the body that begins at the address may return nothing, though its function returns something: callers ignore it, so
    /// that the compiler has removed it.
    fn may_return_nothing(&self, _: FunctionId, _: Address) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Where the body that begins at the address has stored its parameters, if it was compiled without optimisation: at its next
    /// statement.
    fn prologue(&self, _: FunctionId, _: Address) -> Result<Option<Prologue>, Error> {
        Ok(None)
    }

    /// Whether the locations of variables are known at that place of the code.
    fn has_place(&self, _: Address) -> bool {
        true
    }

    /// Where no probe may be placed, if the source itself has that list.
    fn reserved(&self) -> Option<Reserved> {
        None
    }

    /// Makes what the first questions would make, and stores it. True: something was made.
    fn prepare(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// The bytes of a file that gives the same answers as this source, except for what [`crate::portable`] leaves out.
    fn export(&self, _: Option<&Reserved>) -> Result<Vec<u8>, Error> {
        Err(Error::NoDwarf { path: self.elf().path().into() })
    }

    /// The error for damage in the file, at the entry of that number if one is given.
    fn damaged(&self, number: Option<u32>, message: String) -> Error {
        Error::Dwarf { path: self.elf().path().into(), offset: number.map(u64::from), message }
    }
}
