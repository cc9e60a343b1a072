//! The thread that writes, and the bounded way to it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

/// Lines on their way; more are dropped, and counted.
const MOST_WAITING: usize = 16 * 1024;
/// Written at once.
const BATCH: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Writer {
    lines: Option<SyncSender<Vec<u8>>>,
    dropped: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(target: impl Write + Send + 'static) -> io::Result<Writer> {
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        let thread = thread::Builder::new().name("relent-log".to_owned());
        let thread = thread.spawn(move || write_all(target, &waiting, &count))?;
        Ok(Writer { lines: Some(lines), dropped, thread: Some(thread) })
    }

    pub(super) fn write(&self, line: Vec<u8>) {
        let taken = self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a sender the thread writes what it has, and ends.
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Ends when nobody can send any more, or when the target takes nothing any more (a closed pipe, a full disk).
fn write_all(mut target: impl Write, waiting: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    while let Ok(mut batch) = waiting.recv() {
        let mut lines = 1;
        while batch.len() < BATCH {
            match waiting.try_recv() {
                Ok(line) => {
                    batch.extend_from_slice(&line);
                    lines += 1;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if target.write_all(&batch).and_then(|()| target.flush()).is_err() {
            dropped.fetch_add(lines, Ordering::Relaxed);
            return;
        }
    }
}
