//! What a module carries for the loader in its section [`SECTION`]: who it was compiled for and how its records read.
//!
//! The compiler writes it ([`Meta::encode`]), the loader reads it ([`Meta::decode`]); the module itself only carries it.
//! Encoding: magic `SPILEMET`, u32 version, then the fields in order; numbers little endian, strings and lists preceded
//! by a u32 count. A reader refuses any other version and everything that does not fit.

/// ELF section of the `.ko` (allocated, so that it can also be read back from a loaded module's memory).
pub const SECTION: &str = ".spile.meta";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Module name.
    pub name: String,
    /// The script's file name, or `<input>`.
    pub title: String,
    /// Version of spile that built the module.
    pub version: String,
    /// UTS release compiled for.
    pub kernel_release: String,
    /// Compiled with `-g`: the module may write memory or hold embedded C.
    pub guru: bool,
    /// All objects that probes are in, the kernel (name empty) among them if it is one.
    pub targets: Vec<Target>,
    /// By probe site index.
    pub probes: Vec<Probe>,
    /// By format id: bytecode as in abi.h (SPILE_FORMAT_*).
    pub formats: Vec<Vec<u8>>,
    /// By location id: `operator '/' at FILE:LINE:COLUMN`; an error reads "MESSAGE near LOCATION in probe POINT".
    pub locations: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Module name with `_` for `-`; empty for the kernel.
    pub name: String,
    /// Bytes of the GNU build-id note; empty: the object has none.
    pub build_id: Vec<u8>,
    /// The file it was compiled against, for messages.
    pub path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Canonical spelling.
    pub point: String,
    /// As the script wrote it.
    pub script_point: String,
    /// FILE:LINE:COLUMN of the probe.
    pub place: String,
}
