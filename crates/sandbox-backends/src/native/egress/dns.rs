//! DNS queries: parsing and answering.

use std::net::IpAddr;

use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// TTL of answers. Listeners for an address stay open a little longer than this.
pub(super) const LIFETIME_SECONDS: u32 = 60;

/// A DNS query.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// In lower case, without a trailing dot.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The query as received, for the answer.
    bytes: Vec<u8>,
}

/// The record type of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    V4,
    V6,
    /// A type that is not answered, by number.
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

    /// Whether an address is an answer of this type.
    pub(super) fn is_of(self, address: &IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Other(_) => false,
        }
    }
}

/// The answer to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// These addresses; an empty list means that there is no record of this type.
    Addresses(&'a [IpAddr]),
    /// The name does not exist.
    NoSuchName,
}

/// Parses a query; `None` if it is not one that can be answered.
pub(super) fn parse(bytes: &[u8]) -> Option<Query> {
    let packet = Packet::parse(bytes).ok()?;
    let is_query = !packet.has_flags(PacketFlag::RESPONSE) && packet.questions.len() == 1;
    let question = packet.questions.first().filter(|_| is_query)?;
    let name = question.qname.to_string().trim_end_matches('.').to_ascii_lowercase();
    let kind = match question.qtype {
        QTYPE::TYPE(TYPE::A) => Kind::V4,
        QTYPE::TYPE(TYPE::AAAA) => Kind::V6,
        other => Kind::Other(other.into()),
    };
    Some(Query { name, kind, bytes: bytes.to_vec() })
}

impl Query {
    /// Encodes the answer.
    pub(super) fn answer(&self, answer: Answer<'_>) -> Option<Vec<u8>> {
        let query = Packet::parse(&self.bytes).ok()?;
        let mut packet = query.clone().into_reply();
        packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
        packet.additional_records.clear();
        packet.name_servers.clear();
        packet.answers.clear();
        *packet.opt_mut() = None;
        match answer {
            Answer::Addresses(addresses) => {
                let name = query.questions.first()?.qname.clone();
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

    fn raw_query(name: &str, kind: TYPE) -> Vec<u8> {
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
    fn a_query_is_parsed_and_answered() {
        let query = parse(&raw_query("WWW.Example.org", TYPE::A)).unwrap();
        assert_eq!((query.name.as_str(), query.kind), ("www.example.org", Kind::V4));
        let addresses = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let bytes = query.answer(Answer::Addresses(&addresses)).unwrap();
        let answer = Packet::parse(&bytes).unwrap();
        assert_eq!((answer.id(), answer.answers.len()), (7, 1), "of its kind only");
        assert!(answer.has_flags(PacketFlag::RESPONSE));
        assert_eq!(answer.rcode(), RCODE::NoError);
        assert!(parse(&bytes).is_none(), "an answer is no question");
        let bytes = query.answer(Answer::NoSuchName).unwrap();
        assert_eq!(Packet::parse(&bytes).unwrap().rcode(), RCODE::NameError);
    }

    #[test]
    fn other_types_have_a_name_and_invalid_queries_are_ignored() {
        let query = parse(&raw_query("example.org", TYPE::TXT)).unwrap();
        assert_eq!((query.kind, query.kind.name().as_str()), (Kind::Other(16), "TYPE16"));
        let whole = raw_query("example.org", TYPE::A);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_none(), "{length} bytes");
        }
        for byte in 0..whole.len() {
            let mut changed = whole.clone();
            changed[byte] ^= 0xff;
            // Any result is fine, as long as nothing panics.
            let _ = parse(&changed).and_then(|query| query.answer(Answer::NoSuchName));
        }
    }
}
