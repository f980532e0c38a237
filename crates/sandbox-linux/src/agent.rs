//! The agent, process 1 of containers, and the encoding of its exec request.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use sandbox_core::{ProcessSpec, SandboxSpec, StagePlan, VolumeAccess};
use sandbox_protocol::agent::{AgentExec, AgentExit, AgentRequest, AgentSetup, SyscallDenyRules};
use sandbox_protocol::exec::ExecFile;
use sandbox_protocol::notice::ExitNotice;
use sandbox_protocol::{DecodeError, frame};

/// The agent: a static program. Empty if this build could not compile it.
pub const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// How the agent confines the program.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    /// Rlimits, by the kernel's numbers.
    pub rlimits: &'a [(u64, u64)],
    /// The system-call filter.
    pub filter: &'a [u8],
    /// How the agent answers denied calls; `None` if the filter itself does.
    pub deny_rules: Option<&'a [SyscallDenyRules]>,
    /// The program's user, if it differs from the agent's.
    pub user: Option<u32>,
    /// Landlock ABI version to write rules for; 0 for none.
    pub landlock: u32,
}

/// Where a container mounts a tree that the program may change: the agent builds the writable tree
/// at its destination, from directories of its own and links to the files here.
pub fn copy_source_path(number: usize) -> PathBuf {
    PathBuf::from(format!("/mnt/{number}"))
}

/// The frame that asks the agent to run a stage.
pub fn exec_frame(plan: &StagePlan, inside: Inside<'_>) -> Result<Vec<u8>, DecodeError> {
    let trees = copied_trees(&plan.sandbox);
    encode_exec(&plan.sandbox, &plan.process, inside, |exec| AgentExec {
        files: files(&plan.sandbox),
        writable_trees: borrowed(&trees),
        ..exec
    })
}

/// The frame that asks the agent to serve any number of processes of this user.
pub fn serve_frame(sandbox: &SandboxSpec, user: u32) -> Result<Vec<u8>, DecodeError> {
    frame::encode(&AgentRequest::Serve(AgentSetup {
        files: files(sandbox),
        writable_trees: borrowed(&copied_trees(sandbox)),
        program_user: Some(user),
    }))
}

/// The frame that asks the agent to run one of these processes.
pub fn process_frame(
    sandbox: &SandboxSpec,
    process: &ProcessSpec,
    inside: Inside<'_>,
) -> Result<Vec<u8>, DecodeError> {
    let trees = sandbox.trees.iter().filter(|tree| tree.copy_on_write);
    encode_exec(sandbox, process, inside, |mut exec| {
        exec.writable_paths.extend(trees.map(|tree| tree.inside.as_os_str().as_bytes()));
        exec
    })
}

/// Encodes what every exec request contains, and what `complete` adds.
fn encode_exec<'a>(
    sandbox: &'a SandboxSpec,
    process: &'a ProcessSpec,
    inside: Inside<'a>,
    complete: impl FnOnce(AgentExec<'a>) -> AgentExec<'a>,
) -> Result<Vec<u8>, DecodeError> {
    let env = process.env.iter().map(|(name, value)| format!("{name}={value}"));
    let env: Vec<String> = env.collect();
    let writable = sandbox.volumes.iter().filter(|it| it.access() == VolumeAccess::ReadWrite);
    let exec = complete(AgentExec {
        argv: process.command.iter().map(String::as_bytes).collect(),
        directory: &process.directory,
        rlimits: inside.rlimits.to_vec(),
        seccomp_filter: inside.filter,
        deny_rules: inside.deny_rules.map(<[_]>::to_vec),
        program_user: inside.user,
        landlock_abi: inside.landlock,
        writable_paths: writable
            .map(|volume| volume.destination().as_os_str().as_bytes())
            .collect(),
        ..AgentExec::default()
    });
    let env = env.iter().map(String::as_bytes).collect();
    frame::encode(&AgentRequest::Exec(AgentExec { env, ..exec }))
}

fn files(sandbox: &SandboxSpec) -> Vec<ExecFile<'_>> {
    let files = sandbox.all_files().map(|file| ExecFile {
        path: file.path.as_str(),
        contents: &file.contents,
        executable: file.executable,
    });
    files.collect()
}

/// Trees that the agent builds: where the container mounts their files, and their destinations.
fn copied_trees(sandbox: &SandboxSpec) -> Vec<(PathBuf, &OsStr)> {
    let trees = sandbox.trees.iter().enumerate().filter(|(_, tree)| tree.copy_on_write);
    trees.map(|(number, tree)| (copy_source_path(number), tree.inside.as_os_str())).collect()
}

fn borrowed<'a>(trees: &'a [(PathBuf, &OsStr)]) -> Vec<(&'a [u8], &'a [u8])> {
    trees.iter().map(|(from, to)| (from.as_os_str().as_bytes(), to.as_bytes())).collect()
}

/// Converts the agent's exit report to the native backend's notice.
pub fn exit_notice(exit: AgentExit) -> ExitNotice {
    let (low, high) = (exit.wait_status & 0x7f, (exit.wait_status >> 8) & 0xff);
    ExitNotice {
        code: (low == 0).then_some(high),
        signal: (low != 0).then_some(low),
        wall_nanos: exit.wall_nanos,
        user_micros: exit.user_micros,
        system_micros: exit.system_micros,
        max_rss_kib: exit.max_rss_kib,
        read_bytes: exit.read_bytes,
        written_bytes: exit.written_bytes,
        ..ExitNotice::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_code_or_a_signal() {
        let exit = |wait_status| {
            exit_notice(AgentExit { wait_status, wall_nanos: 2, ..AgentExit::default() })
        };
        let exited = exit(7 << 8);
        assert_eq!((exited.code, exited.signal, exited.wall_nanos), (Some(7), None, 2));
        let killed = exit(9);
        assert_eq!((killed.code, killed.signal), (None, Some(9)));
        // With a core dump.
        assert_eq!(exit(0x80 | 0xb).signal, Some(11));
        // The agent is not trusted.
        assert_eq!((exit(-1).code, exit(-1).signal), (None, Some(0x7f)));
    }
}
