//! Questions for names, read and answered in the words of the domain name system.

use std::net::IpAddr;

use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// How long an answer counts. A listener is there for as long, and a little longer.
pub(super) const LIFETIME_SECONDS: u32 = 60;

/// What somebody wants to know.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// In small letters, without a dot at its end.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// What it said, to be answered.
    bytes: Vec<u8>,
}

/// What can be asked of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    V4,
    V6,
    /// Something that we do not tell: the type's number.
    Other(u16),
}

impl Kind {
    pub(super) fn name(self) -> String {
        match self {
            Self::V4 => "A".to_owned(),
            Self::V6 => "AAAA".to_owned(),
            Self::Other(number) => format!("TYPE{number}"),
        }
    }

    /// Whether an address answers it.
    pub(super) fn is_of(self, address: &IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Other(_) => false,
        }
    }
}

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// These are its addresses; none means that there is nothing of this kind.
    Addresses(&'a [IpAddr]),
    /// There is no such name.
    NoSuchName,
}

/// Reads a message; nothing if it is no question that can be answered.
pub(super) fn understand(bytes: &[u8]) -> Option<Question> {
    let packet = Packet::parse(bytes).ok()?;
    let is_question = !packet.has_flags(PacketFlag::RESPONSE) && packet.questions.len() == 1;
    let question = packet.questions.first().filter(|_| is_question)?;
    let name = question.qname.to_string().trim_end_matches('.').to_ascii_lowercase();
    let kind = match question.qtype {
        QTYPE::TYPE(TYPE::A) => Kind::V4,
        QTYPE::TYPE(TYPE::AAAA) => Kind::V6,
        other => Kind::Other(other.into()),
    };
    Some(Question { name, kind, bytes: bytes.to_vec() })
}

impl Question {
    /// The message that answers it.
    pub(super) fn answer(&self, answer: Answer<'_>) -> Option<Vec<u8>> {
        let asked = Packet::parse(&self.bytes).ok()?;
        let mut packet = asked.clone().into_reply();
        packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
        packet.additional_records.clear();
        packet.name_servers.clear();
        packet.answers.clear();
        *packet.opt_mut() = None;
        match answer {
            Answer::Addresses(addresses) => {
                let name = asked.questions.first()?.qname.clone();
                for address in addresses.iter().filter(|address| self.kind.is_of(address)) {
                    let data = match address {
                        IpAddr::V4(address) => RData::A(A::from(*address)),
                        IpAddr::V6(address) => RData::AAAA(AAAA::from(*address)),
                    };
                    let record =
                        ResourceRecord::new(name.clone(), CLASS::IN, LIFETIME_SECONDS, data);
                    packet.answers.push(record);
                }
            }
            Answer::NoSuchName => *packet.rcode_mut() = RCODE::NameError,
        }
        packet.build_bytes_vec().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::{Name, QCLASS, Question as Written};

    fn question(name: &str, kind: TYPE) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        let name = Name::new_unchecked(name).into_owned();
        packet.questions.push(Written::new(
            name,
            QTYPE::TYPE(kind),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        packet.build_bytes_vec().unwrap()
    }

    #[test]
    fn a_question_is_understood_and_answered() {
        let asked = understand(&question("WWW.Example.org", TYPE::A)).unwrap();
        assert_eq!((asked.name.as_str(), asked.kind), ("www.example.org", Kind::V4));
        let addresses = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let bytes = asked.answer(Answer::Addresses(&addresses)).unwrap();
        let answer = Packet::parse(&bytes).unwrap();
        assert_eq!((answer.id(), answer.answers.len()), (7, 1), "of its kind only");
        assert!(answer.has_flags(PacketFlag::RESPONSE));
        assert_eq!(answer.rcode(), RCODE::NoError);
        assert!(understand(&bytes).is_none(), "an answer is no question");
        let bytes = asked.answer(Answer::NoSuchName).unwrap();
        assert_eq!(Packet::parse(&bytes).unwrap().rcode(), RCODE::NameError);
    }

    #[test]
    fn other_kinds_have_a_name_and_nonsense_is_no_question() {
        let asked = understand(&question("example.org", TYPE::TXT)).unwrap();
        assert_eq!((asked.kind, asked.kind.name().as_str()), (Kind::Other(16), "TYPE16"));
        let whole = question("example.org", TYPE::A);
        for length in 0..whole.len() {
            assert!(understand(&whole[..length]).is_none(), "{length} bytes");
        }
        for byte in 0..whole.len() {
            let mut changed = whole.clone();
            changed[byte] ^= 0xff;
            // Whatever comes of it: nothing breaks.
            let _ = understand(&changed).and_then(|asked| asked.answer(Answer::NoSuchName));
        }
    }
}
