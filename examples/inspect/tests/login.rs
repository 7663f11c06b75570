//! Logs in to a protected server as a user does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mcp_sansio_auth_tests::{Role, World, redirect_of};

/// A user's folder, with a browser in it that goes where it is sent.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let folder = std::env::temp_dir().join(format!("mcp-sansio-login-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Home(folder)
    }

    /// Writes the URL that it gets into a file. A thread here visits it.
    fn browser(&self) -> String {
        let path = self.0.join("browser");
        let seen = self.0.join("seen");
        fs::write(&path, format!("#!/bin/sh\necho \"$1\" > {0}.new && mv {0}.new {0}\n", seen.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn inspect(&self, browser: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inspect"));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_CONFIG_HOME", self.0.join("config")).env("BROWSER", browser).env("NO_COLOR", "1");
        command
    }

    fn tokens(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.0.join("config/mcp-sansio-inspect"));
        folder.map(|folder| folder.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> (i32, String, String) {
    let words = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), words(&output.stdout), words(&output.stderr))
}

/// Visits the URL that the browser wrote.
fn visit(seen: &Path) -> std::thread::JoinHandle<()> {
    let seen = seen.to_owned();
    std::thread::spawn(move || {
        for _ in 0..1_000 {
            if let Ok(url) = fs::read_to_string(&seen) {
                let back = redirect_of(url.trim()).unwrap();
                redirect_of(&back);
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    })
}

#[test]
fn a_browser_opens_and_the_tools_are_there() {
    let (world, home) = (World::new(), Home::new("browser"));
    let visitor = visit(&home.0.join("seen"));
    let (browser, url) = (home.browser(), world.url());
    let run = |args: &[&str]| text(&home.inspect(&browser, args).output().unwrap());
    let (code, out, err) = run(&["--trace", "tools", &url]);
    visitor.join().unwrap();
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("look") && err.contains(&format!("{}/authorize?", world.origin(Role::Issuer))), "{out}{err}");
    let [file] = &home.tokens()[..] else { panic!("{:?}", home.tokens()) };
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(file).unwrap().contains("access_token"));
    // The next commands use the token, and none shows it.
    for args in
        [vec!["tools", &url], vec!["--json", "call", "look", &url], vec!["login", &url], vec!["trace", "ping", &url]]
    {
        let (code, more, errors) = run(&args);
        assert_eq!(code, 0, "{args:?}: {more}{errors}");
        assert!(!errors.contains("authorize?"), "{errors}");
        for secret in world.secrets() {
            assert!(!(out.clone() + &err + &more + &errors).contains(&secret), "{args:?}");
        }
    }
    assert_eq!(world.requests(Role::Issuer, "/authorize").len(), 1);
    assert!(run(&["logout", &url]).1.starts_with("The login is forgotten"));
    assert!(home.tokens().is_empty());
    assert_eq!(world.requests(Role::Issuer, "/revoke").len(), 1);
    assert!(run(&["logout", &url]).1.starts_with("There was no login"));
    assert_eq!(world.violations(), [""; 0]);
}

#[test]
fn who_the_client_is() {
    let (world, home) = (World::new(), Home::new("client"));
    world.state().register(Role::Issuer, "me", "hush-hush");
    let visitor = visit(&home.0.join("seen"));
    let browser = format!("{} %s", home.browser());
    let args = ["--client-id", "me", "--client-secret-env", "HUSH", "--scope", "write", "login", &world.url()];
    let (code, out, err) = text(&home.inspect(&browser, &args).env("HUSH", "hush-hush").output().unwrap());
    visitor.join().unwrap();
    assert!(code == 0 && out.starts_with("You are logged in"), "{out}{err}");
    assert!(!(out + &err).contains("hush-hush"));
    let asked = world.requests(Role::Issuer, "/authorize");
    assert_eq!((asked[0].param("client_id"), asked[0].param("scope").contains("write")), ("me".to_owned(), true));
    let (code, _, err) = text(&home.inspect("", &args).env_remove("HUSH").output().unwrap());
    assert!(code == 2 && err.contains("HUSH"), "{err}");
    assert_eq!(world.violations(), [""; 0]);
}

#[test]
fn no_browser_and_refusals() {
    use std::io::{BufRead, BufReader};
    let (world, home) = (World::new(), Home::new("none"));
    let browser = home.browser();
    let mut child = home.inspect(&browser, &["--no-browser", "tools", &world.url()]).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = lines.map(Result::unwrap).find(|line| line.contains("/authorize?")).unwrap();
    redirect_of(&redirect_of(url.trim()).unwrap());
    assert!(child.wait().unwrap().success());
    assert!(!home.0.join("seen").exists(), "no browser was opened");
    // A header takes the place of a login.
    let header = ["--header", "Authorization: Bearer wrong", "tools", &world.url()];
    let (code, _, err) = text(&home.inspect(&browser, &header).output().unwrap());
    assert!(code == 3 && !err.contains("authorize?"), "{err}");
    world.document(Role::Issuer, "/.well-known/oauth-authorization-server", |_, metadata| {
        metadata["issuer"] = "https://evil.example".into();
    });
    let other = Home::new("other");
    let (code, _, err) = text(&other.inspect(&browser, &["tools", &world.url()]).output().unwrap());
    assert!(code == 3 && err.contains("issuer"), "{err}");
}

/// A refresh token is good once: of several processes with one login, one sends it, and the others take what it got.
#[test]
fn several_processes_refresh_once() {
    let (world, home) = (World::new(), Home::new("several"));
    let visitor = visit(&home.0.join("seen"));
    let (browser, url) = (home.browser(), world.url());
    let (code, out, err) = text(&home.inspect(&browser, &["login", &url]).output().unwrap());
    visitor.join().unwrap();
    assert_eq!(code, 0, "{out}{err}");
    for round in 1..=3 {
        world.expire_tokens();
        let children: Vec<_> =
            (0..4).map(|_| home.inspect("false", &["--timeout", "20", "tools", &url]).spawn().unwrap()).collect();
        for mut child in children {
            // A second login would wait for a person.
            for _ in 0..2_000 {
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let _ = child.kill();
            let (code, out, err) = text(&child.wait_with_output().unwrap());
            assert!(code == 0 && !err.contains("authorize?"), "{out}{err}");
        }
        let grants = world.requests(Role::Issuer, "/token");
        let refreshed = grants.iter().filter(|request| request.param("grant_type") == "refresh_token").count();
        assert_eq!((refreshed, grants.len()), (round, round + 1));
    }
    assert_eq!(world.requests(Role::Issuer, "/authorize").len(), 1);
    assert_eq!((home.tokens().len(), world.violations()), (1, vec![]));
}
