//! Three promises of every decoder: it never panics, encoding and decoding is the identity, and decoding and encoding
//! is the identity for whatever was accepted.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sandbox_protocol::agent::{
    AgentEvent, AgentExec, AgentExit, AgentRequest, AgentSetup, ArgumentCondition, DenyRule,
    SyscallDenyRules,
};
use sandbox_protocol::exec::{
    ExecFile, ExecRequest, InitMessage, OverlayMode, Starts, VolumeMount, WorkspaceMount,
};
use sandbox_protocol::frame;
use sandbox_protocol::launcher::{
    LauncherConfig, LauncherRequest, SlotKind, SymlinkPolicy, VolumeOwner,
};
use sandbox_protocol::notice::{ExitNotice, Notice, StepFailure};
use sandbox_protocol::zygote::{ForkReport, ForkStep, ZygoteConfig};
use sandbox_protocol::{DecodeError, Message};

/// What decoding one kind of message, and encoding the result again, makes of bytes.
type Reencode = fn(&[u8]) -> Result<Vec<u8>, DecodeError>;

/// Every decoder.
const DECODERS: &[(&str, Reencode)] = &[
    ("LauncherConfig", |bytes| LauncherConfig::decode(bytes).map(|message| message.encode())),
    ("LauncherRequest", |bytes| LauncherRequest::decode(bytes).map(|message| message.encode())),
    ("ExecRequest", |bytes| ExecRequest::decode(bytes).map(|message| message.encode())),
    ("InitMessage", |bytes| InitMessage::decode(bytes).map(|message| message.encode())),
    ("Notice", |bytes| Notice::decode(bytes).map(|message| message.encode())),
    ("AgentRequest", |bytes| AgentRequest::decode(bytes).map(|message| message.encode())),
    ("AgentEvent", |bytes| AgentEvent::decode(bytes).map(|message| message.encode())),
    ("ZygoteConfig", |bytes| ZygoteConfig::decode(bytes).map(|message| message.encode())),
    ("ForkReport", |bytes| ForkReport::decode(bytes).map(|message| message.encode().to_vec())),
];

/// Feeds bytes to every decoder.
fn decode_with_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    for (name, reencode) in DECODERS {
        if let Ok(again) = reencode(bytes) {
            prop_assert_eq!(&again, bytes, "{} is not canonical", name);
        }
    }
    Ok(())
}

/// Checks one message, every truncation of it, and a corruption of it.
fn check<'a, M>(message: &M, encoded: &'a [u8], corruption: Corruption) -> Result<(), TestCaseError>
where
    M: Message<'a> + PartialEq + Debug,
{
    let decoded = M::decode(encoded);
    prop_assert_eq!(decoded.as_ref(), Ok(message));
    // Long messages are cut at fewer places.
    for cut in (0..encoded.len()).step_by(1 + encoded.len() / 256) {
        decode_with_all(&encoded[..cut])?;
    }
    let mut corrupt = encoded.to_vec();
    let place = corruption.0.index(corrupt.len());
    corrupt[place] = corruption.1;
    decode_with_all(&corrupt)?;
    corrupt.push(corruption.1);
    decode_with_all(&corrupt)
}

type Corruption = (prop::sample::Index, u8);

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(any::<String>(), 0..4)
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn borrowed_bytes(texts: &[String]) -> Vec<&[u8]> {
    texts.iter().map(String::as_bytes).collect()
}

fn failure() -> impl Strategy<Value = StepFailure> {
    any::<(String, i32)>().prop_map(|(step, errno)| StepFailure { step, errno })
}

fn exit() -> impl Strategy<Value = ExitNotice> {
    any::<(Option<i32>, Option<i32>, [u64; 8])>().prop_map(|(code, signal, numbers)| {
        let [wall_nanos, user_micros, system_micros, max_rss_kib, a, b, c, d] = numbers;
        ExitNotice {
            code,
            signal,
            wall_nanos,
            user_micros,
            system_micros,
            max_rss_kib,
            init_user_micros: a,
            init_system_micros: b,
            read_bytes: c,
            written_bytes: d,
        }
    })
}

fn notice() -> impl Strategy<Value = Notice> {
    prop_oneof![
        Just(Notice::Cloned),
        any::<u32>().prop_map(|owner| Notice::Ready { owner }),
        Just(Notice::Starting),
        failure().prop_map(Notice::Failed),
        exit().prop_map(Notice::Exited),
        Just(Notice::Gone),
        Just(Notice::ProxyListener),
        Just(Notice::Workspace),
        Just(Notice::Confined),
        Just(Notice::FilesWritten),
        Just(Notice::Network),
        Just(Notice::Serving),
    ]
}

fn agent_exit() -> impl Strategy<Value = AgentExit> {
    any::<(i32, [u64; 6])>().prop_map(|(wait_status, numbers)| {
        let [wall_nanos, user_micros, system_micros, max_rss_kib, read_bytes, written_bytes] =
            numbers;
        AgentExit {
            wait_status,
            wall_nanos,
            user_micros,
            system_micros,
            max_rss_kib,
            read_bytes,
            written_bytes,
        }
    })
}

