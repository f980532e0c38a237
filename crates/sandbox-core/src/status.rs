use std::fmt;

use serde::{Deserialize, Serialize};

/// How an execution ended, or its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not started.
    Queued,
    /// Started, not ended.
    Running,
    /// The program exited with code 0.
    Completed,
    /// The program exited with another code, or a signal of its own killed it.
    RuntimeError,
    /// Compilation failed.
    CompileError,
    /// The wall-clock or CPU time limit was exceeded.
    Timeout,
    /// The memory limit was exceeded.
    MemoryLimit,
    /// The output limit was exceeded, by output or by collected files.
    OutputLimit,
    /// The client cancelled it.
    Cancelled,
    /// Internal error; never caused by the program.
    Error,
}

impl Status {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::RuntimeError => "runtime_error",
            Self::CompileError => "compile_error",
            Self::Timeout => "timeout",
            Self::MemoryLimit => "memory_limit",
            Self::OutputLimit => "output_limit",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of an execution with limits and resource usage of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Turns sources into a program.
    Compile,
    /// Runs the program.
    Run,
}

impl Stage {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Run => "run",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much of a sandbox existed when a stage requested it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Nothing: it was built on request.
    #[default]
    Cold,
    /// The sandbox.
    Prepared,
    /// The sandbox, with a runtime that waits in it.
    Warm,
}
