//! Benchmarks that compare within one run, because only ratios survive on a shared machine.
//!
//! `sandbox-bench cold` asks what a sandbox costs that is built for one program and thrown away. The
//! program runs bare, under bubblewrap and in our sandbox, in turns, so that whatever else the machine
//! does falls on all alike ([`cases`], [`measure`]). Then it shows where our own time goes: by stage of
//! a run, and by wall ([`walls`]). [`table`] is for people, [`record`] for machines.
//!
//! `sandbox-bench compile` asks what compiling costs ([`compile`]).

mod cases;
mod cold;
mod compile;
mod host;
mod measure;
mod record;
mod table;
mod walls;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "sandbox-bench", about, version)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// What a single-use sandbox costs, against a bare process and bubblewrap.
    ///
    /// Ends with code 1 if a run of /bin/true in ours is not cheaper than under bubblewrap in every
    /// pacing.
    Cold(ColdArguments),
    /// What compiling and running hello costs: bare, new to us, and compiled before.
    ///
    /// Ends with code 1 if a program that was compiled before takes longer than compiling it bare.
    Compile(CompileArguments),
}

#[derive(Args)]
struct CompileArguments {
    /// Programs of each language.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Where compile.json and compile.txt go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct ColdArguments {
    /// Rounds with pauses; the other pacings do a multiple of it.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    rounds: u32,
    /// A few rounds only: to see that it works, not to quote figures.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Where cold.json and cold.txt go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

const QUICK_ROUNDS: u32 = 6;

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().benchmark {
        Benchmark::Cold(arguments) => {
            let rounds = if arguments.quick { QUICK_ROUNDS } else { arguments.rounds };
            cold::run(rounds as usize, &arguments.results)
        }
        Benchmark::Compile(arguments) => {
            compile::run(arguments.rounds as usize, &arguments.results)
        }
    }
}
