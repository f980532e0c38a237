//! The library that turns a language runtime into a zygote: it replaces `fork`.
//!
//! A runtime is started once with this library loaded. It does its start-up work and calls `fork` once. That call does not
//! return in the caller: the process is now a zygote, which waits for requests, and in each fork that it makes the call
//! returns as a child's does, after the fork has entered its sandbox. Whatever the runtime does in children of a fork
//! (locks, random numbers) it does in every one of them.
//!
//! A fork has to be a child of the sandbox's init, in its PID namespace. So the zygote first makes a helper there, which
//! shares the zygote's memory; the helper forks and exits at once; and the kernel gives the orphan to init (`clone.rs`).
//! Memory is duplicated once, and only where it is written to.
//!
//! Nothing here allocates, takes a lock or panics. See docs/adr/0015.

#![cfg_attr(not(test), no_std)]

mod clone;
mod confine;
mod message;
mod sys;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use sandbox_protocol::MAX_DATAGRAM_BYTES;
use sandbox_protocol::zygote::{ForkStep, READY, ZygoteConfig};

use clone::Clones;
use message::{MAX_DESCRIPTORS, receive, send};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(101)
}

/// The core library refers to it; nothing here unwinds.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Set once in a fork: from then on `fork` is the C library's.
static IS_FORK: AtomicBool = AtomicBool::new(false);

/// What a runtime calls in place of the C library's `fork`.
// In a test, the test program needs the C library's own.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fork() -> c_int {
    // SAFETY: getenv demands a terminated name, and that nobody changes the environment while the result is used. A
    // runtime that forks has one thread at this point.
    let socket = unsafe { getenv(c"SANDBOX_FORK_SOCKET".as_ptr()) };
    if socket.is_null() || IS_FORK.load(Ordering::Relaxed) {
        return fork_of_the_c_library();
    }
    // SAFETY: from_ptr demands a terminated string, which getenv returns; it is only used in this statement.
    let socket = parse(unsafe { CStr::from_ptr(socket) });
    serve(socket);
    IS_FORK.store(true, Ordering::Relaxed);
    0
}

fn fork_of_the_c_library() -> c_int {
    const RTLD_NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
    // SAFETY: dlsym demands a handle and a terminated name. RTLD_NEXT asks for the definition that this one hides.
    let next = unsafe { dlsym(RTLD_NEXT, c"fork".as_ptr()) };
    if next.is_null() {
        return -1;
    }
    // SAFETY: transmute demands that the symbol is a function of this type. POSIX defines it so, and null was excluded.
    let next = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(next) };
    next()
}

/// Serves requests until the supervisor is gone. Returns only in forks.
fn serve(socket: c_int) {
    let mut config_bytes = [0_u8; MAX_DATAGRAM_BYTES];
    let mut descriptors = [-1; MAX_DESCRIPTORS];
    let (length, _) = receive(socket, &mut config_bytes, &mut descriptors);
    let config = config_bytes.get(..length).map(ZygoteConfig::decode);
    let Some(Ok(config)) = config else { sys::exit(1) };
    let process = sys::GETPID.call(0, 0, 0);
    let own = sys::PIDFD_OPEN.call(process, 0, 0);
    let clones = Clones::prepare(process);
    send(socket, READY, None);
    let mut request = [0_u8; 64];
    loop {
        let (length, count) = receive(socket, &mut request, &mut descriptors);
        if length == 0 {
            sys::exit(0);
        }
        let Some(descriptors) = descriptors.get(..count) else { sys::exit(1) };
        let &[report, init, stdin, stdout, stderr, rules, ref cgroups @ ..] = descriptors else {
            sys::exit(1)
        };
        // From here on, new children are in the sandbox's PID namespace.
        let entered = sys::SETNS.call(init.into(), sys::CLONE_NEWPID, 0);
        match if entered == 0 { clones.fork_by_helper() } else { -1 } {
            0 => {
                clones.restore_thread_state();
                let streams = [stdin, stdout, stderr];
                let place = confine::Place { report, init, streams, rules, cgroups };
                return confine::confine(&config, &place);
            }
            helper if helper > 0 => clone::reap_helper(helper),
            _ => message::report_failure(report, ForkStep::Clone),
        }
        sys::SETNS.call(own, sys::CLONE_NEWPID, 0);
        for descriptor in descriptors {
            sys::CLOSE.call((*descriptor).into(), 0, 0);
        }
    }
}

