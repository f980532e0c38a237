//! Files that the program left, asked for one by one. The agent names them; which of them are wanted, and how much of
//! them, is decided here.

use std::io;
use std::time::Duration;

use sandbox_core::{CollectRule, CollectedFile, InputFile, SkippedFile};
use sandbox_linux::collect::Collected;
use sandbox_linux::guest::frame::{to_agent, to_supervisor};
use sandbox_linux::guest::{self, GuestFile};

use super::channel::{Channel, Heard};

/// The same bounds as the native walls have.
const MOST_NAMES: usize = 200_000;
const MOST_SKIPPED: usize = 100;
const LONGEST_PATH: usize = 2048;
/// A container that is as busy as its limits allow still answers in this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Brings back what fits the rule, but for what is still as it was placed.
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
            // It is not as long as it was said to be: what counts is what came.
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

fn names(channel: &mut Channel, found: &mut Collected) -> io::Result<Vec<GuestFile>> {
    let mut names = Vec::new();
    loop {
        match channel.wait(PATIENCE)? {
            Heard::Message(to_supervisor::NAME, payload) => {
                names.push(guest::file(&payload).ok_or(io::ErrorKind::InvalidData)?);
            }
            Heard::Message(to_supervisor::NAMES_END, _) => return Ok(names),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        if names.len() > MOST_NAMES {
            found.over_limit = true;
            return Ok(Vec::new());
        }
    }
}

fn fetch(channel: &mut Channel, name: &GuestFile) -> io::Result<Result<Vec<u8>, String>> {
    let size = usize::try_from(name.size).map_err(io::Error::other)?;
    channel.longest = channel.longest.max(size);
    channel.say(to_agent::FETCH, &name.path)?;
    match channel.wait(PATIENCE)? {
        Heard::Message(to_supervisor::FILE, contents) => Ok(Ok(contents)),
        Heard::Message(to_supervisor::NO_FILE, reason) => {
            Ok(Err(String::from_utf8_lossy(&reason).into_owned()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn reason_to_skip(name: &GuestFile) -> Option<&'static str> {
    const KIND: u32 = 0o170_000;
    let text = std::str::from_utf8(&name.path);
    let is_plain = text.is_ok_and(|path| {
        let is_sound = |part: &str| !matches!(part, "" | "." | "..");
        !path.chars().any(char::is_control) && path.split('/').all(is_sound)
    });
    match name.mode & KIND {
        0o100_000 if !is_plain => Some("its name is not plain text"),
        0o100_000 if name.path.len() > LONGEST_PATH => Some("its path is too long"),
        0o100_000 => None,
        0o120_000 => Some("it is a symbolic link"),
        0o010_000 => Some("it is a pipe"),
        0o140_000 => Some("it is a socket"),
        _ => Some("it is a device"),
    }
}

fn skip(found: &mut Collected, path: &str, reason: &str) {
    if found.skipped.len() < MOST_SKIPPED {
        let path = path.escape_debug().to_string();
        found.skipped.push(SkippedFile { path, reason: reason.to_owned() });
    }
}
