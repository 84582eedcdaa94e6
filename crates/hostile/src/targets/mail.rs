//! Targets for stored mails, whose headers strangers write, and for lists of addresses.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_mail::address_list::AddressList;
use assay_mail::message::{list_hops, parse_fields};
use std::net::IpAddr;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "mail-header",
            seeds: text_seeds(&[
                "Received: from mx.a.org (mx.a.org [203.0.113.7])\r\n\
                 \tby mail.b.org (Postfix) with ESMTPS id 4A;\r\n\tMon\r\n\
                 Received: from [IPv6:2001:db8::99] (helo=laptop) by mx.a.org with esmtpsa id 1a; Mon\r\n\
                 Subject: a\r\n b\r\n\r\nText\r\n",
                "From me Mon\nReceived: from AM1 (2603:10a6:20b::1) by AM2 (::ffff:192.0.2.1) with SMTP; Mon\nX: y\n\n",
            ]),
            run: |bytes| {
                let fields = parse_fields(bytes);
                let lines = bytes.split(|byte| *byte == b'\n').count();
                let hops = list_hops(&fields);
                assert!(hops.len() <= fields.len() && fields.len() <= lines);
                for hop in hops.iter().filter_map(|hop| hop.address) {
                    assert_eq!(hop, hop.to_canonical());
                }
            },
        },
        ParserTarget {
            name: "address-list",
            seeds: text_seeds(&[
                "; Spamhaus DROP List\n1.10.16.0/20 ; SBL256894\n203.0.113.7\n::/0\n",
                "{\"cidr\":\"2001:db8::/32\",\"sblid\":\"SBL1\"}\n{\"type\":\"metadata\",\"records\":1}\n",
                "198.51.100.0 - 198.51.100.9\n::1-::ffff\n\"192.0.2.0/24\",spam\n0.0.0.0-255.255.255.255\n",
            ]),
            run: |bytes| {
                let text = to_text(bytes);
                let list = AddressList::parse(&text);
                let lines = text.lines().count();
                assert!(list.unread <= lines);
                for address in [
                    "203.0.113.7",
                    "0.0.0.0",
                    "255.255.255.255",
                    "2001:db8::1",
                    "::",
                ] {
                    let address: IpAddr = address.parse().expect("an address");
                    if let Some((network, line)) = list.find(address) {
                        assert!((1..=lines).contains(&line));
                        // The network that is named contains the address.
                        assert!(
                            AddressList::parse(&network).find(address).is_some(),
                            "{network}"
                        );
                    }
                }
            },
        },
    ]
}
