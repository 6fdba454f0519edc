// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes the table of probes, the fingerprints of their functions, and the description for the loader, into a script's object
//! whose C lacks them: compilers take 0.1 ms for each element of a table with names.
//!
//! The C text has one element of each kind of probe (section `.spile.shapes`) and says where in it the members are that
//! differ (`.spile.layout`). The elements of the table are copies of these, with their references to handlers and locks.

mod fingerprints;

use std::collections::HashMap;

use object::build::elf::{Builder, Relocation, Section, SectionData, SectionId, Symbol, SymbolId};
use object::elf;

use fingerprints::{CodeTable, Layout};
use spile_abi::sites::{Site, SiteConstant, Tables, UserCode};

const SHAPES: &str = ".spile.shapes";
const LAYOUT: &str = ".spile.layout";
const PROBES: &str = "spile_probes";
const FINGERPRINTS: &str = "spile_fingerprints";
const META: &str = "spile_meta";
/// Where the loader looks for the description.
const META_SECTION: &str = ".spile.meta";

/// The object with the tables. Err: why they cannot be written.
pub(super) fn fill(object: &[u8], tables: &Tables) -> Result<Vec<u8>, String> {
    let mut builder = Builder::read64(object).map_err(|error| format!("reading it: {error}"))?;
    let mut strings = Names::default();
    let (shapes, table, code) = {
        let shapes = Shapes::of(&builder)?;
        let table = Table::of(&shapes, &tables.sites, &mut strings)?;
        (shapes.section, table, CodeTable::of(&shapes.fingerprint, &tables.fingerprints, &mut strings)?)
    };
    for section in &mut builder.sections {
        let of_shapes = section.sh_info_section == Some(shapes) && matches!(section.data, SectionData::Relocation(_));
        section.delete |= of_shapes || [SHAPES, LAYOUT].iter().any(|name| *section.name == *name.as_bytes());
    }
    let deleted: Vec<SectionId> = builder.sections.iter().filter(|section| section.delete).map(Section::id).collect();
    for symbol in &mut builder.symbols {
        symbol.delete |= symbol.section.is_some_and(|section| deleted.contains(&section));
    }
    let (names, _) = add_section(&mut builder, ".rodata.spile_names", strings.bytes, 1);
    let (constants, of_constants) = add_section(&mut builder, ".rodata.spile_constants", table.constants.bytes, 8);
    let (probes, at) = add_section(&mut builder, ".rodata.spile_probes", table.bytes, 32);
    let (meta, _) = add_section(&mut builder, META_SECTION, tables.meta.clone(), 8);
    let [names, values] = [names, constants].map(|section| add_section_symbol(&mut builder, section));
    let absolute = |symbol: SymbolId| {
        move |(offset, addend): (u64, i64)| Relocation {
            r_offset: offset,
            symbol: Some(symbol),
            r_type: elf::R_X86_64_64,
            r_addend: addend,
        }
    };
    let texts = table.constants.texts.into_iter().map(absolute(names)).collect();
    add_relocations(&mut builder, constants, of_constants, texts)?;
    let mut relocations = table.copied;
    relocations.extend(table.texts.into_iter().map(absolute(names)));
    relocations.extend(table.values.into_iter().map(absolute(values)));
    add_relocations(&mut builder, probes, at, relocations)?;
    define(&mut builder, PROBES, probes)?;
    if !tables.fingerprints.is_empty() {
        let (contents, _) = add_section(&mut builder, ".rodata.spile_code", code.contents, 4);
        let (fingerprints, at) = add_section(&mut builder, ".rodata.spile_fingerprints", code.bytes, 8);
        let contents = add_section_symbol(&mut builder, contents);
        let mut relocations: Vec<Relocation> = code.texts.into_iter().map(absolute(names)).collect();
        relocations.extend(code.parts.into_iter().map(absolute(contents)));
        add_relocations(&mut builder, fingerprints, at, relocations)?;
        define(&mut builder, FINGERPRINTS, fingerprints)?;
    }
    define(&mut builder, META, meta)?;
    let mut out = Vec::with_capacity(object.len() + 2 * tables.meta.len());
    builder.write(&mut out).map_err(|error| format!("writing it: {error}"))?;
    Ok(out)
}

