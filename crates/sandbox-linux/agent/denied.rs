//! Calls that the filter does not allow: each is answered as the profile says, and told to the supervisor, who counts
//! them by name.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::frame::{Packer, Unpacker, send, to_supervisor};
use crate::system::{self, DeniedCall};

/// So many are answered at once. After that each waits a little: answering costs CPU time that is not the program's.
const FREE_ANSWERS: u64 = 1000;
const ANSWER_PAUSE: Duration = Duration::from_millis(1);
/// What a kernel answers that does not have the call.
const ENOSYS: i32 = 38;

/// How each call is answered.
#[derive(Default)]
pub(crate) struct Answers(HashMap<u64, Vec<Rule>>);

struct Rule {
    errno: i32,
    conditions: Vec<Condition>,
}

struct Condition {
    argument: usize,
    mask: u64,
    is_one: bool,
    values: Vec<u64>,
}

impl Answers {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut unpacker = Unpacker(bytes);
        let calls = unpacker.list(|unpacker| Some((unpacker.number()?, unpacker.list(rule)?)));
        Some(Self(calls?.into_iter().collect()))
    }

    fn to(&self, call: &DeniedCall) -> i32 {
        let rules = u64::try_from(call.number).ok().and_then(|number| self.0.get(&number));
        let rule = rules.and_then(|rules| rules.iter().find(|rule| rule.speaks_of(call)));
        rule.map_or(ENOSYS, |rule| rule.errno)
    }
}

impl Rule {
    fn speaks_of(&self, call: &DeniedCall) -> bool {
        self.conditions.iter().all(|condition| {
            let value =
                call.arguments.get(condition.argument).copied().unwrap_or(0) & condition.mask;
            condition.values.contains(&value) == condition.is_one
        })
    }
}

fn rule(unpacker: &mut Unpacker<'_>) -> Option<Rule> {
    let errno = i32::try_from(unpacker.number()?).ok()?;
    let conditions = unpacker.list(|unpacker| {
        Some(Condition {
            argument: usize::try_from(unpacker.number()?).ok()?,
            mask: unpacker.number()?,
            is_one: unpacker.number()? != 0,
            values: unpacker.list(Unpacker::number)?,
        })
    })?;
    Some(Rule { errno, conditions })
}

/// Listens for denied calls.
pub(crate) struct Denied {
    pub(crate) listener: OwnedFd,
    answers: Answers,
    count: u64,
}

impl Denied {
    pub(crate) fn new(listener: OwnedFd, answers: Answers) -> Self {
        Self { listener, answers, count: 0 }
    }

    /// Answers the next one, if there is one.
    pub(crate) fn answer(&mut self, output: &mut File) -> io::Result<()> {
        // A thread that was killed meanwhile needs no answer.
        let Some(call) = system::next_denied(&self.listener) else { return Ok(()) };
        self.count += 1;
        if self.count > FREE_ANSWERS {
            std::thread::sleep(ANSWER_PAUSE);
        }
        system::refuse(&self.listener, &call, self.answers.to(&call));
        let mut told = Packer::default();
        told.number(u64::from(call.number.unsigned_abs()));
        for argument in call.arguments {
            told.number(argument);
        }
        send(output, to_supervisor::DENIED, &told.0)
    }
}
