// SPDX-License-Identifier: GPL-2.0-or-later

//! Files below /etc/spile that root writes for all users.

/// Services' configurations, `NAME.conf`.
pub const SERVICES: &str = "/etc/spile";
/// Files in it are certificates, X.509 in DER, whatever their names are.
pub const KEYS: &str = "/etc/spile/keys";
/// Limits of users' sessions. No service can have this name: theirs end in `.conf`.
pub const LIMITS: &str = "/etc/spile/limits";