fn deny_rules() -> impl Strategy<Value = Vec<SyscallDenyRules>> {
    let condition = (any::<u32>(), any::<u64>(), any::<bool>(), vec(any::<u64>(), 0..3)).prop_map(
        |(argument, mask, is_member, values)| ArgumentCondition {
            argument,
            mask,
            is_member,
            values,
        },
    );
    let rule = (any::<i32>(), vec(condition, 0..3))
        .prop_map(|(errno, conditions)| DenyRule { errno, conditions });
    let rules = (any::<u32>(), vec(rule, 0..3))
        .prop_map(|(syscall, rules)| SyscallDenyRules { syscall, rules });
    vec(rules, 0..3)
}

fn overlay() -> impl Strategy<Value = OverlayMode> {
    prop::sample::select(vec![OverlayMode::None, OverlayMode::ReadOnly, OverlayMode::CopyOnWrite])
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        decode_with_all(&bytes)?;
        let _ = frame::split(&bytes, 1000);
    }

    /// Random bytes rarely get past the first length, so these begin like messages do.
    #[test]
    fn random_small_numbers_never_panic(numbers in vec(0_u8..32, 0..200)) {
        decode_with_all(&numbers)?;
    }

    #[test]
    fn launcher_configurations_round_trip(
        (image, seccomp_filter, cgroup_prefix) in (any::<String>(), bytes(), any::<String>()),
        (protections, seccomp_notify, disk_bytes, disk_inodes) in any::<(u64, bool, u64, u64)>(),
        corruption in any::<Corruption>(),
    ) {
        let config = LauncherConfig {
            protections,
            image: &image,
            seccomp_filter: &seccomp_filter,
            seccomp_notify,
            cgroup_prefix: &cgroup_prefix,
            disk_bytes,
            disk_inodes,
        };
        check(&config, &config.encode(), corruption)?;
    }

    #[test]
    fn launcher_requests_round_trip(
        (path, exec) in (any::<String>(), bytes()),
        (flag, ids, owned) in any::<(bool, [u32; 3], bool)>(),
        kind in prop::sample::select(vec![SlotKind::Any, SlotKind::Waiting, SlotKind::Adopting]),
        symlinks in prop::sample::select(vec![SymlinkPolicy::Follow, SymlinkPolicy::Refuse]),
        corruption in any::<Corruption>(),
    ) {
        let owner = VolumeOwner { user: ids[0], group: ids[1], program: ids[2] };
        let owner = owned.then_some(owner);
        for request in [
            LauncherRequest::PrepareSlot { clone_into_cgroup: flag, kind },
            LauncherRequest::OpenVolume { path: &path, symlinks, writable: flag, owner },
            LauncherRequest::StartZygote { exec: &exec },
            LauncherRequest::Shutdown,
        ] {
            check(&request, &request.encode(), corruption)?;
        }
    }

    #[test]
    fn exec_requests_round_trip(
        (argv, env, directory) in (texts(), texts(), any::<String>()),
        files in vec((any::<String>(), bytes(), any::<bool>()), 0..3),
        volumes in vec((any::<String>(), any::<bool>(), any::<bool>(), overlay()), 0..3),
        rlimits in vec(any::<(u64, u64)>(), 0..3),
        numbers in any::<(u64, u64, u64, u16, u32)>(),
        flags in any::<[bool; 2]>(),
        starts in prop::sample::select(vec![Starts::Program, Starts::Runtime, Starts::Instance]),
        workspace in option::of(any::<(u64, u64, bool)>()),
        corruption in any::<Corruption>(),
    ) {
        let (disk_bytes, disk_inodes, cpu_mask, proxy_port, zygote_fork) = numbers;
        let request = ExecRequest {
            argv: borrowed(&argv),
            env: borrowed(&env),
            directory: &directory,
            files: files
                .iter()
                .map(|(path, contents, executable)| ExecFile {
                    path,
                    contents,
                    executable: *executable,
                })
                .collect(),
            disk_bytes,
            disk_inodes,
            rlimits,
            cpu_mask,
            loopback: flags[0],
            proxy_port,
            egress: flags[1],
            volumes: volumes
                .iter()
                .map(|(destination, is_directory, writable, overlay)| VolumeMount {
                    destination,
                    is_directory: *is_directory,
                    writable: *writable,
                    overlay: *overlay,
                })
                .collect(),
            workspace: workspace
                .map(|(bytes, inodes, has_content)| WorkspaceMount { bytes, inodes, has_content }),
            starts,
            zygote_fork,
        };
        let encoded = request.encode();
        check(&request, &encoded, corruption)?;
        for message in
            [InitMessage::Exec(&encoded), InitMessage::ExecInFile, InitMessage::ExecSentToStub, InitMessage::NetworkOpen]
        {
            check(&message, &message.encode(), corruption)?;
        }
    }

    #[test]
    fn notices_round_trip(notice in notice(), corruption in any::<Corruption>()) {
        check(&notice, &notice.encode(), corruption)?;
    }

    #[test]
    fn agent_requests_round_trip(
        (argv, env, directory) in (texts(), texts(), any::<String>()),
        files in vec((any::<String>(), bytes(), any::<bool>()), 0..3),
        trees in vec((any::<String>(), any::<String>()), 0..3),
        rlimits in vec(any::<(u64, u64)>(), 0..3),
        (filter, deny_rules) in (bytes(), option::of(deny_rules())),
        (program_user, landlock_abi, signal) in any::<(Option<u32>, u32, u8)>(),
        corruption in any::<Corruption>(),
    ) {
        let files: Vec<_> = files
            .iter()
            .map(|(path, contents, executable)| ExecFile {
                path,
                contents,
                executable: *executable,
            })
            .collect();
        let trees = trees.iter().map(|(from, to)| (from.as_bytes(), to.as_bytes()));
        let setup = AgentSetup {
            files: files.clone(),
            writable_trees: trees.clone().collect(),
            program_user,
        };
        let put = files.iter().copied().map(AgentRequest::PutFile).collect::<Vec<_>>();
        let exec = AgentExec {
            argv: borrowed_bytes(&argv),
            env: borrowed_bytes(&env),
            directory: &directory,
            files,
            writable_trees: trees.collect(),
            rlimits,
            seccomp_filter: &filter,
            deny_rules,
            program_user,
            landlock_abi,
            writable_paths: borrowed_bytes(&argv),
        };
        for request in [
            AgentRequest::Exec(exec),
            AgentRequest::Stdin(&filter),
            AgentRequest::StdinEnd,
            AgentRequest::Signal(signal),
            AgentRequest::ReadFile(directory.as_bytes()),
            AgentRequest::Serve(setup),
            AgentRequest::Connect,
            AgentRequest::Connected,
            AgentRequest::GetFile { max_bytes: landlock_abi.into(), path: directory.as_bytes() },
            AgentRequest::ListDirectory(directory.as_bytes()),
            AgentRequest::RemoveFile(directory.as_bytes()),
        ].into_iter().chain(put) {
            check(&request, &request.encode(), corruption)?;
        }
    }

    #[test]
    fn agent_events_round_trip(
        (output, failure, exit) in (bytes(), failure(), agent_exit()),
        (syscall, arguments, mode, size) in any::<(u32, [u64; 6], u32, u64)>(),
        corruption in any::<Corruption>(),
    ) {
        for event in [
            AgentEvent::Ready,
            AgentEvent::Started,
            AgentEvent::Stdout(&output),
            AgentEvent::Stderr(&output),
            AgentEvent::SyscallDenied { syscall, arguments },
            AgentEvent::Exited(exit),
            AgentEvent::FileUnavailable(failure.step.clone()),
            AgentEvent::Failed(failure),
            AgentEvent::FileEntry { mode, size, path: &output },
            AgentEvent::FileListEnd,
            AgentEvent::FileContents(&output),
            AgentEvent::FileDone,
            AgentEvent::Connection { descriptor: syscall },
        ] {
            check(&event, &event.encode(), corruption)?;
        }
    }

    #[test]
    fn zygote_messages_round_trip(
        (namespaces, has_own_ids, errno) in any::<(u32, bool, i32)>(),
        (step, _) in prop::sample::select(ForkStep::NAMES.to_vec()),
        instructions in vec(any::<[u8; 8]>(), 0..8),
    ) {
        let seccomp_filter = instructions.concat();
        let config = ZygoteConfig { namespaces, has_own_ids, seccomp_filter: &seccomp_filter };
        let encoded = config.encode();
        prop_assert_eq!(ZygoteConfig::decode(&encoded), Ok(config));
        for report in [ForkReport::Confined { pid: namespaces }, ForkReport::Failed { step, errno }] {
            prop_assert_eq!(ForkReport::decode(&report.encode()), Ok(report));
        }
    }

    /// However a stream is cut, the same frames are found.
    #[test]
    fn frames_survive_any_cut(messages in vec(bytes(), 0..5), cut in any::<prop::sample::Index>()) {
        let frames = messages.iter().map(|message| frame::encode(&message.as_slice()).unwrap());
        let stream: Vec<u8> = frames.flatten().collect();
        let mut received = Vec::new();
        let (mut found, cut) = (Vec::new(), cut.index(stream.len() + 1));
        for part in [&stream[..cut], &stream[cut..]] {
            received.extend_from_slice(part);
            while let Some((message, length)) = frame::split(&received, 1000).unwrap() {
                found.push(<&[u8]>::decode(message).unwrap().to_vec());
                received.drain(..length);
            }
        }
        prop_assert_eq!(found, messages);
    }
}
