//! A handle for each host that requests go to, so that a dead one spends its own budget only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};

use crate::retry::Retry;
use crate::timer::Clock;

/// Handles by authority, a bounded number of them; the least recently used one that no call uses makes room.
#[derive(Debug)]
pub(super) struct Authorities<C, T> {
    most: usize,
    /// Counts requests, to tell what was used last.
    clock: AtomicU64,
    known: RwLock<HashMap<Key, Known<C, T>>>,
}

/// A host in lower case, and a port.
type Key = (String, u16);

#[derive(Debug)]
struct Known<C, T> {
    retry: Retry<C, T>,
    used: AtomicU64,
}

impl<C: Clone, T: Clock> Authorities<C, T> {
    pub(super) fn new(most: usize) -> Authorities<C, T> {
        Authorities { most, clock: AtomicU64::new(0), known: RwLock::default() }
    }

    /// The handle of the request's target. A request without one goes by `common`, and so does one to a new target while
    /// calls to others use all the room there is.
    pub(super) fn of(&self, uri: &Uri, headers: &HeaderMap, common: &Retry<C, T>) -> Retry<C, T> {
        let Some(key) = key(uri, headers) else { return common.clone() };
        let used = self.clock.fetch_add(1, Ordering::Relaxed);
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            known.used.store(used, Ordering::Relaxed);
            return known.retry.clone();
        }
        self.add(key, used, common)
    }

    #[cold]
    fn add(&self, key: Key, used: u64, common: &Retry<C, T>) -> Retry<C, T> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return known.retry.clone();
        }
        if known.len() >= self.most && !make_room(&mut known) {
            return common.clone();
        }
        let retry = common.alike();
        known.insert(key, Known { retry: retry.clone(), used: AtomicU64::new(used) });
        retry
    }

    /// The handles there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Forgets the target that was used longest ago, of those that no call uses: what a call holds has to go back to where it
/// came from. `false`: calls use all of them.
fn make_room<C, T>(known: &mut HashMap<Key, Known<C, T>>) -> bool {
    let idle = known.iter().filter(|(_, known)| !known.retry.is_shared());
    let oldest = idle.min_by_key(|(_, known)| known.used.load(Ordering::Relaxed));
    match oldest.map(|(key, _)| key.clone()) {
        Some(key) => known.remove(&key).is_some(),
        None => false,
    }
}

fn key(uri: &Uri, headers: &HeaderMap) -> Option<Key> {
    let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let of = |authority: &Authority| {
        (authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(default_port))
    };
    match uri.authority() {
        Some(authority) => Some(of(authority)),
        None => headers.get(HOST)?.to_str().ok()?.parse().ok().as_ref().map(of),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use relent_core::Policy;

    use super::*;
    use crate::timer::Manual;

    fn common() -> Retry<crate::Standard, Manual> {
        Retry::with_timer(Policy::default(), Manual::new())
    }

    fn of(
        authorities: &Authorities<crate::Standard, Manual>,
        uri: &str,
        common: &Retry<crate::Standard, Manual>,
    ) -> Retry<crate::Standard, Manual> {
        authorities.of(&uri.parse().unwrap(), &HeaderMap::new(), common)
    }

    fn same<C, T>(one: &Retry<C, T>, other: &Retry<C, T>) -> bool {
        Arc::ptr_eq(&one.shared, &other.shared)
    }

    #[test]
    fn a_target_is_a_host_and_a_port_whatever_its_spelling() {
        let (authorities, common) = (Authorities::new(9), common());
        let one = of(&authorities, "http://A.example/x", &common);
        for again in ["http://a.example/y", "http://a.example:80/", "HTTP://A.EXAMPLE:80"] {
            assert!(same(&one, &of(&authorities, again, &common)), "{again}");
        }
        for other in ["https://a.example/", "http://a.example:81/", "http://b.example/"] {
            assert!(!same(&one, &of(&authorities, other, &common)), "{other}");
        }
        assert_eq!(authorities.len(), 4);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "a.example".parse().unwrap());
        assert!(same(&one, &authorities.of(&"/x".parse().unwrap(), &headers, &common)));
        assert!(same(&common, &of(&authorities, "/x", &common)), "nobody knows where that goes");
    }

    #[test]
    fn the_least_recently_used_makes_room_but_never_one_in_use() {
        let (authorities, common) = (Authorities::new(2), common());
        let in_use = of(&authorities, "http://a/", &common);
        drop(of(&authorities, "http://b/", &common));
        drop(of(&authorities, "http://c/", &common));
        assert_eq!(authorities.len(), 2);
        assert!(same(&in_use, &of(&authorities, "http://a/", &common)), "a was older than b, and in use");
        let also = of(&authorities, "http://c/", &common);
        assert!(same(&common, &of(&authorities, "http://d/", &common)), "no room: the common one");
        drop(in_use);
        let new = of(&authorities, "http://d/", &common);
        assert!(!same(&common, &new) && !same(&also, &new));
        assert_eq!(authorities.len(), 2);
    }
}
