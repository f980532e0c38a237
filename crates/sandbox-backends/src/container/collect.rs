//! Collects files through the agent, one by one. The agent lists them; the supervisor decides which
//! to collect, and how much.

use std::io;
use std::time::Duration;

use sandbox_core::{CollectRule, CollectedFile, InputFile, SkippedFile};
use sandbox_linux::collect::Collected;
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentEvent, AgentRequest};

use super::channel::{Channel, Received};

/// The same bounds as in the native backend.
const MAX_NAMES: usize = 200_000;
const MAX_SKIPPED: usize = 100;
const MAX_PATH_LEN: usize = 2048;
/// A container at its limits still answers within this time.
const COLLECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A file in the work directory, as the agent describes it.
struct FileEntry {
    mode: u32,
    size: u64,
    path: Vec<u8>,
}

/// Collects the files that the rule wants, except input files that did not change.
pub(super) fn collect(
    channel: &mut Channel,
    rule: &CollectRule,
    placed: &[&InputFile],
) -> io::Result<Collected> {
    let mut found = Collected::default();
    if rule.globs.is_empty() {
        return Ok(found);
    }
    let mut names = names(channel, &mut found)?;
    names.sort_by(|left, right| left.path.cmp(&right.path));
    let mut left = rule.total.as_u64();
    for name in names {
        let path = String::from_utf8_lossy(&name.path).into_owned();
        if !rule.wants(&path) {
            continue;
        }
        if let Some(reason) = reason_to_skip(&name) {
            skip(&mut found, &path, reason);
            continue;
        }
        let before = placed.iter().find(|placed| placed.path.as_str() == path);
        let unchanged = before.filter(|placed| placed.contents.len() as u64 == name.size);
        if found.files.len() >= rule.count && unchanged.is_none() {
            found.over_limit = true;
            break;
        }
        if name.size > left && unchanged.is_none() {
            found.over_limit = true;
            break;
        }
        match fetch(channel, &name)? {
            Ok(contents) if unchanged.is_some_and(|placed| placed.contents == contents) => {}
            // Its size differs from the listed one; the received size counts.
            Ok(contents) if contents.len() as u64 > left || found.files.len() >= rule.count => {
                found.over_limit = true;
                break;
            }
            Ok(contents) => {
                left -= contents.len() as u64;
                let executable = name.mode & 0o100 != 0;
                found.files.push(CollectedFile { path, contents, executable });
            }
            Err(reason) => skip(&mut found, &path, &format!("it could not be read: {reason}")),
        }
    }
    Ok(found)
}

fn names(channel: &mut Channel, found: &mut Collected) -> io::Result<Vec<FileEntry>> {
    let mut names = Vec::new();
    loop {
        let message = message(channel)?;
        match AgentEvent::decode(&message) {
            Ok(AgentEvent::FileEntry { mode, size, path }) => {
                names.push(FileEntry { mode, size, path: path.to_vec() });
            }
            Ok(AgentEvent::FileListEnd) => return Ok(names),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        if names.len() > MAX_NAMES {
            found.over_limit = true;
            return Ok(Vec::new());
        }
    }
}

fn fetch(channel: &mut Channel, name: &FileEntry) -> io::Result<Result<Vec<u8>, String>> {
    let size = usize::try_from(name.size).map_err(io::Error::other)?;
    // The content, and the tag before it.
    channel.max_message_bytes = channel.max_message_bytes.max(size.saturating_add(1));
    channel.send(&AgentRequest::ReadFile(&name.path))?;
    let message = message(channel)?;
    match AgentEvent::decode(&message) {
        Ok(AgentEvent::FileContents(contents)) => Ok(Ok(contents.to_vec())),
        Ok(AgentEvent::FileUnavailable(reason)) => Ok(Err(reason)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn message(channel: &mut Channel) -> io::Result<Vec<u8>> {
    match channel.wait(COLLECT_TIMEOUT)? {
        Received::Message(message) => Ok(message),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn reason_to_skip(name: &FileEntry) -> Option<&'static str> {
    const KIND: u32 = 0o170_000;
    let text = std::str::from_utf8(&name.path);
    let is_plain = text.is_ok_and(|path| {
        let is_sound = |part: &str| !matches!(part, "" | "." | "..");
        !path.chars().any(char::is_control) && path.split('/').all(is_sound)
    });
    match name.mode & KIND {
        0o100_000 if !is_plain => Some("its name is not plain text"),
        0o100_000 if name.path.len() > MAX_PATH_LEN => Some("its path is too long"),
        0o100_000 => None,
        0o120_000 => Some("it is a symbolic link"),
        0o010_000 => Some("it is a pipe"),
        0o140_000 => Some("it is a socket"),
        _ => Some("it is a device"),
    }
}

fn skip(found: &mut Collected, path: &str, reason: &str) {
    if found.skipped.len() < MAX_SKIPPED {
        let path = path.escape_debug().to_string();
        found.skipped.push(SkippedFile { path, reason: reason.to_owned() });
    }
}
