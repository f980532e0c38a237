//! Starting the program: a fork, and what its child does before exec.

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use sandbox_protocol::Message as _;
use sandbox_protocol::notice::StepFailure;

use crate::channel::{AtStep as _, unexpected};
use crate::landlock::Rules;
use crate::seccomp;
use crate::socket;
use crate::sys::{self, check};
use crate::user::User;
use crate::writes::SignalSet;

/// What the child sends with the listener of its filter.
const LISTENER: &[u8] = &[0];
/// Exit code of a child that could not become the program.
const NOT_STARTED: c_int = 127;

/// The kernel's `struct rlimit`.
#[repr(C)]
struct RLimit {
    soft: c_ulong,
    hard: c_ulong,
}

/// The kernel's `struct sigaction`; all zero is the default action.
#[repr(C)]
#[derive(Default)]
struct KernelSigaction {
    handler: usize,
    flags: c_ulong,
    restorer: usize,
    mask: u64,
}

unsafe extern "C" {
    fn execve(path: *const c_char, argv: *const *const c_char, env: *const *const c_char) -> c_int;
    fn chdir(path: *const c_char) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn getrlimit(resource: c_int, limit: *mut RLimit) -> c_int;
    fn setrlimit(resource: c_int, limit: *const RLimit) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut c_void) -> c_int;
    // These take numbers only.
    safe fn setsid() -> c_int;
    safe fn _exit(code: c_int) -> !;
}

/// Everything between fork and exec.
pub(crate) struct Program {
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) directory: CString,
    pub(crate) rlimits: Vec<(u64, u64)>,
    /// Instructions as the kernel takes them; empty for no filter.
    pub(crate) seccomp_filter: Vec<u8>,
    /// Whether the agent answers denied calls.
    pub(crate) has_listener: bool,
    pub(crate) user: User,
    pub(crate) landlock: Option<Rules>,
}

/// A list as execve wants it: pointers, the last of which is null. The strings must outlive it.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Starts the program with these streams and returns its process ID. The child reports on the socket; see
/// [`wait_for_exec`].
pub(crate) fn start(
    program: &Program,
    streams: [&OwnedFd; 3],
    report: &OwnedFd,
) -> io::Result<c_int> {
    let (argv, env) = (pointers(&program.argv), pointers(&program.env));
    let process = sys::fork()?;
    if process == 0 {
        let failure = become_program(program, streams, report, &argv, &env);
        // If this cannot be sent, the agent is gone.
        let _ = socket::send(report, &failure.encode(), None);
        _exit(NOT_STARTED);
    }
    Ok(process)
}

/// Waits until the child has become the program. Returns the listener of its filter, if it has one.
pub(crate) fn wait_for_exec(socket: &OwnedFd) -> Result<Option<OwnedFd>, StepFailure> {
    const STEP: &str = "wait for the program's start";
    let mut listener = None;
    loop {
        let (message, descriptor) = socket::receive(socket).at(STEP)?;
        match (message.as_slice(), descriptor) {
            // Exec closed the other end.
            ([], _) => return Ok(listener),
            (LISTENER, Some(descriptor)) => listener = Some(descriptor),
            (message, _) => {
                return match StepFailure::decode(message) {
                    Ok(failure) => Err(failure),
                    Err(_) => Err(unexpected()).at(STEP),
                };
            }
        }
    }
}

/// In the child: confines it and executes the program. Returns only if that fails.
fn become_program(
    program: &Program,
    streams: [&OwnedFd; 3],
    report: &OwnedFd,
    argv: &[*const c_char],
    env: &[*const c_char],
) -> StepFailure {
    if let Err(failure) = confine(program, streams, report) {
        return failure;
    }
    // SAFETY: execve(2) demands a terminated path and null-terminated lists of terminated strings; `pointers` makes such
    // lists, and `program`, which owns the strings, outlives the call. An empty `argv` has a null path, which the kernel
    // reports as an error.
    unsafe { execve(argv.first().copied().unwrap_or_default(), argv.as_ptr(), env.as_ptr()) };
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    StepFailure { step: "start the program".to_owned(), errno }
}

