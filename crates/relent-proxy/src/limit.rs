//! How much is borne at once: connections, and requests in flight. Calls that wait and bytes that are kept have their
//! bounds in the policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use relent_config::ProxyConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::respond::Refusal;

/// The bounds over all workers.
#[derive(Debug)]
pub(crate) struct Limits {
    connections: Arc<Semaphore>,
    most_requests: u32,
    requests: AtomicU32,
}

impl Limits {
    pub(crate) fn new(proxy: &ProxyConfig) -> Limits {
        Limits {
            connections: Arc::new(Semaphore::new(proxy.max_connections as usize)),
            most_requests: proxy.max_requests,
            requests: AtomicU32::new(0),
        }
    }

    /// Room for one more connection. Until there is, nothing is accepted: the system's queue holds what comes.
    pub(crate) async fn connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).acquire_owned().await.ok()
    }

    /// Room for one more request, or none: shed before anything is sent or kept.
    pub(crate) fn request(self: &Arc<Self>) -> Result<InFlight, Refusal> {
        if self.requests.fetch_add(1, Ordering::Relaxed) < self.most_requests {
            return Ok(InFlight(Arc::clone(self)));
        }
        self.requests.fetch_sub(1, Ordering::Relaxed);
        Err(Refusal::Overloaded)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }
}

/// A request's place, until the end of its response.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Limits>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
