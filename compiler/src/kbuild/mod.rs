//! Pass 4: C text to a loadable `.ko`, by the target kernel's own Kbuild through Makefile.kbuild.
//!
//! The runtime is compiled once for each kernel, compiler and version of spile, and kept ([`Cache`]); a script adds its
//! own unit, and one more if it has embedded C.

mod cache;
mod compiler;
mod embed;
mod error;
mod make;

use std::path::{Path, PathBuf};

pub use cache::Cache;
pub use embed::embedded_tapset;
pub use error::BuildError;

/// The C of one module.
#[derive(Clone, Debug)]
pub struct Sources {
    pub script: String,
    pub embedded: Option<String>,
}

/// What is to be built.
#[derive(Clone, Debug)]
pub struct Request {
    pub release: String,
    /// Headers and Makefiles of the kernel.
    pub build_dir: PathBuf,
    /// Module name.
    pub module: String,
    pub sources: Sources,
    /// Instead of the runtime that is part of this program; its Makefile.kbuild stands beside the directory.
    pub runtime: Option<PathBuf>,
    pub verbosity: u8,
}

/// Builds in `work`, which exists and is private; gives the path of `NAME.ko` there.
pub fn build(request: &Request, work: &Path, cache: &Cache) -> Result<PathBuf, BuildError> {
    let looked = request.build_dir.join("Makefile");
    if !looked.exists() {
        return Err(BuildError::NoHeaders { release: request.release.clone(), looked });
    }
    let compiler = compiler::choose(&request.build_dir)?;
    let runtime = embed::Runtime::read(request.runtime.as_deref())?;
    let object = cache.runtime_object(request, &runtime, &compiler)?;
    runtime.unpack(work)?;
    make::write(&work.join(format!("{}_script.c", request.module)), request.sources.script.as_bytes())?;
    if let Some(embedded) = &request.sources.embedded {
        make::write(&work.join(format!("{}_embedded.c", request.module)), embedded.as_bytes())?;
    }
    make::write(&work.join("spile_plain.o_shipped"), &object)?;
    let mut variables = vec![format!("SPILE_MODULE={}", request.module), "SPILE_PREBUILT=1".to_string()];
    if request.sources.embedded.is_some() {
        variables.push("SPILE_EMBEDDED=1".into());
    }
    make::run(request, &compiler, work, &variables, &["modules"])?;
    let module = work.join(format!("{}.ko", request.module));
    if module.is_file() { Ok(module) } else { Err(BuildError::Failed { log: "make ended well but made no module".into() }) }
}
