// SPDX-License-Identifier: GPL-2.0-or-later

//! The host's interfaces: accounts, capabilities, clocks, names, places. Does not depend on the rest of the loader.

pub mod accounts;
pub mod assignments;
pub mod beneath;
pub mod byte_lock;
pub mod capability;
pub mod channel;
pub mod clock;
pub mod input;
pub mod kernel;
pub mod limits;
pub mod name;
pub mod notify;
pub mod places;
pub mod process;
pub mod search;
pub mod stderr;
