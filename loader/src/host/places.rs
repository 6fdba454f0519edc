// SPDX-License-Identifier: GPL-2.0-or-later

//! Files below /etc/spile that root writes for all users.

/// Services' configurations, `NAME.conf`.
pub const SERVICES: &str = "/etc/spile";
/// Directory of certificates: X.509 in DER, with any file names.
pub const KEYS: &str = "/etc/spile/keys";
/// Limits for users' sessions. Cannot be a service's configuration, whose name ends in `.conf`.
pub const LIMITS: &str = "/etc/spile/limits";
