//! One kernel release: where its files are, its modules and their build-ids. Knows nothing of scripts.

mod error;
mod kernel;
mod object;

pub use error::TargetError;
pub use kernel::{Kernel, SearchOptions};
pub use object::{Anchor, Object};
