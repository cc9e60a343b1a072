//! The terminal, lent to a command that asks for it.
//!
//! In a group of its own a command is a background job to the terminal: it may write, and is stopped by SIGTTIN or SIGTTOU
//! as soon as it reads or sets it up (a password, an editor). If relent is in the foreground itself, it then puts the
//! command there, lets it go on, and takes the terminal back when the attempt is over. As a shell does; but on demand, so
//! that a pager behind relent in a pipe keeps its keyboard.

use std::cell::Cell;
use std::fs::File;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::group::Group;

/// The controlling terminal, if there is one.
#[derive(Debug)]
pub(super) struct Terminal {
    device: Option<File>,
    lent: Cell<bool>,
}

impl Terminal {
    pub(super) fn open() -> Terminal {
        Terminal {
            device: File::options().read(true).write(true).open("/dev/tty").ok(),
            lent: Cell::new(false),
        }
    }

    /// The signal that has just stopped the group's leader, if one has.
    pub(super) fn stopped(&self, group: Group) -> Option<Signal> {
        self.device.as_ref()?;
        stopped_by(group.leader())
    }

    /// Does what a stop by `signal` calls for.
    pub(super) fn settle(&self, group: Group, signal: Signal) {
        match signal {
            Signal::SIGTTIN | Signal::SIGTTOU if self.is_ours() => {
                self.lent.set(self.give(group.leader()));
                group.signal(Signal::SIGCONT);
            }
            // Neither is relent in the foreground: its shell has to know that the job waits for the terminal.
            Signal::SIGTTIN | Signal::SIGTTOU => stop_own_group(Signal::SIGTTIN),
            _ if self.take_back() => stop_own_group(Signal::SIGTSTP),
            _ => {}
        }
    }

    /// Takes the terminal back if it is lent, and says whether it was.
    pub(super) fn take_back(&self) -> bool {
        let lent = self.lent.replace(false);
        if lent {
            self.give(getpgrp());
        }
        lent
    }

    fn is_ours(&self) -> bool {
        self.device.as_ref().is_some_and(|device| tcgetpgrp(device) == Ok(getpgrp()))
    }

    /// Puts a group into the foreground. From the background that is only allowed with SIGTTOU blocked; not longer than
    /// that, since a command inherits what is blocked.
    fn give(&self, group: Pid) -> bool {
        let Some(device) = &self.device else { return false };
        let mut ttou = SigSet::empty();
        ttou.add(Signal::SIGTTOU);
        let Ok(before) = ttou.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return false };
        let given = tcsetpgrp(device, group).is_ok();
        let _ = before.thread_set_mask();
        given
    }
}

/// Stops relent with everything that its shell started together with it.
fn stop_own_group(signal: Signal) {
    let _ = killpg(getpgrp(), signal);
}

/// Asks whether a child has been stopped, without taking the news of its end from whoever waits for that.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn stopped_by(child: Pid) -> Option<Signal> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    match waitid(Id::Pid(child), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
    }
}

/// Elsewhere the question can't be asked without `unsafe`: a command that wants the terminal waits for SIGCONT there.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn stopped_by(_child: Pid) -> Option<Signal> {
    None
}
