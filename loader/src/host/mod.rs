// SPDX-License-Identifier: GPL-2.0-or-later

//! What the loader asks of its host: accounts, capabilities, clocks, names, places. Knows nothing else of the loader.

pub mod accounts;
pub mod beneath;
pub mod capability;
pub mod channel;
pub mod clock;
pub mod input;
pub mod kernel;
pub mod notify;
pub mod places;
pub mod process;
pub mod search;
pub mod stderr;
