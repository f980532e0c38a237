//! Fair CPU time among owners: the sandboxes of an owner that uses much of it run in the background.
//!
//! Equal weights do not help a program that needs two milliseconds beside others that compute: at each of its
//! system calls it waits until they have finished their time slices. In the background (`cpu.idle`) they give way at
//! once, and still get all the CPU time that nothing else wants.
//!
//! An owner's use is counted with a half-life. An owner is heavy above an eighth of the machine, so that light owners
//! can keep heavy ones from no more than an eighth each; heavy owners are equals. While one owner is alone, nothing
//! is put into the background. The cgroup around all sandboxes is there too while nobody else's sandbox runs:
//! otherwise its weight would hold up the supervisor.
//!
//! A kernel without preemption finishes a system call of the background first, and what it leaves to the CPU to do
//! later (RCU callbacks, teardown). So sandboxes in the background are also kept off one CPU while a light owner works.
//! Nobody may need that CPU, so an owner counts as working for a shorter time than as present.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;
use sandbox_linux::cgroup::{Cgroup, Hierarchy};

/// Use counts half after this time.
const HALF_LIFE: Duration = Duration::from_secs(1);
/// An owner is heavy above this part of the machine's CPU time: one in this many parts.
const HEAVY_DIVISOR: f64 = 8.0;
/// An owner that has run nothing for this long is not there.
const ABSENT_AFTER: Duration = Duration::from_mins(1);
/// An owner that has run nothing for this long needs no CPU for itself.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// Limits on the interval at which the use of a running sandbox is counted.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(250);

/// How a sandbox competes for CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Foreground,
    Background,
    /// In the background, and off the CPU that is reserved for the foreground.
    Confined,
}

/// The recent use of CPU time by owner.
pub(crate) struct CpuShares {
    /// Decayed CPU seconds above which an owner is heavy.
    heavy_use: f64,
    cpus: Option<Cpus>,
    state: Mutex<State>,
}

/// The CPUs that sandboxes may use.
struct Cpus {
    all: CpuSet,
    /// All but the one that is reserved.
    unreserved: CpuSet,
}

#[derive(Default)]
struct State {
    owners: HashMap<String, Use>,
    foreground: usize,
    background: usize,
    /// Whether the cgroup around all sandboxes is in the background.
    is_outer_in_background: bool,
}

/// The recent use of one owner.
struct Use {
    /// Decayed CPU seconds at this time.
    recent: f64,
    at: Instant,
    is_heavy: bool,
}

/// The part of one sandbox in use. It must be returned to [`CpuShares::leave`].
pub(crate) struct CpuShare {
    owner: Option<String>,
    class: Class,
    /// CPU time of the cgroup that has been counted.
    counted: Duration,
    /// When to count again.
    next: Option<Instant>,
}

impl CpuShares {
    /// For a machine with this many CPUs. One of `usable` can be reserved, if there are several.
    pub(crate) fn new(cpus: usize, usable: Option<CpuSet>) -> Self {
        // A steady use of one CPU decays to this many seconds.
        let steady = HALF_LIFE.as_secs_f64() / std::f64::consts::LN_2;
        let cpus = u32::try_from(cpus).map_or(f64::MAX, f64::from);
        let heavy_use = steady * cpus / HEAVY_DIVISOR;
        Self { heavy_use, cpus: usable.and_then(Cpus::of), state: Mutex::default() }
    }

    /// Puts a sandbox where its owner's use belongs. Without an owner it stays in the foreground. `counted` is the
    /// CPU time of its preparation.
    pub(crate) fn enter(
        &self,
        hierarchy: &Hierarchy,
        cgroup: &dyn Cgroup,
        owner: Option<String>,
        counted: Duration,
        now: Instant,
    ) -> CpuShare {
        let mut share = CpuShare { owner, class: Class::Foreground, counted, next: None };
        let mut state = self.lock();
        *state.count(share.class) += 1;
        if let Some(owner) = &share.owner {
            let class = state.charge(owner, Duration::ZERO, self.heavy_use, now);
            share.next = Some(now + state.interval(owner, self.heavy_use));
            state.put(&mut share, class, cgroup);
        }
        state.adjust_outer(hierarchy);
        drop(state);
        self.bind(&share, Class::Foreground, cgroup);
        share
    }

    /// Counts what a sandbox has used since the last time, if it is time, and puts it where it belongs.
    pub(crate) fn check(
        &self,
        hierarchy: &Hierarchy,
        cgroup: &dyn Cgroup,
        share: &mut CpuShare,
        now: Instant,
    ) {
        if share.next.is_none_or(|next| next > now) {
            return;
        }
        let used = share.used(cgroup);
        let before = share.class;
        let mut state = self.lock();
        if let Some(owner) = &share.owner {
            let class = state.charge(owner, used, self.heavy_use, now);
            share.next = Some(now + state.interval(owner, self.heavy_use));
            state.put(share, class, cgroup);
            state.adjust_outer(hierarchy);
        }
        drop(state);
        self.bind(share, before, cgroup);
    }

