//! The program's CPU time and I/O, without what was used before its start.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::process::Pid;
use sandbox_protocol::notice::ExitNotice;

use crate::syscall::{self, CpuTimes, UsageOf};

/// Counters at the program's start.
#[derive(Default)]
pub(super) struct Baseline {
    io: (u64, u64),
    init: CpuTimes,
    /// What a waiting runtime had used by then.
    warming_io: (u64, u64),
    warming_micros: u64,
}

impl Baseline {
    /// Reads the counters. `waiting` is the runtime that is about to run the program, if there is
    /// one.
    pub(super) fn now(counters: Option<&IoCounters>, waiting: Option<Pid>) -> Self {
        let its_own = waiting.and_then(IoCounters::of);
        Self {
            io: counters.map(IoCounters::read).unwrap_or_default(),
            init: syscall::cpu_times(UsageOf::Process),
            warming_io: its_own.as_ref().map(IoCounters::read).unwrap_or_default(),
            warming_micros: waiting.map_or(0, syscall::cpu_micros_of),
        }
    }

    /// Subtracts the baseline from the counters at the exit.
    pub(super) fn subtract(&self, exit: ExitNotice, counters: Option<&IoCounters>) -> ExitNotice {
        let after = counters.map(IoCounters::read).unwrap_or_default();
        let own = |after: u64, before: u64, warming: u64| after.saturating_sub(before + warming);
        let total = exit.user_micros + exit.system_micros;
        // The split of the earlier CPU time is unknown; assume the same as overall.
        let share = |micros: u64| {
            let before = u128::from(self.warming_micros) * u128::from(micros);
            let before = before.checked_div(u128::from(total)).unwrap_or(0);
            micros.saturating_sub(u64::try_from(before).unwrap_or(u64::MAX))
        };
        ExitNotice {
            read_bytes: own(after.0, self.io.0, self.warming_io.0),
            written_bytes: own(after.1, self.io.1, self.warming_io.1),
            user_micros: share(exit.user_micros),
            system_micros: share(exit.system_micros),
            init_user_micros: exit.init_user_micros.saturating_sub(self.init.user_micros),
            init_system_micros: exit.init_system_micros.saturating_sub(self.init.system_micros),
            ..exit
        }
    }
}

/// Bytes read and written by this process and all children that it reaped.
pub(super) struct IoCounters(File);

impl IoCounters {
    /// Opened while this process may access its own /proc files; the open file stays readable.
    pub(super) fn open() -> Option<Self> {
        File::open("/proc/self/io").ok().map(Self)
    }

    /// Of another process; `None` if it is gone.
    fn of(process: Pid) -> Option<Self> {
        File::open(format!("/proc/{process}/io")).ok().map(Self)
    }

    fn read(&self) -> (u64, u64) {
        let mut text = [0; 512];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        (value("rchar:").unwrap_or(0), value("wchar:").unwrap_or(0))
    }
}
