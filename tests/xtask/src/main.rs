// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask`: set-up, demonstration, tests and benchmarks of the project.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a developer's program: a panic ends it, and says where"
)]

mod agree;
mod attack;
mod bench;
mod beside_load;
mod compare;
mod compat;
mod converse;
mod debug_kernel;
mod demo;
mod docs;
#[cfg(test)]
mod editors;
mod family;
mod fixtures;
mod fuzz;
mod guest;
#[cfg(test)]
mod layout;
mod lint;
mod matrix;
mod measure;
mod model;
#[cfg(test)]
mod modules;
mod package;
mod parallel;
mod picture;
mod place;
mod programs;
#[cfg(test)]
mod promises;
mod random;
mod reference;
mod setup;
mod smp;
mod static_loader;
mod systemd;
mod test;
mod threads;
mod tree;
mod trusting;
mod user_programs;
mod vsix;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use tree::root;

/// The command line.
#[derive(Parser)]
#[command(about = "Setup, demonstration and tests of the project", bin_name = "cargo xtask")]
struct Arguments {
    /// The task
    #[command(subcommand)]
    task: Task,
}

/// The tasks, in the order of `--help`.
#[derive(Subcommand)]
enum Task {
    /// Installs the Debian packages that are missing, with apt-get
    Setup,
    /// Shows a live workaround in a guest; needs nothing but Rust on this machine
    Demo,
    /// Runs all tests: the unit tests, then the scripts under tests/, in a guest where they need a kernel
    Test(test::Options),
    /// Runs the guest tests on every kernel line, and writes the results into docs/kernels.md
    Matrix(matrix::Options),
    /// Runs the guest tests many times beside processes that keep CPUs busy; none may fail
    BesideLoad(beside_load::Options),
    /// Compares the output of random programs with a model of the language
    Model(model::Options),
    /// Runs random hostile scripts in guests; none may harm the kernel
    Attack(attack::Options),
    /// Compares variables at random statements of programs with what gdb finds there
    Agree(agree::Options),
    /// Runs scripts in user space on several threads, under ThreadSanitizer; their totals must be exact
    Threads(threads::Options),
    /// Hits probes on CPUs that run in parallel, in a guest of a newer qemu; all totals must be exact
    Smp(smp::Options),
    /// Gives random inputs to every reader of untrusted files; an input that crashes one becomes a seed of the tests
    Fuzz(fuzz::Options),
    /// Runs clippy on the whole workspace; a warning is an error
    Lint,
    /// Runs benchmarks and writes the results to docs/
    Bench(bench::Options),
    /// Compares two modules: exit status 1 and a line for each difference that matters to the kernel
    Compare(compare::Options),
    /// Counts the cases of a third-party suite that a compiler passes, and classifies the failures
    Compat(compat::Options),
    /// Sends the requests of a test to the language server and prints the responses
    Converse(converse::Options),
    /// Packages the extension for VS Code, and prints where it is
    Vsix,
    /// Builds the packages spile, spile-loader, spile-stap and spile-staprun, each as .deb and .rpm, and prints where they are
    Package(package::Options),
    /// Boots a Debian with systemd in guests, installs the packages there, and tests the life cycle of a service
    Systemd(systemd::Options),
    /// Writes the reference manual, docs/reference
    Reference,
    /// Builds the book of docs/ with mdbook, into target/book
    Docs(docs::Options),
    /// Draws the pictures of the documentation from the sessions recorded in docs/pictures
    Picture(picture::Options),
    /// Builds the static spilerun that is shipped, and prints its path
    StaticLoader,
    /// Runs the guest tests on a kernel with KASAN, lockdep and kmemleak, built from Debian's source
    DebugKernel(debug_kernel::Options),
    /// Builds 20 generated modules with 16,000 functions, and prints their path
    Family(family::Options),
    /// Runs shell commands in a guest with the test modules and spilerun
    Guest(guest::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Setup => setup::run(None).map(|()| ExitCode::SUCCESS),
        Task::Demo => demo::run(),
        Task::Test(options) => test::run(&options),
        Task::Matrix(options) => matrix::run(&options),
        Task::BesideLoad(options) => beside_load::run(&options),
        Task::Model(options) => model::run(&options),
        Task::Attack(options) => attack::run(&options),
        Task::Agree(options) => agree::run(&options),
        Task::Threads(options) => threads::run(&options),
        Task::Smp(options) => smp::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Lint => lint::run(),
        Task::Bench(options) => bench::run(&options),
        Task::Compare(options) => compare::run(&options),
        Task::Compat(options) => compat::run(&options),
        Task::Converse(options) => converse::run(&options),
        Task::Vsix => vsix::run(&root()),
        Task::Package(options) => package::run(&options),
        Task::Systemd(options) => systemd::run(&options),
        Task::Reference => reference::run(&root()),
        Task::Docs(options) => docs::run(&options),
        Task::Picture(options) => picture::run(&options),
        Task::StaticLoader => static_loader::run(),
        Task::DebugKernel(options) => debug_kernel::run(&options),
        Task::Family(options) => family::run(&options),
        Task::Guest(options) => guest::run(&options),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_all_tasks_are_well_defined() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
