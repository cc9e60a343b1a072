//! What the attempt that runs and the signals that come have to know of each other.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;

use nix::sys::signal::{Signal, raise};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::ended::Ended;
use super::group::Group;
use super::signals::{Signals, ends_the_call};
use super::terminal::Terminal;
use crate::exit::Exit;

/// The running command, if any, and whether someone has called the whole thing off.
#[derive(Debug)]
pub(super) struct Stage {
    group: Cell<Option<Group>>,
    cancelled: Cell<Option<Signal>>,
    /// How the attempt ended during which it was called off.
    last: Cell<Option<Exit>>,
    changed: Notify,
    terminal: Terminal,
    /// The end of a group whose attempt was given up from outside.
    ending: RefCell<Option<JoinHandle<()>>>,
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage {
            group: Cell::new(None),
            cancelled: Cell::new(None),
            last: Cell::new(None),
            changed: Notify::new(),
            terminal: Terminal::open(),
            ending: RefCell::new(None),
        }
    }

    /// A command runs in `group` now.
    pub(super) fn enter(&self, group: Group) {
        self.group.set(Some(group));
    }

    /// It has ended. Answers whether that calls the whole off: one that the keyboard interrupted while it had the terminal,
    /// when relent itself heard nothing of it.
    pub(super) fn leave(&self, ended: Option<&Ended>) -> bool {
        self.group.set(None);
        let had_terminal = self.terminal.take_back();
        if had_terminal && ended.is_some_and(Ended::is_interrupted) {
            self.cancelled.set(self.cancelled.get().or(Some(Signal::SIGINT)));
        }
        self.changed.notify_one();
        self.cancelled.get().is_some()
    }

    /// Remembers how the last attempt of a cancelled call ended.
    pub(super) fn keep_last(&self, exit: Exit) {
        self.last.set(Some(exit));
    }

    /// Ends when the call was called off and no command runs any more.
    pub(super) async fn cancelled(&self) {
        while self.cancelled.get().is_none() || self.group.get().is_some() {
            self.changed.notified().await;
        }
    }

    /// Whether the call was called off.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.get().is_some()
    }

    /// What a cancelled call leaves with: the command's own code, or the signal's.
    pub(super) fn cancelled_exit(&self) -> Exit {
        let signal = self.cancelled.get().unwrap_or(Signal::SIGINT);
        self.last.get().unwrap_or(Exit::Signal(u8::try_from(signal as i32).unwrap_or(u8::MAX)))
    }

    /// A group is being ended by this task.
    pub(super) fn set_ending(&self, ending: JoinHandle<()>) {
        *self.ending.borrow_mut() = Some(ending);
    }

    /// Waits until the group of an attempt that was given up is gone.
    pub(super) async fn last_group_ended(&self) {
        let ending = self.ending.borrow_mut().take();
        if let Some(ending) = ending {
            // It can't fail but by a panic, which has been reported then.
            let _ = ending.await;
            self.leave(None);
        }
    }

    /// Hands every signal on to the command, for ever.
    pub(super) async fn hand_on(&self, signals: &mut Signals) -> Infallible {
        loop {
            match signals.next().await {
                Signal::SIGCHLD => self.look_for_stop(),
                Signal::SIGTSTP => self.stop(),
                signal => self.deliver(signal),
            }
        }
    }

    fn deliver(&self, signal: Signal) {
        if ends_the_call(signal) {
            self.cancelled.set(self.cancelled.get().or(Some(signal)));
            self.changed.notify_one();
        }
        if let Some(group) = self.group.get() {
            group.signal(signal);
        }
    }

    /// The keyboard's Ctrl-Z: the command stops, and relent too, so that the shell gets its prompt back. SIGCONT is handed
    /// on like other signals.
    fn stop(&self) {
        if let Some(group) = self.group.get() {
            group.signal(Signal::SIGTSTP);
        }
        // Only fails for signals that do not exist.
        let _ = raise(Signal::SIGSTOP);
    }

    /// A command that wants the terminal is stopped by the kernel, since the terminal is relent's: lend it. One that was
    /// stopped while it had the terminal takes relent along.
    fn look_for_stop(&self) {
        let Some(group) = self.group.get() else { return };
        if let Some(signal) = self.terminal.stopped(group) {
            self.terminal.settle(group, signal);
        }
    }
}
