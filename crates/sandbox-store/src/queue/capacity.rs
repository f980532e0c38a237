use std::collections::HashMap;

use super::Job;

/// What jobs use while they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The number of jobs.
    pub jobs: usize,
    /// The sum of their memory limits, in bytes.
    pub memory: u64,
}

/// The free capacity of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// What is free.
    pub free: Resources,
    /// The part of it that one owner can use. Jobs without an owner can use all of it.
    pub per_owner: Resources,
    /// The owners that have used some of their part, each with the rest.
    pub owners: HashMap<String, Resources>,
}

/// Whether a job can start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can start.
    Now,
    /// There is not enough shared capacity, such as memory. Others may overtake the job, but not for ever.
    NoCapacity,
    /// Its owner has reached a limit of its own. All jobs of the owner are passed over.
    OwnerAtLimit,
}

impl Resources {
    /// Whether one more job with this memory limit fits.
    fn has_room(self, memory: u64) -> bool {
        self.jobs > 0 && self.memory >= memory
    }
}

impl Capacity {
    /// Returns whether a job fits.
    pub fn fit(&self, job: &Job) -> Fit {
        let of_owner = job.owner.as_ref().map(|owner| self.owners.get(owner));
        let of_owner = of_owner.map(|rest| rest.copied().unwrap_or(self.per_owner));
        if of_owner.is_some_and(|rest| !rest.has_room(job.memory)) {
            Fit::OwnerAtLimit
        } else if self.free.has_room(job.memory) {
            Fit::Now
        } else {
            Fit::NoCapacity
        }
    }
}
