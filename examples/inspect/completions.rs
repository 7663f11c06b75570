//! Completions for shells, made of the tables and the help of the command line.

use mcp_sansio::revision::Revision;

use crate::args::{COMMANDS, HELP, OPTIONS};
use crate::arguments::meant;
use crate::hosts::HOSTS;

pub(crate) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

const LEVELS: &str = "debug info notice warning error critical alert emergency";

/// The words that can follow a command, besides arguments that only the user knows.
fn words_after() -> [(&'static str, String); 4] {
    [
        ("tasks", "get follow cancel".into()),
        ("completions", SHELLS.join(" ")),
        ("install", HOSTS.map(|host| host.word).join(" ")),
        ("trace", COMMANDS.iter().filter(|name| **name != "trace").copied().collect::<Vec<_>>().join(" ")),
    ]
}

/// The words that can follow an option with a fixed list of values.
fn values_of() -> [(&'static str, String); 3] {
    [
        ("--revision", Revision::ALL.map(Revision::date).join(" ")),
        ("--log", LEVELS.into()),
        ("--from", HOSTS.map(|host| host.word).join(" ")),
    ]
}

/// Options with a file.
const FILES: [&str; 3] = ["--output", "-o", "--root"];

/// Returns the script for a shell.
pub(crate) fn script(shell: &str) -> Result<String, String> {
    match shell {
        "bash" => Ok(bash()),
        "zsh" => Ok(zsh()),
        "fish" => Ok(fish()),
        _ => Err(format!(
            "there are no completions for {shell:?}{}; there are {}",
            meant(shell, &SHELLS),
            SHELLS.join(", ")
        )),
    }
}

/// The column of the help where descriptions begin.
const COLUMN: usize = 27;

/// Returns the first line that the help says about a command or an option.
fn about(name: &str) -> String {
    let is = |line: &str| {
        let left: String = line.chars().take(COLUMN).collect();
        line.starts_with("  ") && left.split([' ', ',', '|']).any(|word| word == name)
    };
    let mut lines = HELP.lines().skip_while(|line| !is(line));
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let right = |line: &str| line.chars().skip(COLUMN).collect::<String>().trim().to_owned();
    // A command with many arguments has its description on the next line.
    let text =
        Some(right(first)).filter(|text| !text.is_empty() && !text.starts_with('[')).unwrap_or_else(|| right(second));
    text.trim_end_matches([':', ';', ',']).to_owned()
}

/// Returns the manual page: the help, as `man` wants it.
pub(crate) fn man() -> String {
    // A line that begins with a dot or a quote would be a command of roff, and `-` a hyphen.
    let roff = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    let mut page = format!(
        ".TH INSPECT 1 \"\" \"inspect {}\" \"\"\n.SH NAME\ninspect \\- looks at any MCP server\n.SH SYNOPSIS\n.nf\n",
        env!("CARGO_PKG_VERSION")
    );
    let (usage, rest) = HELP.split_once("\n\nCommands").unwrap_or((HELP, ""));
    for line in usage.lines().skip(2) {
        page.push_str(&format!("{}\n", roff(line.trim_start_matches("Usage:").trim())));
    }
    page.push_str(".fi\n.SH DESCRIPTION\n");
    for line in format!("Commands{rest}").lines() {
        let (left, right) = line.split_at_checked(COLUMN).unwrap_or((line, ""));
        match (line.chars().next(), left.trim()) {
            (None, _) => page.push_str(".PP\n"),
            (Some(' '), "") => page.push_str(&format!("{}\n", roff(right))),
            // Two spaces end what a command or an option is called.
            (Some(' '), _) if line.starts_with("  ") => {
                let (name, text) = match line[2..].split_once("  ") {
                    Some((name, text)) => (name, text.trim()),
                    None if left.ends_with(' ') => (left.trim(), right),
                    None => (line.trim(), ""),
                };
                page.push_str(&format!(".TP\n.B {}\n{}", roff(name), roff(text)));
                page.push_str(if text.is_empty() { "" } else { "\n" });
            }
            (Some(_), _) if line.starts_with("Commands") || line == "Options" => {
                page.push_str(&format!(".SS {}\n", roff(line)));
            }
            (Some(_), _) => page.push_str(&format!("{}\n", roff(line))),
        }
    }
    page
}

fn bash() -> String {
    let mut values = String::new();
    for (option, words) in values_of() {
        values.push_str(&format!("    {option}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;\n"));
    }
    values.push_str(&format!("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", FILES.join("|")));
    for (command, words) in words_after() {
        values.push_str(&format!("    {command}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;\n"));
    }
    format!(
        r#"# Completions of inspect for bash: source them, or put them into ~/.local/share/bash-completion/completions/inspect
_inspect() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} i
  COMPREPLY=()
  # Behind -- is the server: a program, and its arguments.
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "${{COMP_WORDS[i]}}" = -- ]; then
      if [ $((i + 1)) = "$COMP_CWORD" ]; then COMPREPLY=($(compgen -c -f -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi
      return
    fi
  done
  case $before in
{values}  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "{options}" -- "$word")) ;;
    *) for ((i = 1; i < COMP_CWORD; i++)); do
         case " {commands} " in *" ${{COMP_WORDS[i]}} "*) return ;; esac
       done
       COMPREPLY=($(compgen -W "{commands}" -- "$word")) ;;
  esac
}}
complete -o default -F _inspect inspect
"#,
        options = OPTIONS.join(" "),
        commands = COMMANDS.join(" "),
    )
}