fn confine(program: &Program, streams: [&OwnedFd; 3], report: &OwnedFd) -> Result<(), StepFailure> {
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    check(setsid()).at("start a session")?;
    reset_signals().at("reset the signals")?;
    for (target, stream) in (0..).zip(streams) {
        // SAFETY: dup2(2) takes two descriptors. The standard streams of this process, which it replaces, have no owner
        // that would use them again: the child only goes on to exec.
        check(unsafe { dup2(stream.as_raw_fd(), target) }).at("set up the standard streams")?;
    }
    close_others_on_exec();
    program.user.become_program().at("switch to the program's user")?;
    // SAFETY: chdir(2) reads a terminated path, which outlives the call.
    check(unsafe { chdir(program.directory.as_ptr()) }).at("enter the initial directory")?;
    for (resource, value) in &program.rlimits {
        lower_limit(*resource, *value).at("set a resource limit")?;
    }
    let (one, zero): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: this option takes four numbers, the last three of which must be 0, each with the width of a register.
    check(unsafe { prctl(PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) })
        .at("give up new privileges")?;
    if let Some(rules) = &program.landlock {
        rules.restrict().at("apply the Landlock rules")?;
    }
    if program.seccomp_filter.is_empty() {
        return Ok(());
    }
    let step = "install the system-call filter";
    match seccomp::install(&program.seccomp_filter, program.has_listener).at(step)? {
        Some(listener) => socket::send(report, LISTENER, Some(&listener)).at(step),
        None => Ok(()),
    }
}

/// Undoes what the agent did to signals: ignored and blocked ones stay so across exec.
fn reset_signals() -> io::Result<()> {
    const SIGNALS: c_long = 64;
    const NOTHING: *mut KernelSigaction = std::ptr::null_mut();
    const SIG_SETMASK: c_int = 2;
    const SYS_RT_SIGACTION: c_long = if cfg!(target_arch = "aarch64") { 134 } else { 13 };
    const KERNEL_SET_BYTES: usize = 8;
    let default = KernelSigaction::default();
    for number in 1..=SIGNALS {
        // SAFETY: rt_sigaction(2) reads a kernel sigaction, which outlives the call, and with a null pointer writes none.
        // The default action needs no handler. The C library's function refuses two signals. It fails for those whose
        // action cannot be changed.
        unsafe { syscall(SYS_RT_SIGACTION, number, &raw const default, NOTHING, KERNEL_SET_BYTES) };
    }
    let none = SignalSet([0; 16]);
    // SAFETY: sigprocmask(2) reads a set of the C library's size and, with a null pointer, writes none.
    check(unsafe { sigprocmask(SIG_SETMASK, &raw const none, std::ptr::null_mut()) }).map(drop)
}

/// Every descriptor of the agent is close-on-exec already; this covers what a runtime may have left open. A kernel without
/// the call returns an error, which changes nothing.
fn close_others_on_exec() {
    const SYS_CLOSE_RANGE: c_long = 436;
    const FIRST: c_long = 3;
    const LAST: c_long = u32::MAX as c_long;
    const CLOSE_RANGE_CLOEXEC: c_long = 4;
    // SAFETY: close_range(2) takes numbers, and with this flag closes nothing that this process still uses.
    unsafe { syscall(SYS_CLOSE_RANGE, FIRST, LAST, CLOSE_RANGE_CLOEXEC) };
}

