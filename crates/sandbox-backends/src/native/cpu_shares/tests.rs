use std::sync::atomic::{AtomicU64, Ordering};

use sandbox_linux::cgroup::{
    CgroupError, CgroupLimits, Entry, OomWatch, Removal, Usage as CgroupUsage,
};

use super::*;

/// A cgroup whose CPU time and class the tests see and set.
#[derive(Default)]
struct Fake {
    cpu_millis: AtomicU64,
    background: AtomicU64,
    /// Set if it was bound.
    cpus: Mutex<Option<CpuSet>>,
}

impl Fake {
    fn use_cpu(&self, millis: u64) {
        self.cpu_millis.fetch_add(millis, Ordering::Relaxed);
    }

    fn is_background(&self) -> bool {
        self.background.load(Ordering::Relaxed) == 1
    }

    fn cpus(&self) -> Option<CpuSet> {
        *self.cpus.lock().unwrap()
    }
}

impl Cgroup for Fake {
    fn cpu_total(&self) -> Result<Duration, CgroupError> {
        Ok(Duration::from_millis(self.cpu_millis.load(Ordering::Relaxed)))
    }

    fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        self.background.store(is_background.into(), Ordering::Relaxed);
        Ok(())
    }

    fn bind(&self, cpus: &CpuSet) -> Result<(), CgroupError> {
        *self.cpus.lock().unwrap() = Some(*cpus);
        Ok(())
    }

    fn entry(&self) -> Result<Entry, CgroupError> {
        Ok(Entry::Nothing)
    }

    fn set_limits(&self, _: &CgroupLimits) -> Result<(), CgroupError> {
        Ok(())
    }

    fn reset_peak(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn usage(&self) -> Result<CgroupUsage, CgroupError> {
        Ok(CgroupUsage::default())
    }

    fn tasks(&self) -> Result<u64, CgroupError> {
        Ok(0)
    }

    fn oom_kills(&self) -> Result<u64, CgroupError> {
        Ok(0)
    }

    fn oom_watch(&self) -> Result<Option<OomWatch>, CgroupError> {
        Ok(None)
    }

    fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        Ok(Vec::new())
    }

    fn kill(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn path_for_runtimes(&self) -> Option<String> {
        None
    }

    fn make_child(&self, _: &str) -> Result<Box<dyn Cgroup>, CgroupError> {
        Ok(Box::new(Self::default()))
    }

    fn removal(&self) -> Result<Vec<Removal>, CgroupError> {
        Ok(Vec::new())
    }

    fn remove(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn dissolve(self: Box<Self>) -> Result<(), CgroupError> {
        Ok(())
    }
}

/// Owners on a machine with two CPUs, of which a quarter of one is an eighth.
struct Machine {
    shares: CpuShares,
    hierarchy: Hierarchy,
    now: Instant,
}

impl Machine {
    fn new() -> Self {
        Self::with_cpus(&[0, 1])
    }

    /// A machine on which these CPUs can be used.
    fn with_cpus(usable: &[usize]) -> Self {
        let hierarchy = Hierarchy::none("a test");
        Self { shares: CpuShares::new(2, Some(set(usable))), hierarchy, now: Instant::now() }
    }

    /// Lets an owner work for a moment.
    fn work(&self, owner: &str) {
        self.leave(&Fake::default(), self.enter(&Fake::default(), owner));
    }

    fn enter(&self, cgroup: &Fake, owner: &str) -> CpuShare {
        let owner = Some(owner.to_owned());
        self.shares.enter(&self.hierarchy, cgroup, owner, Duration::ZERO, self.now)
    }

    fn leave(&self, cgroup: &Fake, share: CpuShare) {
        self.shares.leave(&self.hierarchy, cgroup, share, self.now);
    }

    /// Lets this time pass for a sandbox that runs.
    fn run(&mut self, time: Duration, cgroup: &Fake, share: &mut CpuShare) {
        self.now += time;
        self.shares.check(&self.hierarchy, cgroup, share, self.now);
    }

    fn outer_is_in_background(&self) -> bool {
        self.shares.lock().is_outer_in_background
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    set
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_heavy_owner_gives_way_to_a_light_one_and_to_the_supervisor() {
    let mut machine = Machine::new();
    let (light, heavy) = (Fake::default(), Fake::default());
    let first = machine.enter(&light, "light");
    light.use_cpu(2);
    machine.leave(&light, first);
    let mut share = machine.enter(&heavy, "heavy");
    assert!(!heavy.is_background());
    heavy.use_cpu(500);
    machine.run(SECOND / 2, &heavy, &mut share);
    assert!(heavy.is_background() && machine.outer_is_in_background());
    let next = machine.enter(&light, "light");
    assert!(!light.is_background());
    assert!(!machine.outer_is_in_background(), "or the light one would wait for the host");
    machine.leave(&light, next);
    assert!(machine.outer_is_in_background());
    machine.leave(&heavy, share);
    assert!(heavy.is_background(), "its processes have still to end");
    assert!(!machine.outer_is_in_background());
}

#[test]
fn many_short_programs_are_as_heavy_as_a_long_one() {
    let machine = Machine::new();
    machine.leave(&Fake::default(), machine.enter(&Fake::default(), "light"));
    let last = (0..100).map(|_| {
        let cgroup = Fake::default();
        let share = machine.enter(&cgroup, "heavy");
        let starts_in_background = cgroup.is_background();
        cgroup.use_cpu(5);
        machine.leave(&cgroup, share);
        starts_in_background
    });
    assert_eq!(last.last(), Some(true));
}

#[test]
fn an_owner_that_is_alone_stays_in_the_foreground() {
    let mut machine = Machine::new();
    let cgroup = Fake::default();
    let mut share = machine.enter(&cgroup, "heavy");
    cgroup.use_cpu(5_000);
    machine.run(SECOND, &cgroup, &mut share);
    assert!(!cgroup.is_background());
    let other = Fake::default();
    let others = machine.enter(&other, "other");
    machine.run(SECOND / 2, &cgroup, &mut share);
    assert!(cgroup.is_background(), "the next look finds the other owner");
    machine.leave(&other, others);
    // It still computes, and nobody else has come for a minute.
    for _ in 0..61 {
        cgroup.use_cpu(1_000);
        machine.run(SECOND, &cgroup, &mut share);
    }
    assert!(!cgroup.is_background());
    machine.leave(&cgroup, share);
}

#[test]
fn use_is_forgotten() {
    let mut machine = Machine::new();
    let (other, cgroup) = (Fake::default(), Fake::default());
    machine.leave(&other, machine.enter(&other, "other"));
    let mut share = machine.enter(&cgroup, "heavy");
    cgroup.use_cpu(1_000);
    machine.run(SECOND, &cgroup, &mut share);
    assert!(cgroup.is_background());
    machine.run(SECOND, &cgroup, &mut share);
    assert!(cgroup.is_background(), "half of it is still heavy");
    machine.run(3 * SECOND, &cgroup, &mut share);
    assert!(!cgroup.is_background());
    machine.leave(&cgroup, share);
}

#[test]
fn a_sandbox_without_an_owner_is_neither_counted_nor_put_into_the_background() {
    let machine = Machine::new();
    let cgroup = Fake::default();
    let share =
        machine.shares.enter(&machine.hierarchy, &cgroup, None, Duration::ZERO, machine.now);
    assert_eq!(share.next_check(), None);
    cgroup.use_cpu(5_000);
    machine.leave(&cgroup, share);
    let state = machine.shares.lock();
    assert!(state.owners.is_empty());
    assert_eq!((state.foreground, state.background), (0, 0));
}

#[test]
fn a_heavy_owner_leaves_one_cpu_to_a_light_one_that_works() {
    let mut machine = Machine::with_cpus(&[2, 3, 5]);
    machine.work("light");
    let heavy = Fake::default();
    let mut share = machine.enter(&heavy, "heavy");
    assert_eq!(heavy.cpus(), None, "its class has not changed");
    heavy.use_cpu(1000);
    machine.run(SECOND / 2, &heavy, &mut share);
    assert_eq!(heavy.cpus(), Some(set(&[3, 5])));
    heavy.use_cpu(IDLE_AFTER.as_millis().try_into().unwrap());
    machine.run(IDLE_AFTER, &heavy, &mut share);
    assert!(heavy.is_background(), "the other is still there");
    assert_eq!(heavy.cpus(), Some(set(&[2, 3, 5])), "and needs no CPU of its own");
    machine.work("light");
    heavy.use_cpu(1000);
    machine.run(SECOND, &heavy, &mut share);
    assert_eq!(heavy.cpus(), Some(set(&[3, 5])));
    machine.run(10 * SECOND, &heavy, &mut share);
    assert!(!heavy.is_background());
    assert_eq!(heavy.cpus(), Some(set(&[2, 3, 5])));
    machine.leave(&heavy, share);
}

#[test]
fn neither_the_only_cpu_nor_one_among_heavy_owners_is_reserved() {
    for (usable, other_use) in [(&[1][..], 2), (&[0, 1], 1000)] {
        let mut machine = Machine::with_cpus(usable);
        let (first, second) = (Fake::default(), Fake::default());
        let mut share = machine.enter(&first, "first");
        let mut other = machine.enter(&second, "second");
        second.use_cpu(other_use);
        machine.run(SECOND / 2, &second, &mut other);
        first.use_cpu(500);
        machine.run(Duration::ZERO, &first, &mut share);
        assert!(first.is_background());
        assert_eq!(first.cpus(), None);
        machine.leave(&first, share);
        machine.leave(&second, other);
    }
}
