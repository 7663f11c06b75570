//! Places where registrations and tokens stay between two starts.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The longest name of a file of tokens, without its ending and hash.
const NAME: usize = 100;
/// The longest wait for other processes. A refresh takes at most 20 seconds by default, and a process that was stopped must
/// not keep the others out for ever.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(20);

/// A place for the registrations and tokens of one server, as a text with secrets in it.
pub trait TokenStore: Send {
    /// Returns the text that was saved last; `None` before the first.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&mut self) -> io::Result<Option<String>>;

    /// Saves a text in place of the last one.
    ///
    /// # Errors
    /// If it cannot be written.
    fn save(&mut self, text: &str) -> io::Result<()>;

    /// Keeps other processes with the same place from a refresh until the returned value is dropped: a refresh token is good
    /// once at many authorization servers, and some end the login when it comes twice. The client calls it before a refresh,
    /// then [`load`](Self::load), and refreshes only if no other token was saved meanwhile. It blocks, and must not do so for ever.
    /// Default: no lock, for a place that one process uses.
    ///
    /// # Errors
    /// If there is no lock. The client refreshes without one.
    fn lock(&mut self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// Keeps nothing.
#[derive(Debug)]
pub(crate) struct NoTokens;

impl TokenStore for NoTokens {
    fn load(&mut self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn save(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A file that only its user can read (mode 0600). It is replaced as a whole, so that no reader sees a part of it. Processes
/// that use it at the same time refresh one after the other; none waits longer than 30 seconds for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Makes the store at a path. Folders on the way to it are made with the first [`save`](TokenStore::save), with
    /// mode 0700.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TokenFile(path.into())
    }

    /// Makes the store of this user for the server at a URL, which all programs with this function share:
    /// `mcp-sansio-inspect/NAME.json` in the user's configuration folder. Returns `None` if there is no such folder.
    #[must_use]
    pub fn for_server(url: &str) -> Option<Self> {
        let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
        Some(TokenFile::new(folder.join("mcp-sansio-inspect").join(format!("{}.json", name_of(url)))))
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes the file. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self) -> io::Result<bool> {
        match fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.named(&error)),
        }
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.0.display()))
    }

    /// Locks the file itself: nothing is left beside it. The lock ends when another file takes its place.
    fn locked(&self) -> io::Result<File> {
        let begun = Instant::now();
        loop {
            let file = File::open(&self.0)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let (locked, here) = (file.metadata()?, fs::metadata(&self.0)?);
                    if (locked.dev(), locked.ino()) == (here.dev(), here.ino()) {
                        return Ok(file);
                    }
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
            if begun.elapsed() > PATIENCE {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Two programs may save at once: each writes a file of its own, and the later one wins.
        let fresh = self.0.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&fresh);
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, &self.0)
        });
        written.inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }
}

/// Returns a name for a URL that no other URL has: its characters that are safe in names, and a hash (FNV-1a).
fn name_of(url: &str) -> String {
    let hash = url
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let safe = |char: char| if char.is_ascii_alphanumeric() || char == '.' { char } else { '-' };
    let name: String = rest.split(['?', '#']).next().unwrap_or("").chars().take(NAME).map(safe).collect();
    format!("{}-{hash:016x}", name.trim_matches(['.', '-']))
}

impl TokenStore for TokenFile {
    fn load(&mut self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.named(&error)),
        }
    }

    fn save(&mut self, text: &str) -> io::Result<()> {
        self.replace(text).map_err(|error| self.named(&error))
    }

    fn lock(&mut self) -> io::Result<Box<dyn Send>> {
        match self.locked() {
            Ok(file) => Ok(Box::new(file)),
            // Without a file there is no token that two could use.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Box::new(())),
            Err(error) => Err(self.named(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_differ_and_are_safe() {
        let urls =
            ["https://h/mcp", "https://h/mcp?x", "http://h/mcp", "https://h/../../etc/passwd", "https://h:1/a b"];
        let names = urls.map(name_of);
        for (at, name) in names.iter().enumerate() {
            assert!(name.chars().all(|char| char.is_ascii_alphanumeric() || "-.".contains(char)), "{name}");
            assert!(!name.contains('/') && !name.starts_with('.') && names[..at].iter().all(|other| other != name));
        }
        assert!(names[0].starts_with("h-mcp-"));
        assert!(name_of(&format!("https://h/{}", "x".repeat(9_000))).len() < 200);
    }

    // spec: A045 A142 A216
    #[test]
    fn files_are_private_and_replaced() {
        let folder = std::env::temp_dir().join(format!("mcp-sansio-tokens-{}", std::process::id()));
        let mut file = TokenFile::new(folder.join("a/b.json"));
        assert_eq!(file.load().unwrap(), None);
        assert!(!file.remove().unwrap());
        for text in ["one, which is longer", "two"] {
            file.save(text).unwrap();
            assert_eq!(file.load().unwrap().as_deref(), Some(text));
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.path()), mode(&folder.join("a"))), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder.join("a")).unwrap().count(), 1, "nothing else is left");
        assert!(file.remove().unwrap());
        assert_eq!(file.load().unwrap(), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_refreshes_at_a_time() {
        let folder = std::env::temp_dir().join(format!("mcp-sansio-lock-{}", std::process::id()));
        let file = TokenFile::new(folder.join("tokens.json"));
        assert!(file.clone().lock().is_ok(), "there is no file");
        file.clone().save("0").unwrap();
        // Each reads what the one before it has written, although the file that it waited for was replaced.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let mut file = file.clone();
                scope.spawn(move || {
                    let _lock = file.lock().unwrap();
                    let count: u32 = file.load().unwrap().unwrap().parse().unwrap();
                    std::thread::sleep(Duration::from_millis(10));
                    // One place for its new text: a program has one authorizer for a file.
                    let fresh = folder_of(&file).join(format!("{count}.fresh"));
                    fs::write(&fresh, (count + 1).to_string()).unwrap();
                    fs::rename(fresh, file.path()).unwrap();
                });
            }
        });
        assert_eq!(file.clone().load().unwrap().as_deref(), Some("8"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(folder).unwrap();
    }

    fn folder_of(file: &TokenFile) -> &Path {
        file.path().parent().unwrap()
    }

    /// Errors name the path, and nothing is left of a text that could not be saved.
    #[test]
    fn a_place_that_is_no_file_is_an_error() {
        let folder = std::env::temp_dir().join(format!("mcp-sansio-no-tokens-{}", std::process::id()));
        let path = folder.join("tokens.json");
        fs::create_dir_all(path.join("inside")).unwrap();
        let mut file = TokenFile::new(&path);
        let errors = [file.load().map(drop), file.save("text"), file.remove().map(drop)];
        for error in errors.map(Result::unwrap_err) {
            assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        // A file where there should be a folder.
        fs::write(folder.join("file"), "").unwrap();
        assert!(TokenFile::new(folder.join("file/tokens.json")).save("text").is_err());
        fs::remove_dir_all(folder).unwrap();
        let mut none = NoTokens;
        assert!(none.save("text").is_ok() && none.load().unwrap().is_none());
    }
}
