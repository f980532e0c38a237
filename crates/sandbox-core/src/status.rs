use std::fmt;

use serde::{Deserialize, Serialize};

/// How an execution ended, or where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, not begun.
    Queued,
    /// Begun, not ended.
    Running,
    /// The program ended by itself with code 0.
    Completed,
    /// The program ended with another code, or by a signal of its own.
    RuntimeError,
    /// The compiler said no.
    CompileError,
    /// Wall clock or CPU time ran out.
    Timeout,
    /// Its memory limit ended it.
    MemoryLimit,
    /// It printed, or left in collected files, more than allowed.
    OutputLimit,
    /// The client asked for its end.
    Cancelled,
    /// Our failure, never the program's.
    Error,
}

impl Status {
    /// The word used in reports.
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

/// A part of an execution with limits and figures of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From sources to something that can run.
    Compile,
    /// The program itself.
    Run,
}

impl Stage {
    /// The word used in reports.
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