/// Reads a decimal number, up to the first character that is no digit.
fn parse(text: &CStr) -> c_int {
    let digits = text.to_bytes().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |value: c_int, digit| {
        value.wrapping_mul(10).wrapping_add(c_int::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use super::*;
    use message::tests::pair;
    use sandbox_protocol::zygote::ForkReport;

    const EINVAL: i32 = 22;

    #[test]
    fn a_number_ends_at_the_first_other_character() {
        for (text, number) in [(c"17", 17), (c"0", 0), (c"", 0), (c"12x", 12), (c"-3", 0)] {
            assert_eq!(parse(text), number, "{text:?}");
        }
    }

    #[test]
    fn without_a_socket_fork_is_the_c_librarys() {
        let child = fork();
        if child == 0 {
            sys::exit(7);
        }
        assert!(child > 0);
        assert_eq!(clone::tests::wait_for(child), 7 << 8);
    }

    /// A zygote in a child process, and the supervisor's end of its socket.
    fn zygote() -> (c_int, OwnedFd) {
        let (ours, theirs) = pair();
        let child = fork_of_the_c_library();
        if child == 0 {
            drop(ours);
            serve(theirs.as_raw_fd());
            sys::exit(99);
        }
        (child, ours)
    }

    #[test]
    fn a_zygote_reports_what_failed_and_goes_on_until_its_supervisor_is_gone() {
        let (child, socket) = zygote();
        let filter = [0; 8];
        let config = ZygoteConfig { namespaces: 0, has_own_ids: false, seccomp_filter: &filter };
        send(socket.as_raw_fd(), &config.encode(), None);
        let mut bytes = [0; 64];
        let mut none = [-1; MAX_DESCRIPTORS];
        let (length, _) = receive(socket.as_raw_fd(), &mut bytes, &mut none);
        assert_eq!(&bytes[..length], READY);
        for _ in 0..2 {
            let (ours, theirs) = pair();
            let file = std::fs::File::open("/dev/null").unwrap();
            // Not the descriptor of an init.
            let mut descriptors = vec![theirs.as_raw_fd()];
            descriptors.extend([file.as_raw_fd(); 5]);
            message::tests::send_many(&socket, b"fork", &descriptors);
            drop(theirs);
            let (length, _) = receive(ours.as_raw_fd(), &mut bytes, &mut none);
            let report = ForkReport::decode(&bytes[..length]);
            assert_eq!(report, Ok(ForkReport::Failed { step: ForkStep::Clone, errno: EINVAL }));
        }
        drop(socket);
        assert_eq!(clone::tests::wait_for(child), 0);
    }

    #[test]
    fn a_zygote_without_a_configuration_exits() {
        for bytes in [&[][..], b"shrt", &[0; 12]] {
            let (child, socket) = zygote();
            if !bytes.is_empty() {
                send(socket.as_raw_fd(), bytes, None);
            }
            drop(socket);
            assert_eq!(clone::tests::wait_for(child), 1 << 8, "{bytes:?}");
        }
    }

    #[test]
    fn a_request_with_too_few_descriptors_ends_the_zygote() {
        let (child, socket) = zygote();
        let config = ZygoteConfig { namespaces: 0, has_own_ids: false, seccomp_filter: &[] };
        send(socket.as_raw_fd(), &config.encode(), None);
        let file = std::fs::File::open("/dev/null").unwrap();
        send(socket.as_raw_fd(), b"fork", Some(file.as_raw_fd()));
        assert_eq!(clone::tests::wait_for(child), 1 << 8);
    }
}
