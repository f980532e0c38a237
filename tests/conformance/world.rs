//! The environment of a program: processes, files, users, clocks, network.

use sandbox::{Isolation, Protection, Report};
use sandbox_tests::backend::{Feature, has};

use crate::table::{bash, python};

table! {
    it_is_an_ordinary_user: bash("id; whoami; echo ~") => Completed, |report: &Report| {
        let user = user_of(report);
        assert_eq!(
            report.stdout,
            format!("uid={user}(sandbox) gid={user}(sandbox) groups={user}(sandbox)\nsandbox\n/tmp\n")
        );
    };
    it_has_no_capability [LinuxWorld]: bash("grep ^Cap /proc/self/status; grep NoNewPrivs /proc/self/status")
        => Completed, |report: &Report| {
            let sets: Vec<&str> = report.stdout.lines().filter(|line| line.starts_with("Cap")).collect();
            assert_eq!(sets.len(), 5);
            assert!(sets.iter().all(|line| line.ends_with("\t0000000000000000")), "{sets:?}");
            assert!(report.stdout.contains("NoNewPrivs:\t1"));
        };
    its_capabilities_are_none_and_cannot_become_some:
        python("import ctypes\nprint(*{line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')})\n\
                print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))")
        => Completed, |report: &Report| assert_eq!(report.stdout, "0000000000000000\n1\n");
    its_host_has_a_name_of_its_own: bash("uname -n; cat /etc/hostname") => Completed, |report: &Report| {
        assert_eq!(report.stdout, "sandbox\nsandbox\n");
    };
    its_root_holds_these_names_only [LinuxWorld]: python("import os\nprint(*sorted(os.listdir('/')))")
        => Completed, |report: &Report| {
            let expected = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "mnt", "proc", "sbin", "tmp", "usr", "work"];
            let docker: &[&str] = if is_docker(report) { &[".dockerenv", "sys"] } else { &[] };
            for name in report.stdout.split_whitespace() {
                assert!(expected.contains(&name) || docker.contains(&name), "/{name} should not be there");
            }
            for name in ["dev", "etc", "proc", "tmp", "usr", "work"] {
                assert!(report.stdout.split_whitespace().any(|found| found == name), "/{name} is missing");
            }
        };
    nothing_of_the_hosts_other_directories_is_there [LinuxWorld]:
        bash("ls -A /sys 2>/dev/null; ls -d /home /root /var /run /boot /media /opt /srv 2>/dev/null; ls -A /mnt 2>/dev/null; \
              touch /mnt/x 2>/dev/null && echo writable; echo end")
        => Completed, |report: &Report| assert_eq!(report.stdout, "end\n");
    its_users_are_made_up: bash("cut -d: -f1,3 /etc/passwd; cut -d: -f1,3 /etc/group") => Completed, |report: &Report| {
        let mut numbers = report.stdout.lines().filter_map(|line| line.strip_prefix("sandbox:"));
        let user = if is_docker(report) { numbers.next_back().unwrap_or("none") } else { "1000" };
        assert_eq!(
            report.stdout,
            format!("root:0\nsandbox:{user}\nnobody:65534\nroot:0\nsandbox:{user}\nnogroup:65534\n")
        );
    };
    its_configuration_holds_nothing_secret:
        bash("ls /etc; cat /etc/shadow /etc/gshadow /etc/sudoers /etc/fstab /etc/machine-id 2>/dev/null; true")
        => Completed, |report: &Report| {
            let known = [
                "alternatives", "debian_version", "group", "hostname", "hosts", "ld.so.cache", "localtime",
                "mime.types", "nsswitch.conf", "os-release", "passwd", "pki", "protocols", "resolv.conf",
                "services", "ssl", "timezone",
            ];
            let is_agent = |name: &&str| report.isolation != Isolation::Native && *name == "sandbox-agent";
            let is_link_to_mounts = |name: &&str| is_docker(report) && *name == "mtab";
            for name in report.stdout.lines().filter(|name| !is_agent(name) && !is_link_to_mounts(name)) {
                assert!(known.contains(&name), "/etc/{name} should not be there");
            }
        };
    names_are_looked_up_in_files_only: bash("cat /etc/hosts /etc/nsswitch.conf; getent hosts localhost")
        => Completed, |report: &Report| {
            assert!(report.stdout.contains("localhost sandbox"));
            assert!(report.stdout.contains("hosts: files"));
        };
    it_sees_its_own_processes_only:
        python("import os\npids = sorted(int(name) for name in os.listdir('/proc') if name.isdigit())\n\
                print(os.getpid() in pids, all(pid < 10 for pid in pids), len(pids) <= 2)")
        => Completed, |report: &Report| assert_eq!(report.stdout, "True True True\n");
    process_one_is_out_of_its_reach:
        python("import os, signal\nfor number in (signal.SIGKILL, signal.SIGSTOP):\n    try: os.kill(1, number)\n    except PermissionError: pass\n\
                for number in range(3):\n    try: os.open(f'/proc/1/fd/{number}', os.O_RDWR)\n    except OSError: print('closed')")
        => Completed, |report: &Report| assert_eq!(report.stdout, "closed\n".repeat(3));
    it_sees_its_children_too:
        bash("sleep 60 & ls -d /proc/[0-9]* | wc -l; until grep -x sleep /proc/$!/comm; do :; done; kill $!")
        => Completed, |report: &Report| assert!(report.stdout.ends_with("\nsleep\n"), "{}", report.stdout);
    proc_shows_nothing_of_the_machine [LinuxWorld]:
        bash("cd /proc; ls -d cmdline cpuinfo kallsyms kcore keys kmsg meminfo modules mounts sys sysrq-trigger \
              version scsi bus irq driver loadavg uptime 2>/dev/null; echo end")
        => Completed, |report: &Report| {
            // A link to the process's own table of mounts is not of the machine.
            let found = report.stdout.replace("mounts\n", "");
            // The Engine leaves a directory there, with nothing in it.
            let found = if is_docker(report) { found.replace("sys\n", "") } else { found };
            assert_eq!(found, "end\n");
        };
    what_is_masked_is_empty [LinuxWorld]: bash("ls -A /sys /proc/sys 2>/dev/null | grep -v : ; echo end")
        => Completed, |report: &Report| assert_eq!(report.stdout.trim(), "end");
    its_mounts_tell_no_path_of_the_host [LinuxWorld]: bash("cut -d' ' -f5 /proc/self/mountinfo") => Completed, |report: &Report| {
        for place in report.stdout.lines() {
            let known = ["/usr", "/etc", "/proc", "/work", "/tmp", "/dev", "/bin", "/sbin", "/lib"];
            assert!(
                place == "/"
                    || known.iter().any(|known| place.starts_with(known))
                    || (is_docker(report) && place.starts_with("/sys")),
                "{place} is mounted"
            );
        }
    };
    its_root_is_read_only:
        bash("for place in / /usr /usr/bin /etc /dev /proc; do touch $place/new 2>/dev/null && echo $place; done; \
              rm -f /etc/passwd 2>/dev/null && echo passwd; mkdir /new 2>/dev/null && echo new; echo end")
        => Completed, |report: &Report| assert_eq!(report.stdout, "end\n");
    its_own_places_can_be_written: bash("for place in /work /tmp /dev/shm; do touch $place/new && echo $place; done")
        => Completed, |report: &Report| assert_eq!(report.stdout, "/work\n/tmp\n/dev/shm\n");
    programs_in_its_own_places_can_be_run:
        bash("cp /usr/bin/true /work/t; cp /usr/bin/true /tmp/t; /work/t && /tmp/t && echo ran")
        => Completed, |report: &Report| assert_eq!(report.stdout, "ran\n");
    its_devices_are_few_and_work [LinuxWorld]:
        bash("ls /dev; head -c 3 /dev/zero | od -An -tx1; head -c 4 /dev/urandom | wc -c; echo x > /dev/null; \
              echo x 2>/dev/null > /dev/full || echo full")
        => Completed, |report: &Report| {
            let devices = report.stdout.lines().take_while(|line| !line.starts_with(' '));
            let is_queues = |name: &&str| is_docker(report) && *name == "mqueue";
            let devices: Vec<&str> = devices.filter(|name| !is_queues(name)).collect();
            assert_eq!(
                devices,
                [
                    "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
                    "urandom", "zero",
                ]
            );
            assert!(report.stdout.ends_with(" 00 00 00\n4\nfull\n"), "{}", report.stdout);
        };
    no_descriptor_but_the_three_is_open: bash("ls /proc/self/fd | tr '\\n' ' '") => Completed, |report: &Report| {
        // The fourth is the listing's own.
        assert_eq!(report.stdout, "0 1 2 3 ");
    };
    it_has_no_terminal: bash("tty; echo x > /dev/tty") => RuntimeError, |report: &Report| {
        assert!(report.stdout.starts_with("not a tty"), "{}", report.stdout);
    };
    it_leads_a_session_of_its_own:
        python("import os\nprint(os.getsid(0) == os.getpid() == os.getpgid(0))")
        => Completed, |report: &Report| assert_eq!(report.stdout, "True\n");
    no_signal_is_blocked_or_ignored [LinuxWorld]: bash("grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2")
        => Completed, |report: &Report| {
            // Two that the C library keeps for itself are ignored in whatever it starts by posix_spawn.
            let own = u64::from_str_radix("180000000", 16).unwrap_or(0);
            for line in report.stdout.lines() {
                let set = u64::from_str_radix(line, 16).unwrap_or(u64::MAX);
                assert_eq!(set & !own, 0, "{line}");
            }
            assert_eq!(report.stdout.lines().count(), 2);
        };
    /// Its own clocks run from its own start of time, and the time of day is everybody's.
    its_time_of_day_is_right: bash("date +%s") => Completed, |report: &Report| {
        let inside: u64 = report.stdout.trim().parse().unwrap_or(0);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let outside = now.map_or(0, |now| now.as_secs());
        assert!(outside.abs_diff(inside) < 60, "{inside} inside, {outside} outside");
    };
    letters_are_utf_8: bash("locale charmap; printf 'é' | wc -m") => Completed, |report: &Report| {
        assert_eq!(report.stdout, "UTF-8\n1\n");
    };
    /// A denied call fails, is reported, and is not fatal.
    denied_system_calls_are_refused_and_counted_by_name:
        python("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                for _ in range(3): print(libc.ptrace(0, 0, 0, 0), end=' ')\nprint(libc.unshare(0x10000000))")
        => Completed, |report: &Report| {
            assert_eq!(report.stdout, "-1 -1 -1 -1\n");
            let count = |name: &str| {
                let violation = report.violations.iter().find(|violation| violation.syscall == name);
                violation.map(|violation| violation.count)
            };
            let wanted = if has(report, Feature::NamedDenials) { (Some(3), Some(1)) } else { (None, None) };
            assert_eq!((count("ptrace"), count("unshare")), wanted, "{:?}", report.violations);
        };
    every_wall_is_in_force: bash("true") => Completed, |report: &Report| {
        use Protection::{
            Capabilities, FreshRoot, NetNamespace, NoNewPrivs, PidNamespace, Seccomp, UserNamespace,
        };
        let is_expected = |protection: &Protection| *protection != UserNamespace || !is_docker(report);
        let protections = [UserNamespace, PidNamespace, NetNamespace, FreshRoot, Capabilities, NoNewPrivs, Seccomp];
        for protection in protections.iter().filter(|protection| is_expected(protection)) {
            assert!(report.enforced.contains(protection), "{protection} is not in force");
        }
    };
}

/// The Engine builds some of the world itself. What is otherwise there is in the table of differences.
fn is_docker(report: &Report) -> bool {
    report.isolation == Isolation::Docker
}

/// The number of the program's user, which is that of another container nowhere.
fn user_of(report: &Report) -> &str {
    if !is_docker(report) {
        return "1000";
    }
    let number = report.stdout.strip_prefix("uid=").and_then(|rest| rest.split('(').next());
    let number = number.expect("it says who it is");
    assert!(number.parse::<u32>().is_ok_and(|number| number >= 0x6000_0000), "{number}");
    number
}
