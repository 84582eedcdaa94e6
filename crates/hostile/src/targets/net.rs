//! Targets for what `assay net` receives over a network, and for files that users write for it.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_lab::network_bed::Trace;
use assay_net::invite::Invitation;
use assay_net::plan::NetPlan;
use assay_net::record::PersonRecord;
use assay_net::role::builtin;
use assay_net::server::head;
use assay_net::verdict::judge;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "net-address",
            seeds: text_seeds(&[
                "https://192.168.1.5:7443/#AQEBAQEBAQEBAQEBAQEBAQ.AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI",
                "https://[::1]:1/#a.b",
            ]),
            run: |bytes| {
                if let Ok(read) = Invitation::read(&to_text(bytes)) {
                    let again = Invitation::read(&read.to_string());
                    assert_eq!(again.as_ref(), Ok(&read), "it is not written as it is read");
                }
            },
        },
        ParserTarget {
            name: "net-plan",
            seeds: text_seeds(&[
                "name = 'x'\nseconds = 3\n[[person]]\nname = 'a'\nroles = ['voip', 'own']\nclient = 'c'\n",
                "name = 'x'\n[[person]]\nname = 'a'\nroles = ['own']\n[[role]]\nname = 'own'\nabout = 'a'\nthing = 't'\nfine = 'f'\ntrouble = 't'\nhopeless = 'h'\nworkload = { kind = 'fetches', bytes = 1, every_ms = 10, connections = 2 }\ngoal = { within_ms = 5 }\n",
            ]),
            run: |bytes| {
                if let Ok(plan) = NetPlan::read(&to_text(bytes)) {
                    for person in &plan.people {
                        assert!(plan.roles_of(person).is_ok(), "it was checked");
                    }
                }
            },
        },
        ParserTarget {
            name: "net-trace",
            seeds: text_seeds(&["1\n1\n20\n", "0\n5\r\n\n86400000\n"]),
            run: |bytes| {
                if let Ok(trace) = Trace::read(bytes) {
                    assert!(trace.bit_per_s() > 0.0 && trace.at(1) <= trace.at(2));
                    let far = trace.at(1 << 20);
                    assert!(far <= trace.at((1 << 20) + 1));
                }
            },
        },
        ParserTarget {
            name: "net-request",
            seeds: text_seeds(&[
                "POST /bytes HTTP/1.1\r\nHost: h\r\nassay-token: t\r\nassay-client: 3 ab voip\r\nContent-Length: 12\r\n\r\nhello",
                "GET /run/1/person/2?x HTTP/1.0\r\nConnection: a, close\r\n\r\n",
            ]),
            run: |bytes| {
                if let Ok(Some((_, length))) = head::read(bytes) {
                    assert!(length <= bytes.len());
                }
            },
        },
        ParserTarget {
            name: "net-record",
            seeds: text_seeds(&[
                r#"{"person":"b","ran_us":3000000,"ceiling_bit_per_s":1e6,"air":{"points":[{"address":"00:1a:2b:xx:xx:xx"},{"address":""}],"samples":[{"at":0,"point":0,"channel":{"band":"5GHz","number":36},"signal":-84,"down_bit_per_s":1},{"at":1000000},{"at":2000000,"point":1,"channel":{"band":"2.4GHz","number":1},"signal":-50}],"heard":[{"address":"","channel":{"band":"6GHz","number":5},"signal":-50}]},"roles":[{"role":"call","events":[[0,0,900000],[20000,9,null],[2500000,0,9]]}]}"#,
                r#"{"person":"a","ran_us":3000000,"start":{"idle_us":500},"void":[[0,5]],"roles":[{"role":"call","events":[[0,0,100],[20000,9,null]],"slots":[1,2]},{"role":"responsiveness","probes":[{"tcp":1,"tls":2,"http":3}],"events":[[5,5,5]]},{"role":"4kstream","events":[[0,0,1],[335544,0,9999999]]}]}"#,
            ]),
            run: |bytes| {
                if let Ok(record) = serde_json::from_slice::<PersonRecord>(bytes) {
                    for role in judge(&record, &builtin()).roles {
                        assert!(role.over <= role.counted && role.failed <= role.counted);
                    }
                }
            },
        },
    ]
}
