//! Questions for names, from whoever asks to the answer, and the doors that it opens.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use sandbox_core::{Decision, special_address};

use super::super::journal::Question as Asked;
use super::super::links;
use super::super::lookup::Found;
use super::super::questions::{self, Answer, Question};
use super::{SHORT_OF_DESCRIPTORS, Server, Token};

/// What is found for a name is used again for so long: a program asks for both kinds of addresses at once.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Addresses of one kind that are told of a name. Each takes a listener for each port.
const MAX_ADDRESSES: usize = 4;
/// A message of the domain name system over datagrams.
const MAX_QUERY_BYTES: usize = 4096;
/// Connections for questions at one time.
const MAX_CLIENTS: usize = 16;

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Datagram(SocketAddr),
    Connection(u64),
}

impl Server {
    pub(super) fn take_datagrams(&mut self) {
        let mut bytes = [0; MAX_QUERY_BYTES];
        for _ in 0..64 {
            let Ok((read, from)) = self.datagrams.recv_from(&mut bytes) else { return };
            if let Some(question) = questions::understand(&bytes[..read]) {
                self.ask(Asker::Datagram(from), question);
            }
        }
    }

    pub(super) fn accept_asker(&mut self) {
        let stream = match self.askers.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(_) => return std::thread::sleep(SHORT_OF_DESCRIPTORS),
        };
        if self.asking.len() >= MAX_CLIENTS || stream.set_nonblocking(true).is_err() {
            links::reset(&stream);
            return;
        }
        let number = self.new_token(Token::Asker);
        let data = EventData::new_u64(number);
        if epoll::add(&self.poll, &stream, data, EventFlags::IN).is_ok() {
            self.asking.insert(number, (stream, Vec::new()));
        }
    }

    /// Over a connection each message comes behind its length.
    pub(super) fn read_asker(&mut self, number: u64) {
        let Some((stream, received)) = self.asking.get_mut(&number) else { return };
        let mut bytes = [0; MAX_QUERY_BYTES];
        match stream.read(&mut bytes) {
            Ok(read) if read > 0 && received.len() < 2 * MAX_QUERY_BYTES => {
                received.extend_from_slice(&bytes[..read]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            _ => return self.forget_asker(number),
        }
        let mut asked = Vec::new();
        while let Some(length) =
            received.get(..2).map(|bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
        {
            if received.len() < 2 + length {
                break;
            }
            asked.push(received[2..2 + length].to_vec());
            received.drain(..2 + length);
        }
        for question in asked.iter().filter_map(|bytes| questions::understand(bytes)) {
            self.ask(Asker::Connection(number), question);
        }
    }

    fn forget_asker(&mut self, number: u64) {
        self.tokens.remove(&number);
        self.asking.remove(&number);
    }

    /// Takes a question: answers it, or has it looked up.
    fn ask(&mut self, asker: Asker, question: Question) {
        self.questions += 1;
        let refusal = if self.questions > self.allow.limits().questions {
            Some("there were too many questions")
        } else if !self.allow.answers(&question.name) {
            Some("nothing allows this name")
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.note(&question, Decision::Refused, Some(reason.to_owned()), &[]);
            return self.reply(asker, &question, Answer::NoSuchName);
        }
        if matches!(question.kind, questions::Kind::Other(_)) {
            // The name is there, and of this kind there is nothing.
            self.note(&question, Decision::Allowed, None, &[]);
            return self.reply(asker, &question, Answer::Addresses(&[]));
        }
        if self.known.get(&question.name).is_some_and(|(until, _)| Instant::now() < *until) {
            return self.answer(asker, &question);
        }
        let is_under_way = self.waiting.iter().any(|(_, other)| other.name == question.name);
        if !is_under_way {
            self.lookups.begin(question.name.clone());
        }
        self.waiting.push((asker, question));
    }

    pub(super) fn take_found(&mut self) {
        for Found { name, addresses } in self.lookups.finished() {
            self.known.insert(name.clone(), (Instant::now() + REMEMBERED, addresses));
            let (now, later) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition::<Vec<_>, _>(|(_, question)| question.name == name);
            self.waiting = later;
            for (asker, question) in now {
                self.answer(asker, &question);
            }
        }
    }

    /// Answers with what was found, as far as it may be told, and opens doors for that.
    fn answer(&mut self, asker: Asker, question: &Question) {
        let found = self.known.get(&question.name).map(|(_, found)| found.clone());
        let all = match found {
            Some(Ok(all)) => all,
            Some(Err(reason)) => {
                self.note(question, Decision::Failed, Some(reason), &[]);
                return self.reply(asker, question, Answer::NoSuchName);
            }
            None => return,
        };
        let ports = self.allow.ports_of(&question.name);
        let mut told = Vec::new();
        let mut refusal = None;
        for address in all {
            // A name of the outside must not lead to what only insiders reach.
            if let Some(what) = special_address(address).filter(|_| !self.allow.covers(address)) {
                refusal = Some(format!("{address} is {what}"));
            } else if question.kind.is_of(&address) && told.len() < MAX_ADDRESSES {
                match self.doors.open_for(address, &ports, &question.name) {
                    Ok(()) => told.push(address),
                    Err(Errno::MFILE) => {
                        refusal = Some("there are too many addresses and ports".to_owned());
                    }
                    Err(error) => {
                        refusal = Some(format!("nobody can listen at {address}: {error}"));
                    }
                }
            }
        }
        self.watch_doors();
        match refusal {
            Some(reason) if told.is_empty() => {
                self.note(question, Decision::Refused, Some(reason), &[]);
                self.reply(asker, question, Answer::NoSuchName);
            }
            _ => {
                self.note(question, Decision::Allowed, None, &told);
                self.reply(asker, question, Answer::Addresses(&told));
            }
        }
    }

    fn note(
        &self,
        question: &Question,
        decision: Decision,
        reason: Option<String>,
        addresses: &[IpAddr],
    ) {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        self.journal.question(&Asked {
            name: question.name.clone(),
            kind: question.kind.name(),
            decision,
            reason,
            addresses,
        });
    }

    fn reply(&mut self, asker: Asker, question: &Question, answer: Answer<'_>) {
        let Some(bytes) = question.answer(answer) else { return };
        match asker {
            // Who does not take it asks again.
            Asker::Datagram(to) => drop(self.datagrams.send_to(&bytes, to)),
            Asker::Connection(number) => {
                let Some((stream, _)) = self.asking.get_mut(&number) else { return };
                let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
                let message = [&length.to_be_bytes()[..], &bytes].concat();
                // It fits into what the kernel keeps, or its reader does not read.
                if stream.write_all(&message).is_err() {
                    self.forget_asker(number);
                }
            }
        }
    }
}
