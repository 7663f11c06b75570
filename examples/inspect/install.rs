//! The command `install`: a server into the files of hosts.

use std::ffi::OsString;
use std::path::Path;

use mcp_sansio::json::Raw;

use crate::args::Target;
use crate::commands::{Done, Run, Trouble};
use crate::edit;
use crate::hosts::{HOSTS, HostKind, Places, whole};
use crate::json::pretty;
use crate::text::clean;

impl Run<'_, '_> {
    /// Prints the configuration, or writes it. The server has answered before: an entry that cannot work is of no use.
    pub(crate) fn install(&mut self, name: &str, hosts: &[HostKind]) -> Done {
        if name.trim().is_empty() {
            return Err(Trouble::Usage("the name is empty: hosts show it, and tell servers apart by it".into()));
        }
        let places = Places::here();
        let target = if self.options.bridge { &bridged(self.target) } else { self.target };
        let chosen = if hosts.is_empty() { &HOSTS[..] } else { hosts };
        let (mut out, mut written, mut failed) = (String::new(), 0, Vec::new());
        for host in chosen {
            let Some((folder, file)) = host.file(&places) else {
                failed.push(format!("{}: there is no home folder", host.name));
                continue;
            };
            let shown = clean(file.display());
            let entry = match host.entry(target, self.options) {
                Ok(entry) => entry,
                Err(why) => {
                    failed.push(format!("{}: {why}", host.name));
                    continue;
                }
            };
            if !self.options.write {
                // As a new file would be, but for the width.
                let whole = host.set("", name, &entry).map_err(Trouble::Usage)?;
                let whole = Raw::parse(whole.as_bytes()).map_or(whole.clone(), |raw| pretty(raw, self.look.width));
                out.push_str(&format!("{}: {shown}\n{}\n\n", host.name, whole.trim_end()));
                continue;
            }
            // Without a word about it, no folders are made for hosts that are not here.
            if hosts.is_empty() && !folder.is_dir() {
                continue;
            }
            match write(&file, |old| host.set(old, name, &entry)) {
                Ok(Some(old)) => out.push_str(&format!("{}: {shown} written{old}\n", host.name)),
                Ok(None) => out.push_str(&format!("{}: {shown} has it already\n", host.name)),
                Err(why) => {
                    failed.push(format!("{}: {shown} is not changed: {why}", host.name));
                    continue;
                }
            }
            written += 1;
        }
        if !self.options.write {
            out.push_str("Nothing is written: --write adds it to the files of the hosts that are here.\n");
        } else if written == 0 && failed.is_empty() {
            let words = HOSTS.map(|host| host.word).join(", ");
            failed.push(format!("none of these hosts is here; name one to write its file all the same: {words}"));
        }
        self.print(&out)?;
        // A host that cannot take it is a failure only if it was asked for, or should have been written.
        let is_failure = !failed.is_empty() && (!hosts.is_empty() || self.options.write && written == 0);
        let words = failed.join("\n");
        match is_failure {
            true => Err(Trouble::Usage(words)),
            false => {
                failed.iter().for_each(|line| self.around.live.borrow_mut().note(crate::page::Style::Warn, line));
                Ok(())
            }
        }
    }
}

/// Puts the bridge between a host and a server.
fn bridged(server: &Target) -> Target {
    let mut words = vec![OsString::from("mcp-bridge")];
    match server {
        Target::Url(url) => words.push(url.into()),
        Target::Program(program) => {
            words.push("--".into());
            words.extend(program.first().map(|first| whole(first)));
            words.extend(program.iter().skip(1).cloned());
        }
    }
    Target::Program(words)
}

/// Changes a file, and makes its folder. Returns what to say of the old file; `None` if nothing had to be changed.
fn write(file: &Path, change: impl Fn(&str) -> Result<String, String>) -> Result<Option<String>, String> {
    let folder = file.parent().ok_or("it is no file")?;
    let is_new = !folder.is_dir();
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let changed = edit::change(file, change).inspect_err(|_| {
        if is_new {
            // Not if another program has put something there.
            let _ = std::fs::remove_dir(folder);
        }
    })?;
    Ok(match changed {
        edit::Changed::No => None,
        edit::Changed::New => Some(String::new()),
        edit::Changed::From(old) => Some(format!("; the old one is {}", clean(old.display()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_stands_between() {
        let words = |target: &Target| match bridged(target) {
            Target::Program(words) => words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>(),
            Target::Url(url) => vec![url],
        };
        assert_eq!(words(&Target::Url("http://h/mcp".into())), ["mcp-bridge", "http://h/mcp"]);
        let program = Target::Program(["/bin/server", "--bridge", "./x"].map(Into::into).into());
        assert_eq!(words(&program), ["mcp-bridge", "--", "/bin/server", "--bridge", "./x"]);
    }
}