/// Lowers a limit to this value. A container may have a lower one already, and none is raised. A limit that is already right
/// is not set, because not every kernel implements setting all of them.
fn lower_limit(resource: u64, value: u64) -> io::Result<()> {
    let resource = c_int::try_from(resource).map_err(io::Error::other)?;
    let mut limit = RLimit { soft: 0, hard: 0 };
    // SAFETY: getrlimit(2) writes one limit, which outlives the call.
    check(unsafe { getrlimit(resource, &raw mut limit) })?;
    let value = limit.hard.min(value);
    if limit.soft == value && limit.hard == value {
        return Ok(());
    }
    let limit = RLimit { soft: value, hard: value };
    // SAFETY: setrlimit(2) reads one limit, which outlives the call.
    check(unsafe { setrlimit(resource, &raw const limit) }).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;
    use crate::deny::{DenyListener, DenyRules};

    const RLIMIT_NOFILE: u64 = 7;
    const ENOENT: i32 = 2;
    const SYS_GETPPID: u32 = if cfg!(target_arch = "aarch64") { 173 } else { 110 };

    fn program(argv: &[&str]) -> Program {
        let strings = |strings: &[&str]| -> Vec<CString> {
            strings.iter().map(|string| CString::new(*string).unwrap()).collect()
        };
        Program {
            argv: strings(argv),
            env: strings(&["LC_ALL=C", "NAME=value"]),
            directory: c"/".to_owned(),
            rlimits: Vec::new(),
            seccomp_filter: Vec::new(),
            has_listener: false,
            user: User::new(None),
            landlock: None,
        }
    }

    /// Starts a program; returns what `wait_for_exec` does and a reader of its output.
    fn started(program: &Program) -> (Result<Option<OwnedFd>, StepFailure>, File) {
        let (ours, theirs) = socket::pair().unwrap();
        let (stdin, _) = sys::pipe().unwrap();
        let (reader, writer) = sys::pipe().unwrap();
        start(program, [&stdin, &writer, &writer], &theirs).unwrap();
        drop(theirs);
        (wait_for_exec(&ours), reader.into())
    }

    fn output(program: &Program) -> String {
        let (outcome, mut reader) = started(program);
        assert!(matches!(outcome, Ok(None)), "{outcome:?}");
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_program_has_its_arguments_environment_directory_and_session() {
        let script = "echo $0 $1 $NAME $(pwd); ps -o sid= -p $$ 2>/dev/null | tr -d ' '; echo $$";
        let text = output(&program(&["/bin/sh", "-c", script, "zero", "one"]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "zero one value /");
        assert!(lines.len() == 2 || lines[1] == lines[2], "{text}");
    }

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let limited = Program {
            rlimits: vec![(RLIMIT_NOFILE, 64), (RLIMIT_NOFILE, 1 << 30)],
            ..program(&["/bin/sh", "-c", "ulimit -n; ulimit -Hn"])
        };
        assert_eq!(output(&limited), "64\n64\n");
    }

    #[test]
    fn descriptors_and_signals_of_the_agent_stay_behind() {
        let shell = program(&[
            "/bin/sh",
            "-c",
            "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\t'; ls /proc/self/fd | wc -l",
        ]);
        let text = output(&shell);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["SigBlk:0000000000000000", "SigIgn:0000000000000000"]);
        // The three streams, and the directory that `ls` lists.
        assert_eq!(lines[2].trim(), "4");
    }

    #[test]
    fn a_failure_before_the_program_names_its_step() {
        for (broken, step) in [
            (program(&["/nonexistent"]), "start the program"),
            (
                Program { directory: c"/nonexistent".to_owned(), ..program(&["/bin/true"]) },
                "enter the initial directory",
            ),
        ] {
            let failure = started(&broken).0.unwrap_err();
            assert_eq!((failure.step.as_str(), failure.errno), (step, ENOENT));
        }
        let no_resource = Program { rlimits: vec![(1000, 1)], ..program(&["/bin/true"]) };
        assert_eq!(started(&no_resource).0.unwrap_err().step, "set a resource limit");
        let no_filter = Program { seccomp_filter: vec![0xff; 8], ..program(&["/bin/true"]) };
        assert_eq!(started(&no_filter).0.unwrap_err().step, "install the system-call filter");
    }

    /// A filter that asks about getppid and allows the rest.
    fn notify_getppid() -> Vec<u8> {
        const LOAD: u16 = 0x20;
        const JUMP_IF_EQUAL: u16 = 0x15;
        const RETURN: u16 = 0x06;
        const ALLOW: u32 = 0x7fff_0000;
        const NOTIFY: u32 = 0x7fc0_0000;
        let instruction = |code: u16, if_true: u8, if_false: u8, value: u32| {
            let mut bytes = code.to_ne_bytes().to_vec();
            bytes.extend([if_true, if_false]);
            bytes.extend(value.to_ne_bytes());
            bytes
        };
        [
            instruction(LOAD, 0, 0, 0),
            instruction(JUMP_IF_EQUAL, 0, 1, SYS_GETPPID),
            instruction(RETURN, 0, 0, NOTIFY),
            instruction(RETURN, 0, 0, ALLOW),
        ]
        .concat()
    }

    #[test]
    fn denied_calls_are_answered_and_reported() {
        use sandbox_protocol::agent::AgentEvent;
        // The shell asks for its parent when it starts.
        let confined = Program {
            seccomp_filter: notify_getppid(),
            has_listener: true,
            ..program(&["/bin/sh", "-c", "echo done"])
        };
        let (outcome, mut reader) = started(&confined);
        let listener = match outcome {
            Ok(Some(listener)) => listener,
            other => panic!("{other:?}"),
        };
        let mut deny = DenyListener::new(listener, DenyRules::default());
        let (events, output) = sys::pipe().unwrap();
        let mut events = File::from(events);
        deny.answer(&mut output.into()).unwrap();
        let message = crate::channel::receive(&mut events).unwrap().unwrap();
        let event = AgentEvent::decode(&message).unwrap();
        let AgentEvent::SyscallDenied { syscall, .. } = event else { panic!("{event:?}") };
        assert_eq!(syscall, SYS_GETPPID);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "done\n");
    }
}