/// The compiled elements, and where their members are.
struct Shapes<'o> {
    section: SectionId,
    bytes: &'o [u8],
    /// Of each element, by offsets in it.
    relocations: Vec<Vec<Relocation>>,
    size: usize,
    point: usize,
    function: usize,
    symbol: usize,
    address: usize,
    index: usize,
    constants: usize,
    uprobe_offset: usize,
    uprobe_address: usize,
    constant: ConstantForm,
    fingerprint: Layout,
}

/// `union spile_constant`.
#[derive(Clone, Copy)]
struct ConstantForm {
    size: usize,
    /// Where the length of a text is; the rest begins at 0.
    length: usize,
}

impl<'o> Shapes<'o> {
    fn of(builder: &'o Builder) -> Result<Shapes<'o>, String> {
        let shapes = find(builder, SHAPES)?;
        let (SectionData::Data(bytes), SectionData::Data(layout)) = (&shapes.data, &find(builder, LAYOUT)?.data) else {
            return Err("the shapes of probes have no contents".into());
        };
        let numbers: Vec<usize> = layout
            .chunks_exact(4)
            .filter_map(|bytes| usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok())
            .collect();
        let few = "the layout of probes has another number of members";
        let (of_probe, of_fingerprint) = numbers.split_at_checked(11).ok_or(few)?;
        let &[
            size,
            point,
            function,
            symbol,
            address,
            index,
            constants,
            uprobe_offset,
            uprobe_address,
            of_constant,
            length,
        ] = of_probe
        else {
            return Err(few.into());
        };
        let fingerprint = Layout::of(of_fingerprint)?;
        let words = [point, function, symbol, address, constants, uprobe_offset, uprobe_address];
        let is_whole = size > 0 && !bytes.is_empty() && bytes.len().is_multiple_of(size);
        let constant = ConstantForm { size: of_constant, length };
        if !is_whole
            || length < 8
            || length.saturating_add(4) > of_constant
            || words.iter().any(|at| at.saturating_add(8) > size)
            || index.saturating_add(4) > size
        {
            return Err("the layout of probes does not fit their shapes".into());
        }
        let mut relocations = vec![Vec::new(); bytes.len() / size];
        let of_shapes = builder.sections.iter().filter(|section| section.sh_info_section == Some(shapes.id()));
        for section in of_shapes {
            let SectionData::Relocation(all) = &section.data else { continue };
            for relocation in all {
                let at = usize::try_from(relocation.r_offset).map_err(|error| error.to_string())?;
                let shape = relocations.get_mut(at / size).ok_or("a relocation is outside of the shapes")?;
                if ![point, function, symbol].contains(&(at % size)) {
                    shape.push(Relocation { r_offset: (at % size) as u64, ..*relocation });
                }
            }
        }
        Ok(Shapes {
            section: shapes.id(),
            bytes,
            relocations,
            size,
            point,
            function,
            symbol,
            address,
            index,
            constants,
            uprobe_offset,
            uprobe_address,
            constant,
            fingerprint,
        })
    }
}

/// An address in a table: where it is, and which byte of another section it is the address of.
type Address = (u64, i64);

/// The table of probes, apart from its object.
struct Table {
    bytes: Vec<u8>,
    /// What the shapes refer to.
    copied: Vec<Relocation>,
    /// Addresses of names.
    texts: Vec<Address>,
    /// Addresses of constants.
    values: Vec<Address>,
    constants: Constants,
}

/// All arrays of constants.
#[derive(Default)]
struct Constants {
    bytes: Vec<u8>,
    /// Addresses of texts among the names.
    texts: Vec<Address>,
}

impl Constants {
    /// Adds an array, and returns its place.
    fn add<'s>(
        &mut self,
        form: ConstantForm,
        constants: &'s [SiteConstant],
        names: &mut Names<'s>,
    ) -> Result<i64, String> {
        let place = self.bytes.len();
        for constant in constants {
            let start = self.bytes.len();
            self.bytes.resize(start + form.size, 0);
            match constant {
                SiteConstant::Number(number) => put(&mut self.bytes, start, &number.to_le_bytes()),
                SiteConstant::Text(text) => {
                    let length = u32::try_from(text.len()).map_err(|error| error.to_string())?;
                    put(&mut self.bytes, start + form.length, &length.to_le_bytes());
                    self.texts.push((start as u64, names.place(text)));
                }
            }
        }
        Ok(place as i64)
    }
}

