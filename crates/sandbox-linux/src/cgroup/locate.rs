//! Finds where the cgroup hierarchies are mounted and where in them this process is.
//!
//! `/proc/self/cgroup` gives a path inside each hierarchy; `/proc/self/mountinfo` tells where a
//! hierarchy, or the part of it that a container may see, is mounted. Only both together give a
//! directory.

use std::path::{Path, PathBuf};

/// Both files, parsed.
#[derive(Debug)]
pub(crate) struct Locations {
    memberships: Vec<Membership>,
    mounts: Vec<CgroupMount>,
}

/// One line of `/proc/self/cgroup`. v2 has no controllers in its line.
#[derive(Debug, PartialEq, Eq)]
struct Membership {
    controllers: Vec<String>,
    path: String,
}

/// One cgroup line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct CgroupMount {
    is_v2: bool,
    /// On v1, the options include the names of the controllers.
    options: Vec<String>,
    /// Which part of the hierarchy is mounted here.
    root: PathBuf,
    mount_point: PathBuf,
}

/// A hierarchy as this process sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) mount_point: PathBuf,
    /// The directory of the cgroup this process is in, the mount point or something below it.
    pub(crate) own: PathBuf,
}

impl Locations {
    pub(crate) fn read() -> Result<Locations, String> {
        let read = |path: &str| {
            std::fs::read_to_string(path)
                .map_err(|error| format!("{path} could not be read ({error}); mount proc there."))
        };
        Ok(Locations::parse(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?))
    }

    fn parse(memberships: &str, mounts: &str) -> Locations {
        Locations {
            memberships: memberships.lines().filter_map(membership).collect(),
            mounts: mounts.lines().filter_map(mount).collect(),
        }
    }

    /// The v2 hierarchy, or an error message.
    pub(crate) fn v2(&self) -> Result<Place, String> {
        let membership = self.memberships.iter().find(|line| line.controllers.is_empty());
        self.place("The cgroup v2 hierarchy", "cgroup2", membership, |mount| mount.is_v2)
    }

    /// The v1 hierarchy with a controller, or an error message.
    pub(crate) fn v1(&self, controller: &str) -> Result<Place, String> {
        let names = |list: &[String]| list.iter().any(|name| name == controller);
        let membership = self.memberships.iter().find(|line| names(&line.controllers));
        let what = format!("The cgroup v1 controller {controller}");
        self.place(&what, "cgroup", membership, |mount| !mount.is_v2 && names(&mount.options))
    }

    fn place(
        &self,
        what: &str,
        file_system: &str,
        membership: Option<&Membership>,
        wanted: impl Fn(&CgroupMount) -> bool,
    ) -> Result<Place, String> {
        let Some(Membership { path, .. }) = membership else {
            return Err(format!("{what} is not offered by this kernel."));
        };
        let mut mounts = self.mounts.iter().filter(|mount| wanted(mount)).peekable();
        if mounts.peek().is_none() {
            return Err(format!(
                "{what} is not mounted; mount a file system of type {file_system} for it."
            ));
        }
        mounts.find_map(|mount| mount.directory_of(path)).ok_or_else(|| {
            format!(
                "{what} is mounted, but not the part that holds this process ({path}); \
                 start it in the same cgroup namespace as the mount."
            )
        })
    }
}

impl CgroupMount {
    fn directory_of(&self, path: &str) -> Option<Place> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        // A path with `..` is how the kernel shows a cgroup outside the cgroup namespace.
        if below.components().any(|part| part.as_os_str() == "..") {
            return None;
        }
        // Joining an empty path would add a slash to every message.
        let own = if below.as_os_str().is_empty() {
            self.mount_point.clone()
        } else {
            self.mount_point.join(below)
        };
        Some(Place { mount_point: self.mount_point.clone(), own })
    }
}

/// `4:memory:/path`, `1:cpu,cpuacct:/path`, `1:name=systemd:/path` or, for v2, `0::/path`.
fn membership(line: &str) -> Option<Membership> {
    let (_, behind_number) = line.split_once(':')?;
    let (controllers, path) = behind_number.split_once(':')?;
    let controllers = controllers.split(',').filter(|name| !name.is_empty());
    Some(Membership {
        controllers: controllers.map(str::to_owned).collect(),
        path: path.to_owned(),
    })
}

/// `35 31 0:32 /root /mount/point rw,relatime shared:1 - cgroup source rw,memory`, where the number
/// of fields before the lonely dash varies.
fn mount(line: &str) -> Option<CgroupMount> {
    let (front, back) = line.split_once(" - ")?;
    let mut back = back.split(' ');
    let is_v2 = match back.next()? {
        "cgroup2" => true,
        "cgroup" => false,
        _ => return None,
    };
    let options = back.nth(1)?.split(',').map(str::to_owned).collect();
    let mut front = front.split(' ').skip(3);
    Some(CgroupMount {
        is_v2,
        options,
        root: unescape(front.next()?).into(),
        mount_point: unescape(front.next()?).into(),
    })
}

/// The kernel writes space, tab, line feed and backslash as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code {
            plain.push(char::from(code));
            plain.push_str(&part[3..]);
        } else {
            plain.push('\\');
            plain.push_str(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(mount_point: &str, own: &str) -> Place {
        Place { mount_point: mount_point.into(), own: own.into() }
    }

    #[test]
    fn a_hybrid_host_has_places_in_both_versions() {
        let locations = Locations::parse(
            "8:pids:/\n4:memory:/jobs/a b\n2:cpu,cpuacct:/slice\n9:name=systemd:/\n0::/\n",
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /mnt/my\\040groups rw,relatime - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
             22 1 0:20 / /proc rw - proc proc rw\n",
        );
        let unified = "/sys/fs/cgroup/unified";
        assert_eq!(locations.v2(), Ok(place(unified, unified)));
        assert_eq!(locations.v1("memory"), Ok(place("/mnt/my groups", "/mnt/my groups/jobs/a b")));
        let cpu = place("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/slice");
        assert_eq!(locations.v1("cpu"), Ok(cpu));
        assert_eq!(locations.v1("cpuacct"), locations.v1("cpu"));
        assert!(locations.v1("pids").unwrap_err().contains("is not mounted"));
        assert!(locations.v1("freezer").unwrap_err().contains("not offered"));
    }

    #[test]
    fn a_container_that_sees_a_part_of_the_hierarchy_is_found_in_it() {
        let mounts = "9 8 0:7 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let found = Locations::parse("4:memory:/docker/abc/inner\n", mounts).v1("memory");
        assert_eq!(found, Ok(place("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/inner")));
        let error = Locations::parse("4:memory:/docker/abcd\n", mounts).v1("memory").unwrap_err();
        assert!(error.contains("/docker/abcd"), "{error}");
    }

    #[test]
    fn a_cgroup_outside_the_namespace_has_no_place() {
        let mounts = "9 8 0:7 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let error = Locations::parse("0::/../other\n", mounts).v2().unwrap_err();
        assert!(error.contains("/../other"), "{error}");
    }

    #[test]
    fn a_backslash_that_begins_no_code_stays() {
        assert_eq!(unescape(r"a\134b\011c\9"), "a\\b\tc\\9");
    }
}
