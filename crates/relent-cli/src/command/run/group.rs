//! The process group of one attempt.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use relent::timer::{Clock, SystemTimer, Timer};
use tokio::process::Child;

/// How often it is looked whether the last of a group is gone: nothing tells.
const LOOK: Duration = Duration::from_millis(10);
/// How long killed processes are given to be gone: some that wait for a device can't even be killed.
const BURIAL: Duration = Duration::from_secs(1);

/// A group, by the command that leads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group(Pid);

impl Group {
    /// The group that `child` was started in as its leader; `None` once it has been waited for.
    pub(super) fn of(child: &Child) -> Option<Group> {
        Some(Group(Pid::from_raw(i32::try_from(child.id()?).ok()?)))
    }

    /// The leader's process id, which is the group's, too.
    pub(super) fn leader(self) -> Pid {
        self.0
    }

    /// Sends a signal to all of it. One that is gone needs none.
    pub(super) fn signal(self, signal: Signal) {
        let _ = killpg(self.0, signal);
    }

    fn is_gone(self) -> bool {
        killpg(self.0, None) == Err(Errno::ESRCH)
    }

    /// Ends all of it: SIGTERM, and SIGKILL for whoever is left when `grace` is over.
    pub(super) async fn end(self, child: &mut Child, grace: Duration) {
        adopt_orphans(true);
        self.signal(Signal::SIGTERM);
        // A stopped process hears SIGTERM only once it goes on.
        self.signal(Signal::SIGCONT);
        if !self.is_gone_within(child, grace).await {
            self.signal(Signal::SIGKILL);
            self.is_gone_within(child, BURIAL).await;
        }
        adopt_orphans(false);
    }

    async fn is_gone_within(self, child: &mut Child, time: Duration) -> bool {
        let over = SystemTimer.sleep_until(SystemTimer.now() + time);
        tokio::select! {
            biased;
            () = self.gone(child) => true,
            () = over => false,
        }
    }

    /// Buries adopted members. The leader must have been waited for, or its end would be missed.
    fn reap(self) {
        let members = Pid::from_raw(-self.0.as_raw());
        while waitpid(members, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
    }

    async fn gone(self, child: &mut Child) {
        let _ = child.wait().await;
        loop {
            self.reap();
            if self.is_gone() {
                return;
            }
            SystemTimer.sleep_until(SystemTimer.now() + LOOK).await;
        }
    }
}

/// Whether processes that lose their parent become relent's. Where nobody else buries them (a container whose first process
/// is no init), a group of dead ones would look alive until the grace is over.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn adopt_orphans(yes: bool) {
    // A kernel that can't costs time, not correctness.
    let _ = nix::sys::prctl::set_child_subreaper(yes);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn adopt_orphans(_yes: bool) {}