impl Table {
    fn of<'s>(shapes: &Shapes, sites: &'s [Site], names: &mut Names<'s>) -> Result<Table, String> {
        let size = shapes.size;
        let mut constants = Constants::default();
        let mut bytes = Vec::with_capacity(sites.len() * size);
        let (mut copied, mut texts, mut values) = (Vec::with_capacity(sites.len() * 4), Vec::new(), Vec::new());
        for (index, site) in sites.iter().enumerate() {
            let shape = usize::try_from(site.shape).map_err(|error| error.to_string())?;
            let start = bytes.len();
            let of_shape = shapes.bytes.get(shape * size..(shape + 1) * size);
            bytes.extend_from_slice(of_shape.ok_or("a probe has an unknown shape")?);
            let index = u32::try_from(index).map_err(|error| error.to_string())?;
            put(&mut bytes, start + shapes.address, &site.address.to_le_bytes());
            put(&mut bytes, start + shapes.index, &index.to_le_bytes());
            let members = [
                (shapes.point, Some(&site.point)),
                (shapes.function, Some(&site.function)),
                (shapes.symbol, site.symbol.as_ref()),
            ];
            for (member, text) in members {
                put(&mut bytes, start + member, &[0; 8]);
                texts.extend(text.map(|text| ((start + member) as u64, names.place(text.as_bytes()))));
            }
            if let Some(UserCode { offset, address }) = site.uprobe {
                put(&mut bytes, start + shapes.uprobe_offset, &offset.to_le_bytes());
                put(&mut bytes, start + shapes.uprobe_address, &address.to_le_bytes());
            }
            if let Some(own) = &site.constants {
                values.push(((start + shapes.constants) as u64, constants.add(shapes.constant, own, names)?));
            }
            let moved =
                |relocation: &Relocation| Relocation { r_offset: start as u64 + relocation.r_offset, ..*relocation };
            copied.extend(shapes.relocations.get(shape).into_iter().flatten().map(moved));
        }
        Ok(Table { bytes, copied, texts, values, constants })
    }
}

/// Strings, each once.
#[derive(Default)]
struct Names<'s> {
    bytes: Vec<u8>,
    places: HashMap<&'s [u8], i64>,
}

impl<'s> Names<'s> {
    fn place(&mut self, text: &'s [u8]) -> i64 {
        *self.places.entry(text).or_insert_with(|| {
            let at = self.bytes.len() as i64;
            self.bytes.extend(text.iter().copied().chain([0]));
            at
        })
    }
}

/// Writes at a place that is inside of the bytes.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes.iter_mut().skip(at).zip(value).for_each(|(byte, new)| *byte = *new);
}

fn find<'b, 'o>(builder: &'b Builder<'o>, name: &str) -> Result<&'b Section<'o>, String> {
    builder
        .sections
        .iter()
        .find(|section| *section.name == *name.as_bytes())
        .ok_or_else(|| format!("there is no {name}"))
}

/// Adds a section that is loaded and not written; its name is returned too.
fn add_section(builder: &mut Builder, name: &'static str, bytes: Vec<u8>, align: u64) -> (SectionId, &'static str) {
    let section = builder.sections.add();
    section.name = name.into();
    section.sh_type = elf::SHT_PROGBITS;
    section.sh_flags = elf::SHF_ALLOC;
    section.sh_addralign = align;
    section.data = SectionData::Data(bytes.into());
    (section.id(), name)
}

fn add_section_symbol(builder: &mut Builder, section: SectionId) -> SymbolId {
    let symbol: &mut Symbol = builder.symbols.add();
    symbol.set_st_info(elf::STB_LOCAL, elf::STT_SECTION);
    symbol.section = Some(section);
    symbol.id()
}

/// Relocations of the section with that name.
fn add_relocations(
    builder: &mut Builder,
    section: SectionId,
    name: &str,
    mut relocations: Vec<Relocation>,
) -> Result<(), String> {
    // As compilers write them. ld sorts others by insertion, in a time that grows with the square: 10 s for 50,000 probes.
    relocations.sort_by_key(|relocation| relocation.r_offset);
    let symbols = builder.sections.iter().find(|section| matches!(section.data, SectionData::Symbol)).map(Section::id);
    let added = builder.sections.add();
    added.name = format!(".rela{name}").into_bytes().into();
    added.sh_type = elf::SHT_RELA;
    added.sh_flags = elf::SHF_INFO_LINK;
    added.sh_addralign = 8;
    added.sh_entsize = 24;
    added.sh_link_section = Some(symbols.ok_or("it has no symbols")?);
    added.sh_info_section = Some(section);
    added.data = SectionData::Relocation(relocations);
    Ok(())
}