fn zsh() -> String {
    let quoted = |text: &str| text.replace('\'', "'\\''").replace(':', "\\:");
    let described = |names: &[&str]| {
        names.iter().map(|name| format!("    '{name}:{}'\n", quoted(&about(name)))).collect::<String>()
    };
    let mut values = String::new();
    for (before, words) in values_of().into_iter().chain(words_after()) {
        values.push_str(&format!("    {before}) compadd -- {words}; return ;;\n"));
    }
    values.push_str(&format!("    {}) _files; return ;;\n", FILES.join("|")));
    format!(
        r#"#compdef inspect
# Completions of inspect for zsh: put them into a folder of $fpath, as _inspect
_inspect() {{
  local -a commands options
  commands=(
{commands}  )
  options=(
{options}  )
  # Behind -- is the server: a program, and its arguments.
  local dashes=${{words[(i)--]}}
  if (( dashes < CURRENT )); then
    if (( dashes + 1 == CURRENT )); then _command_names; _files; else _files; fi
    return
  fi
  case ${{words[CURRENT-1]}} in
{values}  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then
    _describe option options
  elif (( ${{#${{(M)${{words[2,CURRENT-1]}}:#({names})}}}} == 0 )); then
    _describe command commands
  fi
}}
if [ "$funcstack[1]" = _inspect ]; then _inspect "$@"; else compdef _inspect inspect; fi
"#,
        commands = described(&COMMANDS),
        options = described(&OPTIONS),
        names = COMMANDS.join("|"),
    )
}

fn fish() -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let mut script = String::from(
        "# Completions of inspect for fish: put them into ~/.config/fish/completions/inspect.fish\n\
         complete -c inspect -f\n\
         # Behind -- is the server: a program, and its arguments.\n\
         complete -c inspect -n '__fish_seen_subcommand_from --' -F\n",
    );
    let names = COMMANDS.join(" ");
    for name in COMMANDS {
        let about = quoted(&about(name));
        script.push_str(&format!(
            "complete -c inspect -n 'not __fish_seen_subcommand_from {names}' -a {name} -d '{about}'\n"
        ));
    }
    for (command, words) in words_after() {
        script.push_str(&format!("complete -c inspect -n '__fish_seen_subcommand_from {command}' -a '{words}'\n"));
    }
    for option in OPTIONS {
        let name = option.trim_start_matches('-');
        let short = match option {
            "--output" => " -s o",
            "--quiet" => " -s q",
            "--help" => " -s h",
            "--version" => " -s V",
            _ => "",
        };
        let takes = match values_of().into_iter().find(|(known, _)| *known == option) {
            Some((_, words)) => format!(" -x -a '{words}'"),
            None if FILES.contains(&option) => " -r -F".into(),
            None => String::new(),
        };
        script.push_str(&format!("complete -c inspect -l {name}{short}{takes} -d '{}'\n", quoted(&about(option))));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_its_line_of_the_help() {
        for name in COMMANDS.iter().chain(&OPTIONS) {
            assert!(about(name).len() > 3, "{name}: {:?}", about(name));
        }
        let page = man();
        for name in COMMANDS.iter().chain(&OPTIONS) {
            assert!(page.contains(&name.replace('-', "\\-")), "{name}: {page}");
        }
        assert!(!page.contains("\n\n") && page.contains(".TP\n.B tools [NAME]\ntools and their arguments;"), "{page}");
        assert_eq!(about("ping"), "how long an answer takes");
        assert_eq!(about("--quiet"), "hide progress, logs and the program's stderr");
        assert_eq!(about("complete"), "complete the argument NAME of a prompt, or of a template");
    }
}
