// SPDX-License-Identifier: GPL-2.0-or-later

//! A type for values that come without debug information, as arguments of markers: `long`, in an object that has nothing else.

use std::path::Path;
use std::rc::Rc;

use super::object::{Kind, Object};
use crate::error::Error;
use crate::{Elf, TypeId};

/// BTF of one type (include/uapi/linux/btf.h): the header, `long` as a signed integer of 64 bits, and its name.
const LONG: [u8; 46] = [
    0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 6, 0, 0, 0, //
    1, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 64, 0, 0, 1, //
    0, b'l', b'o', b'n', b'g', 0,
];

/// The object, and the type in it.
pub fn number() -> Result<(Rc<Object>, TypeId), Error> {
    let path = Path::new("numbers");
    let elf = Elf::of_bytes(path, LONG.to_vec())?;
    let object = Object::new("numbers".into(), path.into(), Kind::Module, elf, None, None);
    let missing = || Error::Elf { path: path.into(), message: "no type of numbers".into() };
    let id = object.debug()?.find_type("long")?.ok_or_else(missing)?;
    Ok((Rc::new(object), id))
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_a_long() {
        let (object, id) = super::number().expect("has one");
        let debug = object.debug().expect("is whole");
        assert_eq!(debug.type_name(id), "long");
        assert_eq!(debug.size_of(id).expect("is whole"), Some(8));
    }
}