/// Makes the undefined symbol the name of that section's contents.
fn define(builder: &mut Builder, name: &str, section: SectionId) -> Result<(), String> {
    let size = match &builder.sections.get(section).data {
        SectionData::Data(bytes) => bytes.len() as u64,
        _ => 0,
    };
    let symbol = builder.symbols.iter_mut().find(|symbol| *symbol.name == *name.as_bytes() && symbol.section.is_none());
    let symbol = symbol.ok_or_else(|| format!("the object does not refer to {name}"))?;
    symbol.section = Some(section);
    symbol.st_value = 0;
    symbol.st_size = size;
    symbol.set_st_info(elf::STB_GLOBAL, elf::STT_OBJECT);
    Ok(())
}

#[cfg(test)]
mod tests {
    use object::read::elf::ElfFile64;
    use object::{Endianness, Object, ObjectSection, ObjectSymbol};
    use spile_abi::sites::Fingerprint;

    use super::*;

    /// Two shapes of 80 bytes: `point` at 0, `function` 8, `handler` 16, `symbol` 24, `address` 32, `index` 40, a number 44,
    /// `constants` 48, `uprobe.offset` 64, `uprobe.address` 72.
    const OBJECT: &str = r#"
	.text
	.type one, @function
one:	ret
	.type two, @function
two:	ret
	.section .spile.shapes,"a"
shapes:
	.quad .Ltext, .Ltext, one, 0, 7
	.long 0, 5
	.quad 0, 0, 8, 9
	.quad .Ltext, .Ltext, two, .Ltext, 7
	.long 1, 6
	.quad 0, 0, 8, 9
	.section .spile.layout,"a"
layout:	.long 80, 0, 8, 24, 32, 40, 48, 64, 72, 16, 8
	.long 64, 0, 8, 16, 24, 32, 40, 48, 56, 8
	.section .rodata.str1.1,"aMS",@progbits,1
.Ltext:	.string "of the shape"
	.section .rodata,"a"
	.globl spile_script
spile_script:
	.quad spile_probes, spile_meta
"#;

    fn assembled(text: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let (source, object) = (directory.path().join("unit.s"), directory.path().join("unit.o"));
        std::fs::write(&source, text).unwrap();
        let status = std::process::Command::new("as").arg("--64").arg("-o").arg(&object).arg(&source).status().unwrap();
        assert!(status.success());
        std::fs::read(object).unwrap()
    }

    fn site(shape: u32, name: &str, address: u64, constants: Option<Vec<SiteConstant>>) -> Site {
        let symbol = (shape == 1).then(|| "anchor".to_string());
        let uprobe = (name == "b").then_some(UserCode { offset: 0x51, address: 0x52 });
        Site { shape, point: format!("point of {name}"), function: name.into(), symbol, address, uprobe, constants }
    }

    /// The words of a section: numbers, texts and names of functions.
    fn words(object: &[u8], name: &str) -> Vec<String> {
        let file = ElfFile64::<Endianness>::parse(object).unwrap();
        let section = file.section_by_name(name).unwrap();
        let data = section.data().unwrap();
        let mut words: Vec<String> =
            data.chunks(8).map(|bytes| format!("{:#x}", u64::from_le_bytes(bytes.try_into().unwrap()))).collect();
        for (offset, relocation) in section.relocations() {
            let object::RelocationTarget::Symbol(index) = relocation.target() else { panic!() };
            let symbol = file.symbol_by_index(index).unwrap();
            let target = file.section_by_index(symbol.section_index().unwrap()).unwrap();
            let at = symbol.address() + relocation.addend() as u64;
            let function = file.symbols().find(|other| {
                other.kind() == object::SymbolKind::Text
                    && other.section_index() == symbol.section_index()
                    && other.address() == at
            });
            let bytes = &target.data().unwrap()[at as usize..];
            words[offset as usize / 8] = match (function, target.name().unwrap()) {
                (Some(function), _) => function.name().unwrap().to_string(),
                (None, ".rodata.spile_constants") => format!("constants at {at}"),
                _ => String::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap(),
            };
        }
        words
    }

