//! Notes in a SQLite file. Both SDKs make their schemas from the same types.

pub use rusqlite::Error;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "mcp-sansio", derive(mcp_sansio::service::Arguments, mcp_sansio::service::Output))]
#[cfg_attr(feature = "mcp-sansio", arguments(rename_all = "lowercase"), output(rename_all = "lowercase"))]
#[cfg_attr(feature = "rmcp", derive(schemars::JsonSchema))]
pub enum Kind {
    Idea,
    Todo,
    Journal,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "mcp-sansio", derive(mcp_sansio::service::Arguments, mcp_sansio::service::Output))]
#[cfg_attr(feature = "rmcp", derive(schemars::JsonSchema))]
pub struct Due {
    /// The day, as in 2026-12-31
    pub date: String,
    pub remind_days: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "mcp-sansio", derive(mcp_sansio::service::Output))]
#[cfg_attr(feature = "rmcp", derive(schemars::JsonSchema))]
pub struct Note {
    pub id: i64,
    pub title: String,
    pub body: String,
    pub kind: Kind,
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

impl ToSql for Kind {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(match self {
            Kind::Idea => "idea",
            Kind::Todo => "todo",
            Kind::Journal => "journal",
        }
        .into())
    }
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "idea" => Ok(Kind::Idea),
            "todo" => Ok(Kind::Todo),
            "journal" => Ok(Kind::Journal),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

pub struct Db(Connection);

impl Db {
    pub fn open(file: &str) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, title TEXT, body TEXT, kind TEXT, tags TEXT,
             date TEXT, remind_days INTEGER)",
        )?;
        Ok(Db(connection))
    }

    /// The file, to open it once more in another thread.
    pub fn file(&self) -> String {
        self.0.path().unwrap_or_default().to_owned()
    }

    /// Adds a note, and returns it with its `id`.
    pub fn add(&self, note: Note) -> Result<Note> {
        let Note { title, body, kind, .. } = &note;
        let (date, remind) = note.due.as_ref().map(|due| (&due.date, due.remind_days)).unzip();
        self.0.execute(
            "INSERT INTO note (title, body, kind, tags, date, remind_days) VALUES (?, ?, ?, ?, ?, ?)",
            params![title, body, kind, note.tags.join(","), date, remind.flatten()],
        )?;
        Ok(Note { id: self.0.last_insert_rowid(), ..note })
    }

    /// Adds a note of one line, as an import does.
    pub fn import(&self, line: &str, kind: Kind) -> Result<Note> {
        self.add(Note { id: 0, title: line.into(), body: "".into(), kind, tags: vec!["imported".into()], due: None })
    }

    pub fn get(&self, id: i64) -> Result<Option<Note>> {
        self.0.query_row("SELECT * FROM note WHERE id = ?", [id], note).optional()
    }

    /// Passes the ids and titles of all notes to `with`, from the one at this index on, until it returns `false`.
    pub fn titles(&self, from: usize, mut with: impl FnMut(i64, &str) -> bool) -> Result<()> {
        let mut select = self.0.prepare_cached("SELECT id, title FROM note ORDER BY id LIMIT -1 OFFSET ?")?;
        let mut rows = select.query([from as i64])?;
        while let Some(row) = rows.next()? {
            if !with(row.get(0)?, row.get_ref(1)?.as_str()?) {
                break;
            }
        }
        Ok(())
    }

    pub fn all(&self) -> Result<Vec<Note>> {
        self.search(None, None, &[])
    }

    /// Finds the notes with `words` in their title or body, of that kind, with all the tags.
    pub fn search(&self, words: Option<&str>, kind: Option<Kind>, tags: &[String]) -> Result<Vec<Note>> {
        let mut select = self.0.prepare(
            "SELECT * FROM note WHERE (?1 IS NULL OR instr(title, ?1) OR instr(body, ?1)) AND (?2 IS NULL OR kind = ?2)",
        )?;
        let found = select.query_map(params![words, kind], note)?.collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().filter(|note| tags.iter().all(|tag| note.tags.contains(tag))).collect())
    }

    pub fn remove(&self, id: i64) -> Result<bool> {
        Ok(self.0.execute("DELETE FROM note WHERE id = ?", [id])? > 0)
    }

    pub fn tags(&self) -> Result<Vec<String>> {
        let mut tags: Vec<_> = self.all()?.into_iter().flat_map(|note| note.tags).collect();
        tags.sort();
        tags.dedup();
        Ok(tags)
    }
}

fn note(row: &Row<'_>) -> Result<Note> {
    let (tags, date): (String, Option<String>) = (row.get("tags")?, row.get("date")?);
    let remind_days = row.get("remind_days")?;
    Ok(Note {
        id: row.get("id")?,
        title: row.get("title")?,
        body: row.get("body")?,
        kind: row.get("kind")?,
        tags: tags.split(',').filter(|tag| !tag.is_empty()).map(String::from).collect(),
        due: date.map(|date| Due { date, remind_days }),
    })
}
