//! Bytes pass unchanged where host and server are of one era.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;

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
