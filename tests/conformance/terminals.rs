//! Pseudo-terminals, which programs that drive other programs need.

use sandbox::Status;
use sandbox_tests::backend::{
    Feature, execute, has, with_each_backend, with_each_backend_that_has,
};

use crate::table::python;

/// Starts a shell on a terminal of its own, sets the size, types a word, and prints what came back.
const DRIVER: &str = r#"
import fcntl, os, pty, struct, termios
child, terminal = pty.fork()
if child == 0:
    os.execvp("sh", ["sh", "-c", "read go; tty; stty size; echo seen > /dev/tty; read x; echo got $x"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
os.write(terminal, b"go\nword\n")
shown = b""
try:
    while True:
        shown += os.read(terminal, 1024)
except OSError:
    pass
print(shown.decode().replace("\r", "").replace("go\n", "").replace("word\n", "", 1), end="")
"#;

#[test]
fn a_program_can_drive_another_one_on_a_terminal() {
    with_each_backend_that_has(&[Feature::Terminals], |sandbox| {
        let Some(report) = execute("terminals", sandbox, python(DRIVER)) else { return };
        assert_eq!(report.status, Status::Completed);
        assert_eq!(report.stdout, "/dev/pts/0\n30 100\nseen\ngot word\n");
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    });
}

#[test]
fn terminals_are_limited_and_private() {
    let code = "import os\nprint(sorted(os.listdir('/dev/pts')))\nopened = []\n\
                try:\n    while True:\n        opened.append(os.open('/dev/ptmx', os.O_RDWR))\n\
                except OSError as error:\n    print(len(opened), error.strerror)\n\
                try:\n    os.open('/dev/tty', os.O_RDWR)\n\
                except OSError as error:\n    print(error.strerror)";
    with_each_backend_that_has(&[Feature::Terminals], |sandbox| {
        let Some(report) = execute("terminals", sandbox, python(code)) else { return };
        let wanted = "['ptmx']\n16 No space left on device\nNo such device or address\n";
        assert_eq!(report.stdout, wanted);
    });
}

#[test]
fn no_ioctl_injects_input_into_a_terminal() {
    let code = "import fcntl, pty, termios\n_, terminal = pty.openpty()\n\
                try:\n    fcntl.ioctl(terminal, termios.TIOCSTI, b'x')\n\
                except OSError as error:\n    print(error.strerror)";
    with_each_backend(|sandbox| {
        let Some(report) = execute("terminals", sandbox, python(code)) else { return };
        assert_eq!(report.stdout, "Operation not permitted\n");
        let named = usize::from(has(&report, Feature::NamedDenials));
        assert_eq!(report.violations.len(), named, "{:?}", report.violations);
    });
}
