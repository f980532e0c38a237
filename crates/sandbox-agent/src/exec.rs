//! From the request to what is needed between fork and exec.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sandbox_protocol::agent::AgentExec;

use crate::deny::DenyRules;
use crate::landlock::Rules;
use crate::spawn::Program;
use crate::user::User;
use crate::workdir::WORK;

/// Builds the program, and the rules by which its denied calls are answered unless its filter does that.
pub(crate) fn prepare(
    request: &AgentExec<'_>,
    user: User,
) -> io::Result<(Program, Option<DenyRules>)> {
    let trees = request.writable_trees.iter().map(|(_, to)| to);
    let writable =
        trees.chain(&request.writable_paths).map(|path| Path::new(OsStr::from_bytes(path)));
    let landlock = match request.landlock_abi {
        0 => None,
        abi => Some(Rules::new(abi, writable)?),
    };
    let strings = |strings: &[&[u8]]| -> io::Result<Vec<CString>> {
        strings.iter().map(|string| Ok(CString::new(*string)?)).collect()
    };
    let directory = match request.directory {
        "" => WORK.to_owned(),
        below => format!("{WORK}/{below}"),
    };
    let program = Program {
        argv: strings(&request.argv)?,
        env: strings(&request.env)?,
        directory: CString::new(directory)?,
        rlimits: request.rlimits.clone(),
        seccomp_filter: request.seccomp_filter.to_vec(),
        has_listener: request.deny_rules.is_some(),
        user,
        landlock,
    };
    Ok((program, request.deny_rules.as_deref().map(DenyRules::new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(request: &AgentExec<'_>) -> io::Result<Program> {
        prepare(request, User::new(None)).map(|(program, _)| program)
    }

    #[test]
    fn a_directory_is_below_the_work_directory() {
        let request = AgentExec { argv: vec![b"/bin/true"], ..AgentExec::default() };
        let program = prepared(&request).unwrap();
        assert_eq!(program.directory.as_c_str(), c"/work");
        assert!(!program.has_listener && program.landlock.is_none());
        let request = AgentExec { directory: "a/b", deny_rules: Some(Vec::new()), ..request };
        let program = prepared(&request).unwrap();
        assert_eq!(program.directory.as_c_str(), c"/work/a/b");
        assert!(program.has_listener);
    }

    #[test]
    fn strings_with_zero_bytes_are_refused() {
        for request in [
            AgentExec { argv: vec![b"a\0b"], ..AgentExec::default() },
            AgentExec { env: vec![b"A=\0"], ..AgentExec::default() },
            AgentExec { directory: "a\0b", ..AgentExec::default() },
        ] {
            assert!(prepared(&request).is_err(), "{request:?}");
        }
    }
}
