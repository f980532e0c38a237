//! Refuses volumes with file systems of the kernel, such as procfs. They can be mounted anywhere, for example in a chroot,
//! and a volume includes the mounts below it.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const OF_THE_KERNEL: &[&str] = &[
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "configfs",
    "efivarfs",
    "pstore",
    "bpf",
    "binfmt_misc",
];

/// Refuses a path that is in such a file system or contains a mount of one.
pub(super) fn refuse_its_own(host: &Path) -> Result<(), String> {
    let mounts = std::fs::read("/proc/self/mountinfo");
    let mounts = mounts.map_err(|error| format!("the host's mounts cannot be listed: {error}"))?;
    match mount_of_the_kernel(host, &mounts) {
        Some(place) => Err(format!(
            "{} is a file system of the kernel, which cannot be a volume",
            place.display()
        )),
        None => Ok(()),
    }
}

/// The first such mount that a volume with this path would include, from `proc_pid_mountinfo(5)`.
fn mount_of_the_kernel(host: &Path, mounts: &[u8]) -> Option<PathBuf> {
    let mut around: Option<Mount> = None;
    for mount in mounts.split(|byte| *byte == b'\n').filter_map(Mount::read) {
        if mount.is_of_the_kernel && mount.place.starts_with(host) {
            return Some(mount.place);
        }
        // Of two mounts at one path, the later one is visible.
        let depth = |mount: &Mount| mount.place.components().count();
        let is_nearer = around.as_ref().is_none_or(|nearest| depth(&mount) >= depth(nearest));
        if host.starts_with(&mount.place) && is_nearer {
            around = Some(mount);
        }
    }
    around.filter(|mount| mount.is_of_the_kernel).map(|mount| mount.place)
}

struct Mount {
    place: PathBuf,
    is_of_the_kernel: bool,
}

impl Mount {
    fn read(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let place = fields.nth(4)?;
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let is_of_the_kernel = OF_THE_KERNEL.iter().any(|known| known.as_bytes() == kind);
        Some(Self { place: unescaped(place), is_of_the_kernel })
    }
}

/// Decodes octal escapes, which stand for blanks, tabs, line ends and backslashes.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
        21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        22 21 0:5 / /proc rw,nosuid - proc proc rw\n\
        23 21 8:2 / /srv rw - ext4 /dev/sda2 rw\n\
        24 23 0:5 / /srv/a\\040root/proc rw master:7 - proc proc rw\n\
        25 23 0:9 / /srv/shown rw - sysfs sysfs rw\n\
        26 25 8:3 / /srv/shown rw - ext4 /dev/sda3 rw\n\
        27 23 0:5 /sys /srv/part rw - proc proc rw\n\
        28 27 8:3 / /srv/part/plain rw - ext4 /dev/sda3 rw\n";

    #[test]
    fn a_file_system_of_the_kernel_is_found_wherever_it_is_mounted() {
        for (path, found) in [
            ("/srv/a root", Some("/srv/a root/proc")),
            ("/srv/a root/proc/1", Some("/srv/a root/proc")),
            ("/srv/part", Some("/srv/part")),
            ("/srv/part/x", Some("/srv/part")),
            ("/srv/part/plain/x", None),
            ("/srv/shown/x", None),
            ("/srv/a root/etc", None),
            ("/srv/a", None),
            ("/home", None),
        ] {
            let mount = mount_of_the_kernel(Path::new(path), MOUNTS);
            assert_eq!(mount.as_deref(), found.map(Path::new), "{path}");
        }
    }

    #[test]
    fn this_hosts_own_are_found() {
        assert!(refuse_its_own(Path::new("/proc/self")).is_err());
        assert!(refuse_its_own(Path::new("/usr")).is_ok());
    }
}
