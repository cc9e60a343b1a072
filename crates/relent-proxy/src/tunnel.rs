//! An upgraded connection: bytes both ways, until one side ends or the proxy does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use crate::limit::InFlight;
use crate::request::Upgrade;

/// Bytes held in each direction.
const BUFFER: usize = 8 * 1024;

/// The tunnels of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Tunnels {
    open: Arc<AtomicUsize>,
    /// Turns true when the grace period is over.
    cut: watch::Receiver<bool>,
}

impl Tunnels {
    pub(crate) fn new(cut: watch::Receiver<bool>) -> Tunnels {
        Tunnels { open: Arc::default(), cut }
    }

    pub(crate) fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// One of them.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Joins the client's connection and the endpoint's, once both have changed protocol. The tunnel keeps the request's place
/// among those in flight, which bounds how many there are.
pub(crate) fn open(
    upgrade: Upgrade,
    response: &mut Response<Incoming>,
    tunnels: &Tunnels,
    place: Option<InFlight>,
) {
    let endpoint = hyper::upgrade::on(response);
    let mut cut = tunnels.cut.clone();
    tunnels.open.fetch_add(1, Ordering::Relaxed);
    let open = Open(Arc::clone(&tunnels.open));
    tokio::spawn(async move {
        let _held = (open, place);
        tokio::select! {
            () = join(upgrade, endpoint) => {}
            _ = cut.wait_for(|cut| *cut) => {}
        }
    });
}

async fn join(upgrade: Upgrade, endpoint: hyper::upgrade::OnUpgrade) {
    // Either fails if its connection ended first, and then there is nobody to tell.
    let (Ok(client), Ok(endpoint)) = tokio::join!(upgrade.client, endpoint) else { return };
    let (mut client, mut endpoint) = (TokioIo::new(client), TokioIo::new(endpoint));
    drop(tokio::io::copy_bidirectional_with_sizes(&mut client, &mut endpoint, BUFFER, BUFFER).await);
}