    /// Counts the rest. The sandbox stays where it is: ending many processes takes CPU time too.
    pub(crate) fn leave(
        &self,
        hierarchy: &Hierarchy,
        cgroup: &dyn Cgroup,
        mut share: CpuShare,
        now: Instant,
    ) {
        let used = if share.owner.is_some() { share.used(cgroup) } else { Duration::ZERO };
        let mut state = self.lock();
        if let Some(owner) = &share.owner {
            state.charge(owner, used, self.heavy_use, now);
        }
        *state.count(share.class) -= 1;
        state.adjust_outer(hierarchy);
    }

    /// Sets the CPUs of a sandbox that belongs to its class. Not under the lock: it may have many threads, and while
    /// they were bound the last time, one that was not may have started others.
    fn bind(&self, share: &CpuShare, before: Class, cgroup: &dyn Cgroup) {
        let Some(Cpus { all, unreserved }) = &self.cpus else { return };
        // If the kernel refuses, it uses all CPUs. The cgroup may be gone already.
        let _ = match (before, share.class) {
            (_, Class::Confined) => cgroup.bind(unreserved),
            (Class::Confined, _) => cgroup.bind(all),
            _ => Ok(()),
        };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the state is half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cpus {
    /// Reserves the first; `None` if that is the only one.
    fn of(all: CpuSet) -> Option<Self> {
        let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu))?;
        let mut unreserved = all;
        unreserved.unset(first);
        (unreserved.count() > 0).then_some(Self { all, unreserved })
    }
}

impl CpuShare {
    /// When to call [`CpuShares::check`].
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.next
    }

    /// CPU time since the last call.
    fn used(&mut self, cgroup: &dyn Cgroup) -> Duration {
        let total = cgroup.cpu_total().unwrap_or(self.counted);
        let used = total.saturating_sub(self.counted);
        self.counted = total;
        used
    }
}

impl State {
    /// Adds to the use of an owner, and returns where its sandboxes belong.
    fn charge(&mut self, owner: &str, used: Duration, heavy_use: f64, now: Instant) -> Class {
        if !self.owners.contains_key(owner) {
            self.owners.retain(|_, other| !other.is_absent(now));
            let new = Use { recent: 0.0, at: now, is_heavy: false };
            self.owners.insert(owner.to_owned(), new);
        }
        let has_other = |wanted: &dyn Fn(&Use) -> bool| {
            self.owners.iter().any(|(name, other)| name != owner && wanted(other))
        };
        let is_alone = !has_other(&|other| !other.is_absent(now));
        let light_works = has_other(&|other| !other.is_heavy && !other.is_idle(now));
        let Some(own) = self.owners.get_mut(owner) else { return Class::Foreground };
        own.add(used, heavy_use, now);
        match (own.is_heavy && !is_alone, light_works) {
            (false, _) => Class::Foreground,
            (true, false) => Class::Background,
            (true, true) => Class::Confined,
        }
    }

    /// How soon one CPU could make this owner heavy.
    fn interval(&self, owner: &str, heavy_use: f64) -> Duration {
        let recent = self.owners.get(owner).map_or(0.0, |own| own.recent);
        let left = Duration::try_from_secs_f64(heavy_use - recent).unwrap_or(MAX_INTERVAL);
        left.clamp(MIN_INTERVAL, MAX_INTERVAL)
    }

    fn put(&mut self, share: &mut CpuShare, class: Class, cgroup: &dyn Cgroup) {
        if share.class == class {
            return;
        }
        *self.count(share.class) -= 1;
        *self.count(class) += 1;
        let was_foreground = share.class == Class::Foreground;
        share.class = class;
        if was_foreground == (class == Class::Foreground) {
            return;
        }
        // If the kernel refuses, the weights stay equal. The cgroup may be gone already.
        let _ = cgroup.set_background(class != Class::Foreground);
    }

    fn count(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Foreground => &mut self.foreground,
            Class::Background | Class::Confined => &mut self.background,
        }
    }

    fn adjust_outer(&mut self, hierarchy: &Hierarchy) {
        let is_background = self.background > 0 && self.foreground == 0;
        if self.is_outer_in_background != is_background {
            self.is_outer_in_background = is_background;
            let _ = hierarchy.set_background(is_background);
        }
    }
}

impl Use {
    fn add(&mut self, used: Duration, heavy_use: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.at);
        self.recent *= 0.5_f64.powf(passed.div_duration_f64(HALF_LIFE));
        self.recent += used.as_secs_f64();
        self.at = self.at.max(now);
        // An owner that was heavy must become much lighter, so that its sandboxes do not change all the time.
        let threshold = if self.is_heavy { heavy_use / 2.0 } else { heavy_use };
        self.is_heavy = self.recent > threshold;
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= IDLE_AFTER
    }

    fn is_absent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= ABSENT_AFTER
    }
}

#[cfg(test)]
mod tests;
