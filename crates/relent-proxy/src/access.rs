//! The access log: a JSON line for each request, written by a thread of its own, so that no worker waits for a disk.
//!
//! The path is logged without its query, and no header but the host: queries and headers hold secrets.

mod line;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Arc;

use relent_config::AccessLog as To;

use crate::facts;
use crate::upstream::Upstream;
use writer::Writer;

/// Takes the lines; clones share one thread. The last clone that is dropped waits until everything is written.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog(Option<Arc<Writer>>);

impl AccessLog {
    /// Opens what is named; a file is continued.
    pub(crate) fn open(to: &To) -> io::Result<AccessLog> {
        Ok(match to {
            To::None => AccessLog(None),
            To::Stderr => AccessLog::to(io::stderr())?,
            To::File(path) => AccessLog::to(OpenOptions::new().append(true).create(true).open(path)?)?,
            _ => AccessLog::to(io::stdout())?,
        })
    }

    pub(crate) fn to(target: impl Write + Send + 'static) -> io::Result<AccessLog> {
        Ok(AccessLog(Some(Arc::new(Writer::start(target)?))))
    }

    /// Whether anybody wants lines.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Lines that were lost, since the thread could not follow or its target is gone.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |writer| writer.dropped())
    }

    /// A call that has ended, with the names of its upstream and policy.
    pub(crate) fn write(&self, call: &facts::Call, line: &facts::Line, target: Option<(&Upstream, &str)>) {
        if let Some(writer) = &self.0 {
            writer.write(line::of_call(call, line, target));
        }
    }

    /// What was refused before it was a request.
    pub(crate) fn write_unread(&self, status: u16, unread: &facts::Unread) {
        if let Some(writer) = &self.0 {
            writer.write(line::of_unread(status, unread));
        }
    }
}
