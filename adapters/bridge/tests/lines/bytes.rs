//! Bytes pass unchanged where host and server are of one era.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use mcp_sansio_bridge::BridgeLimits;

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Writes any JSON value, with spaces, escapes and numbers that no reader keeps as they are.
    fn json(&mut self, depth: u32) -> String {
        const LEAVES: [&str; 10] = [
            "null",
            "true",
            "-0",
            "1.10e5",
            "9007199254740993",
            "0.1E-7",
            r#""\u00e9""#,
            r#""\/ \\ \" é""#,
            r#""\ud83d\ude00""#,
            "\"\"",
        ];
        match self.below(if depth == 0 { 2 } else { 4 }) {
            2 => {
                let items: Vec<_> =
                    (0..self.below(4)).map(|_| format!("{}{}", self.space(), self.json(depth - 1))).collect();
                format!("[{}{}]", items.join(","), self.space())
            }
            3 => {
                let members = (0..self.below(4)).map(|key| {
                    format!("{}\"k\\u006{key}\"{}:{}{}", self.space(), self.space(), self.space(), self.json(depth - 1))
                });
                let members: Vec<_> = members.collect();
                format!("{{{}{}}}", members.join(","), self.space())
            }
            _ => LEAVES[self.below(10) as usize].into(),
        }
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\t  "][self.below(4) as usize]
    }
}

#[test]
fn params_results_and_errors_of_one_era() {
    let mut chance = Chance(7);
    for era in [OLD, NEW] {
        let mut rig = Rig::open(era, era);
        for number in 0..500 {
            let [arguments, other, meta, result] = [(); 4].map(|()| chance.json(4));
            let terms = match era == NEW {
                true => {
                    r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1","z":[ 1 ]},"io.modelcontextprotocol/clientCapabilities":{"y":{ }}"#
                }
                false => "",
            };
            rig.wire.clear();
            rig.say(&format!(
                r#"{{"jsonrpc":"2.0","id":"i{number}","method":"tools/call","params":{{"x":{other},"name":"t","arguments":{arguments},"_meta":{{"k":{meta}{terms}}}}}}}"#
            ));
            // One line each: a tab is a space there too.
            assert!(rig.wire.contains(&format!(r#""x":{other},"name":"t","arguments":{arguments},"#)), "{}", rig.wire);
            assert!(rig.wire.contains(&format!(r#""k":{meta}"#)), "{}", rig.wire);
            // Also who the host is: a server of 2026-07-28 reads it from each request.
            let client =
                r#"Info":{"name":"n","version":"1","z":[ 1 ]},"io.modelcontextprotocol/clientCapabilities":{"y":{ }}"#;
            assert_eq!(rig.wire.matches(client).count(), usize::from(era == NEW), "{}", rig.wire);
            let call = rig.one("tools/call");
            rig.wire.clear();
            if number % 2 == 0 {
                rig.result(&call, &format!(r#"{{"content":[],"y":{result},"resultType":"complete"}}"#));
                assert!(
                    rig.wire.contains(&format!(r#""content":[],"y":{result},"resultType":"complete"}}}}"#)),
                    "{}",
                    rig.wire
                );
            } else {
                let error = format!(r#"{{"data":{result},"code":-1,"message":"\u00e9","z":{other}}}"#);
                rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, call["id"]));
                assert!(rig.wire.contains(&format!(r#""error":{error}}}"#)), "{}", rig.wire);
            }
            assert!(rig.wire.contains(&format!(r#""id":"i{number}""#)), "{}", rig.wire);
        }
    }
}

/// Unknown members of host and server pass with the handshake, within one era.
#[test]
fn descriptions_of_one_era() {
    for host in [OLD, NEW] {
        let mut rig = Rig::new(OLD, BridgeLimits::DEFAULT);
        let (info, capabilities) = (r#"{"name":"h","version":"1","x":[ 1 ]}"#, r#"{"roots":{ },"future":{"a":1.0}}"#);
        let opening = match host == OLD {
            true => {
                rig.last += 1;
                rig.say(&format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{info}}}}}"#
                ));
                1
            }
            false => rig.opening(host),
        };
        rig.info = Box::leak(Box::new(Box::leak(Box::new(rig.bridge.host().unwrap().clone())).client_info()));
        rig.begin();
        let given = format!(r#""capabilities":{capabilities},"clientInfo":{info}"#);
        assert_eq!(rig.wire.contains(&given), host == OLD, "{}", rig.wire);
        let heard = rig.one("initialize");
        rig.wire.clear();
        let capabilities = r#"{"tools":{},"tasks":{"list":{ }},"future":{"b":[ ]},"experimental":{"e":{ }}}"#;
        let server = r#"{"name":"s","icons":[ ],"version":"1","z":1.10}"#;
        rig.result(
            &heard,
            &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{server}}}"#),
        );
        assert!(rig.answer(opening)["result"]["capabilities"]["experimental"]["e"].is_object());
        for unknown in [r#""tasks":{"list":{ }},"future":{"b":[ ]}"#, r#""icons":[ ],"z":1.10"#] {
            assert_eq!(rig.wire.contains(unknown), host == OLD, "{}", rig.wire);
        }
    }
}

#[test]
fn progress_as_it_is_written() {
    for (host, server) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let mut rig = Rig::open(host, server);
        let terms =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let terms = if host == NEW { format!(",{terms}") } else { String::new() };
        rig.say(&format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":"\u0070"{terms}}}}}}}"#
        ));
        let token = rig.one("tools/call")["params"]["_meta"]["progressToken"].clone();
        rig.wire.clear();
        rig.serve(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1.10e5,"total":2E5,"message":"m"}}}}"#
        ));
        let told = r#""params":{"progressToken":"\u0070","progress":1.10e5,"total":2E5,"message":"m"}"#;
        assert!(rig.wire.contains(told), "{}", rig.wire);
    }
}
