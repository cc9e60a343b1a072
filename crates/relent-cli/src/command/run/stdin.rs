//! What the command reads, on each attempt the same: a file is rewound, a pipe is kept up to a limit.
//!
//! The rules are those of a request's body: the first attempt always streams, an attempt that read nothing leaves the input
//! whole, and nothing is ever repeated with half of it.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, Stdin};
use tokio::process::ChildStdin;

use crate::args::StdinSource;

/// What is kept at most, as of a request's body by default.
const KEPT: usize = relent::defaults::REPLAY_LIMIT as usize;
/// What is read at once.
const CHUNK: usize = 8 * 1024;

/// The command's input.
#[derive(Debug)]
pub(super) enum Input {
    /// relent's own; a file with the place where it stood at the start.
    Inherit(Option<(File, u64)>),
    /// Handed on and kept.
    Keep(Kept),
    /// Nothing.
    Null,
}

impl Input {
    /// As the flag says, or as suits what stdin is.
    pub(super) fn choose(source: Option<StdinSource>, attempts: u32) -> io::Result<Input> {
        let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = stdin.metadata()?.file_type();
        let once = kind.is_fifo() || kind.is_socket();
        Ok(match source {
            Some(StdinSource::Null) => Input::Null,
            Some(StdinSource::Keep) => Input::Keep(Kept::default()),
            None if once && attempts > 1 => Input::Keep(Kept::default()),
            _ if kind.is_file() => {
                let start = stdin.stream_position()?;
                Input::Inherit(Some((stdin, start)))
            }
            _ => Input::Inherit(None),
        })
    }

    /// Makes ready for an attempt.
    pub(super) fn stdio(&self) -> io::Result<Stdio> {
        match self {
            Input::Inherit(Some((file, start))) => {
                let mut file = file;
                file.seek(SeekFrom::Start(*start))?;
                Ok(Stdio::inherit())
            }
            Input::Inherit(None) => Ok(Stdio::inherit()),
            Input::Keep(_) => Ok(Stdio::piped()),
            Input::Null => Ok(Stdio::null()),
        }
    }

    /// Hands the input to an attempt, as long as that goes on; never ends before it.
    pub(super) async fn feed(&self, to: Option<ChildStdin>) {
        if let (Input::Keep(kept), Some(to)) = (self, to) {
            // A command that closed its stdin wants no more, which is no error.
            let _ = kept.feed(to).await;
        }
        std::future::pending().await
    }

    /// Whether another attempt can have all of it.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Input::Keep(kept) if kept.lost.get())
    }
}

/// An input that comes once, with what was handed on of it so far.
#[derive(Debug)]
pub(super) struct Kept {
    source: RefCell<Stdin>,
    kept: RefCell<Vec<u8>>,
    /// Read, and more than may be kept: handed on last, and lost with its first byte.
    excess: RefCell<Vec<u8>>,
    ended: Cell<bool>,
    lost: Cell<bool>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            source: RefCell::new(tokio::io::stdin()),
            kept: RefCell::default(),
            excess: RefCell::default(),
            ended: Cell::new(false),
            lost: Cell::new(false),
        }
    }
}

impl Kept {
    async fn feed(&self, mut to: ChildStdin) -> io::Result<()> {
        let mut handed = 0;
        loop {
            let next: Vec<u8> = self.kept.borrow().iter().skip(handed).take(CHUNK).copied().collect();
            if !next.is_empty() {
                handed += to.write(&next).await?;
            } else if !self.excess.borrow().is_empty() {
                self.hand_on_excess(&mut to).await?;
                handed = 0;
            } else if self.ended.get() {
                return Ok(());
            } else {
                self.read().await?;
            }
        }
    }

    /// Reads on. What is read belongs to the input at once, whatever becomes of the attempt.
    async fn read(&self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        // Borrowed for each poll, not taken for the whole read: the source is half-way through one when an attempt ends.
        let read = poll_fn(|context| {
            let mut into = ReadBuf::new(&mut chunk);
            let read = Pin::new(&mut *self.source.borrow_mut()).poll_read(context, &mut into);
            read.map_ok(|()| into.filled().len())
        });
        let read = read.await?;
        chunk.truncate(read);
        self.ended.set(chunk.is_empty());
        let mut kept = self.kept.borrow_mut();
        if !self.lost.get() && kept.len() + chunk.len() <= KEPT {
            kept.extend_from_slice(&chunk);
        } else {
            *self.excess.borrow_mut() = chunk;
        }
        Ok(())
    }

    /// From its first byte on the input can't be had again, and need not be kept.
    async fn hand_on_excess(&self, to: &mut ChildStdin) -> io::Result<()> {
        let excess = self.excess.borrow().clone();
        let written = to.write(&excess).await?;
        self.lost.set(true);
        self.kept.replace(Vec::new());
        self.excess.borrow_mut().drain(..written);
        Ok(())
    }
}