    #[test]
    fn elements_are_copies_of_their_shapes() {
        let constants = |text: &[u8]| Some(vec![SiteConstant::Number(-2), SiteConstant::Text(text.to_vec())]);
        let sites =
            vec![site(1, "a", 0x10, None), site(0, "b", 0x20, constants(b"x")), site(1, "a", 0x30, constants(b"y\0z"))];
        let filled =
            fill(&assembled(OBJECT), &Tables { sites, fingerprints: Vec::new(), meta: b"SPILEMET".to_vec() }).unwrap();
        let expected = [
            ["point of a", "a", "two", "anchor", "0x10", "0x600000000", "0x0", "0x0", "0x8", "0x9"],
            ["point of b", "b", "one", "0x0", "0x20", "0x500000001", "constants at 0", "0x0", "0x51", "0x52"],
            ["point of a", "a", "two", "anchor", "0x30", "0x600000002", "constants at 32", "0x0", "0x8", "0x9"],
        ];
        assert_eq!(words(&filled, ".rodata.spile_probes"), expected.concat());
        let values = words(&filled, ".rodata.spile_constants");
        assert_eq!(values, ["0xfffffffffffffffe", "0x0", "x", "0x1", "0xfffffffffffffffe", "0x0", "y", "0x3"]);
        let file = ElfFile64::<Endianness>::parse(&*filled).unwrap();
        assert!(file.section_by_name(SHAPES).is_none() && file.section_by_name(LAYOUT).is_none());
        assert!(file.symbol_by_name("shapes").is_none());
        let meta = file.symbol_by_name(META).unwrap();
        let section = file.section_by_index(meta.section_index().unwrap()).unwrap();
        assert_eq!((section.name(), section.data(), meta.size()), (Ok(".spile.meta"), Ok(&b"SPILEMET"[..]), 8));
        assert_eq!(words(&filled, ".rodata").len(), 2);
        // ld takes time that grows with the square of what is out of order.
        for section in file.sections() {
            assert!(section.relocations().is_sorted_by_key(|(offset, _)| offset), "{:?}", section.name());
        }
    }

    #[test]
    fn fingerprints_are_data() {
        let code = |function: &str, symbol: Option<&str>, bytes: &[u8], patched: &[(u32, u32)]| Fingerprint {
            target: 3,
            symbol: symbol.map(str::to_string),
            address: 0x40,
            function: function.into(),
            bytes: bytes.to_vec(),
            patched: patched.to_vec(),
        };
        let fingerprints = vec![code("a", None, b"code1", &[]), code("b", Some("b"), b"code2", &[(0, 2), (3, 1)])];
        let tables = Tables { sites: vec![site(0, "a", 0, None)], fingerprints, meta: Vec::new() };
        let object = OBJECT.replace("spile_meta\n", "spile_meta, spile_fingerprints\n");
        let filled = fill(&assembled(&object), &tables).unwrap();
        // The second one's code follows its spans, aligned, which follow the first one's code.
        let expected = [
            ["a", "0x3", "0x0", "0x40", "code1", "0x5", "0x0", "0x0"],
            ["b", "0x3", "b", "0x40", "code2", "0x5", "", "0x2"],
        ];
        assert_eq!(words(&filled, ".rodata.spile_fingerprints"), expected.concat());
        let file = ElfFile64::<Endianness>::parse(&*filled).unwrap();
        let contents = file.section_by_name(".rodata.spile_code").unwrap();
        assert_eq!(contents.data().unwrap(), b"code1\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\x01\0\0\0code2");
        assert_eq!(file.symbol_by_name(FINGERPRINTS).unwrap().size(), 128);
        let unknown = object.replace("48, 56, 8\n", "48, 56, 12\n");
        assert_eq!(fill(&assembled(&unknown), &tables).unwrap_err(), "the layout of fingerprints is not known here");
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let tables =
            |shape| Tables { sites: vec![site(shape, "a", 0, None)], fingerprints: Vec::new(), meta: Vec::new() };
        let error = |text: &str, shape| fill(&assembled(text), &tables(shape)).unwrap_err();
        assert_eq!(error(OBJECT, 2), "a probe has an unknown shape");
        assert_eq!(
            error(&OBJECT.replace(".long 80, 0,", ".long 76, 0,"), 0),
            "the layout of probes does not fit their shapes"
        );
        assert_eq!(
            error(&OBJECT.replace("48, 64, 72, 16", "48, 64, 76, 16"), 0),
            "the layout of probes does not fit their shapes"
        );
        assert_eq!(error(&OBJECT.replace("spile_probes", "others"), 0), "the object does not refer to spile_probes");
        assert_eq!(error("nop\n", 0), "there is no .spile.shapes");
        assert!(fill(b"junk", &tables(0)).is_err());
    }
}
